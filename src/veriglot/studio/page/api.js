// Calls of the server. Where the page lies tells where the API lies, so a studio below a path works as well.

import { t, translated } from "./texts.js";

/** What stands before every path: empty, or `/below/a/host`. */
export const BASE = new URL(import.meta.url).pathname.split("/page/")[0];

let csrf = "";

/** Take the token that writes carry. @param {string} token */
export const takeToken = (token) => {
  csrf = token;
};

const KEY = "veriglot:project";
let slug = "";
try {
  slug = new URLSearchParams(location.search).get("project") ?? sessionStorage.getItem(KEY) ?? "";
} catch { /* a browser that keeps nothing: this page's project is the one that was joined last */ }

/** The project that this tab works in; another tab may work in another. */
export const project = () => slug;

/** Take the project of this tab; none for the one that was joined last. @param {string} name */
export const takeProject = (name) => {
  slug = name;
  try {
    sessionStorage.setItem(KEY, name);
  } catch { /* it lasts as long as the page */ }
};

/** An answer that is no success; `status` 0 where none came. */
export class Failure extends Error {
  /** @param {number} status @param {any} body @param {number} [wait] seconds that the server asks to wait */
  constructor(status, body, wait = 0) {
    super(body?.error?.message ?? "");
    this.status = status;
    this.code = body?.error?.code ?? "";
    this.remedy = body?.error?.remedy ?? "";
    this.field = body?.error?.field ?? "";
    this.body = body;
    this.wait = wait;
  }

  /** Whether the server answered that something is wrong with what was asked (4xx), and said what. */
  get explained() {
    return this.status >= 400 && this.status < 500 && Boolean(this.message);
  }
}

/** A failure in words: the server's own and what to do, or that it cannot be reached. @param {unknown} failure */
export const wordsOf = (failure) =>
  failure instanceof Failure && failure.explained ? `${translated(failure.message)} ${translated(failure.remedy)}`.trim() : t("offline.unreachable");

/** Answers that were right before something happened, and are being made anew. */
export const outdated = new WeakSet();
/** Figures to the time of which they are. @type {WeakMap<object, Date>} */
export const asOf = new WeakMap();

/**
 * @param {"GET" | "POST"} method @param {string} path @param {unknown} [body] @param {{keepalive?: boolean, wait?: number, patience?: number}} [options] `wait`: seconds for a figure that is being made anew; `patience`: for any answer
 * @returns {Promise<any>}
 */
export const call = async (method, path, body, options = {}) => {
  /** @type {Record<string, string>} */
  const headers = { accept: "application/json" };
  if (slug) headers["x-project"] = slug;
  if (options.wait) headers.prefer = `wait=${options.wait}`;
  if (method === "POST") {
    headers["content-type"] = "application/json";
    headers["x-csrf-token"] = csrf;
  }
  let answer;
  try {
    answer = await fetch(`${BASE}${path}`, {
      method, headers, credentials: "same-origin", cache: "no-store", keepalive: options.keepalive,
      body: method === "POST" ? JSON.stringify(body ?? {}) : undefined,
      signal: AbortSignal.timeout((options.patience ?? 30) * 1000),
    });
  } catch {
    throw new Failure(0, null);
  }
  const data = await answer.json().catch(() => null);
  if (answer.ok && answer.headers.has("x-outdated")) outdated.add(data);
  if (answer.ok && answer.headers.has("x-as-of")) asOf.set(data, new Date(answer.headers.get("x-as-of") ?? ""));
  if (!answer.ok) throw new Failure(answer.status, data, Number(answer.headers.get("retry-after")) || 0);
  return data;
};

/** Who asks; takes the token along. */
export const me = async () => {
  const me = await call("GET", "/api/me");
  takeToken(me.csrf);
  takeProject(me.project.slug);
  return me;
};

/** End the session; false, and said, where the server could not be reached: then somebody is still signed in. */
export const leave = async () => {
  try {
    await call("POST", "/api/logout");
  } catch (failure) {
    if (!(failure instanceof Failure && failure.explained)) { // else the session is over already
      alert(t("join.offline"));
      return false;
    }
  }
  return true;
};

/** An id that no other event has. */
export const uuid = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};
