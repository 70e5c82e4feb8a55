"""Small studies for the tests: of the scripted client, or of given responses, and what makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from study_folder import EXAMPLES, write_queries, write_responses

from veriglot.cli.detectors import detector_recipe
from veriglot.cli.study import measure, render
from veriglot.study.config import Folder, load
from veriglot.study.run import Outcome, Tools, run

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.study.results import Cell, StudyResults

RULES = """
[[rules]]
match = 'What .*\\((?P<n>\\d+)\\)$'
reply = ['The answer is that it stands where it always stood.', 'It was Zorvath who built it in 1999.']
[[rules]]
reply = ['It was Zorvath who built it in 1999.', 'I do not know.', 'Nobody knows.']
"""
DETECTOR = f"""
[[detectors]]
name = "grounding"
labelled = "{EXAMPLES}"
"""
LANGUAGES = ("de", "en", "fr")


def write_study(folder: Path, text: str, *, detectors: str = DETECTOR, study: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(f"[study]\ndraws = 200\n{study}\n{text}\n{detectors}")
    return path


def asked(folder: Path, models: tuple[str, ...] = ("kiln", "moor"), queries: int = 24, **keys: Any) -> str:
    """The tables of a study that asks the scripted client."""
    write_queries(folder / "queries.jsonl", queries)
    if not (folder / "rules.toml").exists():
        (folder / "rules.toml").write_text(RULES)
    tables = "".join(f'[[models]]\nname = "{name}"\nclient = "scripted"\nscript = "rules.toml"\n' for name in models)
    head = {"path": "queries.jsonl", "design": "runs", "seeds": [1, 2, 3], **keys}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in head.items())
    return f"[queries]\n{lines}\n{tables}"


def given(folder: Path, models: tuple[str, ...] = ("kiln", "moor"), count: int = 40) -> str:
    write_responses(folder / "responses.jsonl", models, count)
    return '[responses]\npath = "responses.jsonl"\n'


def make(study: Path, folder: Path, **options: Any) -> Outcome:
    return run(load(study), Folder(folder), Tools(detector_recipe, measure, render), **options)


def cell(results: StudyResults, model: str, language: str) -> Cell:
    (found,) = [one for one in results.cells if (one.model, one.language) == (model, language)]
    return found
