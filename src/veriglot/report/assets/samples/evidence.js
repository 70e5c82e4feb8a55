// The evidence: every passage, folded where it is long and nothing points, and the place of the mark at hand.

const evidenceView = (function () {
  const element = document.getElementById("evidence");
  const scroller = document.getElementById("proof-scroll");
  const WHOLE = 6000; // a passage up to this many units is shown whole
  const POINTED = 24; // blocks opened from the start because spans point into them
  const AT_ONCE = 12; // blocks that one press on a fold opens
  let views = [];
  let active = [];
  let slot = null;

  function show(sample, spans) {
    active = [];
    element.replaceChildren();
    if (!sample.passages.length) element.append(make("p", { class: "nothing", text: "This sample has no evidence." }));
    const places = spans.flatMap((span) => span.places.map((place) => ({ ...place, slot: span.slot })));
    views = sample.passages.map((passage, index) => {
      const view = { passage, index, blocks: blocksOf(passage.text), pointed: places.filter((p) => p.passage === index) };
      open(view);
      view.element = make("article", { class: "passage", "aria-label": `Passage ${passage.id}` }, heading(passage));
      view.body = make("div", { class: "text", ...textAttributes(passage.tag, passage.dir) });
      view.element.append(view.body);
      element.append(view.element);
      draw(view);
      return view;
    });
    scroller.scrollTop = 0;
  }

  // Which blocks are open at first.
  function open(view) {
    const whole = view.passage.text.length <= WHOLE && view.index < 60;
    for (const block of view.blocks) block.open = whole;
    if (whole || !view.blocks.length) return;
    if (view.index < 60) view.blocks[0].open = true;
    for (const place of view.pointed.slice(0, POINTED)) openAround(view, place);
  }

  // Open the blocks of a place, and the neighbour that it nearly touches. Returns whether anything was folded.
  function openAround(view, place) {
    const first = blockAt(view.blocks, Math.max(0, place.start - 200));
    const last = blockAt(view.blocks, Math.min(view.passage.text.length - 1, place.end + 200));
    let changed = false;
    for (let i = first; i <= last && i < first + AT_ONCE; i += 1) {
      changed = changed || !view.blocks[i].open;
      view.blocks[i].open = true;
    }
    return changed;
  }

  function heading(passage) {
    const head = make("h3", { class: "passage-title", dir: passage.dir }, make("bdi", { class: "passage-id", text: passage.id }));
    if (passage.title) head.append(make("bdi", { text: passage.title }));
    if (passage.language) head.append(make("span", { class: "tag", text: passage.language }));
    if (passage.url) head.append(address(passage.url));
    return head;
  }

  // Only web addresses become links; nothing is loaded until somebody follows one.
  function address(url) {
    if (!/^https?:\/\//i.test(url)) return make("bdi", { class: "url", text: url });
    return make("a", { class: "url", href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, make("bdi", { text: url }));
  }

  function draw(view) {
    view.body.replaceChildren();
    if (!view.passage.text) view.body.append(make("p", { class: "nothing", dir: "ltr", lang: "en", text: "This passage is empty." }));
    for (let i = 0; i < view.blocks.length; ) {
      if (view.blocks[i].open) {
        view.blocks[i].element = make("div", { class: "block" });
        fill(view, view.blocks[i]);
        view.body.append(view.blocks[i].element);
        i += 1;
        continue;
      }
      let end = i;
      while (end < view.blocks.length && !view.blocks[end].open) view.blocks[end++].element = null;
      view.body.append(fold(view, i, end));
      i = end;
    }
  }

  function fold(view, from, to) {
    const hidden = view.blocks[to - 1].end - view.blocks[from].start;
    const more = Math.min(to - from, AT_ONCE);
    const label = `${hidden.toLocaleString("en")} characters folded: show ${more < to - from ? "more" : "them"}`;
    return make("button", {
      type: "button", class: "fold", dir: "ltr", lang: "en", text: label,
      onclick: () => {
        for (let i = from; i < from + more; i += 1) view.blocks[i].open = true;
        draw(view);
      },
    });
  }

  // The text of one block with its places: those of spans always, that of the mark at hand strongly.
  function fill(view, block) {
    const near = (place) => place.start < block.end && place.end > block.start;
    const here = active.filter((place) => place.passage === view.index && near(place)).map((p) => ({ ...p, now: true }));
    const parts = pieces(block.start, block.end, [...view.pointed.filter(near), ...here]).map((piece) => {
      const content = shownText(view.passage.text.slice(piece.start, piece.end));
      const now = piece.covering.find((place) => place.now);
      if (now) return make("mark", { class: `place now ${slot ? `slot-${slot}` : "plain"}` }, content);
      if (piece.covering.length) return make("span", { class: `place slot-${piece.covering[0].slot}` }, content);
      return document.createTextNode(content);
    });
    block.element.replaceChildren(...parts);
  }

  // Show the places of a mark; `scroll` brings the first (or the one numbered `which`) into view.
  function point(places, newSlot, scroll, which = 0) {
    const before = active;
    active = places;
    slot = newSlot;
    for (const view of views) {
      const touched = [...before, ...places].filter((place) => place.passage === view.index);
      if (!touched.length) continue;
      const opened = places.filter((p) => p.passage === view.index).map((p) => openAround(view, p)).some(Boolean);
      if (opened) draw(view);
      else for (const block of view.blocks) if (block.element && touched.some((p) => p.start < block.end && p.end > block.start)) fill(view, block);
    }
    if (scroll && places.length) reveal(places[which]);
  }

  function reveal(place) {
    const view = views[place.passage];
    const block = view.blocks[blockAt(view.blocks, place.start)];
    if (!block.element) return;
    const mark = block.element.querySelector(".now") || block.element;
    const box = mark.getBoundingClientRect();
    const pane = scroller.getBoundingClientRect();
    if (!scrolls()) {
      mark.scrollIntoView({ block: "center" });
      return;
    }
    const margin = 48;
    if (box.top >= pane.top + margin && box.bottom <= pane.bottom - margin) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const top = scroller.scrollTop + box.top - pane.top - pane.height / 3;
    scroller.scrollTo({ top, behavior: calm ? "auto" : "smooth" });
  }

  // Whether the evidence has a scrolled pane of its own beside the response (a wide window).
  function scrolls() {
    return getComputedStyle(scroller).overflowY === "auto";
  }

  return { show, point, reveal, scrolls };
})();
