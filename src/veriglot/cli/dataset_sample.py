"""`veriglot dataset sample`: which translations people annotate (HAT, section 2), and the account of the choice."""

from __future__ import annotations

import os
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.command import JSON_ACCOUNT, Argument, Help, Option, Setting, command
from veriglot.cli.console import print_json, say
from veriglot.errors import EXIT_ROWS_FAILED, UsageError
from veriglot.pipeline.progress import Watch
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
    data: list[str] = Argument(
        ...,
        "DATA...",
        "Parquet, JSON lines, CSV or TSV with columns source and target; native samples; or plain text (.txt), one"
        " source on each line.",
    ),
    *,
    output: str = Help(..., "the sample: a folder."),
    source: str = Option(..., "Language of the sources (BCP 47).", "TAG", short="-s"),
    target: str | None = Option(
        None, "Language of the translations. Default: none, for sources that are not translated yet.", "TAG", short="-t"
    ),
    targets: list[str] | None = Setting(
        None, "Files of translations of a plain text, line by line; one for each, in order. Default: none."
    ),
    scorer: list[str] | None = Option(
        None,
        'Choose the worst lines by this scorer, with its options: "top-ngram graded=true"; may be repeated. veriglot'
        " doctor lists the scorers.",
        "NAME",
    ),
    scores: list[str] | None = Setting(
        None,
        'Columns of scores in the data, with their directions: ["logprob:higher-is-better"] or higher-is-worse.'
        " Default: none.",
    ),
    worst: int = Setting(1_000, "Number of worst lines of each scorer.", 0),
    drawn: int = Setting(1_000, "Number of further lines drawn at random from each scorer's worst percentile.", 0),
    percentile: float = Setting(1.0, "Size of the worst percentile, in per cent of the lines."),
    most: int = Setting(10_000, "Maximum number of lines in all.", 1),
    parts: str = Setting(
        "train=5000,dev=2000,test=3000",
        "Splits and their sizes. If another number of lines is chosen, the sizes are shares.",
    ),
    near: float = Setting(
        0.8,
        "Share of character n-grams from which two texts are near-duplicates, 0 to 1. Later ones are dropped, and the"
        " rest go into the same split. 0 keeps them all, and splits by 0.8.",
        0,
        1,
    ),
    unique: Literal["source", "pair"] = Setting("source", "What must be unique: a source, or a pair."),
    min_length: int = Setting(
        15, "Minimum length of a source in visible characters; those of Chinese, Japanese and Korean count twice.", 0
    ),
    max_length: int = Setting(1_000, "Maximum length of a source, counted in the same way.", 0),
    min_confidence: float = Setting(0.5, "Minimum confidence of a source's language, 0 to 1."),
    cleaned: bool = Setting(False, "Keep every line, because the data were cleaned before."),
    rejected: Path | None = Option(None, "Write every rejected line to this file, with the reason.", "FILE"),
    source_column: str = Setting("source", "Column of sources."),
    target_column: str = Setting("target", "Column of translations."),
    id_column: str = Setting("id", "Column of ids, if there is one."),
    seed: int = 0,
    processes: int = Help(0, "They identify languages."),
    scorer_processes: int | None = Setting(
        None, "Number of processes that score; each loads the scorers. Not with engine = ray. Default: 1.", 1
    ),
    engine: Literal["local", "ray"] = Setting(
        "local", "What scores. ray takes the cluster of RAY_ADDRESS, or starts one here, with --processes workers."
    ),
    overwrite: bool = False,
    json: bool = JSON_ACCOUNT,
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
    with Watch(shown=not quiet) as watch:
        account = mt_sample(
            order,
            folder,
            jobs=processes or os.cpu_count() or 1,
            scorer_jobs=processes if engine == "ray" else scorer_processes or 1,
            engine=engine,
            restart=overwrite,
            rejected=rejected,
            watch=watch,
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
    """Scorers as `NAME option=value ...`, each part quoted where it holds a space."""
    sources = []
    for text in texts:
        words = shlex.split(text)
        if not words:
            raise UsageError("A scorer needs a name.", "veriglot doctor lists them.")
        SCORERS.entry(words[0])
        sources.append((text, partial(load_scorer, words[0], **read_settings(words[1:], option="--scorer"))))
    return tuple(sources)


def _remarks(account: Account, output: Path) -> Iterator[str]:
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
    heads = ("scorer", "scored", "worst", "up to", "percentile", "up to", "drawn", "in sample")
    Table("", heads, rows).print()
    print(
        f"\n{sample.worst:,} worst + {sample.drawn:,} drawn = {sample.union:,}; {sample.sample:,} in the sample, in"
        f" {sample.groups:,} groups of near-duplicates, the largest of {sample.largest_group:,}."
    )
    parts = [(name, f"{part.lines:,}") for name, part in sample.parts.items()]
    Table("", ("sample", f"{sample.sample:,}"), parts).print()


def _languages(counts: dict[str, int], shown: int = 10) -> str:
    """The most frequent languages with their counts, the most frequent first."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(count for _, count in order[shown:])
    shares = [f"{language} {count:,}" for language, count in order[:shown]]
    return ", ".join([*shares, f"others {rest:,}"] if rest else shares)


def _border(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
