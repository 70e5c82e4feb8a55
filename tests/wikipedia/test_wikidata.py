"""Wikidata: people whom several Wikipedias have an article on, asked of a real SPARQL engine over RDF of its shape."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest
from misbehaving import Faults
from wiki_server import PageViewServer
from wikidata_server import Entity, SparqlServer, graph_of, sitelink_counts

from veriglot.errors import UsageError
from veriglot.http.session import HttpError, Session
from veriglot.wikipedia.api import AnswerCache, JsonClient, page_views
from veriglot.wikipedia.articles import draw_diverse
from veriglot.wikipedia.wikidata import Item, Person, QueryTimeoutError, Wikidata

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("en", "ar", "tr")

ENTITIES = [
    Entity(
        42,
        {"en": "Ada Example", "ar": "آدا مثال", "tr": "Ada Örnek (yazar)", "de": "Ada Beispiel"},
        labels={"en": "Ada Example", "ar": "آدا مثال"},
        facts={"P106": ["Q36180", "Q901"], "P27": ["Q145"], "P569": ["1815-12-10T00:00:00Z"]},
        identifiers={"P214": "113230702"},
        others=3,
    ),
    Entity(7, {"en": "Bo Old", "ar": "بو", "tr": "Bo"}, facts={"P569": ["-0043-03-15T00:00:00Z", None], "P27": [None]}),
    Entity(107, {"en": "Cy", "ar": "سي", "tr": "Cy"}, facts={"P569": ["+1900-00-00T00:00:00Z", "1899-01-01"]}),
    Entity(900, {"en": "Only English", "fr": "A", "de": "B"}, identifiers={"P214": "1", "P2025": "2"}),
    Entity(901, {"en": "Two Of Three", "ar": "اثنان"}, others=9),
    Entity(55, {"en": "A town", "ar": "مدينة", "tr": "Bir şehir"}, kind="Q515"),
]
THINGS = {"Q36180": "writer", "Q901": "scientist", "Q145": "United Kingdom"}


def wikidata(server: SparqlServer, kept: AnswerCache | None = None) -> Wikidata:
    return Wikidata(Session(server.base_url, backoff=0.01), cache=kept)


def test_people_with_articles_in_all_languages() -> None:
    with SparqlServer(graph_of(ENTITIES, THINGS)) as server:
        people = list(wikidata(server).people(LANGUAGES, most_sitelinks=20))
    assert [(person.id, person.sitelinks) for person in people] == [("Q42", 7), ("Q7", 3), ("Q107", 3)]


def test_people_with_articles_in_some_of_them() -> None:
    with SparqlServer(graph_of(ENTITIES, THINGS)) as server:
        two = [person.id for person in wikidata(server).people(LANGUAGES, at_least=2, most_sitelinks=20)]
        one = [person.id for person in wikidata(server).people(LANGUAGES, at_least=1, most_sitelinks=20)]
    assert two == ["Q901", "Q42", "Q7", "Q107"]
    assert one == ["Q901", "Q42", "Q7", "Q107", "Q900"]


def test_a_long_wait_that_the_server_asks_for_is_not_cut_short() -> None:
    with SparqlServer(graph_of(ENTITIES, THINGS), Faults(busy=1.0, in_a_row=99, retry_after="3600")) as server:
        with pytest.raises(HttpError, match="429") as caught:
            list(wikidata(server).people(LANGUAGES, most_sitelinks=20))
        assert len(server.arrivals) == 1
    assert "3600 s" in caught.value.remedy


def test_identifier_properties_are_no_articles() -> None:
    """What HalluVerse25's appendix A asks for finds identifiers in other databases, also of people without articles."""
    graph = graph_of(ENTITIES, THINGS)
    query = """
    PREFIX wd: <http://www.wikidata.org/entity/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
    SELECT ?item ?en ?ar WHERE { ?item wdt:P31 wd:Q5 .
      OPTIONAL { ?item wdt:P214 ?en } OPTIONAL { ?item wdt:P2025 ?ar } FILTER(BOUND(?en) || BOUND(?ar)) }"""
    links = {str(value) for row in graph.query(query) for value in row if value is not None}  # type: ignore[union-attr]
    assert not any("wikipedia.org" in link for link in links)
    assert {"113230702", "1", "2"} < links
    with SparqlServer(graph) as server:
        client = wikidata(server)
        (described,) = client.describe([Person("Q42", 7)], LANGUAGES)
    assert described.titles == {"en": "Ada Example", "ar": "آدا مثال", "tr": "Ada Örnek (yazar)"}


def test_what_the_papers_describe_people_by() -> None:
    people = [Person("Q107", 3), Person("Q42", 7), Person("Q7", 3)]
    with SparqlServer(graph_of(ENTITIES, THINGS)) as server:
        found = list(wikidata(server).describe(people, LANGUAGES))
    assert [person.id for person in found] == ["Q107", "Q42", "Q7"]
    cy, ada, bo = found
    assert ada == Person(
        id="Q42",
        sitelinks=7,
        names={"en": "Ada Example", "ar": "آدا مثال", "tr": "Ada Örnek"},  # no Turkish label: the title, undecorated
        titles={"en": "Ada Example", "ar": "آدا مثال", "tr": "Ada Örnek (yazar)"},
        born=1815,
        occupations=(Item("Q901", "scientist"), Item("Q36180", "writer")),
        citizenships=(Item("Q145", "United Kingdom"),),
    )
    assert bo.born == -43
    assert bo.citizenships == ()
    assert cy.born == 1899


@pytest.mark.parametrize("cut_short", [False, True])
def test_a_query_that_takes_too_long_is_parted(cut_short: bool) -> None:
    numbers = [number for number in range(1, 60) if number != 42]
    entities = [Entity(number, {"en": f"N{number}", "ar": f"ن{number}", "tr": f"T{number}"}) for number in numbers]
    graph = graph_of([*entities, *ENTITIES[:1]], THINGS)

    def too_much(query: str) -> bool:
        return len(sitelink_counts(query)) > 1 or (sitelink_counts(query) == [3] and "STRENDS" not in query)

    with SparqlServer(graph, too_much=too_much, cut_short=cut_short) as server:
        client = Wikidata(Session(server.base_url, retries=0))
        people = list(client.people(LANGUAGES, most_sitelinks=8))
        assert server.refused
    assert [person.id for person in people] == ["Q42", *(f"Q{number}" for number in numbers)]


def test_slices_by_digits_lose_nobody() -> None:
    numbers = [1, 7, 17, 71, 107, 117, 1007, 1117, 70, 700]
    graph = graph_of([Entity(number, {"en": f"N{number}"}) for number in numbers], {})

    def too_much(query: str) -> bool:
        return query.count("STRENDS") == 0 or 'STRENDS(STR(?item), "7")' in query

    with SparqlServer(graph, too_much=too_much) as server:
        client = Wikidata(Session(server.base_url, retries=0))
        people = list(client.people(["en"], most_sitelinks=1))
    assert [person.id for person in people] == [f"Q{number}" for number in sorted(numbers)]


def test_a_server_that_cannot_answer_at_all_says_so() -> None:
    with SparqlServer(graph_of(ENTITIES, THINGS), too_much=lambda query: True) as server:
        client = Wikidata(Session(server.base_url, retries=0))
        with pytest.raises(QueryTimeoutError, match="too long"):
            list(client.people(LANGUAGES, most_sitelinks=4))
        assert server.refused < 20


def test_other_trouble_is_not_taken_for_too_long_a_query() -> None:
    with SparqlServer(graph_of(ENTITIES, THINGS), Faults(error=1.0, in_a_row=99)) as server:
        client = Wikidata(Session(server.base_url, retries=1, backoff=0.01))
        with pytest.raises(HttpError, match="500"):
            list(client.people(LANGUAGES, most_sitelinks=4))
        assert len(server.arrivals) == 2
    with PageViewServer({}) as server_of_something_else:
        client = Wikidata(Session(server_of_something_else.base_url.removesuffix("/api/rest_v1"), retries=0))
        with pytest.raises(HttpError, match="404"):
            list(client.people(LANGUAGES, most_sitelinks=4))


def test_an_answer_that_is_no_result_is_refused() -> None:
    class Odd(SparqlServer):
        def handle(self, arrival: object) -> tuple[int, object]:
            return 200, {"results": []}

    with Odd(graph_of([], {})) as server, pytest.raises(HttpError, match="SPARQL results"):
        list(wikidata(server).people(["en"], most_sitelinks=2))


def test_faults_change_nothing_and_kept_answers_are_not_asked_for_again(tmp_path: Path) -> None:
    graph = graph_of(ENTITIES, THINGS)
    with SparqlServer(graph) as calm:
        client = wikidata(calm)
        expected = list(client.describe(list(client.people(LANGUAGES, most_sitelinks=30)), LANGUAGES))
    with SparqlServer(graph, Faults.many(seed=2)) as server:
        for _ in range(2):
            with AnswerCache(tmp_path) as kept:
                client = wikidata(server, kept)
                assert list(client.describe(list(client.people(LANGUAGES, most_sitelinks=30)), LANGUAGES)) == expected
        assert server.paid_most() == 1


def test_languages_that_share_a_wikipedia_or_none_are_refused() -> None:
    with SparqlServer(graph_of([], {})) as server:
        client = wikidata(server)
        for languages, at_least in ((["zh-Hans", "zh-Hant"], None), ([], None), (["en", "de"], 3), (["en"], 0)):
            with pytest.raises(UsageError):
                list(client.people(languages, at_least=at_least))


def test_page_views_are_of_whole_months_and_absence_is_not_zero(tmp_path: Path) -> None:
    views = {("en.wikipedia", "AC/DC"): [100 + month for month in range(13)], ("zh-yue.wikipedia", "香港"): [1] * 13}
    with PageViewServer(views, Faults.many(seed=1)) as server, AnswerCache(tmp_path) as kept:
        client = JsonClient(Session(server.base_url, backoff=0.01), kept)
        year = (date(2022, 1, 1), date(2023, 1, 1))
        assert page_views(client, "en", "AC/DC", *year) == sum(100 + month for month in range(12))
        assert page_views(client, "yue", "香港", *year) == 12
        assert page_views(client, "en", "AC/DC", date(2022, 2, 1), date(2022, 3, 1)) == 101
        assert page_views(client, "en", "Nobody knows", *year) is None
        asked = len(server.arrivals)
        assert page_views(client, "en", "Nobody knows", *year) is None
        assert len(server.arrivals) == asked
        for start, end in ((date(2022, 1, 2), date(2022, 2, 1)), (date(2022, 1, 1), date(2022, 1, 1))):
            with pytest.raises(UsageError, match="month"):
                page_views(client, "en", "A", start, end)
        with pytest.raises(UsageError, match="July 2015"):
            page_views(client, "en", "A", date(2015, 6, 1), date(2015, 8, 1))


def test_a_diverse_sample_takes_as_many_of_each_group() -> None:
    people = [Person(f"Q{number}", 3, views={"en": 2**number, "de": None}) for number in range(100)]

    def draw(count: int, seed: int = 0) -> list[Person]:
        return draw_diverse(
            people, count, size=lambda person: person.all_views, name=lambda person: person.id, seed=seed
        )

    sample = draw(20)
    assert len({person.id for person in sample}) == 20
    ranks = [99 - int(person.id[1:]) for person in sample]
    assert [sum(rank // 10 == group for rank in ranks) for group in range(10)] == [2] * 10
    assert sample == draw(20)
    assert sample == draw_diverse(people[::-1], 20, size=lambda person: person.all_views, name=lambda person: person.id)
    assert sample != draw(20, seed=1)
    assert len(draw(23)) == 23
    assert len(draw(500)) == 100
    with pytest.raises(UsageError):
        draw(0)
