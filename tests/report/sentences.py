"""The sentences that pages can print, read from the source; and those that tests have held to the figures."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "veriglot"
SOURCES = (
    *sorted((PACKAGE / "report").glob("*.py")),
    *sorted((PACKAGE / "report").glob("*.toml")),
    *sorted((PACKAGE / "report" / "templates").glob("*.html")),
    *(PACKAGE / name for name in ("study/methods.py", "study/rates.py", "study/results.py", "rates/estimators.py")),
    *(PACKAGE / name for name in ("bench/figures.py", "bench/leaderboard.py", "cli/bench.py", "cli/study.py")),
    PACKAGE / "cli" / "estimate.py",
    ROOT / "benchmarks" / "results.py",
)
HELP = {"Argument", "Option", "add_argument"}  # options of commands, which tests/cli holds
HOLE = "…"  # what is filled in

HELD: dict[str, set[str]] = defaultdict(set)
"""Texts that each checker held to the figures."""


def held(checker: str, text: str) -> None:
    """Note that a checker held this text, as people read it, to the figures."""
    HELD[checker].add(" ".join(text.split()))


def sentences_of(path: Path) -> set[str]:
    """The sentences in a module, a template or a table, with `HOLE` for whatever is filled in."""
    readers = {".html": _of_template, ".toml": lambda source: _of_table(tomllib.loads(source))}
    texts = readers.get(path.suffix, _of_module)(path.read_text("utf-8"))
    return {text for text in (" ".join(each.split()) for each in texts) if _is_sentence(text)}


def _is_sentence(text: str) -> bool:
    """Four words and more, what is filled in among them; two where a full stop ends them."""
    words = len(re.findall(r"[^\W\d_]{2,}", text))
    return words > 1 if text.endswith(".") else words > 2 and words + text.count(HOLE) > 3


def _of_module(source: str) -> Iterator[str]:
    """Its texts, without docstrings, errors, parts of other texts, and help of options."""
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _name(node.func) in HELP):
            skipped.update(ast.walk(node))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(part for part in node.values if isinstance(part, ast.Constant))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)


def _of_table(table: dict[str, Any]) -> Iterator[str]:
    """Its keys and its texts."""
    for key, value in table.items():
        yield key
        if isinstance(value, dict):
            yield from _of_table(value)
        elif isinstance(value, str):
            yield value


def _name(node: ast.expr) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _of_template(source: str) -> Iterator[str]:
    """Its texts, those in attributes and in expressions too; what stands between two tags or statements is one."""
    source = re.sub(r"\{#.*?#\}", "", source, flags=re.DOTALL)
    for code in re.findall(r"\{[{%].*?[%}]\}", source, re.DOTALL):
        yield from re.findall(r'"([^"]*)"', code)
    source = re.sub(r"\{\{.*?\}\}", HOLE, source, flags=re.DOTALL)
    source = re.sub(r"\{%.*?%\}", "<>", source, flags=re.DOTALL)
    yield from re.findall(r'(?:title|aria-label|placeholder)="([^"]*)"', source)
    yield from re.split(r"<[^>]*>", re.sub(r"</?(?:b|bdi|code|span)\b[^>]*>", "", source))


def pattern_of(sentence: str) -> str:
    """What finds a sentence in a text: whatever is filled in may be there."""
    return ".*?".join(map(re.escape, re.split(rf"{HOLE}|%[ds]|\{{\d\}}", sentence)))
