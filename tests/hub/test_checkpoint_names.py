"""What names a checkpoint, where a network runs, and how many tokens it takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from veriglot.errors import UsageError, WeightsError
from veriglot.hub.checkpoints import checkpoint, hub_options, loading, max_positions
from veriglot.hub.registry import MissingWeightsError

if TYPE_CHECKING:
    from pathlib import Path

    from own_registry import OwnRegistry

pytestmark = pytest.mark.slow


def test_a_folder_a_name_of_the_registry_or_of_the_hub(tmp_path: Path, registry: OwnRegistry) -> None:
    files = {"config.json": b"{}", "model.safetensors": b"weights"}
    here = tmp_path / "here"
    here.mkdir()
    for name, data in files.items():
        (here / name).write_bytes(data)
    registry.add("our-nli", files, {"kind": "local", "path": str(here), "in_place": True})
    registry.add("far-nli", files, {"kind": "local", "path": str(tmp_path / "nowhere"), "in_place": True})
    registry.add("one-file", {"config.json": b"{}"}, {"kind": "local", "path": str(here), "in_place": True})
    assert checkpoint(here) == str(here)
    assert checkpoint("our-nli") == str(here)
    assert checkpoint("one-file") == str(here), "what loads a checkpoint wants its folder"
    with pytest.raises(MissingWeightsError) as missing:
        checkpoint("far-nli")
    assert "veriglot models get far-nli" in missing.value.remedy
    assert checkpoint("owner/name-v1.0") == "owner/name-v1.0"
    for wrong in ("./owner", "/no/such/folder", "a/b/c", "two words"):
        with pytest.raises(WeightsError, match="no folder"):
            checkpoint(wrong)


def test_the_network_stays_shut_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert hub_options(tmp_path, "v1") == {"revision": "v1", "local_files_only": False}
    for nowhere in (tmp_path / "nowhere", "./nowhere", "../no/where", "~/nowhere"):
        assert hub_options(nowhere)["local_files_only"] is True, "no name on the hub"
    monkeypatch.setenv("VERIGLOT_OFFLINE", "1")
    assert hub_options(tmp_path)["local_files_only"] is True


def test_what_a_library_raises_becomes_one_error(tmp_path: Path) -> None:
    for error in (OSError("no file\nand much more"), ValueError(""), KeyError("x")):
        with pytest.raises(WeightsError, match="The judge 'a/b' cannot be loaded") as told, loading("judge", "a/b"):
            raise error
        assert "\n" not in str(told.value)
        assert told.value.__cause__ is error
    with pytest.raises(WeightsError) as told, loading("judge", str(tmp_path)):
        raise OSError
    assert "save_pretrained" in told.value.remedy
    with pytest.raises(KeyboardInterrupt), loading("judge", "a/b"):
        raise KeyboardInterrupt


def test_positions_are_the_least_of_what_is_said() -> None:
    endless = SimpleNamespace(model_max_length=10**30)
    bert = SimpleNamespace(config=SimpleNamespace(max_position_embeddings=512))
    table = SimpleNamespace(position_embeddings=SimpleNamespace(padding_idx=1))
    roberta = SimpleNamespace(
        config=SimpleNamespace(max_position_embeddings=514), base_model=SimpleNamespace(embeddings=table)
    )
    assert max_positions(endless, bert) == 512
    assert max_positions(endless, roberta) == 512
    assert max_positions(SimpleNamespace(model_max_length=128), roberta) == 128
    assert max_positions(endless, SimpleNamespace(config=SimpleNamespace())) is None


def test_devices() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `local`: pip install 'veriglot[local]'")
    from veriglot.hub.checkpoints import device_for

    assert device_for("cpu") == torch.device("cpu")
    best = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    assert device_for() == device_for("") == best
    with pytest.raises(UsageError, match="abacus"):
        device_for("abacus")
