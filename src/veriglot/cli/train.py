"""`veriglot train`: train a detector from labelled data."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _train() -> None:
    """Train a detector from labelled data."""


_Data = Annotated[
    list[str],
    typer.Option(
        metavar="PATH",
        help="Labelled samples in any readable format: a file or a folder; repeat it for several.",
        show_default=False,
    ),
]
_Out = Annotated[
    str,
    typer.Option(
        metavar="DIR",
        help="Folder for the weights and the model card; made if absent.",
        show_default=False,
    ),
]
_Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        show_default=False,
        help="Seed of everything that is drawn; equal seeds and data give equal weights. Default: 1.",
    ),
]
_Epochs = Annotated[
    int, typer.Option(metavar="N", min=1, show_default=False, help="Passes of the first stage. Default: 6.")
]
_LeaveOutTests = Annotated[
    bool,
    typer.Option(
        "--leave-out-tests",
        help="Do not learn from parallel articles and translations that Veriglot's benchmarks test on.",
    ),
]


@app.command("grounding")
def grounding(
    data: _Data,
    out: _Out,
    seed: _Seed = 1,
    encoder: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it at run time
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="ONNX file of the sentence encoder that word vectors are distilled from."
            " Default: the vectors that are installed.",
        ),
    ] = None,
    epochs: _Epochs = 6,
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


@app.command("semantic")
def semantic(
    data: _Data,
    out: _Out,
    seed: _Seed = 1,
    encoder: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it at run time
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="ONNX file of the multilingual encoder. Default: the one of `veriglot models get use-multilingual`.",
        ),
    ] = None,
    epochs: _Epochs = 6,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", min=1, show_default=False, help="Processes that encode the texts. Default: 1."),
    ] = 1,
    leave_out_tests: _LeaveOutTests = False,
) -> None:
    """Train the semantic detector, and write a folder of weights that it loads.

    For example: veriglot train semantic --data silver/ --data xquad/ --data translations/ --out weights/ --jobs 4
    """
    import os
    from pathlib import Path

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy comes: small products are slower on more
    from veriglot.train.semantic import train

    train(
        [Path(path) for path in data],
        Path(out),
        seed=seed,
        encoder=Path(encoder) if encoder is not None else None,
        epochs=epochs,
        jobs=jobs,
        tests=not leave_out_tests,
        say=lambda line: typer.echo(line, err=True),
    )


@app.command("reader")
def reader(
    data: _Data,
    out: _Out,
    weights: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it at run time
        typer.Option(
            metavar="DIR",
            show_default=False,
            help="Folder that veriglot train semantic made. Default: the weights that are installed.",
        ),
    ] = None,
    seed: _Seed = 1,
    passes: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, show_default=False, help="Passes, each over responses of its own. Default: 2."
        ),
    ] = 2,
    threads: Annotated[
        int, typer.Option(metavar="N", min=1, show_default=False, help="Threads to compute with. Default: 2.")
    ] = 2,
    leave_out_tests: _LeaveOutTests = False,
) -> None:
    """Give the semantic detector a reader for evidence in other languages, and write weights that it loads.

    For example: veriglot train reader --data xquad/ --out weights/
    """
    from pathlib import Path

    from veriglot.train.reader import train

    train(
        [Path(path) for path in data],
        Path(out),
        weights=Path(weights) if weights is not None else None,
        seed=seed,
        passes=passes,
        tests=not leave_out_tests,
        threads=threads,
        say=lambda line: typer.echo(line, err=True),
    )


@app.command("stacking")
def stacking(
    data: _Data,
    members: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            show_default=False,
            help="Detectors to put together: names joined by + (grounding+semantic), or a TOML file with a table"
            " [[members]] for each.",
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="FILE", show_default=False, help="File for the weights, as JSON; overwritten.")
    ],
    annotator: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it at run time
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Whose labels to learn from: a name, majority or union. Default: as in veriglot evaluate.",
        ),
    ] = None,
    seed: _Seed = 1,
) -> None:
    """Learn how much each of several detectors counts, by script, and show how well that does on unseen texts.

    For example: veriglot train stacking --data dev.jsonl --members grounding+semantic --out stack.json

    Then: veriglot detect answers.jsonl --detector ensemble --set stacking=stack.json
    """
    from veriglot.cli.stacking import carry_out

    carry_out(data, members, out, annotator=annotator, seed=seed)
