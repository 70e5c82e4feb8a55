// A sentence and what was made of it, with the words that differ, and what kind of change it is.

import { Share } from "./adjudication.js";
import { ink } from "./colours.js";
import { diff } from "./diff.js";
import { meaning } from "./response.js";
import { named, t } from "./texts.js";
import { html, useMemo } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor */

/** @param {{editor: Editor}} props */
export const Pair = ({ editor }) => {
  const { item } = editor;
  const parts = useMemo(() => diff(item.original ?? "", item.response, item.language), [editor]);
  const side = (/** @type {"out" | "in"} */ kind) => parts.filter((part) => part.kind === "same" || part.kind === kind)
    .map((part, index) => part.kind === "same" ? part.text
      : html`<${kind === "out" ? "del" : "ins"} key=${index}>${part.text}</>`);
  return html`
    <div class="pair">
      <section><h3>${t("pairs.original")}</h3><p class="text still" dir=${item.direction} lang=${item.language}>${side("out")}</p></section>
      <section><h3>${t("pairs.edited")}</h3><p class="text still" dir=${item.direction} lang=${item.language}>${side("in")}</p></section>
    </div>`;
};

/** The label of the whole item. @param {{editor: Editor}} props */
export const Labels = ({ editor }) => {
  const { form, layer, locked } = editor;
  if (!form.labels.length) return null;
  return html`
    <div class="labels" role="group" aria-label=${t("pairs.label")}>
      <h3>${t("pairs.label")}</h3>
      ${form.labels.map((/** @type {any} */ choice) => html`
        <button key=${choice.name} class="choice wide" aria-pressed=${layer.label === choice.name} disabled=${locked} style=${{ color: ink(choice.colour) }}
          onClick=${() => editor.set({ label: layer.label === choice.name ? null : choice.name })}>
          ${choice.shortcut ? html`<kbd>${choice.shortcut}</kbd>` : null}
          <b>${named("label", choice.name)}</b><${Share} editor=${editor} place=${[0, editor.points.length]} label=${choice.name} /> <span class="fine">${labelMeaning(choice)}</span></button>`)}
    </div>`;
};

const labelMeaning = (/** @type {any} */ choice) => {
  const own = t(`label.${choice.name}.meaning`);
  return own === `label.${choice.name}.meaning` ? meaning(choice) : own;
};
