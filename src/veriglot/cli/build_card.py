"""`veriglot build card`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from veriglot.cli.build_options import FormatName, LanguageTag, Quiet  # noqa: TC001  typer reads them
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError

__all__ = ["card"]


def card(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", show_default=False, help="Data sets: files or folders in any format."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="CARD", help="Where the card goes: Markdown; - is standard output.")
    ] = "-",
    given: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="TOML with what no run can know: purpose, contact, licence, uses, prices. Default: it is said to be"
            " unknown.",
        ),
    ] = None,
    blank: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Also write this TOML file with every question that --given answers, to be filled in. Default: none.",
        ),
    ] = None,
    splits: Annotated[
        Literal["names", "files", "arguments", "none"],
        typer.Option(show_default=False, help="What a split is, as in `veriglot build check`. Default: names."),
    ] = "names",
    format_name: FormatName = None,
    language: LanguageTag = None,
    quiet: Quiet = False,
) -> None:
    """Write the data card of a data set from its files and from what the steps that made it left beside them.

    Manifests, accounts and rejected rows of `veriglot build` and of studies say how it was made, from what, with which
    models and prompts, what was rejected and what it cost; a check says what is wrong with it. What nothing says is
    said to be unknown. The page is a dataset card of the Hugging Face Hub with the sections of a datasheet.

    Leaves with 3 where rows could not be read.

    \b
    Card:  veriglot build card silver.jsonl --given about.toml -o README.md
    Ask:   veriglot build card silver.jsonl --blank about.toml -o README.md
    """
    from veriglot.build.cards import blank as blank_file
    from veriglot.build.cards import card as made
    from veriglot.build.cards import card_page, read_given
    from veriglot.cli.inputs import known_tag
    from veriglot.cli.steps import Steps

    said = None if given is None else read_given(Path(given))
    if blank is not None and Path(blank).exists():
        raise UsageError(f"{blank} is there already.", remedy="Name a file that does not exist.")
    with Steps(shown=not quiet) as steps:
        found = made(data, given=said, format=format_name, language=known_tag(language), splits=splits, watch=steps)
    if blank is not None:
        _write(blank, blank_file())
    page = card_page(found)
    if output == "-":
        sys.stdout.write(page)
    else:
        _write(output, page)
    raise typer.Exit(EXIT_ROWS_FAILED if any(one.unreadable for one in found.checks.files) else 0)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"it cannot be written: {error.strerror}", path=path) from error
