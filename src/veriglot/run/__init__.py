"""Stages over records: the local engine, the outputs it makes, and how they resume."""

from veriglot.run.carry import Errand, Tally, carry
from veriglot.run.engine import Engine, cores
from veriglot.run.failed import FailedRow, Lost, lost_of
from veriglot.run.journal import predictions_in
from veriglot.run.ledger import Ledger
from veriglot.run.manifest import InputFile, Manifest
from veriglot.run.recipe import Description, Recipe
from veriglot.run.stage import Progress, Row, Stage

__all__ = [
    "Description",
    "Engine",
    "Errand",
    "FailedRow",
    "InputFile",
    "Ledger",
    "Lost",
    "Manifest",
    "Progress",
    "Recipe",
    "Row",
    "Stage",
    "Tally",
    "carry",
    "cores",
    "lost_of",
    "predictions_in",
]
