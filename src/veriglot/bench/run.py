"""A bench from its file to its results: read the data, have every system judge it, measure, compare.

What systems said lies in the folder of the run, so that a bench that stops, however it stops, goes on from there, and
other measures or another seed cost no inference. The same answers give the same results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from veriglot import __version__
from veriglot.bench.assembling import about_models, assembled
from veriglot.bench.boards import Board
from veriglot.bench.cells import judged
from veriglot.bench.confusions import type_confusions
from veriglot.bench.data import read_data
from veriglot.bench.elsewhere import answers_kept, kept_system
from veriglot.bench.items import item_table
from veriglot.bench.measuring import Judgement, measured
from veriglot.bench.model_labels import OWN_MARKS, same_maker
from veriglot.bench.outcomes import counted
from veriglot.bench.results import BenchCell
from veriglot.bench.scoring import sentence_samples
from veriglot.bench.span_figures import span_figures
from veriglot.bench.systems import made
from veriglot.bench.unlabelled import answered
from veriglot.bench.verdicts import Opinion, opinion_of_detector, opinion_of_scorer
from veriglot.detectors import load_detector
from veriglot.errors import InputError, VeriglotError
from veriglot.metrics.resampling import Resampling
from veriglot.provenance import signature
from veriglot.records import Prediction, encode
from veriglot.run.lock import Lock
from veriglot.run.manifest import write_whole
from veriglot.run.watch import Silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.bench.cells import Grain, Said
    from veriglot.bench.config import Config
    from veriglot.bench.data import DataSet
    from veriglot.bench.entries import SystemEntry
    from veriglot.bench.folder import Folder
    from veriglot.bench.items import ItemTable
    from veriglot.bench.results import BenchAnswers, BenchConfusion, BenchFigure, BenchResults, Level
    from veriglot.bench.systems import LoadDetector, System
    from veriglot.records import Sample, Score
    from veriglot.run.watch import Watch

__all__ = ["Options", "run"]

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


@dataclass
class State:
    """What a bench has so far.

    Attributes:
        systems: in the order of the bench file.
        data: data sets, in the same order.
        boards: by level, those that any data set is judged at.
        cells: what became of every system on every data set at every level.
        confusions: which types detectors take for which.
        answers: what systems said of data without labels.
    """

    systems: list[System]
    data: list[DataSet] = field(default_factory=list)
    boards: dict[Level, Board] = field(default_factory=dict)
    cells: list[BenchCell] = field(default_factory=list)
    confusions: list[BenchConfusion] = field(default_factory=list)
    answers: list[BenchAnswers] = field(default_factory=list)


def run(
    config: Config,
    folder: Folder,
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
    folder.path.mkdir(parents=True, exist_ok=True)
    lock = Lock(folder.results)
    try:
        state = State([_made(config, entry, load) for entry in config.systems])
        for system in state.systems:
            if system.about.unavailable:
                watch.say(f"{system.name} is unavailable: {system.about.unavailable}")
        for entry in config.data:
            data = read_data(entry, config)
            state.data.append(data)
            if not data.labelled:
                watch.say(f"{data.name} has no labels: what systems say of it is shown, and nobody is ranked by it")
            for note in about_models(data):
                watch.say(note.removesuffix("."))
            _judge_all(config, folder, state, data, options, watch)
        for system in state.systems:
            if system.kept is not None and (unused := system.kept.unused()):
                watch.say(f"predictions of {system.name} that belong to no sample that was judged: {unused:,}")
        state.boards = {level: state.boards[level] for level in LEVELS if level in state.boards}
        watch.begin("measuring over all data sets", None)
        results = assembled(config, state)
        write_whole(folder.results, msgspec.json.format(encode(results), indent=1) + b"\n")
    finally:
        lock.release()
    return results


def _made(config: Config, entry: SystemEntry, load: LoadDetector) -> System:
    return kept_system(entry, config.places(entry.files)) if entry.files else made(entry, load)


def _judge_all(config: Config, folder: Folder, state: State, data: DataSet, options: Options, watch: Watch) -> None:
    """Have every system judge a data set, and measure it at its levels."""
    work = _Work(config, folder, data, options, watch)
    for level in (one for one in LEVELS if one in data.entry.levels):
        board = state.boards.setdefault(level, Board(level))
        unit, annotator = config.bench.unit, data.entry.annotator
        test, dev = (
            item_table(part, data.texts, level, annotator=annotator, unit=unit, labelled=data.labelled)
            for part in (data.test, data.dev)
        )
        judgements = []
        for system in state.systems:
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
            state.answers += answered(data.name, test, judgements, resampling, suffix=_suffix(config, data))
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
    state.confusions += [one for found in work.confusions.values() for one in found]


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


def _names(system: System) -> set[str | None]:
    """What a system that marks is called, and its members are; scorers make no labels."""
    about = system.about
    members = about.made_by.removeprefix("ensemble:").split("+")
    return {system.name, about.made_by, about.description, *members} if system.marks else set()


def _who_answered(answers: Sequence[Prediction] | Sequence[Score]) -> set[str]:
    """The detectors behind predictions: one may have been asked, and another have judged."""
    return {name for one in answers if isinstance(one, Prediction) for name in (one.detector, one.asked)}


class _Work:
    """Has systems judge one data set; a detector is asked once for all levels."""

    def __init__(self, config: Config, folder: Folder, data: DataSet, options: Options, watch: Watch) -> None:
        self._folder, self._data, self._options, self._watch = folder, data, options, watch
        self._config = config
        self._hash = data.hashed()
        self._said: dict[tuple[str, str], Said | VeriglotError] = {}
        self._rows: dict[str, list[Sample]] = {}
        self.span_figures: list[BenchFigure] = []
        self.confusions: dict[str, list[BenchConfusion]] = {}

    def cell(self, system: System, level: Level, test: ItemTable, dev: ItemTable) -> tuple[BenchCell, Judgement | None]:
        """One cell: what became of it, and what the system said where it said anything."""
        seen = system.name in self._data.entry.seen
        cell = BenchCell(system.name, self._data.name, level, "done", seen=seen)
        if not system.available:
            return msgspec.structs.replace(cell, status="unavailable", reason=system.about.unavailable), None
        if not system.entry.judges(self._data.name):
            why = f"the bench file asks it about {', '.join(system.entry.data)} alone"
            return msgspec.structs.replace(cell, status="unsuited", reason=why), None
        if same_maker(self._data.makers, _names(system)):
            return msgspec.structs.replace(cell, status="unsuited", reason=OWN_MARKS), None
        if system.scorer is not None and level == "word":
            return msgspec.structs.replace(cell, status="unsuited", reason="a scorer says nothing of words"), None
        grain: Grain = "sentence" if system.scorer is not None and level == "sentence" else "response"
        said = self._answers(system, grain, test, dev)
        if isinstance(said, VeriglotError):
            return msgspec.structs.replace(cell, status="failed", reason=str(said)), None
        if same_maker(self._data.makers, _who_answered(said.answers)):
            return msgspec.structs.replace(cell, status="unsuited", reason=OWN_MARKS), None
        split = len(test) if grain == "sentence" else len(self._data.test)
        rows = self._rows[grain][:split]
        cell = counted(cell, said, rows)
        if not cell.coverage:
            return cell, None
        opinions = [
            self._opinion(system, table, answers)
            for table, answers in ((test, said.answers[:split]), (dev, said.answers[split:]))
        ]
        if system.marks and level == "word" and test.labelled:
            self._measure_spans(system, said.answers[: len(self._data.test)])  # type: ignore[arg-type]
        if system.marks and test.labelled and system.name not in self.confusions:
            self.confusions[system.name] = self._confused(system, said)
        judgement = Judgement(system.name, system.about.direction or "", opinions[0], opinions[1], seen, said.key)
        return msgspec.structs.replace(cell, notes=opinions[0].notes), judgement

    def _answers(self, system: System, grain: Grain, test: ItemTable, dev: ItemTable) -> Said | VeriglotError:
        key = (system.name, grain)
        if key not in self._said:
            rows = self._rows.setdefault(grain, self._questions(grain, test, dev))
            if system.kept is not None:
                self._said[key] = self._kept(system, rows)
                return self._said[key]
            self._watch.begin(f"{system.name} on {self._data.name} ({len(rows):,} {grain}s)", len(rows))
            try:
                self._said[key] = judged(
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
            except VeriglotError as error:
                self._watch.say(f"{system.name} broke off on {self._data.name}: {error}")
                self._said[key] = error
        return self._said[key]

    def _kept(self, system: System, rows: Sequence[Sample]) -> Said | VeriglotError:
        assert system.kept is not None
        try:
            return answers_kept(system, self._data.name, rows, data_hash=self._hash)
        except InputError as error:
            self._watch.say(f"{system.name} cannot be joined with {self._data.name}: {error}")
            return error

    def _questions(self, grain: Grain, test: ItemTable, dev: ItemTable) -> list[Sample]:
        """What is judged: without labels, and with the sisters that self-consistency needs."""
        from veriglot.scorers.sisters import with_sisters

        if grain == "sentence":
            return [*sentence_samples(test), *sentence_samples(dev)]
        bare = [msgspec.structs.replace(sample, annotations=()) for sample in self._data.samples]
        return with_sisters(bare)

    def _measure_spans(self, system: System, predictions: Sequence[Prediction]) -> None:
        bench, entry = self._config.bench, self._data.entry
        self.span_figures += span_figures(
            system,
            self._data.name,
            self._data.test,
            predictions,
            annotator=entry.annotator,
            unit=bench.unit,
            seed=bench.seed,
            resamples=bench.resamples,
            seen=system.name in entry.seen,
            suffix=_suffix(self._config, self._data),
        )

    def _confused(self, system: System, said: Said) -> list[BenchConfusion]:
        """Which types a detector takes for which, where the labels have types."""
        entry, samples = self._data.entry, self._data.test
        found = type_confusions(
            system.name,
            self._data.name,
            samples,
            said.answers[: len(samples)],  # type: ignore[arg-type]
            detector_taxonomy=system.taxonomy,
            annotator=entry.annotator,
            seen=system.name in entry.seen,
            suffix=f"cell:{said.key[:16]}|{_suffix(self._config, self._data)}",
        )
        return list(found)

    def _opinion(self, system: System, table: ItemTable, answers: Sequence[Prediction] | Sequence[Score]) -> Opinion:
        if system.marks:
            return opinion_of_detector(table, answers, system.threshold)  # type: ignore[arg-type]
        assert system.scorer is not None
        return opinion_of_scorer(answers, system.scorer.direction, system.entry.threshold)  # type: ignore[arg-type]
