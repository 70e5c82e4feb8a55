// The work on one item: its layer with undo and redo, what is selected, and which span is at hand. Views draw it, keys
// and pointers change it, and every change of the layer is told to `onLayer`.

import { History } from "./history.js";
import { CodePoints } from "./offsets.js";
import { select, step, stretch } from "./selection.js";
import { Stops } from "./stops.js";
import {
  SUGGESTED, changeSpan, changeUnit, isAnswered, newId, toggled, unitAt, whole, withSpan, withoutSpan,
} from "./layers.js";

/** @typedef {import("./layers.js").Layer} Layer @typedef {import("./selection.js").Selection} Selection */

export class Editor extends EventTarget {
  /**
   * @param {any} assignment @param {any} form @param {Layer} layer
   * @param {{locked: boolean, onLayer: (layer: Layer, note: string | null) => void}} options
   */
  constructor(assignment, form, layer, { locked, onLayer }) {
    super();
    this.assignment = assignment;
    this.item = assignment.item;
    this.form = form;
    this.locked = locked;
    this.onLayer = onLayer;
    this.points = new CodePoints(this.item.response);
    this.stops = new Stops(this.points, this.item.words);
    this.history = new History(layer);
    /** @type {Selection | null} */
    this.selection = null;
    /** The id of the span, or suggestion, at hand. @type {string | null} */
    this.active = null;
    /** The unit at hand, by number. */
    this.unit = 0;
    /** A place of the evidence that is selected. @type {import("./layers.js").Pointer | null} */
    this.pointed = null;
  }

  /** @returns {Layer} */
  get layer() {
    return this.history.present;
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  /** Say something to those who listen. @param {string} name @param {Record<string, string | number>} [values] */
  say(name, values = {}) {
    this.dispatchEvent(new CustomEvent("say", { detail: { name, values } }));
  }

  /** @param {Layer} layer @param {string} [field] @param {string | null} [note] @returns {boolean} */
  put(layer, field = "", note = null) {
    if (this.locked || !this.history.push(layer, field)) return false;
    this.onLayer(this.layer, note);
    this.changed();
    return true;
  }

  /** Another layer altogether, such as one that was chosen in a conflict; it can be undone. @param {Layer} layer @param {boolean} send */
  replace(layer, send) {
    this.history.push(layer);
    if (send) this.onLayer(this.layer, null);
    this.active = null;
    this.changed();
  }

  /** @param {"undo" | "redo"} way */
  travel(way) {
    if (this.locked || !this.history[way]()) {
      this.say(`announce.nothing_to_${way}`);
      return;
    }
    if (this.active && !this.activeSpan()) this.active = null;
    this.onLayer(this.layer, null);
    this.say(`announce.${way}`);
    this.changed();
  }

  /** What people give, where the item is settled. @returns {import("./adjudication.js").Vote[] | null} */
  get votes() {
    return this.assignment.votes ?? null;
  }

  /** All suggestions, or all votes on spans. @returns {import("./layers.js").Span[]} */
  candidates() {
    return (this.votes ? (this.form.types.length ? this.votes : []) : this.assignment.suggestions ?? [])
      .map((/** @type {any} */ one) => ({ rating: null, note: "", ...one, id: `${SUGGESTED}${one.id ?? `${one.start}-${one.end}-${one.type}`}`.slice(0, 64) }));
  }

  /** Whether a candidate is marked, or was and then changed. @param {import("./layers.js").Span} candidate */
  isTaken(candidate) {
    return this.layer.spans.some((span) => span.id === candidate.id
      || (span.start === candidate.start && span.end === candidate.end && span.type === candidate.type));
  }

  /** Candidates that were neither accepted nor rejected. @returns {import("./layers.js").Span[]} */
  suggestions() {
    return this.candidates().filter((one) => !this.isTaken(one) && !this.layer.rejected.includes(one.id));
  }

  /** The span or candidate at hand. @returns {import("./layers.js").Span | undefined} */
  activeSpan() {
    return this.layer.spans.find((span) => span.id === this.active)
      ?? this.candidates().find((span) => span.id === this.active);
  }

  /** Whether what is at hand is a suggestion. */
  isSuggested() {
    return Boolean(this.active) && !this.layer.spans.some((span) => span.id === this.active) && Boolean(this.activeSpan());
  }

  /** @param {Selection | null} selection */
  choose(selection) {
    this.selection = selection;
    this.active = null;
    this.changed();
  }

  /** @param {string | null} id */
  activate(id) {
    this.active = id;
    const span = this.activeSpan();
    if (span) this.selection = select(span.start, span.end);
    this.changed();
  }

  /** @param {1 | -1} way */
  step(way) {
    this.choose(step(this.stops, this.selection, way));
  }

  /** To the first or the last word. @param {1 | -1} way */
  toEnd(way) {
    this.choose(step(this.stops, null, way < 0 ? 1 : -1));
  }

  /** @param {1 | -1} way @param {"far" | "near"} side @param {"word" | "character"} by */
  stretch(way, side, by) {
    const next = stretch(this.stops, this.selection, way, side, by);
    if (!next) return;
    const span = this.isSuggested() ? undefined : this.activeSpan();
    if (!span || this.locked) {
      this.choose(next);
      return;
    }
    const layer = changeSpan(this.layer, span.id, { start: next.start, end: next.end });
    if (layer === this.layer) return;
    this.selection = next;
    this.put(layer, `place:${span.id}`);
  }

  /** Put one edge of the selection, or of the span at hand, at a place. @param {"start" | "end"} edge @param {number} point */
  dragEdge(edge, point) {
    if (!this.selection) return;
    const next = { ...this.selection, [edge]: point, edge };
    if (next.start >= next.end) return;
    const span = this.isSuggested() ? undefined : this.activeSpan();
    if (span && !this.locked) this.put(changeSpan(this.layer, span.id, { start: next.start, end: next.end }), `place:${span.id}`);
    this.selection = next;
    this.changed();
  }

  /** Mark what is selected, or give the span at hand another type. @param {string} type */
  mark(type) {
    if (this.locked || !this.form.types.some((/** @type {any} */ choice) => choice.name === type)) return;
    const active = this.isSuggested() ? undefined : this.activeSpan();
    if (active) {
      if (this.put(changeSpan(this.layer, active.id, { type }))) this.say("announce.retyped", { type });
      return;
    }
    if (!this.selection) {
      this.say("announce.select_first");
      return;
    }
    const { start, end } = this.selection;
    const id = newId();
    const there = this.layer.spans.find((span) => span.start === start && span.end === end && span.type === type);
    if (there || this.put(withSpan(this.layer, { id, start, end, type, rating: null, note: "" }))) {
      this.active = there?.id ?? id;
      this.say("announce.marked", { type, text: this.quote(start, end) });
      this.changed();
    }
  }

  /** The text of a range, short enough to be said. @param {number} start @param {number} end */
  quote(start, end) {
    const text = this.points.slice(start, end);
    return text.length > 80 ? `${text.slice(0, this.points.unit(this.stops.down(start + 60)) - this.points.unit(start))}…` : text;
  }

  /** Delete the span at hand, or the innermost one around what is selected. @param {string} [id] */
  remove(id) {
    const at = this.selection;
    const around = this.layer.spans
      .filter((span) => at && span.start < at.end && at.start < span.end)
      .sort((a, b) => a.end - a.start - (b.end - b.start))[0];
    const target = id ?? (this.isSuggested() ? null : this.active) ?? around?.id;
    const span = this.layer.spans.find((one) => one.id === target);
    if (!span) {
      this.say("announce.nothing_here");
      return;
    }
    if (this.put(withoutSpan(this.layer, span.id))) {
      this.active = null;
      this.say("announce.deleted", { type: span.type, text: this.quote(span.start, span.end) });
      this.changed();
    }
  }

  /** @param {string} id @param {Partial<import("./layers.js").Span>} change @param {string} [field] */
  change(id, change, field = "") {
    return this.put(changeSpan(this.layer, id, change), field);
  }

  /** Rate the span at hand; the same step again takes it back. @param {number} rating */
  rate(rating) {
    const span = this.isSuggested() ? undefined : this.activeSpan();
    if (!span || !this.form.span_rating || rating < 1 || rating > this.form.span_rating.steps) return;
    this.change(span.id, { rating: span.rating === rating ? null : rating });
    this.say("announce.rated", { rating });
  }

  /** @param {string} [id] of a suggestion; the one at hand otherwise. */
  accept(id) {
    if (this.votes) {
      const vote = this.take(id ?? this.active, true);
      if (vote) this.onward(vote.start);
      return;
    }
    const span = this.suggestions().find((one) => one.id === (id ?? this.active));
    if (!span) return;
    const { start, end, type } = span;
    if (this.put(withSpan(this.layer, { id: span.id, start, end, type, rating: null, note: "" }), "", `suggestion accepted: ${span.id}`)) {
      this.activate(span.id);
      this.say("announce.accepted", { type });
    }
  }

  /** @param {string} [id] of a suggestion; the one at hand otherwise. */
  reject(id) {
    if (this.votes) {
      const vote = this.leave(id ?? this.active);
      if (vote) this.onward(vote.start);
      return;
    }
    const span = this.suggestions().find((one) => one.id === (id ?? this.active));
    if (!span || this.locked) return;
    if (!this.put({ ...this.layer, rejected: [...this.layer.rejected, span.id] }, "", `suggestion rejected: ${span.id}`)) return;
    if (this.active === span.id) this.active = null;
    this.say("announce.rejected", { type: span.type });
    this.changed();
  }

  /** Take a vote into gold; taken again, it is open, unless it is to `stay`. @param {string | null} id @param {boolean} [stay] */
  take(id, stay = false) {
    const vote = this.candidates().find((one) => one.id === id);
    if (!vote || this.locked) return null;
    const taken = this.isTaken(vote);
    if (!taken) {
      const { start, end, type, rating } = vote;
      const rejected = this.layer.rejected.filter((one) => one !== vote.id);
      this.put(withSpan({ ...this.layer, rejected }, { id: vote.id, start, end, type, rating, note: "" }));
    } else if (!stay) this.put({ ...this.layer, spans: this.without(vote) });
    this.activate(vote.id);
    this.say(taken && !stay ? "adjudicate.reopened" : "adjudicate.accepted", { type: vote.type, text: this.quote(vote.start, vote.end) });
    return vote;
  }

  /** Leave a vote out of gold. @param {string | null} id */
  leave(id) {
    const vote = this.candidates().find((one) => one.id === id);
    if (!vote || this.locked) return null;
    const rejected = [...this.layer.rejected.filter((one) => one !== vote.id), vote.id];
    this.put({ ...this.layer, spans: this.without(vote), rejected });
    this.activate(vote.id);
    this.say("adjudicate.rejected", { type: vote.type, text: this.quote(vote.start, vote.end) });
    return vote;
  }

  /** The spans but for what a candidate became. @param {import("./layers.js").Span} candidate */
  without(candidate) {
    return this.layer.spans.filter((span) => span.id !== candidate.id
      && (span.start !== candidate.start || span.end !== candidate.end || span.type !== candidate.type));
  }

  /** Take up the first open vote from a place on, or from the beginning. @param {number} place */
  onward(place) {
    const open = this.suggestions();
    const next = open.find((vote) => vote.start >= place) ?? open[0];
    this.activate(next?.id ?? null);
  }

  /** Take what more than half give and nobody decided otherwise. */
  takeMost() {
    const of = this.assignment.subjects.length;
    const most = (this.votes ?? []).filter((vote) => 2 * vote.assignments.length > of);
    let layer = this.layer;
    for (const vote of most) {
      const { start, end, type, rating } = vote;
      const id = `${SUGGESTED}${vote.id}`;
      if (this.form.types.length && !layer.rejected.includes(id)) layer = withSpan(layer, { id, start, end, type, rating, note: "" });
      if (this.form.labels.length && layer.label === null) layer = { ...layer, label: type };
      if (this.form.unit && !isAnswered(unitAt(layer, [start, end]))) {
        const giver = this.assignment.subjects.find((/** @type {any} */ subject) => vote.assignments.includes(subject.assignment));
        layer = changeUnit(layer, [start, end], unitAt(whole(giver.layer), [start, end]));
      }
    }
    this.put(layer);
    this.say("adjudicate.majority_accepted", { n: most.length });
    this.onward(0);
  }

  /** Begin anew with what one person says. @param {any} subject */
  takeLayer(subject) {
    const layer = whole(subject.layer);
    const spans = layer.spans.map((span) => {
      const text = this.points.slice(span.start, span.end).trim();
      const vote = (this.votes ?? []).find((one) => one.assignments.includes(subject.assignment) && one.type === span.type
        && span.start <= one.start && one.end <= span.end && this.points.slice(one.start, one.end) === text);
      return vote ? { ...span, id: `${SUGGESTED}${vote.id}`, start: vote.start, end: vote.end } : span;
    });
    if (this.put({ ...layer, spans, comment: this.layer.comment, rejected: [] })) this.activate(null);
  }

  /** The next span or suggestion in reading order; false where there is none. @param {1 | -1} way @returns {boolean} */
  tab(way) {
    const all = [...this.layer.spans, ...this.suggestions()].sort((a, b) => a.start - b.start || b.end - a.end);
    const now = all.findIndex((span) => span.id === this.active);
    let next = now + way;
    if (now < 0) {
      const at = this.selection?.start ?? (way > 0 ? -1 : Infinity);
      next = way > 0 ? all.findIndex((span) => span.start >= at) : all.findLastIndex((span) => span.start < at);
      if (next < 0) return false;
    }
    if (!all[next]) {
      this.activate(null);
      return false;
    }
    this.activate(all[next].id);
    return true;
  }

  /** @param {Partial<Layer>} change @param {string} [field] */
  set(change, field = "") {
    return this.put({ ...this.layer, ...change }, field);
  }

  /** @param {"flags" | "source_flags"} list @param {string} flag */
  flag(list, flag) {
    return this.set({ [list]: toggled(this.layer[list], flag) });
  }

  /** @param {[number, number]} place @param {Partial<import("./layers.js").Unit>} change @param {string} [field] */
  answer(place, change, field = "") {
    return this.put(changeUnit(this.layer, place, change), field);
  }

  /** Take the selected place of the evidence along as what the unit at hand rests on. */
  point() {
    const place = this.item.units[this.unit];
    if (!place || !this.pointed || !this.form.evidence) return;
    const { id, start, end } = this.pointed;
    const { evidence } = unitAt(this.layer, place);
    if (!evidence.some((one) => one.id === id && one.start === start && one.end === end)) {
      this.answer(place, { evidence: [...evidence, { id, start, end }] });
      this.say("announce.pointed", { number: this.unit + 1 });
    }
    this.pointed = null;
    this.changed();
  }
}
