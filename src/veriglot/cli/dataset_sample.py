"""`veriglot dataset sample`: which translations people annotate (HAT, section 2), and the account of the choice."""

from __future__ import annotations

import os
import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.command import Help, Setting, command
from veriglot.cli.options import AccountJson, Output, Overwrite, Processes, Quiet, Seed
from veriglot.errors import EXIT_ROWS_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from veriglot.datasets.sampling.filters import Cleaned
    from veriglot.datasets.sampling.sample import Account, GivenScores, MtSample, SampleAccount, ScorerSource

__all__ = ["sample"]


@command
def sample(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            show_default=False,
            help="Parquet, JSON lines, CSV or TSV with columns source and target; samples of our own; or plain text"
            " (.txt), a source a line.",
        ),
    ],
    *,
    output: Annotated[Output, Help("The folder that gets the sample.")],
    source: Annotated[str, typer.Option("--source", "-s", metavar="TAG", help="Language of the sources (BCP 47).")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="TAG", help="Language of the translations. Default: there are none yet."
        ),
    ] = None,
    targets: Annotated[
        list[str] | None,
        Setting("Files of translations of a plain text, line by line; one for each, in order. Default: none."),
    ] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            "--scorer",
            metavar="NAME",
            help='A scorer whose worst lines are chosen, with its options: "top-ngram graded=true"; may be repeated.'
            " veriglot doctor lists them. Default: none.",
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        Setting(
            'Columns of scores in the data, and which way they go: ["logprob:higher-is-better"] or higher-is-worse.'
            " Default: none."
        ),
    ] = None,
    worst: Annotated[int, Setting("Worst lines of each scorer.", 0)] = 1_000,
    drawn: Annotated[int, Setting("Lines drawn at random from each scorer's worst percentile besides.", 0)] = 1_000,
    percentile: Annotated[float, Setting("Per cent of the lines that are the worst percentile.")] = 1.0,
    most: Annotated[int, Setting("Most lines altogether.", 1)] = 10_000,
    parts: Annotated[
        str,
        Setting("Parts and their sizes; shares, where other than so many lines are chosen."),
    ] = "train=5000,dev=2000,test=3000",
    near: Annotated[
        float,
        Setting(
            "Share of character n-grams from which two texts are near-duplicates, 0 to 1: later ones fall out, and"
            " what is left comes into the same part. 0 keeps them all, and splits by 0.8.",
            0,
            1,
        ),
    ] = 0.8,
    unique: Annotated[Literal["source", "pair"], Setting("What may occur once: a source, or a pair.")] = "source",
    min_length: Annotated[
        int,
        Setting("Shortest source in visible characters, those of Chinese, Japanese and Korean counted twice.", 0),
    ] = 15,
    max_length: Annotated[int, Setting("Longest source, likewise.", 0)] = 1_000,
    min_confidence: Annotated[float, Setting("Least confidence of a source's language, 0 to 1.")] = 0.5,
    cleaned: Annotated[bool, Setting("The data were cleaned before: keep every line.")] = False,
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected", metavar="FILE", help="Write every line that is left out here, with the reason. Default: none."
        ),
    ] = None,
    source_column: Annotated[str, Setting("Column of sources.")] = "source",
    target_column: Annotated[str, Setting("Column of translations.")] = "target",
    id_column: Annotated[str, Setting("Column of ids, if there is one.")] = "id",
    seed: Annotated[Seed, Help("Default: 0.")] = 0,
    processes: Annotated[Processes, Help("They tell languages. Default: 0.")] = 0,
    scorer_processes: Annotated[int, Setting("Processes that score, each with scorers of its own.", 1)] = 1,
    overwrite: Overwrite = False,
    json: AccountJson = False,
    quiet: Quiet = False,
) -> None:
    """Sample translations to annotate out of millions, as HAT does: clean, score, choose the worst, split.

    Sources without translations are only cleaned: DIR/clean.jsonl is what to translate. Otherwise DIR gets every part
    in the native format and as HAT JSON, and report.json with all counts. Interrupted, the same command goes on.
    Leaves with 3 where rows could not be read.

    \b
    Sources:      veriglot dataset sample crawl.txt -s de -o sample
    Translations: veriglot dataset sample translated.jsonl -s de -t en -o sample --scorer top-ngram
                  --scorer labse:FOLDER
    """
    from veriglot.datasets.sampling.filters import Cleaning
    from veriglot.datasets.sampling.lines import Columns
    from veriglot.datasets.sampling.sample import MtSample, Sampling
    from veriglot.records.languages import get_language

    columns_given = given_scores(scores or [])
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
        sampling=Sampling(worst, drawn, percentile, most, parts_of(parts), near or 0.8, seed),
        columns=Columns(
            source_column,
            target_column,
            id_column,
            tuple(scores.label for scores in columns_given),
            tuple(targets or ()),
        ),
        scorers=scorer_sources(scorer or []),
        given=columns_given,
    )
    code = sample_mt(
        order, Path(output), jobs=processes, scorer_jobs=scorer_processes, restart=overwrite, fallen=rejected,
        json=json, quiet=quiet,
    )  # fmt: skip
    if code:
        raise typer.Exit(code)


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
    from veriglot.cli.generation import print_json, say
    from veriglot.cli.progress import Steps
    from veriglot.datasets.sampling.sample import mt_sample

    with Steps(shown=not quiet) as watch:
        account = mt_sample(
            order,
            output,
            jobs=jobs or os.cpu_count() or 1,
            scorer_jobs=scorer_jobs,
            restart=restart,
            rejected=fallen,
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
    parts: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\w-]+)\s*=\s*([\d_]+)\s*", part)
        if match is None or match[1] in parts:
            raise UsageError(f"{text!r} are no parts.", remedy="Write them as train=5000,dev=2000,test=3000.")
        parts[match[1]] = int(match[2])
    return parts


def given_scores(texts: Sequence[str]) -> tuple[GivenScores, ...]:
    """Columns of scores as `COLUMN:higher-is-better`.

    Raises:
        UsageError: no direction, or another.
    """
    from veriglot.datasets.sampling.sample import GivenScores
    from veriglot.records import Direction

    columns = []
    for text in texts:
        column, _, direction = text.rpartition(":")
        if not column or direction not in _DIRECTIONS:
            raise UsageError(
                f"{text!r} does not say which way the numbers go.",
                remedy=f"Write {column or text}:higher-is-better or {column or text}:higher-is-worse.",
            )
        columns.append(GivenScores(column, Direction(_DIRECTIONS[direction])))
    return tuple(columns)


def scorer_sources(texts: Sequence[str]) -> tuple[ScorerSource, ...]:
    """Scorers as `NAME option=value ...`, each part quoted where it holds a space.

    Raises:
        UnknownNameError: no such scorer.
        UsageError: what follows the name is no option.
    """
    from veriglot.datasets.sampling.sample import ScorerSource
    from veriglot.plugins import read_settings
    from veriglot.scorers.registry import SCORERS, load_scorer

    sources = []
    for text in texts:
        words = shlex.split(text)
        if not words:
            raise UsageError("A scorer has a name.", remedy="veriglot doctor lists them.")
        SCORERS.entry(words[0])
        sources.append(
            ScorerSource(text, partial(load_scorer, words[0], **read_settings(words[1:], option="--scorer")))
        )
    return tuple(sources)


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
    for scorer in sample.scorers:
        if scorer.worst_tied > scorer.worst:
            yield (
                f"{scorer.scorer}: {scorer.worst_tied:,} lines are as bad as the last of its {scorer.worst:,} worst;"
                " which of them are taken, a hash of their text decides."
            )
        if scorer.missing:
            yield (
                f"{scorer.scorer}: {scorer.missing:,} lines fewer were drawn than wanted, since its worst percentile"
                f" holds {scorer.percentile:,} lines, those included that were chosen before."
            )
        if scorer.unscored:
            yield f"{scorer.scorer}: {scorer.unscored:,} lines were not scored; why stands in report.json."
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
    for reason, count in cleaned.drop_reasons.items():
        if count and reason != "kept":
            table.add_row(reason.replace("_", " "), f"-{count:,}")
    table.add_row("clean", f"{cleaned.clean:,}", style="bold")
    console.print(table)


def _show_scorers(console: Console, sample: SampleAccount) -> None:
    from rich.table import Table

    table = Table("scorer", box=None, pad_edge=False, header_style="bold")
    for name in ("scored", "worst", "up to", "percentile", "up to", "drawn", "in sample"):
        table.add_column(name, justify="right")
    for scorer in sample.scorers:
        counts = f"{scorer.scored:,}", f"{scorer.worst:,}", _border(scorer.worst_border), f"{scorer.percentile:,}"
        table.add_row(
            scorer.scorer, *counts, _border(scorer.percentile_border), f"{scorer.drawn:,}", f"{scorer.in_sample:,}"
        )
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
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(count for _, count in order[shown:])
    told = [f"{language} {count:,}" for language, count in order[:shown]]
    return ", ".join([*told, f"others {rest:,}"] if rest else told)


def _border(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
