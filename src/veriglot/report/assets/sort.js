// Sorting a table by a column: a click on its head, or Enter or space where the focus is. Numbers go down first.

function valueOf(row, place) {
  const cell = row.cells[place];
  const given = cell.dataset.value;
  if (given !== undefined) return given === "" ? null : Number(given);
  const text = cell.textContent.trim();
  return text === "" || text === "–" ? null : text;
}

function compare(one, two, down) {
  if (one === null || two === null) return (one === null) - (two === null); // what was not measured stays last
  const order = typeof one === "number" && typeof two === "number"
    ? one - two
    : String(one).localeCompare(String(two), undefined, { numeric: true });
  return down ? -order : order;
}

function sortBy(table, head, place) {
  const numeric = table.tBodies[0].rows[0]?.cells[place].dataset.value !== undefined;
  const before = head.getAttribute("aria-sort");
  const down = before === null ? numeric : before === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = Array.from(table.tBodies[0].rows);
  rows.sort((one, two) => compare(valueOf(one, place), valueOf(two, place), down));
  table.tBodies[0].append(...rows);
  said.textContent = `Sorted by ${head.textContent.trim()}, ${down ? "descending" : "ascending"}`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tHead.rows[0].cells).forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sorter";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(table, head, place));
  });
}
