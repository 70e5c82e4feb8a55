"""Texts with inline tags: in general, and as FAVA has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, need, optional, present, spanned_annotation
from veriglot.formats.language import identified, language_of_file, stated_language
from veriglot.formats.tags import Edits, Tagged, parse_tags, render_tags
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Task
from veriglot.records.taxonomy import taxonomies, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head

__all__ = []

_TAG = re.compile(r"<([A-Za-z_]+)>")
_PROMPT = re.compile(r"\s*Read the following references:\s*(.*?)\s*Please identify all the errors.*?Text:", re.DOTALL)
_KEPT = ("subject", "type", "dataset", "output")


def _taxonomy_of(tagged: str) -> str:
    """The taxonomy most of whose types are tags here; FAVA's where there are none."""
    used = _TAG.findall(tagged)
    counts = {name: sum(tag in each.types for tag in used) for name, each in taxonomies().items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "fava"


def _parsed(text: str, taxonomy_name: str, edits: Edits, field: str, reading: Reading) -> Tagged:
    tagged = parse_tags(text, tuple(taxonomy(taxonomy_name).types), edits=edits)
    reading.report.layer("tagged").add(tagged.report)
    if reading.strict:
        tagged.refuse_faults(field)
    return tagged


class Inline(Format):
    """Inline tags in general: plain text with a response a line, or records with a tagged text.

    A record has the key `tagged`; the taxonomy is the one whose types the tags are.
    """

    name = "inline"
    summary = "inline tags: a response a line, or records with `tagged`"
    containers = ("jsonl", "text", "json", "csv", "parquet")

    def sniff(self, head: Head) -> Sniff | None:
        """By the key `tagged`, or by tags of a known type in a text."""
        if head.has("tagged"):
            return Sniff(0.9, "the key `tagged`")
        known = {type_ for each in taxonomies().values() for type_ in each.types}
        if head.container == "text" and any(tag.lower() in known for tag in _TAG.findall(head.text)):
            return Sniff(0.7, "text with tags of known types")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a line or record."""
        record = {"tagged": data} if isinstance(data, str) else data
        text = need(record, "tagged", str)
        name = optional(record, "taxonomy", str) or _taxonomy_of(text)
        if name not in taxonomies():
            raise InputError(
                f"there is no taxonomy {name!r}", field="taxonomy", remedy=f"Known: {', '.join(taxonomies())}."
            )
        tagged = _parsed(text, name, "strip", "tagged", reading)
        language = stated_language(record) or language_of_file(reading)
        passages = record.get("evidence")
        passages = [passages] if isinstance(passages, str) else optional(record, "evidence", list) or []
        annotator = optional(record, "annotator", str) or "gold"
        kind = Kind.MODEL if record.get("kind") == Kind.MODEL else Kind.HUMAN
        yield Sample(
            id=reading.row_id(record, line),
            response=tagged.text,
            language=language,
            question=optional(record, "question", str),
            evidence=tuple(Evidence(str(passage)) for passage in passages),
            annotations=(Annotation(annotator=annotator, kind=kind, taxonomy=name, spans=tuple(tagged.spans)),),
        )

    def record(self, sample: Sample) -> dict[str, Any]:
        """A record of the first annotation that has spans."""
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

    In `annotated` and `completion`, `<delete>` holds what the response said and `<mark>` what it should say; in
    `errored_passage` it is the other way round. What should stand instead goes to `meta.corrections`.
    """

    name = "fava"
    summary = "FAVA records with <mark> and <delete> inside the tags"
    containers = ("json", "jsonl", "parquet")
    writable = False
    _fields: tuple[tuple[str, Edits, Kind], ...] = (
        ("annotated", "delete", Kind.HUMAN),
        ("completion", "delete", Kind.MODEL),
        ("errored_passage", "mark", Kind.MODEL),
    )

    def sniff(self, head: Head) -> Sniff | None:
        """By `annotated`, `completion` or `errored_passage` with tags in it."""
        for key, _, _ in self._fields:
            inside = head.record.get(key) if head.record else None
            if isinstance(inside, str) and ("<delete>" in inside or _TAG.search(inside)):
                return Sniff(0.8, f"tags in the key `{key}`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:
        """One sample a record; its language is what `language` says, or else identified from the text."""
        key, edits, kind = next(
            (each for each in self._fields if isinstance(data, dict) and isinstance(data.get(each[0]), str)),
            self._fields[0],
        )
        tagged = _parsed(need(data, key, str), "fava", edits, key, reading)
        prompt = optional(data, "prompt", str) or ""
        match = _PROMPT.match(prompt)
        evidence = match.group(1) if match else optional(data, "evidence", str)
        model = optional(data, "model", str)
        language = stated_language(data) or reading.language or identified(tagged.text, reading)
        meta: dict[str, Any] = {name: data[name] for name in _KEPT if isinstance(data.get(name), str)}
        if tagged.corrections:
            meta["corrections"] = [{"start": c.start, "end": c.end, "text": c.text} for c in tagged.corrections]
        annotation = Annotation(
            annotator="gold" if kind is Kind.HUMAN else "model", kind=kind, taxonomy="fava", spans=tuple(tagged.spans)
        )
        yield Sample(
            id=reading.row_id(data, line),
            response=tagged.text,
            task=Task.QA if prompt and not match else Task.OPEN,
            language=language,
            question=prompt if prompt and not match else None,
            evidence=(Evidence(evidence),) if evidence else (),
            generator=Generator(model) if model else None,
            annotations=(annotation,),
            meta=meta,
        )
