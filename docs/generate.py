"""Writes the pages of this folder that say what the code says: cli.md, formats.md, languages.md (`make docs`)."""

from __future__ import annotations

import contextlib
import io
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Typer
from typer.main import get_command

from veriglot.cli import main
from veriglot.cli.app import VERBS
from veriglot.formats import FORMATS
from veriglot.records.languages import languages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.formats import Format

HERE = Path(__file__).resolve().parent
NATIVE = {"jsonl", "parquet"}  # described at the head of the page
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
        module, _, attribute = entry.target.partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, Typer):
            yield from ([verb, name] for name in getattr(get_command(found), "commands", {}))


def cli_page() -> str:
    """The help of every command."""
    parts = [NOTE, "# The command line\n\nEvery page below is what `--help` prints.\n"]
    for words in commands():
        name = " ".join(["veriglot", *words])
        parts.append(f"## {name}\n\n```text\n{help_page(words)}\n```\n")
    return "\n".join(parts)


def formats_page() -> str:
    """Every format: what it is, what it lies in, how it is read."""
    loaded: dict[str, type[Format]] = {name: FORMATS.load(name) for name in FORMATS.names()}
    parts = [
        NOTE,
        (HERE / "formats_head.md").read_text("utf-8"),
        "| format | what | read | written | lies in |\n|---|---|---|---|---|",
    ]
    parts += [
        f"| `{name}` | {one.summary} | yes | {'yes' if one.writable else 'no'} | {', '.join(one.containers)} |"
        for name, one in loaded.items()
    ]
    for name, one in loaded.items():
        if name in NATIVE:
            continue
        parts.append(f"\n## {name}\n\n{(sys.modules[one.__module__].__doc__ or '').strip()}")
    return "\n".join(parts) + "\n"


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
        f"The text of {len(table)} languages can be taken apart into sentences and words. The last column names the "
        "papers that\ncover a language. What the detector was trained and measured on is a shorter list: see "
        "[grounding.md](grounding.md).\nElsewhere it works with its default calibration, and its predictions say so.\n",
        "| tag | name | own name | script | direction | family | words by | papers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


PAGES = {"cli.md": cli_page, "formats.md": formats_page, "languages.md": languages_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        print(f"docs/{name}")
