// A link for somebody: made, shown once, copied.

import { call } from "../api.js";
import { Refusal } from "../join.js";
import { t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { languageName, moment } from "./figures.js";

const ROLES = ["annotator", "reviewer", "lead"];

/** A link that is shown once. @param {{link: string, expires: string, onClose: () => void}} props */
export const NewLink = ({ link, expires, onClose }) => {
  const [copied, setCopied] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
    setCopied(false);
  }, [link]);
  const copy = async () => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      document.execCommand("copy"); // without HTTPS there is no clipboard, but what is selected can be copied
    }
    setCopied(true);
  };
  return html`<div class="notice good new-link" role="group" aria-label=${t("lead.link")}>
    <p>${t("lead.link_once", { until: moment(expires) })}</p>
    <p class="row">
      <input ref=${field} class="link" readonly value=${link} dir="ltr" aria-label=${t("lead.link")} />
      <button type="button" class="primary" onClick=${copy}>${t("lead.copy")}</button>
      <button type="button" class="second" onClick=${onClose}>${t("lead.done")}</button>
    </p>
    <p role="status">${copied ? t("lead.copied") : ""}</p>
  </div>`;
};

/** @param {{languages: string[], open: boolean, signIn: boolean, onInvited: (made: any) => void}} props languages of the project's items */
export const Invite = ({ languages, open, signIn, onInvited }) => {
  const [role, setRole] = useState("annotator");
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [note, setNote] = useState("");
  const [email, setEmail] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFailure(null);
    try {
      const made = await call("POST", "/api/lead/invitations", { role, languages: chosen, note: note.trim() || null, email: email.trim() || null });
      setNote("");
      setEmail("");
      onInvited(made);
    } catch (error) {
      setFailure(error);
    }
    setBusy(false);
  };
  const toggle = (/** @type {string} */ tag) =>
    setChosen(chosen.includes(tag) ? chosen.filter((other) => other !== tag) : [...chosen, tag]);
  return html`<details class="card invite" open=${open}><summary>${t("lead.invite")}</summary><form onSubmit=${send} aria-label=${t("lead.invite")}>
    <fieldset class="choices"><legend>${t("lead.role")}</legend>
      ${ROLES.map((name) => html`<label key=${name} class="tick"><input type="radio" name="role" value=${name} checked=${role === name}
        onChange=${() => setRole(name)} /><span>${t(`lead.role.${name}`)}</span></label>`)}
    </fieldset>
    ${languages.length > 1 ? html`<fieldset class="choices"><legend>${t("lead.works_in")}</legend>
      ${languages.map((tag) => html`<label key=${tag} class="tick"><input type="checkbox" name="language" value=${tag} checked=${chosen.includes(tag)}
        onChange=${() => toggle(tag)} /><span>${languageName(tag)}</span></label>`)}
      <small>${t("lead.works_in_hint")}</small>
    </fieldset>` : null}
    <label class="field"><span>${t("lead.note")}</span>
      <input name="note" value=${note} maxlength="200" dir="auto" autocomplete="off"
        onInput=${(/** @type {any} */ event) => setNote(event.target.value)} />
      <small>${t("lead.note_hint")}</small></label>
    ${signIn ? html`<label class="field"><span>${t("lead.email")}</span>
      <input name="email" type="email" value=${email} maxlength="200" autocomplete="off" onInput=${(/** @type {any} */ event) => setEmail(event.target.value)} />
      <small>${t("lead.email_hint")}</small></label>` : null}
    <${Refusal} failure=${failure} />
    <p><button class="primary" type="submit" disabled=${busy}>${t("lead.make_link")}</button></p>
  </form></details>`;
};
