"""Exports at any time: annotations and history as a folder or one ZIP file, with an account.

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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.writer import open_writer
from veriglot.records import Kind
from veriglot.storage.files import open_whole
from veriglot.studio.comparison import count_suggestions, final_single_annotation, gold_origins, verdict
from veriglot.studio.layers import EMPTY, to_annotation, to_data
from veriglot.studio.review import final_layer
from veriglot.studio.tables import DONE, WORK_ROLES, Purpose, now, write_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.records import Annotation, Sample
    from veriglot.studio.layers import Layer
    from veriglot.studio.project import Project
    from veriglot.studio.store import ReadTransaction, Store
    from veriglot.studio.tables import Assignment, Event, Item

__all__ = ["Exported", "Format", "export", "export_zip"]


# An item as an export sees it: its texts, everybody's layer of it, gold and silver, and what else was said.


_GOLD, _SILVER = "gold", "silver"


@dataclass(frozen=True)
class ExportNames:
    """What people are called in an export.

    Attributes:
        by_id: of each person.
        about: name to role, whether they joined, and their public id.
        chosen: whether these are the names that they chose.
    """

    by_id: dict[int, str]
    about: dict[str, dict[str, Any]]
    chosen: bool

    @classmethod
    def of(cls, tx: ReadTransaction, project_id: int, *, chosen: bool) -> ExportNames:
        """The people of a project; who chose `gold` or `silver` keeps their public id, for layers are called so."""
        by_id, about = {}, {}
        for person in tx.people(project_id):
            usable = chosen and person.name is not None and person.name.casefold() not in {_GOLD, _SILVER}
            name = str(person.name) if usable else person.public_id
            by_id[person.id] = name
            about[name] = {
                "id": person.public_id,
                "role": person.role.value,
                "joined": person.joined_at is not None,
                "languages": None if person.works_in is None else list(person.works_in),
            }
        return cls(by_id, about, chosen)


@dataclass
class ExportRow:
    """An item.

    Attributes:
        sample: as it was imported, with no annotations.
        is_work: whether it is work, not the exam's nor a hidden check.
        gold: the layer that counts: settled, imported, or that of the only annotator where it is through.
        silver: the silver layer.
        people: the annotators' layers that are handed in.
        others: annotations that were imported and are none of these.
        skipped: who left the item out, and why.
        layers: all layers of people, as they are kept.
        handed_in: name of an annotator to their assignment, where it is handed in.
        studio: everything else, as plain data.
        ids: name of an annotator to their public id.
        source_flags: words of the form for what is wrong with a source.
    """

    sample: Sample
    is_work: bool
    gold: Annotation | None
    silver: Annotation | None
    people: list[Annotation]
    others: list[Annotation]
    skipped: dict[str, str]
    layers: list[Layer]
    handed_in: dict[str, Assignment]
    studio: dict[str, Any]
    ids: dict[str, str]
    source_flags: frozenset[str]

    @property
    def everybody(self) -> list[Annotation]:
        """All annotations: gold, silver, the annotators', others."""
        return [
            *(annotation for annotation in (self.gold, self.silver) if annotation is not None),
            *self.people,
            *self.others,
        ]


def count_unexported(row: ExportRow) -> Counter[str]:
    """What the layers of an item say that only the native format keeps, counted."""
    counts: Counter[str] = Counter()
    for layer in row.layers:
        counts["notes at spans"] += sum(bool(span.note) for span in layer.spans)
        counts["ratings of spans"] += sum(span.rating is not None for span in layer.spans)
        counts["ratings of items"] += len(layer.ratings)
        counts["comments"] += bool(layer.comment)
        counts["rejected suggestions"] += len(layer.rejected)
        counts["flags"] += len(layer.flags) + sum(len(unit.flags) for unit in layer.units)
        counts["places in the evidence"] += sum(len(unit.evidence) for unit in layer.units)
        counts["counts of facts"] += sum(bool(unit.counts) for unit in layer.units)
        counts["reasons to skip"] += layer.skip is not None
    return +counts


def export_rows(tx: ReadTransaction, project: Project, project_id: int, called: ExportNames) -> Iterator[ExportRow]:
    """All items of a project, in order."""
    origins = gold_origins(tx, project_id)
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id):
        by_item.setdefault(row.item_id, []).append(row)
    for item in tx.items(project_id):
        yield _row(tx, project, item, by_item.get(item.id, []), called, origins.get(item.id))


def _row(
    tx: ReadTransaction, project: Project, item: Item, rows: list[Assignment], called: ExportNames, origin: str | None
) -> ExportRow:
    original = tx.original(item.id)
    bare = msgspec.structs.replace(original, annotations=())
    form = project.form
    handed_in = [row for row in rows if row.purpose is Purpose.ANNOTATE and row.state in DONE]
    people, skipped = [], {}
    for row in handed_in:
        name = called.by_id[row.person_id]
        annotation = to_annotation(row.layer, form, bare, name)
        if annotation is not None:
            people.append(annotation)
        elif row.layer.skip is not None:
            skipped[name] = row.layer.skip
    imported = _Imported(
        project, original, {annotation_.annotator for annotation_ in people}, settled=origin is not None
    )
    gold, source = _gold(tx, project, item, bare, handed_in, imported, origin)
    silver = imported.silver
    if silver is None and (layer := tx.silver(item.id)) is not None:
        silver = _by_model(to_annotation(layer, form, bare, _SILVER))
    studio = {
        "item": item.id,
        "role": item.role.value,
        "gold": source,
        "layers": [_assignment_fields(row, called) for row in rows],
    }
    return ExportRow(
        sample=bare,
        is_work=item.role in WORK_ROLES,
        gold=gold,
        silver=silver,
        people=people,
        others=imported.others,
        skipped=skipped,
        layers=[row.layer for row in handed_in],
        handed_in={called.by_id[row.person_id]: row for row in handed_in},
        studio=studio,
        ids={annotation_.annotator: called.about[annotation_.annotator]["id"] for annotation_ in people},
        source_flags=frozenset(form.source_flags),
    )


class _Imported:
    """The annotations that came with an item, with names that clash with no other."""

    def __init__(self, project: Project, original: Sample, taken: set[str], *, settled: bool) -> None:
        data = project.entries.data
        self.gold: Annotation | None = None
        self.silver: Annotation | None = None
        self.others: list[Annotation] = []
        for annotation in original.annotations:
            if annotation.annotator == data.silver and self.silver is None:
                self.silver = msgspec.structs.replace(annotation, annotator=_SILVER)
            elif annotation.annotator == data.gold and self.gold is None and not settled:
                self.gold = msgspec.structs.replace(annotation, annotator=_GOLD)
            else:
                clash = annotation.annotator in {_GOLD, _SILVER, *taken}
                name = f"imported-{annotation.annotator}" if clash else annotation.annotator
                self.others.append(msgspec.structs.replace(annotation, annotator=name))


def _gold(
    tx: ReadTransaction,
    project: Project,
    item: Item,
    bare: Sample,
    handed_in: list[Assignment],
    imported: _Imported,
    origin: str | None,
) -> tuple[Annotation | None, str | None]:
    """The gold annotation, and where it is from: an event of `gold_origins`, `imported`, `reviewed`, `single`."""
    if imported.gold is not None:
        return imported.gold, "imported"
    layer = tx.gold(item.id)
    if layer is not None:
        return to_annotation(layer, project.form, bare, _GOLD), origin or "imported"
    only = final_single_annotation(project, item, handed_in)
    if only is None:
        return None, None
    source = "reviewed" if project.entries.work.reviews else "single"
    return to_annotation(final_layer(tx, only), project.form, bare, _GOLD), source


def _by_model(annotation: Annotation | None) -> Annotation | None:
    return None if annotation is None else msgspec.structs.replace(annotation, kind=Kind.MODEL)


def _with_verdicts(row: Assignment) -> list[dict[str, Any]] | None:
    """What was suggested, each with what the layer makes of it now."""
    if row.suggestions is None:
        return None
    return [{**suggestion, "verdict": verdict(suggestion, row.layer)} for suggestion in row.suggestions]


def _assignment_fields(row: Assignment, called: ExportNames) -> dict[str, Any]:
    """An assignment as plain data, without what says nothing."""
    fields = {
        "assignment": row.id,
        "by": called.by_id[row.person_id],
        "purpose": row.purpose.value,
        "state": row.state.value,
        "round": row.round or None,
        "subject": row.subject_id,
        "version": row.version,
        "layer": None if row.layer == EMPTY and row.version == 0 else to_data(row.layer),
        "suggestions": _with_verdicts(row),
        "message": row.message,
        "seconds": row.seconds,
        "submitted_at": None if row.submitted_at is None else write_moment(row.submitted_at),
    }
    return {key: value for key, value in fields.items() if value is not None}


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
        with whole.open("rb") as source, open_whole(path) as target:
            shutil.copyfileobj(source, target)
    return done


def _export(tx: ReadTransaction, project: Project, folder: Path, format_: str, names: bool) -> Exported:
    row = tx.project(project.slug)
    called = ExportNames.of(tx, row.id, chosen=names)
    files: dict[str, _File] = {}
    beyond: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    given: dict[str, list[Assignment]] = {}
    items = left_out = 0
    try:
        for exported_row in export_rows(tx, project, row.id, called):
            if format_ != "native" and not exported_row.is_work:
                left_out += 1
                continue
            items += 1
            layers.update(annotation.annotator for annotation in exported_row.people)
            for name, assignment in exported_row.handed_in.items():
                given.setdefault(name, []).append(assignment)
            if format_ != "native":
                beyond.update(count_unexported(exported_row))
            for name, sample in _files_of(exported_row, format_):
                if name not in files:
                    files[name] = _File(folder, name, _WRITERS[format_])
                files[name].write(sample)
    finally:
        written = [file.close() for _, file in sorted(files.items())]
    written.append(_history(tx, row.id, folder, called))
    notes = _notes(format_, left_out, layers)
    people = {
        name: {
            **about,
            "layers": layers[name],
            "suggestions": msgspec.to_builtins(count_suggestions(given.get(name, ()))),
        }
        for name, about in called.about.items()
        if about["joined"]
    }
    done = Exported(project.slug, format_, write_moment(now()), items, people, written, dict(beyond), notes)
    account = json.dumps(msgspec.to_builtins(done), ensure_ascii=False, indent=2)
    (folder / "export.json").write_text(account + "\n", "utf-8")
    return done


def _notes(format_: str, left_out: int, layers: Counter[str]) -> list[str]:
    notes = []
    if left_out:
        notes.append(f"{left_out} items of the exam and hidden checks are only in the native export.")
    if format_ in {"hat", "inline"}:
        notes.append("A row holds one layer: `data` has gold, `annotators` has a row for each annotator.")
    if format_ == "mfava":
        notes.append("A row holds gold and silver: each annotator's file has theirs in the place of gold.")
    if not layers:
        notes.append("Nobody has handed anything in yet.")
    return notes


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


def _files_of(row: ExportRow, format_: str) -> Iterator[tuple[str, Sample]]:
    """The files that an item goes to, and as what."""
    if format_ == "native":
        yield "data.jsonl", _sample_with(row.sample, row.everybody, {**row.sample.meta, "studio": row.studio})
    elif format_ == "label_studio":
        yield "data.json", _sample_with(row.sample, row.everybody, row.sample.meta)
    elif format_ == "mfava":
        yield from _in_mfava(row)
    else:
        yield from _by_annotator(row, format_)


def _in_mfava(row: ExportRow) -> Iterator[tuple[str, Sample]]:
    language = row.sample.language or "unknown"
    silver = [] if row.silver is None else [row.silver]
    layers = [*([] if row.gold is None else [row.gold]), *silver]
    if layers:
        yield f"silver_gold_{language}.json", _sample_with(row.sample, layers, {})
    for annotation in row.people:
        as_gold = msgspec.structs.replace(annotation, annotator="gold")
        file = f"annotators/{row.ids[annotation.annotator]}_{language}.json"  # a name could lead anywhere
        yield file, _sample_with(row.sample, [as_gold, *silver], {})


def _by_annotator(row: ExportRow, format_: str) -> Iterator[tuple[str, Sample]]:
    suffix = "json" if format_ == "hat" else "jsonl"
    meta = row.sample.meta if format_ == "hat" else {}
    if row.gold is not None:
        yield f"data.{suffix}", _sample_with(row.sample, [row.gold], {**meta, **_source_errors(row, format_, row.gold)})
    for annotation in row.people:
        source = _source_errors(row, format_, annotation)
        yield f"annotators.{suffix}", _sample_with(row.sample, [annotation], {**meta, **source})
    if format_ == "hat":
        for name, reason in row.skipped.items():
            yield "annotators.json", _sample_with(row.sample, [], {**meta, "skippedBy": name, "skipReason": reason})


def _source_errors(row: ExportRow, format_: str, annotation: Annotation) -> dict[str, Any]:
    """HAT's labels of the source (its section 3.3 names none of the keys)."""
    flags = [flag for flag in annotation.flags if flag in row.source_flags]
    return {"sourceErrors": flags} if format_ == "hat" and flags else {}


def _sample_with(sample: Sample, annotations: Iterable[Annotation], meta: dict[str, Any]) -> Sample:
    return msgspec.structs.replace(sample, annotations=tuple(annotations), meta=meta)


def _history(tx: ReadTransaction, project_id: int, folder: Path, called: ExportNames) -> ExportedFile:
    """Every event, one a line."""
    keys = {item.id: item.key for item in tx.items(project_id)}
    count = 0
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        for event in tx.events(project_id):
            file.write(json.dumps(_event_fields(event, keys, called), ensure_ascii=True) + "\n")
            count += 1
    return ExportedFile("history.jsonl", count, {})


def _event_fields(event: Event, keys: dict[int, str], called: ExportNames) -> dict[str, Any]:
    payload = event.payload
    if payload is not None and not called.chosen:
        payload = {key: value for key, value in payload.items() if key != "name"}
    fields = {
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
    return {key: value for key, value in fields.items() if value is not None}
