// How sure the rates are by the labels so far, what more labels would do, and whether suggestions change the labels.

import { interfaceLanguage, number, t, translated } from "../texts.js";
import { html } from "../view.js";
import { languageName } from "./figures.js";
import { AsOf, Waiting, useAnswer } from "./requests.js";
import { Link, address } from "./routes.js";

const percent = (/** @type {number | null} */ value, /** @type {"auto" | "always"} */ signDisplay = "auto") =>
  value === null ? "–" : new Intl.NumberFormat(interfaceLanguage(), { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1, signDisplay }).format(value);

const Interval = (/** @type {any} */ { low, high, sign }) =>
  (low === null || high === null ? "–" : html`<bdi dir="ltr">[${percent(low, sign)}, ${percent(high, sign)}]</bdi>`);

/** A language, with a row for each hundred labels; bars share one scale. */
const Rows = (/** @type {any} */ { row, most }) => {
  const steps = row.steps.length ? row.steps : [{ labels: 0, rate: null, low: null, high: null, reasons: [] }];
  return steps.map((/** @type {any} */ step, /** @type {number} */ index) => {
    const last = index === steps.length - 1;
    const at = (/** @type {number} */ value) => `${(value / most) * 100}%`;
    return html`<tr key=${`${row.language} ${step.labels}`}>
      ${index === 0 ? html`<th scope="rowgroup" rowspan=${steps.length}>${languageName(row.language)}</th>` : null}
      <td class="n">${number(step.labels)}</td>
      <td class="n"><b dir="ltr">${step.rate !== null && step.reasons.length ? `(${percent(step.rate)}?)` : percent(step.rate)}</b></td>
      <td><span class="figure"><${Interval} ...${step} />
        ${step.low === null ? null : html`<span class="figure-bar" aria-hidden="true">
          <u style=${{ insetInlineStart: at(step.low), width: at(step.high - step.low) }}></u></span>`}</span></td>
      <td>${!last ? "" : row.enough ? html`<b>✓ ${t("lead.rates_enough")}</b>` : row.needed === null ? "–" : number(row.needed)}
        ${last && row.reasons.length ? html`<small class="why">${row.reasons.map(translated).join(" ")}</small>` : null}
        ${last && row.suggested ? html`<small>${t("lead.rates_suggested", { n: row.suggested, of: row.labels })}</small>` : null}</td>
    </tr>`;
  });
};

const Effects = (/** @type {any} */ { effects }) => html`<section><h3>${t("lead.effects")}</h3>
  <div class="table-box" tabindex="0" role="region" aria-label=${t("lead.effects")}><table>
    <thead><tr><th scope="col"></th><th scope="col" class="n">${t("lead.effect.shown")}</th><th scope="col" class="n">${t("lead.effect.blind")}</th>
      <th scope="col">${t("lead.effect.difference")}</th></tr></thead>
    <tbody>${effects.map((/** @type {any} */ row) => html`<tr key=${row.measure}>
      <th scope="row">${t(`lead.effect.${row.measure}`)}</th>
      <td class="n">${percent(row.shown)} <small>${t("lead.items_count", { count: row.shown_items })}</small></td>
      <td class="n">${percent(row.blind)} <small>${t("lead.items_count", { count: row.blind_items })}</small></td>
      <td>${row.difference === null ? html`${t("lead.too_few_items")} <small class="why">${t("lead.few_about", { n: Number(/(\d+) of each/.exec(row.reason)?.[1]) })}</small>`
        : html`<b>${percent(row.difference, "always")}</b> <${Interval} ...${row} sign="always" />`}</td>
    </tr>`)}</tbody>
  </table></div></section>`;

const Report = (/** @type {any} */ { report }) => {
  const most = Math.max(1e-9, ...report.languages.flatMap((/** @type {any} */ row) => row.steps.map((/** @type {any} */ step) => step.high ?? 0)));
  return html`
    <p>${t("lead.rates_text")} ${t(`lead.unit.${report.unit}`)} ${t("lead.rates_wanted", { share: percent(report.half_width) })}</p>
    ${report.stops && report.languages.some((/** @type {any} */ row) => row.enough) ? html`<p class="notice good">${t("lead.rates_stopped")} <${Link} to=${address("settings")}>${t("lead.settings")}<//></p>` : null}
    <div class="table-box" tabindex="0" role="region" aria-label=${t("lead.rates")}><table>
      <thead><tr><th scope="col">${t("lead.language")}</th><th scope="col" class="n">${t("lead.rates_labels")}</th>
        <th scope="col" class="n">${t("lead.rates_rate")}</th><th scope="col">${t("lead.interval")}</th><th scope="col">${t("lead.rates_needed")}</th></tr></thead>
      ${report.languages.map((/** @type {any} */ row) => html`<tbody key=${row.language}><${Rows} row=${row} most=${most} /></tbody>`)}
    </table></div>
    ${report.effects.length ? html`<${Effects} effects=${report.effects} />` : null}`;
};

export const Rates = () => {
  const { answer, failure, busy, pending, again } = useAnswer("/api/lead/rates");
  return html`
    <div class="page-head"><h2>${t("lead.rates")}</h2>
      <p class="row"><${AsOf} answer=${answer} /><button type="button" class="second" disabled=${busy} onClick=${again}>${t("lead.refresh")}</button></p></div>
    ${answer ? html`<${Report} report=${answer} />` : html`<${Waiting} failure=${failure} pending=${pending} />`}`;
};
