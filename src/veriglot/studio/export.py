"""Exports at any time: annotations and history as a folder or one ZIP file, with a summary.

In each format the folder has `history.jsonl` (all events, in order) and `export.json` (a list of the other files, the
annotators, and counts of what the format cannot represent). The formats:

- `native`: `data.jsonl`, one item per line, with a layer of each annotator, gold and silver as annotations, and
everything
  else (notes, comments, reasons to skip, work in progress, reviews, exam answers) under `meta.studio`. `gold.jsonl` has
  only the gold of the work, for training; `labels.jsonl` has the gold of randomly chosen items, to evaluate a detector
  and to estimate rates.
- `mfava`: one file per language with gold and silver, and one per annotator, in the place of gold.
- `hat`, `inline`: `data` with the gold layer of each item, `annotators` with one row per annotator's layer.
- `label_studio`: one task per item, with all layers, and the labeling configuration of the Label Studio project.

Annotators have their public ids as names, unless their chosen names are requested.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from fastapi import Response  # noqa: TC002  # the call reads its annotations
from msgspec.structs import replace
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.label_studio import labeling_config
from veriglot.formats.writer import Writer
from veriglot.records import Annotation, Kind, Sample
from veriglot.records.settings import Record
from veriglot.storage.files import open_whole
from veriglot.studio.adjudication import label_of, lacks_label
from veriglot.studio.comparison import GoldOrigin, count_suggestions, gold_origins, verdict
from veriglot.studio.items import not_by_chance
from veriglot.studio.layers import Layer
from veriglot.studio.review import final_layer
from veriglot.studio.tables import DONE, WORK_ROLES, Assignment, Event, Item, ItemRole, Purpose, now, write_moment
from veriglot.studio.web import Lead, Router

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.studio.project import Project
    from veriglot.studio.store import ReadTransaction, Store

__all__ = ["export", "export_zip", "router"]


# An item in an export: its texts, all layers, gold and silver, and the rest.


_GOLD, _SILVER = "gold", "silver"


@dataclass(frozen=True)
class _Names:
    """Names of people in an export."""

    by_id: dict[int, str]
    about: dict[str, dict[str, Any]]  # by name: role, whether they joined, and their public id
    chosen: bool  # whether these are the names that people chose


def _names(tx: ReadTransaction, project_id: int, *, chosen: bool) -> _Names:
    """The people of a project; a person named `gold` or `silver` has their public id, since layers have these names."""
    names = _Names({}, {}, chosen)
    for person in tx.people(project_id):
        usable = chosen and person.name is not None and person.name.casefold() not in {_GOLD, _SILVER}
        name = names.by_id[person.id] = str(person.name) if usable else person.public_id
        names.about[name] = {
            "id": person.public_id,
            "role": person.role.value,
            "joined": person.joined_at is not None,
            "languages": None if person.works_in is None else list(person.works_in),
        }
    return names


@dataclass(frozen=True)
class _Row:
    """An item."""

    sample: Sample  # as imported, without annotations
    role: ItemRole
    gold: Annotation | None  # settled, imported, of the only annotator, or what all agree on
    by_chance: bool  # whether it was drawn at random, so that it represents other items
    lacks: bool  # whether it was submitted and has no gold
    silver: Annotation | None
    people: list[Annotation]  # submitted by annotators
    others: list[Annotation]  # other imported annotations
    handed_in: dict[str, Assignment]  # by name of the annotator; with skips
    studio: dict[str, Any]  # everything else, as plain data

    @property
    def everybody(self) -> list[Annotation]:
        """All annotations: gold, silver, the annotators', others."""
        named = (annotation for annotation in (self.gold, self.silver) if annotation is not None)
        return [*named, *self.people, *self.others]


def _count_unexported(layers: Iterable[Layer]) -> Counter[str]:
    """Counts of what the layers of an item contain and only the native format stores."""
    counts = Counter[str]()
    for layer in layers:
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


def _rows(tx: ReadTransaction, project: Project, project_id: int, names: _Names) -> Iterator[_Row]:
    """All items of a project, in the order of the import."""
    origins, chosen = gold_origins(tx, project_id), not_by_chance(tx, project)
    by_item: dict[int, list[Assignment]] = {}
    for row in tx.assignments(project_id):
        by_item.setdefault(row.item_id, []).append(row)
    for item in sorted(tx.items(project_id), key=attrgetter("id")):
        origin = origins.get(item.id)
        yield _row(tx, project, item, by_item.get(item.id, []), names, origin, by_chance=item.id not in chosen)


def _row(
    tx: ReadTransaction,
    project: Project,
    item: Item,
    rows: list[Assignment],
    names: _Names,
    origin: GoldOrigin | None,
    *,
    by_chance: bool,
) -> _Row:
    original, form = tx.original(item.id), project.form
    bare = replace(original, annotations=())
    handed_in = {
        names.by_id[row.person_id]: row for row in rows if row.purpose is Purpose.ANNOTATE and row.state in DONE
    }
    annotations = (row.layer.to_annotation(form, bare, name) for name, row in handed_in.items())
    people = [annotation for annotation in annotations if annotation is not None]
    gold, silver, others = _imported(project, original, people, settled=origin is not None)
    source: str | None = "imported"
    if gold is None:
        layer, source = _gold(tx, project, item, list(handed_in.values()), None if origin is None else origin.kind)
        gold = None if layer is None else layer.to_annotation(form, bare, _GOLD)
    if silver is None and (layer := tx.silver(item.id)) is not None:
        annotation = layer.to_annotation(form, bare, _SILVER)
        silver = None if annotation is None else replace(annotation, kind=Kind.MODEL)
    studio: dict[str, Any] = {
        "item": item.id,
        "role": item.role.value,
        "gold": source,
        "layers": [_assignment_fields(row, names) for row in rows],
    }
    if origin is not None:
        by = next((name for name, about in names.about.items() if about["id"] == origin.by), None)
        settled = {"by": by, "at": write_moment(origin.at), "why": origin.why, "spans": origin.sources}
        studio["settled"] = {key: msgspec.to_builtins(value) for key, value in settled.items() if value is not None}
    lacks = gold is None and lacks_label(project, item, list(handed_in.values()))
    return _Row(bare, item.role, gold, by_chance, lacks, silver, people, others, handed_in, studio)


def _imported(
    project: Project, original: Sample, people: list[Annotation], *, settled: bool
) -> tuple[Annotation | None, Annotation | None, list[Annotation]]:
    """The imported gold and silver annotations of an item, and others, renamed if their names clash."""
    data, taken = project.entries.data, {_GOLD, _SILVER, *(annotation.annotator for annotation in people)}
    gold = silver = None
    others = []
    for annotation in original.annotations:
        if annotation.annotator == data.silver and silver is None:
            silver = replace(annotation, annotator=_SILVER)
        elif annotation.annotator == data.gold and gold is None and not settled:
            gold = replace(annotation, annotator=_GOLD)
        else:
            name = f"imported-{annotation.annotator}" if annotation.annotator in taken else annotation.annotator
            others.append(replace(annotation, annotator=name))
    return gold, silver, others


def _gold(
    tx: ReadTransaction, project: Project, item: Item, handed_in: list[Assignment], origin: str | None
) -> tuple[Layer | None, str | None]:
    """The gold layer and its source: an event of `gold_origins`, `imported`, `reviewed`, `single`, `agreed`."""
    label = label_of(tx, project, item, handed_in, partial(final_layer, tx))
    if label is None:
        return None, None
    layer, why = label
    single = "reviewed" if project.entries.work.reviews else "single"
    return layer, {"gold": origin or "imported", "single": single}.get(why, why)


def _assignment_fields(row: Assignment, names: _Names) -> dict[str, Any]:
    """An assignment as plain data, without empty fields."""
    suggestions = row.suggestions
    if suggestions is not None:  # each with what the layer did with it
        suggestions = [{**suggestion, "verdict": verdict(suggestion, row.layer)} for suggestion in suggestions]
    fields = {
        "assignment": row.id,
        "by": names.by_id[row.person_id],
        "purpose": row.purpose.value,
        "state": row.state.value,
        "round": row.round or None,
        "subject": row.subject_id,
        "version": row.version,
        "layer": None if row.layer == Layer() and row.version == 0 else row.layer.to_data(),
        "suggestions": suggestions,
        "message": row.message,
        "seconds": row.seconds,
        "submitted_at": None if row.submitted_at is None else write_moment(row.submitted_at),
    }
    return {key: value for key, value in fields.items() if value is not None}


Format = Literal["native", "mfava", "hat", "inline", "label_studio"]
FORMATS: tuple[str, ...] = get_args(Format)
_WRITERS = {"native": "jsonl", "mfava": "mfava", "hat": "hat", "inline": "inline", "label_studio": "label-studio"}


class ExportedFile(Record):
    """One file of an export."""

    path: str  # relative to the folder
    rows: int
    lost: dict[str, int]  # what the format cannot represent, with number of rows; `row: ...` are rows left out


class Exported(Record):
    """The summary of an export."""

    project: str  # its slug
    format: str  # as requested
    at: str  # time in UTC
    items: int  # exported items of the project
    annotators: dict[str, dict[str, Any]]  # by name: role, layers, what they did with suggestions ...
    files: list[ExportedFile]  # all but `export.json`
    beyond: dict[str, int]  # content of layers that the format cannot represent, counted; empty for `native`
    notes: list[str]  # remarks


def export(
    store: Store,
    project: Project,
    folder: Path,
    format: str = "native",  # noqa: A002  # the option's name
    *,
    names: bool = False,
) -> Exported:
    """Write an export into a new or empty folder; people can go on working meanwhile.

    The format is one of `FORMATS`; hyphens may replace underscores. With `names`, annotators have the names that they
    chose.

    Raises:
        UsageError: the folder is not empty.
        UnknownNameError: no such format.
        NotFound: the store does not have the project.
    """
    known = format.replace("-", "_")
    if known not in FORMATS:
        raise UnknownNameError("format of an export", format, FORMATS)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder.", "Name another one.")
    with store.reading() as tx:
        folder.mkdir(parents=True, exist_ok=True)
        return _export(tx, project, folder, known, names)


def export_zip(store: Store, project: Project, path: Path, format: str = "native", *, names: bool = False) -> Exported:  # noqa: A002
    """The same as one ZIP file, which appears complete or not at all.

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


def _export(tx: ReadTransaction, project: Project, folder: Path, format_: str, chosen: bool) -> Exported:
    project_id = tx.project(project.slug).id
    names = _names(tx, project_id, chosen=chosen)
    writers: dict[str, Writer] = {}
    beyond = Counter[str]()
    given: dict[str, list[Assignment]] = {}
    layers = Counter[str]()
    left_out = Counter[ItemRole]()
    items = lacking = 0
    try:
        for row in _rows(tx, project, project_id, names):
            if format_ != "native" and row.role not in WORK_ROLES:
                left_out[row.role] += 1
                continue
            items += 1
            lacking += format_ == "native" and row.lacks and row.by_chance
            layers.update(annotation.annotator for annotation in row.people)
            for name, assignment in row.handed_in.items():
                given.setdefault(name, []).append(assignment)
            if format_ != "native":
                beyond.update(_count_unexported(assignment.layer for assignment in row.handed_in.values()))
            for file, sample in _files_of(row, format_, project, names):
                if file not in writers:
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    writers[file] = Writer(folder / file, format=_WRITERS[format_])
                writers[file].write(sample)
    finally:
        for writer in writers.values():
            writer.close()
    files = []
    for name, writer in sorted(writers.items()):
        losses = writer.losses
        files.append(ExportedFile(name, losses.written, {what: loss.count for what, loss in losses.lost.items()}))
    if format_ == "label_studio":
        files.append(_labeling_config(project, folder))
    files.append(_history(tx, project_id, folder, names))
    people = {
        name: {
            **about,
            "layers": layers[name],
            "suggestions": msgspec.to_builtins(count_suggestions(given.get(name, ()))),
        }
        for name, about in names.about.items()
        if about["joined"]
    }
    notes = _notes(format_, left_out, layers)
    if lacking:
        notes.append(f"labels.jsonl lacks {lacking} items that were handed in: review, settle or exclude them.")
    done = Exported(project.slug, format_, write_moment(now()), items, people, files, dict(beyond), notes)
    account = json.dumps(msgspec.to_builtins(done), ensure_ascii=False, indent=2)
    (folder / "export.json").write_text(account + "\n", "utf-8")
    return done


def _labeling_config(project: Project, folder: Path) -> ExportedFile:
    """The labeling configuration that Label Studio's project needs before it imports the tasks."""
    form, name = project.form, "labeling_config.xml"
    labels = {choice.name: choice.colour for choice in form.types or form.unit_labels or form.labels}
    (folder / name).write_text(labeling_config(labels), "utf-8")
    return ExportedFile(name, 1, {})


def _notes(format_: str, left_out: Counter[ItemRole], layers: Counter[str]) -> list[str]:
    notes = []
    if left_out:
        roles = ", ".join(f"{role.value} {count}" for role, count in sorted(left_out.items()))
        notes.append(f"{left_out.total()} items that are no work are only in the native export: {roles}.")
    if format_ in {"hat", "inline"}:
        notes.append("A row holds one layer: `data` has gold, `annotators` has a row for each annotator.")
    if format_ == "mfava":
        notes.append("A row holds gold and silver: each annotator's file has theirs in the place of gold.")
    if format_ == "label_studio":
        notes.append(
            "In Label Studio, paste labeling_config.xml under Labeling Interface > Code; then import data.json."
        )
    if not layers:
        notes.append("Nobody has handed anything in yet.")
    return notes


def _files_of(row: _Row, format_: str, project: Project, names: _Names) -> Iterator[tuple[str, Sample]]:
    """The files for an item, and its sample in each."""
    if format_ == "native":
        yield "data.jsonl", _sample_with(row, row.everybody, {**row.sample.meta, "studio": row.studio})
        yield from _gold_alone(row)
    elif format_ == "label_studio":
        yield "data.json", _sample_with(row, row.everybody, row.sample.meta)
    elif format_ == "mfava":
        language = row.sample.language or "unknown"
        gold, silver = ([annotation] if annotation is not None else [] for annotation in (row.gold, row.silver))
        if gold or silver:
            yield f"silver_gold_{language}.json", _sample_with(row, [*gold, *silver], {})
        for annotation in row.people:
            as_gold = replace(annotation, annotator=_GOLD)
            public_id = names.about[annotation.annotator]["id"]  # a chosen name is not safe in a path
            yield f"annotators/{public_id}_{language}.json", _sample_with(row, [as_gold, *silver], {})
    elif format_ == "inline":
        for file, annotation in _by_annotator(row):
            yield f"{file}.jsonl", _sample_with(row, [annotation], {})
    else:
        source_flags, meta = set(project.form.source_flags), row.sample.meta
        for file, annotation in _by_annotator(row):  # section 3.3 of HAT has no key for labels of the source
            errors = [flag for flag in annotation.flags if flag in source_flags]
            source = {"sourceErrors": errors} if errors else {}
            yield f"{file}.json", _sample_with(row, [annotation], {**meta, **source})
        for name, assignment in row.handed_in.items():
            if (reason := assignment.layer.skip) is not None:
                skipped = {"skippedBy": name, "skipReason": reason}
                yield "annotators.json", _sample_with(row, [], {**meta, **skipped})


def _gold_alone(row: _Row) -> Iterator[tuple[str, Sample]]:
    """Input for `train`, `evaluate` and `estimate --labels`."""
    if row.gold is not None and row.role in WORK_ROLES:
        labelled = _sample_with(row, [row.gold], row.sample.meta)
        yield "gold.jsonl", labelled
        if row.by_chance:
            yield "labels.jsonl", labelled


def _by_annotator(row: _Row) -> Iterator[tuple[str, Annotation]]:
    if row.gold is not None:
        yield "data", row.gold
    yield from (("annotators", annotation) for annotation in row.people)


def _sample_with(row: _Row, annotations: Iterable[Annotation], meta: dict[str, Any]) -> Sample:
    return replace(row.sample, annotations=tuple(annotations), meta=meta)


def _history(tx: ReadTransaction, project_id: int, folder: Path, names: _Names) -> ExportedFile:
    """All events, one per line."""
    keys = {item.id: item.key for item in tx.items(project_id)}
    count = 0
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        for event in tx.events(project_id):
            file.write(json.dumps(_event_fields(event, keys, names), ensure_ascii=True) + "\n")
            count += 1
    return ExportedFile("history.jsonl", count, {})


def _event_fields(event: Event, keys: dict[int, str], names: _Names) -> dict[str, Any]:
    payload = event.payload
    if payload is not None and not names.chosen:
        payload = {key: value for key, value in payload.items() if key != "name"}
    fields = {
        "id": event.id,
        "event_id": event.event_id,
        "at": write_moment(event.at),
        "kind": event.kind,
        "person": None if event.person_id is None else names.by_id[event.person_id],
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


router = Router()


@router.call("GET", "/api/lead/export")
def download(caller: Lead, format: Format = "native", names: bool = False) -> Response:  # noqa: A002
    """Export now, while people work; `names` uses the names that people chose instead of their public ids."""
    caller.count("heavy")
    folder = tempfile.TemporaryDirectory(prefix="veriglot-export-")
    try:
        path = Path(folder.name) / "export.zip"
        export_zip(caller.studio.store, caller.studio.project, path, format, names=names)
        if not caller.reads_only:
            with caller.studio.store.writing() as tx:
                payload = {"format": format, "names": names}
                tx.record("exported", caller.studio.id, person_id=caller.person.id, payload=payload)
    except BaseException:
        folder.cleanup()
        raise
    name = f"{caller.studio.slug}-{format}-{now():%Y%m%d-%H%M}.zip"
    return FileResponse(path, media_type="application/zip", filename=name, background=BackgroundTask(folder.cleanup))
