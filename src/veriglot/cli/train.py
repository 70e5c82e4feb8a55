"""`veriglot train`: train a detector from labelled data."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _train() -> None:
    """Train a detector from labelled data."""


@app.command("grounding")
def grounding(
    data: Annotated[
        list[str],
        typer.Option(
            metavar="PATH",
            help="Labelled samples in any readable format: a file or a folder; repeat it for several.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Folder for the weights and the model card; made if absent.",
            show_default=False,
        ),
    ],
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            show_default=False,
            help="Seed of everything that is drawn; equal seeds and data give equal weights. Default: 1.",
        ),
    ] = 1,
    encoder: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it at run time
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="ONNX file of the sentence encoder that word vectors are distilled from."
            " Default: the vectors that are installed.",
        ),
    ] = None,
    epochs: Annotated[
        int,
        typer.Option(metavar="N", min=1, show_default=False, help="Passes of the first stage. Default: 6."),
    ] = 6,
) -> None:
    """Train the grounding detector, and write a folder of weights that it loads.

    For example: veriglot train grounding --data silver/ --data checked.jsonl --out weights/
    """
    from pathlib import Path

    from veriglot.train.grounding import train

    train(
        [Path(path) for path in data],
        Path(out),
        seed=seed,
        encoder=Path(encoder) if encoder is not None else None,
        epochs=epochs,
        say=lambda line: typer.echo(line, err=True),
    )
