"""A bench from its file to its results: read the data, have every system judge it, measure, compare.

What systems said lies in the folder of the run, so that a bench that stops, however it stops, goes on from there, and
other measures or another seed cost no inference. The same answers give the same results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from veriglot.bench.config import scopes
from veriglot.bench.data import read_data, statistics_of
from veriglot.bench.figures import Judgement, measured, span_figures, unlabelled_answers
from veriglot.bench.items import (
    OWN_MARKS,
    Opinion,
    item_table,
    opinion_of_detector,
    opinion_of_scorer,
    same_maker,
    sentence_samples,
    tag_of,
)
from veriglot.bench.leaderboard import METHODS, Board, comparisons, correlations, wins
from veriglot.bench.results import BenchCell, BenchData, BenchResults
from veriglot.bench.systems import imported_answers, imported_system, judge, load_system, with_statuses
from veriglot.bench.type_confusion import type_confusions
from veriglot.detectors.registry import load_detector
from veriglot.errors import MissingExtraError, VeriglotError
from veriglot.metrics.estimate import Resampling
from veriglot.metrics.measures import CORRELATIONS
from veriglot.pipeline.engine import Silent
from veriglot.records import Prediction, encode
from veriglot.signatures import __version__, digest, signature
from veriglot.storage.files import Lock, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.bench.config import Config, Folder, SystemEntry
    from veriglot.bench.data import DataSet
    from veriglot.bench.items import ItemTable
    from veriglot.bench.results import BenchAnswers, BenchConfusion, BenchFigure, Level
    from veriglot.bench.systems import Grain, LoadDetector, System, SystemOutput
    from veriglot.pipeline.engine import Watch
    from veriglot.records import Sample, Score

__all__ = ["Options", "run"]


def assembled(config: Config, state: State) -> BenchResults:
    """Everything that views show; the same answers give the same record."""
    notes: list[str] = []
    groups = _groups(config, state)
    baseline = _baseline(config, state)
    matrices, compared = [], []
    for board in state.boards.values():
        if baseline is not None:
            compared += comparisons(board, baseline, config.bench.rank_by, config.bench.correction)
        for method in METHODS:
            try:
                matrices.append(correlations(board, method))
            except MissingExtraError as error:
                notes.append(f"Correlations are not tested: {error}")
    done = [result for board in state.boards.values() for result in board.measured.values()]
    bench = config.bench
    return BenchResults(
        title=config.title,
        measures={level: config.measures(level) for level in state.boards},
        rank_by=bench.rank_by,
        baseline=baseline,
        seed=bench.seed,
        resamples=bench.resamples,
        correction=bench.correction,
        data=tuple(_described(state, data) for data in state.data),
        systems=tuple(system.about for system in state.systems),
        cells=tuple(state.cells),
        figures=tuple(figure for result in done for figure in result.figures),
        thresholds=tuple(threshold for result in done for threshold in result.thresholds),
        wins=tuple(record for board in state.boards.values() for record in wins(board, groups)),
        comparisons=tuple(compared),
        correlations=tuple(matrix for matrix in matrices if matrix is not None),
        groups=groups,
        notes=(*dict.fromkeys(notes), *_notes(config, state)),
        signature=_signature(config, state),
        version=__version__,
        confusions=tuple(state.confusions),
        answers=tuple(state.answers),
    )


def _groups(config: Config, state: State) -> dict[str, tuple[str, ...]]:
    """Scope to its cells, over all data sets."""
    labelled = [data for data in state.data if data.labelled]
    cells = {f"{data.name}/{tag}": pair for data in labelled for tag, pair in data.pairs().items()}
    return scopes(cells, config.bench.groups, config.entries.groups)


def _baseline(config: Config, state: State) -> str | None:
    """The baseline that the file names, or the first system that can be made."""
    if config.bench.baseline is not None:
        return config.bench.baseline
    return next((system.name for system in state.systems if system.available), None)


def _described(state: State, data: DataSet) -> BenchData:
    entry = data.entry
    boards = {level: board.tables[data.name] for level, board in state.boards.items() if data.name in board.tables}
    languages = {tag: [sample for sample in data.test if tag_of(sample.language) == tag] for tag in data.pairs()}
    counts = statistics_of(data.test, annotator=entry.annotator) if data.labelled else {}
    silver = f"LABELS BY A MODEL: {entry.annotator}" if data.makers else None
    return BenchData(
        name=data.name,
        levels=tuple(boards),
        languages={
            tag: (len(samples), len({data.texts[sample.id] for sample in samples}))
            for tag, samples in languages.items()
        },
        pairs=data.pairs(),
        dev=len(data.dev),
        bad_rows=data.bad_rows,
        unlabelled=data.unlabelled,
        items={level: len(table) for level, table in boards.items()},
        nonfactual={level: int(table.nonfactual.sum()) for level, table in boards.items() if table.labelled},
        license=entry.license,
        split=data.split,
        seen=entry.seen,
        sha256=data.hashed(),
        note="; ".join(filter(None, (silver, entry.note))) or None,
        statistics={name: value for name, value in counts.items() if value is not None},
        labelled=data.labelled,
    )


def _about_models(data: DataSet) -> list[str]:
    """What a reader must know of the models that labelled a data set, a sentence each."""
    notes = []
    if data.makers:
        notes.append(
            f"{data.name}: its labels were made by a model, {data.entry.annotator}, and by no person: figures say how"
            " far systems agree with it, not how often they are right."
        )
    if data.aside:
        notes.append(
            f"{data.name}: annotations of models ({', '.join(data.aside)}) are no labels where nobody else labelled a"
            " sample; `annotator` in the bench file makes them labels by name."
        )
    return notes


def _notes(config: Config, state: State) -> list[str]:
    """What a reader of the tables must know, in words."""
    notes = []
    for data in state.data:
        if not data.labelled:
            notes.append(f"{data.name} has no labels: nobody is ranked by it.")
        notes += _about_models(data)
        own = dict.fromkeys(cell.system for cell in state.cells if cell.data == data.name and cell.reason == OWN_MARKS)
        notes += [f"{name} is not judged on {data.name}: {OWN_MARKS}." for name in own]
        if data.bad_rows:
            notes.append(f"{data.name}: {data.bad_rows} rows could not be read and are in no figure.")
        if data.entry.seen:
            notes.append(f"{data.name} was in the training of {', '.join(data.entry.seen)}.")
    related = any(measure in CORRELATIONS for level in state.boards for measure in config.measures(level))
    if related and any(data.labelled for data in state.data):
        notes.append(
            "Correlations have the sign that makes a good system positive: its opinion of how good an item is with the"
            " support rate, of how bad it is with the unverified rate."
        )
    return notes


def _signature(config: Config, state: State) -> str:
    """What was judged by what, and how: not where the files lie."""
    bench = config.bench
    limits = [f"{entry.name}: {', '.join(entry.data)}" for entry in config.systems if entry.data]
    return signature(
        bench=digest(data.hashed() for data in state.data)[:16],
        systems=digest(encode(system.about) for system in state.systems)[:16],
        asked=digest(limits)[:16] if limits else None,
        measures=digest(measure for level in state.boards for measure in config.measures(level))[:16],
        rank_by=bench.rank_by,
        thresholds=bench.thresholds,
        unit=bench.unit,
        seed=bench.seed,
        resamples=bench.resamples,
        version=__version__,
    )


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
    """What a bench has so far: boards by level, and what became of every system on every data set at every level."""

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
            for note in _about_models(data):
                watch.say(note.removesuffix("."))
            _judge_all(config, folder, state, data, options, watch)
        for system in state.systems:
            if system.imported is not None and (unused := system.imported.unused()):
                watch.say(f"predictions of {system.name} that belong to no sample that was judged: {unused:,}")
        state.boards = {level: state.boards[level] for level in LEVELS if level in state.boards}
        watch.begin("measuring over all data sets", None)
        results = assembled(config, state)
        write_json(folder.results, results)
    finally:
        lock.release()
    return results


def _made(config: Config, entry: SystemEntry, load: LoadDetector) -> System:
    return imported_system(entry, config.places(entry.files)) if entry.files else load_system(entry, load)


def _judge_all(config: Config, folder: Folder, state: State, data: DataSet, options: Options, watch: Watch) -> None:
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


def _names(system: System) -> set[str | None]:
    """What a system that marks is called, and its members are; scorers make no labels."""
    about = system.about
    members = about.made_by.removeprefix("ensemble:").split("+")
    return {system.name, about.made_by, about.description, *members} if system.marks else set()


def _who_answered(answers: Sequence[Prediction] | Sequence[Score]) -> set[str]:
    """The detectors behind predictions: one may have been asked, and another have judged."""
    return {name for answer in answers if isinstance(answer, Prediction) for name in (answer.detector, answer.asked)}


class _Work:
    """Has systems judge one data set; a detector is asked once for all levels."""

    def __init__(self, config: Config, folder: Folder, data: DataSet, options: Options, watch: Watch) -> None:
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
        if same_maker(self._data.makers, _names(system)):
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
        from veriglot.scorers.pairwise import with_sisters

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
