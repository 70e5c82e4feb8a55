"""The default aligner: the best available one, with its signature."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from settings_file import main
from veriglot import read
from veriglot.datasets.translation import projection
from veriglot.datasets.translation.projection import side_of
from veriglot.datasets.translation.translators import load_aligner
from veriglot.hub import registry
from veriglot.records import Annotation, Kind, Sample, Span, encode

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = {"rules": [{"match": "Text:\n1879", "reply": "1879"},
                    {"reply": "Im Jahr 1879 wurde die Brücke von Anna eröffnet."}]}  # fmt: skip


def translated(folder: Path, *more: str) -> tuple[str, Sample]:
    """The aligner in the manifest, and the translated row."""
    gold = Annotation("gold", Kind.HUMAN, "fava", spans=(Span(26, 30, "entity"),))
    row = Sample("a", "Anna opened the bridge in 1879.", language="en", annotations=(gold,))
    data, script, out = (folder / name for name in ("data.jsonl", "script.json", "out.jsonl"))
    data.write_bytes(encode(row) + b"\n")
    script.write_text(json.dumps(SCRIPT), "utf-8")
    words = ["-l", "de", "--translator", "llm", "-m", "m", "--mock-rules", str(script), "--strategy"]
    assert main(["dataset", "translate", str(data), *words, "align", *more, "-o", str(out), "-q"]) == 0
    (made,) = read(str(out))
    return json.loads((folder / "out.jsonl.progress").read_text("utf-8"))["options"]["aligner"], made


def test_of_two_encoders_the_first_is_taken(use_multilingual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert use_multilingual.is_file()
    by_one = load_aligner("vectors", encoder="use-multilingual").signature
    monkeypatch.setattr(projection, "ENCODERS", ("use-multilingual", "e5-multilingual"))
    assert load_aligner("auto").signature == by_one
    monkeypatch.setattr(projection, "ENCODERS", ())
    assert load_aligner("auto").signature == load_aligner("lexical").signature


def test_an_output_goes_on_with_the_aligner_that_began_it(use_multilingual: Path, tmp_path: Path) -> None:
    assert use_multilingual.is_file()
    named, _ = translated(tmp_path, "--aligner", "lexical")
    assert translated(tmp_path)[0] == named
    best = load_aligner("auto").signature
    assert named != best == load_aligner("auto", begun="another that is gone").signature
    assert translated(tmp_path, "--overwrite")[0] == best


def is_here(name: str) -> bool:
    try:
        return registry.find(name).is_file()
    except registry.MissingWeightsError:
        return False


@pytest.mark.usefixtures("no_models")
def test_without_the_encoder_it_is_lexical(tmp_path: Path) -> None:
    assert load_aligner("auto").signature == load_aligner("lexical").signature
    named, made = translated(tmp_path)
    assert named == load_aligner("lexical").signature
    (span,) = made.annotations[0].spans or ()
    assert made.response[span.start : span.end] == "1879"


def test_with_an_encoder_it_is_vectors_unless_another_is_named(use_multilingual: Path, tmp_path: Path) -> None:
    assert use_multilingual.is_file()
    found = load_aligner("auto")
    here = [name for name in projection.ENCODERS if name == "use-multilingual" or is_here(name)]
    assert found.signature == load_aligner("vectors", encoder=here[0]).signature
    links = found.align(side_of("The bridge burnt down.", "en"), side_of("Die Brücke brannte ab.", "de")).links
    assert (1, 1) in {(link.source, link.target) for link in links}
    (tmp_path / "auto").mkdir()
    (tmp_path / "named").mkdir()
    assert translated(tmp_path / "auto")[0] == found.signature
    assert translated(tmp_path / "named", "--aligner", "lexical")[0] == load_aligner("lexical").signature
