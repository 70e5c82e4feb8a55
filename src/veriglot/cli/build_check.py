"""`veriglot build check`."""

from __future__ import annotations

import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from veriglot.cli.build_options import FormatName, Json, LanguageTag, Quiet  # noqa: TC001  typer reads them
from veriglot.errors import EXIT_FAILED, EXIT_ROWS_FAILED, InputError, UsageError

if TYPE_CHECKING:
    from veriglot.build.checking import CheckReport

__all__ = ["check"]

_LEVELS = ("error", "warning", "note")
_PAGES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


def check(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...", show_default=False, help="Data sets: files or folders in any readable format, or -."
        ),
    ],
    clean: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it
        typer.Option(
            metavar="OUT",
            show_default=False,
            help="Write a cleaned copy: a file (.jsonl, .parquet), or a new folder with a file for each. Rows that are"
            " left out lie in rejected.jsonl beside it, with their reasons. Default: none.",
        ),
    ] = None,
    report: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write the report as .html, .md or .json; repeat it for several. Default: none.",
        ),
    ] = None,
    splits: Annotated[
        Literal["names", "files", "arguments", "none"],
        typer.Option(
            show_default=False,
            help="What a split is, for leaks. names: what samples say in meta.split, or train, dev, test in the names"
            " of files and folders. files: each file. arguments: each DATA. Default: names.",
        ),
    ] = "names",
    near: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.5,
            max=1.0,
            show_default=False,
            help="Jaccard similarity of character n-grams, 0.5 to 1, from which texts are near-duplicates."
            " Default: 0.8.",
        ),
    ] = 0.8,
    keep: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="CHECK",
            show_default=False,
            help="In the cleaned copy, do nothing about this check; repeat it for several. Default: as each says.",
        ),
    ] = None,
    drop: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="CHECK",
            show_default=False,
            help="In the cleaned copy, leave out the rows that this check finds, though it usually keeps them; repeat"
            " it for several. Default: as each says.",
        ),
    ] = None,
    fail_on: Annotated[
        Literal["error", "warning", "note", "never"],
        typer.Option(
            show_default=False,
            help="Leave with 1 where a finding is of this level or worse. Default: never.",
        ),
    ] = "never",
    format_name: FormatName = None,
    language: LanguageTag = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check labelled data before anything is trained or measured on it, and write a cleaned copy.

    Looks for rows that do not fit their format, wrong offsets, malformed tags, glued spans, garbled references, one
    reference for several languages, wrong scripts and languages, leaks between splits (exact, near, by reference),
    repeats and how far their labels agree, missing clean rows and classes out of balance. All DATA is checked together.

    Leaves with 3 where rows could not be read, and with 1 as --fail-on says.

    \b
    See:    veriglot build check mfava/ --report check.html
    Clean:  veriglot build check train.jsonl dev.jsonl test.jsonl --clean cleaned/
    """
    from veriglot.build.checking import Cleaning
    from veriglot.build.checking import check as checked
    from veriglot.cli.inputs import known_tag
    from veriglot.cli.steps import Steps

    pages = [(path, _page_kind(path)) for path in report or ()]
    if clean is None and (keep or drop):
        raise UsageError("--keep and --drop say what a cleaned copy holds.", remedy="Add --clean OUT.")
    cleaning = None if clean is None else Cleaning(clean, frozenset(keep or ()), frozenset(drop or ()))
    with Steps(shown=not quiet) as steps:
        found = checked(
            data,
            format=format_name,
            language=known_tag(language),
            splits=splits,
            near=near,
            clean=cleaning,
            watch=steps,
        )
    for path, kind in pages:
        _write(found, path, kind)
    _show(found, json=json)
    raise typer.Exit(_code(found, fail_on))


def _page_kind(path: str) -> str:
    kind = _PAGES.get(PurePath(path).suffix.lower())
    if kind is None:
        raise UsageError(f"The name {path!r} does not say what to write.", remedy="End it in .html, .md or .json.")
    return kind


def _write(found: CheckReport, path: str, kind: str) -> None:
    from veriglot.report.checking import check_markdown, write_check

    try:
        if kind == "html":
            write_check(found, path)
        else:
            Path(path).write_text(check_markdown(found) if kind == "markdown" else _as_json(found), "utf-8")
    except OSError as error:
        raise InputError(f"it cannot be written: {error.strerror}", path=path) from error


def _as_json(found: CheckReport) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def _show(found: CheckReport, *, json: bool) -> None:
    if json:
        sys.stdout.write(_as_json(found))
        return
    from rich.console import Console

    from veriglot.report.checking import render_check

    render_check(found, Console(file=sys.stdout, highlight=False))


def _code(found: CheckReport, fail_on: str) -> int:
    if fail_on != "never" and any(_LEVELS.index(one.level) <= _LEVELS.index(fail_on) for one in found.findings):
        return EXIT_FAILED
    return EXIT_ROWS_FAILED if any(one.unreadable for one in found.files) else 0
