// The list of samples: filters, search, order. Only the rows in sight are drawn, so thousands cost no more than ten.

const sampleList = (function () {
  const ROW = 72; // pixels, as in layout.css
  const BEYOND = 6;
  const scroller = document.getElementById("list");
  const rows = document.getElementById("rows");
  const count = document.getElementById("count");
  const fields = {
    search: document.getElementById("search"),
    language: document.getElementById("by-language"),
    status: document.getElementById("by-status"),
    type: document.getElementById("by-type"),
    order: document.getElementById("by-order"),
  };
  let kept = samples;
  let current = -1;
  let choose = () => {};

  function start(onChoose) {
    choose = onChoose;
    options(fields.language, tally((s) => [s.language]), "all");
    options(fields.status, tally((s) => [s.status]), "all");
    options(fields.type, tally((s) => s.types.map(([type]) => type)), "all");
    let waiting = 0;
    fields.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(filter, 120);
    });
    for (const name of ["language", "status", "type", "order"]) fields[name].addEventListener("change", filter);
    scroller.addEventListener("scroll", draw, { passive: true });
    scroller.addEventListener("keydown", keys);
    rows.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) choose(Number(row.dataset.index));
    });
    new ResizeObserver(draw).observe(scroller);
    filter();
  }

  function tally(valuesOf) {
    const counts = new Map();
    for (const sample of samples) for (const value of valuesOf(sample)) counts.set(value, (counts.get(value) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]);
  }

  function options(select, counted, all) {
    select.append(make("option", { value: "", text: all }));
    for (const [value, n] of counted) select.append(make("option", { value: `=${value}`, text: `${words(value)} (${n})` }));
  }

  function filter() {
    const sought = fields.search.value.trim().toLowerCase();
    const wanted = (select) => (select.value ? select.value.slice(1) : null);
    const [language, status, type] = [fields.language, fields.status, fields.type].map(wanted);
    kept = samples.filter((s) =>
      (language === null || s.language === language) && (status === null || s.status === status) &&
      (type === null || s.types.some(([name]) => name === type)) && (!sought || s.sought.includes(sought)));
    if (fields.order.value !== "file") {
      const sign = fields.order.value === "high" ? -1 : 1;
      const scored = (s) => (s.score === null ? Infinity : sign * s.score); // samples without a score come last
      kept.sort((a, b) => (scored(a) === scored(b) ? a.index - b.index : scored(a) < scored(b) ? -1 : 1));
    }
    const number = (n) => n.toLocaleString("en");
    count.textContent = kept.length === samples.length ? `${number(samples.length)} samples` : `${number(kept.length)} of ${number(samples.length)} samples`;
    if (!kept.length) count.textContent = samples.length ? "No sample matches" : "There are no samples in this file";
    scroller.scrollTop = 0;
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - BEYOND);
    const last = Math.min(kept.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW) + BEYOND);
    rows.style.height = `${kept.length * ROW}px`;
    const drawn = [];
    for (let i = first; i < last; i += 1) drawn.push(drawRow(kept[i], i));
    rows.replaceChildren(...drawn);
    const row = document.getElementById(`row-${current}`);
    if (row) scroller.setAttribute("aria-activedescendant", row.id);
    else scroller.removeAttribute("aria-activedescendant");
  }

  function drawRow(sample, position) {
    const row = make("div", {
      class: "row", role: "option", id: `row-${sample.index}`, "aria-selected": String(sample.index === current),
      "aria-posinset": position + 1, "aria-setsize": kept.length, "data-index": sample.index,
    });
    row.style.top = `${position * ROW}px`;
    const head = make("div", { class: "row-head" }, make("bdi", { class: "row-id", text: sample.id }), make("span", { class: "tag", text: sample.tag || "?" }));
    if (sample.status === SCORED) head.append(make("span", { class: "row-score", text: share(sample.score), title: "score" }));
    else head.append(make("span", { class: "unchecked", text: "not checked" }));
    const line = shownText(sample.response.slice(0, 160)) || "(empty)";
    row.append(head, make("div", { class: "row-text", ...textAttributes(sample.tag, sample.dir), text: line }), marksOf(sample));
    return row;
  }

  function marksOf(sample) {
    const line = make("div", { class: "row-marks" });
    if (sample.status !== SCORED) line.append(make("span", { text: words(sample.status) }));
    else if (!sample.types.length) line.append(make("span", { text: "nothing marked" }));
    for (const [type, slot, n] of sample.types) line.append(make("span", { class: `dot slot-${slot}`, text: `${n} ${type}` }));
    return line;
  }

  function words(name) {
    return name.replaceAll("_", " ");
  }

  function keys(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity };
    if (!(event.key in moves) || !kept.length) return;
    event.preventDefault();
    step(moves[event.key]);
  }

  // Choose the sample that many rows away from the current one, within what the filters keep.
  function step(by) {
    if (!kept.length) return;
    const at = kept.findIndex((sample) => sample.index === current);
    const to = at < 0 ? 0 : Math.max(0, Math.min(kept.length - 1, at + by));
    choose(kept[to].index);
  }

  // Mark a sample as the one that is shown, and keep its row in sight.
  function mark(index) {
    current = index;
    const at = kept.findIndex((sample) => sample.index === index);
    if (at >= 0) {
      const top = at * ROW;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (top + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW - scroller.clientHeight;
    }
    draw();
  }

  return { start, step, mark, words, search: fields.search };
})();
