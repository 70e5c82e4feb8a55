"""Sampling for translation, as hat does it (section 2): the order of its stages.

Lines are deduplicated, held to a length and a language, and near-duplicates fall out; every scorer scores what is
clean; its worst lines and some of its worst percentile are chosen; the sample is split, near-duplicates together.
Nothing but one number a line is ever in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from veriglot.build.sampling.account import Account, Part, SampleAccount
from veriglot.build.sampling.choosing import choose
from veriglot.build.sampling.cleaning import clean, read
from veriglot.build.sampling.grouping import groups_of
from veriglot.build.sampling.lines import Columns
from veriglot.build.sampling.outputs import sample_of, write_clean, write_fallen, write_parts
from veriglot.build.sampling.scores import Scores
from veriglot.build.sampling.scoring import GivenScores, ScorerSource, known
from veriglot.build.sampling.settings import Cleaning, Sampling
from veriglot.build.sampling.shingles import SHINGLES_VERSION
from veriglot.build.sampling.splitting import sizes_of, split
from veriglot.build.sampling.stages import Stages
from veriglot.build.sampling.store import LineStore
from veriglot.errors import InputError, UsageError
from veriglot.provenance import digest, signature
from veriglot.run.lock import Lock
from veriglot.run.manifest import write_whole
from veriglot.run.watch import Silent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from veriglot.build.sampling.account import Cleaned
    from veriglot.build.sampling.choosing import Choice, Scored
    from veriglot.build.sampling.cleaning import Read
    from veriglot.build.sampling.scoring import KnownScorer
    from veriglot.run.watch import Watch

__all__ = ["MtSample", "mt_sample"]

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
    fallen: Path | None = None,
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
        fallen: a file that gets every line that fell out, with the reason; None for none.
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
    labels = [*(one.label for one in order.given), *(one.label for one in order.scorers)]
    if len(set(labels)) < len(labels):
        raise UsageError("Two scorers, or columns of scores, have the same name.", remedy="Name each once.")
    lock = Lock(folder / "report.json")
    try:
        stages = Stages(folder / "work", restart=restart)
        scorers = [known(source) for source in order.scorers]
        was_read = read(stages, order.paths, order.columns, order.cleaning, watch=watch)
        _check(order, was_read)
        cleaned = clean(stages, was_read, order.cleaning, jobs=jobs, watch=watch)
        account = Account(_signature(order, stages), order.cleaning.language, order.target, cleaned)
        of_sample: dict[str, Any] = {"sampling": order.sampling, "scorers": labels}
        if was_read.translated:  # a sample is not replaced by another one unasked
            stages.check("sample", of_sample, after="near")
        _clear(folder)
        with LineStore(stages.path("read")) as store:
            if fallen is not None:
                write_fallen(fallen, store, np.load(stages.path("near") / "fates.npy", mmap_mode="r"), order.paths)
            _check_clean(cleaned)
            if was_read.translated:
                sample = _sample(order, scorers, folder, stages, store, scorer_jobs, watch)
                account = msgspec.structs.replace(account, sample=sample)
                stages.do("sample", of_sample, lambda _: True, bool, after="near")
            else:
                kept = np.load(stages.path("near") / "kept.npy", mmap_mode="r")
                write_clean(folder / "clean.jsonl", store, kept, order.paths)
        write_whole(folder / "report.json", msgspec.json.format(msgspec.json.encode(account), indent=1) + b"\n")
        return account
    finally:
        lock.release()


def _check(order: MtSample, was_read: Read) -> None:
    """Refuse an order that does not fit what was read."""
    if was_read.translated and not (order.scorers or order.given):
        raise UsageError(
            "The lines have translations, and nothing scores them.",
            remedy="Name scorers (--scorer), or columns of scores that the data hold (--given).",
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
    fates = ", ".join(f"{fate.replace('_', ' ')} {count:,}" for fate, count in cleaned.fates.items() if count)
    others = sorted(cleaned.other_languages.items(), key=lambda one: -one[1])[:5]
    told = f" ({', '.join(f'{language} {count:,}' for language, count in others)})" if others else ""
    raise InputError(
        f"no line of {cleaned.lines:,} is clean: {fates}{told}", remedy="Is the language of the sources the right one?"
    )


def _sample(
    order: MtSample,
    scorers: Sequence[KnownScorer],
    folder: Path,
    stages: Stages,
    store: LineStore,
    jobs: int,
    watch: Watch,
) -> SampleAccount:
    kept = np.load(stages.path("near") / "kept.npy", mmap_mode="r")
    keys = np.load(stages.path("near") / "keys.npy", mmap_mode="r")
    scores = Scores(stages, store, (order.cleaning.language, order.target or ""), jobs, watch)
    scored = [scores.given(number, one) for number, one in enumerate(order.given)]
    scored += [scores.scored(one) for one in scorers]
    watch.begin("choosing", None)
    choice = choose(scored, keys, order.sampling)
    if not len(choice.places):
        reasons = "; ".join(f"{one.label}: {reason}, {n:,}" for one in scored for reason, n in one.reasons.items())
        raise InputError(f"no line has a score: {reasons}")
    lines = store.pick(np.array(kept[choice.places]))
    groups = groups_of([[line.source for line in lines], [line.target or "" for line in lines]], order.sampling.near)
    parts = split(groups, np.array(keys[choice.places]), order.sampling.parts, order.sampling.seed)
    values = {one.label: _values_at(one, choice) for one in scored}
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
    found = [np.zeros(0)]
    for start, values in scored.values():
        here = np.searchsorted(choice.places, [start, start + len(values)])
        found.append(values[choice.places[here[0] : here[1]] - start])
    return np.concatenate(found)


def _signature(order: MtSample, stages: Stages) -> str:
    """One line for the whole sample; the settings themselves go in by their hash."""
    cleaning, sampling = (msgspec.json.encode(one, order="deterministic") for one in (order.cleaning, order.sampling))
    return signature(
        sample=VERSION,
        data=stages.key("near")[:16],
        pair=f"{order.cleaning.language}-{order.target}" if order.target else order.cleaning.language,
        compares=SHINGLES_VERSION,
        cleaning=digest([cleaning])[:8],
        sampling=digest([sampling])[:8],
        seed=order.sampling.seed,
    )
