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

/** Sentences that the server says in English, and the words for them. @type {[RegExp, string][]} */
const SERVER = [
  [/^This link is damaged or was not made here\.$/, "forged"],
  [/^This link is no longer valid\.$/, "unknown"],
  [/^This link has expired\.$/, "expired"],
  [/^This link was withdrawn\.$/, "revoked"],
  [/^Ask whoever sent it for a new one\.$/, "ask_sender"],
  [/^Somebody here has this name already\.?$/, "name_taken"],
  [/^Choose another\.$/, "another_name"],
  [/^Another lead is settling this item\.$/, "other_lead"],
  [/^Somebody is looking at this now\.$/, "looked_at"],
  [/^Wait until they are through with it\.$/, "wait_through"],
  [/^This was called too often\.$/, "too_often"],
  [/^Try again in (?<n>\d+) s\.$/, "retry_in"],
  [/^The batch of this item is validated, or was accepted\.$/, "batch_closed"],
  [/^Tell the lead what to change\.$/, "tell_lead"],
  [/^The exam has no item in your languages\.$/, "exam_lacks"],
  [/^Ask the lead to name files under \[exam\] path, /, "ask_lead_exam"],
  [/^no item that came by chance is labelled yet$/, "no_labels"],
  [/^no unit was judged$/, "nothing_counted"],
  [/^a reliable interval needs (?<n>\d+) independent texts or queries(?: with labels)?, and the study has (?<of>\d+)$/, "few_items"],
  [/^a reliable interval needs (?<n>\d+) labelled texts or queries with an unsupported unit, and the study has (?<of>\d+) /, "few_with"],
  [/^a reliable interval needs (?<n>\d+) labelled texts or queries with a supported unit, and the study has (?<of>\d+) /, "few_without"],
  [/^(?<n>\d+) handed in without a label, /, "no_gold"],
  [/^(?<n>\d+) picked by a lead /, "picked"],
  [/^(?<n>\d+) of (?<of>\d+) items took less time than reading (?<speed>\S+) words a second$/, "fast"],
  [/^F1 of (?<now>\S+) on (?<n>\d+) items with known answers, below (?<least>\S+)$/, "checks"],
  [/^(?<n>\d+) of (?<of>\d+) items were left out$/, "skips"],
  [/^the newest (?<n>\d+) items took (?<now>\S+) seconds a word, those before (?<old>\S+)$/, "faster"],
  [/^(?<now>\S+) marks an item in the newest (?<n>\d+) items, (?<old>\S+) before$/, "marks"],
  [/^F1 on items with known answers of (?<now>\S+) in the newest (?<n>\d+) items, (?<old>\S+) before$/, "drift_checks"],
  [/^likeness to others of (?<now>\S+) in the newest (?<n>\d+) items, (?<old>\S+) before$/, "drift_others"],
];

/** What the server says, in the interface's words where there are any. @param {string} sentence */
export const translated = (sentence) => {
  for (const [pattern, name] of SERVER) {
    const match = pattern.exec(sentence);
    if (match && has(`server.${name}`)) {
      return t(`server.${name}`, Object.fromEntries(Object.entries(match.groups ?? {}).map(([key, value]) => [key, Number(value)])));
    }
  }
  return sentence;
};

/** The name of a thing of the form (`type`, `label`, `flag`...): the interface's, else its key made readable. */
export const named = (/** @type {string} */ kind, /** @type {string} */ key) =>
  has(`${kind}.${key}`) ? t(`${kind}.${key}`) : key.replaceAll("_", " ");
