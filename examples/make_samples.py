"""Writes samples.jsonl from the files in authoring/, where the marks stand as tags inside the text.

Each file holds one language. A mark is `<type>words</type>` with a type of the taxonomy `fava`; tags never nest.
Offsets are counted here, in code points of the text without its tags, so that nobody counts them by hand.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, encode
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
AUTHORING = HERE / "authoring"
SAMPLES = HERE / "samples.jsonl"

_MARK = re.compile(r"<([a-z]+)>(.*?)</\1>", re.DOTALL)


def read_marks(tagged: str) -> tuple[str, tuple[Span, ...]]:
    """The text without its tags, and the spans that the tags marked.

    Raises:
        ValueError: a tag is left over: misspelt, unclosed or nested.
        UnknownNameError: a tag is no type of the taxonomy.
    """
    plain: list[str] = []
    spans: list[Span] = []
    length = position = 0
    for mark in _MARK.finditer(tagged):
        before, (type_, words) = tagged[position : mark.start()], mark.groups()
        start = length + len(before)
        length = start + len(words)
        plain += [before, words]
        spans.append(Span(start=start, end=length, type=taxonomy("fava").check(type_), text=words))
        position = mark.end()
    text = "".join([*plain, tagged[position:]])
    if "<" in text or ">" in text:
        raise ValueError(f"a tag is left over in {text!r}")
    return text, tuple(spans)


def sample_of(language: str, number: int, entry: dict[str, Any]) -> Sample:
    """One sample from its entry in an authoring file; `number` counts from 1 within the language."""
    response, spans = read_marks(entry["response"])
    question = entry.get("question")
    return Sample(
        id=f"{language}-{number}",
        task=Task.QA if question else Task.SUMMARIZATION,
        language=language,
        question=question,
        evidence=tuple(Evidence(text=text, title=entry["title"], language=language) for text in entry["evidence"]),
        response=response,
        annotations=(Annotation(annotator="authors", kind=Kind.HUMAN, taxonomy="fava", spans=spans),),
    )


def authored() -> Iterator[Sample]:
    """Every sample, in the order of the languages' tags."""
    for path in sorted(AUTHORING.glob("*.toml")):
        data = tomllib.loads(path.read_text("utf-8"))
        for number, entry in enumerate(data["sample"], start=1):
            yield sample_of(data["language"], number, entry)


def as_jsonl() -> bytes:
    """The content of samples.jsonl."""
    return b"".join(encode(sample) + b"\n" for sample in authored())


if __name__ == "__main__":
    SAMPLES.write_bytes(as_jsonl())
    print(f"{SAMPLES.relative_to(HERE.parent)}: {sum(1 for _ in authored())} samples")
