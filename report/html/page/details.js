// Makes the panel beside the charts, and the search for tensors. The panel shows the chosen tensor and a step. This is
// the step that the user has marked, or else the step under the pointer.

function makeDetails(view) {
  const panel = element('div', {class: 'details', id: 'details'});
  let wanted = false;
  let all = false;
  const fill = () => {
    wanted = false;
    panel.replaceChildren(...[view.tensor === null ? null : tensorCard(view), stepCard(view, all, () => {
      all = !all;
      fill();
    })].filter(Boolean));
  };
  view.listen(what => {
    if (what === 'range' || wanted) return;
    wanted = true;
    requestAnimationFrame(fill);
  });
  fill();
  return panel;
}

function stepButton(view, step, text = grouped(step)) {
  return element('button', {type: 'button', class: 'link jump', 'data-step': step, onclick: () => view.pin(step)}, text);
}

const definitions = pairs => element('dl', {}, pairs.filter(Boolean).map(
    ([name, ...value]) => [element('dt', {}, name), element('dd', {}, ...value)]));

/** Makes a button that chooses a tensor and shows its name, colour and bytes. */
function tensorRow(view, {tensor, bytes, color, again, share}) {
  return element('button', {
    type: 'button',
    class: `row tensor${tensor === view.tensor ? ' chosen' : ''}`,
    'data-tensor': tensor,
    title: visible(view.data.tensors.name[tensor]),
    onclick: () => view.choose(tensor),
  },
  swatch(`var(--${color})`), element('span', {class: 'name'}, visible(view.data.tensors.name[tensor])),
  element('span', {class: 'amount'}, again ? element('span', {class: 'again'}, 'again ') : null, formatBytes(bytes)),
  share === undefined ? null : bar(share, color));
}

function bar(share, color) {
  const full = element('i');
  full.style.width = `${Math.min(100, 100 * share)}%`;
  full.style.background = `var(--${color})`;
  return element('span', {class: 'bar'}, full);
}

function stepCard(view, all, onall) {
  const {data, shown: track} = view;
  if (!track.at.length) return element('div', {class: 'card'}, 'Nothing runs.');
  const step = view.step;
  const k = lastUpTo(track.at, step);
  const about = view.pinned !== null ? 'marked' : view.hover !== null ? 'under the pointer' : 'where memory peaks';
  const node = track.unit === 'step' ? track.node[k] : -1;
  const card = element('div', {class: 'card', id: 'step-card', 'data-step': step});
  card.append(
      element('div', {class: 'card-head'},
              element('p', {class: 'label'}, `${track.name}, ${track.unit} ${grouped(step)} of ${grouped(track.length)}: ${about}`),
              view.pinned === null ? null : element('button', {type: 'button', class: 'link', onclick: () => view.pin(null)}, 'unmark')));
  if (node >= 0) card.append(element('h3', {}, visible(data.nodes.name[node])));
  const live = track.liveAt(step);
  const scratch = node >= 0 ? data.nodes.scratch[node] : 0;
  card.append(definitions([
    ['memory', exactBytes(track.bytes[k])],
    node >= 0 && data.nodes.op[node] >= 0 ? ['op', data.ops[data.nodes.op[node]]] : null,
    node >= 0 && track.before ? ['cost', `${formatCost(data.nodes.cost[node], data.cost_unit)}, begins at ${formatCost(track.before[k], data.cost_unit)}`] : null,
    scratch !== 0 ? [scratch > 0 ? 'scratch' : 'in place', formatBytes(Math.abs(scratch)) + (scratch > 0 ? '' : ' taken over')] : null,
    ['alive', `${grouped(live.length)} ${node >= 0 ? 'tensors' : 'buffers'}${track.lives_of > track.lifeCount ? ' of this page' : ''}, the largest first`],
  ]));
  const most = live.length ? live[0].bytes : 1;
  const rows = live.slice(0, all ? 300 : 10).map(({life, tensor, bytes}) => element('li', {}, tensorRow(view, {
    tensor, bytes, color: colorOfLife(view, life), again: track.isAgain(life), share: bytes / most})));
  card.append(element('ul', {class: 'list', id: 'live'}, rows));
  if (live.length > 10)
    card.append(element('button', {type: 'button', class: 'link', onclick: onall},
                        all ? 'show fewer' : `${grouped(live.length - 10)} more`));
  const rest = track.bytes[k] - scratch - live.reduce((sum, {bytes}) => sum + bytes, 0);
  if (rest > 0 && track.lives_of > track.lifeCount)
    card.append(element('p', {class: 'label'}, `and ${formatBytes(rest)} in smaller tensors that are not on this page`));
  return card;
}

function tensorCard(view) {
  const {data, shown: track, tensor} = view;
  const {tensors, nodes} = data;
  const node = tensors.node[tensor];
  const lives = track.livesOf(tensor);
  const {first, last, offset} = track.lives;
  const card = element('div', {class: 'card', id: 'tensor-card', 'data-tensor': tensor});
  card.append(
      element('div', {class: 'card-head'}, element('p', {class: 'label'}, 'chosen tensor'),
              element('button', {type: 'button', class: 'link', onclick: () => view.choose(null)}, 'close')),
      element('h3', {}, swatch(`var(--${data.kinds[tensors.kind[tensor]].color})`), visible(tensors.name[tensor])));
  const runs = node >= 0 ? track.stepsOf(node) : [];
  card.append(definitions([
    ['size', exactBytes(tensors.bytes[tensor])],
    ['kind', visible(data.kinds[tensors.kind[tensor]].name)],
    node >= 0 && data.layers.length > 1 ? ['layer', visible(data.layers[nodes.layer[node]])] : null,
    node >= 0 ? ['producer', visible(nodes.name[node]), nodes.op[node] >= 0 ? ` (${data.ops[nodes.op[node]]})` : '',
                 ...runs.slice(0, 1).flatMap(step => [', step ', stepButton(view, step)])] : null,
    node >= 0 && track.before ? ['cost', formatCost(nodes.cost[node], data.cost_unit)] : null,
  ]));
  if (lives.length) {
    card.append(element('p', {class: 'label'}, lives.length > 1 ? `in memory ${lives.length} times` : 'in memory'));
    card.append(element('ul', {class: 'list', id: 'lives'}, lives.slice(0, 40).map(life => element('li', {},
        `${track.unit} `, stepButton(view, first[life]), ' to ',
        last[life] >= track.length ? 'the end' : stepButton(view, last[life]),
        offset[life] >= 0 ? `, at address ${grouped(offset[life])}` : '',
        track.isAgain(life) ? element('span', {class: 'again'}, ' computed again') : ''))));
  } else {
    card.append(element('p', {class: 'label'}, tensors.bytes[tensor] ? 'not among the tensors that this page has of the schedule'
                                                                    : 'takes no memory'));
  }
  if (node < 0) return card;
  const readers = tensors.readers[tensor].slice(0, 40);
  const count = tensors.reader_count[tensor];
  card.append(element('p', {class: 'label'}, count ? `read by ${grouped(count)} ${count > 1 ? 'ops' : 'op'}` : 'read by no op'));
  card.append(element('ul', {class: 'list', id: 'readers'}, readers.map(reader => element('li', {},
      visible(nodes.name[reader]),
      track.stepsOf(reader).slice(0, 6).flatMap((step, k) => [k ? ', ' : ' at step ', stepButton(view, step)])))));
  if (count > readers.length) card.append(element('p', {class: 'label'}, `and ${grouped(count - readers.length)} more`));
  return card;
}

/** Returns the tensors whose name or op contains `text`. Tensors whose name begins with `text` come first; otherwise,
 * larger tensors come before smaller ones. */
function findTensors(data, text) {
  const wanted = text.toLowerCase();
  const found = [];
  data.tensors.name.forEach((name, tensor) => {
    const node = data.tensors.node[tensor];
    const op = node >= 0 && data.nodes.op[node] >= 0 ? data.ops[data.nodes.op[node]] : '';
    const at = name.toLowerCase().indexOf(wanted);
    if (at >= 0 || op.toLowerCase().includes(wanted)) found.push({tensor, begins: at === 0});
  });
  const {bytes} = data.tensors;
  return found.sort((a, b) => b.begins - a.begins || bytes[b.tensor] - bytes[a.tensor] || a.tensor - b.tensor);
}

function makeSearch(view) {
  const {data} = view;
  const what = view.shown.unit === 'step' ? 'tensor or op' : 'buffer';
  const hits = element('div', {class: 'hits', id: 'hits', hidden: true});
  const take = tensor => {
    hits.hidden = true;
    view.choose(tensor);
    const lives = view.shown.livesOf(tensor);
    const steps = view.shown.unit === 'step' && !lives.length ? view.shown.stepsOf(data.tensors.node[tensor]) : [];
    if (lives.length) {
      view.pin(view.shown.lives.first[lives[0]]);
    } else if (steps.length) {
      view.pin(steps[0]);
    }
  };
  let found = [];
  const show = () => {
    const text = input.value.trim();
    hits.hidden = !text;
    if (!text) return;
    found = findTensors(data, text);
    hits.replaceChildren(
        ...found.slice(0, 40).map(({tensor}) => element('button', {
          type: 'button', class: 'row', 'data-tensor': tensor, onclick: () => take(tensor)},
          swatch(`var(--${data.kinds[data.tensors.kind[tensor]].color})`),
          element('span', {class: 'name'}, visible(data.tensors.name[tensor])),
          element('span', {class: 'amount'}, formatBytes(data.tensors.bytes[tensor])))),
        element('p', {}, found.length ? `${grouped(found.length)} found` + (found.length > 40 ? ', the largest 40 shown' : '')
                                      : `no ${what} of that name` + (data.tensors_of > data.tensors.name.length ? ' among those on this page' : '')));
  };
  const input = element('input', {
    type: 'search', id: 'search', placeholder: `Search ${what} ( / )`, 'aria-label': `Search ${what}`, autocomplete: 'off',
    spellcheck: 'false', oninput: show, onfocus: show,
    onkeydown: event => {
      if (event.key === 'Enter' && found.length && input.value.trim()) take(found[0].tensor);
      if (event.key === 'Escape') hits.hidden = true;
      if (event.key === 'ArrowDown' && hits.firstChild?.focus) {
        hits.firstChild.focus();
        event.preventDefault();
      }
    },
  });
  hits.addEventListener('keydown', event => {
    const next = {ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling'}[event.key];
    if (!next) return;
    (document.activeElement[next]?.matches('button') ? document.activeElement[next] : input).focus();
    event.preventDefault();
  });
  const box = element('span', {class: 'search'}, input, hits);
  document.addEventListener('pointerdown', event => {
    if (!box.contains(event.target)) hits.hidden = true;
  });
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.target.matches('input, select')) return;
    input.focus();
    event.preventDefault();
  });
  return box;
}
