// The screen of annotators and reviewers: what is next, the work on it, handing it in.

import { Failure, call, uuid } from "./api.js";
import { Clock } from "./clock.js";
import { ConflictDialog } from "./conflict.js";
import { Workspace } from "./workspace.js";
import { Editor } from "./editor.js";
import { whole } from "./layers.js";
import { Queue } from "./queue.js";
import { Top } from "./header.js";
import { Refusal } from "./join.js";
import { languageName } from "./lead/figures.js";
import { GuidelinesPane } from "./guidelines.js";
import { Help, Items } from "./side_panels.js";
import { Sync } from "./sync.js";
import { Refusals, useChanges } from "./sync_status.js";
import { interfaceLanguage, t } from "./texts.js";
import { html, useCallback, useEffect, useMemo, useState } from "./view.js";

/** The one connection of this page; it goes on when the screen is left. @type {{owner: string, sync: Sync} | null} */
let connection = null;

/** @param {any} me @returns {Sync} */
const syncOf = (me) => {
  const owner = `${me.project.slug}:${me.person.id}`;
  if (connection?.owner !== owner) connection = { owner, sync: new Sync(new Queue(owner, uuid), new Clock(me.project.idle ?? 120)) };
  return connection.sync;
};

/** The editor of an assignment. @param {any} assignment @param {any} form @param {Sync} sync */
const editorOf = (assignment, form, sync) => {
  const { layer, drafted } = sync.open(assignment);
  const review = assignment.purpose === "review" && assignment.version === 0 && !drafted;
  const begin = review && assignment.subject ? whole(assignment.subject.layer) : layer;
  const editor = new Editor(assignment, form, begin, {
    locked: !["open", "returned"].includes(assignment.state),
    onLayer: (next, note) => sync.save(assignment.id, next, note),
  });
  if (editor.votes && !editor.locked) editor.onward(0);
  sync.act(assignment.id, "opened", null);
  return editor;
};

/**
 * @param {{me: any, params: {id?: string}, navigate: (path: string, options?: {replace?: boolean}) => void, again: () => Promise<void>}} props
 */
export const Screen = ({ me, params, navigate, again }) => {
  const sync = useMemo(() => syncOf(me), [me]);
  useChanges(sync);
  const { form } = me.project;
  const [editor, setEditor] = useState(/** @type {Editor | null} */ (null));
  const [rest, setRest] = useState(/** @type {"loading" | "nothing" | "missing" | "unreachable" | Failure | null} */ ("loading"));
  const [enough, setEnough] = useState(/** @type {string[]} */ ([]));
  const [left, setLeft] = useState(/** @type {number | null} */ (null));
  const [panel, setPanel] = useState(/** @type {"help" | "items" | "conflict" | null} */ (null));
  const [guide, setGuide] = useState(false);
  const [done, setDone] = useState(0);
  const [unread, setUnread] = useState(0);
  const exam = me.person.stage === "exam"; // counts by itself: of earlier attempts everything is accepted
  const isDone = useCallback((/** @type {any} */ line) => (line.purpose === "exam") === exam
    && !["open", "returned", ...(exam ? ["accepted"] : [])].includes(line.state), [exam]);

  const show = useCallback((/** @type {any} */ assignment) => {
    setEditor(editorOf(assignment, form, sync));
    setRest(null);
    scrollTo({ top: 0 });
  }, [form, sync]);

  const failed = useCallback((/** @type {unknown} */ failure) => {
    if (failure instanceof Failure && failure.status === 401) navigate("/", { replace: true });
    else if (failure instanceof Failure && failure.status === 404 && params.id) setRest("missing");
    else setRest(failure instanceof Failure && failure.explained ? failure : "unreachable");
  }, [navigate, params.id]);

  const next = useCallback(async () => {
    setRest("loading");
    try {
      const answer = await call("POST", "/api/next", {});
      setLeft(answer.left);
      if (answer.assignment) show(answer.assignment);
      else if (["exam", "out"].includes(answer.stage)) {
        if (answer.stage !== me.person.stage) await again(); // else the exam's page would send them back here
        navigate(answer.stage === "exam" ? "/exam/finish" : "/exam", { replace: true });
      } else {
        setEditor(null);
        setEnough(answer.enough);
        setRest("nothing");
      }
    } catch (failure) {
      failed(failure);
    }
  }, [show, failed, me, navigate, again]);

  const open = useCallback(async (/** @type {number} */ id) => {
    setRest("loading");
    try {
      show(await call("GET", `/api/assignments/${id}`));
    } catch (failure) {
      failed(failure);
    }
  }, [show, failed]);

  useEffect(() => {
    if (params.id) open(Number(params.id));
    else next();
  }, [params.id]);
  useEffect(() => {
    call("GET", "/api/assignments").then((lines) => {
      setDone(lines.filter(isDone).length);
      setUnread(lines.filter((/** @type {any} */ line) => line.unread && line.id !== editor?.assignment.id).length);
    }).catch(() => undefined);
  }, [params.id, isDone, editor]);
  useEffect(() => {
    if (rest !== "unreachable") return undefined;
    const retry = () => (params.id ? open(Number(params.id)) : next());
    const timer = setInterval(retry, 5000);
    addEventListener("online", retry);
    return () => {
      clearInterval(timer);
      removeEventListener("online", retry);
    };
  }, [rest, params.id]);

  /** To the disagreement after this one; what was not touched is let go of. */
  const onward = async () => {
    if (!editor) return;
    const { assignment, item, history } = editor;
    try {
      const release = assignment.version === 0 && !history.past.length;
      const next = await call("POST", "/api/lead/adjudications", { after: item.id, release });
      navigate(next.assignment ? `/mark/${next.assignment}` : "/lead/disagreements");
    } catch (failure) {
      failed(failure);
    }
  };
  const onDone = () => {
    setDone((before) => before + 1);
    if (editor?.votes) onward();
    else if (params.id) navigate("/mark");
    else next();
  };
  const { conflicts } = sync.state();
  const settle = (/** @type {any} */ layer, /** @type {number} */ id, /** @type {string} */ choice) => {
    setPanel(null);
    if (editor?.assignment.id !== id) return;
    if (choice === "theirs") open(id);
    else editor.replace(layer, false);
  };
  const close = () => setPanel(null);
  const onPanel = (/** @type {any} */ name) => (name === "guidelines" ? setGuide(!guide) : setPanel(name));
  const beside = guide ? html`<${GuidelinesPane} form=${form} onClose=${() => setGuide(false)} />` : null;
  const conflict = conflicts.find((one) => one.assignment === editor?.assignment.id) ?? (panel === "conflict" ? conflicts[0] : null);
  return html`
    <${Top} me=${me} sync=${sync} done=${done} left=${left} unread=${unread} guide=${guide} onPanel=${onPanel} navigate=${navigate} />
    <${Refusals} sync=${sync} />
    ${editor && rest === null ? html`<${Workspace} key=${editor.assignment.id} editor=${editor} sync=${sync} form=${form} onDone=${onDone} onPanel=${onPanel}
      onOnward=${onward} onAgain=${() => open(editor.assignment.id)}>${beside}<//>` : html`<${Rest} rest=${rest} enough=${enough} onRetry=${next} onNext=${() => navigate("/mark")} />${beside}`}
    ${panel === "help" ? html`<${Help} onClose=${close} />` : null}
    ${panel === "items" ? html`<${Items} current=${editor?.assignment.id ?? null} onClose=${close} onOpen=${(/** @type {number} */ id) => {
      close();
      if (String(id) === params.id) open(id);
      else navigate(`/mark/${id}`);
    }} />` : null}
    ${conflict ? html`<${ConflictDialog} key=${conflict.assignment} sync=${sync} form=${form} conflict=${conflict} onDone=${settle} />` : null}`;
};

/** What stands there while there is nothing to work on. @param {{rest: "loading" | "nothing" | "missing" | "unreachable" | Failure | null, enough: string[], onRetry: () => void, onNext: () => void}} props */
const Rest = ({ rest, enough, onRetry, onNext }) => html`
  <main class="rest" aria-busy=${rest === "loading"}>
    ${rest === "nothing" ? html`<h2>${t("rest.nothing")}</h2><p>${t("rest.thanks")}</p>
      ${enough.length ? html`<p>${t("rest.enough", { languages: new Intl.ListFormat(interfaceLanguage()).format(enough.map(languageName)) })}</p>` : null}<button class="second" onClick=${onRetry}>${t("rest.check")}</button>` : null}
    ${rest === "missing" ? html`<h2>${t("trouble.no_item")}</h2><button class="primary" onClick=${onNext}>${t("next")}</button>` : null}
    ${rest === "unreachable" ? html`<h2>${t("offline.unreachable")}</h2><p>${t("offline.saved_here")}</p><button class="second" onClick=${onRetry}>${t("rest.retry")}</button>` : null}
    ${rest instanceof Failure ? html`<${Refusal} failure=${rest} /><button class="second" onClick=${onRetry}>${t("rest.retry")}</button>` : null}
    ${rest === "loading" ? html`<p role="status">${t("rest.loading")}</p>` : null}
  </main>`;
