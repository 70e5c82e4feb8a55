// The interface's own words. They come from the server as one flat table; what a language lacks is English there.

/** @type {Record<string, string>} */
let table = {};
let tag = "en";
/** @type {Intl.PluralRules} */
let plural = new Intl.PluralRules("en");
/** @type {Intl.NumberFormat} */
let numbers = new Intl.NumberFormat("en");

/** Take up a language. @param {{language: string, direction: "ltr" | "rtl", words: Record<string, string>}} found */
export const takeUp = (found) => {
  table = found.words;
  tag = found.language;
  plural = new Intl.PluralRules(tag);
  numbers = new Intl.NumberFormat(tag);
  document.documentElement.lang = tag;
  document.documentElement.dir = found.direction;
};

/** The language of the interface. */
export const interfaceLanguage = () => tag;

/** A number as the language writes it. @param {number} value */
export const number = (value) => numbers.format(value);

/** Whether there are words under a name. @param {string} name */
export const has = (name) => name in table;

/**
 * The words under a name, with `{places}` filled in. With a `count`, the form that goes with it: `name.one`,
 * `name.other` and so on, as the language has them.
 * @param {string} name @param {Record<string, string | number>} [values]
 */
export const t = (name, values = {}) => {
  let words = table[name];
  if (typeof values.count === "number") {
    words = table[`${name}.${plural.select(values.count)}`] ?? table[`${name}.other`] ?? words;
  }
  if (words === undefined) return name;
  return words.replace(/\{(\w+)\}/g, (place, key) => {
    const value = values[key];
    return value === undefined ? place : typeof value === "number" ? number(value) : value;
  });
};

/** The name of a thing of the form (`type`, `label`, `flag`...): the interface's, else its key made readable. */
export const named = (/** @type {string} */ kind, /** @type {string} */ key) =>
  has(`${kind}.${key}`) ? t(`${kind}.${key}`) : key.replaceAll("_", " ");
