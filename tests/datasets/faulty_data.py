"""Made-up data sets with a known number of faults."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from veriglot.records import Annotation, Evidence, Kind, Sample, Span, encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NOUNS = (
    "mill", "bridge", "harbour", "chapel", "library", "tower", "garden", "market", "school", "castle", "forest",
    "valley", "island", "museum", "station", "theatre", "factory", "cathedral", "village", "palace", "lighthouse",
    "hospital", "monastery", "orchard", "quarry",
)  # fmt: skip
_ADJECTIVES = (
    "old", "narrow", "northern", "small", "wooden", "famous", "quiet", "ruined", "modern", "wealthy", "distant",
    "royal", "forgotten", "crowded", "stony", "green", "windy", "ancient", "painted", "public",
)  # fmt: skip
_VERBS = (
    "overlooks", "belonged to", "stood behind", "was moved beside", "replaced", "was named after", "looks much like",
    "was paid for by", "lies below", "was burnt together with", "owned", "kept the records of",
)  # fmt: skip
_TAILS = (
    "after the great flood", "before the railway came", "while the guild ruled", "because the council asked for it",
    "when the harvest failed", "although nobody wanted it", "until the war ended", "as travellers have told",
    "since the road was closed", "so that the people could rest",
)  # fmt: skip


def sentences(count: int, seed: int) -> list[str]:
    """Different sentences of made-up chronicles, without near-duplicates."""
    chance = random.Random(seed)
    found: list[str] = []
    for _ in range(count):
        nouns, adjectives = chance.sample(_NOUNS, 4), chance.sample(_ADJECTIVES, 4)
        first, second, third, fourth = (f"the {a} {n}" for a, n in zip(adjectives, nouns, strict=True))
        verbs, tails = chance.sample(_VERBS, 2), chance.sample(_TAILS, 2)
        text = f"{first} {verbs[0]} {second} {tails[0]}, and {third} {verbs[1]} {fourth} {tails[1]}."
        found.append(text[0].upper() + text[1:])
    return found


def sample(
    id_: str,
    response: str,
    spans: Iterable[tuple[int, int, str]] | None = (),
    *,
    evidence: str | None = None,
    kind: Kind = Kind.MODEL,
    annotator: str = "silver",
    language: str | None = "en",
    texts: bool = False,
    **more: Any,
) -> Sample:
    """A sample with one annotation in fava's types; none if `spans` is None."""
    marks = (
        None
        if spans is None
        else tuple(Span(start, end, type_, text=response[start:end] if texts else None) for start, end, type_ in spans)
    )
    annotations = () if marks is None else (Annotation(annotator, kind, "fava", spans=marks),)
    passages = (Evidence(evidence),) if evidence is not None else ()
    return Sample(id_, response, language=language, evidence=passages, annotations=annotations, **more)


def write(path: Path, rows: Iterable[Sample | bytes]) -> Path:
    """Write native JSON lines; bytes are written unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((row if isinstance(row, bytes) else encode(row)) + b"\n" for row in rows))
    return path


def sound(count: int, seed: int, prefix: str = "r") -> list[Sample]:
    """Rows without faults: every second one is clean, the others have a marked name."""
    rows = []
    for number, text in enumerate(sentences(2 * count, seed)[:count]):
        evidence = " ".join(sentences(6, 1000 * seed + number))
        spans = [(text.rindex(" ") + 1, len(text) - 1, "entity")] if number % 2 else []
        rows.append(sample(f"{prefix}{number}", text, spans, evidence=evidence))
    return rows
