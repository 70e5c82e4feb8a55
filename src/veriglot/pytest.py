"""Tests that fail if the evidence does not support a response: `assert_grounded`, and a pytest plug-in.

The plug-in loads automatically. Its fixture `grounded` is `assert_grounded` with the detector and strictness of the
pytest settings `veriglot_detector` and `veriglot_strictness`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import veriglot

try:
    import pytest

    _fixture: Any = pytest.fixture(scope="session")
except ModuleNotFoundError:  # assert_grounded works with unittest, too

    def _fixture(function: Any) -> Any:
        return function


__all__ = ()  # `veriglot` exports assert_grounded


def assert_grounded(
    response: Any,
    evidence: Any,
    *,
    max_unsupported: int = 0,
    question: str | None = None,
    language: str | None = None,
    detector: Any = "auto",
    strictness: str = "normal",
) -> veriglot.Prediction:
    """Fail unless the response was checked and has at most `max_unsupported` unsupported spans.

    Args:
        response: a text, or an object with a text, such as a message of LangChain.
        evidence: a text, several, or documents; support by any of them counts.
        max_unsupported: maximum number of unsupported spans; 0 or more.
        question: the question, if known.
        language: BCP 47 tag of the response, or None to detect it.
        detector: as for `veriglot.detect`, like `strictness`.

    Returns:
        The prediction, for further assertions.

    Raises:
        AssertionError: too many spans, or the response was not checked; with the text, spans and reason.
        UsageError: `max_unsupported` is negative.
    """
    from veriglot.integrations import explain, judge

    __tracebackhide__ = True
    if not max_unsupported >= 0:  # also refuses NaN
        raise UsageError(f"max_unsupported is a number of spans from 0, but {max_unsupported} was given.")
    options = {"language": language, "detector": detector, "strictness": strictness}
    prediction = judge(response, evidence, question, **options)
    spans = prediction.get_spans(None)
    if spans is None or len(spans) > max_unsupported:
        text = explain(prediction)
        if spans is None:
            raise AssertionError(f"The response was {text}. What was not checked does not pass.")
        marked = f"{len(spans)} unsupported span{'s' * (len(spans) != 1)} in the response, {max_unsupported} allowed:"
        raise AssertionError(f"{marked}\n{text}")
    return prediction


def pytest_addoption(parser: Any) -> None:
    """Declare the settings."""
    parser.addini("veriglot_detector", "detector of the fixture `grounded`", default="auto")
    parser.addini("veriglot_strictness", "strictness of the fixture `grounded`: low, normal or high", default="normal")


@_fixture
def grounded(request: Any) -> Callable[..., veriglot.Prediction]:
    """`veriglot.assert_grounded` with the detector and strictness of pytest's settings."""
    config = request.config
    return partial(assert_grounded, **{key: config.getini(f"veriglot_{key}") for key in ("detector", "strictness")})
