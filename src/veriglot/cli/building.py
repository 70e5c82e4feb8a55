"""What `veriglot build` does: stages of data over models, with their accounts in words."""

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

    from veriglot.build import Budget, Design, Quality, Respondent
    from veriglot.cli.inputs import Input
    from veriglot.cli.model_options import Connection
    from veriglot.records import Sample
    from veriglot.run import FailedRow, Row, Tally

__all__ = [
    "Queries",
    "ask",
    "file_name",
    "plan_in_words",
    "print_json",
    "records_of",
    "say",
    "seeds_of",
    "show_quality",
    "tell",
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
        return [one.path for one in self.inputs]

    def rows(self) -> Iterator[Sample | FailedRow]:
        """Every row, in order; ids that occur twice are failed rows."""
        from veriglot.formats import Report, SeenIds

        seen, report = SeenIds(), Report()
        for one in self.inputs:
            yield from rows_of(
                one,
                format_name=self._format,
                language=self._language,
                report=report,
                alone=len(self.inputs) == 1,
                seen=seen,
            )


def records_of(paths: Sequence[str], make: Callable[[Any], T]) -> Iterator[T | FailedRow]:
    """The objects of JSON lines, made into something with an id; what cannot be, and repeated ids, as failed rows."""
    from veriglot.formats import MAX_LINE_BYTES, BadRow, SeenIds
    from veriglot.formats.containers import read_container
    from veriglot.formats.source import Source
    from veriglot.run import FailedRow

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
    from veriglot.build import responses

    files = _files(respondents, output)
    tallies = {}
    revision = respondents[0].revision  # one option of the command line, for all of them
    with connection.open(output, [one.model for one in respondents], revision) as client:
        for respondent, path in zip(respondents, files, strict=True):

            def total() -> int | None:
                found = count_rows(queries.inputs)
                return None if found is None else found * (len(seeds) if design == "runs" else 1)

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
                    jobs=connection.jobs,
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
    from veriglot.build import budget

    return {one.name: budget(rows(), one, design=design, seeds=seeds) for one in respondents}


def _files(respondents: Sequence[Respondent], output: Path) -> list[Path]:
    if len(respondents) == 1 and output.suffix == ".jsonl":
        return [output]
    if output.suffix == ".jsonl":
        raise UsageError(f"{output} is one file, and there are several models.", remedy="Name a folder with -o.")
    names = [file_name(one.name) for one in respondents]
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
    found: list[int | None] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise UsageError(f"{text!r} are no seeds.", remedy="Write them as 42,43,44 or as 1-5.")
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1)
    return found


def tell(path: Path, tally: Tally, what: str = "responses") -> int:
    """Say what became of the rows of an output; returns the exit code."""
    say(f"{path}: {tally.rows:,} {what}, {tally.statuses.total():,} done, {tally.failed:,} failed.")
    if tally.reused:
        whole = "All" if tally.reused == tally.rows else f"{tally.reused:,}"
        say(f"{whole} of them had been done by an earlier run.")
    if tally.failed:
        say(f"Why they failed stands in {path}.failed.jsonl; --retry-failed takes them up again.")
    return EXIT_ROWS_FAILED if tally.failed else 0


def show_quality(found: dict[tuple[str, str], Quality], *, json: bool) -> None:
    """The account of quality, as a table or as JSON, on standard output."""
    import msgspec

    if json:
        rows = [{"model": model, "language": tag, **msgspec.structs.asdict(one)} for (model, tag), one in found.items()]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("model", "language"):
        table.add_column(name)
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for (model, tag), one in found.items():
        table.add_row(model, tag, *_cells(one))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


_COLUMNS = (
    "responses", "words", "sentences", "detectable", "most in", "right", "refused", "repetitive", "cut", "empty",
)  # fmt: skip


def _cells(one: Quality) -> list[str]:
    return [
        f"{one.responses:,}",
        f"{one.words:.1f}",
        f"{one.sentences:.2f}",
        _percent(one.detectable),
        one.most_frequent_language or "-",
        _percent(one.right_language),
        _percent(one.refused),
        _percent(one.repetitive),
        _percent(one.truncated),
        _percent(one.empty),
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
