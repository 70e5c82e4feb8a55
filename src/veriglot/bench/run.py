"""A bench from its file to its results: read the data, have every system judge it, measure, compare.

What systems said lies in the folder of the run, so that a bench that stops, however it stops, goes on from there, and
other measures or another seed cost no inference. The same answers give the same results.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from veriglot.bench.data import read_data
from veriglot.bench.evaluation import Settings, type_confusions
from veriglot.bench.figures import Judgement, measured, span_figures, unlabelled_answers
from veriglot.bench.items import (
    OWN_MARKS,
    check_marks,
    item_table,
    opinion_of_detector,
    opinion_of_scorer,
    same_maker,
    sentence_samples,
    tag_of,
)
from veriglot.bench.leaderboard import Board, State, about_models, assembled
from veriglot.bench.results import BenchCell, BenchSystem, Cost
from veriglot.detectors.registry import load_detector
from veriglot.errors import InputError, UnknownNameError, VeriglotError
from veriglot.formats.reader import read_predictions
from veriglot.metrics.estimate import Resampling
from veriglot.pipeline.engine import Engine, Silent
from veriglot.records import Prediction, Score, Status, encode
from veriglot.scorers.registry import load_scorer
from veriglot.signatures import __version__, digest, file_sha256, signature, stated_threshold
from veriglot.storage.checkpoint import Checkpoint, JsonLines
from veriglot.storage.files import Lock, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.bench.config import Config, SystemEntry
    from veriglot.bench.data import DataSet
    from veriglot.bench.items import ItemTable, Opinion
    from veriglot.bench.results import BenchConfusion, BenchFigure, BenchResults, Level
    from veriglot.pipeline.engine import Watch
    from veriglot.records import Detector, Sample, Scorer

__all__ = ["Options", "run"]


_UNSAFE = re.compile(r"[^\w.-]+")  # in the name of a file
_HIGHER_IS_WORSE = "higher_is_worse"  # the direction of detectors' numbers: probabilities of being unsupported


class LoadDetector(Protocol):
    """How a detector's name becomes a detector; the command line knows names that the table of detectors does not."""

    def __call__(self, name: str, *, threshold: float | None, words: bool, **options: Any) -> Detector:
        """The detector."""


@dataclass(frozen=True)
class System:
    """A system of a bench.

    Attributes:
        entry: what the bench file says of it.
        about: its record in the results.
        detector: made with words; None where it is a scorer or unavailable.
        scorer: likewise.
        imported: predictions made elsewhere, in place of either.
        recipe: by which other processes make either; None where it has to stay in this one.
    """

    entry: SystemEntry
    about: BenchSystem
    detector: Detector | None = None
    scorer: Scorer | None = None
    recipe: Callable[[], Any] | None = None
    imported: ImportedPredictions | None = None

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.entry.name

    @property
    def available(self) -> bool:
        """Whether it could be made."""
        return self.detector is not None or self.scorer is not None or self.imported is not None

    @property
    def maker(self) -> Detector | Scorer:
        """The detector or scorer, of a system that has one."""
        maker = self.detector or self.scorer
        assert maker is not None
        return maker

    @property
    def marks(self) -> bool:
        """Whether it marks parts of responses, and so has spans."""
        return self.detector is not None or self.imported is not None

    @property
    def threshold(self) -> float | None:
        """Confidence from which it marks words; None where it is not known, and of a scorer."""
        if self.imported is not None:
            return self.imported.threshold
        return float(self.detector.threshold) if self.detector is not None else None

    @property
    def taxonomy(self) -> str | None:
        """What its types belong to; None where only the types themselves are known, and of a scorer."""
        return self.detector.taxonomy if self.detector is not None else None


def load_system(entry: SystemEntry, load: LoadDetector = load_detector) -> System:
    """Make a system, or say why it cannot be made.

    Args:
        entry: of the bench file.
        load: makes detectors.

    Raises:
        UnknownNameError: there is no such name or option, which is a slip in the bench file and nothing to work around.
    """
    detector, scorer, why = None, None, None
    recipe: Callable[[], Any] | None = None
    try:
        if entry.detector is not None:
            options = {"threshold": entry.threshold, "words": True, **entry.options}
            recipe = partial(load, entry.detector, **options)
            detector = load(entry.detector, **options)
        else:
            recipe = partial(load_scorer, entry.made_by, **entry.options)
            scorer = load_scorer(entry.made_by, **entry.options)
    except UnknownNameError:
        raise
    except VeriglotError as error:
        why = str(error)
    system = detector or scorer
    about = BenchSystem(
        name=entry.name,
        kind="detector" if entry.detector is not None else "scorer",
        made_by=entry.made_by,
        options={key: msgspec.json.encode(value).decode() for key, value in sorted(entry.options.items())},
        direction=_HIGHER_IS_WORSE if entry.detector is not None else (scorer.direction.value if scorer else None),
        description=system.name if system else None,
        signature=system.signature if system else None,
        unavailable=why,
    )
    return System(entry, about, detector, scorer, None if _stays(system) else recipe)


def _stays(system: Detector | Scorer | None) -> bool:
    """Whether it has to be asked in this process.

    It counts what it spends, which others could not tell us; or it says that it is to be loaded once, since it holds a
    network or a process of its own.
    """
    return hasattr(system, "spent") or bool(getattr(system, "one_process", False))


# One cell of a bench: a system judges a data set, row by row, into a file that a kill leaves whole.
#
# A cell is known by what it is made from: the samples, the system's signature and the version. What was judged once is
# not judged again, in whatever bench of the folder it occurs; anything else is another cell.


Grain = Literal["response", "sentence"]
"""What a scorer is asked about; a detector is always asked about responses, and marks parts of them."""


@dataclass(frozen=True)
class SystemOutput:
    """What a system said of the rows of a cell, in their order.

    Attributes:
        answers: predictions of a detector or scores of a scorer.
        cost: what they took, over all calls.
        key: what the cell depends on, as a digest.
        signature: one line that says how the cell was made.
    """

    answers: tuple[Prediction, ...] | tuple[Score, ...]
    cost: Cost
    key: str
    signature: str


def _signed(system: System, data_hash: str, grain: Grain) -> tuple[str, str]:
    """What a cell depends on, as a digest, and the line that says so."""
    about = system.about
    key = digest([data_hash, about.signature or "", about.kind, grain, __version__])
    named = (about.signature or "").replace("|", ";")
    return key, signature(cell=key[:16], data=data_hash[:16], grain=grain, system=named, version=__version__)


def judge(
    system: System,
    data: str,
    samples: Sequence[Sample],
    folder: Path,
    *,
    data_hash: str,
    grain: Grain = "response",
    jobs: int = 1,
    batch_size: int = 32,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[], None],
) -> SystemOutput:
    """Have a system judge all samples, or those that it has not judged yet.

    Args:
        system: one that is available.
        data: name of the data set.
        samples: what it judges, in order: responses, or for a scorer at grain `sentence` their sentences.
        folder: of the run.
        data_hash: of the data set.
        grain: what the samples are.
        jobs: processes of the system; 0 for one a core.
        batch_size: most samples at a time.
        restart: judge everything anew.
        retry: judge anew where an earlier call left samples that failed.
        seen: called for each sample that this call judges.

    Raises:
        VeriglotError: the system broke off. What it had judged is kept.
    """
    key, made = _signed(system, data_hash, grain)
    name = "-".join(_UNSAFE.sub("_", part)[:40] for part in (data, system.name))
    cell = folder / "cells" / f"{name}-{key[:16]}"
    output = cell / "answers.jsonl"
    begin_anew = restart or (retry and _any_failed(output, system))
    cell.mkdir(parents=True, exist_ok=True)
    stage = Checkpoint(output, signature=made, restart=begin_anew, maker="system")
    clock = _Clock(cell / "costs.jsonl", system)
    if begin_anew:
        clock.forget()

    def work(rows: Iterator[Sample]) -> Iterable[Prediction | Score]:
        return clock.timed(_answers(system, rows, jobs, batch_size))

    try:
        stage.run(samples, work, seen=lambda _: seen())
    finally:
        clock.write()
    about = {"data": data, "system": system.name, "grain": grain, "rows": len(samples), "signature": made}
    write_json(cell / "cell.json", about)  # for people who look into the folder
    return SystemOutput(_read(output, system), clock.total(), key, made)


def _answers(system: System, rows: Iterator[Sample], jobs: int, batch_size: int) -> Iterator[Prediction | Score]:
    first = next(rows, None)
    if first is None:
        return  # nothing is left to judge: no process is started
    recipe = system.recipe if jobs != 1 and system.recipe is not None else partial(_itself, system.maker)
    with Engine(recipe, jobs=jobs if recipe is system.recipe else 1, batch_size=batch_size) as engine:
        if system.scorer is not None:
            yield from engine.scores(chain([first], rows))
            return
        for _, prediction in engine.run(chain([first], rows)):
            assert prediction is not None
            yield prediction


def _itself(maker: Detector | Scorer) -> Detector | Scorer:
    """The detector or scorer that was made before: models are loaded once."""
    return maker


def _any_failed(output: Path, system: System) -> bool:
    return output.exists() and any(answer.status == "failed" for answer in _read(output, system))


def _read(output: Path, system: System) -> tuple[Prediction, ...] | tuple[Score, ...]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Prediction if system.scorer is None else Score)
    return tuple(decoder.decode(line) for line in JsonLines(output).lines())


class _Clock:
    """Times the calls that make a cell; each call adds a line, so that a resumed cell knows what all of it took."""

    def __init__(self, path: Path, system: System) -> None:
        self._journal = JsonLines(path)
        self._system = system
        self._rows = 0
        self._began: tuple[float, float] | None = None
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
            cost = Cost(self._rows, time.perf_counter() - wall, _cpu() - cpu, calls, tokens_in, tokens_out)
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
    """Seconds of processor time of this process and of those that it waited for."""
    return sum(os.times()[:4])


def _spent(system: System) -> tuple[int, int, int]:
    """Calls, tokens of prompts and of replies so far, where a system keeps count in an attribute `spent`."""
    usage = getattr(system.maker, "spent", None)
    return (usage.calls, usage.tokens_in, usage.tokens_out) if usage is not None else (0, 0, 0)


# Systems that are predictions made elsewhere: read from files, joined with the samples by id, signed by the files.


MISSING = "missing"  # in the notes of an answer, and in place of its status, where the files hold no prediction


@dataclass
class ImportedPredictions:
    """Predictions that were made elsewhere."""

    paths: tuple[Path, ...]
    predictions: dict[str, Prediction]
    threshold: float | None
    used: dict[str, str] = field(default_factory=dict)

    @property
    def types(self) -> frozenset[str]:
        """The types of all spans."""
        spans = (span for prediction in self.predictions.values() for span in prediction.spans or ())
        return frozenset(span.type for span in spans if span.type is not None)

    def unused(self) -> int:
        """How many belong to no sample that was asked about so far."""
        return len(self.predictions.keys() - self.used.keys())


def imported_system(entry: SystemEntry, paths: Sequence[Path]) -> System:
    """Read the predictions of a system.

    Args:
        entry: of the bench file.
        paths: where its files lie.

    Raises:
        InputError: a file cannot be read, a row is no prediction, or an id occurs twice.
    """
    by_id: dict[str, Prediction] = {}
    for path in paths:
        for prediction in read_predictions(path):
            if prediction.id in by_id:
                raise InputError(f"there are two predictions of {prediction.id!r}", path=str(path), field="id")
            by_id[prediction.id] = prediction
    if not by_id:
        raise InputError("there are no predictions", path=str(paths[0]))
    names = "+".join(sorted({prediction.asked for prediction in by_id.values()}))
    stated = {stated_threshold(prediction.signature) for prediction in by_id.values()}
    threshold = stated.pop() if len(stated) == 1 else None
    hashed = digest(file_sha256(path) for path in paths)
    about = BenchSystem(
        name=entry.name,
        kind="predictions",
        made_by=entry.made_by,
        direction=_HIGHER_IS_WORSE,
        description=names,
        signature=signature(predictions=hashed[:16], detector=names, threshold=threshold),
    )
    return System(entry, about, imported=ImportedPredictions(tuple(paths), by_id, threshold))


def imported_answers(system: System, data: str, samples: Sequence[Sample], *, data_hash: str) -> SystemOutput:
    """The predictions of a data set's samples, in order, by a system that imports them.

    A sample that the files do not hold has an answer that was not scored, with `MISSING` in its notes. It cost nothing
    here; what it cost where it was made is not known.

    Raises:
        InputError: marks that are not of the response, or a prediction that was joined with another data set before.
    """
    files = system.imported
    assert files is not None
    answers = tuple(_joined(files, data, sample) for sample in samples)
    return SystemOutput(answers, Cost(), *_signed(system, data_hash, "response"))


def _joined(files: ImportedPredictions, data: str, sample: Sample) -> Prediction:
    prediction = files.predictions.get(sample.id)
    if prediction is None:
        reason = f"there is no prediction of it in {_names(files.paths)}"
        return Prediction(sample.id, Status.FAILED, MISSING, language=sample.language, notes=(MISSING,), reason=reason)
    before = files.used.setdefault(sample.id, data)
    if before != data:
        raise InputError(
            f"the id {sample.id!r} is in the data sets {before} and {data}, so that its prediction cannot be joined",
            path=_names(files.paths),
            field="id",
            remedy="Make a system for each of them, with `data` naming its data set.",
        )
    check_marks(prediction, sample, path=_names(files.paths))
    return prediction


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(path.name for path in paths)


def with_statuses(cell: BenchCell, output: SystemOutput, rows: Sequence[Sample]) -> BenchCell:
    """The cell with what became of its test rows."""
    answers = output.answers[: len(rows)]
    statuses: dict[str, Counter[str]] = defaultdict(Counter)
    became = [_became(answer) for answer in answers]
    for sample, status in zip(rows, became, strict=True):
        statuses[tag_of(sample.language)][status] += 1
    scored = sum(count["scored"] for count in statuses.values())
    coverage = scored / len(rows) if rows else 0.0
    cell = msgspec.structs.replace(
        cell,
        statuses={tag: dict(sorted(counts.items())) for tag, counts in sorted(statuses.items())},
        coverage=coverage,
        cost=output.cost,
        signature=output.signature,
    )
    if scored == len(rows):
        return cell
    status = "partial" if scored else "failed" if set(became) == {"failed"} else "unscored"
    return msgspec.structs.replace(cell, status=status, reason=_why(answers))


def _why(answers: Iterable[Prediction | Score]) -> str:
    """Why rows were not scored: how many have which status, and the reason that most of them give."""
    unscored = [answer for answer in answers if answer.status != "scored"]
    counts = Counter(_became(answer) for answer in unscored)
    reasons = Counter(answer.reason for answer in unscored)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"{listed}; most often: {reasons.most_common(1)[0][0]}"


def _became(answer: Prediction | Score) -> str:
    return MISSING if isinstance(answer, Prediction) and MISSING in answer.notes else answer.status.value


# The run.

LEVELS: tuple[Level, ...] = ("word", "sentence", "response")


@dataclass(frozen=True)
class Options:
    """How a bench is run; nothing here changes a figure.

    Attributes:
        jobs: processes of each system; 0 for one a core. Times are of so many together.
        batch_size: most samples judged at once.
        restart: judge everything anew.
        retry: judge anew where samples failed.
    """

    jobs: int = 1
    batch_size: int = 32
    restart: bool = False
    retry: bool = False


def run(
    config: Config,
    folder: Path,
    *,
    options: Options | None = None,
    load: LoadDetector = load_detector,
    watch: Watch | None = None,
) -> BenchResults:
    """Run a bench, or what is missing of it, and write `results.json`.

    Args:
        config: the bench.
        folder: of the run.
        options: how it is run.
        load: makes detectors of their names.
        watch: is told how far it is.

    Raises:
        UnknownNameError: a system has no such option.
        InputError: a data set cannot be read, or has no labels of its annotator; predictions cannot be read.
        UsageError: another process is at work in the folder.
    """
    options, watch = options or Options(), watch or Silent()
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(folder / "results.json")
    try:
        systems = [
            imported_system(entry, config.places(entry.files)) if entry.files else load_system(entry, load)
            for entry in config.systems
        ]
        state = State([system.about for system in systems])
        for system in systems:
            if system.about.unavailable:
                watch.say(f"{system.name} is unavailable: {system.about.unavailable}")
        for entry in config.data:
            data = read_data(entry, config)
            state.data.append(data)
            if not data.labelled:
                watch.say(f"{data.name} has no labels: what systems say of it is shown, and nobody is ranked by it")
            for note in about_models(data):
                watch.say(note.removesuffix("."))
            _judge_all(config, folder, state, systems, data, options, watch)
        for system in systems:
            if system.imported is not None and (unused := system.imported.unused()):
                watch.say(f"predictions of {system.name} that belong to no sample that was judged: {unused:,}")
        state.boards = {level: state.boards[level] for level in LEVELS if level in state.boards}
        watch.begin("measuring over all data sets", None)
        results = assembled(config, state)
        write_json(folder / "results.json", results)
    finally:
        lock.release()
    return results


def _judge_all(
    config: Config,
    folder: Path,
    state: State,
    systems: Sequence[System],
    data: DataSet,
    options: Options,
    watch: Watch,
) -> None:
    """Have every system judge a data set, and measure it at its levels."""
    work = _Work(config, folder, data, options, watch)
    for level in (name for name in LEVELS if name in data.entry.levels):
        board = state.boards.setdefault(level, Board(level))
        unit, annotator = config.bench.unit, data.entry.annotator
        test, dev = (
            item_table(part, data.texts, level, annotator=annotator, unit=unit, labelled=data.labelled)
            for part in (data.test, data.dev)
        )
        judgements = []
        for system in systems:
            cell, judgement = work.cell(system, level, test, dev)
            state.cells.append(cell)
            if judgement is not None:
                judgements.append(judgement)
        watch.begin(f"measuring {data.name} at level {level}", None)
        bench = config.bench
        resampling = Resampling.of(test.texts, test.languages.tolist(), resamples=bench.resamples, seed=bench.seed)
        board.tables[data.name], board.resamplings[data.name] = test, resampling
        board.judgements[data.name] = judgements
        if not data.labelled:
            state.answers += unlabelled_answers(data.name, test, judgements, resampling, suffix=_suffix(config, data))
            continue
        board.measured[data.name] = measured(
            data.name,
            test,
            dev,
            judgements,
            config.measures(level),
            resampling,
            by_language=bench.thresholds == "language",
            suffix=_suffix(config, data),
        )
        if level == "word":
            board.measured[data.name].figures += work.span_figures
    state.confusions += [name for matrices in work.confusions.values() for name in matrices]


def _suffix(config: Config, data: DataSet) -> str:
    """What the signature of every figure of a data set ends with."""
    bench = config.bench
    return signature(
        split=data.split,
        annotator=data.entry.annotator,
        thresholds=bench.thresholds,
        unit=bench.unit,
        seed=bench.seed,
        resamples=bench.resamples,
        version=__version__,
    )


def _called(system: System) -> set[str | None]:
    """What a system that marks is called, and its members are; scorers make no labels."""
    about = system.about
    members = about.made_by.removeprefix("ensemble:").split("+")
    return {system.name, about.made_by, about.description, *members} if system.marks else set()


def _who_answered(answers: Sequence[Prediction] | Sequence[Score]) -> set[str]:
    """The detectors behind predictions: one may have been asked, and another have judged."""
    return {name for answer in answers if isinstance(answer, Prediction) for name in (answer.detector, answer.asked)}


class _Work:
    """Has systems judge one data set; a detector is asked once for all levels."""

    def __init__(self, config: Config, folder: Path, data: DataSet, options: Options, watch: Watch) -> None:
        self._folder, self._data, self._options, self._watch = folder, data, options, watch
        self._config = config
        self._hash = data.hashed()
        self._outputs: dict[tuple[str, str], SystemOutput | VeriglotError] = {}
        self._rows: dict[str, list[Sample]] = {}
        self.span_figures: list[BenchFigure] = []
        self.confusions: dict[str, list[BenchConfusion]] = {}

    def cell(self, system: System, level: Level, test: ItemTable, dev: ItemTable) -> tuple[BenchCell, Judgement | None]:
        """One cell: what became of it, and what the system said where it said anything."""
        seen = system.name in self._data.entry.seen
        cell = BenchCell(system.name, self._data.name, level, "done", seen=seen)
        if not system.available:
            return msgspec.structs.replace(cell, status="unavailable", reason=system.about.unavailable), None
        why = self._unsuited(system, level)
        if why is not None:
            return msgspec.structs.replace(cell, status="unsuited", reason=why), None
        grain: Grain = "sentence" if system.scorer is not None and level == "sentence" else "response"
        output = self._answers(system, grain, test, dev)
        if isinstance(output, VeriglotError):
            return msgspec.structs.replace(cell, status="failed", reason=str(output)), None
        if same_maker(self._data.makers, _who_answered(output.answers)):
            return msgspec.structs.replace(cell, status="unsuited", reason=OWN_MARKS), None
        split = len(test) if grain == "sentence" else len(self._data.test)
        rows = self._rows[grain][:split]
        cell = with_statuses(cell, output, rows)
        if not cell.coverage:
            return cell, None
        opinions = [
            self._opinion(system, table, answers)
            for table, answers in ((test, output.answers[:split]), (dev, output.answers[split:]))
        ]
        if system.marks and level == "word" and test.labelled:
            self._measure_spans(system, output.answers[: len(self._data.test)])  # type: ignore[arg-type]
        if system.marks and test.labelled and system.name not in self.confusions:
            self.confusions[system.name] = self._confused(system, output)
        judgement = Judgement(system.name, system.about.direction or "", opinions[0], opinions[1], seen, output.key)
        return msgspec.structs.replace(cell, notes=opinions[0].notes), judgement

    def _unsuited(self, system: System, level: Level) -> str | None:
        """Why a system is not asked."""
        if not system.entry.judges(self._data.name):
            return f"the bench file asks it about {', '.join(system.entry.data)} alone"
        if same_maker(self._data.makers, _called(system)):
            return OWN_MARKS
        return "a scorer says nothing of words" if system.scorer is not None and level == "word" else None

    def _answers(self, system: System, grain: Grain, test: ItemTable, dev: ItemTable) -> SystemOutput | VeriglotError:
        key = (system.name, grain)
        if key not in self._outputs:
            rows = self._rows.setdefault(grain, self._questions(grain, test, dev))
            try:
                self._outputs[key] = self._judged(system, grain, rows)
            except VeriglotError as error:
                became = "broke off on" if system.imported is None else "cannot be joined with"
                self._watch.say(f"{system.name} {became} {self._data.name}: {error}")
                self._outputs[key] = error
        return self._outputs[key]

    def _judged(self, system: System, grain: Grain, rows: Sequence[Sample]) -> SystemOutput:
        if system.imported is not None:
            return imported_answers(system, self._data.name, rows, data_hash=self._hash)
        self._watch.begin(f"{system.name} on {self._data.name} ({len(rows):,} {grain}s)", len(rows))
        return judge(
            system,
            self._data.name,
            rows,
            self._folder,
            data_hash=self._hash,
            grain=grain,
            jobs=self._options.jobs,
            batch_size=self._options.batch_size,
            restart=self._options.restart,
            retry=self._options.retry,
            seen=self._watch.advance,
        )

    def _questions(self, grain: Grain, test: ItemTable, dev: ItemTable) -> list[Sample]:
        """What is judged: without labels, and with the sisters that self-consistency needs."""
        from veriglot.scorers.pairwise import with_other_responses

        if grain == "sentence":
            return [*sentence_samples(test), *sentence_samples(dev)]
        bare = [msgspec.structs.replace(sample, annotations=()) for sample in self._data.samples]
        return with_other_responses(bare)

    def _measure_spans(self, system: System, predictions: Sequence[Prediction]) -> None:
        bench, entry = self._config.bench, self._data.entry
        settings = Settings(
            system.about.description or system.name,
            system.about.signature,
            system.taxonomy,
            system.imported.types if system.imported is not None else frozenset(),
            threshold=system.threshold,
            unit=bench.unit,
            annotator=entry.annotator,
        )
        self.span_figures += span_figures(
            system.name,
            self._data.name,
            self._data.test,
            predictions,
            settings,
            seed=bench.seed,
            resamples=bench.resamples,
            seen=system.name in entry.seen,
            suffix=_suffix(self._config, self._data),
        )

    def _confused(self, system: System, output: SystemOutput) -> list[BenchConfusion]:
        """Which types a detector takes for which, where the labels have types."""
        entry, samples = self._data.entry, self._data.test
        matrices = type_confusions(
            system.name,
            self._data.name,
            samples,
            output.answers[: len(samples)],  # type: ignore[arg-type]
            detector_taxonomy=system.taxonomy,
            annotator=entry.annotator,
            seen=system.name in entry.seen,
            suffix=f"cell:{output.key[:16]}|{_suffix(self._config, self._data)}",
        )
        return list(matrices)

    def _opinion(self, system: System, table: ItemTable, answers: Sequence[Prediction] | Sequence[Score]) -> Opinion:
        if system.marks:
            return opinion_of_detector(table, answers, system.threshold)  # type: ignore[arg-type]
        assert system.scorer is not None
        return opinion_of_scorer(answers, system.scorer.direction, system.entry.threshold)  # type: ignore[arg-type]
