// Which examples are shown.

const filters = document.getElementById("example-filters");
if (filters) {
  const cards = Array.from(document.querySelectorAll("article.example"));
  const byLanguage = document.getElementById("example-language");
  const byModel = document.getElementById("example-model");
  filters.hidden = false;
  filters.addEventListener("change", () => {
    let shown = 0;
    for (const card of cards) {
      const fits = (!byLanguage.value || card.dataset.language === byLanguage.value)
        && (!byModel.value || card.dataset.model === byModel.value);
      card.hidden = !fits;
      if (fits) shown += 1;
    }
    document.getElementById("example-count").textContent = `${shown} of ${cards.length} examples`;
  });
}
