"""In a running application: OpenAI's answers checked while they stream, and predictions as OpenTelemetry spans."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veriglot.errors import UsageError
from veriglot.integrations import judge, needing, texts_of
from veriglot.records import Verdict
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import veriglot
    from veriglot.records import Span

__all__ = ()  # veriglot.integrations offers what is here


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of an answer that is still streaming.

    Attributes:
        text: the sentence, without the spaces around it.
        start, end: its place in the answer, half-open in code points.
        prediction: of the answer up to the end of this sentence; `sample.response` is that text.
    """

    text: str
    start: int
    end: int
    prediction: veriglot.Prediction

    @property
    def spans(self) -> tuple[Span, ...]:
        """The unsupported spans of the sentence; their offsets count in the answer.

        Raises:
            NotChecked: it was not checked.
        """
        return tuple(span for span in self.prediction.spans if span.end > self.start and span.start < self.end)

    @property
    def verdict(self) -> Verdict:
        """`supported`, `unsupported` (a span lies in the sentence) or `not_checked`."""
        if self.prediction.verdict is Verdict.NOT_CHECKED:
            return Verdict.NOT_CHECKED
        return Verdict.UNSUPPORTED if self.spans else Verdict.SUPPORTED


class _Answer:
    """The text so far; judges it whenever a sentence is complete, which is when the next one begins."""

    def __init__(self, evidence: Any, request: dict[str, Any], options: dict[str, Any]) -> None:
        if request.get("n", 1) not in (1, None):
            raise UsageError(
                "Only one answer can be checked as it streams, but n asks for more.", remedy="Leave out n."
            )
        self._evidence = texts_of(evidence)
        self._options = options
        self._text = ""
        self._reached = 0

    def add(self, chunk: Any) -> list[CheckedSentence]:
        piece = chunk.choices[0].delta.content if chunk.choices else None
        self._text += piece or ""
        return self.checked(final=False) if piece else []

    def checked(self, *, final: bool = True) -> list[CheckedSentence]:
        base, result = self._reached, []
        ranges = sentences(self._text[base:], self._options.get("language"))
        for start, end in ((base + start, base + end) for start, end in (ranges if final else ranges[:-1])):
            # With the sentences before it: they show the language, and what a pronoun stands for.
            prediction = judge(self._text[:end], self._evidence, **self._options)
            result.append(CheckedSentence(self._text[start:end], start, end, prediction))
            self._reached = end
        return result


class OpenAIChecker:
    """A client of OpenAI's API, or of a server that speaks it, whose answers are checked sentence by sentence.

    >>> checker = OpenAIChecker(openai.OpenAI())  # doctest: +SKIP
    >>> for sentence in checker.stream(passages, model="gpt-4o", messages=messages):  # doctest: +SKIP
    ...     print(sentence.verdict, sentence.text)

    Args:
        client: `openai.OpenAI`, or `openai.AsyncOpenAI` for `astream`.
        options: as for `veriglot.detect`: `detector`, `strictness`, `language`.
    """

    def __init__(self, client: Any, **options: Any) -> None:
        self._client = client
        self._options = options
        judge("A word.", "A word.", **options)  # to load takes seconds, and a wrong option would cost an answer

    def stream(self, evidence: Any, **request: Any) -> Iterator[CheckedSentence]:
        """Ask, and give each sentence with its verdict once it is complete.

        Args:
            evidence: what was retrieved: texts or documents.
            request: as for `client.chat.completions.create`; its `n` can only be 1.

        Raises:
            UsageError: `n` asks for several answers. Errors of the client are its own.
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


def otel_attributes(prediction: veriglot.Prediction, *, text: bool = False) -> dict[str, Any]:
    """A prediction as attributes of an OpenTelemetry span, without text unless asked for.

    Args:
        prediction: what `veriglot.detect` gave.
        text: whether `veriglot.unsupported`, the marked texts, and `veriglot.reason` are among them.

    Returns:
        `veriglot.verdict`, `.status`, `.detector`, `.language`, `.score` and `.spans` (how many), as far as they are
        known.
    """
    spans = prediction.get_spans(None)
    values: dict[str, Any] = {name: getattr(prediction, name) for name in ("score", "language", "detector")}
    values |= {"verdict": str(prediction.verdict), "status": str(prediction.status)}
    values["spans"] = None if spans is None else len(spans)
    if text:
        values["unsupported"] = None if spans is None else [span.text or "" for span in spans]
        values["reason"] = prediction.reason
    return {f"veriglot.{name}": value for name, value in values.items() if value is not None}


def traced_detect(evidence: Any, response: Any, *, text: bool = False, **options: Any) -> veriglot.Prediction:
    """`veriglot.detect` inside an OpenTelemetry span `veriglot.detect` that carries `otel_attributes`.

    Raises:
        UsageError: opentelemetry-api is not installed.
    """
    with needing("opentelemetry-api"):
        from opentelemetry import trace
    with trace.get_tracer("veriglot").start_as_current_span("veriglot.detect", record_exception=text) as span:
        prediction = judge(response, evidence, **options)
        span.set_attributes(otel_attributes(prediction, text=text))
    return prediction
