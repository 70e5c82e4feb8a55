"""Words that the evidence contradicts are marked by rule, and right ones are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veriglot.judging import contradictions, phrases, relations
from veriglot.judging.contradictions import contradicted_words
from veriglot.judging.relations import Words
from veriglot.text.segmentation import sentences, word_bounds

_LONG = 4  # letters of words that tell what a sentence is about, in these tests


def words_of(text: str, language: str) -> Words:
    """Words whose stem is their beginning."""
    bounds = word_bounds(text, language).astype(np.int64)
    starts = [start for start, _ in sentences(text, language)]
    words = [text[start:end].lower() for start, end in bounds.tolist()]
    stems = np.array([int.from_bytes(word[:5].encode("utf-8", "replace")[-8:]) for word in words], np.uint64)
    content = np.array([len(word) >= _LONG or not word.isascii() for word in words], bool)
    return Words(text, bounds, np.searchsorted(starts, bounds[:, 0], side="right") - 1, stems, content)


def contradicted(response: str, evidence: str, language: str, question: str | None = None) -> list[str]:
    """The words of the response that are marked."""
    words = words_of(response, language)
    flags = contradicted_words(words, words_of(evidence, language), language, question)
    assert flags.shape == (len(words.bounds),)
    return [response[start:end] for (start, end), flag in zip(words.bounds.tolist(), flags, strict=True) if flag]


@pytest.mark.parametrize(
    ("language", "evidence", "response", "words"),
    [
        ("en", "In 1950 Ada Bell taught Bo Hahn to sail.", "Bo Hahn taught Ada Bell.", ["Bo", "Hahn", "Ada", "Bell"]),
        ("en", "Sales rose from 34 to 118.", "Sales rose from 118 to 34.", ["118", "34"]),
        ("es", "Ada Bell relevó a Bo Hahn en 2017.", "En 2017, Hahn relevó a Ada Bell.", ["Hahn", "Ada", "Bell"]),
        ("de", "Der Hund biss den Mann.", "Der Mann biss den Hund.", ["Mann", "Hund"]),
        ("ru", "Мария спасла Ивана вчера.", "Иван спасла Марию.", ["Иван", "Марию"]),
        ("zh", "2009年贺东升把种子公司告上法庭。", "2009年种子公司把贺东升告上法庭。", None),
    ],
)  # fmt: skip
def test_words_that_changed_places_are_told(
    language: str, evidence: str, response: str, words: list[str] | None
) -> None:
    result = contradicted(response, evidence, language)
    assert result == words if words is not None else len(result) > 1
    assert not contradicted(evidence, evidence, language)


@pytest.mark.parametrize(
    ("language", "evidence", "response"),
    [
        ("en", "Ada Bell met Bo Hahn and Cy Lund.", "Cy Lund and Bo Hahn were met."),  # a list
        ("en", "Ada, Bo, Cy won.", "Cy, Bo, Ada won."),
        ("en", "Ada Bell taught Bo Hahn.", "Bo Hahn was taught by Ada Bell."),  # said the other way round
        ("en", "The hill is longer than the lake.", "The lake is shorter than the hill."),
        ("en", "Ada beat Bo in 1990. Bo beat Ada in 1991.", "Bo beat Ada."),  # both are true
        ("es", "El museo se abrió en 2004.", "En 2004 se abrió el museo."),  # another order of the same
        ("zh", "蓝队以27比24击败红队。", "红队以24比27负于蓝队。"),
        ("de", "Der Hund biss den Mann.", "Den Mann biss der Hund."),
        ("ru", "Мария спасла Ивана.", "Ивана спасла Мария."),
    ],
)  # fmt: skip
def test_what_is_said_otherwise_has_not_changed_places(language: str, evidence: str, response: str) -> None:
    assert contradicted(response, evidence, language) == []


TOLD = {
    "en": "The herd shrank from about 9,000 animals in 1990 to about 3,500 in 2010.",
    "fr": "Le trafic est passé de 5 200 véhicules en 1990 à 3 900 en 2010.",
    "tr": "Tezgâh sayısı 1990'da 620 iken 2010'da 95'e indi.",
    "zh": "职工人数由1990年的2600人降至2010年的740人。",
    "ja": "灯籠は1990年には800個、2010年には200個だった。",
    "ko": "하루 손님은 1990년 620명에서 2010년 85명으로 줄었다.",
}


@pytest.mark.parametrize(
    ("language", "response", "words"),
    [
        ("en", "In 2010 there were more of them than in 1990.", ["more"]),
        ("en", "In 1990 there were fewer animals than in 2010.", ["fewer"]),
        ("en", "Between 1990 and 2010 the herd grew.", ["grew"]),
        ("fr", "Le trafic a augmenté entre 1990 et 2010.", ["augmenté"]),
        ("tr", "2010'da 1990'dakinden daha fazla tezgâh vardı.", ["daha", "fazla"]),
        ("zh", "2010年的职工比1990年更多。", ["更多"]),
        ("ja", "2010年は1990年より増えた。", None),
        ("ko", "하루 손님이 2010년에는 1990년보다 늘었다.", None),
        # right ones
        ("en", "In 1990 there were more of them than in 2010.", []),
        ("en", "In 1990 there were more.", []),
        ("en", "The herd grew.", []),  # when?
        ("en", "In 2010 there were more than 3,400.", []),
        ("en", "It did not shrink; the herd did not grow either.", []),
        ("en", "The herd shrank by more than half.", []),
        ("en", "In 2015 there were more.", []),
        ("en", "More is said about the village.", []),
        ("fr", "Le trafic a diminué entre 1990 et 2010.", []),
        ("ja", "1990年は2010年より多かった。", []),
    ],
)  # fmt: skip
def test_a_rise_that_numbers_contradict_is_told(language: str, response: str, words: list[str] | None) -> None:
    marked = contradicted(response, TOLD[language], language)
    assert marked == words if words is not None else marked
    assert not contradicted(response, f"{TOLD[language]} {TOLD[language][::-1]}\n1990", "xx")


@pytest.mark.parametrize(
    ("language", "evidence", "response", "words"),
    [
        ("en", "Ada Bell was succeeded by Bo Hahn in 1950.", "Ada Bell took over from Hahn.", ["Ada", "Bell", "Hahn"]),
        ("en", "The first head was Ada Bell; Bo Hahn took over from her.", "Ada Bell succeeded Bo Hahn.", None),
        ("en", "Ada Bell sold the mill to Bo Hahn.", "Ada Bell bought the mill from Bo Hahn.", None),
        ("de", "Anna Bell verkaufte Bo Hahn die Mühle.", "Anna Bell kaufte die Mühle von Bo Hahn.", None),
        ("fr", "Ada Bell fut remplacée par Bo Hahn.", "Ada Bell a succédé à Bo Hahn.", None),
        ("tr", "Önce Ada Bell, sonra Bo Hahn yönetti.", "Ada Bell görevi Bo Hahn'dan devraldı.", None),
        ("zh", "方若兰1990年接替秦国梁任场长。", "方若兰把场长一职交给了秦国梁。", None),
        ("ko", "조윤식이 맡았고, 그 뒤로는 한순이가 맡았다.", "조윤식이 한순이의 뒤를 이었다.", None),
        ("ar", "ترأست النقابة سعاد مراد ثم خلفها عادل ناصر.", "عادل ناصر سلم النقابة إلى سعاد مراد.", None),
        ("ja", "会長は石井トメから原田進に代わった。", "石井トメは原田進の後を継いだ。", None),
        ("en", "The lawyer Ada Bell advised the chairman.", "The chairman advised the lawyer.", ["chairman", "lawyer"]),
        ("fr", "La présidente Delorme engagea l'entraîneur.", "La présidente a été engagée par l'entraîneur.", None),
        ("ko", "박만수는 서정민에게 청화 기법을 가르쳤다.", "서정민은 박만수에게 청화 기법을 가르쳤습니다.", None),
        ("zh", "邓水生曾状告魏德厚污染溪水。", "魏德厚状告邓水生污染溪水。", None),
        # right ones
        ("en", "Ada Bell was succeeded by Bo Hahn in 1950.", "Bo Hahn took over from Ada Bell in 1950.", []),
        ("en", "Ada beat Bo in 1990. Bo beat Ada in 1991.", "Ada lost to Bo.", []),
        ("en", "Ada Bell succeeded Bo Hahn. Cy Lund succeeded Ada Bell.", "Cy Lund replaced Ada Bell.", []),
        ("de", "Anna Bell verkaufte Bo Hahn die Mühle.", "Bo Hahn kaufte die Mühle von Anna Bell.", []),
        ("en", "The lawyer Ada Bell advised the chairman.", "The chairman took the advice of the lawyer.", []),
        ("ko", "박만수는 서정민에게 청화 기법을 가르쳤다.", "서정민은 박만수에게서 청화 기법을 배웠습니다.", []),
        ("xx", "Ada Bell was succeeded by Bo Hahn.", "Bo Hahn was succeeded by Ada Bell, who came late.", None),
    ],
)  # fmt: skip
def test_swapped_roles(language: str, evidence: str, response: str, words: list[str] | None) -> None:
    marked = contradicted(response, evidence, language)
    assert marked == words if words is not None else len(marked) > 1
    assert not contradicted(evidence, evidence, language)


def test_a_list_that_answers_a_question_for_an_order() -> None:
    evidence, response = "Ada Bell was succeeded by Bo Hahn.", "1. Bo Hahn\n2. Ada Bell"
    assert contradicted(response, evidence, "en", "List the heads in order.") == ["Bo", "Hahn", "Ada", "Bell"]
    assert not contradicted("1. Ada Bell\n2. Bo Hahn", evidence, "en", "List the heads in order.")
    assert not contradicted(response, evidence, "en", "Who were the heads?")


FACTS = (
    "The oven was built in 1973 and the museum opened in 2004. The main prize is 6,000 euros; young potters get 1,500"
    " euros. In 1999 and 2003 the fair was cancelled."
)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("The museum opened in 1973.", ["1973"]),
        ("- Museum: 2003\n- Oven: 1973", ["2003"]),
        ("Young potters get 6,000 euros.", ["6,000"]),
        # right ones
        ("The museum opened in 2004.", []),
        ("The oven dates from 1973, the museum from 2004.", []),
        ("In 2003 the fair was cancelled.", []),
        ("The first event was in 2004.", []),  # no word of the evidence
        ("The museum opened in 1980.", []),  # not there: nothing for this rule
    ],
)
def test_values_of_another_thing(response: str, words: list[str]) -> None:
    assert contradicted(response, FACTS, "en") == words


def test_a_value_that_the_question_names_is_not_held_against_the_response() -> None:
    assert not contradicted("The museum opened in 1973.", FACTS, "en", "Did the museum open in 1973?")


def test_one_word_decides_in_short_evidence_only() -> None:
    filler = " ".join(f"Sentence number {number} is about something else." for number in "abcdefghijklmno")
    assert contradicted("The museum dates from 1973.", FACTS, "en") == ["1973"]
    assert not contradicted("The museum dates from 1973.", f"{FACTS} {filler}", "en")


SENTENCES = [line.split("\t") for line in (Path(__file__).parent / "relations.tsv").read_text("utf-8").splitlines()[1:]]


def test_the_values_near_a_word_are_looked_up_once_however_long_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[str, ...]] = []
    near = contradictions._Index._near
    monkeypatch.setattr(contradictions._Index, "_near", lambda self, keys, measure: (
        looked.append((*keys, measure)), near(self, keys, measure))[1])  # fmt: skip
    lines = [f"The house of row {100 + n} was sold for {5000 + n} crowns." for n in range(150)]
    wrong = [*lines[:-1], lines[-1].replace("5149", "5003")]
    assert contradicted(" ".join(lines), " ".join(lines), "en") == []
    contradicted(" ".join(wrong), " ".join(lines), "en")
    assert looked
    assert len(looked) == 2 * len(set(looked))


def check_reading(language: str, relation: str, a: str, b: str, text: str) -> None:
    """The text tells that `a` is to `b` in the relation, and not the reverse."""
    pairs = [
        (text[slice(*first)].lower(), text[slice(*second)].lower())
        for reading in relations._readings(text, language)
        if reading.relation == relation
        for first, second in reading.pairs
    ]
    a, b = a.lower(), b.lower()
    right = {pair for pair in pairs if a in pair[0] and b in pair[1]}
    assert right, text
    assert not any(b in pair[0] and a in pair[1] for pair in pairs if pair not in right), text


@pytest.mark.parametrize("row", SENTENCES[::60], ids=lambda row: f"{row[0]}-{row[1]}")
def test_some_relations_are_read(row: list[str]) -> None:
    check_reading(*row)


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted({row[0] for row in SENTENCES}))
def test_relations_are_read(language: str) -> None:
    """Each relation in three wordings or more: active, passive, converse."""
    for row in SENTENCES:
        if row[0] == language:
            check_reading(*row)


def test_every_language_of_phrases_has_relations() -> None:
    """But for two that have phrases alone."""
    assert {row[0] for row in SENTENCES} == set(phrases._wordings()) - {"ka", "sw"}


def test_odd_input() -> None:
    for text in ("", " \n", "1.", "\ud800 succeeded", "Ada succeeded", "succeeded by", "A" * 5000, "Ada, Bo, " * 500):
        for language in ("en", "th", "xx", "yue"):
            contradicted(text, "Ada was succeeded by Bo in 1990.", language, "In which order?")
            contradicted("Bo was succeeded by Ada in 1990.", text, language, text)
