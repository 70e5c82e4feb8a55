// Underlines of spans that nest and overlap, each in a lane of its own: short spans nearest to the text, so that what
// lies inside stays inside.

/**
 * @template {{start: number, end: number}} T
 * @param {T[]} spans
 * @returns {Map<T, number>} the lane of each, from 0
 */
export const lanesOf = (spans) => {
  /** @type {{start: number, end: number}[][]} */
  const lanes = [];
  /** @type {Map<T, number>} */
  const laneOf = new Map();
  const order = [...spans].sort((a, b) => a.end - a.start - (b.end - b.start) || a.start - b.start);
  for (const span of order) {
    let lane = 0;
    while (lanes[lane]?.some((other) => other.start < span.end && span.start < other.end)) lane += 1;
    (lanes[lane] ??= []).push(span);
    laneOf.set(span, lane);
  }
  return laneOf;
};
