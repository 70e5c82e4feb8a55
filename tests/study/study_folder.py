"""Studies of the examples' own texts, for the tests: queries, a labelled file, a study file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.formats.reader import read
from veriglot.records import Evidence, Generator, Sample, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "samples.jsonl"
LANGUAGES = ("de", "en", "fr")


def samples(count: int, languages: Sequence[str] = LANGUAGES) -> Iterator[Sample]:
    """`count` samples with evidence and a question each, from the examples of these languages in turn."""
    known = {tag: [sample for sample in read(EXAMPLES) if sample.language == tag] for tag in languages}
    for number in range(count):
        kin = known[languages[number % len(languages)]]
        sample = kin[number // len(languages) % len(kin)]
        yield Sample(
            id=f"q{number}",
            response=sample.response,
            language=sample.language,
            question=f"{sample.question or 'What does the text say?'} ({number})",
            evidence=tuple(Evidence(f"{passage.text} {number}.") for passage in sample.evidence),
        )


def write_queries(path: Path, count: int, languages: Sequence[str] = LANGUAGES) -> None:
    """Queries: samples without a response."""
    write_rows(path, (msgspec.structs.replace(sample, response="") for sample in samples(count, languages)))


def write_responses(path: Path, models: Sequence[str], count: int, languages: Sequence[str] = LANGUAGES) -> None:
    """`count` responses of each model, in five seeds; the first model says what the examples say, the others less."""
    write_rows(
        path,
        (
            msgspec.structs.replace(
                sample,
                id=f"{sample.id}/{model}/{number % 5}",
                response=sample.response if not place else sample.evidence[0].text,
                generator=Generator(model, seed=number % 5),
                meta={"query": sample.id, "finish": "stop"},
            )
            for number, sample in enumerate(samples(count, languages))
            for place, model in enumerate(models)
        ),
    )


def write_rows(path: Path, rows: Iterator[Sample]) -> None:
    path.write_bytes(b"".join(encode(row) + b"\n" for row in rows))


def outputs(folder: Path) -> dict[str, bytes]:
    """What a run made, by name: all but the calls, how far each file is, and the study file."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cache" not in path.parts and path.suffix not in {".progress", ".asked", ".key"}
        and path.name != "study.toml"
    }  # fmt: skip
