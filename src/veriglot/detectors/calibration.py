"""Calibrations as files: Platt and isotonic curves by script, for which detector, on which data, how well they do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

import msgspec
import numpy as np

from veriglot.errors import InputError
from veriglot.records import DataSource, Estimate
from veriglot.signatures import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CALIBRATION",
    "DIGITS",
    "ByScript",
    "Calibration",
    "Curve",
    "Isotonic",
    "Level",
    "Line",
    "Measured",
    "Platt",
    "ScriptCalibration",
    "Source",
    "WordCurve",
    "curved",
    "logit",
    "lowest",
    "read_calibration",
    "read_versioned",
    "response_evidence",
    "settings_of",
    "sigmoid",
]


# From logits to probabilities that mean what they say, by script, with a default for the rest.
#
# Each script has a slope and an offset fitted on held-out responses (`training/grounding/calibration.py`). A language
# whose script has none of its own, or that no training text was in, gets the default, and its predictions say so.


_TOP_SHARE = 0.1  # of a response's words: the most suspect ones


class Line(msgspec.Struct, frozen=True):
    """A probability as the logistic function of slope * logit + offset."""

    slope: float
    offset: float


class ScriptCalibration(msgspec.Struct, frozen=True):
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


# Curves from what a detector says to how often it is right: Platt's line, and a monotone step-free map.
#
# A curve never falls, so that calibrating changes no ranking inside one script.


if TYPE_CHECKING:
    Floats = NDArray[np.float64]


DIGITS = 4  # of a confidence, before a curve and after it
_EDGE = 0.5 * 10.0**-DIGITS  # confidences of 0 and 1, which have no logit, count as half a step from there


class Platt(msgspec.Struct, frozen=True, tag_field="kind", tag="platt"):
    """A probability as the logistic function of `slope * logit + offset` (Platt 1999); the slope is not negative."""

    slope: float
    offset: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.slope < float("inf"):
            raise ValueError(f"a calibration never falls, but the slope of this one is {self.slope}")


class Isotonic(msgspec.Struct, frozen=True, tag_field="kind", tag="isotonic"):
    """A probability by straight lines between points (Zadrozny and Elkan 2002); flat before and after them.

    Attributes:
        logits: where the points lie, rising.
        values: the probability at each, never falling.
    """

    logits: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.logits or len(self.logits) != len(self.values):
            raise ValueError("an isotonic calibration has one value for each of its points, and at least one point")
        if list(self.logits) != sorted(set(self.logits)) or list(self.values) != sorted(self.values):
            raise ValueError("the points of an isotonic calibration rise, and its values never fall")
        if not 0.0 <= self.values[0] <= self.values[-1] <= 1.0:
            raise ValueError("the values of a calibration lie between 0 and 1")


Curve = Platt | Isotonic


def logit(confidences: Floats) -> Floats:
    """The log odds of confidences from 0 to 1, rounded to `DIGITS` and kept from the ends; NaN stays NaN."""
    clipped = np.clip(np.round(confidences, DIGITS), _EDGE, 1.0 - _EDGE)
    odds: Floats = np.log(clipped / (1.0 - clipped))
    return odds


def curved(curve: Curve, confidences: Floats) -> Floats:
    """Calibrated probabilities, rounded to `DIGITS`, of the same shape; NaN stays NaN."""
    odds = logit(confidences)
    if isinstance(curve, Platt):
        return np.round(sigmoid(curve.slope * odds + curve.offset), DIGITS)
    values: Floats = np.interp(odds, curve.logits, curve.values)
    values[np.isnan(odds)] = np.nan
    return np.round(values, DIGITS)


def lowest(curve: Curve, threshold: float) -> float:
    """The lowest confidence, of `DIGITS` digits, that a curve takes to a threshold or above; 1.0 where none is."""
    grid = np.linspace(0.0, 1.0, 10**DIGITS + 1)
    reached = np.flatnonzero(curved(curve, grid) >= threshold)
    return float(np.round(grid[reached[0]], DIGITS)) if len(reached) else 1.0


if TYPE_CHECKING:
    Array = NDArray[np.float64]


CALIBRATION = "veriglot-calibration/1"

Source = Literal["words", "spans"]


class Versioned(Protocol):
    """The content of a file that says its format."""

    @property
    def format(self) -> str:
        """Name and version."""


VersionedT = TypeVar("VersionedT", bound=Versioned)


class WordCurve(msgspec.Struct, frozen=True):
    """How a detector's confidences become probabilities, in one script.

    Attributes:
        curve: of what has a confidence; None where nothing had one.
        unmarked: for detectors that give spans alone, the share of words outside spans that are unsupported.
        verdict: for detectors that give spans alone, the share of words inside spans that are; for spans without a
            confidence.
        languages: base tags of the languages that it was fitted on; empty for the default.
    """

    curve: Curve | None
    unmarked: float | None = None
    verdict: float | None = None
    languages: tuple[str, ...] = ()

    def probabilities(self, given: Array, inside: NDArray[np.bool_], source: Source) -> Array:
        """The calibrated probability of each word, or of each response, shape (n,).

        Args:
            given: the detector's confidences, NaN where there is none, shape (n,).
            inside: whether a span overlaps each word, shape (n,); it counts for spans alone.
            source: what the curve was fitted on.
        """
        known = np.full(given.shape, np.nan) if self.curve is None else curved(self.curve, given)
        if source == "words":
            return known
        assert self.verdict is not None
        assert self.unmarked is not None
        return np.where(~inside, self.unmarked, np.where(np.isnan(known), self.verdict, known))


class Fitted(Protocol):
    """What was fitted on texts of some languages."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Base tags of the languages."""


FittedT = TypeVar("FittedT", bound=Fitted)


class ByScript(msgspec.Struct, Generic[FittedT], frozen=True):
    """What was fitted by script, and the default for everything else."""

    default: FittedT
    scripts: dict[str, FittedT] = {}

    def covers(self, tag: str | None, script: str | None) -> bool:
        """Whether a language has something of its own script that was fitted on texts of the language."""
        fitted = self.scripts.get(script or "")
        return fitted is not None and (tag or "").split("-")[0] in fitted.languages

    def of(self, tag: str | None, script: str | None) -> FittedT:
        """What holds for a language in a script."""
        return self.scripts[script] if script is not None and self.covers(tag, script) else self.default


Level = ByScript[WordCurve]  # the curves of a calibration


class Measured(Estimate, frozen=True):
    """One figure of a fit, on texts that the fit had not seen, with its 95% interval over texts.

    Attributes:
        level: `word` or `response`.
        script: ISO 15924 code, or `all`.
        what: what was measured, such as `given` or `calibrated`.
        name: `ece`, `brier`, `average_precision`, `auroc` or `f1`.
        units: words or responses.
        texts: how many were drawn again as wholes.
    """

    level: str
    script: str
    what: str
    name: str
    units: int
    texts: int

    @classmethod
    def of(cls, level: str, script: str, what: str, name: str, figure: Estimate, units: int, texts: int) -> Measured:
        """A figure as it is stored: rounded to four digits."""
        value, low, high = (None if n is None else round(n, 4) for n in (figure.value, figure.low, figure.high))
        return cls(level, script, what, name, units, texts, value=value, low=low, high=high)


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A calibration of one detector.

    Attributes:
        format: `veriglot-calibration/1`.
        detector: name and revision of the detector that was calibrated.
        settings: its signature, without the threshold where words were calibrated; None where it has none.
        source: whether it gave confidences of words, or spans alone.
        method: `platt` or `isotonic`.
        threshold: calibrated confidence from which a word is marked by default: where F1 of words was best.
        words: for words; None where there was nothing to fit.
        responses: for the score of a response; None where there was nothing to fit.
        quality: what was measured by cross-fitting.
        data: the labels.
        signature: one line that says how it was made.
    """

    format: str
    detector: str
    settings: str | None
    source: Source
    method: str
    threshold: float
    words: Level
    responses: Level | None
    quality: tuple[Measured, ...]
    data: DataSource
    signature: str

    def __post_init__(self) -> None:
        for curve in (self.words.default, *self.words.scripts.values()):
            if self.source == "words" and curve.curve is None:
                raise ValueError("a calibration of words has a curve")
            if self.source == "spans" and (curve.unmarked is None or curve.verdict is None):
                raise ValueError("a calibration of spans has the shares of words outside and inside of them")

    @property
    def revision(self) -> str:
        """A short hash of all that changes a prediction."""
        return digest([msgspec.json.encode([self.words, self.responses, self.threshold])])[:8]


def read_calibration(path: str | Path) -> Calibration:
    """Read a file that `veriglot evaluate --calibrate` wrote.

    Raises:
        InputError: there is none, or it is something else.
    """
    return read_versioned(path, Calibration, CALIBRATION, "calibration", "veriglot evaluate --calibrate")


def read_versioned(path: str | Path, type_: type[VersionedT], format_: str, what: str, command: str) -> VersionedT:
    """Read a JSON file that a command wrote and that says its format.

    Args:
        path: the file.
        type_: what it holds.
        format_: the format that is known.
        what: what the file is, for messages.
        command: what makes such a file.

    Raises:
        InputError: there is none, or it is something else.
    """
    remedy = f"Make one with {command}."
    try:
        content = msgspec.json.decode(Path(path).read_bytes(), type=type_)
    except FileNotFoundError as error:
        raise InputError(f"there is no such {what}", path=str(path), remedy=remedy) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"this is no {what}: {error}", path=str(path), remedy=remedy) from error
    if content.format != format_:
        raise InputError(
            f"a {what} of format {content.format!r}, where {format_!r} is known",
            path=str(path),
            remedy=f"Make it anew with {command}.",
        )
    return content


def settings_of(signature: str | None) -> str | None:
    """A signature without its threshold, which moves spans but no confidence."""
    if signature is None:
        return None
    return "|".join(part for part in signature.split("|") if not part.startswith("threshold:"))
