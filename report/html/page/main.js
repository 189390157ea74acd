
function makePage(data) {
  const main = element('main');
  document.body.prepend(main);
  document.body.append(tip);
  const parts = [];
  main.append(element('header', {}, element('h1', {}, visible(data.title)), element('p', {class: 'summary'}, visible(data.summary))));
  if (data.facts.length) main.append(makeFacts(data.facts));
  for (const note of data.notes) main.append(element('p', {class: 'caution'}, visible(note)));

  const view = data.tracks.length ? new View(data) : null;
  const addPart = part => {
    if (!part) return;
    main.append(part.section || part);
    if (part.start) parts.push(part);
  };
  const tradeoff = () => data.tradeoff && addPart(makeTradeoff(view, data.tradeoff, data));
  if (data.histogram) addPart(makeHistogram(data.histogram, data));
  if (data.tradeoff_first) tradeoff();
  if (view) {
    addPart(makeTimeline(view));
    addPart(makePeak(view));
    addPart(makeRecomputed(view));
  }
  if (!data.tradeoff_first) tradeoff();
  for (const picture of data.pictures) addPart(makePicture(picture));
  for (const table of data.tables) addPart(makeTable(table));
  main.append(element('footer', {}, element('div', {}, `${data.command}${data.cairn ? `, Cairn ${data.cairn}` : ''}`),
                      element('details', {}, element('summary', {}, 'Charts by uPlot, © Leon Sorokin, MIT license'),
                              element('pre', {}, document.getElementById('uplot-license').textContent.trim()))));
  // Charts must be in the page before they are drawn.
  for (const part of parts) part.start();
}

makePage(JSON.parse(document.getElementById('data').textContent));
