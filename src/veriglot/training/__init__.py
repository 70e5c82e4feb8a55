"""Training of detectors on labelled files; calibration and ensembles fitted on predictions."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, Literal

from veriglot.errors import MissingExtraError

__all__ = ["load_trainer"]


def load_trainer(detector: Literal["grounding", "reader", "tokens", "nli"]) -> Any:
    """The function `train` of a detector's `pipeline`; of checkpoints of transformers, the module.

    Raises:
        MissingExtraError: PyTorch is not installed, or a package beside it.
    """
    try:
        if detector in {"tokens", "nli"}:
            # On a CPU, each import says that a package is missing which nobody needs.
            logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
            return import_module(f"veriglot.training.{detector}")
        if detector == "grounding":
            import_module("onnxscript")  # the export needs it, at the very end
        return import_module(f"veriglot.training.{detector}.pipeline").train
    except ModuleNotFoundError as error:
        raise MissingExtraError("Training", "train") from error
