// A reviewer's last word on somebody's layer: confirm it, correct it, or send it back with a note. For an annotator:
// handing in, leaving out, taking back.

import { Skip } from "./item_form.js";
import { named, t } from "./texts.js";
import { html, useLayoutEffect, useState } from "./view.js";

/** @param {{onConfirm: () => void, onCorrect: () => void, onReturn: (note: string) => void, touched: boolean, busy: boolean, reasons: string[], onSkip: (reason: string) => void}} props */
export const ReviewBar = ({ onConfirm, onCorrect, onReturn, touched, busy, reasons, onSkip }) => {
  const [note, setNote] = useState(/** @type {string | null} */ (null));
  useLayoutEffect(() => {
    if (note === "") document.getElementById("return-note")?.focus();
  }, [note === null]);
  const sent = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") setNote(null);
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation(); // else it would be handed in
    if (note?.trim() && !busy) onReturn(note.trim());
  };
  if (note !== null) {
    return html`
      <div class="ending" role="group" aria-label=${t("review.return")}>
        <label class="field">${t("review.note")}
          <textarea id="return-note" rows="2" dir="auto" maxlength="10000" value=${note} onKeyDown=${sent} onInput=${(/** @type {any} */ event) => setNote(event.target.value)}></textarea>
        </label>
        <button class="primary" disabled=${busy || !note.trim()} onClick=${() => onReturn(note.trim())}>${t("review.return")}</button>
        <button class="small" onClick=${() => setNote(null)}>${t("cancel")}</button>
      </div>`;
  }
  return html`
    <div class="ending" role="group" aria-label=${t("review.label")}>
      <button class="primary" disabled=${busy || touched} title=${touched ? t("review.touched") : undefined} onClick=${onConfirm}>${t("review.confirm")}${touched ? null : html` <kbd>Enter</kbd>`}</button>
      <button class="primary" disabled=${busy || !touched} title=${touched ? undefined : t("review.untouched")} onClick=${onCorrect}>${t("review.correct")}${touched ? html` <kbd>Enter</kbd>` : null}</button>
      <button class="second" id="send-back" disabled=${busy} onClick=${() => setNote("")}>${t("review.return")} <kbd>B</kbd></button>
      <${Skip} reasons=${reasons} onSkip=${onSkip} />
    </div>`;
};

/** @param {{state: string, busy: boolean, reasons: string[], skipped: string | null, exam: boolean, onSubmit: () => void, onSkip: (reason: string) => void, onReopen: () => void, onNext: () => void, onOnward: (() => void) | null}} props */
export const WorkBar = ({ state, busy, reasons, skipped, exam, onSubmit, onSkip, onReopen, onNext, onOnward }) => {
  if (state === "open" || state === "returned") {
    return html`
      <div class="ending">
        <button class="primary" id="submit" disabled=${busy} onClick=${onSubmit}>${t("submit")} <kbd>Enter</kbd></button>
        ${onOnward ? html`<button class="second" disabled=${busy} title=${t("adjudicate.onward")} aria-label=${t("adjudicate.onward")} onClick=${onOnward}>${t("next")} <kbd>D</kbd></button>` : null}
        ${exam ? null : html`<${Skip} reasons=${reasons} onSkip=${onSkip} />`}
      </div>`;
  }
  return html`
    <div class="ending">
      <p class="fine">${skipped ? t("skip.was", { reason: named("skip", skipped) }) : t(`state.${state}`)}</p>
      ${state === "accepted" || exam ? null : html`<button class="second" disabled=${busy} onClick=${onReopen}>${t("reopen")}</button>`}
      <button class="primary" onClick=${onNext}>${t("next")}</button>
    </div>`;
};
