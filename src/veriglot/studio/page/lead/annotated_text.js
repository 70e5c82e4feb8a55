// A text with somebody's marks, to be read and not changed. As where it is marked, the text is one piece, so that joined
// scripts stay joined, and marks are drawn beneath it; a list says the same to those who do not see them.

import { ink } from "../colours.js";
import { boxesOf } from "../geometry.js";
import { lanesOf } from "../lanes.js";
import { CodePoints } from "../offsets.js";
import { named, t } from "../texts.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../view.js";

const px = (/** @type {number} */ value) => `${Math.round(value * 100) / 100}px`;

/** The colour of a type or label in a form. @param {any} form @param {string} name */
export const colourOf = (form, name) =>
  ink([...form.types, ...form.unit_labels, ...form.labels].find((choice) => choice.name === name)?.colour ?? "#7f7f7f");

/** What a layer marks: its spans and its labelled units. @param {any} layer */
export const marksOf = (layer) => [
  ...(layer.spans ?? []).map((/** @type {any} */ span) => ({ ...span, name: span.type })),
  ...(layer.units ?? []).filter((/** @type {any} */ unit) => unit.label).map((/** @type {any} */ unit) => ({ ...unit, name: unit.label })),
];

/** @param {{text: string, direction: "ltr" | "rtl", language: string | null, layer: any, form: any, from?: (mark: any) => string}} props from whom a mark is */
export const Marked = ({ text, direction, language, layer, form, from }) => {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const line = useRef(/** @type {HTMLElement | null} */ (null));
  const points = useMemo(() => new CodePoints(text), [text]);
  const marks = marksOf(layer);
  const [boxes, setBoxes] = useState(/** @type {any[][]} */ ([]));
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const node = /** @type {Text} */ (line.current?.firstChild);
    if (node && box.current) {
      setBoxes(marks.map((mark) => boxesOf(node, points, mark.start, mark.end, /** @type {HTMLElement} */ (box.current))));
    }
  }, [layer, text, width]);
  const lanes = lanesOf(marks);
  return html`<div class="marked">
    <div class="marked-text" ref=${box} dir=${direction} lang=${language ?? undefined}>
      <div aria-hidden="true">${marks.map((mark, index) => (boxes[index] ?? []).map((one, part) => html`<i key=${`${index}-${part}`}
        class="marked-box" style=${{
          left: px(one.left), top: px(one.top), width: px(one.width), height: px(one.height + 3 * (lanes.get(mark) ?? 0)),
          "--colour": colourOf(form, mark.name),
        }}></i>`))}</div>
      <p ref=${line}>${text}</p>
    </div>
    ${marks.length
      ? html`<ul class="marked-list">${marks.map((mark, index) => html`<li key=${index} style=${{ "--colour": colourOf(form, mark.name) }}>
          <b>${named("type", mark.name)}</b>
          <q dir=${direction} lang=${language ?? undefined}>${points.slice(mark.start, mark.end)}</q>
          ${mark.rating ? html`<small>${t("lead.rated", { n: mark.rating })}</small>` : null}
          ${from?.(mark) ? html`<small dir="auto">${from(mark)}</small>` : null}
        </li>`)}</ul>`
      : html`<p class="marked-none">${layer.label !== null && layer.label !== undefined
          ? html`<b>${named("label", layer.label)}</b>`
          : layer.skip ? t("lead.skipped", { reason: named("skip", layer.skip) }) : t("lead.no_marks")}</p>`}
    ${layer.comment ? html`<p class="marked-comment" dir="auto">${layer.comment}</p>` : null}
  </div>`;
};
