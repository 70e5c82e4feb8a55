"""The endpoints of `veriglot serve`: JSON and JSON lines in and out, access control, and operational metrics."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
import traceback
from collections import Counter
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router

from veriglot.detection import sample_from_row
from veriglot.errors import InputError, VeriglotError
from veriglot.formats.labels import LABEL_PARTS
from veriglot.formats.reader import columns_from
from veriglot.http.server import (
    CallRefused,
    ErrorAnswer,
    Guard,
    PageFiles,
    ServerSettings,
    error_json,
    files_below,
    internal_error,
    json_response,
    run_server,
    server_of,
)
from veriglot.plugins import read_package_data
from veriglot.records import Prediction, Record, Sample, Status, Verdict, from_mapping, sample_from
from veriglot.records.languages import get_language, languages
from veriglot.report.pages import sample_blocks, sample_page
from veriglot.server.batches import Batcher, Call, DetectorInfo, find_detector
from veriglot.signatures import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

    import uvicorn
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Json = dict[str, Any]
    Answer = asyncio.Future[Prediction] | Json

__all__ = ["DetectionServerSettings", "serve"]


_LOG = logging.getLogger("veriglot.server")
_LINES = {"application/x-ndjson", "application/jsonl", "application/jsonlines", "application/x-jsonlines"}
_MOST_ROWS = 10_000  # of one list; send more as JSON lines
_MOST_PASSAGES = 10_000  # of one row
_MOST_RESPONSE = 200_000  # code points of one row; longer ones occupy a process for minutes


@dataclass(frozen=True)
class DetectionServerSettings(ServerSettings):
    """Settings of the server.

    Attributes:
        keys: API keys; a call must send one of them; empty allows all calls.
    """

    max_body: int = 8_000_000
    keys: tuple[str, ...] = field(default=(), repr=False)
    shutdown_seconds: int = 30


_TOO_DEEP = "nested too deeply"


# Rows in, predictions out.


class _CallOptions(Record):
    """Options of a call, for rows that do not set them."""

    detector: str | None = None
    strictness: str = "normal"
    words: bool = False
    language: str | None = None
    map: str = ""


def _row(data: Any, number: int, asked: _CallOptions, detectors: Sequence[DetectorInfo]) -> Sample:
    """The sample of a row, with the options in its `meta`.

    Raises:
        VeriglotError: the row is invalid, or asks for something unavailable.
    """
    if not isinstance(data, dict):
        raise InputError("a row is a JSON object with the keys response and evidence")
    _check_size(data)
    own = {name: data.pop(name) for name in ("detector", "strictness", "words") if data.get(name) is not None}
    asked = from_mapping(msgspec.structs.asdict(asked) | own, _CallOptions)
    info = find_detector(detectors, asked.detector, asked.strictness)
    data.pop("annotations", None)
    try:
        columns = columns_from([asked.map] if asked.map else [])
        # Labels are not read here, so that none of them is logged or makes a row fail.
        sample = sample_from_row(data, str(number), columns=columns | dict.fromkeys(LABEL_PARTS, ""))
    except InputError as error:
        if "columns=" in error.remedy:
            error.remedy = "Send the texts under the keys response and evidence, or add ?map=response=KEY,evidence=KEY."
        raise
    _check_size({"evidence": [*sample.evidence], "response": sample.response})  # whatever their keys were
    language = sample.language or asked.language
    meta = {"detector": info.name, "strictness": asked.strictness, "words": asked.words}
    return msgspec.structs.replace(sample, language=language, meta=meta, annotations=())


def _check_size(data: Any) -> None:
    """Reject a row that would make everybody wait; a limit on bytes is not enough: a passage may have three."""
    evidence, response = (data.get("evidence"), data.get("response")) if isinstance(data, dict) else (None, None)
    if isinstance(evidence, list) and len(evidence) > _MOST_PASSAGES:
        raise InputError(f"a row has at most {_MOST_PASSAGES:,} passages", "Join some.", field="evidence")
    if isinstance(response, str) and len(response) > _MOST_RESPONSE:
        raise InputError(f"a response has at most {_MOST_RESPONSE:,} characters", "Send it in parts.", field="response")


def _unread(data: Any, number: int, error: VeriglotError) -> Json:
    """The result for an unreadable row: it is not checked."""
    name = data.get("id") if isinstance(data, dict) else None
    return {
        "id": name if isinstance(name, str) else str(number),
        "status": Status.FAILED.value,
        "verdict": Verdict.NOT_CHECKED.value,
        "reason": str(error),
    }


def _media(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _constant(data: Any) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def answer(_: Request) -> Response:
        return json_response(data)

    return answer


class _Calls:
    """The endpoints."""

    def __init__(self, batcher: Batcher, settings: DetectionServerSettings) -> None:
        self.batcher = batcher
        self.tally = Tally()
        self._page = page_files(settings.path, batcher.detectors)

    def routes(self) -> list[Route]:
        """The paths and their endpoints."""
        return [
            Route("/", self._index),
            Route("/page/view", self._view, methods=["POST"]),
            Route("/page/{digest}/{name:path}", self._file),
            Route("/health", _constant({"status": "ok", "version": __version__})),
            Route("/ready", self._ready),
            Route("/metrics", self._metrics),
            Route("/openapi.json", _constant(open_api(self.batcher.detectors))),
            Route(
                "/v1/models", _constant({"default": self.batcher.detectors[0].name, "models": self.batcher.detectors})
            ),
            Route("/v1/detect", self._detect, methods=["POST"]),
            Route("/v1/lettucedetect/spans", self._lettuce, methods=["POST"]),
            Route("/v1/lettucedetect/token", self._lettuce, methods=["POST"]),
        ]

    async def _detect(self, request: Request) -> ASGIApp:
        """One row, a list of rows, or JSON lines, depending on the content type."""
        asked = self._asked(request)
        if _media(request) in _LINES:
            return _Stream(self, asked)
        with self.batcher.memory() as memory:
            data = await self._json(request, memory)
            if isinstance(data, list):
                return await _while_there(request, self._list(data, asked))
            return json_response(await self._one(data, asked))

    async def _lettuce(self, request: Request) -> Response:
        """The endpoints of LettuceDetect: spans or tokens of one answer."""
        tokens = request.url.path.endswith("/token")
        with self.batcher.memory() as memory:
            given = from_mapping(await self._json(request, memory), LettuceRequest)
            row = {"response": given.answer, "evidence": given.contexts, "question": given.question}
            answer = await self._one(row, _CallOptions(words=tokens))
        if answer["status"] != Status.SCORED:
            raise CallRefused(422, "not_checked", f"The answer was not checked: {answer['reason']}.")
        marks = [
            (
                {"token": given.answer[mark["start"] : mark["end"]]}
                if tokens
                else {key: mark[key] for key in ("text", "start", "end")}
            )
            | {"hallucination_score": mark["confidence"]}
            for mark in answer["words" if tokens else "spans"]
        ]
        return json_response({"predictions": marks})

    async def _ready(self, _: Request) -> Response:
        ready = self.batcher.is_ready
        return json_response({"status": "ready" if ready else "not_ready"}, 200 if ready else 503)

    async def _metrics(self, _: Request) -> Response:
        return Response(metrics_text(self.batcher, self.tally), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _index(self, _: Request) -> Response:
        return self._page.index_response()

    async def _file(self, request: Request) -> Response:
        path = request.path_params
        response = self._page.response(path["digest"], path["name"], request.headers.get("accept-encoding", ""))
        if response is None:
            raise HTTPException(404)
        return response

    async def _view(self, request: Request) -> Response:
        with self.batcher.memory() as memory:
            viewed = from_mapping(await self._json(request, memory), ViewBody)
            _check_size(viewed.sample)
            blocks = sample_blocks(sample_from(viewed.sample), from_mapping(viewed.prediction, Prediction))
            listed, shown = (msgspec.Raw(block.encode()) for block in blocks)
            return json_response({"listed": listed, "shown": shown})

    def _asked(self, request: Request) -> _CallOptions:
        """Options for all rows, from the query."""
        query: Json = dict(request.query_params)
        known = _CallOptions.__struct_fields__
        unknown = sorted(query.keys() - set(known))
        if unknown:
            raise CallRefused(422, "unfit", f"{unknown[0]!r} is no parameter.", f"Known: {', '.join(known)}.")
        if "words" in query:
            query["words"] = {"true": True, "false": False}.get(query["words"], query["words"])
        if "language" in query:
            query["language"] = get_language(query["language"]).tag
        asked = from_mapping(query, _CallOptions)
        find_detector(self.batcher.detectors, asked.detector, asked.strictness)
        return asked

    async def _json(self, request: Request, memory: Callable[[int], None]) -> Any:
        """The body, counted while it arrives; calls that would be refused anyway are refused before it is parsed."""
        if _media(request) != "application/json":  # a form on another site cannot send this
            remedy = "Send application/json, or application/x-ndjson for JSON lines."
            raise CallRefused(415, "malformed", "This type of body is not read here.", remedy)
        body = bytearray()
        async for chunk in request.stream():
            memory(len(chunk))
            body += chunk
        self.batcher.check("streams" if body.lstrip()[:1] == b"[" else "queue")
        return _decoded(body)

    async def _one(self, data: Any, asked: _CallOptions) -> Json:
        sample = _row(data, 1, asked, self.batcher.detectors)
        with self.batcher.accept("queue") as call:
            return await self.finished(self.batcher.submit(call, sample))

    async def _list(self, rows: list[Any], asked: _CallOptions) -> Response:
        if len(rows) > _MOST_ROWS:
            message = f"A list has at most {_MOST_ROWS:,} rows."
            raise CallRefused(413, "too_large", message, "Send JSON lines (application/x-ndjson).")
        with self.batcher.accept("streams") as call:
            answers = [self.submitted(call, row, number, asked) for number, row in enumerate(rows, 1)]
            return json_response([await self.finished(answer) for answer in answers])

    def submitted(self, call: Call, data: Any, number: int, asked: _CallOptions) -> Answer:
        """Submit a row of several: its future answer, or why it is invalid."""
        try:
            return self.batcher.submit(call, _row(data, number, asked, self.batcher.detectors))
        except VeriglotError as error:
            if isinstance(error, CallRefused) and error.status == 503:
                raise
            return _unread(data, number, error)
        except RecursionError:
            return _unread(data, number, InputError(_TOO_DEEP))

    async def finished(self, answer: Answer) -> Json:
        """The prediction as JSON."""
        plain: Json = answer if isinstance(answer, dict) else msgspec.to_builtins(await answer)
        self.tally.rows[plain["status"], plain["verdict"]] += 1
        return plain


async def _while_there(request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
    """The answer, unless the caller disconnects before it is complete."""
    work, left = asyncio.create_task(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return work.result()
    finally:
        work.cancel()
        left.cancel()


def _decoded(text: bytes | bytearray) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        remedy = "Send JSON in UTF-8 (JSON lines as application/x-ndjson), and null for NaN and Infinity."
        raise CallRefused(422, "malformed", str(error), remedy) from None


_WINDOW = 64  # rows of one stream that are read but not answered


class _Stream:
    """JSON lines in and out, in order: a line is read as soon as there is room for it.

    Bytes are received even if the caller does not read answers, up to the maximum of a body: otherwise a caller that
    sends everything before it reads would deadlock with us.
    """

    def __init__(self, calls: _Calls, asked: _CallOptions) -> None:
        self._calls = calls
        self._asked = asked
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._answers: asyncio.Queue[Answer | Exception | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_WINDOW)
        self._left = False  # whether the caller disconnected

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the call."""
        batcher = self._calls.batcher
        with batcher.accept("streams") as call, batcher.memory() as memory:
            tasks = [
                asyncio.create_task(self._read(Request(scope, receive), memory)),
                asyncio.create_task(self._submit(call)),
            ]
            try:
                await self._write(send)
            finally:
                for task in tasks:
                    task.cancel()

    async def _read(self, request: Request, memory: Callable[[int], None]) -> None:
        try:
            async for chunk in request.stream():
                memory(len(chunk))
                self._chunks.put_nowait(chunk)
            self._chunks.put_nowait(None)
            await request.receive()  # only a disconnect can follow
            self._left = True
        except ClientDisconnect:
            self._left = True
            self._chunks.put_nowait(None)
        except Exception as error:
            self._chunks.put_nowait(error)

    async def _each_line(self) -> AsyncIterator[bytes]:
        """The lines, split lazily: millions of short lines would take many times their bytes."""
        begun = []
        while chunk := await self._chunk():
            first, *others = chunk.split(b"\n")
            begun.append(first)
            for other in others:
                yield b"".join(begun)
                begun = [other]
        yield b"".join(begun)

    async def _chunk(self) -> bytes | None:
        """The next received chunk, or None at the end."""
        while not self._left and (chunk := await self._chunks.get()) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            if chunk:
                return chunk
        return None

    async def _submit(self, call: Call) -> None:
        number, end = 0, None
        try:
            async for line in self._each_line():
                number += 1
                if line and not line.isspace():
                    await self._room.acquire()
                    self._answers.put_nowait(self._answer(call, line, number))
                if self._left:
                    break
        except Exception as error:  # a waiting caller gets an answer in any case
            end = error
        self._answers.put_nowait(end)

    def _answer(self, call: Call, line: bytes, number: int) -> Answer:
        try:
            data = _decoded(line)
        except CallRefused as error:
            return _unread(None, number, error)
        return self._calls.submitted(call, data, number, self._asked)

    async def _write(self, send: Send) -> None:
        started = False

        async def write(data: Any) -> None:
            nonlocal started
            if not started:
                headers = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]
                started = True
                await send({"type": "http.response.start", "status": 200, "headers": headers})
            body = b"" if data is None else msgspec.json.encode(data) + b"\n"
            await send({"type": "http.response.body", "body": body, "more_body": data is not None})

        try:
            while (answer := await self._answers.get()) is not None and not self._left:
                if isinstance(answer, Exception):
                    raise answer
                await write(await self._calls.finished(answer))
                self._room.release()
        except (Exception, asyncio.CancelledError) as error:
            if not started:
                raise
            await write(msgspec.json.decode(_respond(error).body))  # the last line is the error
        await write(None)


# Access control, errors, and metrics.


class _AccessControl:
    """Checks API keys, counts calls, and answers calls that a shutdown interrupts."""

    def __init__(self, app: ASGIApp, settings: DetectionServerSettings, tally: Tally, paths: set[str]) -> None:
        self._app = app
        self._tally = tally
        self._paths = paths
        self._below = settings.path
        self._keys = [hashlib.sha256(key.encode()).hexdigest() for key in settings.keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        path = scope["path"].removeprefix(self._below)  # as in the router
        try:
            if path in {"/metrics", "/page/view"} or path.startswith("/v1/"):
                self._check_key(Request(scope))
            await self._app({**scope, "app": self}, receive, counted)
        except (Exception, asyncio.CancelledError) as error:
            if status:
                raise
            await _respond(error)(scope, receive, counted)
        finally:
            self._tally.count_call(path if path in self._paths else "other", status, time.monotonic() - began)

    def _check_key(self, request: Request) -> None:
        """Refuse calls without a valid key; keys are compared in constant time."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
        matches = [hmac.compare_digest(digest, key) for key in self._keys]
        if matches and not any(matches):
            remedy = "Send one as Authorization: Bearer KEY."
            raise CallRefused(401, "no_key", "A valid API key is needed.", remedy, www_authenticate="Bearer")


def _respond(error: BaseException) -> Response:
    """The answer for an error."""
    match error:
        case CallRefused():
            return error_json(error.status, error.code, error.message, error.remedy, headers=error.headers)
        case InputError():
            return error_json(422, "unfit", error.message, error.remedy or "See /openapi.json.", field=error.field)
        case VeriglotError():
            return error_json(422, "refused", error.message, error.remedy)
        case RecursionError():
            return error_json(422, "malformed", f"The JSON is {_TOO_DEEP}.")
        case HTTPException(status_code=405):
            allowed = (error.headers or {}).get("Allow", "another method")
            return error_json(
                405, "no_such_call", f"This takes {allowed} only.", "See /openapi.json.", headers=error.headers
            )
        case HTTPException():
            return error_json(404, "not_found", "There is no such page.", "See /openapi.json.")
        case asyncio.CancelledError():
            headers = {"retry-after": "5", "connection": "close"}
            return error_json(
                503, "stopping", "This server is stopping.", "Try again, or another one.", headers=headers
            )
        case ClientDisconnect():
            return error_json(400, "disconnected", "The caller left.")  # nobody receives it
        case _:
            return internal_error(500, "internal", "Something went wrong here.", lambda number: _log(number, error))


def _log(number: str, error: BaseException) -> None:
    """Log where an error occurred, without its message, which may contain users' texts."""
    _LOG.error("failure %s: %s\n%s", number, type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    if scope["type"] == "http":
        raise HTTPException(404)


def detection_server(batcher: Batcher, settings: DetectionServerSettings) -> uvicorn.Server:
    """A server, not yet running; it closes the batcher when it stops."""
    calls = _Calls(batcher, settings)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        batcher.start()
        yield
        await asyncio.to_thread(batcher.close)

    routes = calls.routes()
    router = Router(routes, default=_nowhere, lifespan=lifespan, redirect_slashes=False)
    front = _AccessControl(router, settings, calls.tally, {route.path for route in routes})
    server = server_of(Guard(front, settings, _respond, "/v1/"), settings)

    def stop() -> None:
        server.should_exit = True

    batcher.failed = stop
    return server


def serve(make: Callable[[], Batcher], settings: DetectionServerSettings, announce: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; accepted calls are answered first.

    `make` is called once the address is bound, `announce` once the server listens.

    Raises:
        VeriglotError: the server cannot listen at the address, or the processes die.
    """

    def start(stack: ExitStack) -> uvicorn.Server:
        batcher = make()

        def end() -> None:
            batcher.close()
            if batcher.failure:
                raise batcher.failure

        stack.callback(end)
        return detection_server(batcher, settings)

    run_server(settings, start, announce)


# Metrics for Prometheus, the OpenAPI description, and the files of the page.


class Tally:
    """Counts of calls (by path and status) and rows (by status and verdict), and durations of calls."""

    BOUNDS: ClassVar = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))

    def __init__(self) -> None:
        self.calls = Counter[tuple[str, int]]()
        self.rows = Counter[tuple[str, str]]()
        self.buckets = Counter[float]()
        self.seconds = 0.0

    def count_call(self, path: str, status: int, seconds: float) -> None:
        """Count a call by path and status; calls with rows also by duration."""
        self.calls[path, status] += 1
        if status == 200 and path.startswith(("/v1/detect", "/v1/lettucedetect")):
            self.buckets[next(bound for bound in self.BOUNDS if seconds <= bound)] += 1
            self.seconds += seconds


def metrics_text(batcher: Batcher, tally: Tally) -> str:
    """The metrics in the text format of Prometheus, without users' texts."""
    lines = [*_tallied(tally)]
    values = {
        "batches_total": batcher.batches,
        "batch_rows_total": batcher.rows,
        "worker_deaths_total": batcher.service.deaths,
        "workers": batcher.service.jobs,
        "workers_ready": batcher.service.ready,
        "rows_waiting": batcher.waiting,
        "rows_working": len(batcher.working),
        "calls_queue": batcher.accepted["queue"],
        "calls_streams": batcher.accepted["streams"],
        "request_bytes": batcher.bytes,
        "resident_memory_bytes": _resident(),
    }
    for name, (kind, meaning) in read_package_data(__package__, "metrics.toml", dict[str, tuple[str, str]]).items():
        lines += _family(name, kind, meaning, [("", values[name])])
    return "\n".join([*lines, ""])


def _tallied(tally: Tally) -> Iterator[str]:
    calls = [(f'{{path="{path}",status="{status}"}}', count) for (path, status), count in sorted(tally.calls.items())]
    yield from _family("calls_total", "counter", "Calls, by path and status of the answer.", calls)
    rows = [(f'{{status="{status}",verdict="{verdict}"}}', n) for (status, verdict), n in sorted(tally.rows.items())]
    yield from _family("rows_total", "counter", "Rows answered, by status and verdict.", rows)
    total, buckets = 0, []
    for bound in tally.BOUNDS:
        total += tally.buckets[bound]
        buckets.append((f'_bucket{{le="{"+Inf" if bound == float("inf") else bound}"}}', total))
    figures = [*buckets, ("_sum", round(tally.seconds, 6)), ("_count", total)]
    yield from _family("call_seconds", "histogram", "Seconds that answered calls with rows took.", figures)


def _family(name: str, kind: str, meaning: str, figures: Sequence[tuple[str, float]]) -> list[str]:
    name = f"veriglot_{name}"
    head = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    return head + [f"{name}{suffix} {value}" for suffix, value in figures]


def _resident() -> int:
    """Bytes of memory in use; 0 if the system does not report it in this way."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096
    return 0


# OpenAPI: the table beside this file, and the records that it references.


class LettuceRequest(Record):
    """A request of LettuceDetect's clients."""

    contexts: list[str]
    answer: str
    question: str | None = None


def open_api(detectors: Sequence[DetectorInfo]) -> Json:
    """The OpenAPI description, for the available detectors."""
    document = read_package_data("veriglot.server", "openapi.json", dict[str, Any])
    kinds = (Prediction, ErrorAnswer, DetectorInfo)
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    answer = {**schemas.pop("Prediction"), "title": "Answer"}
    answer["required"] = ["id", "status", "verdict"]  # unchecked rows have a reason, and no spans
    schemas |= {"Answer": answer, "Detector": {"enum": [info.name for info in detectors]}}
    document["components"]["schemas"] |= schemas
    document["info"]["version"] = __version__
    return document


# The page: that of judged samples in reports, with a form above; it shows one sample, redrawn each time.


def page_files(path: str, detectors: Sequence[DetectorInfo]) -> PageFiles:
    """The files of the page; see `PageFiles`.

    Args:
        path: prefix of every path.
        detectors: the available detectors.
    """
    own = dict(files_below(files("veriglot.server") / "page"))
    listed = [[language.tag, language.name] for language in languages().values()]
    served = {"path": path, "detectors": detectors, "languages": listed}
    page = sample_page("Veriglot", Markup(own["form.html"].decode()), {"served": served})  # noqa: S704
    script = f"{page.script}\n{own['playground.js'].decode()}"
    contents = {
        "index.html": page.html.encode(),
        "page.js": f'(function () {{\n"use strict";\n{script}\n}})();'.encode(),
        "page.css": (page.style + own["playground.css"].decode()).encode(),
    }
    return PageFiles(contents, path)


class ViewBody(Record):
    """The content that the page wants to show."""

    sample: Any
    prediction: Any
