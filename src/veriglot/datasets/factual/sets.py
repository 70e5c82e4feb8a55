"""Factual sets of responses (Kang et al.): against the article, pairwise, against English; with account and manifest.

Kang et al., section 2.2: responses in the wrong language are left out, the others are held against the article on the
person, or against the other samples of the same prompt. What is left out here stands beside the sets with its reason.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import msgspec

from veriglot.datasets.quality import Quality, QualityTally, refuses
from veriglot.datasets.references import Reference
from veriglot.records import Annotation, Evidence, Sample, decode_json, encode, sample_from
from veriglot.records.languages import same_language
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import FailedRow
from veriglot.storage.files import open_whole, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import BinaryIO

__all__ = [
    "ArticleStore",
    "FactualCell",
    "FactualManifest",
    "FactualSets",
    "Labels",
    "RejectReason",
    "RejectedResponse",
    "SetFiles",
    "Verdict",
    "cells_table",
    "load_manifest",
    "made_from",
    "save_manifest",
    "totals_of",
    "verdict_on",
    "write_sets",
]


# Is a response in the language that was asked for? What is not, is set aside (Kang et al., section 2.2).


RejectReason = Literal["empty", "undetected", "language"]
REASONS: tuple[RejectReason, ...] = ("empty", "undetected", "language")


class Verdict(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        language: tag that the response is in; None where it cannot be told.
        confidence: of that, 0 to 1; None likewise.
        reason: why the response is set aside: `empty` (it holds no letter), `undetected` (its language cannot be told;
            *Valid %* of Kang et al. counts the others), `language` (another one; their *Acc.*); None where it stays.
        detail: the reason in words.
    """

    language: str | None
    confidence: float | None
    reason: RejectReason | None = None
    detail: str = ""


def verdict_on(response: str, asked: str) -> Verdict:
    """Judge one response.

    Args:
        response: the text.
        asked: tag of the language that was asked for; the script may be another.
    """
    from veriglot.text.identification import identify

    if not any(char.isalpha() for char in response):
        return Verdict(None, None, "empty", "it holds no letter")
    identified = identify(response)
    if identified is None:
        return Verdict(None, None, "undetected", "its language cannot be told")
    confidence = round(identified.confidence, 4)
    if not same_language(identified.tag, asked):
        return Verdict(identified.tag, confidence, "language", f"it is in {identified.tag} and should be in {asked}")
    return Verdict(identified.tag, confidence)


class FactualCell(msgspec.Struct, frozen=True):
    """One model in one language.

    Attributes:
        model, language: which.
        asked: responses that were asked for: prompts times samples.
        failed: calls that gave nothing, after every retry.
        responses: the others; `kept`, `empty`, `undetected` and `language` add up to it.
        kept: responses of the set.
        empty, undetected, language_wrong: responses that were set aside; see `Verdict`.
        alone: of those kept, how many have no sister that was kept.
        pairs: rows of pairs: every kept response against each of its sisters.
        cross: rows of kept responses against the article in the other language (English).
        labelled: of those kept, how many have labels.
        tokens_in, tokens_out: of all responses, as the server counted them, or estimated.
        quality: of all responses, those that were set aside too (Kang et al., Table 1); None where there are none.
    """

    model: str
    language: str
    asked: int = 0
    failed: int = 0
    responses: int = 0
    kept: int = 0
    empty: int = 0
    undetected: int = 0
    language_wrong: int = 0
    alone: int = 0
    pairs: int = 0
    cross: int = 0
    labelled: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    quality: Quality | None = None


_SUMMED = (
    "asked", "failed", "responses", "kept", "empty", "undetected", "language_wrong", "alone", "pairs", "cross",
    "labelled", "tokens_in", "tokens_out",
)  # fmt: skip
_COLUMNS = ("asked", "failed", "responses", "kept", "empty", "undetected", "language_wrong", "alone", "pairs", "cross")


class CellTally:
    """Counts of one model in one language, response by response; memory does not grow with them."""

    def __init__(self, model: str, language: str) -> None:
        self._about = (model, language)
        self._counts = dict.fromkeys(_SUMMED, 0)
        self._quality = QualityTally()

    def add(self, name: str, number: int = 1) -> None:
        """Add to a count of `FactualCell`."""
        self._counts[name] += number

    def judge(self, sample: Sample, verdict: Verdict) -> None:
        """Count a response with what was found of its language, and its tokens."""
        from veriglot.llm.limits import estimate_tokens

        self.add("responses")
        self.add("kept" if verdict.reason is None else _COUNT[verdict.reason])
        self._quality.add(sample)
        texts = {"tokens_in": sample.question or "", "tokens_out": sample.response}
        for name, text in texts.items():
            counted = sample.meta.get(name)
            self.add(name, counted if isinstance(counted, int) else estimate_tokens(text))

    def cell(self) -> FactualCell:
        """The counts so far."""
        counts: dict[str, Any] = self._counts
        return FactualCell(*self._about, **counts, quality=self._quality.quality())


_COUNT = {reason: "language_wrong" if reason == "language" else reason for reason in REASONS}


def totals_of(cells: Iterable[FactualCell]) -> dict[str, int]:
    """All models and languages together."""
    every = list(cells)
    return {name: sum(getattr(cell, name) for cell in every) for name in _SUMMED}


def cells_table(cells: Sequence[FactualCell]) -> list[list[str]]:
    """The counts as rows of a table, its head first and, of several cells, their sum last.

    `right` is the share of the responses whose language can be told that are in the one that was asked for, `most in`
    the language that most of them are in, `words` their mean length.
    """
    head = ["model", "language", *(name.replace("language_wrong", "wrong language") for name in _COLUMNS)]
    rows = [[*head, "right", "most in", "words"]]
    for cell in cells:
        counts = [f"{getattr(cell, name):,}" for name in _COLUMNS]
        rows.append([cell.model, cell.language, *counts, *_said(cell.quality)])
    if len(cells) > 1:
        total = totals_of(cells)
        rows.append(["all", "", *(f"{total[name]:,}" for name in _COLUMNS), "", "", ""])
    return rows


def _said(quality: Any) -> list[str]:
    if quality is None:
        return ["-", "-", "-"]
    right = "-" if quality.right_language is None else f"{quality.right_language:.1%}"
    return [right, quality.most_frequent_language or "-", f"{quality.words:.1f}"]


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
        self._given = {sample.id: (sample.response, sample.annotations) for sample in samples if sample.annotations}
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
    shelf: ArticleStore,
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
        writers = {path: _Writer(stack.enter_context(open_whole(path))) for path in files.all}
        work = _Work(files, writers, shelf, languages, with_sisters, cross, labels)
        for model, path in responses.items():
            work.read(model, path)
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
        shelf: ArticleStore,
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
        accepted: list[Sample] = []
        for row in rows:
            cell.add("asked")
            verdict = verdict_on(row.response, tag)
            cell.judge(row, verdict)
            if verdict.reason is None:
                accepted.append(_marked(row, verdict))
            else:
                self._rejected.write(
                    RejectedResponse(row.id, model, tag, verdict.reason, verdict.detail, verdict.language, row)
                )
        if len(accepted) == 1:
            cell.add("alone")
        article, other = self._evidence(accepted[0], tag) if accepted else (None, None)
        for sample in self._with_sisters(accepted):
            annotations = self._labels.of(sample)
            cell.add("labelled", bool(annotations))
            held = (article,) if article is not None else ()
            self._reference.write(msgspec.structs.replace(sample, evidence=held, annotations=annotations))
            self._write_cross(sample, other, cell)
        for sample in accepted:
            for sister in accepted:
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
    notes = {"group": sample.meta["person"], "identified": verdict.language, "identified_with": verdict.confidence}
    if refuses(sample.response, sample.language):
        notes["refused"] = True
    return msgspec.structs.replace(sample, meta={**sample.meta, **notes})


def _pair(sample: Sample, sister: Sample) -> Sample:
    """A response with one sister in place of evidence."""
    meta = {key: sample.meta[key] for key in ("group", "person", "name", "query")}
    suffix = f"{sister.generator.seed}" if sister.generator is not None else sister.id
    return msgspec.structs.replace(
        sample,
        id=f"{sample.id}/vs/{suffix}",
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


# What a set was made from and what came of it: `manifest.json`, the same bytes whenever the same set is made.


_VERSION = 1


class WrittenFile(msgspec.Struct, frozen=True):
    """A file of the set: its rows, size in bytes, and SHA-256."""

    rows: int
    size: int
    sha256: str


class FactualManifest(msgspec.Struct, frozen=True):
    """The account of a set.

    Attributes:
        veriglot: version that made it.
        made_by: every setting that changes the set, with the versions of the prompts and of what judges languages.
        made_from: SHA-256 of the responses, articles and labels that the sets were made from.
        people: how many were found, looked up, chosen, and set aside.
        articles: language -> reason -> how many of those looked up lack a usable article.
        cells: counts by model and language.
        total: the sum of their counts.
        labels: labels given and used.
        without_cross: kept responses without an article in the other language.
        money: what all calls cost at the prices given; None without prices.
        files: name -> what it holds.
        version: of this format.
    """

    veriglot: str
    made_by: dict[str, Any]
    made_from: str
    people: dict[str, Any]
    articles: dict[str, dict[str, int]]
    cells: tuple[FactualCell, ...]
    total: dict[str, int]
    labels: dict[str, int]
    without_cross: int
    money: float | None
    files: dict[str, WrittenFile]
    version: int = _VERSION

    @classmethod
    def of(
        cls,
        sets: FactualSets,
        files: Sequence[Path],
        *,
        made_by: dict[str, Any],
        made_from: str,
        people: dict[str, Any],
        articles: dict[str, dict[str, int]],
        prices: tuple[float, float] | None,
    ) -> FactualManifest:
        """The manifest of sets that were just written.

        Args:
            sets: their account.
            files: where they are.
            made_by, made_from, people, articles: see above.
            prices: of a million tokens of prompts and of replies, in one currency.
        """
        from veriglot.signatures import __version__

        total = totals_of(sets.cells)
        money = None
        if prices is not None:
            money = round((total["tokens_in"] * prices[0] + total["tokens_out"] * prices[1]) / 1e6, 6)
        written = {
            path.name: WrittenFile(sets.rows[path.name], path.stat().st_size, file_sha256(str(path))) for path in files
        }
        return cls(
            __version__,
            made_by,
            made_from,
            people,
            articles,
            sets.cells,
            total,
            sets.labels,
            sets.without_cross,
            money,
            written,
        )

    def describes(self, folder: Path) -> bool:
        """Whether its files lie in a folder, as large as they were."""
        paths = {folder / name: written.size for name, written in self.files.items()}
        return all(path.is_file() and path.stat().st_size == size for path, size in paths.items())


def made_from(paths: Sequence[Path], settings: Mapping[str, Any]) -> str:
    """A hash of the content of files, in order (one that is not there counts as such), and of settings."""
    hashes = [file_sha256(str(path)) if path.exists() else "-" for path in paths]
    return digest([*hashes, msgspec.json.encode(dict(settings), order="deterministic")])


def load_manifest(path: Path) -> FactualManifest | None:
    """The manifest at `path`; None where there is none of this version."""
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=FactualManifest)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return manifest if manifest.version == _VERSION else None


def save_manifest(path: Path, manifest: FactualManifest) -> None:
    """Write it, whole or not at all."""
    write_json(path, manifest)


# The articles of a set on disk, taken one at a time: a set of Kang et al.'s size holds half a gigabyte of them.


class ArticleStore:
    """The references of a file of JSON lines, by id; memory holds where each begins.

    Args:
        path: the file, which must not change meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._places: dict[str, int] = {}
        decoder = msgspec.json.Decoder(Reference)
        offset = 0
        for line in self._file:
            self._places[decoder.decode(line).id] = offset
            offset += len(line)

    def get(self, id_: str) -> Reference | None:
        """The reference of an id (`<person>-<language>`), or None."""
        offset = self._places.get(id_)
        if offset is None:
            return None
        self._file.seek(offset)
        return msgspec.json.decode(self._file.readline(), type=Reference)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
