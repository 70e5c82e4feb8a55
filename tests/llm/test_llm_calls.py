"""Many requests: order, laziness, failures as answers, and the errors that end it; limits that are kept."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from misbehaving import Faults, ModelServer

from veriglot.errors import UsageError
from veriglot.llm import client as llm
from veriglot.llm.client import ModelError, Reply
from veriglot.llm.registry import Cached, Limited, Limits, connect, spent_in
from veriglot.storage.checkpoint import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from veriglot.llm.client import Answer


class Calls:
    """A client of one function, which knows how many calls are under way."""

    name = "calls"
    signature = "client:calls"

    def __init__(self, reply: Callable[[int], Reply]) -> None:
        self.asked: list[int] = []
        self.most = 0
        self._now = 0
        self._reply = reply
        self._lock = threading.Lock()

    def ask(self, request: llm.Request) -> Reply:
        number = int(request.prompt or 0)
        with self._lock:
            self.asked.append(number)
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return self._reply(number)
        finally:
            with self._lock:
                self._now -= 1

    def close(self) -> None:
        pass


def numbers(count: int, max_tokens: int | None = None) -> list[llm.Request]:
    return [llm.Request("m", prompt=str(n), settings=llm.Settings(max_tokens=max_tokens)) for n in range(count)]


def plain(number: int) -> Reply:
    return Reply(str(number), tokens_in=1, tokens_out=9)


def backwards(number: int) -> Reply:
    time.sleep(0.02 * (7 - number % 8))
    return plain(number)


def test_answers_come_in_order_several_at_a_time() -> None:
    client = Calls(backwards)
    answers = list(llm.ask_all(client, numbers(24), jobs=8))
    assert [answer.reply.text for answer in answers if answer.reply] == [str(n) for n in range(24)]
    assert [answer.request for answer in answers] == numbers(24)
    assert client.most == 8


def test_requests_are_read_as_they_are_needed() -> None:
    taken = []

    def endless() -> Iterator[llm.Request]:
        n = 0
        while True:
            taken.append(n)
            yield llm.Request("m", prompt=str(n))
            n += 1

    answers = llm.ask_all(Calls(plain), endless(), jobs=2)
    assert [next(answers).request.prompt for _ in range(100)] == [str(n) for n in range(100)]
    assert len(taken) <= 108
    answers.close()  # type: ignore[attr-defined]


def test_a_failure_is_an_answer_and_the_rest_goes_on() -> None:
    def reply(number: int) -> Reply:
        if number % 5 == 3:
            raise llm.ModelError(f"no {number}")
        return plain(number)

    answers = list(llm.ask_all(Calls(reply), numbers(50)))
    assert [str(answer.error) for answer in answers if answer.error] == [f"no {n}" for n in range(3, 50, 5)]
    assert all((answer.reply is None) == (answer.error is not None) for answer in answers)


def test_a_fatal_error_ends_it_after_the_answers_before_it() -> None:
    def reply(number: int) -> Reply:
        if number == 20:
            raise llm.ModelError("the key is refused", fatal=True)
        return plain(number)

    client = Calls(reply)
    with pytest.raises(llm.ModelError, match="the key"):
        list(llm.ask_all(client, numbers(500), jobs=2))
    assert len(client.asked) < 40


def test_answers_before_a_fatal_error_are_given_out() -> None:
    def reply(number: int) -> Reply:
        if number == 5:
            raise llm.ModelError("over", fatal=True)
        return plain(number)

    answers = llm.ask_all(Calls(reply), numbers(20), jobs=4)
    assert [next(answers).request.prompt for _ in range(5)] == ["0", "1", "2", "3", "4"]
    with pytest.raises(llm.ModelError, match="over"):
        next(answers)


def test_a_server_that_is_down_ends_it_after_some() -> None:
    def reply(number: int) -> Reply:
        if number >= 7:
            raise llm.ModelError("nobody there", retryable=True)
        return plain(number)

    answers, client = [], Calls(reply)
    with pytest.raises(llm.ModelError, match="10 requests in a row") as caught:
        answers.extend(llm.ask_all(client, numbers(1000), jobs=2))
    assert len(answers) == 7, "those of the outage are held back, so that a second run asks them again"
    assert caught.value.retryable
    assert len(client.asked) < 40


def test_failures_that_pass_are_given_out_in_their_place() -> None:
    def reply(number: int) -> Reply:
        if number % 20 < 9 or number == 47:
            raise llm.ModelError("busy", retryable=True)
        if number % 20 == 10:
            raise llm.ModelError("too long")
        return plain(number)

    answers = list(llm.ask_all(Calls(reply), numbers(48), jobs=3))
    assert [answer.request.prompt for answer in answers] == [str(n) for n in range(48)]
    busy = [n for n, answer in enumerate(answers) if answer.error is not None and answer.error.retryable]
    assert busy == [n for n in range(48) if n % 20 < 9 or n == 47]


def test_stopping_early_waits_for_calls_under_way_and_keeps_them(tmp_path: Path) -> None:
    client = Calls(backwards)
    cached = Cached(client, tmp_path)
    answers = llm.ask_all(cached, numbers(100), jobs=4)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert 4 <= len(client.asked) < 30
    assert spent_in(tmp_path).calls == len(client.asked)


def test_no_jobs_are_refused() -> None:
    client = Calls(plain)
    with pytest.raises(UsageError):
        list(llm.ask_all(client, numbers(1), jobs=0))
    assert not client.asked


def test_the_limit_of_calls_is_kept_exactly() -> None:
    client = Calls(backwards)
    limits = Limits(calls=13)
    answers = llm.ask_all(Limited(client, limits), numbers(100), jobs=8)
    got: list[Answer] = []
    with pytest.raises(ModelError, match="13 calls"):
        got.extend(answers)
    assert len(client.asked) == 13
    assert limits.spent == Usage(13, 13, 117)
    assert len(got) == 13


def test_the_limit_of_tokens_is_not_passed() -> None:
    client = Calls(backwards)
    limits = Limits(tokens=200)
    with pytest.raises(ModelError, match="200 tokens"):
        list(llm.ask_all(Limited(client, limits), numbers(100, max_tokens=20), jobs=8))
    assert limits.spent.tokens <= 200
    # One call sets 21 aside and takes 10: the last one starts where 21 are left.
    assert limits.spent.calls == 18


def test_failures_cost_nothing_and_kept_calls_too(tmp_path: Path) -> None:
    with ModelServer(Faults(error=0.5, seed=2)) as server:
        requests = numbers(20)
        cached = connect("openai", base_url=server.base_url, cache=tmp_path, limits=Limits(calls=20), backoff=0.01)
        assert len(list(llm.ask_all(cached, requests))) == 20
        none = connect("openai", base_url=server.base_url, cache=tmp_path, limits=Limits(calls=0))
        assert len(list(llm.ask_all(none, requests))) == 20
        with pytest.raises(ModelError, match="The limit of"):
            none.ask(llm.Request("m", prompt="new"))
        cached.close()
        none.close()


def test_a_limit_goes_on_where_a_run_stopped(tmp_path: Path) -> None:
    client = Calls(plain)
    with pytest.raises(ModelError, match="The limit of"):
        list(llm.ask_all(Cached(Limited(client, Limits(calls=6)), tmp_path), numbers(20)))
    spent = spent_in(tmp_path)
    assert spent.calls == 6
    again = Cached(Limited(client, Limits(calls=10, spent=spent)), tmp_path)
    with pytest.raises(ModelError, match="The limit of"):
        list(llm.ask_all(again, numbers(20)))
    assert len(client.asked) == len(set(client.asked)) == 10


def test_a_limit_below_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        Limits(calls=-1)


@pytest.mark.parametrize("where", ["waiting for an answer", "in the loop of the caller"])
def test_ctrl_c_ends_it_though_the_server_never_answers(where: str, tmp_path: Path) -> None:
    code = """
import sys, time
from veriglot.llm import client as llm
from veriglot.llm.registry import connect
client = connect("openai", base_url=sys.argv[1], cache=sys.argv[2], timeout=60)
requests = (llm.Request("m", prompt=str(n)) for n in range(100))
try:
    for answer in llm.ask_all(client, requests, jobs=4):
        print(answer.reply.text, flush=True)
        time.sleep(60 * (sys.argv[3] == "in the loop of the caller"))
except KeyboardInterrupt:
    sys.exit(130)
"""
    with ModelServer(Faults(slow=0.5, slow_seconds=60, in_a_row=99)) as server:
        command = [sys.executable, "-c", code, server.base_url, str(tmp_path), where]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not server.faults_seen["slow"]:
            time.sleep(0.01)
        if where == "in the loop of the caller":
            assert process.stdout.readline() == "0\n"
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert time.monotonic() - start < 15
