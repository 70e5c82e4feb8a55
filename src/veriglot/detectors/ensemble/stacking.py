"""The file of learned weights: how much each detector counts, in each script, and how well that does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from veriglot.detectors.confidences.calibration import Measured, Source
from veriglot.detectors.confidences.curves import DIGITS, logit
from veriglot.detectors.ensemble.plan import Member
from veriglot.detectors.grounding.calibration import sigmoid
from veriglot.errors import InputError
from veriglot.provenance import digest
from veriglot.records import DataSource

__all__ = ["STACKING", "Mix", "Mixes", "Stacked", "Stacking", "features", "read_stacking"]

STACKING = "veriglot-stacking/1"
_VERDICT = 2.0  # log odds of a word in a span without a confidence, and minus those of a word in none

Array = NDArray[np.float64]


def features(given: Array, inside: NDArray[np.bool_]) -> Array:
    """What is weighed: the log odds of confidences, and a fixed step either way where there are only spans.

    Args:
        given: confidences, NaN where there is none, any shape.
        inside: whether a span is there, of the same shape.
    """
    return np.where(np.isnan(given), np.where(inside, _VERDICT, -_VERDICT), logit(given))


class Mix(msgspec.Struct, frozen=True):
    """A logistic regression on the log odds of the members (stacked generalization, Wolpert 1992).

    Attributes:
        weights: of the members, in order; none negative (Breiman 1996), so that more suspicion is never less.
        offset: the constant.
        languages: base tags of the languages that it was fitted on; empty for the default.
    """

    weights: tuple[float, ...]
    offset: float
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 0 or not sum(self.weights) < float("inf"):
            raise ValueError("the weights of a mix are at least one, and none is negative")

    def probabilities(self, values: Array, there: NDArray[np.bool_]) -> Array | None:
        """Combined probabilities, rounded, shape (n,); None where no member with a weight is there.

        Args:
            values: `features` of the members that are there, shape (n, k).
            there: which members these are, shape (m,), k of them True. The weights of the rest are made to carry the
                whole.
        """
        weights = np.array(self.weights)
        kept = weights[there]
        if not kept.sum() > 0:
            return None
        found: Array = np.round(sigmoid(values @ (kept * (weights.sum() / kept.sum())) + self.offset), DIGITS)
        return found

    def least(self, threshold: float) -> float:
        """A confidence that at least one member reaches wherever the mix reaches a threshold."""
        total = sum(self.weights)
        if threshold <= 0.0 or total == 0.0:
            return 0.0
        target = float(logit(np.array([threshold]))[0])
        return float(sigmoid(np.array([(target - self.offset) / total]))[0])


class Mixes(msgspec.Struct, frozen=True):
    """Mixes by script, and the one for everything else."""

    default: Mix
    scripts: dict[str, Mix] = {}

    def covers(self, tag: str | None, script: str | None) -> bool:
        """Whether a language has a mix of its own script that texts of the language were in."""
        found = self.scripts.get(script or "")
        return found is not None and (tag or "").split("-")[0] in found.languages

    def of(self, tag: str | None, script: str | None) -> Mix:
        """The mix of a language in a script."""
        return self.scripts[script] if script is not None and self.covers(tag, script) else self.default


class Stacked(msgspec.Struct, frozen=True):
    """A member as it was when the weights were learned.

    Attributes:
        member: how it is made.
        name: its name and revision.
        settings: its signature, without the threshold where it gave words.
        source: whether it gave confidences of words, or spans alone.
    """

    member: Member
    name: str
    settings: str
    source: Source


class Stacking(msgspec.Struct, frozen=True, kw_only=True):
    """Learned weights of an ensemble.

    Attributes:
        format: `veriglot-stacking/1`.
        members: in the order of the weights.
        threshold: combined confidence from which a word is marked by default: where F1 of words was best.
        words: for words.
        responses: for the score of a response; None where the labels had nothing to fit, and then scores are averaged.
        quality: what was measured by cross-fitting, of each member, of their mean and of the stack.
        data: the labels.
        signature: one line that says how it was made.
    """

    format: str
    members: tuple[Stacked, ...]
    threshold: float
    words: Mixes
    responses: Mixes | None
    quality: tuple[Measured, ...]
    data: DataSource
    signature: str

    def __post_init__(self) -> None:
        for level in (self.words, self.responses):
            mixes = [level.default, *level.scripts.values()] if level is not None else []
            if any(len(mix.weights) != len(self.members) for mix in mixes):
                raise ValueError("a stack has one weight for each of its members")

    @property
    def revision(self) -> str:
        """A short hash of all that changes a prediction."""
        return digest([msgspec.json.encode([self.words, self.responses, self.threshold])])[:8]


def read_stacking(path: str | Path) -> Stacking:
    """Read a file that `veriglot train stacking` wrote.

    Raises:
        InputError: there is none, or it is something else.
    """
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=Stacking)
    except FileNotFoundError as error:
        raise InputError(
            "there is no such stack", path=str(path), remedy="Make one with veriglot train stacking."
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"these are no weights of an ensemble: {error}", path=str(path)) from error
    if found.format != STACKING:
        raise InputError(
            f"weights of format {found.format!r}, where {STACKING!r} is known",
            path=str(path),
            remedy="Make them anew with veriglot train stacking.",
        )
    return found
