// Settling an item: a lane for each person under the text, votes on what anybody gives, taken or left out by click or key.

import { ink, letters } from "./colours.js";
import { lanesOf } from "./lanes.js";
import { SUGGESTED } from "./layers.js";
import { called } from "./names.js";
import { named, number, t } from "./texts.js";
import { classes, html } from "./view.js";

/** @typedef {import("./editor.js").Editor} Editor */

/**
 * @typedef {{id: string, start: number, end: number, type: string, assignments: number[], rating: number | null}} Vote
 * @typedef {{key: string, start: number, end: number, lane: number, colour: string, label: string, title: string, state: string, active: boolean}} Bar
 */

/** Where a vote stands: taken into gold, left out, or open. @param {Editor} editor @param {string} id with its prefix */
const stateOf = (editor, id) => {
  const vote = editor.candidates().find((candidate) => candidate.id === id);
  if (vote && editor.isTaken(vote)) return "taken";
  return editor.layer.rejected.includes(id) ? "left" : "open";
};

/** The bars that are drawn under the text, each person's in lanes of their own. @param {Editor} editor @returns {Bar[]} */
export const barsOf = (editor) => {
  const { assignment, form, votes } = editor;
  if (!votes || !form.types.length) return [];
  const colours = new Map(form.types.map((/** @type {any} */ choice) => [choice.name, ink(choice.colour)]));
  let first = 0;
  return assignment.subjects.flatMap((/** @type {any} */ subject) => {
    const mine = votes.filter((vote) => vote.assignments.includes(subject.assignment));
    const lanes = lanesOf(mine);
    const before = first;
    first += Math.max(1, ...mine.map((vote) => (lanes.get(vote) ?? 0) + 1));
    return mine.map((vote) => ({
      key: `${SUGGESTED}${vote.id} ${subject.assignment}`, start: vote.start, end: vote.end, lane: before + (lanes.get(vote) ?? 0),
      colour: colours.get(vote.type) ?? "#7f7f7f", label: called(subject), title: `${called(subject)}: ${named("type", vote.type)}`,
      state: stateOf(editor, `${SUGGESTED}${vote.id}`), active: editor.active === `${SUGGESTED}${vote.id}`,
    }));
  });
};

/** How many of all give a label to a place, where an item is settled. @param {{editor: Editor, place: [number, number], label: string}} props */
export const Share = ({ editor, place, label }) => {
  const vote = editor.votes?.find((one) => one.start === place[0] && one.end === place[1] && one.type === label);
  return vote ? html` <span class="badge">${shareOf(editor, vote)}</span>` : null;
};

const shareOf = (/** @type {Editor} */ editor, /** @type {Vote} */ vote) =>
  t("adjudicate.votes", { n: vote.assignments.length, of: editor.assignment.subjects.length });

/** Those whose layers are settled; what one of them says, or most of them, can be taken at once. @param {{editor: Editor}} props */
export const Adjudicated = ({ editor }) => {
  const { assignment, locked } = editor;
  const open = editor.suggestions().length;
  return html`
    <section class="notice adjudicated" aria-label=${t("adjudicate.title")}>
      <p class="row"><strong>${t("adjudicate.title")}</strong>
        ${editor.form.types.length ? html`<span class="fine" id="votes-open">${t("adjudicate.open", { count: open })}</span>` : null}
        <button class="small" disabled=${locked} onClick=${() => editor.takeMost()}>${t("adjudicate.most")} <kbd>M</kbd></button></p>
      <p class="row"><span class="fine" id="begin-with">${t("adjudicate.take")}</span>
        ${assignment.subjects.map((/** @type {any} */ subject) => html`<button key=${subject.assignment} class="small" aria-describedby="begin-with"
          disabled=${locked || Boolean(subject.layer.skip)} onClick=${() => editor.takeLayer(subject)}><bdi>${called(subject)}</bdi>${
            editor.form.types.length && !subject.layer.skip ? html` <span class="badge">${number(subject.layer.spans?.length ?? 0)}</span>` : null}</button>`)}</p>
      ${assignment.subjects.map((/** @type {any} */ subject) => {
        const reason = subject.layer.skip ? t("lead.skipped", { reason: named("skip", subject.layer.skip) }) : "";
        return reason || subject.layer.comment ? html`<p class="fine" key=${subject.assignment}><bdi>${called(subject)}</bdi>: ${reason} <q dir="auto">${subject.layer.comment}</q></p>` : null;
      })}
    </section>`;
};

/** Everything that anybody marked, with who did. @param {{editor: Editor}} props */
export const Votes = ({ editor }) => {
  const { form, votes } = editor;
  if (!votes?.length || !form.types.length) return null;
  const signs = letters(form.types, (name) => named("type", name));
  return html`
    <section class="spans votes" aria-label=${t("adjudicate.all")}>
      <h3>${t("adjudicate.all")}</h3>
      <ol class="span-list">${votes.map((vote) => html`<${Line} key=${vote.id} editor=${editor} vote=${vote} sign=${signs.get(vote.type)} />`)}</ol>
    </section>`;
};

/** @param {{editor: Editor, vote: Vote, sign: string}} props */
const Line = ({ editor, vote, sign }) => {
  const { assignment, form, item, locked } = editor;
  const id = `${SUGGESTED}${vote.id}`;
  const state = stateOf(editor, id);
  const now = editor.active === id;
  const colour = ink(form.types.find((/** @type {any} */ choice) => choice.name === vote.type)?.colour ?? "#7f7f7f");
  const givers = assignment.subjects.filter((/** @type {any} */ subject) => vote.assignments.includes(subject.assignment));
  return html`
    <li class=${classes({ "span-line": true, vote: true, [state]: true, now })} data-state=${state}>
      <div class="span-head">
        <button class="span-go" aria-pressed=${now} onClick=${() => editor.activate(now ? null : id)}>
          <b class="sign" style=${{ color: colour }} aria-hidden="true">${sign}</b>
          <span class="kind">${named("type", vote.type)}</span>
          <bdi class="quoted" dir=${item.direction} lang=${item.language}>${editor.quote(vote.start, vote.end)}</bdi>
        </button>
        <span class="votes-of"><b class="badge">${shareOf(editor, vote)}</b>
          <span class="fine">${givers.map((/** @type {any} */ subject, /** @type {number} */ index) => html`${index ? " · " : ""}<bdi key=${subject.assignment}>${called(subject)}</bdi>`)}</span>
          ${vote.rating !== null ? html`<span class="badge">${t("lead.rated", { n: number(vote.rating) })}</span>` : null}</span>
        <span class="votes-do">
          <button class="small" aria-pressed=${state === "taken"} disabled=${locked} onClick=${() => editor.take(id)}>${t("adjudicate.in")}${now ? html` <kbd>Y</kbd>` : null}</button>
          <button class="small" aria-pressed=${state === "left"} disabled=${locked} onClick=${() => editor.leave(id)}>${t("adjudicate.out")}${now ? html` <kbd>X</kbd>` : null}</button>
        </span>
      </div>
    </li>`;
};
