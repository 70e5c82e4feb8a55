"""Parallel paragraphs: how they are found, what is made of them, and what of them is held out."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from parallel_data import parallel_samples
from training_data import article_samples, counted

from veriglot.formats.writer import write
from veriglot.records import Evidence, Sample
from veriglot.text.normalization import fold
from veriglot.training.grounding.examples import Answer, Example, Labelled, Labels, read_labelled, share_of
from veriglot.training.grounding.synthetic_data import (
    answers_across,
    is_test_article,
    is_test_source,
    paragraphs,
    sentences_across,
    without_tests,
)
from veriglot.training.semantic.dataset import aligned, examples_of, is_held_out, relation_of, translations_of

if TYPE_CHECKING:
    from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TOWNS = 40


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Labelled:
    file = tmp_path_factory.mktemp("parallel") / "parallel.jsonl"
    write([*parallel_samples(TOWNS), *article_samples("zh", 8)], file)
    return read_labelled([str(file)])


def rows(examples: list[Example]) -> list[Labels]:
    import numpy as np

    empty = np.zeros(0, np.float32)
    return [Labels(example, empty, empty, empty.reshape(0, 6)) for example in examples]


def test_versions_of_a_paragraph_are_found_by_the_ids_of_its_questions(labelled: Labelled) -> None:
    found = paragraphs(labelled.answers)
    assert len(found) == TOWNS
    assert [sorted(p.versions) for p in found] == [["de", "en"]] * TOWNS
    assert all(len(answers) == 2 for p in found for answers in p.versions.values())
    assert "Fluss 3 " in found[3].passage("de")
    assert "river 3 " in found[3].passage("en")
    assert found[3].group == "xquad:Town 3"


def test_answers_in_one_language_or_without_ids_are_no_parallel_set() -> None:
    plain = Answer("g", "en", "A mill stands here.", "What stands here?", "A mill")
    alone = Answer("g", "en", "A mill stands here.", "What stands here?", "A mill", "q1", "Mills")
    assert paragraphs([plain, alone]) == []


def test_questions_and_sentences_are_aligned(labelled: Labelled) -> None:
    texts = aligned(paragraphs(labelled.answers)[:1])
    assert len(texts) == 2 + 3
    assert texts[0].versions["en"].startswith("In which year")
    assert texts[0].versions["de"].startswith("In welchem Jahr")
    assert texts[3].versions == {
        "en": "It was founded in 1200 by settlers.", "de": "Gegründet wurde sie 1200 von Siedlern."
    }  # fmt: skip


def test_answers_are_wrong_where_marked_and_held_against_the_other_language(labelled: Labelled) -> None:
    found = paragraphs(labelled.answers)
    right = {(a.question, fold(a.text)) for p in found for answers in p.versions.values() for a in answers}
    made = list(answers_across(found, Random(1)))
    assert len(made) == 4 * TOWNS
    across = [e for e in made if e.evidence_language is not None]
    assert 0.8 < len(across) / len(made) < 1
    assert all(e.evidence_language != e.language for e in across)
    assert all(("Fluss" in e.passages[0]) == ((e.evidence_language or e.language) == "de") for e in made)
    for example in made:
        texts = [fold(example.response[m.start : m.end]) for m in example.marks]
        assert (example.kind == "wrong") == bool(texts)
        assert all((example.question, text) not in right for text in texts)
    assert {"clean", "wrong"} == {e.kind for e in made}


def test_sentences_are_marked_where_they_are_not_the_paragraphs(labelled: Labelled) -> None:
    found = paragraphs(labelled.answers)
    by_group = {p.group: p for p in found}
    made = list(sentences_across(found, counted("en", "de"), Random(1)))
    assert len(made) == 2 * 3 * TOWNS
    assert {e.kind for e in made} == {"clean", "removed", "changed"}
    for example in made:
        own = by_group[example.group].passage(example.language or "")
        for mark in example.marks:
            text = example.response[mark.start : mark.end]
            assert text
            if example.kind == "removed":
                assert text not in own
        assert bool(example.marks) == (example.kind != "clean")


def test_translations_say_what_was_done_to_them(labelled: Labelled) -> None:
    texts = aligned(paragraphs(labelled.answers))
    version_of = {version: other for text in texts for version, other in _both(text.versions)}
    made = list(translations_of(texts, 400, Random(1)))
    assert {e.kind for e in made} == {"clean", "repeated", "detached", "inserted"}
    assert all(e.translation and e.evidence_language != e.language for e in made)
    for example in made:
        right = version_of[example.passages[0]]
        (mark,) = example.marks or (None,)
        if example.kind == "clean":
            assert mark is None
            assert example.response == right
            continue
        assert mark is not None
        assert mark.type == "invented"
        if example.kind == "detached":
            assert (mark.start, mark.end) == (0, len(example.response))
        else:
            assert right.startswith(example.response[: mark.start].rstrip())
        if example.kind == "repeated":
            phrase = example.response[mark.start : mark.end].split()[0]
            assert phrase in example.response[: mark.start]


def _both(versions: dict[str, str]) -> list[tuple[str, str]]:
    one, other = versions.values()
    return [(one, other), (other, one)]


def test_no_texts_give_no_translations() -> None:
    assert list(translations_of([], 5, Random(1))) == []


def test_an_article_is_held_out_in_all_languages_and_forms_alike(labelled: Labelled) -> None:
    made = [row for row in rows(examples_of(labelled, 1)) if row.example.source != "articles"]
    assert {relation_of(row) for row in made} == {"same", "across", "translation"}
    by_group: dict[str, set[bool]] = {}
    for row in made:
        by_group.setdefault(row.example.group, set()).add(is_held_out(row))
    assert set(by_group) == {f"xquad:Town {n}" for n in range(TOWNS)}
    assert all(len(found) == 1 for found in by_group.values())
    assert {group for group, found in by_group.items() if found == {True}} == {
        group for group in by_group if 0.3 <= share_of(group) < 0.4
    }
    assert 0 < sum(found == {True} for found in by_group.values()) < TOWNS / 4


def test_what_benchmarks_test_on_can_be_left_out(labelled: Labelled, tmp_path: Path) -> None:
    write(parallel_samples(TOWNS), tmp_path / "parallel.jsonl")
    own = read_labelled([str(tmp_path / "parallel.jsonl")])
    without_tests(own)
    tests = {f"Town {n}" for n in range(TOWNS) if is_test_article(f"Town {n}")}
    assert 4 < len(tests) < 20
    assert own.left_out == {"answer of a test article": 4 * len(tests)}
    made = examples_of(own, 1)
    assert made
    assert not {example.group.removeprefix("xquad:") for example in made} & tests
    assert not any(f"river {town.removeprefix('Town ')} " in p for town in tests for e in made for p in e.passages)


def test_the_rules_are_those_of_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    questions: Any = import_module("parallel_questions")
    translations: Any = import_module("translation_data")
    texts = [f"Town {n}" for n in range(300)]
    assert list(map(is_test_article, texts)) == list(map(questions.is_test, texts))
    samples = [Sample(text, "A town.", evidence=(Evidence(text),)) for text in texts]
    assert [is_test_source(text) for text in texts] == [translations.part_of(s) == translations.TEST for s in samples]


def test_equal_seeds_make_equal_examples(labelled: Labelled) -> None:
    assert examples_of(labelled, 5) == examples_of(labelled, 5)
    assert examples_of(labelled, 5) != examples_of(labelled, 6)
