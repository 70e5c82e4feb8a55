"""What `veriglot annotate` does once its words are understood."""

from __future__ import annotations

import json as json_module
import os
import re
import sys
import unicodedata
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.annotate.presets import preset as preset_text
from veriglot.annotate.project import load
from veriglot.errors import EXIT_ROWS_FAILED, InputError, MissingExtraError, UsageError
from veriglot.records.languages import language as known_language

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.annotate.backup import Backup
    from veriglot.annotate.items import Imported
    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Store

__all__ = [
    "import_data",
    "make_backup",
    "make_invitations",
    "opened",
    "project_at",
    "restore_backup",
    "show_status",
    "write_project",
]

_SHOWN = 20  # rows that became no item; JSON has all


def project_at(path: Path) -> Project:
    """The project of a file, or of `project.toml` in a folder.

    Raises:
        InputError: see `annotate.project.load`.
    """
    return load(path / "project.toml" if path.is_dir() else path)


@contextmanager
def opened(project: Project, database: str | None, *, create: bool = False) -> Iterator[Store]:
    """The store of a project.

    Raises:
        MissingExtraError: the extra `annotate` is not installed.
        StoreError: it cannot be opened.
    """
    try:
        from veriglot.annotate.store import open_store
    except ModuleNotFoundError as error:
        raise MissingExtraError("The studio", "annotate") from error
    store = open_store(database or project.database, create=create)
    try:
        yield store
    finally:
        store.close()


def write_project(folder: Path, preset: str, data: Sequence[str], name: str | None, languages: Sequence[str]) -> None:
    """Write a project file.

    Args:
        folder: where it is written.
        preset: what it begins with.
        data: files, as seen from where the command is typed; with none, `data.jsonl` beside the project file.
        name: of the project; None for the folder's.
        languages: of responses; with none, all.

    Raises:
        UsageError: there is one already, or no slug can be made of the name.
        UnknownNameError: no such preset or language.
    """
    path = folder / "project.toml"
    if path.exists():
        raise UsageError(f"{path} exists already.", remedy="Name another folder.")
    title = name or folder.resolve().name
    tags = [known_language(one).tag for one in languages]
    seen = [_seen_from(folder, one) for one in data] or ["data.jsonl"]
    text = preset_text(preset, title=title, slug=_slug(title), data=seen, languages=tags)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    print(path)
    print(f"Look through it, then type: veriglot annotate import {folder}", file=sys.stderr)


def _seen_from(folder: Path, path: str) -> str:
    """A path as the project file says it: given from where the command is typed, it is written from the folder."""
    if Path(path).is_absolute() or ((folder / path).exists() and not Path(path).exists()):
        return path
    return Path(os.path.relpath(path, folder)).as_posix()


def _slug(title: str) -> str:
    """A slug of a name; of one that has no Latin letters, `project`."""
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64].strip("-") or "project"


def import_data(path: Path, database: str | None, *, json: bool) -> int:
    """Import, tell, and give the exit code."""
    from veriglot.annotate.items import import_all

    project = project_at(path)
    if not project.entries.data.path:
        raise InputError("no data is named", path=str(project.path), field="data.path")
    with opened(project, database, create=True) as store:
        done = import_all(store, project)
    _tell(done, json=json)
    return EXIT_ROWS_FAILED if done.unusable else 0


def _tell(done: Imported, *, json: bool) -> None:
    for one in done.unusable[:_SHOWN]:
        place = (
            one.error.at(path=one.path or None, line=one.line or None)
            if isinstance(one.error, InputError)
            else one.error
        )
        print(f"left out{f' ({one.key})' if one.key else ''}: {place}", file=sys.stderr)
    if len(done.unusable) > _SHOWN:
        print(f"... and {len(done.unusable) - _SHOWN} more.", file=sys.stderr)
    said = {
        "added": dict(sorted(done.added.items())),
        "known": done.known,
        "other_language": dict(sorted(done.other_language.items())),
        "beyond_limit": done.beyond,
        "left_out": len(done.unusable),
        "widened_marks": done.widened,
        "batches": done.batches,
    }
    if json:
        rows = [{"path": u.path, "line": u.line, "id": u.key, "error": str(u.error)} for u in done.unusable]
        _print({**said, "left_out_rows": rows})
        return
    by_language = ", ".join(f"{language} {count:,}" for language, count in sorted(done.added.items()))
    print(
        f"{done.added.total():,} items added{f' ({by_language})' if by_language else ''}, {done.known:,} known before."
    )
    rest = [
        (done.other_language.total(), "rows in languages that the project does not name"),
        (done.beyond, "rows beyond the limit"),
        (len(done.unusable), "rows that became no item"),
        (done.widened, "marks widened to whole characters"),
        (done.batches, "batches made"),
    ]
    for count, what in rest:
        if count:
            print(f"{count:,} {what}.")


def make_invitations(
    path: Path,
    database: str | None,
    role: str,
    count: int,
    *,
    languages: Sequence[str],
    note: str | None,
    url: str,
    json: bool,
) -> None:
    """Invite, and print the links."""
    project = project_at(path)
    with opened(project, database, create=True) as store:
        from veriglot.annotate.items import enter
        from veriglot.annotate.people import invite, secret_of
        from veriglot.annotate.store import Role

        enter(store, project)
        secret = secret_of(project)
        with store.writing() as tx:
            made = [invite(tx, project, secret, Role(role), languages=languages, note=note) for _ in range(count)]
    links = [f"{url.rstrip('/')}/join/{one.token}" for one in made]
    if json:
        _print([{"link": link, "expires": one.expires_at, "role": role} for link, one in zip(links, made, strict=True)])
        return
    print("\n".join(links))
    print(f"Each is for one {role}, and ends on {made[0].expires_at:%Y-%m-%d} unless taken up.", file=sys.stderr)


def show_status(path: Path, database: str | None, *, json: bool) -> None:
    """Count."""
    project = project_at(path)
    with opened(project, database) as store, store.reading() as tx:
        row = tx.project(project.slug)
        items = tx.tally(row.id, "items", "role", "language")
        work = tx.tally(row.id, "assignments", "purpose", "state")
        people = tx.people(row.id)
        batches = tx.tally(row.id, "batches", "state")
    said = {
        "project": row.slug,
        "items": [{"role": role, "language": tag, "count": n} for (role, tag), n in sorted(items.items())],
        "people": [
            {"id": p.public_id, "role": p.role.value, "name": p.name, "joined": p.joined_at, "revoked": p.revoked_at}
            for p in people
        ],
        "assignments": [
            {"purpose": purpose, "state": state, "count": n} for (purpose, state), n in sorted(work.items())
        ],
        "batches": {state: n for (state,), n in sorted(batches.items())},
    }
    if json:
        _print(said)
        return
    print(f"{row.name} ({row.task}, {row.taxonomy})")
    for (role, tag), count in sorted(items.items()):
        print(f"  items       {role:10} {tag or '-':10} {count:>8,}")
    for role in sorted({p.role for p in people}):
        mine = [p for p in people if p.role is role]
        print(f"  people      {role:10} invited {len(mine):,}, joined {sum(p.joined_at is not None for p in mine):,}")
    for (purpose, state), count in sorted(work.items()):
        print(f"  assignments {purpose:10} {state:10} {count:>8,}")
    for (state,), count in sorted(batches.items()):
        print(f"  batches     {state:10} {'':10} {count:>8,}")


def make_backup(path: Path, database: str | None, file: Path, *, json: bool) -> None:
    """Back up."""
    project = project_at(path)
    with opened(project, database) as store:
        from veriglot.annotate.backup import backup

        _account(backup(store, file), json=json)


def restore_backup(path: Path, database: str | None, file: Path, *, json: bool) -> None:
    """Restore."""
    project = project_at(path)
    with opened(project, database, create=True) as store:
        from veriglot.annotate.backup import restore

        _account(restore(file, store), json=json)


def _account(done: Backup, *, json: bool) -> None:
    if json:
        _print({"path": str(done.path), "rows": done.rows, "sha256": done.digest})
        return
    print(", ".join(f"{count:,} {name}" for name, count in done.rows.items() if count) or "nothing yet")
    print(f"sha256 {done.digest}")


def _print(data: Any) -> None:
    print(json_module.dumps(data, ensure_ascii=False, indent=2, default=str))
