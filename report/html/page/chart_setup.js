// These functions are shared by all charts. They set up uPlot with this page's colours and axes, and let the user zoom
// and pan.

const narrow = () => innerWidth <= 560;

/** Returns functions that compute ticks and labels of an axis. `unit(u)` returns the axis's unit as {name, size}.
 * `pixels` is the least distance of two ticks. If `binary` is set, ticks are at multiples of powers of two. */
function axisTicks(unit, pixels, binary, suffix) {
  return {
    splits: (u, index, min, max) => {
      const step = tickStep((max - min) / unit(u).size, Math.max(2, u[index === 0 ? 'width' : 'height'] / pixels), binary);
      return ticks(min / unit(u).size, max / unit(u).size, step).map(value => value * unit(u).size);
    },
    values: (u, splits) => {
      const all = splits.map(value => value / unit(u).size);
      const step = all.length > 1 ? all[1] - all[0] : 1;
      const digits = Math.min(6, Math.max(0, ...[step, ...all].map(value => decimals(value))));
      return all.map(value => value.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits}) + suffix);
    },
  };
}

function decimals(value) {
  for (let digits = 0; digits < 6; ++digits) {
    if (Math.abs(value - Number(value.toFixed(digits))) < Math.abs(value) * 1e-9 + 1e-12) return digits;
  }
  return 6;
}

/**
 * Makes a plot in the element `host`. `draw(u, box)` paints the plot's content. `x` and `y` describe the axes, as
 * {range: () => [min, max], label: () => text, ticks}.
 */
function makeChart(host, {height, x, y, draw, hooks = {}, cursor = {}}) {
  const size = () => ({width: Math.max(200, host.clientWidth), height: narrow() ? Math.min(height, 300) : height});
  const ink = () => colorOf('soft');
  const font = `${narrow() ? 11 : 12}px ${getComputedStyle(document.body).fontFamily}`;
  const axis = (part, extra) => ({
    stroke: ink,
    grid: {stroke: () => colorOf('grid'), width: 1},
    ticks: {show: false},
    font,
    labelFont: font,
    label: part.label,
    labelSize: 18,
    labelGap: 0,
    gap: 4,
    ...part.ticks,
    ...extra,
  });
  const plot = new uPlot({
    ...size(),
    padding: [10, narrow() ? 14 : 24, 0, 0],
    legend: {show: false},
    scales: {
      x: {time: false, range: () => x.range()},
      y: {range: () => y.range()},
    },
    axes: [axis(x, {size: 30}), axis(y, {size: narrow() ? 46 : 56})],
    series: [{}, {stroke: 'transparent'}],
    cursor: {y: false, points: {show: false}, ...cursor},
    hooks: {
      draw: [u => {
        const {left, top, width, height: tall} = u.bbox;
        u.ctx.save();
        u.ctx.beginPath();
        u.ctx.rect(left, top, width, tall);
        u.ctx.clip();
        draw(u, {left, top, right: left + width, bottom: top + tall, ratio: devicePixelRatio});
        u.ctx.restore();
      }],
      ...hooks,
    },
  }, [[0, 1], [0, 0]], host);
  new ResizeObserver(() => {
    if (size().width !== plot.width) plot.setSize(size());
  }).observe(host);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw(false, true));
  return plot;
}

/** Draws horizontal lines across a chart, with names that do not overlap. `levels` lists the lines as {name, bytes,
 * color}. */
function drawLevels(u, box, levels) {
  const {ctx} = u;
  const taken = [];
  ctx.font = `${11.5 * box.ratio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textBaseline = 'bottom';
  for (const level of [...levels].sort((a, b) => a.bytes - b.bytes)) {
    const y = Math.round(u.valToPos(level.bytes, 'y', true));
    if (y < box.top - 1 || y > box.bottom + 1) continue;
    ctx.strokeStyle = colorOf(level.color);
    ctx.lineWidth = 1.4 * box.ratio;
    ctx.setLineDash(level.color === 'budget' ? [6 * box.ratio, 4 * box.ratio] : [2 * box.ratio, 3 * box.ratio]);
    ctx.beginPath();
    ctx.moveTo(box.left, y);
    ctx.lineTo(box.right, y);
    ctx.stroke();
    const text = narrow() ? level.name : `${level.name} ${formatBytes(level.bytes)}`;
    const width = ctx.measureText(text).width;
    const tall = 14 * box.ratio;
    let right = box.right - 4 * box.ratio;
    let bottom = y - 2 * box.ratio;
    if (bottom - tall < box.top) bottom = y + tall + 2 * box.ratio;
    const clashes = () => taken.find(other => other.left < right && right - width < other.right &&
                                              other.top < bottom && bottom - tall < other.bottom);
    for (let other = clashes(); other; other = clashes()) right = other.left - 10 * box.ratio;
    if (right - width < box.left) continue;
    taken.push({left: right - width, right, top: bottom - tall, bottom});
    ctx.setLineDash([]);
    ctx.lineWidth = 4 * box.ratio;
    ctx.strokeStyle = colorOf('card');
    ctx.lineJoin = 'round';
    ctx.textAlign = 'right';
    ctx.strokeText(text, right, bottom);
    ctx.fillStyle = colorOf(level.color);
    ctx.fillText(text, right, bottom);
  }
  ctx.setLineDash([]);
}

const tip = element('div', {class: 'tip', role: 'status', hidden: true});

/** Shows lines of text (or elements) beside the pointer, but always inside the window. */
function showTip(x, y, ...lines) {
  tip.replaceChildren(...lines.map(line => element('div', {}, line)));
  tip.hidden = false;
  const left = x + 14 + tip.offsetWidth > innerWidth - 8 ? x - 14 - tip.offsetWidth : x + 14;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(y + 16, innerHeight - tip.offsetHeight - 8))}px`;
}
function hideTip() {
  tip.hidden = true;
}

/** Lets the user zoom and pan with wheel, mouse, fingers and keys. Dragging the mouse selects the range to show;
 * dragging with Shift pans. One finger pans, two fingers zoom. If the whole range is visible already, zooming out with
 * the wheel scrolls the page instead. */
function navigate(host, plot, view) {
  const over = plot.over;
  const xAt = event => plot.posToVal(event.clientX - over.getBoundingClientRect().left, 'x');

  over.addEventListener('wheel', event => {
    if (event.ctrlKey || Math.abs(event.deltaY) >= Math.abs(event.deltaX) && !event.shiftKey) {
      if (event.deltaY > 0 && !view.zoomed) return;
      view.zoom(1.0016 ** Math.max(-300, Math.min(300, event.deltaY * (event.deltaMode ? 30 : 1))), xAt(event));
    } else {
      if (!view.zoomed) return;
      view.pan((event.deltaX || event.deltaY) / over.clientWidth);
    }
    event.preventDefault();
  }, {passive: false});

  const fingers = new Map();
  let panned = null;
  over.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse' && !(event.button === 1 || event.button === 0 && event.shiftKey)) return;
    fingers.set(event.pointerId, event.clientX);
    panned = 0;
    if (event.pointerType === 'mouse') over.setPointerCapture(event.pointerId);
  });
  over.addEventListener('pointermove', event => {
    if (!fingers.has(event.pointerId)) return;
    const before = [...fingers.values()];
    fingers.set(event.pointerId, event.clientX);
    const after = [...fingers.values()];
    if (after.length === 1) {
      panned += Math.abs(after[0] - before[0]);
      if (panned > 4) view.pan((before[0] - after[0]) / over.clientWidth);
    } else if (after.length === 2) {
      panned += 10;
      const left = over.getBoundingClientRect().left;
      const spread = places => Math.max(12, Math.abs(places[0] - places[1]));
      view.zoom(spread(before) / spread(after), plot.posToVal((after[0] + after[1]) / 2 - left, 'x'));
    }
  });
  for (const type of ['pointerup', 'pointercancel'])
    over.addEventListener(type, event => fingers.delete(event.pointerId));

  host.tabIndex = 0;
  host.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = {
      ArrowLeft: () => view.pan(-0.15),
      ArrowRight: () => view.pan(0.15),
      '+': () => view.zoom(0.6),
      '=': () => view.zoom(0.6),
      '-': () => view.zoom(1 / 0.6),
      0: () => view.reset(),
      Home: () => view.reset(),
      ',': () => view.pin(neighbour(view, -1)),
      '.': () => view.pin(neighbour(view, 1)),
      Escape: () => {
        view.choose(null);
        view.pin(null);
      },
    }[event.key];
    if (!action) return;
    action();
    event.preventDefault();
  });
}

/** Returns the step that is `offset` points after the step in the details panel (details.js). */
function neighbour(view, offset) {
  const {at} = view.shown;
  return at[Math.min(at.length - 1, Math.max(0, lastUpTo(at, view.step) + offset))];
}
