// Formats numbers and names for people, and makes elements of the page.

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** Returns the best unit for sizes up to `largest` bytes, as {name, size}. */
function byteUnit(largest) {
  let power = 0;
  while (Math.abs(largest) >= 1024 ** (power + 1) && power + 1 < byteUnits.length) ++power;
  return {name: byteUnits[power], size: 1024 ** power};
}

/** Formats a size: 1536 -> "1.50 KiB". */
function formatBytes(bytes) {
  const unit = byteUnit(bytes);
  return unit.size === 1 ? `${bytes} B` : `${(bytes / unit.size).toFixed(2)} ${unit.name}`;
}

/** Formats a count: 1234567 -> "1,234,567". */
const grouped = number => Math.round(number).toLocaleString('en-US');

const exactBytes = bytes => bytes < 1024 ? `${bytes} bytes` : `${formatBytes(bytes)} (${grouped(bytes)} bytes)`;

const timeUnits = [
  {name: 'ns', size: 1},
  {name: 'µs', size: 1e3},
  {name: 'ms', size: 1e6},
  {name: 's', size: 1e9},
];
const countUnits = [
  {name: '', size: 1},
  {name: 'thousand', size: 1e3},
  {name: 'million', size: 1e6},
  {name: 'billion', size: 1e9},
  {name: 'trillion', size: 1e12},
  {name: 'quadrillion', size: 1e15},
];

/** Returns the best unit for costs up to `largest`, as {name, size}. `unit` is "ns", or the name of another unit. */
function costUnit(largest, unit) {
  const units = unit === 'ns' ? timeUnits : countUnits;
  let best = units[0];
  for (const candidate of units) {
    if (Math.abs(largest) >= candidate.size) best = candidate;
  }
  if (unit === 'ns') return best;
  if (Math.abs(largest) < 1e5) best = units[0];
  return {name: [best.name, unit].filter(Boolean).join(' '), size: best.size};
}

function formatCost(cost, unit) {
  const best = costUnit(cost, unit);
  const number = cost / best.size;
  const text = Number.isInteger(number) ? grouped(number) : Number(number.toPrecision(4)).toLocaleString('en-US');
  return best.name ? `${text} ${best.name}` : text;
}

function formatPercent(part) {
  const digits = Math.abs(part) >= 0.0995 ? 1 : 2;
  return `${part >= 0 ? '+' : '−'}${Math.abs(100 * part).toFixed(digits)}%`;
}

/** Replaces control characters, and characters that change the direction of writing, by \u{...}. */
function visible(name) {
  return name.replace(
      /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
      c => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** Returns the least distance of ticks that divides `range` into at most `most` parts. It is 1, 2 or 5 times a power
 * of ten, or a power of two if `binary` is set. */
function tickStep(range, most, binary) {
  if (!(range > 0)) return 1;
  const rough = range / Math.max(1, most);
  if (binary) return 2 ** Math.ceil(Math.log2(rough));
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find(factor => factor * power >= rough * (1 - 1e-12));
}

function ticks(min, max, step) {
  const values = [];
  for (let k = Math.ceil(min / step - 1e-9); k * step <= max * (1 + 1e-12) && values.length < 100; ++k)
    values.push(k * step || 0);  // not -0
  return values;
}

/** Makes an element: element('p', {class: 'note'}, 'text', child, ...). Attributes on* are listeners; null children are
 * left out. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) {
      made.addEventListener(name.slice(2), value);
    } else {
      made.setAttribute(name, value === true ? '' : value);
    }
  }
  made.append(...children.flat(9).filter(child => child !== null && child !== undefined));
  return made;
}

const swatch = color => {
  const square = element('span', {class: 'swatch'});
  square.style.background = color;
  return square;
};

/** Returns the value of a custom CSS property of the page. Canvases need the value, because they do not know CSS
 * properties. */
const colorOf = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function choice(label, options, chosen, onchange) {
  const group = element('span', {class: 'choice', role: 'group', 'aria-label': label});
  for (const [value, text] of options) {
    group.append(element('button', {
      type: 'button',
      'data-value': value,
      'aria-pressed': String(value === chosen),
      onclick: event => {
        for (const button of group.children) button.setAttribute('aria-pressed', String(button === event.currentTarget));
        onchange(value);
      },
    }, text));
  }
  return group;
}
