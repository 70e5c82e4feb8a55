"""Twins: every language has all facts of the English file in the same form, and every twin can be drawn."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import minimal_pairs
from veriglot.training.reader import twins

TAGS = twins.languages()
LISTS = ("women", "men", "places", "companies", "works")


def texts_of(kind: str, frame: dict[str, Any]) -> dict[str, list[str]]:
    """The texts of a frame by their use."""
    if kind != "state":
        return {name: frame[name] for name in ("questions", "evidence", "answers")}
    states = {name: [text for state in frame["states"] for text in state[name]] for name in ("evidence", "answers")}
    return {"questions": frame["questions"] + frame["ask"], **states}


def shared(tag: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The facts that are in every language; ids of further ones begin with the language."""
    return {name: frame for name, frame in twins.wordings(tag)["frames"].items() if not name.startswith(f"{tag}-")}


@pytest.mark.parametrize("tag", TAGS)
def test_a_language_says_what_english_does(tag: str) -> None:
    ours, english = twins.wordings(tag), twins.wordings("en")
    assert english.keys() <= ours.keys()
    assert {name: len(ours[name]) for name in LISTS} == {name: len(english[name]) for name in LISTS}
    assert {name: kind for name, (kind, _) in shared(tag).items()} == {
        name: kind for name, (kind, _) in shared("en").items()
    }
    for name, (kind, frame) in ours["frames"].items():
        known = {slot[1] for slot in twins.SLOT.finditer(json.dumps(shared("en").get(name, ("", frame))[1]))}
        for purpose, texts in texts_of(kind, frame).items():
            assert texts
            for text in texts:
                assert {slot[1] for slot in twins.SLOT.finditer(text)} <= known, (name, text)
                assert "[" not in text or purpose == "answers", (name, text)
                assert bool(re.search(r"\[[^\[\]]+\]", text)) == (purpose == "answers"), (name, text)


@pytest.mark.parametrize("tag", TAGS)
def test_states_and_answers_have_their_counterparts(tag: str) -> None:
    english = shared("en")
    for name, (kind, frame) in twins.wordings(tag)["frames"].items():
        if kind == "state":
            assert frame["kind"] in twins.KINDS
            assert name not in english or len(frame["states"]) == len(english[name][1]["states"])
            assert len({len(state["answers"]) for state in frame["states"]}) == 1, name
            for answers in zip(*(state["answers"] for state in frame["states"]), strict=True):
                assert len(set(answers)) == len(answers), (name, answers)
        elif kind == "fact":
            for answer in frame["answers"]:
                letter = twins.SLOT.search(answer, answer.index("["))[1]  # type: ignore[index]
                assert any(f"{{{letter}" in told for told in frame["evidence"]), (name, answer)


@pytest.mark.parametrize("answer_language", [None, "de"])
@pytest.mark.parametrize("tag", TAGS)
def test_twins_differ_where_the_wrong_one_is_marked(tag: str, answer_language: str | None) -> None:
    rng, kinds = Random(1), set()
    for number in range(400):
        world = twins.World(tag, answer_language or tag, rng)
        twin = next(twins.draw_twins(world, held_out=number % 2 == 0))
        kinds.add(twin.kind)
        assert not twin.right.marks
        assert twin.right.text != twin.wrong.text
        assert twin.wrong.marks
        assert all(twin.wrong.text[start:end].strip() for start, end in twin.wrong.marks)
        assert not re.search(r"[\[\]{}]", twin.right.text + twin.wrong.text + twin.question + "".join(twin.evidence))
    assert kinds == set(twins.KINDS)


@pytest.mark.parametrize("tag", TAGS)
def test_cases_mark_what_is_wrong_in_every_shape(tag: str) -> None:
    rng, kinds = Random(2), set()
    for _ in range(80):
        rows = twins.draw_case(tag, rng)
        right, wrong = rows[:2]
        assert right.twin == wrong.twin is not None
        assert right.example.passages == wrong.example.passages
        for row in rows:
            kinds.add(row.example.kind)
            assert bool(row.example.marks) == row.unsupported
            assert all(row.example.response[mark.start : mark.end].strip() for mark in row.example.marks)
    assert {"right", "refusal", "addition", "copy"} <= kinds


def test_no_fact_of_the_benchmark_trains() -> None:
    trained, tested = set(twins.facts("en", held_out=False)), set(twins.facts("en", held_out=True))
    assert not trained & tested
    assert trained | tested == set(twins.wordings("en")["frames"])


def test_a_draw_is_repeated_by_its_seed() -> None:
    assert (
        minimal_pairs.draw("en", 20, seed=3)
        == minimal_pairs.draw("en", 20, seed=3)
        != minimal_pairs.draw("en", 20, seed=4)
    )


def test_a_changed_number_keeps_its_last_digit_where_nouns_depend_on_it() -> None:
    rng = Random(0)
    assert {twins._changed(125, rng, last=False) % 10 for _ in range(50)} == {5}


def test_written_twins_differ_where_the_wrong_one_is_marked() -> None:
    items = [item for held_out in (False, True) for item in twins._written(held_out)]
    rng = Random(0)
    for article, item in items:
        right, wrong, *further = twins._rows_of(article, item, rng)
        assert not right.example.marks
        assert wrong.example.marks
        assert right.twin == wrong.twin is not None
        assert not any(row.unsupported or row.twin for row in further)
        for row in (right, wrong, *further):
            assert not re.search(r"\[\[|\]\]", row.example.response)
        assert all(wrong.example.response[mark.start : mark.end].strip() for mark in wrong.example.marks)


@pytest.mark.parametrize(
    ("question", "lang", "translation"),
    [("Who came?", None, False), ("Wer kam?", "de", False), (None, None, False), (None, "de", True)],
)
def test_what_is_written_in_another_language_without_a_question_is_a_translation(
    question: str | None, lang: str | None, translation: bool
) -> None:
    item = twins._Item("entity", right="A and B", wrong="[[C]] and [[D]]", question=question, other="B, A", lang=lang)
    article = twins._Article("en", "made-1", ("A came, and B.",), (item,))
    rows = twins._rows_of(article, item, Random(1))
    for row in rows:
        example = row.example
        assert (example.question, example.translation) == (question, translation)
        assert (example.language, example.evidence_language) == ((lang, "en") if lang else ("en", None))
    assert [(mark.start, mark.end) for mark in rows[1].example.marks] == [(0, 1), (6, 7)]


def test_written_articles_train_or_are_held_out() -> None:
    training, held_out = ({article.article for article, _ in twins._written(which)} for which in (False, True))
    assert not training & held_out
    assert 0.1 < len(held_out) / len(training | held_out) < 0.3
    drawn = {row.example.group.split(":")[1] for seed in range(50) for row in twins.draw_written(Random(seed))}
    assert drawn <= training
    aside = {row.example.group.split(":")[1] for row in twins.held_out_written(Random(1))}
    assert aside == held_out
