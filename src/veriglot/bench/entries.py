"""The tables of a bench file, as records: what may stand in it, with its defaults."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

import msgspec

from veriglot.bench.results import Level
from veriglot.metrics.summary import RESAMPLES, SEED

__all__ = ["BenchEntry", "DataEntry", "Entries", "SystemEntry"]

Paths = str | tuple[str, ...]


class BenchEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[bench]`: what is measured, and how.

    Attributes:
        title: heading of the leaderboard; None for the name of the file.
        measures: names of `metrics.item_measures.ITEM_MEASURES`, in the order of the tables; empty for the usual ones.
        rank_by: the measure that systems are sorted and compared by.
        baseline: the system (its label) that others are held against; None for the first that can be made.
        thresholds: what a threshold is tuned on: the dev samples of each `language` (hat), or of the whole `data` set.
        correction: of the p-values of comparisons: `holm` or `bh`.
        groups: groupings of languages that win rates are counted within; see `bench.groups`.
        seed: of the bootstrap, and of what limits draw.
        resamples: of the bootstrap; 0 for no intervals.
        unit: what level `word` counts: `word`, `char` or `hf:<tokenizer>`.
    """

    title: str | None = None
    measures: tuple[str, ...] = ()
    rank_by: str = "mcc"
    baseline: str | None = None
    thresholds: Literal["data", "language"] = "data"
    correction: Literal["holm", "bh"] = "holm"
    groups: tuple[str, ...] = ("latin", "resources")
    seed: int = SEED
    resamples: int = RESAMPLES
    unit: str = "word"


class DataEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[data]]`: one labelled data set.

    Attributes:
        name: in every table.
        path: files or folders of it; those of the test part where `dev` names others.
        dev: files or folders of the dev part; None to take a share of `path`.
        dev_share: share of the texts that are for tuning, by a hash of the text, above 0 and below 1.
        format: of the files; None to recognise it.
        language: of samples that state none.
        languages: only these; empty for all.
        levels: `word`, `sentence` or `response`, any of them.
        annotator: whose labels count; see `bench.model_labels`.
        limit: the most test samples of each language, drawn by a hash of their texts; None for all.
        dev_limit: the most dev samples of each language; None for all.
        license: as its publisher states it, for readers.
        seen: systems (labels) whose training held it: their figures are marked, and the data is in no mean and win
            rate.
        note: what a reader must know of it.
    """

    name: str
    path: Paths
    dev: Paths | None = None
    dev_share: float = 0.3
    format: str | None = None
    language: str | None = None
    languages: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ("response",)
    annotator: str | None = None
    limit: int | None = None
    dev_limit: int | None = None
    license: str | None = None
    seen: tuple[str, ...] = ()
    note: str | None = None


class SystemEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[systems]]`: one detector, one scorer, or predictions made elsewhere.

    Attributes:
        detector: its name, as for `veriglot detect --detector`.
        scorer: its name, as for `veriglot.load_scorer`; `pairwise:NAME` holds responses against their sisters.
        predictions: files of predictions that were made elsewhere, joined with the samples by id.
        label: its name in every table; None for `detector` or `scorer`, or the name of the first file of predictions.
        data: names of the data sets that it judges; empty for all.
        options: further options of it.
        threshold: its own threshold in its own numbers: for a detector the confidence from which a word is marked, for
            a scorer the number from which a response is. None for the detector's own, and for none of a scorer.
        price_in: what a million tokens of prompts cost, in any currency.
        price_out: what a million tokens of replies cost.
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
        """The name that it is loaded by, or the names of its files."""
        return self.detector or self.scorer or ", ".join(_name(path) for path in self.files)

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.label or self.detector or self.scorer or (_name(self.files[0]) if self.files else "")

    def judges(self, data: str) -> bool:
        """Whether it is asked about a data set."""
        return not self.data or data in self.data


def _name(path: str) -> str:
    return PurePath(path).name


class Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bench file. `groups` are further groups of languages by name, such as `nordic = ["sv", "fi"]`."""

    bench: BenchEntry = BenchEntry()
    data: tuple[DataEntry, ...] = ()
    systems: tuple[SystemEntry, ...] = ()
    groups: dict[str, tuple[str, ...]] = {}
