// All items, and the whole history of one: who did what, when, and what their layer said then.

import { calledBy } from "../names.js";
import { number, t } from "../texts.js";
import { html, useState } from "../view.js";
import { Waiting, useAnswer } from "./requests.js";
import { languageName, moment, time } from "./figures.js";
import { Marked } from "./annotated_text.js";
import { Answer } from "./conversations.js";
import { Link, address } from "./routes.js";

const STEP = 50;

/** @param {{overview: any}} props */
export const Items = ({ overview }) => {
  const [search, setSearch] = useState("");
  const [language, setLanguage] = useState("");
  const [limit, setLimit] = useState(STEP);
  const asked = new URLSearchParams({ limit: String(limit), ...(language && { language }), ...(search && { search }) });
  const { answer, failure, busy } = useAnswer(`/api/lead/items?${asked}`);
  const languages = overview.languages.map((/** @type {any} */ row) => row.language).filter(Boolean);
  return html`
    <div class="page-head"><h2>${t("lead.items")}</h2><p class="row">
      <label class="field inline"><span>${t("lead.search")}</span><input type="search" value=${search} maxlength="200" dir="auto"
        onChange=${(/** @type {any} */ event) => setSearch(event.target.value.trim())} /></label>
      ${languages.length > 1 ? html`<label class="field inline"><span>${t("lead.language")}</span>
        <select value=${language} onChange=${(/** @type {any} */ event) => setLanguage(event.target.value)}>
          <option value="">${t("lead.all_languages")}</option>
          ${languages.map((/** @type {string} */ tag) => html`<option key=${tag} value=${tag}>${languageName(tag)}</option>`)}
        </select></label>` : null}
    </p></div>
    ${!answer ? html`<${Waiting} failure=${failure} />` : html`
      <p class="summary" role="status">${t("lead.items_count", { count: answer.total })}</p>
      <div class="table-box" tabindex="0" role="region" aria-label=${t("lead.items")}><table>
        <thead><tr>${["item", "language", "item_role", "handed_in", "gold"].map((name) => html`<th key=${name} scope="col" class=${name === "handed_in" ? "n" : ""}>${t(`lead.${name}`)}</th>`)}</tr></thead>
        <tbody>${answer.items.map((/** @type {any} */ item) => html`<tr key=${item.id}>
          <th scope="row"><${Link} to=${address("items", item.id)}><bdi>${item.key}</bdi><//></th>
          <td>${languageName(item.language)}</td><td>${t(`lead.item_role.${item.role}`)}</td>
          <td class="n">${number(item.done)}</td><td>${item.has_gold ? t("lead.yes") : "–"}</td></tr>`)}</tbody>
      </table></div>
      ${answer.items.length < answer.total ? html`<p><button type="button" class="second" disabled=${busy}
        onClick=${() => setLimit(limit + STEP)}>${t("lead.more", { n: number(Math.min(STEP, answer.total - answer.items.length)) })}</button></p>` : null}`}`;
};

/** A layer on the text of an item. @param {any} props */
const Shown = ({ item, layer, form, from }) =>
  html`<${Marked} text=${item.response} direction=${item.direction} language=${item.language} layer=${layer} form=${form} from=${from} />`;

/** Whose a mark of gold is: those who gave it, or that whoever settled it added or changed it. @param {any} found @param {Map<string, any>} people */
const givers = ({ assignments, origin }, people) => {
  const names = new Map(assignments.map((/** @type {any} */ one) => [one.id, calledBy(people, one.by)]));
  const sources = new Map((origin?.sources ?? []).map((/** @type {any} */ one) => [`${one.start}-${one.end}-${one.type}`, one]));
  return (/** @type {{start: number, end: number, name: string}} */ mark) => {
    const source = sources.get(`${mark.start}-${mark.end}-${mark.name}`);
    if (!source) return "";
    if (!source.assignments.length) return t("lead.added");
    const by = source.assignments.map((/** @type {number} */ id) => names.get(id) ?? t("person.unknown")).join(", ");
    return source.changed ? t("lead.changed_from", { by }) : by;
  };
};

const Event = (/** @type {any} */ { one, found, form, people }) => {
  const { by, at, kind, layer, payload } = one;
  const said = payload?.comment ?? payload?.reason ?? "";
  return html`<li class=${`event event-${kind}`}>
    <p><time datetime=${at}>${moment(at)}</time>
      <b>${kind in KINDS ? t(`lead.event.${kind}`) : kind.replaceAll("_", " ")}</b>
      <bdi>${by ? calledBy(people, by) : t("lead.by_rule")}</bdi>
      ${one.seconds ? html`<small>${time(one.seconds)}</small>` : null}</p>
    ${said ? html`<p class="event-said" dir="auto">${said}</p>` : null}
    ${layer && kind !== "assigned" ? html`<details><summary>${t("lead.layer_then", { count: (layer.spans ?? []).length + (layer.units ?? []).length })}</summary>
      <${Shown} item=${found.item} layer=${layer} form=${form} /></details>` : null}
  </li>`;
};

const KINDS = Object.fromEntries(["imported", "assigned", "opened", "comment", "save", "submit", "skip", "reopen", "confirm", "correct", "return",
  "conflict", "accepted", "withdrawn", "gold"].map((kind) => [kind, true]));

/** @param {{id: string, form: any, people: Map<string, any>}} props */
export const ItemHistory = ({ id, form, people }) => {
  const { answer: found, failure, again } = useAnswer(`/api/lead/items/${encodeURIComponent(id)}/history`);
  if (!found) return html`<${Waiting} failure=${failure} />`;
  const known = ["gold", "silver"].filter((name) => found[name]);
  return html`
    <p><${Link} to=${address("items")}>${t("lead.all_items")}<//></p>
    <h2><bdi>${found.key}</bdi> <small>${languageName(found.item.language)}</small></h2>
    ${found.item.question ? html`<p dir=${found.item.question_direction}><b>${found.item.question}</b></p>` : null}
    <div class="sides">
      ${known.map((name) => html`<section key=${name} class="side known"><h4>${t(`lead.${name}`)}
          ${name === "gold" && found.origin ? html`<small><bdi>${found.origin.by ? calledBy(people, found.origin.by) : t("lead.by_rule")}</bdi> · ${moment(found.origin.at)}</small>` : null}</h4>
        <${Shown} item=${found.item} layer=${found[name]} form=${form} from=${name === "gold" ? givers(found, people) : undefined} /></section>`)}
      ${found.assignments.map((/** @type {any} */ one) => html`<section key=${one.id} class="side">
        <h4><bdi>${calledBy(people, one.by)}</bdi>
          <small>${t(`lead.purpose.${one.purpose}`)} · ${t(`lead.state.${one.state}`)} · ${time(one.seconds)}</small></h4>
        <${Shown} item=${found.item} layer=${one.layer} form=${form} />
        ${one.message ? html`<p class="event-said" dir="auto">${one.message}</p>` : null}
        ${one.purpose === "annotate" ? html`<details class="conversation"><summary>${t("conversation.write")}</summary><${Answer} assignment=${one.id} onDone=${again} /></details>` : null}
      </section>`)}
    </div>
    <h3>${t("lead.history")}</h3>
    ${found.events_left_out ? html`<p class="notice">${t("lead.events_left_out", { count: found.events_left_out })}</p>` : null}
    <ol class="events">${found.events.map((/** @type {any} */ one) => html`<${Event} key=${one.id} ...${{ one, found, form, people }} />`)}</ol>`;
};
