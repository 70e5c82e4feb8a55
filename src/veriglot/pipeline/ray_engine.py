"""Ray as the engine: actors on the machines of a cluster judge blocks of rows, which become the parts of a folder.

The calling process alone reads the input and writes the parts, so a part cannot be written twice, and the machines
share no file system. An actor holds one block at a time. What it held when it died is tried again: the block, then
pieces of it, then each sample alone, so that a sample that kills is alone with its third death.

Actors that ask a server share its rate: an actor of their own hands out permits, a few at a time.
"""

from __future__ import annotations

import math
import os
import pickle
import secrets
import sys
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from veriglot.errors import UsageError, VeriglotError, needing
from veriglot.http.session import Session
from veriglot.pipeline.engine import Description, Engine, Refusal, cores, failed_answer, judge, load
from veriglot.storage.parts import Block, Outcome, Part, PartFolder

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.records import Prediction, Sample

__all__ = ["Cluster", "Pace", "connected", "open_engine", "text_bytes"]

_ADDRESS = "RAY_ADDRESS"  # Ray's own variable: which cluster; none starts one on this machine
_TRIES = 3  # deaths over a sample before it fails
_DEATHS_AT_START = 3  # in a row, no actor becoming ready between them: the fault is not in the samples
_STORE = 64 << 20  # bytes an actor of Ray's memory for blocks, on a cluster of our own
_EVERY = 60.0  # seconds between the lines of a log
_START = 300.0  # seconds until the first actor of a cluster of our own has to run: nobody else takes its cores
_PATIENCE = 30.0  # seconds until it is said that an actor does not run yet
_SHOWN = 3  # reasons in a line
_GPUS = "VERIGLOT_GPUS"  # of an actor, such as 0.25
_NO_GPU = (
    "a worker has a GPU that PyTorch or ONNX Runtime do not see there, and computes on the CPU. Install PyTorch for"
    f" CUDA, or onnxruntime-gpu, on each machine, or set {_GPUS}=0."
)
_PERMITS = 0.25  # seconds that the permits of one call are for; those of an actor that dies lapse with them


def text_bytes(sample: Sample) -> int:
    """Bytes of the text of a sample in UTF-8."""
    texts = [sample.response, sample.question or "", *(passage.text for passage in sample.evidence)]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


@dataclass
class Pace:
    """How fast a run is and what fails, for progress and for the summary.

    Attributes:
        processes: how many actors run.
        total: rows of the input; None where they were not counted.
        rows: rows done by this run.
        done_before: rows that earlier runs had done.
        deaths: actors that died.
        reasons: failed rows by reason.
        by_process: rows done, by actor.
        cpu_seconds: CPU time of judging and encoding.
        clock: tells the seconds.
    """

    processes: int
    total: int | None = None
    rows: int = 0
    done_before: int = 0
    deaths: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    by_process: Counter[int] = field(default_factory=Counter)
    cpu_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self._last_line = self.clock()

    def add(self, part: Part, process: int | None) -> None:
        """A part is done; by no process where an earlier run had made it."""
        self.reasons.update(part.outcome.reasons)
        self.reasons.update(row.message for row in part.failed)
        rows = part.end - part.start
        if process is None:
            self.done_before += rows
            return
        self.rows += rows
        self.by_process[process] += rows
        self.cpu_seconds += part.seconds

    @property
    def seconds(self) -> float:
        """Wall time since it began."""
        return max(self.clock() - self.began, 1e-9)

    @property
    def skew(self) -> float:
        """Rows of the busiest actor over the mean; 1 where all did the same."""
        return max(self.by_process.values(), default=0) * self.processes / self.rows if self.rows else 1.0

    @property
    def core_hours(self) -> float:
        """Core-hours a million rows: wall time times actors, each of one core."""
        return self.seconds * self.processes / 3600 / self.rows * 1e6 if self.rows else 0.0

    def due_line(self, total: Callable[[], int | None]) -> str | None:
        """How far the run is, once a minute; None in between. `total` counts the rows of the input, the first time."""
        now = self.clock()
        if now - self._last_line < _EVERY:
            return None
        if self._last_line == self.began:
            self.total = total()
        self._last_line = now
        return self.line

    @property
    def line(self) -> str:
        """How far the run is."""
        done = self.done_before + self.rows
        parts = [f"{done:,}{'' if self.total is None else f' of {self.total:,}'} rows"]
        if self.rows:
            rate = self.rows / self.seconds
            parts.append(f"{rate:,.1f} rows/s")
            if self.total is not None:
                parts.append(f"{math.ceil((self.total - done) / rate / 60):,} min left")
            parts.append(f"skew {self.skew:.2f}")
        return ", ".join([*parts, *self._troubles])

    @property
    def summary(self) -> str:
        """What the run took."""
        parts = [f"{self.rows:,} rows in {self.seconds:,.1f} s on {self.processes:,} processes"]
        if self.rows:
            parts.append(
                f"{self.rows / self.seconds:,.1f} rows/s, skew {self.skew:.2f}; a million rows take"
                f" {self.core_hours:,.2f} core-hours, {self.cpu_seconds / self.rows * 1e6 / 3600:,.2f} of them CPU time"
                " of judging"
            )
        return "; ".join([*parts, *self._troubles])

    @property
    def _troubles(self) -> Iterator[str]:
        if self.deaths:
            yield f"{self.deaths:,} deaths"
        if self.reasons:
            common = [f"{count:,} x {reason}" for reason, count in self.reasons.most_common(_SHOWN)]
            more = len(self.reasons) - len(common)
            yield f"{self.reasons.total():,} failed ({'; '.join(common)}{f'; {more:,} other reasons' if more else ''})"


@dataclass(frozen=True)
class _Answer:
    """Predictions of a share: encoded as a part, with what became of them, where the share is a whole block.

    `warning` is what a person should know of where it was judged.
    """

    predictions: list[Any]
    data: bytes | None = None
    outcome: Outcome = field(default_factory=Outcome)
    seconds: float = 0.0
    warning: str = ""


class _Judge:
    """The actor: makes its detector once, and judges."""

    def __init__(self, recipe: bytes, encode: bytes, gpus: float = 0.0) -> None:
        from ray.util import metrics

        Session.permits = _AskPermits()
        # Ray puts the names of nodes and actors beside it.
        self._rows = metrics.Counter("veriglot_rows", "Judgements, by status.", ("status",))
        if gpus:
            os.environ.update(VERIGLOT_ONNX_CUDA="1", ORT_DISABLE_TELEMETRY="1")
        self._gpus = gpus
        self._detector, self._about = load(recipe)
        self._encode = pickle.loads(encode)  # noqa: S301  # written by our own driver

    def describe(self) -> Description | Refusal:
        """What the detector says of itself, or why there is none."""
        return self._about

    def judge(self, samples: Sequence[Sample], whole: bool) -> _Answer | Refusal:
        """Judge samples; `whole` says that they are all of a block, whose part is encoded here."""
        began = time.process_time()
        try:
            predictions = judge(self._detector, samples)
            for prediction in predictions:
                self._rows.inc(tags={"status": prediction.status})
            warning = "" if not self._gpus or _sees_gpu() else _NO_GPU
            if not (whole and self._encode):
                return _Answer(predictions, seconds=time.process_time() - began, warning=warning)
            data = self._encode(predictions)
        except VeriglotError as error:
            return Refusal(error.message, error.remedy, error.exit_code)
        return _Answer([], data, Outcome.of(predictions), time.process_time() - began, warning)


def _sees_gpu() -> bool:
    """Whether PyTorch, where the detector of this actor has computed with it, or else ONNX Runtime can use a GPU."""
    if torch := sys.modules.get("torch"):
        return bool(torch.cuda.is_available())
    import onnxruntime

    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


class _Permits:
    """The actor that hands out permits to ask a server, to all workers in turn. It is one for all servers."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._queues: dict[str, asyncio.Lock] = {}

    async def take(self, server: str, gap: float, count: int) -> int:
        """Wait for at most `count` permits, one every `gap` seconds; returns how many there are, at least 1."""
        import asyncio

        async with self._queues.setdefault(server, asyncio.Lock()):
            # An actor before this one may have given permits that are still being used.
            while (wait := self._next.setdefault(server, time.monotonic() + _PERMITS) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            count = max(1, min(count, int(_PERMITS / gap) if gap else count))
            due, now = self._next[server], time.monotonic()
            self._next[server] = (due if now - due < _PERMITS else now) + gap * count
            return count

    async def hold(self, server: str, seconds: float) -> None:
        """Give none for so many seconds."""
        self._next[server] = max(self._next.get(server, 0.0), time.monotonic() + seconds)


class _AskPermits:
    """Calls a method of `_Permits` from a worker: the first to ask starts it, and again where it is dead."""

    def __init__(self) -> None:
        self._actor: Any = None
        self._lock = threading.Lock()

    def __call__(self, method: str, *request: Any) -> Any:
        import ray
        from ray.exceptions import RayActorError

        while True:
            with self._lock:  # the actor ends with the first handle to it
                if (actor := self._actor) is None:
                    options = {"name": _Permits.__name__, "get_if_exists": True, "num_cpus": 0}
                    actor = self._actor = ray.remote(_Permits).options(**options).remote()
            try:
                return ray.get(getattr(actor, method).remote(*request))
            except RayActorError:  # perhaps with the worker that started it
                with self._lock:
                    if self._actor is actor:
                        self._actor = None
                time.sleep(_PERMITS)


@dataclass(eq=False)
class _Task:
    """Samples to judge: of a block, on its way to be a part, or of a batch whose rows get their predictions back."""

    rows: Any
    samples: Sequence[Sample]
    predictions: list[Any] = field(default_factory=list)
    part: Part | None = None
    done: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.predictions = [None] * len(self.samples)

    def add(self, share: _Share, answer: _Answer) -> bool:
        """Take the answer about a share; whether it was the last that was missing."""
        self.seconds += answer.seconds
        if answer.data is None:
            self.predictions[share.start : share.end] = answer.predictions
        self.done = answer.data is not None or None not in self.predictions
        return self.done

    def finish(self, part: Part) -> None:
        """It is written; its rows go, as it may wait long for an earlier one."""
        self.part, self.done = part, True
        self.samples, self.predictions, self.rows.rows = [], [], []


@dataclass(frozen=True)
class _Share:
    """`[start, end)` of the samples of a block; `deaths` is how many actors died over them."""

    task: _Task
    start: int
    end: int
    deaths: int = 0

    @property
    def samples(self) -> Sequence[Sample]:
        return self.task.samples[self.start : self.end]

    @property
    def whole(self) -> bool:
        return self.end - self.start == len(self.task.samples)

    def after_death(self) -> list[_Share]:
        """What to try next: pieces of the block, then single samples."""
        size = self.end - self.start
        step = 1 if self.deaths else math.ceil(math.sqrt(size))
        bounds = [*range(self.start, self.end, step), self.end] if size else [self.start, self.end]
        return [_Share(self.task, first, last, self.deaths + 1) for first, last in pairwise(bounds)]


@dataclass(eq=False)
class _Actor:
    number: int
    handle: Any
    ready: bool = False
    share: _Share | None = None
    began: float = field(default_factory=time.monotonic)


class Cluster:
    """Actors that judge, one for each core. A context manager; leaving it stops them.

    Args:
        make: makes the detector; it is pickled, like `encode`.
        encode: predictions as the content of a part; needed by `make` alone.
        processes: number of actors; 0 takes every core of the cluster, or every GPU where actors have them.
        gpu: whether an actor asks for a GPU where the cluster has any; `VERIGLOT_GPUS` says how much of one, or 0.
        say: told once where actors do not run after 30 s, and where one sees no GPU.

    Attributes:
        description: what the detector says of itself.
        jobs: how many actors there are to be.
        processes: the most actors that ran at once; those without a free core are not among them.
        deaths: how many actors died.
        cpu_seconds: CPU time of judging, of all actors.

    Raises:
        MissingExtraError: Ray is not installed.
        VeriglotError: there is no cluster at RAY_ADDRESS, or the detector cannot be made.
    """

    description: Description

    def __init__(
        self,
        make: Callable[[], Any],
        encode: Callable[[Sequence[Prediction]], bytes] | None = None,
        *,
        processes: int = 0,
        gpu: bool = False,
        say: Callable[[str], None],
    ) -> None:
        self._recipe, self._encode = pickle.dumps(make), encode
        self._say, self._warned = say, set[str]()
        self._ray, self._ours = _connected(processes)
        self.processes, self.cpu_seconds = 0, 0.0
        self.deaths = self._deaths_at_start = self._numbers = 0
        self._class = self._ray.remote(_Judge)
        self._actors: list[_Actor] = []
        self._calls: dict[Any, _Actor] = {}  # what each actor has in hand
        self._waiting = deque[_Share]()
        try:
            gpus, there = _gpus(gpu), self._ray.cluster_resources()
            self._gpus = gpus if "GPU" in there else 0.0
            most = min(there.get("CPU", 1), there["GPU"] / gpus if self._gpus else math.inf)
            self.jobs = processes or max(1, int(most))
            for _ in range(self.jobs):
                self._start()
            began = time.monotonic()
            while not any(actor.ready for actor in self._actors):
                if not os.environ.get(_ADDRESS) and time.monotonic() - began > _START:
                    raise VeriglotError(
                        f"No worker runs {_START:.0f} s after Ray started on this machine.",
                        "Rerun the command when the machine is less busy, or with fewer --processes.",
                    )
                self._listen()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the actors, and the cluster where it was started here; what they hold is given up."""
        for actor in self._actors:
            self._ray.kill(actor.handle)
        self._actors.clear()
        self._calls.clear()
        if self._ours:
            self._ray.shutdown()

    def make(
        self, blocks: Iterator[Block], folder: PartFolder, *, seen: Callable[[Part, int | None], None]
    ) -> Iterator[Part]:
        """Make the parts of blocks, and yield them in order. No more blocks are in memory than there are actors.

        Args:
            blocks: read only when an actor is idle. Where reading raises, what was begun is finished first.
            folder: where the parts go.
            seen: called for each part as soon as it is there, with the number of the actor that finished it; None
                where an earlier run had made it.

        Raises:
            VeriglotError: actors die while they load the detector, or a part cannot be encoded.
        """

        def tasks() -> Iterator[_Task]:
            for block in blocks:
                task = _Task(block, block.samples)
                if part := folder.listed(block):
                    task.finish(part)
                    seen(part, None)
                yield task

        def finish(task: _Task, answer: _Answer, number: int) -> None:
            data, outcome = answer.data, answer.outcome
            if data is None:
                assert self._encode
                data, outcome = self._encode(task.predictions), Outcome.of(task.predictions)
            task.finish(part := folder.write(task.rows, data, outcome, task.seconds))
            seen(part, number)

        for task in self._judged(tasks(), finish):
            assert task.part
            yield task.part

    def answers(
        self,
        queue: Iterator[Any],
        most: int,
        ready: Callable[[], bool] = lambda: True,  # noqa: ARG002
    ) -> Iterator[tuple[Any, Any]]:
        """The rows of batches in order, with their predictions: see `Service.answers`. It waits for every row."""
        tasks = (_Task(batch, batch.samples, done=not batch.samples) for batch in queue)
        for task in self._judged(tasks, lambda *_: None, most):
            task.rows.predictions[:] = task.predictions
            yield from task.rows.answered()

    def _judged(
        self, tasks: Iterator[_Task], finish: Callable[[_Task, _Answer, int], None], most: int = sys.maxsize
    ) -> Iterator[_Task]:
        """The tasks in order, each when it is done; at most `most` are begun and not yet given out."""
        begun = deque[_Task]()
        fault: Exception | None = None
        more = True
        while more or begun:
            while more and self._hungry and len(begun) < most:
                try:
                    task = next(tasks, None)
                except VeriglotError as error:
                    task, fault = None, error
                if task is None:
                    more = False
                    break
                begun.append(task)
                if not task.done:
                    self._waiting.append(_Share(task, 0, len(task.samples)))
                    self._hand_out()
            while begun and begun[0].done:
                yield begun.popleft()
            if not begun and (not more or self._hungry):
                continue
            for share, answer, number in self._listen():
                self.cpu_seconds += answer.seconds
                if share.task.add(share, answer):
                    finish(share.task, answer, number)
            self._hand_out()
        if fault:
            raise fault

    @property
    def _hungry(self) -> bool:
        return not self._waiting and any(actor.ready and not actor.share for actor in self._actors)

    def _start(self) -> None:
        self._numbers += 1
        settings = {"num_cpus": 1, "num_gpus": self._gpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        handle = self._class.options(**settings).remote(self._recipe, pickle.dumps(self._encode), self._gpus)
        actor = _Actor(self._numbers, handle)
        self._actors.append(actor)
        self._calls[handle.describe.remote()] = actor

    def _hand_out(self) -> None:
        for actor in self._actors:
            if self._waiting and actor.ready and not actor.share:
                actor.share = share = self._waiting.popleft()
                self._calls[actor.handle.judge.remote(share.samples, share.whole)] = actor

    def _listen(self) -> list[tuple[_Share, _Answer, int]]:
        """Wait until an actor is ready, has an answer, or is dead; gives the answers, each with the actor's number."""
        from ray.exceptions import RayError, RayTaskError

        calls, _ = self._ray.wait(list(self._calls), timeout=_PATIENCE)
        answers = []
        for call in calls:
            actor = self._calls.pop(call)
            try:
                message = self._ray.get(call)
            except RayTaskError as error:  # raised by the actor, which lives
                cause = error.cause
                raise (
                    cause if isinstance(cause, VeriglotError) else VeriglotError(f"A worker failed: {cause}")
                ) from None
            except RayError as error:
                if lost := self._bury(actor, error):
                    answers.append((*lost, actor.number))
                continue
            if isinstance(message, Refusal):
                raise message.as_error()
            if isinstance(message, Description):
                self._welcome(actor, message)
            elif actor.share:
                if message.warning:
                    self._warn("gpu", message.warning)
                answers.append((actor.share, message, actor.number))
                actor.share = None
        late = time.monotonic() - _PATIENCE
        if any(not actor.ready and actor.began <= late for actor in self._actors):
            ready, wanted = sum(actor.ready for actor in self._actors), len(self._actors)
            cause = "for free cores or GPUs of the cluster, or for the detector to load"
            self._warn("waiting", f"waiting {cause}: {ready:,} of {wanted:,} workers run.")
        return answers

    def _warn(self, topic: str, message: str) -> None:
        """Say it, once of each topic."""
        if topic not in self._warned:
            self._warned.add(topic)
            self._say(message)

    def _welcome(self, actor: _Actor, description: Description) -> None:
        before = getattr(self, "description", description)
        if before.signature != description.signature:
            raise VeriglotError(
                f"The machines have different detectors: {before.signature} and {description.signature}.",
                "Install the same version of Veriglot and the same models on each.",
            )
        self.description = description
        self._deaths_at_start = 0
        actor.ready = True
        self.processes = max(self.processes, sum(actor.ready for actor in self._actors))

    def _bury(self, actor: _Actor, error: Exception) -> tuple[_Share, _Answer] | None:
        """Put a new actor in the place of a dead one, and what it held back in the queue.

        Returns:
            A sample over which the last try was this one, with its failure.
        """
        self._ray.kill(actor.handle)  # it may be only out of reach
        self._actors.remove(actor)
        self.deaths += 1
        if not actor.ready:
            self._deaths_at_start += 1
        if self._deaths_at_start < _DEATHS_AT_START:
            self._start()
        elif not self._actors:
            raise VeriglotError(
                f"Workers die while they load the detector: {str(error).strip().splitlines()[0]}",
                "Install the same version of Veriglot on every machine of the cluster, and check the memory.",
            )
        share = actor.share
        if not share:
            return None
        if share.deaths + 1 < _TRIES:
            self._waiting.extendleft(reversed(share.after_death()))
            return None
        reason = f"its worker died {_TRIES} times over this sample ({type(error).__name__})"
        return share, _Answer([failed_answer(sample, self.description, reason) for sample in share.samples])


def open_engine(
    where: Literal["local", "ray"],
    make: Callable[[], Any],
    *,
    jobs: int,
    batch_size: int = 32,
    gpu: bool = False,
    signature: str | None = None,
    say: Callable[[str], None],
) -> Engine:
    """An engine of this machine, or of the Ray cluster of RAY_ADDRESS; there batches grow to 8 times the size.

    `gpu` and `say` are those of `Cluster`; `signature` is what the detector or scorer must have there, as it has here.

    Raises:
        MissingExtraError: Ray is not installed.
        VeriglotError: another signature, or as `Cluster` and `Engine`.
    """
    if where == "local":
        return Engine(make, jobs=jobs, batch_size=batch_size)
    cluster = Cluster(make, processes=jobs, gpu=gpu, say=say)
    engine = Engine(make, jobs=cluster.jobs, batch_size=batch_size, pool=cluster)
    if signature not in {None, (there := engine.description.signature)}:
        engine.close()
        raise VeriglotError(
            f"The machines of the cluster have {there}, but this one has {signature}.",
            "Install the same version of Veriglot and the same models on each, or set VERIGLOT_GPUS=0 to use no GPU.",
        )
    return engine


@contextmanager
def connected(where: Literal["local", "ray"], processes: int) -> Iterator[None]:
    """Connected to Ray, where that is meant, for several engines one after another. Raises as `Cluster`."""
    if where == "local":
        yield
        return
    ray, ours = _connected(processes)
    try:
        yield
    finally:
        if ours:
            ray.shutdown()


def _gpus(wanted: bool) -> float:
    """GPUs of an actor."""
    stated = os.environ.get(_GPUS) or ("1" if wanted else "0")
    try:
        gpus = float(stated)
    except ValueError:
        gpus = -1.0
    if not 0.0 <= gpus < math.inf:
        raise UsageError(f"{_GPUS} is {stated!r}, which is no number of GPUs.", "Set a number, such as 1 or 0.25.")
    return gpus


def _connected(processes: int) -> tuple[Any, bool]:
    """The module `ray`, connected to the cluster of RAY_ADDRESS or to a new one here; and whether we connected it.

    Raises:
        MissingExtraError: Ray is not installed.
        VeriglotError: nothing answers there.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get(_ADDRESS)
    # Ray reads them at its import; without a token every user of this machine could have the cluster run anything.
    if not (address or "ray" in sys.modules or "RAY_AUTH_MODE" in os.environ):
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    with needing('Ray (--engine ray, or the setting engine = "ray")', "ray"):
        import ray
    if ray.is_initialized():
        return ray, False
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            ray.init(address, **quiet)
        else:  # said outright: Ray would look for the traces of an older cluster, and wait for it
            count = processes or cores()
            ray.init(
                "local", num_cpus=count, object_store_memory=count * _STORE + (128 << 20), include_dashboard=False,
                _node_ip_address="127.0.0.1", **quiet,
            )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise VeriglotError(
            f"There is no Ray cluster at {address or 'this machine'}: {str(error).strip().splitlines()[0]}",
            f"Check {_ADDRESS}, or unset it to start a cluster on this machine.",
        ) from error
    return ray, True
