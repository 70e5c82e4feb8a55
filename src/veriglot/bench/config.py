"""A bench file: its tables as records, read and validated, and the groups of its languages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import asdict, replace

from veriglot.bench.results import Level
from veriglot.detectors.registry import DETECTORS
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.measures import ITEM_MEASURES, RESAMPLES, SEED, TYPES
from veriglot.metrics.reference import labelled
from veriglot.metrics.spans import segmenter
from veriglot.plugins import read_package_data
from veriglot.records import Kind, Sample
from veriglot.records.languages import Language, base_tag, find_language, get_language, tag_of
from veriglot.records.settings import (
    StrictRecord,
    errors_of,
    paths_in,
    read_toml_records,
    require,
    require_files,
    require_unique,
)
from veriglot.scorers.registry import SCORERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


__all__ = ["ALL", "Config", "DataEntry", "SystemEntry", "load", "scopes"]


# The tables of a bench file, as records with defaults.


Paths = str | tuple[str, ...]


class BenchEntry(StrictRecord):
    """`[bench]`: what is measured, and how.

    Attributes:
        title: heading of the leaderboard; None for the name of the file.
        measures: names of `metrics.measures.ITEM_MEASURES`, in the order of the tables; empty for the usual ones.
        rank_by: the measure that systems are sorted and compared by, at the levels that have it; None, and at other
            levels: `mcc`, or `type_accuracy` for responses that are all unsupported.
        baseline: the system (its label) that others are compared with; None for the first that can be loaded.
        thresholds: a threshold is tuned on the dev samples of each `language` (HAT), or of the whole `data` set.
        correction: of the p-values of a level, for all its tests together: `romano-wolf` (by their resamples), `holm`
            or `bh`.
        groups: groupings of languages, for win rates and correlations; see `GROUPINGS`.
        seed: of the bootstrap, and of the sampling by `limit`.
        resamples: of the bootstrap; 0 for no intervals.
        unit: what level `word` counts: `word`, `char` or `hf:<tokenizer>`.
        errors: how many false positives, and how many false negatives, are listed of a system in a language of a data
            set.
    """

    title: str | None = None
    measures: tuple[str, ...] = ()
    rank_by: str | None = None
    baseline: str | None = None
    thresholds: Literal["data", "language"] = "data"
    correction: Literal["romano-wolf", "holm", "bh"] = "romano-wolf"
    groups: tuple[str, ...] = ("latin", "resources")
    seed: int = SEED
    resamples: int = RESAMPLES
    unit: str = "word"
    errors: int = 20


class DataEntry(StrictRecord):
    """`[[data]]`: one labelled data set.

    Attributes:
        name: in every table.
        path: its files or folders; only the test part if `dev` names others.
        dev: files or folders of the dev part; None to take a share of `path`.
        dev_share: share of the texts for tuning, chosen by a hash of the text, below 1; no texts if the labels call all
            items, or none, unsupported.
        format: of the files; None to recognise it.
        language: of samples without one.
        columns: part of a sample to its column, as for --map.
        languages: only these; empty for all.
        levels: `word`, `fact`, `sentence` or `response`, any of them.
        annotator: whose labels count; see `bench.items`.
        drop_flags: flags of annotators whose samples are dropped; `source` for all flags of a faulty source.
        limit: maximum number of test samples of each language, drawn by a hash of their texts; None for all.
        dev_limit: maximum number of dev samples of each language; None for all.
        license: as its publisher states it, for readers.
        seen: systems (labels) that were trained on this data: their figures are marked, and the data is in no mean and
            no win rate.
        note: what a reader must know about it.
    """

    name: str
    path: Paths
    dev: Paths | None = None
    dev_share: float = 0.3
    format: str | None = None
    language: str | None = None
    columns: dict[str, str] = {}
    languages: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ("response",)
    annotator: str | None = None
    drop_flags: tuple[str, ...] = ()
    limit: int | None = None
    dev_limit: int | None = None
    license: str | None = None
    seen: tuple[str, ...] = ()
    note: str | None = None


class SystemEntry(StrictRecord):
    """`[[systems]]`: one detector, one scorer, or predictions from files.

    Attributes:
        detector: its name, as for `veriglot detect --detector`.
        scorer: its name, as for `veriglot.load_scorer`; `pairwise:NAME` compares responses with the other responses to
            the same input.
        predictions: files of predictions, joined with the samples by id.
        label: its name in every table; None for `detector` or `scorer`, or the name of the first file of predictions.
        data: names of the data sets that it scores; empty for all.
        options: its other options.
        threshold: its own threshold, in its own scores: for a detector the confidence from which a word is marked, for
            a scorer the score from which a response is. None for the detector's default, and for no threshold of a
            scorer.
        price_in: price of a million prompt tokens, in any currency.
        price_out: price of a million reply tokens.
    """

    detector: str | None = None
    scorer: str | None = None
    predictions: Paths | None = None
    label: str | None = None
    data: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    threshold: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files of predictions."""
        return (self.predictions,) if isinstance(self.predictions, str) else self.predictions or ()

    @property
    def made_by(self) -> str:
        """The name that loads it, or the names of its files."""
        return self.detector or self.scorer or ", ".join(Path(path).name for path in self.files)

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.label or self.detector or self.scorer or (Path(self.files[0]).name if self.files else "")

    def judges(self, data: str) -> bool:
        """Whether it scores a data set."""
        return not self.data or data in self.data


class Entries(StrictRecord):
    """A bench file. `groups` are further groups of languages by name, such as `nordic = ["sv", "fi"]`."""

    bench: BenchEntry = BenchEntry()
    data: tuple[DataEntry, ...] = ()
    systems: tuple[SystemEntry, ...] = ()
    groups: dict[str, tuple[str, ...]] = {}


# Groups of languages for averages and win rates: by script, family and resourcedness.
#
# By script as in HAT (section 4.3.2): Latin or not. One side of each HAT pair is English, so a pair is Latin if both
# its languages are. By resourcedness as in Kang et al. (its table of reference-based metrics), for their 19 languages;
# the table is a data file in this folder.


ALL = "all"
LATIN, NON_LATIN = "latin", "non_latin"


@cache
def resource_groups() -> dict[str, tuple[str, ...]]:
    """Kang et al.'s groups to primary subtags, the richest group first."""
    groups = read_package_data(__package__, "groups.json", dict[str, Any])["resources"]["groups"]
    return {name: tuple(tags) for name, tags in groups.items()}


def script_group(*tags: str) -> str | None:
    """`latin` if every language is written in Latin script, otherwise `non_latin`; None if a language is not known."""
    known = [entry for tag in tags if (entry := find_language(tag))]
    if not known or len(known) < len(tags):
        return None
    return LATIN if all(entry.script == "Latn" for entry in known) else NON_LATIN


def resources(*tags: str) -> str | None:
    """`high`, `middle` or `low` after Kang et al., the lowest of the languages; None if one is not among its 19."""
    groups = resource_groups()
    order = list(groups)
    levels = [index for tag in tags for index, name in enumerate(order) if base_tag(tag) in groups[name]]
    return order[max(levels)] if levels and len(levels) == len(tags) else None


def _named(kind: str, tags: Sequence[str], part: Callable[[Language], str]) -> str | None:
    names = sorted({part(entry) for tag in tags if (entry := find_language(tag))})
    return f"{kind}:{'+'.join(names)}" if names else None


GROUPINGS: dict[str, Callable[..., str | None]] = {
    "latin": script_group,
    "resources": resources,
    "script": lambda *tags: _named("script", tags, lambda entry: entry.script),
    "family": lambda *tags: _named("family", tags, lambda entry: entry.family.partition(" (")[0]),
}


def scopes(
    cells: Mapping[str, Sequence[str]],
    by: Sequence[str] = ("latin", "resources"),
    own: Mapping[str, Collection[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Group to its cells, for `leaderboard.win_rates` and `leaderboard.scope_means`.

    Args:
        cells: name of a cell to the tags of its languages: one, or those of the evidence and the response.
        by: groupings of `GROUPINGS`.
        own: further groups of languages, by name; a cell belongs to a group if all its languages do. Languages may be
            given as `language` takes them.

    Returns:
        `all` first, then the groups that have any cell, in a fixed order. A cell is in no group of a grouping that does
        not know its language.

    Raises:
        UnknownNameError: no such grouping, or no such language in `own`.
    """
    result: dict[str, tuple[str, ...]] = {ALL: tuple(cells)}
    for name in by:
        _require_known("grouping of languages", name, GROUPINGS)
        members: dict[str, list[str]] = {}
        for cell, tags in cells.items():
            group = GROUPINGS[name](*tags)
            if group is not None:
                members.setdefault(group, []).append(cell)
        order = [LATIN, NON_LATIN, *resource_groups()]
        ordered = sorted(members, key=lambda group: (order.index(group) if group in order else len(order), group))
        result |= {group: tuple(members[group]) for group in ordered}
    for name, wanted in (own or {}).items():
        bases = {get_language(tag).tag for tag in wanted}
        result[name] = tuple(cell for cell, tags in cells.items() if tags and all(tag_of(tag) in bases for tag in tags))
    return result


# The default measures: HAT's and Kang et al.'s, and AUROC.
_OF_WORDS = ("f1", "precision", "recall", "mcc", "auroc", "auc_pr_nonfactual")
_OF_RESPONSES = (
    "f1", "precision", "recall", "mcc", "accuracy", "auroc", "auc_pr_factual", "auc_pr_nonfactual", "pearson_support",
    "spearman_support", "pearson_unverified", "spearman_unverified", TYPES,
)  # fmt: skip


class Config(Entries, kw_only=True):
    """A bench file with its path; for data without a bench file, the path of the data."""

    path: Path

    @property
    def title(self) -> str:
        """The title, or the file's name without its suffix."""
        return self.bench.title or self.path.stem

    def measures(self, level: str) -> tuple[str, ...]:
        """The measures at a level; always includes the one that systems are sorted by."""
        rank_by = self.rank_by(level)
        names = self.bench.measures or (_OF_WORDS if level == "word" else _OF_RESPONSES)
        names = tuple(name for name in names if name != TYPES or level == "response")
        return names if rank_by in names else (rank_by, *names)

    def rank_by(self, level: str) -> str:
        """The measure that systems are sorted by at a level, unless only types can be compared."""
        named = self.bench.rank_by
        return "mcc" if named is None or (named == TYPES and level != "response") else named

    def resolve_all(self, paths: Paths) -> list[Path]:
        """The paths of a data set, or of predictions, relative to the bench file."""
        return paths_in(self.path.parent, paths)


def load(
    path: Path,
    *,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Config:
    """Read a bench file, or make a bench of labelled data.

    Args:
        path: the file; or, with `systems`, a file or folder of labelled samples.
        systems: names of detectors and scorers, or files of predictions; None for those of the bench file.
        limit: maximum number of test and dev samples of each language, for a trial; None for the bench file's.
        columns: of data sets that state neither columns nor a format.

    Raises:
        InputError: it is not TOML; a key is unknown (the message names similar ones), missing or of a wrong type;
            values do not go together; or a file that it names does not exist.
    """
    with errors_of(path):
        bench = read_toml_records(path, Entries, "bench") if systems is None else _of_data(path, systems, columns or {})
        entries = asdict(bench)
        data = [
            entry if entry.columns or entry.format else replace(entry, columns=dict(columns or {}))
            for entry in bench.data
        ]
        if limit is not None:
            data = [
                replace(entry, limit=min(limit, entry.limit or limit), dev_limit=min(limit, entry.dev_limit or limit))
                for entry in data
            ]
        config = Config(**entries | {"data": tuple(data)}, path=path)
        _check_bench(config)
        _check_data(config)
        require(config.systems, "there is no system", "systems", "Add a table [[systems]].")
        for number, system in enumerate(config.systems):
            _check_system(config, system, f"systems[{number}]")
        require_unique((system.name for system in config.systems), "systems.label")
    return config


def _of_data(path: Path, systems: Sequence[str], columns: Mapping[str, str]) -> Entries:
    """A bench of one data set, with the levels that its labels have."""
    from veriglot.formats.reader import read_rows

    require(path.exists(), "there is no such file or folder", "data", "Check the path.")
    rows = (row for row in read_rows(path, labelled=True, columns=columns) if isinstance(row, Sample))
    of_words = any(_has_word_labels(sample) for sample in rows)
    entries = []
    for name in systems:
        known = [*DETECTORS.names(), *SCORERS.names()]
        if name not in known and Path(name).is_file():
            entries.append(SystemEntry(predictions=str(Path(name).resolve())))
            continue
        if name not in known and ":" not in name:
            raise UnknownNameError("detector, scorer or file", name, known)
        entries.append(SystemEntry(scorer=name) if name in SCORERS else SystemEntry(detector=name))
    levels: tuple[Level, ...] = ("word", "response") if of_words else ("response",)
    return Entries(data=(DataEntry(name=path.stem, path=path.name, levels=levels),), systems=tuple(entries))


def _has_word_labels(sample: Sample) -> bool:
    """Whether its labels differ between words, or nothing is marked."""
    people = [each for each in labelled(sample) if each.kind is Kind.HUMAN] or labelled(sample)
    whole = (0, len(sample.response))
    return any(
        not marks or any((mark.start, mark.end) != whole for mark in marks)
        for each in people
        for marks in [each.spans if each.spans is not None else each.units or ()]
    )


def _check_bench(config: Config) -> None:
    bench = config.bench
    segmenter(bench.unit)
    for measure in filter(None, (*bench.measures, bench.rank_by)):
        _require_known("measure", measure, ITEM_MEASURES)
    for grouping in bench.groups:
        _require_known("grouping of languages", grouping, GROUPINGS)
    for tags in config.groups.values():
        for tag in tags:
            get_language(tag)
    require(min(bench.seed, bench.resamples, bench.errors) >= 0, "seed, resamples and errors are 0 or more", "bench")
    if bench.baseline is not None:
        _require_known("system of this bench", bench.baseline, {system.name for system in config.systems})


def _require_known(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise UnknownNameError(kind, name, known)


def _check_data(config: Config) -> None:
    require(config.data, "there is no data set", "data", "Add a table [[data]].")
    require_unique((entry.name for entry in config.data), "data.name")
    labels = {entry.name for entry in config.systems}
    for number, entry in enumerate(config.data):
        where = f"data[{number}]"
        require_files(config.path.parent, entry.path, f"{where}.path")
        require_files(config.path.parent, entry.dev or (), f"{where}.dev")
        require(entry.levels, "a data set has at least one level", f"{where}.levels")
        require(
            entry.dev is not None or 0.0 <= entry.dev_share < 1.0,
            "the share that is for tuning lies between 0 and 1, such as 0.3",
            f"{where}.dev_share",
        )
        for name, value in (("limit", entry.limit), ("dev_limit", entry.dev_limit)):
            require(value is None or value >= 1, "a limit is 1 or more", f"{where}.{name}")
        for tag in (*entry.languages, *([entry.language] if entry.language else [])):
            get_language(tag)
        for label in entry.seen:
            _require_known("system of this bench", label, labels)


def _check_system(config: Config, entry: SystemEntry, field: str) -> None:
    from veriglot.http.session import refuse_secrets

    sources = [maker for maker in (entry.detector, entry.scorer, entry.predictions) if maker is not None]
    require(len(sources) == 1, "a system is either a detector or a scorer, or predictions made elsewhere", field)
    for name in entry.data:
        _require_known("data set of this bench", name, {data.name for data in config.data})
    if entry.predictions is not None:
        _check_predictions(config, entry, field)
    elif entry.scorer is not None:
        SCORERS.entry(entry.scorer)
    elif ":" not in entry.made_by:  # package.module:Class is a name too
        DETECTORS.entry(entry.made_by)
    require(
        entry.detector is None or entry.threshold is None or 0.0 <= entry.threshold <= 1.0,
        "a detector's threshold is a probability between 0 and 1",
        f"{field}.threshold",
    )
    key, headers = entry.options.get("key"), entry.options.get("headers")
    try:  # options go into signatures and results
        refuse_secrets(key if isinstance(key, str) else None, headers if isinstance(headers, dict) else ())
    except UsageError as error:
        raise InputError(error.message, error.remedy, field=f"{field}.options") from None


def _check_predictions(config: Config, entry: SystemEntry, where: str) -> None:
    for field in ("options", "threshold", "price_in", "price_out"):
        require(
            not getattr(entry, field),
            f"predictions are taken as they were made, and have no {field}",
            f"{where}.{field}",
            "Take it out, or make the predictions with it.",
        )
    require(entry.files, "there are no files of predictions", f"{where}.predictions")
    require_files(config.path.parent, entry.files, f"{where}.predictions")
    require(
        entry.data or len(config.data) == 1,
        "predictions are joined with samples by id, and several data sets may have the same ids",
        where,
        'Name their data set, as in data = ["NAME"].',
    )
