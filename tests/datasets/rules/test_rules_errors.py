"""Single rules: exchanged values, negations, opposites; and their data files."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from villages import LANGUAGES, WITH_PHRASES, articles

from veriglot.datasets.rules.material import Material, phrase_languages, phrases_of, values_of
from veriglot.datasets.rules.silver import (
    Edit,
    Quotation,
    RuleSettings,
    altered_number,
    cased,
    differing_words,
    negated,
    occurrences,
    values_differ,
)
from veriglot.text.segmentation import words

MFAVA = "ar bg ca cs de en eo es eu fa fi fr he hi hu id it ja ko la lt ms pl pt ro ru sd sr-Cyrl sr-Latn sv th tr uk"
MFAVA += " ur vi yue zh-Hans zh-Hant"


@pytest.mark.parametrize("tag", MFAVA.split())
def test_every_data_file_says_all_that_rules_need(tag: str) -> None:
    assert tag in phrase_languages()
    phrases = phrases_of(tag)
    assert phrases is not None
    assert len(phrases.negations) + len(phrases.endings) >= 10
    assert len(phrases.opposites) >= 15
    assert len(phrases.judgements) >= 5
    assert len(phrases.claims) >= 4
    assert phrases.hedges
    for one, other in [*phrases.negations, *phrases.endings, *phrases.opposites]:
        assert one.casefold() != other.casefold()
    assert len({one.casefold() for one, _ in phrases.opposites}) == len(phrases.opposites)
    assert all("{sentence}" in hedge for hedge in phrases.hedges)
    assert all("{}" in opening for opening in phrases.openings)
    for claim in phrases.claims:
        assert "{" not in claim.replace("{year}", "").replace("{number}", "")


def test_what_is_not_known_of_a_language_is_said() -> None:
    assert phrases_of("sw") is None
    assert RuleSettings().supported("sw") == ("entity", "relation", "invented")
    assert RuleSettings(taxonomy="halluverse").supported("sw") == ("entity", "relation", "sentence")
    assert RuleSettings().supported("de") == (
        "entity",
        "relation",
        "contradictory",
        "invented",
        "subjective",
        "unverifiable",
    )
    assert {tag for tag in LANGUAGES if len(RuleSettings().supported(tag)) == 6} == set(WITH_PHRASES)


@pytest.mark.parametrize(
    ("tag", "sentence", "expected", "way"),
    [
        ("en", "The mill was built in 1731.", "The mill was not built in 1731.", "negated"),
        ("en", "The mill was not built in 1731.", "The mill was built in 1731.", "affirmed"),
        ("de", "Die Mühle ist ein altes Haus.", "Die Mühle ist kein altes Haus.", "negated"),
        ("de", "Die Mühle wurde nie gebaut.", None, ""),
        ("fr", "Le moulin est très vieux.", "Le moulin n'est pas très vieux.", "negated"),
        ("fr", "C'est un moulin.", None, ""),
        ("tr", "Değirmen burada yapılmıştır.", "Değirmen burada yapılmamıştır.", "negated"),
        ("fi", "Mylly on vanha.", "Mylly ei ole vanha.", "negated"),
        ("ar", "كان الجسر طويلا.", "لم يكن الجسر طويلا.", "negated"),
        ("zh-Hans", "他的父亲是村长。", "他的父亲不是村长。", "negated"),
        ("ja", "これは古い橋である。", "これは古い橋ではない。", "negated"),
        ("ko", "다리가 완공되었다.", "다리가 완공되지 않았다.", "negated"),
        ("ko", "마을에 다리가 있다.", "마을에 다리가 없다.", "negated"),
        ("hi", "यह पुल पुराना है।", "यह पुल पुराना नहीं है।", "negated"),
        ("fa", "این پل بزرگ است.", "این پل بزرگ نیست.", "negated"),
        ("th", "เขาเป็นครู", "เขาไม่ได้เป็นครู", "negated"),
        ("ro", "Cea mai cunoscută lucrare a autorului.", None, ""),
    ],
)
def test_negation(tag: str, sentence: str, expected: str | None, way: str) -> None:
    phrases = phrases_of(tag)
    assert phrases is not None
    assert negated(sentence, tag, phrases) == ((expected, way) if expected else None)


@pytest.mark.parametrize(
    ("tag", "old", "new"),
    [
        ("de", "Er zog nach dem Krieg nach Kesten.", "Er zog vor dem Krieg nach Kesten."),
        ("en", "More people left than came.", "Less people left than came."),
        ("vi", "Làng nằm ở phía bắc của Việt Nam.", "Làng nằm ở phía nam của Việt Nam."),
        ("es", "La casa está al este de este río.", "La casa está al oeste de este río."),
        ("zh-Hant", "村子在山的北部有10多戶。", "村子在山的南部有10多戶。"),
        ("ru", "После войны дом стоял до лета.", "До войны дом стоял до лета."),
        ("sr-Latn", "On je najmanji u selu.", "On je najveći u selu."),
    ],
)
def test_opposites(tag: str, old: str, new: str) -> None:
    material = Material(tag, articles("en").of("en"))
    edit = Quotation(material, 0, [old]).error("relation", Random(4))
    assert edit is not None
    assert old[: edit.start] + edit.text + old[edit.end :] == new


def test_forms_stand_at_whole_words_and_alone() -> None:
    text = "C'est l'est. Est-il à l'ouest ? EST"
    assert list(occurrences(text, words(text, "fr"), "est")) == [(32, 35)]
    assert list(occurrences("İ is", words("İ is"), "is")) == [(2, 4)]
    assert cased("vor", "Nach") == "Vor"
    assert cased("Süden", "norden") == "Süden"


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1), st.lists(st.sampled_from(["a", "b", "c"]), min_size=1))
def test_only_the_words_that_differ_are_changed(old: list[str], new: list[str]) -> None:
    before, after = " ".join(old), " ".join(new)
    start, end, put = differing_words(before, after)
    assert before[:start] + put + before[end:] == after
    assert start <= end


@given(st.from_regex(r"[1-9][0-9]{0,6}([.,][0-9]{1,3})?", fullmatch=True), st.integers(0, 99))
def test_an_altered_number_keeps_its_form(number: str, seed: int) -> None:
    changed = altered_number(number, Random(seed))
    assert changed != number
    assert [c if not c.isdecimal() else "0" for c in changed] == [c if not c.isdecimal() else "0" for c in number]
    assert not changed.startswith("0")


@pytest.mark.parametrize("year", ["1000", "1066", "1999", "2025", "١٩٩٩", "१९९९"])
def test_a_year_stays_one_in_its_own_digits(year: str) -> None:
    for seed in range(50):
        changed = altered_number(year, Random(seed))
        assert changed != year
        assert 1000 <= int(changed) <= 2025
        assert ord(changed[0]) // 16 == ord(year[0]) // 16


def test_values_that_say_the_same_are_told() -> None:
    assert not values_differ("Carlo Filangieri", "Filangieri")
    assert not values_differ("5. März", "05. März")
    assert values_differ("5. März", "6. März")


@pytest.mark.parametrize(
    ("tag", "sentence", "found"),
    [
        ("en", "In 1902 Anna Kroll of Kesten paid 1,200 marks.", ["1902", "Anna Kroll", "Kesten", "1,200"]),
        ("de", "Er wurde am 3. Mai 1902 in Kesten geboren.", ["3. Mai 1902", "Kesten"]),
        ("tr", "Burada 9 Mayıstaki Ali konuştu.", ["9", "Ali"]),
        ("zh-Hans", "他在《石桥志》里写到1902年。", ["石桥志", "1902年"]),
        ("en", "Some 8 120 000 people and 300 of 12 came in 1902.", ["300", "12", "1902"]),
        ("en", "Nothing of that is said here.", []),
        ("en", "X", []),
    ],
)
def test_values_of_a_sentence(tag: str, sentence: str, found: list[str]) -> None:
    values = values_of(sentence, tag, lambda _: tag == "en" or not sentence.startswith("他"))
    assert [sentence[v.start : v.end] for v in values] == found


def test_a_quotation_keeps_its_errors_apart() -> None:
    quotation = Quotation(Material("en", articles("en").of("en")), 0, ["One two three.", "Four five six."])
    assert quotation.text == "One two three. Four five six."
    quotation.edits.append((Edit(4, 7, "TWO", "w"), "entity"))
    assert not quotation.untouched(0, 14)
    assert not quotation.untouched(5, 6)
    assert quotation.untouched(8, 13)
    quotation.edits.append((Edit(14, 14, " New.", "w"), "invented"))
    assert quotation.untouched(8, 14)
    assert not quotation.untouched(8, 20)
    edited = quotation.applied()
    assert edited.text == "One TWO three. New. Four five six."
    assert [edited.text[c.start : c.end] for c in edited.changes] == ["TWO", " New."]
