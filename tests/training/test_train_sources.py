"""Translations and evidence in another language are separate data; a folder appears only when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from parallel_data import parallel_samples, token_layer, translation

from veriglot.formats.writer import write
from veriglot.records import Annotation, Evidence, Kind, Sample, Task
from veriglot.storage.files import whole_folder
from veriglot.training.grounding.examples import read_labelled

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = "The train stops in Bergau."


def test_translations_are_kept_apart_from_answers(tmp_path: Path) -> None:
    sample = translation("t", "Der Zug hält in Bergau.", RIGHT, token_layer(RIGHT))
    write([sample], tmp_path / "data.jsonl")
    found = read_labelled([str(tmp_path / "data.jsonl")])
    assert found.examples == []
    assert [kept.response for kept in found.translations] == [RIGHT]
    assert not found.left_out


@pytest.mark.parametrize(
    ("passages", "told"), [(("de", "de"), "de"), (("en", "en"), None), (("de", "fr"), None), ((None, "de"), "de")]
)
def test_evidence_in_another_language_is_told(
    tmp_path: Path, passages: tuple[str | None, str], told: str | None
) -> None:
    evidence = tuple(Evidence("Der Zug hält in Bergau.", language=tag) for tag in passages)
    layer = Annotation("gold", Kind.HUMAN, "fava", ())
    write([Sample("a", RIGHT, Task.QA, "en", None, evidence, annotations=(layer,))], tmp_path / "data.jsonl")
    (found,) = read_labelled([str(tmp_path / "data.jsonl")]).examples
    assert found.evidence_language == told
    assert not found.translation


def test_a_right_answer_keeps_the_id_of_its_question_and_its_article(tmp_path: Path) -> None:
    write(parallel_samples(1), tmp_path / "data.jsonl")
    found = read_labelled([str(tmp_path / "data.jsonl")]).answers
    assert {(answer.question_id, answer.title) for answer in found} == {("0-0", "Town 0"), ("0-1", "Town 0")}


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), whole_folder(tmp_path / "w") as part:
        (part / "no" / "such" / "folder").write_text("1")
    assert list(tmp_path.iterdir()) == []
    with whole_folder(tmp_path / "w") as part:
        (part / "one").write_text("1")
        assert not (tmp_path / "w").exists()
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
