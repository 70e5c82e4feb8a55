"""`veriglot detect`: mark what the evidence does not support."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

import typer

from veriglot.cli.calibrating import CALIBRATION_HELP
from veriglot.cli.recipe import DETECTOR_HELP, SET_HELP

__all__ = ["detect"]


def detect(
    inputs: Annotated[
        Optional[list[str]],  # noqa: UP045  # typer reads it at run time
        typer.Argument(
            metavar="[INPUT]...",
            help="Files of samples in any readable format, folders of such files, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Text file that the response is held against; may be repeated, and arguments after it count as more"
            " of them, so that --evidence notes/*.txt works. - is standard input. Default: none.",
        ),
    ] = None,
    evidence_text: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Evidence given in place; may be repeated. Default: none."),
    ] = None,
    response: Annotated[
        str | None, typer.Option(metavar="FILE", help="Text file to judge; - is standard input. Default: none.")
    ] = None,
    response_text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Response to judge, given in place. Default: none.")
    ] = None,
    question: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Question that the response of a pair answers. Default: none.")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="TAG",
            help="Language of responses that state none: BCP 47 tag, code or name (de, deu, German)."
            " Default: identified from the text.",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="Format of the input files. Default: recognised from their content."
        ),
    ] = None,
    detector: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help=DETECTOR_HELP,
        ),
    ] = "grounding",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", show_default=False, help=SET_HELP)
    ] = None,
    calibration: Annotated[str | None, typer.Option(metavar="FILE", help=CALIBRATION_HELP)] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Confidence from which a word is marked, a probability from 0 to 1. Default: the detector's own.",
        ),
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Also give every word with its confidence. Default: spans only.")
    ] = False,
    level: Annotated[
        Literal["fact", "sentence", "response"],
        typer.Option(
            show_default=False,
            help="Also give each atomic fact (clause, apposition, date, number, name) or each sentence with the"
            " probability that it holds anything unsupported. Default: response, which has a score anyway.",
        ),
    ] = "response",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write here: .jsonl, .parquet or .html. A run that was interrupted goes on; one that is finished is"
            " not redone. Default: standard output.",
        ),
    ] = None,
    output_dir: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write one .jsonl file for each input file into this folder. Default: none."),
    ] = None,
    view: Annotated[
        Literal["terminal", "json", "html"] | None,
        typer.Option(
            help="How to show results on standard output; json is one prediction a line. Default: terminal for a pair"
            " on a terminal, json otherwise.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --view json. Default: off.")] = False,
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
    batch_size: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Most rows judged at once. The results do not depend on it. Default: 32 rows.",
        ),
    ] = 32,
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            help="At a row that cannot be read: stop there with what is done, or skip it, write it to"
            " OUTPUT.failed.jsonl and leave with exit code 3 in the end. Default: skip.",
            show_default=False,
        ),
    ] = "skip",
    restart: Annotated[
        bool, typer.Option("--restart", help="Make the output anew, whatever is there. Default: go on with it.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, counts or warnings on standard error. Default: off.")
    ] = False,
) -> None:
    """Mark the spans of responses that their evidence does not support.

    One pair:    veriglot detect --evidence source.txt --response answer.txt

    Many:        veriglot detect answers.jsonl -o marked.jsonl --jobs 0

    Folders:     veriglot detect a.jsonl b.parquet answers/ --output-dir marked/

    A pipe:      produce | veriglot detect - | consume
    """
    from veriglot.cli.detection import Request, carry_out
    from veriglot.errors import UsageError

    if json and view not in {None, "json"}:
        raise UsageError(f"--json and --view {view} exclude each other.")
    request = Request(
        inputs=inputs or [],
        evidence=evidence or [],
        evidence_text=evidence_text or [],
        response=response,
        response_text=response_text,
        question=question,
        language=language,
        format=format_,
        detector=detector,
        settings=tuple(set_ or ()),
        calibration=calibration,
        threshold=threshold,
        words=words,
        level=level,
        output=None if output == "-" else output,
        output_dir=output_dir,
        view="json" if json else view,
        jobs=jobs,
        batch_size=batch_size,
        stop=on_error == "stop",
        restart=restart,
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))
