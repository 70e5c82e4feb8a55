// What people agree to before they begin: the text of the project, else Veriglot's.

import { t } from "./texts.js";
import { html } from "./view.js";

/**
 * The text in a language, or in the nearest that there is.
 * @param {Record<string, string>} texts @param {string} language
 * @returns {{language: string, text: string} | null} null where the project has none: Veriglot's own is shown
 */
export const consentIn = (texts, language) => {
  const tag = [language, language.split("-")[0], "en", ...Object.keys(texts)].find((candidate) => texts[candidate]);
  return tag ? { language: tag, text: texts[tag] } : null;
};

/** @param {{consent: {language: string, text: string} | null, agreed: boolean, onChange: (on: boolean) => void}} props */
export const Consent = ({ consent, agreed, onChange }) => html`<fieldset class="consent">
  <legend>${t("join.consent")}</legend>
  <div class="consent-text" lang=${consent?.language} dir="auto" tabindex="0">
    ${(consent?.text ?? t("join.consent_text")).trim().split(/\n\s*\n/).map((part) => html`<p dir="auto">${part}</p>`)}
  </div>
  <label class="tick">
    <input type="checkbox" name="consent" checked=${agreed} required
      onChange=${(/** @type {any} */ event) => onChange(event.target.checked)} />
    <span>${t("join.agree")}</span>
  </label>
</fieldset>`;
