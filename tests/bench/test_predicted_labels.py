"""`veriglot convert --predictions`: what a detector said, as annotations of a data set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer

from veriglot.cli.convert import convert
from veriglot.detectors.registry import load_detector
from veriglot.errors import VeriglotError
from veriglot.formats.reader import read
from veriglot.formats.writer import write
from veriglot.metrics.reference import reference
from veriglot.records import Annotation, Evidence, Kind, Pointer, Prediction, Sample, Span, Status

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer(add_completion=False)
app.command()(convert)

PERSON = Annotation("anna", Kind.HUMAN, "hat", spans=(Span(0, 2, "hallucination"),))
SAMPLES = (
    Sample("wrong", "It rains in Rome.", evidence=(Evidence("It rains in Lima."),), annotations=(PERSON,)),
    Sample("right", "It rains.", evidence=(Evidence("It rains."),)),
    Sample("bare", "Es regnet.", meta={"unchecked": {"other@1": "failed: no reply"}}),
    Sample("left", "Nobody asked."),
)
MARKED = Span(12, 16, "entity", 0.9, "Rome", (Pointer("p0", 12, 16),))
PREDICTIONS = (
    Prediction("bare", Status.NO_EVIDENCE, "mine@2.0", reason="there is none"),
    Prediction(
        "wrong", Status.SCORED, "mine@2.0", 0.875, (MARKED,), signature="mine@2.0|x:1", notes=("calibration:none",)
    ),
    Prediction("gone", Status.SCORED, "mine@2.0", 0.1, ()),
    Prediction("right", Status.SCORED, "mine@2.0", 0.125, (), signature="mine@2.0|x:1"),
)


def call(*words: object) -> tuple[int, str]:
    try:
        code: int | None = app([str(word) for word in words], standalone_mode=False)
    except VeriglotError as error:
        return error.exit_code, f"{error.message} {error.remedy}"
    return code or 0, ""


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    path = tmp_path / "samples.jsonl"
    write(SAMPLES, path)
    return path


def predicted(folder: Path, predictions: Any = PREDICTIONS, name: str = "marked.jsonl") -> Path:
    write(predictions, folder / name)
    return folder / name


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_was_scored_becomes_an_annotation_with_its_origin(
    samples: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out.{kind}"
    assert call(samples, "--predictions", predicted(tmp_path, name=f"marked.{kind}"), "-o", out)[0] == 0
    found = {one.id: one for one in read(out)}
    assert found["wrong"].annotations == (
        PERSON,
        Annotation(
            "mine@2.0",
            Kind.MODEL,
            "fava",
            spans=(MARKED,),
            ratings={
                "score": 0.875,
                "detector": "mine@2.0",
                "signature": "mine@2.0|x:1",
                "notes": "calibration:none",
            },
        ),
    )
    assert found["right"].annotations[0].spans == (), "looked, and found nothing"
    assert found["bare"].annotations == found["left"].annotations == (), "not checked is not clean"
    assert found["bare"].meta["unchecked"] == {
        "other@1": "failed: no reply", "mine@2.0": "no_evidence: there is none",
    }  # fmt: skip
    said = capsys.readouterr().err
    assert "2 samples got an annotation by 'mine@2.0' (kind model, taxonomy fava)" in said
    assert "Not checked, and without an annotation: 1 sample (no_evidence 1)" in said
    assert "1 samples have no prediction and got no annotation, such as 'left'" in said
    assert "1 predictions belong to no sample, such as 'gone'" in said


def test_two_detectors_are_two_annotators(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marked, once, twice = predicted(tmp_path), tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    call(samples, "--predictions", marked, "-o", once)
    assert call(once, "--predictions", marked, "-o", tmp_path / "no.jsonl")[0] == 3
    assert "has an annotation by 'mine@2.0' already" in capsys.readouterr().err
    words = ("--predicted-by", "second", "--taxonomy", "halluverse", "--json", "-o", twice)
    assert call(once, "--predictions", marked, *words)[0] == 0
    account = json.loads(capsys.readouterr().out)["predictions"]
    assert account == {
        "annotator": "second",
        "taxonomy": "halluverse",
        "joined": 2,
        "unchecked": {"no_evidence": 1},
        "refused": 0,
        "samples_without": {"count": 1, "such_as": ["left"]},
        "predictions_of_no_sample": {"count": 1, "such_as": ["gone"]},
        "lost": {},
    }
    wrong, right, *_ = read(twice)
    assert [one.annotator for one in wrong.annotations] == ["anna", "mine@2.0", "second"]
    assert [one.annotator for one in right.annotations] == ["mine@2.0", "second"]
    held = reference(wrong)
    assert held is not None
    assert held.annotator == "anna", "people's labels stay what is held against"


def test_what_cannot_be_joined_is_refused(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"

    def refused(predictions: list[Prediction], *words: str) -> str:
        return call(samples, "--predictions", predicted(tmp_path, predictions), "-o", out, *words)[1]

    assert "no id is the same" in refused([PREDICTIONS[2]], "--taxonomy", "fava")
    assert "two predictions of 'right'" in refused([PREDICTIONS[3], PREDICTIONS[3]])
    assert "Name it: --taxonomy" in refused([PREDICTIONS[3]])
    other = Prediction("left", Status.SCORED, "other@1", 0.5, (Span(0, 6, "entity"),))
    assert "made by 2 detectors: mine@2.0, other@1" in refused([PREDICTIONS[1], other])
    assert "type in the taxonomy 'support'" in refused([PREDICTIONS[1]], "--taxonomy", "support")
    assert "--predicted-by and --taxonomy are of predictions" in call(samples, "--predicted-by", "x", "-o", out)[1]
    long = Prediction("right", Status.SCORED, "mine@2.0", 0.5, (Span(0, 90, "entity"),))
    assert call(samples, "--predictions", predicted(tmp_path, [PREDICTIONS[1], long]), "-o", out)[0] == 3
    assert "marks up to 90" in capsys.readouterr().err
    assert [one.id for one in read(out)] == ["wrong", "bare", "left"]


def test_the_shipped_detector_annotates_and_is_the_same_again(samples: Path, tmp_path: Path) -> None:
    detector = load_detector("grounding")
    predictions = detector.predict(list(SAMPLES))
    out = tmp_path / "out.jsonl"
    assert call(samples, "--predictions", predicted(tmp_path, predictions), "-o", out)[0] == 0
    for sample, prediction in zip(read(out), predictions, strict=True):
        own = [one for one in sample.annotations if one.kind is Kind.MODEL]
        assert [one.spans for one in own] == ([prediction.spans] if prediction.status is Status.SCORED else [])
        assert {one.ratings["signature"] for one in own} <= {prediction.signature}
