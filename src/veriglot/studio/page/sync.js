// Work goes to the server in order, each event once, and whatever happens on the way nothing is lost: an event is on
// this device before it is sent, is repeated as it was until the server answers, and what came too late is shown.

import { Failure, call, me, uuid } from "./api.js";
import { same, whole } from "./layers.js";

/** @typedef {import("./queue.js").Entry} Entry @typedef {import("./layers.js").Layer} Layer */
/** @typedef {"saved" | "waiting" | "saving" | "offline" | "full" | "broken" | "conflict" | "refused" | "signedout"} Status */

const PAUSE = 700; // milliseconds without a change before a save is sent
const MOST_PUT_OFF = 3000;
const LONGEST = 30_000;
const PASSING = new Set([0, 408, 425, 429, 500, 502, 503, 504, 507]);

/** What became of an event that somebody waits for. @typedef {{done: boolean, version?: number, state?: string, failure?: Failure}} Outcome */

export class Sync extends EventTarget {
  /** @param {import("./queue.js").Queue} queue @param {{take: () => number}} clock */
  constructor(queue, clock) {
    super();
    this.queue = queue;
    this.clock = clock;
    /** The versions that this page has seen. @type {Map<number, number>} */
    this.seen = new Map();
    /** @type {Map<string, (outcome: Outcome) => void>} */
    this.waiters = new Map();
    this.link = /** @type {"ok" | "offline" | "full" | "broken" | "signedout"} */ ("ok");
    this.busy = false;
    this.failures = 0;
    /** Since when something waits to be sent, or 0. */
    this.since = 0;
    /** Until when the server asked to be left alone. */
    this.notBefore = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    addEventListener("online", () => this.soon(0));
    addEventListener("focus", () => this.soon(0));
    document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && this.soon(0));
    addEventListener("pagehide", () => this.soon(0));
    addEventListener("beforeunload", (event) => {
      if (this.queue.entries().length) event.preventDefault();
    });
    setInterval(() => this.queue.entries().length && this.soon(0), 15_000); // what a closed tab left behind
    this.soon(0);
  }

  /** @returns {{status: Status, waiting: number, conflicts: import("./queue.js").Conflict[], lasting: boolean}} */
  state() {
    const waiting = this.queue.entries().length;
    const conflicts = this.queue.conflicts();
    /** @type {Status} */
    let status = "saved";
    if (conflicts.length) status = "conflict";
    else if (this.queue.refusals().length) status = "refused";
    else if (this.link === "signedout") status = "signedout";
    else if (this.link !== "ok") status = this.link;
    else if (this.busy && waiting) status = "saving";
    else if (waiting) status = "waiting";
    return { status, waiting, conflicts, lasting: this.queue.lasting };
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  /**
   * Take up an assignment that the server sent: what is still waiting on this device goes before it.
   * @param {any} assignment @returns {{layer: Layer, drafted: boolean}}
   */
  open(assignment) {
    const mine = this.queue.entries().filter((entry) => entry.assignment === assignment.id && entry.layer);
    const conflict = this.queue.conflicts().find((one) => one.assignment === assignment.id);
    this.seen.set(assignment.id, assignment.version);
    const draft = mine.length ? mine[mine.length - 1].layer : conflict?.mine;
    return { layer: whole(draft ?? assignment.layer), drafted: Boolean(draft) };
  }

  /** Keep a layer; it is sent when nothing has changed for a moment. @param {number} assignment @param {Layer} layer @param {string | null} [comment] */
  save(assignment, layer, comment = null) {
    const last = this.lastOf(assignment);
    if (last && last.kind === "save" && !last.sent && (comment === null || last.comment === null)) {
      const seconds = last.seconds + this.clock.take();
      this.queue.put({ ...last, layer, comment: comment ?? last.comment, seconds, at: new Date().toISOString() });
    } else {
      this.enqueue(assignment, "save", layer, comment);
    }
    this.soon(PAUSE);
  }

  /**
   * Hand in, skip, reopen, confirm, correct or return; at once.
   * @param {number} assignment @param {string} kind @param {Layer | null} layer @param {string | null} [comment]
   * @returns {Promise<Outcome>}
   */
  act(assignment, kind, layer, comment = null) {
    const last = this.lastOf(assignment);
    if (last && last.kind === "save" && !last.sent && layer && last.comment === null) this.queue.remove(last);
    const base = last && !last.sent && last.kind === "save" && layer && last.comment === null ? last.base : undefined;
    const entry = this.enqueue(assignment, kind, layer, comment, base);
    const outcome = /** @type {Promise<Outcome>} */ (new Promise((resolve) => this.waiters.set(entry.event_id, resolve)));
    this.soon(0);
    return outcome;
  }

  /** @param {number} assignment */
  lastOf(assignment) {
    return this.queue.entries().filter((entry) => entry.assignment === assignment).pop();
  }

  /** @param {number} assignment @param {string} kind @param {Layer | null} layer @param {string | null} comment @param {number | null} [base] */
  enqueue(assignment, kind, layer, comment, base) {
    if (base === undefined) base = this.lastOf(assignment) ? null : this.seen.get(assignment) ?? 0;
    const entry = this.queue.add({
      event_id: uuid(), assignment, base, kind, layer, comment, seconds: this.clock.take(),
      at: new Date().toISOString(), sent: false,
    });
    this.changed();
    return entry;
  }

  /**
   * Send what waits: now, or when nothing has changed for `pause` milliseconds, but within three seconds.
   * @param {number} pause
   */
  soon(pause) {
    const now = Date.now();
    this.since ||= now;
    const wait = pause ? Math.min(pause, Math.max(0, this.since + MOST_PUT_OFF - now)) : 0;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.drain(), Math.max(wait, this.notBefore - now));
    this.changed();
  }

  /** Send everything that can be sent, one after the other. */
  async drain() {
    if (this.busy) return;
    this.busy = true;
    this.since = 0;
    this.changed();
    try {
      for (;;) {
        const stuck = new Set(this.queue.conflicts().map((conflict) => conflict.assignment));
        const entry = this.queue.entries().find((one) => !stuck.has(one.assignment));
        if (!entry || !(await this.send(entry))) break;
        this.changed();
      }
    } finally {
      this.busy = false;
      if (this.link !== "ok" && this.link !== "signedout") {
        const wait = Math.min(1000 * 2 ** Math.min(this.failures, 5), LONGEST);
        this.timer = setTimeout(() => this.drain(), Math.max(wait, this.notBefore - Date.now()));
      }
      this.changed();
    }
  }

  /** @param {Entry} entry @returns {Promise<boolean>} whether to go on with the next */
  async send(entry) {
    const base = entry.base ?? this.seen.get(entry.assignment) ?? 0;
    const sent = { ...entry, base, sent: true };
    this.queue.put(sent);
    const body = {
      event_id: entry.event_id, base_version: base, kind: entry.kind, layer: entry.layer, comment: entry.comment,
      seconds: entry.seconds, at: entry.at,
    };
    try {
      const answer = await this.post(entry.assignment, body);
      this.arrived(sent, answer);
      return true;
    } catch (failure) {
      return this.failed(sent, /** @type {Failure} */ (failure));
    }
  }

  /** @param {number} assignment @param {any} body */
  async post(assignment, body) {
    const path = `/api/assignments/${assignment}/events`;
    const small = JSON.stringify(body).length < 30_000; // more is not let through once the page is gone
    try {
      return await call("POST", path, body, { keepalive: small });
    } catch (failure) {
      if (!(failure instanceof Failure) || failure.status !== 403) throw failure;
      await me(); // the token may be that of a session before
      return call("POST", path, body);
    }
  }

  /** @param {Entry} entry @param {{version: number, state: string}} answer */
  arrived(entry, answer) {
    this.link = "ok";
    this.failures = 0;
    this.queue.remove(entry);
    this.queue.dropRefusal(entry.assignment);
    this.leads(entry.assignment, answer.version);
    this.tell(entry, { done: true, version: answer.version, state: answer.state });
  }

  /** What waits for this assignment goes on from a version. @param {number} assignment @param {number} version */
  leads(assignment, version) {
    this.seen.set(assignment, version);
    const next = this.queue.entries().find((entry) => entry.assignment === assignment);
    if (next && next.base === null) this.queue.put({ ...next, base: version });
  }

  /** @param {Entry} entry @param {Outcome} outcome */
  tell(entry, outcome) {
    const waiter = this.waiters.get(entry.event_id);
    this.waiters.delete(entry.event_id);
    waiter?.(outcome);
  }

  /** @param {Entry} entry @param {Failure} failure */
  failed(entry, failure) {
    if (!(failure instanceof Failure)) throw failure;
    if (PASSING.has(failure.status)) {
      this.link = failure.code === "disk_full" ? "full" : failure.status >= 500 && failure.code ? "broken" : "offline";
      this.failures += 1;
      this.notBefore = Date.now() + failure.wait * 1000;
      return false;
    }
    if (failure.status === 401) {
      this.link = "signedout";
      return false;
    }
    this.link = "ok";
    this.failures = 0;
    if (failure.status === 409 && failure.body?.layer) this.tooLate(entry, failure);
    else this.refused(entry, failure);
    return true;
  }

  /** The server has a later version: both are kept until somebody chooses. @param {Entry} entry @param {Failure} failure */
  tooLate(entry, failure) {
    const { version, state } = failure.body;
    const theirs = whole(failure.body.layer);
    const waiting = this.queue.entries().filter((one) => one.assignment === entry.assignment);
    const mine = whole([...waiting].reverse().find((one) => one.layer)?.layer ?? entry.layer ?? theirs);
    for (const one of waiting) {
      this.queue.remove(one);
      this.tell(one, { done: false, failure });
    }
    this.seen.set(entry.assignment, version);
    const kind = waiting.map((one) => one.kind).pop() ?? entry.kind;
    if (!same(mine, theirs)) this.queue.keepConflict({ assignment: entry.assignment, mine, theirs, version, state, kind });
    this.dispatchEvent(new CustomEvent("conflict", { detail: entry.assignment }));
  }

  /** @param {Entry} entry @param {Failure} failure */
  refused(entry, failure) {
    this.queue.remove(entry);
    this.queue.keepRefusal(entry, failure.message || `${failure.status}`, failure.remedy);
    const next = this.lastOf(entry.assignment) && this.queue.entries().find((one) => one.assignment === entry.assignment);
    if (next && next.base === null) this.queue.put({ ...next, base: entry.base });
    this.tell(entry, { done: false, failure });
  }

  /**
   * Settle a conflict. With `mine`, it goes on from the server's version as a new event; both stay in the history.
   * @param {number} assignment @param {"mine" | "theirs"} choice @returns {Layer | null} the layer to go on with
   */
  resolve(assignment, choice) {
    const conflict = this.queue.conflicts().find((one) => one.assignment === assignment);
    if (!conflict) return null;
    this.seen.set(assignment, conflict.version);
    this.queue.dropConflict(assignment);
    if (choice === "mine") {
      if (conflict.state === "submitted" || conflict.state === "skipped") this.enqueue(assignment, "reopen", null, null);
      this.enqueue(assignment, "save", conflict.mine, null);
      this.soon(0);
    }
    this.changed();
    return choice === "mine" ? conflict.mine : conflict.theirs;
  }

  /** Whether anything of an assignment is not on the server yet. @param {number} assignment */
  isWaiting(assignment) {
    return Boolean(this.lastOf(assignment));
  }
}
