"""`veriglot train`: train detectors, readers and the weights of ensembles from labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veriglot.cli.command import Help, command
from veriglot.cli.detectors import show_measured
from veriglot.cli.inputs import find_inputs, rows_of
from veriglot.cli.options import Annotator, Encoder, Epochs, LeaveOutTests, Output, Processes, Seed
from veriglot.cli.progress import Account
from veriglot.detectors.ensemble import read_members
from veriglot.records import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.cli.inputs import Input

__all__ = ["app"]


app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _train() -> None:
    """Train a detector from labelled data."""


_Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Labelled samples in any readable format: files or folders.",
        show_default=False,
    ),
]
_Seed = Annotated[Seed, Help("Equal seeds and data give equal weights. Default: 1.")]
_Weights = Annotated[Output, Help("Folder for the weights and the model card; made if absent.")]


@app.command("grounding")
@command
def grounding(
    data: _Data,
    *,
    output: _Weights,
    seed: _Seed = 1,
    encoder: Annotated[
        Encoder, Help("Word vectors are distilled from it. Default: the vectors that are installed.")
    ] = None,
    epochs: Annotated[Epochs, Help("Of the first stage. Default: 6.")] = 6,
) -> None:
    """Train the grounding detector, and write a folder of weights that it loads.

    For example: veriglot train grounding silver/ checked.jsonl -o weights/
    """
    from pathlib import Path

    from veriglot.training.grounding import train

    train(
        [Path(path) for path in data],
        Path(output),
        seed=seed,
        encoder=Path(encoder) if encoder is not None else None,
        epochs=epochs,
        say=lambda line: typer.echo(line, err=True),
    )


@app.command("semantic")
@command
def semantic(
    data: _Data,
    *,
    output: _Weights,
    seed: _Seed = 1,
    encoder: Annotated[Encoder, Help("Default: the one of `veriglot models get use-multilingual`.")] = None,
    epochs: Annotated[Epochs, Help("Of the first stage. Default: 6.")] = 6,
    processes: Annotated[Processes, Help("They encode the texts. Default: 1.")] = 1,
    leave_out_tests: LeaveOutTests = False,
) -> None:
    """Train the semantic detector, and write a folder of weights that it loads.

    For example: veriglot train semantic silver/ xquad/ translations/ -o weights/ --processes 4
    """
    import os
    from pathlib import Path

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy comes: small products are slower on more
    from veriglot.training.semantic import train

    train(
        [Path(path) for path in data],
        Path(output),
        seed=seed,
        encoder=Path(encoder) if encoder is not None else None,
        epochs=epochs,
        jobs=processes or os.cpu_count() or 1,
        tests=not leave_out_tests,
        say=lambda line: typer.echo(line, err=True),
    )


@app.command("reader")
@command
def reader(
    data: _Data,
    *,
    output: _Weights,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="DIR",
            help="Folder that veriglot train semantic made. Default: the weights that are installed.",
        ),
    ] = None,
    seed: _Seed = 1,
    epochs: Annotated[Epochs, Help("Each over responses of its own. Default: 2.")] = 2,
    threads: Annotated[
        int, typer.Option("--threads", metavar="N", min=1, help="Threads to compute with. Default: 2.")
    ] = 2,
    leave_out_tests: LeaveOutTests = False,
) -> None:
    """Give the semantic detector a reader for evidence in other languages, and write weights that it loads.

    For example: veriglot train reader xquad/ -o weights/
    """
    from pathlib import Path

    from veriglot.training.reader import train

    train(
        [Path(path) for path in data],
        Path(output),
        weights=Path(weights) if weights is not None else None,
        seed=seed,
        passes=epochs,
        tests=not leave_out_tests,
        threads=threads,
        say=lambda line: typer.echo(line, err=True),
    )


@app.command("stacking")
@command
def stacking(
    data: _Data,
    *,
    members: Annotated[
        str,
        typer.Option(
            "--members",
            metavar="NAMES",
            help="Detectors to put together: names joined by + (grounding+semantic), or a TOML file with a table"
            " [[members]] for each.",
        ),
    ],
    output: Annotated[Output, Help("File for the weights, as JSON.")],
    annotator: Annotated[Annotator, Help("Default: as in veriglot evaluate.")] = None,
    seed: _Seed = 1,
) -> None:
    """Learn how much each of several detectors counts, by script, and show how well that does on unseen texts.

    For example: veriglot train stacking dev.jsonl --members grounding+semantic -o stack.json

    Then: veriglot detect answers.jsonl --detector ensemble --set stacking=stack.json
    """

    carry_out(data, members, output, annotator=annotator, seed=seed)


def carry_out(data: Sequence[str], members: str, out: str, *, annotator: str | None, seed: int) -> None:
    """Learn, write and show.

    Raises:
        VeriglotError: what went wrong; a row that cannot be read ends it.
    """
    from veriglot.storage.files import write_json
    from veriglot.training.stacking import train

    account = Account(quiet=False)
    inputs = find_inputs(data, format_name=None, skipped=account.warn)
    ensemble, rows = train(_samples(inputs, account), read_members(members), annotator=annotator, seed=seed)
    write_json(Path(out), ensemble, indent=2)
    left_out = ", ".join(f"{why} {number:,}" for why, number in rows.left_out.most_common())
    show_measured(
        ensemble.quality,
        f"Weights of {len(ensemble.members)} detectors, in {out}",
        [
            "mean: of their confidences; stack: by weights that did not see the text, fold by fold. F1: of each at its"
            " own threshold, of the mean at 0.5, of the stack at one that was chosen on the other folds. 95% intervals"
            " over whole texts; those of ECE lie high in small data.",
            f"F1 of words is best from {ensemble.threshold:.4f} on: the threshold of the file.",
            *([f"Left out: {left_out}."] if left_out else []),
            ensemble.signature,
        ],
    )


def _samples(inputs: Sequence[Input], account: Account) -> Iterator[Sample]:
    for file in inputs:
        for row in rows_of(file, format_name=None, language=None, report=account.report, alone=len(inputs) == 1):
            if not isinstance(row, Sample):
                raise row.as_error()
            yield row
