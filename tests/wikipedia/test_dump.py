"""Dumps: wikitext made plain, streamed, sampled, and files that are damaged said to be so."""

from __future__ import annotations

import bz2
import gzip
import tracemalloc
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError
from veriglot.wikipedia.articles import (
    Absent,
    Article,
    Edits,
    FilterChain,
    Length,
    Maintenance,
    split_sections,
)
from veriglot.wikipedia.dump import Wiki, draw_articles, open_dump, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename><dbname>dewiki</dbname>
    <base>https://de.wikipedia.org/wiki/Wikipedia:Hauptseite</base>
    <generator>MediaWiki 1.43</generator><case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" /><namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="10" case="first-letter">Vorlage</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""

MILL = """{{Belege fehlen}}
{{Infobox Mühle|Name=Obermühle|Bild=[[Datei:A.jpg|20px]]}}
[[Datei:Mühle.jpg|mini|Die ''Mühle'' im [[Winter]]]]
Die '''Obermühle''' ({{lang|fr|Moulin}}; {{IPA|x}}) ist eine [[Wassermühle|Mühle]] in [[Hausen]].<ref>Quelle: {{Literatur|Titel=X}}</ref>

== Geschichte ==
Sie wurde&nbsp;1874 <!-- oder 1875? -->gebaut und hat {{convert|12|m}} Höhe.<ref name="a" />
{| class="wikitable"
! Jahr !! Müller
|-
| 1900 || Maier
|}
* ein Rad
* ein Haus<br />mit Dach

== Leer ==

== Einzelnachweise ==
<references />
[[Kategorie:Mühle in Hausen|Ober]] [[Kategorie:Bauwerk]]
[[en:Upper mill]] __NOTOC__
"""  # noqa: E501


def read_dump(path: Path, **options: Any) -> Iterator[Article | Absent]:
    return (page.article() for page in open_dump(path, **options))


def revision(
    text: str, number: int = 7, when: str = "2024-01-02T00:00:00Z", who: str = "<username>A</username>"
) -> str:
    return (
        f"<revision><id>{number}</id><timestamp>{when}</timestamp><contributor>{who}</contributor><model>wikitext</model>"
        f'<format>text/x-wiki</format><text bytes="9" xml:space="preserve">{escape(text)}</text></revision>'
    )


def page(title: str, number: int, *revisions: str, ns: int = 0, redirect: str = "") -> str:
    lead = f'<redirect title="{redirect}" />' if redirect else ""
    return f"<page><title>{title}</title><ns>{ns}</ns><id>{number}</id>{lead}{''.join(revisions)}</page>\n"


def write(path: Path, *pages: str) -> Path:
    data = (HEAD + "".join(pages) + "</mediawiki>\n").encode()
    if path.suffix == ".bz2":  # as multistream dumps: several streams one after the other
        path.write_bytes(bz2.compress(data[:900]) + bz2.compress(data[900:]))
    else:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["dump.xml", "dump.xml.bz2", "dump.xml.gz"])
def test_articles_of_a_dump(tmp_path: Path, name: str) -> None:
    path = write(
        tmp_path / name,
        page("Obermühle", 12, revision(MILL)),
        page("Alte Mühle", 13, revision("#WEITERLEITUNG [[Obermühle]]"), redirect="Obermühle"),
        page("Vorlage:X", 14, revision("x"), ns=10),
        page("Leer", 15, revision("{{Stub}}")),
        page("R&amp;B", 16, revision("R&B < Jazz, wie man sagt.")),
    )
    mill, *rest, music = read_dump(path)
    assert mill == Article(
        id="de-12",
        language="de",
        title="Obermühle",
        page_id=12,
        url="https://de.wikipedia.org/wiki/Oberm%C3%BChle",
        text="Die Obermühle (Moulin) ist eine Mühle in Hausen.\n\n"
        "Geschichte\nSie wurde\u00a01874 gebaut und hat 12 m Höhe.\n\nein Rad\nein Haus\nmit Dach",
        lead="Die Obermühle (Moulin) ist eine Mühle in Hausen.",
        revision=7,
        categories=("Mühle in Hausen", "Bauwerk"),
        templates=("Belege fehlen", "Infobox Mühle", "lang", "IPA", "Literatur", "convert"),
        timestamp="2024-01-02T00:00:00Z",
        size=len(MILL.encode()),
    )
    assert rest == [Absent("Alte Mühle", "redirect"), Absent("Vorlage:X", "not an article"), Absent("Leer", "no text")]
    assert isinstance(music, Article)
    assert (music.title, music.text) == ("R&B", "R&B < Jazz, wie man sagt.")
    assert Maintenance("de").judge(mill).reason == "unreferenced"


def test_a_history_counts_edits_and_editors(tmp_path: Path) -> None:
    revisions = [
        revision("Neu.", 30, "2024-03-01T00:00:00Z", "<ip>192.0.2.1</ip>"),
        revision("Alt.", 10, "2020-01-01T00:00:00Z", "<username>A</username><id>5</id>"),
        revision("Mittel.", 20, "2022-01-01T00:00:00Z", "<username>A</username><id>5</id>"),
    ]
    pages = (page("A", 1, *revisions), page("B", 2, revision("Eins.", 40)))
    first, second = read_dump(write(tmp_path / "dewiki-pages-meta-history1.xml.bz2", *pages))
    assert isinstance(first, Article)
    assert isinstance(second, Article)
    assert (first.text, first.revision, first.edits, first.editors) == ("Neu.", 30, 3, 2)
    assert (second.edits, second.editors) == (1, 1)
    (current, _) = read_dump(write(tmp_path / "dewiki-pages-articles.xml.bz2", *pages))
    assert isinstance(current, Article)
    assert current.edits is None  # what a dump does not hold is not counted
    assert Edits().judge(current).passes is None


def test_a_script_is_chosen_where_a_wiki_has_two(tmp_path: Path) -> None:
    head = HEAD.replace("de.wikipedia", "zh.wikipedia").replace("dewiki", "zhwiki")
    text = "-{zh-hans:计算机; zh-hant:電腦}-是-{H|zh-cn:甲;zh-tw:乙}-機器，叫-{腦}-。"
    path = tmp_path / "zh.xml"
    path.write_text(head + page("X", 1, revision(text)) + "</mediawiki>", "utf-8")
    texts = {}
    for language in (None, "zh-Hant"):
        (article,) = read_dump(path, language=language)
        assert isinstance(article, Article)
        texts[article.language] = article.text
    assert texts == {"zh-Hans": "计算机是機器，叫腦。", "zh-Hant": "電腦是機器，叫腦。"}


def test_a_damaged_dump_gives_what_it_holds_and_says_where_it_ends(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.xml.bz2", *(page(f"P{n}", n, revision(f"Text {n}. " * 2000)) for n in range(1, 60)))
    data = whole.read_bytes()
    for name, content, message in (
        ("cut.xml.bz2", data[: len(data) - 40], "damaged or cut off after"),
        ("flipped.xml.bz2", data[:-60] + b"\x00" * 20 + data[-40:], "damaged or cut off after"),
        ("cut.xml", (HEAD + page("A", 1, revision("Text."))).encode(), "cut off after 1 pages"),
        ("other.xml", b"<html><body/></html>", "not a dump"),
        ("text.txt", b"just text", "damaged or cut off after 0 pages"),
        ("empty.xml", b"", "damaged or cut off after 0 pages"),
        ("dump.7z", b"7z\xbc\xaf\x27\x1c" + b"0" * 20, "7z archive"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=message) as raised:
            list(read_dump(path))
        assert raised.value.path == str(path)
    found = []
    with pytest.raises(InputError):
        found.extend(read_dump(tmp_path / "cut.xml"))
    with pytest.raises(InputError, match="no such file"):
        list(read_dump(tmp_path / "missing.xml"))


def test_what_came_before_the_damage_is_given_out(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml"
    path.write_text(HEAD + page("A", 1, revision("Text.")) + "<page><title>B</title>", "utf-8")
    rows = read_dump(path)
    assert next(rows).title == "A"
    with pytest.raises(InputError):
        next(rows)


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(pages: int) -> int:
        path = write(
            tmp_path / f"{pages}.xml.bz2", *(page(f"P{n}", n, revision("x" * 40_000)) for n in range(1, pages))
        )
        tracemalloc.start()
        try:
            assert sum(1 for _ in open_dump(path)) == pages - 1
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(400) < 1.3 * peak(40) + 200_000


def test_a_sample_is_the_same_whatever_the_rest_and_the_account_adds_up(tmp_path: Path) -> None:
    pages = [page(f"P{n}", n, revision("Wort " * (500 if n % 3 else 5))) for n in range(1, 201)]
    path = write(tmp_path / "d.xml", *pages, page("W", 999, revision("x"), redirect="P1"))

    def draw(count: int, seed: int = 0) -> tuple[list[int], FilterChain]:
        chain = FilterChain([Length(2000)])
        return [article.page_id for article in draw_articles(open_dump(path), chain, count, seed=seed)], chain

    ten, chain = draw(10)
    assert len(ten) == 10
    assert ten == sorted(ten)
    assert all(number % 3 for number in ten)
    assert set(ten) < set(draw(20)[0])  # a larger sample holds the smaller one
    assert ten != draw(10, seed=1)[0]
    assert len(draw(1000)[0]) == sum(1 for n in range(1, 201) if n % 3)
    report = chain.report
    assert report.met == 201
    assert report.not_drawn > 100  # most pages are not read at all
    assert report.met == report.not_drawn + report.passed + report.absent["redirect"] + report.filters[0].dropped
    more = write(tmp_path / "e.xml", *pages[::-1])
    chain = FilterChain([Length(2000)])
    assert sorted(article.page_id for article in draw_articles(open_dump(more), chain, 10)) == ten


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("a [[b|c]]s d [[e]] [[:Kategorie:F]]", "a cs d e Kategorie:F"),
        ("a [http://x.example b] [http://y.example] c", "a b c"),
        ("'''a''' ''b'' '''''c'''''", "a b c"),
        ("a<sub>2</sub> <small>b</small> m<sup>2</sup>", "a2 b m2"),
        ("x <nowiki>[[y]]</nowiki> z", "x [[y]] z"),
        ("a &amp; b &lt; c &#252;", "a & b < c ü"),
        ("<math>x^2</math> und <gallery>\nA.jpg|b\n</gallery> c", "und c"),
        ("a (geb. {{Datum}}) b ({{IPA}}, {{x}}) c (; d) e", "a (geb.) b c (d) e"),
        ("{{nowrap|12 km}} lang, {{unbekannt|ja}}", "12 km lang,"),
        ("{{#if:x|y}} {{PAGENAME}} z", "z"),
        ("{{formatnum:12345}} Leute, {{Formatnum: 67 }} Häuser", "12345 Leute, 67 Häuser"),
        ("M ({{lang-pt|Moinho}}, {{lang-sr-latn|Mlin}}) {{langsam|x}} a", "M (Moinho, Mlin) a"),
        ("au {{s|XIX|e}}, {{S|biografie|scrittori}} b", "au XIXe siècle, b"),
        ("[[Bild:x.jpg|a [[b]] c]] d [[Image:y.png]]", "d"),
        ("[[fr:Moulin]]\n[[zh-min-nan:X]]\na [[Mühle: Roman]]", "a Mühle: Roman"),
        ("*a\n**b\n#c\n:d\n;e", "a\nb\nc\nd\ne"),
        ("a [[b", "a [[b"),
        ("a {{b", "a {{b"),
    ],
)
def test_what_of_wikitext_is_text(wikitext: str, text: str) -> None:
    wiki = Wiki("de", "de", frozenset({"file", "image", "datei", "bild"}), frozenset({"category", "kategorie"}))
    assert split_sections(parse(wikitext, wiki)[0])[0] == text


@given(st.text("ab [[]]{{}}|'=<>/ref!-*#:;\n&()", max_size=60))
def test_any_text_is_wikitext(text: str) -> None:
    whole, lead = split_sections(parse(text, Wiki("de", "de"))[0])
    assert whole.startswith(lead)
    assert whole == whole.strip()


def test_sections_without_text_are_left_out_and_the_lead_ends_at_the_first() -> None:
    marked = "Lead.\nMore.\n\n\n\n== A ==\n\n=== B ===\nText.\n=== C ===\n== D ==\n== E ==\nEnd.\n== F ==\n=== G ==="
    assert split_sections(marked) == ("Lead.\nMore.\n\nA\n\nB\nText.\n\nE\nEnd.", "Lead.\nMore.")
    assert split_sections("== A ==\nText.") == ("A\nText.", "")
    assert split_sections("No heading: 1 == 2 == 3") == ("No heading: 1 == 2 == 3",) * 2
    assert split_sections("") == ("", "")
