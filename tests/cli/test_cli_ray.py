"""`veriglot detect --engine ray`: the rows of the local engine, whatever dies on the way."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import rows as made_rows
from misbehaving import Arrival, ModelServer
from rows import samples
from word_absence import WordAbsence

from veriglot.bench import run as bench
from veriglot.bench.config import load
from veriglot.detectors import registry
from veriglot.detectors.registry import load_named, uses_gpu
from veriglot.errors import MissingExtraError, UsageError, VeriglotError
from veriglot.formats.reader import read_predictions
from veriglot.http.session import Session
from veriglot.hub.registry import MissingWeightsError
from veriglot.pipeline import ray_engine
from veriglot.pipeline.engine import Engine, Refusal
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records import Evidence, Generator, Sample, encode
from veriglot.storage import parts
from veriglot.storage.files import Lock
from veriglot.storage.parts import finished_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Outcome

    Command = Callable[..., Outcome]

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'veriglot[ray]'")
DETECTORS = Path(made_rows.__file__).parent
EXAMPLES = DETECTORS.parents[1] / "examples" / "samples.jsonl"
RAY = ("--engine", "ray", "--processes", 2)


def write_input(path: Path, rows: list[Sample]) -> Path:
    """The rows, of which the 4th cannot be read and the last has the id of the first."""
    lines = [encode(row) for row in [*rows, rows[0]]]
    lines[3] = b"{"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `word_absence:Dies` counts deaths."""
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def ray(marks: Path) -> Iterator[Any]:
    """One cluster for all tests, as starting it takes seconds; the command takes a connection that is there."""
    from veriglot.pipeline.ray_engine import _connected

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORD_ABSENCE_MARKS", str(marks))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(DETECTORS), os.environ.get("PYTHONPATH", "")]))
        patch.delenv("RAY_ADDRESS", raising=False)
        module, _ = _connected(2)
        yield module
        module.shutdown()


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST_ROWS", 20)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-",), "goes with files"),
        (("--evidence-text", "a", "--response-text", "b"), "goes with files"),
        (("{input}", "-o", "out.jsonl"), "makes a folder of Parquet parts"),
        (("{input}",), "makes a folder of Parquet parts"),
        (("{input}", "-o", "out/", "--shard", "1/2"), "exclude each other"),
        (("{input}", "-o", "{folder}/"), "which is an input. Name another folder"),
    ],
)
def test_what_makes_no_folder_of_parts_is_refused(
    veriglot: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    source = write_input(tmp_path / "in.jsonl", list(samples(5)))
    words = tuple(word.format(input=source, folder=tmp_path) for word in words)
    outcome = veriglot("detect", *words, "--engine", "ray")
    assert outcome.code == 2
    assert list(tmp_path.iterdir()) == [source]
    assert message in " ".join(outcome.err.split())


HEAD = '[study]\ntitle = "A"\nestimator = "raw"\nestimators = []\ndraws = 200\n[responses]\npath = "responses.jsonl"\n'
LIMITS = '[limits]\nengine = "ray"\n'


@pytest.mark.parametrize("verb", ["detect", "evaluate", "study", "bench"])
def test_without_ray_the_extra_is_named(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # whether it is installed or not
    source = write_input(tmp_path / "responses.jsonl", list(samples(5)))
    (study := tmp_path / "study.toml").write_text(f'{HEAD}{LIMITS}[[detectors]]\nname = "word_absence:WordAbsence"\n')
    (config := tmp_path / "c.toml").write_text('engine = "ray"\n')
    words = {
        "detect": ("detect", source, "-o", f"{tmp_path}/out/", *RAY),
        "evaluate": ("evaluate", EXAMPLES, "--config", config),
        "study": ("study", "run", study, "-o", f"{tmp_path}/out"),
        "bench": ("bench", "run", EXAMPLES, "-o", f"{tmp_path}/out", "--engine", "ray"),
    }
    outcome = veriglot(*words[verb])
    assert outcome.code in {1, 2}
    assert "veriglot[ray]" in outcome.err
    assert 'engine = "ray"' in " ".join(outcome.err.split())
    assert not (tmp_path / "out").exists()


@pytest.fixture(autouse=True)
def _own_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what an actor sets for its whole process."""
    monkeypatch.setattr(Session, "permits", None)


@pytest.fixture
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of Ray as the engine calls, in this process: the first actor has a core, the others wait.

    The cluster has 4 cores and 2 GPUs; `ray.asked` is what the last actor asked for, `ray.counted` its metrics.
    """
    started, ready = list[Any](), list[Any]()

    def call(runs: bool, work: Any, *words: Any) -> Any:
        ready.extend([made := partial(work, *words)] * runs)
        return made

    def start(kind: Any, *words: Any) -> Any:
        started.append(actor := kind(*words))
        methods = {"describe": actor.describe, "judge": actor.judge}
        made = {name: SimpleNamespace(remote=partial(call, len(started) == 1, work)) for name, work in methods.items()}
        return SimpleNamespace(**made)

    def options(kind: Any, **settings: Any) -> Any:
        vars(module).update(asked=settings)
        return SimpleNamespace(remote=partial(start, kind))

    def counter(name: str, _: str, tags: tuple[str, ...]) -> Any:
        return SimpleNamespace(inc=lambda tags: module.counted.update([(name, *tags.values())]))

    module, exceptions, util = ModuleType("ray"), ModuleType("ray.exceptions"), ModuleType("ray.util")
    vars(util).update(metrics=SimpleNamespace(Counter=counter))
    module.__spec__ = ModuleSpec("ray", None)
    vars(module).update(
        is_initialized=lambda: True,
        cluster_resources=lambda: {"CPU": 4.0, "GPU": 2.0},
        remote=lambda kind: SimpleNamespace(options=partial(options, kind)),
        wait=lambda _, timeout: ([ready.pop()] if ready else [], []),
        get=lambda call: pickle.loads(pickle.dumps(call())),
        kill=lambda _: started.clear(),
        counted=Counter[tuple[str, ...]](),
    )
    vars(exceptions).update(RayError=RuntimeError, RayTaskError=ArithmeticError)
    monkeypatch.setitem(sys.modules, "ray", module)
    monkeypatch.setitem(sys.modules, "ray.exceptions", exceptions)
    monkeypatch.setitem(sys.modules, "ray.util", util)


@pytest.mark.usefixtures("_one_core")
def test_a_cluster_of_our_own_that_runs_no_worker_ends_the_run(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "_START", 0.0)
    monkeypatch.setattr(sys.modules["ray"], "wait", lambda _, timeout: ([], []))
    source = write_input(tmp_path / "in.jsonl", list(samples(5)))
    outcome = veriglot("detect", source, "--detector", "word_absence:WordAbsence", "-o", f"{tmp_path}/out/", *RAY)
    assert outcome.code == 1
    assert "No worker runs" in outcome.err


@pytest.mark.usefixtures("_one_core")
def test_a_study_without_its_cluster_ends_before_the_first_call(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("nobody answers")

    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    monkeypatch.setattr(sys.modules["ray"], "is_initialized", lambda: False)
    monkeypatch.setattr(sys.modules["ray"], "init", refuse, raising=False)
    write_input(tmp_path / "responses.jsonl", list(samples(5)))
    (study := tmp_path / "study.toml").write_text(f'{HEAD}{LIMITS}[[detectors]]\nname = "grounding"\n')
    outcome = veriglot("study", "run", study, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "There is no Ray cluster at head:6379: nobody answers" in " ".join(outcome.err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("_one_core")
@pytest.mark.parametrize("verb", ["bench", "study"])
def test_a_folder_that_another_process_has_leaves_no_cluster(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    module, stopped = sys.modules["ray"], list[bool]()
    monkeypatch.setattr(module, "is_initialized", lambda: False)
    monkeypatch.setattr(module, "init", lambda *_, **__: None, raising=False)
    monkeypatch.setattr(module, "shutdown", lambda: stopped.append(True), raising=False)
    write_input(tmp_path / "responses.jsonl", list(samples(5)))
    (study := tmp_path / "study.toml").write_text(f'{HEAD}{LIMITS}[[detectors]]\nname = "grounding"\n')
    words = {"bench": (EXAMPLES, "--engine", "ray"), "study": (study,)}
    with Lock(tmp_path / "out" / {"bench": "results.json", "study": "run"}[verb]):
        outcome = veriglot(verb, "run", *words[verb], "-o", tmp_path / "out")
    assert outcome.code == 2
    assert "Another process is writing" in outcome.err
    assert stopped == [True]


@pytest.mark.usefixtures("_one_core")
def test_an_interrupt_between_rows_keeps_the_time_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting(ProgressReporter):
        def advance(self) -> None:
            raise KeyboardInterrupt

    judged: Any = ray_engine._Judge.judge
    monkeypatch.setattr(ray_engine._Judge, "judge", lambda *words: replace(judged(*words), seconds=1_000.0))
    (path := tmp_path / "bench.toml").write_text(
        f'[bench]\n[[data]]\nname = "examples"\npath = "{EXAMPLES}"\nlevels = ["response"]\n'
        '[[systems]]\ndetector = "word_absence:WordAbsence"\n'
    )
    with pytest.raises(KeyboardInterrupt):
        bench.run(load(path), tmp_path / "out", engine="ray", load=load_named, progress=Interrupting())
    (costs,) = (tmp_path / "out").rglob("costs.jsonl")
    assert msgspec.json.decode(costs.read_bytes())["cpu"] > 999


@pytest.mark.usefixtures("_one_core", "_small_parts")
def test_progress_counts_each_row_once_and_only_workers_that_run(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "_EVERY", 0.0)
    monkeypatch.setattr(ray_engine, "_PATIENCE", 0.0)
    source = tmp_path / "in.jsonl"
    source.write_bytes(
        b"".join(b"{\n" if number % 10 == 3 else encode(row) + b"\n" for number, row in enumerate(samples(70)))
    )
    folder = tmp_path / "out"
    words = ("detect", source, "--detector", "word_absence:WordAbsence", "-o", f"{folder}/", *RAY)
    outcome = veriglot(*words)
    assert outcome.code == 3, outcome.err
    assert outcome.err.count("1 of 2 workers run.") == 1
    assert "on 1 processes" in outcome.err
    assert sys.modules["ray"].counted == {  # type: ignore[attr-defined]
        ("veriglot_rows", "scored"): 57,
        ("veriglot_rows", "no_evidence"): 6,
    }
    assert f"only written to {folder}/parts.jsonl." in outcome.err
    assert "veriglot: 70 rows, " in outcome.err  # not "of 70": lines of JSON are not counted, as that reads them all
    (folder / finished_parts(folder)[1].id).write_bytes(b"")
    again = veriglot(*words)
    assert max(map(int, re.findall(r"veriglot: (\d+) rows, ", again.err))) == 70


@pytest.mark.usefixtures("_one_core")
def test_the_only_worker_dies_over_the_last_row(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = ray_engine._Judge.judge

    def judge(actor: Any, samples: list[Sample], whole: bool) -> Any:
        if samples[-1].id == "poison":
            raise RuntimeError("it was killed")  # what the stand-in takes for a death
        return judged(actor, samples, whole)

    def late(*_: object) -> None:
        raise TimeoutError("the run does not end")

    monkeypatch.setattr(ray_engine._Judge, "judge", judge)
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"".join(encode(row) + b"\n" for row in [*samples(5), Sample("poison", "die")]))
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        words = ("--detector", "word_absence:WordAbsence", "-o", f"{tmp_path}/out/", "--engine", "ray", "-j", 1)
        outcome = veriglot("detect", source, *words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert outcome.code == 3, outcome.err
    assert "3 deaths" in outcome.err
    *whole, last = read_predictions(tmp_path / "out")
    assert [len(whole), last.id, last.status] == [5, "poison", "failed"]


@pytest.mark.usefixtures("_one_core")
@pytest.mark.parametrize(
    ("stated", "gpu", "resources", "gpus", "workers"),
    [
        (None, False, {"CPU": 4.0, "GPU": 2.0}, 0.0, 4),
        (None, True, {"CPU": 4.0, "GPU": 2.0}, 1.0, 2),
        (None, True, {"CPU": 4.0}, 0.0, 4),
        ("0.25", True, {"CPU": 64.0, "GPU": 2.0}, 0.25, 8),
        ("0.25", False, {"CPU": 4.0, "GPU": 2.0}, 0.25, 4),
        ("0", True, {"CPU": 4.0, "GPU": 2.0}, 0.0, 4),
    ],
)
def test_workers_ask_for_gpus_where_the_cluster_has_them(
    monkeypatch: pytest.MonkeyPatch,
    stated: str | None,
    gpu: bool,
    resources: dict[str, float],
    gpus: float,
    workers: int,
) -> None:
    monkeypatch.delenv("VERIGLOT_GPUS", raising=False)
    monkeypatch.setenv("VERIGLOT_ONNX_CUDA", "")  # which an actor sets for its whole process
    if stated is not None:
        monkeypatch.setenv("VERIGLOT_GPUS", stated)
    module, warnings = sys.modules["ray"], list[str]()
    monkeypatch.setattr(module, "cluster_resources", lambda: resources)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    cluster = ray_engine.Cluster(WordAbsence, gpu=gpu, say=warnings.append)
    assert (module.asked["num_gpus"], cluster.jobs) == (gpus, workers)  # type: ignore[attr-defined]
    assert warnings == []  # a detector may load PyTorch only when it judges
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False)))
    with Engine(WordAbsence, pool=cluster) as engine:
        assert len(list(engine.run(samples(5)))) == 5
    assert len(warnings) == bool(gpus)
    assert all("do not see" in warning for warning in warnings)
    assert bool(os.environ["VERIGLOT_ONNX_CUDA"]) is bool(gpus)


@pytest.mark.usefixtures("_one_core")
@pytest.mark.parametrize("stated", ["many", "-1", "nan", "inf"])
def test_a_number_of_gpus_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    monkeypatch.setenv("VERIGLOT_GPUS", stated)
    with pytest.raises(UsageError, match="VERIGLOT_GPUS"):
        ray_engine.Cluster(WordAbsence, say=print)


def test_networks_use_gpus() -> None:
    networks = ["hf:owner/name", "nli:folder", "reader", "ensemble:grounding+reader", "calibrated:reader"]
    assert all(map(uses_gpu, networks))
    assert not any(map(uses_gpu, ["grounding", "judge:spans", "word_absence:WordAbsence"]))


@pytest.mark.parametrize("missing", [MissingExtraError("Reader", "reader"), MissingWeightsError("no model"), None])
def test_auto_uses_a_gpu_where_it_has_a_reader(monkeypatch: pytest.MonkeyPatch, missing: Exception | None) -> None:
    def load(name: str) -> Any:
        if missing is not None:
            raise missing
        return name

    monkeypatch.setattr(registry, "load_detector", load)
    assert [*map(uses_gpu, ["auto", "ensemble:grounding+auto"])] == [missing is None] * 2


@pytest.mark.usefixtures("_one_core")
def test_another_detector_on_the_cluster_is_refused() -> None:
    with pytest.raises(VeriglotError, match="but this one has another"):
        ray_engine.open_engine("ray", WordAbsence, jobs=2, signature="another", say=print)


def test_permits_keep_the_rate_and_wait_where_a_server_asks_for_it() -> None:
    async def run() -> list[float]:
        permits, times = ray_engine._Permits(), list[float]()

        async def worker() -> None:
            for _ in range(3):
                count = await permits.take("server", 0.01, 3)
                times.extend([time.monotonic()] * count)

        await permits.hold("server", 0.2)
        begun = time.monotonic()
        await asyncio.gather(worker(), worker())
        return [moment - begun for moment in times]

    times = asyncio.run(run())
    assert min(times) >= 0.19  # the hold
    assert len(times) == 18
    assert times[-1] - times[0] >= 5 * 3 * 0.01 - 0.05  # the first may be taken late


def missing(_: object) -> bytes:
    raise MissingExtraError("Parquet", "parquet")


@pytest.mark.usefixtures("_one_core")
def test_an_error_of_an_actor_keeps_its_remedy() -> None:
    actor = ray_engine._Judge(pickle.dumps(WordAbsence), pickle.dumps(missing))
    answer = pickle.loads(pickle.dumps(actor.judge(list(samples(2)), True)))
    assert isinstance(answer, Refusal)
    assert str(answer.as_error()) == str(MissingExtraError("Parquet", "parquet"))


def test_a_cluster_of_our_own_has_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os\ntoken = os.environ['RAY_AUTH_MODE'], os.environ['RAY_AUTH_TOKEN']\n"
    (tmp_path / "ray.py").write_text(code + "def is_initialized(): return True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))  # is put back behind the test
    del sys.modules["ray"]
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    mode, token = ray_engine._connected(1)[0].token
    assert (mode, len(token)) == ("token", 64)


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray", "_small_parts")
def test_the_output_is_that_of_the_local_engine_byte_for_byte(veriglot: Command, tmp_path: Path) -> None:
    source = write_input(tmp_path / "in.jsonl", list(samples(110)))
    words = ("detect", source, "--detector", "grounding", "--words")
    local, folder, merged = tmp_path / "local.jsonl", tmp_path / "out", tmp_path / "merged.jsonl"
    assert veriglot(*words, "-o", local, "--processes", 1).code == 3
    outcome = veriglot(*words, "-o", f"{folder}/", *RAY)
    assert outcome.code == 3, outcome.err
    assert "core-hours" in outcome.err
    assert list(read_predictions(folder)) == list(read_predictions(local))
    assert veriglot("merge", folder, "-o", merged).code == 3
    assert merged.read_bytes() == local.read_bytes()
    assert beside(merged, ".failed.jsonl").read_bytes() == beside(local, ".failed.jsonl").read_bytes()
    told, same = (msgspec.json.decode(beside(path, ".progress").read_bytes()) for path in (merged, local))
    assert {**told, "seconds": 0} == {**same, "seconds": 0}
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert "all of them had been done" in veriglot(*words, "-o", f"{folder}/", *RAY).err
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")} == before
    refused = veriglot(*words, "--threshold", "0.7", "-o", f"{folder}/", *RAY)
    assert refused.code == 2
    assert "is now" in refused.err


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["_one_core", pytest.param("ray", marks=needs_ray)])
def test_a_study_and_an_evaluation_on_ray_give_the_local_results(
    veriglot: Command, tmp_path: Path, request: pytest.FixtureRequest, cluster: str
) -> None:
    request.getfixturevalue(cluster)
    models = "kiln", "moor"
    rows = [msgspec.structs.replace(row, generator=Generator(models[n % 2])) for n, row in enumerate(samples(300))]
    (tmp_path / "responses.jsonl").write_bytes(b"".join(encode(row) + b"\n" for row in rows))
    study = tmp_path / "study.toml"
    detectors = "".join(f'[[detectors]]\nname = "word_absence:{name}"\n' for name in ("WordAbsence", "Raises"))
    for engine in ("local", "ray"):
        study.write_text(f'{HEAD}{detectors}[limits]\nengine = "{engine}"\n')
        outcome = veriglot("study", "run", study, "-o", tmp_path / engine, "--processes", 1 if engine == "local" else 2)
        assert outcome.code == 0, outcome.err
    made = [path.relative_to(tmp_path / "local") for path in (tmp_path / "local").rglob("*.json*")]
    made = [path for path in made if path.suffix != ".progress"]
    assert len([path for path in made if path.parts[0] == "predictions"]) == 4
    for path in made:
        assert (tmp_path / "ray" / path).read_bytes() == (tmp_path / "local" / path).read_bytes()
    config, told = tmp_path / "c.toml", list[str]()
    for engine in ("local", "ray"):
        config.write_text(f'engine = "{engine}"\nresamples = 0\n')
        words = ("--detector", "word_absence:WordAbsence", "--processes", 1, "--json", "--config", config)
        told.append(veriglot("evaluate", EXAMPLES, *words).out)
    assert told[0] == told[1] != ""


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["_one_core", pytest.param("ray", marks=needs_ray)])
def test_a_bench_on_ray_has_the_local_answers(
    veriglot: Command, tmp_path: Path, request: pytest.FixtureRequest, cluster: str
) -> None:
    request.getfixturevalue(cluster)
    systems = "".join(
        f'[[systems]]\n{kind} = "{name}"\n'
        for kind, name in [("detector", "word_absence:WordAbsence"), ("detector", "grounding"), ("scorer", "rouge-l")]
    )
    bench = tmp_path / "bench.toml"
    data = f'[[data]]\nname = "examples"\npath = "{EXAMPLES}"\nlevels = ["response"]\n'
    bench.write_text(f"[bench]\nresamples = 0\n{data}{systems}")
    results = []
    for engine in ("local", "ray"):
        outcome = veriglot("bench", "run", bench, "-o", tmp_path / engine, "--engine", engine, "--json")
        assert outcome.code == 0, outcome.err
        results.append(msgspec.json.decode(outcome.out))
        for cell in results[-1]["cells"]:
            assert cell.pop("cost")["cpu"] > 0 or cell["system"] != "grounding"  # others take less than a tick
    assert results[0] == results[1]
    answers = [path.relative_to(tmp_path / "local") for path in (tmp_path / "local").rglob("answers.jsonl")]
    assert len(answers) == 3
    for path in answers:
        assert (tmp_path / "ray" / path).read_bytes() == (tmp_path / "local" / path).read_bytes()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class CountingServer(ModelServer):
    """Notes when requests arrive, and at some of them does something."""

    def __init__(self, at: dict[int, Callable[[], object]]) -> None:
        super().__init__()
        self.at, self.times = at, list[float]()

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        self.times.append(time.monotonic())
        self.at.get(len(self.times), int)()
        return super().handle(arrival)


@needs_ray
@pytest.mark.slow
def test_workers_together_keep_the_rate_of_a_server_whoever_dies(
    veriglot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ray: Any
) -> None:
    monkeypatch.setattr(parts, "_MOST_ROWS", 45)
    rate, window = 25.0, 2.0
    source = tmp_path / "in.jsonl"
    rows = [row for row in samples(200) if row.evidence and re.search(r"\w", row.response)]
    source.write_bytes(b"".join(encode(row) + b"\n" for row in rows))

    def kill_permits() -> None:
        ray.kill(ray.get_actor("_Permits"))

    def kill_worker() -> None:
        own = os.getpid()  # whose child is the node, whose children are the workers: others may have clusters here
        titles = {int(path.parent.name): path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
        judges = [pid for pid, title in titles.items() if title.startswith(b"ray::_Judge")]
        os.kill(next(pid for pid in judges if parent(parent(pid)) == own), signal.SIGKILL)

    with CountingServer({40: kill_permits, 80: kill_worker}) as server:
        options = {"model": "m", "url": server.base_url, "client_options": f'{{"rate": {rate}}}'}
        settings = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        words = ("--detector", "judge:score", *settings, "-o", f"{tmp_path}/out/", *RAY)
        outcome = veriglot("detect", source, *words)
    assert outcome.code == 0, outcome.err
    times = server.times
    assert len(times) >= len(rows)
    most = max(sum(start <= moment < start + window for moment in times) for start in times)
    busy = times[: len(rows) - 45]  # not the last block, which only one worker has
    used = (len(busy) - 1) / (busy[-1] - busy[0]) / rate
    print(f"{len(times)} requests, at most {most} in {window:.0f} s; {used:.3f} of the rate used")
    assert most <= rate * window + 2 * int(ray_engine._PERMITS * rate)  # the permits of each worker may be used late


GPU_CODE = """
import sys
import ray
from gpus import Seen
from veriglot.pipeline.ray_engine import Cluster

ray.init("local", num_cpus=2, num_gpus=int(sys.argv[1]), include_dashboard=False, logging_level="ERROR")
with Cluster(Seen, gpu=True, say=print) as cluster:
    print(cluster.description.signature, cluster.jobs)
"""
GPU_DETECTOR = """
import os
import onnxruntime
from word_absence import WordAbsence

class Seen(WordAbsence):
    def __init__(self, threshold=None, words=False):
        super().__init__(threshold, words)
        self.signature = "devices:" + os.environ.get("CUDA_VISIBLE_DEVICES", "none")
"""


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize(("gpus", "told"), [(1, "devices:0 1"), (0, "devices:none 2")])
def test_a_worker_gets_the_gpu_that_it_asks_for(tmp_path: Path, gpus: int, told: str) -> None:
    (tmp_path / "gpus.py").write_text(GPU_DETECTOR)
    paths = os.pathsep.join([str(tmp_path), str(DETECTORS), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA", "RAY_ADDRESS"))}
    environment |= {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", GPU_CODE, str(gpus)]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert outcome.returncode == 0, outcome.stderr
    *warnings, last = outcome.stdout.splitlines()
    assert last == told
    assert [warning for warning in warnings if "do not see" in warning] == warnings[:gpus]


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray", "_small_parts")
def test_a_row_that_kills_its_worker_is_one_failed_row(veriglot: Command, tmp_path: Path, marks: Path) -> None:
    rows = list(samples(60))
    evidence = (Evidence("the river"),)
    rows[30] = Sample("poison", "die", evidence=evidence)
    rows[50] = Sample("chance", "once", evidence=evidence)
    source = write_input(tmp_path / "in.jsonl", rows)
    folder = tmp_path / "out"
    outcome = veriglot("detect", source, "--detector", "word_absence:Dies", "-o", f"{folder}/", *RAY)
    assert outcome.code == 3, outcome.err
    assert "4 deaths" in outcome.err
    predictions = {prediction.id: prediction for prediction in read_predictions(folder)}
    assert [id_ for id_, prediction in predictions.items() if prediction.status == "failed"] == ["poison"]
    assert "died 3 times over this sample" in (predictions["poison"].reason or "")
    assert list(predictions) == [row.id for number, row in enumerate(rows) if number != 3]
    assert (marks / "poison").exists()


@needs_ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray")
@pytest.mark.parametrize(
    ("detector", "message"),
    [("word_absence:DiesAtStart", "die while they load"), ("word_absence:Nobody", "Nobody")],
)
def test_a_detector_that_cannot_be_made_ends_the_run(
    veriglot: Command, tmp_path: Path, detector: str, message: str
) -> None:
    source = write_input(tmp_path / "in.jsonl", list(samples(5)))
    outcome = veriglot("detect", source, "--detector", detector, "-o", f"{tmp_path}/out/", *RAY)
    assert outcome.code not in {0, 3}
    assert message in " ".join(outcome.err.split())
    assert not (tmp_path / "out").exists()


@needs_ray
@pytest.mark.slow
def test_a_driver_that_is_killed_loses_and_redoes_nothing(
    process: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    source = write_input(tmp_path / "in.jsonl", list(samples(4_100)))
    folder = tmp_path / "out"
    words = ("detect", source, "--detector", "word_absence:Slow", "-o", f"{folder}/", *RAY)
    # Ray's processes outlive the command for a while; they would hold the ends of pipes.
    running = process(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun = time.monotonic()
    while not list(folder.glob("part-*.parquet")) and running.poll() is None and time.monotonic() - begun < 100:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait(timeout=60)
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*.parquet")}
    assert before
    again = process(*words)
    _, err = again.communicate(timeout=200)
    assert again.returncode == 3, err
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*.parquet")}
    assert before.items() <= after.items()
    assert [part.start for part in finished_parts(folder)] == [0, 2_000, 4_000]
    assert [prediction.id for prediction in read_predictions(folder)] == [
        row.id for number, row in enumerate(samples(4_100)) if number != 3
    ]
