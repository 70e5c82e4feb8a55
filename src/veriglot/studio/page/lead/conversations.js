// What people write about annotations: what waits for an answer first, and the answer.

import { call } from "../api.js";
import { Refusal } from "../join.js";
import { calledBy } from "../names.js";
import { Comments, Reply } from "../submissions.js";
import { t } from "../texts.js";
import { html, useState } from "../view.js";
import { languageName } from "./figures.js";
import { Waiting, useAnswer } from "./requests.js";
import { Link, address } from "./routes.js";

/** Write about an annotation. @param {{assignment: number, onDone: () => unknown}} props */
export const Answer = ({ assignment, onDone }) => {
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const onSend = async (/** @type {string} */ text) => {
    setFailure(null);
    const sent = await call("POST", "/api/lead/comments", { assignment, text }).catch((error) => setFailure(error));
    if (sent) await onDone();
    return sent;
  };
  return html`<${Reply} onSend=${onSend} /><${Refusal} failure=${failure} />`;
};

/** @param {{people: Map<string, any>}} props */
export const Conversations = ({ people }) => {
  const { answer, failure, again } = useAnswer("/api/lead/conversations", 60);
  return html`
    <h2>${t("lead.conversations")}</h2>
    ${!answer ? html`<${Waiting} failure=${failure} />` : answer.length ? null : html`<p class="notice">${t("lead.no_conversations")}</p>`}
    <ul class="cards wide">${(answer ?? []).map((/** @type {any} */ one) => html`<li key=${one.assignment} class="card">
      <header class="case-head"><p><${Link} to=${address("items", one.item)}><bdi>${one.key}</bdi><//> <span class="tag">${languageName(one.language)}</span>
        ${one.waits ? html`<span class="tag warn">${t("lead.waits")}</span>` : null}</p><p><bdi>${calledBy(people, one.by)}</bdi></p></header>
      <${Comments} comments=${one.comments} /><${Answer} assignment=${one.assignment} onDone=${again} />
    </li>`)}</ul>`;
};
