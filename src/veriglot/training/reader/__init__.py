"""Training the reader of the semantic detector."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from veriglot.encoders.base import Encoder

__all__ = ["train"]


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    weights: Path | None = None,
    seed: int = 1,
    encoder: Encoder | None = None,
    reads_with: Path | None = None,
    passes: int = 2,
    tests: bool = True,
    threads: int = 2,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Give a folder of weights for the semantic detector a reader, trained from parallel articles with questions.

    Args:
        paths: files and folders in any readable format; those that stand in several languages are taken.
        out: the folder for the weights: those given, and the reader.
        weights: a folder made by `veriglot train semantic`; None takes the weights in the package.
        seed: of everything that is drawn. Equal data, seed and versions give equal weights on one kind of processor
            with one number of threads.
        encoder: the encoder of `weights`; None loads it.
        reads_with: the file of `e5-multilingual`; None takes it from where `veriglot models` keeps it.
        passes: passes, each over responses of its own.
        tests: whether articles that the project's benchmarks test on are trained on.
        threads: threads that it computes with.
        say: told of progress, a line at a time.

    Raises:
        InputError: a file cannot be read, or holds no parallel articles with questions.
        MissingExtraError: PyTorch, or a package that an encoder needs, is not installed.
        WeightsError: an encoder's file is not here, or `weights` are no such folder.
    """
    from veriglot.errors import MissingExtraError

    try:
        from veriglot.training.reader import pipeline
    except ModuleNotFoundError as error:
        raise MissingExtraError("Training", "train") from error
    pipeline.run(
        paths, out, weights=weights, seed=seed, encoder=encoder, reads_with=reads_with, passes=passes, tests=tests,
        threads=threads, say=say,
    )  # fmt: skip
