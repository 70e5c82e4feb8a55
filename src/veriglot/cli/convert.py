"""`veriglot convert`: from any readable format to any writable one, with predictions as labels, and an account."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veriglot.cli.command import Help, command
from veriglot.cli.inputs import known_tag
from veriglot.cli.options import (
    InputFormat,
    Json,
    Language,
    OnError,
    OptionalOutput,
    OutputFormat,
    PredictionsFile,
    Taxonomy,
)
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from veriglot.bench.annotations import PredictedLabels
    from veriglot.formats.base import Losses, Report, TagReport
    from veriglot.formats.containers import BadRow
    from veriglot.formats.writer import Writer
    from veriglot.records import Sample

__all__ = ["convert"]


_NAMED = 3


def predicted_labels(path: str | None, annotator: str | None, taxonomy: str | None) -> PredictedLabels | None:
    """The predictions of a file; None where none is named.

    Raises:
        UsageError: an option that is of no use without a file.
        InputError: the file cannot be read, holds no predictions, or two of one id.
    """
    if path is None:
        for name, given in (("--predicted-by", annotator), ("--taxonomy", taxonomy)):
            if given is not None:
                raise UsageError(f"{name} is of predictions.", remedy="Add --predictions FILE.")
        return None
    from veriglot.bench.annotations import PredictedLabels
    from veriglot.formats.reader import read_predictions

    try:
        return PredictedLabels.of(read_predictions(path), annotator=annotator, taxonomy=taxonomy)
    except InputError as error:
        raise error.at(path=path) from error


def labelled_rows(rows: Iterable[Sample | BadRow], labels: PredictedLabels, source: str) -> Iterator[Sample | BadRow]:
    """The rows, samples with their predictions as annotations; one that these cannot belong to is a bad row.

    Nothing is yielded before one of the predictions fits, so that what is written of the rows is not begun in vain.

    Raises:
        InputError: not one of the predictions fits a sample.
    """
    held: list[Sample | BadRow] = []  # at worst all rows: no more than the predictions, which are in memory too
    refused: InputError | None = None
    for row in rows:
        made, error = _labelled(row, labels, source)
        refused = refused or error
        held.append(made)
        if labels.fit:
            yield from held
            held.clear()
    if not labels.fit:
        raise _no_fit(labels, refused, source)


def _labelled(row: Sample | BadRow, labels: PredictedLabels, source: str) -> tuple[Sample | BadRow, InputError | None]:
    """A row with its prediction, or as a bad one with what stands against it."""
    from veriglot.formats.containers import BadRow
    from veriglot.records import Sample, encode

    if not isinstance(row, Sample):
        return row, None
    try:
        return labels.put_into(row), None
    except InputError as error:
        return BadRow(source, 0, error.at(path=source), encode(row).decode()), error


def _no_fit(labels: PredictedLabels, refused: InputError | None, source: str) -> InputError:
    what, remedy = "no id is the same", "Give the samples that the predictions were made of."
    if refused is not None:
        what, remedy = f"{labels.refused:,} have the id of one, but the first of them: {refused.detail}", refused.remedy
    return InputError(
        f"not one of the {len(labels.predictions):,} predictions belongs to a sample: {what}",
        path=source,
        remedy=remedy,
    )


def account_of(labels: PredictedLabels) -> Iterator[str]:
    """What became of the predictions, a sentence each."""
    yield (
        f"{labels.joined:,} samples got an annotation by {labels.annotator!r} (kind model, taxonomy {labels.taxonomy})."
    )
    if labels.unchecked:
        told = ", ".join(f"{status} {count:,}" for status, count in labels.unchecked.most_common())
        yield f"{labels.unchecked.total():,} samples were not checked and got none: {told}."
    if labels.refused:
        yield f"{labels.refused:,} samples have a prediction that could not be put into them."
    for ids, what in (
        (labels.missing, "samples have no prediction and got no annotation"),
        (labels.unused, "predictions belong to no sample"),
    ):
        if ids:
            yield f"{len(ids):,} {what}, such as {', '.join(map(repr, ids[:_NAMED]))}."
    for what, loss in labels.losses.lost.items():
        yield f"lost: {what}, {loss.count:,} times, such as in {loss.example!r}."


_TOLD = 20  # failed rows told one by one where no file keeps them all


@command
def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="A file or folder in any readable format, or - for standard input.", show_default=False
        ),
    ],
    *,
    output: Annotated[OptionalOutput, Help("Default: standard output.")] = None,
    format_: InputFormat = None,
    to: Annotated[OutputFormat, Help("Default: by the suffix of the output; JSON lines on standard output.")] = None,
    language: Annotated[Language, Help("Default: left unset.")] = None,
    predictions: Annotated[
        PredictionsFile, Help("They are written as annotations of kind `model`. Default: none.")
    ] = None,
    predicted_by: Annotated[
        str | None,
        typer.Option(
            "--predicted-by",
            metavar="NAME",
            help="What the annotator of --predictions is called. Default: name and revision of the detector.",
        ),
    ] = None,
    taxonomy: Annotated[Taxonomy, Help("Of --predictions. Default: the first that holds them all.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse rows that would need a repair. Default: off.")
    ] = False,
    on_error: OnError = "skip",
    max_line_mb: Annotated[
        int,
        typer.Option(
            "--max-line-mb",
            metavar="MB",
            min=1,
            help="A longer line is a row that cannot be read; mebibytes. Default: 32.",
        ),
    ] = 32,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Print, file by file, how many tags were parsed, repaired and reported; writes no samples unless -o"
            " names a file. Default: off.",
        ),
    ] = False,
    json: Annotated[Json, Help("The account; needs -o or --summary. Default: off.")] = False,
) -> None:
    """Convert labelled responses between formats.

    What was guessed, repaired and lost is said on standard error.

    \b
    To native:   veriglot convert gold_dev/ -o gold.jsonl
    To Parquet:  veriglot convert answers.jsonl -o answers.parquet
    Account:     veriglot convert gold_dev/ --summary
    Annotate:    veriglot convert answers.jsonl --predictions marked.jsonl -o annotated.jsonl
    """
    output = output or "-"
    if json and not summary and output == "-":
        raise UsageError("--json would stand among the samples on standard output.", remedy="Add -o FILE or --summary.")
    _check_target(source, output)
    request = _Request(source, output, format_, to, known_tag(language), strict, on_error == "stop", max_line_mb << 20)
    job = _Job(request, predicted_labels(predictions, predicted_by, taxonomy))
    losses = None
    if summary and output == "-":
        job.read_only()
    else:
        losses = job.run()
    _tell(job.report, losses, quiet_files=summary)
    if job.labels is not None:
        for line in account_of(job.labels):
            _say(line)
    if json:
        _print_json(job.report, losses, job.labels)
    elif summary:
        print("\n".join(_report_lines(job.report)))
    if job.failed or (losses is not None and losses.rows_left_out):
        raise typer.Exit(EXIT_ROWS_FAILED)


@dataclass(frozen=True)
class _Request:
    source: str
    output: str
    from_: str | None
    to: str | None
    language: str | None
    strict: bool
    stop: bool
    max_line_bytes: int


class _Job:
    def __init__(self, request: _Request, labels: PredictedLabels | None) -> None:
        from veriglot.formats.base import Report

        self._request = request
        self.labels = labels
        self.report: Report = Report()
        self.failed = 0

    def read_only(self) -> None:
        """Read everything and keep nothing but the account."""
        for _ in self._rows():
            pass

    def run(self) -> Losses:
        """Read and write."""
        from veriglot.formats.writer import open_writer

        writer: Writer
        rows = self._rows()
        first = list(islice(rows, 1))  # where nothing can be read or joined, what stands in the output's place stays
        with open_writer(self._request.output, format=self._request.to) as writer:
            for sample in chain(first, rows):
                writer.write(sample)
        return writer.losses

    def _rows(self) -> Iterator[Sample]:
        from veriglot.formats.containers import BadRow

        request = self._request
        failures = Path(f"{request.output}.failed.jsonl") if request.output != "-" else None
        rows = self._read()
        first = list(islice(rows, 1))
        if failures is not None:
            failures.unlink(missing_ok=True)
        for row in chain(first, rows):
            if not isinstance(row, BadRow):
                yield row
            elif request.stop:
                raise row.error
            else:
                self._keep(row, failures)

    def _read(self) -> Iterator[Sample | BadRow]:
        from veriglot.formats.reader import SeenIds, read_rows

        request = self._request
        rows = read_rows(
            request.source,
            format=request.from_,
            strict=request.strict,
            max_line_bytes=request.max_line_bytes,
            report=self.report,
            language=request.language,
            seen=SeenIds() if self.labels else None,
        )
        return rows if self.labels is None else labelled_rows(rows, self.labels, request.source)

    def _keep(self, row: BadRow, failures: Path | None) -> None:
        from veriglot.records import encode
        from veriglot.storage.checkpoint import FailedRow

        self.failed += 1
        if failures is None or self.failed <= _TOLD:
            _say(f"{row.error.message}. {row.error.remedy}".rstrip())
        if failures is not None:
            with failures.open("ab") as file:
                file.write(encode(FailedRow.of(row.error, row.raw)) + b"\n")
            if self.failed == _TOLD:
                _say(f"further rows that cannot be read are only written to {failures}.")


def _check_target(source: str, output: str) -> None:
    if output == "-" or source == "-":
        return
    target, read = Path(output).resolve(), Path(source).resolve()
    if target == read or read in target.parents:
        raise UsageError("The output lies in the input.", remedy="Write it somewhere else.")


def _say(text: str) -> None:
    print(f"veriglot: {text}", file=sys.stderr)


def _tell(report: Report, losses: Losses | None, *, quiet_files: bool) -> None:
    for path, why in report.unread.items():
        _say(f"{path} is left aside: {why}.")
    for file in report.files.values():
        if quiet_files:
            break
        tags = file.all_tags()
        parts = [f"{file.samples:,} samples"]
        if file.bad:
            parts.append(f"{file.bad:,} rows that cannot be read")
        if tags.seen:
            parts.append(
                f"{tags.seen:,} tags: {tags.parsed:,} parsed, {tags.repaired.total():,} repaired,"
                f" {tags.reported.total():,} reported"
            )
        parts += [f"{kind} {count:,}" for kind, count in file.notes.most_common()]
        _say(f"{file.path} is {file.format} ({file.why}): {'; '.join(parts)}.")
    if losses is None:
        return
    _say(f"{losses.written:,} samples written as {losses.format}.")
    for what, loss in losses.lost.items():
        verb = "left out" if what.startswith("row: ") else "lost"
        _say(f"{verb}: {what.removeprefix('row: ')}, {loss.count:,} times, such as in {loss.example!r}.")


def _print_json(report: Report, losses: Losses | None, labels: PredictedLabels | None) -> None:
    import msgspec

    account = {"files": report.as_rows(), "unread": report.unread, "losses": losses.as_data() if losses else None}
    if labels is not None:
        account["predictions"] = labels.as_data()
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(account), indent=2).decode() + "\n")


def _report_lines(report: Report) -> Iterator[str]:
    from veriglot.formats.base import TagReport

    total = TagReport()
    for file in report.files.values():
        yield f"{file.path}  {file.format}, {file.samples:,} samples, {file.bad:,} bad rows"
        for layer, tags in file.tags.items():
            yield from _layer_lines(layer, tags)
            total.add(tags)
        if file.notes:
            yield f"  notes     {_listed(file.notes)}"
    samples = sum(file.samples for file in report.files.values())
    yield f"all {len(report.files):,} files  {samples:,} samples"
    yield from _layer_lines("total", total)


def _layer_lines(name: str, tags: TagReport) -> Iterator[str]:
    yield (
        f"  {name:<9} {tags.seen:,} tags = {tags.parsed:,} parsed + {tags.repaired.total():,} repaired"
        f" + {tags.reported.total():,} reported"
    )
    for label, counts in (("repaired", tags.repaired), ("reported", tags.reported), ("spans", tags.spans)):
        if counts:
            yield f"            {label}: {_listed(counts)}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common())
