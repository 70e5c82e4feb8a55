"""The calls of `veriglot serve`: rows in, verdicts out, and what is refused."""

from __future__ import annotations

import json
import logging
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from loopback import BRIDGE, WAYWARD, serving

from veriglot.errors import UsageError, VeriglotError
from veriglot.http.server import ServerSettings, run_server
from veriglot.server.app import DetectionServerSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    import uvicorn
    from loopback import Loopback

KEY = "a-key-of-some-length"


@pytest.fixture(scope="module")
def served() -> Iterator[Loopback]:
    with serving("grounding", WAYWARD) as found:
        yield found


@pytest.fixture(scope="module")
def closed() -> Iterator[Loopback]:
    settings = DetectionServerSettings(
        keys=("another-key-of-length", KEY), origins=("https://app.example",), body_seconds=0.5
    )
    with serving(WAYWARD, settings=settings) as found:
        yield found


def test_an_address_that_cannot_be_is_refused_before_anything_is_loaded() -> None:
    def loaded(_: ExitStack) -> uvicorn.Server:
        pytest.fail("something was loaded")

    def announced() -> None:
        pytest.fail("an address that is refused was announced")

    refused = {"192.0.2.1": "no address of this machine", "no.such.host.invalid": "no such host", "..": "no such host"}
    for host, reason in refused.items():  # of no machine (RFC 5737), of no network (RFC 6761), of no name
        with pytest.raises(VeriglotError, match=f"cannot listen at {host}:8322: .*{reason}.*give --host an address"):
            run_server(ServerSettings(host=host, port=8322), loaded, announced)


def test_one_row_gets_a_verdict_spans_and_words_on_request(served: Loopback) -> None:
    answer = served.detect({"id": "q", **BRIDGE}).json()
    assert (answer["id"], answer["status"], answer["verdict"]) == ("q", "scored", "unsupported")
    assert [span["text"] for span in answer["spans"]] == ["1879"]
    assert "words" not in answer
    assert len(served.detect({**BRIDGE, "words": True}).json()["words"]) == 5
    assert len(served.client.post("/v1/detect?words=true", json=BRIDGE).json()["words"]) == 5


@pytest.mark.parametrize(
    "evidence",
    [
        "The bridge was opened in 1879.",
        ["Nothing.", "The bridge was opened in 1879."],
        {"text": "The bridge was opened in 1879."},
        [{"text": "The bridge was opened in 1879.", "id": "a"}],
    ],
)
def test_evidence_may_be_a_text_a_list_or_objects(served: Loopback, evidence: Any) -> None:
    answer = served.detect({"response": "The bridge was opened in 1879.", "evidence": evidence}).json()
    assert answer["verdict"] == "supported"
    assert answer["spans"] == []


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({"response": "Hello there, my friend."}, "no_evidence"),
        ({"response": "Hello there, my friend.", "evidence": ""}, "no_evidence"),
        ({"response": "", "evidence": "Hello."}, "failed"),
    ],
)
def test_what_is_not_checked_is_never_clean(served: Loopback, row: dict[str, Any], status: str) -> None:
    answer = served.detect(row).json()
    assert (answer["status"], answer["verdict"]) == (status, "not_checked")
    assert "spans" not in answer
    assert answer["reason"]


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("", {"context": BRIDGE["evidence"], "answer": BRIDGE["response"]}),
        ("", {"source": BRIDGE["evidence"], "translation": BRIDGE["response"]}),
        ("", {"contexts": [BRIDGE["evidence"]], "output": BRIDGE["response"]}),
        (
            "?map=response=reply,evidence=one%2Btwo",
            {"one": "Nothing.", "two": BRIDGE["evidence"], "reply": BRIDGE["response"]},
        ),
    ],
)
def test_keys_are_known_or_stated_as_those_of_files_are(served: Loopback, query: str, row: dict[str, Any]) -> None:
    answer = served.client.post(f"/v1/detect{query}", json=row).json()
    assert [span["text"] for span in answer["spans"]] == ["1879"]


def test_labels_are_neither_logged_nor_a_reason_to_fail(served: Loopback, caplog: pytest.LogCaptureFixture) -> None:
    for labels in ({"label": "a secret"}, {"spans": [{"start": 0, "end": 999}]}):
        answer = served.detect({"context": BRIDGE["evidence"], "answer": BRIDGE["response"], **labels}).json()
        assert answer["verdict"] == "unsupported"
    row = {"context": BRIDGE["evidence"], "answer": BRIDGE["response"], "seen": "a secret"}
    assert served.client.post("/v1/detect?map=label=seen", json=row).json()["verdict"] == "unsupported"
    marked = {**BRIDGE, "annotations": [{"annotator": "anna", "spans": [{"start": 0, "end": 999}]}]}
    assert served.detect(marked).json()["verdict"] == "unsupported"
    assert "secret" not in caplog.text


def test_a_list_comes_back_in_order_with_what_could_not_be_read(served: Loopback) -> None:
    rows = [{"id": "a", **BRIDGE}, {"id": "b", "response": 3}, {"id": "a", **BRIDGE}, 7, {**BRIDGE, "detector": "x"}]
    answers = served.detect(rows).json()
    assert [answer["id"] for answer in answers] == ["a", "b", "a", "4", "5"]
    assert [answer["verdict"] for answer in answers] == [
        *("unsupported", "not_checked", "unsupported", "not_checked", "not_checked")
    ]
    assert "field response" in answers[1]["reason"]


def test_lines_come_back_one_by_one_in_order(served: Loopback) -> None:
    rows = [{"id": f"r{n}", **BRIDGE, "detector": WAYWARD if n % 3 else "grounding"} for n in range(300)]
    text = "\n".join(map(json.dumps, rows)) + '\n\n{"id": "cut\n'
    answers = [json.loads(line) for line in served.lines(text).text.splitlines()]
    assert [answer["id"] for answer in answers[:300]] == [row["id"] for row in rows]
    assert {answer["verdict"] for answer in answers[1:300:3]} == {"supported"}
    assert (answers[300]["id"], answers[300]["verdict"], len(answers)) == ("302", "not_checked", 301)


def test_a_line_is_answered_before_the_next_is_sent(served: Loopback) -> None:
    with socket.create_connection(served.address, timeout=20) as connection:
        head = "POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for number in range(3):
            line = json.dumps({"id": f"line{number}", **BRIDGE}).encode() + b"\n"
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            seen = b""
            while b"verdict" not in seen:
                seen += connection.recv(65_536)
            assert f'"line{number}"'.encode() in seen
        connection.sendall(b"0\r\n\r\n")


def test_a_caller_that_sends_all_before_it_reads_is_not_waited_for(served: Loopback) -> None:
    """Three megabytes in and as many out, which fit into no socket."""
    rows = "".join(
        json.dumps({"response": "x" * 10_000, "evidence": "y", "detector": WAYWARD, "id": "i" * 10_000}) + "\n"
        for _ in range(300)
    ).encode()
    with socket.create_connection(served.address, timeout=60) as connection:
        head = "POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\nConnection: close\r\n"
        connection.sendall(f"{head}Content-Length: {len(rows)}\r\n\r\n".encode() + rows)
        received = bytearray()
        while block := connection.recv(65_536):
            received += block
    assert received.count(b'"verdict":"supported"') == 300


def test_calls_of_lettucedetects_server_are_answered(served: Loopback) -> None:
    body = {"contexts": [BRIDGE["evidence"]], "question": "When?", "answer": BRIDGE["response"]}
    (span,) = served.client.post("/v1/lettucedetect/spans", json=body).json()["predictions"]
    assert (span["text"], span["start"], span["end"]) == ("1879", 17, 21)
    assert 0.5 < span["hallucination_score"] <= 1
    tokens = served.client.post("/v1/lettucedetect/token", json=body).json()["predictions"]
    assert [token["token"] for token in tokens] == ["It", "was", "opened", "in", "1879"]
    unchecked = served.client.post("/v1/lettucedetect/spans", json={**body, "contexts": []})
    assert (unchecked.status_code, unchecked.json()["error"]["code"]) == (422, "not_checked")


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        ("/v1/detect", {"evidence": "x"}, 422, "response"),
        (
            "/v1/detect",
            {"kb": "x", "said": "y"},
            422,
            '"remedy":"Send the texts under the keys response and evidence, or add ?map=response=KEY,evidence=KEY."',
        ),
        ("/v1/detect", {"answer_1": "x", "answer_2": "y", "context": "z"}, 422, "under the keys response and evidence"),
        ("/v1/detect", {**BRIDGE, "detector": "magic"}, 422, "; veriglot serve --detectors NAME,NAME serves others."),
        ("/v1/detect", {**BRIDGE, "strictness": "wild"}, 422, "normal"),
        ("/v1/detect", {**BRIDGE, "words": 1}, 422, "true or false"),
        ("/v1/detect?threshold=0.5", BRIDGE, 422, "detector, strictness"),
        ("/v1/detect?map=reply", BRIDGE, 422, "maps nothing"),
        ("/v1/detect?language=qqqqq", BRIDGE, 422, "qqqqq"),
        ("/v1/detect", "text", 422, "JSON object"),
        ("/v1/lettucedetect/spans", {"answer": "x"}, 422, "contexts"),
        ("/v1/nothing", BRIDGE, 404, "openapi"),
        ("/health", BRIDGE, 405, ' only.","remedy":"See /openapi.json."'),
        ("/v1/detect", {"evidence": "x"}, 422, "field response: it is missing"),
        ("/v1/detect", {**BRIDGE, "response": "x" * 200_001}, 422, "Send it in parts."),
    ],
)
def test_what_does_not_fit_is_refused_in_words(served: Loopback, path: str, body: Any, status: int, told: str) -> None:
    answer = served.client.post(path, json=body)
    assert answer.status_code == status
    assert told in answer.text
    assert answer.json()["error"]["code"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"response": NaN}', b'{"response": "\\ud800"}']
)
def test_what_is_no_json_is_refused(served: Loopback, body: bytes) -> None:
    answer = served.client.post("/v1/detect", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "malformed")


def test_a_form_of_another_site_is_no_call(served: Loopback) -> None:
    assert served.client.post("/v1/detect", data={"response": "x"}).status_code == 415
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = served.detect(BRIDGE, headers=headers)
        assert answer.status_code == 403
        assert "(origins)" in answer.json()["error"]["remedy"]
        assert "403" in served.client.get("/openapi.json").json()["paths"]["/v1/detect"]["post"]["responses"]
    assert served.detect(BRIDGE, headers={"host": "evil.example"}).status_code == 400
    preflight = served.client.options("/v1/detect", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in preflight.headers


def test_models_health_readiness_and_metrics_are_served(served: Loopback) -> None:
    served.detect(BRIDGE)
    models = served.client.get("/v1/models").json()
    assert (models["default"], [model["name"] for model in models["models"]]) == ("grounding", ["grounding", WAYWARD])
    assert served.client.get("/health").json()["status"] == "ok"
    assert served.client.get("/ready").json() == {"status": "ready"}
    figures = served.client.get("/metrics").text
    assert 'veriglot_rows_total{status="scored",verdict="unsupported"}' in figures
    assert 'veriglot_calls_total{path="/v1/detect",status="200"}' in figures
    assert "veriglot_workers_ready 1" in figures
    families = {line.split()[2] for line in figures.splitlines() if line.startswith("# TYPE")}
    named = {line.split()[2] for line in figures.splitlines() if line.startswith("# HELP")}
    assert families == named
    assert len(families) > 10
    document = served.client.get("/openapi.json").json()
    assert set(document["paths"]) >= {"/v1/detect", "/v1/lettucedetect/spans", "/v1/models", "/metrics", "/ready"}
    for name in _references(document):
        node = document
        for part in name.removeprefix("#/").split("/"):
            node = node[part]


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def test_the_examples_of_the_description_do_what_they_say(served: Loopback) -> None:
    document = served.client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body:
            example = body["content"]["application/json"]["example"]
            answer = served.client.post(path, json=example)
            assert answer.status_code == 200, path


@pytest.mark.parametrize("field", ["detector", "evidence", "question", "meta", "id", "response"])
def test_json_as_deep_as_can_be_read_leaves_no_caller_waiting(served: Loopback, field: str) -> None:
    """What decodes at the very limit of nesting can be looked at no further."""
    texts = [f'{{"response":"a","evidence":"b","{field}":{"[" * depth}{"]" * depth}}}' for depth in range(940, 1000)]
    answers = served.lines("\n".join(texts)).text.splitlines()
    assert len(answers) == len(texts)
    assert all('"not_checked"' in answer or field == "meta" for answer in answers)
    headers = {"content-type": "application/json"}
    statuses = {served.client.post("/v1/detect", content=text, headers=headers).status_code for text in texts[::4]}
    assert statuses <= ({200, 422} if field == "meta" else {422})


def test_a_number_that_json_lacks_is_refused_with_what_to_send(served: Loopback) -> None:
    """As `json.dumps` of Python writes it."""
    for number in ("NaN", "-Infinity", "1e999"):
        text = f'{{"response": "a", "evidence": [{{"text": "b", "score": {number}}}]}}'
        answer = served.client.post("/v1/detect", content=text, headers={"content-type": "application/json"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (422, "malformed")
        assert "null for NaN" in error["remedy"]
        of_lines = served.lines(f"{text}\n{json.dumps(BRIDGE)}").text.splitlines()
        assert json.loads(of_lines[0])["verdict"] == "not_checked"
        assert json.loads(of_lines[1])["verdict"] == "unsupported"


def test_rows_that_would_keep_a_process_for_minutes_are_refused(served: Loopback) -> None:
    passages, response = {**BRIDGE, "evidence": ["x"] * 10_001}, {**BRIDGE, "response": "a" * 200_001}
    for row, field in ((passages, "evidence"), (response, "response")):
        answer = served.detect(row)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)
        view = served.client.post("/page/view", json={"sample": row, "prediction": {}})
        assert (view.status_code, view.json()["error"]["field"]) == (422, field)
        (answered,) = served.detect([row]).json()
        assert answered["verdict"] == "not_checked"
        assert "at most" in answered["reason"]
        renamed = served.detect({"contexts": row["evidence"], "answer": row["response"]})
        assert (renamed.status_code, renamed.json()["error"]["field"]) == (422, field)


def test_lines_cut_anywhere_are_whole(served: Loopback) -> None:
    rows = "".join(json.dumps({"id": f"{n} \u00e9", **BRIDGE}, ensure_ascii=False) + "\n\n" for n in range(3)).encode()
    blocks = iter([rows[at : at + 7] for at in range(0, len(rows), 7)])
    answers = served.lines(blocks).text.splitlines()  # type: ignore[arg-type]  # httpx takes an iterator, too
    assert [json.loads(answer)["id"] for answer in answers] == [f"{n} \u00e9" for n in range(3)]


def test_compressed_bodies_are_refused(served: Loopback) -> None:
    answer = served.detect(BRIDGE, headers={"content-encoding": "gzip"})
    assert answer.status_code == 415
    assert "Content-Encoding" in answer.json()["error"]["remedy"]


# Keys, origins, and bodies that never come.


def test_keys_hold_below_the_path_of_a_proxy() -> None:
    settings = DetectionServerSettings(base_url="https://app.example/below", keys=(KEY,))
    with serving(WAYWARD, settings=settings) as found:
        for path in ("/v1/detect", "/below/v1/detect", "/below/page/view", "/below/v1/lettucedetect/spans"):
            assert found.client.post(path, json=BRIDGE).status_code == 401, path
        assert found.client.get("/below/metrics").status_code == 401
        headers = {"x-api-key": KEY}
        assert found.client.post("/below/v1/detect", json=BRIDGE, headers=headers).status_code == 200
        assert 'path="/v1/detect",status="200"' in found.client.get("/below/metrics", headers=headers).text


def test_the_log_of_requests_has_no_query(caplog: pytest.LogCaptureFixture) -> None:
    with serving(WAYWARD, settings=DetectionServerSettings(access_log=True)) as found:
        access = logging.getLogger("uvicorn.access")
        access.addHandler(caplog.handler)
        try:
            found.client.get("/v1/models?text=a-secret")
        finally:
            access.removeHandler(caplog.handler)
    assert "GET /v1/models HTTP/1.1" in caplog.text
    assert "a-secret" not in caplog.text


def test_calls_need_a_key_where_there_are_keys(closed: Loopback, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert closed.detect(BRIDGE).status_code == 401
    for bad in (f"{KEY}x", KEY[:-1], "\u00e9"):
        header = f"Bearer {bad}".encode("latin-1")
        assert closed.detect(BRIDGE, headers={"authorization": header}).status_code == 401
    assert closed.client.get("/metrics").status_code == 401
    assert closed.client.get("/v1/models").status_code == 401
    assert closed.client.post("/page/view", json={}).status_code == 401
    for headers in ({"authorization": f"Bearer {KEY}"}, {"authorization": f"bearer {KEY}"}, {"x-api-key": KEY}):
        assert closed.detect(BRIDGE, headers=headers).status_code == 200
    for path in ("/health", "/ready", "/", "/openapi.json"):
        assert closed.client.get(path).status_code == 200
    figures = closed.client.get("/metrics", headers={"x-api-key": KEY}).text
    assert KEY not in caplog.text + figures + repr(DetectionServerSettings(keys=(KEY,)))
    assert BRIDGE["response"] not in caplog.text + figures


def test_named_origins_may_call(closed: Loopback) -> None:
    headers = {"origin": "https://app.example", "sec-fetch-site": "cross-site", "x-api-key": KEY}
    answer = closed.detect(BRIDGE, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
    preflight = closed.client.options("/v1/detect", headers=asked)
    assert preflight.status_code == 204
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    assert closed.detect(BRIDGE, headers={**headers, "origin": "https://app.example.evil"}).status_code == 403


@pytest.mark.parametrize("media", ["application/json", "application/x-ndjson"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_gigabyte_is_refused_before_it_is_read(closed: Loopback, media: str, chunked: bool) -> None:
    framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 1000000000"
    head = f"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEY}\r\nContent-Type: {media}\r\n"
    block = b"[" * 65_536
    block = b"10000\r\n" + block + b"\r\n" if chunked else block
    sent, answer = 0, b""
    with socket.create_connection(closed.address, timeout=30) as connection:
        connection.sendall(f"{head}{framing}\r\n\r\n".encode())
        with suppress(OSError):  # it hangs up on us, as it should
            while sent < 1_000_000_000:
                connection.sendall(block)
                sent += len(block)
        with suppress(OSError):
            answer = connection.recv(65_536)
    assert sent < 50_000_000
    assert answer == b"" or b" 413 " in answer.partition(b"\r\n")[0] or b"too_large" in answer
    assert closed.batcher.bytes == 0


@pytest.mark.parametrize(
    "trickle",
    [
        b"",
        b"POST /v1/det",
        b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{",
        b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/jsonl\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_what_trickles_in_is_not_waited_for(closed: Loopback, trickle: bytes) -> None:
    trickle = trickle.replace(b"Host", f"X-API-Key: {KEY}\r\nHost".encode())
    with socket.create_connection(closed.address, timeout=10) as connection:
        connection.sendall(trickle)
        try:
            answer = connection.recv(65_536)
            connection.recv(65_536)
        except ConnectionResetError:
            answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
    assert closed.batcher.accepted == {"queue": 0, "streams": 0}


def test_a_body_that_nobody_wants_is_not_waited_for_either(closed: Loopback) -> None:
    """The answer (401) came before the body; the rest of it trickles in."""
    head = (
        b"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
    )
    with socket.create_connection(closed.address, timeout=10) as connection:
        connection.sendall(head)
        assert b" 401 " in connection.recv(65_536)
        connection.sendall(b"{")
        with suppress(ConnectionResetError):
            while connection.recv(65_536):  # the body of the answer may come after its head
                pass


def test_a_reader_that_does_not_read_is_let_go(closed: Loopback) -> None:
    row = json.dumps({"response": "x", "evidence": "y", "id": "i" * 20_000}) + "\n"
    body = (row * 350).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect(closed.address)
        head = f"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEY}\r\nContent-Type: application/jsonl\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        for _ in range(200):
            if closed.batcher.accepted["streams"] == 0:
                break
            time.sleep(0.05)
    assert closed.batcher.accepted["streams"] == 0
    assert closed.batcher.bytes == 0


def test_addresses_are_checked() -> None:
    with pytest.raises(UsageError, match="not the address of a server"):
        ServerSettings(base_url="veriglot.example.org")
