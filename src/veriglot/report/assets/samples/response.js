// The response: its spans, its words, and the threshold.

const responseView = (function () {
  const element = document.getElementById("response");
  const CURSIVE = /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Adlam}\p{Script=Mandaic}]/u;
  let sample = null;
  let spans = [];
  let threshold = null;
  let drawn = new Map(); // each span or word -> the elements that draw it

  function show(newSample, newSpans) {
    sample = newSample;
    spans = newSpans;
    draw();
  }

  function draw() {
    const text = sample.response;
    element.replaceChildren();
    drawn = new Map();
    for (const [name, value] of Object.entries(textAttributes(sample.tag, sample.dir))) {
      if (value) element.setAttribute(name, value);
      else element.removeAttribute(name);
    }
    if (!text) {
      element.append(make("p", { class: "nothing", dir: "ltr", lang: "en", text: "The response is empty." }));
      return;
    }
    const ranges = [...spans, ...sample.words];
    const starts = [...ranges].sort((a, b) => a.start - b.start);
    const begun = new Set();
    let next = 0;
    let open = [];
    for (const block of blocksOf(text)) {
      while (next < starts.length && starts[next].start < block.end) open.push(starts[next++]);
      const line = make("div", { class: "block" });
      for (const piece of pieces(block.start, block.end, open)) line.append(drawPiece(text, piece, begun));
      element.append(line);
      open = open.filter((range) => range.end > block.end);
    }
  }

  function drawPiece(text, piece, begun) {
    const content = shownText(text.slice(piece.start, piece.end));
    const covering = piece.covering.filter((range) => range.kind === "span");
    const word = piece.covering.find((range) => range.kind === "word");
    if (!covering.length && !word) return document.createTextNode(content);
    const part = make(covering.length ? "mark" : "span", { class: "part" }, content);
    for (const range of piece.covering) drawn.set(range, [...(drawn.get(range) || []), part]);
    if (word) part.dataset.word = word.number;
    if (covering.length) markPart(part, text, piece, covering, word, begun);
    else drawWord(part, word);
    if (word && !begun.has(word)) {
      begun.add(word);
      if (!part.hasAttribute("tabindex")) part.tabIndex = -1;
    }
    return part;
  }

  function drawWord(part, word) {
    part.classList.add("word");
    if (word.places.length) part.classList.add("held");
    if (over(word)) part.classList.add("over");
  }

  function markPart(part, text, piece, covering, word, begun) {
    const standing = covering.filter((span) => !under(span));
    const inner = (standing.length ? standing : covering).at(-1);
    part.dataset.spans = covering.map((span) => span.number).join(" ");
    part.classList.add(`slot-${inner.slot}`);
    part.style.setProperty("--strength", strength(inner.confidence));
    if (!standing.length) part.classList.add("under");
    if (!standing.length && word && over(word)) part.classList.add("over");
    const outer = standing.slice(0, -1).reverse().slice(0, 2);
    if (outer.length) part.style.boxShadow = lines(outer);
    for (const span of covering) {
      if (!begun.has(span)) {
        begun.add(span);
        part.tabIndex = 0;
        part.dataset.first = [part.dataset.first, span.number].filter((x) => x !== undefined).join(" ");
        part.setAttribute("aria-describedby", `span-${span.number}`);
      }
    }
    const ending = covering.filter((span) => span.end === piece.end);
    const joined = CURSIVE.test(text.slice(piece.end - 1, piece.end)) && CURSIVE.test(text.slice(piece.end, piece.end + 1));
    if (ending.length && !joined) part.dataset.numbers = ending.map((span) => span.number + 1).sort((a, b) => a - b).join(",");
  }

  // How much of the tint shows: from a quarter at confidence 0 to three quarters at 1.
  function strength(confidence) {
    return `${Math.round(25 + 50 * (confidence === null ? 0.6 : confidence))}%`;
  }

  // A line beneath for each outer span, with a gap between them.
  function lines(outer) {
    const shadows = [];
    outer.forEach((span, depth) => {
      const low = 2 + depth * 4;
      shadows.push(`0 ${low}px 0 0 var(--page-panel)`, `0 ${low + 2}px 0 0 var(--${span.slot}-ink)`);
    });
    return shadows.join(", ");
  }

  function under(span) {
    return threshold !== null && span.confidence !== null && hundredths(span.confidence) < threshold;
  }

  function over(word) {
    return threshold !== null && hundredths(word.confidence) >= threshold;
  }

  function setThreshold(value) {
    threshold = value;
    draw();
  }

  // The elements that draw one span or word.
  function partsOf(mark) {
    return drawn.get(mark) || [];
  }

  // What lies under an element of the response: its innermost span, else its word.
  function markAt(node) {
    const part = node instanceof Element ? node.closest(".part") : null;
    if (!part || !element.contains(part)) return null;
    const word = part.dataset.word === undefined ? null : sample.words[Number(part.dataset.word)];
    if (part.dataset.spans === undefined) return word;
    const numbers = part.dataset.spans.split(" ");
    return spans[Number(numbers[numbers.length - 1])];
  }

  return { element, show, setThreshold, partsOf, markAt, under };
})();
