"""Runs on the package that comes first on the path: looks for whatever is found by name or by place. Prints JSON."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import pkgutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import veriglot
from veriglot.pipeline.external_engines import ENGINES
from veriglot.plugins import Registry

ROOT = Path(veriglot.__file__).parent


def modules() -> list[Any]:
    """Every module that can be imported here."""
    names = [found.name for found in pkgutil.walk_packages(veriglot.__path__, "veriglot.")]
    return [importlib.import_module(name) for name in names if "__main__" not in name]


def data_files() -> list[str]:
    """Literal paths of package data in the code that lead nowhere, or as many as there are."""
    missing = []
    count = 0
    for path in ROOT.rglob("*.py"):
        package = ".".join(path.relative_to(ROOT.parent).parent.parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            if getattr(node.func, "id", "") == "read_package_data" and isinstance(node.args[1], ast.Constant):
                anchor = node.args[0].value if isinstance(node.args[0], ast.Constant) else package
                count += 1
                if not files(anchor).joinpath(node.args[1].value).is_file():
                    missing.append(f"{path}: {node.args[1].value}")
            if getattr(node.func, "attr", "") != "joinpath":
                continue
            owner = node.func.value  # type: ignore[attr-defined]
            literal = all(isinstance(argument, ast.Constant) for argument in node.args)
            if literal and isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "files":
                anchor = owner.args[0].value if isinstance(owner.args[0], ast.Constant) else package
                target = files(anchor).joinpath(*(argument.value for argument in node.args))  # type: ignore[attr-defined]
                count += 1
                if not (target.is_file() or target.is_dir()):
                    missing.append(f"{path}: {target}")
    assert count > 25, count
    return missing


def targets(loaded: list[Any]) -> tuple[int, list[str]]:
    """How many names the tables have, and those that lead nowhere."""
    tables = {id(value): value for module in loaded for value in vars(module).values() if isinstance(value, Registry)}
    names = [(table, name) for table in tables.values() for name in table.names()]
    broken = []
    for table, name in names:
        try:
            table.load(name)
        except Exception as error:
            broken.append(f"{table.kind} {name}: {error}")
    return len(names), broken


def main() -> None:
    loaded = modules()
    count, broken = targets(loaded)
    detector = pickle.loads(pickle.dumps(veriglot.load_detector("grounding")))
    sample = next(iter(veriglot.read(Path(sys.argv[1]))))
    (prediction,) = detector.predict([sample])
    result = {
        "root": str(ROOT),
        "modules": len(loaded),
        "names": count,
        "broken names": broken,
        "missing data": data_files(),
        "status": prediction.status,
        "engines": sorted(ENGINES),
    }
    sys.stdout.write(json.dumps(result))


main()
