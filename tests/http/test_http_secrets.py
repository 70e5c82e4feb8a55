"""Keys come from the environment, go over the wire, and show nowhere else."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from misbehaving import Arrival, Faults, FaultyServer, ModelServer

from veriglot.errors import UsageError
from veriglot.http.session import HttpError, Secrets, Session, checked_address
from veriglot.llm import client as llm
from veriglot.llm.registry import connect

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-Geheim0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def everything_in(error: BaseException) -> str:
    """All that a traceback can show: the whole chain with the values of local variables, which some tools print."""
    seen, parts = set(), []
    queue: list[BaseException | None] = [error]
    while queue:
        one = queue.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        queue += [one.__cause__, one.__context__]
        parts += [str(one), repr(one), repr(vars(one))]
        parts += traceback.format_exception(one)
        for frame, _ in traceback.walk_tb(one.__traceback__):
            # The test's own frame holds the key on purpose.
            if frame.f_code.co_filename != __file__:
                parts += [
                    f"{value!r} {vars(value) if hasattr(value, '__dict__') else ''}"
                    for value in frame.f_locals.values()
                ]
    return "\n".join(parts)


@pytest.mark.parametrize("name", [KEY, "hf_geheim0123456789", "gsk_Geheim0123456789", "A" * 80])
def test_a_key_given_for_its_variable_is_not_shown(name: str) -> None:
    with pytest.raises(UsageError, match="not shown") as caught:
        Session("http://127.0.0.1:9", secrets={"Authorization": name})
    assert name not in f"{caught.value} {caught.value.remedy}"
    with pytest.raises(UsageError, match="API_KEY_THAT_IS_NOT_SET"):
        Session("http://127.0.0.1:9", secrets={"Authorization": "API_KEY_THAT_IS_NOT_SET"})


KEY_HEADERS = """
Authorization proxy-authorization Cookie api-key X-API-Key x-goog-api-key apikey X-Auth-Token Ocp-Apim-Subscription-Key
"""


@pytest.mark.parametrize("header", KEY_HEADERS.split())
def test_keys_among_the_open_headers_are_refused(header: str) -> None:
    with pytest.raises(UsageError, match="openly") as caught:
        connect("openai", base_url="http://127.0.0.1:9/v1", headers={header: KEY})
    assert KEY not in f"{caught.value} {caught.value.remedy}"


def test_other_headers_are_sent() -> None:
    given = {"x-title": "a study", "HTTP-Referer": "https://example.org", "openai-organization": "o", "x-keyboard": "k"}
    with FaultyServer() as server, Session(server.base_url, headers=given) as http:
        http.get("x")
    assert all(server.arrivals[0].headers[name.lower()] == value for name, value in given.items())


def test_the_key_arrives() -> None:
    with FaultyServer(key=KEY) as server:
        with Session(server.base_url, secrets={"Authorization": "TEST_KEY"}) as http:
            assert http.get("x").status == 200
        with Session(server.base_url, secrets={"api-key": "TEST_KEY"}) as http, pytest.raises(HttpError):
            http.get("x")
    assert server.arrivals[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.arrivals[1].headers["api-key"] == KEY


def test_a_scheme_in_the_variable_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "Basic dXNlcjpwYXNzd29yZA==")
    with FaultyServer() as server, Session(server.base_url, secrets={"Authorization": "TEST_KEY"}) as http:
        http.get("x")
    assert server.arrivals[0].headers["authorization"] == "Basic dXNlcjpwYXNzd29yZA=="


@pytest.mark.parametrize(
    "faults",
    [Faults(), Faults(error=1.0, in_a_row=99), Faults(cut=1.0, in_a_row=99), Faults(slow=1.0, slow_seconds=1.0)],
)
def test_no_error_and_no_log_shows_it(faults: Faults, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = FaultyServer(faults, key="another" if faults == Faults() else KEY)  # it echoes a key that is refused
    options: dict[str, Any] = {"retries": 2, "backoff": 0.01, "timeout": 0.2}
    with (
        server,
        Session(server.base_url, secrets={"Authorization": "TEST_KEY"}, **options) as http,
        pytest.raises(HttpError) as caught,
    ):
        http.post("x", {"n": 1})
    assert all(arrival.headers["authorization"] == f"Bearer {KEY}" for arrival in server.arrivals)
    shown = everything_in(caught.value)
    assert caught.value.message in shown
    assert KEY not in shown
    assert len(caplog.records) > 0
    assert KEY not in "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    if faults == Faults():
        assert "[secret]" in str(caught.value)


def test_no_representation_and_no_copy_shows_it() -> None:
    with Session("http://127.0.0.1:9", secrets={"Authorization": "TEST_KEY"}) as http:
        shown = [repr(http), str(http), repr(vars(http)), repr(vars(http._client)), repr(http._secrets)]
        shown.append(repr(Secrets({"Authorization": "TEST_KEY"})))
        assert not [text for text in shown if KEY in text]
        for take in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError, match="secrets are not written"):
                take(http._secrets)


def test_an_answer_that_echoes_it_is_blacked_out() -> None:
    class Echo(FaultyServer):
        def handle(self, arrival: Arrival) -> tuple[int, Any]:
            return 200, {"you sent": arrival.headers["authorization"]}

    with Echo() as server, Session(server.base_url, secrets={"Authorization": "TEST_KEY"}) as http:
        answer = http.get("x")
    assert answer.json() == {"you sent": "Bearer [secret]"}


def test_no_file_of_a_study_shows_it(tmp_path: Path) -> None:
    def careless(body: dict[str, Any]) -> str:
        return f"Your key is {KEY}, is it not?"

    with ModelServer(answer=careless, key=KEY) as server:
        client = connect("openai", base_url=server.base_url, key="TEST_KEY", cache=tmp_path)
        reply = client.ask(llm.Request("m", prompt="x"))
        client.close()
    assert "Bearer" not in client.signature
    assert KEY not in client.signature
    assert KEY not in repr(reply)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert not [data for data in written if KEY.encode() in data]
    assert reply.text == "Your key is [secret], is it not?"


def test_short_keys_do_not_black_out_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "ollama")
    with ModelServer(answer=lambda _: "ollama serves models", key="ollama") as server:
        client = connect("openai", base_url=server.base_url, key="TEST_KEY")
        assert client.ask(llm.Request("m", prompt="x")).text == "ollama serves models"
        client.close()


@pytest.mark.parametrize("value", ["", "   ", "sk-ключ0123456789", "sk-two\nlines-0123"])
def test_a_value_that_cannot_be_a_key(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TEST_KEY", value)
    with pytest.raises(UsageError, match="TEST_KEY") as caught:
        Session("http://127.0.0.1:9", secrets={"Authorization": "TEST_KEY"})
    assert not value.strip() or value.strip() not in everything_in(caught.value)


def test_an_address_with_a_password_is_refused_unseen() -> None:
    with pytest.raises(UsageError, match="password") as caught:
        Session("http://user:Geheim0123@127.0.0.1/v1")
    assert "Geheim0123" not in str(caught.value)
    assert "Geheim0123" not in repr(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        f"https://user:{KEY}@host/v1",
        f"https://user:{KEY}@host:99999/v1",
        f"http://user:{KEY}@[::1/v1",
        f"http:/user:{KEY}@host/v1",
        f"user:{KEY}@host/v1",
    ],
)
def test_an_address_that_cannot_be_read_shows_no_password(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_address(address)
    assert KEY not in str(caught.value)
    assert "holds a user name or a password" in str(caught.value)


def test_an_address_may_hold_the_sign_behind_its_host() -> None:
    assert checked_address("https://host/v1/@team/") == "https://host/v1/@team"
