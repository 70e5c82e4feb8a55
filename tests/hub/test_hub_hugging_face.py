"""From a model hub, at one revision, held against the hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from file_server import COMMIT
from own_registry import content

from veriglot.errors import WeightsError
from veriglot.hub import cache
from veriglot.hub import registry as hub_registry
from veriglot.hub.cache import ModelDownload, SourceError, _fetch_hub
from veriglot.hub.registry import Hub

if TYPE_CHECKING:
    from pathlib import Path

    from file_server import FileServer
    from own_registry import OwnRegistry

DATA = content(400_000)
PLACE = Hub("team/encoder", COMMIT, {"model.onnx": "onnx/model.onnx"})
BASE = f"/team/encoder/resolve/{COMMIT}"


@pytest.fixture
def arrivals(registry: OwnRegistry, tmp_path: Path) -> ModelDownload:
    registry.add("own", {"model.onnx": DATA, "config.json": b"{}"})
    return ModelDownload(hub_registry.model("own"), tmp_path / "incoming", lambda held, total: None)


@pytest.fixture(autouse=True)
def hub(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> FileServer:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    server.put(f"{BASE}/onnx/model.onnx", DATA)
    server.put(f"{BASE}/config.json", b"{}")
    return server


def test_every_file_arrives(arrivals: ModelDownload) -> None:
    _fetch_hub(arrivals, PLACE)
    assert not arrivals.missing()


def test_the_whole_way_of_a_model(registry: OwnRegistry, folder: Path) -> None:
    place = {"kind": "hub", "repo": "team/encoder", "revision": COMMIT, "paths": {"model.onnx": "onnx/model.onnx"}}
    registry.add("own", {"model.onnx": DATA, "config.json": b"{}"}, place)
    found = cache.get("own")
    assert (found / "model.onnx").read_bytes() == DATA
    assert {path.name for path in found.iterdir()} == {"model.onnx", "config.json"}
    assert not list(folder.rglob("*.part"))


def test_a_key_is_shown_to_the_hub(arrivals: ModelDownload, hub: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    _fetch_hub(arrivals, PLACE)
    assert {one.headers.get("authorization") for one in hub.asked} == {"Bearer hf_of_a_test"}


def test_what_was_cut_off_goes_on(arrivals: ModelDownload, hub: FileServer) -> None:
    hub.cut[f"{BASE}/onnx/model.onnx"] = [150_000]
    _fetch_hub(arrivals, PLACE)
    assert not arrivals.missing()
    assert len(hub.bodies(f"{BASE}/onnx/model.onnx")) == 2


def test_wrong_bytes_are_refused(arrivals: ModelDownload, hub: FileServer) -> None:
    hub.put(f"{BASE}/onnx/model.onnx", content(400_000, seed=1))
    with pytest.raises(SourceError, match="with the SHA-256"):
        _fetch_hub(arrivals, PLACE)
    assert not list(arrivals.parts.rglob("*.part"))


def test_a_repository_that_is_not_there(arrivals: ModelDownload) -> None:
    with pytest.raises(SourceError, match="404") as caught:
        _fetch_hub(arrivals, Hub("team/none", COMMIT))
    assert not caught.value.retryable


def test_a_repository_that_is_closed_to_us(registry: OwnRegistry, hub: FileServer) -> None:
    registry.add("own", {"model.onnx": DATA}, {"kind": "hub", "repo": "team/encoder", "revision": COMMIT})
    hub.status[f"{BASE}/model.onnx"] = [403] * 9
    with pytest.raises(WeightsError, match="403"):
        cache.get("own")
