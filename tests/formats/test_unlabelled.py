"""No format makes a clean response of one that nobody labelled, or whose labels it cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from veriglot.formats.base import FORMATS, load_format
from veriglot.formats.reader import read
from veriglot.formats.writer import write
from veriglot.records import Annotation, Evidence, Kind, Sample, Span

if TYPE_CHECKING:
    from pathlib import Path

_WRITABLE = [name for name in FORMATS.names() if load_format(name).writable]


def _sample(*annotations: Annotation) -> Sample:
    return Sample(
        id="a",
        response="The mill was built in 1901.",
        language="en",
        question="When was the mill built?",
        evidence=(Evidence("The mill was built in 1874.", language="en"),),
        annotations=annotations,
    )


def _rated() -> Annotation:
    return Annotation(annotator="gold", kind=Kind.HUMAN, taxonomy="fava", ratings={"fluency": 4.0})


@pytest.mark.parametrize("name", _WRITABLE)
@pytest.mark.parametrize("annotations", [(), (_rated(),)], ids=["none", "ratings only"])
def test_what_nobody_labelled_never_comes_back_as_clean(
    name: str, annotations: tuple[Annotation, ...], tmp_path: Path
) -> None:
    path = tmp_path / "out"
    losses = write([_sample(*annotations)], path, format=name)
    if losses.written:
        (back,) = read(path, format=name)
        assert not any(annotation.spans == () for annotation in back.annotations)
    else:
        assert any(what.startswith("row: ") for what in losses.lost)


def test_ragtruth_keeps_the_spans_of_an_annotator_with_another_name(tmp_path: Path) -> None:
    anna = Annotation(annotator="anna", kind=Kind.HUMAN, taxonomy="support", spans=(Span(22, 26, "contradicted"),))
    write([_sample(anna)], tmp_path / "out", format="ragtruth")
    (back,) = read(tmp_path / "out", format="ragtruth")
    assert back.annotations[0].spans == anna.spans
