// Colours of types that are read on light and on dark pages: the project names one, and it is darkened or lightened
// until what is written or drawn in it stands out (WCAG 2.2, 1.4.3: 4.5 to 1).

const LIGHT = /** @type {const} */ ([0xef, 0xec, 0xe4]); // the darkest of the light page's grounds
const DARK = /** @type {const} */ ([0x27, 0x2b, 0x32]); // the lightest of the dark page's
const WANTED = 4.6;

/** @param {string} hex `#rrggbb` @returns {[number, number, number]} */
const parts = (hex) => {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(hex);
  return match ? [parseInt(match[1], 16), parseInt(match[2], 16), parseInt(match[3], 16)] : [127, 127, 127];
};

/** Relative luminance, from 0 to 1. @param {readonly number[]} rgb */
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

/** The contrast of two colours, from 1 to 21. @param {readonly number[]} one @param {readonly number[]} other */
export const contrast = (one, other) => {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};

/** @param {string} colour @param {readonly number[]} ground @param {number} goal 0 to darken, 255 to lighten */
const readable = (colour, ground, goal) => {
  let rgb = parts(colour);
  for (let share = 0; share < 1 && contrast(rgb, ground) < WANTED; share += 0.04) {
    rgb = /** @type {[number, number, number]} */ (parts(colour).map((value) => Math.round(value + (goal - value) * share)));
  }
  return `#${rgb.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
};

/** A CSS colour for what is written or drawn, on either page. @param {string} colour `#rrggbb` */
export const ink = (colour) => `light-dark(${readable(colour, LIGHT, 0)}, ${readable(colour, DARK, 255)})`;

/**
 * A sign for each type that is no colour: two letters of its name, the first two where no type before it has them.
 * @param {{name: string, shortcut: string}[]} choices @param {(name: string) => string} nameOf @returns {Map<string, string>}
 */
export const letters = (choices, nameOf) => {
  /** @type {Set<string>} */
  const taken = new Set();
  return new Map(choices.map((choice, index) => {
    const [first = "?", ...others] = Array.from(new Intl.Segmenter().segment(nameOf(choice.name)), ({ segment }) => segment)
      .filter((segment) => /[\p{L}\p{N}]/u.test(segment));
    const pairs = others.length ? others.map((other) => first.toLocaleUpperCase() + other) : [first];
    const sign = pairs.find((pair) => !taken.has(pair)) ?? (choice.shortcut || String(index + 1));
    taken.add(sign);
    return [choice.name, sign];
  }));
};
