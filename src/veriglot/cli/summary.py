"""What became of the rows, told on standard error while and after they are done."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from veriglot.errors import EXIT_ROWS_FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.formats import FileReport, Report
    from veriglot.records import Prediction
    from veriglot.run import FailedRow, Ledger, Tally

__all__ = ["Account"]

_SHOWN = 5  # failed rows that are told one by one where a file holds them all
_FILES_SHOWN = 8  # files whose repairs are told one by one


class Account:
    """Counts rows by what became of them.

    Args:
        quiet: say nothing but what would otherwise be lost: rows that failed and that no file keeps.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._statuses: Counter[str] = Counter()
        self._failed = 0
        self._told = 0
        self._ledgers: Sequence[Ledger] = ()
        self._reused = 0
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """Where reading counts its repairs."""
        if self._report is None:
            from veriglot.formats import Report

            self._report = Report()
        return self._report

    @property
    def exit_code(self) -> int:
        """0, or 3 where a row could not be read or judged."""
        return EXIT_ROWS_FAILED if self._failed or self._statuses["failed"] else 0

    def warn(self, text: str) -> None:
        """Say `text`, unless quiet."""
        if not self._quiet:
            print(f"veriglot: {text}", file=sys.stderr)

    def add(self, prediction: Prediction) -> None:
        """One more row with a prediction."""
        self._statuses[prediction.status] += 1

    def add_failed(self, row: FailedRow, *, kept: bool) -> None:
        """One more row that could not be read; `kept` where a file holds it."""
        self._failed += 1
        if kept and (self._quiet or self._told == _SHOWN):
            return
        self._told += 1
        print(f"veriglot: {row.as_error()}", file=sys.stderr)
        if kept and self._told == _SHOWN:
            self.warn("further rows that cannot be read are not shown, only written to the file of failed rows.")

    def take(self, tally: Tally, ledgers: Sequence[Ledger]) -> None:
        """The counts of a whole run, what an earlier run did included."""
        self._statuses, self._failed, self._reused = tally.statuses, tally.failed, tally.reused
        self._ledgers = ledgers

    def close(self) -> int:
        """Say what became of the rows; returns the exit code."""
        self._tell_repairs()
        rows = self._statuses.total() + self._failed
        parts = [f"{count:,} {status}" for status, count in sorted(self._statuses.items(), key=lambda item: -item[1])]
        if self._failed:
            parts.append(f"{self._failed:,} could not be read{self._where()}")
        self.warn(f"{rows:,} {'row' if rows == 1 else 'rows'}{': ' if parts else ''}{', '.join(parts)}.")
        if self._reused:
            whole = "all" if self._reused == rows else f"{self._reused:,}"
            again = " --restart makes the output anew." if self._reused == rows else ""
            self.warn(f"{whole} of them had been done by an earlier run.{again}")
        return self.exit_code

    def _where(self) -> str:
        files = [str(ledger.failures.path) for ledger in self._ledgers if ledger.failed]
        return f" (see {files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''})" if files else ""

    def _tell_repairs(self) -> None:
        if self._report is None:
            return
        found = [(file, _notes(file)) for file in self._report.files.values()]
        found = [(file, notes) for file, notes in found if notes]
        for file, notes in found[:_FILES_SHOWN]:
            self.warn(f"{file.path} was read as {file.format} with {_listed(notes)}.")
        rest = found[_FILES_SHOWN:]
        if rest:
            together = sum((notes for _, notes in rest), Counter[str]())
            self.warn(f"{len(rest)} more files were read with {_listed(together)}.")


def _notes(file: FileReport) -> Counter[str]:
    """Repairs and observations of reading one file, by kind."""
    tags = file.all_tags()
    return file.notes + tags.repaired + tags.reported


def _listed(notes: Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in notes.most_common())
