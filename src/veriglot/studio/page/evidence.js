// The evidence: its passages, a search with its hits, the words that the response shares with it, and places to point to.

import { CodePoints } from "./offsets.js";
import { paint, reveal } from "./highlights.js";
import { find } from "./search.js";
import { command } from "./keys.js";
import { select, step, stretch } from "./selection.js";
import { Stops, wordsOf } from "./stops.js";
import { Surface } from "./surface.js";
import { t } from "./texts.js";
import { html, useEffect, useMemo, useState } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor @typedef {{id: string, place: [number, number]}} Hit */

const nodeOf = (/** @type {string} */ id) => /** @type {Text | null} */ (document.getElementById(`passage-${id}`)?.firstChild ?? null);

/** @param {{editor: Editor, shared: any[] | null, onShared: () => void, search: string, onSearch: (text: string) => void}} props */
export const Evidence = ({ editor, shared, onShared, search, onSearch }) => {
  const passages = useMemo(() => editor.item.evidence.map((/** @type {any} */ passage) => {
    const points = new CodePoints(passage.text);
    return { ...passage, points, stops: new Stops(points, () => wordsOf(points, passage.language)) };
  }), [editor]);
  const hits = useMemo(() => passages.flatMap((/** @type {any} */ passage) =>
    find(passage.text, search).map((place) => ({ id: passage.id, place }))), [passages, search]);
  const [current, setCurrent] = useState(0);
  const go = (/** @type {number} */ index) => {
    setCurrent(index);
    const hit = hits[index];
    const passage = hit && passages.find((/** @type {any} */ candidate) => candidate.id === hit.id);
    const node = hit && nodeOf(hit.id);
    if (passage && node) reveal(node, passage.points, hit.place);
  };
  useEffect(() => setCurrent(0), [search, editor]);
  useEffect(() => {
    if (hits.length) go(0);
  }, [search]);
  usePaint(passages, hits, hits[current], shared, editor);
  const move = (/** @type {number} */ way) => hits.length && go((current + way + hits.length) % hits.length);
  const looked = t(editor.form.task === "translation" ? "evidence.search_source" : "evidence.search");
  return html`
    <div class="finder" role="search">
      <input id="evidence-search" type="search" dir="auto" value=${search} placeholder=${looked} aria-label=${looked}
        onInput=${(/** @type {any} */ event) => onSearch(event.target.value)}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
          if (event.key === "Enter") move(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") document.getElementById("response")?.focus();
        }} />
      <output class="count" aria-live="polite">${search ? (hits.length ? t("evidence.hit", { at: current + 1, of: hits.length }) : t("evidence.no_hit")) : ""}</output>
      <button class="small" aria-label=${t("evidence.previous")} title=${t("evidence.previous")} disabled=${!hits.length} onClick=${() => move(-1)}>↑</button>
      <button class="small" aria-label=${t("evidence.next")} title=${t("evidence.next")} disabled=${!hits.length} onClick=${() => move(1)}>↓</button>
      <button class="small" aria-pressed=${Boolean(shared)} onClick=${onShared}>${t("evidence.shared")}</button>
    </div>
    ${passages.length ? passages.map((/** @type {any} */ passage) => html`<${Passage} key=${passage.id} editor=${editor} passage=${passage} />`)
      : html`<p class="fine">${t("evidence.none")}</p>`}`;
};

/** Hits, shared words and pointed places, painted into the passages. */
const usePaint = (
  /** @type {any[]} */ passages, /** @type {Hit[]} */ hits, /** @type {Hit | undefined} */ current,
  /** @type {any[] | null} */ shared, /** @type {Editor} */ editor,
) => {
  const everywhere = useMemo(() => // words that come again in the response share their places
    [...new Map((shared ?? []).flatMap((word) => word.places).map((at) => [`${at.id} ${at.start}`, at])).values()], [shared]);
  const word = shared && editor.selection
    && shared.find((word) => word.start < /** @type {any} */ (editor.selection).end && /** @type {any} */ (editor.selection).start < word.end);
  const pointers = editor.form.evidence ? editor.layer.units.find((unit) => {
    const place = editor.item.units[editor.unit];
    return place && unit.start === place[0] && unit.end === place[1];
  })?.evidence ?? [] : [];
  useEffect(() => {
    for (const passage of passages) {
      const node = nodeOf(passage.id);
      const mine = (/** @type {any[]} */ places) => places.filter((word) => word.id === passage.id)
        .map((span) => /** @type {[number, number]} */ ([span.start, span.end]));
      const own = hits.filter((hit) => hit.id === passage.id && hit !== current).map((hit) => hit.place);
      paint("hit", passage.id, node, passage.points, own);
      paint("current", passage.id, node, passage.points, [
        ...(current?.id === passage.id ? [/** @type {Hit} */ (current).place] : []), ...mine(word?.places ?? []),
      ]);
      paint("shared", passage.id, node, passage.points, mine(everywhere));
      paint("pointed", passage.id, node, passage.points, mine(pointers));
    }
    const response = /** @type {Text | null} */ (document.getElementById("response")?.firstChild ?? null);
    paint("shared", "response", response, editor.points, (shared ?? []).map((word) => [word.start, word.end]));
    return () => {
      paint("shared", "response", null, editor.points, []);
      for (const passage of passages) for (const name of ["hit", "current", "shared", "pointed"]) paint(name, passage.id, null, passage.points, []);
    };
  }, [passages, hits, current, shared, word, pointers]);
};

/** @param {{editor: Editor, passage: any}} props */
const Passage = ({ editor, passage }) => {
  const { pointed } = editor;
  const [edge, setEdge] = useState(/** @type {"start" | "end"} */ ("end"));
  const selection = pointed?.id === passage.id ? select(/** @type {any} */ (pointed).start, /** @type {any} */ (pointed).end, edge) : null;
  const choose = (/** @type {any} */ next) => {
    if (next) setEdge(next.edge);
    editor.pointed = next ? { id: passage.id, start: next.start, end: next.end } : null;
    editor.changed();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const action = command(event, passage.direction);
    if (!action || !["step", "stretch", "end", "escape", "submit", "copy"].includes(action.name)) return;
    event.preventDefault();
    const { stops } = passage;
    if (action.name === "step") choose(step(stops, selection, action.way ?? 1));
    else if (action.name === "end") choose(step(stops, null, action.way === -1 ? 1 : -1));
    else if (action.name === "stretch") choose(stretch(stops, selection, action.way ?? 1, action.side ?? "far", action.by ?? "word"));
    else if (action.name === "escape") choose(null);
    else if (action.name === "submit") editor.point();
    else if (selection) navigator.clipboard?.writeText(passage.points.slice(selection.start, selection.end)).catch(() => undefined);
  };
  const name = passage.title ?? (editor.form.task === "translation" ? t("evidence.source_text") : t("evidence.passage", { id: passage.id }));
  return html`
    <article class="passage" aria-label=${name}>
      <header class="passage-title">
        <bdi>${name}</bdi>
        ${passage.url ? html`<a href=${passage.url} target="_blank" rel="noopener noreferrer">${t("evidence.source")}</a>` : null}
        ${selection && editor.form.evidence && !editor.locked ? html`<button class="small primary" onClick=${() => editor.point()}>${t("evidence.take", { number: editor.unit + 1 })}</button>` : null}
      </header>
      <${Surface} id=${`passage-${passage.id}`} stops=${passage.stops} language=${passage.language} direction=${passage.direction}
        label=${name} marks=${NONE} selection=${selection} onKey=${onKey}
        onSelect=${(/** @type {number} */ start, /** @type {number} */ end) => choose(select(start, end))} />
    </article>`;
};

/** @type {import("./surface.js").Mark[]} */
const NONE = [];
