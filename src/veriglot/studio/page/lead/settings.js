// Settings that a lead changes at once, and files that become items or predictions.

import { call } from "../api.js";
import { Refusal } from "../join.js";
import { number, t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { Waiting, useAnswer } from "./requests.js";

const MINUTES = 600; // seconds that a large file may take
const MOST = 64e6; // bytes of a file, as the server has it

/** Names of settings, with the unit of each number and its step on the page. @type {[string, any][]} */
const FIELDS = [
  ["name", { maxlength: 200, dir: "auto", required: true }],
  ["half_width", { percent: true, min: 0.1, max: 99, step: "any" }],
  ["stop_when_enough", { type: "checkbox" }],
  ["per_person", { min: 0, step: 1 }],
  ["per_item", { min: 1, step: 1, required: true }],
  ["per_disputed_item", { min: 2, step: 1 }],
  ["release_hours", { min: 0.1, step: "any" }],
  ["share", { percent: true, min: 0, max: 100, step: "any", required: true }],
];

/** Of a percentage, the share that it is, without what division adds. */
const shareOf = (/** @type {number} */ percent) => Math.round(percent * 1e6) / 1e8;

const Form = (/** @type {any} */ { settings, onChanged }) => {
  const [values, setValues] = useState(settings);
  const [state, setState] = useState(/** @type {any} */ (null)); // "busy", "saved", or why it failed
  const typed = useRef(/** @type {Record<string, string>} */ ({}));
  useEffect(() => setValues(settings), [settings]);
  const put = (/** @type {string} */ name, /** @type {any} */ value) => {
    setValues({ ...values, [name]: value });
    setState(null);
  };
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setState("busy");
    try {
      const touched = Object.entries(values).filter(([name, value]) => value !== settings[name]); // another lead may have changed the others
      await call("POST", "/api/lead/settings", Object.fromEntries(touched));
      await onChanged();
      setState("saved");
    } catch (error) {
      setState(error);
    }
  };
  const input = (/** @type {string} */ name, /** @type {any} */ { percent, ...about }) => {
    const value = values[name];
    if (about.type === "checkbox") {
      return html`<label key=${name} class="tick"><input name=${name} ...${about} checked=${value} onChange=${(/** @type {any} */ event) => put(name, event.target.checked)} />
        <span>${t(`lead.setting.${name}`)}</span></label>`;
    }
    const read = (/** @type {any} */ { target }) => {
      if (name === "name") return put(name, target.value);
      typed.current[name] = target.value;
      const given = Number.isNaN(target.valueAsNumber) ? null : target.valueAsNumber;
      return put(name, given !== null && percent ? shareOf(given) : given);
    };
    const shown = value !== null && percent ? Math.round(value * 1e6) / 1e4 : value ?? "";
    const text = typed.current[name]; // "0." is on its way to 0.1: written as the number 0, its point would go
    return html`<label key=${name} class="field"><span>${t(`lead.setting.${name}`)}</span>
      <input name=${name} type=${name === "name" ? "text" : "number"} autocomplete="off" ...${about} value=${text && Number(text) === shown ? text : shown} onInput=${read} /></label>`;
  };
  return html`<form class="card settings" onSubmit=${save} aria-label=${t("lead.settings")}>
    <p>${t("lead.settings_text")}</p>
    ${FIELDS.filter(([name]) => name !== "share" || settings.share !== null).map(([name, about]) => input(name, about))}
    <${Refusal} failure=${state instanceof Error ? state : null} />
    <p class="row"><button class="primary" type="submit" disabled=${state === "busy"}>${t("lead.save")}</button>
      <span role="status" class="good">${state === "saved" ? t("sync.saved") : ""}</span></p>
  </form>`;
};

/** A file's bytes in base64. @param {File} file @returns {Promise<string>} */
const base64 = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

/** What became of a file. @param {any} props */
const Imported = ({ name, answer, failure }) => {
  if (failure) return html`<li><bdi>${name}</bdi> <${Refusal} failure=${failure} /></li>`;
  const { counts, left_out: rows } = answer;
  const added = Object.values(counts.added).reduce((/** @type {number} */ sum, count) => sum + /** @type {number} */ (count), 0);
  const aside = counts.left_out + counts.beyond_limit + counts.predictions_left_out
    + Object.values(counts.other_language).reduce((/** @type {number} */ sum, count) => sum + /** @type {number} */ (count), 0);
  return html`<li><b><bdi>${name}</bdi></b> ${t("lead.imported", { added: number(added), known: number(counts.known), predictions: number(counts.predictions), aside: number(aside) })}
    ${rows.length ? html`<ul class="notice warn" lang="en" dir="ltr">${rows.map((/** @type {any} */ row, /** @type {number} */ index) => html`<li key=${index}>${row.line ? `line ${row.line}: ` : ""}${row.id ? `${row.id}: ` : ""}${row.error}</li>`)}</ul>` : null}</li>`;
};

const Import = (/** @type {{onDone: () => void}} */ { onDone }) => {
  const [kind, setKind] = useState("data");
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState(/** @type {any[]} */ ([]));
  const chosen = useRef(/** @type {HTMLInputElement | null} */ (null));
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setDone([]);
    for (const file of chosen.current?.files ?? []) { // one after the other: each says what became of it
      const { name } = file;
      const result = await (file.size > MOST ? Promise.reject(new Error(t("lead.import_large"))) : base64(file))
        .then((content) => call("POST", "/api/lead/import", { name, kind, content }, { patience: MINUTES }))
        .then((answer) => ({ name, answer }), (failure) => ({ name, failure }));
      setDone((before) => [...before, result]);
    }
    setBusy(false);
    onDone();
  };
  return html`<section><h3>${t("lead.import")}</h3><form class="card settings" onSubmit=${send} aria-label=${t("lead.import")}>
    <p>${t("lead.import_text")}</p>
    <fieldset class="choices">${["data", "predictions"].map((name) => html`<label key=${name} class="tick"><input type="radio" name="kind" value=${name} checked=${kind === name}
      onChange=${() => setKind(name)} /><span>${t(`lead.import.${name}`)}</span></label>`)}</fieldset>
    <p><input ref=${chosen} type="file" multiple required aria-label=${t("lead.import_files")} /></p>
    <p class="row"><button class="primary" type="submit" disabled=${busy}>${t("lead.import")}</button>${busy ? html`<progress aria-label=${t("lead.import")}></progress>` : null}</p>
    <ul role="status">${done.map((result) => html`<${Imported} key=${result.name} ...${result} />`)}</ul>
  </form></section>`;
};

/** @param {{refresh: () => Promise<void>}} props */
export const Settings = ({ refresh }) => {
  const { answer, failure, again } = useAnswer("/api/lead/settings");
  return html`<h2>${t("lead.settings")}</h2>
    ${answer ? html`<${Form} settings=${answer} onChanged=${async () => { await again(); refresh(); }} />` : html`<${Waiting} failure=${failure} />`}
    <${Import} onDone=${refresh} />`;
};
