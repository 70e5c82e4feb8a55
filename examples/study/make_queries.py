"""Writes queries.jsonl from the files in authoring/: the questions of a study, each with the passage that answers it.

Each file holds one language. A passage has two questions, and each question an answer: words of the passage, letter by
letter, so that every question can be answered from its evidence.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.records import Evidence, Sample, Task, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
AUTHORING = HERE / "authoring"
QUERIES = HERE / "queries.jsonl"


def queries_of(language: str, number: int, passage: dict[str, Any]) -> Iterator[Sample]:
    """The queries of one passage; `number` counts from 1 within the language.

    `meta` says with `group` which queries share a passage, and with `invented` that the passage describes something
    that does not exist, so that no model can know it; `answer` is the part of the passage that answers the question.

    Raises:
        ValueError: an answer does not stand in its passage.
    """
    text, group = passage["evidence"], f"{language}-{number}"
    for place, question in enumerate(passage["questions"], start=1):
        if question["answer"] not in text:
            raise ValueError(f"{group}: the passage does not contain {question['answer']!r}")
        yield Sample(
            id=f"{group}-q{place}",
            response="",
            task=Task.QA,
            language=language,
            question=question["ask"],
            evidence=(Evidence(text=text, title=passage["title"], language=language),),
            meta={"group": group, "invented": passage.get("invented", False), "answer": question["answer"]},
        )


def authored() -> Iterator[Sample]:
    """Every query, in the order of the languages' tags."""
    for path in sorted(AUTHORING.glob("*.toml")):
        data = tomllib.loads(path.read_text("utf-8"))
        for number, passage in enumerate(data["passage"], start=1):
            yield from queries_of(data["language"], number, passage)


def as_jsonl() -> bytes:
    """The content of queries.jsonl."""
    return b"".join(encode(sample) + b"\n" for sample in authored())


if __name__ == "__main__":
    QUERIES.write_bytes(as_jsonl())
    print(f"{QUERIES.relative_to(HERE.parents[1])}: {sum(1 for _ in authored())} queries")
