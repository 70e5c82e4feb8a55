"""A sample of translations for annotation, from tens of millions of lines (HAT, section 2).

Sources are filtered by length and language, and repeats and near-duplicates are dropped; every scorer scores the clean
lines; its worst lines and some of its worst percentile are chosen; the sample is split, with near-duplicates in one
part. In memory is at most one number a line.

Where HAT (section 2.2) is not specific, the rule is this: the worst lines of every scorer are taken before the draws,
and a chosen line is not drawn again for another scorer. A percentile is a number of lines, 1 in 100 of those scored.
Ties, and all draws, are decided by a hash of the line's text and the seed, so the result depends neither on the order
of the data nor on the machine.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from veriglot.datasets.generation import apportioned
from veriglot.datasets.near_duplicates import SHINGLES_VERSION, groups_of, mixed
from veriglot.datasets.sampling.filters import Cleaned, Cleaning, DropReason, Shards, Stages, clean, read
from veriglot.datasets.sampling.lines import Columns, Line, LineStore, key_of
from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.formats.writer import Writer
from veriglot.pipeline.progress import ProgressReporter
from veriglot.pipeline.ray_engine import connected, open_engine
from veriglot.records import Direction, Evidence, Sample, Scorer, Task
from veriglot.records.settings import Record, check_ranges
from veriglot.signatures import digest, signature
from veriglot.storage.files import Lock, open_whole, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.arrays import Float64s, Int64s, Numbers, UInt8s, UInt64s

__all__ = ["Account", "MtSample", "Sampling", "mt_sample"]

_VERSION = "mt-sample@1"
_BATCH = 256  # lines in one call of a scorer
_LINES = 4_096  # lines that are written at once
_SHARD = 10_000  # lines that a process scores before it stores the scores
_BLOCK = 1 << 18  # lines whose scores are read at once
_REASONS = 20  # different reasons that are counted in a range of lines; further ones are counted together


class Sampling(Record):
    """How lines are chosen and split; the defaults are HAT's (section 2.2).

    Attributes:
        worst: number of worst lines of each scorer.
        drawn: number of random lines from each scorer's worst percentile, without lines that are already chosen.
        percentile: per cent of the scored lines that are a scorer's worst percentile, above 0 to 100.
        most: maximum number of lines in total; from more, this number is drawn.
        parts: size of each part by name; if fewer lines are chosen than the sum, the sizes are shares.
        near: Jaccard similarity from which two sources, or two targets, go into the same part.
        seed: for all random draws, and for the split.

    Raises:
        UsageError: a number is out of its range.
    """

    worst: int = 1_000
    drawn: int = 1_000
    percentile: float = 1.0
    most: int = 10_000
    parts: dict[str, int] = msgspec.field(default_factory=lambda: {"train": 5_000, "dev": 2_000, "test": 3_000})
    near: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        most = math.inf
        check_ranges(self, worst=(0, most), drawn=(0, most), most=(1, most), percentile=(1e-6, 100), near=(0.01, 1))
        if self.worst + self.drawn == 0:
            raise UsageError("A sample has at least one line.", "Raise worst or drawn.")
        if not self.parts or any(size < 1 for size in self.parts.values()):
            raise UsageError("A split has parts of at least one line each.", "Such as train=5000,dev=2000.")


class MtSample(Record):
    """Input and settings of a sample for translation.

    Attributes:
        paths: the inputs; see `lines_of`.
        target: BCP 47 tag of the translations; None if there are none yet.
        cleaning: conditions for clean lines.
        sampling: how lines are chosen and split.
        columns: names of the columns of the data.
        scorers: for each scorer its label and a function that makes it (picklable for several processes); they come
            after the columns of scores in the data.
        given: for each column of `columns.given`, whether a higher number is worse or better.
    """

    paths: tuple[str, ...]
    target: str | None
    cleaning: Cleaning
    sampling: Sampling = Sampling()
    columns: Columns = Columns()
    scorers: tuple[tuple[str, Callable[[], Scorer]], ...] = ()
    given: tuple[Direction, ...] = ()

    @property
    def languages(self) -> tuple[str, str]:
        """Tags of sources and of translations."""
        return self.cleaning.language, self.target or ""


class ScorerAccount(Record):
    """Counts of one scorer.

    Attributes:
        scorer: its label.
        direction: of its numbers.
        scored: number of scored lines.
        unscored: number of other lines.
        reasons: their reasons, with counts.
        worst: number of chosen worst lines.
        worst_border: the best score among these; None if there are none.
        worst_tied: scored lines with exactly that score; if there are too many, the hash decided.
        percentile: number of lines in the worst percentile.
        percentile_border: the best score among these.
        percentile_tied: scored lines with exactly that score.
        drawn: lines that were drawn from the percentile.
        missing: lines that could not be drawn, because the percentile has no more.
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
    drawn: int = 0
    missing: int = 0
    in_sample: int = 0


class _Part(Record):
    """One part of the sample: requested and actual number of lines, which differ only if groups are too large."""

    wanted: int
    lines: int


class SampleAccount(Record):
    """Counts of the choice.

    Attributes:
        scorers: counts of each.
        worst: lines that are among the worst of any scorer, each counted once.
        drawn: further lines, drawn from worst percentiles.
        union: the sum of both.
        sample: lines of the sample, limited by `most`.
        groups: groups of near-duplicates, including single lines.
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
    parts: dict[str, _Part]


class Account(Record, omit_defaults=True):
    """The account of a sample, as in `report.json`.

    Attributes:
        signature: one line that identifies how the sample was made.
        source: BCP 47 tag of the sources.
        target: of the translations; None if there are none yet.
        cleaned: counts of all lines.
        sample: counts of the choice; None if there was nothing to score.
    """

    signature: str
    source: str
    target: str | None
    cleaned: Cleaned
    sample: SampleAccount | None = None


def mt_sample(
    order: MtSample,
    folder: Path,
    *,
    jobs: int = 1,
    scorer_jobs: int = 1,
    engine: Literal["local", "ray"] = "local",
    restart: bool = False,
    rejected: Path | None = None,
    progress: ProgressReporter | None = None,
) -> Account:
    """Make a sample for translation, or its missing stages.

    Args:
        order: input and settings.
        folder: gets `NAME.jsonl` and `NAME.hat.json` for every part and `report.json`; if no line has a translation, it
            gets `clean.jsonl` with the clean sources instead of the parts. Its folder `work` has the finished stages.
        jobs: processes for language detection.
        scorer_jobs: processes for scoring, each with its own scorers; on Ray, 0 for every core.
        engine: for the scoring.
        restart: repeat stages with other settings.
        rejected: a file for every dropped line, with the reason; None for none.
        progress: shows the steps and their finished rows.

    Returns:
        All counts. The same order gives byte-identical files for any number of processes.

    Raises:
        InputError: no line can be read, no line is clean, or no line has a score.
        UsageError: the folder has other settings; another process is working in it; lines have translations and there
            is no scorer; or there are scorers and no translations.
        VeriglotError: a scorer cannot be made; this is tried first.
    """
    progress = progress or ProgressReporter()
    labels = [*order.columns.given, *(label for label, _ in order.scorers)]
    if len(set(labels)) < len(labels):
        raise UsageError("Two scorers, or columns of scores, have the same name.", "Name each once.")
    with Lock(folder / "report.json"):
        with connected(engine, scorer_jobs):
            pass  # tried before hours of reading
        stages = Stages(folder / "work", restart=restart)
        scorers = [_described(*source) for source in order.scorers]
        was_read = read(stages, order.paths, order.columns, order.cleaning, progress=progress)
        _check(order, was_read.lines, was_read.translated)
        cleaned = clean(stages, was_read, order.cleaning, jobs=jobs, progress=progress)
        account = Account(_signature(order, stages), order.cleaning.language, order.target, cleaned)
        of_sample = {**asdict(order.sampling), "scorers": labels}
        if was_read.translated:  # do not replace a sample by another one without a request
            stages.check("sample", of_sample, after="near")
        _clear(folder)
        near = stages.path("near")
        with LineStore(stages.path("read")) as store:
            if rejected is not None:
                drop_reasons = np.load(near / "fates.npy", mmap_mode="r")
                _write_lines(rejected, store, np.flatnonzero(drop_reasons != DropReason.CLEAN), order, drop_reasons)
            _check_clean(cleaned)
            if was_read.translated:
                scored = [_given_scores(store, near, order, number) for number in range(len(order.given))]
                where = scorer_jobs, engine, progress
                scored += [_run_scorer(stages, *scorer, order.languages, *where) for scorer in scorers]
                progress.begin("choosing", None)
                account = replace(account, sample=_sample(order, scored, folder, near, store))
                stages.do("sample", of_sample, lambda _: None, type(None), after="near")
            else:
                _write_lines(folder / "clean.jsonl", store, np.load(near / "kept.npy", mmap_mode="r"), order)
        write_json(folder / "report.json", account)
        return account


def _check(order: MtSample, lines: int, translated: int) -> None:
    """Raise an error if the order does not fit the data."""
    if translated and not (order.scorers or order.given):
        raise UsageError(
            "The lines have translations, but nothing to score them by.",
            "In the file of --config, name scorers (scorer), or columns of the data (scores).",
        )
    if translated and order.target is None:
        raise UsageError(
            "The lines have translations in a language that is not named.", "Name it by its tag (--target)."
        )
    if not translated and (order.scorers or order.given):
        raise UsageError(
            f"None of {lines:,} lines has a translation that could be scored.",
            f"They are read from the column {order.columns.target!r}, or from files beside plain text"
            " (targets). To only clean sources, name no scorer.",
        )


def _check_clean(cleaned: Cleaned) -> None:
    if cleaned.clean:
        return
    drop_reasons = ", ".join(
        f"{reason.replace('_', ' ')} {count:,}" for reason, count in cleaned.drop_reasons.items() if count
    )
    others = sorted(cleaned.other_languages.items(), key=lambda item: -item[1])[:5]
    shown = f" ({', '.join(f'{language} {count:,}' for language, count in others)})" if others else ""
    raise InputError(
        f"no line of {cleaned.lines:,} is clean: {drop_reasons}{shown}", "Check the language of the sources."
    )


def _clear(folder: Path) -> None:
    """Remove output of an earlier run, so that files of two runs are never mixed."""
    report = folder / "report.json"
    if report.exists():
        before = msgspec.json.decode(report.read_bytes(), type=Account)
        names = [] if before.sample is None else list(before.sample.parts)
        for path in (*(folder / f"{name}{kind}" for name in names for kind in (".jsonl", ".hat.json")), report):
            path.unlink(missing_ok=True)
    (folder / "clean.jsonl").unlink(missing_ok=True)


def _signature(order: MtSample, stages: Stages) -> str:
    """One line for the whole sample, with a hash of the settings."""
    cleaning, sampling = (
        msgspec.json.encode(settings, order="deterministic") for settings in (order.cleaning, order.sampling)
    )
    return signature(
        sample=_VERSION,
        data=stages.key("near")[:16],
        pair=f"{order.cleaning.language}-{order.target}" if order.target else order.cleaning.language,
        compares=SHINGLES_VERSION,
        cleaning=digest([cleaning])[:8],
        sampling=digest([sampling])[:8],
        seed=order.sampling.seed,
    )


# A score for every clean line, from a scorer or from a column of the data.


@dataclass(frozen=True)
class Scored:
    """The scores of one scorer for all lines, and reasons for missing ones, with counts.

    `values` reads the scores of all lines, NaN for lines without a score.
    """

    label: str
    direction: Direction
    values: Callable[[], Float64s]
    reasons: dict[str, int] = field(default_factory=dict)


def _described(label: str, make: Callable[[], Scorer]) -> tuple[str, Callable[[], Scorer], Direction, str]:
    """Make the scorer, and free it: errors appear at once, and at most one scorer is in memory."""
    scorer = make()
    return label, make, scorer.direction, scorer.signature


def _given_scores(store: LineStore, near: Path, order: MtSample, number: int) -> Scored:
    """The scores of column `number` of the data."""
    clean_lines = np.load(near / "kept.npy", mmap_mode="r")

    def values() -> Float64s:
        blocks = (np.array(clean_lines[start : start + _BLOCK]) for start in range(0, len(clean_lines), _BLOCK))
        return np.concatenate([store.given(block)[:, number] for block in blocks])

    missing = int(np.isnan(values()).sum())
    reasons = {"the data hold no number": missing} if missing else {}
    return Scored(order.columns.given[number], order.given[number], values, reasons)


def _run_scorer(
    stages: Stages,
    label: str,
    make: Callable[[], Scorer],
    direction: Direction,
    scorer_signature: str,
    languages: tuple[str, str],
    jobs: int,
    where: Literal["local", "ray"],
    progress: ProgressReporter,
) -> Scored:
    """The scores of all clean lines, or those of an earlier run; the scorer is made again only if lines are left."""
    clean_lines = stages.path("near") / "kept.npy"
    name = f"scores-{re.sub(r'[^A-Za-z0-9.-]+', '_', label)[:40]}-{digest([label])[:8]}"
    shards = Shards(stages.path(name) / "shards", len(np.load(clean_lines, mmap_mode="r")), _SHARD)

    def score(_: Path) -> None:
        progress.begin(f"scoring by {label}, {_SHARD:,} lines at a time", len(shards))
        worker = partial(_ScorerWorker, stages.path("read"), clean_lines, languages=languages)
        if where == "local":
            shards.run(partial(worker, make), jobs=jobs, progress=progress)
            return
        with open_engine(where, make, jobs=jobs, signature=scorer_signature, say=progress.say) as engine:
            remote = SimpleNamespace(name=label, score=lambda samples: [*engine.scores(samples)])
            shards.run(partial(worker, lambda: remote, batch=_SHARD), jobs=1, progress=progress)

    stages.do(name, {"scorer": scorer_signature, "languages": languages}, score, type(None), after="near")
    return Scored(label, direction, partial(shards.joined, "values"), shards.notes())


class _ScorerWorker:
    """Scores lines of a store whose numbers are in the file `clean_lines`."""

    def __init__(
        self, store: Path, clean_lines: Path, make: Callable[[], Any], languages: tuple[str, str], batch: int = _BATCH
    ) -> None:
        self._store, self._clean_lines = LineStore(store), clean_lines
        self._scorer, self._languages, self._batch = make(), languages, batch

    def __call__(self, start: int, stop: int) -> tuple[dict[str, Numbers], dict[str, int]]:
        """Array `values`, NaN for lines without a score; notes count the reasons."""
        values = np.full(stop - start, np.nan)
        notes = Counter[str]()
        for first in range(start, stop, self._batch):
            rows = np.array(np.load(self._clean_lines, mmap_mode="r")[first : min(first + self._batch, stop)])
            lines = zip(self._store.pick(rows), rows.tolist(), strict=True)
            samples = [_translation(line, str(row), self._languages) for line, row in lines]
            scores = self._scorer.score(samples)
            if [score.id for score in scores] != [sample.id for sample in samples]:
                raise VeriglotError(f"The scorer {self._scorer.name} did not give one score for each line, in order.")
            for index, score in enumerate(scores, first - start):
                if score.value is not None:
                    values[index] = score.value
                else:
                    reason = f"{score.status}: {score.reason}"
                    notes[reason if reason in notes or len(notes) < _REASONS else f"{score.status}: other reasons"] += 1
        return {"values": values}, dict(notes)


def _translation(line: Line, id_: str, languages: tuple[str, str]) -> Sample:
    """A line as a sample, without annotations: the source as evidence, its translation as the response."""
    evidence = (Evidence(line.source, language=languages[0]),)
    return Sample(id_, line.target or "", task=Task.TRANSLATION, language=languages[1], evidence=evidence)


# Each scorer's worst lines, and more of its worst percentile.


@dataclass(frozen=True)
class Choice:
    """The numbers of the chosen lines, ascending, and for each the step in which each scorer chose it.

    `worst` counts the lines of the first step, each once, and `drawn` those that the second added.
    """

    places: Int64s
    chosen_by: list[dict[str, Literal["worst", "drawn"]]]
    scorers: list[ScorerAccount]
    worst: int
    drawn: int


def choose(scored: Sequence[Scored], keys: UInt64s, sampling: Sampling) -> Choice:
    """Choose lines by the scores; the order of scorers matters in the second step; keys decide ties and draws."""
    ranked = [_worst_of(scorer, keys, sampling) for scorer in scored]
    chosen: dict[int, dict[str, Literal["worst", "drawn"]]] = {}
    for worst, account in ranked:
        for line in worst[: account.worst].tolist():
            chosen.setdefault(line, {})[account.scorer] = "worst"
    first = len(chosen)
    drawn = []
    for worst, account in ranked:
        free = np.array([line for line in worst[: account.percentile].tolist() if line not in chosen], np.int64)
        lines = _drawn(free, keys, sampling.drawn, _salted(sampling.seed, "drawn", account.scorer))
        chosen.update({line: {account.scorer: "drawn"} for line in lines.tolist()})
        drawn.append(len(lines))
    places = np.sort(_drawn(np.array(sorted(chosen), np.int64), keys, sampling.most, _salted(sampling.seed, "most")))
    chosen_by = [chosen[line] for line in places.tolist()]
    accounts = [
        replace(
            account,
            drawn=count,
            missing=sampling.drawn - count,
            in_sample=sum(account.scorer in scorers for scorers in chosen_by),
        )
        for (_, account), count in zip(ranked, drawn, strict=True)
    ]
    return Choice(places, chosen_by, accounts, first, sum(drawn))


def _salted(seed: int, *words: str) -> np.uint64:
    """A salt, so that draws are independent of each other."""
    return np.uint64(key_of(str(seed), *words))


def _drawn(lines: Int64s, keys: UInt64s, count: int, salt: np.uint64) -> Int64s:
    """`count` random lines, by the hash of their keys."""
    return lines[np.argsort(mixed(keys[lines] ^ salt), kind="stable")[:count]]


def _worst_of(scored: Scored, keys: UInt64s, sampling: Sampling) -> tuple[Int64s, ScorerAccount]:
    """The worst lines, the worst first, as many as both steps can need; and their account."""
    values = scored.values()
    finite = np.flatnonzero(np.isfinite(values))
    percentile = math.ceil(len(finite) * sampling.percentile / 100)
    count = min(len(finite), max(sampling.worst, percentile))
    badness = values[finite] if scored.direction is Direction.HIGHER_IS_WORSE else -values[finite]
    among = badness >= (np.partition(badness, -count)[-count] if count else np.inf)  # only these are sorted
    candidates = finite[among]
    ties = mixed(keys[candidates] ^ _salted(sampling.seed, "ties", scored.label))
    ranked = candidates[np.lexsort((ties, -badness[among]))][:count]
    taken = min(count, sampling.worst)
    borders = [float(values[ranked[n - 1]]) if n else None for n in (taken, percentile)]
    tied = [0 if border is None else int((values == border).sum()) for border in borders]
    account = ScorerAccount(
        scorer=scored.label,
        direction=scored.direction,
        scored=len(finite),
        unscored=len(values) - len(finite),
        reasons=scored.reasons,
        worst=taken,
        worst_border=borders[0],
        worst_tied=tied[0],
        percentile=percentile,
        percentile_border=borders[1],
        percentile_tied=tied[1],
    )
    return ranked, account


def split(groups: Int64s, keys: UInt64s, parts: Mapping[str, int], seed: int) -> list[str]:
    """The part of each line.

    A hash of a group's smallest key decides its part; if that has no room for all of it, the group goes to the part
    with the most room. Single lines then fill the parts in the order of their hashes. So the sizes are exact unless
    groups are too large, and a line's part does not depend on the order of the data.
    """
    if not len(groups):
        return []
    ids, members = np.unique(groups, return_inverse=True)
    min_keys = np.full(len(ids), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(min_keys, members, keys)
    hashes = mixed(min_keys ^ _salted(seed, "split"))
    order = np.argsort(hashes, kind="stable").tolist()
    counts = np.bincount(members).tolist()
    room, part_of = apportioned(parts, len(groups)), [""] * len(counts)
    bounds, names = list(accumulate(room.values())), list(room)
    for group in (group for group in order if counts[group] > 1):
        index = bisect_right(bounds, float(hashes[group]) / 2.0**64 * bounds[-1])
        part = names[min(index, len(names) - 1)]
        part = part if room[part] >= counts[group] else max(room, key=lambda name: room[name])
        part_of[group] = part
        room[part] -= counts[group]
    for group in (group for group in order if counts[group] == 1):
        part = next(name for name, left in room.items() if left > 0)
        part_of[group] = part
        room[part] -= 1
    return [part_of[group] for group in members.tolist()]


def _sample(order: MtSample, scored: Sequence[Scored], folder: Path, near: Path, store: LineStore) -> SampleAccount:
    """Choose lines, split them, and write the parts."""
    keys = np.load(near / "keys.npy", mmap_mode="r")
    choice = choose(scored, keys, order.sampling)
    if not len(choice.places):
        reasons = "; ".join(
            f"{scorer.label}: {reason}, {n:,}" for scorer in scored for reason, n in scorer.reasons.items()
        )
        raise InputError(f"no line has a score: {reasons}")
    lines = store.pick(np.array(np.load(near / "kept.npy", mmap_mode="r")[choice.places]))
    groups = groups_of([[line.source for line in lines], [line.target or "" for line in lines]], order.sampling.near)
    parts = split(groups, np.array(keys[choice.places]), order.sampling.parts, order.sampling.seed)
    values = {scorer.label: scorer.values()[choice.places] for scorer in scored}
    samples = _samples_of(order, lines, choice, values, groups)
    for name in order.sampling.parts:
        own = [sample for sample, part in zip(samples, parts, strict=True) if part == name]
        for path, format_ in ((folder / f"{name}.jsonl", "jsonl"), (folder / f"{name}.hat.json", "hat")):
            with Writer(path, format=format_) as writer:
                for sample in own:
                    writer.write(sample)
            if writer.losses.written != len(own):
                raise VeriglotError(f"{path} could not hold {len(own) - writer.losses.written:,} samples.")
    wanted, part_sizes = apportioned(order.sampling.parts, len(lines)), Counter(parts)
    return SampleAccount(
        scorers=choice.scorers,
        worst=choice.worst,
        drawn=choice.drawn,
        union=choice.worst + choice.drawn,
        sample=len(lines),
        groups=len(set(groups.tolist())),
        largest_group=max(Counter(groups.tolist()).values(), default=0),
        parts={name: _Part(wanted[name], part_sizes[name]) for name in order.sampling.parts},
    )


def _name_of(line: Line, paths: Sequence[str]) -> str:
    """A line's id: from the data, or the name of its file and its number there."""
    return line.id or f"{Path(paths[line.file]).stem}-{line.number}"


def _samples_of(
    order: MtSample, lines: Sequence[Line], choice: Choice, values: dict[str, Float64s], groups: Int64s
) -> list[Sample]:
    """The chosen lines as samples.

    `meta.sampling` has the scores by scorer (None if a line has none), the scorers that chose the line with their
    steps, its file and its number there, and for near-duplicates the id of the first line of the group. An id that
    occurs twice gets the number of its file and line as a suffix.
    """
    names = [_name_of(line, order.paths) for line in lines]
    times = Counter(names)
    ids = [
        name if times[name] == 1 else f"{name}-{line.file}-{line.number}"
        for line, name in zip(lines, names, strict=True)
    ]
    sizes = Counter(groups.tolist())
    samples = []
    for index, line in enumerate(lines):
        sampling = {
            "chosen_by": choice.chosen_by[index],
            "scores": {label: float(own[index]) if np.isfinite(own[index]) else None for label, own in values.items()},
            "file": Path(order.paths[line.file]).name,
            "line": line.number,
        }
        if sizes[int(groups[index])] > 1:
            sampling["group"] = ids[int(groups[index])]
        samples.append(replace(_translation(line, ids[index], order.languages), meta={"sampling": sampling}))
    return samples


def _write_lines(
    path: Path, store: LineStore, numbers: NDArray[np.integer], order: MtSample, drop_reasons: UInt8s | None = None
) -> None:
    """Write sources with their ids as JSON lines for a translator; or all dropped lines with their reasons."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_whole(path) as stream:
        for start in range(0, len(numbers), _LINES):
            rows = np.array(numbers[start : start + _LINES])
            for number, line in zip(rows.tolist(), store.pick(rows), strict=True):
                record: dict[str, str | None] = {"id": _name_of(line, order.paths), "source": line.source}
                if drop_reasons is not None:
                    reason = DropReason(int(drop_reasons[number])).name.lower()
                    record = {**record, "target": line.target, "reason": reason}
                stream.write(msgspec.json.encode(record) + b"\n")
