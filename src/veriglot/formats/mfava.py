"""mFAVA JSON: rows with `references`, `generated_text` and layers of FAVA tags, aligned with one text; and its queries.

`silver_annotations` is what the injecting model marked, `gold_annotations` what a person did. The response is
`generated_text` (the text that people and model looked at) without the tag that its end may be cut off in; both
layers are laid onto it exactly, white space and letters that the annotation tool moved notwithstanding.

Source: mFAVA (Islam et al. 2025), section 3 and the published files.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, evidence_text, need, optional, present
from veriglot.formats.language import in_the_script_of, language_of_file
from veriglot.formats.spans import type_in
from veriglot.formats.tags import parse_tags, render_tags
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task
from veriglot.records.taxonomy import taxonomy
from veriglot.text.noise import garbled, looks_glued, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.formats.containers import Head

__all__ = ["align"]


# Two copies of one text that differ a little: where each code point of one stands in the other.
#
# Annotation tools move white space, lose a full stop, or (dragging across right-to-left text) shift a letter over a
# tag. White space never counts. Words are matched first, then letters inside the stretches where words differ.


_TOKEN = re.compile(r"\w+|[^\w\s]")
_MATCHED_SHARE = 0.5
_STRETCH = 1.5
_STRETCH_SLACK = 8


@dataclass(frozen=True)
class Alignment:
    """Where the code points of one text stand in another.

    Attributes:
        first: the one text.
        second: the other.
        places: for each code point of the first text its index in the second, or -1.
        solid: code points of the first text that are not white space.
        matched: how many of those have a counterpart.
    """

    first: str
    second: str
    places: list[int]
    solid: int
    matched: int

    @property
    def exact(self) -> bool:
        """Whether nothing but white space differs, seen from the first text."""
        return self.solid == self.matched

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The range of the second text that `[start, end)` of the first stands for, white space at its edges left out.

        Where less than half of it has a counterpart, or its parts lie far apart there, the words were moved: then it
        is the nearest place where they stand, or None where they stand nowhere.
        """
        indices = [index for index in self.places[start:end] if index >= 0]
        if indices and len(indices) >= _MATCHED_SHARE * self._solid_in(start, end):
            low, high = min(indices), max(indices) + 1
            if high - low <= _STRETCH * (end - start) + _STRETCH_SLACK:
                return low, high
        return self._moved(start, end)

    def _moved(self, start: int, end: int) -> tuple[int, int] | None:
        words = self.first[start:end].split()
        if not words:
            return None
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        near = next((index for index in reversed(self.places[:start]) if index >= 0), 0)
        nearest = min(pattern.finditer(self.second), key=lambda match: abs(match.start() - near), default=None)
        return nearest.span() if nearest else None

    def _solid_in(self, start: int, end: int) -> int:
        return sum(index != _SPACE for index in self.places[start:end])


_SPACE = -2


def align(first: str, second: str) -> Alignment:
    """Align `first` onto `second`. Time is linear where only white space differs."""
    places = [_SPACE if char.isspace() else -1 for char in first]
    solid = sum(index == -1 for index in places)
    here = [i for i, index in enumerate(places) if index == -1]
    there = [i for i, char in enumerate(second) if not char.isspace()]
    if len(here) == len(there) and all(first[i] == second[j] for i, j in zip(here, there, strict=True)):
        for i, j in zip(here, there, strict=True):
            places[i] = j
        return Alignment(first, second, places, solid, solid)
    matched = _align_words(first, second, places)
    return Alignment(first, second, places, solid, matched)


def _align_words(first: str, second: str, places: list[int]) -> int:
    ours, others = list(_TOKEN.finditer(first)), list(_TOKEN.finditer(second))
    matcher = SequenceMatcher(None, [m.group() for m in ours], [m.group() for m in others], autojunk=False)
    matched = 0
    for operation, a, b, c, d in matcher.get_opcodes():
        if operation == "equal":
            for mine, other in zip(ours[a:b], others[c:d], strict=True):
                matched += _pair(places, mine.start(), other.start(), mine.end() - mine.start())
        elif operation == "replace":
            matched += _align_letters(_letters(ours[a:b]), _letters(others[c:d]), first, second, places)
    return matched


def _letters(tokens: Sequence[re.Match[str]]) -> list[int]:
    return [index for token in tokens for index in range(token.start(), token.end())]


def _align_letters(ours: list[int], others: list[int], first: str, second: str, places: list[int]) -> int:
    matcher = SequenceMatcher(None, [first[i] for i in ours], [second[i] for i in others], autojunk=False)
    matched = 0
    for a, c, size in matcher.get_matching_blocks():
        for offset in range(size):
            matched += _pair(places, ours[a + offset], others[c + offset], 1)
    return matched


def _pair(places: list[int], mine: int, other: int, size: int) -> int:
    for offset in range(size):
        places[mine + offset] = other + offset
    return size


_LAYERS = (("gold", Kind.HUMAN), ("silver", Kind.MODEL))
_REPLACING = frozenset({"entity", "relation"})
_SAME_TEXT = 0.8  # a layer of which less is found in the response is not a layer of that response


class Mfava(Format):
    """mFAVA JSON, gold and silver."""

    name = "mfava"
    summary = "mFAVA JSON, gold and silver"
    containers = ("json", "jsonl", "parquet")

    def sniff(self, head: Head) -> Sniff | None:
        """By `generated_text` with one of the two layers."""
        if head.has("generated_text") and head.has_any("gold_annotations", "silver_annotations"):
            layers = [name for name, _ in _LAYERS if f"{name}_annotations" in head.keys]
            return Sniff(0.95, f"the keys `generated_text` and `{'`, `'.join(f'{n}_annotations' for n in layers)}`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a row.

        `meta.group` is equal for rows that hold the same text; `meta.reference_garbled` says why a reference is
        unusable; `meta.glued` lists the silver spans that show a seam.
        """
        language = language_of_file(reading)
        generated = parse_tags(need(data, "generated_text", str), _types())
        response = generated.text
        if generated.report.seen:
            reading.report.layer("response").add(generated.report)
            if reading.strict:
                generated.refuse_faults("generated_text")
        annotations = []
        for name, kind in _LAYERS:
            tagged = optional(data, f"{name}_annotations", str)
            if tagged is not None:
                annotations.append(_layer(name, kind, tagged, response, reading))
        if not annotations:
            raise InputError("the row has neither layer", field="silver_annotations")
        references = optional(data, "references", str)
        meta: dict[str, Any] = {"group": _group(response)}
        broken = garbled(references) if references else None
        if broken:
            meta["reference_garbled"] = broken
            reading.report.notes[f"reference_garbled:{broken}"] += 1
        glued = _glued(annotations, response, references or "")
        if glued:
            meta["glued"] = glued
            reading.report.notes["glued_spans"] += len(glued)
        yield Sample(
            id=f"{reading.source.stem}-{line}",
            response=response,
            task=Task.QA,
            language=in_the_script_of(language, response),
            evidence=(Evidence(references, language=in_the_script_of(language, references)),) if references else (),
            annotations=tuple(annotations),
            meta=meta,
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A row with the layers that the sample has."""
        row: dict[str, Any] = {
            "references": evidence_text(sample),
            "generated_text": sample.response,
        }
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


def _types() -> tuple[str, ...]:
    return tuple(taxonomy("fava").types)


def _group(response: str) -> str:
    """The same for texts that differ in white space only."""
    return hashlib.sha256("".join(response.split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _glued(annotations: list[Annotation], response: str, references: str) -> list[list[int]]:
    """The injected replacements (silver entity and relation spans) in which old and new stand together."""
    known = words_of(references)
    return [
        [span.start, span.end]
        for annotation in annotations
        if annotation.kind is Kind.MODEL
        for span in annotation.spans or ()
        if span.type in _REPLACING and looks_glued(response[span.start : span.end], known)
    ]


def _layer(name: str, kind: Kind, text: str, response: str, reading: Reading) -> Annotation:
    tagged = parse_tags(text, _types())
    report = reading.report
    report.layer(name).add(tagged.report)
    if reading.strict:
        tagged.refuse_faults(f"{name}_annotations")
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
    spans.sort(key=lambda span: (span.start, -span.end))
    return Annotation(annotator=name, kind=kind, taxonomy="fava", spans=tuple(spans))


_REFERENCES = ("references", "reference_1", "reference_2", "reference_3", "reference_4", "reference_5")
_QUERIES = ("query_1", "query_2")


class MfavaQueries(Format):
    """mFAVA queries: Wikipedia passages with two knowledge-intensive questions each.

    There is no response: each question becomes a sample with an empty one, which detectors answer with a status, and
    from which the commands that make responses start. The passages are clean text. Source: mFAVA, section 3.
    """

    name = "mfava-queries"
    summary = "mFAVA references and queries: evidence and questions without responses"
    containers = ("csv", "jsonl", "json", "parquet")
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By the columns `query_1` and `references` or `reference_1`."""
        if head.has("query_1") and head.has_any("references", "reference_1"):
            return Sniff(0.95, "the columns `query_1` and `reference_1` or `references`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a query, its response empty."""
        named = language_of_file(reading)
        texts = [text for key in _REFERENCES if (text := optional(data, key, str)) and text.strip()]
        if not texts:
            raise InputError("the row has no reference", field="reference_1")
        broken = next(filter(None, map(garbled, texts)), None)
        if broken:
            reading.report.notes[f"reference_garbled:{broken}"] += 1
        title, url = optional(data, "Article Title", str), optional(data, "URL", str)
        meta: dict[str, Any] = {"category": optional(data, "Category", str)}
        if broken:
            meta["reference_garbled"] = broken
        language = in_the_script_of(named, texts[0])
        evidence = tuple(Evidence(text, title=title, language=language, url=url) for text in texts)
        for number, key in enumerate(_QUERIES, start=1):
            query = optional(data, key, str)
            if query is None:
                reading.report.notes["rows_without_" + key] += 1
                continue
            yield Sample(
                id=f"{reading.source.stem}-{line}-q{number}",
                response="",
                task=Task.QA,
                language=language,
                question=query,
                evidence=evidence,
                meta=present(meta),
            )
