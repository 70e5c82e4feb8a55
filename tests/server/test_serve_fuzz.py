"""Whatever is sent, the server answers as its OpenAPI says, and never with a failure of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from loopback import WAYWARD, serving

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install 'veriglot[dev]'")

from veriglot.server.batches import Limits  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopback import Loopback

pytestmark = pytest.mark.slow

_QUICK = settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def served() -> Iterator[Loopback]:
    with serving("grounding", WAYWARD, limits=Limits(queue=64)) as found:
        yield found


def test_no_call_fails_whatever_is_sent(served: Loopback) -> None:
    document = served.client.get("/openapi.json").json()
    for methods in document["paths"].values():  # lines are no JSON of one schema; the next test sends them
        body = methods.get("post", {}).get("requestBody", {}).get("content", {})
        body.pop("application/x-ndjson", None)
    schema = schemathesis.openapi.from_dict(document)
    known = schemathesis.checks
    checks = [known.not_a_server_error, known.status_code_conformance, known.content_type_conformance]
    checks.append(known.response_schema_conformance)
    seen: set[int] = set()
    for path, methods in document["paths"].items():
        for method in methods:
            operation = schema[path][method.upper()]
            modes = list(schemathesis.GenerationMode) if method == "post" else [schemathesis.GenerationMode.POSITIVE]

            @_QUICK
            @given(case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes]))
            def call(case: Any) -> None:
                answer = case.call(base_url=served.url)
                seen.add(answer.status_code)
                assert answer.status_code < 500, (case.as_curl_command(), answer.text)
                case.validate_response(answer, checks=checks)

            call()
    assert {200, 422} <= seen


@settings(_QUICK, max_examples=60)
@given(body=st.one_of(st.binary(max_size=400), st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace"))))
def test_lines_of_anything_are_answered_line_by_line(served: Loopback, body: bytes) -> None:
    answer = served.lines(body)
    assert answer.status_code == 200
    lines = [line for line in body.split(b"\n") if line.strip()]
    assert len(answer.content.splitlines()) == len(lines)
    assert b'"supported"' not in answer.content or b'"response"' in body
