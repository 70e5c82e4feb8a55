// The whole history of one item: who did what, when, and what their layer said then.

import { calledBy } from "../names.js";
import { has, named, t } from "../texts.js";
import { html } from "../view.js";
import { Waiting, useAnswer } from "./requests.js";
import { languageName, moment, time } from "./figures.js";
import { Marked } from "./annotated_text.js";
import { Answer } from "./conversations.js";
import { Link, address } from "./routes.js";

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
  const byRule = kind.startsWith("settled_");
  const name = byRule || kind === "adjudicated" ? "gold" : kind === "reopened" ? "reopen" : kind;
  return html`<li class=${`event event-${kind}`}>
    <p><time datetime=${at}>${moment(at)}</time>
      <b>${has(`state.${name}`) ? t(`state.${name}`) : named("lead.event", name)}</b>
      <bdi>${by ? calledBy(people, by) : byRule ? t("lead.by_rule") : ""}</bdi>
      ${one.seconds ? html`<small>${time(one.seconds)}</small>` : null}</p>
    ${said ? html`<p class="event-said" dir="auto">${said}</p>` : null}
    ${layer && kind !== "assigned" ? html`<details><summary>${t("lead.layer_then", { count: (layer.spans ?? []).length + (layer.units ?? []).length })}</summary>
      <${Shown} item=${found.item} layer=${layer} form=${form} /></details>` : null}
  </li>`;
};

/** @param {{id: string, form: any, people: Map<string, any>}} props */
export const ItemHistory = ({ id, form, people }) => {
  const { answer: found, failure, again } = useAnswer(`/api/lead/items/${encodeURIComponent(id)}/history`);
  if (!found) {
    return html`${failure ? html`<p><${Link} to=${address("items")}>${t("lead.all_items")}<//></p>` : null}
      ${failure?.status === 404 ? html`<p class="notice bad" role="alert">${t("trouble.no_item")}</p>` : html`<${Waiting} failure=${failure} />`}`;
  }
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
          <small>${t(`purpose.${one.purpose}`)} · ${t(`state.${one.state}`)} · ${time(one.seconds)}</small></h4>
        <${Shown} item=${found.item} layer=${one.layer} form=${form} />
        ${one.message ? html`<p class="event-said" dir="auto">${one.message}</p>` : null}
        ${one.purpose === "annotate" ? html`<details class="conversation"><summary>${t("conversation.write")}</summary><${Answer} assignment=${one.id} onDone=${again} /></details>` : null}
      </section>`)}
    </div>
    <h3>${t("lead.history")}</h3>
    ${found.events_left_out ? html`<p class="notice">${t("lead.events_left_out", { count: found.events_left_out })}</p>` : null}
    <ol class="events">${found.events.map((/** @type {any} */ one) => html`<${Event} key=${one.id} ...${{ one, found, form, people }} />`)}</ol>`;
};
