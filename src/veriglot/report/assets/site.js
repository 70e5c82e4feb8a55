// Rows of every board that hold a text, such as the name of a model; the others are hidden on the screen.

const filter = document.getElementById("filter");

function show() {
  const wanted = filter.value.trim().toLowerCase();
  let shown = 0;
  for (const row of document.querySelectorAll("table.sortable tbody tr")) {
    const name = row.cells[0].textContent.toLowerCase();
    row.hidden = wanted !== "" && !name.includes(wanted);
    shown += row.hidden ? 0 : 1;
  }
  document.getElementById("filtered").textContent = wanted ? `${shown} ${shown === 1 ? "row" : "rows"}` : "";
}

if (filter) {
  filter.closest("p").hidden = false;
  filter.addEventListener("input", show);
}
