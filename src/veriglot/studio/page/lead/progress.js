// How far the work is: by language, and what waits for whom.

import { interfaceLanguage, number, t } from "../texts.js";
import { html, useState } from "../view.js";
import { Parts, count, languageName, money, share, time } from "./figures.js";
import { AsOf } from "./requests.js";
import { Link, address } from "./routes.js";

const STATES = ["accepted", "submitted", "open", "returned", "skipped", "withdrawn"];
const PURPOSES = ["annotate", "review", "adjudicate", "validate", "exam"];

const Tile = (/** @type {any} */ { label, value, note }) => html`<div class="tile"><dt>${label}</dt><dd>${value}
  ${note ? html`<small>${note}</small>` : null}</dd></div>`;

/** Items of a language: gold, gold from a single annotation, done, begun, not begun; each counted once. @param {any} row */
const partsOf = (row) => {
  const settled = Math.min(row.gold, row.done);
  const single = Math.min(row.single, row.done - settled);
  const touched = Math.max(row.begun, row.done + row.skipped);
  return [
    { name: "accepted", label: t("lead.gold"), count: settled },
    { name: "single", label: t("lead.items_single"), count: single },
    { name: "submitted", label: t("lead.items_done"), count: row.done - settled - single },
    { name: "open", label: t("lead.items_begun"), count: touched - row.done - row.skipped },
    { name: "skipped", label: t("lead.items_skipped"), count: row.skipped },
    { name: "rest", label: t("lead.items_rest"), count: Math.max(0, row.items - touched) },
  ];
};

const Queue = (/** @type {any} */ { queue }) => {
  const at = (/** @type {string} */ purpose, /** @type {string} */ state) => queue[purpose]?.[state] ?? 0;
  const purposes = PURPOSES.filter((purpose) => STATES.some((state) => at(purpose, state)));
  if (!purposes.length) return html`<p>${t("lead.nothing_given")}</p>`;
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("lead.queue")}><table>
    <thead><tr><th scope="col">${t("lead.purpose")}</th>
      ${STATES.map((state) => html`<th key=${state} scope="col" class="n"><i class=${`dot state-${state}`} aria-hidden="true"></i>${t(`state.${state}`)}</th>`)}</tr></thead>
    <tbody>${purposes.map((purpose) => html`<tr key=${purpose}><th scope="row">${t(`purpose.${purpose}`)}</th>
      ${STATES.map((state) => html`<td key=${state} class=${`n${at(purpose, state) ? "" : " zero"}`}>${count(at(purpose, state))}</td>`)}</tr>`)}</tbody>
  </table></div>`;
};

/** A column of numbers by its name, and what stands there. @typedef {{name: string, label: string, dot?: boolean, of: (row: any) => any}} Column */

/** Languages with their parts, sorted by any column; the heads are the legend of the bars. @param {{rows: any[]}} props */
const Languages = ({ rows }) => {
  const [order, setOrder] = useState({ by: "language", up: true });
  const parts = new Map(rows.map((row) => [row, new Map(partsOf(row).map((part) => [part.name, part]))]));
  const named = new Map(rows.map((row) => [row, languageName(row.language)]));
  const columns = /** @type {Column[]} */ ([
    { name: "language", label: t("lead.language"), of: (row) => named.get(row) },
    { name: "items", label: t("lead.items"), of: (row) => row.items },
    { name: "share", label: t("lead.done_share"), of: (row) => (row.items ? row.done / row.items : 0) },
    ...partsOf(rows[0]).map((part) => ({ name: part.name, label: part.label, dot: true, of: (/** @type {any} */ row) => parts.get(row)?.get(part.name)?.count ?? 0 })),
    { name: "annotators", label: t("lead.annotators"), of: (row) => row.annotators },
  ]);
  const { of } = columns.find((column) => column.name === order.by) ?? columns[0];
  const sorted = [...rows].sort((a, b) => {
    const [one, other] = [of(a), of(b)];
    const way = typeof one === "string" ? one.localeCompare(other, interfaceLanguage()) : one - other;
    return order.up ? way : -way;
  });
  const shown = (/** @type {Column} */ column, /** @type {any} */ row) => column.name === "share"
    ? html`<span class="share"><${Parts} parts=${[...parts.get(row)?.values() ?? []]} label=${named.get(row) ?? ""} />${share(column.of(row))}</span>` : count(column.of(row));
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("lead.by_language")}><table class="by-language">
    <thead><tr>${columns.map(({ name, label, dot }) => html`<th key=${name} scope="col" class=${name === "language" || name === "share" ? "" : "n"}
      aria-sort=${order.by === name ? (order.up ? "ascending" : "descending") : undefined}>
      <button type="button" class="sort" onClick=${() => setOrder({ by: name, up: order.by === name ? !order.up : name === "language" })}>
        ${dot ? html`<i class=${`dot state-${name}`} aria-hidden="true"></i>` : null}${label}<span aria-hidden="true">${order.by === name ? (order.up ? " ↑" : " ↓") : ""}</span></button></th>`)}</tr></thead>
    <tbody>${sorted.map((row) => html`<tr key=${row.language}><th scope="row">${named.get(row)}</th>
      ${columns.slice(1).map((column) => html`<td key=${column.name} class=${column.name === "share" ? "" : `n${column.of(row) ? "" : " zero"}`}>${shown(column, row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
};

/** @param {{overview: any}} props */
export const Progress = ({ overview }) => {
  const rows = overview.languages;
  const sum = (/** @type {string} */ name) => rows.reduce((/** @type {number} */ all, /** @type {any} */ row) => all + row[name], 0);
  const total = { items: sum("items"), begun: sum("begun"), done: sum("done"), gold: sum("gold"), single: sum("single"), wanted: sum("wanted"), made: sum("made") };
  const flagged = overview.people.filter((/** @type {any} */ one) => one.pace.flags.length);
  return html`
    <div class="page-head"><h2>${t("lead.progress")}</h2><p class="row"><${AsOf} answer=${overview} /></p></div>
    <dl class="tiles">
      <${Tile} label=${t("lead.items_done")} value=${`${number(total.done)} / ${number(total.items)}`} note=${total.items ? share(total.done / total.items) : ""} />
      <${Tile} label=${t("lead.annotations")} value=${`${number(total.made)} / ${number(total.wanted)}`} note=${t("lead.annotations_note")} />
      <${Tile} label=${t("lead.gold")} value=${number(total.gold)} note=${total.single ? t("lead.single_note", { count: total.single }) : ""} />
      <${Tile} label=${t("lead.to_settle")} value=${number(overview.disagreements)} />
      <${Tile} label=${t("lead.people")} value=${number(overview.people.filter((/** @type {any} */ one) => one.stage === "work").length)} note=${t("lead.at_work")} />
      <${Tile} label=${t("lead.time")} value=${time(overview.seconds)} />
      ${overview.cost === null || overview.cost === undefined ? null : html`<${Tile} label=${t("lead.cost")} value=${money(overview.cost, overview.currency)} />`}
    </dl>
    ${flagged.length ? html`<p class="notice warn">${t("lead.flagged", { count: flagged.length })} <${Link} to=${address("people")}>${t("lead.see_people")}<//></p>` : null}
    ${overview.notes.length ? html`<ul class="notice warn" lang="en" dir="ltr">${overview.notes.map((/** @type {string} */ note) => html`<li key=${note}>${note}</li>`)}</ul>` : null}
    <section><h3>${t("lead.by_language")}</h3>
      ${rows.length ? html`<${Languages} rows=${rows} />` : html`<p>${t("lead.no_items")}</p>`}
    </section>
    <section><h3>${t("lead.queue")}</h3><${Queue} queue=${overview.queue} /></section>`;
};
