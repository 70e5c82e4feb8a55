// Places in long texts, painted by the browser's own highlights: the text stays one piece, and a thousand hits cost
// nothing. Browsers without them still jump to each place.

/** @type {Record<string, Map<string, StaticRange[]>>} */
const painted = {};

/**
 * Paint places of one text under a name (`hit`, `current`, `shared`, `pointed`), instead of those that were painted in
 * it before.
 * @param {string} name @param {string} owner of the text @param {Text | null | undefined} node
 * @param {import("./offsets.js").CodePoints} points @param {[number, number][]} places
 */
export const paint = (name, owner, node, points, places) => {
  const own = (painted[name] ??= new Map());
  if (!node || !places.length) own.delete(owner);
  else own.set(owner, places.map(([start, end]) => new StaticRange({ // the text never changes: nothing to keep up with
    startContainer: node, startOffset: points.unit(start), endContainer: node, endOffset: points.unit(end),
  })));
  if (typeof Highlight === "undefined" || !CSS.highlights) return;
  const all = new Highlight();
  for (const ranges of own.values()) for (const range of ranges) all.add(range); // too many for arguments of one call
  CSS.highlights.set(name, all);
};

/** Bring a place into view. @param {Text} node @param {import("./offsets.js").CodePoints} points @param {[number, number]} place */
export const reveal = (node, points, [start, end]) => {
  const range = document.createRange();
  range.setStart(node, points.unit(start));
  range.setEnd(node, points.unit(end));
  const pane = node.parentElement?.closest(".scroll");
  const rect = range.getBoundingClientRect();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  if (pane && pane.scrollHeight > pane.clientHeight) {
    const frame = pane.getBoundingClientRect();
    if (rect.top < frame.top + 40 || rect.bottom > frame.bottom - 40) {
      pane.scrollBy({ top: rect.top - frame.top - frame.height / 3, behavior: calm });
    }
  } else if (rect.top < 80 || rect.bottom > innerHeight - 80) {
    scrollBy({ top: rect.top - innerHeight / 3, behavior: calm });
  }
};
