"""Accounts of reading and writing: what was repaired, what was left out, and what a format could not hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FileReport", "Loss", "Losses", "Report", "TagReport"]


@dataclass
class TagReport:
    """Every tag in exactly one place: `seen == parsed + repaired.total() + reported.total()`.

    Attributes:
        seen: tags and pieces of tags met; an opener and its closer are two.
        parsed: those that were right as they stood.
        repaired: kind of repair to count; the tag's span was kept.
        reported: kind of fault to count; the tag gave no span.
        spans: span type to count of the spans that came out.
    """

    seen: int = 0
    parsed: int = 0
    repaired: Counter[str] = field(default_factory=Counter)
    reported: Counter[str] = field(default_factory=Counter)
    spans: Counter[str] = field(default_factory=Counter)

    def add(self, other: TagReport) -> None:
        """Add another account to this one."""
        self.seen += other.seen
        self.parsed += other.parsed
        self.repaired.update(other.repaired)
        self.reported.update(other.reported)
        self.spans.update(other.spans)

    def balanced(self) -> bool:
        """Whether every tag is accounted for."""
        return self.seen == self.parsed + self.repaired.total() + self.reported.total()


@dataclass
class FileReport:
    """What reading one file gave.

    Attributes:
        path: the file.
        format: the format it was read as.
        why: what the format was known from.
        samples: samples that came out.
        bad: rows that did not become a sample.
        tags: tags by layer ("gold", "silver", "response" where the fault is in the response itself).
        notes: other repairs and observations, by kind, with counts of places (not rows).
    """

    path: str
    format: str
    why: str = ""
    samples: int = 0
    bad: int = 0
    tags: dict[str, TagReport] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)

    def layer(self, name: str) -> TagReport:
        """The account of the tags of one layer."""
        return self.tags.setdefault(name, TagReport())

    def all_tags(self) -> TagReport:
        """The tags of all layers together."""
        total = TagReport()
        for report in self.tags.values():
            total.add(report)
        return total


@dataclass
class Report:
    """What reading gave, file by file, in the order read."""

    files: dict[str, FileReport] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def file(self, path: str, format_name: str, why: str = "") -> FileReport:
        """The account of one file."""
        return self.files.setdefault(path, FileReport(path, format_name, why))

    def as_rows(self) -> list[dict[str, Any]]:
        """The report as plain data, a dictionary per file."""
        return [
            {
                "path": f.path,
                "format": f.format,
                "why": f.why,
                "samples": f.samples,
                "bad": f.bad,
                "notes": dict(f.notes),
                "tags": {
                    layer: {
                        "seen": t.seen,
                        "parsed": t.parsed,
                        "repaired": dict(t.repaired),
                        "reported": dict(t.reported),
                        "spans": dict(t.spans),
                    }
                    for layer, t in f.tags.items()
                },
            }
            for f in self.files.values()
        ]


@dataclass
class Loss:
    """Something that a format cannot hold: how often, and the id of one sample where it happened."""

    count: int
    example: str


@dataclass
class Losses:
    """What writing left out, by name of what was lost. Empty when the file holds everything.

    Attributes:
        format: the format written.
        written: rows that the file holds.
        lost: what was lost to how often; the name of a whole sample that was left out starts with `row:`.
    """

    format: str = ""
    written: int = 0
    lost: dict[str, Loss] = field(default_factory=dict)

    def note(self, what: str, sample_id: str, count: int = 1) -> None:
        """Record that `what` of one sample is not in the file."""
        loss = self.lost.get(what)
        if loss is None:
            self.lost[what] = Loss(count, sample_id)
        else:
            loss.count += count

    def note_all(self, what: Iterable[str], sample_id: str) -> None:
        """Record several at once."""
        for each in what:
            self.note(each, sample_id)

    def __bool__(self) -> bool:
        return bool(self.lost)

    @property
    def rows_left_out(self) -> int:
        """How many whole samples are not in the file."""
        return sum(loss.count for what, loss in self.lost.items() if what.startswith("row: "))

    def as_data(self) -> dict[str, Any]:
        """The losses as plain data."""
        lost = {what: {"count": loss.count, "example": loss.example} for what, loss in self.lost.items()}
        return {"format": self.format, "written": self.written, "lost": lost}
