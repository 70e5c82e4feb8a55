"""The worked example: installed as any package is, it is found by name, and keeps to the contract."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VERIGLOT = ("-c", "import sys; from veriglot.cli import main; sys.exit(main())")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the example as pip installs it."""
    source, folder = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--target", folder, source], check=True)
    return folder


def run(installed: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_veriglot_finds_it_by_name(installed: Path) -> None:
    pair = ["--evidence-text", "Built in 1874.", "--response-text", "Built in 1901."]
    found = json.loads(run(installed, *VERIGLOT, "detect", "--detector", "absent-numbers", "--to", "json", *pair))
    assert found["detector"] == "absent-numbers@1.0"
    assert [(span["start"], span["end"]) for span in found["spans"]] == [(9, 13)]


def test_without_it_the_name_is_unknown() -> None:
    pair = ["--evidence-text", "x", "--response-text", "y"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *VERIGLOT, "detect", "--detector", "absent-numbers", *pair],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no detector named 'absent-numbers'" in done.stderr


@pytest.mark.slow  # loads every model
def test_the_doctor_shows_it(installed: Path) -> None:
    found = json.loads(run(installed, *VERIGLOT, "doctor", "--json"))
    assert found["plugins"] == [
        {
            "kind": "detector",
            "name": "absent-numbers",
            "target": "absent_numbers:AbsentNumbers",
            "package": "veriglot-absent-numbers 1.0",
            "hidden": False,
        }
    ]
    assert {one["name"]: one["status"] for one in found["detectors"]}["absent-numbers"] == "ok"


def test_it_keeps_to_the_contract(installed: Path) -> None:
    told = run(installed, "-m", "veriglot.testing", "absent-numbers")
    assert told.startswith("absent-numbers@1.0: 9 checks, ")
    assert "the contract is kept" in told
    assert run(installed, "-m", "veriglot.testing", "absent_numbers:AbsentNumbers") == told


def test_its_own_test_passes(installed: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "test_absent_numbers.py", tmp_path)
    run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path))


def test_the_command_tells_what_is_broken(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "lazy_one.py").write_text(
        "from absent_numbers import AbsentNumbers\n"
        "class Lazy(AbsentNumbers):\n"
        "    def predict(self, samples):\n"
        "        return super().predict(samples)[:1]\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(tmp_path)])}
    command = [sys.executable, "-m", "veriglot.testing"]
    done = subprocess.run([*command, "lazy_one:Lazy"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there are 1 predictions for 16 samples" in done.stderr
    done = subprocess.run([*command, "grouding"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "grounding" in done.stderr


def test_the_example_is_short() -> None:
    lines = (EXAMPLE / "absent_numbers.py").read_text("utf-8").splitlines()
    assert len(lines) <= 32
