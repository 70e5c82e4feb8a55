// Where text lies on the screen, and which character lies under a point of it.

/** @typedef {{left: number, top: number, width: number, height: number}} Box */

/** @param {Text} node @param {number} from @param {number} to in UTF-16 units @returns {DOMRect[]} */
const rects = (node, from, to) => {
  const range = document.createRange();
  range.setStart(node, from);
  range.setEnd(node, to);
  return Array.from(range.getClientRects()).filter((rect) => rect.width > 0 && rect.height > 0);
};

/**
 * The boxes of a range, one a line and direction, relative to an element.
 * @param {Text} node @param {import("./offsets.js").CodePoints} points @param {number} start @param {number} end
 * @param {Element} within @returns {Box[]}
 */
export const boxesOf = (node, points, start, end, within) => {
  const origin = within.getBoundingClientRect();
  /** @type {Box[]} */
  const boxes = [];
  for (const rect of rects(node, points.unit(start), points.unit(end))) {
    const box = { left: rect.left - origin.left, top: rect.top - origin.top, width: rect.width, height: rect.height };
    const last = boxes[boxes.length - 1];
    const touches = last && Math.abs(last.top - box.top) < 3
      && box.left <= last.left + last.width + 1 && last.left <= box.left + box.width + 1;
    if (!touches) {
      boxes.push(box);
      continue;
    }
    const right = Math.max(last.left + last.width, box.left + box.width);
    last.left = Math.min(last.left, box.left);
    last.width = right - last.left;
    last.height = Math.max(last.height, box.top + box.height - last.top);
  }
  return boxes;
};

/** @param {number} x @param {number} y @returns {{node: Node, offset: number} | null} */
const caretAt = (x, y) => {
  if (document.caretPositionFromPoint) {
    const caret = document.caretPositionFromPoint(x, y);
    return caret && { node: caret.offsetNode, offset: caret.offset };
  }
  const range = document.caretRangeFromPoint?.(x, y);
  return range ? { node: range.startContainer, offset: range.startOffset } : null;
};

/**
 * The character under a point, or the nearest one of the line: a caret falls between characters, so it is asked on
 * which side the point lies.
 * @param {Text} node @param {import("./stops.js").Stops} stops @param {number} x @param {number} y
 * @returns {[number, number] | null}
 */
export const characterAt = (node, stops, x, y) => {
  const caret = caretAt(x, y);
  if (!caret || caret.node !== node) return null;
  const { points } = stops;
  const at = stops.down(points.point(caret.offset));
  const candidates = [[at, stops.next(at)], [stops.previous(at), at], [stops.next(at), stops.next(stops.next(at))]];
  let best = null;
  let least = Infinity;
  for (const [start, end] of candidates) {
    if (start >= end) continue;
    for (const rect of rects(node, points.unit(start), points.unit(end))) {
      const aside = Math.max(rect.left - x, x - rect.right, 0);
      const away = Math.max(rect.top - y, y - rect.bottom, 0);
      if (aside + away * 4 < least) {
        least = aside + away * 4;
        best = /** @type {[number, number]} */ ([start, end]);
      }
    }
  }
  return best;
};

/**
 * The word on the line above or below, nearest to where the word of now lies.
 * @param {Text} node @param {import("./stops.js").Stops} stops @param {[number, number]} now @param {1 | -1} way
 * @returns {[number, number] | null}
 */
export const onNextLine = (node, stops, now, way) => {
  const { points } = stops;
  const here = rects(node, points.unit(now[0]), points.unit(now[1]))[0];
  if (!here) return null;
  const middle = here.left + here.width / 2;
  let line = null;
  let best = null;
  let least = Infinity;
  const begin = stops.list.findIndex(([start]) => start >= now[0]);
  for (let index = begin; index >= 0 && index < stops.list.length; index += way) {
    const stop = stops.list[index];
    const rect = rects(node, points.unit(stop[0]), points.unit(stop[1]))[0];
    if (!rect || (way > 0 ? rect.top < here.bottom - 2 : rect.bottom > here.top + 2)) continue;
    line ??= rect.top;
    if (Math.abs(rect.top - line) > here.height) break;
    const aside = Math.max(rect.left - middle, middle - rect.right, 0);
    if (aside < least) {
      least = aside;
      best = stop;
    }
  }
  return best;
};
