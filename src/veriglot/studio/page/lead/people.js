// Who takes part, what they have done and how well; inviting, shutting out, letting in again.

import { called, pseudonym } from "../names.js";
import { t, translated } from "../texts.js";
import { html, useState } from "../view.js";
import { Act } from "./requests.js";
import { count, decimal, languageName, money, moment, share, time } from "./figures.js";
import { Invite, NewLink } from "./invite.js";
import { Link, address } from "./routes.js";

const path = (/** @type {any} */ person, /** @type {string} */ what) => `/api/lead/people/${encodeURIComponent(person.id)}/${what}`;

const Actions = (/** @type {any} */ { person, again, onLink, self }) => {
  const name = person.name ?? person.note ?? called(person);
  const act = (/** @type {string} */ what, /** @type {any} */ more = {}) => html`<${Act} key=${what} path=${path(person, what)} body=${{}}
    label=${t(`lead.${what}`)} name=${t(`lead.${what}_who`, { name })} onDone=${again} ...${more} />`;
  return html`<span class="actions">
    ${person.stage === "revoked" ? act("restore") : html`
      ${act("renew", { confirm: person.joined_at ? t("lead.renew_sure") : undefined, onDone: async (/** @type {any} */ made) => {
        onLink(made);
        await again();
      } })}
      ${person.exam_attempts ? act("reset_exam", { confirm: t("lead.reset_exam_sure") }) : null}
      ${self ? null : act("revoke", { confirm: t("lead.revoke_sure") })}`}
  </span>`;
};

/** What stands out of somebody's work, in words. @param {{person: any}} props */
const Flags = ({ person }) => person.pace.flags.length
  ? html`<ul class="warnings">${person.pace.flags.map((/** @type {any} */ flag) => html`<li key=${flag.kind}>
      <b class="tag warn">${t(`lead.flag.${flag.kind}`)}</b> <small>${translated(flag.reason)}</small></li>`)}</ul>`
  : null;

const Exam = (/** @type {any} */ { person }) => {
  if (!person.exam_attempts) return "–";
  const last = person.exam ?? {};
  const passed = last.passed ?? person.stage === "work";
  const said = ["precision", "recall", "agreement"].filter((name) => typeof last[name] === "number")
    .map((name) => `${t(`lead.short.${name}`)} ${share(last[name])}`);
  const decisive = last.measure === "agreement" ? ["agreement"] : ["precision", "recall"];
  const below = Object.entries(last.by_language ?? {}).filter(([, part]) => decisive.some((name) => (part[name] ?? 1) < last.threshold));
  return html`<span class=${passed ? "good" : "bad"}>${t(passed ? "lead.exam_passed" : "lead.exam_not_passed")}</span>
    ${below.map(([tag, part]) => html`<small key=${tag} class="bad">${languageName(tag)}: ${decisive.map((name) => (typeof part[name] === "number" ? share(part[name]) : "–")).join(" · ")} ${"<"} ${share(last.threshold)}</small>`)}
    <small>${[t("lead.exam_attempts", { count: person.exam_attempts }), ...said].join(" · ")}</small>`;
};

/** What became of the suggestions that somebody was shown. @param {{counts: any}} props */
const Suggested = ({ counts }) => {
  if (!counts) return null;
  const more = t("lead.suggested_about", Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, /** @type {number} */ (n)])));
  return html`<small title=${more}>${t("lead.suggested", { share: share(counts.accepted / counts.shown) })}<span class="unseen"> ${more}</span></small>`;
};

/** Likeness to others over time, one point for each stretch of work. @param {{points: any[]}} props */
const Trend = ({ points }) => {
  const known = points.filter((point) => point.others !== null);
  if (known.length < 2) return null;
  const about = t("lead.trend_about", { n: points[0].items, values: known.map((point) => share(point.others)).join(", ") });
  const line = known.map((point, index) => `${(60 * index) / (known.length - 1)},${18 - 16 * point.others}`).join(" ");
  return html`<svg class="trend" viewBox="-2 0 64 20" width="64" height="20" role="img" aria-label=${about}><title>${about}</title><polyline points=${line} fill="none" stroke="currentColor" stroke-width="1.5" /></svg>`;
};

const Person = (/** @type {any} */ { person, me, overview, again, onLink }) => {
  const { pace } = person;
  const handed = Object.entries(person.by_purpose);
  return html`<tr>
    <th scope="row"><bdi>${called(person)}</bdi>
      ${person.name ? html`<small>${t("lead.known_as", { name: pseudonym(person) })}</small>` : html`<small>${t("lead.not_joined")}</small>`}
      <small>${[t(`lead.role.${person.role}`), ...(person.languages ?? []).map(languageName)].join(" · ")}</small>
      ${person.note ? html`<small><bdi>${person.note}</bdi></small>` : null}</th>
    <td><span class=${`tag stage-${person.stage}`}>${t(`lead.stage.${person.stage}`)}</span>
      ${person.last_at ? html`<small>${t("lead.last", { at: moment(person.last_at) })}</small>` : null}
      <${Flags} person=${person} /></td>
    <td><${Exam} person=${person} /></td>
    <td class="n">${handed.length ? handed.map(([purpose, n]) => html`<span key=${purpose} class="line"><b>${count(n)}</b> <small>${t(`purpose.${purpose}`)}</small></span>`) : "–"}
      ${person.begun ? html`<small><${Link} to=${`${address("items")}?person=${encodeURIComponent(person.id)}&state=open`}>${t("lead.waiting", { count: person.begun })}<//></small>` : null}
      ${pace.skipped ? html`<small>${t("lead.skips", { count: pace.skipped })}</small>` : null}</td>
    <td class="n">${pace.seconds_per_item === null ? "–" : html`${time(pace.seconds_per_item)}
      <small>${t("lead.per_word", { n: decimal(pace.seconds_per_word, 2) })}</small>`}
      ${pace.too_fast ? html`<small>${t("lead.too_fast", { count: pace.too_fast })}</small>` : null}</td>
    <td class="n">${pace.checks ? html`<span class="line">${decimal(pace.check_f1)} <small>${t("lead.of_checks", { count: pace.checks })}</small></span>` : null}
      ${pace.others === null ? null : html`<span class="line">${share(pace.others)} <small>${t("lead.like_others")}</small></span>`}
      ${person.confirmed + person.corrected + person.sent_back ? html`<small>${t("lead.reviewed", { confirmed: count(person.confirmed), corrected: count(person.corrected), sent_back: count(person.sent_back) })}</small>` : null}
      <${Suggested} counts=${person.suggested} />
      <${Trend} points=${pace.trend} />
      ${!pace.checks && pace.others === null && !person.suggested ? "–" : null}</td>
    <td class="n">${time(person.seconds)}${person.cost === null || person.cost === undefined ? null : html`<small>${money(person.cost, overview.currency)}</small>`}</td>
    <td><${Actions} person=${person} again=${again} onLink=${onLink} self=${person.id === me.person.id} /></td>
  </tr>`;
};

const FEW = 6; // people; the invitation is folded up once there are more

/** @param {{overview: any, me: any, again: () => Promise<void>}} props */
export const People = ({ overview, me, again }) => {
  const [made, setMade] = useState(/** @type {any} */ (null));
  const show = (/** @type {any} */ link) => {
    setMade(link);
    again();
  };
  const languages = overview.languages.map((/** @type {any} */ row) => row.language).filter(Boolean);
  const heads = ["person", "standing", "exam", "handed_in", "pace", "checks", "time", "actions"];
  return html`
    <h2>${t("lead.people")}</h2>
    ${made ? html`<${NewLink} link=${made.link} expires=${made.expires} onClose=${() => setMade(null)} />` : null}
    <${Invite} languages=${languages} signIn=${me.project.sign_in} open=${overview.people.length < FEW} onInvited=${show} />
    <div class="table-box" tabindex="0" role="region" aria-label=${t("lead.people")}><table class="people">
      <thead><tr>${heads.map((name) => html`<th key=${name} scope="col" class=${["handed_in", "pace", "checks", "time"].includes(name) ? "n" : ""}
        title=${t(`lead.${name}_about`)}>${t(`lead.${name}`)}</th>`)}</tr></thead>
      <tbody>${overview.people.map((/** @type {any} */ person) => html`<${Person} key=${person.id} ...${{ person, me, overview, again }} onLink=${show} />`)}</tbody>
    </table></div>`;
};
