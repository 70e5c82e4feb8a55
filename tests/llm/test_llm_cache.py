"""No finished call is paid for twice: over threads, processes and kills; and no call is taken for another."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from misbehaving import Faults, ModelServer

from veriglot.errors import VeriglotError
from veriglot.llm import client as llm
from veriglot.llm.client import Reply, Token
from veriglot.llm.registry import Cached, spent_in
from veriglot.storage.checkpoint import Usage

HERE = Path(__file__).parent
ASKER = """
import sys
from veriglot.llm import client as llm
from veriglot.llm.registry import connect
base_url, folder, first, last, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
client = connect("openai", base_url=base_url, identity="the server", cache=folder, timeout=20, backoff=0.02)
requests = (llm.Request("m", (llm.Message("user", f"Who built tower {n}?"),), seed=1) for n in range(first, last))
for answer in llm.ask_all(client, requests, jobs=jobs):
    print(answer.reply.text, flush=True)
client.close()
"""


class Counting:
    """A client that counts how often it was asked, and takes its time."""

    name = "counting"

    def __init__(self, signature: str = "client:counting", delay: float = 0.0, fail: int = 0) -> None:
        self.signature = signature
        self.asked = 0
        self.fail = fail
        self._delay = delay
        self._lock = threading.Lock()

    def ask(self, request: llm.Request) -> Reply:
        with self._lock:
            self.asked += 1
            fail = self.asked <= self.fail
        time.sleep(self._delay)
        if fail:
            raise llm.ModelError("not today", retryable=True)
        return Reply(f"{self.signature}: {request.text}", "stop", 3, 4, (Token("a", -0.5),))

    def close(self) -> None:
        pass


def ask(text: str, **parts: Any) -> llm.Request:
    return llm.Request("m", (llm.Message("user", text),), **parts)


def run(server: ModelServer, folder: Path, first: int, last: int, jobs: int = 4) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", ASKER, server.base_url, str(folder), str(first), str(last), str(jobs)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_a_finished_call_is_not_made_again(tmp_path: Path) -> None:
    client = Counting()
    first = Cached(client, tmp_path).ask(ask("x"))
    again = Cached(client, tmp_path)
    assert again.ask(ask("x")) == first
    assert client.asked == 1
    assert spent_in(tmp_path) == Usage(1, 3, 4)


def test_failures_are_not_kept(tmp_path: Path) -> None:
    cached = Cached(Counting(fail=1), tmp_path)
    with pytest.raises(llm.ModelError):
        cached.ask(ask("x"))
    assert cached.ask(ask("x")).finish == "stop"


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2}, {"seed": None}, {"logprobs": True}, {"schema": {"type": "object"}},
        {"settings": llm.Settings(max_tokens=1)}, {"settings": llm.Settings(temperature=0.5)},
        {"settings": llm.Settings(stop=("a",))}, {"settings": llm.Settings(extra={"a": 1})}, {"model": "n"},
        {"messages": (llm.Message("system", "x"),)}, {"messages": (llm.Message("user", "x "),)},
        {"messages": (llm.Message("user", "x"), llm.Message("user", ""))}, {"messages": (), "prompt": "x"},
    ],
)  # fmt: skip
def test_another_call_is_no_hit(tmp_path: Path, other: dict[str, Any]) -> None:
    client = Counting()
    cached = Cached(client, tmp_path)
    cached.ask(ask("x", seed=1))
    cached.ask(msgspec.structs.replace(ask("x", seed=1), **other))
    assert client.asked == 2


def test_another_client_is_no_hit(tmp_path: Path) -> None:
    for signature in ("client:counting", "client:counting|revision:2"):
        assert Cached(Counting(signature), tmp_path).ask(ask("x")).text.startswith(f"{signature}: ")


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=5)), min_size=1, max_size=3), st.data()
)
def test_keys_are_the_same_for_equal_requests_only(turns: list[tuple[Any, str]], data: st.DataObject) -> None:
    def request(content: list[tuple[Any, str]]) -> llm.Request:
        return llm.Request("m", tuple(llm.Message(*turn) for turn in content))

    other = data.draw(
        st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=5)), min_size=1, max_size=3)
    )
    same = request(turns).key("s") == request(other).key("s")
    assert same == (turns == other)


def test_threads_that_ask_the_same_at_once_ask_once(tmp_path: Path) -> None:
    client = Counting(delay=0.2)
    cached = [Cached(client, tmp_path) for _ in range(3)]
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda n: cached[n % 3].ask(ask(f"x{n % 2}")), range(12)))
    assert client.asked == 2
    assert len({reply.text for reply in replies}) == 2


def test_a_failure_lets_the_next_in_line_ask(tmp_path: Path) -> None:
    client = Counting(delay=0.1, fail=2)
    cached = Cached(client, tmp_path)
    with ThreadPoolExecutor(5) as pool:
        outcomes = [future.exception() for future in [pool.submit(cached.ask, ask("x")) for _ in range(5)]]
    assert sum(outcome is not None for outcome in outcomes) == 2
    assert client.asked == 3


def test_processes_that_ask_the_same_at_once_ask_once(tmp_path: Path) -> None:
    with ModelServer(Faults(slow=1.0, slow_seconds=0.05)) as server:
        processes = [run(server, tmp_path, 0, 40) for _ in range(3)]
        outputs = [process.communicate(timeout=60)[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0]
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(outputs[0].splitlines()) == 40
    assert len(server.paid) == 40
    assert sum(server.received.values()) == 40


def test_killed_at_any_moment_nothing_is_paid_twice(tmp_path: Path) -> None:
    with ModelServer() as quiet:
        expected = run(quiet, tmp_path / "quiet", 0, 60).communicate(timeout=60)[0]
    faults = Faults(seed=4, busy=0.1, error=0.1, cut=0.1, slow=0.4, broken=0.1, slow_seconds=0.05)
    with ModelServer(faults, idempotent=True) as server:
        kills = 0
        while kills < 6:
            process = run(server, tmp_path / "killed", 0, 60)
            before = len(server.arrivals)
            while len(server.arrivals) < before + 4 + 3 * kills and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            kills += 1
        assert run(server, tmp_path / "killed", 0, 60).communicate(timeout=60)[0] == expected
        received = sum(server.received.values())
        assert run(server, tmp_path / "killed", 0, 60).communicate(timeout=60)[0] == expected
        assert sum(server.received.values()) == received, "the second time, everything is in the cache"
    assert len(server.paid) == 60
    assert server.paid_most() == 1


def test_a_killed_holder_lets_go_of_its_claim(tmp_path: Path) -> None:
    with ModelServer(Faults(slow=1.0, slow_seconds=1.0, in_a_row=1)) as server:
        holder = run(server, tmp_path, 0, 1)
        while not server.arrivals:
            time.sleep(0.01)
        waiter = run(server, tmp_path, 0, 1)
        time.sleep(0.3)
        os.kill(holder.pid, signal.SIGKILL)
        assert waiter.communicate(timeout=30)[0].strip()
        holder.communicate()


def test_a_folder_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(VeriglotError, match="cannot be used"):
        Cached(Counting(), tmp_path / "file")
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "calls.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(VeriglotError, match="not a database"):
        Cached(Counting(), tmp_path / "noise")


def test_a_folder_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    Cached(Counting(), tmp_path).close()
    with sqlite3.connect(tmp_path / "calls.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(VeriglotError, match="version 99"):
        Cached(Counting(), tmp_path)


def test_a_damaged_reply_is_no_reply(tmp_path: Path) -> None:
    cached = Cached(Counting(), tmp_path)
    cached.ask(ask("x"))
    with sqlite3.connect(tmp_path / "calls.sqlite") as database:
        database.execute("UPDATE replies SET reply = x'00'")
    database.close()
    with pytest.raises(VeriglotError, match="cannot be read"):
        cached.ask(ask("x"))
