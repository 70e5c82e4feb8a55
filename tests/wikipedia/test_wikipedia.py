"""Wikipedia's API: pages that come in pieces, servers that lag, refuse and break off, and nothing asked twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from misbehaving import Faults
from wiki_server import WikiPage, WikiServer

from veriglot.errors import UsageError
from veriglot.http.session import HttpError, Session
from veriglot.wikipedia import api
from veriglot.wikipedia.api import AnswerCache, Wikipedia, user_agent, wikipedia_session
from veriglot.wikipedia.articles import Absent, Article

if TYPE_CHECKING:
    from pathlib import Path


def page(number: int, **more: object) -> WikiPage:
    text = (
        f"Die Mühle {number} steht am Fluss.\n\n\n== Geschichte ==\nSie wurde {1800 + number} gebaut.\n\n\n== Belege =="
    )
    fields: dict[str, object] = {
        "categories": ("Mühle", f"Bauwerk {number}", "Fluss"),
        "hidden": ("Wikipedia:Kurz",),
        "templates": tuple(f"Vorlage {letter}" for letter in "abcd"),
        "item": f"Q{number}",
    }
    return WikiPage(f"Mühle {number}", text, **{**fields, **more})  # type: ignore[arg-type]


def wikipedia(server: WikiServer, kept: AnswerCache | None = None) -> Wikipedia:
    return Wikipedia("de", Session(server.base_url, backoff=0.01), cache=kept)


def test_an_article_that_comes_in_many_pieces_is_whole() -> None:
    with WikiServer([page(number) for number in range(1, 8)], listed=3) as server:
        found = list(wikipedia(server).titles([f"Mühle {number}" for number in (3, 1, 7)]))
    assert [article.title for article in found] == ["Mühle 3", "Mühle 1", "Mühle 7"]  # as asked, not as served
    assert len(server.arrivals) == 4  # 12 categories and 12 templates at 3 an answer, and an extract in each
    article = found[0]
    assert article == Article(
        id="de-3",
        language="de",
        title="Mühle 3",
        page_id=3,
        url="https://xx.wikipedia.org/wiki/Mühle_3",
        text="Die Mühle 3 steht am Fluss.\n\nGeschichte\nSie wurde 1803 gebaut.",
        lead="Die Mühle 3 steht am Fluss.",
        revision=30,
        categories=("Mühle", "Bauwerk 3", "Fluss", "Wikipedia:Kurz"),
        templates=("Vorlage a", "Vorlage b", "Vorlage c", "Vorlage d"),
        timestamp="2024-05-01T00:00:00Z",
        size=99,
        item="Q3",
    )


def test_what_gives_no_article_says_why() -> None:
    pages = [
        page(1),
        WikiPage("Alte Mühle", redirect="Mühle 1"),
        WikiPage("Mühle", "Mühle steht für:", disambiguation=True),
        WikiPage("Leer"),
        WikiPage("Vorlage:Mühle", "Text", ns=10),
    ]
    with WikiServer(pages) as server:
        asked = ["alte_Mühle", "Mühle", "Leer", "Nirgends", "A<b", "Vorlage:Mühle", "Mühle 1"]
        found = list(wikipedia(server).titles(asked))
    articles = [one for one in found if isinstance(one, Article)]
    absent = {one.title: one.reason for one in found if isinstance(one, Absent)}
    assert [article.title for article in articles] == ["Mühle 1"]  # once, though named twice
    assert absent == {
        "Mühle": "disambiguation",
        "Leer": "no text",
        "Nirgends": "missing",
        "A<b": "invalid title",
        "Vorlage:Mühle": "not an article",
    }


def test_random_pages_stay_the_same_batch_while_they_are_completed_and_end_with_the_wiki() -> None:
    with WikiServer([page(number) for number in range(1, 46)], listed=50) as server:
        found = list(wikipedia(server).random())
    assert server.draws == 1
    assert sorted(article.page_id for article in found if isinstance(article, Article)) == list(range(1, 46))
    assert all(isinstance(one, Article) and len(one.templates) == 4 and one.text for one in found)


def test_random_pages_skip_redirects_and_other_namespaces() -> None:
    pages = [page(1), WikiPage("Weg", redirect="Mühle 1"), WikiPage("Hilfe:X", "Text", ns=12), page(4)]
    with WikiServer(pages) as server:
        found = list(wikipedia(server).random())
        assert "grnfilterredir" in server.arrivals[0].query
    assert {article.title for article in found} == {"Mühle 1", "Mühle 4"}


def test_a_category_with_those_below_it() -> None:
    pages = [
        page(1, categories=("Bauwerk",)),
        page(2, categories=("Mühle",)),
        page(3, categories=("Windmühle", "Mühle")),
        page(4, categories=("Holländerwindmühle",)),
        WikiPage("Kategorie:Mühle", ns=14, categories=("Bauwerk",)),
        WikiPage("Kategorie:Windmühle", ns=14, categories=("Mühle",)),
        WikiPage("Kategorie:Holländerwindmühle", ns=14, categories=("Windmühle",)),
        WikiPage("Kategorie:Bauwerk", ns=14, categories=("Windmühle",)),  # categories may go in circles
        *(page(number, categories=("Bauwerk",)) for number in range(20, 28)),
    ]
    with WikiServer(pages) as server:
        wiki = wikipedia(server)
        titles = {depth: [one.title for one in wiki.category("Bauwerk", depth=depth)] for depth in (0, 1, 9)}
    assert titles[0] == ["Mühle 1", *(f"Mühle {number}" for number in range(20, 28))]  # three at a time
    assert titles[1] == [*titles[0], "Mühle 2", "Mühle 3"]
    assert titles[9] == [*titles[1], "Mühle 4"]


def test_a_server_that_lags_is_waited_for() -> None:
    with WikiServer([page(1), page(2)], lagged=2) as server:
        found = list(wikipedia(server).titles(["Mühle 1", "Mühle 2"]))
        assert [article.title for article in found] == ["Mühle 1", "Mühle 2"]
        assert server.lags == 2 * server.paid.total()
        assert all(arrival.query["maxlag"] == "5" for arrival in server.arrivals)


def test_a_server_that_lags_for_ever_is_given_up() -> None:
    with WikiServer([page(1)], lagged=99) as server:
        wiki = Wikipedia("de", Session(server.base_url, retries=3))
        with pytest.raises(HttpError, match=r"7\.2 seconds lagged") as raised:
            list(wiki.titles(["Mühle 1"]))
    assert "(maxlag)" in raised.value.message
    assert raised.value.retryable
    assert server.lags == 4


def test_faults_of_every_kind_change_nothing() -> None:
    titles = [f"Mühle {number}" for number in range(1, 31)]
    pages = [page(number) for number in range(1, 31)]
    with WikiServer(pages, listed=7) as calm:
        expected = list(wikipedia(calm).titles(titles))
    with WikiServer(pages, Faults.many(seed=4), listed=7, lagged=1) as server:
        found = list(wikipedia(server).titles(titles))
        faults = {name for name, count in server.faults_seen.items() if count and name}
    assert found == expected
    assert {"busy", "error", "cut", "broken"} <= faults
    assert server.paid_most() == 1


def test_what_is_kept_is_not_asked_for_again(tmp_path: Path) -> None:
    pages = [page(number) for number in range(1, 25)]
    with WikiServer(pages, listed=9) as server:
        with AnswerCache(tmp_path / "kept") as kept:
            rows = wikipedia(server, kept).random(seed=3)
            begun = [next(rows) for _ in range(20)]  # interrupted before the second batch
            asked = len(server.arrivals)
        with AnswerCache(tmp_path / "kept") as kept:
            whole = list(wikipedia(server, kept).random(seed=3))
        assert whole[:20] == begun
        assert len(whole) == 24
        assert server.paid_most() == 1
        assert server.draws == 1
        assert len(server.arrivals) > asked
        with AnswerCache(tmp_path / "kept") as kept:
            assert list(wikipedia(server, kept).random(seed=3)) == whole
            before = server.draws
            list(wikipedia(server, kept).random(seed=4))
        assert server.draws == before + 1  # another seed, another draw


def test_refusals_are_not_kept(tmp_path: Path) -> None:
    with WikiServer([page(1)], lagged=1) as server, AnswerCache(tmp_path) as kept:
        wiki = Wikipedia("de", Session(server.base_url, retries=0), cache=kept)
        with pytest.raises(HttpError):
            list(wiki.titles(["Mühle 1"]))
        assert kept.read("SELECT * FROM answers") == []
        assert [one.title for one in wiki.titles(["Mühle 1"])] == ["Mühle 1"]


def test_edits_of_an_article_with_a_slash_and_of_one_that_is_gone(tmp_path: Path) -> None:
    with (
        WikiServer([WikiPage("AC/DC & Co", "Text", edits=30, bots=11, editors=9)]) as server,
        AnswerCache(tmp_path) as kept,
    ):
        wiki = wikipedia(server, kept)
        (article,) = wiki.titles(["AC/DC & Co"])
        assert isinstance(article, Article)
        counted = wiki.with_edits(article)
        assert (counted.edits, counted.bot_edits, counted.editors) == (30, 11, 9)
        server.by_title.clear()
        gone = wiki.with_edits(Article("de-9", "de", "Fort", 9, "", "Text", "Text"))
        assert (gone.edits, gone.bot_edits, gone.editors) == (None, None, None)
        asked = len(server.arrivals)
        assert wiki.with_edits(gone) == gone
        assert len(server.arrivals) == asked  # that it is gone is kept too


def test_a_404_of_a_wrong_address_is_an_error() -> None:
    with WikiServer([page(1)]) as server:
        wiki = Wikipedia("de", Session(f"{server.base_url}/wrong"))
        with pytest.raises(HttpError) as raised:
            wiki.with_edits(Article("de-1", "de", "Mühle 1", 1, "", "Text", "Text"))
    assert raised.value.status == 404


def test_errors_of_the_api_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with WikiServer([page(1)]) as server:
        wiki = wikipedia(server)
        monkeypatch.setitem(api._COMMON_PARAMS, "formatversion", "1")
        with pytest.raises(HttpError, match="Only JSON of version 2") as raised:
            list(wiki.titles(["Mühle 1"]))
        assert "(badvalue)" in raised.value.message
        assert not raised.value.retryable
        with pytest.raises(UsageError, match="cannot be the title"):
            list(wiki.titles(["A|B"]))


def test_statistics_and_names_of_templates() -> None:
    pages = [
        WikiPage("Template:Unreferenced", ns=10, langlinks=(("de", "Vorlage:Belege fehlen"), ("fr", "Modèle:Sources"))),
        WikiPage("Template:Unref", ns=10, redirect="Template:Unreferenced"),
    ]
    with WikiServer(pages, statistics={"pages": 8, "articles": 2, "edits": 40}) as server:
        wiki = Wikipedia("en", Session(server.base_url))
        assert (wiki.statistics().pages, wiki.statistics().articles, wiki.statistics().edits) == (8, 2, 40)
        names = wiki._template_names(["Unref", "Nothing"])
    assert names == {"en": {"Unreferenced", "Unref"}, "de": {"Belege fehlen"}, "fr": {"Sources"}}


def test_who_asks_says_so() -> None:
    with WikiServer([page(1)]) as server:
        with wikipedia_session("de", contact="somebody@example.org", server=server.base_url) as session:
            list(Wikipedia("de", session).titles(["Mühle 1"]))
        assert {arrival.headers["user-agent"] for arrival in server.arrivals} == {user_agent("somebody@example.org")}
    with pytest.raises(UsageError, match="without a contact address"):
        wikipedia_session("de", contact=None)
    with pytest.raises(UsageError, match="no contact address"):
        user_agent("nobody")
