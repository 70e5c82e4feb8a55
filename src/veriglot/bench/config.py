"""A bench file, read and checked: every word of it is known, and what could fail late is looked at now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.bench.entries import Entries
from veriglot.bench.groups import GROUPINGS
from veriglot.errors import InputError, UnknownNameError, VeriglotError
from veriglot.metrics.item_measures import ITEM_MEASURES
from veriglot.metrics.units import segmenter
from veriglot.records.languages import language
from veriglot.records.toml_file import read_toml_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.bench.entries import BenchEntry, DataEntry, SystemEntry

__all__ = ["USUAL", "Config", "load"]

USUAL = {
    "word": ("f1", "precision", "recall", "mcc", "auroc", "auc_pr_nonfactual"),
    "sentence": (
        "f1", "precision", "recall", "mcc", "accuracy", "auroc", "auc_pr_factual", "auc_pr_nonfactual",
        "pearson_support", "spearman_support", "pearson_unverified", "spearman_unverified",
    ),
    "response": (
        "f1", "precision", "recall", "mcc", "accuracy", "auroc", "auc_pr_factual", "auc_pr_nonfactual",
        "pearson_support", "spearman_support", "pearson_unverified", "spearman_unverified",
    ),
}  # fmt: skip
"""Level to the measures that are taken where the file names none: hat's and kang's, and AUROC."""


@dataclass(frozen=True)
class Config:
    """A bench file with its place.

    Attributes:
        path: the file.
        entries: what stands in it.
        data_root: the folder that paths of data are relative to; None for the folder of the file.
    """

    path: Path
    entries: Entries
    data_root: Path | None = None

    @property
    def bench(self) -> BenchEntry:
        """`[bench]`."""
        return self.entries.bench

    @property
    def title(self) -> str:
        """The title, or the file's name without its suffix."""
        return self.bench.title or self.path.stem

    @property
    def data(self) -> Sequence[DataEntry]:
        """`[[data]]`."""
        return self.entries.data

    @property
    def systems(self) -> Sequence[SystemEntry]:
        """`[[systems]]`."""
        return self.entries.systems

    def measures(self, level: str) -> tuple[str, ...]:
        """The measures at a level; the one that systems are sorted by is always among them."""
        rank_by = self.bench.rank_by
        found = self.bench.measures or USUAL[level]
        return found if rank_by in found else (rank_by, *found)

    def places(self, paths: str | tuple[str, ...]) -> list[Path]:
        """Where the paths of a data set, or of predictions, lead."""
        root = self.data_root or self.path.parent
        return [root / Path(path).expanduser() for path in ((paths,) if isinstance(paths, str) else paths)]


def load(path: Path, *, data_root: Path | None = None, limit: int | None = None) -> Config:
    """Read a bench file.

    Args:
        path: the file.
        data_root: the folder that paths of data are relative to; None for the folder of the file.
        limit: the most test and dev samples of each language, for a trial; None for what the file says.

    Raises:
        InputError: it is no TOML, a key is unknown (with the nearest that are known), missing or of a wrong kind, or
            values do not go together; a file that it names does not exist.
    """
    import msgspec

    try:
        entries = read_toml_records(path, Entries, "bench")
        if limit is not None:
            bounded = (
                msgspec.structs.replace(
                    one, limit=min(limit, one.limit or limit), dev_limit=min(limit, one.dev_limit or limit)
                )
                for one in entries.data
            )
            entries = msgspec.structs.replace(entries, data=tuple(bounded))
        config = Config(path, entries, data_root)
        _check_bench(config)
        _check_data(config)
        _check_systems(config)
    except InputError as error:
        raise error.at(path=str(path)) from None
    except VeriglotError as error:
        raise InputError(error.message, remedy=error.remedy, path=str(path)) from error
    return config


def _check_bench(config: Config) -> None:
    bench = config.bench
    segmenter(bench.unit)
    for measure in (*bench.measures, bench.rank_by):
        if measure not in ITEM_MEASURES:
            raise UnknownNameError("measure", measure, ITEM_MEASURES)
    for grouping in bench.groups:
        if grouping not in GROUPINGS:
            raise UnknownNameError("grouping of languages", grouping, GROUPINGS)
    for tags in config.entries.groups.values():
        for tag in tags:
            language(tag)
    if bench.seed < 0 or bench.resamples < 0:
        raise InputError("seed and resamples are 0 or more", field="bench")
    labels = {one.name for one in config.systems}
    if bench.baseline is not None and bench.baseline not in labels:
        raise UnknownNameError("system of this bench", bench.baseline, labels)


def _check_data(config: Config) -> None:
    if not config.data:
        raise InputError("there is no data set", field="data", remedy="Add a table [[data]].")
    _once((one.name for one in config.data), "data.name")
    labels = {one.name for one in config.systems}
    for number, entry in enumerate(config.data):
        place = f"data[{number}]"
        for field, paths in (("path", entry.path), ("dev", entry.dev)):
            for found in config.places(paths) if paths is not None else []:
                _exists(found, f"{place}.{field}")
        if not entry.levels:
            raise InputError("a data set has a level or more", field=f"{place}.levels")
        if entry.dev is None and not 0.0 < entry.dev_share < 1.0:
            raise InputError(
                "the share that is for tuning lies between 0 and 1, such as 0.3", field=f"{place}.dev_share"
            )
        for name, value in (("limit", entry.limit), ("dev_limit", entry.dev_limit)):
            if value is not None and value < 1:
                raise InputError("a limit is 1 or more", field=f"{place}.{name}")
        for tag in (*entry.languages, *([entry.language] if entry.language else [])):
            language(tag)
        for label in entry.seen:
            if label not in labels:
                raise UnknownNameError("system of this bench", label, labels)


def _exists(place: Path, field: str) -> None:
    if not place.exists():
        raise InputError(
            f"there is no file {place}",
            field=field,
            remedy="Paths of data and predictions are relative to the folder of the bench file, or to --data-root.",
        )


def _check_systems(config: Config) -> None:
    if not config.systems:
        raise InputError("there is no system", field="systems", remedy="Add a table [[systems]].")
    for number, entry in enumerate(config.systems):
        _check_system(config, entry, f"systems[{number}]")
    _once((one.name for one in config.systems), "systems.label")


def _check_system(config: Config, entry: SystemEntry, place: str) -> None:
    from veriglot.detectors import DETECTORS
    from veriglot.scorers import SCORERS

    if sum(one is not None for one in (entry.detector, entry.scorer, entry.predictions)) != 1:
        raise InputError("a system is either a detector or a scorer, or predictions made elsewhere", field=place)
    names = {one.name for one in config.data}
    for name in entry.data:
        if name not in names:
            raise UnknownNameError("data set of this bench", name, names)
    if entry.predictions is not None:
        _check_predictions(config, entry, place)
    elif entry.scorer is not None:
        SCORERS.entry(entry.scorer)
    elif ":" not in entry.made_by:  # package.module:Class is a name too
        DETECTORS.entry(entry.made_by)
    if entry.detector is not None and entry.threshold is not None and not 0.0 <= entry.threshold <= 1.0:
        raise InputError("a detector's threshold is a probability between 0 and 1", field=f"{place}.threshold")
    _no_secrets(entry, place)


def _check_predictions(config: Config, entry: SystemEntry, place: str) -> None:
    for field in ("options", "threshold", "price_in", "price_out"):
        if getattr(entry, field):
            raise InputError(
                f"predictions are taken as they were made, and have no {field}",
                field=f"{place}.{field}",
                remedy="Take it out, or make the predictions with it.",
            )
    if not entry.files:
        raise InputError("there are no files of predictions", field=f"{place}.predictions")
    for path in config.places(entry.files):
        _exists(path, f"{place}.predictions")
    if not entry.data and len(config.data) > 1:
        raise InputError(
            "predictions are joined with samples by id, and several data sets may have the same ids",
            field=place,
            remedy='Say which data they are of, as in data = ["NAME"].',
        )


def _no_secrets(entry: SystemEntry, place: str) -> None:
    """Refuse a key in the file itself: options go into signatures and results."""
    from veriglot.http.secrets import refuse_given_key, refuse_secret_headers

    key, headers = entry.options.get("key"), entry.options.get("headers")
    try:
        if isinstance(key, str):
            refuse_given_key(key)
        if isinstance(headers, dict):
            refuse_secret_headers(dict.fromkeys(headers, ""))
    except VeriglotError as error:
        raise InputError(error.message, field=f"{place}.options", remedy=error.remedy) from None


def _once(names: Iterable[str], field: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]!r} occurs twice", field=field, remedy="Give each a name of its own.")
