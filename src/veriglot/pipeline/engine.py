"""The local engine: batches, rows judged in this process or on all cores, and jobs that write outputs.

The output order is the input order, and predictions do not depend on the number of processes or the batch size. Memory
is bounded: rows are read only as fast as predictions are consumed.
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

_BATCHES_AHEAD = 4  # per process: enough that one slow batch at the front does not stop the others
_GROWTH = 8  # factor for batches on a cluster: a call costs a millisecond, but every worker needs some of few rows
_BATCH_CODE_POINTS = 2_000_000  # closes a batch early, so that long rows do not add up in memory
_DEATHS_AT_START = 3  # in a row, without any worker becoming ready: the samples are not the cause
_PREDICTIONS = msgspec.json.Decoder(Prediction)
_GONE = (EOFError, OSError)  # a pipe whose other end is closed, or closed within a message

# Each process has one core: numerical libraries with a thread per core would slow each other down.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class _Batch(Generic[P]):
    """Consecutive rows, the samples among them, and the predictions (or scores) as they arrive."""

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
        """The rows in order; rows that are not samples have None."""
        predictions = iter(self.predictions)
        for row in self.rows:
            yield row, next(predictions) if isinstance(row, Sample) else None


@dataclass(frozen=True)
class _Share(Generic[P]):
    """The part `[start, end)` of a batch's samples that one worker has; `deaths` counts workers that died on it."""

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
        """What to try after a worker died on this share.

        First the same again, because the worker may have been killed from outside; after a second death sample by
        sample, so that only the failing sample is lost.
        """
        deaths = self.deaths + 1
        if deaths < 2 or self.end - self.start == 1:
            return [_Share(self.batch, self.start, self.end, deaths)]
        return [_Share(self.batch, first, last) for first, last in pairwise(range(self.start, self.end + 1))]


def _batches(
    rows: Iterable[Sample | P], size: int, grown: int, share: int, ready: Callable[[], bool]
) -> Iterator[_Batch[P]]:
    """Batches of at most `size` rows and about `_BATCH_CODE_POINTS` of text; nothing is read ahead.

    They grow up to `grown` rows, but to at most a fraction 1 / `share` of the rows before them.

    A batch also ends if the next row is not `ready`, so that available rows do not wait.
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
    """Description of a detector, see `records.Detector`. A scorer has no taxonomy and no threshold.

    Attributes:
        name, taxonomy, threshold, signature: as in `records.Detector`; "" and 1.0 for a scorer.
        kind: detector or scorer.
        detectors: descriptions of its parts, if it combines several; see `server.batches`.
    """

    name: str
    taxonomy: str
    threshold: float
    signature: str
    kind: Literal["detector", "scorer"] = "detector"
    detectors: tuple[Any, ...] = ()

    @classmethod
    def of(cls, maker: Detector | Scorer) -> Description:
        """Describe a detector or a scorer."""
        if _is_scorer(maker):
            return cls(maker.name, "", 1.0, maker.signature, "scorer")
        return cls(
            maker.name, maker.taxonomy, maker.threshold, maker.signature, detectors=getattr(maker, "detectors", ())
        )


def _is_scorer(maker: Detector | Scorer) -> TypeIs[Scorer]:
    """Whether it returns scores instead of predictions."""
    return not hasattr(maker, "predict")


def judge(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    """One answer per sample, in order: predictions of a detector, scores of a scorer.

    They must not raise because of a sample. If one does, or breaks the protocol, it gets its samples one by one, and
    those that fail alone have status `failed` and the reason.
    """
    try:
        return _ask(maker, samples)
    except Exception as error:
        if len(samples) == 1:
            about = Description.of(maker)
            return [failed_answer(samples[0], about, _reason(error, about.kind))]
    return [answer for sample in samples for answer in judge(maker, [sample])]


def _judge_until_interrupted(maker: Detector | Scorer, samples: Sequence[Sample]) -> list[Any]:
    """`judge`, where Ctrl-C always ends the run.

    Libraries may catch KeyboardInterrupt, or replace it by another exception, which would only make samples fail.
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
    """The record of a sample that could not be judged, with the reason."""
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
    """Why a worker could not create its detector. Not all exceptions can be pickled."""

    message: str
    remedy: str
    exit_code: int

    def as_error(self) -> VeriglotError:
        """The same as an error."""
        error = VeriglotError(self.message, self.remedy)
        error.exit_code = self.exit_code
        return error


def load(recipe: bytes) -> tuple[Any, Description | Refusal]:
    """Create the detector from a pickled function; returns it with its description, or None with the reason."""
    try:
        maker: Detector | Scorer = pickle.loads(recipe)()  # noqa: S301  # from our own parent process
        return maker, Description.of(maker)
    except VeriglotError as error:
        return None, Refusal(error.message, error.remedy, error.exit_code)
    except Exception as error:
        return None, Refusal(f"The detector cannot be made: {type(error).__name__}: {error}", "", 1)


def _serve(connection: Connection, recipe: bytes) -> None:
    """Loop of a worker: sends the detector's description or an error, then answers batches until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent handles it
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    detector, hello = load(recipe)
    try:
        connection.send(hello)
        while isinstance(hello, Description):
            connection.send(_packed(judge(detector, connection.recv())))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone; nobody needs an answer


def _packed(answers: list[Any]) -> list[Any]:
    """Predictions as lines of JSON, as in files: faster than pickle, and outputs can write them unchanged."""
    try:
        return [encode(answer) if type(answer) is Prediction else answer for answer in answers]
    except Exception:  # values that JSON cannot represent fail when they are written, as in a single process
        return answers


def _unpacked(answer: Any) -> Any:
    return _PREDICTIONS.decode(answer) if isinstance(answer, bytes) else answer


# A pool of worker processes that detects dead ones.
#
# The pool of the standard library breaks as a whole when a worker is killed, and does not know its task. Here each
# worker has its own pipe and one share of a batch at a time, so the lost share is known exactly.


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    share: _Share[Any] | None = None


class Service:
    """Processes that judge batches as they arrive: for a server, as `Engine.run` is for a given input.

    `run`, `answers` and `close` must be called from one thread; everything else from any.

    Args:
        make: creates the detector; it is pickled.
        jobs: number of processes; 0 for one per core.

    Attributes:
        description: the detector's description.
        deaths: number of processes that died and were replaced.

    Raises:
        VeriglotError: the detector cannot be created.
    """

    description: Description

    def __init__(self, make: Callable[[], Any], *, jobs: int = 0) -> None:
        self.jobs = jobs or cores()
        self.deaths = 0
        self._context = multiprocessing.get_context("spawn")  # safe with threads in the caller
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
        """Number of processes that have loaded the detector."""
        return sum(worker.ready for worker in self._workers)

    @property
    def _idle(self) -> int:
        return sum(worker.ready and worker.share is None for worker in self._workers)

    @property
    def _hungry(self) -> bool:
        """Whether a worker is idle and no share waits for it."""
        return self._idle > 0 and not self._waiting

    def wake(self) -> None:
        """Make `run` ask for samples immediately; otherwise it asks when a process sends a message."""
        if not self._rung:
            self._rung = True
            self._ringer.send_bytes(b"!")

    def stop(self) -> None:
        """Make `run` return immediately; shares in progress are lost."""
        self._stops = True
        with suppress(OSError):  # it is closed
            self.wake()

    def run(
        self, take: Callable[[int], Sequence[Sample] | None], give: Callable[[Sequence[Sample], Sequence[Any]], None]
    ) -> None:
        """Judge until there is no more input.

        Args:
            take: gets the number of idle processes and returns a batch for one: empty for none now, or None for the
                end.
            give: gets a batch with its predictions, in order; each batch once.

        Raises:
            VeriglotError: processes die while they load the detector.
        """
        begun: list[_Batch[Any]] = []
        unfinished = True
        while (unfinished or begun) and not self._stops:
            while unfinished and self._hungry:
                samples = take(self._idle)
                unfinished = samples is not None
                if not samples:
                    break
                batch = _Batch[Any]()
                for sample in samples:
                    batch.add(sample)
                begun.append(batch)
                self._submit(batch)
            if unfinished or begun:
                self._wait()
            for batch in begun:
                if None not in batch.predictions:
                    give(batch.samples, [*map(_unpacked, batch.predictions)])
            begun = [batch for batch in begun if None in batch.predictions]

    def answers(
        self, queue: Iterator[_Batch[R]], most: int, ready: Callable[[], bool]
    ) -> Iterator[tuple[Sample | R, Any]]:
        """The rows of batches in order, with their predictions.

        `most` limits the batches that were read and not yet returned, including those that wait for an earlier one.
        """
        begun = deque[_Batch[Any]]()
        unfinished = True
        while unfinished or begun:
            while unfinished and self._hungry and len(begun) < most and (not begun or ready()):
                batch = next(queue, None)
                if batch is None:
                    unfinished = False
                    break
                begun.append(batch)
                self._submit(batch)
            while begun and None not in begun[0].predictions:
                yield from begun.popleft().answered()
            if begun or (unfinished and not self._hungry):
                self._wait()

    def close(self) -> None:
        """Stop every process immediately, without waiting for their shares."""
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
        """Distribute a batch; `_wait` fills in its predictions."""
        if batch.samples:
            self._waiting.append(_Share(batch, 0, len(batch.samples)))
            self._hand_out()

    def _wait(self) -> None:
        """Block until a worker sends a message (ready, an answer, or its death), or `wake` is called."""
        self._listen()
        self._hand_out()

    def _start(self) -> _Worker:
        own_end, worker_end = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(worker_end, self._recipe), daemon=True)
        with _defer_interrupt():
            process.start()
        worker_end.close()  # so that the pipe closes when the worker ends
        return _Worker(process, own_end)

    def _hand_out(self) -> None:
        for worker in list(self._workers):
            if not self._waiting:
                return
            if worker.ready and worker.share is None:
                worker.share = self._waiting.popleft()
                try:
                    worker.connection.send(worker.share.samples)
                except _GONE:
                    self._replace_dead(worker)

    def _listen(self) -> None:
        voices = {worker.connection: worker for worker in self._workers}
        for connection in wait([*voices, self._bell]):
            if connection is self._bell:
                self._bell.recv_bytes()
                self._rung = False  # reset before checking for new work
                continue
            worker = voices[connection]  # type: ignore[index]  # `wait` returns what it was given
            try:
                message = worker.connection.recv()
            except _GONE:
                self._replace_dead(worker)
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

    def _replace_dead(self, worker: _Worker) -> None:
        """Replace a dead worker, and put its share back into the queue."""
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
    """Start processes that never receive Ctrl-C, not even before they can ignore it; here it is raised afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process would start it, and it would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Engine:
    """Runs rows through one detector or scorer. A context manager; leaving it stops the processes.

    Args:
        make: creates it, such as a `functools.partial` of a class; with several processes it is pickled.
        jobs: number of processes; 1 for this process, 0 for one per core.
        batch_size: maximum rows in a batch, at least 1.
        pool: a replacement for processes on this machine; see `ray_engine.open_engine`.

    Attributes:
        description: of the detector or scorer.

    Raises:
        UsageError: `jobs` or `batch_size` out of range.
        VeriglotError: the detector cannot be created.
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
        """CPU time of judging on a cluster, in seconds."""
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

        For a live stream, `ready` tells whether the next row is available; if not, the rows before it are judged
        immediately.

        Rows that are not a `Sample` pass through in order, with None. If the detector raises on a sample, or its
        process dies twice, the prediction has status `failed`; no row is lost.
        """
        return ((row, _unpacked(answer)) for row, answer in self.answers(rows, ready))

    def scores(self, samples: Iterable[Sample]) -> Iterator[Score]:
        """The same for a scorer: one score per sample, in order."""
        return (score for _, score in self.answers(samples, lambda: True))

    def answers(self, rows: Iterable[Sample | R], ready: Callable[[], bool]) -> Iterator[tuple[Sample | R, Any]]:
        """Like `run`, but predictions of other processes are lines of JSON."""
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
    """One output to make: its input rows and its file.

    Attributes:
        rows: opens the input; called only when its turn comes, so that thousands of inputs are not open together.
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
    """Make every output, in order, with all processes over all inputs.

    After any interruption, finished rows are kept, and the same call continues after them.

    Args:
        jobs: the outputs; finished ones are counted and left unchanged.
        engine: judges the rows.
        stop: raise at the first unreadable row instead of recording it; earlier rows are kept.
        seen: called for every new row, with the result of `Engine.answers`.

    Raises:
        InputError: with `stop`, the first unreadable row.
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
    """The rows of all jobs, and after the rows of each job its checkpoint."""
    for job in jobs:
        job.checkpoint.open()
        if not job.checkpoint.finished:
            yield from job.checkpoint.remaining(job.rows())
        yield job.checkpoint
