// Changes of a layer, as functions from one layer to the next. A layer is never changed in place.

/**
 * @typedef {{id: string, start: number, end: number, type: string, rating: number | null, note: string}} Span
 * @typedef {{id: string, start: number, end: number}} Pointer
 * @typedef {{start: number, end: number, label: string | null, evidence: Pointer[], flags: string[],
 *   counts: Record<string, number>}} Unit
 * @typedef {{spans: Span[], units: Unit[], label: string | null, ratings: Record<string, number>, flags: string[],
 *   source_flags: string[], skip: string | null, comment: string, rejected: string[]}} Layer
 */

/** @type {Layer} */
export const EMPTY = {
  spans: [], units: [], label: null, ratings: {}, flags: [], source_flags: [], skip: null, comment: "",
  rejected: [],
};

/** How the id of a span begins that was accepted from a suggestion: the layer itself says where it came from. */
export const SUGGESTED = "suggested-";

/** A layer with every field, whatever the server left out. @returns {Layer} */
export const whole = (/** @type {Partial<Layer> | null | undefined} */ layer) => ({
  ...EMPTY,
  ...layer,
  spans: (layer?.spans ?? []).map((span) => ({ ...span, rating: span.rating ?? null, note: span.note ?? "" })),
  units: (layer?.units ?? []).map((unit) => ({
    ...unit, label: unit.label ?? null, evidence: unit.evidence ?? [], flags: unit.flags ?? [], counts: unit.counts ?? {},
  })),
});

const digits = (/** @type {number} */ count) =>
  Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => (byte % 36).toString(36)).join("");

/** A name for a new span. */
export const newId = () => `s-${digits(10)}`;

/** Whether another span has this place and type. */
const taken = (/** @type {Layer} */ layer, /** @type {Span} */ span) =>
  layer.spans.some(
    (other) => other.id !== span.id && other.start === span.start && other.end === span.end && other.type === span.type,
  );

/** Mark a range. Where it is marked so already, nothing changes. */
export const withSpan = (/** @type {Layer} */ layer, /** @type {Span} */ span) =>
  taken(layer, span) || layer.spans.some((other) => other.id === span.id) || span.start >= span.end
    ? layer
    : { ...layer, spans: [...layer.spans, span].sort((a, b) => a.start - b.start || b.end - a.end) };

/** Change a span; a change that would make it the double of another is left out. */
export const changeSpan = (
  /** @type {Layer} */ layer, /** @type {string} */ id, /** @type {Partial<Span>} */ change,
) => {
  const old = layer.spans.find((span) => span.id === id);
  if (!old) return layer;
  const next = { ...old, ...change };
  if (next.start >= next.end || taken(layer, next)) return layer;
  return {
    ...layer,
    spans: layer.spans.map((span) => (span.id === id ? next : span)).sort((a, b) => a.start - b.start || b.end - a.end),
  };
};

/** Without a span. */
export const withoutSpan = (/** @type {Layer} */ layer, /** @type {string} */ id) =>
  ({ ...layer, spans: layer.spans.filter((span) => span.id !== id) });

/** The answer for a unit, empty where there is none. @returns {Unit} */
export const unitAt = (/** @type {Layer} */ layer, /** @type {[number, number]} */ [start, end]) =>
  layer.units.find((unit) => unit.start === start && unit.end === end)
  ?? { start, end, label: null, evidence: [], flags: [], counts: {} };

/** Change the answer for a unit; one that says nothing is left out. */
export const changeUnit = (
  /** @type {Layer} */ layer, /** @type {[number, number]} */ place, /** @type {Partial<Unit>} */ change,
) => {
  const next = { ...unitAt(layer, place), ...change };
  const says = next.label !== null || next.evidence.length || next.flags.length || Object.keys(next.counts).length;
  const others = layer.units.filter((unit) => unit.start !== place[0] || unit.end !== place[1]);
  return { ...layer, units: (says ? [...others, next] : others).sort((a, b) => a.start - b.start || a.end - b.end) };
};

/** Whether a unit has an answer. */
export const isAnswered = (/** @type {Unit} */ unit) => unit.label !== null || Object.keys(unit.counts).length > 0;

/** A list with a word in it, or without it. */
export const toggled = (/** @type {string[]} */ list, /** @type {string} */ word) =>
  list.includes(word) ? list.filter((other) => other !== word) : [...list, word];

const key = (/** @type {Layer} */ layer) => {
  const full = whole(layer);
  const spans = full.spans.map((s) => [s.start, s.end, s.type, s.rating, s.note, s.id]);
  const units = full.units.map((u) => [u.start, u.end, u.label, u.evidence.map((p) => [p.id, p.start, p.end]), [...u.flags].sort(),
    Object.entries(u.counts).sort()]);
  return JSON.stringify([
    spans.sort(), units.sort(), full.label, Object.entries(full.ratings).sort(), [...full.flags].sort(),
    [...full.source_flags].sort(), full.skip, full.comment, [...full.rejected].sort(),
  ]);
};

/** Whether two layers say the same. */
export const same = (/** @type {Layer} */ one, /** @type {Layer} */ other) => key(one) === key(other);

/**
 * What is missing before a layer can be handed in.
 * @param {Layer} layer @param {any} form @param {[number, number][]} units
 * @returns {{what: "label" | "units" | "rating" | "span_rating", count: number, at?: any}[]}
 */
export const missing = (layer, form, units) => {
  const open = [];
  if (form.labels.length && layer.label === null) open.push({ what: /** @type {const} */ ("label"), count: 1 });
  const unlabelled = form.unit ? units.filter((place) => !isAnswered(unitAt(layer, place))) : [];
  if (unlabelled.length) open.push({ what: /** @type {const} */ ("units"), count: unlabelled.length, at: unlabelled[0] });
  for (const rating of form.item_ratings) {
    if (rating.required && layer.ratings[rating.name] === undefined) {
      open.push({ what: /** @type {const} */ ("rating"), count: 1, at: rating.name });
    }
  }
  const unrated = form.span_rating?.required ? layer.spans.filter((span) => span.rating === null) : [];
  if (unrated.length) open.push({ what: /** @type {const} */ ("span_rating"), count: unrated.length, at: unrated[0].id });
  return open;
};
