// Keys in the text, as commands. Pure: what a key means, not what is done.

/**
 * @typedef {{name: string, way?: 1 | -1, side?: "far" | "near", by?: "word" | "character", number?: number,
 *   whole?: boolean}} Command
 */

/** The digit of a key, whatever the keyboard's layout and script. @param {KeyboardEvent} event */
const digit = (event) => {
  const match = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  if (match) return Number(match[1]);
  return /^\d$/.test(event.key) ? Number(event.key) : null;
};

/** The Latin letter of a key: as it is labelled, and by its place where the layout is of another script. */
export const letter = (/** @type {KeyboardEvent} */ event) => {
  if (/^[a-z]$/i.test(event.key)) return event.key.toLowerCase();
  const match = /^Key([A-Z])$/.exec(event.code);
  return match && event.key.length === 1 ? match[1].toLowerCase() : "";
};

const LETTERS = { n: "note", e: "search", w: "shared", y: "accept", x: "reject", g: "guidelines", b: "back", m: "majority", d: "onward" };

/**
 * @param {KeyboardEvent} event
 * @param {"ltr" | "rtl"} direction of the text: forward is the reading direction
 * @returns {Command | null} null for keys that are the browser's
 */
export const command = (event, direction) => {
  const control = event.ctrlKey || event.metaKey;
  const arrows = direction === "rtl" ? { ArrowLeft: 1, ArrowRight: -1 } : { ArrowLeft: -1, ArrowRight: 1 };
  const way = /** @type {1 | -1 | undefined} */ (arrows[/** @type {"ArrowLeft"} */ (event.key)]);
  if (way) {
    const by = event.altKey ? "character" : "word";
    if (control) return { name: "stretch", way, side: "near", by };
    if (event.shiftKey) return { name: "stretch", way, side: "far", by };
    if (event.altKey) return { name: "stretch", way, side: "near", by };
    return { name: "step", way };
  }
  const undone = undoing(event);
  if (undone) return undone;
  if (control || event.altKey) return control && letter(event) === "c" && !event.altKey ? { name: "copy" } : null;
  return plain(event);
};

/** Undo and redo, which hold on the whole page. @param {KeyboardEvent} event @returns {Command | null} */
export const undoing = (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return null;
  if (letter(event) === "z") return { name: event.shiftKey ? "redo" : "undo" };
  return letter(event) === "y" && !event.shiftKey ? { name: "redo" } : null;
};

/** @param {KeyboardEvent} event @returns {Command | null} */
const plain = (event) => {
  const number = digit(event);
  if (number !== null) return { name: event.shiftKey ? "rate" : "type", number };
  switch (event.key) {
    case "ArrowUp": return { name: "line", way: -1, side: event.shiftKey ? "far" : undefined };
    case "ArrowDown": return { name: "line", way: 1, side: event.shiftKey ? "far" : undefined };
    case "Home": return { name: "end", way: -1 };
    case "End": return { name: "end", way: 1 };
    case "Tab": return { name: "tab", way: event.shiftKey ? -1 : 1 };
    case "Delete": case "Backspace": return { name: "delete" };
    case "Escape": return { name: "escape" };
    case "Enter": return { name: "submit" };
    case "?": return { name: "help" };
    case "/": return { name: "search" };
    default: {
      const name = LETTERS[/** @type {"n"} */ (letter(event))];
      return name && !event.shiftKey ? { name } : null;
    }
  }
};

/** Whether a key was meant for a field that is typed into. @param {Event} event */
export const inField = (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
};
