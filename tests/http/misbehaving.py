"""A real server on loopback that speaks the OpenAI API and misbehaves by a seeded schedule, and counts what it does.

`FaultyServer` serves whatever `handle` answers, and gets in its own way; `ModelServer` answers as a model server would.

    with ModelServer(Faults(seed=7, busy=0.2, cut=0.1), idempotent=True) as server:
        ...  # ask server.base_url
    assert server.paid_most() == 1
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

Fault = Literal["busy", "error", "cut", "slow", "broken", ""]


@dataclass(frozen=True)
class Faults:
    """How often which fault happens, as shares of the requests that arrive.

    The fault of a request's n-th arrival hangs on the seed, its digest and n alone: no thread's luck changes it.

    Attributes:
        seed: other seeds, other faults.
        busy: 429 with `Retry-After: <retry_after>`.
        error: 500.
        cut: the connection is reset, without an answer or in the middle of one.
        slow: the answer comes after `slow_seconds`.
        broken: status 200 and half a JSON document.
        in_a_row: a request gets through at the latest after so many faults in a row.
        retry_after: what the header says: seconds (0.05 is read as such by our session), or any text.
        slow_seconds: seconds.
    """

    seed: int = 0
    busy: float = 0.0
    error: float = 0.0
    cut: float = 0.0
    slow: float = 0.0
    broken: float = 0.0
    in_a_row: int = 3
    retry_after: str = "0.05"
    slow_seconds: float = 0.3

    @classmethod
    def many(cls, seed: int = 0) -> Faults:
        """Every fault, in half of what arrives."""
        return cls(seed=seed, busy=0.1, error=0.1, cut=0.15, slow=0.05, broken=0.1)

    def of(self, digest: str, arrival: int) -> Fault:
        """What happens to the arrival of a request; arrivals are counted from 0."""
        if arrival % (self.in_a_row + 1) == self.in_a_row:
            return ""
        drawn = random.Random(f"{self.seed}/{digest}/{arrival}").random()
        shares: list[tuple[Fault, float]] = [
            ("busy", self.busy),
            ("error", self.error),
            ("cut", self.cut),
            ("slow", self.slow),
            ("broken", self.broken),
        ]
        for fault, share in shares:
            if drawn < share:
                return fault
            drawn -= share
        return ""


@dataclass
class Arrival:
    """A request as it came in.

    Attributes:
        method: GET or POST.
        path: without the query.
        query: name -> the last value.
        headers: by lower-case name.
        body: the decoded JSON of a POST; None otherwise.
        digest: SHA-256 of method, path, query and body, whatever the order of their keys.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        content = json.dumps([self.method, self.path, self.query, self.body], sort_keys=True)
        self.digest = hashlib.sha256(content.encode()).hexdigest()


class FaultyServer:
    """A threaded HTTP server on 127.0.0.1 with faults; runs from entering to leaving the context.

    Attributes:
        base_url: its address.
        received: request digest -> how many times it arrived, refused ones included.
        paid: request digest -> how many times its answer was made, which is what a provider bills.
        faults_seen: fault -> how many times it happened ("" for none).
        arrivals: the requests as they came in, in order.
        most_at_once: the most requests that were in the house at the same time.

    Args:
        faults: the schedule; none by default.
        idempotent: answer a request whose `Idempotency-Key` was answered before from memory, unpaid. With it, cut and
            broken answers and those for which nobody waits any more are made and paid before they are lost, as on a
            real gateway; without it, they are lost before they are made, so that asking again is not paid twice.
        key: what `Authorization` has to hold (`Bearer <key>`), otherwise 401; None for no key.
    """

    def __init__(self, faults: Faults | None = None, *, idempotent: bool = False, key: str | None = None) -> None:
        self.faults = faults or Faults()
        self.idempotent = idempotent
        self.key = key
        self.received: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.faults_seen: Counter[str] = Counter()
        self.arrivals: list[Arrival] = []
        self.most_at_once = 0
        self._inside = 0
        self._answered: dict[str, tuple[int, Any]] = {}
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        server = self

        class Handler(_Handler):
            owner = server

        self._server = _Listening(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        """Status and JSON of the answer; `bytes` are sent as they are. For subclasses."""
        return 200, {"path": arrival.path, "query": arrival.query, "body": arrival.body}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def paid_most(self) -> int:
        """How many times the most often paid request was paid; 0 where none was."""
        return max(self.paid.values(), default=0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, arrival: Arrival, connection: _Handler) -> None:
        """Answer one request, or fail at it, as the schedule has it."""
        with self._lock:
            nth = self.received[arrival.digest]
            self.received[arrival.digest] += 1
            self.arrivals.append(arrival)
            self._inside += 1
            self.most_at_once = max(self.most_at_once, self._inside)
        try:
            self._serve(arrival, nth, connection)
        finally:
            with self._lock:
                self._inside -= 1

    def _serve(self, arrival: Arrival, nth: int, connection: _Handler) -> None:
        if self.key is not None and arrival.headers.get("authorization") != f"Bearer {self.key}":
            given = arrival.headers.get("authorization", "none")  # careless on purpose: some servers echo the key
            connection.answer(401, {"error": {"message": f"this key is not valid: {given}"}})
            return
        fault = self.faults.of(arrival.digest, nth)
        with self._lock:
            self.faults_seen[fault] += 1
        if fault == "busy":
            connection.answer(429, {"error": {"message": "too many"}}, {"Retry-After": self.faults.retry_after})
        elif fault == "error":
            connection.answer(500, {"error": {"message": "out of order"}})
        elif fault in ("cut", "broken"):
            status, content = self._made(arrival) if self.idempotent else (200, {"lost": "x" * 200})
            (connection.cut if fault == "cut" else connection.break_off)(status, content, nth)
        else:
            if fault == "slow":
                time.sleep(self.faults.slow_seconds)
            connection.answer(*self._made(arrival))

    def _made(self, arrival: Arrival) -> tuple[int, Any]:
        """The answer, made and paid, or remembered."""
        key = arrival.headers.get("idempotency-key", "") if self.idempotent else ""
        if not key:
            return self._make(arrival)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:  # a second request with the same key waits for the first
            if key not in self._answered:
                answer = self._make(arrival)
                if answer[0] != 200:  # only what is paid is remembered
                    return answer
                self._answered[key] = answer
            return self._answered[key]

    def _make(self, arrival: Arrival) -> tuple[int, Any]:
        status, content = self.handle(arrival)
        if status == 200:
            with self._lock:
                self.paid[arrival.digest] += 1
        return status, content


class ModelServer(FaultyServer):
    """Speaks `/v1/chat/completions`, `/v1/completions` and `/v1/models` as model servers do.

    Args:
        answer: body of the request -> text; `echo` by default.
        models: what `/v1/models` lists; a request for another model is answered with 404. None takes any.
        schemas: whether `response_format` is understood; 400 otherwise.
        faults, idempotent, key: as for `FaultyServer`.
    """

    def __init__(
        self,
        faults: Faults | None = None,
        *,
        answer: Callable[[dict[str, Any]], str] | None = None,
        models: list[str] | None = None,
        schemas: bool = True,
        idempotent: bool = False,
        key: str | None = None,
    ) -> None:
        super().__init__(faults, idempotent=idempotent, key=key)
        self.answer_text = answer or echo
        self.models = models
        self.schemas = schemas

    @property
    def base_url(self) -> str:
        return f"{super().base_url}/v1"

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        if arrival.path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models or []]}
        if arrival.method != "POST" or arrival.path not in ("/v1/chat/completions", "/v1/completions"):
            return 404, {"error": {"message": f"no such path: {arrival.path}"}}
        if self.models is not None and arrival.body["model"] not in self.models:
            return 404, {"error": {"message": f"no such model: {arrival.body['model']}"}}
        if not self.schemas and "response_format" in arrival.body:
            return 400, {"error": {"message": "response_format is not supported"}}
        return 200, self._completion(arrival.body, chat=arrival.path.endswith("/chat/completions"))

    def _completion(self, body: dict[str, Any], *, chat: bool) -> dict[str, Any]:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        text = json.dumps(instance_of(schema)) if schema is not None else self.answer_text(body)
        words, bound = text.split(" "), body.get("max_tokens")
        finish = "stop"
        if bound is not None and len(words) > bound:
            words, finish = words[:bound], "length"
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        tokens = [f" {word}" if index else word for index, word in enumerate(words)]
        numbers = [-0.25 * (index % 4) for index in range(len(tokens))]
        if chat:
            choice["message"] = {"role": "assistant", "content": "".join(tokens)}
            if body.get("logprobs"):
                pairs = zip(tokens, numbers, strict=True)
                choice["logprobs"] = {"content": [{"token": token, "logprob": number} for token, number in pairs]}
        else:
            choice["text"] = "".join(tokens)
            if body.get("logprobs") is not None:
                choice["logprobs"] = {"tokens": tokens, "token_logprobs": numbers}
        asked = len(prompt_of(body).split())
        usage = {"prompt_tokens": asked, "completion_tokens": len(words), "total_tokens": asked + len(words)}
        return {"id": "answer", "model": body["model"], "choices": [choice], "usage": usage}


def prompt_of(body: dict[str, Any]) -> str:
    """The text that was sent: the prompt, or all messages."""
    return body["prompt"] if "prompt" in body else "\n".join(message["content"] for message in body["messages"])


def echo(body: dict[str, Any]) -> str:
    """A text that hangs on the whole request, seed and settings included: words of the prompt, some replaced."""
    random_ = random.Random(json.dumps(body, sort_keys=True))
    words = prompt_of(body).split() or ["nothing"]
    start = random_.randrange(len(words))
    chosen = words[start : start + 25]
    return " ".join(word if random_.random() < 0.8 else f"Zorvath{random_.randrange(1000)}" for word in chosen)


def instance_of(schema: dict[str, Any]) -> Any:
    """The plainest value that a JSON schema allows (types, enum, properties and items; no more is understood)."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: instance_of(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance_of(schema.get("items", {"type": "string"}))] * max(1, schema.get("minItems", 1))
    return {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}[kind]


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed leave; that is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FaultyServer
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""

    def do_GET(self) -> None:
        self._take(None)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        kind = self.headers.get("content-type", "")
        if kind.startswith("application/x-www-form-urlencoded"):
            self._take({name: values[-1] for name, values in parse_qs(data.decode()).items()})
        else:
            self._take(json.loads(data) if data else None)

    def _take(self, body: Any) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.serve(Arrival(self.command, parts.path, query, headers, body), self)

    def answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self._begin(status, len(data), headers)
        self.wfile.write(data)
        self.wfile.flush()

    def break_off(self, status: int, content: Any, nth: int) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        data = data[: len(data) // 2] if nth % 2 else b"<html>Bad gateway</html>"
        self._begin(status, len(data), None)
        self.wfile.write(data)
        self.wfile.flush()

    def cut(self, status: int, content: Any, nth: int) -> None:
        if nth % 2:  # in the middle of the answer
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self._begin(status, len(data), None)
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset, not closed
        self.connection.close()
        self.close_connection = True

    def _begin(self, status: int, length: int, headers: dict[str, str] | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
