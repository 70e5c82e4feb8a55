"""kang's four metrics against a table worked out by hand, and what is held against what."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_nli import FindsWords, Scripted

from veriglot.errors import UnknownNameError, UsageError
from veriglot.judging.base import (
    LANGUAGE_FROM_TEXT,
    LANGUAGE_UNSURE,
    ResolvedLanguage,
    evidence_language,
    evidence_notes,
    has_fact_rules,
)  # fmt: skip
from veriglot.judging.nli import ClaimReader, claims_of, declared_for, judge_claims, premises_of
from veriglot.records import Evidence, Sample, Task
from veriglot.text.segmentation import words

#            premise 0          premise 1          premise 2
TABLE = {
    "a": [(0.90, 0.08, 0.02), (0.10, 0.20, 0.70), (0.30, 0.60, 0.10)],
    "b": [(0.20, 0.75, 0.05), (0.05, 0.15, 0.80), (0.20, 0.20, 0.60)],
    "c": [(0.10, 0.85, 0.05), (0.15, 0.80, 0.05), (0.02, 0.95, 0.03)],
}
BY_HAND = {  # ENT, CON, DIFF, UNV; the nearest premise, the one that is opposed most
    "a": (0.90, 0.70, 0.20, 0.10, 0, 1),
    "b": (0.20, 0.80, -0.60, 0.20, 0, 1),
    "c": (0.15, 0.05, 0.10, 0.85, 1, 0),
}
MODEL = Scripted({(f"p{place}", claim): row for claim, rows in TABLE.items() for place, row in enumerate(rows)})


def test_the_metrics_by_hand() -> None:
    (found,) = judge_claims(MODEL, [(list(TABLE), ["p0", "p1", "p2"])])
    columns = (found.entailment, found.contradiction, found.difference, found.unverified, found.nearest, found.opposed)
    np.testing.assert_allclose(np.stack(columns, 1), list(BY_HAND.values()), atol=1e-12)


def test_tasks_do_not_mix() -> None:
    tasks = [(["a"], ["p1", "p2"]), (["b", "c"], ["p0"]), (["c"], ["p2", "p1", "p0"])]
    together = judge_claims(MODEL, tasks)
    for task, found in zip(tasks, together, strict=True):
        (alone,) = judge_claims(MODEL, [task])
        for name in ("entailment", "contradiction", "nearest", "opposed"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    assert [found.entailment.tolist() for found in together] == [[0.3], [0.2, 0.1], [0.15]]
    model = FindsWords()
    judge_claims(model, [(["x"] * 300, ["y"] * 200)] * 3)
    assert model.asked == [60000, 60000, 60000], "memory is bounded by what is asked at a time"
    assert judge_claims(model, []) == []


def test_claims_hold_each_word_once() -> None:
    text = "Ada Lind, the keeper, was born in Norva in 1901 and died there. Hm! … She never left (she said so)."
    for level in ("sentence", "fact"):
        claims = claims_of(text, "en", level)  # type: ignore[arg-type]
        covered = [
            word for word in words(text) for claim in claims for s, e in claim.parts if s <= word[0] and word[1] <= e
        ]
        assert sorted(covered) == words(text)
    facts = claims_of(text, "en", "fact")
    assert {claim.kind for claim in facts} >= {"clause", "date"}
    year = next(claim for claim in facts if claim.kind == "date")
    assert "born" in year.text, "a fact carries the context that it needs"
    aside = next(claim for claim in facts if claim.kind == "aside")
    assert aside.text.startswith("Ada Lind the keeper was born")
    assert "1901" not in aside.text, "a wrong year makes one fact wrong, not two"
    assert "  " not in aside.text
    assert [claim.text for claim in claims_of("One.\n…\nTwo!", "en", "sentence")] == ["One.", "Two!"]
    assert claims_of("…", "en", "fact") == claims_of(" ", "en", "sentence") == []


def test_premises_of_every_size() -> None:
    first = Evidence("One is here. Two is here. Three is here. Four is here. Five is here.", id="a")
    evidence = [first, Evidence(" "), Evidence("Six.", id="b"), Evidence("!?", id="c")]
    for size in (1, 2, 3, 4, 9, 0):
        found = premises_of(evidence, size)
        for premise in found:
            passage = next(one for one in evidence if one.id == premise.passage)
            assert premise.text == passage.text[premise.start : premise.end]
        texts = " ".join(premise.text for premise in found)
        assert all(word in texts for word in ("One", "Two", "Three", "Four", "Five", "Six"))
    assert [p.text.count(".") for p in premises_of([first], 2)] == [2, 2, 2, 2]
    assert [p.text.count(".") for p in premises_of([first], 3)] == [3, 3]
    assert [p.text.split()[0] for p in premises_of([first], 4)] == ["One", "Two"]
    assert [p.text for p in premises_of(evidence, 0)] == [first.text, "Six."]


def test_declared_languages() -> None:
    anybody, german = FindsWords(), FindsWords(languages=frozenset({"de", "zh", "xx"}))
    assert declared_for(anybody, "yue")
    assert declared_for(german, "de-AT")
    assert declared_for(german, "zh-Hant")
    assert declared_for(german, "xx-Latn")
    assert not declared_for(german, "en")
    assert has_fact_rules("en")
    assert not has_fact_rules(None)


def test_readings_that_make_no_sense() -> None:
    with pytest.raises(UnknownNameError, match="sentence"):
        ClaimReader(FindsWords(), "sentenc", 1, question=False)
    with pytest.raises(UsageError, match="-1"):
        ClaimReader(FindsWords(), "fact", -1, question=False)


ENGLISH = (
    "The mill was built by a family of weavers who had come from the north of the country. It was used until the river "
    "changed its course, and later it became a school. Most of the walls that can be seen today are not the first, "
    "since a fire destroyed the upper floor and the roof. The people of the village still meet there every summer."
)
GERMAN = (
    "Die Mühle wurde von einer Familie gebaut, die aus dem Norden des Landes gekommen war. Sie wurde benutzt, bis der "
    "Fluss seinen Lauf änderte, und später wurde sie zu einer Schule. Die meisten Mauern, die man heute sehen kann, "
    "sind nicht die ersten, weil ein Feuer das obere Stockwerk und das Dach zerstörte."
)
DANISH = (
    "Møllen blev bygget af en familie, der var kommet fra den nordlige del af landet. Den blev brugt, indtil floden "
    "skiftede løb, og senere blev den til en skole. De fleste af de mure, der kan ses i dag, er ikke de første, fordi "
    "en brand ødelagde den øverste etage og taget. Folk fra landsbyen mødes der stadig hver sommer, når vejret er godt "
    "nok. De spiser sammen ved et langt bord under træerne, og bagefter fortæller de ældste om dengang, da møllehjulet "
    "endnu drejede rundt. Om vinteren er huset lukket, og kun katten sover der."
)
INFOBOX = (
    "FC São Pedro da Serra\nCoordenadas: 41° 26′ N, 3° 34′ W\nEstádio Municipal Vasco da Gama\nJoão Pinto\n"
    "Rui Costa 1991\nLiga dos Campeões da UEFA 2003/04\nPortugal Lisboa\nCâmara Municipal\n12 540 km²\n"
)


@pytest.mark.parametrize(
    ("text", "response", "language", "expected", "note"),
    [
        (ENGLISH, "Die Mühle ist heute eine Schule.", "de", "en", LANGUAGE_FROM_TEXT),
        (GERMAN, "The mill is a school today.", "en", "de", LANGUAGE_FROM_TEXT),
        (GERMAN, "Die Mühle ist heute eine Schule.", "de", "de", None),
        (INFOBOX + GERMAN, "Der Verein wurde 1991 gegründet.", "de", "de", None),
        (INFOBOX, "Der Verein wurde 1991 gegründet.", "de", "de", LANGUAGE_UNSURE),
        ("Мельница построена в 1874 году семьёй ткачей.", "It was built in 1874.", "en", "ru", LANGUAGE_FROM_TEXT),
        (DANISH, "Kvarnen är en skola i dag och byborna träffas där.", "sv", "da", LANGUAGE_FROM_TEXT),
        (DANISH[:83], "Kvarnen är en skola i dag och byborna träffas där.", "sv", "sv", LANGUAGE_UNSURE),
        (ENGLISH, "The mill is a school today, and people meet there.", "mi", "mi", LANGUAGE_UNSURE),
        ("1874, 12, 13", "1874", "fi", "fi", None),
        ("", "1874", "fi", "fi", None),
    ],
)
def test_the_language_of_evidence_takes_proof(
    text: str, response: str, language: str, expected: str, note: str | None
) -> None:
    sample = Sample(id="1", task=Task.QA, language=language, response=response, evidence=(Evidence(text=text),))
    assert evidence_language(sample, language) == (expected, note)


@pytest.mark.parametrize(
    ("task", "source", "response", "language", "notes"),
    [
        (Task.TRANSLATION, ENGLISH, "Młyn jest dziś szkołą.", "pl", ("evidence:other_language",)),
        (Task.TRANSLATION, ENGLISH, "Kinu ni shule siku hizi.", "sw", ("evidence:other_language",)),
        (Task.TRANSLATION, ENGLISH, "Мельница сегодня школа.", "ru", ("evidence:other_script",)),
        (Task.TRANSLATION, ENGLISH, "The mill is a school today.", "en", ()),  # rows that only look like translations
        (
            Task.TRANSLATION,
            "Das Wetter war gestern schön.",
            "The weather was nice.",
            "en",
            ("evidence:other_language",),
        ),
        (Task.QA, ENGLISH, "Młyn jest dziś szkołą.", "pl", ("evidence:other_language",)),
        (Task.QA, INFOBOX, "Der Verein wurde 1991 gegründet.", "de", ()),
    ],
)
def test_evidence_is_known_to_be_in_another_language_where_it_proves_it_or_is_a_source(
    task: Task, source: str, response: str, language: str, notes: tuple[str, ...]
) -> None:
    sample = Sample(id="1", task=task, response=response, evidence=(Evidence(text=source),))
    assert evidence_notes(sample, ResolvedLanguage(language, None)) == notes


def test_a_given_language_of_evidence_is_believed() -> None:
    passages = (Evidence(text=GERMAN, language="fr"), Evidence(text="x", language="deu"))
    sample = Sample(id="1", task=Task.QA, language="en", response="The mill.", evidence=passages)
    assert evidence_language(sample, "en") == ("fr", None)
