// Makes the chart of memory over time and, below it on the same time axis, the chart of the addresses of all tensors.

function timeLabel(view) {
  if (view.axis === 'cost') return `cost so far${unitName(costUnit(view.end, view.data.cost_unit))}`;
  return view.shown.unit === 'step' ? 'step' : 'time';
}
const unitName = unit => unit.name ? ` (${unit.name})` : '';

/** Makes the two axes of a picture of memory over time. `top()` returns the largest number of bytes to show. */
function timeAxes(view, top, name) {
  const bytes = () => byteUnit(top());
  return {
    x: {
      range: () => [view.from, view.to],
      label: () => timeLabel(view),
      ticks: axisTicks(() => view.axis === 'cost' ? costUnit(view.end, view.data.cost_unit) : {size: 1}, 95, false, ''),
    },
    y: {
      range: () => [0, Math.max(1, top() * 1.06)],
      label: () => `${name}${unitName(bytes())}`,
      ticks: axisTicks(bytes, 46, true, ''),
    },
  };
}

const colorOfTrack = (view, track) => track === view.tracks[0] && view.tracks.length > 1 ? 'baseline' : 'schedule';

/** Returns the stepped outline of a schedule's memory within the visible range. */
function outline(u, view, track) {
  const path = new Path2D();
  const places = track.positions(view.axis);
  let k = lastUpTo(places, view.from);
  while (k > 0 && places[k - 1] === places[k]) --k;
  const x = place => u.valToPos(place, 'x', true);
  const y = bytes => u.valToPos(bytes, 'y', true);
  const begin = x(places[k]);
  path.moveTo(begin, y(track.bytes[k]));
  for (++k; k < places.length && places[k - 1] <= view.to; ++k) {
    path.lineTo(x(places[k]), y(track.bytes[k - 1]));
    path.lineTo(x(places[k]), y(track.bytes[k]));
  }
  const end = k < places.length ? x(places[k]) : x(track.last(view.axis));
  path.lineTo(end, y(track.bytes[k - 1]));
  return {path, begin, end};
}

function drawMemory(u, box, view) {
  const {ctx} = u;
  drawChosen(u, box, view);
  for (const track of view.drawn) {
    if (!track.bytes.length) continue;
    const color = colorOfTrack(view, track);
    const {path, begin, end} = outline(u, view, track);
    if (track === view.shown) {
      const area = new Path2D(path);
      area.lineTo(end, box.bottom);
      area.lineTo(begin, box.bottom);
      ctx.fillStyle = colorOf('area');
      ctx.fill(area);
    }
    ctx.strokeStyle = colorOf(color);
    ctx.lineWidth = 1.5 * box.ratio;
    ctx.lineJoin = 'round';
    ctx.stroke(path);
    drawPeak(u, box, view, track);
  }
  drawLevels(u, box, view.data.levels);
  drawMark(u, box, view);
}

/** Marks a schedule's peak with a dot. For buffers without a graph, shades all times of the peak. */
function drawPeak(u, box, view, track) {
  const {ctx} = u;
  if (track.unit === 'time') {
    ctx.fillStyle = colorOf('budget');
    ctx.globalAlpha = 0.15;
    track.bytes.forEach((bytes, k) => {
      if (bytes !== track.peak.bytes) return;
      const left = u.valToPos(track.at[k], 'x', true);
      const right = u.valToPos(k + 1 < track.at.length ? track.at[k + 1] : track.length, 'x', true);
      ctx.fillRect(left, box.top, Math.max(right - left, box.ratio), box.bottom - box.top);
    });
    ctx.globalAlpha = 1;
    return;
  }
  const step = track.peak.at;
  const middle = (track.x(step, view.axis) + track.x(step + 1, view.axis)) / 2;
  ctx.beginPath();
  ctx.arc(u.valToPos(middle, 'x', true), u.valToPos(track.peak.bytes, 'y', true), 3.4 * box.ratio, 0, 7);
  ctx.fillStyle = colorOf(colorOfTrack(view, track));
  ctx.strokeStyle = colorOf('card');
  ctx.fill();
  ctx.stroke();
}

function drawMark(u, box, view) {
  if (view.pinned === null) return;
  const {ctx} = u;
  const x = Math.round(u.valToPos(view.shown.x(view.pinned, view.axis), 'x', true));
  ctx.strokeStyle = colorOf('select');
  ctx.lineWidth = 1.5 * box.ratio;
  ctx.beginPath();
  ctx.moveTo(x, box.top);
  ctx.lineTo(x, box.bottom);
  ctx.stroke();
}

function drawChosen(u, box, view) {
  if (view.tensor === null) return;
  const {ctx} = u;
  const {first, last} = view.shown.lives;
  for (const life of view.shown.livesOf(view.tensor)) {
    const left = u.valToPos(view.shown.x(first[life], view.axis), 'x', true);
    const right = u.valToPos(view.shown.x(last[life] + 1, view.axis), 'x', true);
    const width = Math.max(right - left, 1.5 * box.ratio);
    ctx.fillStyle = colorOf(view.shown.isAgain(life) ? 'recomputed' : 'select');
    ctx.globalAlpha = 0.1;
    ctx.fillRect(left, box.top, width, box.bottom - box.top);
    ctx.globalAlpha = 1;
    ctx.fillRect(left, box.bottom - 5 * box.ratio, width, 5 * box.ratio);
  }
}

const colorOfLife = (view, life) => view.shown.isAgain(life)
    ? 'recomputed'
    : view.data.kinds[view.data.tensors.kind[view.shown.lives.tensor[life]]].color;

/** Returns the left and right edges of the rectangles of lives (tracks.js). They are cached until the axis changes. */
function lifeEdges(view) {
  const track = view.shown;
  if (!track.edges || track.edges.axis !== view.axis) {
    const {first, last} = track.lives;
    track.edges = {
      axis: view.axis,
      left: first.map(step => track.x(step, view.axis)),
      right: last.map(step => track.x(step + 1, view.axis)),
    };
  }
  return track.edges;
}

function drawAddresses(u, box, view) {
  const {ctx} = u;
  const track = view.shown;
  const {tensor, offset, bytes} = track.lives;
  const {left, right} = lifeEdges(view);
  const scale = (box.right - box.left) / (view.to - view.from);
  const tall = u.valToPos(0, 'y', true) - u.valToPos(1, 'y', true);
  const bottom = u.valToPos(0, 'y', true);
  const colors = {};
  const conflict = new Set(track.conflict || []);
  const gap = colorOf('card');
  ctx.lineWidth = 0.6 * box.ratio;
  const rectangle = (from, to, address, size, color, faint) => {
    if (to < view.from || from > view.to) return null;
    const x = box.left + (from - view.from) * scale;
    const width = Math.max((to - from) * scale, 0.7 * box.ratio);
    const height = Math.max(size * tall, 0.7 * box.ratio);
    const y = bottom - (address + size) * tall;
    ctx.globalAlpha = faint ? 0.35 : 1;
    ctx.fillStyle = colors[color] ??= colorOf(color);
    ctx.fillRect(x, y, width, height);
    if (width > 4 * box.ratio && height > 4 * box.ratio) {
      ctx.strokeStyle = gap;
      ctx.strokeRect(x, y, width, height);
    }
    return [x, y, width, height];
  };
  const bold = [];
  for (let life = 0; life < track.lifeCount; ++life) {
    if (offset[life] < 0 || !bytes[life]) continue;
    const chosen = tensor[life] === view.tensor;
    const faint = view.tensor !== null ? !chosen : conflict.size > 0 && !conflict.has(tensor[life]);
    const drawn = rectangle(left[life], right[life], offset[life], bytes[life], colorOfLife(view, life), faint);
    if (drawn && chosen) bold.push([drawn, 'select']);
    if (drawn && conflict.has(tensor[life])) bold.push([drawn, 'bad']);
  }
  const {scratch} = track;
  scratch.at.forEach((step, k) => rectangle(
      track.x(step, view.axis), track.x(step + 1, view.axis), scratch.offset[k], scratch.bytes[k], 'scratch',
      view.tensor !== null));
  ctx.globalAlpha = 1;
  for (const {lower, upper} of view.data.forbidden) {
    ctx.fillStyle = colorOf('ink');
    ctx.globalAlpha = upper > lower ? 0.3 : 1;
    ctx.fillRect(box.left, bottom - upper * tall, box.right - box.left, Math.max((upper - lower) * tall, 1.4 * box.ratio));
    ctx.globalAlpha = 1;
  }
  ctx.lineWidth = 2 * box.ratio;
  for (const [drawn, color] of bold) {
    ctx.strokeStyle = colorOf(color);
    ctx.strokeRect(...drawn);
  }
  drawLevels(u, box, view.data.levels.filter(level => level.of_plan));
  drawMark(u, box, view);
}

function lifeAt(view, x, address) {
  const {offset, bytes} = view.shown.lives;
  const {left, right} = lifeEdges(view);
  for (let life = view.shown.lifeCount - 1; life >= 0; --life) {
    if (offset[life] >= 0 && left[life] <= x && x < right[life] && offset[life] <= address &&
        address < offset[life] + bytes[life])
      return life;
  }
  return -1;
}

function lifeText(view, life) {
  const track = view.shown;
  const {first, last} = track.lives;
  const end = last[life] >= track.length ? 'the end' : grouped(last[life]);
  return `${track.unit} ${grouped(first[life])} to ${end}`;
}

function nameOfStep(view, track, k) {
  return track.unit === 'step' ? visible(view.data.nodes.name[track.node[k]]) : '';
}

/** Returns lines of text about the step of each drawn schedule at x. They also name the largest tensors of the schedule
 * that is shown in addition to the baseline. */
function stepTip(view, x, reach) {
  const lines = [];
  for (const track of view.drawn) {
    const k = track.pointAt(x, reach, view.axis);
    if (k < 0) {
      lines.push(`${track.name}: has ended`);
      continue;
    }
    const name = nameOfStep(view, track, k);
    lines.push(element('span', {}, element('b', {}, `${track.name} ${formatBytes(track.bytes[k])}`),
                       ` ${track.unit} ${grouped(track.at[k])}${name ? `, ${name}` : ''}`));
    if (track !== view.shown) continue;
    const live = track.liveAt(track.at[k]);
    for (const {tensor, bytes} of live.slice(0, 3))
      lines.push(`· ${visible(view.data.tensors.name[tensor])} ${formatBytes(bytes)}`);
    if (live.length > 3) lines.push(`· and ${grouped(live.length - 3)} more`);
  }
  return lines;
}

function makeTimeline(view) {
  const {data} = view;
  const memory = element('div', {class: 'chart', id: 'memory', 'aria-label': 'Memory over time'});
  const addresses = element('div', {class: 'chart', id: 'addresses', 'aria-label': 'Address over time'});
  const range = element('p', {class: 'range', id: 'range', 'aria-live': 'polite'});
  const reset = element('button', {type: 'button', id: 'reset', onclick: () => view.reset()}, 'Reset zoom');
  const legend = element('div', {class: 'legend'});
  const kinds = element('div', {class: 'legend'});
  const covered = element('p', {class: 'note'});
  const addressPart = element('div', {}, element('p', {class: 'chart-name'}, 'Address over time'), kinds, covered, addresses);

  const timeTools = element('div', {class: 'tools'});
  if (view.tracks.length > 1) {
    const names = view.tracks.map((track, index) => [index, track.name]);
    if (names.length <= 3) {
      timeTools.append(choice('Schedule', names, view.track, index => view.setTrack(index)));
    } else {
      const select = element('select', {'aria-label': 'Schedule', onchange: () => view.setTrack(Number(select.value))},
                             names.map(([index, name]) => element('option', {value: index}, name)));
      select.value = view.track;
      view.listen(() => select.value = view.track);
      timeTools.append(select);
    }
  }
  if (view.hasCost && view.shown.unit === 'step')
    timeTools.append(choice('Time axis', [['cost', 'Cost so far'], ['step', 'Step']], view.axis, axis => view.setAxis(axis)));
  timeTools.append(makeSearch(view), element('span', {class: 'right'}, reset));

  const sees = () => {
    const track = view.shown;
    const [first, last] = [view.stepAt(view.from), view.stepAt(view.to - (view.to - view.from) * 1e-9)];
    range.textContent = view.zoomed
        ? `Showing ${track.unit === 'step' ? 'steps' : 'time'} ${grouped(first)} to ${grouped(last)} of ${grouped(track.length)}.`
        : track.unit === 'step' ? `Showing all ${grouped(track.length)} steps.` : 'Showing all of the time.';
    range.dataset.from = view.from;
    range.dataset.to = view.to;
    reset.disabled = !view.zoomed;
  };
  const legends = () => {
    legend.replaceChildren(...view.drawn.map(track => {
      const line = element('i', {class: 'line'});
      line.style.background = `var(--${colorOfTrack(view, track)})`;
      return element('span', {}, line, `${track.name}: peak ${formatBytes(track.peak.bytes)}` +
          (track.exact ? '' : ` (${grouped(track.at.length)} of its steps, peak exact)`));
    }));
    const used = new Set();
    for (let life = 0; life < view.shown.lifeCount; ++life) {
      if (view.shown.lives.offset[life] >= 0 && view.shown.lives.bytes[life]) used.add(colorOfLife(view, life));
    }
    if (view.shown.scratch.at.length) used.add('scratch');
    const named = [...data.kinds, {name: 'computed again', color: 'recomputed'}].filter(kind => used.delete(kind.color));
    kinds.replaceChildren(...named.map(kind => {
      const square = element('i');
      square.style.background = `var(--${kind.color})`;
      return element('span', {}, square, visible(kind.name));
    }));
    const {lives_of: all, lives_share: share} = view.shown;
    covered.textContent = all > view.shown.lifeCount
        ? `The ${grouped(view.shown.lifeCount)} largest of ${grouped(all)} tensors by bytes × steps are drawn: ` +
            `${(100 * share).toFixed(1)}% of all.`
        : '';
    addressPart.hidden = !view.shown.arena_bytes;
  };

  const details = makeDetails(view);
  const section = element('section', {},
      element('h2', {}, view.shown.unit === 'step' ? 'Memory over time' : 'Buffers over time'),
      element('p', {class: 'note'}, matchMedia('(pointer: coarse)').matches
          ? 'Pinch to zoom, drag to pan, tap to mark a step.'
          : 'Wheel or drag to zoom, Shift + drag to pan, click to mark. Keys: ← → + − 0, and , . from step to step.'),
      timeTools,
      element('div', {class: 'timeline'},
              element('div', {class: 'charts'}, legend, memory, addressPart, range),
              details));

  const start = () => {
    const levels = data.levels.map(level => level.bytes);
    const most = () => {
      const peak = Math.max(...view.drawn.map(track => track.peak.bytes));
      return Math.max(peak, ...levels.filter(bytes => bytes < 1.6 * peak));
    };
    const arena = () => {
      const height = view.shown.arena_bytes || 1;
      return Math.max(height, ...data.levels.filter(level => level.of_plan && level.bytes < 1.6 * height).map(level => level.bytes));
    };
    const cursor = {
      drag: {x: true, y: false, setScale: false},
      sync: {key: 'time', filters: {pub: type => type === 'mousemove' || type === 'mouseleave'}},
      bind: {mousedown: (u, target, handler) => event => event.button === 0 && !event.shiftKey ? handler(event) : null},
    };
    const hooks = {
      setSelect: [u => {
        const {left, width} = u.select;
        if (width < 3) return;
        view.show(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
        u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
      }],
    };
    const plots = [
      makeChart(memory, {height: 300, ...timeAxes(view, most, 'memory'), draw: (u, box) => drawMemory(u, box, view), cursor, hooks}),
    ];
    // A hidden element has no size, so the chart of a plan is made only when there is a plan to show.
    const addPlan = () => {
      if (plots.length > 1 || !view.shown.arena_bytes) return;
      const plot = makeChart(addresses, {height: 360, ...timeAxes(view, arena, 'address'),
                                         draw: (u, box) => drawAddresses(u, box, view), cursor, hooks});
      plots.push(plot);
      navigate(addresses, plot, view);
      followPointer(view, plot, 'addresses');
      plot.setScale('x', {min: view.from, max: view.to});
    };
    legends();
    sees();
    navigate(memory, plots[0], view);
    followPointer(view, plots[0], 'memory');
    plots[0].setScale('x', {min: view.from, max: view.to});
    addPlan();
    view.listen(what => {
      if (what === 'track') {
        legends();
        addPlan();
      }
      if (what === 'range' || what === 'axis' || what === 'track') {
        sees();
        for (const plot of plots) plot.setScale('x', {min: view.from, max: view.to});
      }
      if (what !== 'step' || view.pinned !== view.drawnPin) {
        view.drawnPin = view.pinned;
        for (const plot of plots) plot.redraw(false, true);
      }
    });
  };
  return {section, start};
}

/** Follows the pointer: shows the step or tensor under the pointer, in a box beside the pointer and in the details
 * panel. A click marks the step or chooses the tensor. */
function followPointer(view, plot, which) {
  const {over} = plot;
  let down = null;
  const place = event => {
    const box = over.getBoundingClientRect();
    const x = plot.posToVal(event.clientX - box.left, 'x');
    return {x, y: plot.posToVal(event.clientY - box.top, 'y'), reach: 0.75 * (view.to - view.from) / box.width};
  };
  const life = at => which === 'addresses' ? lifeAt(view, at.x, at.y) : -1;
  over.addEventListener('mousedown', event => down = event.clientX);
  over.addEventListener('mousemove', event => {
    const at = place(event);
    const found = life(at);
    if (found >= 0) {
      const {tensor, bytes, offset} = view.shown.lives;
      showTip(event.clientX, event.clientY, element('b', {}, visible(view.data.tensors.name[tensor[found]])),
              `${exactBytes(bytes[found])} at ${grouped(offset[found])}`,
              lifeText(view, found) + (view.shown.isAgain(found) ? ', computed again' : ''));
    } else {
      showTip(event.clientX, event.clientY, ...stepTip(view, at.x, at.reach));
    }
    const k = view.shown.pointAt(at.x, at.reach, view.axis);
    view.setHover(k < 0 ? null : view.shown.at[k]);
  });
  over.addEventListener('mouseleave', () => {
    hideTip();
    view.setHover(null);
  });
  over.addEventListener('click', event => {
    if (event.shiftKey || down !== null && Math.abs(event.clientX - down) > 3) return;
    const at = place(event);
    const found = life(at);
    if (found >= 0) view.choose(view.shown.lives.tensor[found]);
    const k = view.shown.pointAt(at.x, at.reach, view.axis);
    if (k >= 0) view.pin(view.shown.at[k]);
  });
}
