"""Queries: a model writes knowledge-intensive questions on references (mfava, section 4, A.5), and they are checked.

The paper checked 250 by hand and never asked again where one was missing. Here every query is checked for language and
for whether its reference answers it; what does not pass is kept beside the output with the reason.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.prompts import prompt_version, write_prompt
from veriglot.build.sifting import Rejection, Written, sift
from veriglot.llm import Message, Request, Settings, ask_all, schema_of
from veriglot.records import Sample, Task, encode
from veriglot.run import FailedRow, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.answerability import AnswerabilityCheck, Verdict
    from veriglot.build.references import Reference
    from veriglot.llm import Client
    from veriglot.run import Tally

__all__ = ["Author", "Drafts", "queries", "rejected_path"]


class Author(msgspec.Struct, frozen=True):
    """The model that writes the queries.

    Attributes:
        model: as its server names it.
        settings: how it generates.
        seed: of the calls.
        count: queries a reference (mfava: two).
    """

    model: str
    settings: Settings = Settings()
    seed: int | None = None
    count: int = 2

    def request(self, reference: Reference) -> Request:
        """Asks for queries on a reference, as JSON."""
        prompt = write_prompt(reference.language, reference.title, reference.text, self.count)
        return Request(
            self.model,
            (Message("user", prompt),),
            seed=self.seed,
            settings=self.settings,
            schema=schema_of(Written),
        )


class Drafts(msgspec.Struct, frozen=True):
    """What became of one reference: its queries, and what was rejected. The row of the stage."""

    id: str
    queries: tuple[Sample, ...]
    rejections: tuple[Rejection, ...]


def queries(
    output: Path,
    references: Iterable[Reference | FailedRow],
    author: Author,
    client: Client,
    *,
    check: AnswerabilityCheck | None,
    inputs: Sequence[str] = (),
    options: dict[str, str | bool | None] | None = None,
    jobs: int = 8,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Write and check queries on every reference.

    Args:
        output: JSON lines of samples with an empty response; what was rejected goes to `rejected_path(output)`. Both
            are made at the end from `OUT.rows.jsonl`, where a run that stopped goes on.
        references: the same ones in the same order at each call.
        author: who writes them.
        client: whom to ask, for the check too.
        check: whether a query can be answered; None takes them unchecked, and says so in their `meta`.
        inputs, jobs, restart, retry, seen: as for `responses`.
        options: further settings that change the rows, such as which part of an article is the reference.

    Returns:
        What became of the references. A reference whose calls gave nothing is a failed row.

    Raises:
        UsageError: the output was begun otherwise.
        ModelError: what every further call would meet too.
    """
    stage: Stage[Reference] = Stage(
        output,
        signature=client.signature,
        inputs=inputs,
        options={
            "model": author.model,
            "count": author.count,
            "seed": author.seed,
            "settings": msgspec.json.encode(author.settings, order="deterministic").decode(),
            "prompt": prompt_version("queries"),
            "check": check.signature if check is not None else None,
            **(options or {}),
        },
        finish=_part,
        restart=restart,
        retry=retry,
        maker="client",
    )
    return stage.run(references, lambda rows: _drafts(rows, author, client, check, jobs), seen=seen)


def rejected_path(output: Path) -> Path:
    """Where the rejections of an output are."""
    return output.with_name(output.name + ".rejected.jsonl")


@dataclass
class _Pending:
    """A reference whose queries are being checked."""

    reference: Reference
    taken: list[tuple[str, str]]
    rejected: list[Rejection]
    verdicts: list[Verdict] = field(default_factory=list)
    failure: FailedRow | None = None
    answers: int = 0

    @property
    def done(self) -> bool:
        """Whether every query that was taken has been checked."""
        return self.answers == len(self.taken)


def _drafts(
    rows: Iterator[Reference], author: Author, client: Client, check: AnswerabilityCheck | None, jobs: int
) -> Iterator[Drafts | FailedRow]:
    if check is None:
        for pending in _written(rows, author, client, jobs):
            yield pending.failure or _settled(pending)
        return
    waiting: deque[_Pending] = deque()

    def requests() -> Iterator[Request]:
        for pending in _written(rows, author, client, jobs):
            waiting.append(pending)
            for _, question in pending.taken:
                yield check.request(pending.reference, question)

    for answer in ask_all(client, requests(), jobs=jobs):
        yield from _finished(waiting)
        head = waiting[0]
        if answer.reply is None:
            assert answer.error is not None
            head.failure = FailedRow(answer.error.message, remedy=answer.error.remedy, id=head.reference.id)
        else:
            _, question = head.taken[head.answers]
            head.verdicts.append(check.verdict(head.reference, question, answer.reply))
        head.answers += 1
    yield from _finished(waiting)


def _written(rows: Iterator[Reference], author: Author, client: Client, jobs: int) -> Iterator[_Pending]:
    asked: deque[Reference] = deque()

    def requests() -> Iterator[Request]:
        for reference in rows:
            asked.append(reference)
            yield author.request(reference)

    for answer in ask_all(client, requests(), jobs=jobs):
        reference = asked.popleft()
        if answer.reply is None:
            assert answer.error is not None
            failure = FailedRow(answer.error.message, remedy=answer.error.remedy, id=reference.id)
            yield _Pending(reference, [], [], failure=failure)
        else:
            yield _Pending(reference, *sift(reference, answer.reply, author.count))


def _finished(waiting: deque[_Pending]) -> Iterator[Drafts | FailedRow]:
    while waiting and waiting[0].done:
        pending = waiting.popleft()
        yield pending.failure or _settled(pending)


def _settled(pending: _Pending) -> Drafts:
    """The queries that passed and all that did not, in the order of their numbers."""
    reference = pending.reference
    kept: list[Sample] = []
    rejected = list(pending.rejected)
    verdicts: list[Verdict | None] = [*pending.verdicts] or [None] * len(pending.taken)
    for (id_, question), verdict in zip(pending.taken, verdicts, strict=True):
        if verdict is not None and not verdict.answerable:
            rejected.append(Rejection(id_, reference.id, reference.language, "answerable", verdict.detail, question))
        else:
            kept.append(_query(reference, id_, question, verdict))
    return Drafts(reference.id, tuple(kept), tuple(sorted(rejected, key=lambda one: one.id)))


def _query(reference: Reference, id_: str, question: str, verdict: Verdict | None) -> Sample:
    from veriglot.text import identify

    checks = {
        "language": "identified" if identify(question) is not None else "not identified",
        "answerable": "not checked" if verdict is None else "checked",
        **(verdict.notes if verdict is not None else {}),
    }
    return Sample(
        id=id_,
        response="",
        task=Task.QA,
        language=reference.language,
        question=question,
        evidence=(reference.evidence,),
        meta={**reference.meta, "reference": reference.id, "checks": checks},
    )


def _part(rows: Path, target: Path) -> None:
    """Part the drafts into queries and rejections. `target` stands beside the output, under another name."""
    output = target.with_name(target.name.removesuffix(".partial"))
    rejected = rejected_path(output)
    partial = rejected.with_name(rejected.name + ".partial")
    decoder = msgspec.json.Decoder(Drafts)
    with rows.open("rb") as lines, target.open("wb") as good, partial.open("wb") as bad:
        for line in lines:
            drafts = decoder.decode(line)
            good.writelines(encode(query) + b"\n" for query in drafts.queries)
            bad.writelines(encode(rejection) + b"\n" for rejection in drafts.rejections)
    partial.replace(rejected)
