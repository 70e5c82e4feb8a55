// What others said of the item: what they wrote, and whose layer is under review.

import { moment } from "./lead/figures.js";
import { called } from "./names.js";
import { t } from "./texts.js";
import { html, useState } from "./view.js";

/** Comments in order. @param {{comments: any[]}} props */
export const Comments = ({ comments }) => html`<ol class="comments">${comments.map((comment, index) => html`
  <li key=${index} class=${comment.mine ? "mine" : ""}><p class="fine"><b>${comment.mine ? t("conversation.you") : html`<bdi>${called(comment)}</bdi>`}</b> <time datetime=${comment.at}>${moment(comment.at)}</time></p>
    <p class="written" dir="auto">${comment.text}</p></li>`)}</ol>`;

/** A field to write a comment in. @param {{onSend: (text: string) => Promise<unknown>}} props */
export const Reply = ({ onSend }) => {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    if (await onSend(text.trim())) setText("");
    setBusy(false);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation(); // else the item would be handed in
    send();
  };
  return html`<div class="reply"><textarea rows="2" maxlength="10000" dir="auto" aria-label=${t("conversation.write")} placeholder=${t("conversation.hint")} value=${text}
    onKeyDown=${pressed} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
    <button class="small" disabled=${busy || !text.trim()} onClick=${send}>${t("conversation.send")}</button></div>`;
};

/**
 * What annotator, reviewers and leads write about the item: above the text where there is something, else below it.
 * @param {{assignment: any, comments: any[] | null, above: boolean, onSend: (text: string) => Promise<unknown>}} props
 */
export const Conversation = ({ assignment, comments, above, onSend }) => {
  const returned = assignment.state === "returned" || assignment.message;
  const busy = Boolean(returned || assignment.conversation?.length);
  if (busy !== above) return null;
  if (!above) return comments && html`<details class="conversation"><summary>${t("conversation.write")}</summary><${Comments} comments=${comments} /><${Reply} onSend=${onSend} /></details>`;
  return html`<div class=${`notice conversation${returned ? " returned" : ""}`} role="note">
    <strong>${t(returned ? "review.returned" : "conversation.title")}</strong>
    ${comments?.length ? html`<${Comments} comments=${comments} />` : assignment.message ? html`<blockquote dir="auto">${assignment.message}</blockquote>` : null}
    ${comments ? html`<${Reply} onSend=${onSend} />` : null}
  </div>`;
};

/** Whose layer is under review. @param {{subject: any}} props */
export const Reviewed = ({ subject }) => subject ? html`
  <div class="notice" role="note">
    <strong>${t("review.of", { by: called(subject) })}</strong> ${t("review.how")}
    ${subject.layer.comment ? html`<blockquote dir="auto">${subject.layer.comment}</blockquote>` : null}
  </div>` : null;
