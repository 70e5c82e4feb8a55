// The screens behind addresses, each loaded when it is first needed. A screen gets `me` (null for strangers), `params`
// (parts of the address), `navigate`, and `again` (ask anew who asks: after an exam).

import { BASE } from "./api.js";
import { ThemeSwitch } from "./top.js";
import { html, useState } from "./view.js";

const join = async () => {
  const { Join } = await import("./join.js");
  return (/** @type {any} */ { params }) => html`<${Join} token=${decodeURIComponent(params.token)} />`;
};

const work = async () => (await import("./work.js")).Screen;

const lead = async () => {
  const { Lead } = await import("./lead/lead.js");
  return (/** @type {any} */ { me }) => html`<${Lead} me=${me} tools=${html`<${ThemeSwitch} />`} />`;
};

const guidelines = async () => {
  const { GuidelinesPage } = await import("./guidelines.js");
  return (/** @type {any} */ { me }) => html`<${GuidelinesPage} form=${me.project.form} home=${`${BASE}/`} />`;
};

/** What stands before the exam and after it; its items are worked on like all others. */
const exam = async () => {
  const { ExamFinish, ExamIntro, ExamOut, ExamResult } = await import("./exam.js");
  return (/** @type {any} */ { me, params, navigate, again }) => {
    const [result, setResult] = useState(/** @type {any} */ (null));
    const next = async () => {
      const passed = result.passed;
      setResult(null);
      await again();
      navigate(passed ? "/work" : "/exam");
    };
    if (result) return html`<${ExamResult} result=${result} onNext=${next} />`;
    if (me.person.stage === "out") return html`<${ExamOut} />`;
    if (params.step === "finish") return html`<${ExamFinish} onResult=${setResult} onBack=${() => navigate("/work")} />`;
    return html`<${ExamIntro} me=${me} onBegin=${() => navigate("/work")} />`;
  };
};

/** @typedef {{name: string, pattern: RegExp, load: () => Promise<any>, open: boolean}} Address */

/** Addresses, and whether strangers may come (`open`). @type {Address[]} */
export const ADDRESSES = [
  { name: "join", pattern: /^\/join\/(?<token>.+)$/, load: join, open: true },
  { name: "exam", pattern: /^\/exam(?:\/(?<step>\w+))?$/, load: exam, open: false },
  { name: "lead", pattern: /^\/lead(?:\/.*)?$/, load: lead, open: false },
  { name: "guidelines", pattern: /^\/guidelines$/, load: guidelines, open: false },
  { name: "work", pattern: /^\/work(?:\/(?<id>\d+))?$/, load: work, open: false },
];
