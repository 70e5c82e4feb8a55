"""Writes the pages that say what code and data say: cli.md, formats.md, languages.md, papers.md (`make docs`)."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import tomllib
from collections import Counter
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
LISTED = re.compile(r"^Options:\n(?:  .*\n)+\n?", re.MULTILINE)
COMMANDS = re.compile(r"^Commands:\n((?:  .*\n?)+)", re.MULTILINE)
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


def options_of(text: str) -> list[str]:
    """The options that a help page lists, each as it stands there, without the one that prints the page."""
    listed = LISTED.search(text + "\n")
    options = re.split(r"\n(?=  -)", listed[0].partition("\n")[2].rstrip()) if listed else []
    return [option for option in options if not option.startswith("  -h, --help")]


def shared_options(pages: Sequence[str]) -> dict[str, str]:
    """What four commands, or most of two or three, say of an option in the same words, if it is long: table rows."""
    worded: dict[str, list[str]] = {}
    uses = Counter[str]()
    for option in (option for page in pages for option in options_of(page)):
        name, meaning = re.split(r"\s{2,}", option.strip().replace("|", r"\|"), maxsplit=1)
        row = f"| `{name}` | {' '.join(meaning.split())} |"
        worded.setdefault("".join(option.split()), []).append(row)
        uses[name] += 1
    return {
        key: min(rows, key=len)  # in the others a word may be broken at its hyphen
        for key, rows in sorted(worded.items())
        if len(rows) > min(3, max(1, uses[rows[0].split("`")[1]] // 2)) and len(rows[0].split()) > 10
    }


def cli_page() -> str:
    """The help of every command, without what would stand on the page twice."""
    pages = {" ".join(["veriglot", *words]): help_page(words) for words in commands()}
    shared = shared_options(list(pages.values()))
    head = (
        "The help of every command, as `veriglot COMMAND --help` (or `-h`) prints it. Options that several commands "
        "share are\nexplained once, and the commands of a group below it.\n\n"
        "## Shared options\n\n| option | meaning |\n|---|---|\n"
    )
    parts = [NOTE, f"# The command line\n\n{head}" + "\n".join(shared.values()) + "\n"]
    for name, text in pages.items():
        own = [option for option in options_of(text) if "".join(option.split()) not in shared]
        names = [re.findall(r"--[\w-]+", option)[0] for option in options_of(text) if option not in own]
        if listed := name != "veriglot" and COMMANDS.search(text):  # each stands below with the same words
            grouped = ", ".join(re.findall(r"^  (\w+)  ", listed[1], re.MULTILINE))
            text = text[: listed.start()] + f"Commands: {grouped}"
        before, *after = LISTED.split(text + "\n")
        text = "\n\n".join(filter(None, [before.strip(), "\n".join(["Options:", *own] if own else []), *after]))
        also = f"\n[Also](#shared-options): `{'`, `'.join(names)}`.\n" if names else ""
        parts.append(f"## {name}\n\n```text\n{text.strip()}\n```\n{also}")
    return "\n".join(parts)


def formats_page() -> str:
    """Every format: what it holds, in which types of files, how it is read."""
    loaded: dict[str, type[Format]] = {name: FORMATS.load(name) for name in FORMATS.names()}
    head, tail = (HERE / "formats_head.txt").read_text("utf-8").split("<!-- presets -->\n")
    known = "".join(
        f"| {preset.name} | `{'`, `'.join(dict.fromkeys(c.partition('|')[0] for c in preset.columns.values()))}` |\n"
        for preset in PRESETS
    )
    parts = [
        NOTE,
        f"{head}| rows of | columns |\n|---|---|\n{known}{tail}",
        "| format | content | written | file types |\n|---|---|---|---|",
    ]
    for name, format_ in loaded.items():
        written = "yes" if format_.writable else "no"
        parts.append(f"| `{name}` | {format_.summary} | {written} | {', '.join(format_.containers)} |")
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
    split_by = {
        way: "`, `".join(entry.tag for entry in table.values() if entry.word_breaking == way)
        for way in ("dictionary", "characters")
    }
    head = [
        NOTE,
        "# Languages\n",
        f"Veriglot splits texts in these {len(table)} languages into sentences and words. State a language by its tag, "
        "name or own\nname. The last column lists the papers that cover it.\n",
        "```sh\nveriglot detect answers.jsonl --language de\n```\n",
        "`grounding` was trained and measured on [fewer languages](grounding.md). In the others it uses a default "
        "calibration, and\npredictions say so.\n",
        f"The scripts {', '.join(from_the_right)} are written from right to left. Words are split at spaces; by a "
        f"dictionary in\n`{split_by['dictionary']}`; by characters in `{split_by['characters']}`.\n",
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
        "# The tables and figures of the papers\n\nThe command or file that reproduces each table, figure, prompt, "
        "guideline and screen with your own data.",
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
