// The samples of the page. `listed` blocks are read when it opens, `shown` blocks when a sample is looked at.

const SCORED = "scored";
const meaningOf = JSON.parse(document.getElementById("meta").textContent).meanings;
const shownBlocks = document.querySelectorAll("script.shown");
const samples = Array.from(document.querySelectorAll("script.listed"), (element, index) => {
  const sample = JSON.parse(element.textContent);
  sample.index = index;
  sample.sought = [sample.id, sample.question, sample.response, sample.generator].filter(Boolean).join("\n").toLowerCase();
  return sample;
});

// Everything about one sample, with offsets turned into UTF-16 units.
function readSample(index) {
  const body = JSON.parse(shownBlocks[index].textContent);
  const response = samples[index].response;
  const points = new CodePoints(response);
  const passages = body.evidence.map((passage) => ({ ...passage, points: new CodePoints(passage.text) }));
  const place = ([passage, start, end, quoted]) => ({
    passage,
    quoted,
    start: drawable(passages[passage].text, passages[passage].points.unit(start), false),
    end: drawable(passages[passage].text, passages[passage].points.unit(end), true),
    exact: [start, end],
  });
  const mark = (start, end, rest) => ({
    start: drawable(response, points.unit(start), false),
    end: drawable(response, points.unit(end), true),
    exact: [start, end],
    ...rest,
  });
  const layers = body.layers.map((layer) => ({
    ...layer,
    spans: layer.spans.map(([start, end, type, slot, confidence, places], number) =>
      mark(start, end, { kind: "span", number, type, slot, confidence, places: places.map(place) })),
  }));
  const words = body.words.map(([start, end, confidence, places], number) =>
    mark(start, end, { kind: "word", number, confidence, places: places.map(place) }));
  return { ...samples[index], ...body, passages, layers, words };
}
