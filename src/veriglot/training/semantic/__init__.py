"""Training the semantic detector."""

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
    seed: int = 1,
    encoder: Encoder | Path | None = None,
    epochs: int = 6,
    jobs: int = 1,
    tests: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train from labelled files to a folder of weights that `load_detector("semantic", weights=...)` takes.

    Equal data, seed and versions give equal weights on one kind of processor, whatever `jobs`. Vectors lie in
    `out.scratch` meanwhile, some 512 bytes a word of all texts.

    Args:
        paths: files and folders in any readable format.
        out: the folder for the weights.
        seed: of everything that is drawn.
        encoder: the encoder, or the file of the multilingual one; None takes that file from where `veriglot models`
            keeps it.
        epochs: passes of the first stage.
        jobs: processes that encode the texts; fitting takes one.
        tests: whether articles and translations that the project's benchmarks test on are trained on.
        say: told of progress, a line at a time.

    Raises:
        InputError: a file cannot be read, or nothing in it can be learned from.
        MissingExtraError: PyTorch, or a package that the encoder needs, is not installed.
        WeightsError: the encoder's file is not here, or the trained head could not be exported faithfully.
    """
    from pathlib import Path

    from veriglot.encoders.base import load_encoder
    from veriglot.errors import MissingExtraError

    try:
        import onnxscript  # noqa: F401  the export needs it, at the very end

        from veriglot.training.semantic import pipeline
    except ModuleNotFoundError as error:
        raise MissingExtraError("Training", "train") from error
    if encoder is None:
        encoder = load_encoder("use-multilingual")
    elif isinstance(encoder, Path):
        encoder = load_encoder("use-multilingual", path=encoder)
    pipeline.run(paths, out, seed=seed, encoder=encoder, epochs=epochs, jobs=jobs, tests=tests, say=say)
