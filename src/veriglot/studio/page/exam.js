// The exam around the work: what it asks, handing it in, and what came of it. Its items are worked on like all others.

import { call } from "./api.js";
import { GuidelinesText } from "./guidelines.js";
import { Refusal } from "./join.js";
import { Marked } from "./lead/annotated_text.js";
import { languageName } from "./lead/figures.js";
import { interfaceLanguage, t } from "./texts.js";
import { html, useEffect, useState } from "./view.js";

const share = (/** @type {number} */ value) =>
  new Intl.NumberFormat(interfaceLanguage(), { style: "percent", maximumFractionDigits: 1 }).format(value);

/** Figures of an attempt by name, for those that there are. @param {{figures: Record<string, number | null>}} props */
const Figures = ({ figures }) => {
  const shown = ["precision", "recall", "agreement"].filter((name) => name in figures);
  return shown.length > 0 && html`<dl class="exam-figures">${shown.map((name) => html`<div key=${name}>
    <dt>${t(`exam.${name}`)}</dt>
    <dd>${typeof figures[name] === "number" ? share(/** @type {number} */ (figures[name])) : t("exam.undefined")}</dd>
  </div>`)}</dl>`;
};

/** What each language reached, as all have to pass. @param {{result: any}} props */
const Languages = ({ result }) => {
  const rows = Object.entries(result.by_language ?? {});
  return html`<p class="fine">${t("exam.needed", { share: share(result.threshold) })}</p>
    ${rows.length > 1 ? html`<ul class="exam-languages">${rows.map(([tag, figures]) => {
      const values = /** @type {(number | null)[]} */ (Object.values(figures));
      const reached = values.every((value) => value === null || value >= result.threshold);
      return html`<li key=${tag}><b class=${reached ? "good" : "bad"} aria-hidden="true">${reached ? "✓" : "✗"}</b> ${languageName(tag)}: <bdi>${
        values.map((value) => (value === null ? t("exam.undefined") : share(value))).join(" · ")}</bdi></li>`;
    })}</ul>` : null}`;
};

/** Before the exam: the guidelines to read, and how it goes. @param {{me: any, onBegin: () => void}} props */
const Intro = ({ me, onBegin }) => {
  const left = (me.project.exam_attempts ?? 1) - me.person.exam_attempts;
  return html`<main class="gate wide">
    <h1>${t("exam.title")}</h1>
    <p class="gate-lead">${t("exam.intro")}</p>
    <ul>
      <li>${t("exam.how_marked")}</li>
      <li>${t("exam.how_saved")}</li>
      <li>${t("exam.attempts", { count: left })}</li>
    </ul>
    <p><button type="button" class="primary" onClick=${onBegin}>${t(me.person.exam_begun ? "exam.go_on" : "exam.begin")}</button></p>
    <${GuidelinesText} form=${me.project.form} />
  </main>`;
};

/** All items are done: hand in, or look at one again. @param {{onResult: (result: any) => void, navigate: (path: string) => void}} props */
const Finish = ({ onResult, navigate }) => {
  const [items, setItems] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    call("GET", "/api/assignments").then((lines) =>
      setItems(lines.filter((/** @type {any} */ line) => line.purpose === "exam" && line.state === "submitted"))).catch(() => undefined);
  }, []);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const finish = async () => {
    setBusy(true);
    setFailure(null);
    try {
      onResult(await call("POST", "/api/exam/finish"));
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return html`<main class="gate">
    <h1>${t("exam.done")}</h1>
    <p>${t("exam.done_text")}</p>
    <${Refusal} failure=${failure} />
    <p><button type="button" class="primary" disabled=${busy} onClick=${finish}>${t("exam.finish")}</button></p>
    ${items.length ? html`<h3 id="exam-items">${t("exam.look_again")}</h3>
      <ol class="exam-items" aria-labelledby="exam-items">${items.map((line, index) => html`<li key=${line.id}>
        <button type="button" class="small" aria-label=${t("exam.item", { n: index + 1 })} onClick=${() => navigate(`/mark/${line.id}`)}>${index + 1}</button></li>`)}</ol>` : null}
  </main>`;
};

/** The last attempt, item by item: one's own marks beside the known ones. @param {{form: any}} props */
const Feedback = ({ form }) => {
  const [answers, setAnswers] = useState(/** @type {any[] | null} */ (null));
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  useEffect(() => {
    call("GET", "/api/exam/feedback").then(setAnswers, setFailure);
  }, []);
  if (!answers) return html`<${Refusal} failure=${failure} />`;
  return html`<section class="feedback"><h2>${t("exam.feedback")}</h2>
    ${answers.map(({ item, answer, known, ...figures }, index) => html`<article key=${item.id} class="case" aria-label=${t("exam.item", { n: index + 1 })}>
      <header class="case-head"><h3>${t("exam.item", { n: index + 1 })}</h3>
        <p class="fine">${["precision", "recall"].map((name) => `${t(`exam.${name}`)}: ${typeof figures[name] === "number" ? share(figures[name]) : t("exam.undefined")}`).join(" · ")}</p></header>
      ${item.question ? html`<p dir=${item.question_direction} lang=${item.language ?? undefined}><b>${item.question}</b></p>` : null}
      <div class="sides">${[["exam.yours", answer], ["exam.known", known]].map(([name, layer]) => html`<section key=${name} class=${`side${layer === known ? " known" : ""}`}><h4>${t(name)}</h4>
        <${Marked} text=${item.response} direction=${item.direction} language=${item.language} layer=${layer} form=${form} /></section>`)}</div>
      ${item.evidence.length ? html`<details class="texts"><summary>${t("evidence.label")}</summary>${item.evidence.map((/** @type {any} */ passage) => html`
        <blockquote key=${passage.id} dir=${passage.direction} lang=${passage.language ?? undefined}><p>${passage.text}</p></blockquote>`)}</details>` : null}
    </article>`)}</section>`;
};

/** What came of it. @param {{result: any, me: any, onNext: () => void}} props */
const Result = ({ result, me, onNext }) => {
  const outcome = result.passed ? "passed" : result.attempts_left > 0 ? "failed" : "out";
  return html`<main class=${`gate${me.project.exam_feedback ? " wide" : ""}`} aria-live="polite">
    <h1>${t(`exam.${outcome}`)}</h1>
    <p>${t(`exam.${outcome}_text`, { count: result.attempts_left })}</p>
    <${Figures} figures=${result.figures ?? result} />
    <${Languages} result=${result} />
    ${outcome !== "out" && html`<p><button type="button" class="primary" onClick=${onNext}>
      ${t(outcome === "passed" ? "exam.to_work" : "rest.retry")}
    </button></p>`}
    ${me.project.exam_feedback && html`<${Feedback} form=${me.project.form} />`}
  </main>`;
};

/** For those who failed for the last time. */
const Out = (/** @type {any} */ { me }) => html`<main class=${`gate${me.project.exam_feedback ? " wide" : ""}`}>
  <h1>${t("exam.out")}</h1>
  <p>${t("exam.out_text")}</p>
  ${me.project.exam_feedback && html`<${Feedback} form=${me.project.form} />`}
</main>`;

/** The screens of the exam. @param {{me: any, params: {step?: string}, navigate: (path: string, options?: any) => void, again: () => Promise<void>}} props */
export const Screen = ({ me, params, navigate, again }) => {
  const [result, setResult] = useState(/** @type {any} */ (null));
  const { stage } = me.person;
  const elsewhere = stage !== "exam" && stage !== "out" && !result;
  useEffect(() => {
    document.title = `${t("exam.title")} · ${me.project.name}`;
    if (elsewhere) navigate("/", { replace: true });
  }, [elsewhere]);
  const onResult = async (/** @type {any} */ found) => {
    setResult(found);
    await again();
  };
  const onNext = () => {
    setResult(null);
    navigate(result.passed ? "/mark" : "/exam", { replace: true });
  };
  if (elsewhere) return null;
  if (result) return html`<${Result} result=${result} me=${me} onNext=${onNext} />`;
  if (stage === "out") return html`<${Out} me=${me} />`;
  if (params.step === "finish") return html`<${Finish} onResult=${onResult} navigate=${navigate} />`;
  return html`<${Intro} me=${me} onBegin=${() => navigate("/mark")} />`;
};
