"""From labelled files to training examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from training_data import article_samples, silver

from veriglot.errors import InputError
from veriglot.formats.writer import write
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, Unit
from veriglot.training.grounding.examples import Example, Labelled, labels_of, read_labelled

if TYPE_CHECKING:
    from pathlib import Path

EVIDENCE = (Evidence("Hellas Verona beat Torino in 1985. Roma lost."), Evidence("  "))


def human(
    id_: str, response: str, *layers: tuple[str, ...] | None, names: tuple[str, ...] = (), **more: object
) -> Sample:
    """A sample with a layer for each tuple of marked texts (None: no request for spans)."""
    annotations = []
    for number, texts in enumerate(layers):
        spans = None if texts is None else tuple(
            Span(response.index(t), response.index(t) + len(t), "entity") for t in texts
        )  # fmt: skip
        name = names[number] if names else f"annotator_{number}"
        annotations.append(Annotation(name, Kind.HUMAN, "fava", spans))
    settings = {"task": Task.QA, "language": "en", "evidence": EVIDENCE, **more}
    return Sample(id_, response, annotations=tuple(annotations), **settings)  # type: ignore[arg-type]


def read_back(tmp_path: Path, *samples: Sample) -> Labelled:
    write(samples, tmp_path / "data.jsonl")
    return read_labelled([str(tmp_path / "data.jsonl")])


def test_what_a_model_marked_is_silver_and_unglued(tmp_path: Path) -> None:
    reference = "Hellas Verona beat Torino. Roma lost to Torino."
    marks = [("HellasRoma", "entity"), ("wonderfully", "subjective")]
    sample = silver("s", "en", reference, "On Sunday HellasRoma won, wonderfully.", *marks, group="g7")
    (example,) = read_back(tmp_path, sample).examples
    assert (example.kind, example.group, example.language) == ("silver", "g7", "en")
    assert example.response == "On Sunday Roma won, wonderfully."
    found = [(example.response[m.start : m.end], m.type) for m in example.marks]
    assert found == [("Roma", "entity"), ("wonderfully", "subjective")]


def test_types_outside_the_taxonomy_are_marks_without_a_type(tmp_path: Path) -> None:
    sample = silver("s", "en", "Roma won.", "Roma won twice.", ("twice", "hallucination"))
    (example,) = read_back(tmp_path, sample).examples
    assert [m.type for m in example.marks] == [None]


def test_crossing_silver_spans_are_left_out_and_counted(tmp_path: Path) -> None:
    sample = silver("s", "en", "Roma won.", "Roma won the cup.", ("Roma won", "entity"), ("won the", "relation"))
    found = read_back(tmp_path, sample)
    assert found.examples == []
    assert found.left_out == {"crossing spans": 1}


def test_what_most_people_marked_is_natural(tmp_path: Path) -> None:
    sample = human("n", "Roma beat Torino in 1990.", ("Roma", "1990"), ("1990",), ("beat Torino in 1990",))
    (example,) = read_back(tmp_path, sample).examples
    assert (example.kind, example.source, example.passages) == ("natural", "qa", (EVIDENCE[0].text,))
    assert [example.response[m.start : m.end] for m in example.marks] == ["1990"]
    assert example.shares is None


def test_half_of_the_people_is_no_majority(tmp_path: Path) -> None:
    (example,) = read_back(tmp_path, human("n", "Roma won in 1990.", ("1990",), ())).examples
    assert example.marks == ()


def test_a_gold_layer_counts_alone_with_its_soft_labels(tmp_path: Path) -> None:
    units = (Unit(0, 4, "hallucination", 0.25), Unit(12, 16, "hallucination", 0.75))
    sample = human("n", "Roma won in 1990.", ("Roma",), ("1990",), names=("annotator_1", "gold"))
    gold = Annotation("gold", Kind.HUMAN, "fava", sample.annotations[1].spans, units)
    sample = Sample("n", sample.response, Task.QA, "en", None, EVIDENCE, annotations=(sample.annotations[0], gold))
    (example,) = read_back(tmp_path, sample).examples
    assert [example.response[m.start : m.end] for m in example.marks] == ["1990"]
    assert example.shares == ((0, 4, 0.25), (12, 16, 0.75))


def test_a_right_answer_is_kept_to_make_wrong_ones_from(tmp_path: Path) -> None:
    more = {"question": "When?", "meta": {"answer_in_evidence": [29, 33], "group": "p"}}
    found = read_back(tmp_path, human("a", "1985", (), names=("gold",), **more))
    assert found.examples == []
    (answer,) = found.answers
    assert (answer.text, answer.question) == ("1985", "When?")
    assert answer.text in answer.passage
    checked = human("b", "1985", (), names=("gold",), question="When?")
    assert [e.kind for e in read_back(tmp_path, checked).examples] == ["natural"]


def test_evidence_without_a_response_is_an_article_with_all_its_questions(tmp_path: Path) -> None:
    one, other = article_samples("en", 2)
    again = Sample("again", "", Task.OPEN, "en", "Who?", one.evidence)
    found = read_back(tmp_path, one, other, again)
    assert [(a.group, a.questions) for a in found.articles] == [("en-0", ("When?", "Who?")), ("en-1", ("When?",))]
    long = Sample("long", "", Task.OPEN, "en", None, (Evidence("word " * 2000),))
    assert len(read_back(tmp_path, long).articles[0].passages[0]) == 3000


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("no evidence", {"evidence": ()}),
        ("no evidence", {"evidence": (Evidence(" \n"),)}),
        ("no language", {"language": None}),
        ("garbled evidence", {"meta": {"reference_garbled": "latin-1"}}),
    ],
)
def test_what_cannot_teach_is_counted(tmp_path: Path, reason: str, changes: dict[str, object]) -> None:
    found = read_back(tmp_path, human("x", "Roma won.", (), **changes), human("y", "Roma won.", ()))
    assert found.left_out == {reason: 1}
    assert len(found.examples) == 1


def test_samples_without_labels_are_counted(tmp_path: Path) -> None:
    found = read_back(tmp_path, human("x", "Roma won."), human("y", "Roma won.", None))
    assert found.left_out == {"no label": 1, "no spans": 1}
    assert found.examples == []


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"id": "x"}\n')
    with pytest.raises(InputError):
        read_labelled([str(tmp_path / "data.jsonl")])
    with pytest.raises(InputError, match="no such file"):
        read_labelled([str(tmp_path / "absent.jsonl")])


def test_several_files_make_one(tmp_path: Path) -> None:
    for name, sample in (("a", human("x", "Roma won.", ())), ("b", human("x", "Torino won.", ("Torino",)))):
        write([sample], tmp_path / f"{name}.jsonl")
    found = read_labelled(str(tmp_path / f"{name}.jsonl") for name in "ab")
    assert [len(example.marks) for example in found.examples] == [0, 1]


def test_a_token_without_text_has_a_label_too() -> None:
    example = Example("natural", "votes", "g", "en", "Roma .", (), shares=((0, 4, 0.5),))
    labels = labels_of(example, np.array([[0, 4], [5, 5], [5, 6]]), np.zeros(3, bool))
    assert labels.target.tolist() == [0.5, 0.0, 0.0]
