"""Intervals take five texts: what a bench keeps of figures, wins, comparisons and answers over fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from small_bench import BENCH, difference, ran, samples, written

from json_lines import write_lines
from veriglot.bench.figures import without_unreliable_interval
from veriglot.bench.leaderboard import ThresholdedItems
from veriglot.metrics.estimate import ClusteredEstimate, Resampling, too_few
from veriglot.metrics.measures import Items
from veriglot.report.bench import _ends

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.results import BenchResults
    from veriglot.records import Sample


def run_on(test: list[Sample], folder: Path, *, labelled: bool = True) -> BenchResults:
    """The small bench on these, thresholds tuned on a file of its own."""
    dev = samples(("en",))[10:]
    write_lines(folder / "dev.jsonl", dev)
    text = BENCH.replace("dev_share = 0.4", 'dev = "dev.jsonl"' if labelled else "")
    return ran(written(folder, text, test), folder / "run")


@pytest.mark.parametrize(("texts", "sure"), [(4, False), (6, True)])
def test_a_bench_on_few_texts_keeps_no_interval(texts: int, sure: bool, tmp_path: Path) -> None:
    results = run_on(samples(("en",))[:texts], tmp_path)
    known = [one for one in results.figures if one.value is not None and one.language == "en"]
    known = [one for one in known if ":" not in one.measure]  # of the texts of one type
    assert {one.clusters for one in known} == {texts}
    assert {one.at for one in known} == {"tuned", "own", None}
    assert {"iou", "mcc", "auroc"} <= {one.measure for one in known}
    assert any(one.low is not None for one in known) == sure
    assert any(one.p is not None for one in known) == sure
    assert any(one.low is not None for one in results.wins) == sure
    assert any(one.low is not None or one.p is not None for one in results.comparisons) == sure
    said = f"too few texts for an interval: {texts} texts, and 5 are the fewest"
    assert any(said in (one.reason or "") for one in known) != sure


def test_a_language_of_few_texts_leaves_the_wins_of_all_without_interval(tmp_path: Path) -> None:
    results = run_on([*samples(("en",))[:6], *samples(("de",))[:2]], tmp_path)
    assert {one.language for one in results.figures} == {"en", "de", "mean"}
    assert {one.low for one in results.wins if one.cells == 2} == {None}


@pytest.mark.parametrize(("texts", "sure"), [(4, False), (6, True)])
def test_nor_does_one_without_labels(texts: int, sure: bool, tmp_path: Path) -> None:
    import msgspec

    bare = [msgspec.structs.replace(one, annotations=()) for one in samples(("en",))[:texts]]
    results = run_on(bare, tmp_path, labelled=False)
    assert {one.clusters for one in results.answers} == {texts}
    assert any(one.mean is not None for one in results.answers)
    assert any(one.mean_low is not None for one in results.answers) == sure
    assert any(one.flagged_low is not None for one in results.answers) == sure


def test_a_difference_on_four_texts_is_not_tested() -> None:
    labels = np.array([True, False] * 4)
    one, other = (ThresholdedItems(Items(badness, labels)) for badness in (labels * 1.0, np.arange(8) / 8))
    found = difference(one, other, "auroc", Resampling.of("aabbccdd", resamples=50))
    assert found.difference is not None
    assert (found.low, found.high, found.p) == (None, None, None)
    assert found.reason == "too few texts for an interval and a test: 4 texts, and 5 are the fewest"


def test_reasons_are_kept_beside_that_of_few_texts() -> None:
    told = without_unreliable_interval(ClusteredEstimate(3, 1, 1, None, "all alike", value=0.5, low=0.1, high=0.9))
    assert (told.value, told.low, told.high) == (0.5, None, None)
    assert told.reason == "all alike; too few texts for an interval: 1 text, and 5 are the fewest"
    enough = ClusteredEstimate(9, 1, 5, value=0.5, low=0.1, high=0.9)
    assert without_unreliable_interval(enough) is enough
    shown = ["", "[0.100, 0.900]‡", "[0.100, 0.900]‡", "[0.100, 0.900]"]
    assert [_ends(0.1, 0.9, texts) for texts in (4, 5, 29, 30)] == shown
    assert too_few(5) is None
