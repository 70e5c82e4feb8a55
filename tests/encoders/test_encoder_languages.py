"""The benchmark that says which languages an encoder knows, on a declaration of our own and a tiny encoder."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from multilingual import SENTENCES

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "encoder_languages.py"
WORDS = sorted({word for text in SENTENCES.values() for word in text.split()})
PARAGRAPHS = [" ".join(random.Random(n).sample(WORDS, 12)) for n in range(45)]


def page(paragraphs: list[str], iso: str, tag: str) -> str:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    return (
        f'<!doctype html>\n<html data-code="{iso}" data-iso6393="{iso}" dir="ltr" lang="{tag}">\n<body>'
        f"<header><h2>Preamble</h2><p>Now,</p></header>"
        f'<article data-number="1">{body}</article></body></html>'
    )


@pytest.mark.slow  # two runs of the script
def test_translations_are_found_or_not(checkpoint: Path, tmp_path: Path) -> None:
    pages = {
        "eng": page(PARAGRAPHS, "eng", "en"),
        "deu": page(PARAGRAPHS, "deu", "de"),  # every paragraph is its own best translation
        "fra": page(PARAGRAPHS[1:] + PARAGRAPHS[:1], "fra", "fr"),  # none is
        "ita": page(PARAGRAPHS[:9], "ita", "it"),  # not aligned: left out
        "knc": page(PARAGRAPHS, "knc", "kr"),  # Kanuri, which our table does not have, not Korean
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text, "utf-8")
    options = ["--json", "--udhr", str(tmp_path), "--encoder", "sentence-transformers", "--model", str(checkpoint)]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    found = {row["language"]: (row["paragraphs"], row["to English"], row["from English"]) for row in table["rows"]}
    assert found == {"de": (45, 1.0, 1.0), "fr": (45, 0.0, 0.0)}
    assert table["notes"][1].endswith("directions: en de")
