// Two versions of the same work: both are shown, and whoever did them chooses. The other one stays in the history.

import { call } from "./api.js";
import { ink, letters } from "./colours.js";
import { Dialog } from "./dialogs.js";
import { lanesOf } from "./lanes.js";
import { CodePoints } from "./offsets.js";
import { Stops } from "./stops.js";
import { Surface } from "./surface.js";
import { named, t } from "./texts.js";
import { html, useEffect, useMemo, useState } from "./view.js";

/** @typedef {import("./layers.js").Layer} Layer */

/** A layer as it stands in its text, to be read only. @param {{item: any, form: any, layer: Layer, id: string}} props */
export const Reading = ({ item, form, layer, id }) => {
  const stops = useMemo(() => new Stops(new CodePoints(item.response), item.words), [item]);
  const marks = useMemo(() => {
    const lanes = lanesOf(layer.spans);
    const signs = letters(form.types, (name) => named("type", name));
    return layer.spans.map((span) => ({
      key: span.id, start: span.start, end: span.end, kind: /** @type {const} */ ("span"), lane: lanes.get(span), letter: signs.get(span.type),
      colour: ink(form.types.find((/** @type {any} */ type) => type.name === span.type)?.colour ?? "#7f7f7f"),
    }));
  }, [layer, form]);
  const answers = layer.units.map((unit) => `${stops.points.slice(unit.start, unit.end)} — ${unit.label ? named("label", unit.label) : "…"}`);
  return html`
    <${Surface} id=${id} stops=${stops} language=${item.language} direction=${item.direction} label=${t("response.label")}
      marks=${marks} selection=${null} onSelect=${() => undefined} />
    <ul class="fine says">
      ${layer.label !== null ? html`<li>${named("label", layer.label)}</li>` : null}
      ${answers.map((line, index) => html`<li key=${index}><bdi>${line}</bdi></li>`)}
      ${layer.spans.filter((span) => span.note || span.rating !== null).map((span) => html`<li key=${span.id}><bdi>${stops.points.slice(span.start, span.end)}</bdi>: ${span.rating ?? ""} <bdi>${span.note}</bdi></li>`)}
      ${[...layer.flags, ...layer.source_flags].map((flag) => html`<li key=${flag}>${named("flag", flag)}</li>`)}
      ${layer.comment ? html`<li><bdi>${layer.comment}</bdi></li>` : null}
    </ul>`;
};

/**
 * @param {{sync: import("./sync.js").Sync, form: any, conflict: import("./queue.js").Conflict, onDone: (layer: Layer | null, assignment: number, choice: "mine" | "theirs") => void}} props
 */
export const ConflictDialog = ({ sync, form, conflict, onDone }) => {
  const [item, setItem] = useState(/** @type {any} */ (null));
  useEffect(() => {
    call("GET", `/api/assignments/${conflict.assignment}`).then((assignment) => setItem(assignment.item)).catch(() => setItem(null));
  }, [conflict.assignment]);
  const choose = (/** @type {"mine" | "theirs"} */ choice) =>
    onDone(sync.resolve(conflict.assignment, choice), conflict.assignment, choice);
  const side = (/** @type {"mine" | "theirs"} */ whose) => html`
    <section class="version">
      <h3>${t(`conflict.${whose}`)}</h3>
      <p class="fine">${t("conflict.spans", { count: conflict[whose].spans.length })}</p>
      ${item ? html`<${Reading} id=${`conflict-${whose}`} item=${item} form=${form} layer=${conflict[whose]} />` : null}
      <button class="primary" onClick=${() => choose(whose)}>${t(`conflict.keep_${whose}`)}</button>
    </section>`;
  return html`
    <${Dialog} title=${t("conflict.title")} wide=${true}>
      <p>${t("conflict.why")}</p>
      <div class="versions">${side("mine")}${side("theirs")}</div>
    </${Dialog}>`;
};
