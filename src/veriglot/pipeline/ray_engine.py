"""The engine on Ray: actors on the machines of a cluster judge blocks of rows, which become the parts of a folder.

Only the calling process reads the input and writes the parts, so a part cannot be written twice, and the machines need
no shared file system. An actor has one block at a time. If it dies, its work is retried: the block, then pieces of it,
then each sample alone, so that a failing sample is alone at the third death.

Actors that call a server share its rate limit: a separate actor hands out permits, a few at a time.
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

from veriglot.errors import UsageError, VeriglotError, requires_extra
from veriglot.http.session import Session
from veriglot.pipeline.engine import Description, Engine, Refusal, cores, failed_answer, judge, load
from veriglot.storage.parts import Block, Outcome, Part, PartFolder

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.records import Prediction, Sample

__all__ = ["Cluster", "RunStats", "connected", "open_engine", "text_bytes"]

_ADDRESS = "RAY_ADDRESS"  # Ray's own variable: the cluster; if empty, one is started on this machine
_TRIES = 3  # deaths on a sample before it fails
_DEATHS_AT_START = 3  # in a row, without any actor becoming ready: the samples are not the cause
_STORE = 64 << 20  # bytes per actor of Ray's memory for blocks, on our own cluster
_EVERY = 60.0  # seconds between log lines
_START = 300.0  # maximum seconds until the first actor runs on our own cluster, where nobody else uses the cores
_PATIENCE = 30.0  # seconds until a message about actors that do not run yet
_SHOWN = 3  # reasons in a line
_GPUS = "VERIGLOT_GPUS"  # of an actor, such as 0.25
_NO_GPU = (
    "a worker has a GPU that PyTorch or ONNX Runtime do not see there, and computes on the CPU. Install PyTorch for"
    f" CUDA, or onnxruntime-gpu, on each machine, or set {_GPUS}=0."
)
_PERMITS = 0.25  # seconds covered by the permits of one call; permits of a dead actor are lost


def text_bytes(sample: Sample) -> int:
    """Bytes of the text of a sample in UTF-8."""
    texts = [sample.response, sample.question or "", *(passage.text for passage in sample.evidence)]
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


@dataclass
class RunStats:
    """Speed and failures of a run, for progress and for the summary.

    Attributes:
        processes: number of running actors.
        total: rows of the input; None if not counted.
        rows: rows done by this run.
        done_before: rows done by earlier runs.
        deaths: actors that died.
        reasons: failed rows by reason.
        by_process: rows done, by actor.
        cpu_seconds: CPU time of judging and encoding.
        clock: returns the time in seconds.
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
        """Count a finished part; without a process if an earlier run had made it."""
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
        """Wall time since the start."""
        return max(self.clock() - self.began, 1e-9)

    @property
    def skew(self) -> float:
        """Rows of the busiest actor divided by the mean; 1 if all did the same."""
        return max(self.by_process.values(), default=0) * self.processes / self.rows if self.rows else 1.0

    @property
    def core_hours(self) -> float:
        """Core-hours per million rows: wall time times actors, each with one core."""
        return self.seconds * self.processes / 3600 / self.rows * 1e6 if self.rows else 0.0

    def due_line(self, total: Callable[[], int | None]) -> str | None:
        """A progress line, once a minute; otherwise None. `total` counts the rows of the input, at the first call."""
        now = self.clock()
        if now - self._last_line < _EVERY:
            return None
        if self._last_line == self.began:
            self.total = total()
        self._last_line = now
        return self.line

    @property
    def line(self) -> str:
        """A progress line."""
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
        """Summary of the run's resources."""
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
    """Predictions of a share; if the share is a whole block, encoded as a part, with statistics.

    `warning` is a message about the actor's machine.
    """

    predictions: list[Any]
    data: bytes | None = None
    outcome: Outcome = field(default_factory=Outcome)
    seconds: float = 0.0
    warning: str = ""


class _Judge:
    """The actor: creates its detector once, and judges."""

    def __init__(self, recipe: bytes, encode: bytes, gpus: float = 0.0) -> None:
        from ray.util import metrics

        Session.permits = _AskPermits()
        # Ray adds the names of nodes and actors.
        self._rows = metrics.Counter("veriglot_rows", "Judgements, by status.", ("status",))
        if gpus:
            os.environ.update(VERIGLOT_ONNX_CUDA="1", ORT_DISABLE_TELEMETRY="1")
        self._gpus = gpus
        self._detector, self._about = load(recipe)
        self._encode = pickle.loads(encode)  # noqa: S301  # from our own driver

    def describe(self) -> Description | Refusal:
        """The detector's description, or why there is none."""
        return self._about

    def judge(self, samples: Sequence[Sample], whole: bool) -> _Answer | Refusal:
        """Judge samples; if they are a `whole` block, its part is encoded here."""
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
    """Whether PyTorch, if this actor's detector has used it, or else ONNX Runtime can use a GPU."""
    if torch := sys.modules.get("torch"):
        return bool(torch.cuda.is_available())
    import onnxruntime

    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


class _Permits:
    """The actor that hands out permits for calls to servers, to all workers in turn. It serves all servers."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}
        self._queues: dict[str, asyncio.Lock] = {}

    async def take(self, server: str, gap: float, count: int) -> int:
        """Wait for at most `count` permits, one every `gap` seconds; returns their number, at least 1."""
        import asyncio

        async with self._queues.setdefault(server, asyncio.Lock()):
            # A previous instance of this actor may have given permits that are still in use.
            while (wait := self._next.setdefault(server, time.monotonic() + _PERMITS) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            count = max(1, min(count, int(_PERMITS / gap) if gap else count))
            due, now = self._next[server], time.monotonic()
            self._next[server] = (due if now - due < _PERMITS else now) + gap * count
            return count

    async def hold(self, server: str, seconds: float) -> None:
        """Give no permits for so many seconds."""
        self._next[server] = max(self._next.get(server, 0.0), time.monotonic() + seconds)


class _AskPermits:
    """Calls a method of `_Permits` from a worker; starts it if it does not exist or died."""

    def __init__(self) -> None:
        self._actor: Any = None
        self._lock = threading.Lock()

    def __call__(self, method: str, *request: Any) -> Any:
        import ray
        from ray.exceptions import RayActorError

        while True:
            with self._lock:  # the actor ends with its first handle
                if (actor := self._actor) is None:
                    options = {"name": _Permits.__name__, "get_if_exists": True, "num_cpus": 0}
                    actor = self._actor = ray.remote(_Permits).options(**options).remote()
            try:
                return ray.get(getattr(actor, method).remote(*request))
            except RayActorError:  # maybe together with the worker that started it
                with self._lock:
                    if self._actor is actor:
                        self._actor = None
                time.sleep(_PERMITS)


@dataclass(eq=False)
class _Task:
    """Samples to judge: of a block that becomes a part, or of a batch whose rows get predictions."""

    rows: Any
    samples: Sequence[Sample]
    predictions: list[Any] = field(default_factory=list)
    part: Part | None = None
    done: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.predictions = [None] * len(self.samples)

    def add(self, share: _Share, answer: _Answer) -> bool:
        """Store the answer of a share; returns whether the task is complete."""
        self.seconds += answer.seconds
        if answer.data is None:
            self.predictions[share.start : share.end] = answer.predictions
        self.done = answer.data is not None or None not in self.predictions
        return self.done

    def finish(self, part: Part) -> None:
        """Store the written part; drop the rows, because the task may wait long for an earlier one."""
        self.part, self.done = part, True
        self.samples, self.predictions, self.rows.rows = [], [], []


@dataclass(frozen=True)
class _Share:
    """`[start, end)` of the samples of a block; `deaths` counts actors that died on them."""

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
    """Actors that judge, one per core. A context manager; leaving it stops them.

    Args:
        make: creates the detector; it is pickled, like `encode`.
        encode: encodes predictions as the content of a part; only needed by `Cluster.make`.
        processes: number of actors; 0 for all cores of the cluster, or all GPUs if actors use them.
        gpu: whether an actor asks for a GPU if the cluster has any; `VERIGLOT_GPUS` is the share of one, or 0.
        say: called once if actors do not run after 30 s, and if an actor sees no GPU.

    Attributes:
        description: the detector's description.
        jobs: intended number of actors.
        processes: maximum of actors that ran at the same time; without those that got no core.
        deaths: number of actors that died.
        cpu_seconds: CPU time of judging, over all actors.

    Raises:
        MissingExtraError: Ray is not installed.
        VeriglotError: there is no cluster at RAY_ADDRESS, or the detector cannot be created.
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
        self._calls: dict[Any, _Actor] = {}  # actor of each pending call
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
        """Stop the actors, and a cluster that was started here; work in progress is lost."""
        for actor in self._actors:
            self._ray.kill(actor.handle)
        self._actors.clear()
        self._calls.clear()
        if self._ours:
            self._ray.shutdown()

    def make(
        self, blocks: Iterator[Block], folder: PartFolder, *, seen: Callable[[Part, int | None], None]
    ) -> Iterator[Part]:
        """Make the parts of blocks, and yield them in order. At most one block per actor is in memory.

        Args:
            blocks: read only when an actor is idle. If reading raises, started blocks are finished first.
            folder: the output folder.
            seen: called for each part as soon as it exists, with the number of the actor that finished it; None if an
                earlier run had made it.

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
        """The tasks in order, each when it is done; at most `most` are started and not yet returned."""
        begun = deque[_Task]()
        fault: Exception | None = None
        unfinished = True
        while unfinished or begun:
            while unfinished and self._hungry and len(begun) < most:
                try:
                    task = next(tasks, None)
                except VeriglotError as error:
                    task, fault = None, error
                if task is None:
                    unfinished = False
                    break
                begun.append(task)
                if not task.done:
                    self._waiting.append(_Share(task, 0, len(task.samples)))
                    self._hand_out()
            while begun and begun[0].done:
                yield begun.popleft()
            if not begun and (not unfinished or self._hungry):
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
        """Wait until an actor is ready, answers, or dies; returns the answers, each with the actor's number."""
        from ray.exceptions import RayError, RayTaskError

        calls, _ = self._ray.wait(list(self._calls), timeout=_PATIENCE)
        answers = []
        for call in calls:
            actor = self._calls.pop(call)
            try:
                message = self._ray.get(call)
            except RayTaskError as error:  # raised by the actor, which is alive
                cause = error.cause
                raise (
                    cause if isinstance(cause, VeriglotError) else VeriglotError(f"A worker failed: {cause}")
                ) from None
            except RayError as error:
                if lost := self._replace_dead(actor, error):
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
        """Print a warning, once per topic."""
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

    def _replace_dead(self, actor: _Actor, error: Exception) -> tuple[_Share, _Answer] | None:
        """Replace a dead actor, and put its share back into the queue.

        Returns:
            A sample whose tries are used up, with its failure.
        """
        self._ray.kill(actor.handle)  # it may be alive but unreachable
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
    """An engine on this machine, or on the Ray cluster of RAY_ADDRESS, where batches grow to 8 times the size.

    `gpu` and `say` are those of `Cluster`; `signature` is the expected signature of the detector or scorer there.

    Raises:
        MissingExtraError: Ray is not installed.
        VeriglotError: the signature differs, or as `Cluster` and `Engine`.
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
    """Connected to Ray, if requested, for several engines one after another. Raises as `Cluster`."""
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
    """GPUs per actor."""
    stated = os.environ.get(_GPUS) or ("1" if wanted else "0")
    try:
        gpus = float(stated)
    except ValueError:
        gpus = -1.0
    if not 0.0 <= gpus < math.inf:
        raise UsageError(f"{_GPUS} is {stated!r}, which is no number of GPUs.", "Set a number, such as 1 or 0.25.")
    return gpus


def _connected(processes: int) -> tuple[Any, bool]:
    """The module `ray`, connected to the cluster of RAY_ADDRESS or to a new one here, and whether we connected it.

    Raises:
        MissingExtraError: Ray is not installed.
        VeriglotError: the cluster does not respond.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get(_ADDRESS)
    # Ray reads them at its import; without a token every user of this machine could run code on the cluster.
    if not (address or "ray" in sys.modules or "RAY_AUTH_MODE" in os.environ):
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    with requires_extra('Ray (--engine ray, or the setting engine = "ray")', "ray"):
        import ray
    if ray.is_initialized():
        return ray, False
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            ray.init(address, **quiet)
        else:  # explicit: otherwise Ray would search for an older cluster, and wait for it
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
