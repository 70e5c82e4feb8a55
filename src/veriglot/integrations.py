"""Adapters for other packages' pipelines: one name for each point where text is checked.

Every adapter judges with `veriglot.detect` and takes its keyword arguments `detector`, `strictness` and `language`. An
unchecked response never counts as supported. A package is imported only when its adapter is created, because its base
classes take seconds to load; annotations are not deferred, because Haystack, pydantic and dataclasses read them when a
class is created.

>>> from veriglot.integrations import detect_batch
>>> detect_batch({"response": ["It opened in 1907."], "evidence": ["It opened in 1879."]})["veriglot_verdict"]
['unsupported']
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from math import nan
from typing import Any

import msgspec

import veriglot
from veriglot.errors import NotChecked, UsageError
from veriglot.records import Span, Verdict
from veriglot.report.text_layout import excerpt

__all__ = [
    "OpenAIChecker",
    "deepeval_metric",
    "detect_batch",
    "haystack_checker",
    "langchain_evaluator",
    "langchain_runnable",
    "llama_index_evaluator",
    "otel_attributes",
    "ragas_metric",
    "traced_detect",
]


def __getattr__(name: str) -> Any:
    """The classes, for pickles and saved pipelines that import them by name."""
    makers = {
        "LlamaIndexEvaluator": _llama_index,
        "RagasMetric": _ragas,
        "DeepEvalMetric": _deepeval,
        "HaystackChecker": _checker,
    }
    if name not in makers:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return makers[name]()


@contextmanager
def _needing(package: str) -> Iterator[None]:
    """Context for importing the package of an adapter.

    Raises:
        UsageError: it is not installed; the error says what to type.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"This adapter is for {package}, but {error.name!r} cannot be imported.", f"Type: pip install '{package}'"
        ) from error


def texts_of(content: Any) -> list[str]:
    """The texts of evidence in any usual form: a text, a document, a node, a message, or a list of them.

    Raises:
        TypeError: an element has no text.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if isinstance(content, list | tuple):
        return [text for item in content for text in texts_of(item)]
    if hasattr(content, "get_content"):  # a node of LlamaIndex
        return [content.get_content()]
    value_of = content.get if isinstance(content, dict) else partial(getattr, content)
    values = [value_of(name, 0) for name in ("page_content", "text", "content", "context")]
    for value in values:
        if isinstance(value, str | list):
            return texts_of(value)
    if any(value is None for value in values):  # a message that only calls tools, a document without a text
        return []
    raise TypeError(f"A text, a document or a list of them is expected, but this is {type(content).__name__}.")


def _value_of(row: Mapping[str, Any], key: str) -> Any:
    """The value of `key` in a dictionary or table, or a UsageError that lists the keys."""
    if key not in row:
        raise UsageError(
            f"There is no {key!r} among {', '.join(map(repr, row))}.",
            "Say which hold the texts: response=NAME, evidence=NAME.",
        )
    return row[key]


def judge(response: Any, evidence: Any, question: Any = None, **options: Any) -> "veriglot.Prediction":
    """`veriglot.detect` for texts in any form of `texts_of`; several parts of a response are joined."""
    asked = "\n".join(texts_of(question)) or None
    return veriglot.detect(texts_of(evidence), response="".join(texts_of(response)), question=asked, **options)


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options, after loading the detector with them once, so that wrong options fail before the work."""
    judge("", None, **options)
    return options


class _Judging:
    """Options by name, in a signature that DeepEval copies and Haystack saves."""

    def __init__(self, detector: str = "auto", strictness: str = "normal", language: str | None = None) -> None:
        self.detector = detector
        self.strictness = strictness
        self.language = language


def _options_of(holder: Any) -> dict[str, Any]:
    return {name: getattr(holder, name) for name in ("detector", "strictness", "language")}


def explain(prediction: "veriglot.Prediction") -> str:
    """The response with its spans in ⟦brackets⟧ and one line below for each, or why it was not checked."""
    spans, sample = prediction.get_spans(None), prediction.sample
    if spans is None:
        return f"not checked ({prediction.status}): {prediction.reason}"
    if not spans:
        return "The evidence supports the response."
    assert sample is not None  # `detect` sets it
    response, passages = sample.response, {passage.id: passage.text for passage in sample.evidence}
    marked, lines, reached = "", [], 0
    for span in spans:
        marked += f"{response[reached : span.start]}⟦{response[span.start : span.end]}⟧"
        reached = span.end
        facts = [f"[{span.start}, {span.end})", span.type, f"{span.confidence:.2f}" if span.confidence else None]
        line = f"  {response[span.start : span.end]!r} {', '.join(fact for fact in facts if fact)}"
        excerpts = [
            excerpt(passages[pointer.id], pointer.start, pointer.end)
            for pointer in span.evidence
            if pointer.id in passages
        ]
        lines += [line, *(f"    evidence: {before}⟦{quoted}⟧{after}" for before, quoted, after in excerpts)]
    return "\n".join([marked + response[reached:], *lines])


# Evaluators of LangSmith (LangChain's) and LlamaIndex, and metrics of Ragas and DeepEval.
#
# A supported response scores 1 and an unsupported one 0, so the mean over responses is the share of supported ones.
# Unchecked responses have no score.


def _grade(response: Any, evidence: Any, question: Any = None, **options: Any) -> tuple[str, float | None, str]:
    """The verdict, its score (None if not checked), and the spans or the reason as text."""
    prediction = judge(response, evidence, question, **options)
    spans = prediction.get_spans(None)
    return str(prediction.verdict), None if spans is None else float(not spans), explain(prediction)


def langchain_evaluator(
    response: str = "answer", evidence: str = "context", **options: Any
) -> Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]:
    """An evaluator for `langsmith.evaluate`, which comes with LangChain.

    Its score is 1 for a supported answer, 0 for an unsupported one and None for an unchecked one; the comment has the
    spans or the reason.

    Args:
        response: key of the answer among the outputs.
        evidence: key of the retrieved passages, among the outputs or else among the inputs.
        options: as for `veriglot.detect`.
    """

    _checked(options)

    def grounded(inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
        passages = _value_of({**inputs, **outputs}, evidence)
        verdict, score, comment = _grade(_value_of(outputs, response), passages, **options)
        return {"key": "grounded", "score": score, "value": verdict, "comment": comment}

    return grounded


def llama_index_evaluator(**options: Any) -> Any:
    """An evaluator of LlamaIndex: it passes if the contexts support the response; an unchecked response is invalid.

    Args:
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: llama-index-core is not installed.
    """
    return _llama_index()(**_checked(options))


@cache
def _llama_index() -> type:
    with _needing("llama-index-core"):
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
    """A metric of Ragas, `groundedness`: 1 if the retrieved contexts support the response, else 0.

    An unchecked response raises NotChecked with the reason: `ragas.evaluate` logs it and leaves the row without a score
    and out of the mean, or stops with `raise_exceptions=True`. For `ragas.experiment`, `await metric.ascore(response,
    retrieved_contexts)` returns the value (None if unchecked) and the reason.

    Args:
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: ragas is not installed.
    """
    return _ragas()(options=_checked(options))


@cache
def _ragas() -> type:
    with _needing("ragas"):
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
    """A metric of DeepEval: 1 if the retrieval context, or else the context, supports the actual output; else 0.

    It passes at 1, with the spans as reason. An unchecked response raises NotChecked with the reason.

    Args:
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: deepeval is not installed.
    """
    return _deepeval()(**_checked(options))


@cache
def _deepeval() -> type:
    with _needing("deepeval"):
        from deepeval.metrics import BaseMetric
        from deepeval.test_case import LLMTestCase

    class DeepEvalMetric(_Judging, BaseMetric):
        __qualname__ = "DeepEvalMetric"
        threshold = 1.0

        def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
            retrieved = test_case.retrieval_context  # []: a search without results; None: no search
            evidence = test_case.context if retrieved is None else retrieved
            verdict, self.score, self.reason = _grade(
                test_case.actual_output, evidence, test_case.input, **_options_of(self)
            )
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


# Steps in the pipelines of LangChain, LlamaIndex and Haystack.


def langchain_runnable(
    response: str = "answer",
    evidence: str = "context",
    question: str | None = None,
    output: str = "grounding",
    **options: Any,
) -> Any:
    """A Runnable of LangChain that adds Veriglot's prediction to a dictionary.

    Args:
        response: key of the answer: a text or a message.
        evidence: key of the retrieved passages: texts, documents, or a list of them.
        question: key of the question, if there is one.
        output: key of the result, the prediction as a dictionary; it has `spans` only if the answer was checked.
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.

    Raises:
        UsageError: langchain-core is not installed; or, when it runs, a key is missing.
    """
    with _needing("langchain-core"):
        from langchain_core.runnables import RunnableLambda

    step = partial(_with_prediction, response, evidence, question, output, _checked(options))
    return RunnableLambda(step, name="veriglot")


def _with_prediction(
    response: str, evidence: str, question: str | None, output: str, options: dict[str, Any], row: dict[str, Any]
) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UsageError(
            f"This step takes a dictionary with {response!r} and {evidence!r}, and not {type(row).__name__}.",
            "Put RunnablePassthrough.assign(...) or a RunnableParallel before it.",
        )
    asked = _value_of(row, question) if question else None
    prediction = judge(_value_of(row, response), _value_of(row, evidence), asked, **options)
    return {**row, output: prediction.to_dict()}


def haystack_checker(**options: Any) -> Any:
    """A component of Haystack that checks each reply of a generator against the documents.

    Its inputs are `replies`, `documents` and, if known, `query`; its outputs are the unchanged `replies` and, in the
    same order, `verdicts` and `predictions`.

    Args:
        options: as for `veriglot.detect`: `detector` (a name), `strictness`, `language`.

    Raises:
        UsageError: haystack-ai is not installed.
    """
    return _checker()(**_checked(options))


@cache
def _checker() -> type:
    with _needing("haystack-ai"):
        from haystack import Document, component
        from haystack.dataclasses import ChatMessage

    class HaystackChecker(_Judging):
        __qualname__ = "HaystackChecker"  # where saved pipelines look for it

        @component.output_types(
            replies=list[str] | list[ChatMessage], verdicts=list[str], predictions=list[dict[str, Any]]
        )
        def run(
            self, replies: list[str] | list[ChatMessage], documents: list[Document], query: str | None = None
        ) -> dict[str, Any]:
            predictions = [judge(reply, documents, query, **_options_of(self)) for reply in replies]
            return {
                "replies": replies,
                "verdicts": [str(prediction.verdict) for prediction in predictions],
                "predictions": [prediction.to_dict() for prediction in predictions],
            }

    return component(HaystackChecker)  # type: ignore[no-any-return]


# In a running application: check OpenAI's answers while they stream, and export predictions as OpenTelemetry spans.


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of an answer that is being streamed.

    Attributes:
        text: the sentence, without surrounding spaces.
        start, end: its range in the answer, half-open in code points.
        prediction: for the answer up to the end of this sentence; `sample.response` is that text.
    """

    text: str
    start: int
    end: int
    prediction: "veriglot.Prediction"

    @property
    def spans(self) -> tuple[Span, ...]:
        """The unsupported spans of the sentence; their offsets refer to the answer.

        Raises:
            NotChecked: it was not checked.
        """
        return tuple(span for span in self.prediction.spans if span.end > self.start and span.start < self.end)

    @property
    def verdict(self) -> Verdict:
        """`supported`, `unsupported` (a span is in the sentence) or `not_checked`."""
        if self.prediction.verdict is Verdict.NOT_CHECKED:
            return Verdict.NOT_CHECKED
        return Verdict.UNSUPPORTED if self.spans else Verdict.SUPPORTED


class _Answer:
    """The text so far; a sentence is complete and judged when the next one begins."""

    def __init__(self, evidence: Any, request: dict[str, Any], options: dict[str, Any]) -> None:
        if request.get("n", 1) not in (1, None):
            raise UsageError("Only one answer can be checked as it streams, but n asks for more.", "Leave out n.")
        self._evidence = evidence
        self._options = options
        self._text = ""
        self._reached = 0

    def add(self, chunk: Any) -> list[CheckedSentence]:
        delta = chunk.choices[0].delta if chunk.choices else None  # some servers send a last chunk without choices
        piece = delta.content if delta is not None else None
        self._text += piece or ""
        return self.checked(final=False) if piece else []

    def checked(self, *, final: bool = True) -> list[CheckedSentence]:
        from veriglot.text.segmentation import sentences

        base, result = self._reached, []
        ranges = sentences(self._text[base:], self._options.get("language"))
        for start, end in ((base + start, base + end) for start, end in (ranges if final else ranges[:-1])):
            # With the sentences before it: they give the language and resolve pronouns.
            prediction = judge(self._text[:end], self._evidence, **self._options)
            result.append(CheckedSentence(self._text[start:end], start, end, prediction))
            self._reached = end
        return result


class OpenAIChecker:
    """A client of OpenAI's API, or of a compatible server, that checks answers sentence by sentence.

    >>> checker = OpenAIChecker(openai.OpenAI())  # doctest: +SKIP
    >>> for sentence in checker.stream(passages, model="gpt-4o", messages=messages):  # doctest: +SKIP
    ...     print(sentence.verdict, sentence.text)

    Args:
        client: `openai.OpenAI`, or `openai.AsyncOpenAI` for `astream`.
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.
    """

    def __init__(self, client: Any, **options: Any) -> None:
        self._client = client
        self._options = _checked(options)

    def stream(self, evidence: Any, **request: Any) -> Iterator[CheckedSentence]:
        """Send a request, and yield each sentence with its verdict as soon as it is complete.

        Args:
            evidence: the retrieved passages: texts or documents.
            request: as for `client.chat.completions.create`; `n` must be 1.

            Raises:
                UsageError: `n` is not 1. Errors of the client are passed on.
        """
        answer = _Answer(evidence, request, self._options)
        with self._client.chat.completions.create(**{**request, "stream": True}) as chunks:
            for chunk in chunks:
                yield from answer.add(chunk)
        yield from answer.checked()

    async def astream(self, evidence: Any, **request: Any) -> AsyncIterator[CheckedSentence]:
        """`stream` for `openai.AsyncOpenAI`; sentences are judged in a thread."""
        answer = _Answer(evidence, request, self._options)
        async with await self._client.chat.completions.create(**{**request, "stream": True}) as chunks:
            async for chunk in chunks:
                for sentence in await asyncio.to_thread(answer.add, chunk):
                    yield sentence
        for sentence in await asyncio.to_thread(answer.checked):
            yield sentence


def otel_attributes(prediction: "veriglot.Prediction", *, text: bool = False) -> dict[str, Any]:
    """A prediction as attributes of an OpenTelemetry span; without texts unless requested.

    Args:
        prediction: the result of `veriglot.detect`.
        text: whether to include `veriglot.unsupported` (the marked texts) and `veriglot.reason`.

    Returns:
        `veriglot.verdict`, `.status`, `.detector`, `.language`, `.score` and `.spans` (their number), as far as known.
    """
    plain = prediction.to_dict()
    names = ("verdict", "status", "detector", "language", "score", *(["reason"] if text else []))
    values = {name: plain[name] for name in names if name in plain}
    if "spans" in plain:
        values["spans"] = len(plain["spans"])
        if text:
            values["unsupported"] = [span.get("text", "") for span in plain["spans"]]
    return {f"veriglot.{name}": value for name, value in values.items()}


def traced_detect(evidence: Any, *, response: Any, text: bool = False, **options: Any) -> "veriglot.Prediction":
    """`veriglot.detect` inside an OpenTelemetry span `veriglot.detect` with `otel_attributes`.

    Raises:
        UsageError: opentelemetry-api is not installed.
    """
    with _needing("opentelemetry-api"):
        from opentelemetry import trace
    with trace.get_tracer("veriglot").start_as_current_span("veriglot.detect", record_exception=text) as span:
        prediction = judge(response, evidence, **options)
        span.set_attributes(otel_attributes(prediction, text=text))
    return prediction


# Columns in, columns out: for `datasets.map` and DataFrames of pandas.


def detect_batch(
    batch: Mapping[str, Sequence[Any]],
    response: str = "response",
    evidence: str = "evidence",
    question: str | None = None,
    **options: Any,
) -> dict[str, list[Any]]:
    """Judge the rows of a table, for `dataset.map(detect_batch, batched=True)` of datasets.

    Args:
        batch: columns by name, such as a batch of datasets or a DataFrame.
        response: the column of responses. A row without a response is not checked.
        evidence: the column of evidence: one text or several in each row; missing texts are ignored.
        question: the column of questions, if there is one.
        options: as for `veriglot.detect_many`: `detector`, `strictness`, `language`.

    Returns:
        Columns in the order of the rows, with the same types in every batch: `veriglot_verdict`; `veriglot_score`,
        NaN if the row was not checked; `veriglot_spans`, a JSON list, or `null` if it was not checked;
        `veriglot_reason`, why it was not checked, or empty.

    Raises:
        UsageError: the table has no such column.
    """
    from veriglot.detection import plain_cell

    columns = {"response": response, "evidence": evidence} | ({"question": question} if question else {})
    if isinstance(_value_of(batch, response), str):
        raise UsageError("This is one row, and columns are expected.", "Type: dataset.map(detect_batch, batched=True)")
    cells = {key: [plain_cell(value) for value in _value_of(batch, name)] for key, name in columns.items()}
    cells["response"] = ["" if text is None else text for text in cells["response"]]
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    predictions = list(veriglot.detect_many(rows, **options))
    return {
        "veriglot_verdict": [str(prediction.verdict) for prediction in predictions],
        "veriglot_score": [nan if prediction.score is None else prediction.score for prediction in predictions],
        "veriglot_spans": [msgspec.json.encode(prediction.get_spans(None)).decode() for prediction in predictions],
        "veriglot_reason": [prediction.reason or "" for prediction in predictions],
    }
