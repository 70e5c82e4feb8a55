"""What is shipped: the wheel and the source archive, their version, their data files and their licence."""

from __future__ import annotations

import email
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import veriglot

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "veriglot"
WHEEL_MB = 32  # the weights of grounding take 11 MB, those of the reader 16
DIST_INFO = f"veriglot-{veriglot.__version__}.dist-info"


def build(kind: str, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder], cwd=ROOT, check=True)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def package_files() -> set[str]:
    found = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in found}


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "veriglot/py.typed" in names
    assert "veriglot/records/taxonomies.json" in names
    assert {name for name in names if not name.startswith(DIST_INFO)} == package_files()


def test_the_wheel_carries_its_licence(unpacked: Path) -> None:
    for name in ("LICENSE", "NOTICE"):
        assert (unpacked / DIST_INFO / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < WHEEL_MB * 1e6


def test_the_metadata_says_what_it_is(unpacked: Path) -> None:
    metadata = email.message_from_bytes((unpacked / DIST_INFO / "METADATA").read_bytes())
    assert metadata["Version"] == veriglot.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    needs = [need.partition(";")[0] for need in metadata.get_all("Requires-Dist", [])]
    assert needs
    assert not [need for need in needs if "==" in need], "metadata gives ranges only; constraints.txt pins"


def test_data_files_are_found_from_an_installed_wheel(unpacked: Path) -> None:
    code = "import veriglot.records.taxonomy as r; print(r.__file__, *r.taxonomies())"
    found = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(unpacked)},
        cwd=unpacked,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.startswith(str(unpacked))
    assert "fava" in found


@pytest.mark.slow
def test_whatever_is_found_by_name_or_place_is_found_from_an_installed_wheel(unpacked: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", Path(__file__).with_name("installed.py"), ROOT / "examples" / "samples.jsonl"],
        env={"PYTHONPATH": str(unpacked), "OMP_NUM_THREADS": "1"},
        cwd=unpacked,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["root"].startswith(str(unpacked))
    assert report["modules"] > 200
    assert report["names"] > 60
    assert not report["broken names"]
    assert not report["missing data"]
    assert report["status"] == "scored"
    assert report["engines"] == ["comet", "laser", "sonar"]


def test_the_source_archive_can_test_itself(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ["Makefile", "constraints.txt", "CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "examples/samples.jsonl"]
    assert {*needed, "tests/conftest.py", "docs/architecture.md", "src/veriglot/__init__.py"} <= names


def test_the_changelog_begins_with_this_version() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == veriglot.__version__
