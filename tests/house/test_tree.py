"""What must stand in no tracked file: paths of somebody's machine, and the addresses of package registries."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each is written so that this file does not hold what it looks for.
_FOLDERS = "|".join(["work", "tmp", "root", "farm", "home/[a-z]+"])
_REGISTRIES = "|".join(["pypi", "pythonhosted", "npmjs", "debian"])
FORBIDDEN = {
    "a path of one machine": re.compile(rf"(?<![\w.$}}-])/(?:{_FOLDERS})/"),
    "a hidden library folder": re.compile(r"\.lib" + r"rary\b"),
    "the host of a package registry": re.compile(rf"(?:{_REGISTRIES})\.(?:org|com)\b"),
}


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):  # a source archive has no git
        return sorted(path for path in (ROOT / "src").rglob("*") if path.is_file())
    return sorted(ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file())


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str) -> None:
    hits = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN[what].search(line):
                hits.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not hits, "\n".join(hits)


@pytest.mark.parametrize("line", ["see /" + "work/main", "'/" + "tmp/x'", "https://py" + "pi.org/simple"])
def test_the_patterns_do_catch(line: str) -> None:
    assert any(pattern.search(line) for pattern in FORBIDDEN.values())
