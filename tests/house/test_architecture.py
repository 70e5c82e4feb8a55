"""The house: layers, no sideways imports, 800 lines a file, a light import (docs/architecture.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from programs import printed

SOURCE = Path(__file__).resolve().parents[2] / "src" / "veriglot"

LAYERS = {
    "arrays": 0, "errors": 0, "plugins": 0, "signatures": 0,
    "records": 1, "storage": 1,
    "text": 2, "http": 2, "hub": 2,
    "formats": 3, "metrics": 3, "rates": 3, "wikipedia": 3, "pipeline": 3,
    "llm": 4, "encoders": 4,
    "judging": 5,
    "detectors": 6, "scorers": 6,
    "datasets": 7,
    "training": 8, "bench": 8, "study": 8, "testing": 8,
    "report": 9,
    "detection": 10,
    "studio": 11, "server": 11, "integrations": 11,
    "cli": 12, "pytest": 12,
    "__main__": 13,
}  # fmt: skip

BANNED = {"utils", "util", "common", "core", "helpers", "scripts", "misc"}
HEAVY = (
    "torch",
    "transformers",
    "ray",
    "fastapi",
    "sqlalchemy",
    "onnxruntime",
    "sentencepiece",
    "onnx",
    "numpy",
    "pyarrow",
    "py3langid",
    "icu4py",
    "httpx2",
)
MODULES = sorted(SOURCE.rglob("*.py"))


def area_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_areas(path: Path) -> set[tuple[str, int]]:
    """Areas of Veriglot that a module names in an import, with the line; those only for type checkers included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
            if node.module == "veriglot":
                names = [f"veriglot.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level > 0:
            pytest.fail(f"{path}:{node.lineno}: imports are absolute here")
        for name in names:
            parts = name.split(".")
            if parts[0] == "veriglot" and len(parts) > 1:
                found.add((parts[1], node.lineno))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path) -> None:
    area = area_of(path)
    if area == "__init__":  # the table of contents: it names, lazily, what it offers
        return
    assert area in LAYERS, f"{path}: {area!r} has no layer; give it one in docs/architecture.md and here"
    for target, line in imported_areas(path):
        if target == area:
            continue
        assert target in LAYERS, f"{path}:{line} imports veriglot.{target}, which has no layer"
        lower = LAYERS[target] < LAYERS[area] or (LAYERS[area] == 0 and LAYERS[target] == 0)
        assert lower, f"{path}:{line}: {area} (layer {LAYERS[area]}) imports {target} (layer {LAYERS[target]})"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_file_grows_past_800_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 800


def test_no_nameless_folders() -> None:
    parts = {part.removesuffix(".py") for path in MODULES for part in path.relative_to(SOURCE).parts}
    assert not parts & BANNED


def test_import_is_light() -> None:
    code = f"import sys, veriglot; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert printed(code) == "[]\n"


@pytest.mark.parametrize("first", ["calibration", "grounding.detector", "grounding.features", "auto", "units"])
def test_no_module_of_the_detectors_has_to_be_imported_before_another(first: str) -> None:
    subprocess.run([sys.executable, "-c", f"import veriglot.detectors.{first}"], check=True)
