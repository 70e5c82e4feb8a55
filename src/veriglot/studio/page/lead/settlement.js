// Settling many items at once by a rule; what the rule cannot decide stays for a lead.

import { calledBy } from "../names.js";
import { t } from "../texts.js";
import { html, useState } from "../view.js";
import { Act } from "./requests.js";
import { languageName } from "./figures.js";

const RULES = ["agreed", "majority", "best_with_silver"];

/** What the rule did. @param {{done: any, people: Map<string, any>}} props */
const Done = ({ done, people }) => html`<div class="notice good" role="status">
  <p>${t("lead.rule_done", { settled: done.settled, left: done.left, kept: done.kept })}</p>
  ${done.replaced || done.by_hand ? html`<p>${t("lead.rule_before", { replaced: done.replaced, by_hand: done.by_hand })}</p>` : null}
  ${Object.entries(done.best).map(([tag, id]) => html`<p key=${tag}>${languageName(tag)}:
    <b dir="auto">${calledBy(people, /** @type {string} */ (id))}</b></p>`)}
</div>`;

/** @param {{language: string, people: Map<string, any>, onDone: () => Promise<any>}} props */
export const ByRule = ({ language, people, onDone }) => {
  const [rule, setRule] = useState("agreed");
  const [again, setAgain] = useState(false);
  const [done, setDone] = useState(/** @type {any} */ (null));
  return html`<details class="card by-rule"><summary>${t("lead.settle_by_rule")}</summary>
    <fieldset class="choices"><legend>${t("lead.rule")}</legend>
      ${RULES.map((name) => html`<label key=${name} class="tick"><input type="radio" name="rule" value=${name} checked=${rule === name}
        onChange=${() => setRule(name)} /><span>${t(`lead.rule.${name}`)} <small>${t(`lead.rule.${name}.about`)}</small></span></label>`)}
    </fieldset>
    <label class="tick"><input type="checkbox" checked=${again}
      onChange=${(/** @type {any} */ event) => setAgain(event.target.checked)} /><span>${t("lead.rule_overwrite")}</span></label>
    <p><${Act} path="/api/lead/settle" body=${{ rule, again, language: language || null }} kind="primary" label=${t("lead.rule_run")}
      confirm=${t("lead.rule_sure", { language: languageName(language || "all") })} onDone=${async (/** @type {any} */ answer) => {
        setDone(answer);
        await onDone();
      }} /></p>
    ${done ? html`<${Done} done=${done} people=${people} />` : null}
  </details>`;
};
