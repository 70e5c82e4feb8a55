"""Atomic facts: sentences of our own in many languages, and what holds for every text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tricky_texts import TEXTS, TRICKY

from veriglot.records.languages import languages
from veriglot.text.facts import Fact, fact_languages, facts
from veriglot.text.segmentation import sentences, words

# What is expected of a sentence: kind and own words of each fact; `…` stands where other facts lie between.
SENTENCES: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("en", "Mira Holt, a Danish painter, was born in Odense in 1902 and moved to Paris with her sister.", [
        ("clause", "Mira Holt … was born"), ("aside", "a Danish painter"), ("name", "in Odense"), ("date", "in 1902"),
        ("clause", "and moved … with her sister"), ("name", "to Paris"),
    ]),
    ("en", "Mira Holt (4 May 1902 – 3 June 1988) painted 58 square metres of wall, which she sold.", [
        ("clause", "Mira Holt … painted 58 square metres of wall"), ("date", "4 May 1902"), ("date", "3 June 1988"),
        ("clause", "which she sold"),
    ]),
    ("en", "She died in 1988.", [("sentence", "She died in 1988")]),
    ("de", "Die Brücke, die 1932 eröffnet wurde, verbindet zwei Stadtteile, weil der Fluss sie trennt.", [
        ("clause", "Die Brücke, die … eröffnet wurde"), ("date", "1932"), ("clause", "verbindet zwei Stadtteile"),
        ("clause", "weil der Fluss sie trennt"),
    ]),
    ("fr", "Mira Holt est née le 4 mai 1902 à Odense et elle a étudié la peinture avec sa sœur.", [
        ("clause", "Mira Holt est née"), ("date", "le 4 mai 1902"), ("name", "à Odense"),
        ("clause", "et elle a étudié la peinture avec sa sœur"),
    ]),
    ("es", "Mira Holt, pintora danesa, fue alumna de la academia y murió en 1988 en Lima.", [
        ("clause", "Mira Holt … fue alumna de la academia"), ("aside", "pintora danesa"),
        ("clause", "y murió en 1988"), ("name", "en Lima"),
    ]),
    ("ru", "Мира Хольт, родившаяся 4 мая 1902 года в Оденсе, была художницей, которая жила в Париже.", [
        ("clause", "Мира Хольт … была художницей"), ("aside", "родившаяся 4 мая 1902 года"), ("name", "в Оденсе"),
        ("clause", "которая жила в Париже"),
    ]),
    ("tr", "Mira Holt, 4 Mayıs 1902'de Odense'de doğdu ve 1988 yılında Paris şehrinde öldü.", [
        ("clause", "Mira Holt … Odense'de doğdu"), ("date", "4 Mayıs 1902'de"),
        ("clause", "ve … Paris şehrinde öldü"), ("date", "1988 yılında"),
    ]),
    ("ar", "ولدت الرسامة في 4 مايو 1902 في مدينة أودنسه، وحصلت على جائزة كبيرة عام 1930.", [
        ("clause", "ولدت الرسامة … في مدينة أودنسه"), ("date", "في 4 مايو 1902"), ("clause", "وحصلت على جائزة كبيرة"),
        ("date", "عام 1930"),
    ]),
    ("he", "הגשר נפתח בעיר הגדולה בשנת 1932, אבל הנהר זורם מתחתיו.", [
        ("clause", "הגשר נפתח בעיר הגדולה"), ("date", "בשנת 1932"), ("clause", "אבל הנהר זורם מתחתיו"),
    ]),
    ("hi", "यह पुल 4 मई 1932 को खोला गया था और यह शहर के दो हिस्सों को जोड़ता है, क्योंकि नदी उनके बीच बहती है।", [
        ("clause", "यह पुल … खोला गया था"), ("date", "4 मई 1932 को"), ("clause", "और यह शहर के दो हिस्सों को जोड़ता है"),
        ("clause", "क्योंकि नदी उनके बीच बहती है"),
    ]),
    ("zh-Hans", "这座桥于1932年5月4日开通，全长503米，连接城市的两个区，其中一个是旧城。", [
        ("clause", "这座桥 … 开通"), ("date", "于1932年5月4日"), ("clause", "全长503米"),
        ("clause", "连接城市的两个区"), ("clause", "其中一个是旧城"),
    ]),
    ("zh-Hant", "這座橋於1932年開通，全長503公尺，並且連接兩個城區。", [
        ("clause", "這座橋 … 開通"), ("date", "於1932年"), ("clause", "全長503公尺"), ("clause", "並且連接兩個城區"),
    ]),
    ("ja", "この橋は、1932年5月4日に開通し、全長は503メートルで、二つの地区を結んでいる。", [
        ("clause", "この橋は … 開通し"), ("date", "1932年5月4日に"), ("clause", "全長は503メートルで"),
        ("clause", "二つの地区を結んでいる"),
    ]),
    ("ko", "이 다리는 1932년 5월 4일에 개통되었고, 길이는 503미터이며, 두 지역을 연결한다.", [
        ("clause", "이 다리는 1932년 5월 4일에 개통되었고"), ("clause", "길이는 503미터이며"),
        ("clause", "두 지역을 연결한다"),
    ]),
    ("th", "สะพานนี้เปิดใช้เมื่อวันที่ 4 พฤษภาคม พ.ศ. 2475 และเชื่อมสองฝั่งของเมือง ซึ่งเคยแยกจากกัน", [
        ("clause", "สะพานนี้เปิดใช้"), ("date", "เมื่อวันที่ 4 พฤษภาคม พ.ศ. 2475"),
        ("clause", "และเชื่อมสองฝั่งของเมือง ซึ่งเคยแยกจากกัน"),
    ]),
    ("vi", "Cây cầu được khánh thành ngày 4 tháng 5 năm 1932 và nối hai khu phố của thành phố, nhưng nó đã bị đóng.", [
        ("clause", "Cây cầu được khánh thành"), ("date", "ngày 4 tháng 5 năm 1932"),
        ("clause", "và nối hai khu phố của thành phố"), ("clause", "nhưng nó đã bị đóng"),
    ]),
    ("fa", "این پل در ۴ مه ۱۹۳۲ افتتاح شد و دو محله شهر را به هم وصل می‌کند.", [
        ("clause", "این پل … افتتاح شد"), ("date", "در ۴ مه ۱۹۳۲"), ("clause", "و دو محله شهر را به هم وصل می‌کند"),
    ]),
    ("sr-Latn", "Most je otvoren 4. maja 1932. godine, dok reka teče ispod njega.", [
        ("clause", "Most je otvoren 4. maja 1932. godine"), ("clause", "dok reka teče ispod njega"),
    ]),
    ("hu", "A hidat 1932-ben nyitották meg, és két városrészt köt össze, amelyek korábban külön voltak.", [
        ("clause", "A hidat … nyitották meg"), ("date", "1932-ben"), ("clause", "és két városrészt köt össze"),
        ("clause", "amelyek korábban külön voltak"),
    ]),
]  # fmt: skip


def own(text: str, fact: Fact) -> str:
    return " … ".join(text[start:end] for start, end in fact.parts)


@pytest.mark.parametrize(("language", "text", "expected"), SENTENCES)
def test_sentences_of_many_languages(language: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert [(fact.kind, own(text, fact)) for fact in facts(text, language)] == expected


def test_kangs_example_has_the_four_facts_that_its_annotators_counted() -> None:
    """Kang, Table 4: a birth date, a birth place, an occupation, and the position that he played in."""
    text = (
        "Alessandro Del Piero, born on September 28, 1976 in Brescia, Italy, is a former Italian professional football"
        " player who served as a forward."
    )
    assert [own(text, fact) for fact in facts(text, "en")] == [
        "Alessandro Del Piero … is a former Italian professional football player",
        "born on September 28, 1976",
        "in Brescia, Italy",
        "who served as a forward",
    ]


def test_context_makes_a_claim_of_a_part() -> None:
    text = "Mira Holt was born in Odense in 1902. She moved (with her sister Anna) to Lima."
    by_own = {own(text, fact): fact.text(text) for fact in facts(text, "en")}
    assert by_own["in 1902"] == "Mira Holt was born in 1902"
    assert by_own["with her sister Anna"] == "She moved with her sister Anna to Lima"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The fair opened in the old harbour in 1914, 1918 and 1922.", ["in 1914", "1918", "and 1922"]),
        ("The fair took place in the old harbour from 1914-1918.", ["from 1914-1918"]),
        ("The fair took place in the old harbour on 3/5/1914.", ["on 3/5/1914"]),
        ("The old harbour may open again for all of the visitors.", []),
        ("They sat at table 1976543 for the whole of the evening.", []),
    ],
)
def test_dates_are_runs_of_numbers_and_words_for_time(text: str, parts: list[str]) -> None:
    assert [own(text, fact) for fact in facts(text, "en") if fact.kind == "date"] == parts


@pytest.mark.parametrize("language", [None, "bn", "sw", "und", "xx-YY"])
def test_without_rules_each_sentence_is_one_fact(language: str | None) -> None:
    text = "Odense ni mji, na uko Denmark (1902). Pili! 🌊 — …"
    found = facts(text, language)
    assert [fact.kind for fact in found] == ["sentence"] * 2
    assert [(fact.start, fact.end) for fact in found] == [(0, 35), (38, 42)]
    assert not {tag for tag in fact_languages() if tag in ("bn", "sw")}


def test_there_are_rules_for_every_language_of_the_papers_on_biographies() -> None:
    covered = {entry.base for entry in languages().values() if {"mfava", "kang"} & set(entry.sources)}
    assert len(covered) >= 36
    assert covered <= set(fact_languages())


def check(text: str, language: str | None) -> None:
    """Every word in exactly one fact; parts whole words, in order, inside their fact; facts in order."""
    bounds = words(text, language)
    found = facts(text, language)
    starts, ends = {start for start, _ in bounds}, {end for _, end in bounds}
    holders = [0] * len(bounds)
    for fact in found:
        assert (fact.start, fact.end) == (fact.parts[0][0], fact.parts[-1][1])
        assert all(start in starts and end in ends for start, end in (*fact.parts, *fact.context))
        flat = [place for part in fact.parts for place in part]
        assert flat == sorted(flat)
        assert len(set(flat)) == len(flat)
        for place, (start, end) in enumerate(bounds):
            holders[place] += any(first <= start and end <= last for first, last in fact.parts)
        assert not set(fact.parts) & set(fact.context)
    assert holders == [1] * len(bounds)
    assert [fact.start for fact in found] == sorted(fact.start for fact in found)
    if language not in (None, "th"):
        inside = sentences(text, language)
        assert all(any(start <= fact.start and fact.end <= end for start, end in inside) for fact in found)


@pytest.mark.parametrize("language", [None, *fact_languages()])
def test_every_word_is_in_one_fact_in_every_language(language: str | None) -> None:
    for text in (*TRICKY, *(sentence for _, sentence, _ in SENTENCES)):
        check(text, language)


@pytest.mark.fuzz
@given(TEXTS, st.sampled_from([None, *fact_languages()]))
def test_every_word_of_any_text_is_in_one_fact(text: str, language: str | None) -> None:
    check(text, language)


_PIECES = st.sampled_from(
    ["(", ")", " (", ") ", ", ", "; ", " – ", " and ", " which ", " in ", " was ", " he ", "1902", " May ", "'s ", "-",
     "Odense", " the ", " painter ", ". ", "،", "，", "、", " (4", "% ", ": "]
)  # fmt: skip


@pytest.mark.fuzz
@given(st.lists(_PIECES, max_size=40).map("".join), st.sampled_from(["en", "de", "zh", "ja", "tr", "ar", "th"]))
def test_any_order_of_marks_brackets_and_conjunctions_keeps_every_word(text: str, language: str) -> None:
    check(text, language)
