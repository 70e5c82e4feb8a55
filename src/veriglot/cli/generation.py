"""What the data commands share: queries asked of models, quality, errors injected by a model, and accounts."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from veriglot.cli.inputs import STDIN, count_rows, find_inputs, known_tag, rows_of
from veriglot.cli.progress import Bar
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from veriglot.cli.inputs import Input
    from veriglot.cli.options import Checks, Connection, Prices
    from veriglot.datasets.generation import Account
    from veriglot.datasets.quality import Quality
    from veriglot.datasets.responses import Budget, Design, Respondent
    from veriglot.datasets.silver.injection import Injector, Order
    from veriglot.datasets.silver.job import LanguageAccount, Support
    from veriglot.records import Sample
    from veriglot.storage.checkpoint import FailedRow, Row, Tally

__all__ = [
    "Queries",
    "ask",
    "dry_run_of",
    "inject",
    "plan_in_words",
    "print_json",
    "records_of",
    "say",
    "seeds_of",
    "show_account",
    "show_quality",
    "support_of",
    "tell",
    "types_of",
]


T = TypeVar("T", bound="Row")


class Queries:
    """The samples that a command reads, as often as it needs them.

    Args:
        names: files and folders; not standard input, since each model of a run reads them again.
        format_name: their format; None guesses it.
        language: for samples that state none, by tag or name.

    Raises:
        InputError: there is no such file.
        UsageError: standard input was named, or a wrong language.
    """

    def __init__(self, names: Sequence[str], *, format_name: str | None = None, language: str | None = None) -> None:
        if STDIN in names:
            raise UsageError(
                "Standard input cannot be read again when the run goes on.", remedy="Write it to a file first."
            )
        self._format = format_name
        self._language = known_tag(language)
        self.options = {"language": self._language, "format": format_name}  # other ones, other rows
        self.inputs: list[Input] = find_inputs(names, format_name=format_name, skipped=say)

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [file.path for file in self.inputs]

    def rows(self) -> Iterator[Sample | FailedRow]:
        """Every row, in order; ids that occur twice are failed rows."""
        from veriglot.formats.base import Report
        from veriglot.formats.reader import SeenIds

        seen, report = SeenIds(), Report()
        for file in self.inputs:
            yield from rows_of(
                file,
                format_name=self._format,
                language=self._language,
                report=report,
                alone=len(self.inputs) == 1,
                seen=seen,
            )


def records_of(paths: Sequence[str], make: Callable[[Any], T]) -> Iterator[T | FailedRow]:
    """The objects of JSON lines, made into something with an id; what cannot be, and repeated ids, as failed rows."""
    from veriglot.formats.containers import MAX_LINE_BYTES, BadRow, Source, read_container
    from veriglot.formats.reader import SeenIds
    from veriglot.storage.checkpoint import FailedRow

    seen = SeenIds()
    for path in paths:
        for record in read_container("jsonl", Source(path), MAX_LINE_BYTES):
            if isinstance(record, BadRow):
                yield FailedRow.of(record.error.at(path=record.path), record.raw)
                continue
            try:
                made = make(record.data)
                if not seen.is_new(made.id):
                    raise InputError(f"the id {made.id!r} was there before", field="id")
                yield made
            except InputError as error:
                yield FailedRow.of(
                    error.at(path=path, line=record.line), (record.raw or b"").decode("utf-8", "replace")
                )


def ask(
    queries: Queries,
    respondents: Sequence[Respondent],
    connection: Connection,
    output: Path,
    *,
    design: Design,
    seeds: Sequence[int | None],
    restart: bool,
    retry: bool,
    quiet: bool,
) -> dict[Path, Tally]:
    """Ask every model everything; one file a model, in the folder `output` where there are several.

    Returns:
        What became of the responses, by file.
    """
    from veriglot.datasets.responses import responses

    files = _files(respondents, output)
    tallies = {}
    revision = respondents[0].revision  # one option of the command line, for all of them
    with connection.open(output, [respondent.model for respondent in respondents], revision) as client:
        for respondent, path in zip(respondents, files, strict=True):

            def total() -> int | None:
                rows = count_rows(queries.inputs)
                return None if rows is None else rows * (len(seeds) if design == "runs" else 1)

            with Bar(shown=not quiet, total=total) as bar:
                tallies[path] = responses(
                    path,
                    queries.rows(),
                    respondent,
                    client,
                    design=design,
                    seeds=seeds,
                    inputs=queries.paths,
                    options=queries.options,
                    jobs=connection.concurrency,
                    restart=restart,
                    retry=retry,
                    seen=lambda _: bar.advance(),
                )
    return tallies


def plan_in_words(
    rows: Callable[[], Iterator[Sample | FailedRow]],
    respondents: Sequence[Respondent],
    *,
    design: Design,
    seeds: Sequence[int | None],
) -> dict[str, Budget]:
    """What each model would be asked, by the model's name."""
    from veriglot.datasets.responses import budget

    return {respondent.name: budget(rows(), respondent, design=design, seeds=seeds) for respondent in respondents}


def _files(respondents: Sequence[Respondent], output: Path) -> list[Path]:
    if len(respondents) == 1 and output.suffix == ".jsonl":
        return [output]
    if output.suffix == ".jsonl":
        raise UsageError(f"{output} is one file, and there are several models.", remedy="Name a folder with -o.")
    names = [file_name(respondent.name) for respondent in respondents]
    if len(set(names)) < len(names):
        raise UsageError("Two models would write the same file.", remedy="Name each model once.")
    return [output / f"{name}.jsonl" for name in names]


def file_name(model: str) -> str:
    """A model's name as the name of a file: letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^\w.-]+", "_", model).strip("._") or "model"


def seeds_of(text: str) -> list[int | None]:
    """Seeds as a list: `42,43,44` or `1-5`; `none` leaves them to the server.

    Raises:
        UsageError: something else.
    """
    if text.strip().lower() == "none":
        return [None]
    seeds: list[int | None] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise UsageError(f"{text!r} are no seeds.", remedy="Write them as 42,43,44 or as 1-5.")
        first, last = int(match[1]), int(match[2] or match[1])
        seeds += range(first, last + 1)
    return seeds


def tell(path: Path, tally: Tally, what: str = "responses") -> int:
    """Say what became of the rows of an output; returns the exit code."""
    say(f"{path}: {tally.rows:,} {what}, {tally.statuses.total():,} done, {tally.failed:,} failed.")
    if tally.reused:
        whole = "All" if tally.reused == tally.rows else f"{tally.reused:,}"
        say(f"{whole} of them had been done by an earlier run.")
    if tally.failed:
        say(f"Why they failed stands in {path}.failed.jsonl; --retry takes them up again.")
    return EXIT_ROWS_FAILED if tally.failed else 0


def show_quality(qualities: dict[tuple[str, str], Quality], *, json: bool) -> None:
    """The account of quality, as a table or as JSON, on standard output."""
    import msgspec

    if json:
        rows = [
            {"model": model, "language": tag, **msgspec.structs.asdict(quality)}
            for (model, tag), quality in qualities.items()
        ]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("model", "language"):
        table.add_column(name)
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for (model, tag), quality in qualities.items():
        table.add_row(model, tag, *_cells(quality))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


_COLUMNS = (
    "responses", "words", "sentences", "detectable", "most in", "right", "refused", "repetitive", "cut", "empty",
)  # fmt: skip


def _cells(quality: Quality) -> list[str]:
    return [
        f"{quality.responses:,}",
        f"{quality.words:.1f}",
        f"{quality.sentences:.2f}",
        _percent(quality.detectable),
        quality.most_frequent_language or "-",
        _percent(quality.right_language),
        _percent(quality.refused),
        _percent(quality.repetitive),
        _percent(quality.truncated),
        _percent(quality.empty),
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def say(text: str) -> None:
    """One line on standard error."""
    print(f"veriglot: {text}", file=sys.stderr)


def print_json(data: Any) -> None:
    """Any record as indented JSON on standard output."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n")


def types_of(order: str | None) -> tuple[tuple[str, ...], Order]:
    """The types that are named, none for all, and how they are ordered.

    Raises:
        UsageError: the list is empty.
    """
    if order is None:
        return (), "given"
    if order.strip().lower() == "shuffled":
        return (), "shuffled"
    types = tuple(part.strip() for part in order.split(",") if part.strip())
    if not types:
        raise UsageError(f"`order` is {order!r}, which names no type.")
    return types, "given"


def support_of(checks: Checks, model: str, seed: int) -> Support | None:
    """The check that is asked for; `model` makes it where no other is named."""
    from veriglot.datasets.silver.job import DetectorSupport, ModelSupport

    if checks.support == "none":
        return None
    if checks.support == "model":
        return ModelSupport(checks.support_model or model, seed=seed)
    from veriglot.detectors.registry import load_detector

    return DetectorSupport(load_detector(checks.detector))


def inject(
    source: Queries,
    injector: Injector,
    connection: Connection,
    output: Path,
    *,
    support: Support | None,
    also: str | None,
    order: Order,
    clean: float,
    restart: bool,
    retry: bool,
    json: bool,
    quiet: bool,
    prices: Prices | None,
) -> int:
    """Make the silver rows, and say what came of it.

    Args:
        also: another model that is going to be asked, or None.

    Returns:
        The exit code.
    """
    from veriglot.datasets.silver.job import load_account, silver

    models = [injector.model, *([also] if also else [])]
    with (
        connection.open(output, models) as client,
        Bar(shown=not quiet, total=lambda: count_rows(source.inputs)) as bar,
    ):
        tally = silver(
            output,
            source.rows(),
            injector,
            client,
            support=support,
            order=order,
            clean=clean,
            inputs=source.paths,
            options={**source.options},
            jobs=connection.concurrency,
            restart=restart,
            retry=retry,
            seen=lambda _: bar.advance(),
        )
    if not quiet:
        show_account(load_account(output), output, json=json, prices=prices)
    return tell(output, tally, what="seeds")


def dry_run_of(
    source: Queries, injector: Injector, *, order: Order, clean: float, checked: bool, prices: Prices | None
) -> None:
    """Calls and tokens, roughly: each error once, no passage longer than what is known of it."""
    from veriglot.datasets.silver.injection import Edited, Task, tasks
    from veriglot.llm.client import estimate_request, estimate_tokens
    from veriglot.text.segmentation import sentences

    calls = unusable = tokens_in = tokens_out = 0
    turns = injector.per_sentence
    for row in tasks(source.rows(), injector.all_types, turns=turns, order=order, clean=clean, seed=injector.seed):
        if not isinstance(row, Task):
            unusable += 1
            continue
        given = row.seed.response.strip()
        passage = given or " ".join(row.seed.evidence[0].text.split()[:80])  # a passage of usual length, to count by
        reference = sum(estimate_tokens(evidence.text) for evidence in row.seed.evidence)
        if not given:
            calls += 1
            tokens_in += estimate_request(injector.passage_request(row.seed, 1))
            tokens_out += estimate_tokens(passage)
        texts = [passage[s:e] for s, e in sentences(passage, row.seed.language)] if turns else [passage]
        rounds = [(text, type_) for text in texts for type_ in (row.types[:1] if turns else row.types)]
        for text, type_ in rounds:
            calls += 1
            tokens_in += estimate_request(injector.request(row, Edited(text, text), type_, 1))
            tokens_out += estimate_tokens(text)
        if checked:
            calls += 1 + len(rounds)
            tokens_in += (1 + len(rounds)) * (reference + estimate_tokens(passage))
    plan: dict[str, Any] = {
        "calls": calls,
        "seeds_that_cannot_be_used": unusable,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
    }
    if prices is not None:
        plan["money"] = round((tokens_in * prices.tokens_in + tokens_out * prices.tokens_out) / 1e6, 4)
    print_json(plan)


def show_account(account: Account[LanguageAccount], output: Path, *, json: bool, prices: Prices | None = None) -> None:
    """The yield per language and type on standard output; why the rest was rejected on standard error."""
    from veriglot.datasets.generation import rejected_path

    if json:
        import msgspec

        data = msgspec.to_builtins(account)
        if prices is not None:
            data["money"] = round(account.total.money(*prices), 4)
        print_json(data)
        return
    _table(account)
    total = account.total
    spent = f" {total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies"
    if prices is not None:
        spent += f", {account.total.money(*prices):,.2f} at the prices given"
    say("Percentages: how much of what was tried was taken.")
    say(f"{output}: {total.rows:,} rows, {total.clean:,} of them clean.{f'{spent}.' if total.calls else ''}")
    rejected = sum(sum(reasons.values()) for reasons in _reasons(total).values())
    if rejected:
        say(f"{rejected:,} rejections stand in {rejected_path(output)}:")
    for what, reasons in _reasons(total).items():
        if reasons:
            say(f"  {what}: " + ", ".join(f"{reason} {number:,}" for reason, number in reasons.items()))


def _reasons(account: LanguageAccount) -> dict[str, dict[str, int]]:
    reasons = {"passage": account.passages.reasons, **{type_: each.reasons for type_, each in account.types.items()}}
    return {**reasons, "row": account.row_reasons}


def _table(account: Account[LanguageAccount]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("language")
    for name in ("seeds", "rows", "clean", "passages", *account.total.types):
        table.add_column(name, justify="right")
    rows = [*account.languages.items()]
    if len(rows) != 1:
        rows.append(("all", account.total))
    for tag, language in rows:
        counts = [f"{number:,}" for number in (language.seeds, language.rows, language.clean)]
        yields = [
            "-" if each.share is None else f"{each.share:.0%}" for each in (language.passages, *language.types.values())
        ]
        table.add_row(tag, *counts, *yields)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
