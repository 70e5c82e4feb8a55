// Answers of the server as state of a view: what was answered, whether it is asked for, why it failed.

import { asOf, call, outdated } from "../api.js";
import { Refusal } from "../join.js";
import { interfaceLanguage, t } from "../texts.js";
import { html, useCallback, useEffect, useRef, useState } from "../view.js";

const SOON = 1; // seconds until a figure that is being made is asked for
const LATER = 2; // and one whose last state is there
const PATIENCE = 10; // seconds that one waits for the newest figure who did something, or asked for it

/**
 * Ask for something, and again every so often while the page is looked at.
 * @param {string | null} path null to ask nothing yet @param {number} [seconds] 0 for never again
 * @returns {{answer: any, failure: any, busy: boolean, pending: any, again: () => Promise<void>}} `pending` tells how far a figure is
 */
export const useAnswer = (path, seconds = 0) => {
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const [pending, setPending] = useState(/** @type {any} */ (null));
  const [turn, setTurn] = useState({ wait: 0 }); // seconds until it is asked for once more; 0 for never
  const current = useRef(path);
  current.current = path;
  const again = useCallback(async (/** @type {unknown} */ wish = true) => {
    if (!path) return;
    setBusy(true);
    try {
      const found = await call("GET", path, undefined, { wait: wish ? PATIENCE : 0 });
      if (current.current !== path) return;
      setPending(found.pending ?? null);
      if (!found.pending) setAnswer(found);
      setTurn({ wait: found.pending ? SOON : outdated.has(found) ? LATER : 0 });
      setFailure(null);
    } catch (error) {
      if (current.current === path) setFailure(error);
    } finally {
      if (current.current === path) setBusy(false);
    }
  }, [path]);
  useEffect(() => {
    if (!turn.wait) return undefined;
    const timer = setTimeout(() => again(false), turn.wait * 1000);
    return () => clearTimeout(timer);
  }, [turn]);
  useEffect(() => {
    setFailure(null);
    setPending(null);
    setTurn({ wait: 0 });
    again(false);
    if (!seconds) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && again(false), seconds * 1000);
    return () => clearInterval(timer);
  }, [again, seconds]);
  return { answer, failure, busy, pending, again };
};

/**
 * While there is no answer: why, and how far a figure is that takes long.
 * @param {{failure: any, pending?: any, words?: string, onCancel?: () => void}} props
 */
export const Waiting = ({ failure, pending = null, words = "rest.loading", onCancel }) => {
  if (failure) return html`<${Refusal} failure=${failure} />`;
  return html`<div class="waiting"><p role="status">${t(words)}</p>
    ${pending ? html`<p class="row"><progress value=${pending.done ?? undefined} aria-label=${t(words)}></progress>
      <small>${new Intl.NumberFormat(interfaceLanguage(), { style: "unit", unit: "second" }).format(Math.round(pending.seconds))}</small>
      ${onCancel ? html`<${Act} path=${`/api/lead/figures/${pending.id}/cancel`} body=${{}} label=${t("cancel")} onDone=${onCancel} />` : null}</p>` : null}
  </div>`;
};

/** Of when figures are. @param {{answer: any}} props */
export const AsOf = ({ answer }) => {
  const time = answer ? asOf.get(answer) : undefined;
  return time ? html`<small>${t("lead.as_of", { time: time.toLocaleTimeString(interfaceLanguage()) })}</small>` : null;
};

/** A button that does something on the server, asks first where that is wanted, and says why it failed. */
export const Act = (/** @type {any} */ { path, body, label, confirm, onDone, kind = "second", disabled = false, name }) => {
  const [step, setStep] = useState(/** @type {"rest" | "sure" | "busy"} */ ("rest"));
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const sure = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    if (step === "sure") sure.current?.focus();
  }, [step]);
  const run = async () => {
    setStep("busy");
    setFailure(null);
    try {
      const done = await call("POST", path, body);
      setStep("rest");
      await onDone?.(done);
    } catch (error) {
      setFailure(error);
      setStep("rest");
    }
  };
  const aside = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && setStep("rest");
  if (step === "sure") {
    return html`<span class="act sure" role="group" aria-label=${confirm} onKeyDown=${aside}>
      <span>${confirm}</span>
      <button type="button" ref=${sure} class="danger" onClick=${run}>${t("lead.yes")}</button>
      <button type="button" class="second" onClick=${() => setStep("rest")}>${t("lead.no")}</button>
    </span>`;
  }
  return html`<span class="act">
    <button type="button" class=${kind} disabled=${disabled || step === "busy"} aria-label=${name}
      onClick=${confirm ? () => setStep("sure") : run}>${label}</button>
    <${Refusal} failure=${failure} />
  </span>`;
};
