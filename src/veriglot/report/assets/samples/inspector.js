// What is known of the mark at hand: its type and confidence, and the neighbourhood of its places.

const inspector = (function () {
  const element = document.getElementById("inspector");
  const AROUND = 70;
  const SHOWN = 6;

  function rest() {
    element.classList.remove("active");
    element.replaceChildren(make("p", { class: "hint", text: "Point at a mark or a word, tap it, or press n: here stands the evidence that it was compared with." }));
  }

  function show(sample, mark, reveal, which) {
    element.classList.add("active");
    const head = make("p", { class: "mark-head" }, ...title(mark));
    const text = shownText(sample.response.slice(mark.start, mark.end));
    head.append(make("q", { class: "quoted", ...textAttributes(sample.tag, sample.dir), text }));
    const places = make("ol", { class: "places" });
    mark.places.slice(0, SHOWN).forEach((place, number) => places.append(make("li", {}, snippet(sample, place, number, which, reveal))));
    element.replaceChildren(head);
    if (mark.kind === "span" && meaningOf[mark.type]) element.append(make("p", { class: "meaning", text: meaningOf[mark.type] }));
    if (mark.places.length) element.append(places);
    else element.append(make("p", { class: "hint", text: "No place in the evidence is given for it." }));
    if (mark.places.length > SHOWN) element.append(make("p", { class: "hint", text: `and ${mark.places.length - SHOWN} more places` }));
  }

  function title(mark) {
    if (mark.kind === "word") {
      const verdict = mark.places.length ? "word with support" : "word";
      return [make("span", { class: "chip plain", text: verdict }), make("span", { class: "figure", text: `${share(mark.confidence)} likely unsupported` })];
    }
    const figure = mark.confidence === null ? "no confidence given" : `confidence ${share(mark.confidence)}`;
    return [make("span", { class: "number", text: String(mark.number + 1) }), chip(mark.type, mark.slot), make("span", { class: "figure", text: figure })];
  }

  function snippet(sample, place, number, which, reveal) {
    const passage = sample.passages[place.passage];
    const from = cut(passage.text, Math.max(0, place.start - AROUND), -1);
    const to = cut(passage.text, Math.min(passage.text.length, place.end + AROUND), 1);
    const before = passage.text.slice(from, place.start);
    const after = passage.text.slice(place.end, to);
    const quote = make("span", { class: "snippet", ...textAttributes(passage.tag, passage.dir) });
    quote.append(from ? "…" : "", shownText(before), make("b", { text: place.quoted || passage.text.slice(place.start, place.end) }));
    quote.append(shownText(after), to < passage.text.length ? "…" : "");
    return make("button", { type: "button", class: "go", "aria-current": number === which, onclick: () => reveal(number) },
      make("bdi", { class: "passage-id", text: passage.id }), " ", quote);
  }

  // Where an excerpt may end near `at`: outside of words, and so of numbers; of scripts without spaces, of numbers.
  function cut(text, at, step) {
    const inside = (i, letters) => i > 0 && i < text.length && letters.test(text[i - 1]) && letters.test(text[i]);
    let to = at;
    while (Math.abs(to - at) < 24 && inside(to, /[\p{L}\p{M}\p{N}.,:\ud800-\udfff]/u)) to += step;
    if (Math.abs(to - at) === 24) for (to = at; inside(to, /[\p{Nd}.,:\ud800-\udfff]/u); ) to += step;
    return to;
  }

  return { rest, show };
})();
