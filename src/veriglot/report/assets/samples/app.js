// The page: which sample is shown, which mark is at hand, keys, theme.

const byId = (id) => document.getElementById(id);
let sample = null;
let spans = [];
let layer = 0;
let threshold = null; // in hundredths; null: what the detector marked
let pinned = null;
let atHand = null;
let whichPlace = 0;

function choose(index, keepLayer = false) {
  if (sample && sample.index === index && !keepLayer) return;
  document.body.classList.toggle("none", index < 0);
  if (index < 0) {
    sample = pinned = atHand = null;
    sampleList.mark(index);
    byId("said").textContent = "No sample is shown";
    return;
  }
  sample = readSample(index);
  if (!keepLayer) layer = 0;
  spans = sample.layers[layer].spans;
  pinned = atHand = null;
  sampleList.mark(index);
  drawHead();
  drawControls();
  responseView.show(sample, spans);
  evidenceView.show(sample, spans);
  drawSpanList();
  drawUnits();
  inspector.rest();
  byId("answer-scroll").scrollTop = 0;
  byId("said").textContent = shownText(`Sample ${index + 1} of ${samples.length}: ${sample.id}, ${sample.language}, ${verdictWords()}`);
  try {
    history.replaceState(null, "", `#${encodeURIComponent(sample.id)}`);
  } catch {
    // some places that show local files allow no change of the address: the view works without
  }
}

function drawHead() {
  const facts = [sample.task, sample.generator ? `response by ${sample.generator}` : null, `judged by ${sample.detector}`].filter(Boolean);
  byId("facts").replaceChildren(make("bdi", { class: "sample-id", text: sample.id }), make("span", { class: "language", text: sample.language }),
    ...facts.map((fact) => make("bdi", { text: fact })));
  drawVerdict();
  const question = byId("question");
  question.hidden = !sample.question;
  question.dir = sample.questionDir;
  question.replaceChildren(make("span", { class: "label", text: "Question" }), make("p", { lang: textAttributes(sample.tag).lang, text: sample.question || "" }));
  byId("notes").replaceChildren(...sample.notes.map((note) => make("p", {}, make("bdi", { text: note }))));
  if (sample.signature)
    byId("notes").append(make("details", {}, make("summary", { text: "How it was judged, as a line to cite" }), make("p", { class: "signature", text: sample.signature })));
}

function verdictWords() {
  if (sample.status !== SCORED) return `Not checked: ${sample.outcome}`;
  const all = sample.layers[0].spans.length;
  const more = sampleList.loose(samples[sample.index]);
  if (threshold === null) return all ? counted(all, "unsupported span") : "No unsupported span found";
  const standing = sampleList.standing(sample).reduce((sum, [, , n]) => sum + n, 0);
  const parts = [all ? `${standing} of ${counted(all, "span")}` : "", more ? counted(more, standing ? "more word" : "word") : ""];
  return `${parts.filter(Boolean).join(" and ") || "Nothing"} at ${threshold}% or more`;
}

function drawVerdict() {
  const verdict = byId("verdict");
  const checked = sample.status === SCORED;
  verdict.className = `verdict ${checked ? "" : "not-checked"}`;
  byId("response").classList.toggle("not-checked-text", !checked);
  const beside = checked ? make("span", { class: "figure", text: `${share(sample.score)} likely to hold anything unsupported` }) : make("bdi", { text: sample.reason });
  verdict.replaceChildren(make("strong", { text: verdictWords() }), beside);
  if (layer) verdict.append(make("span", { class: "figure", text: `${sample.layers[layer].name} marked ${counted(spans.length, "span")}` }));
  for (const problem of sample.problems) verdict.append(make("p", { class: "problem", text: problem }));
}

function drawControls() {
  const controls = byId("controls");
  controls.replaceChildren();
  if (sample.layers.length > 1) {
    const select = make("select", { onchange: () => { const to = Number(select.value); layer = to; choose(sample.index, true); } });
    sample.layers.forEach((each, i) => select.append(make("option", { value: i, selected: i === layer, text: `${each.name} (${each.kind})` })));
    controls.append(make("label", {}, "Marks of ", select));
  }
  if (sample.words.length || spans.some((span) => span.confidence !== null)) {
    const output = make("output", {});
    const range = make("input", { type: "range", id: "threshold", min: 0, max: 100, step: 1, value: threshold === null ? 50 : threshold });
    const reset = make("button", { type: "button", class: "tool", text: "Reset" });
    const told = () => {
      output.textContent = threshold === null ? "as the detector marked" : `${threshold}%`;
      range.setAttribute("aria-valuetext", threshold === null ? output.textContent : verdictWords());
      reset.classList.toggle("resting", threshold === null);
    };
    const set = (value, settled) => {
      threshold = value;
      responseView.setThreshold(value);
      for (const part of atHand ? responseView.partsOf(atHand) : []) part.classList.add("on"); // it was drawn anew
      drawSpanList();
      sampleList.setThreshold(value, settled);
      summary();
      if (sample) drawVerdict();
      told();
      if (settled && !range.isConnected && sample) byId("threshold")?.focus(); // another sample is shown: this one is filtered out
    };
    range.addEventListener("input", () => set(Number(range.value), false));
    range.addEventListener("change", () => set(Number(range.value), true));
    reset.addEventListener("click", () => { range.value = 50; range.focus(); set(null, true); });
    told();
    controls.append(make("label", { class: "threshold" }, "Least confidence ", range, output), reset);
  }
  controls.hidden = !controls.childElementCount;
}

function drawSpanList() {
  const list = make("ol", { class: "span-list" });
  for (const span of spans) {
    const figure = span.confidence === null ? "" : share(span.confidence);
    const text = shownText(sample.response.slice(span.start, span.end));
    const quote = make("bdi", { class: "quoted", ...textAttributes(sample.tag, sample.dir), text: text.length > 90 ? `${Array.from(text).slice(0, 90).join("")}…` : text });
    const button = make("button", { type: "button", class: `span-item ${responseView.under(span) ? "under" : ""}`, onclick: () => focusMark(span) },
      make("span", { class: "number", text: span.number + 1 }), chip(span.type, span.slot), make("span", { class: "figure", text: figure }), quote);
    const places = span.places.length === 1 ? "one place in the evidence" : `${span.places.length} places in the evidence`;
    const told = `${span.type}, ${span.confidence === null ? "no confidence" : `confidence ${share(span.confidence)}`}, ${places}`;
    list.append(make("li", {}, button, make("span", { class: "unseen", id: `span-${span.number}`, text: told })));
  }
  byId("spans").replaceChildren(...(spans.length ? [list] : []));
}

// The sentences or facts with their scores, where they were asked for.
function drawUnits() {
  const list = make("ol", { class: "unit-list", "aria-label": "Sentences or facts, each with the probability that it holds anything unsupported" });
  for (const [kind, score, text] of sample.units)
    list.append(make("li", {}, make("span", { class: "figure", text: share(score) }), make("span", { class: "number", text: kind }),
      make("bdi", { class: "quoted", ...textAttributes(sample.tag, sample.dir), text: shownText(text) })));
  byId("units").replaceChildren(...(sample.units.length ? [list] : []));
}

function activate(mark, scroll) {
  if (atHand !== mark) {
    for (const old of atHand ? responseView.partsOf(atHand) : []) old.classList.remove("on");
    for (const each of responseView.partsOf(mark)) each.classList.add("on");
    whichPlace = 0;
  }
  atHand = mark;
  inspector.show(sample, mark, (number) => goToPlace(number), whichPlace);
  evidenceView.point(mark.places, mark.slot || null, scroll, whichPlace);
}

function release() {
  for (const old of atHand ? responseView.partsOf(atHand) : []) old.classList.remove("on");
  atHand = null;
  if (pinned) activate(pinned, false);
  else {
    inspector.rest();
    evidenceView.point([], null, false);
  }
}

function goToPlace(number) {
  const mark = atHand || pinned;
  if (!mark || !mark.places.length) return;
  pinned = mark;
  whichPlace = number % mark.places.length;
  activate(mark, false);
  evidenceView.reveal(mark.places[whichPlace]);
}

function focusMark(mark) {
  const part = responseView.partsOf(mark)[0];
  if (!part) return;
  pinned = mark;
  part.focus({ preventScroll: true });
  part.scrollIntoView({ block: "nearest" });
  activate(mark, evidenceView.scrolls());
}

// The next or previous of `marks` from the one at hand, going around at the ends.
function stepMark(marks, by) {
  const usable = marks.filter((mark) => responseView.partsOf(mark).length);
  if (!usable.length) return;
  const from = atHand || pinned;
  let at = usable.indexOf(from);
  if (at < 0 && from) at = by > 0 ? usable.filter((m) => m.start < from.start).length - 1 : usable.filter((m) => m.start < from.start).length;
  focusMark(usable[at < 0 && !from && by < 0 ? usable.length - 1 : (at + by + usable.length) % usable.length]);
}

const KEYS = [
  ["j", "next sample", () => sampleList.step(1)],
  ["k", "previous sample", () => sampleList.step(-1)],
  ["n", "next span", () => stepMark(spans, 1)],
  ["p", "previous span", () => stepMark(spans, -1)],
  [".", "next word that has support", () => stepMark(sample.words.filter((word) => word.places.length), 1)],
  [",", "previous word that has support", () => stepMark(sample.words.filter((word) => word.places.length), -1)],
  ["e", "next place in the evidence", () => goToPlace(whichPlace + 1)],
  ["/", "search", () => { toggleSamples(true); sampleList.search.focus(); }],
  ["t", "light, dark or as the system", () => stepTheme()],
  ["?", "these keys", () => byId("help").showModal()],
  ["Escape", "let go of the mark", () => { pinned = null; release(); if (byId("response").contains(document.activeElement)) document.activeElement.blur(); }],
];

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.key !== "Escape" && (!byId("keys-on").checked || event.target.closest("input:not([type=range]), select, textarea"))) return;
  const found = KEYS.find(([key]) => key === event.key);
  if (!found || (!sample && found[0] !== "t" && found[0] !== "?")) return;
  event.preventDefault();
  found[2]();
}

const THEMES = ["system", "light", "dark"];

function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  byId("theme").dataset.theme = theme;
}

function stepTheme() {
  const next = THEMES[(THEMES.indexOf(byId("theme").dataset.theme) + 1) % THEMES.length];
  applyTheme(next);
  remember("veriglot-theme", next);
}

function remember(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch {
    // private windows and some local files keep nothing: the choice then lasts as long as the page
  }
  return null;
}

function toggleSamples(open) {
  byId("samples").classList.toggle("open", open);
  byId("samples-toggle").setAttribute("aria-expanded", String(byId("samples").classList.contains("open")));
}

function summary() {
  const unchecked = samples.filter((each) => each.status !== SCORED).length;
  const marked = samples.filter((each) => sampleList.standing(each).length || sampleList.loose(each)).length;
  const languages = new Set(samples.map((each) => each.language)).size;
  const level = threshold === null ? "" : ` at ${threshold}% or more`;
  const parts = [counted(samples.length, "sample"), counted(languages, "language"), `${marked.toLocaleString("en")} with marks${level}`];
  byId("summary").textContent = parts.join(" · ");
  if (unchecked) byId("summary").append(" · ", make("strong", { class: "unchecked", text: `${unchecked.toLocaleString("en")} not checked` }));
}

function listen() {
  const view = responseView.element;
  view.addEventListener("pointerover", (event) => {
    const mark = responseView.markAt(event.target);
    if (mark && event.pointerType !== "touch") activate(mark, evidenceView.scrolls());
  });
  view.addEventListener("pointerout", (event) => {
    if (!responseView.markAt(event.relatedTarget) && event.pointerType !== "touch") release();
  });
  view.addEventListener("focusin", (event) => {
    const part = event.target.closest(".part");
    const first = part && part.dataset.first !== undefined ? spans[Number(part.dataset.first.split(" ").pop())] : null;
    const mark = first || responseView.markAt(event.target);
    if (mark && !(pinned && responseView.partsOf(pinned).includes(part))) activate(mark, evidenceView.scrolls());
  });
  view.addEventListener("click", (event) => {
    const mark = responseView.markAt(event.target);
    pinned = mark && pinned !== mark ? mark : null;
    if (mark) activate(mark, evidenceView.scrolls());
    else release();
  });
  document.addEventListener("keydown", onKey);
  byId("previous").addEventListener("click", () => sampleList.step(-1));
  byId("next").addEventListener("click", () => sampleList.step(1));
  byId("theme").addEventListener("click", stepTheme);
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("samples-toggle").addEventListener("click", () => toggleSamples());
  byId("samples").addEventListener("click", (event) => { if (event.target.closest(".row")) toggleSamples(false); });
  byId("keys-on").addEventListener("change", (event) => remember("veriglot-keys", event.target.checked ? "on" : "off"));
  window.addEventListener("hashchange", () => { const at = fromAddress(); if (at >= 0 && (!sample || at !== sample.index)) choose(at); });
}

function fromAddress() {
  let id = "";
  try {
    id = decodeURIComponent(location.hash.slice(1));
  } catch {
    return -1; // an address that somebody mistyped
  }
  return id ? samples.findIndex((each) => each.id === id) : -1;
}

function start() {
  applyTheme(THEMES.includes(remember("veriglot-theme")) ? remember("veriglot-theme") : "system");
  byId("keys-on").checked = remember("veriglot-keys") !== "off";
  for (const [key, what] of KEYS) byId("keys").append(make("dt", {}, make("kbd", { text: key === "Escape" ? "Esc" : key })), make("dd", { text: what }));
  summary();
  sampleList.start((index) => choose(index));
  inspector.rest();
  listen();
  document.body.classList.toggle("one", samples.length === 1);
  if (samples.length) choose(Math.max(0, fromAddress()));
  else byId("verdict").replaceChildren(make("p", { class: "nothing", text: "There are no samples in this file." }));
  document.documentElement.dataset.ready = "yes";
}

start();
