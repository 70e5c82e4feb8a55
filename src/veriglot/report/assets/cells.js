// The heat map: which estimate it shows, and all that is known of the cell at hand.

const views = Array.from(document.querySelectorAll(".view"));
const inspector = document.getElementById("inspector");
const hint = inspector?.firstElementChild;
let atHand = null;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function inspect(cell) {
  const facts = data.cells?.[cell.dataset.cell];
  if (!facts) return;
  const head = element("strong");
  head.append(element("bdi", "", facts.model), ` in ${facts.language}`);
  const rates = element("ul");
  for (const [estimator, text, sound] of facts.rates) {
    const item = element("li", sound ? "" : "why");
    item.append(`${estimator} `, element("b", "", text));
    rates.append(item);
  }
  const why = facts.reasons.map((reason) => element("p", "why", reason));
  inspector.replaceChildren(head, rates, element("p", "", facts.lines.join(" · ")), ...why);
}

function rest() {
  atHand = null;
  inspector.replaceChildren(hint);
}

function enter(cell) {
  for (const other of cell.closest("table").querySelectorAll("td[tabindex='0']")) other.tabIndex = -1;
  cell.tabIndex = 0;
  inspect(cell);
}

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

function step(event) {
  const cell = event.target.closest("td.cell");
  const by = STEPS[event.key];
  if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape") {
    cell.blur();
    return;
  }
  const [column, row] = cell.dataset.cell.split("-").map(Number);
  const rows = cell.closest("tbody").rows.length;
  const columns = cell.closest("tr").querySelectorAll("td.cell").length;
  let to = null;
  if (by) to = [column + by[1], row + by[0]];
  else if (event.key === "Home") to = [0, row];
  else if (event.key === "End") to = [columns - 1, row];
  if (!to || to[0] < 0 || to[1] < 0 || to[0] >= columns || to[1] >= rows) return;
  event.preventDefault();
  const next = cell.closest("table").querySelector(`td[data-cell="${to[0]}-${to[1]}"]`);
  next.focus();
  next.scrollIntoView({ block: "nearest", inline: "nearest" });
}

for (const view of views) {
  const cells = view.querySelectorAll("td.cell");
  cells.forEach((cell, place) => { cell.tabIndex = place ? -1 : 0; });
  view.addEventListener("focusin", (event) => {
    atHand = event.target.closest("td.cell");
    if (atHand) enter(atHand);
  });
  view.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td.cell");
    if (cell) inspect(cell);
  });
  view.addEventListener("pointerleave", () => { if (atHand) inspect(atHand); else rest(); });
  view.addEventListener("focusout", (event) => { if (!view.contains(event.relatedTarget)) rest(); });
  view.addEventListener("keydown", step);
}
if (inspector) inspector.hidden = !views.length;

const choice = document.getElementById("views");
if (choice) {
  choice.hidden = false;
  choice.addEventListener("change", (event) => {
    for (const view of views) view.hidden = view.dataset.view !== event.target.value;
    said.textContent = `The table shows ${event.target.value}`;
  });
}
