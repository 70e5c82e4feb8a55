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
  let threshold = null; // in hundredths; null: what the detector marked
  let choose = () => {};
  let begun = false;

  function start(onChoose) {
    choose = onChoose;
    options(fields.language, (s) => [s.language]);
    options(fields.status, (s) => [s.outcome]);
    options(fields.type, typesOf);
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

  function options(select, valuesOf) {
    const before = select.value;
    select.replaceChildren(make("option", { value: "", text: "all" }));
    for (const [value, n] of tally(valuesOf)) select.append(make("option", { value: `=${value}`, text: `${value} (${n})` }));
    if (before && ![...select.options].some((option) => option.value === before)) // what is filtered by stays named at none
      select.append(make("option", { value: before, text: `${before.slice(1)} (0)` }));
    select.value = before;
  }

  // The marks of a sample that stand at the threshold, [type, slot, how many], and the words that reach it outside them.
  function standing(sample) {
    const counts = sample.types.map(([type, slot, all]) => [type, slot, all.filter((c) => threshold === null || c === null || c >= threshold).length]);
    return counts.filter(([, , n]) => n);
  }

  function loose(sample) {
    return threshold === null ? 0 : sample.words.filter((word) => (word[0] ?? word) >= threshold && (word[1] ?? -1) < threshold).length;
  }

  function typesOf(sample) {
    return standing(sample).map(([type]) => type);
  }

  // Show what stands at another threshold; `settled` where it will not move on at once, so that filters follow.
  function setThreshold(value, settled) {
    threshold = value;
    if (!settled) {
      draw();
      return;
    }
    options(fields.type, typesOf);
    filter();
  }

  function filter() {
    const sought = fields.search.value.trim().toLowerCase();
    const wanted = (select) => (select.value ? select.value.slice(1) : null);
    const [language, status, type] = [fields.language, fields.status, fields.type].map(wanted);
    kept = samples.filter((s) =>
      (language === null || s.language === language) && (status === null || s.outcome === status) &&
      (type === null || typesOf(s).includes(type)) && (!sought || s.sought.includes(sought)));
    if (fields.order.value !== "file") {
      const sign = fields.order.value === "high" ? -1 : 1;
      const scored = (s) => (s.score === null ? Infinity : sign * s.score); // samples without a score come last
      kept.sort((a, b) => (scored(a) === scored(b) ? a.index - b.index : scored(a) < scored(b) ? -1 : 1));
    }
    const number = (n) => n.toLocaleString("en");
    count.textContent = kept.length === samples.length ? counted(samples.length, "sample") : `${number(kept.length)} of ${counted(samples.length, "sample")}`;
    if (kept.some((s) => s.status === SCORED)) count.textContent += " · % likely to hold anything unsupported";
    if (!kept.length) count.textContent = samples.length ? "No sample matches" : "There are no samples in this file";
    const at = kept.findIndex((sample) => sample.index === current);
    if (begun && at < 0) choose(kept.length ? kept[0].index : -1); // never a sample that is filtered out
    scroller.scrollTop = Math.max(0, at - 1) * ROW;
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
    const head = make("div", { class: "row-head" }, make("bdi", { class: "row-id", text: sample.id }), make("span", { class: "tag", text: sample.language }));
    if (sample.status === SCORED) head.append(make("span", { class: "row-score", text: share(sample.score) }, make("span", { class: "unseen", text: " likely to hold anything unsupported" })));
    else head.append(make("span", { class: "unchecked", text: "not checked" }));
    const line = shownText(sample.response.slice(0, 160)) || "(empty)";
    row.append(head, make("div", { class: "row-text", ...textAttributes(sample.tag, sample.dir), text: line }), marksOf(sample));
    return row;
  }

  function marksOf(sample) {
    const line = make("div", { class: "row-marks" });
    const marks = standing(sample);
    const more = loose(sample);
    if (sample.status !== SCORED) line.append(make("span", { text: sample.outcome }));
    else if (!marks.length && !more) line.append(make("span", { text: threshold === null ? "nothing marked" : `nothing at ${threshold}%` }));
    for (const [type, slot, n] of marks) line.append(make("span", { class: `dot slot-${slot}`, text: `${n} ${type}` }));
    if (more) line.append(make("span", { text: `${marks.length ? "+ " : ""}${counted(more, "word")}` }));
    return line;
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
    begun = true;
    if (index >= 0 && !kept.some((sample) => sample.index === index)) { // an address asked for it
      for (const name of ["search", "language", "status", "type"]) fields[name].value = "";
      filter();
    }
    const at = kept.findIndex((sample) => sample.index === index);
    if (at >= 0) {
      const top = at * ROW;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (top + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW - scroller.clientHeight;
    }
    draw();
  }

  return { start, step, mark, standing, loose, setThreshold, search: fields.search };
})();
