"""`veriglot studio serve` as people call it: it says where it is, answers, and leaves when it is told to."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import httpx2
import pytest
from studio_server import layer, running, write_project

from veriglot.studio.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())", "studio", "serve"]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_it_serves_and_leaves_when_told(tmp_path: Path) -> None:
    projects = [str(write_project(tmp_path, slug, name=slug)) for slug in ("one", "two")]
    port = _free_port()
    with subprocess.Popen([*COMMAND, *projects, "-p", str(port)], stderr=subprocess.PIPE, text=True) as server:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            for _ in range(600):
                try:
                    assert client.get("/api/health").json()["status"] == "ok"
                    break
                except httpx2.TransportError:
                    assert server.poll() is None
                    time.sleep(0.1)
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    assert server.returncode == 0, said
    assert said.splitlines()[0] == f"Serving one, two at http://127.0.0.1:{port} (Ctrl+C stops it)."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--public-url", "studio.example.org"], "not the address of a server"),
        (["--public-url", "https://a:b@example.org"], "holds a user name"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path: Path, options: list[str], said: str) -> None:
    path = str(write_project(tmp_path, "one"))
    done = subprocess.run([*COMMAND, path, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_two_projects_of_one_slug_are_refused(tmp_path: Path) -> None:
    path = str(write_project(tmp_path, "one"))
    done = subprocess.run([*COMMAND, path, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "Two projects have the slug 'one'" in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    path = str(write_project(tmp_path, "one"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, path, "-p", port], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert (
        f"cannot listen at 127.0.0.1:{port}: another program listens there.\n  Choose another with --port"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert "ERROR:" not in done.stderr, "the server beneath says nothing itself"


def test_it_stops_once_calls_in_work_are_done(tmp_path: Path) -> None:
    """A save that waits for the database while the server is told to stop: answered, and on disk."""
    database = str(tmp_path / "studio.sqlite")
    said: list[int] = []
    with running(tmp_path, database, ("one",)) as studio:
        one = studio.visitor()
        number = one.next()["id"]
        here = studio.studio()
        with here.store.writing():  # SQLite has one writer: the save waits
            thread = threading.Thread(target=lambda: said.append(one.send(number, layer=layer()).status_code))
            thread.start()
            time.sleep(0.5)
            studio.server.should_exit = True
            time.sleep(0.5)
            assert not said
        thread.join(30)
    assert said == [200]
    store = open_store(database)
    with store.reading() as tx:
        assert tx.assignment(number).version == 1
    store.close()


def test_a_database_in_no_folder_is_said(tmp_path: Path) -> None:
    command = [*COMMAND[:-1], "--database", "/nowhere/at/all.sqlite", "serve", str(write_project(tmp_path, "one"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode in {1, 2}
    assert "There is no folder" in done.stderr
