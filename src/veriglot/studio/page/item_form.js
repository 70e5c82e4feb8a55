// What is said of the whole item: ratings, flags, what is wrong with the source, a comment; and leaving it out.

import { Steps } from "./span_list.js";
import { named, t } from "./texts.js";
import { html, useState } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor */

/** @param {{editor: Editor, clear: boolean, onClear: (clear: boolean) => void}} props */
export const ItemForm = ({ editor, clear, onClear }) => {
  const { form, layer, locked } = editor;
  return html`
    <section class="item-form" aria-label=${t("item.label")}>
      ${form.item_ratings.map((/** @type {any} */ rating) => html`
        <${Steps} key=${rating.name} rating=${rating} value=${layer.ratings[rating.name] ?? null} locked=${locked}
          onChange=${(/** @type {number | null} */ step) => {
            const { [rating.name]: _, ...others } = layer.ratings;
            editor.set({ ratings: step === null ? others : { ...others, [rating.name]: step } });
          }} />`)}
      ${form.flags.length ? html`<${Flags} editor=${editor} list="flags" known=${form.flags} title=${t("item.flags")} />` : null}
      ${form.source_flags.length ? html`<${Flags} editor=${editor} list="source_flags" known=${form.source_flags} title=${t("item.source_flags")}
        none=${clear && !layer.source_flags.length} onNone=${onClear} />` : null}
      <label class="field">${t(editor.votes ? "adjudicate.why" : "item.comment")}
        <textarea id="comment" rows="2" maxlength="10000" dir="auto" readonly=${locked} value=${layer.comment}
          onInput=${(/** @type {any} */ event) => editor.set({ comment: event.target.value }, "comment")}></textarea>
      </label>
    </section>`;
};

/** @param {any} props */
const Flags = ({ editor, list, known, title, none, onNone }) => html`
  <fieldset class="flags">
    <legend>${title}</legend>
    ${onNone ? html`<label class="tick"><input type="checkbox" checked=${none} disabled=${editor.locked}
      onChange=${(/** @type {any} */ event) => {
        onNone(event.target.checked);
        if (event.target.checked && editor.layer[list].length) editor.set({ [list]: [] });
      }} />${t("item.no_issues")}</label>` : null}
    ${known.map((/** @type {string} */ flag) => html`
      <label key=${flag} class="tick"><input type="checkbox" checked=${editor.layer[list].includes(flag)} disabled=${editor.locked}
        onChange=${() => editor.flag(list, flag)} />${named("flag", flag)}</label>`)}
  </fieldset>`;

/** Leaving an item out, for a reason. @param {{reasons: string[], onSkip: (reason: string) => void}} props */
export const Skip = ({ reasons, onSkip }) => {
  const [open, setOpen] = useState(false);
  if (!reasons.length) return null;
  return html`
    <div class="skip" role="group" aria-label=${t("skip.open")}>
      <button class="small" aria-expanded=${open} onClick=${() => setOpen(!open)}>${t("skip.open")}</button>
      ${open ? html`<span class="fine">${t("skip.why")}</span>
      ${reasons.map((reason) => html`<button key=${reason} class="small" onClick=${() => onSkip(reason)}>${named("skip", reason)}</button>`)}` : null}
    </div>`;
};
