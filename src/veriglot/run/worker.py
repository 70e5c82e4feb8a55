"""A worker process: makes its own detector or scorer, then answers one batch after the other until its pipe closes."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from veriglot.records import Detector, Scorer

__all__ = ["Refusal", "serve"]

# Each process has one core: numerical libraries that start a thread per core would only stand in each other's way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Refusal:
    """Why a worker could not make its detector. Errors themselves do not all survive pickling."""

    message: str
    remedy: str
    exit_code: int


def serve(connection: Connection, recipe: bytes) -> None:
    """Body of the worker process.

    Args:
        connection: batches (lists of samples) come in, lists of predictions or scores go out; the first message that
            goes out is a `Description`, or a `Refusal` where the detector cannot be made.
        recipe: a pickled `Recipe`; unpickled here, because that imports the detector's module.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what it means
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    try:
        detector = _make(connection, recipe)
        if detector is not None:
            _answer(connection, detector)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone, and with it whoever wanted an answer


def _make(connection: Connection, recipe: bytes) -> Detector | Scorer | None:
    from veriglot.errors import VeriglotError
    from veriglot.run.recipe import Description

    try:
        detector: Detector | Scorer = pickle.loads(recipe).make()  # noqa: S301  # written by our own parent process
        description = Description.of(detector)
    except VeriglotError as error:
        connection.send(Refusal(error.message, error.remedy, error.exit_code))
        return None
    except Exception as error:
        connection.send(Refusal(f"The detector cannot be made: {type(error).__name__}: {error}", "", 1))
        return None
    connection.send(description)
    return detector


def _answer(connection: Connection, detector: Detector | Scorer) -> None:
    from veriglot.run.judge import judge

    while True:
        connection.send(judge(detector, connection.recv()))
