"""Veriglot in other packages' pipelines, imported on use: one name for each place where text is checked.

Every adapter judges with `veriglot.detect` and takes its keyword arguments `detector`, `strictness` and `language`.
What was not checked passes nowhere for supported.

>>> from veriglot.integrations import detect_batch
>>> detect_batch({"response": ["It opened in 1907."], "evidence": ["It opened in 1879."]})["veriglot_verdict"]
['unsupported']
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import veriglot
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "OpenAIChecker",
    "deepeval_metric",
    "detect_batch",
    "haystack_checker",
    "langchain_evaluator",
    "langchain_runnable",
    "llama_index_evaluator",
    "llama_index_postprocessor",
    "otel_attributes",
    "ragas_metric",
    "register_pandas",
    "traced_detect",
]

_HOMES = {
    "deepeval_metric": "evaluators",
    "haystack_checker": "frameworks",
    "llama_index_evaluator": "evaluators",
    "llama_index_postprocessor": "frameworks",
    "OpenAIChecker": "live",
    "ragas_metric": "evaluators",
    "detect_batch": "tables",
    "langchain_evaluator": "evaluators",
    "langchain_runnable": "frameworks",
    "otel_attributes": "live",
    "register_pandas": "tables",
    "traced_detect": "live",
}
_EXCERPT = 160


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Where a package is imported that an adapter is for.

    Raises:
        UsageError: it is not installed; the error says what to type.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"This adapter is for {package}, but {error.name!r} cannot be imported.",
            remedy=f"Type: pip install '{package}'",
        ) from error


def texts_of(content: Any) -> list[str]:
    """The texts of evidence in any of its usual forms: a text, a document, a node, a message, or a list of them.

    Raises:
        TypeError: something holds no text.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if isinstance(content, list | tuple):
        return [text for item in content for text in texts_of(item)]
    if hasattr(content, "get_content"):  # a node of LlamaIndex
        return [content.get_content()]
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return [content["text"]]
    for name in ("page_content", "text", "content", "context"):
        value = getattr(content, name, None)
        if isinstance(value, str | list):
            return texts_of(value)
    raise TypeError(f"A text, a document or a list of them is expected, but this is {type(content).__name__}.")


def value_of(row: Mapping[str, Any], key: str) -> Any:
    """What a dictionary holds under `key`, or a UsageError that names its keys."""
    if key not in row:
        raise UsageError(
            f"There is no {key!r} among {', '.join(map(repr, row))}.",
            remedy="Say which keys hold the texts: response=KEY, evidence=KEY.",
        )
    return row[key]


def judge(response: Any, evidence: Any, question: Any = None, **options: Any) -> veriglot.Prediction:
    """`veriglot.detect` for texts in any form that `texts_of` knows; several parts of a response are joined."""
    asked = "\n".join(texts_of(question)) or None
    return veriglot.detect(texts_of(evidence), "".join(texts_of(response)), question=asked, **options)


def explain(prediction: veriglot.Prediction, response: str, evidence: Sequence[str] = ()) -> str:
    """The response with its spans in ⟦brackets⟧ and a line on each beneath, or why it was not checked."""
    spans = prediction.get_spans(None)
    if spans is None:
        return f"not checked ({prediction.status}): {prediction.reason}"
    if not spans:
        return "The evidence supports the response."
    passages = {f"p{index}": passage for index, passage in enumerate(evidence)}
    marked, lines, reached = "", [], 0
    for span in spans:
        marked += f"{response[reached : span.start]}⟦{response[span.start : span.end]}⟧"
        reached = span.end
        facts = [f"[{span.start}, {span.end})", span.type, f"{span.confidence:.2f}" if span.confidence else None]
        line = f"  {response[span.start : span.end]!r} {', '.join(fact for fact in facts if fact)}"
        compared = [
            passages[pointer.id][pointer.start : pointer.end] for pointer in span.evidence if pointer.id in passages
        ]
        excerpts = [text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} ..." for text in compared]
        lines.append("\n".join([line, *(f"    evidence: {text}" for text in excerpts)]))
    return "\n".join([marked + response[reached:], *lines])
