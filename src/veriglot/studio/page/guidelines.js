// The guidelines: HTML that the server made of Markdown, and that holds no markup of its author's.

import { BASE, call } from "./api.js";
import { ink } from "./colours.js";
import { interfaceLanguage, named, t } from "./texts.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./view.js";

/** @type {Map<string, Promise<any>>} */
const requests = new Map();

const read = (/** @type {string} */ language) => {
  if (!requests.has(language)) {
    const asked = call("GET", `/api/guidelines?language=${encodeURIComponent(language)}`);
    requests.set(language, asked);
    asked.catch(() => requests.delete(language));
  }
  return /** @type {Promise<any>} */ (requests.get(language));
};

/** The colours and names of types, on the marks of examples. */
const dress = (/** @type {HTMLElement} */ root, /** @type {any} */ form) => {
  const choices = [...form.types, ...form.unit_labels, ...form.labels];
  for (const mark of root.querySelectorAll("mark[data-type]")) {
    const type = mark.getAttribute("data-type") ?? "";
    const colour = choices.find((choice) => choice.name === type)?.colour;
    if (colour) /** @type {HTMLElement} */ (mark).style.setProperty("--colour", ink(colour));
    const name = mark.querySelector(":scope > .mark-type");
    if (name) {
      name.textContent = named("type", type);
      name.setAttribute("lang", interfaceLanguage());
    }
  }
};

/** The text of the guidelines. @param {{form: any}} props */
export const GuidelinesText = ({ form }) => {
  const language = interfaceLanguage();
  const [guidelines, setGuidelines] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(false);
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    let asked = true;
    setFailed(false);
    read(language).then((answer) => asked && setGuidelines(answer), () => asked && setFailed(true));
    return () => {
      asked = false;
    };
  }, [language]);
  useLayoutEffect(() => {
    if (root.current && guidelines) dress(root.current, form);
  }, [guidelines, form]);
  if (failed) return html`<p class="notice bad" role="alert">${t("guidelines.failed")}</p>`;
  if (!guidelines) return html`<p role="status">${t("rest.loading")}</p>`;
  return html`<article ref=${root} class="guidelines" lang=${guidelines.language} dir=${guidelines.direction}
    dangerouslySetInnerHTML=${{ __html: guidelines.html }}></article>`;
};

/** The guidelines beside the text that is worked on. @param {{form: any, onClose: () => void}} props */
export const GuidelinesPane = ({ form, onClose }) => html`<section class="pane guide scroll" aria-label=${t("guidelines.title")} tabindex="0">
  <header><h2>${t("guidelines.title")}</h2><button class="plain" aria-label=${t("close")} title=${t("close")} onClick=${onClose}>✕</button></header>
  <${GuidelinesText} form=${form} />
</section>`;

/** The guidelines as a page of their own. @param {{me: any}} props */
export const Screen = ({ me }) => html`<main class="gate wide">
  <p><a href=${`${BASE}/`}>${t("guidelines.back")}</a></p>
  <h1>${t("guidelines.title")}</h1>
  <${GuidelinesText} form=${me.project.form} />
</main>`;
