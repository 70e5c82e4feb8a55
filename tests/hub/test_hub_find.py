"""`find`: files that are here and right are found without a network, and nothing else passes for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from own_registry import content

from veriglot.errors import WeightsError
from veriglot.hub import cache
from veriglot.hub import registry as hub_registry
from veriglot.hub.registry import DamagedWeightsError

if TYPE_CHECKING:
    from pathlib import Path

    from own_registry import OwnRegistry

DATA = content()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "given" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(DATA)
    return path


@pytest.fixture
def here(registry: OwnRegistry, copy: Path) -> Path:
    """The path of a model of one file that was got."""
    registry.add("own", {"model.onnx": DATA}, {"kind": "local", "path": str(copy.parent)})
    return cache.get("own")


def test_what_is_missing_names_the_one_command(registry: OwnRegistry, folder: Path) -> None:
    registry.add("own", {"model.onnx": DATA})
    with pytest.raises(hub_registry.MissingWeightsError) as caught:
        hub_registry.find("own")
    assert caught.value.remedy == "Type: veriglot models get own"
    assert str(folder) in caught.value.message
    assert not folder.exists(), "looking for a model writes nothing"


def test_a_model_of_one_file_is_that_file(here: Path, folder: Path) -> None:
    assert here == hub_registry.find("own")
    assert here.read_bytes() == DATA
    assert here.is_relative_to(folder)


def test_a_model_of_several_files_is_their_folder(registry: OwnRegistry, tmp_path: Path) -> None:
    files = {"config.json": b"{}", "onnx/model.onnx": DATA}
    for name, data in files.items():
        (tmp_path / "given" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "given" / name).write_bytes(data)
    registry.add("own", files, {"kind": "local", "path": "given"})
    found = cache.get("own")
    assert {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()} == set(files)
    assert hub_registry.find("own") == found


def test_only_the_model_is_left_in_the_folder(here: Path, folder: Path) -> None:
    left = {path for path in folder.rglob("*") if path.is_file()}
    marker = here.parent.with_name(f"{here.parent.name}.verified.json")
    assert left == {here, marker, folder / ".locks" / "own.lock"}


def test_it_is_hashed_once(here: Path) -> None:
    """Another content of the same size and time passes: nobody read it, which is what makes opening cheap."""
    state = here.stat()
    here.write_bytes(bytes(len(DATA)))
    os.utime(here, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert hub_registry.find("own") == here


def test_a_change_is_hashed_again(here: Path) -> None:
    os.utime(here)
    assert [one.state for one in hub_registry.listing() if one.name == "own"] == ["unverified"]
    assert hub_registry.find("own") == here
    assert [one.state for one in hub_registry.listing() if one.name == "own"] == ["here"]


@pytest.mark.parametrize("wrong", [bytes(len(DATA)), DATA[:-1], b""], ids=["other bytes", "cut short", "empty"])
def test_damage_is_found_and_mended(here: Path, wrong: bytes) -> None:
    here.write_bytes(wrong)
    with pytest.raises(DamagedWeightsError) as caught:
        hub_registry.find("own")
    assert caught.value.remedy == "Type: veriglot models get own"
    assert cache.get("own") == here
    assert here.read_bytes() == DATA


def test_a_file_that_went_is_missing(here: Path) -> None:
    here.unlink()
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")


def test_a_marker_that_is_garbled_or_gone_only_costs_a_hash(here: Path) -> None:
    marker = here.parent.with_name(f"{here.parent.name}.verified.json")
    for spoil in (lambda: marker.write_bytes(b"{"), marker.unlink):
        spoil()
        assert hub_registry.find("own") == here
        assert marker.read_bytes().startswith(b"[")


def test_a_changed_registry_asks_for_the_new_files(here: Path, registry: OwnRegistry) -> None:
    registry.add("own", {"model.onnx": content(seed=1)})
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")
    assert here.exists(), "what another version uses stays"


def test_files_in_place_are_neither_copied_nor_removed(registry: OwnRegistry, copy: Path) -> None:
    registry.add("own", {"model.onnx": DATA}, {"kind": "local", "path": str(copy.parent), "in_place": True})
    assert hub_registry.find("own") == copy
    assert cache.get("own") == copy
    cache.remove("own")
    assert copy.exists()
    copy.write_bytes(bytes(len(DATA)))
    with pytest.raises(DamagedWeightsError):
        hub_registry.find("own")


def test_a_folder_without_the_files_hides_no_other(registry: OwnRegistry, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "unmounted").mkdir()
    folders = [tmp_path / "unmounted", copy.parent]
    registry.add("own", {"model.onnx": DATA}, *({"kind": "local", "path": str(f), "in_place": True} for f in folders))
    assert hub_registry.find("own") == copy


def test_getting_what_stands_damaged_in_place_copies_nothing(registry: OwnRegistry, copy: Path, folder: Path) -> None:
    registry.add("own", {"model.onnx": DATA}, {"kind": "local", "path": str(copy), "in_place": True})
    copy.write_bytes(b"not it")
    with pytest.raises(WeightsError, match="6 bytes"):
        cache.get("own")
    assert not list(folder.rglob("*.onnx"))


def test_remove_frees_everything_of_the_model(here: Path, registry: OwnRegistry, folder: Path) -> None:
    assert cache.remove("own") > len(DATA)
    assert not here.exists()
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"own.lock"}
    assert cache.remove("own") == 0
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")
