"""Questions made of gaps: what is left out, where that stands in the other languages, and how it is asked for."""

from __future__ import annotations

import itertools
from random import Random
from typing import TYPE_CHECKING

import pytest
from parallel_data import parallel_samples

from veriglot.datasets.translation.projection import Alignment, LexicalAligner, Side
from veriglot.formats.writer import write
from veriglot.text.segmentation import words
from veriglot.training.grounding.examples import Answer, read_labelled
from veriglot.training.grounding.synthetic_data import Paragraph, count_words, paragraphs
from veriglot.training.reader.pipeline import Gaps, clozes, gaps

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.training.grounding.synthetic_data import Commonness

CHINESE = "北京大学于1898年成立。它在海淀区，有很多学生。"


class Unlinked:
    """Links nothing."""

    signature = "aligner:none"

    def align(self, source: Side, target: Side) -> Alignment:
        return Alignment(source, target, [])


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Paragraph], Commonness]:
    file: Path = tmp_path_factory.mktemp("parallel") / "parallel.jsonl"
    write(parallel_samples(20), file)
    labelled = read_labelled([str(file)])
    return paragraphs(labelled.answers), count_words(labelled)


@pytest.fixture(scope="module")
def left_out(read: tuple[list[Paragraph], Commonness]) -> list[Gaps]:
    found, commonness = read
    return list(gaps(found, LexicalAligner(), commonness, Random(1)))


def test_gaps_stand_once_in_every_language_and_do_not_overlap(left_out: list[Gaps]) -> None:
    across = [gap for gap in left_out if len(gap.places) == 2]
    assert len(across) > 10
    for gap in left_out:
        for tag, places in gap.places.items():
            passage = gap.paragraph.passage(tag)
            assert all(passage.count(passage[start:end]) == 1 for start, end in places.values())
        spans = sorted(gap.places["en"].values())
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_gap_is_of_the_same_thing_in_both_languages(left_out: list[Gaps]) -> None:
    years = []
    for gap in left_out:
        both = gap.places["en"].keys() & gap.places.get("de", {}).keys()
        texts = [tuple(gap.paragraph.passage(tag)[slice(*gap.places[tag][n])] for tag in ("en", "de")) for n in both]
        years += [pair for pair in texts if pair[0].isdigit()]
    assert len(years) > 10
    assert all(english == german for english, german in years)


def test_what_has_no_place_in_a_translation_is_asked_for_in_one_language_and_so_of_no_use(
    read: tuple[list[Paragraph], Commonness],
) -> None:
    found, commonness = read
    alone = list(gaps(found, Unlinked(), commonness, Random(1)))
    assert all(list(gap.places) == ["en"] for gap in alone)
    assert clozes(alone, Random(1)) == []


def test_a_question_is_words_of_the_sentence_without_what_is_left_out(left_out: list[Gaps]) -> None:
    asked = [answer for one in clozes(left_out, Random(2)) for part in one.versions.values() for answer in part]
    assert len(asked) > 20
    for answer in asked:
        there = [answer.passage[start:end] for start, end in words(answer.passage, answer.language)]
        given = [answer.question[start:end] for start, end in words(answer.question, answer.language)]
        assert answer.text in answer.passage
        assert answer.text not in answer.question
        assert len(given) <= 14
        assert set(given) <= {*there, "___"}


def test_versions_of_a_question_share_their_id_and_the_group_of_their_article(left_out: list[Gaps]) -> None:
    for one in clozes(left_out, Random(3)):
        ids = {tag: [answer.question_id for answer in part] for tag, part in one.versions.items()}
        assert set(ids["de"]) <= set(ids["en"])
        assert all(len(set(part)) == len(part) for part in ids.values())
        assert one.group == f"xquad:{one.versions['en'][0].title}"


def test_equal_draws_give_equal_questions_and_others_give_others(left_out: list[Gaps]) -> None:
    assert clozes(left_out, Random(4)) == clozes(left_out, Random(4))
    assert clozes(left_out, Random(4)) != clozes(left_out, Random(5))


def test_a_language_without_spaces_has_none_in_its_questions(read: tuple[list[Paragraph], Commonness]) -> None:
    answer = Answer("g", "zh", CHINESE, "?", "1898", "q", "t")
    other = Answer("g", "en", "Peking University was founded in 1898.", "?", "1898", "q", "t")
    start = CHINESE.index("1898")
    gap = Gaps(Paragraph("g", {"zh": [answer], "en": [other]}), {"zh": {0: (start, start + 4)}, "en": {0: (33, 37)}})
    asked = [one for seed in range(20) for one in clozes([gap], Random(seed))]
    assert asked
    assert all(" " not in one.versions["zh"][0].question for one in asked)
    assert all(one.versions["en"][0].text == "1898" for one in asked)
