// Saving a table of the page as CSV, or another file: the text lies in the page's data, no request is made.

const data = JSON.parse(document.getElementById("data").textContent);
const said = document.getElementById("said");

function save(name) {
  // The byte order mark tells spreadsheets that the file is UTF-8.
  const table = data.tables[name] ?? { file: name, text: data.texts[name] };
  const parts = table.csv === undefined ? [table.text] : ["\ufeff", table.csv];
  const address = URL.createObjectURL(new Blob(parts, { type: "text/plain;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = table.file;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  said.textContent = `Saved ${table.file}`;
}

for (const button of document.querySelectorAll("[data-csv]")) {
  button.hidden = false;
  button.addEventListener("click", () => save(button.dataset.csv));
}
