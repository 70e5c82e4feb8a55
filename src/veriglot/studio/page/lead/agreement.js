// How well people agree: with each other, and with the silver labels; by language, with intervals.

import { calledBy } from "../names.js";
import { has, named, number, t } from "../texts.js";
import { html, useMemo, useState } from "../view.js";
import { AsOf, Waiting, useAnswer } from "./requests.js";
import { Figure, languageName, share } from "./figures.js";

const FRESH = 30; // seconds until the figures are asked for again
const ALL = "all";
const SILVER = "silver";
const MEASURES = ["kappa", "pi", "alpha", "span_f1", "span_f1_exact", "gamma"];

/** @typedef {{among: string, measure: string, scope: string, language: string, between: [string, string], 
 *   value: number | null, low: number | null, high: number | null, texts: number, reason: string | null}} Row */

const isMean = (/** @type {Row} */ row) => row.between[0] === ALL && row.between[1] === ALL;
const column = (/** @type {Row} */ row) => `${row.measure} ${row.scope}`;

/** Columns of rows, in the order that people know them in. @param {Row[]} rows */
const columnsOf = (rows) =>
  MEASURES.flatMap((measure) => ["binary", "typed"].map((scope) => `${measure} ${scope}`))
    .filter((name) => rows.some((row) => column(row) === name));

/** A table of figures. @param {{rows: Row[], heads: {key: string, label: any}[], keyOf: (row: Row) => string, caption: string, corner: string, fewest: number}} props */
const Grid = ({ rows, heads, keyOf, caption, corner, fewest }) => {
  const columns = columnsOf(rows);
  const found = new Map(rows.map((row) => [`${keyOf(row)} ${column(row)}`, row]));
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${caption}><table class="figures">
    <caption>${caption}</caption>
    <thead><tr><th scope="col">${corner}</th>
      ${columns.map((name) => {
        const [measure, scope] = name.split(" ");
        return html`<th key=${name} scope="col" title=${t(`lead.measure.${measure}.about`)}>${t(`lead.measure.${measure}`)}
          <small>${t(`lead.scope.${scope}`)}</small></th>`;
      })}
    </tr></thead>
    <tbody>${heads.map(({ key, label }) => html`<tr key=${key}>
      <th scope="row">${label}</th>
      ${columns.map((name) => {
        const row = found.get(`${key} ${name}`);
        return html`<td key=${name}>${row ? html`<${Figure} ...${row} fewest=${fewest} />` : "–"}</td>`;
      })}
    </tr>`)}</tbody>
  </table></div>`;
};

const typeName = (/** @type {string} */ name) => (name ? named(has(`label.${name}`) ? "label" : "type", name) : t("lead.unmarked"));

/** Types that people chose for the same units: of what one person marked as the row's type, what the other chose. @param {{rows: {first: string, second: string, units: number}[]}} props */
const Confused = ({ rows }) => {
  const names = [...new Set(rows.flatMap(({ first, second }) => [first, second]))].sort((a, b) => Number(!a) - Number(!b) || a.localeCompare(b));
  const units = new Map(rows.flatMap(({ first, second, units: n }) => /** @type {[string, number][]} */ (first === second
    ? [[`${first} ${second}`, 2 * n]] : [[`${first} ${second}`, n], [`${second} ${first}`, n]]))); // each of the two is once the row
  const at = (/** @type {string} */ one, /** @type {string} */ other) => units.get(`${one} ${other}`) ?? 0;
  return html`<section><h3>${t("lead.confusion")}</h3><p class="fine">${t("lead.confusion_about")}</p>
    <div class="table-box" tabindex="0" role="region" aria-label=${t("lead.confusion")}><table class="confusion">
      <thead><tr><td></td>${names.map((name) => html`<th key=${name} scope="col" class="n">${typeName(name)}</th>`)}</tr></thead>
      <tbody>${names.filter(Boolean).map((name) => {
        const total = names.reduce((sum, other) => sum + at(name, other), 0);
        return html`<tr key=${name}><th scope="row">${typeName(name)}</th>${names.map((other) => html`<td key=${other} class=${`n${at(name, other) ? "" : " zero"}`}
          style=${{ "--share": `${Math.round(40 * at(name, other) / total)}%` }}>${share(at(name, other) / total)}<small>${number(at(name, other))}</small></td>`)}</tr>`;
      })}</tbody>
    </table></div></section>`;
};

/** @param {{report: any, people: Map<string, any>}} props */
const Report = ({ report, people }) => {
  const [language, setLanguage] = useState(ALL);
  const rows = /** @type {Row[]} */ (report.lines);
  const languages = useMemo(() => [...new Set(rows.map((row) => row.language))], [rows]);
  const shown = languages.includes(language) ? language : languages.includes(ALL) ? ALL : languages[0];
  const name = (/** @type {string} */ id) => (id === SILVER ? t("lead.silver") : calledBy(people, id));
  const means = (/** @type {string} */ among) => rows.filter((row) => row.among === among && isMean(row));
  const heads = languages.map((tag) => ({ key: tag, label: languageName(tag) }));
  const pairs = rows.filter((row) => !isMean(row) && row.language === shown);
  const pairHeads = (/** @type {Row[]} */ some) =>
    [...new Map(some.map((row) => [row.between.join(" "), row.between])).entries()]
      .map(([key, [one, other]]) => ({ key, label: html`<bdi>${name(one)}</bdi> · <bdi>${name(other)}</bdi>` }));
  const ofPeople = pairs.filter((row) => row.among === "people");
  const ofSilver = pairs.filter((row) => row.among === "silver");
  const best = Object.entries(report.best ?? {});
  return html`
    <p class="summary">${t("lead.agreement_of", { count: report.shared })} ${t(`lead.unit.${report.unit}`)}</p>
    ${rows.length ? null : html`<p class="notice">${t("lead.nothing_shared")}</p>`}
    ${means("people").length ? html`<${Grid} rows=${means("people")} heads=${heads} keyOf=${(/** @type {Row} */ row) => row.language}
      caption=${t("lead.among_people")} corner=${t("lead.language")} fewest=${report.fewest_texts} />` : null}
    ${means("silver").length ? html`<${Grid} rows=${means("silver")} heads=${heads} keyOf=${(/** @type {Row} */ row) => row.language}
      caption=${t("lead.with_silver")} corner=${t("lead.language")} fewest=${report.fewest_texts} />` : null}
    ${means("silver").length ? html`<section class="best"><h3>${t("lead.best")}</h3>
      <p class="summary">${t(best.length ? "lead.best.about" : "lead.best.too_few", { n: report.fewest_texts })}</p>
      <ul class="plain">${best.map(([tag, row]) => html`<li key=${tag}>
        ${languageName(tag)}: <b dir="auto">${name(/** @type {Row} */ (row).between[0])}</b> <${Figure} ...${row} fewest=${report.fewest_texts} /></li>`)}</ul></section>` : null}
    ${ofPeople.length || ofSilver.length ? html`<section>
      <h3>${t("lead.pair_by_pair")}</h3>
      ${languages.length > 1 ? html`<label class="field inline"><span>${t("lead.language")}</span>
        <select value=${shown} onChange=${(/** @type {any} */ event) => setLanguage(event.target.value)}>
          ${languages.map((tag) => html`<option key=${tag} value=${tag}>${languageName(tag)}</option>`)}
        </select></label>` : null}
      ${ofPeople.length ? html`<${Grid} rows=${ofPeople} heads=${pairHeads(ofPeople)} keyOf=${(/** @type {Row} */ row) => row.between.join(" ")}
        caption=${t("lead.pairs")} corner=${t("lead.between")} fewest=${report.fewest_texts} />` : null}
      ${ofSilver.length ? html`<${Grid} rows=${ofSilver} heads=${pairHeads(ofSilver)} keyOf=${(/** @type {Row} */ row) => row.between.join(" ")}
        caption=${t("lead.each_with_silver")} corner=${t("lead.between")} fewest=${report.fewest_texts} />` : null}
    </section>` : null}
    ${report.confusion.length ? html`<${Confused} rows=${report.confusion} />` : null}
    <details class="how"><summary>${t("lead.how_computed")}</summary>
      <p>${t("lead.how_agreement")}</p></details>`;
};

/** @param {{people: Map<string, any>}} props */
export const Agreement = ({ people }) => {
  const [gamma, setGamma] = useState(false);
  const { answer, failure, busy, pending, again } = useAnswer(`/api/lead/agreement${gamma ? "?gamma=true" : ""}`, FRESH);
  const computing = gamma && pending; // the figures without gamma stay in sight meanwhile
  return html`
    <div class="page-head"><h2>${t("lead.agreement")}</h2><p class="row"><${AsOf} answer=${answer} />
      ${gamma ? null : html`<button type="button" class="second" onClick=${() => setGamma(true)}>${t("lead.with_gamma")}</button>`}
      <button type="button" class="second" disabled=${busy} onClick=${again}>${t("lead.refresh")}</button>
    </p></div>
    ${!answer || computing || failure ? html`<${Waiting} failure=${failure} pending=${pending}
      words=${gamma ? "lead.gamma_takes_time" : "rest.loading"} onCancel=${computing ? () => setGamma(false) : undefined} />` : null}
    ${answer ? html`<${Report} report=${answer} people=${people} />` : null}`;
};
