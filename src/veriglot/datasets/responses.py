"""Responses: which model gets which query with which seed, the expected cost, and the responses of a model in a file.

Every call uses `llm.ask_all`. A call that failed after all its retries is a failed row beside the output, and counts in
the coverage. An error that all calls would have (an invalid key, a spending limit) stops the stage instead.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Literal, Unpack

from msgspec.structs import replace

from veriglot.datasets.generation import RunOptions, generate, with_language
from veriglot.datasets.prompts import by_language, filled, load_prompts, prompt_version
from veriglot.errors import UsageError
from veriglot.llm.client import Client, Message, Reply, Request, Settings, ask_all, split_thoughts
from veriglot.records import Generator, Sample
from veriglot.records.languages import language_name
from veriglot.records.settings import Record, StrictRecord
from veriglot.signatures import digest
from veriglot.storage.checkpoint import FailedRow, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


__all__ = ["MFAVA_SEEDS", "Budget", "Design", "Respondent", "Style", "budget", "plan", "responses"]


# Which query gets which seed: the designs of a study, by name.
#
# The paper is ambiguous: its text divides the queries into five subsets with one seed each (mFAVA, section 4), but its
# figure averages over five responses (Figure 4). Both are supported.


Design = Literal["subsets", "runs"]

MFAVA_SEEDS = (42, 43, 44, 47, 49)  # mFAVA, A.6


class Planned(Record):
    """One response of the design."""

    id: str
    query: Sample
    seed: int | None


def plan(
    queries: Iterable[Sample | FailedRow], model: str, *, design: Design, seeds: Sequence[int | None]
) -> Iterator[Planned | FailedRow]:
    """The planned responses of one model, in order; memory is one counter per language.

    Args:
        queries: samples with a question; those that could not be read pass through.
        model: the model's name, for the ids.
        design: `subsets` splits the queries of each language into disjoint subsets, one for each seed, with sizes that
            differ by at most one: every query once. `runs` asks every query with every seed.
        seeds: without repetition.

    Yields:
        A `Planned`, or a `FailedRow` for a query that cannot be asked: without a question, or with a language that is
        neither given nor detectable from the question. There is no default of English.

    Raises:
        UsageError: no seeds, or a seed twice.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError("A study needs at least one seed, and each seed once.")

    def rows() -> Iterator[Planned | FailedRow]:
        places = Counter[str]()
        for row in queries:
            query = row if isinstance(row, FailedRow) else _askable(row)
            if isinstance(query, FailedRow):
                yield query
                continue
            assert query.language is not None
            chosen = seeds if design == "runs" else [_subset(query.language, places[query.language], seeds)]
            places[query.language] += 1
            for seed in chosen:
                yield Planned(f"{query.id}/{model}/{'-' if seed is None else seed}", query, seed)

    return rows()


def _askable(query: Sample) -> Sample | FailedRow:
    if not (query.question or "").strip():
        return FailedRow("the query has no question", field="question", id=query.id)
    return with_language(
        query, [query.question or ""], "the query states no language, and none was recognised in its question"
    )


def _subset(language: str, index: int, seeds: Sequence[int | None]) -> int | None:
    """The seed of query number `index` of its language."""
    run, inside = divmod(index, len(seeds))
    order = sorted(range(len(seeds)), key=lambda number: digest([language, str(run), str(number)]))
    return seeds[order[inside]]


Style = Literal["closed", "instructed", "open"]


class Respondent(StrictRecord):
    """A model of a study, with its prompt and settings.

    Attributes:
        name: in every table and id.
        model: its name on the server.
        revision: of the weights, if known.
        style: `closed` is only the question (mFAVA, section 4); `instructed` first names the language of the answer;
            `open` gives the evidence and requires an answer from it alone; `own` uses the table `response` of
            `use_prompts`.
        settings: generation settings.
        completion: text completion instead of chat.
    """

    name: str
    model: str
    revision: str | None = None
    style: Style | Literal["own"] = "closed"
    settings: Settings = Settings()
    completion: bool = False

    @property
    def prompt(self) -> str:
        """Style and version of the prompt, such as `open:answer@1`; a bare question has no template, so no version."""
        if self.style == "closed" and not self.completion:
            return "closed"
        return f"{self.style}:{prompt_version('response' if self.style == 'own' else 'answer')}"

    def refuses(self, query: Sample) -> str:
        """Why the query cannot be asked in this style; empty if it can."""
        gives = self.style == "open" or (self.style == "own" and "{evidence}" in load_prompts("response")["user"])
        if gives and not any(passage.text.strip() for passage in query.evidence):
            return f"the style `{self.style}` gives the model the evidence, and the query has none"
        return ""

    def request(self, query: Sample, seed: int | None) -> Request:
        """The request for a query with a known language: one message, or a text that ends before the answer."""
        assert query.language is not None
        question, evidence, name = query.question or "", query.evidence_text, language_name(query.language)
        if self.style == "own":
            text = filled("response", "user", query.language, question=question, evidence=evidence)
            if self.completion:
                return Request(self.model, prompt=f"{text}\n", seed=seed, settings=self.settings)
            return Request(self.model, (Message("user", text),), seed=seed, settings=self.settings)
        words = {key: text.format(language=name) for key, text in by_language("answer", query.language).items()}
        before = {
            "closed": "",
            "instructed": f"{words['instructed']}\n\n",
            "open": f"{words['open']}\n\n{words['text']}\n{evidence}\n\n{words['question']}\n",
        }[self.style]
        if not self.completion:
            return Request(self.model, (Message("user", before + question),), seed=seed, settings=self.settings)
        if self.style != "open":
            before += f"{words['question']}\n"
        # at the point from which a model writes the next question itself
        settings = replace(self.settings, stop=self.settings.stop or (f"\n{words['question']}",))
        text = f"{before}{question}\n\n{words['answer']}\n"
        return Request(self.model, prompt=text, seed=seed, settings=settings)

    def sample(self, planned: Planned, reply: Reply) -> Sample:
        """The response as a sample: the query's evidence, the reply's text, and the model.

        `meta` has the query's own keys and `query` (its id), `finish` (why the reply ended), `tokens_in` and
        `tokens_out` if the server counted them, and `reasoning` if the model wrote its reasoning first; that is not
        part of the response.
        """
        thoughts, text = split_thoughts(reply.text)  # between tags; a server may separate them itself
        notes = {
            "query": planned.query.id,
            "finish": reply.finish,
            "tokens_in": reply.tokens_in,
            "tokens_out": reply.tokens_out,
            "reasoning": "\n\n".join(filter(None, (reply.reasoning, thoughts))) or None,
        }
        settings: dict[str, Any] = {"model": self.model, "prompt": self.prompt}
        settings |= {"completion": True} if self.completion else {}
        settings |= self.settings.given() | self.settings.extra
        generator = Generator(self.name, self.revision, planned.seed, settings)
        meta = planned.query.meta | {key: value for key, value in notes.items() if value is not None}
        return replace(planned.query, id=planned.id, response=text, generator=generator, annotations=(), meta=meta)


class Budget(Record):
    """Expected calls and tokens of a stage of responses, before any call.

    Attributes:
        calls: planned responses, including finished and cached ones.
        impossible: queries that cannot be asked.
        tokens_in: tokens of the prompts, a rough estimate (`llm.estimate_tokens`).
        tokens_out: maximum tokens of the replies; None if `max_tokens` is not set.
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
    jobs: int = 8,
    **run: Unpack[RunOptions],
) -> Tally:
    """Ask one model all questions of the design; the samples go to `output`, in the order of the plan.

    Args:
        output: JSON lines; its manifest and its failed rows are beside it.
        queries: the same ones in the same order at each call.
        respondent: the model with its prompt and settings.
        client: for the calls; with a cache, no finished call is paid twice.
        design, seeds: see `plan`.
        jobs: calls at the same time.
        run: see `RunOptions`.

    Returns:
        Counts of all planned responses, including earlier calls.

    Raises:
        UsageError: the output was begun with other settings.
        ModelError: an error that every further call would have too; finished rows are kept.
    """

    def possible(row: Planned | FailedRow) -> Planned | FailedRow:
        reason = "" if isinstance(row, FailedRow) else respondent.refuses(row.query)
        return FailedRow(reason, id=row.id) if reason else row

    return generate(
        output,
        map(possible, plan(queries, respondent.name, design=design, seeds=seeds)),
        lambda rows: _ask(rows, respondent, client, jobs),
        signature=client.signature,
        settings={
            "name": respondent.name,
            "model": respondent.model,
            "revision": respondent.revision,
            "prompt": respondent.prompt,
            "completion": respondent.completion,
            "settings": respondent.settings.given() | respondent.settings.extra,
            "design": design,
            "seeds": ",".join("-" if seed is None else str(seed) for seed in seeds),
        },
        **run,
    )


def budget(
    queries: Iterable[Sample | FailedRow], respondent: Respondent, *, design: Design, seeds: Sequence[int | None]
) -> Budget:
    """Expected calls and tokens of `responses`."""
    impossible = tokens = 0
    languages = Counter[str]()
    for row in plan(queries, respondent.name, design=design, seeds=seeds):
        if isinstance(row, FailedRow) or respondent.refuses(row.query):
            impossible += 1
            continue
        languages[row.query.language or ""] += 1
        tokens += respondent.request(row.query, row.seed).tokens
    calls, most = languages.total(), respondent.settings.max_tokens
    return Budget(calls, impossible, tokens, None if most is None else calls * most, dict(sorted(languages.items())))


def _ask(rows: Iterator[Planned], respondent: Respondent, client: Client, jobs: int) -> Iterator[Sample | FailedRow]:
    waiting = deque[Planned]()

    def requests() -> Iterator[Request]:
        for row in rows:
            waiting.append(row)
            yield respondent.request(row.query, row.seed)

    for answer in ask_all(client, requests(), jobs=jobs):
        planned = waiting.popleft()
        if answer.reply is not None:
            yield respondent.sample(planned, answer.reply)
        else:
            assert answer.error is not None
            yield FailedRow(answer.error.message, remedy=answer.error.remedy, id=planned.id)
