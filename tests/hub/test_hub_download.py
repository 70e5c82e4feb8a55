"""Over HTTP: what is cut off goes on, what is wrong is refused, and a key stays with its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from file_server import FileServer
from own_registry import content

from veriglot.errors import WeightsError
from veriglot.hub import cache
from veriglot.hub import registry as hub_registry
from veriglot.hub.cache import ModelDownload, SourceError, fetch_urls
from veriglot.hub.registry import LocalCopy

if TYPE_CHECKING:
    from pathlib import Path

    from own_registry import OwnRegistry

DATA = content(400_000)
PATH = "/models/model.onnx"


@pytest.fixture(autouse=True)
def _named(registry: OwnRegistry, server: FileServer) -> None:
    registry.add("own", {"model.onnx": DATA}, {"kind": "url", "base": f"{server.url}/models"})
    server.put(PATH, DATA)


def kept(folder: Path) -> int:
    """Bytes of the part that waits to be continued."""
    return sum(path.stat().st_size for path in folder.rglob("*.part"))


def test_it_arrives_whole_and_its_progress_is_told(server: FileServer) -> None:
    told: list[tuple[int, int]] = []
    path = cache.get("own", progress=lambda held, total: told.append((held, total)))
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert told == sorted(told)
    cache.get("own")
    assert len(server.bodies(PATH)) == 1, "what is here is not fetched again"


def test_a_cut_off_download_goes_on_where_it_stopped(server: FileServer) -> None:
    server.cut[PATH] = [150_000, 100_000]
    assert cache.get("own").read_bytes() == DATA
    assert [one.range for one in server.bodies(PATH)] == [None, "bytes=150000-", "bytes=250000-"]


def test_a_server_without_ranges_sends_all_again(server: FileServer) -> None:
    server.ranges = False
    server.cut[PATH] = [150_000]
    assert cache.get("own").read_bytes() == DATA
    assert [one.range for one in server.bodies(PATH)] == [None, "bytes=150000-"]


def test_a_server_that_keeps_failing_is_given_up_and_the_next_call_goes_on(
    server: FileServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_PAUSES", (0, 0, 0, 0))
    server.cut[PATH] = [150_000, 10, 10, 10, 10]
    arrivals = ModelDownload(
        hub_registry.model("own"), LocalCopy(hub_registry.model("own")).incoming, lambda held, total: None
    )
    with pytest.raises(SourceError, match=r"150,040 of 400,000 bytes are here and are kept") as caught:
        fetch_urls(arrivals, lambda file: server.url + PATH)
    assert caught.value.retryable
    assert kept(folder) == 150_040
    assert cache.get("own").read_bytes() == DATA
    assert server.bodies(PATH)[-1].range == "bytes=150040-"
    assert kept(folder) == 0


def test_a_part_of_another_file_costs_one_more_download(server: FileServer) -> None:
    part = LocalCopy(hub_registry.model("own")).incoming / "parts" / "model.onnx.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(content(150_000, seed=1))
    assert cache.get("own").read_bytes() == DATA
    assert [one.range for one in server.bodies(PATH)] == ["bytes=150000-", None]


@pytest.mark.parametrize(
    ("served", "said"),
    [
        (content(400_000, seed=1), "with the SHA-256"),
        (DATA + b"!", "more than the 400,000 bytes"),
        (DATA[:-1], "has 399,999 bytes, and should have 400,000"),
        (b"", "has 0 bytes"),
    ],
    ids=["other bytes", "longer", "shorter", "empty"],
)
def test_wrong_bytes_are_refused(server: FileServer, folder: Path, served: bytes, said: str) -> None:
    server.put(PATH, served)
    with pytest.raises(WeightsError, match=said) as caught:
        cache.get("own")
    assert not caught.value.retryable
    assert len(server.bodies(PATH)) == 1
    assert kept(folder) == 0
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_not_repeated(server: FileServer, status: int) -> None:
    server.status[PATH] = [status]
    with pytest.raises(WeightsError, match=f"answered {status}"):
        cache.get("own")
    assert len(server.asked) == 1


def test_a_server_that_is_busy_is_asked_again(server: FileServer) -> None:
    server.status[PATH] = [503, 429]
    assert cache.get("own").read_bytes() == DATA


def test_a_server_that_is_not_there(registry: OwnRegistry) -> None:
    registry.add("own", {"model.onnx": DATA}, {"kind": "url", "base": "http://127.0.0.1:9/models"})
    with pytest.raises(WeightsError, match="Connection refused") as caught:
        cache.get("own")
    assert caught.value.retryable
    assert caught.value.remedy.startswith("Rerun the command")


def test_a_silent_connection_is_given_up_and_the_rest_asked_for(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_SECONDS", 0.4)
    server.stall[PATH] = 3.0
    arrivals = ModelDownload(hub_registry.model("own"), tmp_path / "incoming", lambda held, total: None)
    fetch_urls(arrivals, lambda file: server.url + PATH)
    assert not arrivals.missing()
    assert [one.range for one in server.bodies(PATH)] == [None, "bytes=200000-"]


def test_a_key_is_not_sent_on(server: FileServer, tmp_path: Path) -> None:
    arrivals = ModelDownload(hub_registry.model("own"), tmp_path / "incoming", lambda held, total: None)
    with FileServer() as other:
        other.put("/elsewhere", DATA)
        server.moved[PATH] = f"{other.url}/elsewhere"
        fetch_urls(arrivals, lambda file: server.url + PATH, {"Authorization": "Bearer secret"})
        assert server.bodies(PATH)[0].headers["authorization"] == "Bearer secret"
        assert "authorization" not in other.bodies("/elsewhere")[0].headers


def test_only_addresses_of_the_web(tmp_path: Path) -> None:
    arrivals = ModelDownload(hub_registry.model("own"), tmp_path / "incoming", lambda held, total: None)
    with pytest.raises(SourceError, match="is not an address of the web"):
        fetch_urls(arrivals, lambda file: "file:///etc/hostname")


def test_the_next_place_is_tried(registry: OwnRegistry, server: FileServer, tmp_path: Path) -> None:
    server.put("/wrong/model.onnx", content(400_000, seed=1))
    places = [
        {"kind": "local", "path": str(tmp_path / "nowhere")},
        {"kind": "url", "base": f"{server.url}/none"},
        {"kind": "url", "base": f"{server.url}/wrong/"},
        {"kind": "url", "base": f"{server.url}/models/"},
    ]
    registry.add("own", {"model.onnx": DATA}, *places)
    lines: list[str] = []
    assert cache.get("own", say=lines.append).read_bytes() == DATA
    failed = [line for line in lines if line.startswith("Not got.")]
    assert failed[0] == f"Not got. There is no {tmp_path}/nowhere."
    assert "answered 404 Not Found" in failed[1]
    assert "with the SHA-256" in failed[2]


def test_when_no_place_gives_it_each_says_why(registry: OwnRegistry, server: FileServer, tmp_path: Path) -> None:
    places = [{"kind": "local", "path": str(tmp_path / "nowhere")}, {"kind": "url", "base": f"{server.url}/none"}]
    registry.add("own", {"model.onnx": DATA}, *places)
    with pytest.raises(WeightsError, match=r"There is no .*nowhere.*none/model\.onnx answered 404"):
        cache.get("own")


def test_several_files_are_here_together_or_not_at_all(registry: OwnRegistry, server: FileServer) -> None:
    registry.add("two", {"a.bin": DATA, "b.bin": b"b"}, {"kind": "url", "base": f"{server.url}/models"})
    server.put("/models/a.bin", DATA)
    with pytest.raises(WeightsError, match="404"):
        cache.get("two")
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("two")
    server.put("/models/b.bin", b"b")
    assert sorted(path.name for path in cache.get("two").iterdir()) == ["a.bin", "b.bin"]
    assert len(server.bodies("/models/a.bin")) == 1, "the file that had arrived is not fetched again"


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_offline_opens_no_connection(server: FileServer, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("VERIGLOT_OFFLINE", value)
    with pytest.raises(WeightsError, match="not asked, as VERIGLOT_OFFLINE is set") as caught:
        cache.get("own")
    assert caught.value.remedy.startswith("Unset VERIGLOT_OFFLINE")
    assert server.asked == []


@pytest.mark.parametrize("value", ["", "0", "false", "off"])
def test_offline_can_be_said_no_to(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("VERIGLOT_OFFLINE", value)
    assert cache.get("own").read_bytes() == DATA
