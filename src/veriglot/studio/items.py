"""Items from files of any readable format; rows that cannot become one are reported, and the rest goes on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError, UnknownNameError, VeriglotError
from veriglot.formats.containers import BadRow
from veriglot.formats.reader import read_rows
from veriglot.records.languages import get_language
from veriglot.studio.layers import Layer, from_annotation, to_data
from veriglot.studio.project import TaskKind
from veriglot.studio.tables import WORK_ROLES, ItemRole, NotFound, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from veriglot.records import Annotation, Sample
    from veriglot.studio.project import Project
    from veriglot.studio.store import Store, WriteTransaction
    from veriglot.studio.tables import Item, ProjectRow

__all__ = ["ImportResult", "import_all", "register_project"]

MAX_RESPONSE = 100_000
"""Code points of a response; the page shows all of it at once."""
MAX_EVIDENCE = 2_000_000
"""Code points of the evidence of one item."""
_AT_ONCE = 100  # items of a transaction: while it lasts, nobody's work can be saved on SQLite


@dataclass(frozen=True)
class RejectedRow:
    """A row that became no item.

    Attributes:
        path: the file.
        line: in the file, counted from 1, or 0.
        key: the sample's id, or empty.
        error: what is wrong with it.
    """

    path: str
    line: int
    key: str
    error: VeriglotError


@dataclass
class ImportResult:
    """What became of the rows.

    Attributes:
        added: items by language.
        known: rows that were imported before, with the same texts.
        other_language: rows in languages that the project does not name, by language.
        beyond: rows beyond the project's limit.
        unusable: rows that became no item.
        widened: marks of gold and silver layers that cut a character and were widened to all of it.
        batches: that were made.
    """

    added: Counter[str] = field(default_factory=Counter)
    known: int = 0
    other_language: Counter[str] = field(default_factory=Counter)
    beyond: int = 0
    unusable: list[RejectedRow] = field(default_factory=list)
    widened: int = 0
    batches: int = 0


def register_project(store: Store, project: Project) -> ProjectRow:
    """The project's row, made where there is none and renamed where its file has another name.

    Raises:
        StoreError: the task or the taxonomy changed after work was given out: layers would no longer fit.
    """
    expected = {"name": project.name, "task": project.task.value, "taxonomy": project.form.taxonomy}
    with store.writing(lock="projects") as tx:
        try:
            row = tx.project(project.slug)
        except NotFound:
            tx.add_project(slug=project.slug, **expected)
            return tx.project(project.slug)
        changed: dict[str, Any] = {name: value for name, value in expected.items() if getattr(row, name) != value}
        if changed.keys() & {"task", "taxonomy"} and tx.tally(row.id, "assignments", "state"):
            raise StoreError(
                f"The project {project.slug!r} was begun as {row.task} with the taxonomy {row.taxonomy}.",
                remedy="Put the old task and taxonomy back, or begin a project with another slug.",
            )
        if changed:
            tx.update_project(row.id, **changed)
        return tx.project(project.slug)


def import_all(store: Store, project: Project) -> ImportResult:
    """Import what the project file names: the data, items of the exam, items with known answers. Again changes nothing.

    Raises:
        InputError: a file does not exist, or is in no known format.
    """
    entries, done = project.entries, ImportResult()
    exam = entries.exam.path if entries.exam is not None else ()
    checks = entries.checks.path if entries.checks is not None else ()
    for paths, role in ((exam, ItemRole.EXAM), (checks, ItemRole.CHECK), (entries.data.path, ItemRole.NORMAL)):
        import_items(store, project, project.resolve_all(paths), role, into=done)
    return done


def import_items(
    store: Store,
    project: Project,
    paths: Iterable[Path],
    role: ItemRole = ItemRole.NORMAL,
    *,
    into: ImportResult | None = None,
) -> ImportResult:
    """Import files or folders.

    Args:
        store: where to.
        project: the project.
        paths: files or folders, in a format that Veriglot reads.
        role: what the items are for. Those of an exam and known answers need the layer that they are held against.
        into: an account to go on with.

    Raises:
        InputError: a path does not exist, or is in no known format.
    """
    row, done = register_project(store, project), into if into is not None else ImportResult()
    counts: Counter[str] = Counter()
    for path in paths:
        rows = _importable(
            read_rows(path, format=project.entries.data.format, language=project.entries.data.language),
            str(path),
            project,
            role,
            done,
        )
        while chunk := list(islice(rows, _AT_ONCE)):
            with store.writing(lock="items") as tx:
                tx.add_items(row.id, list(_new_rows(tx, row.id, chunk, project, role, counts, done)))
        with store.writing() as tx:
            payload = {"file": path.name, "role": role.value, "unusable": len(done.unusable), "known": done.known}
            tx.record("import", row.id, payload=payload)
    if project.entries.validation is not None and role is ItemRole.NORMAL:
        with store.writing(lock="items") as tx:
            done.batches += _form_batches(tx, row.id, project.entries.validation.batch_size)
    return done


def _importable(
    rows: Iterator[Sample | BadRow], path: str, project: Project, role: ItemRole, done: ImportResult
) -> Iterator[dict[str, Any]]:
    """The columns of rows that can become items."""
    for row in rows:
        if isinstance(row, BadRow):
            done.unusable.append(RejectedRow(row.path, row.line, "", row.error))
            continue
        try:
            columns = _columns(row, project, role, done)
        except VeriglotError as error:
            done.unusable.append(RejectedRow(path, 0, row.id, error))
            continue
        if columns is not None:
            yield columns


def _columns(sample: Sample, project: Project, role: ItemRole, done: ImportResult) -> dict[str, Any] | None:
    from veriglot.text.segmentation import word_bounds

    _check_texts(sample)
    if sample.language is None:
        raise InputError(
            "the row states no language",
            field="language",
            remedy="Name it in the project file: language = under [data].",
        )
    language = _tag(sample.language)
    if project.languages and language not in project.languages:
        done.other_language[sample.language] += 1
        return None
    gold, silver = (
        _layer(sample, project, name, done) for name in (project.entries.data.gold, project.entries.data.silver)
    )
    _require_reference(project, role, gold, silver)
    return {
        "key": sample.id,
        "language": language,
        "role": role,
        "words": len(word_bounds(sample.response, sample.language)),
        "sample": msgspec.to_builtins(sample),
        "gold": None if gold is None else to_data(gold),
        "silver": None if silver is None else to_data(silver),
    }


def _tag(name: str) -> str:
    """The tag that projects and invitations know a language by: `zh` is `zh-Hans` to all of them."""
    try:
        return get_language(name).tag
    except UnknownNameError:
        return name


def _check_texts(sample: Sample) -> None:
    if not sample.response.strip():
        raise InputError("the response is empty", field="response")
    if len(sample.response) > MAX_RESPONSE:
        raise InputError(f"the response has more than {MAX_RESPONSE:,} characters", field="response")
    if sum(len(passage.text) for passage in sample.evidence) > MAX_EVIDENCE:
        raise InputError(f"the evidence has more than {MAX_EVIDENCE:,} characters", field="evidence")
    if len(sample.id) > 500 or not sample.id.strip():
        raise InputError("an id has 1 to 500 characters", field="id")
    try:
        msgspec.json.encode(sample)
    except UnicodeEncodeError:
        raise InputError("the row holds half of a character (a lone surrogate)") from None


def _require_reference(project: Project, role: ItemRole, gold: Layer | None, silver: Layer | None) -> None:
    wanted = "gold"
    if role is ItemRole.EXAM and project.entries.exam is not None:
        wanted = project.entries.exam.against
    if role in {ItemRole.EXAM, ItemRole.CHECK} and (gold if wanted == "gold" else silver) is None:
        raise InputError(
            f"an item of this kind needs a {wanted} layer",
            field="annotations",
            remedy=f"Name it: {wanted} = under [data].",
        )


def _layer(sample: Sample, project: Project, annotator: str | None, done: ImportResult) -> Layer | None:
    """The layer of an annotator that the project names, or None where the sample has none of theirs."""
    if annotator is None:
        return None
    form = project.form
    named = [annotation for annotation in sample.annotations if annotation.annotator == annotator]
    if not named:
        unlabelled = form.task is TaskKind.PAIRS and sample.meta.get("label") == "0"  # as HalluVerse25's reader says it
        return Layer(label="0") if unlabelled else None
    layer = from_annotation(named[0], form, sample)
    done.widened += _count_moved(named[0], layer)
    return layer


def _count_moved(annotation: Annotation, layer: Layer) -> int:
    """How many marks of the layer lie elsewhere than in the annotation."""
    before = {(span.start, span.end) for span in annotation.spans or ()}
    before |= {(unit.start, unit.end) for unit in annotation.units or ()}
    after = {(span.start, span.end) for span in layer.spans} | {(unit.start, unit.end) for unit in layer.units}
    return len(after - before)


def _new_rows(
    tx: WriteTransaction,
    project_id: int,
    chunk: list[dict[str, Any]],
    project: Project,
    role: ItemRole,
    counts: Counter[str],
    done: ImportResult,
) -> Iterator[dict[str, Any]]:
    """Those of a chunk that are not there yet, with their positions."""
    there = {item.key: item for item in tx.items(project_id, key=[columns["key"] for columns in chunk])}
    limit = project.entries.data.limit if role is ItemRole.NORMAL else None
    position = tx.next_position(project_id)
    for columns in chunk:
        language = columns["language"]
        if limit is not None and counts[language] >= limit:
            done.beyond += 1
            continue
        counts[language] += 1
        if (old := there.get(columns["key"])) is not None:
            _compare(tx, old, columns, done)
            continue
        done.added[language] += 1
        yield {**columns, "position": position}
        position += 1


def _compare(tx: WriteTransaction, old: Item, columns: dict[str, Any], done: ImportResult) -> None:
    if msgspec.to_builtins(tx.original(old.id)) == columns["sample"]:
        done.known += 1
        return
    error = InputError("another item has this id", field="id", remedy="Give every item an id of its own.")
    done.unusable.append(RejectedRow("", 0, old.key, error))


def _form_batches(tx: WriteTransaction, project_id: int, size: int) -> int:
    """Batches of the items that are in none, a language at a time, in order; how many."""
    by_language: dict[str | None, list[int]] = {}
    for item in tx.items(project_id):
        if item.batch_id is None and item.role in WORK_ROLES:
            by_language.setdefault(item.language, []).append(item.id)
    made = 0
    for language, ids in by_language.items():
        for start in range(0, len(ids), size):
            tx.add_batch(project_id, ids[start : start + size], language=language)
            made += 1
    return made
