// The form above the view of one sample: asks the server, shows the answer in the view, saves and opens it as a file.

const served = JSON.parse(document.getElementById("served").textContent);
const askField = (name) => byId(`ask-${name}`);
const EXAMPLE = {
  evidence: ["The bridge over the Dee was opened in 1897 by the engineer Ada Murray. It is 240 metres long."],
  question: "When was the bridge opened, and how long is it?",
  response: "The bridge was opened in 1879. It is 240 metres long.",
};
let shared = null; // the row and its prediction that are shown

function option(value, label) {
  return make("option", { value, text: label });
}

function fillChoices() {
  askField("detector").append(...served.detectors.map((info) => option(info.name, info.name)));
  askField("language").append(...served.languages.map(([tag, name]) => option(tag, `${name} (${tag})`)));
  fillStrictness();
}

function fillStrictness() {
  const before = askField("strictness").value || "normal";
  const info = served.detectors.find((each) => each.name === askField("detector").value);
  askField("strictness").replaceChildren(...info.strictness.map((level) => option(level, level)));
  askField("strictness").value = info.strictness.includes(before) ? before : "normal";
}

function rowOfForm() {
  const passages = askField("evidence").value.split(/^[ \t]*---+[ \t]*$/m).map((text) => text.trim()).filter(Boolean);
  const row = { id: "response", response: askField("response").value, evidence: passages.map((text, number) => ({ id: `p${number}`, text })) };
  if (askField("question").value.trim()) row.question = askField("question").value;
  if (askField("language").value) row.language = askField("language").value;
  return row;
}

function fillForm(row) {
  const passages = typeof row.evidence === "string" ? [row.evidence] : row.evidence || [];
  askField("evidence").value = passages.map((passage) => (typeof passage === "string" ? passage : passage.text)).join("\n---\n");
  askField("question").value = row.question || "";
  askField("response").value = row.response;
  askField("language").value = served.languages.some(([tag]) => tag === row.language) ? row.language : "";
}

// Answers as JSON; throws an Error in words for the reader.
async function call(path, body) {
  const headers = { "content-type": "application/json" };
  if (askField("key").value) headers.authorization = `Bearer ${askField("key").value}`;
  let response;
  try {
    response = await fetch(`${served.path}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = await response.json();
  if (response.status === 401) {
    askField("key-field").hidden = false;
    askField("key").focus();
    throw new Error("Type a valid API key, and press Check.");
  }
  if (!response.ok) throw new Error([answer.error.message, answer.error.remedy].filter(Boolean).join(" "));
  return answer;
}

function tell(text, bad = false) {
  askField("state").textContent = text;
  askField("state").classList.toggle("ask-bad", bad);
}

// The view below is of what was checked before.
function warnOfChange() {
  if (shared) tell("This changed after it was checked; press Check to check it again.");
}

// Do something that may take a while or fail, one at a time.
async function attempt(action) {
  askField("check").disabled = true;
  tell("Checking …");
  try {
    tell(await action());
  } catch (error) {
    tell(error.message, true);
  } finally {
    askField("check").disabled = false;
  }
}

async function show(row, prediction, asked) {
  const blocks = await call("/page/view", { sample: row, prediction });
  shared = { veriglot: "playground/1", sample: row, prediction, asked };
  samples[0] = { ...blocks.listed, index: 0, sought: "" };
  shownBlocks[0].textContent = JSON.stringify(blocks.shown);
  document.body.classList.remove("unasked");
  choose(0, true);
  history.replaceState(null, "", location.pathname); // the id of the one sample says nothing
  askField("save").disabled = false;
}

const VERDICTS = { supported: "Supported.", unsupported: "Unsupported.", not_checked: "Not checked." };

async function check() {
  const row = rowOfForm();
  const asked = { detector: askField("detector").value, strictness: askField("strictness").value, words: true };
  const prediction = await call("/v1/detect", { ...row, ...asked });
  await show(row, prediction, asked);
  if (matchMedia("(max-width: 900px)").matches) byId("reader").scrollIntoView();
  return VERDICTS[prediction.verdict];
}

function save() {
  const url = URL.createObjectURL(new Blob([`${JSON.stringify(shared, null, 1)}\n`], { type: "application/json" }));
  make("a", { href: url, download: "veriglot.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

async function open(file) {
  let content;
  try {
    content = JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name} is not JSON. Open a file that “Save file” wrote.`);
  }
  if (content?.veriglot !== "playground/1" || !content.sample || !content.prediction) {
    throw new Error(`${file.name} was not saved by this page. Open a file that “Save file” wrote.`);
  }
  const asked = { detector: "", strictness: "normal", ...content.asked };
  await show(content.sample, content.prediction, asked);
  fillForm(content.sample);
  if (served.detectors.some((info) => info.name === asked.detector)) askField("detector").value = asked.detector;
  fillStrictness();
  askField("strictness").value = asked.strictness;
  fillStrictness(); // a level that is not offered here
  return `${file.name} is shown as it was saved; press Check to check it again.`;
}

fillChoices();
for (const [key] of [["j"], ["k"], ["/"]]) {
  const at = KEYS.findIndex(([each]) => each === key); // there is one sample, and no list to search
  if (at >= 0) KEYS.splice(at, 1);
}
byId("keys").replaceChildren();
for (const [key, what] of [["Ctrl+Enter", "check"], ...KEYS]) byId("keys").append(make("dt", {}, make("kbd", { text: key === "Escape" ? "Esc" : key })), make("dd", { text: what }));
askField("detector").addEventListener("change", fillStrictness);
askField("example").addEventListener("click", () => { fillForm(EXAMPLE); warnOfChange(); askField("response").focus(); });
askField("save").addEventListener("click", save);
askField("open").addEventListener("click", () => askField("file").click());
askField("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) attempt(() => open(file));
});
byId("ask").addEventListener("input", warnOfChange);
byId("ask").addEventListener("submit", (event) => { event.preventDefault(); attempt(check); });
byId("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    byId("ask").requestSubmit();
  }
});
