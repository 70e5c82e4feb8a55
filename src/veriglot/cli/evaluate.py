"""`veriglot evaluate`: measure a detector against labels."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import (
    Annotator,
    CalibrationFile,
    DetectorName,
    DetectorSettings,
    InputFormat,
    Json,
    Language,
    OptionalOutput,
    OptionalProcesses,
    PredictionsFile,
    Quiet,
    Resamples,
    Seed,
    Threshold,
    Unit,
)

__all__ = ["evaluate"]


@command
def evaluate(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Labelled samples in any readable format: files, folders, or - for standard input; or the counts"
            " of an earlier evaluation, for other figures without asking the detector again.",
            show_default=False,
        ),
    ],
    *,
    detector: DetectorName = "grounding",
    set_: DetectorSettings = None,
    calibration: CalibrationFile = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="FILE",
            help="Fit a calibration of the detector on the data, by script, and write it here, as JSON; it is shown how"
            " much better the confidences are on texts that a fit did not see. Default: none.",
        ),
    ] = None,
    curve: Annotated[
        Literal["platt", "isotonic"],
        Setting(
            "Shape of the calibration: platt (a line of log odds, for some dozens of texts or more) or isotonic (any"
            " rising shape, for some hundreds)."
        ),
    ] = "platt",
    predictions: Annotated[PredictionsFile, Help("No detector is asked. Default: none.")] = None,
    unit: Annotated[Unit, Help("Default: word.")] = "word",
    threshold: Annotated[Threshold, Help("Default: the detector's own, or the one that made the predictions.")] = None,
    annotator: Annotated[
        Annotator,
        Help("Default: the one person's, or gold, or the majority of people, or else the one model's."),
    ] = None,
    taxonomy: Annotated[
        str | None, Setting("Taxonomy to compare types in. Default: the data's, where types lead to it.")
    ] = None,
    levels: Annotated[
        list[str] | None,
        Setting(
            "Give only figures of these levels: unit, category, type, span, char, fact, sentence, response."
            " Default: all."
        ),
    ] = None,
    seed: Annotated[Seed, Help("Default: 1.")] = 1,
    resamples: Annotated[Resamples, Help("Default: 1000.")] = 1000,
    output: Annotated[OptionalOutput, Help("The error profile, as JSON. Default: none.")] = None,
    counts: Annotated[
        str | None, Setting("Write the counts of every response into this file, as JSON. Default: none.")
    ] = None,
    json: Annotated[Json, Help("Every figure. Default: tables.")] = False,
    language: Annotated[Language, Help("Default: what the detector identifies.")] = None,
    format_: InputFormat = None,
    processes: Annotated[OptionalProcesses, Help("Default: 0, and 1 for less than 1 MiB of input.")] = None,
    on_error: Annotated[
        Literal["stop", "skip"],
        Setting(
            "At a row that cannot be read: stop, or skip it, write it to FILE.failed.jsonl beside the profile (or the"
            " counts) and exit with 3 in the end."
        ),
    ] = "skip",
    quiet: Quiet = False,
) -> None:
    """Measure a detector against labels: figures with 95% intervals, and the error profile.

    A detector:     veriglot evaluate gold.jsonl --detector grounding -o profile.json

    Predictions:    veriglot evaluate gold.jsonl --predictions marked.jsonl --unit char

    Calibrate:      veriglot evaluate mine.jsonl --calibrate mine.json, then --calibration mine.json

    Once more:      veriglot evaluate gold.jsonl --config c.toml (counts = "c.json"); veriglot evaluate c.json --seed 2

    Intervals come from a bootstrap that draws whole texts, within each language. Samples without labels, and samples
    that the detector did not score, are in no figure; how many there are is shown.
    """
    from veriglot.cli.evaluation import Request, carry_out

    request = Request(
        data=data,
        detector=detector,
        settings=tuple(set_ or ()),
        calibration=calibration,
        calibrate=calibrate,
        curve=curve,
        predictions=predictions,
        unit=unit,
        threshold=threshold,
        annotator=annotator,
        taxonomy=taxonomy,
        levels=tuple(levels) if levels else None,
        seed=seed,
        resamples=resamples,
        output=output,
        counts=counts,
        json=json,
        language=language,
        format=format_,
        jobs=processes,
        stop=on_error == "stop",
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))
