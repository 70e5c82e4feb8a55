// Everything as a file, at any time.

import { BASE, project } from "../api.js";
import { t } from "../texts.js";
import { html } from "../view.js";

const FORMATS = ["native", "mfava", "hat", "inline", "label_studio"];

export const Exports = () => html`
  <h2>${t("lead.exports")}</h2>
  <p>${t("lead.exports_text")}</p>
  <ul class="cards">${FORMATS.map((format) => html`<li key=${format} class="card">
    <h3>${t(`lead.format.${format}`)}</h3>
    <p>${t(`lead.format.${format}.about`)}</p>
    <a class="button" href=${`${BASE}/api/lead/export?format=${format}&project=${project()}`} download>${t("lead.download")}
      <span class="unseen">${t(`lead.format.${format}`)}</span></a>
  </li>`)}</ul>`;
