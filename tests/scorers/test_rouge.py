"""ROUGE: equal to independent implementations where they apply, and right where they give zeros."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer

from veriglot.errors import UsageError
from veriglot.records import Direction, Evidence, Sample, Score, Scorer, Status
from veriglot.scorers.registry import load_scorer
from veriglot.scorers.rouge import longest_common_subsequence, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

NAMES = {"rouge-1": "rouge1", "rouge-2": "rouge2", "rouge-l": "rougeL"}
ENGLISH_WORDS = st.text("abcé -'.,1\n", max_size=80)


class OurWords(Tokenizer):
    """Our words for the reference implementation, so that only the counting is compared."""

    def tokenize(self, text: str) -> list[str]:
        return list(tokens(text))


def score_of(name: str, response: str, *evidence: str, language: str | None = None, **options: Any) -> Score:
    sample = Sample(id="1", response=response, language=language, evidence=tuple(Evidence(text) for text in evidence))
    (score,) = load_scorer(name, **options).score([sample])
    return score


def three(score: Score) -> tuple[float, float, float]:
    return score.parts["precision"], score.parts["recall"], score.parts["f1"]


@pytest.mark.parametrize("name", NAMES)
@given(response=ENGLISH_WORDS, evidence=ENGLISH_WORDS.filter(str.strip))
def test_counting_equals_rouge_score(name: str, response: str, evidence: str) -> None:
    theirs = RougeScorer([NAMES[name]], tokenizer=OurWords()).score(evidence, response)[NAMES[name]]
    ours = three(score_of(name, response, evidence, stopwords=False))
    assert ours == pytest.approx((theirs.precision, theirs.recall, theirs.fmeasure), abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@given(response=st.text(max_size=60), evidence=st.text(max_size=60).filter(str.strip))
def test_paper_mode_equals_rouge_score_on_any_text(name: str, response: str, evidence: str) -> None:
    theirs = RougeScorer([NAMES[name]], use_stemmer=False).score(evidence, response)[NAMES[name]]
    ours = three(score_of(name, response, evidence, mode="paper", stopwords=False))
    assert ours == pytest.approx((theirs.precision, theirs.recall, theirs.fmeasure), abs=1e-9)


LINES = st.lists(st.text("abcdé -'1", max_size=30), min_size=1, max_size=5).map("\n".join)


@pytest.mark.parametrize("mode", ["unicode", "paper"])
@given(response=LINES, evidence=LINES.filter(str.strip))
def test_sentence_by_sentence_equals_rouge_score(mode: str, response: str, evidence: str) -> None:
    """The reference implementation takes lines for sentences; a line ends one here too."""
    tokenizer = OurWords() if mode == "unicode" else None
    expected = RougeScorer(["rougeLsum"], tokenizer=tokenizer).score(evidence, response)["rougeLsum"]
    ours = three(score_of("rouge-lsum", response, evidence, mode=mode))
    assert ours == pytest.approx((expected.precision, expected.recall, expected.fmeasure), abs=1e-9)


def test_sentences_of_real_texts_equal_rouge_score(shared_data: Path) -> None:
    from veriglot.text.segmentation import sentences

    for language in ("en", "zh", "ar"):
        for response, evidence in list(xquad(shared_data, language))[:5]:
            lines = ["\n".join(t[start:end] for start, end in sentences(t, language)) for t in (evidence, response)]
            expected = RougeScorer(["rougeLsum"], tokenizer=OurWords()).score(*lines)["rougeLsum"]
            ours = three(score_of("rouge-lsum", response, evidence, language=language))
            assert ours == pytest.approx((expected.precision, expected.recall, expected.fmeasure), abs=1e-9)


def test_sentences_may_change_their_order() -> None:
    evidence, response = "He rowed to the isle. She built a mill.", "She built a mill. He rowed to the isle."
    assert score_of("rouge-lsum", response, evidence, language="en").value == 1.0
    assert score_of("rouge-l", response, evidence, language="en").value == pytest.approx(5 / 9)
    assert score_of("rouge-lsum", "a b. a b.", "a b.", language="en").value == 0.5, "no word counts twice"
    best = score_of("rouge-lsum", "a b.", "c.", "a. b c.", passages="best")
    assert (best.parts["matched"], best.parts["evidence"]) == (2, 3)


def xquad(folder: Path, language: str) -> Iterator[tuple[str, str]]:
    data = json.loads((folder / "xquad" / f"xquad.{language}.json").read_text("utf-8"))["data"]
    texts = [paragraph["context"] for article in data[:6] for paragraph in article["paragraphs"]]
    yield from pairwise(texts)


@pytest.mark.parametrize("name", NAMES)
def test_real_english_equals_rouge_score(name: str, shared_data: Path) -> None:
    """Where no word holds a mark, our words are those of the reference implementation, and both modes meet it."""
    reference = RougeScorer([NAMES[name]], use_stemmer=False)
    for response, evidence in xquad(shared_data, "en"):
        theirs = reference.score(evidence, response)[NAMES[name]]
        expected = pytest.approx((theirs.precision, theirs.recall, theirs.fmeasure), abs=1e-9)
        assert three(score_of(name, response, evidence, mode="paper", stopwords=False)) == expected
        plain = ["".join(c if c.isascii() and c.isalnum() else " " for c in text) for text in (response, evidence)]
        same = reference.score(plain[1], plain[0])[NAMES[name]]
        found = three(score_of(name, *plain, stopwords=False))
        assert found == pytest.approx((same.precision, same.recall, same.fmeasure), abs=1e-9)


@pytest.mark.parametrize(("name", "key"), [("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-l", "rougeL")])
@pytest.mark.parametrize("language", ["en", "vi", "ru", "th", "ar"])
def test_paper_mode_equals_torchmetrics(name: str, key: str, language: str, shared_data: Path) -> None:
    from torchmetrics.functional.text.rouge import rouge_score

    for response, evidence in list(xquad(shared_data, language))[:5]:
        theirs = rouge_score(response, evidence, rouge_keys=(key,))
        expected = tuple(float(theirs[f"{key}_{part}"]) for part in ("precision", "recall", "fmeasure"))
        found = score_of(name, response, evidence, mode="paper", stopwords=False)
        assert three(found) == pytest.approx(expected, abs=1e-6), "single precision over there"


def test_several_references_equal_torchmetrics() -> None:
    from torchmetrics.functional.text.rouge import rouge_score

    response, references = "a b c d", ["a b", "a b x d y z", "q"]
    theirs = rouge_score(response, [references], accumulate="best", rouge_keys=("rouge2",))
    found = score_of("rouge-2", response, *references, mode="paper", passages="best")
    expected = [float(theirs[f"rouge2_{part}"]) for part in ("precision", "recall", "fmeasure")]
    assert three(found) == pytest.approx(expected)
    joined = score_of("rouge-2", response, *references, mode="paper")
    assert joined.parts["evidence"] == 1 + 5 + 0, "no pair crosses from one passage to the next"


@given(st.lists(st.sampled_from("abcd"), max_size=90), st.lists(st.sampled_from("abcd"), max_size=90))
def test_the_longest_common_subsequence_is_that_of_dynamic_programming(first: list[str], second: list[str]) -> None:
    row = [0] * (len(second) + 1)
    for a in first:
        above = row[:]
        for j, b in enumerate(second):
            row[j + 1] = above[j] + 1 if a == b else max(above[j + 1], row[j])
    assert longest_common_subsequence(first, second) == row[-1]


@pytest.mark.parametrize(
    ("language", "response", "evidence"),
    [
        ("th", "แมวนั่งบนเสื่อ", "แมวตัวหนึ่งนั่งอยู่บนเสื่อ"),
        ("fa", "کتاب روی میز است", "کتاب بزرگ روی میز چوبی است"),
        ("ko", "고양이가 매트 위에 앉았다", "그 고양이가 낡은 매트 위에 앉았다"),
        ("uk", "Кіт сидів на килимі", "Старий кіт довго сидів на килимі"),
        ("zh", "猫坐在垫子上", "一只猫坐在旧垫子上"),
        ("hi", "बिल्ली चटाई पर बैठी", "काली बिल्ली पुरानी चटाई पर बैठी"),
    ],
)
def test_every_script_counts(language: str, response: str, evidence: str) -> None:
    for name in ("rouge-1", "rouge-l"):
        assert (score_of(name, response, evidence, language=language).value or 0) > 0.7
        assert score_of(name, response, evidence, language=language, mode="paper").value == 0.0


def test_ways_of_writing_make_no_difference() -> None:
    pairs = [
        ("Việt", "Việt"),
        ("ＡＢＣ １２", "abc 12"),
        ("漢語", "汉语"),
        ("كتاب", "كِتَاب"),
        ("١٢", "12"),
        ("café", "CAFÉ"),
    ]
    for response, evidence in pairs:
        assert score_of("rouge-l", response, evidence, value="f1").value == 1.0, (response, evidence)
    assert score_of("rouge-l", "cafe", "café").value == 0.0, "but accents do"


def test_stop_words_are_left_out_of_rouge_1() -> None:
    with_them = score_of("rouge-1", "the cat of the king", "the dog of the queen", language="en", stopwords=False)
    without = score_of("rouge-1", "the cat of the king", "the dog of the queen", language="en")
    assert (with_them.value, without.value) == (0.6, 0.0)
    assert without.parts["stop_list"] == 1.0
    own = score_of("rouge-1", "the cat of the king", "the dog of the queen", stopwords=["OF"])
    assert own.parts["response"] == 4
    signatures = {load_scorer("rouge-1", stopwords=words).signature for words in (["of"], ["the"], ["the", "of"])}
    assert len(signatures) == 3, "equally many words are not the same words"
    assert load_scorer("rouge-1", stopwords=["of", "the"]).signature in signatures
    paper = score_of("rouge-1", "Für die Katze", "für den Hund", language="de", mode="paper")
    assert (paper.parts["response"], paper.parts["evidence"]) == (1, 1), "Katze and Hund; no f and r of für"
    none = score_of("rouge-1", "Cherokee is ᏣᎳᎩ", "ᏣᎳᎩ", language="chr")
    assert none.parts["stop_list"] == 0.0


def test_values_and_settings() -> None:
    for which, expected in (("precision", 2 / 3), ("recall", 0.5), ("f1", 4 / 7)):
        found = score_of("rouge-l", "a b c", "a x b y", value=which)
        assert found.value == pytest.approx(expected)
        assert f"value:{which}" in (found.signature or "")
    for wrong in ({"value": "fmeasure"}, {"mode": "ascii"}, {"passages": "all"}, {"stopwords": "the"}):
        with pytest.raises(UsageError):
            load_scorer("rouge-1", **wrong)
    scorer = load_scorer("rouge-2")
    assert isinstance(scorer, Scorer)
    assert scorer.direction is Direction.HIGHER_IS_BETTER


def test_what_shares_nothing_is_zero_and_what_has_no_evidence_no_number() -> None:
    assert score_of("rouge-l", "", "a b").value == 0.0
    assert score_of("rouge-2", "a", "a").value == 0.0, "one word makes no pair"
    assert score_of("rouge-l", "a", " ").status is Status.NO_EVIDENCE
    assert score_of("rouge-l", "a \ud800 b", "a b").value == 1.0, "lone surrogates are no words"


def test_long_evidence_is_not_cut() -> None:
    words = [f"w{i}" for i in range(100_000)]
    evidence = " ".join(words)
    assert score_of("rouge-l", "w99990 w99995 w99999", evidence).value == 1.0
    assert math.isclose(score_of("rouge-l", "w99999 w5", evidence, value="precision").value or 0, 0.5)
