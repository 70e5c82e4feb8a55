// Figures as people read them: shares, counts, times, intervals; a dash with its reason where there is none.

import { interfaceLanguage, number, t } from "../texts.js";
import { html } from "../view.js";

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

const format = (/** @type {Intl.NumberFormatOptions} */ options) => {
  const key = interfaceLanguage() + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(interfaceLanguage(), options));
  return /** @type {Intl.NumberFormat} */ (formats.get(key));
};

/** A share as a percentage. @param {number | null | undefined} value */
export const share = (value) =>
  value === null || value === undefined ? "–" : format({ style: "percent", maximumFractionDigits: 0 }).format(value);

/** A number with some places. @param {number | null | undefined} value @param {number} [places] */
export const decimal = (value, places = 2) =>
  value === null || value === undefined
    ? "–"
    : format({ minimumFractionDigits: places, maximumFractionDigits: places }).format(value);

/** A count. @param {number | null | undefined} value */
export const count = (value) => (value === null || value === undefined ? "–" : number(value));

/** Seconds as hours and minutes. @param {number | null | undefined} seconds */
export const time = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return t("lead.seconds", { n: decimal(seconds, 0) });
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return t("lead.minutes", { n: number(minutes) });
  return t("lead.hours", { h: number(Math.floor(minutes / 60)), m: number(minutes % 60) });
};

/** Money. @param {number | null | undefined} amount @param {string | null} currency */
export const money = (amount, currency) =>
  amount === null || amount === undefined || !currency ? "–" : format({ style: "currency", currency }).format(amount);

/** A day and an hour. @param {string | null | undefined} at */
export const moment = (at) =>
  at ? new Intl.DateTimeFormat(interfaceLanguage(), { dateStyle: "medium", timeStyle: "short" }).format(new Date(at)) : "–";

/** A language's name in the interface's language. @param {string | null | undefined} tag */
export const languageName = (tag) => {
  if (!tag) return t("lead.no_language");
  if (tag === "all") return t("lead.all_languages");
  try {
    return new Intl.DisplayNames([interfaceLanguage()], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
};

/** A figure with its interval, its bar, and what it was counted on; its reason where there is none. @param {any} props */
export const Figure = ({ value, low, high, reason, texts, fewest = 0, low_bound = 0 }) => {
  if (value === null || value === undefined) {
    return html`<span class="figure none" title=${reason ?? ""}>–<span class="unseen"> ${reason ?? t("lead.none")}</span></span>`;
  }
  const at = (/** @type {number} */ place) => `${Math.max(0, Math.min(1, (place - low_bound) / (1 - low_bound))) * 100}%`;
  const has = typeof low === "number" && typeof high === "number";
  return html`<span class="figure">
    <b>${decimal(value)}</b>
    ${has && html`<small><span class="unseen">${t("lead.interval")} </span><bdi dir="ltr">[${decimal(low)}, ${decimal(high)}]</bdi></small>`}
    ${!has && texts < fewest && html`<small title=${t("lead.few_about", { n: fewest })}>${t("lead.too_few_items")}</small>`}
    <span class="figure-bar" aria-hidden="true">
      <i style=${{ width: at(value) }}></i>
      ${has && html`<u style=${{ insetInlineStart: at(low), width: `calc(${at(high)} - ${at(low)})` }}></u>`}
    </span>
    ${texts !== undefined && html`<small>${t("lead.items_count", { count: texts })}</small>`}
  </span>`;
};

/** Parts of a whole as one bar; their names stand once, at the head of the table. @param {{parts: {name: string, label: string, count: number}[], label: string}} props */
export const Parts = ({ parts, label }) => {
  const total = parts.reduce((sum, part) => sum + part.count, 0);
  const shown = parts.filter((part) => part.count > 0);
  return html`<div class="parts-bar" role="img" aria-label=${`${label}: ${shown.map((part) => `${part.label} ${number(part.count)}`).join(", ") || "0"}`}>
      ${shown.map((part) => html`<i key=${part.name} class=${`state-${part.name}`} style=${{ width: `${(part.count / total) * 100}%` }}></i>`)}
    </div>`;
};
