// Facts or sentences, one by one: a label, how many facts of which kind, flags, and where the evidence says so.

import { Share } from "./adjudication.js";
import { ink } from "./colours.js";
import { meaning } from "./response.js";
import { reveal } from "./highlights.js";
import { CodePoints } from "./offsets.js";
import { isAnswered, toggled, unitAt } from "./layers.js";
import { named, number, t } from "./texts.js";
import { html } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor */

/** @param {{editor: Editor}} props */
export const Units = ({ editor }) => {
  const { form, item, layer } = editor;
  if (!form.unit) return null;
  const answered = item.units.filter((/** @type {[number, number]} */ place) => isAnswered(unitAt(layer, place))).length;
  return html`
    <section class="units" aria-label=${t(`units.${form.unit}`)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => pressed(editor, event)}>
      <h3>${t("units.progress", { done: answered, of: item.units.length })}</h3>
      <ol class="unit-list">
        ${item.units.map((/** @type {[number, number]} */ place, /** @type {number} */ index) => html`<${Unit} key=${place.join("-")} editor=${editor} place=${place} index=${index} />`)}
      </ol>
    </section>`;
};

/** Up and down go from unit to unit, digits give labels. @param {Editor} editor @param {KeyboardEvent} event */
const pressed = (editor, event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const last = editor.item.units.length - 1;
  if (way) {
    event.preventDefault();
    editor.unit = Math.max(0, Math.min(last, editor.unit + way));
    editor.changed();
    requestAnimationFrame(() => document.getElementById(`unit-${editor.unit}`)?.focus());
    return;
  }
  const found = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  const choice = found && editor.form.unit_labels.find((/** @type {any} */ one) => one.shortcut === found[1]);
  if (!choice || event.shiftKey) return;
  event.preventDefault();
  const place = editor.item.units[editor.unit];
  const same = unitAt(editor.layer, place).label === choice.name;
  editor.answer(place, { label: same ? null : choice.name });
};

/** @param {{editor: Editor, place: [number, number], index: number}} props */
const Unit = ({ editor, place, index }) => {
  const { form, item, locked } = editor;
  const unit = unitAt(editor.layer, place);
  const now = editor.unit === index;
  const take = () => {
    if (editor.unit === index) return;
    editor.unit = index;
    editor.changed();
  };
  return html`
    <li class=${`unit-line${now ? " now" : ""}${isAnswered(unit) ? " done" : ""}`} onFocusIn=${take}>
      <button class="unit-go" id=${`unit-${index}`} aria-pressed=${now} onClick=${take}>
        <span class="nr">${number(index + 1)}</span>
        <bdi dir=${item.direction} lang=${item.language}>${editor.points.slice(place[0], place[1])}</bdi>
      </button>
      <div class="choices" role="group" aria-label=${t("units.label_of", { number: index + 1 })}>
        ${form.unit_labels.map((/** @type {any} */ choice) => html`
          <button key=${choice.name} class="choice" aria-pressed=${unit.label === choice.name} disabled=${locked} style=${{ color: ink(choice.colour) }} title=${meaning(choice)}
            onClick=${() => editor.answer(place, { label: unit.label === choice.name ? null : choice.name })}>
            ${named("label", choice.name)}<${Share} editor=${editor} place=${place} label=${choice.name} />${choice.shortcut ? html` <kbd>${choice.shortcut}</kbd>` : null}</button>`)}
      </div>
      ${now || form.unit === "sentence" ? html`<${Counts} editor=${editor} place=${place} unit=${unit} index=${index} />` : null}
      ${now || unit.flags.length ? html`<div class="flags">
        ${form.unit_flags.map((/** @type {string} */ flag) => html`
          <label key=${flag} class="tick"><input type="checkbox" checked=${unit.flags.includes(flag)} disabled=${locked}
            onChange=${() => editor.answer(place, { flags: toggled(unit.flags, flag) })} />${named("flag", flag)}</label>`)}
      </div>` : null}
      ${form.evidence && (now || unit.evidence.length) ? html`<${Pointers} editor=${editor} place=${place} unit=${unit} now=${now} />` : null}
    </li>`;
};

/** How many facts of the unit have which label. @param {any} props */
const Counts = ({ editor, place, unit, index }) => editor.form.unit !== "sentence" ? null : html`
  <div class="counts" role="group" aria-label=${t("units.counts_of", { number: index + 1 })}>
    <span class="fine">${t("units.counts")}</span>
    ${editor.form.unit_labels.map((/** @type {any} */ choice) => html`
      <label key=${choice.name} class="count-of"><span style=${{ color: ink(choice.colour) }}>${named("label", choice.name)}</span>
        <input type="number" min="0" max="99" inputmode="numeric" readonly=${editor.locked} value=${unit.counts[choice.name] ?? ""}
          onInput=${(/** @type {any} */ event) => {
            const { [choice.name]: _, ...others } = unit.counts;
            const value = event.target.value === "" ? null : Math.max(0, Math.min(99, Math.floor(Number(event.target.value))));
            editor.answer(place, { counts: value === null ? others : { ...others, [choice.name]: value } }, `count:${place}:${choice.name}`);
          }} /></label>`)}
    <span class="fine">${t("units.total", { total: Object.values(/** @type {Record<string, number>} */ (unit.counts)).reduce((sum, one) => sum + one, 0) })}</span>
  </div>`;

/** The places that the label rests on. @param {any} props */
const Pointers = ({ editor, place, unit, now }) => html`
  <div class="pointers">
    ${unit.evidence.length === 0 && now ? html`<p class="fine">${t("units.point_hint")}</p>` : null}
    ${unit.evidence.map((/** @type {any} */ pointer) => {
      const passage = editor.item.evidence.find((/** @type {any} */ one) => one.id === pointer.id);
      if (!passage) return null;
      const points = new CodePoints(passage.text);
      const go = () => {
        const node = /** @type {Text | null} */ (document.getElementById(`passage-${pointer.id}`)?.firstChild ?? null);
        if (node) reveal(node, points, [pointer.start, pointer.end]);
      };
      return html`<div class="pointer" key=${`${pointer.id}-${pointer.start}-${pointer.end}`}>
        <button class="pointer-go" onClick=${go}><bdi dir=${passage.direction} lang=${passage.language}>${points.slice(pointer.start, pointer.end)}</bdi></button>
        ${editor.locked ? null : html`<button class="plain" aria-label=${t("units.unpoint")} title=${t("units.unpoint")}
          onClick=${() => editor.answer(place, { evidence: unit.evidence.filter((/** @type {any} */ one) => one !== pointer) })}>✕</button>`}
      </div>`;
    })}
  </div>`;
