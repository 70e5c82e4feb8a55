"""From logits to probabilities that mean what they say, by script, with a default for the rest.

Each script has a slope and an offset fitted on held-out responses (`train/grounding/calibrating.py`). A language whose
script has none of its own, or that no training text was in, gets the default, and its predictions say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Calibration", "Line", "response_evidence", "sigmoid"]

_TOP_SHARE = 0.1  # of a response's words: the most suspect ones


class Line(msgspec.Struct, frozen=True):
    """A probability as the logistic function of slope * logit + offset."""

    slope: float
    offset: float


class Calibration(msgspec.Struct, frozen=True):
    """Calibration by script.

    Attributes:
        scripts: ISO 15924 code to line.
        languages: base tags of the languages that the lines were fitted on.
        default: the line for every other language.
        response: weights of `response_evidence`, in its order, the constant last.
    """

    scripts: dict[str, Line]
    languages: tuple[str, ...]
    default: Line
    response: tuple[float, ...]

    def covers(self, tag: str, script: str | None) -> bool:
        """Whether a language has a calibration of its own."""
        return tag.split("-")[0] in self.languages and script in self.scripts

    def confidences(self, logits: NDArray[np.float32], tag: str, script: str | None) -> NDArray[np.float64]:
        """Probability that each word is unsupported, shape (n,)."""
        line = self.scripts[script] if script is not None and self.covers(tag, script) else self.default
        return sigmoid(line.slope * logits.astype(np.float64) + line.offset)

    def score(self, logits: NDArray[np.float32]) -> float:
        """Probability that the response holds any unsupported span."""
        evidence = np.append(response_evidence(logits), 1.0)
        return float(sigmoid(np.array([evidence @ np.array(self.response)]))[0])


def response_evidence(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """What a response's score is made from: highest logit, mean of the highest tenth, mean of all, log of the words."""
    ordered = np.sort(logits.astype(np.float64))
    top = max(1, round(len(ordered) * _TOP_SHARE))
    return np.array([ordered[-1], ordered[-top:].mean(), ordered.mean(), np.log(len(ordered))])


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logistic function, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * values))
