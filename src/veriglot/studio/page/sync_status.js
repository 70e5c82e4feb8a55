// Where the work is: on the server, on its way, or still only here; and what could not be sent.

import { t, translated } from "./texts.js";
import { html, useEffect, useState } from "./view.js";

/** Draw again when something tells of a change. @param {EventTarget | null} source */
export const useChanges = (source) => {
  const [, again] = useState(0);
  useEffect(() => {
    if (!source) return undefined;
    const changed = () => again((before) => before + 1);
    source.addEventListener("change", changed);
    return () => source.removeEventListener("change", changed);
  }, [source]);
};

const SIGNS = { saved: "✓", waiting: "…", saving: "↑", offline: "⌁", full: "!", broken: "!", conflict: "⇄", refused: "!", signedout: "!" };

/** @param {{sync: import("./sync.js").Sync, onConflict: () => void}} props */
export const SyncLine = ({ sync, onConflict }) => {
  useChanges(sync);
  const { status, waiting, lasting } = sync.state();
  const words = status === "offline" && waiting ? t("sync.offline_waiting", { count: waiting }) : t(`sync.${status === "waiting" ? "saving" : status}`);
  return html`
    <div class=${`sync ${status}`} data-status=${status} data-waiting=${waiting}>
      <span aria-hidden="true" class="sync-sign">${SIGNS[status]}</span>
      ${status === "conflict" ? html`<button class="small" onClick=${onConflict}>${words}</button>` : html`<span class="sync-words">${words}</span>`}
      <span class="unseen" role="status" aria-live="polite">${words}</span>
      ${!lasting && waiting ? html`<span class="warn">${t("sync.not_lasting")}</span>` : null}
    </div>`;
};

/** What the server refused, until it is seen. @param {{sync: import("./sync.js").Sync}} props */
export const Refusals = ({ sync }) => {
  useChanges(sync);
  const refused = sync.queue.refusals();
  if (!refused.length) return null;
  return html`<div class="notices" role="alert">${refused.map((one) => html`
    <p class="notice bad" key=${one.entry.event_id}>
      <span>${t("sync.refused_why", { item: one.entry.assignment })} ${translated(one.message)} ${translated(one.remedy)}</span>
      <button class="small" onClick=${() => {
        sync.queue.dropRefusal(one.entry.assignment);
        sync.changed();
      }}>${t("close")}</button>
    </p>`)}</div>`;
};
