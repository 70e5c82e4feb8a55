"""`veriglot estimate`: from predictions and an error profile to rates."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

__all__ = ["estimate"]


def estimate(
    predictions: Annotated[
        str, typer.Argument(help="Predictions of one detector: JSON lines or Parquet; - is standard input.")
    ],
    samples: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="Samples that the predictions are of: a file in any readable format, or a folder; may be repeated."
            " `generator.name` says whose responses they are, `meta.query` which of them answer one query.",
        ),
    ],
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Error profile of the detector, as `veriglot evaluate -o` writes it. Default: none, which only raw"
            " and ppi can do without.",
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="label-shift, paper, raw, em or ppi; may be repeated. Default: label-shift, or ppi with --labels.",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Labelled samples by the ids of some of the responses, drawn at random, for ppi; may be repeated."
            " Default: none.",
        ),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose labels count. Default: the only annotator's.")
    ] = None,
    pooled: Annotated[
        bool,
        typer.Option(
            "--pooled",
            help="In languages that the profile does not hold, or holds fewer than 8 texts of, use its error rates over"
            " all of its languages. Default: such rates are not made, or unreliable.",
        ),
    ] = False,
    by_seed: Annotated[
        bool,
        typer.Option("--by-seed", help="Also give one rate for each seed of the responses. Default: all seeds as one."),
    ] = False,
    plan: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Instead of rates, say how many responses or how many labels it would take for intervals of at most"
            " this share to either side, above 0 and below 1 (such as 0.01). Default: no plan.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="char, word or hf:<tokenizer>. Default: the profile's, or word."),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Level of the intervals, between 0 and 1. Default: 0.95.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draws behind the intervals. Default: 0.")] = 0,
    draws: Annotated[
        int, typer.Option(metavar="N", min=100, help="Number of draws behind the intervals. Default: 4000.")
    ] = 4000,
    language: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Language of samples that state none. Default: the one that was detected."),
    ] = None,
    format_: Annotated[
        Literal["table", "json", "csv"] | None,
        typer.Option("--format", help="How to print the rates. Default: table.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json. Default: off.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No counts or warnings on standard error. Default: off.")
    ] = False,
) -> None:
    """Estimate how often models hallucinate, per model and language, with intervals.

    veriglot detect answers.jsonl -o marked.jsonl --words

    veriglot evaluate labelled.jsonl -o profile.json

    veriglot estimate marked.jsonl --samples answers.jsonl --profile profile.json

    A rate is the share of units that the evidence does not support. Where the data cannot support a number, its status
    is `unreliable` and the reason says why.
    """
    from veriglot.cli.estimating import Request, carry_out
    from veriglot.errors import UsageError

    if json and format_ not in {None, "json"}:
        raise UsageError(f"--json and --format {format_} exclude each other.")
    request = Request(
        predictions=predictions,
        samples=samples,
        profile=profile,
        estimators=tuple(estimator or ()),
        labels=tuple(labels or ()),
        annotator=annotator,
        pooled=pooled,
        by_seed=by_seed,
        plan=plan,
        unit=unit,
        confidence=confidence,
        seed=seed,
        draws=draws,
        language=language,
        form="json" if json else format_ or "table",
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))
