"""Whatever is sent, the server answers as its OpenAPI says, and never with a failure of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from studio_server import Visitor, running

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install 'veriglot[dev]'")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from studio_server import Running

pytestmark = pytest.mark.slow

_QUICK = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def fuzzed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    if request.param == "sqlite":
        database = str(folder / "studio.sqlite")
    else:
        database = request.getfixturevalue("cluster").empty("fuzz")
    with running(folder, database, rates={}) as found:
        yield found


def _operations(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(path, method) for path, methods in document["paths"].items() for method in methods]


def _probe(studio: Running, visitor: Visitor, document: dict[str, Any], real: dict[str, Any]) -> list[int]:
    """Call every operation with whatever its description allows, and with what it does not; the statuses of answers.

    In half of the calls, numbers and names in the path are `real` ones.
    """
    schema = schemathesis.openapi.from_dict(document)
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.client.cookies.items())
    headers = {"X-CSRF-Token": visitor.csrf, "Cookie": cookie}
    known = schemathesis.checks
    checks = [known.not_a_server_error, known.status_code_conformance, known.content_type_conformance]
    checks.append(known.response_schema_conformance)
    seen: list[int] = []
    for path, method in _operations(document):
        if path == "/api/logout":
            continue  # it would end the session that the others are called with
        operation = schema[path][method.upper()]
        cases = [
            operation.as_strategy(generation_mode=mode)
            for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
            if mode is schemathesis.GenerationMode.POSITIVE or _has_input(document["paths"][path][method])
        ]

        @_QUICK
        @given(case=st.one_of(cases), there=st.booleans())
        def call(case: Any, there: bool) -> None:
            if there and case.path_parameters:
                case.path_parameters = {name: real.get(name, value) for name, value in case.path_parameters.items()}
            answer = case.call(base_url=studio.url, headers=headers)
            seen.append(answer.status_code)
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)
            case.validate_response(answer, checks=checks)

        call()
    return seen


def _has_input(operation: dict[str, Any]) -> bool:
    return "requestBody" in operation or bool(operation.get("parameters"))


@pytest.mark.parametrize("role", ["annotator", "lead"])
def test_no_call_fails_whatever_is_sent(fuzzed: Running, role: str) -> None:
    lead = fuzzed.visitor(role="lead")
    document = lead.get("/api/openapi.json").json()
    visitor = lead if role == "lead" else fuzzed.visitor()
    other = fuzzed.visitor()
    given_ = other.next() if role == "lead" else visitor.next()
    real = {"number": given_["id"], "person": other.get("/api/me").json()["person"]["id"], "token": fuzzed.link()}
    seen = _probe(fuzzed, visitor, document, real)
    assert len(seen) > 150
    assert {200, 404, 422} <= set(seen)
