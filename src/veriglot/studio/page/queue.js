// What is not yet on the server, kept on this device: written before anything is sent, removed when the server has it.

/**
 * @typedef {object} Entry
 * @property {string} event_id
 * @property {number} assignment
 * @property {number | null} base the version that it goes on from; null: that which the entry before it leads to
 * @property {string} kind
 * @property {import("./layers.js").Layer | null} layer
 * @property {string | null} comment
 * @property {number} seconds
 * @property {string} at
 * @property {boolean} sent whether it may have reached the server: then it is repeated as it is
 * @property {string} tab which wrote it
 * @property {number} order
 */

/**
 * @typedef {object} Conflict
 * @property {number} assignment
 * @property {import("./layers.js").Layer} mine
 * @property {import("./layers.js").Layer} theirs
 * @property {number} version @property {string} state @property {string} kind of what was to be sent
 */

const BEAT = 4000; // milliseconds
const DEAD = 12_000;

/** Storage that forgets, where the browser keeps nothing. @returns {Storage} */
const memory = () => {
  const map = new Map();
  return /** @type {any} */ ({
    getItem: (/** @type {string} */ key) => map.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => map.set(key, value),
    removeItem: (/** @type {string} */ key) => map.delete(key),
    key: (/** @type {number} */ index) => [...map.keys()][index] ?? null,
    get length() { return map.size; },
  });
};

/** Entries in order, by person; each under a key of its own, so that two tabs never overwrite each other's. */
export class Queue {
  /** @param {string} owner whose work it is @param {() => string} newId */
  constructor(owner, newId) {
    this.prefix = `veriglot:work:${owner}:`;
    this.newId = newId;
    /** Whether what is written survives the page. */
    this.lasting = true;
    this.storage = this.open();
    this.tab = this.ownTab();
    this.order = 0;
    this.beat();
    this.timer = setInterval(() => this.beat(), BEAT);
    addEventListener("pagehide", () => this.storage.removeItem(`${this.prefix}alive:${this.tab}`));
    addEventListener("pageshow", () => this.beat());
  }

  /** @returns {Storage} */
  open() {
    try {
      localStorage.setItem(`${this.prefix}probe`, "1");
      localStorage.removeItem(`${this.prefix}probe`);
      return localStorage;
    } catch {
      this.lasting = false;
      return memory();
    }
  }

  /** The name of this tab, which it keeps when it is loaded again; a copied tab takes a new one. */
  ownTab() {
    let name = "";
    try {
      name = sessionStorage.getItem("veriglot:tab") ?? "";
    } catch {
      this.lasting = false;
    }
    if (!name || this.isAlive(name)) name = this.newId();
    try {
      sessionStorage.setItem("veriglot:tab", name);
    } catch {
      this.lasting = false;
    }
    return name;
  }

  beat() {
    this.write(`alive:${this.tab}`, Date.now());
  }

  /** Whether another tab is open and looks after what it wrote. @param {string} tab */
  isAlive(tab) {
    const last = Number(this.storage.getItem(`${this.prefix}alive:${tab}`));
    return Boolean(last) && Date.now() - last < DEAD;
  }

  /** @param {string} key @param {unknown} value */
  write(key, value) {
    const text = JSON.stringify(value);
    try {
      this.storage.setItem(this.prefix + key, text);
    } catch {
      this.spill();
      this.storage.setItem(this.prefix + key, text);
    }
  }

  /** The device is full: go on in memory with everything that is waiting, and say so (`lasting`). */
  spill() {
    const full = this.storage;
    this.storage = memory();
    this.lasting = false;
    for (let index = 0; index < full.length; index += 1) {
      const key = full.key(index);
      if (key?.startsWith(this.prefix)) this.storage.setItem(key, full.getItem(key) ?? "");
    }
  }

  /** @param {string} kind @returns {any[]} */
  all(kind) {
    const entries = [];
    for (let index = 0; index < this.storage.length; index += 1) {
      const key = this.storage.key(index);
      if (!key?.startsWith(`${this.prefix}${kind}:`)) continue;
      try {
        entries.push(JSON.parse(this.storage.getItem(key) ?? "null"));
      } catch {
        // not written by this page
      }
    }
    return entries.filter(Boolean);
  }

  /** Entries that this tab looks after: its own, and those of tabs that are gone. @returns {Entry[]} */
  entries() {
    return /** @type {Entry[]} */ (this.all("event"))
      .filter((entry) => entry.tab === this.tab || !this.isAlive(entry.tab))
      .sort((a, b) => a.order - b.order);
  }

  /** @param {Omit<Entry, "tab" | "order">} entry @returns {Entry} */
  add(entry) {
    this.order = Math.max(Date.now() * 1000, this.order + 1);
    const full = { ...entry, tab: this.tab, order: this.order };
    this.put(full);
    return full;
  }

  /** @param {Entry} entry */
  put(entry) {
    this.write(`event:${entry.event_id}`, entry);
  }

  /** @param {Entry} entry */
  remove(entry) {
    this.storage.removeItem(`${this.prefix}event:${entry.event_id}`);
  }

  /** @returns {Conflict[]} */
  conflicts() {
    return this.all("conflict");
  }

  /** @param {Conflict} conflict */
  keepConflict(conflict) {
    this.write(`conflict:${conflict.assignment}`, conflict);
  }

  /** @param {number} assignment */
  dropConflict(assignment) {
    this.storage.removeItem(`${this.prefix}conflict:${assignment}`);
  }

  /** What the server refused, with its reason; kept until somebody has seen it. */
  refusals() {
    return /** @type {{entry: Entry, message: string, remedy: string}[]} */ (this.all("refused"));
  }

  /** @param {Entry} entry @param {string} message @param {string} remedy */
  keepRefusal(entry, message, remedy) {
    this.write(`refused:${entry.assignment}`, { entry, message, remedy });
  }

  /** @param {number} assignment */
  dropRefusal(assignment) {
    this.storage.removeItem(`${this.prefix}refused:${assignment}`);
  }

  /** Small things that a person said of an assignment and that its layer has no room for. @param {number} assignment */
  aside(assignment) {
    try {
      return JSON.parse(this.storage.getItem(`${this.prefix}aside:${assignment}`) ?? "{}");
    } catch {
      return {};
    }
  }

  /** @param {number} assignment @param {Record<string, unknown>} values */
  keepAside(assignment, values) {
    this.write(`aside:${assignment}`, { ...this.aside(assignment), ...values });
  }
}
