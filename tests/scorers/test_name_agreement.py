"""Names by their capitals: which there are, and which of them the evidence has, across alphabets."""

from __future__ import annotations

from typing import Any

import pytest

from veriglot.records import Evidence, Sample, Score, Status
from veriglot.scorers.names import names_of
from veriglot.scorers.registry import load_scorer


def score_of(response: str, evidence: str, language: str | None = "en", **options: Any) -> Score:
    sample = Sample(id="1", response=response, language=language, evidence=(Evidence(evidence),))
    (score,) = load_scorer("name-agreement", **options).score([sample])
    return score


def test_which_words_are_names() -> None:
    response = "Yesterday Ada Lovelace met Charles. He left. Charles stayed in THE Paris of I. Turing came."
    assert names_of(response, [], "en") == {"ada", "lovelace", "charles", "paris"}
    assert names_of(response, ["It was Turing who wrote it, on a visit to paris."], "en") >= {"turing", "ada"}
    assert "paris" not in names_of(response, ["It was Turing who wrote it, on a visit to paris."], "en")
    assert names_of("", [], None) == frozenset()


def test_agreement_by_hand() -> None:
    found = score_of("We saw Ada Lovelace in Paris.", "Lady Lovelace, born Ada, lived in London.")
    assert found.value == pytest.approx(2 / 3)
    assert found.parts == {"matched": 2.0, "response": 3.0}
    assert score_of("Saw Núñez there.", "The man was called Nunez.").value == 1.0


@pytest.mark.parametrize(
    ("language", "response", "evidence", "met"),
    [
        ("ru", "Вчера видели Пушкина в Москве.", "Пушкин жил в городе Москва.", 1.0),
        ("fi", "Hän asui silloin Helsingissä.", "Kaupunki on Helsinki.", 1.0),
        ("ru", "Вчера видели Пушкина и Гоголя.", "Alexander Pushkin was a poet.", 0.5),
        ("en", "We know that Tchaikovsky and Pushkin lived.", "Пушкин и Чайковский были русскими.", 0.5),
        ("el", "Τότε ο Σωκράτης μίλησε.", "Socrates spoke then, or so they said.", 1.0),
        ("tr", "Sonra İstanbul'a gitti.", "Sehir Istanbul olarak bilinir.", 1.0),
        ("pl", "Potem pojechał do Warszawy.", "Warszawa jest stolicą.", 1.0),
        ("en", "We went to Oslo.", "They went to Osaka.", 0.0),
    ],
)
def test_inflection_and_alphabets(language: str, response: str, evidence: str, met: float) -> None:
    assert score_of(response, evidence, language).value == met


@pytest.mark.parametrize(
    ("language", "response", "evidence", "said"),
    [
        ("de", "Der Hund bellt.", "Ein Hund.", "noun"),
        ("zh", "北京很大。", "北京", "Hani"),
        ("ar", "باريس كبيرة", "Paris", "Arab"),
        ("en", "We saw Paris.", "باريس كبيرة", "evidence in the script Arab"),
    ],
)
def test_where_capitals_tell_nothing(language: str, response: str, evidence: str, said: str) -> None:
    found = score_of(response, evidence, language)
    assert found.status is Status.UNSUPPORTED_LANGUAGE
    assert said in (found.reason or "")


def test_nothing_to_compare_is_not_scored() -> None:
    assert score_of("there are none.", "Paris").status is Status.NOTHING_TO_COMPARE
    assert score_of("there are none.", "Paris", empty=0.5).value == 0.5
    assert score_of("We saw Paris.", "").status is Status.NO_EVIDENCE
