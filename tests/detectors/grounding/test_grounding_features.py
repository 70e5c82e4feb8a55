"""SampleFeatures of a response: their shape, and what more or reordered evidence may do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_lexicon import small_lexicon

from veriglot.detectors.grounding.features import BLOCK, SampleFeatures, extract_features
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from veriglot.detectors.grounding.document import Lexicon

PASSAGES = (
    "The old mill stands by the river. It was built in 1874 by the Becker family.",
    "Roman stone was found near the river in 1,250 places.",
    "的 河 は 1998年 に 東京 で.",
)
RESPONSE = "The Becker family built the mill in 1874. Romans lived near the river. 東京 is far, at 1250 miles."
WORD_LEVEL = (
    "in_evidence",
    "log_count",
    "stem_in_evidence",
    "log_stem_count",
    "number_in_evidence",
    "beginning",
    "ending",
)
MORE_IS_NEVER_LESS = (
    *WORD_LEVEL, "stretch_3", "stretch_4", "stretch_5", "stretch_6", "stretch_8", "stretch_11", "stretch_16",
    "pair_before", "pair_after", "near_pair_before", "skip_pair_after", "near_best", "far_best", "near_with",
    "far_with", "sentence_best", "sentence_with", "like_evidence", "sentence_like_window",
)  # fmt: skip


def column(found: SampleFeatures, name: str) -> np.ndarray:
    return found.values[:, found.names.index(name)]


def features(lexicon: Lexicon, response: str, passages: list[str], question: str | None = None) -> SampleFeatures:
    found = extract_features(response, passages, question, "en", lexicon)
    assert found is not None
    return found


@pytest.mark.fuzz
@settings(max_examples=60)
@given(
    response=st.text(max_size=80) | st.lists(st.sampled_from(RESPONSE.split()), max_size=30).map(" ".join),
    passages=st.lists(st.text(max_size=60) | st.sampled_from(PASSAGES), min_size=1, max_size=4),
    question=st.none() | st.text(max_size=20),
)
def test_features_are_finite_and_fit_their_names(response: str, passages: list[str], question: str | None) -> None:
    lexicon = small_lexicon()
    found = extract_features(response, passages, question, None, lexicon)
    if found is None:
        return
    words = len(found.response)
    assert words > 0
    assert len(found.evidence) > 0
    assert found.values.shape == (words, len(found.names) + lexicon.dimensions)
    assert found.values.dtype == np.float32
    assert np.isfinite(found.values).all()
    assert len(set(found.names)) == len(found.names)
    assert found.sentence[0] == 0
    assert set(np.diff(found.sentence).tolist()) <= {0, 1}
    assert len(found.word_window) == words
    assert len(found.sentence_window) == found.sentence[-1] + 1
    assert (found.word_window < len(found.windows)).all()
    assert (found.sentence_window < len(found.windows)).all()


def test_what_the_evidence_says_is_found(lexicon: Lexicon) -> None:
    found = features(lexicon, RESPONSE, list(PASSAGES))
    text = [RESPONSE[s:e] for s, e in found.response.bounds.tolist()]
    supported = {w for w, hit in zip(text, column(found, "in_evidence"), strict=True) if hit}
    years = {"1874", "1250"}
    assert supported == {"The", "the", "Becker", "family", "built", "mill", "in", "near", "river", "東京"} | years
    numbers = dict(zip(text, column(found, "number_in_evidence"), strict=True))
    assert numbers["1874"] == numbers["1250"] == 1
    assert numbers["mill"] == 0
    assert dict(zip(text, column(found, "beginning"), strict=True))["Romans"] == pytest.approx(4 / 6)
    covered = dict(zip(text, column(found, "stretch_6"), strict=True))
    assert covered["Becker"] == 1
    assert covered["lived"] == pytest.approx(1 / 5)  # `d near`, as in `found near`
    assert covered["miles"] == 0
    stems = dict(zip(text, column(found, "stem_in_evidence"), strict=True))
    assert (stems["Romans"], stems["lived"]) == (1, 0)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_one_more_passage_never_takes_support_away(lexicon: Lexicon, place: int) -> None:
    stranger = "Volcanoes erupt when magma rises; geologists measure 42 tremors daily."
    fewer = features(lexicon, RESPONSE, list(PASSAGES))
    more = features(lexicon, RESPONSE, [*PASSAGES[:place], stranger, *PASSAGES[place:]])
    pairs = {"pair_before", "pair_after", "near_pair_before", "skip_pair_after"}
    for name in MORE_IS_NEVER_LESS:
        if name in pairs and place < 3:
            continue
        assert (column(more, name) >= column(fewer, name) - 1e-6).all(), name


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_the_order_of_passages_does_not_change_the_support_of_words(lexicon: Lexicon, order: tuple[int, ...]) -> None:
    one = features(lexicon, RESPONSE, list(PASSAGES))
    other = features(lexicon, RESPONSE, [PASSAGES[i] for i in order])
    for name in (*WORD_LEVEL, "near_best", "near_with", "far_with", "sentence_best", "like_evidence"):
        assert column(one, name) == pytest.approx(column(other, name), abs=1e-5), name


def test_a_split_passage_supports_as_the_whole(lexicon: Lexicon) -> None:
    whole = " ".join(PASSAGES)
    one, other = features(lexicon, RESPONSE, [whole]), features(lexicon, RESPONSE, list(PASSAGES))
    for name in WORD_LEVEL:
        assert column(one, name) == pytest.approx(column(other, name)), name


def test_the_question_is_seen_apart_from_the_evidence(lexicon: Lexicon) -> None:
    without = features(lexicon, "Volcanoes built the mill.", list(PASSAGES))
    asked = features(lexicon, "Volcanoes built the mill.", list(PASSAGES), "Do volcanoes erupt?")
    assert column(without, "in_question").tolist() == [0, 0, 0, 0]
    assert column(asked, "in_question").tolist() == [1, 0, 0, 0]
    assert column(asked, "has_question").tolist() == [1, 1, 1, 1]
    assert column(asked, "in_evidence").tolist() == column(without, "in_evidence").tolist() == [0, 1, 1, 1]


def test_sentences_beside_a_word_are_those_beside_it(lexicon: Lexicon) -> None:
    found = features(lexicon, "The mill stands. Volcanoes erupt daily. The river!", list(PASSAGES))
    assert found.sentence.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    own, before, after = (column(found, f"sentence_{p}in_evidence") for p in ("", "before_", "after_"))
    assert own.tolist() == [1, 1, 1, 0, 0, 0, 1, 1]
    assert before.tolist() == [0.5] * 3 + [1] * 3 + [0] * 2
    assert after.tolist() == [0] * 3 + [1] * 3 + [0.5] * 2


def test_blocks_of_a_long_response_do_not_show(lexicon: Lexicon) -> None:
    part = RESPONSE + " "
    repeats = 2 + 2 * BLOCK // len(sentences(RESPONSE)) // 6
    short, long = features(lexicon, part * 3, list(PASSAGES)), features(lexicon, part * repeats, list(PASSAGES))
    n = len(short.response) // 3
    assert len(long.response) > 2 * BLOCK
    for name in ("near_with", "sentence_best", "in_best", "like_evidence", "sentence_like_window"):
        tiled = np.tile(column(short, name)[n : 2 * n], repeats)
        inner = slice(n, -n)  # words at the ends have fewer neighbours
        found = column(long, name)[inner]
        away = np.abs(found - tiled[inner]) > 1e-5
        assert away.mean() < (0.06 if name == "near_with" else 1e-9), name  # at the seams neighbours are cut off


@pytest.mark.parametrize(
    ("response", "passages"), [("...", ["word"]), ("", ["word"]), ("word", ["?!", ""]), ("a", [""])]
)
def test_texts_without_words_have_no_features(lexicon: Lexicon, response: str, passages: list[str]) -> None:
    assert extract_features(response, passages, None, "en", lexicon) is None
