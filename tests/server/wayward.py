"""A detector that does what a response says: sleeps, kills its process, or raises; the rest it finds supported."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.records import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample


class Wayward:
    name = "wayward@1"
    taxonomy = "hat"
    threshold = 0.5
    signature = "wayward"

    def __init__(self, **_: Any) -> None:
        if Path(os.environ.get("WAYWARD_DIES_AT_START", "nowhere")).exists():
            os._exit(3)

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        return [self._predict(sample) for sample in samples]

    def _predict(self, sample: Sample) -> Prediction:
        what, _, how = sample.response.partition(" ")
        if what == "sleep":
            time.sleep(float(how))
        elif what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "raise":
            raise RuntimeError(how)
        return Prediction(sample.id, Status.SCORED, self.name, score=0.0, spans=(), signature=self.signature)
