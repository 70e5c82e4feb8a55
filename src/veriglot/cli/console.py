"""Output of commands: messages and progress on standard error, JSON on standard output, a report of failed rows."""

from __future__ import annotations

import logging
import math
import sys
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import EXIT_ROWS_FAILED, UsageError
from veriglot.pipeline.progress import ProgressBar, say
from veriglot.records import Prediction, Sample, encode
from veriglot.records.languages import find_language
from veriglot.report.text_layout import shortened
from veriglot.storage.checkpoint import Checkpoint, FailedRow, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.formats.base import Report

__all__ = ["Account", "ProgressBar", "listed", "print_json", "say", "write_example"]


def write_example(path: Path, package: str, name: str, *, then: str) -> None:
    """Write a commented file from a package, and print its path; `then` is the next command to type.

    Raises:
        UsageError: the file exists.
    """
    from importlib.resources import files

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(files(package).joinpath(name).read_text("utf-8"))
    except FileExistsError:
        raise UsageError(f"{path} exists already.", "Name another file.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", "Check the folder.") from error
    print(path)
    say(f"edit it, then type: {then} {path}")


class FormatLogHandler(logging.Handler):
    """Prints how readers interpreted the input, each line once, even if an input is read twice.

    Args:
        shown: whether to print anything.
    """

    def __init__(self, *, shown: bool) -> None:
        super().__init__()
        self._shown = shown
        self._logger = logging.getLogger("veriglot.formats")
        self._lines = set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        line = record.getMessage()
        if self._shown and line not in self._lines:
            self._lines.add(line)
            say(line)

    def __enter__(self) -> None:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


def print_json(data: Any) -> None:
    """Any record as indented JSON on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n")
    sys.stdout.flush()


def listed(counts: Mapping[str, int]) -> str:
    """Counts by name, with the numbers of a Counter: `glued 3, empty 1`."""
    pairs = counts.most_common() if isinstance(counts, Counter) else counts.items()
    return ", ".join(f"{name} {count:,}" for name, count in pairs)


_SHOWN = 5  # maximum failed rows that are reported one by one
_ALL_OF_THEM = "`veriglot convert FILE -o NEW.jsonl` writes all to NEW.jsonl.failed.jsonl"
_FILES_SHOWN = 8  # maximum files whose repairs are reported one by one
_LANGUAGES_SHOWN = 12  # maximum languages whose shares are reported


class Account:
    """Counts rows by their result.

    Attributes:
        tally: the counts.

    Args:
        quiet: report only failed rows that are not in any file.
        live: report each unreadable row immediately, because a stream may never end.
    """

    def __init__(self, *, quiet: bool, live: bool = False) -> None:
        self._quiet = quiet
        self._shown = math.inf if live else _SHOWN
        self.tally = Tally()
        self._reported = 0
        self._checkpoints: Sequence[Checkpoint] = ()
        self._listing: Path | None = None
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """The report in which readers count repairs."""
        if self._report is None:
            from veriglot.formats.base import Report

            self._report = Report()
        return self._report

    @property
    def exit_code(self) -> int:
        """0, or 3 if a row could not be read or judged."""
        return EXIT_ROWS_FAILED if self.tally.failed or self.tally.statuses["failed"] else 0

    def warn(self, text: str) -> None:
        """Print `text`, unless quiet."""
        if not self._quiet:
            say(text)

    def add(self, prediction: Prediction) -> None:
        """Count a row with a prediction."""
        self.tally.add(prediction)

    def add_failed(self, row: FailedRow, *, written: bool, where: str = "the file of failed rows") -> None:
        """Count an unreadable row; `written` if a file has it, and `where`."""
        self.tally.failed += 1
        self._reported += 1
        if self._quiet and written:
            return
        if self._reported <= self._shown:
            say(str(row.as_error()))
        elif self._reported == self._shown + 1:
            rest = f"written to {where}" if written else f"counted; {_ALL_OF_THEM}"
            say(f"further unreadable rows are not shown, only {rest}.")

    def samples(
        self, rows: Iterable[Sample | FailedRow], failures: Path | None = None, *, stop: bool = False
    ) -> Iterator[Sample]:
        """The samples among rows; an unreadable row is counted, and stored in `failures`, or ends the run.

        The first row replaces what an earlier run left in `failures`.
        """
        rows = iter(rows)
        first = list(islice(rows, 1))
        if failures is not None:
            failures.unlink(missing_ok=True)
        for row in chain(first, rows):
            if isinstance(row, Sample):
                yield row
                continue
            if stop:
                raise row.as_error()
            if failures is not None:
                with failures.open("ab") as file:
                    file.write(encode(row) + b"\n")
            self.add_failed(row, written=failures is not None, where=str(failures))
            self._listing = failures

    def take(self, tally: Tally, checkpoints: Sequence[Checkpoint], listing: Path | None = None) -> None:
        """Add the counts of a whole run, with those of earlier runs; `listing` has the failed rows of parts."""
        self.tally, self._checkpoints, self._listing = tally, checkpoints, listing

    def close(self) -> int:
        """Report the results of the rows; returns the exit code."""
        from veriglot.detectors.registry import load_if_installed

        self._tell_repairs()
        rows, reused = self.tally.rows, self.tally.reused
        self.warn(f"{rows:,} {'row' if rows == 1 else 'rows'}: {'; '.join(self._parts()) or 'nothing to do'}.")
        counted = Counter[str]()
        for (language, verdict), count in self.tally.verdicts.items():
            if verdict != "not_checked":
                counted[language] += count
        unknown = Counter({language: count for language, count in counted.items() if not find_language(language)})
        if unknown:
            self.warn(f"rows that state an unknown language: {unknown.total():,} ({listed(unknown)}).")
        shares = [
            f"{language} {self.tally.verdicts[language, 'unsupported']:,} of {count:,}"
            for language, count in counted.most_common()
        ]
        if len(shares) > 1:
            self.warn(f"marked of checked, by language: {shortened(shares, _LANGUAGES_SHOWN)}.")
        for status, row in (("failed", "failed row"), ("unsupported_language", "row in an unsupported language")):
            if reason := self.tally.reasons.get(status):
                self.warn(f"the first {row}: {reason}")
        if self.tally.foreign and load_if_installed("reader") is None:
            self.warn(
                f"judged without reader, which compares meanings, also across languages: {self.tally.foreign:,}. Type"
                " pip install 'veriglot[reader]', and leave out --detector."
            )
        if reused:
            whole = "all" if reused == rows else f"{reused:,}"
            hint = " Add --overwrite to start over." if reused == rows else ""
            self.warn(f"{whole} of them had been done by an earlier run.{hint}")
        return self.exit_code

    def _parts(self) -> Iterator[str]:
        statuses, checked = self.tally.statuses, self.tally.statuses["scored"]
        if checked and self.tally.verdicts:  # earlier versions did not count marked rows
            marked = self.tally.marked
            yield f"{checked:,} checked, {marked:,} of them marked ({marked / checked:.1%})"
        elif checked:
            yield f"{checked:,} checked"
        others = [(status, count) for status, count in statuses.most_common() if status != "scored"]
        if others:
            reasons = ", ".join(f"{status.replace('_', ' ')} {count:,}" for status, count in others)
            yield f"{statuses.total() - checked:,} not checked ({reasons})"
        if self.tally.failed:
            files = [str(checkpoint.failures.path) for checkpoint in self._checkpoints if checkpoint.tally.failed]
            files += [] if self._listing is None else [str(self._listing)]
            where = f" (see {shortened(files, 1)})" if files else ""
            yield f"{self.tally.failed:,} could not be read{where}"

    def _tell_repairs(self) -> None:
        if self._report is None:
            return
        tagged = [(file, file.all_tags()) for file in self._report.files.values()]
        notes_of = ((file, file.notes + tags.repaired + tags.reported) for file, tags in tagged)
        noted = [(file, Counter({name.replace("_", " "): n for name, n in notes.items()})) for file, notes in notes_of]
        repaired = [(file, notes) for file, notes in noted if notes]
        for file, notes in repaired[:_FILES_SHOWN]:
            self.warn(f"{file.path} was read as {file.format} with {listed(notes)}.")
        if rest := repaired[_FILES_SHOWN:]:
            together = sum((notes for _, notes in rest), Counter[str]())
            self.warn(f"Further files read: {len(rest)}, with {listed(together)}.")
