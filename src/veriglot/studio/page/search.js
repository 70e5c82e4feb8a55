// Finding words in a text without regard to case, accents, vowel points and width.

const POINTS = /[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640]/gu;

const folded = (/** @type {string} */ text) => text.normalize("NFKD").replace(POINTS, "").toLowerCase();

/** A text as it is compared, with the place in code points of each of its UTF-16 units. @param {string} text */
const fold = (text) => {
  let made = "";
  /** @type {number[]} */
  const places = [];
  let point = 0;
  for (const char of text) {
    const part = char < "\u0080" ? char.toLowerCase() : folded(char);
    made += part;
    for (let unit = 0; unit < part.length; unit += 1) places.push(point);
    point += 1;
  }
  places.push(point);
  return { made, places };
};

/** @type {Map<string, {made: string, places: number[]}>} */
const cache = new Map();

/**
 * Places where something occurs, half-open in code points, without overlaps.
 * @param {string} text @param {string} wanted @param {number} [most]
 * @returns {[number, number][]}
 */
export const find = (text, wanted, most = 2000) => {
  const needle = folded(wanted.trim()).replace(/\s+/g, " ");
  if (!needle) return [];
  if (!cache.has(text)) {
    if (cache.size > 20) cache.clear();
    cache.set(text, fold(text));
  }
  const { made, places } = /** @type {{made: string, places: number[]}} */ (cache.get(text));
  /** @type {[number, number][]} */
  const hits = [];
  for (let at = made.indexOf(needle); at >= 0 && hits.length < most; at = made.indexOf(needle, at + needle.length)) {
    hits.push([places[at], places[at + needle.length - 1] + 1]);
  }
  return hits;
};
