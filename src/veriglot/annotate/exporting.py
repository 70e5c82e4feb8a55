"""Exports, at any time: what was said so far, in a folder or one ZIP file, with its history and an account of itself.

Whatever the format, the folder holds `history.jsonl` (every event, in order) and `export.json` (what the other files
are, who the annotators are, and what the format could not hold, counted). The formats:

- `native`: `data.jsonl`, one item a line, with a layer of each annotator, gold and silver among its annotations, and
  everything else (notes, comments, reasons to skip, work in progress, reviews, exam answers) under `meta.studio`.
- `mfava`: a file a language with gold and silver, and one for each annotator in the place of gold.
- `hat`, `inline`: `data` with the gold layer of each item, `annotators` with a row for each annotator's layer.
- `label_studio`: one task an item, with the layers of all.

Annotators are called by their public ids, unless their chosen names are asked for.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from veriglot.annotate.exported import Names, Row, rows_of, said_beyond
from veriglot.annotate.store.columns import now, write_moment
from veriglot.annotate.suggesting import tally
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats import open_writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Assignment, Event, Reading, Store
    from veriglot.records import Annotation, Sample

__all__ = ["FORMATS", "Exported", "ExportedFile", "Format", "export", "export_zip"]

Format = Literal["native", "mfava", "hat", "inline", "label_studio"]
FORMATS: tuple[str, ...] = get_args(Format)
_WRITERS = {"native": "jsonl", "mfava": "mfava", "hat": "hat", "inline": "inline", "label_studio": "label-studio"}


class ExportedFile(msgspec.Struct, frozen=True):
    """One file of an export.

    Attributes:
        path: relative to the folder.
        rows: that it holds.
        lost: what of these the format could not hold: what, and how many rows; `row: ...` are rows left out.
    """

    path: str
    rows: int
    lost: dict[str, int]


class Exported(msgspec.Struct, frozen=True):
    """What an export holds.

    Attributes:
        project: its slug.
        format: that was asked for.
        at: when, in UTC.
        items: of the project that are in it.
        annotators: name in the export to role, chosen name (where asked for), how many layers, and what became of the
            suggestions that they were shown, if any.
        files: all but `export.json`.
        beyond: what layers say that the format has no place for, counted; empty for `native`.
        notes: what to know.
    """

    project: str
    format: str
    at: str
    items: int
    annotators: dict[str, dict[str, Any]]
    files: list[ExportedFile]
    beyond: dict[str, int]
    notes: list[str]


def export(
    store: Store,
    project: Project,
    folder: Path,
    format: str = "native",  # noqa: A002  # the word that users type
    *,
    names: bool = False,
) -> Exported:
    """Write an export into a folder; people may go on working meanwhile.

    Args:
        store: where the work is kept.
        project: the project.
        folder: is made; has to be empty.
        format: of `FORMATS`; hyphens do for underscores.
        names: call annotators by the names that they chose.

    Raises:
        UnknownNameError: no such format.
        UsageError: the folder holds something.
        NotFound: the store does not know the project.
    """
    known = format.replace("-", "_")
    if known not in FORMATS:
        raise UnknownNameError("format of an export", format, FORMATS)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder.", remedy="Name another one.")
    with store.reading() as tx:
        folder.mkdir(parents=True, exist_ok=True)
        return _export(tx, project, folder, known, names)


def export_zip(store: Store, project: Project, path: Path, format: str = "native", *, names: bool = False) -> Exported:  # noqa: A002
    """The same as one ZIP file, which is there whole or not at all.

    Raises:
        UnknownNameError: no such format.
    """
    with tempfile.TemporaryDirectory(prefix="veriglot-export-") as scratch:
        folder = Path(scratch) / "export"
        done = export(store, project, folder, format, names=names)
        whole = Path(scratch) / "export.zip"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    archive.write(file, f"{project.slug}-{done.format}/{file.relative_to(folder).as_posix()}")
        partial = path.with_name(f".{path.name}.partial")
        shutil.copyfile(whole, partial)
        partial.replace(path)
    return done


def _export(tx: Reading, project: Project, folder: Path, format_: str, names: bool) -> Exported:
    row = tx.project(project.slug)
    called = Names.of(tx, row.id, chosen=names)
    files: dict[str, _File] = {}
    beyond: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    given: dict[str, list[Assignment]] = {}
    items = left_out = 0
    try:
        for one in rows_of(tx, project, row.id, called):
            if format_ != "native" and not one.is_work:
                left_out += 1
                continue
            items += 1
            layers.update(annotation.annotator for annotation in one.people)
            for name, assignment in one.handed_in.items():
                given.setdefault(name, []).append(assignment)
            if format_ != "native":
                beyond.update(said_beyond(one))
            for name, sample in _placed(one, format_):
                if name not in files:
                    files[name] = _File(folder, name, _WRITERS[format_])
                files[name].write(sample)
    finally:
        written = [file.close() for _, file in sorted(files.items())]
    written.append(_history(tx, row.id, folder, called))
    notes = _notes(format_, left_out, layers)
    people = {
        name: {**about, "layers": layers[name], "suggestions": msgspec.to_builtins(tally(given.get(name, ())))}
        for name, about in called.about.items()
        if about["joined"]
    }
    done = Exported(project.slug, format_, write_moment(now()), items, people, written, dict(beyond), notes)
    account = json.dumps(msgspec.to_builtins(done), ensure_ascii=False, indent=2)
    (folder / "export.json").write_text(account + "\n", "utf-8")
    return done


def _notes(format_: str, left_out: int, layers: Counter[str]) -> list[str]:
    said = []
    if left_out:
        said.append(f"{left_out} items of the exam and hidden checks are only in the native export.")
    if format_ in {"hat", "inline"}:
        said.append("A row holds one layer: `data` has gold, `annotators` has a row for each annotator.")
    if format_ == "mfava":
        said.append("A row holds gold and silver: each annotator's file has theirs in the place of gold.")
    if not layers:
        said.append("Nobody has handed anything in yet.")
    return said


class _File:
    """A file of an export, opened when its first row comes."""

    def __init__(self, folder: Path, name: str, format_: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._name = name
        self._writer = open_writer(path, format=format_)

    def write(self, sample: Sample) -> None:
        self._writer.write(sample)

    def close(self) -> ExportedFile:
        self._writer.close()
        losses = self._writer.losses
        return ExportedFile(self._name, losses.written, {what: loss.count for what, loss in losses.lost.items()})


def _placed(one: Row, format_: str) -> Iterator[tuple[str, Sample]]:
    """The files that an item goes to, and as what."""
    if format_ == "native":
        yield "data.jsonl", _with(one.sample, one.everybody, {**one.sample.meta, "studio": one.studio})
    elif format_ == "label_studio":
        yield "data.json", _with(one.sample, one.everybody, one.sample.meta)
    elif format_ == "mfava":
        yield from _in_mfava(one)
    else:
        yield from _by_annotator(one, format_)


def _in_mfava(one: Row) -> Iterator[tuple[str, Sample]]:
    language = one.sample.language or "unknown"
    silver = [] if one.silver is None else [one.silver]
    layers = [*([] if one.gold is None else [one.gold]), *silver]
    if layers:
        yield f"silver_gold_{language}.json", _with(one.sample, layers, {})
    for annotation in one.people:
        as_gold = msgspec.structs.replace(annotation, annotator="gold")
        file = f"annotators/{one.ids[annotation.annotator]}_{language}.json"  # a name could lead anywhere
        yield file, _with(one.sample, [as_gold, *silver], {})


def _by_annotator(one: Row, format_: str) -> Iterator[tuple[str, Sample]]:
    suffix = "json" if format_ == "hat" else "jsonl"
    meta = one.sample.meta if format_ == "hat" else {}
    if one.gold is not None:
        yield f"data.{suffix}", _with(one.sample, [one.gold], {**meta, **_said_of_source(one, format_, one.gold)})
    for annotation in one.people:
        said = _said_of_source(one, format_, annotation)
        yield f"annotators.{suffix}", _with(one.sample, [annotation], {**meta, **said})
    if format_ == "hat":
        for name, reason in one.skipped.items():
            yield "annotators.json", _with(one.sample, [], {**meta, "skippedBy": name, "skipReason": reason})


def _said_of_source(one: Row, format_: str, annotation: Annotation) -> dict[str, Any]:
    """Hat's labels of the source (its section 3.3 names none of the keys)."""
    flags = [flag for flag in annotation.flags if flag in one.source_flags]
    return {"sourceErrors": flags} if format_ == "hat" and flags else {}


def _with(sample: Sample, annotations: Iterable[Annotation], meta: dict[str, Any]) -> Sample:
    return msgspec.structs.replace(sample, annotations=tuple(annotations), meta=meta)


def _history(tx: Reading, project_id: int, folder: Path, called: Names) -> ExportedFile:
    """Every event, one a line."""
    keys = {item.id: item.key for item in tx.items(project_id)}
    count = 0
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        for event in tx.events(project_id):
            file.write(json.dumps(_line(event, keys, called), ensure_ascii=True) + "\n")
            count += 1
    return ExportedFile("history.jsonl", count, {})


def _line(event: Event, keys: dict[int, str], called: Names) -> dict[str, Any]:
    payload = event.payload
    if payload is not None and not called.chosen:
        payload = {key: value for key, value in payload.items() if key != "name"}
    found = {
        "id": event.id,
        "event_id": event.event_id,
        "at": write_moment(event.at),
        "kind": event.kind,
        "person": None if event.person_id is None else called.by_id[event.person_id],
        "assignment": event.assignment_id,
        "item": None if event.item_id is None else keys[event.item_id],
        "base_version": event.base_version,
        "version": event.version,
        "state": event.state,
        "layer": None if event.layer is None else msgspec.to_builtins(event.layer),
        "payload": payload,
        "seconds": event.seconds,
        "client_at": None if event.client_at is None else write_moment(event.client_at),
    }
    return {key: value for key, value in found.items() if value is not None}
