// The lead's pages: how far the work is, who does it, how well they agree, and what to settle.

import { leave } from "../api.js";
import { t } from "../texts.js";
import { ProjectName, ThemeSwitch } from "../header.js";
import { html, useEffect } from "../view.js";
import { Agreement } from "./agreement.js";
import { Waiting, useAnswer } from "./requests.js";
import { Batches } from "./batches.js";
import { Conversations } from "./conversations.js";
import { Disagreements } from "./disagreements.js";
import { Exports } from "./exports.js";
import { Items } from "./item_list.js";
import { ItemHistory } from "./items.js";
import { People } from "./people.js";
import { Link, address, go, placeOf, takeNavigate } from "./routes.js";
import { Progress } from "./progress.js";
import { Rates } from "./rates.js";
import { Settings } from "./settings.js";

const TABS = ["progress", "people", "agreement", "rates", "disagreements", "conversations", "batches", "items", "exports", "settings"];
const FRESH = 30; // seconds until the figures are asked for again

const Page = (/** @type {any} */ { place, me, overview, again }) => {
  const [tab = "progress", id] = place;
  const { form } = me.project;
  const people = new Map(overview.people.map((/** @type {any} */ one) => [one.id, one]));
  if (tab === "items" && id) return html`<${ItemHistory} key=${id} id=${id} form=${form} people=${people} />`;
  switch (tab) {
    case "people": return html`<${People} overview=${overview} me=${me} again=${again} />`;
    case "agreement": return html`<${Agreement} people=${people} />`;
    case "rates": return html`<${Rates} />`;
    case "disagreements": return html`<${Disagreements} form=${form} people=${people} overview=${overview} refresh=${again} />`;
    case "conversations": return html`<${Conversations} people=${people} />`;
    case "batches": return html`<${Batches} overview=${overview} people=${people} again=${again} />`;
    case "items": return html`<${Items} overview=${overview} people=${people} form=${form} refresh=${again} />`;
    case "exports": return html`<${Exports} />`;
    case "settings": return html`<${Settings} refresh=${again} />`;
    case "progress": return html`<${Progress} overview=${overview} />`;
    default: return html`<p class="notice bad" role="alert">${t("trouble.nowhere")}</p>`;
  }
};

/** @param {{me: any, params: {view?: string}, navigate: (path: string, options?: any) => void, again: () => Promise<void>}} props */
export const Screen = ({ me, params, navigate, again: whoAsks }) => {
  takeNavigate(navigate);
  const place = placeOf(params.view);
  const { answer: overview, failure, pending, again } = useAnswer("/api/lead/overview", FRESH);
  const tab = place.length === 0 ? "progress" : TABS.includes(place[0]) ? place[0] : "";
  useEffect(() => {
    document.title = `${t(tab ? `lead.${tab}` : "lead.title")} · ${me.project.name}`;
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone tabs scroll
  }, [tab]);
  useEffect(() => {
    if (me.person.role !== "lead") navigate("/", { replace: true });
  }, [me]);
  const signOut = async () => {
    if (await leave()) await whoAsks();
  };
  return html`<div class="lead">
    <a class="skip-link" href="#lead-main">${t("lead.skip_to_content")}</a>
    <header class="lead-head">
      <p class="lead-project"><${ProjectName} me=${me} /> <small>${t("lead.title")}</small></p>
      <p class="row">
        <button type="button" class="tool" onClick=${() => go("/mark")}>${t("lead.own_work")}</button>
        <${ThemeSwitch} />
        <button type="button" class="tool" onClick=${signOut}>${t("leave")}</button>
      </p>
      <nav aria-label=${t("lead.pages")}><ul class="tabs">
        ${TABS.map((name) => html`<li key=${name}><${Link} to=${address(...(name === "progress" ? [] : [name]))}
          aria-current=${name === tab ? "page" : undefined}>${t(`lead.${name}`)}<//></li>`)}
      </ul></nav>
    </header>
    <main id="lead-main" tabindex="-1">
      ${failure && overview ? html`<p class="notice bad" role="alert">${t("lead.stale")}</p>` : null}
      ${overview
        ? html`<${Page} ...${{ place, me, overview, again }} />`
        : html`<${Waiting} failure=${failure} pending=${pending} />`}
    </main>
  </div>`;
};
