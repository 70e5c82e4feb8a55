"""`veriglot convert`: from any readable format to any writable one, with predictions as labels, and an account."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.command import Options, command
from veriglot.cli.console import Account, listed, print_json, say
from veriglot.cli.inputs import known_tag
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError
from veriglot.formats.reader import SeenIds, columns_from, read_rows
from veriglot.formats.writer import Writer
from veriglot.records import Sample, encode
from veriglot.report.text_layout import count
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.bench.predictions import PredictedLabels
    from veriglot.formats.base import Report
    from veriglot.formats.writer import Losses


_NAMED = 3  # maximum ids in messages


class ConvertOptions(Options):
    """The options of `veriglot convert`."""

    source: str
    output: str | None = None
    format_: str | None = None
    columns: tuple[str, ...] = ()
    to: str | None = None
    language: str | None = None
    predictions: str | None = None
    predicted_by: str | None = None
    taxonomy: str | None = None
    strict: bool = False
    on_error: Literal["stop", "skip"] = "skip"
    json: bool = False

    @property
    def target(self) -> str:
        """The output; `-` for standard output."""
        return self.output or "-"


@command
def convert(options: ConvertOptions) -> int:
    """Convert labelled responses between formats.

    Standard error shows what was guessed, repaired and lost.

    \b
    To native:   veriglot convert gold_dev/ -o gold.jsonl
    To Parquet:  veriglot convert answers.jsonl -o answers.parquet
    Annotate:    veriglot convert answers.jsonl --predictions marked.jsonl -o annotated.jsonl
    """
    target = options.target
    if options.json and target == "-":
        raise UsageError("--json and the samples cannot both go to standard output.", "Add -o FILE.")
    if "-" not in {options.source, target}:
        written, read = Path(target).resolve(), Path(options.source).resolve()
        if written == read or read in written.parents:
            raise UsageError("The output is inside the input.", "Write it somewhere else.")
    labels = _predicted_labels(options.predictions, options.predicted_by, options.taxonomy)
    account = Account(quiet=False)
    report, samples = account.report, _samples(options, labels, account)
    first = list(islice(samples, 1))  # if nothing can be read or joined, an existing output is not replaced
    with Writer(target, format=options.to) as writer:
        for sample in chain(first, samples):
            writer.write(sample)
    losses = writer.losses
    _tell(report, losses)
    if labels is not None:
        for line in _account_of(labels):
            say(line)
    if options.json:
        files = {"files": [*report.files.values()], "unread": report.unread, "losses": losses}
        print_json(files if labels is None else {**files, "predictions": labels.as_data()})
    return EXIT_ROWS_FAILED if account.tally.failed or losses.rows_left_out else 0


def _samples(options: ConvertOptions, labels: PredictedLabels | None, account: Account) -> Iterator[Sample]:
    """The samples; unreadable rows are stored, or end the run."""
    rows = read_rows(
        options.source,
        format=options.format_,
        columns=columns_from(options.columns),
        strict=options.strict,
        report=account.report,
        language=known_tag(options.language),
        seen=SeenIds() if labels else None,
        labelled=True,
    )
    if labels is not None:
        rows = _labelled_rows(rows, labels, options.source)
    failures = Path(f"{options.target}.failed.jsonl") if options.target != "-" else None
    return account.samples(rows, failures, stop=options.on_error == "stop")


def _predicted_labels(path: str | None, annotator: str | None, taxonomy: str | None) -> PredictedLabels | None:
    """The predictions of a file; None if no file is given."""
    if path is None:
        if annotator or taxonomy:
            raise UsageError("--predicted-by and --taxonomy are of predictions.", "Add --predictions FILE.")
        return None
    from veriglot.bench.predictions import PredictedLabels, Predictions

    return PredictedLabels.of(Predictions.read(path), annotator=annotator, taxonomy=taxonomy)


def _labelled_rows(
    rows: Iterable[Sample | FailedRow], labels: PredictedLabels, source: str
) -> Iterator[Sample | FailedRow]:
    """The rows, samples with their predictions as annotations; a sample that does not fit its prediction is a bad row.

    Nothing is yielded before a prediction fits, so that no output is started in vain.
    """
    labelled: list[Sample | FailedRow] = []  # maybe all rows: no more than the predictions, which are in memory too
    refused: InputError | None = None
    for row in rows:
        if isinstance(row, Sample):
            try:
                row = labels.put_into(row)
            except InputError as error:
                refused = refused or error
                row = FailedRow.of(error.at(path=source), encode(row).decode())
        labelled.append(row)
        if labels.fit:
            yield from labelled
            labelled.clear()
    if not labels.fit:
        what, remedy = "no id is the same", "Give the samples that were judged."
        if refused is not None:
            what = f"ids that match: {labels.refused:,}, but the first of these: {refused.detail}"
            remedy = refused.remedy
        every = count(len(labels.predictions.by_id), "prediction")
        raise InputError(f"none of {every} belongs to a sample: {what}", remedy, path=source)


def _account_of(labels: PredictedLabels) -> Iterator[str]:
    """The results of the predictions, one sentence each."""
    yield (
        f"{count(labels.joined, 'sample')} got an annotation by {labels.annotator!r}"
        f" (kind model, taxonomy {labels.taxonomy})."
    )
    if labels.unchecked:
        reasons = listed(labels.unchecked)
        yield f"Not checked, and without an annotation: {count(labels.unchecked.total(), 'sample')} ({reasons})."
    if labels.refused:
        yield f"With a prediction that does not fit: {count(labels.refused, 'sample')}."
    for ids, what in (
        (labels.missing, "samples have no prediction and got no annotation"),
        (labels.predictions.unused, "predictions belong to no sample"),
    ):
        if ids:
            yield f"{len(ids):,} {what}, such as {', '.join(map(repr, ids[:_NAMED]))}."
    for what, loss in labels.losses.lost.items():
        yield f"lost: {what}, {count(loss.count, 'time')}, such as in {loss.example!r}."


def _tell(report: Report, losses: Losses) -> None:
    for file in report.files.values():
        tags = file.all_tags()
        parts = [count(file.samples, "sample")]
        if file.bad:
            parts.append(f"{count(file.bad, 'row')} that cannot be read")
        if tags.seen:
            parts.append(
                f"{tags.seen:,} tags: {tags.parsed:,} parsed, {tags.repaired.total():,} repaired,"
                f" {tags.reported.total():,} reported"
            )
        parts += [f"{kind} {count:,}" for kind, count in file.notes.most_common()]
        say(f"{file.path} is {file.format} ({file.why}): {'; '.join(parts)}.")
    say(f"{count(losses.written, 'sample')} written as {losses.format}.")
    for what, loss in losses.lost.items():
        verb = "left out" if what.startswith("row: ") else "lost"
        say(f"{verb}: {what.removeprefix('row: ')}, {count(loss.count, 'time')}, such as in {loss.example!r}.")
