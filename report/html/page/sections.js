// Makes the sections without a time axis: figures, the peak by groups, recomputations, cost over memory, tables.

const makeFacts = facts => element('div', {class: 'facts'}, facts.map(({name, value, note, tone}) => element('div', {class: 'fact'},
    element('div', {class: 'fact-name'}, name), element('div', {class: `fact-value ${tone || ''}`}, value),
    element('div', {class: 'fact-note'}, note || ''))));

function makeTable({title, note, head, rows}) {
  return element('section', {},
      element('h2', {}, title), note ? element('p', {class: 'note'}, note) : null,
      element('div', {class: 'scroll'}, element('table', {class: head.length > 4 ? 'cards' : null},
          element('thead', {}, element('tr', {}, head.map(cell => element('th', {scope: 'col'}, cell)))),
          element('tbody', {}, rows.map(({cells, marked}) => element('tr', {class: marked ? 'marked' : null},
              cells.map((cell, k) => k === 0 ? element('th', {scope: 'row'}, visible(cell))
                                             : element('td', {'data-name': head[k]}, visible(cell)))))))));
}

function makePicture({title, note, svg}) {
  return element('section', {class: 'picture'}, element('h2', {}, title), element('p', {class: 'note'}, note),
      element('img', {src: `data:image/svg+xml;utf8,${encodeURIComponent(svg)}`, alt: title}));
}

/** Returns what is in memory at a schedule's peak as rows {name, bytes, count, color, tensor?, again?}. `group` says
 * whether there is one row for each kind, each layer or each tensor. */
function peakRows(view, track, group) {
  const {data} = view;
  if (group === 'kind') {
    return (track.peak.by_kind || []).map(({group: kind, bytes, tensors}) => ({...data.kinds[kind], bytes, count: tensors}));
  }
  if (group === 'layer') {
    return (track.peak.by_layer || []).map(({group: layer, bytes, tensors}) => ({
      name: data.layers[layer], color: 'schedule', bytes, count: tensors}));
  }
  const rows = track.liveAt(track.peak.at).map(({life, tensor, bytes}) => ({
    bytes, tensor, again: track.isAgain(life), color: data.kinds[data.tensors.kind[tensor]].color}));
  if (track.unit !== 'step' || !track.at.length) return rows;
  const node = track.node[lastUpTo(track.at, track.peak.at)];
  const scratch = data.nodes.scratch[node];
  if (scratch) {
    rows.push({name: `${data.nodes.name[node]} (${scratch > 0 ? 'scratch' : 'taken over in place'})`, bytes: scratch, count: 1,
               color: scratch > 0 ? 'scratch' : 'in_place'});
  }
  const rest = track.peak.bytes - rows.reduce((sum, {bytes}) => sum + bytes, 0);
  rows.sort((a, b) => b.bytes - a.bytes);
  const count = track.peak.tensors - rows.length;
  return rest > 0 && count > 0 ? [...rows, {name: 'smaller ones, not on this page', bytes: rest, count, color: 'in_place'}] : rows;
}

function makePeak(view) {
  if (!view.tracks.some(track => track.lifeCount > 0)) return null;
  const steps = view.shown.unit === 'step';
  const groups = [['kind', 'By kind'], ['layer', 'By layer'], ['tensor', 'By tensor']].filter(
      ([group]) => group === 'tensor' || steps && (group === 'kind' || view.data.layers.length > 1));
  let group = steps && view.shown.peak.by_kind.length > 1 ? 'kind' : 'tensor';
  const columns = element('div', {class: 'columns', id: 'peak'});
  const open = new Set();
  const fill = () => {
    const drawn = view.drawn.filter(track => track.at.length);
    const scale = Math.max(1, ...drawn.map(track => (peakRows(view, track, group)[0] || {bytes: 1}).bytes));
    columns.replaceChildren(...drawn.map(track => {
      const rows = peakRows(view, track, group);
      const shown = open.has(track.name) ? rows.slice(0, 500) : rows.slice(0, 10);
      const k = lastUpTo(track.at, track.peak.at);
      const place = `${track.unit} ${grouped(track.peak.at)}`;
      const column = element('div', {class: 'peak', 'data-track': track.name},
          element('h3', {}, `${track.name}: ${formatBytes(track.peak.bytes)}`),
          element('p', {class: 'note'}, 'at ', track === view.shown ? stepButton(view, track.peak.at, place) : place,
                  steps ? `, while ${visible(view.data.nodes.name[track.node[k]])} runs` : ''),
          element('ul', {class: 'list'}, shown.map(row => element('li', {}, row.tensor === undefined
              ? element('div', {class: 'row'}, swatch(`var(--${row.color})`), element('span', {class: 'name'}, visible(row.name)),
                        element('span', {class: 'amount'}, `${formatBytes(row.bytes)}, ${(100 * row.bytes / track.peak.bytes).toFixed(1)}%` +
                            (row.count > 1 ? `, ${grouped(row.count)} tensors` : '')),
                        bar(Math.max(0, row.bytes) / scale, row.color))
              : tensorRow(view, {...row, share: row.bytes / scale})))));
      if (rows.length > 10) {
        const isOpen = open.has(track.name);
        const rest = rows.slice(10).reduce((sum, row) => sum + row.bytes, 0);
        column.append(element('button', {type: 'button', class: 'link', onclick: () => {
          if (isOpen) {
            open.delete(track.name);
          } else {
            open.add(track.name);
          }
          fill();
        }}, isOpen ? 'show fewer' : `${grouped(rows.length - 10)} more, ${formatBytes(rest)} together`));
      }
      return column;
    }));
  };
  fill();
  view.listen(what => {
    if (what === 'track' || what === 'tensor') fill();
  });
  return element('section', {},
      element('h2', {}, 'What is alive at the peak'),
      groups.length < 2 ? null : element('div', {class: 'tools'}, choice('Group', groups, group, chosen => {
        group = chosen;
        open.clear();
        fill();
      })),
      columns);
}

/** Makes the table of the nodes that the shown schedule recomputes. */
function makeRecomputed(view) {
  if (view.shown.unit !== 'step' || !view.tracks.some(track => track.recomputed)) return null;
  const {data} = view;
  const section = element('section', {id: 'recomputed'});
  let all = false;
  const fill = () => {
    const track = view.shown;
    section.hidden = !track.recomputed;
    if (!track.recomputed) return;
    const {nodes, total} = track.recomputed;
    const cost = value => track.before
        ? `${formatCost(value, data.cost_unit)}${data.baseline_cost ? ` (${formatPercent(value / data.baseline_cost)})` : ''}` : '';
    const head = ['op', 'times', 'extra cost', 'its outputs', 'saved at the baseline’s peak', 'saved on average', 'again at step', 'first used at'];
    const row = (cells, extra) => element('tr', extra, cells.map((cell, k) => k === 0 ? element('th', {scope: 'row'}, cell)
                                                                                  : element('td', {'data-name': head[k]}, cell)));
    const shown = all ? nodes : nodes.slice(0, 12);
    section.replaceChildren(
        element('h2', {}, 'What is computed again'),
        element('p', {class: 'note'}, `${grouped(total.times)} steps compute ${grouped(total.nodes)} ops again` +
            (track.before ? ` and cost ${cost(total.extra_cost)}` : '') +
            `. For that ${formatBytes(total.saved_at_baseline_peak)} are not in memory where the baseline peaks` +
            `, and ${formatBytes(Math.round(total.saved_on_average))} less are on average.`),
        element('div', {class: 'scroll'}, element('table', {class: 'cards'},
            element('thead', {}, element('tr', {}, head.map(name => element('th', {scope: 'col'}, name)))),
            element('tbody', {}, shown.map(item => row([
              item.tensor >= 0
                  ? element('button', {type: 'button', class: 'link', onclick: () => view.choose(item.tensor)}, visible(data.nodes.name[item.node]))
                  : visible(data.nodes.name[item.node]),
              grouped(item.times), cost(item.extra_cost), formatBytes(item.bytes), formatBytes(item.saved_at_baseline_peak),
              formatBytes(Math.round(item.saved_on_average)), stepButton(view, item.step),
              item.first_use >= 0 ? stepButton(view, item.first_use) : 'never',
            ]))))),
        nodes.length > 12 ? element('button', {type: 'button', class: 'link', onclick: () => {
          all = !all;
          fill();
        }}, all ? 'show fewer' : `${grouped(nodes.length - 12)} more`) : '',
        total.nodes > nodes.length ? element('p', {class: 'note'}, `The page has ${grouped(nodes.length)} of ${grouped(total.nodes)} ops.`) : '');
  };
  fill();
  view.listen(what => {
    if (what === 'track') fill();
  });
  return section;
}

// --- cost over memory ----------------------------------------------------------------------------------------------

/** Returns the cost at the top of the picture, as an increase over the baseline's cost. A few very high points are cut
 * off, because they would make the rest of the curve flat. */
function costTop(parts) {
  const sorted = [...parts].sort((a, b) => a - b);
  const most = sorted[sorted.length - 1] || 0;
  const usual = Math.max(0.02, 4 * (sorted[sorted.length >> 1] || 0));
  const clipped = most > 2 * usual;
  return {top: Math.max(0.005, clipped ? usual : most), clipped};
}

/** Returns the Pareto front: the points that no other point equals or beats in both memory and cost. The result ascends
 * by memory. */
function frontOf(points) {
  const front = [];
  for (const point of [...points].sort((a, b) => a.bytes - b.bytes || a.cost - b.cost)) {
    if (!front.length || point.cost < front[front.length - 1].cost) front.push(point);
  }
  return front;
}

function makeTradeoff(view, tradeoff, data) {
  const base = tradeoff.baseline;
  const part = cost => base.cost > 0 ? cost / base.cost - 1 : 0;
  const front = frontOf([...tradeoff.found, base]);
  const proved = [...tradeoff.proved].sort((a, b) => a.bytes - b.bytes);
  const {top, clipped} = costTop(front.map(point => part(point.cost)));
  const above = front.filter(point => part(point.cost) > top);
  const least = Math.min(front[0].bytes, ...proved.map(point => point.bytes));
  const places = [...tradeoff.found, base].map(point => point.bytes);
  const most = Math.max(...places, ...proved.map(point => point.bytes));
  // The range begins near the least memory of a requested budget or a found schedule, or near the lower bound if that
  // is close to it.
  const bound = tradeoff.lower_bound_bytes;
  const spread = Math.max(most - least, most * 0.02, 1);
  const low = bound > 0 && least - bound < 0.5 * spread ? bound : least;
  const range = [Math.max(0, low - 0.05 * (most - low || spread)), most + 0.04 * spread];
  const unit = () => byteUnit(range[1]);
  const chart = element('div', {class: 'chart', id: 'tradeoff', 'aria-label': 'Extra cost over memory'});
  let near = null;

  const draw = (u, box) => {
    const {ctx} = u;
    const x = bytes => u.valToPos(bytes, 'x', true);
    const y = cost => u.valToPos(Math.min(part(cost), top * 1.2), 'y', true);
    if (bound > range[0]) {
      ctx.fillStyle = colorOf('soft');
      ctx.globalAlpha = 0.13;
      ctx.fillRect(box.left, box.top, x(bound) - box.left, box.bottom - box.top);
      ctx.globalAlpha = 1;
    }
    const line = (color, dash, width, trace) => {
      ctx.strokeStyle = colorOf(color);
      ctx.lineWidth = width * box.ratio;
      ctx.setLineDash(dash.map(part => part * box.ratio));
      ctx.beginPath();
      trace();
      ctx.stroke();
      ctx.setLineDash([]);
    };
    line('baseline', [], 1.2, () => {
      ctx.moveTo(x(base.bytes), box.top);
      ctx.lineTo(x(base.bytes), box.bottom);
    });
    if (data.budget_bytes > range[0] && data.budget_bytes < range[1]) {
      line('budget', [6, 4], 1.4, () => {
        ctx.moveTo(x(data.budget_bytes), box.top);
        ctx.lineTo(x(data.budget_bytes), box.bottom);
      });
    }
    // A bound for a budget also holds for every smaller budget, so the line continues to the left until the next bound.
    if (proved.length) {
      line('bound', [2, 3], 1.6, () => {
        ctx.moveTo(x(range[0]), y(proved[0].cost));
        proved.forEach((point, k) => {
          ctx.lineTo(x(point.bytes), y(point.cost));
          ctx.lineTo(x(point.bytes), y(k + 1 < proved.length ? proved[k + 1].cost : point.cost));
        });
      });
    }
    // A schedule of the front is the cheapest one for every budget from its own memory up to the memory of the next
    // cheaper schedule.
    line('schedule', [], 1.8, () => {
      ctx.moveTo(x(front[0].bytes), box.top);
      front.forEach((point, k) => {
        ctx.lineTo(x(point.bytes), y(point.cost));
        ctx.lineTo(k + 1 < front.length ? x(front[k + 1].bytes) : box.right, y(point.cost));
      });
    });
    for (const point of [...tradeoff.found, base]) {
      const chosen = point.marked;
      ctx.beginPath();
      const height = Math.max(y(point.cost), box.top + 4 * box.ratio);
      if (part(point.cost) > top * 1.06) {
        ctx.moveTo(x(point.bytes), box.top + 2 * box.ratio);
        ctx.lineTo(x(point.bytes) - 5 * box.ratio, box.top + 11 * box.ratio);
        ctx.lineTo(x(point.bytes) + 5 * box.ratio, box.top + 11 * box.ratio);
        ctx.closePath();
      } else {
        ctx.arc(x(point.bytes), height, (chosen || point === near ? 5.5 : 3.2) * box.ratio, 0, 7);
      }
      ctx.fillStyle = colorOf(point === base ? 'baseline' : chosen ? 'card' : 'schedule');
      ctx.fill();
      if (chosen || point === near) {
        ctx.strokeStyle = colorOf('schedule');
        ctx.lineWidth = 2.4 * box.ratio;
        ctx.stroke();
      }
    }
    ctx.font = `${11.5 * box.ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = 'alphabetic';
    ctx.lineJoin = 'round';
    const label = (text, left, bottom, color) => {
      const width = ctx.measureText(text).width;
      const from = Math.min(Math.max(left, box.left + 3 * box.ratio), box.right - width - 3 * box.ratio);
      ctx.textAlign = 'left';
      ctx.strokeStyle = colorOf('card');
      ctx.lineWidth = 4 * box.ratio;
      ctx.strokeText(text, from, bottom);
      ctx.fillStyle = colorOf(color);
      ctx.fillText(text, from, bottom);
    };
    for (const point of tradeoff.found.filter(found => found.marked))
      label(point.name, x(point.bytes) + 10 * box.ratio, Math.max(y(point.cost) - 9 * box.ratio, box.top + 28 * box.ratio), 'schedule');
  };

  const axes = {
    x: {range: () => range, label: () => `${tradeoff.memory} (${unit().name})`, ticks: axisTicks(unit, 95, false, '')},
    y: {range: () => [0, top * 1.08], label: () => 'extra cost (%)', ticks: axisTicks(() => ({size: 0.01}), 42, false, '')},
  };
  const legend = [
    ['schedule', 'schedules found', 'line'], proved.length ? ['bound', 'proved: no schedule costs less', 'line'] : null,
    ['baseline', 'baseline', 'line'],
    data.budget_bytes > range[0] && data.budget_bytes < range[1] ? ['budget', 'budget', 'line'] : null,
    bound > range[0] ? ['line', `no schedule has less than ${formatBytes(bound)}`, ''] : null,
  ].filter(Boolean).map(([color, name, shape]) => {
    const mark = element('i', {class: shape});
    mark.style.background = `var(--${color})`;
    return element('span', {}, mark, name);
  });
  const beyond = clipped && above.length
      ? ` ${above.length > 1 ? `${above.length} points lie` : 'One point lies'} above the picture, up to ${formatPercent(part(above[0].cost))}: the triangles at its top.`
      : '';
  const opens = tradeoff.found.some(point => point.track >= 0) && view;
  const section = element('section', {},
      element('h2', {}, 'What memory costs'),
      element('p', {class: 'note'}, `Cost above the baseline’s, over memory: a schedule serves every budget from its own memory on. ${tradeoff.note}${beyond}` +
          (opens ? ` Click a point to see its schedule ${data.tradeoff_first ? 'below' : 'above'}.` : '')),
      element('div', {class: 'legend'}, legend), chart);

  const start = () => {
    const plot = makeChart(chart, {height: 320, ...axes, draw, cursor: {x: false, drag: {x: false, y: false}}});
    plot.setScale('x', {min: range[0], max: range[1]});
    const {over} = plot;
    const nearest = event => {
      const box = over.getBoundingClientRect();
      let best = null;
      let least = 30;
      for (const point of [...tradeoff.found, base]) {
        const distance = Math.hypot(plot.valToPos(point.bytes, 'x') - (event.clientX - box.left),
                                    Math.max(0, plot.valToPos(Math.min(part(point.cost), top * 1.05), 'y')) - (event.clientY - box.top));
        if (distance < least) [best, least] = [point, distance];
      }
      return best;
    };
    over.style.touchAction = 'auto';
    over.addEventListener('mousemove', event => {
      const point = nearest(event);
      if (point !== near) {
        near = point;
        plot.redraw(false, true);
      }
      over.style.cursor = point && point.track >= 0 && view ? 'pointer' : 'default';
      if (!point) {
        hideTip();
        return;
      }
      showTip(event.clientX, event.clientY, element('b', {}, visible(point.name)), `${tradeoff.memory} ${exactBytes(point.bytes)}`,
              `cost ${formatCost(point.cost, data.cost_unit)} (${formatPercent(part(point.cost))})`, ...(point.note ? [point.note] : []));
    });
    over.addEventListener('mouseleave', () => {
      near = null;
      hideTip();
      plot.redraw(false, true);
    });
    over.addEventListener('click', event => {
      const point = nearest(event);
      if (point && point.track >= 0 && view) view.setTrack(point.track);
    });
  };
  return {section, start};
}

// --- histogram of peaks ----------------------------------------------------------------------------------------------

function makeHistogram(histogram, data) {
  const {from, width, counts} = histogram;
  const sum = counts.reduce((all, count) => all + count, 0);
  const marks = data.levels.map(level => [level.bytes, level.name, level.color]);
  const end = from + width * counts.length;
  // The range includes only those marks that leave the bars wide enough.
  const spread = end - from;
  const places = [from, end, ...marks.map(([bytes]) => bytes).filter(bytes => bytes > from - spread && bytes < end + spread)];
  const [low, high] = [Math.min(...places), Math.max(...places)];
  const range = [Math.max(0, low - 0.03 * (high - low)), high + 0.03 * (high - low)];
  const most = Math.max(...counts);
  const unit = () => byteUnit(range[1]);
  const countUnit = () => costUnit(most, '');
  const chart = element('div', {class: 'chart', id: 'histogram', 'aria-label': 'Candidates by peak memory'});
  let near = -1;
  const draw = (u, box) => {
    const {ctx} = u;
    counts.forEach((count, k) => {
      if (!count) return;
      const left = u.valToPos(from + k * width, 'x', true);
      const right = u.valToPos(from + (k + 1) * width, 'x', true);
      const y = u.valToPos(count, 'y', true);
      ctx.fillStyle = colorOf('schedule');
      ctx.globalAlpha = k === near ? 1 : 0.78;
      ctx.fillRect(left, Math.min(y, box.bottom - box.ratio), Math.max(box.ratio, right - left - box.ratio), Math.max(box.bottom - y, box.ratio));
    });
    ctx.globalAlpha = 1;
    ctx.font = `${11.5 * box.ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = 'top';
    [...marks].sort((a, b) => a[0] - b[0]).forEach(([bytes, name, color], k) => {
      const x = u.valToPos(bytes, 'x', true);
      if (x < box.left || x > box.right) return;
      ctx.strokeStyle = colorOf(color);
      ctx.lineWidth = 1.4 * box.ratio;
      ctx.setLineDash([5 * box.ratio, 3 * box.ratio]);
      ctx.beginPath();
      ctx.moveTo(x, box.top);
      ctx.lineTo(x, box.bottom);
      ctx.stroke();
      ctx.setLineDash([]);
      const text = ctx.measureText(name).width;
      const left = x + text + 6 * box.ratio > box.right;
      ctx.textAlign = left ? 'right' : 'left';
      ctx.lineWidth = 4 * box.ratio;
      ctx.strokeStyle = colorOf('card');
      const y = box.top + (4 + 15 * (k % 4)) * box.ratio;
      ctx.strokeText(name, x + (left ? -5 : 5) * box.ratio, y);
      ctx.fillStyle = colorOf(color);
      ctx.fillText(name, x + (left ? -5 : 5) * box.ratio, y);
    });
  };
  const section = element('section', {},
      element('h2', {}, 'Peaks of all candidates'),
      element('p', {class: 'note'}, `How many candidates have a peak in each range of ${formatBytes(width)}.`), chart);
  const start = () => {
    const plot = makeChart(chart, {
      height: 300,
      x: {range: () => range, label: () => `peak memory (${unit().name})`, ticks: axisTicks(unit, 95, false, '')},
      y: {range: () => [0, most * 1.06], label: () => `candidates${unitName(countUnit())}`, ticks: axisTicks(countUnit, 42, false, '')},
      draw,
      cursor: {x: false, drag: {x: false, y: false}},
    });
    plot.setScale('x', {min: range[0], max: range[1]});
    plot.over.style.touchAction = 'auto';
    plot.over.addEventListener('mousemove', event => {
      const k = Math.floor((plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, 'x') - from) / width);
      const inside = k >= 0 && k < counts.length;
      if ((inside ? k : -1) !== near) {
        near = inside ? k : -1;
        plot.redraw(false, true);
      }
      if (!inside) {
        hideTip();
        return;
      }
      showTip(event.clientX, event.clientY, element('b', {}, `${formatBytes(from + k * width)} to ${formatBytes(from + (k + 1) * width)}`),
              `${grouped(counts[k])} candidates, ${(100 * counts[k] / sum).toPrecision(3)}%`);
    });
    plot.over.addEventListener('mouseleave', hideTip);
  };
  return {section, start};
}
