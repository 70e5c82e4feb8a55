"""Spans of real texts in a language made by rule, in which the position of every word is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pseudo import DictionaryAligner, pseudo

from veriglot import read
from veriglot.datasets.translation.projection import best_of, project, side_of
from veriglot.datasets.translation.translators import Unfit, add_markers, remove_markers

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Sample

LANGUAGES = {"arabic": "ar", "chinese": "zh-Hans", "german": "de", "russian": "ru", "turkish": "tr"}


def marks_of(sample: Sample) -> list[tuple[int, int]]:
    """The gold spans of a sample in whole words, without those that share a word with an earlier one."""
    words = side_of(sample.response, sample.language or "").words
    used: set[int] = set()
    marks = []
    gold = next(layer for layer in sample.annotations if layer.annotator == "gold")
    for span in gold.spans or ():
        inside = [n for n, (start, end) in enumerate(words) if start < span.end and span.start < end]
        if inside and not used & set(inside):
            used |= set(inside)
            marks.append((words[inside[0]][0], words[inside[-1]][1]))
    return sorted(marks)


@pytest.mark.parametrize("spaced", [True, False], ids=["spaces", "no-spaces"])
@pytest.mark.parametrize("folder", sorted(LANGUAGES))
def test_spans_of_gold_text_come_back_exactly_with_all_strategies(shared_data: Path, folder: str, spaced: bool) -> None:
    tag = LANGUAGES[folder]
    target = "eo" if spaced else "zh-Hans" if tag != "zh-Hans" else "ja"
    asked = 0
    for number, sample in enumerate(read(shared_data / "mfava" / "gold_dev" / folder)):
        if number >= 20:
            break
        marks = marks_of(sample)
        made = pseudo(sample.response, tag, marks, spaced=spaced, seed=number)
        sent = add_markers(made.text, made.spans)
        assert isinstance(sent, str)
        back = remove_markers(sent, len(marks))
        assert not isinstance(back, Unfit)
        parts = {mark: made.text[start:end] for mark, (start, end) in zip(marks, made.spans, strict=True)}
        places = best_of(
            side_of(sample.response, tag),
            side_of(back[0], target),
            marks,
            tagged=back[1],
            apart=parts,
            aligner=DictionaryAligner(made.dictionary, spaced=spaced),
        )
        assert [place.parts if place else None for place in places] == [(span,) for span in made.spans]
        asked += len(marks)
    assert asked > 20


@pytest.mark.parametrize("spaced", [True, False], ids=["spaces", "no-spaces"])
@pytest.mark.parametrize("folder", sorted(LANGUAGES))
def test_spans_of_gold_text_come_back_by_alignment(shared_data: Path, folder: str, spaced: bool) -> None:
    """Spans without an edge word that occurs elsewhere in the same context."""
    tag = LANGUAGES[folder]
    target = "eo" if spaced else "zh-Hans" if tag != "zh-Hans" else "ja"
    right = asked = 0
    for number, sample in enumerate(read(shared_data / "mfava" / "gold_dev" / folder)):
        if number >= 20:
            break
        marks = marks_of(sample)
        made = pseudo(sample.response, tag, marks, spaced=spaced, seed=number)
        aligner = DictionaryAligner(made.dictionary, spaced=spaced)
        aligned = aligner.align(side_of(sample.response, tag), side_of(made.text, target))
        for mark, place in zip(marks, made.spans, strict=True):
            found = project(*aligned, mark)
            asked += 1
            right += found is not None and found[0] == (place,)
    assert asked > 20
    assert right / asked >= 0.9, f"{right} of {asked}"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Sie wurde 1879 eröffnet.", "markers_lost"),
        ("Sie wurde <1>1879 eröffnet.", "markers_lost"),
        ("Sie <1>wurde</1> <1>1879</1> eröffnet.", "markers_added"),
        ("Sie wurde <1>1879</1> <2>eröffnet</2>.", "markers_added"),
        ("Sie wurde </1>1879<1> eröffnet.", "markers_unpaired"),
        ("Sie wurde 1879 <1></1> eröffnet.", "markers_empty"),
    ],
)
def test_markers_that_did_not_come_back_whole_are_refused(reply: str, reason: str) -> None:
    found = remove_markers(reply, 1)
    assert getattr(found, "reason", None) == reason


@pytest.mark.parametrize(
    "reply",
    [
        "Sie wurde <1>1879</1> eröffnet.",
        "Sie wurde < 1 > 1879 </ 1 > eröffnet.",
        "Sie wurde ＜1＞1879＜／1＞ eröffnet.",
        "Sie wurde &lt;1&gt;1879&lt;/1&gt; eröffnet.",
        "Sie wurde <١>1879</١> eröffnet.",
    ],
)
def test_markers_are_read_with_patience(reply: str) -> None:
    found = remove_markers(reply, 1)
    assert found == ("Sie wurde 1879 eröffnet.", ((10, 14),))


def test_nested_and_crossing_marks_go_there_and_back() -> None:
    text = "one two three four"
    marks = [(0, 7), (4, 13), (4, 7), (0, 18)]
    sent = add_markers(text, marks)
    assert isinstance(sent, str)
    assert remove_markers(sent, len(marks)) == (text, tuple(marks))
