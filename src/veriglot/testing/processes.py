"""A plug-in in processes of its own, as `veriglot detect --jobs` runs it."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

__all__ = ["in_processes"]


def in_processes(subject: Any, method: str, samples: Sequence[Sample]) -> list[Any]:
    """What two new processes say of each sample, in order.

    Args:
        subject: a detector or scorer; it travels there pickled.
        method: `predict` or `score`.
        samples: one by one.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        return list(pool.map(partial(_one, subject, method), samples))


def _one(subject: Any, method: str, sample: Sample) -> Any:
    return getattr(subject, method)([sample])[0]
