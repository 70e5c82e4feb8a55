// The items: filtered, sorted and paged by the server, with an address that says how; and what is done to many at once.

import { calledBy } from "../names.js";
import { named, number, t } from "../texts.js";
import { html, useEffect, useState } from "../view.js";
import { Act, Waiting, useAnswer } from "./requests.js";
import { languageName, moment } from "./figures.js";
import { Link, address, useQuery } from "./routes.js";

const STEP = 50;
const FILTERS = ["search", "language", "person", "state", "type", "gold", "flagged", "stale", "role"];
const STATES = ["free", "open", "returned", "submitted", "accepted", "skipped"];
const ROLES = ["normal", "overlap", "exam", "check", "excluded"];
const HOURS = [8, 24, 72, 168];
const PRIORITIES = { first: 10, normal: 0, last: -10 };

/** The filters of an address, as the server reads them in a body. @param {URLSearchParams} query */
const filterOf = (query) => Object.fromEntries(FILTERS.filter((name) => query.get(name)).map((name) => {
  const value = query.get(name) ?? "";
  return [name, name === "stale" ? Number(value) : ["gold", "flagged"].includes(name) ? value === "true" : value];
}));

/** One thing to choose a filter by. @param {{name: string, label: string, any: string, choices: [string, string][], query: URLSearchParams, change: (changes: any) => void}} props */
const Choose = ({ name, label, any, choices, query, change }) => html`<label class="field"><span>${label}</span>
  <select name=${name} value=${query.get(name) ?? ""} onChange=${(/** @type {any} */ event) => change({ [name]: event.target.value })}>
    <option value="">${any}</option>
    ${choices.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
  </select></label>`;

const Filters = (/** @type {any} */ { overview, people, form, query, change }) => {
  const any = t("lead.any");
  const languages = overview.languages.map((/** @type {any} */ row) => row.language).filter(Boolean);
  const types = [...form.types, ...form.unit_labels, ...form.labels].map((choice) =>
    [choice.name, named(form.labels.includes(choice) ? "label" : "type", choice.name)]);
  const choose = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any[]} */ choices) =>
    html`<${Choose} key=${name} ...${{ name, label, any, choices, query, change }} />`;
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label class="field"><span>${t("lead.search")}</span><input type="search" name="search" value=${query.get("search") ?? ""} maxlength="200" dir="auto"
      onChange=${(/** @type {any} */ event) => change({ search: event.target.value.trim() })} /></label>
    ${languages.length > 1 ? choose("language", t("lead.language"), languages.map((/** @type {string} */ tag) => [tag, languageName(tag)])) : null}
    ${choose("person", t("lead.person"), [...people.keys()].map((id) => [id, calledBy(people, id)]))}
    ${choose("state", t("lead.state"), STATES.map((state) => [state, t(`state.${state}`)]))}
    ${choose("type", t("lead.marked_as"), types)}
    ${choose("gold", t("lead.gold"), [["true", t("lead.yes")], ["false", t("lead.no")]])}
    ${choose("stale", t("lead.unsaved_for"), HOURS.map((n) => [String(n), t("lead.more_hours", { n })]))}
    ${choose("role", t("lead.item_role"), ROLES.map((role) => [role, t(`lead.item_role.${role}`)]))}
    <label class="tick"><input type="checkbox" name="flagged" checked=${query.get("flagged") === "true"}
      onChange=${(/** @type {any} */ event) => change({ flagged: event.target.checked ? "true" : "" })} /><span>${t("lead.with_flags")}</span></label>
    ${FILTERS.some((name) => query.get(name)) ? html`<button type="button" class="second"
      onClick=${() => change(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>${t("lead.clear_filters")}</button>` : null}
  </form>`;
};

/** What is done to the chosen items. @param {any} props */
const Bulk = ({ chosen, total, where, people, onAll, onDone }) => {
  const [person, setPerson] = useState("");
  const [priority, setPriority] = useState("first");
  const [wanted, setWanted] = useState(2);
  const able = [...people.values()].filter((one) => one.role === "annotator" && one.stage === "work");
  const items = chosen === "all" ? null : [...chosen];
  const many = items ? items.length : total;
  const act = (/** @type {string} */ action, /** @type {any} */ more = {}, /** @type {any} */ props = {}) => html`<${Act} key=${action}
    path="/api/lead/items" body=${{ action, items, where, ...more }} label=${t(`lead.${action}`)} onDone=${onDone} ...${props} />`;
  return html`<div class="bulk" role="group" aria-label=${t("lead.chosen", { n: many })}>
    <b>${t("lead.chosen", { n: many })}</b>
    ${items && total > items.length ? html`<button type="button" class="second" onClick=${onAll}>${t("lead.choose_all", { n: total })}</button>` : null}
    <span class="row"><select aria-label=${t("lead.person")} value=${person} onChange=${(/** @type {any} */ event) => setPerson(event.target.value)}>
        <option value="">${t("lead.person")}</option>
        ${able.map((one) => html`<option key=${one.id} value=${one.id}>${calledBy(people, one.id)}</option>`)}
      </select>${act("assign", { person }, { disabled: !person })}</span>
    <span class="row"><select aria-label=${t("lead.priority")} value=${priority} onChange=${(/** @type {any} */ event) => setPriority(event.target.value)}>
        ${Object.keys(PRIORITIES).map((name) => html`<option key=${name} value=${name}>${t(`lead.priority.${name}`)}</option>`)}
      </select>${act("priority", { value: PRIORITIES[/** @type {"first"} */ (priority)] })}</span>
    <span class="row"><input type="number" min="1" max="100" value=${wanted} aria-label=${t("lead.wanted")}
        onInput=${(/** @type {any} */ event) => setWanted(Math.max(1, Math.min(100, Number(event.target.value) || 1)))} />${act("wanted", { value: wanted })}</span>
    ${act("release", {}, { confirm: t("lead.release_sure") })}
    ${where.role === "excluded" ? act("include") : act("exclude", {}, { confirm: t("lead.exclude_sure") })}
  </div>`;
};

const COLUMNS = [
  ["item", "key"], ["language", "language"], ["item_role", ""], ["who", ""], ["handed_in", "done"], ["priority", "priority"],
  ["gold", ""], ["changed", "changed"],
];

const Heads = (/** @type {any} */ { query, change }) => {
  const [by, down] = [query.get("sort") ?? "", query.get("descending") === "true"];
  return COLUMNS.map(([name, sort]) => html`<th key=${name} scope="col" class=${name === "handed_in" ? "n" : ""}
    aria-sort=${sort && sort === by ? (down ? "descending" : "ascending") : undefined}>
    ${sort ? html`<button type="button" class="sort" onClick=${() => change({ sort, descending: (by === sort ? !down : !["key", "language"].includes(sort)) ? "true" : "" })}>
      ${t(`lead.${name}`)}<span aria-hidden="true">${by === sort ? (down ? " ↓" : " ↑") : ""}</span></button>` : t(`lead.${name}`)}</th>`);
};

const priorityName = (/** @type {number} */ value) => t(`lead.priority.${value > 0 ? "first" : value < 0 ? "last" : "normal"}`);

const Row = (/** @type {any} */ { item, people, chosen, onChoose }) => html`<tr>
  <td><input type="checkbox" checked=${chosen} aria-label=${t("lead.choose_item", { key: item.key })} onChange=${() => onChoose(item.id)} /></td>
  <th scope="row"><${Link} to=${address("items", item.id)}><bdi>${item.key}</bdi><//>
    <small class="snippet" dir=${item.direction} lang=${item.language ?? undefined}>${item.snippet}</small></th>
  <td>${languageName(item.language)}</td><td>${t(`lead.item_role.${item.role}`)}</td>
  <td>${item.holders.map((/** @type {any} */ one) => html`<span key=${`${one.by} ${one.purpose}`} class="line"><bdi>${calledBy(people, one.by)}</bdi>
    <small>${one.purpose === "annotate" ? "" : `${t(`purpose.${one.purpose}`)} · `}${t(`state.${one.state}`)}</small></span>`)}</td>
  <td class="n">${item.wanted ? `${number(item.done)} / ${number(item.wanted)}` : number(item.done)}</td>
  <td>${item.priority ? priorityName(item.priority) : "–"}</td><td>${item.has_gold ? t("lead.yes") : "–"}</td><td>${moment(item.changed_at)}</td>
</tr>`;

/** What was done to how many, and why not to the others. @param {{done: any}} props */
const Done = ({ done }) => html`<p class="notice good" role="status">${t("lead.items_changed", { n: done.changed })}
  ${Object.entries(done.unchanged).map(([reason, n]) => html` <span key=${reason}>${t(`lead.unchanged.${reason}`, { n: /** @type {number} */ (n) })}</span>`)}</p>`;

const Pages = (/** @type {any} */ { offset, total, busy, change }) => total <= STEP ? null : html`<p class="row pages">
  <button type="button" class="second" disabled=${busy || !offset} onClick=${() => change({ offset: String(Math.max(0, offset - STEP)) })}>${t("lead.previous")}</button>
  <span>${t("lead.range", { from: offset + 1, to: Math.min(total, offset + STEP), all: total })}</span>
  <button type="button" class="second" disabled=${busy || offset + STEP >= total} onClick=${() => change({ offset: String(offset + STEP) })}>${t("lead.further")}</button></p>`;

/** @param {{overview: any, people: Map<string, any>, form: any, refresh: () => Promise<void>}} props */
export const Items = ({ overview, people, form, refresh }) => {
  const [query, put] = useQuery();
  const [chosen, setChosen] = useState(/** @type {Set<number> | "all"} */ (new Set()));
  const [done, setDone] = useState(/** @type {any} */ (null));
  const change = (/** @type {any} */ changes) => put({ offset: "", ...changes });
  const offset = Number(query.get("offset")) || 0;
  const asked = new URLSearchParams([...query].filter(([name]) => [...FILTERS, "sort", "descending", "offset"].includes(name)));
  asked.set("limit", String(STEP));
  const { answer, failure, busy, again } = useAnswer(`/api/lead/items?${asked}`);
  useEffect(() => setChosen(new Set()), [query.toString()]);
  const ids = answer?.items.map((/** @type {any} */ item) => item.id) ?? [];
  const isChosen = (/** @type {number} */ id) => chosen === "all" || chosen.has(id);
  const choose = (/** @type {number} */ id) => {
    const next = new Set(chosen === "all" ? ids : chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const all = ids.length > 0 && ids.every(isChosen);
  const onDone = async (/** @type {any} */ result) => {
    setDone(result);
    setChosen(new Set());
    await Promise.all([again(), refresh()]);
  };
  return html`
    <div class="page-head"><h2>${t("lead.items")}</h2></div>
    <${Filters} ...${{ overview, people, form, query, change }} />
    ${done ? html`<${Done} done=${done} />` : null}
    ${failure || !answer ? html`<${Waiting} failure=${failure} />` : html`
      <p class="summary" role="status">${t("lead.items_count", { count: answer.total })}</p>
      <div class="table-box" tabindex="0" role="region" aria-label=${t("lead.items")}><table class="items">
        <thead><tr><th scope="col"><input type="checkbox" checked=${all} aria-label=${t("lead.choose_page")}
          onChange=${() => setChosen(all ? new Set() : new Set(ids))} /></th><${Heads} query=${query} change=${change} /></tr></thead>
        <tbody>${answer.items.map((/** @type {any} */ item) => html`<${Row} key=${item.id} item=${item} people=${people} chosen=${isChosen(item.id)} onChoose=${choose} />`)}</tbody>
      </table></div>
      ${chosen === "all" || chosen.size ? html`<${Bulk} total=${answer.total} where=${filterOf(query)} onAll=${() => setChosen("all")} ...${{ chosen, people, onDone }} />` : null}
      <${Pages} total=${answer.total} ...${{ offset, busy, change }} />`}`;
};
