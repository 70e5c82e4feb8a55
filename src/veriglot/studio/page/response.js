// The response: its text with marks, the types to choose from, and the keys.

import { barsOf } from "./adjudication.js";
import { ink, letters } from "./colours.js";
import { onNextLine } from "./geometry.js";
import { command } from "./keys.js";
import { lanesOf } from "./lanes.js";
import { reveal } from "./highlights.js";
import { select } from "./selection.js";
import { Surface } from "./surface.js";
import { named, t } from "./texts.js";
import { html, useEffect, useMemo, useRef } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor */

/** Everything that is drawn at the text. @returns {import("./surface.js").Mark[]} */
const marksOf = (/** @type {Editor} */ editor, /** @type {import("./layers.js").Span[]} */ ghosts) => {
  const { form, layer } = editor;
  const suggestions = editor.votes ? [] : editor.suggestions();
  const spans = [...layer.spans, ...suggestions, ...ghosts];
  const lanes = lanesOf(spans);
  const signs = letters(form.types, (name) => named("type", name));
  const colours = new Map(form.types.map((/** @type {any} */ choice) => [choice.name, ink(choice.colour)]));
  const suggested = new Set(suggestions);
  const gone = new Set(ghosts);
  /** @type {import("./surface.js").Mark[]} */
  const marks = spans.map((span) => ({
    key: gone.has(span) ? `ghost-${span.id}` : span.id,
    start: span.start, end: span.end, lane: lanes.get(span), colour: colours.get(span.type),
    kind: gone.has(span) ? "ghost" : suggested.has(span) ? "suggestion" : "span",
    letter: suggested.has(span) ? `${signs.get(span.type)}?` : signs.get(span.type), active: span.id === editor.active,
  }));
  const unit = form.unit ? editor.item.units[editor.unit] : null;
  if (unit) marks.unshift({ key: "unit", start: unit[0], end: unit[1], kind: "unit" });
  return marks;
};

/** A mouse leaves the focus in the text, where keys go on: to rate, to undo, to move. */
const stay = (/** @type {MouseEvent} */ event) => event.preventDefault();

/** Types as buttons. @param {{editor: Editor}} props */
export const Types = ({ editor }) => {
  const { form } = editor;
  if (!form.types.length) return null;
  const active = editor.isSuggested() ? undefined : editor.activeSpan();
  const signs = letters(form.types, (name) => named("type", name));
  return html`
    <div class="types" role="toolbar" aria-label=${t("types.label")}>
      ${form.types.map((/** @type {any} */ choice) => html`
        <button key=${choice.name} class="type" disabled=${editor.locked || (!editor.selection && !active)} style=${{ color: ink(choice.colour) }}
          aria-pressed=${active?.type === choice.name} title=${meaning(choice)} onMouseDown=${stay} onClick=${() => editor.mark(choice.name)}>
          <b class="sign" aria-hidden="true">${signs.get(choice.name)}</b><span>${named("type", choice.name)}</span>
          ${choice.shortcut ? html`<kbd>${choice.shortcut}</kbd>` : null}
        </button>`)}
    </div>`;
};

/** What a choice means, in the interface's words or the project's. @param {{name: string, meaning: string}} choice */
export const meaning = (choice) => {
  const own = t(`type.${choice.name}.meaning`);
  return own === `type.${choice.name}.meaning` ? choice.meaning : own;
};

/**
 * @param {{editor: Editor, ghosts: import("./layers.js").Span[], onCommand: (name: string) => void}} props
 */
export const Response = ({ editor, ghosts, onCommand }) => {
  const { item, stops } = editor;
  const marks = useMemo(() => marksOf(editor, ghosts), [editor.layer, editor.active, editor.unit, ghosts]);
  const pointed = useRef(/** @type {Editor["selection"]} */ (null)); // what a pointer chose: text that scrolls slips away from it
  const byPointer = (/** @type {() => void} */ change) => {
    change();
    pointed.current = editor.selection;
  };
  useEffect(() => {
    const node = document.getElementById("response")?.firstChild;
    if (node && editor.selection && editor.selection !== pointed.current) reveal(/** @type {Text} */ (node), editor.points, [editor.selection.start, editor.selection.end]);
  }, [editor.selection?.start, editor.selection?.end]);
  return html`<${Surface} id="response" stops=${stops} language=${item.language} direction=${item.direction}
    label=${t("response.label")} describedby="keys-hint" marks=${marks} selection=${editor.selection}
    bars=${barsOf(editor)} onBar=${(/** @type {string} */ key) => editor.take(key.split(" ")[0])}
    onSelect=${(/** @type {number} */ start, /** @type {number} */ end, /** @type {string} */ how) => byPointer(() => selected(editor, start, end, how))}
    onEdge=${(/** @type {"start" | "end"} */ edge, /** @type {number} */ point) => byPointer(() => editor.dragEdge(edge, point))}
    onMark=${(/** @type {string} */ id) => editor.activate(id)}
    onKey=${(/** @type {KeyboardEvent} */ event, /** @type {Text} */ node) => pressed(editor, event, node, onCommand)} />`;
};

/** A drag marks at once where there is but one type; a click takes up the marks under it, one after the other. */
const selected = (
  /** @type {Editor} */ editor, /** @type {number} */ start, /** @type {number} */ end, /** @type {string} */ how,
) => {
  if (how === "extend" && editor.selection) {
    const { selection } = editor;
    editor.choose(select(Math.min(start, selection.start), Math.max(end, selection.end), start < selection.start ? "start" : "end"));
    return;
  }
  if (how === "click") {
    const unit = editor.form.unit ? editor.item.units.findIndex((/** @type {number[]} */ [from, to]) => from <= start && start < to) : -1;
    if (unit >= 0) editor.unit = unit;
    const around = [...editor.layer.spans, ...editor.suggestions()]
      .filter((span) => span.start <= start && end <= span.end || start <= span.start && span.end <= end)
      .sort((a, b) => a.end - a.start - (b.end - b.start));
    const now = around.findIndex((span) => span.id === editor.active);
    if (around[now + 1]) {
      editor.activate(around[now + 1].id);
      return;
    }
  }
  editor.choose(select(start, end));
  if (how === "done" && editor.form.types.length === 1) editor.mark(editor.form.types[0].name);
};

/** @param {Editor} editor @param {KeyboardEvent} event @param {Text} node @param {(name: string) => void} onCommand */
const pressed = (editor, event, node, onCommand) => {
  const action = command(event, editor.item.direction);
  if (!action || event.isComposing) return;
  const { name, way = 1, side = "far", by = "word", number = 0 } = action;
  if (name === "tab") {
    if (!editor.tab(way)) return; // past the last mark, Tab leaves the text
    event.preventDefault();
    announce(editor);
    return;
  }
  if (name === "escape" && !editor.active && !editor.selection) return;
  event.preventDefault();
  event.stopPropagation();
  switch (name) {
    case "step": editor.step(way); announce(editor); break;
    case "end": editor.toEnd(way); announce(editor); break;
    case "stretch": editor.stretch(way, side, by); announce(editor); break;
    case "line": lineMove(editor, node, way, action.side === "far"); announce(editor); break;
    case "type": typed(editor, number); break;
    case "rate": editor.rate(number); break;
    case "delete": editor.remove(); break;
    case "undo": case "redo": editor.travel(name); break;
    case "accept": editor.accept(); break;
    case "reject": editor.reject(); break;
    case "escape": editor.active ? editor.activate(null) : editor.choose(null); break;
    case "copy": copy(editor); break;
    default: onCommand(name);
  }
};

/** A digit: a type, or the label of the unit at hand, or that of the item. */
const typed = (/** @type {Editor} */ editor, /** @type {number} */ number) => {
  const { form } = editor;
  const choices = form.types.length ? form.types : form.unit ? form.unit_labels : form.labels;
  const choice = choices.find((/** @type {any} */ option) => option.shortcut === String(number));
  if (!choice) return;
  if (form.types.length) editor.mark(choice.name);
  else if (form.unit) editor.answer(editor.item.units[editor.unit], { label: choice.name });
  else editor.set({ label: choice.name });
};

/** @param {Editor} editor @param {Text} node @param {1 | -1} way @param {boolean} extend */
const lineMove = (editor, node, way, extend) => {
  const now = editor.selection;
  if (!now) {
    editor.toEnd(way > 0 ? -1 : 1);
    return;
  }
  const edge = stopAtEdge(editor);
  const target = onNextLine(node, editor.stops, edge, way);
  if (!target) return;
  if (!extend) editor.choose(select(target[0], target[1]));
  else if (way > 0) editor.choose(select(now.start, Math.max(now.end, target[1])));
  else editor.choose(select(Math.min(now.start, target[0]), now.end, "start"));
};

/** The word at the side of the selection that moves. @returns {[number, number]} */
const stopAtEdge = (/** @type {Editor} */ editor) => {
  const now = /** @type {NonNullable<typeof editor.selection>} */ (editor.selection);
  const point = now.edge === "end" ? now.end - 1 : now.start;
  return editor.stops.at(point) ?? [now.start, now.end];
};

const announce = (/** @type {Editor} */ editor) => {
  const now = editor.selection;
  if (!now) return;
  const types = editor.layer.spans.filter((span) => span.start < now.end && now.start < span.end)
    .map((span) => named("type", span.type));
  const text = editor.quote(now.start, now.end);
  if (editor.isSuggested()) editor.say("announce.at_suggestion", { text, type: editor.activeSpan()?.type ?? "" });
  else if (types.length) editor.say("announce.at_marked", { text, types: types.join(", ") });
  else editor.say("announce.at", { text });
};

const copy = (/** @type {Editor} */ editor) => {
  const now = editor.selection;
  if (now) navigator.clipboard?.writeText(editor.points.slice(now.start, now.end)).catch(() => undefined);
};
