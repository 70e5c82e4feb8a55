"""Writes the pages that say what code and data say: cli.md, formats.md, languages.md, papers.md (`make docs`)."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.cli import main
from veriglot.cli.app import VERBS, load_verb
from veriglot.formats.base import FORMATS
from veriglot.formats.columns import PRESETS
from veriglot.records.languages import languages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.formats.base import Format

HERE = Path(__file__).resolve().parent
NATIVE = {"jsonl", "parquet"}  # described at the head of the page
PAPERS = {"mfava": "mFAVA", "kang": "Kang et al.", "halluverse": "HalluVerse25", "hat": "HAT"}
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
    for verb in VERBS:
        yield [verb]
        yield from ([verb, name] for name in getattr(load_verb(verb), "commands", {}))


def cli_page() -> str:
    """The help of every command, without the option that each has to print it."""
    head = "The help of every command, as `veriglot COMMAND --help` (or `-h`) prints it."
    parts = [NOTE, f"# The command line\n\n{head}\n"]
    for words in commands():
        name = " ".join(["veriglot", *words])
        text = re.sub(r"\n  -h, --help +Show this message and exit\.", "", help_page(words))
        parts.append(f"## {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def formats_page() -> str:
    """Every format: what it is, what it lies in, how it is read."""
    loaded: dict[str, type[Format]] = {name: FORMATS.load(name) for name in FORMATS.names()}
    head, tail = (HERE / "formats_head.txt").read_text("utf-8").split("<!-- presets -->\n")
    known = "".join(
        f"| {preset.name} | `{'`, `'.join(dict.fromkeys(c.partition('|')[0] for c in preset.columns.values()))}` |\n"
        for preset in PRESETS
    )
    parts = [
        NOTE,
        f"{head}| rows of | columns |\n|---|---|\n{known}{tail}",
        "| format | what | read | written | lies in |\n|---|---|---|---|---|",
    ]
    for name, format_ in loaded.items():
        written = "yes" if format_.writable else "no"
        parts.append(f"| `{name}` | {format_.summary} | yes | {written} | {', '.join(format_.containers)} |")
    for name, format_ in loaded.items():
        if name in NATIVE:
            continue
        parts.append(f"\n## {name}\n\n{inspect.getdoc(format_)}")
    return "\n".join(parts) + "\n"


def languages_page() -> str:
    """The language table."""
    table = languages()
    rows = [
        f"| `{entry.tag}` | {entry.name} | {entry.native_name} | {entry.script} | {entry.family} "
        f"| {', '.join(PAPERS[source] for source in entry.sources)} |"
        for entry in table.values()
    ]
    from_the_right = sorted({entry.script for entry in table.values() if entry.direction == "rtl"})
    cut_by = {
        way: "`, `".join(entry.tag for entry in table.values() if entry.word_breaking == way)
        for way in ("dictionary", "characters")
    }
    head = [
        NOTE,
        "# Languages\n",
        f"Veriglot cuts texts in these {len(table)} languages into sentences and words. Name a language by its tag, "
        "its name or its\nown name; the last column lists the papers that cover it.\n",
        "```sh\nveriglot detect answers.jsonl --language de\n```\n",
        "`grounding` was trained and measured on fewer languages: see [grounding.md](grounding.md). In the others it "
        "works with\nits default calibration, and its predictions say so.\n",
        f"The scripts {', '.join(from_the_right)} are written from right to left. Words are cut at spaces, but by a "
        f"dictionary\nin `{cut_by['dictionary']}`, and by characters in `{cut_by['characters']}`.\n",
        "| tag | name | own name | script | family | papers |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def papers() -> list[dict[str, Any]]:
    """The papers with their tables and figures, from papers.toml."""
    listed: list[dict[str, Any]] = tomllib.loads((HERE / "papers.toml").read_text("utf-8"))["papers"]
    nothing: dict[str, Any] = {"commands": [], "files": [], "see": ""}
    return [paper | {"rows": [nothing | row for row in paper["rows"]]} for paper in listed]


def papers_page() -> str:
    """Every table and figure of the papers, and how to make your own."""
    parts = [
        NOTE.replace("the code", "papers.toml"),
        "# The tables and figures of the papers\n\nEvery table, figure, prompt, guideline and screen, with the command "
        "that makes one from your own data, or our file in\nits place.",
    ]
    for paper in papers():
        parts.append(f"\n## {paper['name']}\n\n{paper['title']}.\n\n{paper['data']}\n")
        parts.append("| number | what it shows | how to make your own |\n|---|---|---|")
        for row in paper["rows"]:
            files = [f"[{file[5:]}]({file[5:]})" if file.startswith("docs/") else f"`{file}`" for file in row["files"]]
            made = "<br>".join(
                [*(f"`{line}`" for line in row["commands"]), *files, *([f"see {row['see']}"] if row["see"] else [])]
            )
            parts.append(f"| {row['number']} | {row['shows']} | {made} |")
        for name, text in paper.get("toml", {}).items():
            parts.append(f"\n`{name}`:\n\n```toml\n{text.strip()}\n```")
    return "\n".join(parts) + "\n"


PAGES = {"cli.md": cli_page, "formats.md": formats_page, "languages.md": languages_page, "papers.md": papers_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        print(f"docs/{name}")
