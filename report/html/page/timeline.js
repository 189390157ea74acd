// Makes the chart of memory over time (memory_chart.js) and, below it on the same time axis, the chart of the addresses
// of all tensors (address_chart.js).

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
