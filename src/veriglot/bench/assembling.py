"""The results of a bench from what its systems said: one record of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot import __version__
from veriglot.bench.belonging import tag_of
from veriglot.bench.boards import comparisons, correlations, wins
from veriglot.bench.correlating import METHODS
from veriglot.bench.groups import scopes
from veriglot.bench.model_labels import OWN_MARKS
from veriglot.bench.results import BenchData, BenchResults
from veriglot.bench.statistics import statistics_of
from veriglot.errors import MissingExtraError
from veriglot.metrics.item_measures import CORRELATIONS
from veriglot.provenance import digest, signature
from veriglot.records import encode

if TYPE_CHECKING:
    from veriglot.bench.config import Config
    from veriglot.bench.data import DataSet
    from veriglot.bench.run import State

__all__ = ["about_models", "assembled"]


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
                matrix = correlations(board, method)
            except MissingExtraError as error:
                notes.append(f"Correlations are not tested: {error}")
                continue
            if matrix is not None:
                matrices.append(matrix)
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
        figures=tuple(
            one for board in state.boards.values() for done in board.measured.values() for one in done.figures
        ),
        thresholds=tuple(
            one for board in state.boards.values() for done in board.measured.values() for one in done.thresholds
        ),
        wins=tuple(one for board in state.boards.values() for one in wins(board, groups)),
        comparisons=tuple(compared),
        correlations=tuple(matrices),
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
    languages = {tag: [one for one in data.test if tag_of(one.language) == tag] for tag in data.pairs()}
    counts = statistics_of(data.test, annotator=entry.annotator).row() if data.labelled else {}
    return BenchData(
        name=data.name,
        levels=tuple(boards),
        languages={tag: (len(found), len({data.texts[one.id] for one in found})) for tag, found in languages.items()},
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
        note="; ".join(filter(None, (_silver(data), entry.note))) or None,
        statistics={name: value for name, value in counts.items() if value is not None},
        labelled=data.labelled,
    )


def _silver(data: DataSet) -> str | None:
    """What stands in the row of a data set whose labels a model made."""
    return f"LABELS BY A MODEL: {data.entry.annotator}" if data.makers else None


def about_models(data: DataSet) -> list[str]:
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
        notes += about_models(data)
        own = dict.fromkeys(one.system for one in state.cells if one.data == data.name and one.reason == OWN_MARKS)
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
    limits = [f"{one.name}: {', '.join(one.data)}" for one in config.systems if one.data]
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
