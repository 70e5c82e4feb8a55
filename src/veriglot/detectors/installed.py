"""Which detectors can be had on this machine as it is: nothing is fetched, no server and no language model asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import MissingExtraError, UsageError
from veriglot.weights import MissingWeightsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.detectors.recorded import Known
    from veriglot.records import Detector

__all__ = ["Installed", "names_of", "runs_here"]

_OWN = frozenset({"grounding", "semantic"})
_BY_FOLDER = frozenset({"hf", "nli"})  # those that run a model in this process


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names joined by `+`, or a list of them, as a tuple; None stays None."""
    if given is None:
        return None
    return tuple(name for name in given.split("+") if name) if isinstance(given, str) else tuple(given)


def runs_here(name: str) -> bool:
    """Whether a detector is known to open no connection: our own, models in a folder, ensembles of these."""
    head, _, argument = name.partition(":")
    if head == "ensemble":
        return bool(argument) and all(runs_here(member) for member in argument.split("+"))
    return name in _OWN or (head in _BY_FOLDER and Path(argument).is_dir())


class Installed:
    """Loads what is asked for, once, and knows what cannot be loaded.

    Args:
        loaded: detectors that are loaded already, by name; None for those that cannot be.
        candidates: names of the detectors that may be taken; None for those that run here alone.
        threshold, words: given to every detector.
    """

    def __init__(
        self,
        loaded: Mapping[str, Detector | None],
        candidates: Sequence[str] | None,
        *,
        threshold: float,
        words: bool,
    ) -> None:
        self._loaded: dict[tuple[str, tuple[tuple[str, str], ...]], Detector | None] = {
            (name, ()): one for name, one in loaded.items()
        }
        self._candidates = candidates
        self._threshold = threshold
        self._words = words

    def among(self, recorded: Sequence[Known]) -> list[Known]:
        """Those of the recorded detectors that may be taken and are here.

        Raises:
            UsageError: a candidate that was named is not among them.
        """
        names = {known.name for known in recorded}
        strange = [name for name in self._candidates or () if name not in names]
        if strange:
            raise UsageError(
                f"There are no recorded figures of the candidate {strange[0]!r}.",
                remedy=f"There are of: {', '.join(sorted(names))}.",
            )
        return [known for known in recorded if self._may(known.name) and self.detector(known) is not None]

    def detector(self, known: Known) -> Detector | None:
        """A detector; None where its packages or its model are not here, or are of another revision."""
        key = (known.name, known.options)
        if key not in self._loaded:
            self._loaded[key] = self._made(known)
        found = self._loaded[key]
        return found if found is not None and found.name == known.revision else None

    def _may(self, name: str) -> bool:
        return name in self._candidates if self._candidates is not None else runs_here(name)

    def _made(self, known: Known) -> Detector | None:
        from veriglot.detectors.detect import load_detector

        options = {name: msgspec.json.decode(text) for name, text in known.options}
        options = {**options, "threshold": self._threshold, "words": self._words}
        try:
            return load_detector(known.name, **options)
        except (MissingExtraError, MissingWeightsError):
            return None
