"""Run a bench: read the data, have every system score it, measure, compare, and write the results.

Answers are written to the folder of the run, so an interrupted bench resumes there, and other measures or another seed
need no new inference. The same answers give the same results.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections import Counter, defaultdict
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from veriglot.bench.data import DataSet
from veriglot.bench.evaluation import Settings, grain_of_types, response_types, type_confusions
from veriglot.bench.figures import Measurement, ScoredSystem
from veriglot.bench.items import OWN_MARKS, ItemTable, SystemScores, same_maker, tag_of
from veriglot.bench.leaderboard import State
from veriglot.bench.predictions import Predictions, check_marks
from veriglot.bench.results import BenchCell, BenchConfusion, BenchResults, BenchSystem, Cost, Level
from veriglot.detectors.registry import load_detector, uses_gpu
from veriglot.errors import InputError, UnknownNameError, UsageError, VeriglotError
from veriglot.metrics.estimate import Resampling
from veriglot.pipeline.progress import ProgressReporter
from veriglot.pipeline.ray_engine import connected, open_engine
from veriglot.records import Detector, Prediction, Record, Sample, Score, Scorer, Status, encode
from veriglot.scorers.registry import load_scorer
from veriglot.signatures import __version__, digest, file_sha256, signature
from veriglot.storage.checkpoint import Checkpoint, JsonLines
from veriglot.storage.files import Lock, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.bench.config import Config, SystemEntry

    LoadDetector = Callable[..., Detector]

__all__ = ["run"]


_UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a file
_HIGHER_IS_WORSE = "higher_is_worse"  # the direction of detectors' scores: probabilities of being unsupported


class System(Record):
    """A system of a bench.

    Attributes:
        entry: its table in the bench file.
        about: its record in the results.
        maker: the detector (with words) or scorer; None if it is unavailable or imported.
        recipe: loads it in other processes; None if it must stay in this one.
        imported: predictions from files, instead of a maker.
        threshold: confidence from which it marks words; None if it is not known, and for a scorer.
        taxonomy: of its types; None if only the types themselves are known, and for a scorer.
    """

    entry: SystemEntry
    about: BenchSystem
    maker: Detector | Scorer | None = None
    recipe: Callable[[], Any] | None = None
    imported: Predictions | None = None
    threshold: float | None = None
    taxonomy: str | None = None

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.entry.name

    @property
    def marks(self) -> bool:
        """Whether it marks parts of responses, and so has spans."""
        return self.about.kind != "scorer"


def load_system(entry: SystemEntry, load: LoadDetector = load_detector) -> System:
    """Load a system, or say why it cannot be loaded.

    Args:
        entry: of the bench file.
        load: loads detectors.

    Raises:
        UnknownNameError: there is no such name or option: a mistake in the bench file, not an unavailable system.
    """
    detects = entry.detector is not None
    recipe: Callable[[], Detector | Scorer] = partial(load_scorer, entry.made_by, **entry.options)
    if detects:
        recipe = partial(load, entry.made_by, **{"threshold": entry.threshold, "words": True, **entry.options})
    maker: Any = None
    why = None
    try:
        maker = recipe()
    except UnknownNameError:
        raise
    except VeriglotError as error:
        why = str(error)
    about = BenchSystem(
        name=entry.name,
        kind="detector" if detects else "scorer",
        made_by=entry.made_by,
        options={key: msgspec.json.encode(value).decode() for key, value in sorted(entry.options.items())},
        direction=_HIGHER_IS_WORSE if detects else maker and maker.direction.value,
        description=maker and maker.name,
        signature=maker and maker.signature,
        unavailable=why,
    )
    # A system that counts its calls (other processes could not report them), or is loaded only once, stays in this
    # process.
    stays = hasattr(maker, "spent") or getattr(maker, "one_process", False)
    own = (float(maker.threshold), maker.taxonomy) if detects and maker else (None, None)
    return System(entry, about, maker, None if stays else recipe, None, *own)


# One cell of a bench: a system scores a data set, row by row, into a file that stays valid if the process is killed.
#
# A cell is identified by its inputs: the samples, the system's signature and the version. Samples are not scored again,
# whatever bench of the folder has the cell; anything else is another cell.


Grain = Literal["response", "sentence", "fact"]
"""The units that a scorer scores; a detector always gets responses, and marks parts of them."""


class SystemOutput(Record):
    """A system's answers for the rows of a cell, in their order.

    Attributes:
        answers: predictions of a detector or scores of a scorer.
        cost: of the answers, over all calls.
        key: digest of the cell's inputs.
        signature: one line that says how the cell was made.
    """

    answers: tuple[Prediction, ...] | tuple[Score, ...]
    cost: Cost
    key: str
    signature: str


def _signed(system: System, data_hash: str, grain: Grain) -> tuple[str, str]:
    """Digest of a cell's inputs, and the line of its signature."""
    about = system.about
    key = digest([data_hash, about.signature or "", about.kind, grain, __version__])
    named = (about.signature or "").replace("|", ";")
    return key, signature(cell=key[:16], data=data_hash[:16], grain=grain, system=named, version=__version__)


class _Run(Record):
    """The settings of all cells of a run; see `run`."""

    config: Config
    folder: Path
    progress: ProgressReporter
    jobs: int
    batch_size: int
    restart: bool
    retry: bool
    engine: Literal["local", "ray"]


def _judge(
    run: _Run, system: System, data: str, samples: Sequence[Sample], data_hash: str, grain: Grain
) -> SystemOutput:
    """Have a system score all samples that it has not scored before; earlier answers stay."""
    key, made = _signed(system, data_hash, grain)
    name = "-".join(_UNSAFE.sub("_", part)[:40] for part in (data, system.name))
    cell = run.folder / "cells" / f"{name}-{key[:16]}"
    output = cell / "answers.jsonl"
    begin_anew = run.restart or (run.retry and any(answer.status == "failed" for answer in _read(output, system)))
    stage = Checkpoint(output, signature=made, restart=begin_anew, maker="system")
    clock = _Clock(cell / "costs.jsonl", system)
    if begin_anew:
        clock.forget()

    def work(rows: Iterator[Sample]) -> Iterable[Prediction | Score]:
        return clock.timed(_answers(run, system, rows, clock))

    try:
        stage.run(samples, work, seen=lambda _: run.progress.advance())
    finally:
        clock.write()
    about = {"data": data, "system": system.name, "grain": grain, "rows": len(samples), "signature": made}
    write_json(cell / "cell.json", about)  # only for people who look into the folder
    return SystemOutput(_read(output, system), clock.total(), key, made)


def _answers(run: _Run, system: System, rows: Iterator[Sample], clock: _Clock) -> Iterator[Prediction | Score]:
    first = next(rows, None)
    if first is None:
        return  # all is scored: start no process
    recipe, jobs, where = system.recipe, run.jobs, run.engine
    if recipe is None or (where, jobs) == ("local", 1):
        recipe, jobs, where = lambda: system.maker, 1, "local"  # models are loaded once
    about, size, say = system.about, run.batch_size, run.progress.say
    gpu = where == "ray" and system.marks and uses_gpu(about.made_by)
    with open_engine(where, recipe, jobs=jobs, batch_size=size, gpu=gpu, signature=about.signature, say=say) as engine:
        rows = chain([first], rows)
        answers: Iterator[Any] = (row[1] for row in engine.run(rows)) if system.marks else engine.scores(rows)
        try:
            for answer in answers:
                clock.cpu_there = engine.cpu_seconds  # now, since the run may be interrupted before the last line
                yield answer
        finally:
            clock.cpu_there = engine.cpu_seconds  # with rows that were scored but not yet returned


def _read(output: Path, system: System) -> tuple[Prediction, ...] | tuple[Score, ...]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Prediction if system.marks else Score)
    return tuple(decoder.decode(line) for line in JsonLines(output).lines())


class _Clock:
    """Times the calls for a cell; each call adds a line, so a resumed cell has the total of all."""

    def __init__(self, path: Path, system: System) -> None:
        self._journal = JsonLines(path)
        self._system = system
        self._rows = 0
        self._began: tuple[float, float] | None = None
        self.cpu_there = 0.0  # seconds of processor time on a cluster
        self._spent = _spent(system)

    def forget(self) -> None:
        self._journal.path.unlink(missing_ok=True)

    def timed(self, answers: Iterator[Prediction | Score]) -> Iterator[Prediction | Score]:
        self._began = time.perf_counter(), _cpu()
        for answer in answers:
            self._rows += 1
            yield answer

    def write(self) -> None:
        if self._began is not None and self._rows:
            wall, cpu = self._began
            calls, tokens_in, tokens_out = (
                now - then for now, then in zip(_spent(self._system), self._spent, strict=True)
            )
            seconds = _cpu() - cpu + self.cpu_there
            cost = Cost(self._rows, time.perf_counter() - wall, seconds, calls, tokens_in, tokens_out)
            self._journal.append(encode(cost))
        self._journal.close()

    def total(self) -> Cost:
        self._journal.repair()
        costs = [msgspec.json.decode(line, type=Cost) for line in self._journal.lines()]
        summed = {name: sum(getattr(cost, name) for cost in costs) for name in Cost.__struct_fields__[:-1]}
        price_in, price_out = self._system.entry.price_in, self._system.entry.price_out
        if price_in is None and price_out is None:
            return Cost(**summed)
        spent = summed["tokens_in"] * (price_in or 0.0) + summed["tokens_out"] * (price_out or 0.0)
        return Cost(**summed, money=spent / 1e6)


def _cpu() -> float:
    """Seconds of processor time of this process and of its finished child processes."""
    return sum(os.times()[:4])


def _spent(system: System) -> tuple[int, int, int]:
    """Calls, prompt tokens and reply tokens so far, if a system counts them in an attribute `spent`."""
    usage = getattr(system.maker, "spent", None)
    return (usage.calls, usage.tokens_in, usage.tokens_out) if usage is not None else (0, 0, 0)


# Systems that are predictions from files: joined with the samples by id, signed by the files.


MISSING = "missing"  # in the notes of an answer, and in place of its status, if the files have no prediction


def imported_system(entry: SystemEntry, paths: Sequence[Path]) -> System:
    """Read the predictions of a system from the files at `paths`.

    Raises:
        InputError: a file cannot be read, a row is no prediction, or an id occurs twice.
    """
    imported = Predictions.read(*paths)
    hashed, names = digest(file_sha256(path) for path in paths), "+".join(imported.detectors)
    about = BenchSystem(
        name=entry.name,
        kind="predictions",
        made_by=entry.made_by,
        direction=_HIGHER_IS_WORSE,
        description=names,
        signature=signature(predictions=hashed[:16], detector=names, threshold=imported.threshold),
    )
    return System(entry, about, imported=imported, threshold=imported.threshold)


def _joined(system: System, files: Predictions, data: str, sample: Sample) -> Prediction:
    """The prediction for a sample; if the files have none, an unscored one with `MISSING` in its notes."""
    names = ", ".join(map(os.path.basename, system.entry.files))
    prediction = files.take(sample.id, data)
    if prediction is None:
        reason = f"there is no prediction of it in {names}"
        return Prediction(sample.id, Status.FAILED, MISSING, language=sample.language, notes=(MISSING,), reason=reason)
    before = files.used[sample.id]
    if before != data:
        raise InputError(
            f"the id {sample.id!r} is in the data sets {before} and {data}, so that its prediction cannot be joined",
            "Make a system for each of them, with `data` naming its data set.",
            path=names,
            field="id",
        )
    check_marks(prediction, sample, path=names)
    return prediction


def with_statuses(cell: BenchCell, output: SystemOutput, rows: Sequence[Sample]) -> BenchCell:
    """The cell with the statuses of its test rows."""
    answers = output.answers[: len(rows)]
    statuses = defaultdict[str, Counter[str]](Counter)
    became = [_status_of(answer) for answer in answers]
    for sample, status in zip(rows, became, strict=True):
        statuses[tag_of(sample.language)][status] += 1
    scored = sum(count["scored"] for count in statuses.values())
    cell = replace(
        cell,
        statuses={tag: dict(sorted(counts.items())) for tag, counts in sorted(statuses.items())},
        coverage=scored / len(rows) if rows else 0.0,
        cost=output.cost,
        signature=output.signature,
    )
    if scored == len(rows):
        return cell
    status = "partial" if scored else "failed" if set(became) == {"failed"} else "unscored"
    return replace(cell, status=status, reason=_why(answers))


def _why(answers: Iterable[Prediction | Score]) -> str:
    """Why rows were not scored: how many have which status, and the most frequent reason."""
    unscored = [answer for answer in answers if answer.status != "scored"]
    counts = Counter(_status_of(answer) for answer in unscored)
    reasons = Counter(answer.reason for answer in unscored)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"{listed}; most often: {reasons.most_common(1)[0][0]}"


def _status_of(answer: Prediction | Score) -> str:
    return MISSING if isinstance(answer, Prediction) and MISSING in answer.notes else answer.status.value


# The run.

LEVELS: tuple[Level, ...] = ("word", "fact", "sentence", "response")


def run(
    config: Config,
    folder: Path,
    *,
    jobs: int = 1,
    batch_size: int = 32,
    restart: bool = False,
    retry: bool = False,
    engine: Literal["local", "ray"] = "local",
    load: LoadDetector = load_detector,
    progress: ProgressReporter | None = None,
) -> BenchResults:
    """Run a bench, or its missing cells, and write `results.json`.

    Args:
        config: the bench.
        folder: of the run.
        jobs: processes of each system; 0 for one per core. Times are for this many together.
        batch_size: maximum number of samples in a batch.
        restart: score everything anew.
        retry: score failed samples anew.
        engine: where systems run; those that count their calls, or are loaded once, stay in this process.
        load: loads detectors by name, with `threshold`, `words` and options.
        progress: shows the steps, their finished rows and messages.

    Raises:
        UnknownNameError: a system has no such option.
        InputError: a data set cannot be read, or has no labels of its annotator; predictions cannot be read.
        UsageError: another process is using the folder.
        VeriglotError: there is no Ray cluster.
    """
    work = _Run(config, folder, progress or ProgressReporter(), jobs, batch_size, restart, retry, engine)
    try:
        with connected(engine, jobs), Lock(folder / "results.json"):
            results = _results(work, load)
            write_json(folder / "results.json", results)
    finally:
        with suppress(OSError):  # the folder is not empty, or does not exist
            folder.rmdir()
    return results


def _results(work: _Run, load: LoadDetector) -> BenchResults:
    config, say = work.config, work.progress.say
    systems = [
        imported_system(entry, config.resolve_all(entry.files)) if entry.files else load_system(entry, load)
        for entry in config.systems
    ]
    state = State([system.about for system in systems])
    for system in systems:
        if system.about.unavailable:
            say(f"{system.name} is unavailable: {system.about.unavailable}")
    for entry in config.data:
        data = DataSet.read(entry, config)
        state.data.append(data)
        if not data.labelled:
            say(f"{data.name} has no labels: the report shows what systems say of it, but does not rank them on it")
        for note in data.notes():
            say(note.removesuffix("."))
        _Work(work, data).measure(systems, state)
    for system in systems:
        if system.imported is not None and system.imported.unused:
            unused = len(system.imported.unused)
            say(f"predictions of {system.name} that belong to no sample that was judged: {unused:,}")
    state.boards = {level: state.boards[level] for level in LEVELS if level in state.boards}
    work.progress.begin("measuring over all data sets", None)
    return state.results(config)


class _Work:
    """Has systems score one data set; a detector runs once for all levels."""

    def __init__(self, run: _Run, data: DataSet) -> None:
        self._run, self._data, self._entry = run, data, data.entry
        self._bench = bench = run.config.bench
        self._hash = data.hashed()
        self._outputs: dict[tuple[str, str], SystemOutput | VeriglotError] = {}
        self._rows: dict[str, list[Sample]] = {}
        self._confusions: dict[str, list[BenchConfusion]] = {}
        self._suffix = signature(  # end of the signature of every figure
            split=data.split,
            annotator=data.entry.annotator,
            thresholds=bench.thresholds,
            unit=bench.unit,
            seed=bench.seed,
            resamples=bench.resamples,
            version=__version__,
        )

    def measure(self, systems: Sequence[System], state: State) -> None:
        """Have every system score the data set, and measure it at its levels."""
        data, bench, progress = self._data, self._bench, self._run.progress
        by_options = {(system.about.made_by, tuple(system.about.options.items())): system.name for system in systems}
        pairs = (
            (name, by_options.get((f"pairwise:{maker}", options))) for (maker, options), name in by_options.items()
        )
        partners = {name: partner for name, partner in pairs if partner is not None}  # the same scorers, pairwise
        for level in (name for name in LEVELS if name in self._entry.levels):
            test, dev = (
                ItemTable.of(
                    part, data.texts, level, annotator=self._entry.annotator, unit=bench.unit, labelled=data.labelled
                )
                for part in (data.test, data.dev)
            )
            cells = [self.cell(system, level, test, dev) for system in systems]
            state.cells += [cell for cell, _ in cells]
            progress.begin(f"measuring {data.name} at level {level}", None)
            resampling = Resampling.of(test.texts, test.languages.tolist(), resamples=bench.resamples, seed=bench.seed)
            scored = [system for _, system in cells if system is not None]
            measured = Measurement(data.name, test, dev, resampling, self._suffix, partners, scored)
            state.boards.setdefault(level, {})[data.name] = measured
            if not data.labelled:
                state.answers += measured.answers()
                measured.measure((), by_language=False)
                continue
            measured.measure(self._run.config.measures(level), by_language=bench.thresholds == "language")
            if level != "word":
                state.errors += measured.errors(self._run.config.rank_by(level), bench.errors, self._entry.annotator)
            if level == "word":
                settings = {system.name: self._settings(system) for system in systems if system.marks}
                measured.measure_spans(settings, seed=bench.seed, resamples=bench.resamples)
        state.confusions += chain.from_iterable(self._confusions.values())

    def cell(
        self, system: System, level: Level, test: ItemTable, dev: ItemTable
    ) -> tuple[BenchCell, ScoredSystem | None]:
        """One cell: its outcome, and the system's scores if it gave any."""
        seen = system.name in self._entry.seen
        blank = partial(BenchCell, system.name, self._data.name, level, seen=seen)
        if system.about.unavailable is not None:
            return blank("unavailable", reason=system.about.unavailable), None
        why = self._unsuited(system, level)
        if why is not None:
            return blank("unsuited", reason=why), None
        grain: Grain = level if level in {"fact", "sentence"} and not system.marks else "response"
        output = self._output(system, grain, test, dev)
        if isinstance(output, VeriglotError):
            return blank("failed", reason=str(output)), None
        # The system asked for and the one that answered may differ.
        behind = {
            name for each in output.answers if isinstance(each, Prediction) for name in (each.detector, each.asked)
        }
        if same_maker(self._data.makers, behind):
            return blank("unsuited", reason=OWN_MARKS), None
        split = len(self._data.test) if grain == "response" else len(test)
        cell = with_statuses(blank("done"), output, self._rows[grain][:split])
        if not cell.coverage:
            return cell, None
        parts = (test, output.answers[:split]), (dev, output.answers[split:])
        of_test, of_dev = (self._system_scores(system, table, answers) for table, answers in parts)
        if system.marks and test.labelled and system.name not in self._confusions:
            self._confusions[system.name] = list(
                type_confusions(
                    system.name,
                    self._data.name,
                    self._data.test,
                    output.answers[: len(self._data.test)],  # type: ignore[arg-type]
                    detector_taxonomy=system.taxonomy,
                    annotator=self._entry.annotator,
                    seen=seen,
                    suffix=f"cell:{output.key[:16]}|{self._suffix}",
                )
            )
        predictions = output.answers[:split] if system.marks else ()
        about = system.name, system.about.direction or "", of_test, of_dev, seen, output.key
        return replace(cell, notes=of_test.notes), ScoredSystem(*about, predictions)  # type: ignore[arg-type]

    def _unsuited(self, system: System, level: Level) -> str | None:
        """Why a system is not run."""
        if not system.entry.judges(self._data.name):
            return f"the bench file asks it about {', '.join(system.entry.data)} alone"
        about = system.about
        names = {system.name, about.made_by, about.description, *about.made_by.removeprefix("ensemble:").split("+")}
        if system.marks and same_maker(self._data.makers, names):  # scorers make no labels
            return OWN_MARKS
        return "a scorer gives no scores of words" if not system.marks and level == "word" else None

    def _output(self, system: System, grain: Grain, test: ItemTable, dev: ItemTable) -> SystemOutput | VeriglotError:
        key = (system.name, grain)
        if key not in self._outputs:
            rows = self._rows.setdefault(grain, self._questions(grain, test, dev))
            data, progress = self._data.name, self._run.progress
            try:
                if system.imported is not None:  # the cost of making the predictions is not known
                    answers = tuple(_joined(system, system.imported, data, sample) for sample in rows)
                    self._outputs[key] = SystemOutput(answers, Cost(), *_signed(system, self._hash, grain))
                else:
                    progress.begin(f"{system.name} on {data} ({len(rows):,} {grain}s)", len(rows))
                    self._outputs[key] = _judge(self._run, system, data, rows, self._hash, grain)
            except VeriglotError as error:
                became = "broke off on" if system.imported is None else "cannot be joined with"
                progress.say(f"{system.name} {became} {data}: {error}")
                self._outputs[key] = error
        return self._outputs[key]

    def _questions(self, grain: Grain, test: ItemTable, dev: ItemTable) -> list[Sample]:
        """The samples for a system: without labels, and with the other responses that self-consistency needs."""
        from veriglot.scorers.pairwise import with_other_responses

        rows = with_other_responses([replace(sample, annotations=()) for sample in self._data.samples])
        if grain == "response":
            return rows
        size = len(self._data.test)
        return [*test.item_samples(rows[:size]), *dev.item_samples(rows[size:])]

    def _settings(self, system: System) -> Settings:
        return Settings(
            system.about.description or system.name,
            system.about.signature,
            system.taxonomy,
            system.imported.types if system.imported is not None else frozenset(),
            threshold=system.threshold,
            unit=self._bench.unit,
            annotator=self._entry.annotator,
        )

    def _system_scores(
        self, system: System, table: ItemTable, answers: Sequence[Prediction] | Sequence[Score]
    ) -> SystemScores:
        typed = table.level == "response" and grain_of_types(table.samples, self._entry.annotator) == "response"
        if not system.marks:
            scores = SystemScores.of_scorer(answers, system.about.direction or "", system.entry.threshold)  # type: ignore[arg-type]
            return dataclasses.replace(scores, untyped="a scorer names no types") if typed else scores
        scores = SystemScores.of_detector(table, answers, system.threshold)  # type: ignore[arg-type]
        if not typed:
            return scores
        try:
            types, right = response_types(table.samples, answers, self._entry.annotator, system.taxonomy)  # type: ignore[arg-type]
        except UsageError as error:
            return dataclasses.replace(scores, untyped=error.message.rstrip("."))
        return dataclasses.replace(scores, types=types, right=right)
