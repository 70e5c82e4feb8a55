"""Published data sets of summaries, claims and facts that are checked against a document."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, grouped, language_tag, need, optional
from veriglot.formats.labels import normalized
from veriglot.formats.tags import in_order
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task, Unit
from veriglot.records.taxonomy import taxonomy
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head, Records

__all__ = []


class XsumSpans(Format):
    """Hallucinated spans in XSum summaries, as CSV (Maynez et al. 2020): one row per span and worker.

    Consecutive rows with the same article and system become one sample with an annotation for each worker. In the
    taxonomy `support`, `intrinsic` (the summary misrepresents the article) is `contradicted`, and `extrinsic` (not in
    the article) is `unverified`; `NULL` means that a worker marked nothing. Offsets in the file count from 1 and their
    ends are inconsistent, so the span's own text decides.

    The articles are read from `Gold.docid` and `Gold.source` beside the CSV (one per line, in the same order). The data
    set is English.
    """

    summary = "hallucinated spans in XSum summaries, CSV"
    containers = ("csv",)
    keys = ("bbcid", "hallucinated_span")
    companions = ("Gold.docid", "Gold.source", "Gold.target")
    writable = False
    _types: ClassVar = {"intrinsic": "contradicted", "extrinsic": "unverified"}
    _columns = (
        "bbcid", "system", "summary", "hallucination_type", "hallucinated_span",
        "hallucinated_span_start", "hallucinated_span_end", "worker_id",
    )  # fmt: skip

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples of consecutive rows with the same article and system; bad rows are left out."""
        groups = grouped(
            records,
            reading,
            lambda row: (row, self._span(row, reading), reading.line),
            lambda parsed: (parsed[0]["bbcid"], parsed[0]["system"]),
        )
        for group in groups:
            yield group if isinstance(group, FailedRow) else self._sample(group, reading)

    def _sample(self, group: list[tuple[dict[str, str], Span | None, int]], reading: Reading) -> Sample:
        workers: dict[str, dict[Span, None]] = {}
        for row, span, _ in group:
            workers.setdefault(row["worker_id"], {}).update({span: None} if span else {})
        reading.line = group[-1][2]
        first = group[0][0]
        document = reading.once("articles", lambda: self._articles(reading)).get(first["bbcid"])
        if document is None:
            reading.report.notes["without_article"] += 1
        return Sample(
            f"{first['bbcid']}-{first['system']}",
            first["summary"],
            task=Task.SUMMARIZATION,
            language="en",
            evidence=(Evidence(document, language="en"),) if document is not None else (),
            generator=Generator(first["system"]),
            annotations=tuple(
                Annotation(worker, Kind.HUMAN, "support", spans=tuple(in_order(spans)))
                for worker, spans in workers.items()
            ),
            meta={"bbcid": first["bbcid"]},
        )

    def _span(self, row: Any, reading: Reading) -> Span | None:
        for column in self._columns:
            need(row, column, str)
        type_ = row["hallucination_type"]
        if type_ == "NULL":
            return None
        if type_ not in self._types:
            raise InputError(f"{type_!r} is neither intrinsic, extrinsic nor NULL", field="hallucination_type")
        edges = []
        for column in ("hallucinated_span_start", "hallucinated_span_end"):
            try:
                edges.append(int(row[column]) - 1)
            except ValueError:
                raise InputError(f"a whole number is expected, not {row[column]!r}", field=column) from None
        # 39 spans of the published file begin or end with a backslash and an n
        marked = row["hallucinated_span"].removeprefix("\\n").removesuffix("\\n")
        located = reading.located(marked, edges[0], edges[1], "hallucinated_span", row["summary"])
        return Span(*located, self._types[type_]) if located else None

    @staticmethod
    def _articles(reading: Reading) -> dict[str, str]:
        """Articles by id, all in memory: the published file has 1.1 MB."""
        ids, texts = reading.beside("Gold.docid"), reading.beside("Gold.source")
        if ids is None or texts is None:
            return {}
        return dict(zip(ids.read_text("utf-8").split(), texts.read_text("utf-8").split("\n"), strict=False))


class Wice(Format):
    """WiCE JSONL: claims with the article they cite (Kamoi et al. 2023).

    `non_supported_tokens` files mark the tokens of a claim that the article does not support; runs of them become spans
    of type `unverified` (taxonomy `support`). `claims` files have one label per claim: `supported` gives no span,
    `not_supported` a span over the whole claim. `partially_supported` does not say which part, so `spans` is absent.

    The article's sentences become one passage, one per line. `meta.supporting` has the ranges of the supporting
    sentences, a list for each minimal set. The data set is English.
    """

    summary = "WiCE claims and non-supported tokens"
    keys = ("claim", "evidence")
    any_keys = ("claim_tokens", "supporting_sentences")
    writable = False
    _title = "(meta data) TITLE: "
    _type = "unverified"
    _labels = ("not_supported", "partially_supported", "supported")

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per claim."""
        claim, meta, label = need(data, "claim", str), need(data, "meta", dict), need(data, "label", str)
        if label not in self._labels:
            raise InputError(f"the label {label!r} is none of {', '.join(self._labels)}", field="label")
        spans: tuple[Span, ...] | None = None
        if "claim_tokens" in data:
            spans = tuple(self._token_spans(data, claim, reading))
        elif label == "supported":
            spans = ()
        elif label == "not_supported" and claim:
            spans = (Span(0, len(claim), self._type),)
        passage, ranges = self._passage(need(data, "evidence", list))
        yield Sample(
            need(meta, "id", str, within="meta"),
            claim,
            task=Task.OPEN,
            language="en",
            evidence=(passage,),
            annotations=(Annotation("gold", Kind.HUMAN, "support", spans=spans, ratings={"label": label}),),
            meta={
                **{key: value for key, value in meta.items() if key != "id"},
                "supporting": self._supporting(data, ranges),
            },
        )

    def _token_spans(self, data: Any, claim: str, reading: Reading) -> Iterator[Span]:
        tokens, marks = need(data, "claim_tokens", list), need(data, "non_supported_spans", list)
        if len(tokens) != len(marks):
            raise InputError(
                f"marks and tokens differ in number: {len(marks)} and {len(tokens)}", field="non_supported_spans"
            )
        offsets = _token_offsets([str(token) for token in tokens], claim)
        for marked, run in groupby(zip(marks, offsets, strict=True), key=lambda pair: bool(pair[0])):
            ranges = [(start, end) for _, (start, end) in run if start < end]
            if marked and ranges:
                yield Span(ranges[0][0], ranges[-1][1], self._type)
            elif marked:
                reading.repaired("empty_spans", "only white space is marked", where="non_supported_spans")

    def _passage(self, sentences: list[Any]) -> tuple[Evidence, list[tuple[int, int]]]:
        """The article as one passage, and the ranges of its sentences in it."""
        ranges: list[tuple[int, int]] = []
        for index, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise InputError("text is expected", field=f"evidence[{index}]")
            start = ranges[-1][1] + 1 if ranges else 0
            ranges.append((start, start + len(sentence)))
        first = sentences[0] if sentences else ""
        title = first.removeprefix(self._title) if first.startswith(self._title) else None
        return Evidence("\n".join(sentences), title=title, language="en"), ranges

    @staticmethod
    def _supporting(data: Any, ranges: list[tuple[int, int]]) -> list[list[list[int]]]:
        sets = optional(data, "supporting_sentences", list) or []
        for number, indices in enumerate(sets):
            if not isinstance(indices, list) or any(type(i) is not int or not 0 <= i < len(ranges) for i in indices):
                raise InputError("no such sentence in `evidence`", field=f"supporting_sentences[{number}]")
        return [[list(ranges[index]) for index in indices] for indices in sets]


def _token_offsets(tokens: list[str], text: str) -> list[tuple[int, int]]:
    """The range of each token in `text`, in order; white space between (and in) tokens may differ.

    A token of only white space has an empty range.
    """
    solid = [index for index, char in enumerate(text) if not char.isspace()]
    offsets = []
    read = 0
    for number, token in enumerate(tokens):
        letters = "".join(token.split())
        indices = solid[read : read + len(letters)]
        if [text[index] for index in indices] != list(letters):
            raise InputError(f"the token {token!r} does not stand in the text", field=f"claim_tokens[{number}]")
        read += len(letters)
        offsets.append((indices[0], indices[-1] + 1) if letters else (0, 0))
    if read != len(solid):
        raise InputError(f"the tokens end at code point {solid[read]}, but the text goes on", field="claim_tokens")
    return offsets


class HalluVerse(Format):
    """HalluVerse25 CSV: a factual sentence, its edited version, and the type of the hallucination (section 3 of its
    paper).

    The label is of the whole sentence: a unit over the response (annotator `gold`). A second annotation, `edit`, has
    spans: the words in which the edited sentence differs from the factual one, or all of it for the type `sentence`.
    They are computed, so the annotation is of the kind `model`, with the flag `computed`. The factual sentence is the
    evidence. Usual names of columns are recognised, in capitals or not.
    """

    summary = "HalluVerse25 CSV"
    containers = ("csv", "jsonl", "json", "parquet")
    columns = ("id", "language", "original_sentence", "edited_sentence", "hallucination_type")
    _original = ("original_sentence", "original", "factual_sentence", "factual", "sentence")
    _edited = ("edited_sentence", "edited", "hallucinated_sentence", "hallucinated")
    _label = ("hallucination_type", "label", "type", "final_label")
    _names: ClassVar = {"ent": "entity", "rel": "relation", "sent": "sentence"}

    def sniff(self, head: Head) -> Sniff | None:
        """By columns for the edited sentence and the type."""
        keys = {normalized(key) for key in head.keys}
        if keys & set(self._edited) and keys & set(self._label):
            return Sniff(0.8, "columns for an edited sentence and its label")
        return None

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per row; `0` (no hallucination, or ungrammatical) is a row without a label."""
        if not isinstance(data, dict):
            raise InputError("a row with named columns is expected")
        row = {normalized(key): value for key, value in data.items() if isinstance(value, str) and value}
        original, edited, written = (_pick(row, names) for names in (self._original, self._edited, self._label))
        label = written.strip().lower().rstrip(".")
        label = self._names.get(label, label)
        named = row.get("language") or row.get("lang")
        language = language_tag(named) if named else reading.language_of_file()
        yield Sample(
            row.get("id") or reading.row_name,
            edited,
            task=Task.BIOGRAPHY,
            language=language,
            evidence=(Evidence(original, language=language),),
            annotations=tuple(self._annotations(label, original, edited)),
            meta={} if label != "0" else {"label": "0"},
        )

    def _annotations(self, label: str, original: str, edited: str) -> Iterator[Annotation]:
        if label == "0":
            return
        if label not in taxonomy("halluverse").types:
            raise InputError(f"the label {label!r} is none of entity, relation, sentence, 0", field=self._label[0])
        whole = Unit(0, len(edited), label)
        yield Annotation("gold", Kind.HUMAN, "halluverse", units=(whole,))
        spans = [(0, len(edited))] if label == "sentence" else _changed(original, edited)
        marked = tuple(Span(start, end, label) for start, end in spans)
        yield Annotation("edit", Kind.MODEL, "halluverse", spans=marked, flags=("computed",))

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the label of the sample's unit."""
        labels = {unit.label for annotation in sample.annotations for unit in annotation.units or ()}
        unlabelled = not labels and any(annotation.spans for annotation in sample.annotations)
        known = labels <= taxonomy("halluverse").types.keys()
        if len(labels) > 1 or unlabelled or not known or not sample.evidence:
            raise InputError("a row of HalluVerse has one label and a factual sentence")
        return {
            "id": sample.id,
            "language": sample.language or "",
            "original_sentence": sample.evidence_text,
            "edited_sentence": sample.response,
            "hallucination_type": labels.pop().capitalize() if labels else "0",
        }


def _pick(row: dict[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in row:
            return row[name]
    raise InputError("the column is missing or empty", field=names[0])


def _changed(original: str, edited: str) -> Iterator[tuple[int, int]]:
    """The ranges where the words of the edited sentence differ from the original, half-open."""
    before, after = (list(re.finditer(r"\w+|[^\w\s]", text)) for text in (original, edited))
    matcher = SequenceMatcher(None, [m.group() for m in before], [m.group() for m in after], autojunk=False)
    for operation, _, _, start, end in matcher.get_opcodes():
        if operation in {"replace", "insert"}:
            yield after[start].start(), after[end - 1].end()
