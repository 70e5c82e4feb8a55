// The one place where code points meet UTF-16. Layers count code points, as the server does; the browser counts UTF-16
// units, in which a code point beyond U+FFFF (emoji, rare Han, old scripts) takes two.

/** How many of the sorted numbers are less than `value`. */
const below = (/** @type {number[]} */ sorted, /** @type {number} */ value) => {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** A text that is read by code points. */
export class CodePoints {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    /** The code points, by number, that take two units. @type {number[]} */
    this.wide = [];
    for (let unit = 0; unit < text.length; unit += 1) {
      if (/** @type {number} */ (text.codePointAt(unit)) > 0xffff) {
        this.wide.push(unit - this.wide.length);
        unit += 1;
      }
    }
    /** The length in code points. */
    this.length = text.length - this.wide.length;
  }

  /** The UTF-16 index of a code point; places outside the text are moved to its ends. @param {number} point */
  unit(point) {
    const inside = Math.max(0, Math.min(point, this.length));
    return inside + below(this.wide, inside);
  }

  /** The code point at a UTF-16 index; the middle of a pair belongs to the code point that it halves. */
  point(/** @type {number} */ unit) {
    const inside = Math.max(0, Math.min(unit, this.text.length));
    let low = 0;
    let high = this.wide.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.wide[middle] + middle < inside) low = middle + 1;
      else high = middle;
    }
    const halved = low > 0 && this.wide[low - 1] + low === inside; // begins one unit before
    return halved ? this.wide[low - 1] : inside - low;
  }

  /** The text between two code points. @param {number} start @param {number} end */
  slice(start, end) {
    return this.text.slice(this.unit(start), this.unit(end));
  }
}
