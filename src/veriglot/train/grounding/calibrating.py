"""Fitting the lines that turn logits into probabilities, on responses that no weight was fitted on."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.calibration import Calibration, Line, response_evidence
from veriglot.errors import UnknownNameError
from veriglot.records.languages import language
from veriglot.train.logistic import logistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.train.grounding.table import WordLabels

__all__ = ["calibrate", "script_of_tag"]

_MIN_WORDS = 1500  # held-out words that a script needs for a line of its own
_PRIOR = 500.0  # words' worth of pull towards the default line


def calibrate(rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]) -> Calibration:
    """Lines by script, the default, and the weights of the response score.

    Rows labelled by people fit the lines. Held-out rows that were made like the training rows, by a model or by
    rule, are far easier than what users bring, and lines fitted on them would promise too much; they serve only
    where there is nothing else. The response score needs clean responses and is fitted on all.

    Args:
        rows: held-out rows.
        logits: what a network that did not see them says of them, each of shape (n, 7).
    """
    chosen = [i for i, row in enumerate(rows) if row.example.kind == "natural"] or list(range(len(rows)))
    default = logistic(*_words([rows[i] for i in chosen], [logits[i] for i in chosen]))
    by_script: dict[str, list[int]] = defaultdict(list)
    for i in chosen:
        script = script_of_tag(rows[i].example.language)
        if script is not None:
            by_script[script].append(i)
    lines, tags = {}, set()
    for script, members in by_script.items():
        if sum(len(rows[i]) for i in members) >= _MIN_WORDS:
            some = _words([rows[i] for i in members], [logits[i] for i in members])
            lines[script] = _line(logistic(*some, start=default, pull=_PRIOR))
            tags |= {(rows[i].example.language or "").split("-")[0] for i in members}
    return Calibration(lines, tuple(sorted(tags)), _line(default), _response_weights(rows, logits))


def script_of_tag(tag: str | None) -> str | None:
    """The script of a language, or None where the language table does not hold it."""
    try:
        return language(tag or "").script
    except UnknownNameError:
        return None


def _words(
    rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Logits and ones, targets, and weights of every word."""
    values = np.concatenate([found[:, 0] for found in logits]).astype(np.float64)
    targets = np.concatenate([row.target for row in rows]).astype(np.float64)
    weights = np.concatenate([(row.weight > 0).astype(np.float64) for row in rows])
    return np.stack([values, np.ones_like(values)], axis=1), targets, weights


def _line(weights: NDArray[np.float64]) -> Line:
    return Line(slope=float(weights[0]), offset=float(weights[1]))


def _response_weights(rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]) -> tuple[float, ...]:
    evidence = np.array([np.append(response_evidence(found[:, 0]), 1.0) for found in logits])
    any_marked = np.array([float((row.target >= 0.5).any()) for row in rows])
    return tuple(logistic(evidence, any_marked, np.ones(len(rows))).tolist())
