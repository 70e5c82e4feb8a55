"""What Veriglot costs before it works: seconds to import, seconds to a first result, megabytes on disk."""

from __future__ import annotations

import compileall
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAVY = ("torch", "transformers", "ray", "fastapi", "onnxruntime", "numpy", "pyarrow")
PAIR = ["--evidence-text", "The bridge was opened in 1897.", "--response-text", "The bridge was opened in 1879."]
PAIR += ["--detector", "grounding"]  # what a core install has


def seconds(command: Sequence[str], repeats: int) -> float:
    """The fastest of `repeats` runs, after one that warms the disk's cache."""
    taken = []
    for _ in range(repeats + 1):
        start = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(perf_counter() - start)
    return min(taken[1:])


def heavy_modules() -> list[str]:
    """Heavy modules that `import veriglot` loads."""
    code = f"import sys, veriglot; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


def reached(name: str, seen: dict[str, int]) -> dict[str, int]:
    """Bytes on disk of each distribution that `name` needs without extras, compiled files included."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen:
        return seen
    found = distribution(name)
    files = {Path(str(file.locate())) for file in found.files or []}
    seen[key] = sum(path.stat().st_size for path in files if path.is_file())
    for line in found.requires or []:
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            reached(need.name, seen)
    return seen


def core_bytes() -> int:
    """Bytes of a core install: what Veriglot needs, and the package itself even where it is installed as editable."""
    import veriglot

    others = reached("veriglot", {})
    del others["veriglot"]
    package = Path(veriglot.__file__).parent
    compileall.compile_dir(package, quiet=2)  # as pip does; pytest writes more of them
    files = (path for path in package.rglob("*") if path.is_file() and "-pytest-" not in path.name)
    return sum(others.values()) + sum(path.stat().st_size for path in files)


def measure(repeats: int) -> list[dict[str, Any]]:
    """The table's rows: a figure with its bound."""
    command = str(Path(sys.executable).with_name("veriglot"))
    timed = {
        "python -c pass, seconds": ([sys.executable, "-c", "pass"], "-"),
        "import veriglot, seconds": ([sys.executable, "-c", "import veriglot"], "0.3"),
        "veriglot --help, seconds": ([command, "--help"], "-"),
        "veriglot detect on one pair, seconds": ([command, "detect", *PAIR], "1.5"),
    }
    rows = [
        {"what": what, "measured": seconds(words, repeats), "bound": bound} for what, (words, bound) in timed.items()
    ]
    return [
        *rows,
        {"what": "heavy modules that the import loads", "measured": len(heavy_modules()), "bound": "0"},
        {"what": "core install, MB", "measured": core_bytes() / 1e6, "bound": "270"},
    ]


def main() -> None:
    """Read the options, measure, show."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs, of which the fastest counts (default: 5)")
    options = parser.parse_args()
    notes = ["wall time of a new process each; the core install counts every file of every package that it needs"]
    figures.show("Start-up", measure(options.repeats), as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
