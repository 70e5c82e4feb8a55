"""The local engine: batches, rows judged in this process or over all cores, and jobs that write outputs.

Order out is order in, and the predictions are the same, for any number of processes and any batch size. Memory is
bounded: rows are read only as fast as predictions are taken.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from veriglot.errors import UsageError, VeriglotError
from veriglot.records import Detector, Prediction, Record, Sample, Score, Scorer, Status, encode
from veriglot.storage.checkpoint import Checkpoint, FailedRow, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.context import SpawnProcess
    from types import FrameType

    from typing_extensions import TypeIs

__all__ = [
    "Description",
    "Engine",
    "OutputJob",
    "Refusal",
    "Service",
    "cores",
    "failed_answer",
    "judge",
    "load",
    "run_jobs",
]

P = TypeVar("P")
R = TypeVar("R")

_BATCHES_AHEAD = 4  # per process: enough that one slow batch at the head does not stop the others
_GROWTH = 8  # of a batch for a cluster: a call costs a millisecond, but few rows have to reach every worker
_BATCH_CODE_POINTS = 2_000_000  # at which a batch is closed early, so that long rows do not multiply in memory
_DEATHS_AT_START = 3  # in a row, no worker becoming ready between them: the fault is not in the samples
_PREDICTIONS = msgspec.json.Decoder(Prediction)
_GONE = (EOFError, OSError)  # a pipe whose other end is gone, or broke off within a message

# Each process has one core: numerical libraries that start a thread per core would only stand in each other's way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class _Batch(Generic[P]):
    """Consecutive rows, the samples among them, and the predictions (or scores) as they come in."""

    rows: list[Sample | P] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    predictions: list[Prediction | Score | bytes | None] = field(default_factory=list)
    code_points: int = 0

    def add(self, row: Sample | P) -> None:
        self.rows.append(row)
        if isinstance(row, Sample):
            self.samples.append(row)
            self.predictions.append(None)
            self.code_points += len(row.response) + sum(len(passage.text) for passage in row.evidence)

    def answered(self) -> Iterator[tuple[Sample | P, Any]]:
        """The rows in order; a row that passes through comes with None."""
        predictions = iter(self.predictions)
        for row in self.rows:
            yield row, next(predictions) if isinstance(row, Sample) else None


@dataclass(frozen=True)
class _Share(Generic[P]):
    """A part of a batch, `[start, end)` of its samples, that one worker holds; `deaths` is how many died over it."""

    batch: _Batch[P]
    start: int
    end: int
    deaths: int = 0

    @property
    def samples(self) -> Sequence[Sample]:
        return self.batch.samples[self.start : self.end]

    def fill(self, predictions: Sequence[Prediction | Score]) -> None:
        self.batch.predictions[self.start : self.end] = predictions

    def after_death(self) -> list[_Share[P]]:
        """What to try next when a worker died over this share.

        Once again as it is, because the worker may have been killed from outside; after a second death sample by
        sample, so that only the sample that kills is lost.
        """
        deaths = self.deaths + 1
        if deaths < 2 or self.end - self.start == 1:
            return [_Share(self.batch, self.start, self.end, deaths)]
        return [_Share(self.batch, first, last) for first, last in pairwise(range(self.start, self.end + 1))]


def _batches(
    rows: Iterable[Sample | P], size: int, grown: int, share: int, ready: Callable[[], bool]
) -> Iterator[_Batch[P]]:
    """Batches of at most `size` rows and about `_BATCH_CODE_POINTS` of text; nothing is read ahead.

    They grow to `grown` rows, while none holds more than one in `share` of the rows before it.

    A batch ends where no further row is `ready`, so that those that are there need not wait for one that is not.
    """
    batch = _Batch[P]()
    for number, row in enumerate(rows):
        batch.add(row)
        if (
            len(batch.rows) >= max(size, min(grown, number // share))
            or batch.code_points >= _BATCH_CODE_POINTS
            or not ready()
        ):
            yield batch
            batch = _Batch()
    if batch.rows:
        yield batch


class Description(Record):
    """What a detector says of itself: see `records.Detector`. A scorer has no taxonomy and no threshold.

    Attributes:
        name, taxonomy, threshold, signature: as there; "" and 1.0 of a scorer.
        kind: which of the two it is.
        offers: what it says of those that it stands for, where it stands for several; see `server.batches`.
    """

    name: str
    taxonomy: str
    threshold: float
    signature: str
    kind: Literal["detector", "scorer"] = "detector"
    offers: tuple[Any, ...] = ()

    @classmethod
    def of(cls, maker: Detector | Scorer) -> Description:
        """Describe a detector or a scorer."""
        if _is_scorer(maker):
            return cls(maker.name, "", 1.0, maker.signature, "scorer")
        return cls(maker.name, maker.taxonomy, maker.threshold, maker.signature, offers=getattr(maker, "offers", ()))


def _is_scorer(maker: Detector | Scorer) -> TypeIs[Scorer]:
    """Whether it gives numbers and no predictions."""
    return not hasattr(maker, "predict")


def judge(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    """One answer per sample, in order: predictions of a detector, scores of a scorer.

    Neither may raise because of a sample. Where one does, or breaks the protocol, its samples are asked about one by
    one, and those that fail alone come back with status `failed` and the reason.
    """
    try:
        return _ask(maker, samples)
    except Exception as error:
        if len(samples) == 1:
            about = Description.of(maker)
            return [failed_answer(samples[0], about, _reason(error, about.kind))]
    return [answer for sample in samples for answer in judge(maker, [sample])]


def _judge_until_interrupted(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    """`judge`, and Ctrl-C while it runs ends the run.

    Libraries may swallow the KeyboardInterrupt, or make another exception of it, so that samples would fail instead.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        return judge(maker, samples)
    interrupts = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        answers = judge(maker, samples)
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt
    return answers


def failed_answer(sample: Sample, about: Description, reason: str) -> Prediction | Score:
    """The record of a sample that could not be judged, and why."""
    record: type[Any] = Score if about.kind == "scorer" else Prediction
    answer: Prediction | Score = record(
        id=sample.id,
        status=Status.FAILED,
        language=sample.language,
        reason=reason,
        signature=about.signature,
        **{about.kind: about.name},
    )
    return answer


def _ask(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    answers = [*(maker.score(samples) if _is_scorer(maker) else maker.predict(samples))]
    wanted = [sample.id for sample in samples]
    given = [answer.id for answer in answers]
    if given != wanted:
        kind, what = ("scorer", "scores") if _is_scorer(maker) else ("detector", "predictions")
        raise VeriglotError(
            f"the {kind} {maker.name} gave {what} for {given[:3]} (of {len(given)})"
            f" where {wanted[:3]} (of {len(wanted)}) were asked for"
        )
    return answers


def _reason(error: Exception, kind: str) -> str:
    if isinstance(error, VeriglotError):
        return str(error)
    return f"the {kind} raised {type(error).__name__}: {error}".rstrip(": ")


class Refusal(Record):
    """Why a worker could not make its detector. Errors themselves do not all survive pickling."""

    message: str
    remedy: str
    exit_code: int

    def as_error(self) -> VeriglotError:
        """The same as an error."""
        error = VeriglotError(self.message, self.remedy)
        error.exit_code = self.exit_code
        return error


def load(recipe: bytes) -> tuple[Any, Description | Refusal]:
    """Make the detector of a pickled recipe; gives it and what it says of itself, or None and why there is none."""
    try:
        maker: Detector | Scorer = pickle.loads(recipe)()  # noqa: S301  # written by our own parent process
        return maker, Description.of(maker)
    except VeriglotError as error:
        return None, Refusal(error.message, error.remedy, error.exit_code)
    except Exception as error:
        return None, Refusal(f"The detector cannot be made: {type(error).__name__}: {error}", "", 1)


def _serve(connection: Connection, recipe: bytes) -> None:
    """Body of a worker: says what its detector is or why there is none, then answers batches until its pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what it means
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    detector, hello = load(recipe)
    try:
        connection.send(hello)
        while isinstance(hello, Description):
            connection.send(_packed(judge(detector, connection.recv())))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone, and with it whoever wanted an answer


def _packed(answers: list[Any]) -> list[Any]:
    """Predictions as the lines of JSON that files hold: quicker than pickle, and an output takes them as they are."""
    try:
        return [encode(answer) if type(answer) is Prediction else answer for answer in answers]
    except Exception:  # what JSON cannot hold fails where it is written, in one process as in several
        return answers


def _unpacked(answer: Any) -> Any:
    return _PREDICTIONS.decode(answer) if isinstance(answer, bytes) else answer


# A pool of worker processes that notices when one dies.
#
# The pool of the standard library breaks as a whole when a worker is killed, and cannot say which task killed it. Here
# each worker has a pipe of its own and holds one share of a batch at a time, so what a dead worker held is known
# exactly.


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    share: _Share[Any] | None = None


class Service:
    """Processes that judge batches as they come: for a server, as `Engine.run` is for rows that are there.

    `run`, `answers` and `close` belong to one thread; everything else may be called from any.

    Args:
        make: makes the detector; it is pickled.
        jobs: number of processes; 0 takes every core.

    Attributes:
        description: what the detector says of itself.
        deaths: how many processes died and were replaced.

    Raises:
        VeriglotError: the detector cannot be made.
    """

    description: Description

    def __init__(self, make: Callable[[], Any], *, jobs: int = 0) -> None:
        self.jobs = jobs or cores()
        self.deaths = 0
        self._context = multiprocessing.get_context("spawn")  # safe whatever threads the caller runs
        self._recipe = pickle.dumps(make)
        self._deaths_at_start = 0
        self._waiting = deque[_Share[Any]]()
        self._workers: list[_Worker] = []
        self._bell, self._ringer = self._context.Pipe(duplex=False)
        self._rung = self._stops = False
        try:
            for _ in range(self.jobs):
                self._workers.append(self._start())
            while not self.ready:
                self._listen()
        except BaseException:
            self.close()
            raise

    @property
    def ready(self) -> int:
        """How many processes have loaded the detector."""
        return sum(worker.ready for worker in self._workers)

    @property
    def _idle(self) -> int:
        return sum(worker.ready and worker.share is None for worker in self._workers)

    @property
    def _hungry(self) -> bool:
        """Whether a worker has nothing to do and nothing waits for it."""
        return self._idle > 0 and not self._waiting

    def wake(self) -> None:
        """Make `run` ask for samples at once; else it asks when a process has something to say."""
        if not self._rung:
            self._rung = True
            self._ringer.send_bytes(b"!")

    def stop(self) -> None:
        """Make `run` return at once; what is being judged is given up."""
        self._stops = True
        with suppress(OSError):  # it has closed
            self.wake()

    def run(
        self, take: Callable[[int], Sequence[Sample] | None], give: Callable[[Sequence[Sample], Sequence[Any]], None]
    ) -> None:
        """Judge until there is no more.

        Args:
            take: is told how many processes are idle and gives a batch for one: none for now, or None for the end.
            give: gets a batch back with its predictions, in order; each batch once.

        Raises:
            VeriglotError: processes die while they load the detector.
        """
        begun: list[_Batch[Any]] = []
        more = True
        while (more or begun) and not self._stops:
            while more and self._hungry:
                samples = take(self._idle)
                more = samples is not None
                if not samples:
                    break
                batch = _Batch[Any]()
                for sample in samples:
                    batch.add(sample)
                begun.append(batch)
                self._submit(batch)
            if more or begun:
                self._wait()
            for batch in begun:
                if None not in batch.predictions:
                    give(batch.samples, [*map(_unpacked, batch.predictions)])
            begun = [batch for batch in begun if None in batch.predictions]

    def answers(
        self, queue: Iterator[_Batch[R]], most: int, ready: Callable[[], bool]
    ) -> Iterator[tuple[Sample | R, Any]]:
        """The rows of batches in order, with their predictions.

        `most` bounds the batches that were read and not yet given out, those that wait for an earlier one included.
        """
        begun = deque[_Batch[Any]]()
        more = True
        while more or begun:
            while more and self._hungry and len(begun) < most and (not begun or ready()):
                batch = next(queue, None)
                if batch is None:
                    more = False
                    break
                begun.append(batch)
                self._submit(batch)
            while begun and None not in begun[0].predictions:
                yield from begun.popleft().answered()
            if begun or (more and not self._hungry):
                self._wait()

    def close(self) -> None:
        """Stop every process at once; what they hold is not waited for."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.process.close()
        self._workers.clear()
        self._bell.close()
        self._ringer.close()

    def _submit(self, batch: _Batch[Any]) -> None:
        """Hand a batch out; its predictions are filled in during `_wait`."""
        if batch.samples:
            self._waiting.append(_Share(batch, 0, len(batch.samples)))
            self._hand_out()

    def _wait(self) -> None:
        """Block until at least one worker has something to say (ready, an answer, or its death), or `wake`."""
        self._listen()
        self._hand_out()

    def _start(self) -> _Worker:
        ours, worker_end = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(worker_end, self._recipe), daemon=True)
        with _defer_interrupt():
            process.start()
        worker_end.close()  # so that the pipe ends when the worker does
        return _Worker(process, ours)

    def _hand_out(self) -> None:
        for worker in list(self._workers):
            if not self._waiting:
                return
            if worker.ready and worker.share is None:
                worker.share = self._waiting.popleft()
                try:
                    worker.connection.send(worker.share.samples)
                except _GONE:
                    self._bury(worker)

    def _listen(self) -> None:
        voices = {worker.connection: worker for worker in self._workers}
        for connection in wait([*voices, self._bell]):
            if connection is self._bell:
                self._bell.recv_bytes()
                self._rung = False  # before anybody looks for what it was rung for
                continue
            worker = voices[connection]  # type: ignore[index]  # `wait` returns what it was given
            try:
                message = worker.connection.recv()
            except _GONE:
                self._bury(worker)
            else:
                self._take(worker, message)

    def _take(self, worker: _Worker, message: Any) -> None:
        if isinstance(message, Refusal):
            raise message.as_error()
        if isinstance(message, Description):
            worker.ready = True
            self.description = message
            self._deaths_at_start = 0
            return
        assert worker.share is not None
        worker.share.fill(message)
        worker.share = None

    def _bury(self, worker: _Worker) -> None:
        """Put a new worker in the place of a dead one, and what it held back in the queue."""
        worker.connection.close()
        worker.process.join()
        code = worker.process.exitcode
        self.deaths += 1
        if not worker.ready:
            self._deaths_at_start += 1
            if self._deaths_at_start >= _DEATHS_AT_START:
                raise VeriglotError(
                    f"Worker processes die while they load the detector ({_how(code)}).",
                    "Check the memory, or try --processes 1. In a script, call it under `if __name__ =="
                    " '__main__':`, because every process runs the rest of the script.",
                )
        share, worker.share = worker.share, None
        worker.process.close()
        self._workers[self._workers.index(worker)] = self._start()
        if share is None:
            return
        if share.end - share.start == 1 and share.deaths >= 1:
            reason = f"the worker process died twice over this sample ({_how(code)})"
            share.fill([failed_answer(share.samples[0], self.description, reason)])
            return
        self._waiting.extendleft(reversed(share.after_death()))


@contextmanager
def _defer_interrupt() -> Iterator[None]:
    """Start processes to which Ctrl-C never gets, not even before they can refuse it; here it arrives afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would be started with the first process, and let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Engine:
    """Moves rows through one detector, or one scorer. A context manager; leaving it stops the processes.

    Args:
        make: makes it, such as a `functools.partial` of a class; with several processes it is pickled.
        jobs: number of processes; 1 stays in this one, 0 takes every core.
        batch_size: most rows in a batch, at least 1.
        pool: what judges instead of processes of this machine; see `ray_engine.open_engine`.

    Attributes:
        description: what the detector, or the scorer, says of itself.

    Raises:
        UsageError: `jobs` or `batch_size` out of range.
        VeriglotError: the detector cannot be made.
    """

    def __init__(self, make: Callable[[], Any], *, jobs: int = 1, batch_size: int = 32, pool: Any = None) -> None:
        if jobs < 0:
            raise UsageError(f"The number of processes is 0 (one per core) or more, but {jobs} was asked for.")
        if batch_size < 1:
            raise UsageError(f"A batch holds at least 1 row, but {batch_size} was asked for.")
        self.jobs = jobs or cores()
        self.batch_size = batch_size
        self._detector: Detector | Scorer | None = None
        self._pool: Any = pool
        self._remote = pool is not None
        if self.jobs == 1 and pool is None:
            self._detector = make()
            self.description = Description.of(self._detector)
        else:
            self._pool = pool or Service(make, jobs=self.jobs)
            self.description = self._pool.description

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cpu_seconds(self) -> float:
        """CPU time of judging on a cluster."""
        return float(getattr(self._pool, "cpu_seconds", 0.0))

    def close(self) -> None:
        """Stop the processes, if there are any."""
        if self._pool:
            self._pool.close()
            self._pool = None

    def run(
        self, rows: Iterable[Sample | R], *, ready: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[Sample | R, Prediction | None]]:
        """The rows in order, each sample with its prediction.

        `ready` says of a live stream whether its next row is there; without it the rows before it are judged at once.

        What is not a `Sample` passes through in its place, with None. A sample over which the detector raises, or over
        which its process dies twice, gets a prediction of status `failed`; no row is lost.
        """
        return ((row, _unpacked(answer)) for row, answer in self.answers(rows, ready))

    def scores(self, samples: Iterable[Sample]) -> Iterator[Score]:
        """The same of a scorer: one score a sample, in order."""
        return (score for _, score in self.answers(samples, lambda: True))

    def answers(self, rows: Iterable[Sample | R], ready: Callable[[], bool]) -> Iterator[tuple[Sample | R, Any]]:
        """As `run`, but a prediction that another process made comes as its line of JSON."""
        grown = self.batch_size * _GROWTH if self._remote else self.batch_size
        queue = _batches(rows, self.batch_size, grown, self.jobs * _BATCHES_AHEAD, ready)
        if self._detector is None:
            assert self._pool, "the engine is closed"
            yield from self._pool.answers(queue, self.jobs * _BATCHES_AHEAD, ready)
            return
        for batch in queue:
            if batch.samples:
                batch.predictions[:] = _judge_until_interrupted(self._detector, batch.samples)
            yield from batch.answered()


@dataclass
class OutputJob:
    """One output to make: where its rows come from and where they go.

    Attributes:
        rows: opens the input; called once, when its turn comes, so that thousands of inputs are not open together.
        checkpoint: the output.
    """

    rows: Callable[[], Iterable[Sample | FailedRow]]
    checkpoint: Checkpoint


def run_jobs(
    jobs: Sequence[OutputJob],
    engine: Engine,
    *,
    stop: bool = False,
    seen: Callable[[Sample | FailedRow, Any], None] | None = None,
) -> Tally:
    """Make every output, all processes over all inputs, in order.

    Whatever ends it, the rows that are done are kept, and the same call continues after them.

    Args:
        jobs: what to make; outputs that are finished are counted and left alone.
        engine: what judges the rows.
        stop: raise at the first row that cannot be read instead of noting it; what stands before it is kept.
        seen: called for every row that this call added; with what `Engine.answers` gives for it.

    Raises:
        InputError: with `stop`, the first row that cannot be read.
    """
    for job in jobs:
        job.checkpoint.check()
    current = deque(jobs)
    try:
        rows: Iterator[tuple[Sample | FailedRow | Checkpoint, Any]] = engine.answers(_stream(jobs), lambda: True)
        for row, prediction in rows:
            if isinstance(row, Checkpoint):
                row.complete()
                current.popleft()
                continue
            if prediction is not None:
                current[0].checkpoint.write(prediction)
            elif isinstance(row, FailedRow):
                if stop:
                    raise row.as_error()
                current[0].checkpoint.fail(row)
            if seen is not None:
                seen(row, prediction)
    finally:
        for job in jobs:
            job.checkpoint.close()
    tally = Tally()
    for job in jobs:
        tally.take(job.checkpoint.tally)
    return tally


def _stream(jobs: Sequence[OutputJob]) -> Iterator[Sample | FailedRow | Checkpoint]:
    """The rows of all jobs, and after those of each its checkpoint."""
    for job in jobs:
        job.checkpoint.open()
        if not job.checkpoint.finished:
            yield from job.checkpoint.remaining(job.rows())
        yield job.checkpoint
