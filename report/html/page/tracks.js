// Holds the page's model of the schedules: their steps, and the tensors that are in memory during each step.

/** Returns the last index whose value is at most `wanted`, or 0 if there is no such index. `values` must ascend. */
function lastUpTo(values, wanted) {
  let low = 0;
  let high = values.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/**
 * Represents one schedule over time. A point is a step that the page's data contains. For a short schedule, every step
 * is a point. For a long schedule, the points are the first, the lowest and the highest step of short ranges
 * (thinned() in report/html/data.cpp). A life is the time of one tensor from the step that makes it to its last read; a
 * recomputed tensor has several lives.
 */
class Track {
  constructor(raw, data) {
    Object.assign(this, raw);
    this.data = data;
    this.exact = !raw.thinned;
    this.at = raw.at || Array.from(raw.bytes.keys());
    this.before = raw.before || null;
    this.lifeCount = this.lives.tensor.length;
    this.most = Math.max(0, ...maxima(this.bytes));
  }

  /** Returns the cost of all steps before `step`. The cost is interpolated if the step is not a point. */
  costBefore(step) {
    if (step >= this.length) return this.cost;
    const k = lastUpTo(this.at, step);
    const next = k + 1 < this.at.length ? this.at[k + 1] : this.length;
    const after = k + 1 < this.at.length ? this.before[k + 1] : this.cost;
    const share = next > this.at[k] ? Math.max(0, step - this.at[k]) / (next - this.at[k]) : 0;
    return this.before[k] + share * (after - this.before[k]);
  }

  x(step, axis) {
    return axis === 'cost' ? this.costBefore(step) : step;
  }

  positions(axis) {
    return axis === 'cost' ? this.before : this.at;
  }

  last(axis) {
    return axis === 'cost' ? this.cost : this.length;
  }

  /** Returns the index of the point at x. If several points are within `reach` of x, returns the one with the most
   * memory. Returns -1 if x is beyond the end of the schedule. */
  pointAt(x, reach, axis) {
    const places = this.positions(axis);
    if (x > this.last(axis) + reach || !places.length) return -1;
    let best = lastUpTo(places, x);
    for (let k = lastUpTo(places, x - reach); k < places.length && places[k] <= x + reach; ++k) {
      if (places[k] >= x - reach && this.bytes[k] > this.bytes[best]) best = k;
    }
    return best;
  }

  /** Returns the lives in memory during a step, the largest first, as {life, tensor, bytes}. */
  liveAt(step) {
    const {tensor, first, last} = this.lives;
    const live = [];
    for (let life = 0; life < this.lifeCount; ++life) {
      if (first[life] <= step && step <= last[life]) {
        const bytes = this.data.tensors.bytes[tensor[life]];
        if (bytes > 0) live.push({life, tensor: tensor[life], bytes});
      }
    }
    return live.sort((a, b) => b.bytes - a.bytes);
  }

  livesOf(tensor) {
    if (!this.livesByTensor) {
      this.livesByTensor = new Map();
      this.lives.tensor.forEach((t, life) => {
        if (!this.livesByTensor.has(t)) this.livesByTensor.set(t, []);
        this.livesByTensor.get(t).push(life);
      });
    }
    return this.livesByTensor.get(tensor) || [];
  }

  stepsOf(node) {
    if (!this.stepsByNode) {
      this.stepsByNode = new Map();
      this.node.forEach((v, k) => {
        if (!this.stepsByNode.has(v)) this.stepsByNode.set(v, []);
        this.stepsByNode.get(v).push(this.at[k]);
      });
    }
    return this.stepsByNode.get(node) || [];
  }

  isAgain(life) {
    return this.lives.number[life] > 0;
  }
}

/** Returns the maximum of every 1000 successive values. Math.max may not accept more arguments in one call. */
function maxima(values) {
  const most = [];
  for (let begin = 0; begin < values.length; begin += 1000) most.push(Math.max(...values.slice(begin, begin + 1000)));
  return most;
}

/** Holds what the user has chosen to see: the axis, the visible range, the schedule that is shown in addition to the
 * baseline, the step and the tensor. */
class View {
  constructor(data) {
    this.data = data;
    this.tracks = data.tracks.map(raw => new Track(raw, data));
    this.listeners = [];
    this.axis = this.tracks.every(track => track.before && track.cost > 0) ? 'cost' : 'step';
    this.hasCost = this.axis === 'cost';
    this.track = Math.min(data.shown, this.tracks.length - 1);
    this.hover = null;   // step under the pointer
    this.pinned = null;  // marked step
    this.tensor = null;
    this.reset(true);
  }

  get shown() {
    return this.tracks[this.track];
  }

  /** Returns the tracks that are drawn: the baseline, and the chosen schedule if it is not the baseline. */
  get drawn() {
    return this.track === 0 ? [this.tracks[0]] : [this.tracks[0], this.shown];
  }

  get begin() {
    return this.axis === 'cost' ? 0 : this.shown.begin;
  }
  get end() {
    return Math.max(this.begin + 1e-9, ...this.drawn.map(track => track.last(this.axis)));
  }
  get whole() {
    return this.end - this.begin;
  }

  /** Calls listener(what) after each change. `what` says what has changed: range, axis, track, step or tensor. */
  listen(listener) {
    this.listeners.push(listener);
  }
  changed(what) {
    for (const listener of this.listeners) listener(what);
  }

  get zoomed() {
    return this.from > this.begin || this.to < this.end;
  }

  /** Makes the range from..to visible. The range is moved into the axis, and widened if it is too narrow to show. */
  show(from, to) {
    const least = this.axis === 'step' ? Math.min(4, this.whole) : this.whole / 1e6;
    const width = Math.min(this.whole, Math.max(least, to - from));
    const begin = Math.min(Math.max(this.begin, (from + to - width) / 2), this.end - width);
    if (begin === this.from && begin + width === this.to) return;
    this.from = begin;
    this.to = begin + width;
    this.changed('range');
  }

  /** Zooms around x. A factor below 1 makes the visible range smaller. */
  zoom(factor, x = (this.from + this.to) / 2) {
    this.show(x - (x - this.from) * factor, x + (this.to - x) * factor);
  }

  pan(share) {
    const width = this.to - this.from;
    const from = Math.min(Math.max(this.begin, this.from + share * width), this.end - width);
    this.show(from, from + width);
  }

  reset(silent) {
    this.from = this.begin;
    this.to = this.end;
    if (!silent) this.changed('range');
  }

  setAxis(axis) {
    const focus = this.shown;
    const steps = [this.from, this.to].map(x => this.stepAt(x, focus));
    const whole = !this.zoomed;
    this.axis = axis;
    this.reset(true);
    if (!whole) {
      this.from = focus.x(steps[0], axis);
      this.to = Math.max(focus.x(steps[1] + 1, axis), this.from + this.end / 1e6);
    }
    this.changed('axis');
  }

  stepAt(x, track = this.shown) {
    return track.at[lastUpTo(track.positions(this.axis), x)];
  }

  setTrack(index) {
    this.track = index;
    this.hover = null;
    this.pinned = null;
    this.reset(true);
    this.changed('track');
  }

  setHover(step) {
    if (step === this.hover) return;
    this.hover = step;
    this.changed('step');
  }

  /** Marks a step of the shown schedule, and moves the range so that the step is visible. */
  pin(step) {
    this.pinned = step;
    this.hover = null;
    if (step !== null) {
      const x = this.shown.x(step, this.axis);
      if (x < this.from || x > this.to) {
        const half = (this.to - this.from) / 2;
        this.show(x - half, x + half);
      }
    }
    this.changed('step');
  }

  choose(tensor) {
    this.tensor = tensor;
    this.changed('tensor');
  }

  /** Returns the step that the details panel shows: the marked step, else the step under the pointer, else the peak. */
  get step() {
    return this.pinned ?? this.hover ?? this.shown.peak.at;
  }
}
