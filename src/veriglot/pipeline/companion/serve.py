"""The other side of the pipe: loads an engine and answers batches. Runs in a Python environment without Veriglot.

    python serve.py ENGINE.py

An engine is a file with a class `Engine`: `packages`, a tuple of the names whose versions are told; a constructor that
takes the options and may raise `Exception`; `about`, a dictionary; and `run(rows)`, which gives for each row a
dictionary with `value` (and `parts`, `details`), or with `error` (and `status`). Needs Python 3.8 and nothing else.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

__all__ = []

PROTOCOL = 1


def main(path: str) -> int:
    """Answer until the input ends. Standard output is the pipe: whatever else is printed goes to standard error."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    engine_class = _engine_class(path)
    hello = {
        "type": "hello",
        "protocol": PROTOCOL,
        "engine": Path(path).stem,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in getattr(engine_class, "packages", ())},
    }
    _say(pipe, hello)
    with open(0, "rb", closefd=False) as commands:  # bytes: the terminal's encoding is not ours
        opened = json.loads(commands.readline() or b"null")
        if opened is None:
            return 0
        try:
            engine = engine_class(**opened["options"])
        except Exception as error:
            traceback.print_exc()
            remedy = getattr(error, "remedy", "")
            message = str(error) if remedy else _words(error)  # with a remedy it was meant for whoever reads it
            _say(pipe, {"type": "refused", "message": message, "remedy": remedy})
            return 1
        _say(pipe, {"type": "ready", "about": getattr(engine, "about", {})})
        for line in commands:
            batch = json.loads(line)
            _say(pipe, {"type": "results", "id": batch["id"], "rows": _run(engine, batch["rows"])})
    return 0


def _run(engine: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One answer a row; where the batch as a whole fails, row by row, so that one row costs no other its answer."""
    try:
        results = list(engine.run(rows))
        if len(results) != len(rows):
            raise RuntimeError(f"the engine gave {len(results)} answers to {len(rows)} rows")
    except Exception as error:
        traceback.print_exc()
        if len(rows) == 1:
            return [{"error": _words(error)}]
        return [answer for row in rows for answer in _run(engine, [row])]
    return [_checked(answer) for answer in results]


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, if JSON can hold it; not a number is no answer."""
    try:
        json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError) as error:
        return {"error": _words(error)}
    return answer


def _engine_class(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("veriglot_engine", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Engine


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _words(error: Exception) -> str:
    message = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"{type(error).__name__}: {message}"


def _say(pipe: TextIO, message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message, ensure_ascii=True, allow_nan=False) + "\n")
    pipe.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
