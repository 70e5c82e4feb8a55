// Undo and redo. Letters typed into the same field within a moment are one step.

const TOGETHER = 1500; // milliseconds
const MOST = 500;

/** What was, is, and was taken back. @template T */
export class History {
  /** @param {T} present */
  constructor(present) {
    this.present = present;
    /** @type {T[]} */
    this.past = [];
    /** @type {T[]} */
    this.future = [];
    this.field = "";
    this.at = 0;
  }

  /**
   * Go on to a new state.
   * @param {T} next
   * @param {string} [field] what is typed into; steps of the same field that follow each other become one.
   * @returns {boolean} whether anything changed
   */
  push(next, field = "") {
    if (next === this.present) return false;
    const now = Date.now();
    const joins = field !== "" && field === this.field && now - this.at < TOGETHER;
    if (!joins) this.past.push(this.present);
    if (this.past.length > MOST) this.past.shift();
    this.present = next;
    this.future = [];
    this.field = field;
    this.at = now;
    return true;
  }

  /** One step back. @returns {boolean} whether there was one */
  undo() {
    const before = this.past.pop();
    if (before === undefined) return false;
    this.future.push(this.present);
    this.present = before;
    this.field = "";
    return true;
  }

  /** One step forward again. @returns {boolean} whether there was one */
  redo() {
    const after = this.future.pop();
    if (after === undefined) return false;
    this.past.push(this.present);
    this.present = after;
    this.field = "";
    return true;
  }
}
