"""Three small Wikipedias, the Wikidata behind them, their page views, and a model that writes about their people."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from misbehaving import Faults, ModelServer, prompt_of
from wiki_server import PageViewServer, WikiPage, WikiServer
from wikidata_server import Entity, SparqlServer, graph_of

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("en", "de", "fi")
NAMES = {
    1: "Anna Kroll", 2: "Bea Ulm", 3: "Carl Ost", 4: "Dora Lind", 5: "Egon Matt", 6: "Fritz Aho", 7: "Greta Salo",
    8: "Hugo Berg",
}  # fmt: skip
VIEWS = {1: 10, 2: 70, 3: 900, 4: 500, 5: 9000, 6: 800, 7: 40, 8: 700}
COMPLETE = (2, 7, 1)  # people with a usable article in all three, by descending views
TEXTS = {
    "en": "{name} was a miller who was born in 1731 in the village of Upper Field.\n== Life ==\nIt burnt in 1902.",
    "de": "{name} war ein Müller, der 1731 im Dorf Oberfeld geboren wurde.\n== Leben ==\nDie Mühle brannte 1902 ab.",
    "fi": "{name} oli mylläri, joka syntyi vuonna 1731 Yläpellon kylässä.\n== Elämä ==\nMylly paloi vuonna 1902.",
}
ANSWERS = {
    "en": "{name} was a {trade} who was born in the year {year} in the village of Upper Field.",
    "de": "{name} wurde im Jahr {year} im Dorf Oberfeld geboren und war dort {trade}.",
    "fi": "{name} syntyi vuonna {year} Yläpellon kylässä ja oli ammatiltaan {trade}.",
}
TRADES = {"en": ("miller", "baker"), "de": ("Müller", "Bäcker"), "fi": ("mylläri", "leipuri")}
OPENINGS = {"Write a": "en", "Schreibe": "de", "Kirjoita": "fi"}


def entities() -> list[Entity]:
    """Everybody; Egon has no article in Finnish, and the article on Bea in German has moved."""
    found = []
    for number, name in NAMES.items():
        links = dict.fromkeys(LANGUAGES, name)
        if number == 2:
            links["de"] = "Bea Alt"
        if number == 5:
            del links["fi"]
        labels = dict.fromkeys(links, name)
        found.append(Entity(number, links, labels, {"P106": ["Q90"], "P569": ["+1731-01-01T00:00:00Z"]}))
    return found


def pages(tag: str) -> list[WikiPage]:
    """A Wikipedia, with the traps of the German and the Finnish one."""
    found = []
    for number, name in NAMES.items():
        page = WikiPage(name, TEXTS[tag].format(name=name), item=f"Q{number}")
        if tag == "fi" and number == 5:
            continue
        if tag == "fi" and number == 4:
            page = WikiPage(name, "", item="Q4")  # an article without a word
        if tag == "de" and number == 3:
            page = WikiPage(name, f"{name} steht für:", disambiguation=True, item="Q300")
        if tag == "de" and number == 6:
            page = WikiPage(name, redirect="Familie Aho")
        if tag == "de" and number == 8:
            continue  # deleted after its entry in Wikidata
        found.append(page)
    if tag == "de":
        found += [WikiPage("Bea Alt", redirect="Bea Ulm"), WikiPage("Familie Aho", "Die Aho sind.", item="Q600")]
    return found


def answer(body: dict[str, Any]) -> str:
    """The model's reply: by seed the truth, another trade, the wrong language (3, not in English), or nothing (4)."""
    prompt, seed = prompt_of(body), body["seed"]
    tag = next(tag for opening, tag in OPENINGS.items() if prompt.startswith(opening))
    name = prompt.rpartition(": ")[2]
    if seed == 4 and tag == "fi":
        return "1731 - 1802"
    if seed == 3 and tag != "en":
        tag = "en"
    trade, year = TRADES[tag][seed % 2], 1730 + seed
    return ANSWERS[tag].format(name=name, trade=trade, year=year)


class World:
    """All servers; `words` are the options of a command that uses them."""

    def __init__(self, faults: Faults | None = None, *, lagged: int = 0) -> None:
        calm = faults or Faults()
        self.wikidata = SparqlServer(graph_of(entities(), {"Q90": "miller"}), calm)
        months = {("en.wikipedia", name.replace(" ", "_")): [VIEWS[number]] for number, name in NAMES.items()}
        self.views = PageViewServer(months, calm)
        self.wikis = {tag: WikiServer(pages(tag), calm, lagged=lagged) for tag in LANGUAGES}
        self.model = ModelServer(calm, answer=answer, idempotent=True)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for server in (self.wikidata, self.views, self.model, *self.wikis.values()):
            self._stack.enter_context(server)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def asked(self) -> int:
        """Number of requests to all servers."""
        return sum(len(one.arrivals) for one in (self.wikidata, self.views, self.model, *self.wikis.values()))

    def words(self, output: Path, count: int = 3) -> list[str]:
        """A command, without further options."""
        words = ["dataset", "biographies", "-o", output, "-l", ",".join(LANGUAGES), "-n", count, "--spread", "top"]
        words += ["--rate", 2000, "--wikidata-server", self.wikidata.base_url, "--views-server", self.views.base_url]
        for tag, wiki in self.wikis.items():
            words += ["--wiki-servers", f"{tag}={wiki.base_url}"]
        words += ["-m", "org/mill", "--base-url", self.model.base_url, "--client-options", "backoff=0.02"]
        return [str(word) for word in words]
