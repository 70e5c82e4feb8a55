// What is looked up beside the work: the keys, one's own items.

import { call, wordsOf } from "./api.js";
import { Drawer } from "./dialogs.js";
import { languageName } from "./lead/figures.js";
import { has, number, t } from "./texts.js";
import { html, useEffect, useState } from "./view.js";

/** What a call answers, once it has. @param {string} path */
const useAnswer = (path) => {
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const [failure, setFailure] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    call("GET", path).then(setAnswer).catch(setFailure);
  }, [path]);
  return { answer, failure };
};

const KEYS = [
  ["← →", "keys.step"], ["Shift ← →", "keys.far"], ["Ctrl ← →", "keys.near"], ["Alt ← →", "keys.character"], ["↑ ↓", "keys.line"],
  ["Home End", "keys.ends"], ["1 – 9", "keys.type"], ["Shift 1 – 5", "keys.rate"], ["Tab", "keys.tab"], ["Del", "keys.delete"],
  ["Ctrl Z / Y", "keys.undo"], ["Y / X", "keys.suggestion"], ["N", "keys.note"], ["E", "keys.search"], ["W", "keys.shared"],
  ["G", "keys.guidelines"], ["Enter", "keys.submit"], ["B", "keys.back"], ["M", "keys.majority"], ["D", "keys.onward"], ["Ctrl Enter", "keys.submit_anywhere"], ["Esc", "keys.escape"], ["?", "keys.help"],
];

/** The keys, and what mouse and fingers do. @param {{onClose: () => void}} props */
export const Help = ({ onClose }) => html`
  <${Drawer} title=${t("help.title")} onClose=${onClose}>
    <p>${t("help.mouse")}</p>
    <p>${t("help.touch")}</p>
    <p>${t("help.direction")}</p>
    <dl class="keys">${KEYS.map(([key, words]) => html`<div key=${words}><dt>${key.split(" ").map((part) =>
      /^[–/]$/.test(part) ? html`<span>${part}</span>` : html`<kbd>${part}</kbd>`)}</dt><dd>${t(words)}</dd></div>`)}</dl>
  </${Drawer}>`;

/** One's own items, to go back to. @param {{current: number | null, onOpen: (id: number) => void, onClose: () => void}} props */
export const Items = ({ current, onOpen, onClose }) => {
  const { answer, failure } = useAnswer("/api/assignments");
  return html`
    <${Drawer} title=${t("items.title")} onClose=${onClose}>
      ${failure ? html`<p role="alert">${wordsOf(failure)}</p>` : null}
      <ol class="item-list">${(answer ?? []).map((/** @type {any} */ line, /** @type {number} */ index) => ({ line, index }))
        .sort((/** @type {any} */ a, /** @type {any} */ b) => b.line.unread - a.line.unread).map((/** @type {any} */ { line, index }) => html`
        <li key=${line.id}><button class=${`item-go ${line.state}`} aria-current=${line.id === current} onClick=${() => onOpen(line.id)}>
          <span class="nr">${number(index + 1)}</span>
          <span>${has(`purpose.${line.purpose}`) ? t(`purpose.${line.purpose}`) : line.purpose}</span>
          <span class="fine">${languageName(line.language)}</span>
          ${line.unread ? html`<b class="unread">${t("items.unread", { count: line.unread })}</b>` : null}
          <span class=${`state ${line.state}`}>${t(`state.${line.state}`)}</span>
          ${line.message ? html`<bdi class="fine noted">${line.message}</bdi>` : null}
        </button></li>`)}</ol>
    </${Drawer}>`;
};
