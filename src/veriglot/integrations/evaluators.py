"""The verdict as an evaluator of LangSmith (LangChain's) and LlamaIndex, and as a metric of Ragas and DeepEval.

Of each response 1 is supported and 0 unsupported, so that a mean over responses is the share of supported ones. What
was not checked gets no score. A package is imported when its metric is made; annotations are not deferred, because
dataclasses read them as they make one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from veriglot.errors import NotChecked
from veriglot.integrations import explain, judge, needing, texts_of, value_of

__all__ = ()  # veriglot.integrations offers what is here


def __getattr__(name: str) -> Any:
    """The classes, where pickles look for them."""
    makers = {"LlamaIndexEvaluator": _llama_index, "RagasMetric": _ragas, "DeepEvalMetric": _deepeval}
    if name not in makers:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return makers[name]()


def _grade(response: Any, evidence: Any, question: Any = None, **options: Any) -> tuple[str, float | None, str]:
    """The verdict, its score (None where it was not checked), and the spans or the reason in words."""
    answer, passages = "".join(texts_of(response)), texts_of(evidence)
    prediction = judge(answer, passages, question, **options)
    spans = prediction.get_spans(None)
    return str(prediction.verdict), None if spans is None else float(not spans), explain(prediction, answer, passages)


def langchain_evaluator(
    response: str = "answer", evidence: str = "context", **options: Any
) -> Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]:
    """An evaluator for `langsmith.evaluate`, which comes with LangChain.

    Its score is 1 for a supported answer, 0 for an unsupported one and None for one that was not checked, with the
    spans or the reason as comment.

    Args:
        response: key of the answer among the outputs.
        evidence: key of what was retrieved, among the outputs or else among the inputs.
        options: as for `veriglot.detect`.
    """

    def grounded(inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
        passages = value_of({**inputs, **outputs}, evidence)
        verdict, score, comment = _grade(value_of(outputs, response), passages, **options)
        return {"key": "grounded", "score": score, "value": verdict, "comment": comment}

    return grounded


def llama_index_evaluator(**options: Any) -> Any:
    """An evaluator of LlamaIndex: it passes what the contexts support; what was not checked is an invalid result.

    Args:
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: llama-index-core is not installed.
    """
    return _llama_index()(**options)


@cache
def _llama_index() -> type:
    with needing("llama-index-core"):
        from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

    class LlamaIndexEvaluator(BaseEvaluator):
        __qualname__ = "LlamaIndexEvaluator"

        def __init__(self, **options: Any) -> None:
            self._options = options

        def _get_prompts(self) -> dict[str, Any]:
            return {}

        def _update_prompts(self, prompts: Any) -> None:
            pass

        async def aevaluate(
            self, query: Any = None, response: Any = None, contexts: Any = None, **_: Any
        ) -> EvaluationResult:
            verdict, score, reason = await asyncio.to_thread(_grade, response, contexts, query, **self._options)
            texts = {"query": query, "response": response, "contexts": contexts}
            if score is None:
                return EvaluationResult(**texts, invalid_result=True, invalid_reason=reason)
            return EvaluationResult(**texts, passing=verdict == "supported", score=score, feedback=reason)

    return LlamaIndexEvaluator


def ragas_metric(**options: Any) -> Any:
    """A metric of Ragas, `groundedness`: 1 where the retrieved contexts support the response, else 0.

    A response that was not checked raises NotChecked with the reason: `ragas.evaluate` logs it, leaves the row without
    a score and out of the mean, or stops with `raise_exceptions=True`. For `ragas.experiment`, `await
    metric.ascore(response, retrieved_contexts)` gives the value, then None, and the reason.

    Args:
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: ragas is not installed.
    """
    return _ragas()(options=options)


@cache
def _ragas() -> type:
    with needing("ragas"):
        from ragas.metrics.base import MetricType, SingleTurnMetric
        from ragas.metrics.result import MetricResult

    columns = {"response", "retrieved_contexts:optional", "user_input:optional"}

    @dataclass
    class RagasMetric(SingleTurnMetric):
        __qualname__ = "RagasMetric"

        name: str = "groundedness"
        options: dict[str, Any] = field(default_factory=dict)
        _required_columns: Any = field(default_factory=lambda: {MetricType.SINGLE_TURN: columns})

        def init(self, run_config: Any) -> None:
            pass

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:  # noqa: ARG002
            result = await self.ascore(sample.response or "", sample.retrieved_contexts, sample.user_input)
            if result.value is None:
                raise NotChecked(f"The response is {result.reason}.")
            return float(result.value)

        async def ascore(self, response: str, retrieved_contexts: Any, user_input: Any = None) -> MetricResult:
            asked = user_input if isinstance(user_input, str) else None
            grade = await asyncio.to_thread(_grade, response, retrieved_contexts, asked, **self.options)
            return MetricResult(value=grade[1], reason=grade[2])

    return RagasMetric


def deepeval_metric(**options: Any) -> Any:
    """A metric of DeepEval: 1 where the retrieval context, or else the context, supports the actual output; else 0.

    It passes at 1, with the spans as reason. A response that was not checked raises NotChecked with the reason.

    Args:
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: deepeval is not installed.
    """
    return _deepeval()(**options)


@cache
def _deepeval() -> type:
    with needing("deepeval"):
        from deepeval.metrics import BaseMetric
        from deepeval.test_case import LLMTestCase

    class DeepEvalMetric(BaseMetric):
        __qualname__ = "DeepEvalMetric"

        # DeepEval copies a metric by the names in this signature.
        def __init__(
            self, detector: str = "grounding", strictness: str = "normal", language: str | None = None
        ) -> None:
            self.threshold = 1.0
            self.detector = detector
            self.strictness = strictness
            self.language = language

        def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
            evidence = test_case.retrieval_context or test_case.context
            options = {"detector": self.detector, "strictness": self.strictness, "language": self.language}
            verdict, self.score, self.reason = _grade(test_case.actual_output, evidence, test_case.input, **options)
            self.success = verdict == "supported"
            self.error = self.reason if self.score is None else None
            if self.score is None:
                raise NotChecked(f"The response is {self.reason}.")
            return float(self.score)

        async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
            return await asyncio.to_thread(self.measure, test_case)

        @property
        def __name__(self) -> str:
            return "Groundedness"

    return DeepEvalMetric
