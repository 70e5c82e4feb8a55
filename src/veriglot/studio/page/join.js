// A link that was followed: what one agrees to, the name that one chooses, and in.

import { Failure, call, takeProject, takeToken } from "./api.js";
import { Consent, consentIn } from "./consent.js";
import { interfaceLanguage, t, takeUp, translated } from "./texts.js";
import { html, useEffect, useRef, useState } from "./view.js";

/** What a language calls itself. @param {string} tag */
export const ownName = (tag) => {
  try {
    const name = new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
    return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
  } catch {
    return tag;
  }
};

/** Choose the language of the interface; below, whether its words are machine-made. @param {{languages: string[], onChange: () => void}} props */
export const LanguageChoice = ({ languages, onChange }) => {
  const change = async (/** @type {Event} */ event) => {
    const tag = /** @type {HTMLSelectElement} */ (event.target).value;
    takeUp(await call("GET", `/api/words/${encodeURIComponent(tag)}`));
    onChange();
  };
  const notice = html`<small>${t("translation.notice")}</small>`; // empty where a native speaker has checked the words
  if (languages.length < 2) return notice;
  return html`<label class="field">
    <span>${t("join.language")}</span>
    <select value=${interfaceLanguage()} onChange=${change}>
      ${languages.map((tag) => html`<option key=${tag} value=${tag} lang=${tag}>${ownName(tag)}</option>`)}
    </select>
    ${notice}
  </label>`;
};

/** Why a link or an answer was refused. @param {{failure: any}} props */
export const Refusal = ({ failure }) => failure && html`<div class="notice bad" role="alert">
  <p dir="auto">${failure.status === 0 ? t("join.offline") : translated(failure.message) || t("join.failed")}</p>
  ${failure.remedy && html`<p dir="auto">${translated(failure.remedy)}</p>`}
</div>`;

/** The languages that a browser prefers, nearest first, of those that there are. @param {string[]} offered */
const preferred = (offered) => {
  for (const wanted of navigator.languages) {
    const match = offered.find((tag) => tag === wanted) ?? offered.find((tag) => tag === wanted.split("-")[0]);
    if (match) return match;
  }
  return offered.includes("en") ? "en" : offered[0];
};

const Form = (/** @type {any} */ { invitation, token, failure, setFailure, redraw, onJoined }) => {
  const [name, setName] = useState("");
  const [agreed, setAgreed] = useState(false);
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const language = interfaceLanguage();
  useEffect(() => {
    if (failure?.field === "name") field.current?.focus();
  }, [failure]);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFailure(null);
    try {
      takeToken((await call("POST", "/api/join", { token, name, language, consent: agreed })).csrf);
      takeProject("");
      await onJoined();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  const wrong = failure?.field === "name";
  return html`<form class="gate-form" onSubmit=${send}>
    ${invitation.joined
      ? html`<p>${t("join.back", { name: invitation.name })}</p>`
      : html`
        <${LanguageChoice} languages=${invitation.languages} onChange=${redraw} />
        <${Consent} consent=${consentIn(invitation.consent, language)} agreed=${agreed} onChange=${setAgreed} />
        <label class="field">
          <span>${t("join.name")}</span>
          <input ref=${field} name="name" value=${name} maxlength="40" required autocomplete="off" spellcheck=${false}
            dir="auto" aria-describedby="name-hint" aria-invalid=${wrong ? "true" : undefined}
            onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
          <small id="name-hint">${t("join.name_hint")}</small>
        </label>`}
    <${Refusal} failure=${failure} />
    <button class="primary" type="submit" disabled=${busy || (!invitation.joined && (!agreed || !name.trim()))}>
      ${t(invitation.joined ? "join.continue" : "join.begin")}
    </button>
  </form>`;
};

/** The page behind a link. @param {{params: {token: string}, navigate: (path: string, options?: any) => void, again: () => Promise<void>}} props */
export const Screen = ({ params, navigate, again }) => {
  const { token } = params; // as it stands in the address, where it is passed on so
  const [invitation, setInvitation] = useState(/** @type {any} */ (null));
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const [, redraw] = useState(0);
  useEffect(() => {
    const read = async () => {
      try {
        const answer = await call("GET", `/api/join/${token}`);
        const wanted = preferred(answer.languages);
        if (wanted && wanted !== interfaceLanguage()) takeUp(await call("GET", `/api/words/${wanted}`));
        setInvitation(answer);
      } catch (error) {
        const failed = error instanceof Failure ? error : new Failure(0, null); // no call has a token with a slash
        setFailure(failed.status === 404 ? new Failure(404, { error: { message: t("server.forged"), remedy: t("server.ask_sender") } }) : failed);
      }
    };
    read();
  }, [token]);
  useEffect(() => {
    if (invitation) document.title = `${invitation.project.name} · Veriglot Studio`;
  }, [invitation]);
  const onJoined = async () => {
    await again();
    navigate("/", { replace: true }); // without the link's key in the address
  };
  if (!invitation) {
    return html`<main class="gate">${failure
      ? html`<h1>${t("join.closed")}</h1><${Refusal} failure=${failure} />`
      : html`<p role="status">${t("rest.loading")}</p>`}</main>`;
  }
  return html`<main class="gate">
    <p class="gate-brand">Veriglot Studio</p>
    <h1><bdi>${invitation.project.name}</bdi></h1>
    <p class="gate-lead">${t(`join.as_${invitation.role}`)}</p>
    <${Form} ...${{ invitation, token, failure, setFailure, onJoined }} redraw=${() => redraw((n) => n + 1)} />
  </main>`;
};
