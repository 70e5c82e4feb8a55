"""Writes probes.jsonl from the files in authoring/: pairs that tell meaning from words.

Each pair has evidence and two responses to it. The right one says what the evidence says in other words; the wrong one
keeps most of its words and turns what they say. Marks stand as tags inside the wrong one, as in examples/authoring.
Whoever counts shared words takes the wrong one for the better supported; a test holds every pair to that.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.records import Annotation, Evidence, Kind, Sample, Task, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
AUTHORING = HERE / "authoring"
PROBES = HERE / "probes.jsonl"

sys.path.insert(0, str(HERE.parent))

from make_samples import read_marks  # noqa: E402  the tags are those of the examples

# What the wrong response turns.
TURNS = frozenset({"number", "name", "place", "time", "role", "polarity", "degree", "cause", "kind"})


def pair_of(language: str, number: int, entry: dict[str, Any]) -> tuple[Sample, Sample]:
    """The right and the wrong sample of an entry in an authoring file; `number` counts from 1 within the language.

    Raises:
        ValueError: the entry's turn is unknown, the right response has marks, or the wrong one has none.
    """
    if entry["turn"] not in TURNS:
        raise ValueError(f"{language}, pair {number}: no turn {entry['turn']!r}; there are {', '.join(sorted(TURNS))}")
    samples = []
    for name in ("right", "wrong"):
        response, spans = read_marks(entry[name])
        if bool(spans) != (name == "wrong"):
            raise ValueError(f"{language}, pair {number}: only the wrong response has marks, and it has one")
        sample = Sample(
            id=f"{language}-{number}-{name}",
            task=Task.SUMMARIZATION,
            language=language,
            evidence=(Evidence(text=entry["evidence"], language=language),),
            response=response,
            annotations=(Annotation(annotator="authors", kind=Kind.HUMAN, taxonomy="fava", spans=spans),),
            meta={"pair": f"{language}-{number}", "group": f"{language}-{number}", "turn": entry["turn"]},
        )
        samples.append(sample)
    return samples[0], samples[1]


def authored() -> Iterator[Sample]:
    """Every sample, the right one of a pair before the wrong one, in the order of the languages' tags."""
    for path in sorted(AUTHORING.glob("*.toml")):
        data = tomllib.loads(path.read_text("utf-8"))
        for number, entry in enumerate(data["pair"], start=1):
            yield from pair_of(data["language"], number, entry)


def as_jsonl() -> bytes:
    """The content of probes.jsonl."""
    return b"".join(encode(sample) + b"\n" for sample in authored())


if __name__ == "__main__":
    PROBES.write_bytes(as_jsonl())
    print(f"{PROBES.relative_to(HERE.parents[1])}: {sum(1 for _ in authored())} samples")
