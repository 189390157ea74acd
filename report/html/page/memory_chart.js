// Draws the chart of memory over time.

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
