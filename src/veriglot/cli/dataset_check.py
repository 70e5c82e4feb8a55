"""`veriglot dataset check` and `card`: errors in a data set, and a page that describes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.command import command
from veriglot.cli.console import print_json
from veriglot.cli.dataset_responses import show_quality
from veriglot.cli.generation import Queries, Reading
from veriglot.cli.inputs import kind_of, known_tag
from veriglot.errors import EXIT_OVER_LIMIT, EXIT_ROWS_FAILED, InputError, UsageError
from veriglot.pipeline.progress import ProgressReporter
from veriglot.report.tables import open_console
from veriglot.storage.files import write_json

if TYPE_CHECKING:
    from veriglot.datasets.checks.checker import CheckReport


_LEVELS = ("error", "warning", "note")
_PAGES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


@command
def check(
    data: list[str],
    *,
    output: str | None = None,
    report: list[str] | None = None,
    quality: bool = False,
    splits: Literal["names", "files", "arguments", "none"] = "names",
    near: float = 0.8,
    keep: list[str] | None = None,
    drop: list[str] | None = None,
    fail_on: Literal["error", "warning", "note", "never"] = "never",
    format_: str | None = None,
    language: str | None = None,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Check labelled data before you train or measure on it, and write a cleaned copy.

    Looks for rows that do not fit their format, wrong offsets, malformed tags, glued spans, garbled references, one
    reference for several languages, wrong scripts and languages, leaks between splits (exact, near, by reference),
    repeats and how far their labels agree, missing clean rows and classes out of balance. All DATA is checked together.

    Exits with 3 if rows could not be read, and with 4 if --fail-on says so.

    \b
    See:    veriglot dataset check mfava/ --report check.html
    Clean:  veriglot dataset check train.jsonl dev.jsonl test.jsonl -o cleaned/
    """
    from veriglot.datasets.checks.checker import CleanedCopy
    from veriglot.datasets.checks.checker import check as checked
    from veriglot.report.checks import render_check

    if quality:
        show_quality(Queries(data, Reading(format=format_, language=language)), json=json)
        return 0
    pages = [(path, kind_of(path, _PAGES)) for path in report or ()]
    if output is None and (keep or drop):
        raise UsageError("`keep` and `drop` apply only to a cleaned copy.", "Add --output OUT.")
    cleaning = None if output is None else CleanedCopy(output, frozenset(keep or ()), frozenset(drop or ()))
    with ProgressReporter(shown=not quiet) as progress:
        result = checked(
            data,
            format=format_,
            language=known_tag(language),
            splits=splits,
            near=near,
            clean=cleaning,
            progress=progress,
        )
    for path, kind in pages:
        _write(result, path, kind)
    if json:
        print_json(result)
    else:
        render_check(result, open_console())
    worst = () if fail_on == "never" else _LEVELS[: _LEVELS.index(fail_on) + 1]
    if any(finding.level in worst for finding in result.findings):
        return EXIT_OVER_LIMIT
    return EXIT_ROWS_FAILED if any(file.unreadable for file in result.files) else 0


def _write(report: CheckReport, path: str, kind: str) -> None:
    from veriglot.report.checks import check_markdown, write_check

    if kind == "markdown":
        _write_text(path, check_markdown(report))
    elif kind == "json":
        write_json(Path(path), report, indent=2)
    else:
        write_check(report, path)


@command
def card(
    data: list[str],
    *,
    output: str | None = None,
    about: str | None = None,
    write_about: str | None = None,
    splits: Literal["names", "files", "arguments", "none"] = "names",
    format_: str | None = None,
    language: str | None = None,
    quiet: bool = False,
) -> int:
    """Write the data card of a data set from its files and from the records of the steps that made it.

    Manifests, accounts and rejected rows of `veriglot dataset` and of studies tell how it was made, from what, with
    which models and prompts, what was rejected and what it cost; a check tells its faults. The card calls everything
    else unknown. It is a dataset card of the Hugging Face Hub with the sections of a datasheet.

    Exits with 3 if rows could not be read.

    \b
    Card:  veriglot dataset card silver.jsonl --about about.toml -o README.md
    Ask:   veriglot dataset card silver.jsonl --write-about about.toml -o README.md
    """
    from veriglot.datasets.cards.card import blank, card_page, read_given
    from veriglot.datasets.cards.card import card as make_card

    answers = None if about is None else read_given(Path(about))
    if write_about is not None and Path(write_about).exists():
        raise UsageError(f"{write_about} already exists.", "Name a file that does not exist.")
    with ProgressReporter(shown=not quiet) as progress:
        record = make_card(
            data, given=answers, format=format_, language=known_tag(language), splits=splits, progress=progress
        )
    if write_about is not None:
        _write_text(write_about, blank())
    page = card_page(record)
    if output is None or output == "-":
        sys.stdout.write(page)
    else:
        _write_text(output, page)
    return EXIT_ROWS_FAILED if any(file.unreadable for file in record.checks.files) else 0


def _write_text(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"it cannot be written: {error.strerror}", path=path) from error
