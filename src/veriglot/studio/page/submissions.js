// What others said of the item: a reviewer's note, the layer under review, the layers to settle.

import { whole } from "./layers.js";
import { called } from "./names.js";
import { t } from "./texts.js";
import { html } from "./view.js";

/** Why an item came back. @param {{message: string | null, state: string}} props */
export const Returned = ({ message, state }) => (state === "returned" || message) ? html`
  <div class="notice returned" role="note">
    <strong>${t("review.returned")}</strong>
    ${message ? html`<blockquote dir="auto">${message}</blockquote>` : null}
  </div>` : null;

/** Whose layer is under review. @param {{subject: any}} props */
export const Reviewed = ({ subject }) => subject ? html`
  <div class="notice" role="note">
    <strong>${t("review.of", { by: called(subject) })}</strong> ${t("review.how")}
    ${subject.layer.comment ? html`<blockquote dir="auto">${subject.layer.comment}</blockquote>` : null}
  </div>` : null;

/** Layers to settle; each can be taken over and then changed. @param {{editor: import("./editor.js").Editor, subjects: any[]}} props */
export const Adjudicated = ({ editor, subjects }) => html`
  <div class="notice" role="note">
    <strong>${t("adjudicate.title")}</strong>
    <ul class="subjects">${subjects.map((subject) => html`
      <li key=${subject.assignment}><bdi>${called(subject)}</bdi> <span class="fine">${t("spans.title", { count: subject.layer.spans?.length ?? 0 })}</span>
        <button class="small" disabled=${editor.locked} onClick=${() => editor.replace(whole(subject.layer), true)}>${t("adjudicate.take")}</button></li>`)}</ul>
  </div>`;
