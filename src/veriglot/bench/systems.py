"""Detectors and scorers made for a bench; one that cannot be made here is said to be unavailable, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from veriglot.bench.results import BenchSystem
from veriglot.detectors import load_detector
from veriglot.errors import UnknownNameError, VeriglotError
from veriglot.run import Recipe
from veriglot.scorers import load_scorer

if TYPE_CHECKING:
    from veriglot.bench.elsewhere import Kept
    from veriglot.bench.entries import SystemEntry
    from veriglot.records import Detector, Scorer

__all__ = ["HIGHER_IS_WORSE", "LoadDetector", "System", "made"]

HIGHER_IS_WORSE = "higher_is_worse"
"""The direction of detectors' numbers: they are probabilities of being unsupported."""


class LoadDetector(Protocol):
    """How a detector's name becomes a detector; the command line knows names that the table of detectors does not."""

    def __call__(self, name: str, *, threshold: float | None, words: bool, **options: Any) -> Detector:
        """The detector."""


@dataclass(frozen=True)
class System:
    """A system of a bench.

    Attributes:
        entry: what the bench file says of it.
        about: its record in the results.
        detector: made with words; None where it is a scorer or unavailable.
        scorer: likewise.
        kept: predictions made elsewhere, in place of either.
        recipe: by which other processes make either; None where it has to stay in this one.
    """

    entry: SystemEntry
    about: BenchSystem
    detector: Detector | None = None
    scorer: Scorer | None = None
    recipe: Recipe | None = None
    kept: Kept | None = None

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.entry.name

    @property
    def available(self) -> bool:
        """Whether it could be made."""
        return self.detector is not None or self.scorer is not None or self.kept is not None

    @property
    def maker(self) -> Detector | Scorer:
        """The detector or scorer.

        Raises:
            ValueError: it has neither.
        """
        found = self.detector or self.scorer
        if found is None:
            raise ValueError(f"{self.name} is made by nothing that could be asked")
        return found

    @property
    def marks(self) -> bool:
        """Whether it marks parts of responses, and so has spans."""
        return self.detector is not None or self.kept is not None

    @property
    def threshold(self) -> float | None:
        """Confidence from which it marks words; None where it is not known, and of a scorer."""
        if self.kept is not None:
            return self.kept.threshold
        return float(self.detector.threshold) if self.detector is not None else None

    @property
    def taxonomy(self) -> str | None:
        """What its types belong to; None where only the types themselves are known, and of a scorer."""
        return self.detector.taxonomy if self.detector is not None else None


def made(entry: SystemEntry, load: LoadDetector = load_detector) -> System:
    """Make a system, or say why it cannot be made.

    Args:
        entry: of the bench file.
        load: makes detectors.

    Raises:
        UnknownNameError: there is no such name or option, which is a slip in the bench file and nothing to work around.
    """
    detector, scorer, recipe, why = None, None, None, None
    try:
        if entry.detector is not None:
            options = {"threshold": entry.threshold, "words": True, **entry.options}
            recipe = Recipe(load, (entry.detector,), options)
            detector = load(entry.detector, **options)
        else:
            recipe = Recipe(load_scorer, (entry.made_by,), dict(entry.options))
            scorer = load_scorer(entry.made_by, **entry.options)
    except UnknownNameError:
        raise
    except VeriglotError as error:
        why = str(error)
    system = detector or scorer
    about = BenchSystem(
        name=entry.name,
        kind="detector" if entry.detector is not None else "scorer",
        made_by=entry.made_by,
        options={key: msgspec.json.encode(value).decode() for key, value in sorted(entry.options.items())},
        direction=HIGHER_IS_WORSE if entry.detector is not None else (scorer.direction.value if scorer else None),
        description=system.name if system else None,
        signature=system.signature if system else None,
        unavailable=why,
    )
    return System(entry, about, detector, scorer, None if _stays(system) else recipe)


def _stays(system: Detector | Scorer | None) -> bool:
    """Whether it has to be asked in this process.

    It counts what it spends, which others could not tell us; or it says that it is to be loaded once, since it holds a
    network or a process of its own.
    """
    return hasattr(system, "spent") or bool(getattr(system, "one_process", False))
