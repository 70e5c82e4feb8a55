"""What is written and read back differs in nothing that was not declared lost."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import samples

from veriglot.formats.base import FORMATS, load_format
from veriglot.formats.reader import guess, read
from veriglot.formats.writer import features, write
from veriglot.records import Annotation, Evidence, Generator, Kind, Sample, Span, Task, Unit

pytestmark = pytest.mark.slow

WRITABLE = [name for name in FORMATS.names() if load_format(name).writable]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", WRITABLE)
@given(sample=samples())
def test_nothing_is_lost_that_was_not_declared(name: str, sample: Sample) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "written_de.out"
        losses = write([sample], path, format=name)
        if losses.written == 0:
            assert any(what.startswith("row: ") for what in losses.lost)
            return
        (back,) = read(path, format=name)
        assert back.response == sample.response
        there = features(back)
        differing = {part for part, value in features(sample).items() if there.get(part) != value}
        assert differing == losses.lost.keys()


FULL = {
    "mfava": ("fava", "entity", "gold"),
    "mu-shroom": ("hat", "hallucination", "gold"),
    "ragtruth": ("support", "contradicted", "gold"),
    "psiloqa": ("hat", "hallucination", "gpt-4o"),
    "lettucedetect": ("support", "unverified", "gold"),
    "hat": ("hat", "hallucination", "annotator_7"),
    "halomi": ("hat", "hallucination", "gold"),
    "inline": ("halluverse", "relation", "gold"),
    "label-studio": ("fava", "invented", "ada"),
    "xcomet": ("hat", None, "xcomet"),
}


@pytest.mark.parametrize("name", FULL)
def test_what_a_format_is_made_for_comes_back(tmp_path: Path, name: str) -> None:
    taxonomy, type_, annotator = FULL[name]
    kind = Kind.MODEL if annotator in {"gpt-4o", "xcomet"} else Kind.HUMAN
    spans = (Span(3, 9, type_), Span(14, 18, type_))
    sample = Sample(
        "rows-1",
        "In Xanadu 😀 the 雨水 falls.",
        language="de",
        evidence=(Evidence("In Lima the rain falls.", language="de"),),
        annotations=(Annotation(annotator, kind, taxonomy, spans=spans),),
    )
    path = tmp_path / "rows_de.json"
    losses = write([sample], path, format=name)
    assert losses.written == 1
    assert not {"spans", "types of spans", "annotators", "taxonomies", "response"} & losses.lost.keys()
    assert guess(path).format == name
    (back,) = read(path)
    assert [(s.start, s.end, s.type) for s in back.annotations[0].spans or ()] == [
        (s.start, s.end, s.type) for s in spans
    ]


def test_halluverse_comes_back(tmp_path: Path) -> None:
    unit = Annotation("gold", Kind.HUMAN, "halluverse", units=(Unit(0, 16, "entity"),))
    edit = Annotation("edit", Kind.MODEL, "halluverse", spans=(Span(11, 15, "entity"),), flags=("computed",))
    sample = Sample(
        "1", "It rains in Rome.", Task.BIOGRAPHY, "en", evidence=(Evidence("It rains in Lima.", language="en"),),
        annotations=(unit, edit),
    )  # fmt: skip
    sample = Sample(
        "1", "It rained: Rome.", Task.BIOGRAPHY, "en", evidence=(Evidence("It rained: Lima.", language="en"),),
        annotations=(unit, edit),
    )  # fmt: skip
    losses = write([sample], tmp_path / "rows.csv", format="halluverse")
    assert (losses.written, losses.lost) == (1, {})
    assert list(read(tmp_path / "rows.csv")) == [sample]


def test_csv_is_for_spreadsheets_and_comes_back(tmp_path: Path) -> None:
    path, bridge = tmp_path / "rows.csv", Evidence("الجسر، عام 1897.")
    marked = Annotation("gold", Kind.HUMAN, "fava", spans=(Span(0, 4, "entity"),))
    right = Annotation("gold", Kind.HUMAN, "hat", ratings={"unsupported": 0.0})
    rows = [
        Sample("1", "1879", language="ar", question="متى؟", evidence=(bridge,), annotations=(marked,)),
        Sample("2", 'In 1897,\n"so".', generator=Generator("m"), evidence=(bridge,), annotations=(right,)),
        Sample("3", "nobody looked", evidence=(bridge, Evidence("b"))),
    ]
    losses = write(rows, path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbfid,question,"), "for Excel"
    assert '""text"":""1879""' in path.read_text("utf-8"), "people see what is marked"
    *alike, joined = read(path)
    assert alike == rows[:2]
    assert joined.evidence_text == rows[2].evidence_text
    assert {what: loss.example for what, loss in losses.lost.items()} == {"boundaries between passages": "3"}


@given(st.lists(samples(), max_size=3))
def test_losses_count_every_sample_and_name_one(rows: list[Sample]) -> None:
    rows = list({row.id: row for row in rows}.values())
    with TemporaryDirectory() as folder:
        losses = write(rows, Path(folder) / "rows.json", format="label-studio")
    assert all(loss.count <= len(rows) for loss in losses.lost.values())
    assert {loss.example for loss in losses.lost.values()} <= {row.id for row in rows}
