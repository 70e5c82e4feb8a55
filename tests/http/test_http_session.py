"""A session against a server that misbehaves: what is tried again, how long is waited, and what is said in the end."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from misbehaving import Arrival, Faults, FaultyServer

from veriglot.errors import UsageError
from veriglot.http.session import HttpError, Session, _retry_after


class Fixed(FaultyServer):
    """Gives one status and content, always."""

    def __init__(self, status: int, content: Any, **options: Any) -> None:
        super().__init__(**options)
        self.fixed = (status, content)

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        return self.fixed


def session(server: FaultyServer, **options: Any) -> Session:
    return Session(server.base_url, **{"timeout": 5.0, "backoff": 0.01, **options})


def test_an_answer_comes_back_whole() -> None:
    with FaultyServer() as server, session(server, headers={"X-Who": "test"}, user_agent="tester/1") as http:
        answer = http.get("a/b", {"q": "灯 塔", "none": None, "n": 3})
        assert answer.status == 200
        assert answer.json() == {"path": "/a/b", "query": {"q": "灯 塔", "n": "3"}, "body": None}
        assert http.post("/c", {"text": "Höhe\n"}).json()["body"] == {"text": "Höhe\n"}
    assert server.arrivals[0].headers["x-who"] == "test"
    assert server.arrivals[0].headers["user-agent"] == "tester/1"
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("fault", ["busy", "error", "cut", "broken"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_every_fault_passes(fault: str, idempotent: bool) -> None:
    faults = Faults(**{fault: 1.0}, in_a_row=3)
    with FaultyServer(faults, idempotent=idempotent) as server, session(server) as http:
        answer = http.post("x", {"n": 1}, headers={"Idempotency-Key": "1"})
    assert answer.json()["body"] == {"n": 1}
    assert server.faults_seen == {fault: 3, "": 1}
    assert list(server.paid.values()) == [1]


def test_a_slow_server_runs_into_the_time_out_and_is_asked_again() -> None:
    faults = Faults(slow=1.0, in_a_row=1, slow_seconds=1.0)
    with FaultyServer(faults) as server, session(server, timeout=0.2) as http:
        assert http.get("x").status == 200
    assert server.faults_seen == {"slow": 1, "": 1}


def test_a_server_that_drips_runs_into_the_time_out() -> None:
    """Each byte comes in time, the whole never does."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            start = time.monotonic()
            with (
                Session(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.4, retries=0) as http,
                pytest.raises(HttpError, match=r"within 0\.4 s") as caught,
            ):
                http.get()
            assert time.monotonic() - start < 2.0
        finally:
            stop.set()
            thread.join()
    assert caught.value.trouble == "timeout"
    assert caught.value.retryable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])
def test_what_cannot_pass_is_not_tried_again(status: int) -> None:
    with Fixed(status, {"error": "no"}) as server, session(server) as http, pytest.raises(HttpError) as caught:
        http.get("x")
    assert sum(server.received.values()) == 1
    assert (caught.value.status, caught.value.retryable, caught.value.attempts) == (status, False, 1)
    assert str(status) in str(caught.value)
    assert caught.value.body == '{"error": "no"}'


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_as_often_as_said(status: int) -> None:
    with Fixed(status, b"sorry") as server, session(server, retries=2) as http, pytest.raises(HttpError) as caught:
        http.get("x")
    assert sum(server.received.values()) == 3
    assert (caught.value.status, caught.value.retryable, caught.value.attempts) == (status, True, 3)
    assert "(3 attempts)" in str(caught.value)


def test_half_an_answer_is_none() -> None:
    with Fixed(200, b'{"a": [1, 2') as server, session(server, retries=1) as http:
        with pytest.raises(HttpError, match="whole JSON") as caught:
            http.get("x")
        assert caught.value.trouble == "json"


def test_where_nobody_listens_it_is_given_up_soon() -> None:
    """A study waited 150 seconds before it said that no model ran at the address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with Session(f"http://127.0.0.1:{port}", retries=6, backoff=0.01) as http, pytest.raises(HttpError) as caught:
        http.get("x")
    assert (caught.value.trouble, caught.value.status, caught.value.attempts) == ("host", None, 3)
    assert "running" in caught.value.remedy


def test_a_name_that_nobody_knows_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    session = Session("http://nowhere.invalid", retries=8, backoff=0.001, remedy="Read a file instead.")
    with session, pytest.raises(HttpError, match=r"not known \(3 attempts\)") as raised:
        session.get()
    assert (raised.value.trouble, raised.value.remedy) == ("host", "Read a file instead.")


def test_retry_after_is_waited_for() -> None:
    faults = Faults(busy=1.0, in_a_row=1, retry_after="0.4")
    with FaultyServer(faults) as server, session(server, backoff=0.0) as http:
        start = time.monotonic()
        http.get("x")
    assert 0.4 <= time.monotonic() - start < 3.0


def test_all_threads_wait_where_one_was_told_to() -> None:
    faults = Faults(busy=1.0, in_a_row=1, retry_after="0.5")
    with FaultyServer(faults) as server, session(server) as http, ThreadPoolExecutor(1) as pool:
        told = pool.submit(http.get, "x")
        while not server.faults_seen["busy"]:
            time.sleep(0.005)
        time.sleep(0.1)  # for the answer to arrive
        server.faults = Faults()
        start = time.monotonic()
        http.get("y")
        assert time.monotonic() - start > 0.3
        assert told.result().status == 200


def test_a_wait_that_is_too_long_is_said_at_once() -> None:
    faults = Faults(busy=1.0, retry_after="3600")
    with FaultyServer(faults) as server, session(server) as http, pytest.raises(HttpError, match="3600 s") as caught:
        http.get("x")
    assert sum(server.received.values()) == 1
    assert caught.value.retry_after == 3600
    assert caught.value.retryable


def test_retry_after_as_a_date() -> None:
    now = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=90), usegmt=True)
    assert _retry_after({"retry-after": later}, now) == 90
    assert _retry_after({"retry-after": later, "date": format_datetime(now, usegmt=True)}) == 90
    assert _retry_after({"retry-after": format_datetime(now - timedelta(days=1), usegmt=True)}, now) == 0
    assert _retry_after({"retry-after": "7"}) == 7
    assert _retry_after({"retry-after": "-7"}) == 0
    for nonsense in ("soon", "", "nan", "inf", "1.5.2026"):
        assert _retry_after({"retry-after": nonsense}) is None
    assert _retry_after({}) is None


def test_a_rate_is_kept_over_all_threads() -> None:
    with FaultyServer() as server, session(server, rate=20.0) as http, ThreadPoolExecutor(8) as pool:
        start = time.monotonic()
        list(pool.map(http.get, [str(n) for n in range(11)]))
        taken = time.monotonic() - start
    assert taken >= 10 / 20.0
    assert sum(server.received.values()) == 11


def test_many_threads_get_their_own_answers() -> None:
    with FaultyServer(Faults.many(5)) as server, session(server) as http, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: http.post("x", {"n": n}).json()["body"]["n"], range(100)))
    assert answers == list(range(100))
    assert server.paid_most() == 1
    assert server.most_at_once > 1


def test_closing_ends_the_waiting() -> None:
    with FaultyServer(Faults(busy=1.0, retry_after="60", in_a_row=99)) as server, ThreadPoolExecutor(1) as pool:
        http = session(server)
        waiting = pool.submit(http.get, "x")
        while not server.faults_seen["busy"]:
            time.sleep(0.005)
        start = time.monotonic()
        http.close()
        with pytest.raises(HttpError):
            waiting.result(timeout=5)
        assert time.monotonic() - start < 3


def test_a_redirection_is_followed_without_keys_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Moved(FaultyServer):
        target = ""

        def serve(self, arrival: Arrival, connection: Any) -> None:
            connection.answer(307, {}, {"Location": self.target})

    monkeypatch.setenv("TEST_KEY", "sk-0123456789abcdef")
    with FaultyServer() as server, Moved() as moved:
        moved.target = f"{server.base_url}/there"
        with session(moved) as http:
            assert http.get("x").json()["path"] == "/there"
        before = len(server.arrivals)
        with session(moved, secrets={"X-Key": "TEST_KEY"}) as http, pytest.raises(HttpError, match="307"):
            http.get("x")
        assert len(server.arrivals) == before


@pytest.mark.parametrize(
    "address", ["127.0.0.1:80", "ftp://127.0.0.1", "", "http://", "http://h:99999/", "http://127.0.0.1/?key=abc"]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UsageError, match="address") as caught:
        Session(address)
    assert "abc" not in str(caught.value)


def test_numbers_that_make_no_sense() -> None:
    for options in ({"timeout": 0.0}, {"rate": 0.0}, {"rate": -1.0}, {"retries": -1}):
        with pytest.raises(UsageError):
            Session("http://127.0.0.1:1", **options)
