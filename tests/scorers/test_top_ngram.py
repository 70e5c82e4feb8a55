"""TopNGram: what repeats, in every script, and what does not count as repetition."""

from __future__ import annotations

import pytest

from veriglot.errors import UsageError
from veriglot.records import Direction, Evidence, Sample, Scorer, Status
from veriglot.scorers.registry import load_scorer
from veriglot.scorers.translation import TopNGram


def scored(response: str, *sources: str, **options: object) -> float:
    sample = Sample(id="1", response=response, evidence=tuple(Evidence(s) for s in sources))
    (score,) = TopNGram(**options).score([sample])  # type: ignore[arg-type]
    assert score.status is Status.SCORED
    assert score.value is not None
    return score.value


def test_counts_by_hand() -> None:
    """`b c a` occurs three times in `a b c a b c a b c a`, and `a b c` and `c a b` too."""
    scorer = TopNGram()
    assert scorer._top(["a b c a b c a b c a"]) == 3
    assert scorer._top(["a a a a"]) == 2
    assert scorer._top(["a b"]) == 0
    assert scorer._top(["a b c", "a b c d"]) == 2, "passages count together"
    assert scorer._top(["a b", "c a", "b c"]) == 0, "but no n-gram crosses from one to the next"
    assert TopNGram(n=1)._top(["A a Ａ b"]) == 3, "case and width make no difference"


@pytest.mark.parametrize(
    ("repeated", "source"),
    [
        ("the old mill", "Die alte Mühle steht."),
        ("旧磨坊在河边。", "The old mill stands by the river."),
        ("古い水車小屋があります。", "The old mill stands by the river."),
        ("โรงสีเก่าริมแม่น้ำ ", "The old mill stands by the river."),
        ("الطاحونة القديمة هنا", "The old mill stands by the river."),
        ("पुरानी चक्की यहाँ", "The old mill stands by the river."),
        ("낡은 방앗간이 여기", "The old mill stands by the river."),
    ],
)
def test_oscillation_is_found_in_every_script(repeated: str, source: str) -> None:
    assert scored(" ".join([repeated] * 2), source) == 0.0, "twice is one more than the threshold allows"
    assert scored(" ".join([repeated] * 3), source) == 1.0
    assert scored(" ".join([repeated] * 3), " ".join([source] * 3)) == 0.0, "the source repeats itself as often"


def test_the_threshold_is_at_least_t_more() -> None:
    four = "one two three " * 4
    assert scored(four, "one two three " * 2) == 1.0
    assert scored(four, "one two three " * 3) == 0.0
    assert scored(four, "one two three " * 3, t=1) == 1.0
    assert scored(four, "x", graded=True) == 4.0
    assert scored("x", four, graded=True) == -4.0


def test_repeated_punctuation_is_no_repetition_of_words() -> None:
    assert scored("No . . . . . . . !", "Nein.") == 0.0


def test_what_has_no_source_is_not_scored() -> None:
    scorer = load_scorer("top-ngram")
    assert isinstance(scorer, Scorer)
    assert scorer.direction is Direction.HIGHER_IS_WORSE
    bare, blank = scorer.score([Sample(id="1", response="a"), Sample(id="2", response="a", evidence=(Evidence(" "),))])
    for score in (bare, blank):
        assert (score.status, score.value) == (Status.NO_EVIDENCE, None)
        assert score.reason


def test_batches_change_nothing() -> None:
    scorer = TopNGram()
    samples = [Sample(id=str(i), response="a b c " * i, evidence=(Evidence("a b c"),)) for i in range(5)]
    assert scorer.score(samples) == [scorer.score([sample])[0] for sample in samples]
    assert [score.id for score in scorer.score(samples)] == list("01234")


@pytest.mark.parametrize("options", [{"n": 0}, {"t": 0}])
def test_settings_that_make_no_sense(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        TopNGram(**options)  # type: ignore[arg-type]
