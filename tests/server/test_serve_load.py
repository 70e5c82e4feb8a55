"""What the server does when there is too much to do, when its processes die, and when it is told to stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from loopback import BRIDGE, WAYWARD, serving

from veriglot.server.app import DetectionServerSettings
from veriglot.server.batches import Limits

if TYPE_CHECKING:
    from pathlib import Path


COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())", "serve"]


def row(what: str, **more: Any) -> dict[str, Any]:
    return {"response": what, "evidence": "x", **more}


def until(what: Any) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_one_call_too_many_is_told_when_to_try_again() -> None:
    with serving(WAYWARD, limits=Limits(queue=2, streams=1)) as served, ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(served.detect, row("sleep 0.4")) for _ in range(2)]
        until(lambda: served.batcher.accepted["queue"] == 2)
        refused = served.detect(row("fine"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "busy")
        assert int(refused.headers["retry-after"]) >= 1
        assert "Try again in" in refused.json()["error"]["remedy"]
        many = pool.submit(served.detect, [row("fine")] * 3)  # has a limit of its own
        until(lambda: served.batcher.accepted["streams"] == 1)
        assert served.lines(json.dumps(row("fine"))).status_code == 429
        assert [answer.result().status_code for answer in (*waiting, many)] == [200] * 3
        assert served.detect(row("fine")).status_code == 200
        assert 'status="429"} 2' in served.client.get("/metrics").text


def test_requests_that_fill_the_memory_are_refused() -> None:
    with serving(WAYWARD, limits=Limits(memory=1_000_000)) as served, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.detect, row("sleep 0.4", padding="x" * 600_000))
        until(lambda: served.batcher.bytes > 500_000)
        refused = served.detect(row("fine", padding="x" * 600_000))
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "memory")
        assert waiting.result().status_code == 200
        assert served.batcher.bytes == 0


def test_a_long_call_holds_up_no_short_one() -> None:
    with serving(WAYWARD) as served, ThreadPoolExecutor(1) as pool:
        long = pool.submit(served.detect, [row("sleep 0.02")] * 100)
        until(lambda: served.batcher.waiting > 50)
        assert served.detect(row("fine")).status_code == 200
        assert served.batcher.waiting > 0
        assert len(long.result().json()) == 100


@pytest.mark.slow
@pytest.mark.parametrize("media", ["application/json", "application/jsonl"])
def test_rows_that_nobody_waits_for_are_not_judged(media: str) -> None:
    rows = [json.dumps(row("sleep 0.1"))] * 100
    body = (f"[{','.join(rows)}]" if media == "application/json" else "\n".join(rows)).encode()
    head = (
        f"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with serving(WAYWARD, limits=Limits(batch_size=1)) as served:
        with socket.create_connection(served.address) as left:
            left.sendall(head.encode() + body)
            until(lambda: len(served.batcher.working) == 1)
        began = time.monotonic()
        until(lambda: served.batcher.accepted["streams"] == 0)
        assert served.detect(row("fine")).status_code == 200
        assert time.monotonic() - began < 5
        until(lambda: served.batcher.waiting == 0)


@pytest.mark.slow
def test_a_killed_process_loses_nothing() -> None:
    """Each call is answered while processes are killed under them, and the service goes on."""
    with serving(WAYWARD, limits=Limits(queue=64), processes=2) as served, ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(served.detect, row("sleep 0.05", id=str(number))) for number in range(60)]
        for _ in range(2):
            until(lambda: served.batcher.working)
            held = set(served.batcher.working)
            victim = served.batcher.service._workers[0]
            os.kill(victim.process.pid, signal.SIGKILL)
            until(lambda victim=victim: victim not in served.batcher.service._workers)  # or the dead is killed again
            until(lambda held=held: held.isdisjoint(served.batcher.working))  # a row that is hit twice is given up
        results = [answer.result() for answer in answers]
        assert [result.status_code for result in results] == [200] * 60
        assert [result.json()["id"] for result in results] == [str(number) for number in range(60)]
        assert {result.json()["verdict"] for result in results} == {"supported"}
        assert served.batcher.service.deaths >= 2


@pytest.mark.slow
def test_a_row_that_kills_is_not_checked_and_its_neighbours_are() -> None:
    with serving(WAYWARD) as served:
        answers = served.detect([row("fine"), row("die"), row("raise told"), row("fine")]).json()
        assert [answer["verdict"] for answer in answers] == ["supported", "not_checked", "not_checked", "supported"]
        assert "died twice" in answers[1]["reason"]
        assert served.client.get("/ready").status_code == 200


@pytest.mark.slow
def test_processes_that_cannot_be_kept_alive_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign = tmp_path / "die"
    monkeypatch.setenv("WAYWARD_DIES_AT_START", str(sign))
    with serving(WAYWARD) as served, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.detect, row("sleep 9"))
        until(lambda: len(served.batcher.working) == 1)
        sign.touch()
        os.kill(served.workers()[0], signal.SIGKILL)
        answer = waiting.result()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
        assert answer.headers["retry-after"]
        until(lambda: served.server.should_exit)
    assert "die while they load" in str(served.batcher.failure)


def test_told_to_stop_it_answers_what_it_accepted() -> None:
    with serving(WAYWARD) as served, ThreadPoolExecutor(2) as pool:
        one = pool.submit(served.detect, row("sleep 0.5"))
        many = pool.submit(served.detect, [row("sleep 0.1")] * 5)
        until(lambda: served.batcher.accepted == {"queue": 1, "streams": 1})
        served.server.should_exit = True
        assert one.result().status_code == 200
        assert len(many.result().json()) == 5
        with pytest.raises(httpx2.TransportError):
            until(lambda: served.detect(row("fine")).status_code != 200)


def test_a_row_that_takes_for_ever_does_not_hold_up_the_end() -> None:
    began = time.monotonic()
    with (
        serving(WAYWARD, settings=DetectionServerSettings(shutdown_seconds=1)) as served,
        pytest.raises(httpx2.ReadTimeout),
    ):
        served.detect(row("sleep 50"), timeout=0.3)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_what_takes_longer_than_the_stop_is_told_so() -> None:
    with (
        serving(WAYWARD, settings=DetectionServerSettings(shutdown_seconds=1)) as served,
        ThreadPoolExecutor(2) as pool,
    ):
        one = pool.submit(served.detect, row("sleep 3"))
        until(lambda: len(served.batcher.working) == 1)
        served.server.should_exit = True
        answer = one.result()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")


# The command.


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.slow
def test_the_command_serves_and_leaves_when_told(tmp_path: Path) -> None:
    port, config = _free_port(), tmp_path / "serve.toml"
    keys = tmp_path / "keys.txt"
    keys.write_text("# of the team\nkey-of-twenty-letters\n", "utf-8")
    keys.chmod(0o644)
    config.write_text(f'processes = 1\nkeys = "{keys}"\nqueue = 7\nmax_body = 0.01\n', "utf-8")
    command = [*COMMAND, "-p", str(port), "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            for _ in range(600):
                try:
                    assert client.get("/ready").status_code == 200
                    break
                except httpx2.TransportError:
                    assert server.poll() is None
                    time.sleep(0.1)
            assert client.post("/v1/detect", json=BRIDGE).status_code == 401
            client.headers["authorization"] = "Bearer key-of-twenty-letters"
            assert client.post("/v1/detect", json=BRIDGE).json()["verdict"] == "unsupported"
            assert client.post("/v1/detect", json={**BRIDGE, "x": "y" * 20_000}).status_code == 413
        server.send_signal(signal.SIGTERM)
        _, told = server.communicate(timeout=60)
    assert server.returncode == 0, told
    assert f"Serving auto at http://127.0.0.1:{port} (Ctrl+C stops it)." in told
    assert "chmod 600" in told
    assert "key-of-twenty" not in told
    assert "1879" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--keys", "nowhere.txt"], "nowhere.txt: there is no such file or folder\n  Check the path."),
        (["--host", "nowhere.invalid"], ".\n  Choose another with --port, or give --host an address of this machine"),
        (["--detectors", ","], "There is no name in --detectors."),
        (["--detectors", "magic"], "no detector named 'magic'"),
        (["--processes", "1", "--port", "{taken}"], "another program listens there.\n  Choose another with --port"),
    ],
)
def test_what_cannot_be_served_is_said(options: list[str], told: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        options = [option.format(taken=taken.getsockname()[1]) for option in options]
        done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode in {1, 2}
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "Errno" not in done.stderr
    assert "ERROR:" not in done.stderr, "the server beneath says nothing itself"


def test_short_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from veriglot.cli.serve import _keys
    from veriglot.errors import UsageError

    monkeypatch.setenv("VERIGLOT_API_KEYS", "short")
    with pytest.raises(UsageError, match="at least 16") as told:
        _keys(None)
    assert "short" not in str(told.value)
    monkeypatch.setenv("VERIGLOT_API_KEYS", " key-of-twenty-letters , another-key-of-length")
    assert _keys(None) == ("key-of-twenty-letters", "another-key-of-length")
    assert "VERIGLOT_API_KEYS" not in os.environ  # processes that are started do not inherit it


def test_keys_that_were_meant_and_are_none_open_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from veriglot.cli.serve import _keys
    from veriglot.errors import UsageError

    for nothing in (",", " ", "\n"):
        monkeypatch.setenv("VERIGLOT_API_KEYS", nothing)
        with pytest.raises(UsageError, match="no key in VERIGLOT_API_KEYS"):
            _keys(None)
    monkeypatch.setenv("VERIGLOT_API_KEYS", "")  # what a compose file passes on where nobody set any
    assert _keys(None) == ()
    keys = tmp_path / "keys.txt"
    keys.write_bytes(b"\xef\xbb\xbfkey-of-twenty-letters\r\n")  # as an editor on Windows saves it
    keys.chmod(0o600)
    assert _keys(keys) == ("key-of-twenty-letters",)
