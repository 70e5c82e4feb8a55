"""`veriglot bench record`: what the detector `auto` is to know of a bench."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # typer reads it at run time
from typing import Annotated, Literal

import typer

__all__ = ["record"]


def record(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", show_default=False, help="Folder of `veriglot bench run`, or results.json.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Where the figures go, as JSON.")
    ],
    level: Annotated[
        Literal["word", "sentence", "response"],
        typer.Option(show_default=False, help="Level of the figures: word, sentence or response. Default: word."),
    ] = "word",
    measure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Measure to choose by, of which more is better. Default: auc_pr_nonfactual.",
        ),
    ] = "auc_pr_nonfactual",
) -> None:
    """Keep the figures of detectors by language, for the detector auto to choose by.

    For example: veriglot bench record runs/mine -o figures.json

    Then: veriglot detect answers.jsonl --detector auto --set figures=figures.json
    """
    import msgspec

    from veriglot.bench.recording import recorded
    from veriglot.bench.results import read_results
    from veriglot.run.manifest import write_whole

    path = run / "results.json" if run.is_dir() else run
    found = recorded(read_results(path), level=level, measure=measure)
    write_whole(output, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    detectors = ", ".join(known.name for known in found.detectors())
    languages = {language for language, _ in found.places()}
    typer.echo(f"{len(found.figures)} figures of {detectors}, in {len(languages)} languages: {output}", err=True)
