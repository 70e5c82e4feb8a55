// The spans as a list: what each is, how well it would fool a reader, a note; and suggestions, one by one.

import { ink, letters } from "./colours.js";
import { interfaceLanguage, named, number, t } from "./texts.js";
import { html } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor @typedef {import("./layers.js").Span} Span */

/** The question of a rating: the project's, else the interface's. @param {any} rating */
export const questionOf = (rating) =>
  rating.question?.[interfaceLanguage()] ?? rating.question?.en ?? named("rating", rating.name);

/** What a step of a rating is called. @param {any} rating @param {number} step */
export const stepName = (rating, step) => {
  const own = t(`rating.${rating.name}.${step}`);
  return own === `rating.${rating.name}.${step}` || rating.steps !== 5 ? number(step) : own;
};

/** Which end of the steps is which, where they have names: a finger sees no titles. @param {any} rating */
const endsOf = (rating) => {
  const ends = [1, rating.steps].map((step) => [number(step), stepName(rating, step)]);
  return ends.every(([step, name]) => step === name) ? "" : ends.map((end) => end.join(": ")).join(" · ");
};

/**
 * Steps to choose from; the chosen one again takes it back.
 * @param {{rating: any, value: number | null, locked: boolean, onChange: (step: number | null) => void}} props
 */
export const Steps = ({ rating, value, locked, onChange }) => html`
  <div class="steps" role="group" aria-label=${questionOf(rating)}>
    <span class="question-of">${questionOf(rating)}</span>
    <span class="scale">
      ${Array.from({ length: rating.steps }, (_, index) => index + 1).map((step) => html`
        <button key=${step} class="step" aria-pressed=${value === step} disabled=${locked} title=${stepName(rating, step)}
          aria-label=${`${number(step)}: ${stepName(rating, step)}`} onClick=${() => onChange(value === step ? null : step)}>${number(step)}</button>`)}
    </span>
    <span class="step-name" aria-hidden="true">${value === null ? endsOf(rating) : stepName(rating, value)}</span>
  </div>`;

/** @param {{editor: Editor}} props */
export const SpanList = ({ editor }) => {
  const { form, layer } = editor;
  if (!form.types.length) return null;
  const suggestions = editor.votes ? [] : editor.suggestions(); // votes have a list of their own
  const signs = letters(form.types, (name) => named("type", name));
  return html`
    <section class="spans" aria-label=${t("spans.label")}>
      ${suggestions.length ? html`
        <h3>${t("suggestions.title", { count: suggestions.length })}</h3>
        <p class="fine">${t("suggestions.caution")}</p>
        <ol class="span-list">${suggestions.map((span) => html`<${Suggestion} key=${span.id} editor=${editor} span=${span} sign=${signs.get(span.type)} />`)}</ol>` : null}
      <h3>${t("spans.title", { count: layer.spans.length })}</h3>
      ${layer.spans.length
        ? html`<ol class="span-list">${layer.spans.map((span) => html`<${Line} key=${span.id} editor=${editor} span=${span} sign=${signs.get(span.type)} />`)}</ol>`
        : html`<p class="fine">${t("spans.none")}</p>`}
    </section>`;
};

const colourOf = (/** @type {Editor} */ editor, /** @type {string} */ type) =>
  ink(editor.form.types.find((/** @type {any} */ choice) => choice.name === type)?.colour ?? "#7f7f7f");

/** @param {{editor: Editor, span: Span, sign: string}} props */
const Line = ({ editor, span, sign }) => {
  const now = editor.active === span.id;
  const { form, item } = editor;
  return html`
    <li class=${`span-line${now ? " now" : ""}`}>
      <div class="span-head">
        <button class="span-go" aria-pressed=${now} onClick=${() => editor.activate(now ? null : span.id)}>
          <b class="sign" style=${{ color: colourOf(editor, span.type) }} aria-hidden="true">${sign}</b>
          <span class="kind">${named("type", span.type)}</span>
          <bdi class="quoted" dir=${item.direction} lang=${item.language}>${editor.quote(span.start, span.end)}</bdi>
          ${!editor.votes && span.id.startsWith("suggested-") ? html`<span class="badge">${t("suggestions.accepted")}</span>` : null}
          ${span.rating !== null && !now ? html`<span class="badge" title=${stepName(form.span_rating ?? { name: "", steps: 0 }, span.rating)}>${number(span.rating)}</span>` : null}
        </button>
        ${editor.locked ? null : html`<button class="plain" aria-label=${t("spans.delete")} title=${t("spans.delete")} onClick=${() => editor.remove(span.id)}>✕</button>`}
      </div>
      ${now ? html`<${Details} editor=${editor} span=${span} />` : span.note ? html`<p class="fine noted" dir="auto">${span.note}</p>` : null}
    </li>`;
};

/** @param {{editor: Editor, span: Span}} props */
const Details = ({ editor, span }) => {
  const { form, locked } = editor;
  return html`
    <div class="span-more">
      ${form.span_rating ? html`<${Steps} rating=${form.span_rating} value=${span.rating} locked=${locked}
          onChange=${(/** @type {number | null} */ rating) => editor.change(span.id, { rating })} />` : null}
      <label class="field">${t("spans.note")}
        <textarea id="span-note" rows="2" maxlength="2000" dir="auto" readonly=${locked} value=${span.note}
          onInput=${(/** @type {any} */ event) => editor.change(span.id, { note: event.target.value }, `note:${span.id}`)}></textarea>
      </label>
    </div>`;
};

/** @param {{editor: Editor, span: Span, sign: string}} props */
const Suggestion = ({ editor, span, sign }) => html`
  <li class=${`span-line suggested${editor.active === span.id ? " now" : ""}`}>
    <div class="span-head">
      <button class="span-go" aria-pressed=${editor.active === span.id} onClick=${() => editor.activate(span.id)}>
        <b class="sign" style=${{ color: colourOf(editor, span.type) }} aria-hidden="true">${sign}?</b>
        <span class="kind">${named("type", span.type)}</span>
        <bdi class="quoted" dir=${editor.item.direction} lang=${editor.item.language}>${editor.quote(span.start, span.end)}</bdi>
        ${typeof span.confidence === "number" ? html`<small title=${t("suggestions.confidence")}>${new Intl.NumberFormat(interfaceLanguage(), { style: "percent" }).format(span.confidence)}</small>` : null}
      </button>
      <button class="small" disabled=${editor.locked} onClick=${() => editor.accept(span.id)}>${t("suggestions.accept")}</button>
      <button class="small" disabled=${editor.locked} onClick=${() => editor.reject(span.id)}>${t("suggestions.reject")}</button>
    </div>
  </li>`;
