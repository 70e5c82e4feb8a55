"""Sampling of translations, as HAT does it (section 2): the stages in their order, and the files they write.

Lines are deduplicated, held to a length and a language, and near-duplicates fall out; every scorer scores what is
clean; its worst lines and some of its worst percentile are chosen; the sample is split, near-duplicates together.
Nothing but one number a line is ever in memory.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.datasets.near_duplicates import SHINGLES_VERSION, groups_of
from veriglot.datasets.sampling.filters import DropReason, clean, read
from veriglot.datasets.sampling.lines import Columns, LineStore
from veriglot.datasets.sampling.selection import (
    Account,
    Cleaning,
    GivenScores,
    Part,
    SampleAccount,
    Sampling,
    ScorerSource,
    Scores,
    choose,
    describe_scorer,
    sizes_of,
    split,
    translation,
)
from veriglot.datasets.sampling.stages import Stages
from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.formats.writer import open_writer
from veriglot.pipeline.engine import Silent
from veriglot.signatures import digest, signature
from veriglot.storage.files import Lock, open_whole, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.datasets.sampling.filters import ReadCounts
    from veriglot.datasets.sampling.lines import Line
    from veriglot.datasets.sampling.selection import Choice, Cleaned, Scored, ScorerDescription
    from veriglot.pipeline.engine import Watch
    from veriglot.records import Sample

__all__ = ["MtSample", "mt_sample"]


# What a sample is written as: parts in the native format and as HAT JSON, clean sources, lines that fell out.


_BLOCK = 4_096


def name_of(line: Line, paths: Sequence[str]) -> str:
    """A line's id: as the data have it, or the name of its file and its number there."""
    return line.id or f"{Path(paths[line.file]).stem}-{line.number}"


def sample_of(
    lines: Sequence[Line],
    choice: Choice,
    values: dict[str, NDArray[np.float64]],
    groups: NDArray[np.int64],
    *,
    paths: Sequence[str],
    languages: tuple[str, str],
) -> list[Sample]:
    """The chosen lines as samples.

    `meta.sampling` holds the scores by scorer (None where a line was not scored), by which scorers it was chosen and in
    which step, its file and its number there, and, where there are near ones, the id of the first line of its group.
    An id that occurs twice gets the number of its file and line as well.
    """
    times = Counter(name_of(line, paths) for line in lines)
    ids = [
        name if times[name] == 1 else f"{name}-{line.file}-{line.number}"
        for line, name in ((line, name_of(line, paths)) for line in lines)
    ]
    sizes = Counter(groups.tolist())
    samples = []
    for index, line in enumerate(lines):
        scores = {label: _number(own[index]) for label, own in values.items()}
        sampling: dict[str, Any] = {
            "chosen_by": choice.chosen_by[index],
            "scores": scores,
            "file": Path(paths[line.file]).name,
            "line": line.number,
        }
        if sizes[int(groups[index])] > 1:
            sampling["group"] = ids[int(groups[index])]
        sample = translation(line, ids[index], *languages)
        samples.append(msgspec.structs.replace(sample, meta={"sampling": sampling}))
    return samples


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def write_parts(folder: Path, samples: Sequence[Sample], parts: Sequence[str], names: Sequence[str]) -> None:
    """Write each part as `NAME.jsonl`, in the native format, and as `NAME.hat.json`.

    Raises:
        VeriglotError: HAT JSON could not hold a sample as it is.
    """
    for name in names:
        own = [sample for sample, part in zip(samples, parts, strict=True) if part == name]
        for path, format_ in ((folder / f"{name}.jsonl", "jsonl"), (folder / f"{name}.hat.json", "hat")):
            with open_writer(path, format=format_) as writer:
                for sample in own:
                    writer.write(sample)
            if writer.losses.written != len(own):
                raise VeriglotError(f"{path} could not hold {len(own) - writer.losses.written:,} samples.")


def write_clean(path: Path, store: LineStore, numbers: NDArray[np.uint32], paths: Sequence[str]) -> None:
    """Write the clean sources, with their ids, as JSON lines that a translator can add to."""
    with open_whole(path) as stream:
        for start in range(0, len(numbers), _BLOCK):
            for line in store.pick(np.array(numbers[start : start + _BLOCK])):
                record = {"id": name_of(line, paths), "source": line.source}
                stream.write(msgspec.json.encode(record) + b"\n")


def write_rejected(path: Path, store: LineStore, drop_reasons: NDArray[np.uint8], paths: Sequence[str]) -> None:
    """Write every line that fell out, with the reason, as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_whole(path) as stream:
        for row in _dropped(drop_reasons):
            for number, line in zip(row.tolist(), store.pick(row), strict=True):
                record = {"id": name_of(line, paths), "source": line.source, "target": line.target}
                reason = DropReason(int(drop_reasons[number])).name.lower()
                stream.write(msgspec.json.encode({**record, "reason": reason}) + b"\n")


def _dropped(drop_reasons: NDArray[np.uint8]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(drop_reasons), _BLOCK):
        yield np.flatnonzero(drop_reasons[start : start + _BLOCK] != DropReason.KEPT) + start


VERSION = "mt-sample@1"


class MtSample(msgspec.Struct, frozen=True):
    """What a sample for translation is made from.

    Attributes:
        paths: the inputs; see `lines_of`.
        target: BCP 47 tag of the translations; None where there are none yet.
        cleaning: what a line has to be.
        sampling: how lines are chosen and split.
        columns: what the columns of the data are called.
        scorers: those whose worst lines are chosen, in their order, after the columns of scores that the data hold.
        given: these columns, in the order of `columns.given`.
    """

    paths: tuple[str, ...]
    target: str | None
    cleaning: Cleaning
    sampling: Sampling = Sampling()
    columns: Columns = Columns()
    scorers: tuple[ScorerSource, ...] = ()
    given: tuple[GivenScores, ...] = ()


def mt_sample(
    order: MtSample,
    folder: Path,
    *,
    jobs: int = 1,
    scorer_jobs: int = 1,
    restart: bool = False,
    rejected: Path | None = None,
    watch: Watch | None = None,
) -> Account:
    """Make a sample for translation, or what is missing of it.

    Args:
        order: what from, and how.
        folder: gets `NAME.jsonl` and `NAME.hat.json` for every part and `report.json`; where no line has a translation,
            `clean.jsonl` with the clean sources instead of the parts. What is done is kept in `work` in it, as long as
            it is there.
        jobs: processes that tell languages.
        scorer_jobs: processes that score, each with scorers of its own.
        restart: do again what was done in another way.
        rejected: a file that gets every line that fell out, with the reason; None for none.
        watch: told how far it is.

    Returns:
        Every count. The same order gives the same files, byte by byte, whatever the number of processes.

    Raises:
        InputError: no line can be read, no line is clean, or no line has a score.
        UsageError: the folder was made in another way; another process is making it; lines have translations and there
            is no scorer; or there are scorers and no translations.
        VeriglotError: a scorer cannot be made, which is tried before anything else.
    """
    watch = watch or Silent()
    folder.mkdir(parents=True, exist_ok=True)
    labels = [*(source.label for source in order.given), *(source.label for source in order.scorers)]
    if len(set(labels)) < len(labels):
        raise UsageError("Two scorers, or columns of scores, have the same name.", remedy="Name each once.")
    lock = Lock(folder / "report.json")
    try:
        stages = Stages(folder / "work", restart=restart)
        scorers = [describe_scorer(source) for source in order.scorers]
        was_read = read(stages, order.paths, order.columns, order.cleaning, watch=watch)
        _check(order, was_read)
        cleaned = clean(stages, was_read, order.cleaning, jobs=jobs, watch=watch)
        account = Account(_signature(order, stages), order.cleaning.language, order.target, cleaned)
        of_sample: dict[str, Any] = {"sampling": order.sampling, "scorers": labels}
        if was_read.translated:  # a sample is not replaced by another one unasked
            stages.check("sample", of_sample, after="near")
        _clear(folder)
        with LineStore(stages.path("read")) as store:
            if rejected is not None:
                write_rejected(rejected, store, np.load(stages.path("near") / "fates.npy", mmap_mode="r"), order.paths)
            _check_clean(cleaned)
            if was_read.translated:
                sample = _sample(order, scorers, folder, stages, store, scorer_jobs, watch)
                account = msgspec.structs.replace(account, sample=sample)
                stages.do("sample", of_sample, lambda _: True, bool, after="near")
            else:
                clean_lines = np.load(stages.path("near") / "kept.npy", mmap_mode="r")
                write_clean(folder / "clean.jsonl", store, clean_lines, order.paths)
        write_json(folder / "report.json", account)
        return account
    finally:
        lock.release()


def _check(order: MtSample, was_read: ReadCounts) -> None:
    """Refuse an order that does not fit what was read."""
    if was_read.translated and not (order.scorers or order.given):
        raise UsageError(
            "The lines have translations, and nothing scores them.",
            remedy="In the file of --config, name scorers (scorer), or columns of the data (scores).",
        )
    if was_read.translated and order.target is None:
        raise UsageError(
            "The lines have translations in a language that is not named.", remedy="Name it by its tag (--target)."
        )
    if not was_read.translated and (order.scorers or order.given):
        raise UsageError(
            f"None of {was_read.lines:,} lines has a translation that could be scored.",
            remedy=f"They are looked for in the column {order.columns.target!r}, or beside plain text in files of their"
            " own (--targets). To clean sources alone, name no scorer.",
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
        f"no line of {cleaned.lines:,} is clean: {drop_reasons}{shown}",
        remedy="Is the language of the sources the right one?",
    )


def _sample(
    order: MtSample,
    scorers: Sequence[ScorerDescription],
    folder: Path,
    stages: Stages,
    store: LineStore,
    jobs: int,
    watch: Watch,
) -> SampleAccount:
    clean_lines = np.load(stages.path("near") / "kept.npy", mmap_mode="r")
    keys = np.load(stages.path("near") / "keys.npy", mmap_mode="r")
    scores = Scores(stages, store, (order.cleaning.language, order.target or ""), jobs, watch)
    scored = [scores.given(number, scorer) for number, scorer in enumerate(order.given)]
    scored += [scores.scored(scorer) for scorer in scorers]
    watch.begin("choosing", None)
    choice = choose(scored, keys, order.sampling)
    if not len(choice.places):
        reasons = "; ".join(
            f"{scorer.label}: {reason}, {n:,}" for scorer in scored for reason, n in scorer.reasons.items()
        )
        raise InputError(f"no line has a score: {reasons}")
    lines = store.pick(np.array(clean_lines[choice.places]))
    groups = groups_of([[line.source for line in lines], [line.target or "" for line in lines]], order.sampling.near)
    parts = split(groups, np.array(keys[choice.places]), order.sampling.parts, order.sampling.seed)
    values = {scorer.label: _values_at(scorer, choice) for scorer in scored}
    languages = order.cleaning.language, order.target or ""
    samples = sample_of(lines, choice, values, groups, paths=order.paths, languages=languages)
    write_parts(folder, samples, parts, list(order.sampling.parts))
    wanted, held = sizes_of(len(lines), order.sampling.parts), Counter(parts)
    return SampleAccount(
        scorers=choice.scorers,
        worst=choice.worst,
        drawn=choice.drawn,
        union=choice.worst + choice.drawn,
        sample=len(lines),
        groups=len(set(groups.tolist())),
        largest_group=max(Counter(groups.tolist()).values(), default=0),
        parts={name: Part(wanted[name], held[name]) for name in order.sampling.parts},
    )


def _clear(folder: Path) -> None:
    """Remove what an earlier run put out, so that nothing of two runs stands side by side."""
    report = folder / "report.json"
    if report.exists():
        before = msgspec.json.decode(report.read_bytes(), type=Account)
        names = [] if before.sample is None else list(before.sample.parts)
        for path in (*(folder / f"{name}{kind}" for name in names for kind in (".jsonl", ".hat.json")), report):
            path.unlink(missing_ok=True)
    (folder / "clean.jsonl").unlink(missing_ok=True)


def _values_at(scored: Scored, choice: Choice) -> NDArray[np.float64]:
    """The numbers of the chosen lines."""
    parts = [np.zeros(0)]
    for start, values in scored.values():
        here = np.searchsorted(choice.places, [start, start + len(values)])
        parts.append(values[choice.places[here[0] : here[1]] - start])
    return np.concatenate(parts)


def _signature(order: MtSample, stages: Stages) -> str:
    """One line for the whole sample; the settings themselves go in by their hash."""
    cleaning, sampling = (
        msgspec.json.encode(settings, order="deterministic") for settings in (order.cleaning, order.sampling)
    )
    return signature(
        sample=VERSION,
        data=stages.key("near")[:16],
        pair=f"{order.cleaning.language}-{order.target}" if order.target else order.cleaning.language,
        compares=SHINGLES_VERSION,
        cleaning=digest([cleaning])[:8],
        sampling=digest([sampling])[:8],
        seed=order.sampling.seed,
    )
