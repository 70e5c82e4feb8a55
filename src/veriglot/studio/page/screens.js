// The screens behind addresses, each loaded when it is first needed: a module that exports `Screen`. A screen gets `me`
// (null for strangers), `params` (parts of the address), `navigate`, and `again` (ask anew who asks: after joining, an
// exam, leaving).

/** @typedef {{name: string, pattern: RegExp, load: () => Promise<any>, open: boolean}} Address */

/** Addresses, and whether strangers may come (`open`). @type {Address[]} */
export const ADDRESSES = [
  { name: "join", pattern: /^\/join\/(?<token>.+)$/, load: async () => (await import("./join.js")).Screen, open: true },
  { name: "exam", pattern: /^\/exam(?:\/(?<step>\w+))?$/, load: async () => (await import("./exam.js")).Screen, open: false },
  { name: "lead", pattern: /^\/lead(?:\/(?<view>.+))?$/, load: async () => (await import("./lead/lead.js")).Screen, open: false },
  { name: "guidelines", pattern: /^\/guidelines$/, load: async () => (await import("./guidelines.js")).Screen, open: false },
  { name: "work", pattern: /^\/mark(?:\/(?<id>\d+))?$/, load: async () => (await import("./work.js")).Screen, open: false },
];
