"""A project file, read and checked: every word of it is known, and everything that could fail late is looked at now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from veriglot.annotate.entries import Entries, TaskKind
from veriglot.annotate.forms import Form, form_of
from veriglot.errors import InputError, VeriglotError
from veriglot.records.languages import language as known_language
from veriglot.records.toml_file import read_toml_records

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Project", "load"]

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class Project:
    """A project file with its place.

    Attributes:
        path: the file.
        entries: what stands in it.
        form: what an annotator fills in.
    """

    path: Path
    entries: Entries
    form: Form

    @property
    def name(self) -> str:
        """For people."""
        return self.entries.project.name

    @property
    def slug(self) -> str:
        """For addresses and files."""
        return self.entries.project.slug

    @property
    def task(self) -> TaskKind:
        """The kind of task."""
        return self.entries.project.task

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of the responses; empty for whatever the data holds."""
        return tuple(dict.fromkeys(known_language(name).tag for name in self.entries.project.languages))

    @property
    def database(self) -> str:
        """Where the work is kept: a path of an SQLite file, or a URL of PostgreSQL."""
        url = self.entries.store.url
        if url is None:
            return str(self.path.parent / f"{self.slug}.sqlite")
        return url if "://" in url else str(self.place(url))

    def place(self, path: str) -> Path:
        """Where a path of the file leads: it is relative to the folder that the file is in."""
        from pathlib import Path

        return self.path.parent / Path(path).expanduser()

    def places(self, paths: str | tuple[str, ...]) -> list[Path]:
        """The same of one path or several."""
        return [self.place(path) for path in ((paths,) if isinstance(paths, str) else paths)]


def load(path: Path) -> Project:
    """Read a project file.

    Raises:
        InputError: it is no TOML, a key is unknown (with the nearest that are known), missing or of a wrong kind,
        values do
            not go together, or a file of guidelines does not exist.
    """
    try:
        entries = read_toml_records(path, Entries, "project")
        _check(entries)
        project = Project(path, entries, form_of(entries))
        for tag, file in entries.guidelines.items():
            _require(project.place(file).is_file(), f"there is no such file: {file}", f"guidelines.{tag}")
    except InputError as error:
        raise error.at(path=str(path)) from None
    except VeriglotError as error:
        raise InputError(error.message, remedy=error.remedy, path=str(path)) from error
    return project


def _check(entries: Entries) -> None:
    about = entries.project
    _require(bool(about.name.strip()), "a project has a name", "project.name")
    _require(
        _SLUG.fullmatch(about.slug) is not None and len(about.slug) <= 64,
        f"{about.slug!r} is no slug: small letters a-z, digits and single hyphens, at most 64",
        "project.slug",
    )
    for name in about.languages:
        known_language(name)
    for type_, colour in about.colours.items():
        _require(
            _COLOUR.fullmatch(colour) is not None, f"{colour!r} is no colour like #1f77b4", f"project.colours.{type_}"
        )
    for field in ("flags", "source_flags", "skip_reasons"):
        for name in getattr(about, field) or ():
            _require(
                _NAME.fullmatch(name) is not None, f"{name!r} is no name like `wrong_language`", f"project.{field}"
            )
    for table in ("consent", "guidelines"):
        for tag in getattr(entries, table):
            _require(_LANGUAGE.fullmatch(tag) is not None, f"{tag!r} is no language tag", table)
    _check_ratings(entries)
    _check_numbers(entries)
    _check_store(entries.store.url)


def _check_ratings(entries: Entries) -> None:
    names = [(rating.name, rating.of) for rating in entries.ratings]
    _require(len(set(names)) == len(names), "two ratings share a name", "ratings")
    _require(len([of for _, of in names if of == "span"]) <= 1, "a span has one rating at most", "ratings")
    for rating in entries.ratings:
        _require(
            _NAME.fullmatch(rating.name) is not None, f"{rating.name!r} is no name like `fools_reader`", "ratings.name"
        )
        _require(2 <= rating.steps <= 11, "a rating has 2 to 11 steps", "ratings.steps")


def _check_numbers(entries: Entries) -> None:
    work, people, pace = entries.work, entries.people, entries.pace
    _at_least(work.overlap, 0, "work.overlap")
    _at_least(work.per_person, 0, "work.per_person")
    _at_least(entries.data.limit, 1, "data.limit")
    for field in ("invitation_days", "resume_days", "session_days"):
        _at_least(getattr(people, field), 1, f"people.{field}")
    _require(pace.fastest > 0 and pace.idle > 0 and pace.window > 0, "these are above 0", "pace")
    if (exam := entries.exam) is not None:
        _at_least(exam.items, 1, "exam.items")
        _at_least(exam.attempts, 1, "exam.attempts")
        _share(exam.bar, "exam.threshold")
        for stratum in exam.strata:
            _share(stratum.low, "exam.strata.low")
            _share(stratum.high, "exam.strata.high")
            _require(stratum.low <= stratum.high, "`low` is not above `high`", "exam.strata")
            _require(0 <= stratum.several <= stratum.items, "`several` counts some of the items", "exam.strata.several")
        total = sum(stratum.items for stratum in exam.strata)
        _require(
            not exam.strata or total == exam.items, f"the strata have {total} items, the exam {exam.items}", "exam"
        )
    if (validation := entries.validation) is not None:
        _at_least(validation.batch_size, 1, "validation.batch_size")
        _share(validation.share, "validation.share", above=0.0)
        _share(validation.threshold, "validation.threshold")
    if (checks := entries.checks) is not None:
        _share(checks.share, "checks.share", most=0.5)
        _share(checks.threshold, "checks.threshold")
    if (suggestions := entries.suggestions) is not None:
        _share(suggestions.share, "suggestions.share")
        one = (suggestions.detector is not None) != suggestions.silver
        _require(one, "name a detector, or take the silver layer: one of them", "suggestions")


def _check_store(url: str | None) -> None:
    if url is None or "://" not in url:
        return
    parts = urlsplit(url)
    known = parts.scheme in {"postgresql", "postgres", "sqlite"}
    _require(known, "a file name or postgresql://... is expected", "store.url")
    if parts.password:
        raise InputError(
            "a password stands in the project file",
            field="store.url",
            remedy="Take it out, and set PGPASSWORD or ~/.pgpass instead.",
        )


def _share(value: float, field: str, *, above: float | None = None, most: float = 1.0) -> None:
    fits = 0.0 <= value <= most and (above is None or value > above)
    _require(fits, f"this lies between 0 and {most:g}, but it is {value}", field)


def _at_least(value: int | None, least: int, field: str) -> None:
    _require(value is None or value >= least, f"this is {least} or more, but it is {value}", field)


def _require(fits: bool, message: str, field: str) -> None:
    if not fits:
        raise InputError(message, field=field)
