// What is known of the mark at hand: its type and confidence, and the neighbourhood of its places.

const inspector = (function () {
  const element = document.getElementById("inspector");
  const tip = document.getElementById("tip");
  const AROUND = 70;
  const LONGEST = 220;
  const SHOWN = 6;

  function rest() {
    element.replaceChildren(make("p", { class: "hint", text: "Point at a mark or a word, or press n, to see the evidence that it was held against." }));
    tip.hidden = true;
  }

  function show(sample, mark, reveal, which) {
    const head = make("p", { class: "mark-head" }, ...title(mark));
    const text = shownText(sample.response.slice(mark.start, mark.end));
    head.append(make("q", { class: "quoted", ...textAttributes(sample.tag, sample.dir), text: short(text) }));
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
      return [make("span", { class: "chip plain", text: verdict }), make("span", { class: "figure", text: `probability unsupported ${share(mark.confidence)}` })];
    }
    const figure = mark.confidence === null ? "no confidence given" : `confidence ${share(mark.confidence)}`;
    return [make("span", { class: "number", text: String(mark.number + 1) }), chip(mark.type, mark.slot), make("span", { class: "figure", text: figure })];
  }

  function snippet(sample, place, number, which, reveal) {
    const passage = sample.passages[place.passage];
    const from = Math.max(0, place.start - AROUND);
    const to = Math.min(passage.text.length, place.end + AROUND);
    const before = passage.text.slice(isTrailing(passage.text, from) ? from + 1 : from, place.start);
    const after = passage.text.slice(place.end, isTrailing(passage.text, to) ? to - 1 : to);
    const quote = make("span", { class: "snippet", ...textAttributes(passage.tag, passage.dir) });
    quote.append(from ? "…" : "", shownText(before), make("b", { text: short(shownText(passage.text.slice(place.start, place.end))) }));
    quote.append(shownText(after), to < passage.text.length ? "…" : "");
    return make("button", { type: "button", class: "go", "aria-current": number === which, onclick: () => reveal(number) },
      make("bdi", { class: "passage-id", text: passage.id }), " ", quote);
  }

  function short(text) {
    if (text.length <= LONGEST) return text;
    return `${Array.from(text.slice(0, LONGEST / 2)).slice(0, -1).join("")} … ${Array.from(text.slice(-LONGEST / 2)).slice(1).join("")}`;
  }

  // A small label at the mark itself.
  function showTip(mark, part) {
    tip.replaceChildren(...title(mark));
    tip.hidden = false;
    const box = part.getClientRects()[0] || part.getBoundingClientRect();
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(box.left, room))}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 10}px`;
  }

  function hideTip() {
    tip.hidden = true;
  }

  return { rest, show, showTip, hideTip };
})();
