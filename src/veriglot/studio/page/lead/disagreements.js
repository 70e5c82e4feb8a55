// What people said of one item, side by side, those items first that they are least alike on.

import { calledBy } from "../names.js";
import { number, t } from "../texts.js";
import { html, useState } from "../view.js";
import { Act, AsOf, Waiting, useAnswer } from "./requests.js";
import { languageName, share } from "./figures.js";
import { Marked } from "./annotated_text.js";
import { Link, address, go } from "./routes.js";
import { ByRule } from "./settlement.js";

const STEP = 10;

const Texts = (/** @type {any} */ { item }) => html`<details class="texts"><summary>${t("lead.question_and_evidence")}</summary>
  ${item.question ? html`<p dir=${item.question_direction} lang=${item.language ?? undefined}><b>${item.question}</b></p>` : null}
  ${item.evidence.map((/** @type {any} */ passage) => html`<blockquote key=${passage.id} dir=${passage.direction} lang=${passage.language ?? undefined}>
    ${passage.title ? html`<h4>${passage.title}</h4>` : null}<p>${passage.text}</p>
  </blockquote>`)}
</details>`;

/** One item with all that was said of it. @param {any} props */
const Case = ({ one, form, people, again }) => {
  const { item, said } = one;
  return html`<article class="case" aria-label=${one.key}>
    <header class="case-head">
      <p><b>${one.key}</b> <span class="tag">${languageName(item.language)}</span>
        <span class=${`tag ${one.settled ? "good" : ""}`}>${one.settled ? t("lead.settled") : t("lead.alike", { share: share(one.likeness) })}</span>
        ${one.disputed ? html`<span class="tag">${t("lead.disputed", { count: one.disputed })}</span>` : null}</p>
      <p class="row">
        <${Link} class="button second" to=${address("items", item.id)}>${t("lead.history")}<//>
        <${Act} path="/api/lead/adjudications" body=${{ item: item.id }} kind="primary"
          label=${t(one.settled ? "lead.settle_anew" : "lead.settle")} name=${t("lead.settle_item", { key: one.key })}
          onDone=${(/** @type {any} */ done) => done.assignment ? go(`/mark/${done.assignment}`) : again()} />
      </p>
    </header>
    <${Texts} item=${item} />
    <div class="sides">${said.map((/** @type {any} */ each) => html`<section key=${each.assignment} class="side">
      <h4><bdi>${calledBy(people, each.by)}</bdi></h4>
      <${Marked} text=${item.response} direction=${item.direction} language=${item.language} layer=${each.final ?? each.layer} form=${form} />
    </section>`)}</div>
  </article>`;
};

/** @param {{form: any, people: Map<string, any>, overview: any, refresh: () => Promise<void>}} props */
export const Disagreements = ({ form, people, overview, refresh }) => {
  const [language, setLanguage] = useState("");
  const [settled, setSettled] = useState(false);
  const [limit, setLimit] = useState(STEP);
  const asked = new URLSearchParams({ limit: String(limit), ...(language && { language }), ...(settled && { settled: "true" }) });
  const { answer, failure, busy, pending, again } = useAnswer(`/api/lead/disagreements?${asked}`);
  const languages = overview.languages.map((/** @type {any} */ row) => row.language).filter(Boolean);
  return html`
    <div class="page-head"><h2>${t("lead.disagreements")}</h2><p class="row"><${AsOf} answer=${answer} />
      ${languages.length > 1 ? html`<label class="field inline"><span>${t("lead.language")}</span>
        <select value=${language} onChange=${(/** @type {any} */ event) => setLanguage(event.target.value)}>
          <option value="">${t("lead.all_languages")}</option>
          ${languages.map((/** @type {string} */ tag) => html`<option key=${tag} value=${tag}>${languageName(tag)}</option>`)}
        </select></label>` : null}
      <label class="tick"><input type="checkbox" checked=${settled}
        onChange=${(/** @type {any} */ event) => setSettled(event.target.checked)} /><span>${t("lead.show_settled")}</span></label>
    </p></div>
    <${ByRule} language=${language} people=${people} onDone=${() => Promise.all([again(), refresh()])} />
    ${!answer ? html`<${Waiting} failure=${failure} pending=${pending} />` : html`
      <div class="page-head"><p class="summary" role="status">${answer.total || settled ? t("lead.disagreements_of", { count: answer.total }) : t("lead.no_disagreements")}</p>
      ${answer.items.length && !settled ? html`<${Act} path="/api/lead/adjudications" body=${{ item: answer.items[0].item.id }} kind="primary"
        label=${t("lead.settle_all")} onDone=${(/** @type {any} */ done) => go(`/mark/${done.assignment}`)} />` : null}</div>
      ${answer.items.map((/** @type {any} */ one) => html`<${Case} key=${one.item.id} ...${{ one, form, people, again }} />`)}
      ${answer.items.length < answer.total ? html`<p><button type="button" class="second" disabled=${busy}
        onClick=${() => setLimit(limit + STEP)}>${t("lead.more", { n: number(Math.min(STEP, answer.total - answer.items.length)) })}</button></p>` : null}`}`;
};
