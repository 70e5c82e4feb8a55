// The line at the top: the project, how far one is, where the work is, and what can be looked up.

import { BASE, leave } from "./api.js";
import { SyncLine } from "./sync_status.js";
import { number, t } from "./texts.js";
import { nextTheme, theme } from "./theme.js";
import { html, useState } from "./view.js";

const SUNS = { auto: "◐", light: "☀", dark: "☾" };

/** The switch between light, dark and as the device says. */
export const ThemeSwitch = () => {
  const [now, setNow] = useState(theme());
  return html`<button class="tool" id="theme" aria-label=${t(`theme.${now}`)} title=${t(`theme.${now}`)} onClick=${() => setNow(nextTheme())}><span aria-hidden="true">${SUNS[now]}</span></button>`;
};

/** The project, or a choice of those that this browser is signed in to. @param {{me: any}} props */
export const ProjectName = ({ me }) => {
  const change = (/** @type {any} */ event) => location.assign(`${BASE}/?project=${encodeURIComponent(event.target.value)}`);
  return me.projects.length < 2 ? html`<b dir="auto">${me.project.name}</b>` : html`<select class="project" aria-label=${t("projects")} value=${me.project.slug} onChange=${change}>
    ${me.projects.map((/** @type {any} */ { slug, name }) => html`<option key=${slug} value=${slug}>${name}</option>`)}</select>`;
};

/**
 * @param {{me: any, sync: import("./sync.js").Sync, done: number, left: number | null, unread: number, guide: boolean, onPanel: (name: any) => void, navigate: (path: string) => void}} props
 */
export const Top = ({ me, sync, done, left, unread, guide, onPanel, navigate }) => {
  const go = async () => {
    if (sync.state().waiting && !confirm(t("leave.unsent"))) return;
    if (await leave()) location.reload();
  };
  const sitting = me.person.stage === "exam";
  const known = sitting || (left ?? 0) > 1; // of new work, only that there is some: a bar would be full all day
  return html`
    <header class="top">
      <h1><${ProjectName} me=${me} /></h1>
      <div class="progress">
        ${known ? html`<progress max=${Math.max(1, done + (left ?? 0))} value=${done} aria-label=${t("progress.label")}></progress>` : null}
        <span class="fine">${sitting ? html`<b>${t("purpose.exam")}</b> · ` : null}${t("progress", { done })}${left && known ? ` · ${t("progress.left", { count: left })}` : ""}</span>
      </div>
      <${SyncLine} sync=${sync} onConflict=${() => onPanel("conflict")} />
      <nav class="tools" aria-label=${t("tools.label")}>
        <button class="tool" onClick=${() => onPanel("items")}>${t("items.title")}${unread ? html` <b class="unread">${number(unread)}<span class="unseen"> ${t("items.unread", { count: unread })}</span></b>` : null}</button>
        <button class="tool" aria-pressed=${guide} onClick=${() => onPanel("guidelines")}>${t("guidelines.title")}</button>
        <button class="tool" aria-label=${t("help.title")} title=${t("help.title")} onClick=${() => onPanel("help")}>?</button>
        ${me.person.role === "lead" ? html`<button class="tool" onClick=${() => navigate("/lead")}>${t("lead.open")}</button>` : null}
        <${ThemeSwitch} />
        <button class="tool" onClick=${go} title=${me.person.name ? t("leave.who", { name: me.person.name }) : undefined}>${t("leave")}</button>
      </nav>
    </header>`;
};
