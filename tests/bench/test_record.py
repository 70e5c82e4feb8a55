"""From a real run of a bench to the figures that `auto` chooses by: what is kept, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from typer.testing import CliRunner

from veriglot.bench.leaderboard import recorded
from veriglot.bench.results import BenchData, BenchFigure, BenchResults, BenchSystem
from veriglot.cli.bench import app
from veriglot.detectors.auto import read_recorded
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records import encode

if TYPE_CHECKING:
    from pathlib import Path


def data(name: str, pairs: dict[str, tuple[str, ...]]) -> BenchData:
    return BenchData(
        name=name, levels=("word",), languages={"de": (40, 40)}, pairs=pairs, dev=0, bad_rows=0, unlabelled=0,
        items={}, nonfactual={}, license=None, split="", seen=(), sha256="0" * 64,
    )  # fmt: skip


def figure(system: str = "ours", language: str = "de", value: float | None = 0.61, **parts: object) -> BenchFigure:
    known = {
        "system": system, "data": "answers", "level": "word", "language": language, "measure": "auc_pr_nonfactual",
        "value": value, "low": 0.5, "high": 0.7, "items": 900, "positives": 90, "clusters": 40, "coverage": 1.0,
    }  # fmt: skip
    return msgspec.convert({**known, **parts}, BenchFigure)


def results(*figures: BenchFigure) -> BenchResults:
    return BenchResults(
        title="t", measures={"word": ("auc_pr_nonfactual", "f1")}, rank_by="f1", baseline=None, seed=1, resamples=10,
        correction="holm", data=(data("answers", {"de": ("de",)}), data("texts", {"de": ("de", "en")})),
        systems=(
            BenchSystem("ours", "detector", "grounding", {"words": "true"}, description="grounding@1.0"),
            BenchSystem("gone", "detector", "reader", unavailable="not here"),
            BenchSystem("chooser", "detector", "auto", description="auto@grounding-1.0"),
            BenchSystem("rouge", "scorer", "rouge-l", description="rouge-l@1"),
        ),
        cells=(), figures=figures, thresholds=(), wins=(), comparisons=(), correlations=(), groups={}, notes=(),
        signature="bench:t", version="1",
    )  # fmt: skip


def test_a_figure_is_kept_with_what_made_it() -> None:
    (found,) = recorded(results(figure())).figures
    assert (found.detector, found.name, found.options) == ("grounding@1.0", "grounding", {"words": "true"})
    assert (found.language, found.setting, found.data, found.value) == ("de", "evidence", "answers", 0.61)
    assert (found.items, found.texts) == (900, 40)


def test_translations_are_told_apart() -> None:
    found = recorded(results(figure(), figure(data="texts"))).figures
    assert [one.setting for one in found] == ["evidence", "translation"]


@pytest.mark.parametrize(
    "other",
    [
        figure(seen=True), figure(clusters=19), figure(coverage=0.89), figure(value=None), figure(language="mean"),
        figure(language="und"), figure("rouge"), figure("gone"), figure("chooser"), figure(measure="f1", at="tuned"),
        figure(level="sentence"),
    ],
)  # fmt: skip
def test_what_says_little_or_was_learned_from_is_left_out(other: BenchFigure) -> None:
    assert len(recorded(results(figure(), other)).figures) == 1
    with pytest.raises(UsageError, match="have no auc_pr_nonfactual"):
        recorded(results(other))


def test_a_measure_that_was_not_taken_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="auroc"):
        recorded(results(figure()), measure="auroc")


def test_a_tuned_threshold_is_not_one_of_its_own() -> None:
    both = results(figure(measure="f1", at="tuned", value=0.9), figure(measure="f1", at="own", value=0.4))
    assert [one.value for one in recorded(both, measure="f1").figures] == [0.4]


def test_the_command_writes_what_auto_reads(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(encode(results(figure())))
    out = tmp_path / "figures.json"
    done = CliRunner().invoke(app, ["record", str(tmp_path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert read_recorded(out) == recorded(results(figure()))


@pytest.mark.parametrize("text", ["{", "{}", '{"format": "x", "level": "word"}'])
def test_other_files_are_no_figures(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match="no file of recorded figures"):
        read_recorded(tmp_path / "x.json")
    with pytest.raises(InputError, match="no such file of recorded figures"):
        read_recorded(tmp_path / "y.json")
