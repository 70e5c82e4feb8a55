"""The file of a calibration: what was fitted, for which detector, on which data, and how well it does there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
import numpy as np

from veriglot.detectors.confidences.curves import Curve, curved
from veriglot.errors import InputError
from veriglot.provenance import digest
from veriglot.records import DataSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["CALIBRATION", "Calibration", "Level", "Measured", "Source", "WordCurve", "read_calibration", "settings_of"]

CALIBRATION = "veriglot-calibration/1"

Source = Literal["words", "spans"]


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


class Level(msgspec.Struct, frozen=True):
    """Curves by script, and the one for everything else."""

    default: WordCurve
    scripts: dict[str, WordCurve] = {}

    def covers(self, tag: str | None, script: str | None) -> bool:
        """Whether a language has a curve of its own script that texts of the language were in."""
        found = self.scripts.get(script or "")
        return found is not None and (tag or "").split("-")[0] in found.languages

    def of(self, tag: str | None, script: str | None) -> WordCurve:
        """The curve of a language in a script."""
        return self.scripts[script] if script is not None and self.covers(tag, script) else self.default


class Figure(Protocol):
    """A value with its interval, and what it is called."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> float | None: ...

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


class Measured(msgspec.Struct, frozen=True):
    """One figure of a fit, on texts that the fit had not seen, with its 95% interval over texts.

    Attributes:
        level: `word` or `response`.
        script: ISO 15924 code, or `all`.
        what: what was measured, such as `given` or `calibrated`.
        name: `ece`, `brier`, `average_precision`, `auroc` or `f1`.
        value, low, high: None where it is not defined.
        units: words or responses.
        texts: how many were drawn again as wholes.
    """

    level: str
    script: str
    what: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    units: int
    texts: int

    @classmethod
    def of(cls, level: str, script: str, what: str, figure: Figure, units: int, texts: int) -> Measured:
        """A figure as it is kept: rounded to four digits."""
        value, low, high = (None if n is None else round(n, 4) for n in (figure.value, figure.low, figure.high))
        return cls(level, script, what, figure.name, value, low, high, units, texts)


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
        for one in (self.words.default, *self.words.scripts.values()):
            if self.source == "words" and one.curve is None:
                raise ValueError("a calibration of words has a curve")
            if self.source == "spans" and (one.unmarked is None or one.verdict is None):
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
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=Calibration)
    except FileNotFoundError as error:
        raise InputError(
            "there is no such calibration", path=str(path), remedy="Make one with veriglot evaluate --calibrate."
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"this is no calibration: {error}", path=str(path)) from error
    if found.format != CALIBRATION:
        raise InputError(
            f"a calibration of format {found.format!r}, where {CALIBRATION!r} is known",
            path=str(path),
            remedy="Make it anew with veriglot evaluate --calibrate.",
        )
    return found


def settings_of(signature: str | None) -> str | None:
    """A signature without its threshold, which moves spans but no confidence."""
    if signature is None:
        return None
    return "|".join(part for part in signature.split("|") if not part.startswith("threshold:"))
