"""What `veriglot build mt-sample` does: its words into an order, and the account of what came of it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING

from veriglot.errors import EXIT_ROWS_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from veriglot.build.sampling import Account, Cleaned, GivenScores, MtSample, SampleAccount, ScorerSource

__all__ = ["account_lines", "given_scores", "parts_of", "sample_mt", "scorer_sources"]

_DIRECTIONS = {"higher-is-better": "higher_is_better", "higher-is-worse": "higher_is_worse"}


def sample_mt(
    order: MtSample,
    output: Path,
    *,
    jobs: int,
    scorer_jobs: int,
    restart: bool,
    fallen: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """Make the sample and print the account, as JSON or as tables; returns the exit code."""
    from veriglot.build.sampling import mt_sample
    from veriglot.cli.building import print_json, say
    from veriglot.cli.steps import Steps

    with Steps(shown=not quiet) as watch:
        account = mt_sample(
            order,
            output,
            jobs=jobs or os.cpu_count() or 1,
            scorer_jobs=scorer_jobs,
            restart=restart,
            fallen=fallen,
            watch=watch,
        )
    if json:
        print_json(account)
    elif not quiet:
        _show(account)
        for line in account_lines(account, output):
            say(line)
    return EXIT_ROWS_FAILED if account.cleaned.unreadable else 0


def parts_of(text: str) -> dict[str, int]:
    """Parts as `train=5000,dev=2000`.

    Raises:
        UsageError: something else, or a name that is no name of a file.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\w-]+)\s*=\s*([\d_]+)\s*", part)
        if match is None or match[1] in found:
            raise UsageError(f"{text!r} are no parts.", remedy="Write them as train=5000,dev=2000,test=3000.")
        found[match[1]] = int(match[2])
    return found


def given_scores(texts: Sequence[str]) -> tuple[GivenScores, ...]:
    """Columns of scores as `COLUMN:higher-is-better`.

    Raises:
        UsageError: no direction, or another.
    """
    from veriglot.build.sampling import GivenScores
    from veriglot.records import Direction

    found = []
    for text in texts:
        column, _, direction = text.rpartition(":")
        if not column or direction not in _DIRECTIONS:
            raise UsageError(
                f"{text!r} does not say which way the numbers go.",
                remedy=f"Write {column or text}:higher-is-better or {column or text}:higher-is-worse.",
            )
        found.append(GivenScores(column, Direction(_DIRECTIONS[direction])))
    return tuple(found)


def scorer_sources(texts: Sequence[str]) -> tuple[ScorerSource, ...]:
    """Scorers as `NAME option=value ...`, each part quoted where it holds a space.

    Raises:
        UnknownNameError: no such scorer.
        UsageError: what follows the name is no option.
    """
    from veriglot.build.sampling import ScorerSource
    from veriglot.cli.recipe import read_settings
    from veriglot.scorers import SCORERS, load_scorer

    found = []
    for text in texts:
        words = shlex.split(text)
        if not words:
            raise UsageError("A scorer has a name.", remedy="veriglot doctor lists them.")
        SCORERS.entry(words[0])
        found.append(ScorerSource(text, partial(load_scorer, words[0], **read_settings(words[1:], option="--scorer"))))
    return tuple(found)


def account_lines(account: Account, output: Path) -> Iterator[str]:
    """What a person should know besides the tables."""
    cleaned, sample = account.cleaned, account.sample
    if cleaned.unreadable:
        where = output / "work" / "read" / "failed.jsonl"
        yield f"Rows that could not be read: {cleaned.unreadable:,}; why stands in {where}."
    if cleaned.other_languages:
        yield f"Other languages: {_languages(cleaned.other_languages)}."
    if cleaned.uncompared:
        yield f"{cleaned.uncompared:,} lines stood among too many alike to be held against all of them."
    if sample is None:
        yield f"The clean sources stand in {output / 'clean.jsonl'}: add a target to each, and sample from that."
        return
    for one in sample.scorers:
        if one.worst_tied > one.worst:
            yield (
                f"{one.scorer}: {one.worst_tied:,} lines are as bad as the last of its {one.worst:,} worst; which of"
                " them are taken, a hash of their text decides."
            )
        if one.missing:
            yield (
                f"{one.scorer}: {one.missing:,} lines fewer were drawn than wanted, since its worst percentile holds"
                f" {one.percentile:,} lines, those included that were chosen before."
            )
        if one.unscored:
            yield f"{one.scorer}: {one.unscored:,} lines were not scored; why stands in report.json."
    for name, part in sample.parts.items():
        if part.lines != part.wanted:
            yield f"{name} has {part.lines:,} lines and not {part.wanted:,}: groups of near-duplicates are too large."


def _show(account: Account) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 140)
    _show_cleaned(console, account.cleaned)
    if account.sample is not None:
        _show_scorers(console, account.sample)
        _show_parts(console, account.sample)


def _show_cleaned(console: Console, cleaned: Cleaned) -> None:
    from rich.table import Table

    table = Table("lines", box=None, pad_edge=False, header_style="bold")
    table.add_column(f"{cleaned.lines:,}", justify="right")
    for fate, count in cleaned.fates.items():
        if count and fate != "kept":
            table.add_row(fate.replace("_", " "), f"-{count:,}")
    table.add_row("clean", f"{cleaned.clean:,}", style="bold")
    console.print(table)


def _show_scorers(console: Console, sample: SampleAccount) -> None:
    from rich.table import Table

    table = Table("scorer", box=None, pad_edge=False, header_style="bold")
    for name in ("scored", "worst", "up to", "percentile", "up to", "drawn", "in sample"):
        table.add_column(name, justify="right")
    for one in sample.scorers:
        counts = f"{one.scored:,}", f"{one.worst:,}", _border(one.worst_border), f"{one.percentile:,}"
        table.add_row(one.scorer, *counts, _border(one.percentile_border), f"{one.drawn:,}", f"{one.in_sample:,}")
    console.print()
    console.print(table)


def _show_parts(console: Console, sample: SampleAccount) -> None:
    from rich.table import Table

    table = Table("sample", box=None, pad_edge=False, header_style="bold")
    table.add_column(f"{sample.sample:,}", justify="right")
    for name, part in sample.parts.items():
        table.add_row(name, f"{part.lines:,}")
    console.print()
    console.print(
        f"{sample.worst:,} worst + {sample.drawn:,} drawn = {sample.union:,}; {sample.sample:,} in the sample, in"
        f" {sample.groups:,} groups of near-duplicates, the largest of {sample.largest_group:,}."
    )
    console.print(table)


def _languages(counts: dict[str, int], shown: int = 10) -> str:
    """The most frequent languages with their counts, the most frequent first."""
    order = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    rest = sum(count for _, count in order[shown:])
    told = [f"{language} {count:,}" for language, count in order[:shown]]
    return ", ".join([*told, f"others {rest:,}"] if rest else told)


def _border(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
