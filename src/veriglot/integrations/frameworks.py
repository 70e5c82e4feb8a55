"""A step in the pipelines of LangChain, LlamaIndex and Haystack.

A framework is imported when its step is made, because its base classes take seconds to load. Annotations are not
deferred here: Haystack and pydantic read them as they make a class, and cannot see the names inside a function.
"""

from functools import cache
from typing import Any

from veriglot.errors import UsageError
from veriglot.integrations import judge, needing, value_of

__all__ = ()  # veriglot.integrations offers what is here


def __getattr__(name: str) -> Any:
    """The classes, where pickles and saved pipelines look for them."""
    makers = {"LlamaIndexPostprocessor": _postprocessor, "HaystackChecker": _checker}
    if name not in makers:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return makers[name]()


def langchain_runnable(
    response: str = "answer",
    evidence: str = "context",
    question: str | None = None,
    output: str = "grounding",
    **options: Any,
) -> Any:
    """A Runnable of LangChain that adds to a dictionary what Veriglot says of it.

    Args:
        response: key of the answer: a text or a message.
        evidence: key of what was retrieved: texts, documents, or a list of them.
        question: key of the question, if it is there.
        output: key of the result: `verdict` and the fields of the prediction; `spans` only where it was checked.
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: langchain-core is not installed; or, when it runs, a key is missing.
    """
    with needing("langchain-core"):
        from langchain_core.runnables import RunnableLambda

    def check(row: dict[str, Any]) -> dict[str, Any]:
        asked = value_of(row, question) if question else None
        prediction = judge(value_of(row, response), value_of(row, evidence), asked, **options)
        return {**row, output: {"verdict": str(prediction.verdict), **prediction.to_dict()}}

    return RunnableLambda(check, name="veriglot")


def llama_index_postprocessor(drop: bool = False, **options: Any) -> Any:
    """A node postprocessor of LlamaIndex that says how many words of an answer each node supports.

    Give it the answer as the query, after it was synthesized: `postprocess_nodes(nodes, query_str=answer)`. Each node's
    metadata gets `veriglot_words`, the count, or None where the answer was not checked; then no node drops.

    Args:
        drop: whether nodes that support no word are dropped.
        options: as for `veriglot.detect`: `detector` (a name), `strictness`, `language`.

    Raises:
        UsageError: llama-index-core is not installed; or, when it runs, there is no answer.
    """
    return _postprocessor()(drop=drop, **options)


@cache
def _postprocessor() -> type:
    with needing("llama-index-core"):
        from llama_index.core.postprocessor.types import BaseNodePostprocessor
        from llama_index.core.schema import NodeWithScore, QueryBundle

    class LlamaIndexPostprocessor(BaseNodePostprocessor):
        __qualname__ = "LlamaIndexPostprocessor"  # where pickles look for it
        drop: bool = False
        detector: str = "grounding"
        strictness: str = "normal"
        language: str | None = None

        def _postprocess_nodes(
            self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
        ) -> list[NodeWithScore]:
            if query_bundle is None:
                raise UsageError("There is no answer to hold the nodes against.", remedy="Give it as query_str.")
            options = {name: getattr(self, name) for name in ("detector", "strictness", "language")}
            prediction = judge(query_bundle.query_str, [node.get_content() for node in nodes], words=True, **options)
            words = prediction.words
            result = []
            for index, node in enumerate(nodes):
                name = f"p{index}"
                count = None if words is None else sum(any(at.id == name for at in word.evidence) for word in words)
                if count == 0 and self.drop:
                    continue
                copy = node.model_copy(update={"node": node.node.model_copy(deep=True)})
                copy.node.metadata["veriglot_words"] = count
                copy.node.excluded_llm_metadata_keys.append("veriglot_words")
                copy.node.excluded_embed_metadata_keys.append("veriglot_words")
                result.append(copy)
            return result

    return LlamaIndexPostprocessor


def haystack_checker(**options: Any) -> Any:
    """A component of Haystack that gives each reply of a generator its verdict by the documents.

    Its inputs are `replies`, `documents` and, if known, `query`; its outputs `replies`, unchanged, and in their order
    `verdicts` and `predictions`.

    Args:
        options: as for `veriglot.detect`: `detector` (a name), `strictness`, `language`.

    Raises:
        UsageError: haystack-ai is not installed.
    """
    return _checker()(**options)


@cache
def _checker() -> type:
    with needing("haystack-ai"):
        from haystack import Document, component
        from haystack.dataclasses import ChatMessage

    class HaystackChecker:
        __qualname__ = "HaystackChecker"  # where saved pipelines look for it

        def __init__(
            self, detector: str = "grounding", strictness: str = "normal", language: str | None = None
        ) -> None:
            self.detector = detector
            self.strictness = strictness
            self.language = language

        @component.output_types(
            replies=list[str] | list[ChatMessage], verdicts=list[str], predictions=list[dict[str, Any]]
        )
        def run(
            self, replies: list[str] | list[ChatMessage], documents: list[Document], query: str | None = None
        ) -> dict[str, Any]:
            options = {"detector": self.detector, "strictness": self.strictness, "language": self.language}
            predictions = [judge(reply, documents, query, **options) for reply in replies]
            return {
                "replies": replies,
                "verdicts": [str(prediction.verdict) for prediction in predictions],
                "predictions": [prediction.to_dict() for prediction in predictions],
            }

    return component(HaystackChecker)  # type: ignore[no-any-return]
