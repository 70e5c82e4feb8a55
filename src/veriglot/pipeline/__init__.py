"""Stages over records: the local engine, the outputs it makes, and how they resume."""

from veriglot.pipeline.engine import Description, Engine, OutputJob, Recipe, cores, predictions_in, run_jobs
from veriglot.storage.checkpoint import (
    Checkpoint,
    FailedRow,
    FailedRows,
    InputFile,
    Manifest,
    Progress,
    Row,
    Tally,
    failed_rows,
)

__all__ = [
    "Checkpoint",
    "Description",
    "Engine",
    "FailedRow",
    "FailedRows",
    "InputFile",
    "Manifest",
    "OutputJob",
    "Progress",
    "Recipe",
    "Row",
    "Tally",
    "cores",
    "failed_rows",
    "predictions_in",
    "run_jobs",
]
