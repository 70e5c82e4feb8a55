"""Fitting the weights of several detectors: the better ones get more weight, as measured on held-out texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from told_words import plugged_in, told
from typer.testing import CliRunner

from veriglot.cli.train import app
from veriglot.detectors.ensemble import Ensemble, Member, Stacking
from veriglot.errors import UsageError
from veriglot.formats.writer import write
from veriglot.training.calibration import fit_monotonic_logistic, train_stacking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from veriglot.records import Sample

A = Member("told-words", options={"letter": "a"})
B = Member("told-words", options={"letter": "b"})


@pytest.fixture(autouse=True, scope="module")
def told_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The small detector by name, as a plug-in."""
    with plugged_in(tmp_path_factory.mktemp("site")):
        yield


def answers(count: int, seed: int, *, of_b: float) -> list[Sample]:
    """Responses whose labels follow the sum of two detectors' log odds, the second's times `of_b`."""
    generator = np.random.default_rng(seed)
    found = []
    for place in range(count):
        said = generator.integers(2, 99, size=(15, 2))
        odds = np.log(said / (100 - said)) @ np.array([1.0, of_b])
        bad = generator.random(15) < 1 / (1 + np.exp(-odds))
        text = [f"a{a:02d}b{b:02d}w{place}n{at}" for at, (a, b) in enumerate(said.tolist())]
        wrong = [word for word, is_bad in zip(text, bad.tolist(), strict=True) if is_bad]
        found.append(told(str(place), " ".join(text), wrong=wrong))
    return found


def values(found: Stacking, name: str) -> dict[str, float]:
    rows = [one for one in found.quality if one.name == name and one.script == "all"]
    return {one.what: one.value for one in rows if one.value is not None}


def test_it_finds_the_weights_that_labels_were_drawn_by() -> None:
    found, rows = train_stacking(answers(300, 1, of_b=0.4), [A, B])
    assert len(rows.rows) == 300
    mix = found.words.scripts["Latn"]
    assert (*mix.weights, mix.offset) == pytest.approx((1.0, 0.4, 0.0), abs=0.12)
    precision = values(found, "average_precision")
    assert precision["stack"] > max(precision["told-a@1"], precision["told-b@1"])
    assert values(found, "ece")["stack"] < 0.03 < values(found, "ece")["mean"]


def test_one_that_only_misleads_has_no_say() -> None:
    found, _ = train_stacking(answers(200, 2, of_b=-0.6), [A, B])
    mix = found.words.default
    assert mix.weights[1] == 0.0
    assert mix.weights[0] > 0.5


def test_on_noise_no_figure_is_better_than_chance() -> None:
    """Reported measures are from held-out texts: with random labels the stack is no better than chance."""
    generator = np.random.default_rng(3)
    noise = []
    for one in answers(400, 3, of_b=1.0):
        words = one.response.split()
        noise.append(told(one.id, one.response, wrong=[word for word in words if generator.random() < 0.5]))
    found, _ = train_stacking(noise, [A, B])
    assert values(found, "auroc")["stack"] == pytest.approx(0.5, abs=0.04)


def test_what_one_does_not_score_is_left_out_and_counted() -> None:
    samples = answers(60, 4, of_b=1.0)
    samples[3] = msgspec.structs.replace(samples[3], evidence=())
    found, rows = train_stacking(samples, [A, B])
    assert rows.left_out == {"no_evidence": 1}
    assert found.quality[0].texts == 59
    with pytest.raises(UsageError, match="but there are 5"):
        train_stacking(samples[4:9], [A, B])


def test_spans_alone_can_be_weighed() -> None:
    alone = Member("told-words", options={"letter": "b", "spans_alone": True})
    found, _ = train_stacking(answers(200, 5, of_b=1.0), [A, alone])
    assert [one.source for one in found.members] == ["words", "spans"]
    assert min(found.words.default.weights) > 0.3
    assert set(values(found, "auroc")) == {"told-a@1", "stack"}, "spans alone have no ranking of words, so no mean"


def test_no_weight_is_negative() -> None:
    generator = np.random.default_rng(6)
    features = np.column_stack([generator.normal(size=(400, 3)), np.ones(400)])
    targets = (generator.random(400) < 1 / (1 + np.exp(-(features @ [1.0, -1.0, 0.5, -0.3])))).astype(float)
    found = fit_monotonic_logistic(features, targets, np.ones(400))
    assert found[1] == 0.0
    assert found[0] > 0.5
    assert found[2] > 0.2
    assert found[3] < 0.0, "the constant may be"


def test_the_command_writes_what_the_detector_reads(tmp_path: Path) -> None:
    data, plan, out = tmp_path / "dev.jsonl", tmp_path / "plan.toml", tmp_path / "stack.json"
    write(answers(80, 7, of_b=0.5), data)
    plan.write_text(
        '[[members]]\ndetector = "told-words"\noptions = { letter = "a" }\n'
        '[[members]]\ndetector = "told-words"\noptions = { letter = "b" }\n', "utf-8"
    )  # fmt: skip
    done = CliRunner().invoke(app, ["stacking", str(data), "--members", str(plan), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "told-a@1" in done.output
    found = Stacking.read(out)
    detector = Ensemble(stacking=str(out))
    assert detector.threshold == found.threshold
    (judged,) = detector.predict([told("one", "a90b90 a10b10 a95b95")])
    assert [span.text for span in judged.spans or ()] == ["a90b90", "a95b95"]
