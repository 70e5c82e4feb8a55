// Code points to UTF-16 units. Records count code points; the browser counts UTF-16 units, in which a code point
// beyond U+FFFF (emoji, rare Han) takes two. A text without such code points needs no table.

const STEP = 1024;

class CodePoints {
  constructor(text) {
    this.text = text;
    this.table = /[\ud800-\udbff]/.test(text) ? CodePoints.tabulate(text) : null;
  }

  // The UTF-16 index of every STEP-th code point.
  static tabulate(text) {
    const table = [];
    let count = 0;
    for (let unit = 0; unit < text.length; count += 1) {
      if (count % STEP === 0) table.push(unit);
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
    }
    return table;
  }

  // The UTF-16 index of a code point; the end of the text for one beyond it.
  unit(point) {
    if (!this.table) return Math.min(point, this.text.length);
    const row = Math.floor(point / STEP);
    if (row >= this.table.length) {
      if (!this.table.length) return 0;
    }
    const from = Math.min(row, this.table.length - 1);
    let unit = this.table[from];
    for (let left = point - from * STEP; left > 0 && unit < this.text.length; left -= 1) {
      unit += this.text.codePointAt(unit) > 0xffff ? 2 : 1;
    }
    return unit;
  }
}

const graphemes = Intl.Segmenter ? new Intl.Segmenter("und", { granularity: "grapheme" }) : null;
const NEAR = 48;

// Where to draw an edge that falls inside a visible character (a letter and its vowel sign, a joined emoji): at that
// character's start, or at its end where `up` is set. Only the drawing moves; offsets that are shown stay exact.
function drawable(text, unit, up) {
  if (!graphemes || unit <= 0 || unit >= text.length) return unit;
  if (text.charCodeAt(unit) < 0x300 && text.charCodeAt(unit) !== 10) return unit;
  let from = Math.max(0, unit - NEAR);
  if (from > 0 && isTrailing(text, from)) from -= 1;
  const part = text.slice(from, unit + NEAR);
  const found = graphemes.segment(part).containing(unit - from);
  if (!found || found.index === unit - from) return unit;
  return from + found.index + (up ? found.segment.length : 0);
}

function isTrailing(text, unit) {
  const code = text.charCodeAt(unit);
  return code >= 0xdc00 && code <= 0xdfff;
}
