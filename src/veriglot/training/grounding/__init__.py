"""Training the grounding detector."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["train"]


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    seed: int = 1,
    encoder: Path | None = None,
    epochs: int = 6,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train from labelled files to a folder of weights that `load_detector("grounding", weights=...)` takes.

    Equal data, seed and versions give equal weights on one kind of processor.

    Args:
        paths: files and folders in any readable format.
        out: the folder for the weights.
        seed: of everything that is drawn.
        encoder: the sentence encoder's ONNX file, to distil word vectors from; None keeps the shipped vectors.
        epochs: passes of the first stage.
        say: told of progress, a line at a time.

    Raises:
        InputError: a file cannot be read, or nothing in it can be learned from.
        MissingExtraError: PyTorch, or a package that the encoder needs, is not installed.
        WeightsError: the trained network could not be exported faithfully.
    """
    from veriglot.errors import MissingExtraError

    try:
        import onnxscript  # noqa: F401  the export needs it, at the very end

        from veriglot.training.grounding import pipeline
    except ModuleNotFoundError as error:
        raise MissingExtraError("Training", "train") from error
    pipeline.run(paths, out, seed=seed, encoder=encoder, epochs=epochs, say=say)
