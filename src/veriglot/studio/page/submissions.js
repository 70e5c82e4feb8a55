// What others said of the item: a reviewer's note, and whose layer is under review.

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
