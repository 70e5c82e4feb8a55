"""The folder of models: where it is, and what happens where it cannot be written or is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_registry import content

from veriglot.errors import WeightsError
from veriglot.hub import cache
from veriglot.hub import registry as hub_registry

if TYPE_CHECKING:
    from own_registry import OwnRegistry

DATA = content()


@pytest.fixture(autouse=True)
def _named(registry: OwnRegistry, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "model.onnx").write_bytes(DATA)
    registry.add("own", {"model.onnx": DATA}, {"kind": "local", "path": "given"})


@pytest.mark.skipif(sys.platform != "linux", reason="the convention of Linux")
def test_without_a_setting_it_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VERIGLOT_WEIGHTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert hub_registry.folder() == tmp_path / "caches" / "veriglot" / "weights"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert hub_registry.folder() == tmp_path / "home" / ".cache" / "veriglot" / "weights"


def test_a_setting_may_begin_at_home_or_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIGLOT_WEIGHTS", "~/models")
    assert hub_registry.folder() == Path.home() / "models"
    monkeypatch.setenv("VERIGLOT_WEIGHTS", "models")
    assert hub_registry.folder() == Path.cwd() / "models"


def test_a_folder_that_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "taken"))
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")
    with pytest.raises(WeightsError, match="cannot be written to") as caught:
        cache.get("own")
    assert "VERIGLOT_WEIGHTS" in caught.value.remedy


WITHOUT_RIGHTS = """
import ctypes, os
if os.getuid() == 0:  # root's right to pass over rights is a capability of the process: put it down
    libc = ctypes.CDLL(None, use_errno=True)
    head, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, sets) == 0
    sets[0] &= ~0b1110  # effective: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    assert libc.capset(head, sets) == 0, os.strerror(ctypes.get_errno())
from veriglot.hub import cache, registry
from veriglot.errors import VeriglotError
try:
    print({call})
except VeriglotError as error:
    print(type(error).__name__, error)
"""


def without_rights(call: str) -> str:
    """What a call says to somebody who may read the folder of models, but not write to it."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_RIGHTS.format(call=call)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def read_only(folder: Path) -> Path:
    """The folder of models, which a test closes to writing when it has put there what it wants."""
    if sys.platform == "win32" or (sys.platform != "linux" and os.getuid() == 0):
        pytest.skip("here nobody can be kept from writing")
    folder.mkdir()
    return folder


def closed(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_a_folder_that_others_keep_is_read(read_only: Path) -> None:
    path = cache.get("own")
    closed(read_only)
    assert without_rights("registry.find('own')") == str(path)
    assert without_rights("cache.get('own')") == str(path), "what is here needs no writing"
    assert "state='here'" in without_rights("registry.listing()[-1]")


def test_without_a_mark_it_is_hashed_and_used_all_the_same(read_only: Path) -> None:
    path = cache.get("own")
    for marker in read_only.rglob("*.verified.json"):
        marker.unlink()
    closed(read_only)
    assert without_rights("registry.find('own')") == str(path)
    assert not list(read_only.rglob("*.verified.json*"))


def test_getting_into_a_folder_that_is_closed_says_what_to_do(read_only: Path) -> None:
    closed(read_only)
    said = without_rights("cache.get('own')")
    assert said.startswith(f"WeightsError The folder of models, {read_only}, cannot be written to: Permission denied.")
    assert "Set VERIGLOT_WEIGHTS" in said
    assert list(read_only.iterdir()) == []


def test_removing_from_a_folder_that_is_closed_says_what_to_do(read_only: Path) -> None:
    path = cache.get("own")
    closed(read_only)
    assert "cannot be written to: Permission denied" in without_rights("cache.remove('own')")
    assert path.exists()


def test_a_model_that_cannot_fit_is_not_begun(registry: OwnRegistry, folder: Path) -> None:
    huge = {"name": "model.onnx", "bytes": 10**18, "sha256": "0" * 64}
    registry.models["own"]["files"] = [huge]
    registry.write()
    with pytest.raises(WeightsError, match=r"needs 1,000,000,000,000\.0 MB .* and .* MB are free") as caught:
        cache.get("own")
    assert "Make room" in caught.value.remedy
    assert not [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_disk_that_fills_up_leaves_nothing(folder: Path) -> None:
    """A limit on the size of files stands for the disk: the operating system refuses in the middle of a write."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    code = f"{limit}; from veriglot.cli import main; raise SystemExit(main(['models', 'get', 'own']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"There is no room for the model in {folder}" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"own.lock"}
    assert cache.get("own").read_bytes() == DATA


def test_a_copied_folder_works_elsewhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.get("own")
    shutil.copytree(folder, tmp_path / "brought")
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "brought"))
    monkeypatch.setenv("VERIGLOT_OFFLINE", "1")
    assert hub_registry.find("own").is_relative_to(tmp_path / "brought")
