"""The generation job: planned rows are made by a model or by rule, checked and written, with rejections and counts."""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, TypeVar, Unpack

import msgspec
from msgspec.structs import asdict, replace

from veriglot.llm.client import Answer, Client, Message, Reply, Request, Settings, ask_all, schema_of
from veriglot.records import Sample, encode
from veriglot.records.settings import Record, StrictRecord
from veriglot.storage.checkpoint import Checkpoint, FailedRow, Option, Row, Tally, Usage, failed_rows
from veriglot.storage.files import beside, final_path, open_whole, write_json
from veriglot.text.identification import identify

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


__all__ = [
    "Account",
    "LanguageModel",
    "RunOptions",
    "UsageFields",
    "account_path",
    "converse",
    "generate",
    "ranked",
    "read_account",
    "rejected_path",
    "run_conversations",
]


A = TypeVar("A")
Q = TypeVar("Q")
P = TypeVar("P")
R = TypeVar("R", bound="Row")
T = TypeVar("T")
U = TypeVar("U", bound="UsageFields")

_line_of = msgspec.json.Encoder(order="deterministic").encode  # equal for equal settings


class RunOptions(TypedDict, total=False):
    """Options of every job.

    Attributes:
        inputs: paths of the input files; a job with changed inputs does not continue.
        options: further settings that change the rows.
        restart: make the output again from the start.
        retry: make it again from its first failed row on.
        seen: callback for every row that this call added.
    """

    inputs: Sequence[str]
    options: Mapping[str, Option]
    restart: bool
    retry: bool
    seen: Callable[[msgspec.Struct | FailedRow], None] | None


def generate(
    output: Path,
    rows: Iterable[Row | FailedRow],
    work: Callable[[Iterator[Any]], Iterable[msgspec.Struct | FailedRow]],
    *,
    signature: str,
    settings: Mapping[str, object],
    maker: str = "client",
    record_type: type[msgspec.Struct] | None = None,
    counts: Callable[[], _Counts] | None = None,
    finish: Callable[[Path, Path], None] | None = None,
    **run: Unpack[RunOptions],
) -> Tally:
    """Make one output, or its missing rows; see `Checkpoint`.

    Args:
        output: JSON lines.
        rows: the planned rows, the same at each call.
        work: gets the rows that are not done, and yields one record or one `FailedRow` for each, in order.
        signature: of what makes the records.
        settings: every setting that changes them; a record in it counts as its JSON.
        maker: one word for the owner of the signature, in messages.
        record_type: of records that contain samples and rejections: samples go to `output`, rejections to
            `rejected_path(output)`.
        counts: makes the counts of a language, for the account of such records; None for no account.
        finish: makes `output` from the records in another way; None if the records are the output.
        run: see `RunOptions`.

    Raises:
        UsageError: the output was begun with other settings.
    """
    simple = {
        key: value if value is None or isinstance(value, str | int | float) else _line_of(value).decode()
        for key, value in settings.items()
    }
    checkpoint = Checkpoint(
        output,
        signature=signature,
        inputs=run.get("inputs", ()),
        options={**simple, **(run.get("options") or {})},
        finish=finish if record_type is None else partial(_split, record_type, counts),
        restart=run.get("restart", False),
        retry=run.get("retry", False),
        maker=maker,
    )
    return checkpoint.run(rows, work, seen=run.get("seen"))


# Conversations: rows with several calls, where a question depends on earlier answers; many rows at the same time.


_AHEAD = 8


class LanguageModel(StrictRecord):
    """A model that makes or checks something.

    Attributes:
        model: its name on the server.
        settings: generation settings.
        seed: of the calls; each further attempt adds 1.
    """

    model: str
    settings: Settings = Settings()
    seed: int | None = None

    @property
    def described(self) -> dict[str, object]:
        """Its part of the settings of a job."""
        return {"model": self.model, "settings": self.settings, "seed": self.seed}

    def asked(self, prompt: str, *, attempt: int = 1, answer: type[msgspec.Struct] | None = None) -> Request:
        """The request to the model.

        Args:
            prompt: the message.
            attempt: number of the attempt, from 1.
            answer: schema of the JSON answer; None for text.
        """
        seed = None if self.seed is None and attempt == 1 else (self.seed or 0) + attempt - 1
        schema = None if answer is None else schema_of(answer)
        return Request(self.model, (Message("user", prompt),), seed=seed, settings=self.settings, schema=schema)


def run_conversations(
    client: Client, rows: Iterable[R], work: Callable[[R], Generator[tuple[Request, ...], list[Reply], T]], *, jobs: int
) -> Iterator[T | FailedRow]:
    """Run `work` for every row, with `8 * jobs` rows and `jobs` calls at the same time; see `converse`.

    Yields:
        The result of each row, with its cost if it has `UsageFields`; a failed row if a call failed after all retries.

    Raises:
        ModelError: an error that every further request would have too, as in `ask_all`.
    """

    def paid(row: R) -> Generator[tuple[Request, ...], list[Answer], T | FailedRow]:
        spent, asking = Usage(), work(row)
        try:
            requests = next(asking)
            while True:
                answers = yield requests
                replies = [answer.reply for answer in answers if answer.reply is not None]
                spent = sum((each.reply.usage(each.request) for each in answers if each.reply is not None), spent)
                errors = [answer.error for answer in answers if answer.error is not None]
                if errors:
                    return FailedRow(errors[0].message, remedy=errors[0].remedy, id=row.id, **asdict(spent))
                requests = asking.send(replies)
        except StopIteration as stop:
            result: T = stop.value
            return replace(result, **asdict(spent)) if isinstance(result, UsageFields) else result

    return converse(rows, paid, lambda requests: ask_all(client, requests, jobs=jobs), block=_AHEAD * jobs)


def converse(
    rows: Iterable[P],
    work: Callable[[P], Generator[Sequence[Q], list[A], T]],
    ask: Callable[[list[Q]], Iterable[A]],
    *,
    block: int,
) -> Iterator[T]:
    """Run the same dialogue for every row. In each wave, the next questions of all rows of a block are asked together.

    Args:
        rows: read in blocks.
        work: yields the questions that it needs next, gets their answers, and returns the row's result.
        ask: one answer per question, in order.
        block: number of rows in a block.

    Yields:
        One result per row, in order.
    """
    source = iter(rows)
    while running := [work(row) for row in islice(source, block)]:
        results: dict[int, T] = {}
        given = dict.fromkeys(range(len(running)))
        due = 0
        while given:
            asked: list[tuple[int, Sequence[Q]]] = []
            for number, answers in given.items():
                try:
                    asked.append((number, next(running[number]) if answers is None else running[number].send(answers)))
                except StopIteration as stop:
                    results[number] = stop.value
            while due in results:
                yield results.pop(due)
                due += 1
            answered = iter(ask([question for _, questions in asked for question in questions]))
            given = {number: list(islice(answered, len(questions))) for number, questions in asked}
            next(answered, None)  # so that its threads end now


def with_language(sample: Sample, texts: Iterable[str], refusal: str) -> Sample | FailedRow:
    """The sample with its language; if it has none, detected from the first possible text; or else a failed row."""
    if sample.language is not None:
        return sample
    identified = next(filter(None, map(identify, filter(str.strip, texts))), None)
    if identified is None:
        return FailedRow(refusal, field="language", remedy="Write its BCP 47 tag into `language`.", id=sample.id)
    return replace(sample, language=identified.tag)


class UsageFields(Record, kw_only=True):
    """A record with its cost in fields of its own; see `Usage`."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def usage(self) -> Usage:
        """The cost in tokens."""
        return Usage(self.calls, self.tokens_in, self.tokens_out)

    def money(self, price_in: float, price_out: float) -> float:
        """The cost in money, at prices for a million tokens of prompts and of replies, in the prices' currency."""
        return (self.tokens_in * price_in + self.tokens_out * price_out) / 1e6


class Account(Record, Generic[U]):
    """Results and cost of a run.

    Attributes:
        languages: by BCP 47 tag, in the order of the tags.
        total: all languages together; its cost includes failed rows, which are in no language.
        failed: rows without a result, because a call failed or because they could not be read.
    """

    languages: dict[str, U]
    total: U
    failed: int = 0


class _Counts(Protocol):
    """Counts of a language, updated row by row in constant memory."""

    usage: Usage

    def add(self, row: Any, /) -> None:
        """Count one row, without its cost."""

    def account(self) -> UsageFields:
        """The counts so far."""


def _account_of(rows: Iterable[Any], counts: Callable[[], _Counts], failed: int, lost: Usage) -> Account[UsageFields]:
    """Counts of all rows, and the cost of failed rows."""
    languages: dict[str, _Counts] = {}
    total = counts()
    for row in rows:
        for part in (languages.setdefault(row.language, counts()), total):
            part.add(row)
            part.usage += row.usage
    total.usage += lost
    return Account({tag: languages[tag].account() for tag in sorted(languages)}, total.account(), failed)


def ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts, the highest first, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def apportioned(weights: Mapping[str, float], whole: int) -> dict[str, int]:
    """Integers in proportion to weights, with the sum `whole`, by largest remainders (the first of equal ones)."""
    total = sum(weights.values())
    exact = {name: whole * weight / total for name, weight in weights.items()} if total else {}
    parts = {name: int(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda name: parts[name] - exact[name])[: whole - sum(parts.values())]:
        parts[name] += 1
    return parts


def account_path(output: Path) -> Path:
    """Path of the account of an output."""
    return beside(output, ".account.json")


def read_account(output: Path, type_: type[T]) -> T:
    """Read the account of an output."""
    return msgspec.json.decode(account_path(output).read_bytes(), type=type_)


def rejected_path(output: Path) -> Path:
    """Path of the rejections of an output."""
    return beside(output, ".rejected.jsonl")


def _split(type_: type[msgspec.Struct], counts: Callable[[], _Counts] | None, rows: Path, target: Path) -> None:
    """Split JSON lines of made records into samples (`target`), rejections and the account."""
    output = final_path(target)
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(type_)

    def written() -> Iterator[Any]:
        with rows.open("rb") as lines, target.open("wb") as good, open_whole(rejected_path(output)) as bad:
            for line in lines:
                row = decoder.decode(line)
                good.writelines(encode(sample) + b"\n" for sample in row.samples)
                bad.writelines(encode(rejection) + b"\n" for rejection in row.rejections)
                yield row

    if counts is not None:
        write_json(account_path(output), _account_of(written(), counts, *failed_rows(output)), indent=2)
    else:
        deque(written(), maxlen=0)
