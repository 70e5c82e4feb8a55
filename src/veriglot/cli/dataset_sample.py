"""`veriglot dataset sample`: which translations people annotate (HAT, section 2), and a report of the selection."""

from __future__ import annotations

import os
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.command import command
from veriglot.cli.console import print_json, say
from veriglot.datasets.generation import ranked
from veriglot.errors import EXIT_ROWS_FAILED, UsageError
from veriglot.pipeline.progress import ProgressReporter
from veriglot.plugins import read_settings
from veriglot.records import Direction, Scorer
from veriglot.records.languages import get_language
from veriglot.report.tables import Table
from veriglot.scorers.registry import SCORERS, load_scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.datasets.sampling.sample import Account


@command
def sample(
    data: list[str],
    *,
    output: str,
    source: str,
    target: str | None = None,
    targets: list[str] | None = None,
    scorer: list[str] | None = None,
    scores: list[str] | None = None,
    worst: int = 1_000,
    drawn: int = 1_000,
    percentile: float = 1.0,
    most: int = 10_000,
    parts: str = "train=5000,dev=2000,test=3000",
    near: float = 0.8,
    unique: Literal["source", "pair"] = "source",
    min_length: int = 15,
    max_length: int = 1_000,
    min_confidence: float = 0.5,
    cleaned: bool = False,
    rejected: Path | None = None,
    source_column: str = "source",
    target_column: str = "target",
    id_column: str = "id",
    seed: int = 0,
    processes: int = 0,
    scorer_processes: int | None = None,
    engine: Literal["local", "ray"] = "local",
    overwrite: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Sample translations to annotate from millions, as HAT does: clean, score, choose the worst, split.

    Sources without translations are only cleaned: translate OUTPUT/clean.jsonl next. Otherwise OUTPUT holds each split
    in the native format and as HAT JSON, and report.json with all counts. Rerun the command to resume. Exits with 3 if
    rows could not be read.

    \b
    Sources:      veriglot dataset sample crawl.txt -s de -o sample
    Translations: veriglot dataset sample translated.jsonl -s de -t en -o sample --scorer top-ngram
                  --scorer labse:FOLDER
    """
    from veriglot.datasets.sampling.filters import Cleaning
    from veriglot.datasets.sampling.lines import Columns
    from veriglot.datasets.sampling.sample import MtSample, Sampling, mt_sample

    if engine == "ray" and scorer_processes is not None:
        raise UsageError("On Ray, --processes workers score.", "Give --processes, and no --scorer-processes.")
    given = _given_scores(scores or [])
    labels = tuple(column for column, _ in given)
    order = MtSample(
        paths=tuple(data),
        target=None if target is None else get_language(target).tag,
        cleaning=Cleaning(
            language=get_language(source).tag,
            unique=unique,
            min_length=min_length,
            max_length=max_length,
            min_confidence=min_confidence,
            near=near or None,
            skip=cleaned,
        ),
        sampling=Sampling(worst, drawn, percentile, most, _parts(parts), near or 0.8, seed),
        columns=Columns(source_column, target_column, id_column, labels, tuple(targets or ())),
        scorers=_scorers(scorer or []),
        given=tuple(direction for _, direction in given),
    )
    folder = Path(output)
    with ProgressReporter(shown=not quiet) as progress:
        account = mt_sample(
            order,
            folder,
            jobs=processes or os.cpu_count() or 1,
            scorer_jobs=processes if engine == "ray" else scorer_processes or 1,
            engine=engine,
            restart=overwrite,
            rejected=rejected,
            progress=progress,
        )
    if json:
        print_json(account)
    elif not quiet:
        _show(account)
        for line in _remarks(account, folder):
            say(line)
    return EXIT_ROWS_FAILED if account.cleaned.unreadable else 0


def _parts(text: str) -> dict[str, int]:
    """Parts as `train=5000,dev=2000`."""
    parts: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\w-]+)\s*=\s*([\d_]+)\s*", part)
        if match is None or match[1] in parts:
            raise UsageError(f"{text!r} are no parts.", "Write them as train=5000,dev=2000,test=3000.")
        parts[match[1]] = int(match[2])
    return parts


def _given_scores(texts: Sequence[str]) -> list[tuple[str, Direction]]:
    """Columns of scores as `COLUMN:higher-is-better`."""
    columns = []
    for text in texts:
        column, _, direction = text.rpartition(":")
        if not column or direction not in {"higher-is-better", "higher-is-worse"}:
            raise UsageError(
                f"{text!r} does not state the direction of the scores.",
                f"Write {column or text}:higher-is-better or {column or text}:higher-is-worse.",
            )
        columns.append((column, Direction(direction.replace("-", "_"))))
    return columns


def _scorers(texts: Sequence[str]) -> tuple[tuple[str, Callable[[], Scorer]], ...]:
    """Scorers as `NAME option=value ...`, each part quoted if it has a space."""
    sources = []
    for text in texts:
        words = shlex.split(text)
        if not words:
            raise UsageError("A scorer needs a name.", "veriglot doctor lists them.")
        SCORERS.entry(words[0])
        sources.append((text, partial(load_scorer, words[0], **read_settings(words[1:], option="--scorer"))))
    return tuple(sources)


def _remarks(account: Account, output: Path) -> Iterator[str]:
    """Remarks besides the tables."""
    cleaned, sample = account.cleaned, account.sample
    if cleaned.unreadable:
        where = output / "work" / "read" / "failed.jsonl"
        yield f"Rows that could not be read: {cleaned.unreadable:,}; {where} gives the reasons."
    if cleaned.other_languages:
        yield f"Other languages: {_languages(cleaned.other_languages)}."
    if cleaned.uncompared:
        yield f"Lines similar to too many others to be compared with all of them: {cleaned.uncompared:,}."
    if sample is None:
        yield f"The clean sources are in {output / 'clean.jsonl'}: add a target to each, then sample from that file."
        return
    for scorer in sample.scorers:
        if scorer.worst_tied > scorer.worst:
            yield (
                f"{scorer.scorer}: {scorer.worst_tied:,} lines are as bad as the last of its {scorer.worst:,} worst;"
                " a hash of their text decides which are taken."
            )
        if scorer.missing:
            yield (
                f"{scorer.scorer}: lines missing from its draw: {scorer.missing:,}. Lines in its worst"
                f" percentile, with those already chosen: {scorer.percentile:,}."
            )
        if scorer.unscored:
            yield f"{scorer.scorer}: lines not scored: {scorer.unscored:,}; report.json gives the reasons."
    for name, part in sample.parts.items():
        if part.lines != part.wanted:
            yield f"Lines of {name}: {part.lines:,}, not {part.wanted:,}; groups of near-duplicates are too large."


def _show(account: Account) -> None:
    cleaned, sample = account.cleaned, account.sample
    dropped = [
        (reason.replace("_", " "), f"-{count:,}")
        for reason, count in cleaned.drop_reasons.items()
        if count and reason != "kept"
    ]
    Table("", ("lines", f"{cleaned.lines:,}"), [*dropped, ("clean", f"{cleaned.clean:,}")], totals=1).print()
    if sample is None:
        return
    rows = [
        (
            scorer.scorer,
            f"{scorer.scored:,}",
            f"{scorer.worst:,}",
            _border(scorer.worst_border),
            f"{scorer.percentile:,}",
            _border(scorer.percentile_border),
            f"{scorer.drawn:,}",
            f"{scorer.in_sample:,}",
        )
        for scorer in sample.scorers
    ]
    print()
    Table("", ("scorer", "scored", "worst", "up to", "percentile", "up to", "drawn", "in sample"), rows).print()
    print(
        f"\n{sample.worst:,} worst + {sample.drawn:,} drawn = {sample.union:,}; {sample.sample:,} in the sample, in"
        f" {sample.groups:,} groups of near-duplicates, the largest of {sample.largest_group:,}."
    )
    parts = [(name, f"{part.lines:,}") for name, part in sample.parts.items()]
    Table("", ("sample", f"{sample.sample:,}"), parts).print()


def _languages(counts: dict[str, int], shown: int = 10) -> str:
    """The most frequent languages with their counts, the most frequent first."""
    order = list(ranked(counts).items())
    rest = sum(count for _, count in order[shown:])
    shares = [f"{language} {count:,}" for language, count in order[:shown]]
    return ", ".join([*shares, f"others {rest:,}"] if rest else shares)


def _border(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
