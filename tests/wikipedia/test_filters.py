"""mFAVA's filters: what they keep and drop, and an account that adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wiki_server import WikiPage, WikiServer

from veriglot.errors import UnknownNameError, UsageError
from veriglot.http.session import Session
from veriglot.records.languages import languages
from veriglot.wikipedia.api import Wikipedia
from veriglot.wikipedia.articles import (
    KINDS,
    MFAVA_KINDS,
    Absent,
    Article,
    Depth,
    Edits,
    FilterChain,
    Length,
    Maintenance,
    Statistics,
    edition_of,
)
from veriglot.wikipedia.dump import _language_of


def article(characters: int = 2000, **more: object) -> Article:
    fields: dict[str, object] = {"id": "de-1", "language": "de", "title": "A", "page_id": 1, "url": "", "lead": ""}
    return Article(**{"text": "x" * characters, **fields, **more})  # type: ignore[arg-type]


def test_depth_is_the_formula_of_meta_wiki() -> None:
    # Meta-Wiki gives the English depth as edits per page times the squared ratio of other pages to articles.
    statistics = Statistics(pages=60_000_000, articles=6_900_000, edits=1_250_000_000)
    others = 53_100_000
    assert statistics.depth == pytest.approx(1_250_000_000 / 60_000_000 * (others / 6_900_000) ** 2)
    assert Statistics(pages=100, articles=50, edits=1000).depth == pytest.approx(20 * 1 * 0.5)
    assert Statistics(pages=7, articles=7, edits=1000).depth == 0
    for wrong in (Statistics(5, 0, 1), Statistics(5, 6, 1), Statistics(5, 3, -1)):
        with pytest.raises(UsageError):
            wrong.depth  # noqa: B018


def test_bounds_are_inclusive() -> None:
    assert Length(2000).judge(article(2000)).passes
    assert not Length(2000).judge(article(1999)).passes
    assert Edits(5).judge(article(edits=7, bot_edits=2)).passes
    assert not Edits(5).judge(article(edits=7, bot_edits=3)).passes
    assert Depth(10.0, Statistics(pages=100, articles=50, edits=1000)).judge(article()).passes
    assert Depth(10.1, Statistics(pages=100, articles=50, edits=1000)).judge(article()).passes is False


def test_characters_are_code_points_not_bytes() -> None:
    assert Length(2000).judge(article(0, text="語" * 2000)).passes
    assert not Length(2000).judge(article(0, text="語" * 1999)).passes


@pytest.mark.parametrize(
    ("language", "template", "kind"),
    [
        ("de", "Belege fehlen", "unreferenced"),
        ("de", "unreferenced", "unreferenced"),
        ("en", "BLP_unsourced", "unreferenced"),
        ("en", "failed verification", "failed-verification"),
        ("ja", "出典の明記", "unreferenced"),
        ("ja", "工事中", "under-construction"),
        ("ar", "لا مصدر", "unreferenced"),
        ("ru", "Нет источников", "unreferenced"),
        ("tr", "kaynaksız", "unreferenced"),
        ("it", "WIP", "under-construction"),
        ("fr", "En travaux", "under-construction"),
        ("es", "Referencias", "unreferenced"),
        ("zh-Hant", "Unreferenced", "unreferenced"),
        ("yue", "Disambig", "disambiguation"),
        ("sd", "Under construction", "under-construction"),
    ],
)
def test_maintenance_templates_are_recognised_per_language(language: str, template: str, kind: str) -> None:
    assert Maintenance(language).marks(["Infobox", template, "Reflist"]) == {kind: template}
    marked = Maintenance(language).judge(article(templates=(template,)))
    assert (marked.passes, marked.reason) == (False, kind)


def test_a_name_counts_in_its_own_language_only() -> None:
    assert Maintenance("de").marks(["Referencias", "WIP", "Quellen"]) == {"unreferenced": "Quellen"}
    assert Maintenance("it").marks(["F"]) == {"unreferenced": "F"}
    assert Maintenance("en").marks(["F", "Reflist", "Cite web", "Sources"]) == {}


def test_kinds_are_chosen_and_names_added() -> None:
    assert Maintenance("en").marks(["Refimprove"]) == {}
    assert Maintenance("en", ("more-references",)).marks(["Refimprove", "Unreferenced"]) == {
        "more-references": "Refimprove"
    }
    assert Maintenance("sd", more={"unreferenced": ["بي حوالا"]}).marks(["بي حوالا"])
    kinds = ("unreferenced", "failed-verification")
    assert Maintenance("sd", kinds).without_own == kinds
    assert Maintenance("sd", kinds, more={"unreferenced": ["بي حوالا"]}).without_own == ("failed-verification",)
    assert Maintenance("de", kinds).without_own == ("failed-verification",)
    assert Maintenance("fr", kinds).without_own == Maintenance("en").without_own == ()
    with pytest.raises(UnknownNameError, match="unreferenced"):
        Maintenance("de", ("unreferensed",))


def test_every_language_of_the_papers_has_names_of_its_own_or_says_that_it_has_none() -> None:
    papers = [tag for tag, entry in languages().items() if {"mfava", "kang", "halluverse"} & set(entry.sources)]
    assert len(papers) == 37
    without = [tag for tag in papers if len(Maintenance(tag).without_own) == len(MFAVA_KINDS)]
    assert without == ["sd"]  # there the English names serve


def test_names_are_learned_from_the_wikis() -> None:
    english = [
        WikiPage("Template:Unreferenced", ns=10, langlinks=(("sd", "سانچو:بي حوالا"), ("de", "Vorlage:Belege fehlen"))),
        WikiPage("Template:Noref", ns=10, redirect="Template:Unreferenced"),
        WikiPage("Template:Under construction", ns=10, langlinks=(("de", "Vorlage:In Bearbeitung"),)),
    ]
    local = [
        WikiPage("Template:بي حوالا", ns=10),
        WikiPage("Template:حوالو", ns=10, redirect="Template:بي حوالا"),
    ]
    with WikiServer(english) as here, WikiServer(local) as there:
        english_wiki, wiki = Wikipedia("en", Session(here.base_url)), Wikipedia("sd", Session(there.base_url))
        names = wiki.linked_template_names(english_wiki, kinds=("unreferenced", "under-construction"))
    assert names == {"unreferenced": ["بي حوالا", "حوالو"], "under-construction": []}
    assert Maintenance("sd", more=names).marks(["حوالو"]) == {"unreferenced": "حوالو"}


def test_the_account_adds_up_and_what_was_not_checked_is_not_called_passed() -> None:
    rows = [
        Absent("B", "missing"),
        Absent("C", "missing"),
        article(10),
        article(3000, templates=("Belege fehlen",)),
        article(3000, templates=("Inuse", "Belege fehlen")),
        article(3000),
        article(3000, edits=3),
        article(3000, edits=9),
    ]
    filters = [Length(), Maintenance("de"), Depth(5), Edits(5)]
    chain = FilterChain(filters)
    kept = list(chain.filter(rows))
    assert [one.unchecked for one in kept] == [("depth", "edits"), ("depth",)]
    report = chain.report
    assert (report.met, report.absent, report.passed) == (8, {"missing": 2}, 2)
    numbers = {one.name: (one.judged, one.passed, one.dropped, one.unchecked) for one in report.filters}
    assert numbers == {
        "length": (6, 5, 1, 0),
        "maintenance": (5, 3, 2, 0),
        "depth": (3, 0, 0, 3),
        "edits": (3, 1, 1, 1),
    }
    assert report.filters[1].reasons == {"unreferenced": 2}
    strict = FilterChain(filters, strict=True)
    assert list(strict.filter(rows)) == []
    assert strict.report.filters[3].judged == 0


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 9), st.booleans(), st.booleans()), max_size=30))
def test_every_page_is_accounted_for(rows: list[tuple[int, int, bool, bool]]) -> None:
    pages = [
        Absent("A", "redirect") if gone else article(size, edits=edits or None, templates=("Fake",) if marked else ())
        for size, edits, gone, marked in rows
    ]
    chain = FilterChain([Length(), Maintenance("de"), Edits()])
    kept = list(chain.filter(pages))
    report = chain.report
    assert report.met == len(pages)
    assert report.met == report.passed + sum(report.absent.values()) + sum(one.dropped for one in report.filters)
    assert report.passed == len(kept)
    arriving = report.met - sum(report.absent.values())
    for one in report.filters:
        assert one.judged == arriving == one.passed + one.dropped + one.unchecked
        assert sum(one.reasons.values()) == one.dropped + one.unchecked
        arriving -= one.dropped


def test_edits_are_looked_up_only_where_they_are_missing() -> None:
    with WikiServer([WikiPage("A", "Text", edits=6, bots=3), WikiPage("B", "Text")]) as server:
        wiki = Wikipedia("de", Session(server.base_url))
        edits = Edits(5, wiki.with_edits)
        judged = edits.judge(article(title="A"))
        assert (judged.passes, judged.article.edits, judged.article.bot_edits) == (False, 6, 3)
        asked = len(server.arrivals)
        assert edits.judge(article(title="B", edits=5)).passes
        assert len(server.arrivals) == asked


def test_editions_lead_to_languages_and_back() -> None:
    assert [edition_of(name) for name in ("yue", "zh-Hant", "sr-Latn", "German", "no")] == [
        "zh-yue", "zh", "sr", "de", "no",
    ]  # fmt: skip
    assert _language_of("zh-yue") == "yue"
    assert _language_of("zh") == "zh-Hans"
    with pytest.raises(UsageError, match="no Wikipedia"):
        edition_of("grc")
    assert set(KINDS) > {"unreferenced"}
