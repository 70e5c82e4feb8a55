"""The front matter of a card: what the Hugging Face Hub reads of it. Values are written as JSON, which YAML holds."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from veriglot.build.cards.card import Card

__all__ = ["front_matter"]

_SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"),
)  # fmt: skip
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_NATIVE = {"jsonl", "parquet", "native"}


def front_matter(card: Card) -> str:
    """The block, with its lines of dashes. What is not known is left out, but for the licence: `unknown`."""
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in _fields(card).items() if value]
    return "\n".join(["---", *lines, "---"])


def _fields(card: Card) -> dict[str, Any]:
    languages = sorted({tag.partition("-")[0] for tag, _ in card.contents.cells if tag})
    rows = card.contents.rows
    kinds = {one.kind for one in card.checks.labels}
    spans = any(one.types for one in card.checks.labels)
    return {
        "pretty_name": card.given.about.title,
        "language": languages,
        "multilinguality": [] if not languages else ["multilingual" if len(languages) > 1 else "monolingual"],
        "license": card.given.licence.id or "unknown",
        "size_categories": [next((name for bound, name in _SIZES if rows < bound), "n>100M")],
        "task_categories": ["token-classification"] if spans else [],
        "annotations_creators": ["machine-generated"] if kinds == {"model"} else [],
        "tags": ["hallucination-detection"],
        "configs": _configs(card),
    }


def _configs(card: Card) -> list[dict[str, Any]]:
    """Which file is which split, where each is one of the Hub's three and in the native format."""
    files = card.files
    if not files or any(one.split not in _SPLITS or one.format not in _NATIVE for one in files):
        return []
    by_split: dict[str, list[str]] = {}
    for one, name in zip(files, card.names, strict=True):
        by_split.setdefault(_SPLITS[one.split or ""], []).append(PurePath(name).as_posix())
    return [{"config_name": "default", "data_files": [{"split": k, "path": v} for k, v in by_split.items()]}]
