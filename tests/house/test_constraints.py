"""constraints.txt pins whatever the package, its extras and the groups of its tests lead to, at the versions tested."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "constraints.txt"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, Version]:
    lines = CONSTRAINTS.read_text("utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(name): Version(exact) for name, exact in pairs}


def reached(name: str, extras: frozenset[str], seen: dict[str, set[str]]) -> dict[str, set[str]]:
    """Installed distributions that `name` leads to, each with the extras that were asked for."""
    asked = seen.setdefault(canonical(name), set())
    new = {"", *extras} - asked
    asked |= new
    for line in distribution(name).requires or []:
        need = Requirement(line)
        if any(need.marker is None or need.marker.evaluate({"extra": extra}) for extra in new):
            try:
                distribution(need.name)
            except PackageNotFoundError:  # an extra that is not installed here
                continue
            reached(need.name, frozenset(need.extras), seen)
    return seen


def all_reached() -> list[str]:
    seen = reached("veriglot", frozenset({"all"}), {})
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    for line in (line for group in groups.values() for line in group):
        need = Requirement(line)
        try:
            distribution(need.name)
        except PackageNotFoundError:  # a group that is not installed here
            continue
        reached(need.name, frozenset(need.extras), seen)
    return sorted(seen.keys() - {"veriglot"})


@pytest.mark.parametrize("name", all_reached())
def test_what_is_installed_is_pinned(name: str) -> None:
    if name.startswith(("nvidia-", "cuda-")) or name == "triton":  # parts of PyTorch's CUDA build, pinned by it
        return
    assert name in pinned(), f"add {name}=={version(name)} to constraints.txt"
    assert Version(version(name)).public == str(pinned()[name])


def test_pins_are_sorted_and_single() -> None:
    lines = [line for line in CONSTRAINTS.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert lines == sorted(set(lines), key=lambda line: canonical(line.split("==")[0]))
