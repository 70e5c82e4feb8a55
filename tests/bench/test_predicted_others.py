"""`veriglot convert --predictions` where the predictions are of other data, or hold what an annotation cannot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
import typer

from veriglot.cli.convert import convert
from veriglot.errors import VeriglotError
from veriglot.formats.reader import read
from veriglot.formats.writer import write
from veriglot.records import JudgedUnit, Prediction, Sample, Span, Status, Word

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer(add_completion=False)
app.command()(convert)

SAMPLES = (
    Sample("rome", "It rains in Rome.", language="en"),
    Sample("lima", "It rains in Lima.", language="en-GB"),
    Sample("oslo", "It rains in Oslo."),
)


def marked(id_: str, text: str, language: str | None = None) -> Prediction:
    return Prediction(id_, Status.SCORED, "mine@2.0", 0.9, (Span(12, 16, "entity", 0.9, text),), language=language)


FITTING = (marked("rome", "Rome"), marked("lima", "Lima", "eng"), marked("oslo", "Oslo"))


class Place:
    """A folder with samples, predictions and what converting them made."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out.jsonl"
        self.failed = folder / "out.jsonl.failed.jsonl"
        self._samples, self._predictions = folder / "samples.jsonl", folder / "marked.jsonl"

    def convert(
        self, predictions: tuple[Prediction, ...], samples: tuple[Sample, ...] = SAMPLES, *words: str
    ) -> tuple[int, str]:
        write(samples, self._samples)
        write(predictions, self._predictions)
        words = (str(self._samples), "--predictions", str(self._predictions), "-o", str(self.out), *words)
        try:
            return app(list(words), standalone_mode=False) or 0, ""
        except VeriglotError as error:
            return error.exit_code, f"{error.message} {error.remedy}"

    def written(self) -> list[str]:
        return [one.id for one in read(self.out)]

    def kept_failed(self) -> list[str]:
        return [json.loads(json.loads(line)["raw"])["id"] for line in self.failed.read_text("utf-8").splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_mark_of_another_text_is_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    other = (marked("rome", "Bonn"), *FITTING[1:])
    assert place.convert(other)[0] == 3
    assert place.written() == ["lima", "oslo"]
    assert place.kept_failed() == ["rome"], "nothing is lost"
    said = capsys.readouterr().err
    assert "the prediction of 'rome' marks 'Bonn', but its response has 'Rome' at [12, 16)" in said
    assert "With a prediction that does not fit: 1 sample" in said
    code, why = place.convert(other, SAMPLES, "--on-error", "stop")
    assert (code, "marks 'Bonn'" in why) == (1, True)


def test_another_language_is_refused_and_another_name_of_it_is_not(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    french = Prediction("rome", Status.SCORED, "mine@2.0", 0.1, (), language="fr")
    assert place.convert((french, *FITTING[1:]))[0] == 3
    assert place.written() == ["lima", "oslo"]
    assert "was made in fr, but the sample is in en" in capsys.readouterr().err
    serbian = (Sample("a", "Kiša.", language="sr"), Sample("b", "下雨", language="zh-CN"))
    found = tuple(
        Prediction(id_, Status.SCORED, "m@1", 0.1, (), language=tag) for id_, tag in (("a", "sr-Latn"), ("b", "zho"))
    )
    assert place.convert(found, serbian, "--taxonomy", "fava")[0] == 0


def test_words_and_units_beyond_the_response_are_noticed_without_spans(place: Place) -> None:
    for beyond in ({"words": (Word(0, 40, 0.1),)}, {"units": (JudgedUnit(0, 40, "sentence", 0.1),)}):
        other = msgspec.structs.replace(FITTING[0], spans=(), **beyond)
        assert place.convert((other, *FITTING[1:]))[0] == 3
        assert place.written() == ["lima", "oslo"]


@pytest.mark.parametrize(
    ("predictions", "why"),
    [
        ((marked("gone", "Rome"),), "no id is the same"),
        (
            (marked("rome", "Bonn"), marked("lima", "Bonn")),
            "ids that match: 2, but the first of these: the prediction of 'rome' marks",
        ),
    ],
)
def test_nothing_is_written_where_nothing_fits(place: Place, predictions: tuple[Prediction, ...], why: str) -> None:
    place.out.write_text("the work of a year", "utf-8")
    place.failed.write_text("of last time", "utf-8")
    code, said = place.convert(predictions)
    assert code == 1
    assert why in said
    assert place.out.read_text("utf-8") == "the work of a year"
    assert place.failed.read_text("utf-8") == "of last time"


def test_rows_before_the_first_that_fits_keep_their_place(place: Place) -> None:
    assert place.convert((marked("rome", "Bonn"), FITTING[2]))[0] == 3
    assert place.written() == ["lima", "oslo"]
    assert place.kept_failed() == ["rome"]


@pytest.mark.parametrize("held", ["no", ["not", "yet"], {"mine@2.0": "asked later"}])
def test_what_meta_says_already_stays(place: Place, held: object, capsys: pytest.CaptureFixture[str]) -> None:
    samples = (msgspec.structs.replace(SAMPLES[0], meta={"unchecked": held}), *SAMPLES[1:])
    skipped = Prediction("rome", Status.NO_EVIDENCE, "mine@2.0", reason="there is none")
    assert place.convert((skipped, *FITTING[1:]), samples)[0] == 3
    assert place.written() == ["lima", "oslo"]
    assert json.loads(json.loads(place.failed.read_text("utf-8"))["raw"])["meta"] == {"unchecked": held}
    assert "field meta.unchecked" in capsys.readouterr().err
    assert place.convert(FITTING, samples)[0] == 0, "nothing has to be said there"


def test_what_an_annotation_cannot_hold_is_told(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    words, units = (Word(0, 2, 0.1), Word(12, 16, 0.9)), (JudgedUnit(0, 17, "sentence", 0.9),)
    rich = msgspec.structs.replace(FITTING[0], words=words, units=units)
    oslo = Prediction("oslo", Status.FAILED, "mine@2.0", reason="no reply", language="en", notes=("tried:3",))
    assert place.convert((rich, FITTING[1], oslo), SAMPLES, "--json")[0] == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["predictions"]["lost"] == {
        "words of predictions": {"count": 1, "example": "rome"},
        "units of predictions": {"count": 1, "example": "rome"},
        "language of predictions, where the sample states none": {"count": 1, "example": "oslo"},
        "notes and signature of predictions that were not scored": {"count": 1, "example": "oslo"},
    }
    assert "lost: words of predictions, 1 time, such as in 'rome'" in found.err
