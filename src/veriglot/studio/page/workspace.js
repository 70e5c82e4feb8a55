// One item in the workspace: the response beside its evidence, what is said of it, and how the work on it ends.

import { Adjudicated, Votes } from "./adjudication.js";
import { call, wordsOf } from "./api.js";
import { Evidence } from "./evidence.js";
import { ItemForm } from "./item_form.js";
import { command, inField, undoing } from "./keys.js";
import { missing, same, whole } from "./layers.js";
import { Response, Types } from "./response.js";
import { Labels, Pair } from "./pairs.js";
import { ReviewBar, WorkBar } from "./actions.js";
import { SpanList } from "./span_list.js";
import { Conversation, Reviewed } from "./submissions.js";
import { useChanges } from "./sync_status.js";
import { named, t } from "./texts.js";
import { Units } from "./units.js";
import { classes, html, useEffect, useMemo, useRef, useState } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor @typedef {import("./sync.js").Sync} Sync */

/** What the editor says, in words; for screen readers, and shown for a moment. @param {Editor} editor */
const useSaid = (editor) => {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const listen = (/** @type {Event} */ event) => {
      const { name, values } = /** @type {CustomEvent} */ (event).detail;
      const shown = { ...values };
      if (values.type) shown.type = named("type", values.type);
      setSaid((before) => (before === t(name, shown) ? `${t(name, shown)}\u00a0` : t(name, shown))); // said again
    };
    editor.addEventListener("say", listen);
    return () => editor.removeEventListener("say", listen);
  }, [editor]);
  return /** @type {const} */ ([said, setSaid]);
};

/** Handing in and everything like it. @param {any} props @param {(said: string) => void} say */
const useEnding = ({ editor, sync, form, onDone, onAgain }, say) => {
  const [busy, setBusy] = useState(false);
  const asked = useRef(/** @type {Editor | null} */ (null));
  const { assignment } = editor;
  const end = async (/** @type {string} */ kind, /** @type {any} */ layer, /** @type {string | null} */ comment = null) => {
    setBusy(true);
    const outcome = await sync.act(assignment.id, kind, layer, comment);
    setBusy(false);
    if (!outcome.done) return;
    if (kind === "reopen") onAgain();
    else onDone();
  };
  const submit = (/** @type {boolean} */ clear) => {
    if (editor.locked || busy) return;
    const undecided = editor.votes ? editor.suggestions().length : 0;
    if (undecided && asked.current !== editor) { // handed in once more, they are left out
      asked.current = editor;
      editor.onward(0);
      say(t("adjudicate.undecided", { count: undecided }));
      return;
    }
    const open = missing(editor.layer, form, editor.item.units);
    if (!open.length && (clear || editor.layer.source_flags.length || !form.source_flags.length)) {
      end("submit", editor.layer);
      return;
    }
    if (!open.length) {
      say(t("missing.source_flags"));
      return;
    }
    const [first] = open;
    say(t(`missing.${first.what}`, { count: first.count, name: first.what === "rating" ? named("rating", first.at) : "" }));
    if (first.what === "span_rating") editor.activate(first.at);
    if (first.what === "units") {
      editor.unit = editor.item.units.findIndex((/** @type {any} */ place) => place[0] === first.at[0] && place[1] === first.at[1]);
      editor.changed();
      requestAnimationFrame(() => document.getElementById(`unit-${editor.unit}`)?.focus());
    }
  };
  const skip = (/** @type {string} */ reason) => end("skip", { ...editor.layer, skip: reason });
  return { busy, end, submit, skip };
};

/** Keys that hold wherever the focus is. @param {Editor} editor @param {(name: string) => void} onCommand */
const useKeys = (editor, onCommand) => {
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        onCommand("submit");
        return;
      }
      if (inField(event) || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const action = undoing(event);
      if (action) {
        event.preventDefault();
        editor.travel(/** @type {"undo" | "redo"} */ (action.name));
      } else if (event.key === "?") onCommand("help");
      else if (editor.votes && voted(editor, event, onCommand)) event.preventDefault();
      else if (editor.form.labels.length && !event.ctrlKey && !event.altKey && !event.metaKey) labelled(editor, event, onCommand);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
};

/** Where an item is settled: votes are decided, wherever the focus is. @param {Editor} editor @param {KeyboardEvent} event @param {(name: string) => void} onCommand */
const voted = (editor, event, onCommand) => {
  const name = command(event, editor.item.direction)?.name ?? "";
  if (name === "accept" || name === "reject") editor[name]();
  else if (name === "majority" || name === "onward") onCommand(name);
  else return false;
  return true;
};

/** Where the item has a label and no text to mark: a digit gives it, Enter hands in. @param {Editor} editor @param {KeyboardEvent} event @param {(name: string) => void} onCommand */
const labelled = (editor, event, onCommand) => {
  const { target } = event;
  if (event.key === "Enter" && !(target instanceof HTMLButtonElement) && !(target instanceof HTMLAnchorElement)) onCommand("submit");
  const match = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  const choice = match && editor.form.labels.find((/** @type {any} */ option) => option.shortcut === match[1]);
  if (choice && !event.shiftKey) editor.set({ label: choice.name });
};

const SPLIT = "veriglot:split";

/** How much of the page the response takes beside its evidence, in percent; 0 as the page has it. Kept on this device. */
const useSplit = () => {
  const [split, setSplit] = useState(() => {
    try {
      return Number(localStorage.getItem(SPLIT));
    } catch {
      return 0;
    }
  });
  const change = (/** @type {number} */ next) => {
    const inside = Math.round(Math.max(20, Math.min(80, next)));
    setSplit(inside);
    try {
      localStorage.setItem(SPLIT, String(inside));
    } catch {
      // for this page only
    }
  };
  return /** @type {const} */ ([split, change]);
};

/** The border between response and evidence, side by side or one above the other: dragged, or moved by arrows. @param {any} props */
const Divider = ({ region, split, onSplit }) => {
  const frame = () => region.current.getBoundingClientRect();
  const above = () => getComputedStyle(region.current).gridTemplateColumns.split(" ").length === 1;
  const drag = (/** @type {PointerEvent} */ event) => {
    if (!/** @type {Element} */ (event.currentTarget).hasPointerCapture(event.pointerId)) return;
    const { left, top, width, height } = frame();
    const along = above() ? (event.clientY - top) / height : (event.clientX - left) / width;
    onSplit(100 * (!above() && document.documentElement.dir === "rtl" ? 1 - along : along));
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const rtl = document.documentElement.dir === "rtl";
    const way = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: rtl ? 1 : -1, ArrowRight: rtl ? -1 : 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    onSplit((split || 52) + 4 * way);
  };
  return html`<div class="divider" role="separator" tabindex="0" aria-label=${t("divider")} aria-valuenow=${split || 52} aria-valuemin="20" aria-valuemax="80"
    onPointerDown=${(/** @type {any} */ event) => event.currentTarget.setPointerCapture(event.pointerId)} onPointerMove=${drag} onKeyDown=${pressed}></div>`;
};

/**
 * @param {{editor: Editor, sync: Sync, form: any, onDone: () => void, onAgain: () => void, onOnward: () => void, onPanel: (name: any) => void, children?: any}} props children stand beside the text
 */
export const Workspace = (props) => {
  const { editor, sync, form, onDone, onOnward, onPanel, children } = props;
  const { assignment, item } = editor;
  useChanges(editor);
  const [said, setSaid] = useSaid(editor);
  const [shared, setShared] = useState(/** @type {any[] | null} */ (null));
  const [search, setSearch] = useState("");
  const [clear, setClear] = useState(Boolean(sync.queue.aside(assignment.id).clear) || assignment.purpose !== "annotate" || assignment.version > 0);
  const { busy, end, submit, skip } = useEnding(props, setSaid);
  const region = useRef(/** @type {HTMLElement | null} */ (null));
  const [split, setSplit] = useSplit();
  const [comments, setComments] = useState(/** @type {any[] | null} */ (assignment.conversation));
  const onSend = async (/** @type {string} */ text) => {
    const outcome = await sync.act(assignment.id, "comment", null, text);
    if (outcome.done) setComments([...comments ?? [], { mine: true, at: new Date().toISOString(), text }]);
    return outcome.done;
  };
  useEffect(() => {
    const first = form.unit && !form.types.length ? document.getElementById("unit-0") : document.getElementById("response");
    (first ?? region.current)?.focus({ preventScroll: true });
  }, [editor]);
  const toggleShared = () => {
    if (shared) setShared(null);
    else call("GET", `/api/assignments/${assignment.id}/shared`).then((result) => setShared(result.words)).catch((failure) => setSaid(wordsOf(failure)));
  };
  const onCommand = (/** @type {string} */ name) => {
    if (name === "submit") review ? judge() : submit(clear);
    else if (name === "majority" && editor.votes) editor.takeMost();
    else if (name === "onward" && editor.votes) onOnward();
    else if (name === "back") document.getElementById("send-back")?.click();
    else if (name === "help" || name === "guidelines") onPanel(name);
    else if (name === "shared") toggleShared();
    else if (name === "note") document.getElementById("span-note")?.focus();
    else if (name === "search") {
      if (editor.selection) setSearch(editor.points.slice(editor.selection.start, editor.selection.end));
      document.getElementById("evidence-search")?.focus();
    }
  };
  useKeys(editor, onCommand);
  const review = assignment.purpose === "review";
  const subject = useMemo(() => (assignment.subject ? whole(assignment.subject.layer) : null), [assignment]);
  const touched = Boolean(subject) && !same(/** @type {any} */ (subject), editor.layer);
  const judge = () => !editor.locked && !busy && end(touched ? "correct" : "confirm", editor.layer);
  const ghosts = useMemo(() => (subject && review ? subject.spans.filter((old) =>
    !editor.layer.spans.some((span) => span.start === old.start && span.end === old.end && span.type === old.type)) : []), [subject, editor.layer]);
  const pair = form.labels.length > 0;
  const tell = (/** @type {boolean} */ next) => {
    setClear(next);
    sync.queue.keepAside(assignment.id, { clear: next });
  };
  return html`
    <main class=${classes({ workspace: true, "of-pair": pair, guided: children })} ref=${region} tabindex="-1" style=${{ "--split": split ? `${split}%` : undefined }}>
      <section class="pane scroll" aria-label=${t("response.pane")}>
        <${Conversation} ...${{ assignment, comments, onSend }} above=${true} />
        ${review ? html`<${Reviewed} subject=${assignment.subject} />` : null}
        ${editor.votes ? html`<${Adjudicated} editor=${editor} />` : null}
        ${item.question ? html`<div class="question" dir=${item.question_direction}><span class="fine">${t("question")}</span><p lang=${item.language}>${item.question}</p></div>` : null}
        ${pair ? html`<${Pair} editor=${editor} />` : html`
          <${Types} editor=${editor} />
          <${Response} editor=${editor} ghosts=${ghosts} onCommand=${onCommand} />
          <p class="fine hint" id="keys-hint">${t(form.types.length ? "response.hint" : "response.hint_units")} <button class="link" onClick=${() => onPanel("help")}>${t("help.title")}</button></p>`}
        <${Labels} editor=${editor} />
        <${Units} editor=${editor} />
        <${Votes} editor=${editor} />
        <${SpanList} editor=${editor} />
        <${ItemForm} editor=${editor} clear=${clear} onClear=${tell} />
        <${Conversation} ...${{ assignment, comments, onSend }} above=${false} />
      </section>
      ${pair ? null : html`<section class="pane proof scroll" aria-label=${t(form.task === "translation" ? "evidence.source_text" : "evidence.label")}>
        <${Evidence} editor=${editor} shared=${shared} onShared=${toggleShared} search=${search} onSearch=${setSearch} />
      </section>
      <${Divider} region=${region} split=${split} onSplit=${setSplit} />`}
      ${children}
      <footer class="foot">
        <p class="said" role="status" aria-live="polite">${said}</p>
        ${editor.locked ? null : html`<div class="undoing">${/** @type {const} */ (["undo", "redo"]).map((way) => html`
          <button key=${way} class="plain" aria-label=${t(way)} title=${t(way)} disabled=${!editor.history[way === "undo" ? "past" : "future"].length}
            onClick=${() => editor.travel(way)}>${way === "undo" ? "↶" : "↷"}</button>`)}</div>`}
        ${review && !editor.locked ? html`<${ReviewBar} busy=${busy} touched=${touched} reasons=${form.skip_reasons} onSkip=${skip}
          onConfirm=${() => end("confirm", editor.layer)} onCorrect=${() => end("correct", editor.layer)} onReturn=${(/** @type {string} */ note) => end("return", null, note)} />`
        : html`<${WorkBar} state=${assignment.state} busy=${busy} reasons=${form.skip_reasons} skipped=${editor.layer.skip} exam=${assignment.purpose === "exam"}
          onSubmit=${() => submit(clear)} onSkip=${skip} onReopen=${() => end("reopen", null)} onNext=${onDone} onOnward=${editor.votes ? onOnward : null} />`}
      </footer>
    </main>`;
};
