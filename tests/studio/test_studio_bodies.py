"""What is sent to the studio: too much of it, too slowly, and what is no JSON."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

import pytest


@pytest.mark.parametrize("chunked", [False, True])
def test_a_hundred_megabytes_are_refused_before_they_are_read(start, chunked: bool) -> None:
    studio = start()
    one = studio.visitor()
    parts = urlsplit(studio.url)
    sent = 0
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 104857600"
        cookie = "; ".join(f"{name}={value}" for name, value in one.client.cookies.items())
        head = (
            f"POST /api/join HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Cookie: {cookie}\r\nX-CSRF-Token: {one.csrf}\r\n"
        ).encode()
        connection.sendall(head + framing + b"\r\n\r\n")
        block = b"[" * 65_536
        if chunked:
            block = b"10000\r\n" + block + b"\r\n"
        try:
            while sent < 104_857_600:
                connection.sendall(block)
                sent += len(block)
        except OSError:
            pass  # it hung up on us, as it should
        connection.settimeout(10)
        try:
            said = connection.recv(65_536)
        except OSError:
            said = b""
    assert sent < 50_000_000
    assert said == b"" or said.startswith(b"HTTP/1.1 413")
    before = time.monotonic()
    assert one.get("/api/me").status_code == 200
    assert time.monotonic() - before < 5


def test_a_large_body_is_answered_in_words(start) -> None:
    studio = start(max_body=10_000)
    one = studio.visitor()
    answer = one.post("/api/assignments/1/events", {"x": "y" * 20_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_a_body_that_does_not_come_is_not_waited_for(start) -> None:
    studio = start(body_seconds=0.5)
    parts = urlsplit(studio.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        head = f"POST /api/join HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"token": NaN}',
        b'{"token": "\\ud800"}',
        b'{"token": 1e999}',
        b"null",
        b"[]",
        b'"x"',
        b'{"token": "x", "token2": 1}',
        b'{"token": {"$ne": null}}',
    ],
)
def test_what_is_no_json_is_refused(start, body: bytes) -> None:
    answer = start().client().post("/api/join", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "malformed")
