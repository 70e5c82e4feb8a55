"""From responses to the sets: against the article (reference-based), against each other (pairwise), against English.

kang, section 2.2: responses in the wrong language are left out, the others are held against the article on the person,
or against the other samples of the same prompt. What is left out here stands beside the sets with its reason.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from veriglot.build.factual.account import CellTally, FactualCell
from veriglot.build.factual.languages import RejectReason, Verdict, verdict_on
from veriglot.build.refusals import refuses
from veriglot.records import Annotation, Evidence, Sample, decode_json, encode, sample_from
from veriglot.run import FailedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from veriglot.build.factual.shelf import Shelf

__all__ = ["FactualSets", "Labels", "RejectedResponse", "SetFiles", "write_sets"]


class RejectedResponse(msgspec.Struct, frozen=True):
    """A response that was set aside: the whole sample, so that nobody is bound to our reason.

    Attributes:
        id: of the response.
        model, language: who was asked, and in which language.
        reason, detail: see `Verdict`.
        found: tag of the language that it is in; None where that cannot be told.
        sample: the response without evidence.
    """

    id: str
    model: str
    language: str
    reason: RejectReason
    detail: str
    found: str | None
    sample: Sample


class Labels:
    """What annotators said of responses, by id of the row of `reference.jsonl`.

    Args:
        samples: annotated rows, in any order. Their text has to be that of the response; nothing else is read.
    """

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._given = {one.id: (one.response, one.annotations) for one in samples if one.annotations}
        self._used: set[str] = set()
        self._other_text: set[str] = set()

    def of(self, sample: Sample) -> tuple[Annotation, ...]:
        """The annotations of a response; none where nobody labelled it, or another text under its id."""
        response, annotations = self._given.get(sample.id, ("", ()))
        if annotations and response != sample.response:
            self._other_text.add(sample.id)
            return ()
        if annotations:
            self._used.add(sample.id)
        return annotations

    def account(self) -> dict[str, int]:
        """How many were given and used, belong to another text, or to no row of the set."""
        rest = len(self._given) - len(self._used) - len(self._other_text)
        counts = {"given": len(self._given), "used": len(self._used)}
        return counts | {"of_another_text": len(self._other_text), "of_no_row": rest}


class SetFiles(NamedTuple):
    """Where the sets go.

    Attributes:
        reference: every kept response against the article in its language, with its sisters in `meta.samples`.
        cross: every kept response against the article in another language (English); None for no such set.
        pairs: every kept response against each of its sisters.
        rejected: responses that were set aside.
    """

    reference: Path
    cross: Path | None
    pairs: Path
    rejected: Path

    @property
    def all(self) -> tuple[Path, ...]:
        """Those that are written."""
        return tuple(path for path in self if path is not None)


class FactualSets(msgspec.Struct, frozen=True):
    """What was written.

    Attributes:
        cells: by model and language, as they first appear.
        rows: file name -> rows.
        labels: see `Labels.account`.
        without_cross: kept responses without an article in the other language.
    """

    cells: tuple[FactualCell, ...]
    rows: dict[str, int]
    labels: dict[str, int]
    without_cross: int


def write_sets(
    files: SetFiles,
    responses: Mapping[str, Path],
    shelf: Shelf,
    languages: Sequence[str],
    *,
    with_sisters: Callable[[Iterable[Sample]], list[Sample]],
    cross: str | None = "en",
    labels: Labels | None = None,
) -> FactualSets:
    """Make the sets of all responses; each file appears when it is whole.

    Args:
        files: where to.
        responses: name of the model -> its responses, as `responses` writes them under the design `runs`, whose rows
            of one prompt stand together; failed calls beside them.
        shelf: the articles.
        languages: of the set.
        with_sisters: puts the texts of a response's sisters beside it, as `scorers.sisters.with_sisters` does.
        cross: tag of the other language.
        labels: of annotators.

    Returns:
        The account.

    Raises:
        InputError: a row of responses is no sample.
    """
    labels = labels or Labels()
    with ExitStack() as stack:
        partial = {path: path.with_name(path.name + ".partial") for path in files.all}
        writers = {path: _Writer(stack.enter_context(partial[path].open("wb"))) for path in files.all}
        work = _Work(files, writers, shelf, languages, with_sisters, cross, labels)
        for model, path in responses.items():
            work.read(model, path)
    for path, written in partial.items():
        written.replace(path)
    rows = {path.name: writer.rows for path, writer in writers.items()}
    return FactualSets(work.cells(), rows, labels.account(), work.without_cross)


class _Writer:
    """A file of JSON lines, counted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.rows = 0

    def write(self, record: msgspec.Struct) -> None:
        self._file.write(encode(record) + b"\n")
        self.rows += 1


class _Work:
    """The sets in the making."""

    def __init__(
        self,
        files: SetFiles,
        writers: dict[Path, _Writer],
        shelf: Shelf,
        languages: Sequence[str],
        with_sisters: Callable[[Iterable[Sample]], list[Sample]],
        cross: str | None,
        labels: Labels,
    ) -> None:
        self._reference, self._pairs = writers[files.reference], writers[files.pairs]
        self._rejected = writers[files.rejected]
        self._cross = writers[files.cross] if files.cross is not None else None
        self._shelf = shelf
        self._languages = sorted(languages, key=len, reverse=True)
        self._with_sisters = with_sisters
        self._other = cross
        self._labels = labels
        self._cells: dict[tuple[str, str], CellTally] = {}
        self.without_cross = 0

    def cells(self) -> tuple[FactualCell, ...]:
        """The counts."""
        return tuple(tally.cell() for tally in self._cells.values())

    def read(self, model: str, path: Path) -> None:
        """All responses of one model."""
        for _, rows in groupby(_samples(path), key=lambda sample: sample.meta["query"]):
            self._prompt(model, list(rows))
        for failed in _failed(path):
            query = (failed.id or "").rpartition(f"/{model}/")[0]
            cell = self._cell(model, next((tag for tag in self._languages if query.endswith(f"-{tag}")), ""))
            cell.add("asked")
            cell.add("failed")

    def _cell(self, model: str, language: str) -> CellTally:
        return self._cells.setdefault((model, language), CellTally(model, language))

    def _prompt(self, model: str, rows: list[Sample]) -> None:
        """The samples of one prompt."""
        tag = rows[0].language or ""
        cell = self._cell(model, tag)
        kept: list[Sample] = []
        for row in rows:
            cell.add("asked")
            verdict = verdict_on(row.response, tag)
            cell.judge(row, verdict)
            if verdict.reason is None:
                kept.append(_marked(row, verdict))
            else:
                self._rejected.write(
                    RejectedResponse(row.id, model, tag, verdict.reason, verdict.detail, verdict.language, row)
                )
        if len(kept) == 1:
            cell.add("alone")
        article, other = self._evidence(kept[0], tag) if kept else (None, None)
        for sample in self._with_sisters(kept):
            annotations = self._labels.of(sample)
            cell.add("labelled", bool(annotations))
            held = (article,) if article is not None else ()
            self._reference.write(msgspec.structs.replace(sample, evidence=held, annotations=annotations))
            self._write_cross(sample, other, cell)
        for sample in kept:
            for sister in kept:
                if sister.id != sample.id:
                    self._pairs.write(_pair(sample, sister))
                    cell.add("pairs")

    def _evidence(self, sample: Sample, tag: str) -> tuple[Evidence | None, Evidence | None]:
        """The article in the response's language, and that in the other."""
        person = sample.meta["person"]
        own = self._shelf.get(f"{person}-{tag}")
        other = self._shelf.get(f"{person}-{self._other}") if self._cross is not None and self._other != tag else None
        return own.evidence if own is not None else None, other.evidence if other is not None else None

    def _write_cross(self, sample: Sample, other: Evidence | None, cell: CellTally) -> None:
        if self._cross is None or sample.language == self._other:
            return
        if other is None:
            self.without_cross += 1
            return
        meta = {**sample.meta, "response": sample.id}
        crossed = msgspec.structs.replace(sample, id=f"{sample.id}/{self._other}", evidence=(other,), meta=meta)
        self._cross.write(crossed)
        cell.add("cross")


def _marked(sample: Sample, verdict: Verdict) -> Sample:
    """The response with what was found of it. `group` keeps all rows of a person on one side of a bench's split."""
    found = {"group": sample.meta["person"], "identified": verdict.language, "identified_with": verdict.confidence}
    if refuses(sample.response, sample.language):
        found["refused"] = True
    return msgspec.structs.replace(sample, meta={**sample.meta, **found})


def _pair(sample: Sample, sister: Sample) -> Sample:
    """A response with one sister in place of evidence."""
    meta = {key: sample.meta[key] for key in ("group", "person", "name", "query")}
    place = f"{sister.generator.seed}" if sister.generator is not None else sister.id
    return msgspec.structs.replace(
        sample,
        id=f"{sample.id}/vs/{place}",
        evidence=(Evidence(sister.response, language=sister.language),),
        annotations=(),
        meta={**meta, "response": sample.id, "sister": sister.id},
    )


def _samples(path: Path) -> Iterator[Sample]:
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            yield sample_from(decode_json(line))


def _failed(path: Path) -> Iterator[FailedRow]:
    beside = path.with_name(path.name + ".failed.jsonl")
    if not beside.exists():
        return
    decoder = msgspec.json.Decoder(FailedRow)
    with beside.open("rb") as lines:
        for line in lines:
            yield decoder.decode(line)
