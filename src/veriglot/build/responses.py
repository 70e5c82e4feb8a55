"""Responses: one model asked every query of a design, into one file that goes on where it stopped.

Every call goes through `llm.ask_all`. A call that gave nothing, after all its retries, is a failed row beside the
output; coverage counts it. What would fail every call (a refused key, a spending limit) stops the stage instead.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.planning import MFAVA_SEEDS, Planned, plan
from veriglot.build.prompts import Style, answer_messages, answer_prompt, answer_stop, prompt_version
from veriglot.llm import Request, Settings, ask_all, estimate_request
from veriglot.llm.thoughts import parted_thoughts
from veriglot.records import Generator, Sample
from veriglot.run import FailedRow, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.planning import Design
    from veriglot.llm import Client, Reply
    from veriglot.run import Tally

__all__ = ["Budget", "Respondent", "budget", "responses"]


class Respondent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model of a study and how it is asked.

    Attributes:
        name: in every table and id.
        model: as its server names it.
        revision: of the weights, where that is known.
        style: `closed`, `instructed` or `open`; see `answer_messages`.
        settings: how it generates.
        completion: goes on from a text instead of chatting.
    """

    name: str
    model: str
    revision: str | None = None
    style: Style = "closed"
    settings: Settings = Settings()
    completion: bool = False

    @property
    def prompt(self) -> str:
        """Style and version of the prompt, such as `open:answer@1`; a bare question has no wording, so no version."""
        if self.style == "closed" and not self.completion:
            return "closed"
        return f"{self.style}:{prompt_version('answer')}"

    def refuses(self, query: Sample) -> str:
        """Why the query cannot be put to the model in this style; empty where it can."""
        if self.style == "open" and not any(passage.text.strip() for passage in query.evidence):
            return "the style `open` gives the model the evidence, and the query has none"
        return ""

    def request(self, query: Sample, seed: int | None) -> Request:
        """What is sent for a query whose language is set."""
        assert query.language is not None
        evidence = "\n\n".join(passage.text for passage in query.evidence)
        asked: tuple[Style, str, str, str] = (self.style, query.language, query.question or "", evidence)
        if not self.completion:
            return Request(self.model, answer_messages(*asked), seed=seed, settings=self.settings)
        stop = self.settings.stop or answer_stop(query.language)
        settings = msgspec.structs.replace(self.settings, stop=stop)
        return Request(self.model, prompt=answer_prompt(*asked), seed=seed, settings=settings)

    def sample(self, planned: Planned, reply: Reply) -> Sample:
        """The response as a sample: the query's evidence, the reply's text, and who gave it.

        `meta` has the query's own keys and `query` (its id), `finish` (why the reply ended), `tokens_in` and
        `tokens_out` where the server counted, and `reasoning` where the model thought aloud first; the thoughts are no
        part of the response.
        """
        text, reasoning = _parted(reply)
        said = {
            "query": planned.query.id,
            "finish": reply.finish,
            "tokens_in": reply.tokens_in,
            "tokens_out": reply.tokens_out,
            "reasoning": reasoning,
        }
        generator = Generator(self.name, self.revision, planned.seed, self._settings())
        meta = {**planned.query.meta, **{key: value for key, value in said.items() if value is not None}}
        return msgspec.structs.replace(
            planned.query, id=planned.id, response=text, generator=generator, annotations=(), meta=meta
        )

    def _settings(self) -> dict[str, Any]:
        given = {"model": self.model, "prompt": self.prompt, "completion": self.completion or None}
        return {**{k: v for k, v in given.items() if v is not None}, **self.settings.given(), **self.settings.extra}


class Budget(msgspec.Struct, frozen=True):
    """What a stage of responses would ask for, before anything is asked.

    Attributes:
        calls: responses that the design plans, those that are done or cached included.
        impossible: queries that cannot be asked.
        tokens_in: tokens of the prompts, estimated roughly (`llm.estimate_tokens`).
        tokens_out: the most tokens of the replies; None where `max_tokens` is not set.
        languages: calls by language.
    """

    calls: int
    impossible: int
    tokens_in: int
    tokens_out: int | None
    languages: dict[str, int]


def responses(
    output: Path,
    queries: Iterable[Sample | FailedRow],
    respondent: Respondent,
    client: Client,
    *,
    design: Design = "subsets",
    seeds: Sequence[int | None] = MFAVA_SEEDS,
    inputs: Sequence[str] = (),
    options: dict[str, str | None] | None = None,
    jobs: int = 8,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Ask one model everything that the design plans; the samples go to `output`, in the order of the plan.

    Args:
        output: JSON lines; its manifest and its failed rows lie beside it.
        queries: the same ones in the same order at each call.
        respondent: the model and how it is asked.
        client: whom to ask; with a cache, no finished call is paid twice.
        design, seeds: see `plan`.
        inputs: paths of the files that the queries come from; other content refuses to continue.
        options: further settings that change the rows, such as the language of queries that state none.
        jobs: calls at the same time.
        restart: make the output anew.
        retry: make it anew from its first failed row on.
        seen: called for every row that this call added.

    Returns:
        What became of all planned responses, those of earlier calls included.

    Raises:
        UsageError: the output was begun otherwise.
        ModelError: what every further call would meet too; what is done is kept.
    """
    stage = _stage(output, respondent, client, design, seeds, inputs, options or {}, restart=restart, retry=retry)

    def work(rows: Iterator[Planned]) -> Iterator[Sample | FailedRow]:
        return _ask(rows, respondent, client, jobs)

    return stage.run(plan(queries, respondent.name, design=design, seeds=seeds), work, seen=seen)


def budget(
    queries: Iterable[Sample | FailedRow], respondent: Respondent, *, design: Design, seeds: Sequence[int | None]
) -> Budget:
    """What `responses` would ask for."""
    impossible = tokens = 0
    languages: dict[str, int] = {}
    for row in plan(queries, respondent.name, design=design, seeds=seeds):
        if isinstance(row, FailedRow) or respondent.refuses(row.query):
            impossible += 1
            continue
        tag = row.query.language or ""
        languages[tag] = languages.get(tag, 0) + 1
        tokens += estimate_request(respondent.request(row.query, row.seed))
    calls, most = sum(languages.values()), respondent.settings.max_tokens
    return Budget(calls, impossible, tokens, None if most is None else calls * most, dict(sorted(languages.items())))


def _stage(
    output: Path,
    respondent: Respondent,
    client: Client,
    design: Design,
    seeds: Sequence[int | None],
    inputs: Sequence[str],
    options: dict[str, str | None],
    *,
    restart: bool,
    retry: bool,
) -> Stage[Planned]:
    settings = {**respondent.settings.given(), **respondent.settings.extra}
    return Stage(
        output,
        signature=client.signature,
        inputs=inputs,
        options={
            "name": respondent.name,
            "model": respondent.model,
            "revision": respondent.revision,
            "prompt": respondent.prompt,
            "completion": respondent.completion,
            "settings": msgspec.json.encode(settings, order="deterministic").decode(),
            "design": design,
            "seeds": ",".join("-" if seed is None else str(seed) for seed in seeds),
            **options,
        },
        restart=restart,
        retry=retry,
        maker="client",
    )


def _ask(rows: Iterator[Planned], respondent: Respondent, client: Client, jobs: int) -> Iterator[Sample | FailedRow]:
    waiting: deque[Planned | FailedRow] = deque()

    def requests() -> Iterator[Request]:
        for row in rows:
            why = respondent.refuses(row.query)
            if why:
                waiting.append(FailedRow(why, id=row.id))
            else:
                waiting.append(row)
                yield respondent.request(row.query, row.seed)

    for answer in ask_all(client, requests(), jobs=jobs):
        yield from _failures(waiting)
        planned = waiting.popleft()
        assert isinstance(planned, Planned)
        if answer.reply is not None:
            yield respondent.sample(planned, answer.reply)
        else:
            assert answer.error is not None
            yield FailedRow(answer.error.message, remedy=answer.error.remedy, id=planned.id)
    yield from _failures(waiting)


def _failures(waiting: deque[Planned | FailedRow]) -> Iterator[FailedRow]:
    while waiting and isinstance(waiting[0], FailedRow):
        row = waiting.popleft()
        assert isinstance(row, FailedRow)
        yield row


def _parted(reply: Reply) -> tuple[str, str | None]:
    """Answer and thoughts: those that the server tells apart, and those between `<think>` tags before the answer."""
    thoughts, answer = parted_thoughts(reply.text)
    return answer, "\n\n".join(part for part in (reply.reasoning, thoughts) if part) or None
