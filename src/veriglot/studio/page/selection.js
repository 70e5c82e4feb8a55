// How a selection moves. It always holds at least one character, and lies on whole characters.

/**
 * @typedef {object} Selection
 * @property {number} start in code points
 * @property {number} end one past the last
 * @property {"start" | "end"} edge the side that Shift moves
 */

/** @typedef {import("./stops.js").Stops} Stops */

/** A selection of a range. @returns {Selection} */
export const select = (/** @type {number} */ start, /** @type {number} */ end, /** @type {"start" | "end"} */ edge = "end") =>
  ({ start, end, edge });

/** @param {Stops} stops @param {1 | -1} way @returns {Selection | null} */
const first = (stops, way) => {
  const stop = way > 0 ? stops.list[0] : stops.list[stops.list.length - 1];
  return stop ? select(stop[0], stop[1]) : null;
};

/**
 * The next word in reading direction (`way` 1) or against it (-1).
 * @param {Stops} stops @param {Selection | null} now @param {1 | -1} way @returns {Selection | null}
 */
export const step = (stops, now, way) => {
  if (!now) return first(stops, way);
  const inside = stops.at(now.start);
  const whole = inside && inside[0] === now.start && inside[1] === now.end;
  let next = way > 0 ? stops.from(now.end) : stops.until(now.start);
  if (!whole && inside && now.end <= inside[1]) next = inside; // part of a word: first all of it
  return next ? select(next[0], next[1]) : now;
};

/** Where an edge goes, by a word or a character. @returns {number} */
const moved = (
  /** @type {Stops} */ stops, /** @type {Selection} */ now, /** @type {"start" | "end"} */ edge,
  /** @type {1 | -1} */ way, /** @type {"word" | "character"} */ by,
) => {
  const at = now[edge];
  if (by === "character") return way > 0 ? stops.next(at) : stops.previous(at);
  if (edge === "end") {
    if (way > 0) return (stops.at(at) ?? stops.from(at))?.[1] ?? at;
    const inside = stops.at(at - 1);
    return stops.until(inside ? inside[0] : at)?.[1] ?? now.start;
  }
  if (way < 0) return (stops.at(at - 1) ?? stops.until(at))?.[0] ?? at;
  const inside = stops.at(at);
  return stops.from(inside ? inside[1] : at)?.[0] ?? now.end;
};

/**
 * Move one side. Shift moves the side that was moved last (`far`); where nothing would be left, the other side takes
 * over, as selections do everywhere. The other side (`near`) only ever moves itself.
 * @param {Stops} stops @param {Selection | null} now @param {1 | -1} way
 * @param {"far" | "near"} side @param {"word" | "character"} by @returns {Selection | null}
 */
export const stretch = (stops, now, way, side, by) => {
  if (!now) return first(stops, way);
  const other = now.edge === "end" ? "start" : "end";
  const edge = side === "far" ? now.edge : other;
  const next = { ...now, [edge]: moved(stops, now, edge, way, by) };
  if (next.start < next.end) return next;
  if (side === "near") return now;
  const turned = { ...now, [other]: moved(stops, now, other, way, by), edge: other };
  return turned.start < turned.end ? /** @type {Selection} */ (turned) : now;
};
