// Where a mark may begin and end: characters as readers see them (graphemes), and the words that keys step through.

import { CodePoints } from "./offsets.js";

/** @typedef {[number, number]} Range Half-open, in code points. */

// A consonant after one of these joins the character before it, whatever the browser's edition of Unicode says. To cut
// less often than the server allows is safe; to cut where it does not allow is refused.
const JOINER = /[\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d]$/u;
const JOINED = /^[\u0900-\u0d7f]/u;
const SPACE = /^\s+$/u;
const SYMBOL = /[\p{Extended_Pictographic}\p{So}\p{Sc}\p{Sm}\p{Regional_Indicator}\p{L}\p{N}]/u;

/** The UTF-16 indices at which characters begin, with the end of the text. @param {string} text */
const graphemeUnits = (text) => {
  /** @type {number[]} */
  const begins = [];
  let before = "";
  for (const { segment, index } of new Intl.Segmenter("und", { granularity: "grapheme" }).segment(text)) {
    if (!(JOINER.test(before) && JOINED.test(segment))) begins.push(index);
    before = segment;
  }
  begins.push(text.length);
  return text ? begins : [0];
};

/** Words as the browser cuts them, for texts whose words the server does not send. */
export const wordsOf = (/** @type {CodePoints} */ points, /** @type {string | null} */ language) => {
  /** @type {Range[]} */
  const words = [];
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language ?? "und", { granularity: "word" });
  } catch {
    segmenter = new Intl.Segmenter("und", { granularity: "word" });
  }
  for (const { segment, index, isWordLike } of segmenter.segment(points.text)) {
    if (isWordLike) words.push([points.point(index), points.point(index + segment.length)]);
  }
  return words;
};

/** The first index whose value is more than `value`. @param {number[]} sorted @param {number} value */
const firstAbove = (sorted, value) => {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Characters and words of a text. */
export class Stops {
  /**
   * @param {CodePoints} points
   * @param {Range[] | (() => Range[])} words in order; they are widened to whole characters.
   */
  constructor(points, words) {
    this.points = points;
    this.words = words;
    /** @type {number[] | undefined} */
    this.cached = undefined;
    /** @type {{list: Range[], starts: number[]} | undefined} */
    this.stepped = undefined;
  }

  /** Where characters begin and end, in code points. Found when first asked for: evidence may be a whole book. */
  get borders() {
    this.cached ??= graphemeUnits(this.points.text).map((unit) => this.points.point(unit));
    return this.cached;
  }

  /** What keys step through: words, and runs of emoji and other symbols. @returns {Range[]} */
  get list() {
    return this.steps().list;
  }

  get starts() {
    return this.steps().starts;
  }

  steps() {
    if (!this.stepped) {
      const list = this.withSymbols(typeof this.words === "function" ? this.words() : this.words);
      this.stepped = { list, starts: list.map(([start]) => start) };
    }
    return this.stepped;
  }

  /** @param {Range[]} words @returns {Range[]} */
  withSymbols(words) {
    /** @type {Range[]} */
    const all = [];
    let reached = 0;
    const fill = (/** @type {number} */ end) => {
      for (let at = this.up(reached); at < end; at = this.next(at)) {
        const last = all[all.length - 1];
        const character = this.points.slice(at, this.next(at));
        if (!SYMBOL.test(character) || SPACE.test(character)) continue;
        const joins = last && last[1] === at && last[0] >= reached;
        if (joins) last[1] = this.next(at);
        else all.push([at, this.next(at)]);
      }
    };
    for (const [start, end] of words) {
      const whole = /** @type {Range} */ ([Math.max(this.down(start), reached), this.up(end)]);
      if (whole[0] >= whole[1]) continue;
      fill(whole[0]);
      all.push(whole);
      reached = whole[1];
    }
    fill(this.points.length);
    return all;
  }

  /** The nearest border at or before a place. @param {number} point */
  down(point) {
    return this.borders[Math.max(0, firstAbove(this.borders, point) - 1)];
  }

  /** The nearest border at or after a place. @param {number} point */
  up(point) {
    return this.down(point) === point ? point : this.next(point);
  }

  /** The next border; the end stays. @param {number} point */
  next(point) {
    return this.borders[Math.min(firstAbove(this.borders, point), this.borders.length - 1)];
  }

  /** The border before; the start stays. @param {number} point */
  previous(point) {
    const at = this.down(point);
    return at < point ? at : this.borders[Math.max(0, firstAbove(this.borders, at) - 2)];
  }

  /** The stop that holds a code point, or null. @param {number} point @returns {Range | null} */
  at(point) {
    const word = this.list[firstAbove(this.starts, point) - 1];
    return word && point < word[1] ? word : null;
  }

  /** The first stop that begins at or after a place, or null. @param {number} point @returns {Range | null} */
  from(point) {
    return this.list[firstAbove(this.starts, point - 1)] ?? null;
  }

  /** The last stop that ends at or before a place, or null. @param {number} point @returns {Range | null} */
  until(point) {
    let index = firstAbove(this.starts, point) - 1;
    while (index >= 0 && this.list[index][1] > point) index -= 1;
    return this.list[index] ?? null;
  }

  /**
   * The words that a range touches; where it touches none, its characters without spaces around them.
   * @param {number} start @param {number} end @returns {Range | null}
   */
  snap(start, end) {
    const first = this.at(start) ?? this.from(start);
    const last = this.at(end - 1) ?? this.until(end);
    if (first && last && first[0] < end && last[1] > start) return [Math.min(first[0], last[0]), Math.max(last[1], first[1])];
    return this.trim(start, end);
  }

  /** A range of whole characters without spaces around them; null where nothing is left. @returns {Range | null} */
  trim(/** @type {number} */ start, /** @type {number} */ end) {
    let [from, to] = [this.down(start), this.up(end)];
    while (from < to && SPACE.test(this.points.slice(from, this.next(from)))) from = this.next(from);
    while (to > from && SPACE.test(this.points.slice(this.previous(to), to))) to = this.previous(to);
    return from < to ? [from, to] : null;
  }
}
