"""Published data sets of labelled translations: the source text is the evidence, in a language of its own."""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec.structs import replace

from veriglot.errors import InputError
from veriglot.formats.base import (
    FIELDS,
    Format,
    Reading,
    Sniff,
    beside_spans,
    grouped,
    language_tag,
    need,
    optional,
    span_fields,
    spanned_annotation,
)
from veriglot.formats.containers import Head, Record, Records, Source
from veriglot.formats.tags import in_order, marked_ranges, with_tags
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task, Unit, decode_text
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


__all__ = []

_TYPE = "hallucination"
_LINES_LOOKED_AT = 20


class Hat(Format):
    """HAT JSON: translations with hallucinated spans marked by people (HAT, section 3.3).

    A row has `srcLocale`, `tgtLocale`, `id`, `annotatorID`, `source`, `target` and `errors`. Each error has a
    `category` and `spans` with start, end and text. The paper does not spell these three keys, so
    `start`/`startIndex`/`start_index`, the same for the end, and `text`/`spanText`/`span_text` are read; the text shows
    whether the end is inclusive. People's rows are joined by id. Labels of the source stay in `meta`, and become flags
    if they match one. A row is not annotated yet if annotator and `errors` are null.
    """

    summary = "HAT JSON, hallucinated spans in translations"
    containers = ("json", "jsonl", "parquet")
    keys = ("srcLocale", "tgtLocale", "target")
    fields = FIELDS["hat"]
    _known: ClassVar = {"srcLocale", "tgtLocale", "id", "annotatorID", "source", "target", "errors"}
    _flags: ClassVar = {
        "source_wrong_language": ("wrong language", "wrong_language", "mixed language", "mixed_language"),
        "source_incomprehensible": ("nonsens", "garbled", "incomprehensible"),
        "source_noise": ("spelling", "typo", "noise"),
    }

    def tag_of(self, code: str) -> str | None:
        """The tag, or the locale itself if it is unknown."""
        return language_tag(code) or code

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:
        """One annotation, with flags for labels of the source."""
        meta |= {key: value for key, value in data.items() if key not in self._known and value not in (None, [], {})}
        labels = str({key: value for key, value in meta.items() if value}).lower()  # a label of false is not set
        spans = tuple(self._spans(optional(data, "errors", list) or [], response, reading))
        reading.shared = data.get("annotatorID") is not None
        if data.get("errors", []) is not None or reading.shared:
            yield Annotation(
                str(data.get("annotatorID") or "annotator"),
                Kind.HUMAN,
                "hat",
                spans=spans,
                flags=tuple(flag for flag, words in self._flags.items() if any(word in labels for word in words)),
            )

    @staticmethod
    def _spans(errors: list[Any], target: str, reading: Reading) -> Iterator[Span]:
        for number, error in enumerate(errors):
            category = need(error, "category", str, within=f"errors[{number}]")
            if category.lower() != _TYPE:
                reading.report.notes[f"errors_of_category:{category}"] += 1
                continue
            for index, span in enumerate(need(error, "spans", list, within=f"errors[{number}]")):
                where = f"errors[{number}].spans[{index}]"
                start, end = (
                    need(span, next((key for key in keys if isinstance(span, dict) and key in span), keys[0]), int,
                         within=where)
                    for keys in (("start", "startIndex", "start_index"), ("end", "endIndex", "end_index"))
                )  # fmt: skip
                texts = (span.get(key) for key in ("text", "spanText", "span_text"))
                text = next((text for text in texts if isinstance(text, str)), None)
                inclusive = text is not None and target[start:end] != text and target[start : end + 1] == text
                edges = reading.located(text, start, end + 1 if inclusive else end, where, target)
                if edges:
                    yield Span(*edges, _TYPE)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """The first annotation with spans; offsets are code points, the end exclusive.

        Without one the row has null for annotator and errors, which means that it is not annotated yet.
        """
        if not sample.evidence or sample.language is None or sample.evidence[0].language is None:
            raise InputError("a row of HAT has a source text, and a language of both source and target")
        annotation = spanned_annotation(sample)
        spans = [span_fields(sample, span) for span in (annotation and annotation.spans) or ()]
        return {
            "annotatorID": annotation and annotation.annotator,
            "errors": annotation and ([{"category": _TYPE, "spans": spans}] if spans else []),
        }

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row, with the content of `meta`."""
        return {"annotatorID": None, "errors": None, **sample.meta, **super().record(sample)}


class Xcomet(Format):
    """XCOMET rows: a source, its translation and `error_spans` with confidence and severity (Guerreiro et al. 2024).

    The spans are translation errors of any kind, so they have no type; their severities stay in `meta.severities`.
    `score` or `scores` becomes the rating `score`.
    """

    summary = "XCOMET rows with error_spans"
    keys = ("mt", "error_spans")
    fields = FIELDS["xcomet"]

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:
        """One annotation by a model; `score` or `scores` is a rating."""
        spans, severities = [], []
        errors = need(data, "error_spans", list)
        for edges, item, where in reading.ranges(errors, "error_spans", response, by_text=True):
            confidence = optional(item, "confidence", float)
            if confidence is not None and not 0 <= confidence <= 1:
                raise InputError(f"a confidence lies between 0 and 1, not {confidence}", field=f"{where}.confidence")
            spans.append(Span(*edges, confidence=confidence))
            severities.append(optional(item, "severity", str))
        if any(severities):
            meta["severities"] = severities
        score = optional(data, "score" if "score" in data else "scores", float)
        ratings: dict[str, float | str] = {} if score is None else {"score": score}
        yield Annotation("xcomet", Kind.MODEL, "hat", spans=tuple(spans), ratings=ratings)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """The first annotation that has spans."""
        annotation = spanned_annotation(sample)
        spans = annotation.spans or () if annotation else ()
        severities = beside_spans(sample, "severities", spans) or [None] * len(spans)
        return {
            "score": annotation.ratings.get("score") if annotation else None,
            "error_spans": [
                {**span_fields(sample, span), "confidence": span.confidence, "severity": severity}
                for span, severity in zip(spans, severities, strict=True)
            ],
        }


class HalOmi(Format):
    """HalOmi TSV (Dale et al. 2023): translations with hallucinated parts of the target between `<<<` and `>>>`.

    Annotator `gold` has the spans, and the sentence-level degrees as ratings `class_hall` and `class_omit`. The parts
    of the source that the translation omits stay in `meta.omit_spans`. Language codes are from FLORES (`deu_Latn`).
    """

    summary = "HalOmi TSV, hallucinations and omissions in translations"
    containers = ("tsv", "csv", "jsonl", "parquet")
    keys = ("mt_text", "hall_spans")
    columns = ("src_lang", "tgt_lang", "src_text", "mt_text", "omit_spans", "hall_spans", "class_hall", "class_omit",
               "data_source")  # fmt: skip
    fields = FIELDS["halomi"]
    _markers = ("<<<", ">>>")
    _meta = ("omit_spans", "data_source", "perturbation", "selection")

    def tag_of(self, code: str) -> str | None:
        """The tag of a code with a script, or of the code without it, or the code itself if it is unknown."""
        return language_tag(code) or language_tag(code.split("_")[0]) or code.replace("_", "-")

    def samples(self, data: Any, reading: Reading) -> Iterable[Sample | FailedRow]:
        """One sample per row, named by its line."""
        return super().samples({**data, "id": None} if isinstance(data, dict) else data, reading)

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterator[Annotation]:  # noqa: ARG002
        """One annotation, with the degrees as ratings."""
        meta |= {key: data[key] for key in self._meta if data.get(key)}
        ranges = marked_ranges(data["hall_spans"], response, self._markers, field="hall_spans", of="mt_text")
        yield Annotation(
            "gold",
            Kind.HUMAN,
            "hat",
            spans=tuple(Span(start, end, _TYPE) for start, end in ranges),
            ratings={key: data[key] for key in ("class_hall", "class_omit") if data.get(key)},
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row, with the first annotation that has spans."""
        annotation = spanned_annotation(sample)
        if annotation is None or not sample.evidence or sample.language is None or not sample.evidence[0].language:
            raise InputError("a row of HalOmi has spans, a source text, and the languages of both texts")
        source = sample.evidence_text
        return {
            "src_lang": sample.evidence[0].language,
            "tgt_lang": sample.language,
            "src_text": source,
            "mt_text": sample.response,
            "omit_spans": sample.meta.get("omit_spans", source),
            "hall_spans": with_tags(
                sample.response, ((span.start, span.end, *self._markers) for span in annotation.spans or ())
            ),
            "class_hall": str(annotation.ratings.get("class_hall", "")),
            "class_omit": str(annotation.ratings.get("class_omit", "")),
            "data_source": str(sample.meta.get("data_source", "")),
        }


# Tables without languages in their rows.


def _translation(source: str, target: str, texts: Iterable[tuple[str, str]], reading: Reading, **parts: Any) -> Sample:
    """A translation, with the languages of a file that begins with `texts`; `parts` are fields of `Sample`."""
    source_tag, target_tag = reading.pair_of(texts)
    return Sample(
        response=target,
        task=Task.TRANSLATION,
        language=target_tag,
        evidence=(Evidence(source, language=source_tag),),
        **parts,
    )


def _head_lines(reading: Reading) -> Iterator[str]:
    """The lines at the file's beginning, read lazily: only a file's first sample needs them."""
    yield from reading.source.head.decode("utf-8", "replace").split("\n")


def _head_rows(reading: Reading) -> Iterator[dict[str, str]]:
    """The rows at the beginning of a tab-separated table with a header."""
    lines = (line.rstrip("\r").split("\t") for line in _head_lines(reading))
    columns = next(lines, [])
    yield from (dict(zip(columns, cells, strict=False)) for cells in lines)


HALLUCINATIONS = ("oscillation", "strong_detachment", "full_detachment")
"""Flags of `guerreiro` that the data's paper calls hallucinations."""


class Guerreiro(Format):
    """Pathologies of translations, CSV (Guerreiro et al. 2023, "Looking for a Needle in a Haystack").

    A row has `src`, `mt`, `ref` and a 0 or 1 for each pathology of the whole translation. The annotation `gold` has a
    flag for each: `oscillation` (column `repetitions`), `strong_detachment` (`strong-unsupport`), `full_detachment`
    (`full-unsupport`), `omission`, `named_entities`. The paper calls the first three hallucinations: such rows have a
    unit `hallucination` over the whole response (taxonomy `hat`). In a strong detachment only a part is unsupported,
    and the data do not say which. The reference translation goes to `meta.reference`.

    A comma before a space is read as text if the row then has the right number of columns, because one published row
    needs it. The languages are detected from the file's beginning.
    """

    summary = "pathologies of translations: detachment, oscillation, omission, CSV"
    containers = ("csv",)
    keys = ("src", "mt", "strong-unsupport", "full-unsupport")
    writable = False
    _flags: ClassVar = {
        "repetitions": "oscillation",
        "strong-unsupport": "strong_detachment",
        "full-unsupport": "full_detachment",
        "omission": "omission",
        "named-entities": "named_entities",
    }
    _columns = ("", "src", "mt", "ref", "repetitions", "named-entities", "omission", "strong-unsupport",
                "full-unsupport")  # fmt: skip
    _comma_between_columns = re.compile(r",(?! )")

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per row."""
        source, target = need(data, "src", str), need(data, "mt", str)
        for column in self._flags:
            if need(data, column, str) not in {"0", "1"}:
                raise InputError(f"a label is 0 or 1, not {data[column][:60]!r}", field=column)
        flags = tuple(flag for column, flag in self._flags.items() if data[column] == "1")
        units = (Unit(0, len(target), _TYPE),) if target and not set(flags).isdisjoint(HALLUCINATIONS) else ()
        rows = csv.DictReader(line + "\n" for line in _head_lines(reading))
        yield _translation(
            source,
            target,
            ((row.get("src") or "", row.get("mt") or "") for row in rows),
            reading,
            id=f"{reading.source.stem}-{data.get('') or reading.line}",
            annotations=(Annotation("gold", Kind.HUMAN, "hat", units=units, flags=flags),),
            meta={"reference": data["ref"]} if data.get("ref") else {},
        )

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples and bad rows; rows with unquoted commas are repaired."""
        return super().rows((self._repaired(record, reading) for record in records), reading)

    def _repaired(self, record: Record | FailedRow, reading: Reading) -> Record | FailedRow:
        """A row with too many columns, repaired if possible; else unchanged."""
        if not isinstance(record, FailedRow):
            return record
        cells = self._comma_between_columns.split((record.raw or "").rstrip("\r\n"))
        if len(cells) != len(self._columns) or not all(cell in {"0", "1"} for cell in cells[4:]):
            return record
        reading.line = record.line or 0
        try:
            reading.repaired("unquoted_commas", "the row has commas in a text that is not quoted")
        except InputError as error:
            return FailedRow.of(error.at(path=record.path, line=record.line), record.raw)
        return Record(reading.line, dict(zip(self._columns, cells, strict=True)))


class Mlqe(Format):
    """Critical translation errors, TSV (Specia et al. 2021, WMT21 quality estimation task 3, of MLQE-PE).

    A row has an identifier, a source, its translation, the scores of three people and their majority; a blind test file
    has only the first three columns. There is no header, and quotation marks are text. A score of 1 is a critical
    error, 0 is none; 2 and 3 mean that the source or the translation cannot be understood.

    Annotator `gold` is the majority, `annotator_1` to `_3` are the people. An error is a unit `critical_error`
    (taxonomy `critical`) over the whole response; it is not always a hallucination. Scores of 2 and 3 are ratings
    without units. Published translations have spaces between tokens, also in Japanese and Chinese.

    The languages are those in the file's name (`ende_majority_dev.tsv`), if they fit the texts; the name also gives
    `meta.split`.
    """

    summary = "critical translation errors of MLQE-PE, TSV"
    containers = ("tsv", "text")
    takes_lines = True
    writable = False
    _scores = re.compile(r"\[([0-3](?:, ?[0-3])*)\]")
    _verdicts: ClassVar = {"ERR": True, "NOT": False}
    _labelled, _blind = 5, 3  # columns

    def sniff(self, head: Head) -> Sniff | None:
        """By rows of a number, two texts, scores in brackets and ERR or NOT; or of only a number and two texts."""
        lines = [line.rstrip("\r").split("\t") for line in head.text.split("\n")[:_LINES_LOOKED_AT] if line.strip()]
        if not lines or not all(cells[0].isdigit() and len(cells) == len(lines[0]) for cells in lines):
            return None
        if len(lines[0]) == self._labelled and all(
            self._scores.fullmatch(cells[3]) and cells[4] in self._verdicts for cells in lines
        ):
            return Sniff(0.95, "rows of a number, two texts, people's scores and ERR or NOT")
        if len(lines[0]) == self._blind:
            return Sniff(0.6, "rows of a number and two texts, without a header")
        return None

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per row."""
        cells = str(data).split("\t")
        if len(cells) not in {self._labelled, self._blind}:
            raise InputError(
                f"a row has {self._labelled} columns, or {self._blind} in a blind test file, not {len(cells)}"
            )
        number, source, target = cells[:3]
        split = next((part for part in reading.source.stem.split("_") if part in {"train", "dev", "test"}), None)
        head = (line.split("\t") for line in _head_lines(reading))
        yield _translation(
            source,
            target,
            ((row[1], row[2]) for row in head if len(row) >= self._blind),
            reading,
            id=f"{reading.source.stem}-{number}",
            annotations=tuple(self._people(*cells[3:], target=target)) if len(cells) == self._labelled else (),
            meta={"split": split} if split else {},
        )

    def _people(self, scores: str, verdict: str, *, target: str) -> Iterator[Annotation]:
        match = self._scores.fullmatch(scores)
        if match is None:
            raise InputError(f"scores are numbers from 0 to 3 in brackets, not {scores[:60]!r}", field="scores")
        if verdict not in self._verdicts:
            raise InputError(f"the majority says ERR or NOT, not {verdict[:60]!r}", field="aggregated-score")
        given = [score.strip() for score in match[1].split(",")]
        critical = self._verdicts[verdict]
        if (given.count("1") > len(given) / 2) is not critical:
            raise InputError(f"{verdict} is not what most of the scores {scores} say", field="aggregated-score")
        whole = (Unit(0, len(target), "critical_error"),) if target else ()
        yield Annotation("gold", Kind.HUMAN, "critical", units=whole if critical else ())
        for index, score in enumerate(given, 1):
            yield Annotation(
                f"annotator_{index}",
                Kind.HUMAN,
                "critical",
                units={"0": (), "1": whole}.get(score),
                ratings={"score": float(score)},
            )


ADDITION = "Accuracy/Addition"
"""The category of `mqm` for text of the translation that is not in the source."""


class _Rating(NamedTuple):
    """A row: the texts without marks, the rater, and the error, or None if there is none."""

    key: tuple[str, str, str]
    source: str
    target: str
    rater: str
    error: dict[str, Any] | None
    line: int


class Mqm(Format):
    """MQM ratings of translations, TSV (Freitag et al. 2021): one row per error, marked `<v>...</v>` in its text.

    Consecutive rows of one system and segment become one sample with an annotation for each rater. Errors of the
    category *Accuracy/Addition*, which the source does not support, become spans of type `hallucination` (taxonomy
    `hat`). `meta.errors` has every error with its category, severity, rater, ranges, and the text in which it is marked
    (`target`, or `source` for omissions). The system is the generator; systems named `ref` are people.

    Quotation marks are text. A mark that is never closed extends to the end, and counts as a repair. The languages are
    those in the file's name (`mqm_ted_zhen.tsv`), if they fit the texts.
    """

    summary = "MQM error spans in translations, TSV"
    containers = ("tsv", "text")
    takes_lines = True
    writable = False
    _markers = ("<v>", "</v>")
    _needed = ("system", "doc", "seg_id", "rater", "source", "target", "category", "severity")

    def sniff(self, head: Head) -> Sniff | None:
        """By the columns `seg_id`, `rater`, `category` and `severity`."""
        columns = head.text.split("\n", 1)[0].rstrip("\r").split("\t")
        if set(self._needed) <= set(columns):
            return Sniff(0.95, "the columns `seg_id`, `rater`, `category` and `severity`")
        return None

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples of consecutive rows with the same system, segment and texts."""
        for group in grouped(records, reading, lambda line: self._rating(str(line), reading), lambda row: row[:3]):
            yield group if isinstance(group, FailedRow) else self._sample(group, reading)

    def _rating(self, text: str, reading: Reading) -> _Rating | None:
        cells = text.split("\t")
        columns = reading.state.setdefault("columns", cells)
        missing = [name for name in self._needed if name not in columns]
        if missing:
            raise InputError(f"the first line does not name the columns {', '.join(missing)}")
        if columns is cells:
            return None
        if len(cells) != len(columns):
            raise InputError(f"the row and the first line differ in columns, {len(cells)} and {len(columns)}")
        row = dict(zip(columns, cells, strict=True))
        source, in_source = self._marked(row["source"], "source", reading)
        target, in_target = self._marked(row["target"], "target", reading)
        error: dict[str, Any] | None = None
        if row["category"].lower() not in {"no-error", "no error"}:
            error = {key: row[key] for key in ("category", "severity", "rater")}
            if in_target or in_source:
                error |= {"in": "target" if in_target else "source", "places": in_target or in_source}
            if row.get("comment"):
                error["comment"] = row["comment"]
        return _Rating((row["system"], row["doc"], row["seg_id"]), source, target, row["rater"], error, reading.line)

    def _marked(self, text: str, field: str, reading: Reading) -> tuple[str, list[list[int]]]:
        """The text without marks, and the marked ranges."""
        opening, closing = self._markers
        if opening not in text and closing not in text:
            return text, []
        if text.count(opening) == text.count(closing) + 1 and text.rfind(opening) > text.rfind(closing):
            reading.repaired("unclosed_marks", f"{opening} is never closed", where=field)
            text += closing
        plain = text.replace(opening, "").replace(closing, "")
        ranges = marked_ranges(text, plain, self._markers, field=field, of=f"{field} without marks")
        return plain, [list(edges) for edges in ranges]

    @staticmethod
    def _sample(rows: list[_Rating], reading: Reading) -> Sample:
        first = rows[0]
        reading.line = first.line
        raters: dict[str, set[Span]] = {}
        for row in rows:
            spans = raters.setdefault(row.rater, set())
            if row.error is not None and row.error["category"] == ADDITION and row.error.get("in") == "target":
                spans.update(Span(start, end, _TYPE) for start, end in row.error["places"])
        system, doc, segment = first.key
        errors = [row.error for row in rows if row.error is not None]
        # unique names, also if the rows of a segment are in several parts of the file or differ in a text
        met: dict[tuple[str, str, str], int] = reading.state.setdefault("met", {})
        met[first.key] = met.get(first.key, 0) + 1
        return _translation(
            first.source,
            first.target,
            ((row.get("source", ""), row.get("target", "")) for row in _head_rows(reading)),
            reading,
            id="-".join((reading.source.stem, *first.key)) + (f"-{met[first.key]}" if met[first.key] > 1 else ""),
            generator=Generator(system),
            annotations=tuple(
                Annotation(rater, Kind.HUMAN, "hat", spans=tuple(in_order(spans))) for rater, spans in raters.items()
            ),
            meta={"doc": doc, "segment": segment} | ({"errors": errors} if errors else {}),
        )


class TokenLabels(Format):
    """Token labels of translations in parallel files (Zhou et al. 2021): one line of 0 and 1 per translation.

    `NAME.label` has a label for each token, 1 if the source does not support it. `NAME.target` and `NAME.source` beside
    it have the texts, line by line, and `NAME.ref` has references, if there are any. Tokens are separated by white
    space, so punctuation belongs to its word. Runs of marked tokens become spans of type `hallucination` (taxonomy
    `hat`). The target is the response, the source the evidence; the reference goes to `meta.reference`.

    The languages are identified from the files' beginnings.
    """

    summary = "token labels of translations, in parallel files .label, .target, .source"
    containers = ("text",)
    _endings = (".source.tok", ".tok", ".target", ".source", ".ref")  # the first two are segmentations of the source
    companions = tuple(f"*{ending}" for ending in _endings)
    writable = False
    _labels = re.compile(r"[01](?: [01])*")

    def sniff(self, head: Head) -> Sniff | None:
        """By lines with only 0 and 1."""
        lines = [line for line in head.text.split("\n")[:_LINES_LOOKED_AT] if line.strip()]
        if lines and all(self._labels.fullmatch(line.rstrip()) for line in lines[:-1] or lines):
            return Sniff(0.9, "lines of 0 and 1 alone")
        return None

    def reads_beside(self, file: Path) -> bool:
        """A text file with labels beside it; without labels the suffix `.source` means nothing."""
        ending = next((ending for ending in self._endings if file.name.endswith(ending)), None)
        return ending is not None and file.with_name(file.name.removesuffix(ending) + ".label").is_file()

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per line."""
        texts = _texts(reading)
        if texts[".target"] is None:
            name = f"{reading.source.stem}.target"
            raise InputError(f"these labels belong to a text that is not here: {name!r}", "Put it beside them.")
        target, source, reference = (_line(lines, reading.line) or "" for lines in texts.values())
        sample = _translation(
            source,
            target,
            _first_texts(reading),
            reading,
            id=reading.row_name,
            generator=Generator(reading.source.stem),
            annotations=(
                Annotation("gold", Kind.HUMAN, "hat", spans=tuple(_marked_tokens(str(data).split(), target))),
            ),
            meta={"reference": reference} if reference else {},
        )
        yield sample if source else replace(sample, evidence=())

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples and bad rows; translations without labels are bad rows too, at any position."""
        after = 1
        if _texts(reading)[".source"] is None:
            reading.report.notes["without_source_file"] += 1
        for row in records:
            line = row.line or 0
            yield from self._unlabelled(after, line, reading)
            yield from super().rows(iter([row]), reading)
            after = line + 1
        yield from self._unlabelled(after, None, reading)

    @staticmethod
    def _unlabelled(start: int, end: int | None, reading: Reading) -> Iterator[FailedRow]:
        """Lines of the target from `start` up to `end` (or its last) without labels, except empty ones."""
        path, target = reading.source.path, _texts(reading)[".target"] or []
        for number in range(start, len(target) + 1 if end is None else min(end, len(target) + 1)):
            try:
                text = _line(target, number) or ""
            except InputError as error:
                yield FailedRow.of(error.at(path=path, line=number))
                continue
            if text.strip():
                yield FailedRow.of(InputError("this translation has no labels", path=path, line=number), text)
            else:
                reading.report.notes["empty_lines"] += 1


def _line(lines: list[bytes] | None, number: int) -> str | None:
    """The line of that number, without its end; None where there is none."""
    return decode_text(lines[number - 1]).strip("\ufeff\r\n") if lines and number <= len(lines) else None


def _texts(reading: Reading) -> dict[str, list[bytes] | None]:
    """The lines of the files beside the labels; None for a file that is absent."""
    stem = reading.source.stem
    return reading.once(
        "texts", lambda: {end: _lines(reading.beside(stem + end)) for end in (".target", ".source", ".ref")}
    )


def _lines(file: Path | None) -> list[bytes] | None:
    if file is None:
        return None
    with Source(file).open() as stream:
        return list(iter(stream.readline, b""))


def _first_texts(reading: Reading) -> Iterator[tuple[str, str]]:
    texts = _texts(reading)
    for number in range(1, 101):
        with suppress(InputError):  # reported with its row
            yield _line(texts[".source"], number) or "", _line(texts[".target"], number) or ""


def _marked_tokens(labels: list[str], target: str) -> Iterator[Span]:
    tokens = [match.span() for match in re.finditer(r"[^ \t]+", target)]
    if len(tokens) != len(labels):
        raise InputError(f"labels and tokens of the target differ in number, {len(labels)} and {len(tokens)}")
    wrong = next((label for label in labels if label not in {"0", "1"}), None)
    if wrong is not None:
        raise InputError(f"a label is 0 or 1, not {wrong!r}")
    for label, run in groupby(zip(labels, tokens, strict=True), key=lambda pair: pair[0]):
        ranges = [offsets for _, offsets in run]
        if label == "1":
            yield Span(ranges[0][0], ranges[-1][1], _TYPE)
