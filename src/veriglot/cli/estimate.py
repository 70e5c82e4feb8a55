"""`veriglot estimate`: from predictions and an error profile to rates."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from veriglot.cli.command import Help, command
from veriglot.cli.options import OUTPUT_FORMAT, Annotator, Json, Language, OptionalUnit, Quiet, Seed

__all__ = ["estimate"]


@command
def estimate(
    predictions: Annotated[
        str, typer.Argument(help="Predictions of one detector: JSON lines or Parquet; - is standard input.")
    ],
    *,
    samples: Annotated[
        list[str],
        typer.Option(
            "--samples",
            metavar="FILE",
            help="Samples that the predictions are of: a file in any readable format, or a folder; may be repeated."
            " `generator.name` says whose responses they are, `meta.query` which of them answer one query.",
        ),
    ],
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="Error profile of the detector, as `veriglot evaluate -o` writes it. Default: none, which only raw"
            " and ppi can do without.",
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            "--estimator",
            metavar="NAME",
            help="label-shift, paper, raw, em or ppi; may be repeated. Default: label-shift, or ppi with --labels.",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="Labelled samples by the ids of some of the responses, drawn at random, for ppi; may be repeated."
            " Default: none.",
        ),
    ] = None,
    annotator: Annotated[Annotator, Help("Default: the only annotator's.")] = None,
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
            "--plan",
            metavar="SHARE",
            help="Instead of rates, say how many responses or how many labels it would take for intervals of at most"
            " this share to either side, above 0 and below 1 (such as 0.01). Default: no plan.",
        ),
    ] = None,
    unit: Annotated[OptionalUnit, Help("Default: the profile's, or word.")] = None,
    confidence: Annotated[
        float,
        typer.Option("--confidence", metavar="P", help="Level of the intervals, between 0 and 1. Default: 0.95."),
    ] = 0.95,
    seed: Annotated[Seed, Help("Default: 0.")] = 0,
    draws: Annotated[
        int,
        typer.Option("--draws", metavar="N", min=100, help="Number of draws behind the intervals. Default: 4000."),
    ] = 4000,
    language: Annotated[Language, Help("Default: the one that was detected.")] = None,
    to: Annotated[Literal["table", "json", "csv"] | None, OUTPUT_FORMAT, Help("Default: table.")] = None,
    json: Annotated[Json, Help("The same as --to json. Default: off.")] = False,
    quiet: Quiet = False,
) -> None:
    """Estimate how often models hallucinate, per model and language, with intervals.

    veriglot detect answers.jsonl -o marked.jsonl --words

    veriglot evaluate labelled.jsonl -o profile.json

    veriglot estimate marked.jsonl --samples answers.jsonl --profile profile.json

    A rate is the share of units that the evidence does not support. Where the data cannot support a number, its status
    is `unreliable` and the reason says why.
    """
    from veriglot.cli.estimation import Request, carry_out
    from veriglot.errors import UsageError

    if json and to not in {None, "json"}:
        raise UsageError(f"--json and --to {to} exclude each other.")
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
        form="json" if json else to or "table",
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))
