// A text that is read and marked. The text is one piece of the page, never cut: joined scripts stay joined, and places
// are plain. Marks, selection and letters are drawn under and over it, where the browser says that their text lies.

import { boxesOf, characterAt } from "./geometry.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./view.js";

/**
 * @typedef {object} Mark
 * @property {string} key @property {number} start @property {number} end
 * @property {"span" | "suggestion" | "ghost" | "unit"} kind
 * @property {number} [lane] @property {string} [colour] @property {string} [letter] @property {boolean} [active]
 */

const LANE = 5; // pixels from one underline to the next
const BAR = 14; // and from one bar to the next

/** Redraw when the text takes another shape: the window, a font, a pane. @param {import("preact").RefObject<HTMLElement>} box */
const useShape = (box) => {
  const [shape, setShape] = useState(0);
  useEffect(() => {
    const redraw = () => setShape((before) => before + 1);
    const observer = new ResizeObserver(redraw);
    if (box.current) observer.observe(box.current);
    document.fonts?.addEventListener?.("loadingdone", redraw);
    return () => {
      observer.disconnect();
      document.fonts?.removeEventListener?.("loadingdone", redraw);
    };
  }, []);
  return shape;
};

/** Marks with a letter, where each begins, and how many begin there before it. @param {Mark[]} marks @param {Map<string, import("./geometry.js").Box[]>} shapes */
const lettered = (marks, shapes) => {
  /** @type {Map<number, number>} */
  const begun = new Map();
  return marks.filter((mark) => mark.letter && shapes.get(mark.key)?.length).map((mark) => {
    const before = begun.get(mark.start) ?? 0;
    begun.set(mark.start, before + 1);
    return { mark, before, first: /** @type {import("./geometry.js").Box[]} */ (shapes.get(mark.key))[0] };
  });
};

const px = (/** @type {number} */ value) => `${Math.round(value * 100) / 100}px`;

/** @param {Mark} mark @param {import("./geometry.js").Box[]} boxes */
const drawn = (mark, boxes) => boxes.map((box, index) => {
  const line = mark.kind === "unit" ? 0 : 2 + (mark.lane ?? 0) * LANE; // what is underlined reaches down to its line
  const place = { left: px(box.left), top: px(box.top), width: px(box.width), height: px(box.height + line), color: mark.colour };
  return html`<i key=${`${mark.key}-${index}`} class=${`box ${mark.kind}${mark.active ? " now" : ""}`} style=${place}></i>`;
});

/**
 * @param {object} props
 * @param {string} props.id
 * @param {import("./stops.js").Stops} props.stops
 * @param {string | null} props.language @param {"ltr" | "rtl"} props.direction @param {string} props.label
 * @param {string} [props.describedby]
 * @param {Mark[]} props.marks
 * @param {import("./selection.js").Selection | null} props.selection
 * @param {(start: number, end: number, how: "drag" | "done" | "click" | "extend") => void} props.onSelect
 * @param {(edge: "start" | "end", point: number) => void} [props.onEdge]
 * @param {(id: string) => void} [props.onMark]
 * @param {import("./adjudication.js").Bar[]} [props.bars] under the lines, each in its lane
 * @param {(key: string) => void} [props.onBar]
 * @param {(event: KeyboardEvent, node: Text) => void} [props.onKey]
 * @param {() => void} [props.onCopy]
 */
export const Surface = (props) => {
  const { stops, marks, selection, bars = [] } = props;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const text = useRef(/** @type {HTMLElement | null} */ (null));
  const shape = useShape(box);
  const [shapes, setShapes] = useState(/** @type {Map<string, import("./geometry.js").Box[]>} */ (new Map()));
  const signature = `${[...marks, ...bars].map((mark) => `${mark.key}:${mark.start}-${mark.end}`).join()}|${selection?.start}-${selection?.end}`;
  const node = () => /** @type {Text} */ (text.current?.firstChild);
  useLayoutEffect(() => {
    if (!box.current || !node()) return;
    const found = new Map();
    for (const mark of [...marks, ...bars]) found.set(mark.key, boxesOf(node(), stops.points, mark.start, mark.end, box.current));
    if (selection) found.set("selection", boxesOf(node(), stops.points, selection.start, selection.end, box.current));
    setShapes(found);
  }, [signature, shape, stops]);
  const lanes = marks.reduce((most, mark) => Math.max(most, (mark.lane ?? -1) + 1), 0);
  const rtl = props.direction === "rtl";
  const rows = bars.reduce((most, bar) => Math.max(most, bar.lane + 1), 0);
  return html`
    <div class=${`surface lanes-${Math.min(lanes, 8)}`} ref=${box} dir=${props.direction} lang=${props.language ?? undefined}
      style=${{ "--bars": rows ? `calc(${px(rows * BAR + 3)} - .35em)` : undefined }}>
      <div class="under" aria-hidden="true">
        ${(shapes.get("selection") ?? []).map((one, index) => html`<i key=${index} class="box selected" style=${{ left: px(one.left), top: px(one.top), width: px(one.width), height: px(one.height) }}></i>`)}
        ${marks.map((mark) => drawn(mark, shapes.get(mark.key) ?? []))}
      </div>
      <p class="text" id=${props.id} ref=${text} tabindex="0" role="application" aria-label=${props.label}
        aria-describedby=${props.describedby} onKeyDown=${(/** @type {KeyboardEvent} */ event) => props.onKey?.(event, node())}
        onCopy=${props.onCopy} ...${pointing(props, text, node)}>${stops.points.text}</p>
      <div class="over" aria-hidden="true">
        ${lettered(marks, shapes).map(({ mark, first, before }) => {
          const aside = before * 23 * (rtl ? -1 : 1); // marks that begin together stand side by side
          const place = { left: px((rtl ? first.left + first.width : first.left) + aside), top: px(first.top), color: mark.colour };
          return html`<b key=${mark.key} class=${`letter ${mark.kind}${mark.active ? " now" : ""}${rtl ? " rtl" : ""}`} style=${place}
            onClick=${() => props.onMark?.(mark.key)}>${mark.letter}</b>`;
        })}
        ${bars.map((bar) => (shapes.get(bar.key) ?? []).map((one, index) => html`<b key=${`${bar.key}-${index}`} title=${bar.title} dir="auto"
          class=${`bar ${bar.state}${bar.active ? " now" : ""}`} onClick=${() => props.onBar?.(bar.key)} style=${{
            left: px(one.left), top: px(one.top + one.height + 4 + (Math.max(lanes, 1) - 1) * LANE + bar.lane * BAR), width: px(one.width), color: bar.colour,
          }}>${index ? "" : bar.label}</b>`))}
        ${props.onEdge && selection && shapes.get("selection")?.length ? html`<${Handles} boxes=${shapes.get("selection")} rtl=${rtl} stops=${stops} node=${node} onEdge=${props.onEdge} />` : null}
      </div>
    </div>`;
};

/** Pointer events of the text: a drag selects as it goes, a tap selects a word. */
const pointing = (
  /** @type {any} */ props, /** @type {import("preact").RefObject<HTMLElement>} */ text, /** @type {() => Text} */ node,
) => {
  const { stops, onSelect } = props;
  const drag = useRef(/** @type {{first: [number, number], moved: boolean} | null} */ (null));
  const at = (/** @type {PointerEvent | MouseEvent} */ event) => characterAt(node(), stops, event.clientX, event.clientY);
  const range = (/** @type {PointerEvent} */ event, /** @type {[number, number]} */ now) => {
    const first = /** @type {NonNullable<typeof drag.current>} */ (drag.current).first;
    const [start, end] = [Math.min(first[0], now[0]), Math.max(first[1], now[1])];
    return event.altKey ? stops.trim(start, end) : stops.snap(start, end);
  };
  return {
    onPointerDown: (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      const first = at(event);
      if (!first) return;
      event.preventDefault();
      text.current?.focus({ preventScroll: true });
      drag.current = { first, moved: false };
      text.current?.setPointerCapture(event.pointerId);
    },
    onPointerMove: (/** @type {PointerEvent} */ event) => {
      const now = drag.current && at(event);
      if (!drag.current || !now) return;
      drag.current.moved ||= now[0] !== drag.current.first[0];
      const found = drag.current.moved && range(event, now);
      if (found) onSelect(found[0], found[1], "drag");
    },
    onPointerUp: (/** @type {PointerEvent} */ event) => {
      if (!drag.current) return;
      const now = at(event) ?? drag.current.first;
      const moved = drag.current.moved || now[0] !== drag.current.first[0] || event.altKey;
      const found = range(event, now);
      drag.current = null;
      if (!found) return;
      onSelect(found[0], found[1], event.shiftKey ? "extend" : moved ? "done" : "click");
    },
    onPointerCancel: () => {
      drag.current = null;
    },
    onMouseDown: (/** @type {MouseEvent} */ event) => event.button === 0 && event.preventDefault(),
    onClick: (/** @type {PointerEvent} */ event) => {
      if (event.pointerType !== "touch") return;
      const now = at(event);
      const found = now && stops.snap(now[0], now[1]);
      text.current?.focus({ preventScroll: true });
      if (found) onSelect(found[0], found[1], "click");
    },
  };
};

/** While a handle is dragged, what lies under it is asked for, not the handle. @param {Element} handle @param {boolean} on */
const held = (handle, on) => /** @type {HTMLElement} */ (handle.closest(".surface")).toggleAttribute("data-dragging", on);

/** Two handles that fingers drag. @param {any} props */
const Handles = ({ boxes, rtl, stops, node, onEdge }) => {
  const first = boxes[0];
  const last = boxes[boxes.length - 1];
  const begin = { left: px(rtl ? first.left + first.width : first.left), top: px(first.top), height: px(first.height) };
  const end = { left: px(rtl ? last.left : last.left + last.width), top: px(last.top), height: px(last.height) };
  const handlers = (/** @type {"start" | "end"} */ edge) => ({
    onPointerDown: (/** @type {PointerEvent} */ event) => {
      event.preventDefault();
      const handle = /** @type {Element} */ (event.target);
      handle.setPointerCapture(event.pointerId);
      held(handle, true);
    },
    onPointerUp: (/** @type {PointerEvent} */ event) => held(/** @type {Element} */ (event.target), false),
    onPointerCancel: (/** @type {PointerEvent} */ event) => held(/** @type {Element} */ (event.target), false),
    onPointerMove: (/** @type {PointerEvent} */ event) => {
      if (!/** @type {Element} */ (event.target).hasPointerCapture(event.pointerId)) return;
      const lift = event.pointerType === "touch" ? 26 : 0; // the finger hides what it points at
      const found = characterAt(node(), stops, event.clientX, event.clientY - lift);
      const word = found && (event.altKey ? found : stops.snap(found[0], found[1]));
      if (word) onEdge(edge, edge === "start" ? word[0] : word[1]);
    },
  });
  return html`
    <i class="handle begin" style=${begin} ...${handlers("start")}></i>
    <i class="handle finish" style=${end} ...${handlers("end")}></i>`;
};
