"""Rows of many calls, judged together by processes.

What is accepted is answered, whatever becomes of a process. What would wait too long is refused at once, so that those
who are accepted wait little. Calls take turns: a call of a thousand rows holds up no call of one.
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


__all__ = ["Batcher", "Call", "Limits", "Offer", "Selection", "choice"]


class Offer(Record):
    """A detector that a server offers.

    Attributes:
        name: what calls name it by.
        detector: its name and revision.
        taxonomy: what the types of its spans belong to.
        threshold: confidence from which it marks a word, at normal strictness.
        strictness: what calls may ask of it: `low`, `normal`, `high`.
        signature: its settings, in one line.
    """

    name: str
    detector: str
    taxonomy: str
    threshold: float
    strictness: tuple[str, ...]
    signature: str


_FIRST = Sample("first", "The bridge was opened in 1879.", evidence=(Evidence("The bridge was opened in 1897."),))
"""What every process judges before it says that it is ready: much is loaded on first use, or cannot be."""


class Selection:
    """The detectors that a server offers, as one: a sample goes to the one that its `meta` asks for.

    `meta` holds `detector`, `strictness` and `words`, and nothing else; the server puts them there.

    Args:
        names: of detectors; they are loaded at once, and for another strictness when one is asked for.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._loaded: dict[tuple[str, str, bool], Detector] = {}
        self.offers = tuple(map(self._offer, names))
        for name in names:
            if not name.startswith("judge"):  # whose calls cost
                (first,) = self._detector(name, "normal", words=False).predict([_FIRST])
                if first.status is Status.FAILED:
                    raise VeriglotError(f"The detector {name} loads but cannot judge: {first.reason}.")
        default = self._detector(names[0], "normal", words=False)
        self.name, self.taxonomy = default.name, default.taxonomy
        self.threshold, self.signature = default.threshold, default.signature

    def _offer(self, name: str) -> Offer:
        made = self._detector(name, "normal", words=False)
        stated = {"normal", *getattr(made, "thresholds", ())}
        strictness = tuple(level for level in STRICTNESS if level in stated)
        return Offer(name, made.name, made.taxonomy, made.threshold, strictness, made.signature)

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
    """How much is taken on.

    Attributes:
        batch_size: most rows that a process judges at once.
        batch_wait: seconds that an idle process waits for a batch to fill.
        queue: calls of one row that are accepted at once; 0 is two for each process.
        streams: calls of many rows that are accepted at once; 0 is two for each process.
        memory: most bytes of requests that are not answered yet.
    """

    batch_size: int = 32
    batch_wait: float = 0.0
    queue: int = 0
    streams: int = 0
    memory: int = 256_000_000


_BATCH_CODE_POINTS = 100_000  # at which a batch is closed, so that a short row does not wait for many long ones
_LONGEST_RETRY = 60  # seconds


class _Row(NamedTuple):
    sample: Sample
    answer: asyncio.Future[Prediction]
    since: float


Call = deque[_Row]
"""A call that was accepted: its rows that wait."""


class Batcher:
    """Shares the rows of calls out to processes. It belongs to the event loop in which `start` was called.

    Attributes:
        offers: the detectors that calls can ask for; the first is the default.
        working: the rows that are being judged.

    Args:
        make: makes the detector; it is pickled.
        limits: how much is taken on.
        processes: how many; 0 takes every core.

    Raises:
        VeriglotError: the detector cannot be made.
    """

    def __init__(self, make: Callable[[], Any], limits: Limits, *, processes: int = 0) -> None:
        self.service = Service(make, jobs=processes)
        jobs = self.service.jobs
        self.offers: tuple[Offer, ...] = self.service.description.offers
        self.limits = limits
        self._most = {"queue": limits.queue or 2 * jobs, "streams": limits.streams or 2 * jobs}
        self.accepted = dict.fromkeys(self._most, 0)
        self.bytes = 0
        self.waiting = 0
        self.batches = self.rows = 0
        self.failure: BaseException | None = None
        self.failed: Callable[[], None] = lambda: None
        self._seconds = 0.0  # that a row takes a process, lately
        self._numbers = count()
        self._calls = deque[Call]()  # those with rows that wait, in turn
        self.working: dict[str, tuple[_Row, float]] = {}
        self._lock = threading.Lock()
        self._ends = False
        self._thread = threading.Thread(target=self._work, name="veriglot-batches", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    @property
    def is_ready(self) -> bool:
        """Whether rows that come now are judged."""
        return self.failure is None and not self._ends and self.service.ready > 0

    def start(self) -> None:
        """Begin to judge."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Judge what somebody waits for, then stop the processes."""
        self._ends = True
        if self._thread.ident is None:
            self.service.close()
            return
        with suppress(OSError):  # it has closed
            self.service.wake()
        while self._thread.is_alive():
            self._thread.join(0.1)
            if not any(self.accepted.values()):  # a row may take for ever, and nobody waits for it
                self.service.stop()

    # Admission.

    def check(self, kind: str) -> None:
        """Refuse a call where no more of its kind are accepted now.

        Raises:
            CallRefused: 503 where nothing is judged any more, 429 where it is one too many.
        """
        if self.failure or self._ends:
            raise _stopped()
        if self.accepted[kind] >= self._most[kind]:
            self._refuse("busy", "Too many calls are being answered.", kind)

    @contextmanager
    def accept(self, kind: str) -> Iterator[Call]:
        """A call, while it is answered.

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
                for row in call:  # nobody waits for them any more
                    row.answer.cancel()

    @contextmanager
    def memory(self) -> Iterator[Callable[[int], None]]:
        """Counts the bytes of a request until it is answered; the counter raises `CallRefused` (429) beyond it."""
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
        """Have a sample judged; the prediction bears its id.

        Args:
            call: whose row it is.
            sample: its `meta` says by which detector and how (see `Selection`).
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
        """The next batch, a row of each call in turn; called by the thread of the service."""
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
                sample = replace(row.sample, id=str(next(self._numbers)))  # ids of calls may be alike
                code_points += len(sample.response) + sum(len(passage.text) for passage in sample.evidence)
                self.working[sample.id] = (row, now)
                batch.append(sample)
        return batch

    def _give(self, samples: Sequence[Sample], predictions: Sequence[Prediction]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
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
        """Nothing can be judged any more: whoever waits is told."""
        for row in chain((row for row, _ in self.working.values()), *self._calls):
            if not row.answer.done():
                row.answer.set_exception(_stopped())
        self.failed()


def _stopped() -> CallRefused:
    return CallRefused(503, "stopping", "This server is stopping.", "Try again, or another one.", retry_after="5")


def choice(offers: Sequence[Offer], detector: Any, strictness: Any) -> Offer:
    """The detector that a call asks for.

    Raises:
        UsageError: it is not offered, or not in that strictness.
    """
    offer = offers[0] if detector is None else next((offer for offer in offers if offer.name == detector), None)
    if offer is None:
        names = ", ".join(offer.name for offer in offers)
        raise UsageError(
            f"The detector {detector!r} is not served here.",
            f"Served: {names}; veriglot serve --detectors NAME,NAME serves others.",
        )
    if strictness not in offer.strictness:
        levels = ", ".join(offer.strictness)
        raise UsageError(f"{offer.name} knows no strictness {strictness!r}.", f"It knows: {levels}.")
    return offer
