// Where one is: the address leads to a screen; the front door leads to the one where somebody belongs.

import { BASE, Failure, call, me as whoAsks, wordsOf } from "./api.js";
import { ADDRESSES } from "./screens.js";
import { has, t, takeUp } from "./texts.js";
import { html, render, useCallback, useEffect, useErrorBoundary, useState } from "./view.js";

const here = () => location.pathname.slice(BASE.length) || "/";

/** Where somebody belongs who comes to the front door. @param {any} me */
const home = (me) => {
  if (me.person.role === "lead") return "/lead";
  const waits = me.person.stage === "exam" && !me.person.exam_begun;
  return waits || me.person.stage === "out" ? "/exam" : "/mark";
};

/** The words of the interface: of the person's language, or the browser's. @param {string} language */
const speak = async (language) => takeUp(await call("GET", `/api/words/${encodeURIComponent(language)}`));

const App = () => {
  const [path, setPath] = useState(here());
  const [me, setMe] = useState(/** @type {any} */ (undefined));
  const [signIn, setSignIn] = useState(false); // whether a stranger can sign in, beside their link
  const [screen, setScreen] = useState(/** @type {{name: string, Screen: any} | null} */ (null));
  const [trouble, setTrouble] = useState(/** @type {"offline" | "missing" | Failure | null} */ (null));
  const [broken, mend] = useErrorBoundary((/** @type {unknown} */ error) => console.error(error));
  const navigate = useCallback((/** @type {string} */ to, /** @type {{replace?: boolean}} */ options = {}) => {
    history[options.replace ? "replaceState" : "pushState"](null, "", BASE + to);
    setPath(here());
  }, []);
  const again = useCallback(async () => {
    try {
      const caller = await whoAsks();
      await speak(caller.person.language);
      setMe(caller);
    } catch (failure) {
      const stranger = failure instanceof Failure && failure.status === 401;
      await speak(navigator.language).catch(() => undefined);
      if (stranger) {
        setSignIn(failure.code === "sign_in");
        setMe(null);
      }
      setTrouble(stranger ? null : failure instanceof Failure && failure.explained ? failure : "offline");
    }
  }, []);
  useEffect(() => {
    again();
    const moved = () => setPath(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const address = ADDRESSES.find((entry) => entry.pattern.test(path));
  useEffect(() => {
    if (me === undefined) return;
    if (!address) {
      if (me && path === "/") navigate(home(me), { replace: true });
      return;
    }
    if (screen?.name === address.name) return;
    address.load().then((Screen) => {
      setTrouble(null);
      setScreen({ name: address.name, Screen });
    }).catch((error) => { // a module did not come or is broken; or the page is being left
      console.warn(error);
      setTrouble("missing");
    });
  }, [me, path]);
  useEffect(() => {
    if (trouble !== "offline") return undefined;
    const timer = setInterval(() => me === undefined && again(), 5000);
    return () => clearInterval(timer);
  }, [trouble, me]);
  if (broken) return html`<${Lonely} name="trouble.broken"><button class="primary" onClick=${mend}>${words("rest.retry")}</button></${Lonely}>`;
  if (trouble instanceof Failure) return html`<${Lonely} name=${wordsOf(trouble)}><button class="second" onClick=${() => location.reload()}>${words("rest.retry")}</button></${Lonely}>`;
  if (trouble) return html`<${Lonely} name=${trouble === "offline" ? "offline.unreachable" : "trouble.missing"} />`;
  if (me === undefined) return html`<${Lonely} name="rest.loading" />`;
  const nowhere = !address && path !== "/";
  if (me && nowhere) {
    return html`<${Lonely} name="trouble.nowhere"><a class="button" href=${BASE + home(me)}>${t("exam.to_work")}</a></${Lonely}>`;
  }
  if (!me && !address?.open) {
    return html`<${Lonely} name=${location.hash === "#refused" ? "sign_in.refused" : nowhere ? "trouble.nowhere" : "stranger"}>
      ${nowhere ? html`<p>${t("stranger")}</p>` : null}
      ${signIn ? html`<a class="button" href=${`${BASE}/api/sign-in${location.search}`}>${t("sign_in")}</a>` : null}</${Lonely}>`;
  }
  if (!screen || screen.name !== address?.name) return html`<${Lonely} name="rest.loading" />`;
  return html`<${screen.Screen} me=${me} params=${address.pattern.exec(path)?.groups ?? {}} navigate=${navigate} again=${again} />`;
};

/** Words for the time before there are any. */
const FIRST = /** @type {Record<string, string>} */ ({
  "offline.unreachable": "The server cannot be reached. Trying again…", "rest.loading": "…",
});
const words = (/** @type {string} */ name) => (has(name) ? t(name) : FIRST[name] ?? name);

/** A page with one thing to say. @param {{name: string, children?: any}} props */
const Lonely = ({ name, children }) => html`<main class="lonely"><p role="status">${words(name)}</p>${children}</main>`;

const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);
