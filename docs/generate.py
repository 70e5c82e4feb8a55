"""Writes the pages of this folder that say what the code says: cli.md and languages.md. `make docs` runs it."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Typer
from typer.main import get_command

from veriglot.cli import main
from veriglot.cli.app import VERBS
from veriglot.lazy import Entry, Table
from veriglot.records.languages import languages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Generated: change the code, then run `make docs`. -->\n"


def help_page(words: Sequence[str]) -> str:
    """What `veriglot WORDS --help` prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*words, "--help"])
    if code:
        raise RuntimeError(f"veriglot {' '.join(words)} --help left with {code}")
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())


def commands() -> Iterator[list[str]]:
    """The words of every command: the root, each verb, and the verbs of a verb that has some of its own."""
    yield []
    for verb, entry in VERBS.items():
        yield [verb]
        found = Table("command", "veriglot.commands", {verb: Entry(entry.target)}).load(verb)
        if isinstance(found, Typer):
            yield from ([verb, name] for name in getattr(get_command(found), "commands", {}))


def cli_page() -> str:
    """The help of every command."""
    parts = [NOTE, "# The command line\n\nEvery page below is what `--help` prints.\n"]
    for words in commands():
        name = " ".join(["veriglot", *words])
        parts.append(f"## {name}\n\n```text\n{help_page(words)}\n```\n")
    return "\n".join(parts)


def languages_page() -> str:
    """The language table."""
    table = languages()
    rows = [
        f"| `{one.tag}` | {one.name} | {one.native_name} | {one.script} | {one.direction} | {one.family} "
        f"| {one.word_breaking} | {', '.join(one.sources)} |"
        for one in table.values()
    ]
    head = [
        NOTE,
        "# Languages\n",
        f"{len(table)} languages whose text Veriglot can take apart. The last column names the papers that cover a "
        "language.\nWhat the detector was trained and measured on is a shorter list: [grounding.md](grounding.md). "
        "Elsewhere it works with its default\ncalibration, and its predictions say so.\n",
        "| tag | name | own name | script | direction | family | words by | papers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


PAGES = {"cli.md": cli_page, "languages.md": languages_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        print(f"docs/{name}")
