"""Shared by the commands that generate data: options, inputs, models, plans and reports."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from veriglot.cli.command import Options
from veriglot.cli.console import ProgressBar, listed, print_json, say
from veriglot.cli.inputs import STDIN, count_rows, find_inputs, known_tag, rows_of
from veriglot.datasets.queries import Part, Reference, reference_from
from veriglot.datasets.silver.job import Support
from veriglot.detectors.registry import load_detector
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UnknownNameError, UsageError
from veriglot.formats.containers import Source, read_container
from veriglot.formats.reader import SeenIds
from veriglot.llm.client import Client, Settings, preset
from veriglot.llm.registry import Limits, connect
from veriglot.report.tables import Table
from veriglot.storage.checkpoint import FailedRow, Row, Tally
from veriglot.storage.files import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from veriglot.records import Sample

__all__ = [
    "Checks",
    "Connection",
    "Cost",
    "Queries",
    "Reading",
    "Run",
    "print_plan",
    "records_of",
    "references",
    "show_account",
    "tell",
]

T = TypeVar("T", bound="Row")


class Reading(Options):
    """How to read the rows of a data set."""

    language: str | None = None
    format: str | None = None


class Run(Options):
    """Resuming and output of a run."""

    overwrite: bool = False
    retry: bool = False
    quiet: bool = False

    @contextmanager
    def progress(self, total: Callable[[], int | None] = lambda: None) -> Iterator[dict[str, Any]]:
        """A progress bar for so many rows, and a job's options for resuming, as keyword arguments."""
        with ProgressBar(shown=not self.quiet, total=total) as bar:
            yield {"restart": self.overwrite, "retry": self.retry, "seen": lambda _: bar.advance()}


class Checks(Options):
    """How to check that the evidence supports passages and not errors."""

    support: Literal["none", "detector", "model"] = "none"
    detector: str = "auto"
    support_model: str | None = None
    attempts: int = 2

    def models(self, model: str) -> list[str]:
        """The models to call, if `model` edits."""
        return [model, *([self.support_model] if self.support == "model" and self.support_model else [])]

    def support_check(self, model: str, seed: int) -> Support | None:
        """The requested check, by `model` unless another is given."""
        if self.support == "none":
            return None
        if self.support == "model":
            return Support(self.support_model or model, seed=seed)

        return Support(load_detector(self.detector))


class Cost(Options):
    """Prices of tokens."""

    price_in: float | None = None
    price_out: float | None = None

    @property
    def prices(self) -> tuple[float, float] | None:
        """Prices of a million tokens of prompts and of replies, or None if neither is given.

        Raises:
            UsageError: one is given without the other.
        """
        if self.price_in is None and self.price_out is None:
            return None
        if self.price_in is None or self.price_out is None:
            raise UsageError("A cost needs both prices.", "Set price_in and price_out.")
        return self.price_in, self.price_out


class Connection(Options):
    """The model server, and spending limits."""

    base_url: str | None = None
    mock_rules: str | None = None
    concurrency: int = 8
    client: str | None = None
    key: str | None = None
    cache: str | None = None
    max_calls: int | None = None
    max_tokens_spent: int | None = None
    client_options: dict[str, Any] = field(default_factory=dict)
    generation: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The generation settings: the given ones, and defaults of the named preset.

        Raises:
            UnknownNameError: no such preset or setting; the error suggests the most similar ones.
            UsageError: a value out of range, or of the wrong type.
        """
        values = dict(self.generation)
        name = values.pop("preset", None)
        for key in values:
            if key not in Settings.__struct_fields__:
                raise UnknownNameError("generation setting", key, ["preset", *Settings.__struct_fields__])
        if isinstance(values.get("stop"), str):
            values["stop"] = [values["stop"]]
        try:
            settings = msgspec.convert(values, Settings)
        except msgspec.ValidationError as error:
            raise UsageError(f"A generation setting cannot be used: {error}.") from error
        return settings if name is None else settings.with_defaults(preset(str(name)))

    def _reached(self) -> tuple[str, dict[str, Any]]:
        """The name of the client, and its options."""
        name = self.client or ("scripted" if self.mock_rules is not None else "openai")
        options = {"base_url": self.base_url, "rules": self.mock_rules}
        if name == "openai":
            options["key"] = self.key or ("VERIGLOT_API_KEY" if os.environ.get("VERIGLOT_API_KEY") else None)
        given = {option: value for option, value in options.items() if value is not None} | self.client_options
        if name == "openai" and "base_url" not in given:
            raise UsageError("No server is named.", "Add --base-url http://HOST:PORT/v1.")
        if name == "scripted" and "rules" not in given:
            raise UsageError("The scripted client needs its rules.", "Add --mock-rules FILE.")
        return name, given

    def check(self) -> None:
        """Raise a `UsageError` if an option of the client is missing."""
        self._reached()

    @contextmanager
    def open(self, output: Path, models: Iterable[str], revision: str | None = None) -> Iterator[Client]:
        """The client, with a cache beside `output` unless one is given.

        Args:
            output: the output of the run.
            models: the names of all models to call.
            revision: of the models; cached calls of another revision are not reused.

        Raises:
            UsageError: several models for a client with a single one, or a missing option.
            UnknownNameError: no such client or option.
            MissingExtraError: its packages are not installed.
        """
        name, options = self._reached()
        if name == "transformers":
            first, *others = dict.fromkeys(models)
            if others:
                raise UsageError(
                    f"The client transformers runs one model, and {first!r} and {others[0]!r} are named.",
                    "Give the command once for each.",
                )
            options.setdefault("model", first)
        if revision is not None and name != "scripted":
            options.setdefault("revision", revision)
        limits = None
        if self.max_calls is not None or self.max_tokens_spent is not None:
            limits = Limits(self.max_calls, self.max_tokens_spent)
        output = output.resolve()  # `.` has no name
        client = connect(name, cache=self.cache or beside(output, ".calls"), limits=limits, **options)
        try:
            yield client
        finally:
            client.close()


class Queries:
    """The input samples of a command, which can be read several times.

    Args:
        names: files and folders; not standard input, because each model of a run reads them again.
        reading: how to read them.

    Raises:
        InputError: there is no such file.
        UsageError: standard input was named, or a wrong language.
    """

    def __init__(self, names: Sequence[str], reading: Reading = Reading()) -> None:
        if STDIN in names:
            raise UsageError("Standard input cannot be read again when the run resumes.", "Write it to a file first.")
        self._options = {"language": known_tag(reading.language), "format": reading.format}  # they change the rows
        self.inputs = find_inputs(names, format_name=reading.format, skipped=say)

    @property
    def made_of(self) -> dict[str, Any]:
        """A job's input options, as keyword arguments."""
        return {"inputs": self.paths, "options": dict(self._options)}

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [file.path for file in self.inputs]

    def count(self) -> int | None:
        """Number of rows, if it is quick to count."""
        return count_rows(self.inputs)

    def rows(self) -> Iterator[Sample | FailedRow]:
        """Every row, in order; rows with a repeated id are failed rows."""
        language, format_name = self._options["language"], self._options["format"]
        return rows_of(self.inputs, format_name=format_name, language=language, seen=SeenIds())


def records_of(paths: Sequence[str], make: Callable[[Any], T]) -> Iterator[T | FailedRow]:
    """JSON lines converted to objects with an id; invalid rows and repeated ids are failed rows."""
    seen = SeenIds()
    for path in paths:
        for record in read_container("jsonl", Source(path)):
            if isinstance(record, FailedRow):
                yield record
                continue
            try:
                item = make(record.data)
                if not seen.is_new(item.id):
                    raise InputError(f"the id {item.id!r} was there before", field="id")
                yield item
            except InputError as error:
                yield FailedRow.of(
                    error.at(path=path, line=record.line), (record.raw or b"").decode("utf-8", "replace")
                )


def references(paths: Sequence[str], part: Part) -> Iterator[Reference | FailedRow]:
    """JSON lines of articles as references; unusable rows and repeated ids are failed rows."""
    return records_of(paths, partial(reference_from, part=part))


def tell(path: Path, tally: Tally, what: str = "responses") -> int:
    """Report the results of an output; returns the exit code."""
    say(f"{path}: {tally.rows:,} {what}, {tally.statuses.total():,} done, {tally.failed:,} failed.")
    if tally.reused:
        whole = "All" if tally.reused == tally.rows else f"{tally.reused:,}"
        say(f"{whole} of them had been done by an earlier run.")
    if tally.failed:
        with Path(f"{path}.failed.jsonl").open("rb") as failures:
            first = msgspec.json.decode(next(failures), type=FailedRow).as_error()
        say(f"The first that failed: {first}")
        say(f"Each stands with its reason in {path}.failed.jsonl; add --retry to try them again.")
    return EXIT_ROWS_FAILED if tally.failed else 0


def print_plan(prices: tuple[float, float] | None = None, **plan: int) -> None:
    """Print the estimated calls and tokens, with the cost of `tokens_in` and `tokens_out` if prices are given."""
    money = {}
    if prices is not None:
        spent = plan["tokens_in"] * prices[0] + plan["tokens_out"] * prices[1]
        money["money"] = round(spent / 1e6, 4)
    print_json(plan | money)


def show_account(
    account: Any,
    cells: Callable[[Any], Iterable[tuple[str, str]]],
    *,
    done: str,
    reasons: Mapping[str, Mapping[str, int]],
    rejected: str,
    prices: tuple[float, float] | None = None,
    json: bool,
) -> None:
    """Print a report with a `total`: a table on standard output; usage, and reasons for rejections, on standard error.

    Args:
        account: the record, with `languages` and their `total`, which is completely printed as JSON.
        cells: the columns and values for a language, or for the total.
        done: a sentence about the output.
        reasons: kind of object to counts of reasons for rejections.
        rejected: text before the reasons, if there are any.
        prices: of tokens.
        json: print the record instead of everything else.
    """
    total = account.total
    if json:
        money = {} if prices is None else {"money": round(total.money(*prices), 4)}
        print_json(msgspec.to_builtins(account) | money)
        return

    rows = {tag: list(cells(part)) for tag, part in account.languages.items()}
    heads, together = zip(*cells(total), strict=True)
    if len(rows) != 1 or [text for _, text in next(iter(rows.values()))] != list(together):
        rows["all"] = list(cells(total))
    Table("", ("language", *heads), [(tag, *(text for _, text in row)) for tag, row in rows.items()]).print()
    spent = f" {total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies"
    if prices is not None:
        spent += f", {total.money(*prices):,.2f} at the prices given"
    say(f"{done}{f'{spent}.' if total.calls else ''}")
    if any(reasons.values()):
        say(rejected)
    for what, counts in reasons.items():
        if counts:
            say(f"  {what}: {listed(counts)}")
