// Draws the chart of addresses over time: a rectangle for each time that a tensor is in memory.

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
