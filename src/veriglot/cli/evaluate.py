"""`veriglot evaluate`: measure a detector against labels."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from veriglot.cli.calibrating import CALIBRATE_HELP, CALIBRATION_HELP, CURVE_HELP
from veriglot.cli.recipe import DETECTOR_HELP, SET_HELP

__all__ = ["evaluate"]


def evaluate(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Labelled samples in any readable format: files, folders, or - for standard input; or counts that"
            " --counts wrote, for other figures without asking the detector again.",
            show_default=False,
        ),
    ],
    detector: Annotated[
        str,
        typer.Option(metavar="NAME", help=DETECTOR_HELP),
    ] = "grounding",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", show_default=False, help=SET_HELP)
    ] = None,
    calibration: Annotated[str | None, typer.Option(metavar="FILE", help=CALIBRATION_HELP)] = None,
    calibrate: Annotated[str | None, typer.Option(metavar="FILE", help=CALIBRATE_HELP)] = None,
    curve: Annotated[Literal["platt", "isotonic"], typer.Option(help=CURVE_HELP, show_default=False)] = "platt",
    predictions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Measure these predictions, joined by id, and ask no detector. Default: none."
        ),
    ] = None,
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT",
            help="What is counted: char, word, or hf:TOKENIZER (a tokenizer.json or a hub name). Default: word.",
        ),
    ] = "word",
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Confidence from which a word is marked, a probability from 0 to 1. Default: the detector's own, or"
            " the one that made the predictions.",
        ),
    ] = None,
    annotator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Whose labels to hold against: a name, majority or union. Default: the one person's, or gold, or the"
            " majority of people, or else the one model's.",
        ),
    ] = None,
    taxonomy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Taxonomy to compare types in. Default: the data's, where types lead to it."),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL",
            help="Give only figures of this level: unit, category, type, span, char, fact, sentence or response; may be"
            " repeated. Default: all.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the bootstrap. Default: 1.")] = 1,
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Bootstrap resamples of whole texts; 0 gives no intervals. Default: 1000."
        ),
    ] = 1000,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the error profile here, as JSON. Default: none."),
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the counts of every response here, as JSON. Default: none."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print every figure as JSON instead of tables. Default: tables.")
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="TAG",
            help="Language of responses that state none: BCP 47 tag, code or name (de, deu, German)."
            " Default: what the detector identifies.",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Format of the data. Default: recognised from its content."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=0,
            help="Worker processes; 0 is one for each core. The results do not depend on it."
            " Default: 0, and 1 for less than 1 MiB of input.",
        ),
    ] = None,
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            help="At a row that cannot be read: stop, or skip it, write it to FILE.failed.jsonl beside the profile (or"
            " the counts) and leave with exit code 3 in the end. Default: skip.",
        ),
    ] = "skip",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, counts or warnings on standard error. Default: off.")
    ] = False,
) -> None:
    """Measure a detector against labels: figures with 95% intervals, and the error profile.

    A detector:     veriglot evaluate gold.jsonl --detector grounding -o profile.json

    Predictions:    veriglot evaluate gold.jsonl --predictions marked.jsonl --unit char

    Calibrate:      veriglot evaluate mine.jsonl --calibrate mine.json, then --calibration mine.json

    Once more:      veriglot evaluate gold.jsonl --counts c.json && veriglot evaluate c.json --seed 2

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
        levels=tuple(level) if level else None,
        seed=seed,
        resamples=resamples,
        output=output,
        counts=counts,
        json=json,
        language=language,
        format=format_,
        jobs=jobs,
        stop=on_error == "stop",
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))
