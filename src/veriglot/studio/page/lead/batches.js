// Batches: worked on, checked on a random part, accepted or sent back whole.

import { calledBy } from "../names.js";
import { number, t } from "../texts.js";
import { html } from "../view.js";
import { Act } from "./requests.js";
import { languageName, share } from "./figures.js";

const Round = (/** @type {any} */ { round, people }) => html`<li>
  <span class=${`tag ${round.passed ? "good" : "bad"}`}>${t(round.passed ? "lead.round_passed" : "lead.round_failed")}</span>
  ${t("lead.round_checked", { count: round.checked })}
  ${round.checked ? html` · ${t("lead.short.precision")} <b>${share(round.precision)}</b> · ${t("lead.short.recall")} <b>${share(round.recall)}</b>
    <small>(${t("lead.minimum", { share: share(round.threshold) })})</small>` : null}
  ${round.by?.length ? html`<small> · ${round.by.map((/** @type {string} */ id) => calledBy(people, id)).join(", ")}</small>` : null}
</li>`;

/** @param {{overview: any, people: Map<string, any>, again: () => Promise<void>}} props */
export const Batches = ({ overview, people, again }) => html`
  <h2>${t("lead.batches")}</h2>
  <p>${t("lead.batches_text")}</p>
  ${overview.batches.length === 0 ? html`<p class="notice">${t("lead.no_batches")}</p>` : null}
  <ul class="cards wide">${overview.batches.map((/** @type {any} */ batch) => html`<li key=${batch.id} class="card">
    <header class="case-head">
      <h3>${t("lead.batch", { n: number(batch.number) })} <small>${languageName(batch.language)}</small>
        <span class=${`tag batch-${batch.state}`}>${t(`lead.batch_state.${batch.state}`)}</span></h3>
      ${["open", "returned"].includes(batch.state) ? html`<${Act} path=${`/api/lead/batches/${batch.id}/validate`} body=${{}}
        label=${t("lead.validate")} name=${t("lead.validate_batch", { n: number(batch.number) })}
        confirm=${batch.ready ? undefined : t("lead.validate_early")} kind=${batch.ready ? "primary" : "second"} onDone=${again} />` : null}
    </header>
    <p>${t("lead.items_count", { count: batch.items })}${batch.ready ? ` · ${t("lead.batch_ready")}` : ""}</p>
    ${batch.state === "validating" ? html`<p class="notice">${t("lead.batch_waits", { count: batch.checks })}</p>` : null}
    ${batch.rounds.length ? html`<ol class="rounds">${batch.rounds.map((/** @type {any} */ round) => html`<${Round} key=${round.round} round=${round} people=${people} />`)}</ol>` : null}
  </li>`)}</ul>`;
