// Panels over the page: a drawer at its side, a dialog in its middle. Escape closes them, focus stays inside and comes
// back.

import { t } from "./texts.js";
import { html, useEffect, useRef } from "./view.js";

/** The dialog element, opened while it is there. @param {(() => void) | undefined} onClose */
const useDialog = (onClose) => {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close(); // brings focus back; before, what is beneath takes none
  }, []);
  const events = {
    onCancel: (/** @type {Event} */ event) => {
      event.preventDefault();
      onClose?.();
    },
    onClick: (/** @type {MouseEvent} */ event) => {
      if (event.target === dialog.current) onClose?.(); // beside it
    },
  };
  return { dialog, events };
};

/** @param {{title: string, wide?: boolean, onClose?: () => void, children?: any}} props */
export const Dialog = ({ title, wide, onClose, children }) => {
  const { dialog, events } = useDialog(onClose);
  return html`
    <dialog class=${`dialog${wide ? " wide" : ""}`} ref=${dialog} aria-label=${title} ...${events}>
      <header><h2>${title}</h2>${onClose ? html`<button class="plain" aria-label=${t("close")} onClick=${onClose}>✕</button>` : null}</header>
      <div class="dialog-body">${children}</div>
    </dialog>`;
};

/** @param {{title: string, onClose: () => void, children?: any}} props */
export const Drawer = ({ title, onClose, children }) => {
  const { dialog, events } = useDialog(onClose);
  return html`
    <dialog class="drawer" ref=${dialog} aria-label=${title} ...${events}>
      <header><h2>${title}</h2><button class="plain" aria-label=${t("close")} onClick=${onClose}>✕</button></header>
      <div class="drawer-body scroll">${children}</div>
    </dialog>`;
};
