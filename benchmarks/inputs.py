"""The examples that the benchmarks run on: a file in any readable format, or our own at the length of gold rows."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import veriglot
from veriglot.records import Evidence, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "samples.jsonl"

# Mean code points of a row of mFAVA's gold files: (evidence, response) in Arabic, German, Russian and Turkish, and in
# Chinese, whose characters hold more.
GOLD_ROW = (5370, 908)
GOLD_ROW_HAN = (354, 310)
HAN = {"zh-Hans", "zh-Hant", "ja"}


def read_rows(path: str | None, count: int) -> list[Sample]:
    """`count` rows of `path` (cycled where it holds fewer), or of our examples at the length of gold rows.

    A folder is read file by file.
    """
    rows = gold_length_rows() if path is None else list(islice(_of(Path(path)), count))
    return list(islice(cycle(rows), count))


def gold_length_rows() -> list[Sample]:
    """One row per example: its language's passages and responses, repeated up to the length of a gold row."""
    samples = list(veriglot.read(EXAMPLES))
    return [_lengthened(sample, [s for s in samples if s.language == sample.language]) for sample in samples]


def _lengthened(sample: Sample, kin: Sequence[Sample]) -> Sample:
    evidence, response = GOLD_ROW_HAN if sample.language in HAN else GOLD_ROW
    first = kin.index(sample)
    order = [*kin[first:], *kin[:first]]
    passages = [passage.text for other in order for passage in other.evidence]
    return msgspec.structs.replace(
        sample,
        evidence=(Evidence(text=_repeat(passages, evidence), language=sample.language),),
        response=_repeat([other.response for other in order], response),
        annotations=(),
    )


def _repeat(texts: Sequence[str], length: int) -> str:
    parts: list[str] = []
    total = 0
    for text in cycle(texts):
        if total >= length:
            break
        parts.append(text)
        total += len(text) + 1
    return " ".join(parts)


def _of(path: Path) -> Iterator[Sample]:
    if not path.is_dir():
        yield from veriglot.read(path)
        return
    files = [_of(file) for file in sorted(path.rglob("*")) if file.is_file() and file.suffix in {".json", ".jsonl"}]
    while files:  # in turn, so that the first rows hold every file's language
        for rows in list(files):
            row = next(rows, None)
            if row is None:
                files.remove(rows)
            else:
                yield row


def code_points(rows: Sequence[Sample]) -> float:
    """Mean code points of a row: evidence, question and response."""
    return sum(len(text) for row in rows for text in texts(row)) / len(rows)


def texts(row: Sample) -> list[str]:
    """Every text of a row that a detector reads."""
    return [*(passage.text for passage in row.evidence), row.question or "", row.response]
