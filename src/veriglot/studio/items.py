"""Import of items from files of any readable format; invalid rows are reported and skipped."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from sqlalchemy import bindparam, update

from veriglot.errors import InputError, UnknownNameError, VeriglotError
from veriglot.formats.reader import read_predictions, read_rows
from veriglot.judging.base import resolve_language
from veriglot.metrics.reference import answer
from veriglot.metrics.spans import unit_marks
from veriglot.records import Annotation, Kind, Prediction, Sample, Status
from veriglot.records.languages import get_language
from veriglot.records.settings import errors_of, paths_in, require
from veriglot.records.taxonomy import taxonomy_with
from veriglot.storage.checkpoint import FailedRow
from veriglot.studio import tables
from veriglot.studio.comparison import Comparison
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.project import NO_HALLUCINATION, Form, Paths, Project, TaskKind
from veriglot.studio.tables import WORK_ROLES, Item, ItemRole, NotFound, ProjectRow, Purpose, StoreError
from veriglot.study.rates import query_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from veriglot.studio.store import ReadTransaction, Store, WriteTransaction

__all__ = [
    "ImportResult",
    "draws_suggestions",
    "import_all",
    "not_by_chance",
    "register_project",
    "suggested_spans",
    "uniform",
]

_MAX_RESPONSE = 100_000  # code points; the page shows a response completely
_MAX_EVIDENCE = 2_000_000  # code points of one item
_AT_ONCE = 100  # items per transaction; on SQLite nobody can save during it


@dataclass(frozen=True)
class RejectedRow:
    """A row that could not be imported: its file, its line (or 0), the sample's id (or empty), and the error."""

    path: str
    line: int
    key: str
    error: VeriglotError


@dataclass
class ImportResult:
    """Counts of the imported rows.

    Attributes:
        added: items by language.
        known: rows that were imported before, with the same texts.
        other_language: rows in languages that are not in the project, by language.
        identified: rows without a language, for which it was detected.
        beyond: rows over the project's limit.
        unusable: rows that could not be imported.
        widened: marks of gold and silver layers that ended inside a character and were extended.
        batches: new batches.
        predicted: items with a new prediction.
        unpredicted: predictions without an item or without a score.
    """

    added: Counter[str] = field(default_factory=Counter)
    known: int = 0
    other_language: Counter[str] = field(default_factory=Counter)
    identified: int = 0
    beyond: int = 0
    unusable: list[RejectedRow] = field(default_factory=list)
    widened: int = 0
    batches: int = 0
    predicted: int = 0
    unpredicted: int = 0

    def counts(self) -> dict[str, Any]:
        """Counts by kind."""
        return {
            "added": dict(sorted(self.added.items())),
            "known": self.known,
            "other_language": dict(sorted(self.other_language.items())),
            "language_identified": self.identified,
            "beyond_limit": self.beyond,
            "left_out": len(self.unusable),
            "widened_marks": self.widened,
            "batches": self.batches,
            "predictions": self.predicted,
            "predictions_left_out": self.unpredicted,
        }


def register_project(store: Store, project: Project) -> ProjectRow:
    """The project's row, created if there is none and renamed if the name in the file changed.

    Raises:
        StoreError: the task or the taxonomy changed after work was assigned: layers would no longer fit.
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
                "Put the old task and taxonomy back, or begin a project with another slug.",
            )
        if changed:
            tx.update_project(row.id, **changed)
        return tx.project(project.slug)


def import_all(
    store: Store,
    project: Project,
    given: Mapping[Literal["data", "predictions"], Paths] | None = None,
    *,
    by: int | None = None,
) -> ImportResult:
    """Import the files of the project: the data, exam items, items with known answers. Repeating it changes nothing.

    Args:
        store: the store.
        project: the project.
        given: files of data and of predictions to import instead.
        by: the person who imports, for the history; None for the operator.

    Raises:
        InputError: a file does not exist, or has no known format.
    """
    entries, result = project.entries, ImportResult()
    project_id = register_project(store, project).id
    exam = entries.exam.path if entries.exam is not None and given is None else ()
    checks = entries.checks.path if entries.checks is not None and given is None else ()
    predictions = entries.suggestions.predictions if entries.suggestions is not None else ()
    if given is None:
        given = {"data": entries.data.path, "predictions": predictions}
    for paths, role in ((exam, ItemRole.EXAM), (checks, ItemRole.CHECK), (given.get("data", ()), ItemRole.NORMAL)):
        _Import(store, project, project_id, role, result, by).read(paths_in(project.path.parent, paths))
    for path in paths_in(project.path.parent, given.get("predictions", ())):
        _import_predictions(store, project, project_id, path, result)
    if entries.work.order != "file":
        with store.writing(lock=project.lock) as tx:
            _order(tx, project, project_id)
    if entries.validation is not None:
        with store.writing(lock="items") as tx:
            result.batches = _form_batches(tx, project_id, entries.validation.batch_size)
    return result


@dataclass
class _Import:
    """Import of the items of one role, from files or folders."""

    store: Store
    project: Project
    project_id: int
    role: ItemRole
    result: ImportResult
    by: int | None

    def read(self, paths: Iterable[Path]) -> None:
        data, result = self.project.entries.data, self.result
        for path in paths:
            rows = self._importable(str(path), read_rows(path, format=data.format, language=data.language))
            while chunk := list(islice(rows, _AT_ONCE)):
                with self.store.writing(lock="items") as tx:
                    tx.add_items(self.project_id, list(self._new(tx, chunk)))
            with self.store.writing() as tx:
                counts = {"unusable": len(result.unusable), "known": result.known}
                payload = {"file": path.name, "role": self.role.value, **counts}
                tx.record("import", self.project_id, payload=payload, person_id=self.by)

    def _importable(self, path: str, rows: Iterator[Sample | FailedRow]) -> Iterator[dict[str, Any]]:
        """The columns of valid rows."""
        for row in rows:
            if isinstance(row, FailedRow):
                self.result.unusable.append(RejectedRow(row.path or path, row.line or 0, "", row.as_error()))
                continue
            try:
                columns = self._columns(row)
            except VeriglotError as error:
                self.result.unusable.append(RejectedRow(path, 0, row.id, error))
                continue
            if columns is not None:
                yield columns

    def _columns(self, sample: Sample) -> dict[str, Any] | None:
        from veriglot.text.segmentation import word_bounds

        _check_texts(sample)
        _check_original(sample, self.project.task)
        tag = sample.language
        if tag is None:
            resolved = resolve_language(sample)
            if resolved is None:
                remedy = "Name it in the project file: language = under [data]."
                raise InputError("the row states no language, and its text does not tell", remedy, field="language")
            tag = resolved.tag
            sample = msgspec.structs.replace(sample, language=tag)
            self.result.identified += 1
        language = _tag(tag)
        if self.project.languages and language not in self.project.languages:
            self.result.other_language[tag] += 1
            return None
        entries = self.project.entries
        layers = {"gold": self._layer(sample, entries.data.gold), "silver": self._layer(sample, entries.data.silver)}
        wanted = "gold"
        if self.role is ItemRole.EXAM and entries.exam is not None:
            wanted = entries.exam.against
        complete = self.role in WORK_ROLES or layers[wanted] is not None
        remedy = f'Name who gave it under [data]: {wanted} = "NAME".'
        require(complete, "this item has no known answer", "annotations", remedy)
        return {
            "key": sample.id,
            "language": language,
            "role": self.role,
            "words": len(word_bounds(sample.response, sample.language)),
            "sample": msgspec.to_builtins(sample),
            **{name: None if layer is None else layer.to_data() for name, layer in layers.items()},
        }

    def _layer(self, sample: Sample, annotator: str | None) -> Layer | None:
        """The layer of an annotator that the project names; None if the sample has none."""
        if annotator is None:
            return None
        form = self.project.form
        annotation = next((a for a in sample.annotations if a.annotator == annotator), None)
        if annotation is None:  # as the reader of HalluVerse25 names it
            unlabelled = form.task is TaskKind.PAIRS and sample.meta.get("label") == NO_HALLUCINATION
            return Layer(label=NO_HALLUCINATION) if unlabelled else None
        layer = Layer.from_annotation(annotation, form, sample)
        self.result.widened += len(_places(layer) - _places(annotation))
        return layer

    def _new(self, tx: WriteTransaction, chunk: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The new items of a chunk, with their positions."""
        there = {item.key: item for item in tx.items(self.project_id, key=[columns["key"] for columns in chunk])}
        limit = self.project.entries.data.limit if self.role is ItemRole.NORMAL else None
        counts = Counter[str]() if limit is None else self._count(tx)
        position = tx.next_position(self.project_id)
        for columns in chunk:
            language, old = columns["language"], there.get(columns["key"])
            if old is None:
                if limit is not None and counts[language] >= limit:
                    self.result.beyond += 1
                    continue
                counts[language] += 1
                self.result.added[language] += 1
                yield {**columns, "position": position}
                position += 1
            elif msgspec.to_builtins(tx.original(old.id)) == columns["sample"]:
                self.result.known += 1
            else:
                error = InputError("another item has this id", "Give every item an id of its own.", field="id")
                self.result.unusable.append(RejectedRow("", 0, old.key, error))

    def _count(self, tx: ReadTransaction) -> Counter[str]:
        """Items by language, without those from files of exam and check items."""
        entries = self.project.entries
        apart = {ItemRole.EXAM: entries.exam, ItemRole.CHECK: entries.checks}
        roles = [role for role in ItemRole if not ((entry := apart.get(role)) and entry.path)]
        tally = tx.tally(self.project_id, "items", "language", role=roles)
        return Counter({language: count for (language,), count in tally.items()})


def _places(layer: Layer | Annotation) -> set[tuple[int, int]]:
    spans = {(span.start, span.end) for span in layer.spans or ()}
    return spans | {(unit.start, unit.end) for unit in layer.units or ()}


def _tag(name: str) -> str:
    """The tag that projects and invitations use for a language: `zh` becomes `zh-Hans`."""
    try:
        return get_language(name).tag
    except UnknownNameError:
        return name


def _check_texts(sample: Sample) -> None:
    response, evidence = sample.response, sum(len(passage.text) for passage in sample.evidence)
    require(response.strip(), "the response is empty", "response")
    require(len(response) <= _MAX_RESPONSE, f"the response has more than {_MAX_RESPONSE:,} characters", "response")
    require(evidence <= _MAX_EVIDENCE, f"the evidence has more than {_MAX_EVIDENCE:,} characters", "evidence")
    require(len(sample.id) <= 500 and sample.id.strip(), "an id has 1 to 500 characters", "id")
    try:
        msgspec.json.encode(sample)
    except UnicodeEncodeError:
        raise InputError("the row holds half of a character (a lone surrogate)") from None


_ORIGINALS = {
    TaskKind.PAIRS: ("the pair has no original sentence", "original_sentence"),
    TaskKind.TRANSLATION: ("the translation has no source text", "source"),
}


def _check_original(sample: Sample, task: TaskKind) -> None:
    """Reject items that nobody could judge: an edit without the original, a translation without its source."""
    if task in _ORIGINALS and not sample.evidence_text.strip():
        what, key = _ORIGINALS[task]
        remedy = f"Give it as `evidence`, or as `{key}` of a published format (`veriglot convert`)."
        raise InputError(what, remedy, field="evidence")


# Reproducible randomness: the same words give the same number, on any machine and in any version.


def uniform(*words: object) -> float:
    """A pseudo-random number in [0, 1), hashed from these words."""
    joined = "\x1f".join(str(word) for word in words)
    return int.from_bytes(hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest()[:7], "big") / 2**56


# Predictions of a detector, by item id: used for suggestions, for the annotation order, and for the correction of
# rates.


def _import_predictions(store: Store, project: Project, project_id: int, path: Path, result: ImportResult) -> None:
    """Store the newest prediction of each item."""
    rows = read_predictions(str(path))
    while chunk := list(islice(rows, _AT_ONCE)):
        with store.writing(lock="items") as tx:
            items = {item.key: item for item in tx.items(project_id, key=[prediction.id for prediction in chunk])}
            for prediction in chunk:
                item = items.get(prediction.id)
                if item is None or prediction.status is not Status.SCORED:
                    result.unpredicted += 1
                    continue
                with errors_of(path):
                    data = _prediction_data(project, tx.original(item.id), prediction)  # whose `meta` has the query
                if data != tx.prediction(item.id):
                    tx.update_item(item, "predicted", prediction=data)
                    result.predicted += 1


def _prediction_data(project: Project, sample: Sample, prediction: Prediction) -> dict[str, Any]:
    marks, bounds = answer(prediction, len(sample.response)).marks, Comparison(project.form, sample).units
    types = {span.type for span in prediction.spans or () if span.type}
    known = {choice.name for choice in project.form.types}
    named = project.form.taxonomy if types <= known else taxonomy_with(types) or project.form.taxonomy
    annotation = Annotation(annotator=prediction.detector, kind=Kind.MODEL, taxonomy=named, spans=prediction.spans)
    confidences = [word.confidence for word in prediction.words or ()]
    if not confidences and prediction.score is not None:
        confidences = [prediction.score]
    return {
        "detector": prediction.asked,
        "score": prediction.score,
        # Expected share of wrong words for a calibrated detector; from the response score if there are no words.
        "uncertainty": sum(min(c, 1 - c) for c in confidences) / len(confidences) if confidences else 0.0,
        # In the units of labels (`Comparison.units`), so that predictions and labels can be combined.
        "marked": int(np.count_nonzero(unit_marks(bounds, marks.spans) >= 0)),
        "units": len(bounds),
        "query": query_of(sample),
        "spans": suggested_spans(annotation, project.form, sample) if project.form.has_spans else [],
    }


def suggested_spans(annotation: Annotation, form: Form, sample: Sample) -> list[dict[str, Any]]:
    """A model's spans as suggestions: spans as in a layer, with `confidence` if known."""
    result: list[dict[str, Any]] = list(Layer.from_annotation(annotation, form, sample).to_data()["spans"])
    for data in result:
        inside = [s for s in annotation.spans or () if data["start"] <= s.start and s.end <= data["end"]]
        widest = max(inside, key=lambda span: span.end - span.start, default=None)
        if widest is not None and widest.confidence is not None:
            data["confidence"] = widest.confidence
    return result


def draws_suggestions(project: Project, key: str) -> bool:
    """Whether an item is randomly chosen to show suggestions (`share` under [suggestions])."""
    entry = project.entries.suggestions
    return entry is not None and uniform(project.slug, "suggestions", key) < entry.share


def is_random(project: Project, key: str) -> bool:
    """Whether an item is chosen at random in an order by predictions, so that it represents the others."""
    return uniform(project.slug, "random", key) < project.entries.work.by_chance


def not_by_chance(tx: ReadTransaction, project: Project) -> dict[int, Literal["ordered", "picked"]]:
    """Items that were not chosen at random: `ordered` by their predictions, or `picked` by a lead.

    The history before the first assignment counts: an order (regardless of the current project file), a priority, or an
    assignment by a lead.
    """
    project_id, share, result = tx.project(project.slug).id, 1.0, dict[int, Literal["ordered", "picked"]]()
    waiting = {item.id: item.key for item in tx.items(project_id, role=WORK_ROLES)}
    prioritised: dict[int, bool] = {}
    for _, kind, item_id, by, payload, _, _, purpose in tx.steps(project_id):
        if kind == "ordered":
            share = min(share, (payload or {}).get("random", project.entries.work.random))
        elif item_id is None:
            continue
        elif kind == "priority":
            prioritised[item_id] = (payload or {})["priority"] != 0
        elif (kind, purpose) == ("assigned", Purpose.ANNOTATE) and (key := waiting.pop(item_id, None)) is not None:
            if by is not None or prioritised.get(item_id):
                result[item_id] = "picked"
            elif uniform(project.slug, "random", key) >= share:
                result[item_id] = "ordered"
    rest = (id_ for id_, key in waiting.items() if uniform(project.slug, "random", key) >= share)
    return result | dict.fromkeys(rest, "ordered")


def _order(tx: WriteTransaction, project: Project, project_id: int) -> None:
    """Sort the items that nobody has, alternating between languages, within the positions that they occupy.

    Within a language the order is random, because files group models and sources; existing batches stay together.
    """
    work, given = project.entries.work, {row.item_id for row in tx.assignments(project_id)}
    by_language: dict[str | None, list[Item]] = {}
    before: Counter[str | None] = Counter()  # assigned items per language: alternation continues after them
    for item in tx.items(project_id, role=ItemRole.NORMAL):
        if item.id in given or (work.order == "random" and item.batch_id is not None):
            before[item.language] += 1
        else:
            by_language.setdefault(item.language, []).append(item)
    turns: list[tuple[int, str, Item]] = []
    for language, items in by_language.items():
        chance = [item for item in items if is_random(project, item.key)]
        chance.sort(key=lambda item: uniform(project.slug, "random", item.key))
        chosen = {item.id for item in chance}
        others = [item for item in items if item.id not in chosen]
        others.sort(key=lambda item: -_urgency(tx, project, item))
        shared = work.overlap if not tx.tally(project_id, "items", "role", role=ItemRole.OVERLAP) else 0
        ordered = chance[:shared]  # agreement needs a random sample
        drawn, hardest = deque(chance[shared:]), deque(others)
        for turn in range(before[language], before[language] + len(drawn) + len(hardest)):
            by_chance = math.floor((turn + 1) * work.random) > math.floor(turn * work.random)
            ordered.append((drawn if (by_chance and drawn) or not hardest else hardest).popleft())
        turns += ((turn, language or "", item) for turn, item in enumerate(ordered, before[language]))
    turns.sort(key=lambda turn: turn[:2])
    positions = sorted(item.position for *_, item in turns)
    moved = [
        {"item": item.id, "at": position}
        for (*_, item), position in zip(turns, positions, strict=True)
        if item.position != position
    ]
    if moved:
        row = tables.items.c
        statement = update(tables.items).where(row.id == bindparam("item")).values(position=bindparam("at"))
        tx.connection.execute(statement, moved)
    # Read all events: otherwise a cursor stays open.
    if moved or (work.by_chance < 1 and not [*tx.events(project_id, kind="ordered")]):
        tx.record("ordered", project_id, payload={"items": len(moved), "random": work.by_chance})


def _urgency(tx: ReadTransaction, project: Project, item: Item) -> float:
    """Urgency from 0 to 1; items without a prediction come last."""
    prediction = tx.prediction(item.id)
    if prediction is None:
        return -1.0
    if project.entries.work.order == "uncertainty":
        return float(prediction["uncertainty"])
    silver = tx.silver(item.id)
    if silver is None:
        return -1.0
    spans = tuple(LayerSpan(s["id"], s["start"], s["end"], s["type"]) for s in prediction["spans"])
    return 1.0 - Comparison(project.form, tx.sample(item.id)).similarity(silver, Layer(spans=spans))


def _form_batches(tx: WriteTransaction, project_id: int, size: int) -> int:
    """Form batches of the items without one, one language at a time, in order; returns their number."""
    by_language: dict[str | None, list[int]] = {}
    for item in tx.items(project_id, role=WORK_ROLES):
        if item.batch_id is None:
            by_language.setdefault(item.language, []).append(item.id)
    chunks = [(tag, ids[i : i + size]) for tag, ids in by_language.items() for i in range(0, len(ids), size)]
    for language, ids in chunks:
        tx.add_batch(project_id, ids, language=language)
    return len(chunks)
