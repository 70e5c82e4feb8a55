"""Rows of many calls, judged together in worker processes.

Every accepted call is answered, even if a process dies. Calls that would wait too long are refused immediately, so that
accepted ones wait little. Calls take turns: a call of a thousand rows does not block a call of one row.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import defaultdict, deque
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from veriglot.detectors.registry import STRICTNESS, at_strictness, load_named
from veriglot.errors import UsageError, VeriglotError
from veriglot.http.server import CallRefused
from veriglot.pipeline.engine import Service
from veriglot.records import Detector, Evidence, Prediction, Sample, Status
from veriglot.records.settings import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


__all__ = ["Batcher", "Call", "DetectorInfo", "Limits", "Selection", "find_detector"]


class DetectorInfo(Record):
    """A detector that the server offers.

    Attributes:
        name: its name in calls.
        detector: its name and revision.
        taxonomy: the taxonomy of its span types.
        threshold: minimum confidence of a marked word, at normal strictness.
        strictness: available values: `low`, `normal`, `high`.
        signature: its settings, in one line.
    """

    name: str
    detector: str
    taxonomy: str
    threshold: float
    strictness: tuple[str, ...]
    signature: str


_FIRST = Sample("first", "The bridge was opened in 1879.", evidence=(Evidence("The bridge was opened in 1897."),))
"""The sample that every process judges before it is ready, because much is loaded (or fails) on first use."""


class Selection:
    """All detectors of a server as one: each sample goes to the detector in its `meta`.

    `meta` has only `detector`, `strictness` and `words`, which the server sets.

    Args:
        names: of detectors; they are loaded immediately, and again for another strictness on demand.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._loaded: dict[tuple[str, str, bool], Detector] = {}
        self.detectors = tuple(map(self._info, names))
        for name in names:
            if not name.startswith("judge"):  # its calls cost money
                (first,) = self._detector(name, "normal", words=False).predict([_FIRST])
                if first.status is Status.FAILED:
                    raise VeriglotError(f"The detector {name} loads but cannot judge: {first.reason}.")
        default = self._detector(names[0], "normal", words=False)
        self.name, self.taxonomy = default.name, default.taxonomy
        self.threshold, self.signature = default.threshold, default.signature

    def _info(self, name: str) -> DetectorInfo:
        detector = self._detector(name, "normal", words=False)
        levels = {"normal", *getattr(detector, "thresholds", ())}
        strictness = tuple(level for level in STRICTNESS if level in levels)
        return DetectorInfo(name, detector.name, detector.taxonomy, detector.threshold, strictness, detector.signature)

    def _detector(self, name: str, strictness: str, *, words: bool) -> Detector:
        key = (name, strictness, words)
        if key not in self._loaded:
            self._loaded[key] = at_strictness(partial(load_named, name, words=words), strictness, None)
        return self._loaded[key]

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order."""
        groups = defaultdict[tuple[str, str, bool], list[int]](list)
        for index, sample in enumerate(samples):
            groups[sample.meta["detector"], sample.meta["strictness"], sample.meta["words"]].append(index)
        predictions: dict[int, Prediction] = {}
        for (name, strictness, words), indices in groups.items():
            answers = self._detector(name, strictness, words=words).predict([samples[index] for index in indices])
            predictions |= zip(indices, answers, strict=True)
        return [predictions[index] for index in range(len(samples))]


class Limits(Record):
    """Limits of accepted work.

    Attributes:
        batch_size: maximum rows that a process judges together.
        batch_wait: seconds that an idle process waits for a batch to fill.
        queue: maximum concurrent calls of one row; 0 for two per process.
        streams: maximum concurrent calls of many rows; 0 for two per process.
        memory: maximum bytes of unanswered requests.
    """

    batch_size: int = 32
    batch_wait: float = 0.0
    queue: int = 0
    streams: int = 0
    memory: int = 256_000_000


_BATCH_CODE_POINTS = 100_000  # closes a batch early, so that a short row does not wait for many long ones
_LONGEST_RETRY = 60  # seconds


class _Row(NamedTuple):
    sample: Sample
    answer: asyncio.Future[Prediction]
    since: float


Call = deque[_Row]
"""An accepted call: its waiting rows."""


class Batcher:
    """Distributes the rows of calls to processes. It belongs to the event loop in which `start` was called.

    Attributes:
        detectors: the available detectors; the first is the default.
        working: the rows that are being judged.

    Args:
        make: creates the detector; it is pickled.
        limits: limits of accepted work.
        processes: number of worker processes; 0 for one per core.

    Raises:
        VeriglotError: the detector cannot be created.
    """

    def __init__(self, make: Callable[[], Any], limits: Limits, *, processes: int = 0) -> None:
        self.service = Service(make, jobs=processes)
        jobs = self.service.jobs
        self.detectors: tuple[DetectorInfo, ...] = self.service.description.detectors
        self.limits = limits
        self._most = {"queue": limits.queue or 2 * jobs, "streams": limits.streams or 2 * jobs}
        self.accepted = dict.fromkeys(self._most, 0)
        self.bytes = 0
        self.waiting = 0
        self.batches = self.rows = 0
        self.failure: BaseException | None = None
        self.failed: Callable[[], None] = lambda: None
        self._seconds = 0.0  # recent processing time per row
        self._numbers = count()
        self._calls = deque[Call]()  # calls with waiting rows, in turn
        self.working: dict[str, tuple[_Row, float]] = {}
        self._lock = threading.Lock()
        self._ends = False
        self._thread = threading.Thread(target=self._work, name="veriglot-batches", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    @property
    def is_ready(self) -> bool:
        """Whether new rows will be judged."""
        return self.failure is None and not self._ends and self.service.ready > 0

    def start(self) -> None:
        """Start judging."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Judge rows with waiting callers, then stop the processes."""
        self._ends = True
        if self._thread.ident is None:
            self.service.close()
            return
        with suppress(OSError):  # it is closed
            self.service.wake()
        while self._thread.is_alive():
            self._thread.join(0.1)
            if not any(self.accepted.values()):  # nobody waits, and a row might take for ever
                self.service.stop()

    # Admission.

    def check(self, kind: str) -> None:
        """Refuse a call if no more of its kind are accepted now.

        Raises:
            CallRefused: 503 if the service has stopped, 429 if there are too many.
        """
        if self.failure or self._ends:
            raise _stopped()
        if self.accepted[kind] >= self._most[kind]:
            self._refuse("busy", "Too many calls are being answered.", kind)

    @contextmanager
    def accept(self, kind: str) -> Iterator[Call]:
        """Accept a call while it is answered.

        Args:
            kind: `queue` for a call of one row, `streams` for one of many.

        Raises:
            CallRefused: as `check`.
        """
        self.check(kind)
        self.accepted[kind] += 1
        call = Call()
        try:
            yield call
        finally:
            self.accepted[kind] -= 1
            with self._lock:
                for row in call:  # nobody waits for them
                    row.answer.cancel()

    @contextmanager
    def memory(self) -> Iterator[Callable[[int], None]]:
        """Counts the bytes of a request until it is answered; over the limit the counter raises `CallRefused` (429)."""
        total = 0

        def add(size: int) -> None:
            nonlocal total
            if self.bytes + size > self.limits.memory:
                self._refuse("memory", "The requests in work fill the memory that they may take.", "memory")
            total += size
            self.bytes += size

        try:
            yield add
        finally:
            self.bytes -= total

    def _refuse(self, code: str, message: str, limit: str) -> None:
        rows = self.waiting + len(self.working)
        seconds = min(_LONGEST_RETRY, max(1, math.ceil(rows * self._seconds / self.service.jobs)))
        remedy = f"Try again in {seconds} s. Whoever runs this can raise its limit ({limit}) or add processes."
        raise CallRefused(429, code, message, remedy, retry_after=str(seconds))

    # Rows.

    def submit(self, call: Call, sample: Sample) -> asyncio.Future[Prediction]:
        """Submit a sample; the prediction gets its id.

        Args:
            call: the call of the row.
            sample: its `meta` has the detector and options (see `Selection`).
        """
        row = _Row(sample, self._loop.create_future(), time.monotonic())
        with self._lock:
            if self.failure:
                raise _stopped()
            if not call:
                self._calls.append(call)
            call.append(row)
            self.waiting += 1
        self.service.wake()
        if self.limits.batch_wait:
            self._loop.call_later(self.limits.batch_wait, self.service.wake)
        return row.answer

    def _take(self, idle: int) -> list[Sample] | None:
        """The next batch, with rows of each call in turn; called by the service's thread."""
        now = time.monotonic()
        batch: list[Sample] = []
        code_points = 0
        with self._lock:
            if not self._calls:
                return None if self._ends else []
            oldest = min(call[0].since for call in self._calls)
            if self.waiting < self.limits.batch_size and now - oldest < self.limits.batch_wait and not self._ends:
                return []
            most = min(self.limits.batch_size, math.ceil(self.waiting / idle))
            while self._calls and len(batch) < most and code_points < _BATCH_CODE_POINTS:
                call = self._calls.popleft()
                row = call.popleft()
                self.waiting -= 1
                if call:
                    self._calls.append(call)
                if row.answer.cancelled():
                    continue
                sample = replace(row.sample, id=str(next(self._numbers)))  # ids of different calls may be equal
                code_points += len(sample.response) + sum(len(passage.text) for passage in sample.evidence)
                self.working[sample.id] = (row, now)
                batch.append(sample)
        return batch

    def _give(self, samples: Sequence[Sample], predictions: Sequence[Prediction]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._deliver, list(samples), list(predictions))

    def _deliver(self, samples: Sequence[Sample], predictions: Sequence[Prediction]) -> None:
        now = time.monotonic()
        self.batches += 1
        self.rows += len(samples)
        for sample, prediction in zip(samples, predictions, strict=True):
            row, since = self.working.pop(sample.id)
            self._seconds += ((now - since) / len(samples) - self._seconds) / 20
            if not row.answer.done():
                row.answer.set_result(replace(prediction, id=row.sample.id))

    def _work(self) -> None:
        try:
            self.service.run(self._take, self._give)
        except BaseException as error:
            with self._lock:
                self.failure = error
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._fail)
        finally:
            self.service.close()

    def _fail(self) -> None:
        """The service has failed: refuse all waiting callers."""
        for row in chain((row for row, _ in self.working.values()), *self._calls):
            if not row.answer.done():
                row.answer.set_exception(_stopped())
        self.failed()


def _stopped() -> CallRefused:
    return CallRefused(503, "stopping", "This server is stopping.", "Try again, or another one.", retry_after="5")


def find_detector(detectors: Sequence[DetectorInfo], detector: Any, strictness: Any) -> DetectorInfo:
    """The detector for a call.

    Raises:
        UsageError: it is not available, or not with that strictness.
    """
    info = detectors[0] if detector is None else next((info for info in detectors if info.name == detector), None)
    if info is None:
        names = ", ".join(info.name for info in detectors)
        raise UsageError(
            f"The detector {detector!r} is not served here.",
            f"Served: {names}; veriglot serve --detectors NAME,NAME serves others.",
        )
    if strictness not in info.strictness:
        levels = ", ".join(info.strictness)
        raise UsageError(f"{info.name} knows no strictness {strictness!r}.", f"It knows: {levels}.")
    return info
