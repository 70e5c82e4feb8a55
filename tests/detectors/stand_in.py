"""A detector in the reader's place, where tests ask who judges and not what is found: `grounding` by another name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from veriglot.detectors.grounding.detector import Grounding
from veriglot.detectors.registry import DETECTORS
from veriglot.plugins import Entry, PickledByArguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Prediction, Sample


class StandIn(PickledByArguments):
    """Takes the reader's options; its weights are those of `grounding`."""

    taxonomy = Grounding.taxonomy
    name = "reader@stand-in"

    def __init__(self, *, threshold: float | None = None, words: bool = False, weights: str | None = None) -> None:
        self._grounding = Grounding(threshold=threshold, words=words, weights=weights)
        self.threshold = self._grounding.threshold
        self.signature = self._grounding.signature.replace(self._grounding.name, self.name)

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [
            msgspec.structs.replace(prediction, detector=self.name, signature=self.signature)
            for prediction in self._grounding.predict(samples)
        ]


@contextmanager
def reader_at(target: str) -> Iterator[None]:
    """The name `reader` leads elsewhere; to a package that is not there, and the extra counts as not installed."""
    entries = DETECTORS._entries
    own, entries["reader"] = entries["reader"], Entry(target, extra="reader")
    try:
        yield
    finally:
        entries["reader"] = own
