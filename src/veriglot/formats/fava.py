"""Texts with inline tags: mFAVA and its queries, FAVA, and tagged texts in general."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, need, optional, present, spanned_annotation, type_in
from veriglot.formats.tags import Tagged, in_order, parse_tags, render_tags
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task
from veriglot.records.languages import get_language, languages
from veriglot.records.taxonomy import taxonomies, taxonomy
from veriglot.text.noise import garbled, looks_glued
from veriglot.text.unicode import script_shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.formats.containers import Head

__all__ = []


# Alignment of two versions of one text: the position of each code point of one in the other.
#
# Annotation tools move white space, lose a full stop, or (after dragging across right-to-left text) move a letter to
# the other side of a tag. White space never counts. Words are matched first, then letters in the segments that differ.


_TOKEN = re.compile(r"\w+|[^\w\s]")
_MATCHED_SHARE = 0.5
_STRETCH = 1.5
_STRETCH_SLACK = 8


@dataclass(frozen=True)
class _Alignment:
    """Position of each code point of one text in another: its index there, or -1, or -2 for white space.

    `solid` counts the code points that are not white space, and `matched` those with a counterpart.
    """

    first: str
    second: str
    places: list[int]
    solid: int
    matched: int

    @property
    def exact(self) -> bool:
        """Whether the texts differ only in white space, as seen from the first text."""
        return self.solid == self.matched

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The range of the second text for `[start, end)` of the first, without outer white space.

        If less than half of it has a counterpart, or its parts are far apart there, the words were moved: then it is
        the nearest occurrence of the words, or None if there is none.
        """
        indices = [index for index in self.places[start:end] if index >= 0]
        if indices and len(indices) >= _MATCHED_SHARE * sum(index != _SPACE for index in self.places[start:end]):
            low, high = min(indices), max(indices) + 1
            if high - low <= _STRETCH * (end - start) + _STRETCH_SLACK:
                return low, high
        words = self.first[start:end].split()
        if not words:
            return None
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        near = next((index for index in reversed(self.places[:start]) if index >= 0), 0)
        nearest = min(pattern.finditer(self.second), key=lambda match: abs(match.start() - near), default=None)
        return nearest.span() if nearest else None


_SPACE = -2


def align(first: str, second: str) -> _Alignment:
    """Align `first` with `second`. Time is linear if only white space differs."""
    places = [_SPACE if char.isspace() else -1 for char in first]
    here = [i for i, char in enumerate(first) if not char.isspace()]
    there = [i for i, char in enumerate(second) if not char.isspace()]
    same = [first[i] for i in here] == [second[j] for j in there]
    for i, j in zip(here, there, strict=True) if same else _pairs(first, second):
        places[i] = j
    return _Alignment(first, second, places, len(here), sum(index >= 0 for index in places))


def _pairs(first: str, second: str) -> Iterator[tuple[int, int]]:
    """Equal letters of two texts: words are matched first, then letters in the segments that differ."""
    ours, others = list(_TOKEN.finditer(first)), list(_TOKEN.finditer(second))
    for equal, a, b, c, d in _blocks([m.group() for m in ours], [m.group() for m in others]):
        here, there = (
            [index for token in tokens for index in range(*token.span())] for tokens in (ours[a:b], others[c:d])
        )
        if equal:
            yield from zip(here, there, strict=True)
            continue
        for alike, start, end, low, high in _blocks([first[i] for i in here], [second[j] for j in there]):
            if alike:
                yield from zip(here[start:end], there[low:high], strict=True)


def _blocks(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Ranges of two sequences that are equal, or replaced by each other."""
    for operation, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if operation in {"equal", "replace"}:
            yield operation == "equal", a, b, c, d


_LAYERS = (("gold", Kind.HUMAN), ("silver", Kind.MODEL))
_REPLACING = frozenset({"entity", "relation"})
_SAME_TEXT = 0.8  # if less of a layer is in the response, it is not a layer of that response


class Mfava(Format):
    """mFAVA JSON: rows with `references`, `generated_text` and layers of FAVA tags, aligned with one text; and its
    queries.

    `silver_annotations` has the marks of the model that inserted errors, `gold_annotations` those of a person. The
    response is `generated_text`, which both saw; a truncated tag at its end is removed. Both layers are aligned with it
    exactly, even if the annotation tool moved white space or letters.

    Source: mFAVA (Islam et al. 2025), section 3 and the published files.
    """

    summary = "mFAVA JSON, gold and silver"
    containers = ("json", "jsonl", "parquet")
    keys = ("generated_text",)
    any_keys = ("gold_annotations", "silver_annotations")

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per row.

        `meta.group` is equal for rows with the same text; `meta.reference_garbled` says why a reference is unusable;
        `meta.glued` lists silver spans where old and new text were joined.
        """
        language = reading.language_of_file()
        response = _parsed(need(data, "generated_text", str), "response", "generated_text", reading).text
        annotations = []
        for name, kind in _LAYERS:
            tagged = optional(data, f"{name}_annotations", str)
            if tagged is not None:
                annotations.append(_layer(name, kind, tagged, response, reading))
        if not annotations:
            raise InputError("the row has neither layer", field="silver_annotations")
        references = optional(data, "references", str)
        meta: dict[str, Any] = {"group": _group(response), **_garbled([references or ""], reading)}
        glued = _glued(annotations, response, references or "")
        if glued:
            meta["glued"] = glued
            reading.report.notes["glued_spans"] += len(glued)
        yield Sample(
            reading.row_name,
            response,
            task=Task.QA,
            language=_in_the_script_of(language, response),
            evidence=(Evidence(references, language=_in_the_script_of(language, references)),) if references else (),
            annotations=tuple(annotations),
            meta=meta,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the layers of the sample."""
        row = {"references": sample.evidence_text, "generated_text": sample.response}
        for annotation in sample.annotations:
            key = f"{annotation.annotator}_annotations"
            if annotation.annotator in dict(_LAYERS) and annotation.spans is not None and key not in row:
                row[key] = render_tags(sample.response, _with_fava_types(annotation))
        if len(row) == 2:
            raise InputError("a row of mFAVA has spans of an annotator named `gold` or `silver`")
        return row


def _with_fava_types(annotation: Annotation) -> list[Span]:
    typed = [(span, type_in("fava", annotation, span)) for span in annotation.spans or ()]
    spans = [Span(span.start, span.end, type_) for span, type_ in typed if type_ is not None]
    if typed and not spans:
        raise InputError(f"no type of the spans of {annotation.annotator!r} has a counterpart among FAVA's")
    return spans


def _garbled(references: list[str], reading: Reading) -> dict[str, str]:
    """Why references are unusable, for `meta` and counted in the report; empty if all are usable."""
    broken = next(filter(None, map(garbled, references)), None)
    if broken is None:
        return {}
    reading.report.notes[f"reference_garbled:{broken}"] += 1
    return {"reference_garbled": broken}


def _group(response: str) -> str:
    """A hash that is equal for texts that differ only in white space."""
    return hashlib.sha256("".join(response.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _glued(annotations: list[Annotation], response: str, references: str) -> list[list[int]]:
    """The replacements by the model (silver entity and relation spans) that contain both old and new text."""
    return [
        [span.start, span.end]
        for annotation in annotations
        if annotation.kind is Kind.MODEL
        for span in annotation.spans or ()
        if span.type in _REPLACING and looks_glued(response[span.start : span.end], references)
    ]


def _layer(name: str, kind: Kind, text: str, response: str, reading: Reading) -> Annotation:
    tagged, report = _parsed(text, name, f"{name}_annotations", reading), reading.report
    alignment = align(tagged.text, response)
    if alignment.matched < _SAME_TEXT * alignment.solid:
        raise InputError("the annotated text is not the generated text", field=f"{name}_annotations")
    if not alignment.exact:
        reading.repaired(f"{name}:realigned_rows", "the annotated text differs from the generated text")
    elif tagged.text != response:
        report.notes[f"{name}:moved_spaces"] += 1
    spans = []
    for span in tagged.spans:
        placed = alignment.span(span.start, span.end)
        if placed is None:
            reading.repaired(f"{name}:spans_not_in_response", "a marked text is not in the generated text")
            report.layer(name).spans[span.type or ""] -= 1
        else:
            spans.append(Span(*placed, span.type))
    return Annotation(name, kind, "fava", spans=tuple(in_order(spans)))


def _in_the_script_of(tag: str | None, text: str) -> str | None:
    """The tag of the same language with the script of `text`: `sr-Latn` for Serbian in Latin letters.

    It distinguishes only Latin and Cyrillic; other tags are returned unchanged.
    """
    if tag is None:
        return None
    forms = {each.script: each.tag for each in languages().values() if each.base == get_language(tag).base}
    if not forms.keys() >= {"Latn", "Cyrl"}:
        return tag
    shares = script_shares(text[:2000])
    latin, cyrillic = (shares.get(script, 0) for script in ("Latn", "Cyrl"))
    return tag if latin == cyrillic else forms["Latn" if latin > cyrillic else "Cyrl"]


_REFERENCES = ("references", "reference_1", "reference_2", "reference_3", "reference_4", "reference_5")
_QUERIES = ("query_1", "query_2")


class MfavaQueries(Format):
    """mFAVA queries: Wikipedia passages with two knowledge-intensive questions each.

    Each question becomes a sample with an empty response, for the commands that generate responses; detectors return a
    status for it. The passages have no tags. Source: mFAVA, section 3.
    """

    summary = "mFAVA references and queries: evidence and questions without responses"
    containers = ("csv", "jsonl", "json", "parquet")
    keys = ("query_1",)
    any_keys = ("references", "reference_1")
    writable = False

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per query, with an empty response."""
        named = reading.language_of_file()
        texts = [text for key in _REFERENCES if (text := optional(data, key, str)) and text.strip()]
        if not texts:
            raise InputError("the row has no reference", field="reference_1")
        meta = {"category": optional(data, "Category", str), **_garbled(texts, reading)}
        title, url = optional(data, "Article Title", str), optional(data, "URL", str)
        language = _in_the_script_of(named, texts[0])
        evidence = tuple(Evidence(text, title=title, language=language, url=url) for text in texts)
        for number, key in enumerate(_QUERIES, 1):
            query = optional(data, key, str)
            if query is None:
                reading.report.notes["rows_without_" + key] += 1
                continue
            yield Sample(
                f"{reading.source.stem}-{reading.line}-q{number}",
                "",
                task=Task.QA,
                language=language,
                question=query,
                evidence=evidence,
                meta=present(meta),
            )


_TAG = re.compile(r"<([A-Za-z_]+)>")
_PROMPT = re.compile(r"\s*Read the following references:\s*(.*?)\s*Please identify all the errors.*?Text:", re.DOTALL)
_META = ("subject", "type", "dataset", "output")


def _taxonomy_of(tagged: str) -> str:
    """The taxonomy with the most types among the tags; FAVA's if there are none."""
    used = _TAG.findall(tagged)
    counts = {name: sum(tag in each.types for tag in used) for name, each in taxonomies().items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "fava"


def _parsed(
    text: str, layer: str, field: str, reading: Reading, *, types: str = "fava", edits: str = "strip"
) -> Tagged:
    """A parsed tagged text; its tags are counted for a layer if there are any, and errors are refused if strict."""
    tagged = parse_tags(text, tuple(taxonomy(types).types), edits=edits)
    if tagged.report.seen or layer != "response":
        reading.report.layer(layer).add(tagged.report)
    if reading.strict:
        tagged.refuse_faults(field)
    return tagged


class Inline(Format):
    """Inline tags (`Opened in <entity>1879</entity>.`): text with one response per line, or records with `tagged`.

    The taxonomy is the one with the most types among the tags.
    """

    summary = "inline tags: one response per line, or records with `tagged`"
    containers = ("jsonl", "text", "json", "csv", "parquet")
    keys = ("tagged",)
    confidence = 0.9

    def sniff(self, head: Head) -> Sniff | None:
        """By the key `tagged`, or by tags of a known type in a text."""
        known = {type_ for each in taxonomies().values() for type_ in each.types}
        if head.container == "text" and any(tag.lower() in known for tag in _TAG.findall(head.text)):
            return Sniff(0.7, "text with tags of known types")
        return super().sniff(head)

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per line or record."""
        record = {"tagged": data} if isinstance(data, str) else data
        text = need(record, "tagged", str)
        name = optional(record, "taxonomy", str) or _taxonomy_of(text)
        if name not in taxonomies():
            raise InputError(f"there is no taxonomy {name!r}", f"Known: {', '.join(taxonomies())}.", field="taxonomy")
        tagged = _parsed(text, "tagged", "tagged", reading, types=name)
        language = reading.stated_language(record) or reading.language_of_file()
        passages = record.get("evidence")
        passages = [passages] if isinstance(passages, str) else optional(record, "evidence", list) or []
        annotator = optional(record, "annotator", str) or "gold"
        kind = Kind.MODEL if record.get("kind") == Kind.MODEL else Kind.HUMAN
        yield Sample(
            reading.row_id(record),
            tagged.text,
            language=language,
            question=optional(record, "question", str),
            evidence=tuple(Evidence(str(passage)) for passage in passages),
            annotations=(Annotation(annotator, kind, name, spans=tuple(tagged.spans)),),
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A record with the first annotation that has spans."""
        annotation = spanned_annotation(sample)
        if annotation is None:
            raise InputError("a tagged text has the spans of an annotator")
        row: dict[str, Any] = {
            "id": sample.id,
            "language": sample.language,
            "question": sample.question,
            "evidence": [passage.text for passage in sample.evidence] or None,
            "tagged": render_tags(sample.response, annotation.spans or ()),
            "taxonomy": annotation.taxonomy,
            "annotator": annotation.annotator,
            "kind": annotation.kind,
        }
        return present(row)


class Fava(Format):
    """Records of FAVA (Mishra et al. 2024), with `<mark>` and `<delete>` inside the tags.

    In `annotated` and `completion`, `<delete>` has the text of the response and `<mark>` its correction; in
    `errored_passage` it is the other way round. Corrections go to `meta.corrections`.
    """

    summary = "FAVA records with <mark> and <delete> inside the tags"
    containers = ("json", "jsonl", "parquet")
    writable = False
    _fields: tuple[tuple[str, str, Kind], ...] = (
        ("annotated", "delete", Kind.HUMAN),
        ("completion", "delete", Kind.MODEL),
        ("errored_passage", "mark", Kind.MODEL),
    )

    def sniff(self, head: Head) -> Sniff | None:
        """By `annotated`, `completion` or `errored_passage` that contain tags."""
        for key, _, _ in self._fields:
            inside = head.record.get(key) if head.record else None
            if isinstance(inside, str) and ("<delete>" in inside or _TAG.search(inside)):
                return Sniff(0.8, f"tags in the key `{key}`")
        return None

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """One sample per record; its language is from `language`, or else detected from the text."""
        key, edits, kind = next(
            (each for each in self._fields if isinstance(data, dict) and isinstance(data.get(each[0]), str)),
            self._fields[0],
        )
        tagged = _parsed(need(data, key, str), "tagged", key, reading, edits=edits)
        prompt = optional(data, "prompt", str) or ""
        match = _PROMPT.match(prompt)
        evidence = match.group(1) if match else optional(data, "evidence", str)
        model = optional(data, "model", str)
        language = reading.stated_language(data) or reading.language or reading.identified(tagged.text)
        meta: dict[str, Any] = {name: data[name] for name in _META if isinstance(data.get(name), str)}
        if tagged.corrections:
            meta["corrections"] = [{"start": c.start, "end": c.end, "text": c.text} for c in tagged.corrections]
        annotation = Annotation("gold" if kind is Kind.HUMAN else "model", kind, "fava", spans=tuple(tagged.spans))
        yield Sample(
            reading.row_id(data),
            tagged.text,
            task=Task.QA if prompt and not match else Task.OPEN,
            language=language,
            question=prompt if prompt and not match else None,
            evidence=(Evidence(evidence),) if evidence else (),
            generator=Generator(model) if model else None,
            annotations=(annotation,),
            meta=meta,
        )
