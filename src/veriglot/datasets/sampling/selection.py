"""Selection of lines for annotation: each scorer's worst, more of its worst percentile, and the split into parts.

Hat, section 2.2. What it leaves open is decided so: step 1 is done for every scorer before step 2, and what is chosen
is not drawn again by whichever scorer. A percentile is a number of lines, 1 in 100 of those scored. Ties, and all
draws, are decided by a hash of the line's text and the seed, so neither the order of the data nor the machine matters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np

from veriglot.datasets.near_duplicates import mixed
from veriglot.datasets.sampling.lines import LineStore, key_of
from veriglot.datasets.sampling.stages import ShardResult, Shards
from veriglot.errors import UsageError, VeriglotError
from veriglot.records import Direction, Evidence, Sample, Task
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.datasets.sampling.lines import Line
    from veriglot.datasets.sampling.stages import Stages, Worker
    from veriglot.pipeline.engine import Watch
    from veriglot.records import Score, Scorer

__all__ = [
    "HAT_PARTS",
    "Account",
    "Choice",
    "Cleaned",
    "Cleaning",
    "GivenScores",
    "Part",
    "SampleAccount",
    "Sampling",
    "Scored",
    "ScorerAccount",
    "ScorerDescription",
    "ScorerSource",
    "Scores",
    "choose",
    "describe_scorer",
    "sizes_of",
    "split",
    "translation",
]


Step: TypeAlias = Literal["worst", "drawn"]


@dataclass(frozen=True)
class Scored:
    """What one scorer said of all lines.

    Attributes:
        label: the scorer's.
        direction: of its numbers.
        values: gives, each time it is called, the place of the first line and the numbers of the lines from there on,
            block by block in ascending order; not a number where a line was not scored.
        reasons: why lines were not scored, with counts.
    """

    label: str
    direction: Direction
    values: Callable[[], Iterable[tuple[int, NDArray[np.float64]]]]
    reasons: dict[str, int] = field(default_factory=dict)


class ScorerAccount(msgspec.Struct, frozen=True):
    """What one scorer gave to the sample.

    Attributes:
        scorer: its label.
        direction: of its numbers.
        scored: lines that it scored.
        unscored: lines that it did not.
        reasons: why it did not, with counts.
        worst: lines that were chosen for being its worst.
        worst_border: the best number among these; None where there is none.
        worst_tied: scored lines with just that number; where they are more than fit in, the hash decided.
        percentile: lines of its worst percentile.
        percentile_border: the best number among these.
        percentile_tied: scored lines with just that number.
        drawn: lines that were drawn from the percentile.
        missing: lines that could not be drawn, because the percentile holds no more.
        in_sample: lines of the final sample that this scorer chose or drew.
    """

    scorer: str
    direction: Direction
    scored: int
    unscored: int
    reasons: dict[str, int]
    worst: int
    worst_border: float | None
    worst_tied: int
    percentile: int
    percentile_border: float | None
    percentile_tied: int
    drawn: int
    missing: int
    in_sample: int


@dataclass(frozen=True)
class Choice:
    """The lines that were chosen.

    Attributes:
        places: of the lines, ascending.
        chosen_by: for each of them, label of every scorer that chose it to the step in which it did.
        scorers: an account for each scorer.
        worst: lines that the first step gave, each counted once.
        drawn: lines that the second step added.
    """

    places: NDArray[np.int64]
    chosen_by: list[dict[str, Step]]
    scorers: list[ScorerAccount]
    worst: int
    drawn: int


@dataclass(frozen=True)
class _Worst:
    """The worst lines of a scorer, the worst first, with their badness: the higher, the worse."""

    places: NDArray[np.int64]
    badness: NDArray[np.float64]
    scored: int
    unscored: int


def choose(scored: Sequence[Scored], keys: NDArray[np.uint64], sampling: Sampling) -> Choice:
    """Choose lines.

    Args:
        scored: the numbers of each scorer, for the same lines; the order of the scorers counts in the second step.
        keys: of the lines, which decide ties and draws.
        sampling: how many.
    """
    ranked = [_worst_of(scorer, keys, sampling) for scorer in scored]
    chosen: dict[int, dict[str, Step]] = {}
    for scorer, worst in zip(scored, ranked, strict=True):
        for line in worst.places[: sampling.worst].tolist():
            chosen.setdefault(line, {})[scorer.label] = "worst"
    first = len(chosen)
    drawn = []
    for scorer, worst in zip(scored, ranked, strict=True):
        pool = worst.places[: _percentile(worst.scored, sampling)]
        free = np.array([line for line in pool.tolist() if line not in chosen], np.int64)
        places = _drawn(free, keys, sampling.drawn, salted(sampling.seed, "drawn", scorer.label))
        chosen.update({line: {scorer.label: "drawn"} for line in places.tolist()})
        drawn.append(len(places))
    places = np.array(sorted(chosen), np.int64)
    places = np.sort(_drawn(places, keys, sampling.most, salted(sampling.seed, "most")))
    chosen_by = [chosen[line] for line in places.tolist()]
    accounts = [
        _account(scorer, worst, sampling, count, sum(scorer.label in by for by in chosen_by))
        for scorer, worst, count in zip(scored, ranked, drawn, strict=True)
    ]
    return Choice(places, chosen_by, accounts, first, sum(drawn))


def salted(seed: int, *words: str) -> np.uint64:
    """What sets the hashes of one draw apart from those of another."""
    return np.uint64(key_of(str(seed), *words))


def _percentile(scored: int, sampling: Sampling) -> int:
    return math.ceil(scored * sampling.percentile / 100)


def _drawn(places: NDArray[np.int64], keys: NDArray[np.uint64], count: int, salt: np.uint64) -> NDArray[np.int64]:
    """So many of the places at random, by the hash of their keys."""
    return places[np.argsort(mixed(keys[places] ^ salt), kind="stable")[:count]]


def _worst_of(scored: Scored, keys: NDArray[np.uint64], sampling: Sampling) -> _Worst:
    """The worst lines, as many as either step may take; only these are in memory."""
    scored_lines = sum(int(np.isfinite(values).sum()) for _, values in scored.values())
    count = max(sampling.worst, _percentile(scored_lines, sampling))
    salt, total = salted(sampling.seed, "ties", scored.label), 0
    places, badness, ties = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint64)
    for start, values in scored.values():
        total += len(values)
        usable = np.flatnonzero(np.isfinite(values))
        own = np.array(values[usable])
        places = np.concatenate([places, usable + start])
        badness = np.concatenate([badness, own if scored.direction is Direction.HIGHER_IS_WORSE else -own])
        ties = np.concatenate([ties, mixed(np.array(keys[start : start + len(values)])[usable] ^ salt)])
        if len(places) > 2 * count:
            places, badness, ties = _first(places, badness, ties, count)
    places, badness, ties = _first(places, badness, ties, count)
    return _Worst(places, badness, scored_lines, total - scored_lines)


def _first(
    places: NDArray[np.int64], badness: NDArray[np.float64], ties: NDArray[np.uint64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
    order = np.lexsort((ties, -badness))[:count]
    return places[order], badness[order], ties[order]


def _account(scored: Scored, worst: _Worst, sampling: Sampling, drawn: int, in_sample: int) -> ScorerAccount:
    taken, pool = len(worst.places[: sampling.worst]), _percentile(worst.scored, sampling)
    sign = 1.0 if scored.direction is Direction.HIGHER_IS_WORSE else -1.0
    borders = [sign * float(worst.badness[count - 1]) if count else None for count in (taken, pool)]
    tied = [0, 0]
    for _, values in scored.values():
        for number, border in enumerate(borders):
            tied[number] += 0 if border is None else int((values == border).sum())
    return ScorerAccount(
        scorer=scored.label,
        direction=scored.direction,
        scored=worst.scored,
        unscored=worst.unscored,
        reasons=scored.reasons,
        worst=taken,
        worst_border=borders[0],
        worst_tied=tied[0],
        percentile=pool,
        percentile_border=borders[1],
        percentile_tied=tied[1],
        drawn=drawn,
        missing=sampling.drawn - drawn,
        in_sample=in_sample,
    )


class Cleaned(msgspec.Struct, frozen=True):
    """What became of all lines.

    Attributes:
        lines: that could be read.
        unreadable: rows that could not; they stand in `failed.jsonl`.
        translated: lines that have a translation.
        drop_reasons: lines by what became of them, in the order in which it is looked for; they add up to `lines`.
        other_languages: lines in another language than the sources' by its tag.
        uncompared: lines that stood among so many near ones that they were not held against all of them.
    """

    lines: int
    unreadable: int
    translated: int
    drop_reasons: dict[str, int] = msgspec.field(name="fates")
    other_languages: dict[str, int]
    uncompared: int

    @property
    def clean(self) -> int:
        """Lines that stayed."""
        return self.drop_reasons["kept"]


class Part(msgspec.Struct, frozen=True):
    """One part of the sample: lines wanted and lines in it, which differ only where groups are too large to fit."""

    wanted: int
    lines: int


class SampleAccount(msgspec.Struct, frozen=True):
    """What was chosen.

    Attributes:
        scorers: what each gave.
        worst: lines that were among the worst of a scorer, each counted once.
        drawn: lines that were drawn from worst percentiles besides.
        union: both together.
        sample: lines of the sample, at most the bound.
        groups: groups of near-duplicates, lines on their own included.
        largest_group: lines of the largest one.
        parts: by name.
    """

    scorers: list[ScorerAccount]
    worst: int
    drawn: int
    union: int
    sample: int
    groups: int
    largest_group: int
    parts: dict[str, Part]


class Account(msgspec.Struct, frozen=True, omit_defaults=True):
    """The whole account, which `report.json` holds.

    Attributes:
        signature: one line that says how the sample was made.
        source: BCP 47 tag of the sources.
        target: of the translations; None where there are none yet.
        cleaned: what became of all lines.
        sample: what was chosen; None where there was nothing to score.
    """

    signature: str
    source: str
    target: str | None
    cleaned: Cleaned
    sample: SampleAccount | None = None


# A number for every clean line, from a scorer or from a column of the data.


_BATCH = 256
_REASONS = 20  # different reasons that a range of lines is counted by; beyond, they are counted together


@dataclass(frozen=True)
class ScorerSource:
    """A scorer, and how another process makes one like it.

    Attributes:
        label: what it is called in accounts.
        make: makes it; picklable where several processes score.
    """

    label: str
    make: Callable[[], Scorer]


@dataclass(frozen=True)
class ScorerDescription:
    """A scorer that could be made once.

    Attributes:
        source: the scorer.
        direction: of its numbers.
        signature: what its numbers depend on.
    """

    source: ScorerSource
    direction: Direction
    signature: str


def describe_scorer(source: ScorerSource) -> ScorerDescription:
    """Make the scorer, and let it go: one that cannot be made says so at once, and no two are in memory.

    Raises:
        VeriglotError: whatever keeps the scorer from being made.
    """
    scorer = source.make()
    return ScorerDescription(source, scorer.direction, scorer.signature)


@dataclass(frozen=True)
class GivenScores:
    """A column of the data that holds scores.

    Attributes:
        label: the column's name.
        direction: whether a higher number speaks against a translation or for it.
    """

    label: str
    direction: Direction


def translation(line: Line, id_: str, source: str, target: str) -> Sample:
    """A line as a sample, without annotations: the source as evidence, its translation as the response."""
    return Sample(
        id=id_,
        response=line.target or "",
        task=Task.TRANSLATION,
        language=target,
        evidence=(Evidence(line.source, language=source),),
    )


class ScorerWorker:
    """Scores clean lines.

    Args:
        store: folder of the lines.
        kept: file of the numbers of the clean ones.
        scorer: what scores them.
        languages: tags of sources and of targets.
    """

    def __init__(self, store: Path, clean: Path, scorer: Scorer, languages: tuple[str, str]) -> None:
        self._store, self._kept = LineStore(store), clean
        self._scorer, self._languages = scorer, languages

    def __call__(self, start: int, stop: int) -> ShardResult:
        """Array `values`, not a number where a line was not scored; notes count why it was not."""
        values = np.full(stop - start, np.nan)
        notes: Counter[str] = Counter()
        for first in range(start, stop, _BATCH):
            rows = np.array(np.load(self._kept, mmap_mode="r")[first : min(first + _BATCH, stop)])
            lines = zip(self._store.pick(rows), rows.tolist(), strict=True)
            samples = [translation(line, str(row), *self._languages) for line, row in lines]
            for index, score in enumerate(self._scores(samples), start=first - start):
                if score.value is not None:
                    values[index] = score.value
                else:
                    reason = f"{score.status}: {score.reason}"
                    notes[reason if reason in notes or len(notes) < _REASONS else f"{score.status}: other reasons"] += 1
        return ShardResult({"values": values}, dict(notes))

    def _scores(self, samples: Sequence[Sample]) -> list[Score]:
        scores = self._scorer.score(samples)
        if [score.id for score in scores] != [sample.id for sample in samples]:
            raise VeriglotError(f"The scorer {self._scorer.name} did not give one score for each line, in order.")
        return scores


# The scores of all clean lines, a stage on disk for each scorer.


_SHARD = 10_000
_BLOCK = 1 << 18


class Scores:
    """Scores clean lines, or finds the scores of an earlier run.

    Args:
        stages: with the stage `near` done.
        store: the lines.
        languages: tags of sources and of targets.
        jobs: how many processes score.
        watch: told of every range of lines.
    """

    def __init__(self, stages: Stages, store: LineStore, languages: tuple[str, str], jobs: int, watch: Watch) -> None:
        self._store = store
        self._stages, self._languages, self._jobs, self._watch = stages, languages, jobs, watch
        self._places = stages.path("read"), stages.path("near") / "kept.npy"

    def given(self, number: int, given: GivenScores) -> Scored:
        """Those of column `number`, which the data hold."""
        store, clean = self._store, np.load(self._places[1], mmap_mode="r")

        def values() -> Iterator[tuple[int, NDArray[np.float64]]]:
            for start in range(0, len(clean), _BLOCK):
                yield start, store.given(np.array(clean[start : start + _BLOCK]))[:, number]

        missing = sum(int(np.isnan(block).sum()) for _, block in values())
        reasons = {"the data hold no number": missing} if missing else {}
        return Scored(given.label, given.direction, values, reasons)

    def scored(self, known: ScorerDescription) -> Scored:
        """Those of a scorer, which is made again only where lines are left."""
        make = partial(_worker, known.source, self._places, self._languages)
        settings = {"scorer": known.signature, "languages": self._languages}
        return self._kept(known.source.label, known.direction, settings, make)

    def _kept(self, label: str, direction: Direction, settings: dict[str, Any], make: Callable[[], Worker]) -> Scored:
        name = f"scores-{re.sub(r'[^A-Za-z0-9.-]+', '_', label)[:40]}-{digest([label])[:8]}"
        count = len(np.load(self._places[1], mmap_mode="r"))
        shards = Shards(self._stages.path(name) / "shards", count, _SHARD)

        def work(_folder: Path) -> bool:
            self._watch.begin(f"scoring by {label}, {_SHARD:,} lines at a time", len(shards))
            shards.run(make, jobs=self._jobs, watch=self._watch)
            return True

        self._stages.do(name, settings, work, bool, after="near")
        return Scored(label, direction, partial(shards.arrays, "values"), shards.notes())


def _worker(source: ScorerSource, places: tuple[Path, Path], languages: tuple[str, str]) -> Worker:
    return ScorerWorker(*places, source.make(), languages)


# What a sample for translation is made by: how lines are cleaned, how they are chosen, how they are split (HAT, 2).


HAT_PARTS = {"train": 5_000, "dev": 2_000, "test": 3_000}
"""Name of a part to its size, as in HAT (section 2.2)."""


class Cleaning(msgspec.Struct, frozen=True):
    """What a line has to be to stay. Hat (section 2.1) names the filters and no numbers; the numbers are ours.

    Attributes:
        language: BCP 47 tag of the sources. Targets are not held against a language: a translation into the wrong one
            is among what is looked for.
        unique: what may occur once: a source, as in HAT, or a pair of source and target.
        min_length: shortest source, in letters and other visible characters; one of a Chinese, Japanese or Korean
            script counts as two.
        max_length: longest source, counted likewise.
        min_confidence: of the language, 0 to 1; less sure ones fall out.
        near: Jaccard similarity of character n-grams, above 0 to 1, from which a text is a near-duplicate of an earlier
            one; None keeps near-duplicates.
        skip: keep every line as it is, because the data were cleaned before.

    Raises:
        UsageError: a number out of its range.
    """

    language: str
    unique: Literal["source", "pair"] = "source"
    min_length: int = 15
    max_length: int = 1_000
    min_confidence: float = 0.5
    near: float | None = 0.8
    skip: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.min_length <= self.max_length:
            raise UsageError(f"Lengths from {self.min_length} to {self.max_length} are no range.")
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"The least confidence is a probability between 0 and 1, not {self.min_confidence}.")
        if self.near is not None:
            _similarity(self.near)


class Sampling(msgspec.Struct, frozen=True):
    """How lines are chosen and split; the defaults are HAT's (section 2.2).

    Attributes:
        worst: lines that each scorer gives for being its worst.
        drawn: lines drawn at random from each scorer's worst percentile, without those that are chosen already.
        percentile: how many per cent of the lines a scorer scored are its worst percentile, above 0 to 100.
        most: the greatest number of lines altogether; of more, so many are drawn.
        parts: name of a part to its size; where fewer lines are chosen than the parts hold, the sizes are shares.
        near: Jaccard similarity from which two sources, or two targets, come into the same part.
        seed: of every draw, and of the split.

    Raises:
        UsageError: a number out of its range.
    """

    worst: int = 1_000
    drawn: int = 1_000
    percentile: float = 1.0
    most: int = 10_000
    parts: dict[str, int] = msgspec.field(default_factory=lambda: dict(HAT_PARTS))
    near: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        for name, count in (("worst", self.worst), ("drawn", self.drawn)):
            if count < 0:
                raise UsageError(f"{name} counts lines and is at least 0, not {count}.")
        if self.worst + self.drawn == 0 or self.most < 1:
            raise UsageError("A sample has at least one line.", remedy="Raise worst, drawn or most.")
        if not 0 < self.percentile <= 100:
            raise UsageError(f"The worst percentile is above 0 and at most 100 per cent, not {self.percentile}.")
        if not self.parts or any(size < 1 for size in self.parts.values()):
            raise UsageError("A split has parts of at least one line each.", remedy="Such as train=5000,dev=2000.")
        _similarity(self.near)


def _similarity(value: float) -> None:
    if not 0 < value <= 1:
        raise UsageError(f"A similarity is above 0 and at most 1, not {value}.")


def sizes_of(total: int, parts: Mapping[str, int]) -> dict[str, int]:
    """How many of `total` lines each part gets: its size, where the parts hold just so many; else in proportion."""
    held = sum(parts.values())
    exact = {name: total * size / held for name, size in parts.items()}
    sizes = {name: int(share) for name, share in exact.items()}
    for name in sorted(parts, key=lambda name: sizes[name] - exact[name])[: total - sum(sizes.values())]:
        sizes[name] += 1
    return sizes


def split(groups: NDArray[np.int64], keys: NDArray[np.uint64], parts: Mapping[str, int], seed: int) -> list[str]:
    """The part of each line.

    A hash of a group's least key decides its part; where that has no room left for all of it, the part with the most
    room takes it. Lines on their own then fill the parts in the order of their hashes. So the sizes are exact unless
    groups are too large for that, and a line's place does not depend on the order of the data.

    Args:
        groups: of each line; equal numbers stay together.
        keys: of each line.
        parts: name to size; see `sizes_of`.
        seed: of the hash.
    """
    if not len(groups):
        return []
    least, members = _least(groups, keys)
    hashes = mixed(least ^ salted(seed, "split"))
    order = np.argsort(hashes, kind="stable").tolist()
    counts = np.bincount(members).tolist()
    wanted = sizes_of(len(groups), parts)
    room, part_of = dict(wanted), [""] * len(counts)
    for group in (group for group in order if counts[group] > 1):
        part = _at(float(hashes[group]) / 2.0**64, wanted)
        part = part if room[part] >= counts[group] else max(room, key=lambda name: room[name])
        part_of[group] = part
        room[part] -= counts[group]
    for group in (group for group in order if counts[group] == 1):
        part = next(name for name, left in room.items() if left > 0)
        part_of[group] = part
        room[part] -= 1
    return [part_of[group] for group in members.tolist()]


def _least(groups: NDArray[np.int64], keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The least key of each group, and for each line which of the groups, in ascending order, is its own."""
    names, members = np.unique(groups, return_inverse=True)
    least = np.full(len(names), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, members, keys)
    return least, members


def _at(share: float, sizes: Mapping[str, int]) -> str:
    """The part that a number between 0 and 1 falls into."""
    reached, total = 0, sum(sizes.values())
    for name, size in sizes.items():
        reached += size
        if share * total < reached:
            return name
    return list(sizes)[-1]
