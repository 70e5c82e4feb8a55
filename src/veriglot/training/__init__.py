"""Training: detectors from labelled files, calibrations and ensembles from predictions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from veriglot.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load_trainer"]


def load_trainer(detector: Literal["grounding", "reader"]) -> Callable[..., None]:
    """The function `train` of a detector's `pipeline`.

    Raises:
        MissingExtraError: PyTorch is not installed, or the package that exports from it.
    """
    try:
        if detector != "reader":
            import_module("onnxscript")  # the export needs it, at the very end
        return cast("Callable[..., None]", import_module(f"veriglot.training.{detector}.pipeline").train)
    except ModuleNotFoundError as error:
        raise MissingExtraError("Training", "train") from error
