"""Systems that are predictions made elsewhere, and systems that are asked about some data alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from absent_words import AbsentWords
from small_bench import BENCH, Listener, ran, samples, written

from veriglot.bench.leaderboard import recorded
from veriglot.cli import main
from veriglot.errors import InputError
from veriglot.records import Evidence, Span, encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from veriglot.bench.results import BenchCell, BenchResults
    from veriglot.records import Prediction

pytestmark = pytest.mark.slow

KEPT = BENCH.replace('scorer = "top-ngram"', 'predictions = ["one.jsonl", "two.jsonl"]\nlabel = "kept"')


def judged() -> list[Prediction]:
    return AbsentWords(words=True).predict(samples())


def kept(folder: Path, predictions: Iterable[Prediction], text: str = KEPT) -> Path:
    """The bench file with predictions in two files beside it."""
    lines = [encode(one) + b"\n" for one in predictions]
    (folder / "one.jsonl").write_bytes(b"".join(lines[::2]))
    (folder / "two.jsonl").write_bytes(b"".join(lines[1::2]))
    return written(folder, text)


def cell(results: BenchResults, level: str = "response", data: str = "animals") -> BenchCell:
    return next(one for one in results.cells if (one.system, one.level, one.data) == ("kept", level, data))


def test_predictions_of_a_detector_have_the_figures_of_the_detector(tmp_path: Path) -> None:
    progress = Listener()
    found = ran(kept(tmp_path, judged()), tmp_path / "run", progress)
    ran(written(tmp_path), tmp_path / "plain", (without := Listener()))
    assert cell(found).status == "done"
    assert without.rows - progress.rows == 40 + 60  # what top-ngram is asked in their place: responses and sentences
    figures = {
        name: [
            (one.level, one.language, one.measure, one.at, one.value, one.low, one.high, one.items)
            for one in found.figures
            if one.system == name
        ]
        for name in ("absent", "kept")
    }
    assert len(figures["kept"]) > 60
    assert figures["kept"] == figures["absent"]
    matrices = {
        name: [(one.language, one.taxonomy, one.counts) for one in found.confusions if one.system == name]
        for name in ("absent", "kept")
    }
    assert matrices["kept"] == matrices["absent"]
    compared = next(one for one in found.comparisons if (one.system, one.level) == ("kept", "response"))
    assert (compared.difference, compared.p) == (0.0, 1.0)


def test_the_record_is_signed_by_the_files(tmp_path: Path) -> None:
    predictions = judged()
    first = next(one for one in ran(kept(tmp_path, predictions), tmp_path / "run").systems if one.name == "kept")
    assert (first.kind, first.made_by, first.description) == ("predictions", "one.jsonl, two.jsonl", "absent-words@1")
    assert "threshold:0.5" in (first.signature or "")
    changed = [msgspec.structs.replace(predictions[0], score=0.123), *predictions[1:]]
    again = ran(kept(tmp_path, changed), tmp_path / "run")
    second = next(one for one in again.systems if one.name == "kept")
    assert first.signature != second.signature
    assert cell(again).signature is not None


def test_ids_that_are_missing_are_coverage(tmp_path: Path) -> None:
    path = kept(tmp_path, [one for one in judged() if not one.id.endswith(("3", "7"))])
    stray = msgspec.structs.replace(judged()[0], id="stray")
    (tmp_path / "two.jsonl").write_bytes((tmp_path / "two.jsonl").read_bytes() + encode(stray) + b"\n")
    found = ran(path, tmp_path / "run", progress := Listener())
    assert "predictions of kept that belong to no sample that was judged: 1" in progress.said
    part = cell(found)
    assert part.status == "partial"
    assert part.coverage < 1.0
    assert all("failed" not in counts for counts in part.statuses.values())
    assert sum(counts.get("missing", 0) for counts in part.statuses.values()) > 0
    assert "no prediction of it in one.jsonl, two.jsonl" in (part.reason or "")
    figure = next(
        one
        for one in found.figures
        if (one.system, one.level, one.measure, one.language) == ("kept", "response", "auroc", "mean")
    )
    assert figure.coverage == pytest.approx(part.coverage)
    assert figure.items == round(part.coverage * found.data[0].items["response"])
    text = KEPT.replace('detector = "absent_words:AbsentWords"', 'scorer = "length-ratio"')
    assert main(["bench", "run", str(written(tmp_path, text)), "-q"]) == 0  # nothing failed


def test_a_span_beyond_its_response_is_an_error_and_the_bench_goes_on(tmp_path: Path) -> None:
    predictions = judged()
    size = len(samples()[4].response)
    predictions[4] = msgspec.structs.replace(predictions[4], spans=(Span(2, size + 1, "invented"),), words=None)
    found = ran(kept(tmp_path, predictions), tmp_path / "run")
    part = cell(found)
    assert part.status == "failed"
    assert f"'en-4' marks up to {size + 1}" in (part.reason or "")
    assert not any(one.system == "kept" for one in found.figures)
    assert any(one.system == "absent" for one in found.figures)
    assert main(["bench", "run", str(tmp_path / "bench.toml"), "-q", "-o", str(tmp_path / "run")]) == 3


def test_a_prediction_of_another_text_is_an_error_and_the_bench_goes_on(tmp_path: Path) -> None:
    predictions = judged()
    span = Span(0, 2, "invented", text="not what stands there")
    predictions[4] = msgspec.structs.replace(predictions[4], spans=(span,), words=None)
    found = ran(kept(tmp_path, predictions), tmp_path / "run")
    part = cell(found)
    assert part.status == "failed"
    assert "the prediction of 'en-4' marks 'not what stands there'" in (part.reason or "")
    assert not any(one.system == "kept" for one in found.figures)


def test_predictions_that_say_nothing_of_their_threshold_and_have_no_words(tmp_path: Path) -> None:
    bare = [msgspec.structs.replace(one, words=None, signature=None) for one in judged()]
    found = ran(kept(tmp_path, bare), tmp_path / "run")
    assert cell(found, "sentence").status == "done"
    values = {
        one.system: one.value
        for one in found.figures
        if (one.level, one.measure, one.at, one.language) == ("word", "f1", "own", "mean")
    }
    assert values["kept"] == values["absent"]


def test_two_predictions_of_one_sample_end_the_run(tmp_path: Path) -> None:
    predictions = judged()
    with pytest.raises(InputError, match="two predictions of 'en-0'"):
        ran(kept(tmp_path, [*predictions, predictions[0]]), tmp_path / "run")
    kept(tmp_path, predictions)
    (tmp_path / "two.jsonl").write_text('{"id": "a"}\n', "utf-8")
    with pytest.raises(InputError, match=r"two\.jsonl"):
        ran(tmp_path / "bench.toml", tmp_path / "run")


def test_a_prediction_stands_for_samples_of_one_data_set(tmp_path: Path) -> None:
    text = KEPT.replace('label = "kept"', 'label = "kept"\ndata = ["animals", "again"]')
    text += '\n[[data]]\nname = "again"\npath = "animals.jsonl"\n'
    found = ran(kept(tmp_path, judged(), text), tmp_path / "run")
    assert cell(found).status == "done"
    assert cell(found, data="again").status == "failed"
    assert "in the data sets animals and again" in (cell(found, data="again").reason or "")


def test_any_system_may_be_asked_about_some_data_alone(tmp_path: Path) -> None:
    more = '\n[[data]]\nname = "again"\npath = "animals.jsonl"\nlanguages = ["en"]\n'
    text = BENCH.replace('scorer = "top-ngram"', 'scorer = "top-ngram"\ndata = ["animals"]') + more
    found = ran(written(tmp_path, text), tmp_path / "run")
    one = next(one for one in found.cells if (one.system, one.data) == ("top-ngram", "again"))
    assert (one.status, one.reason) == ("unsuited", "the bench file asks it about animals alone")
    assert {one.data for one in found.figures if one.system == "top-ngram"} == {"animals"}
    assert {one.data for one in found.figures if one.system == "rouge-l"} == {"animals", "again"}
    every = ran(written(tmp_path, BENCH + more), tmp_path / "run")
    assert every.signature != found.signature
    win = next(one for one in found.wins if (one.system, one.level, one.scope) == ("top-ngram", "response", "all"))
    assert win.played < win.cells


def test_auto_never_learns_of_predictions(tmp_path: Path) -> None:
    rows = [
        msgspec.structs.replace(
            row,
            id=f"{row.id}-{n}",
            response=f"{row.response} {n}.",
            evidence=(Evidence(f"{row.evidence[0].text} {n}."),),  # a passage of its own: another text
        )
        for n in range(4)
        for row in samples()
    ]
    predictions = AbsentWords(words=True).predict(rows)
    kept(tmp_path, predictions)
    found = ran(written(tmp_path, KEPT, rows), tmp_path / "run")
    assert {one.name for one in recorded(found).figures} == {"absent_words:AbsentWords"}
