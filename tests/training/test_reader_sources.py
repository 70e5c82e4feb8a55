"""Published data sets of labelled pairs and answered questions, as training rows of the reader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from veriglot.errors import InputError
from veriglot.training.grounding.synthetic_data import paragraphs
from veriglot.training.reader.sources import Row, read_answers, read_parallel, read_sources, read_unanswerable

if TYPE_CHECKING:
    from pathlib import Path

PREMISE = "Der Zug fährt um acht Uhr nach Bergau."


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def marked(row: Row) -> list[str]:
    return [row.example.response[mark.start : mark.end] for mark in row.example.marks]


def squad(passage: str, *entries: dict[str, object], title: str = "Bergau") -> str:
    return json.dumps({"data": [{"title": title, "paragraphs": [{"context": passage, "qas": list(entries)}]}]})


def entry(question: str, text: str, start: int = 0, identifier: str = "1") -> dict[str, object]:
    return {"id": identifier, "question": question, "answers": [{"text": text, "answer_start": start}]}


def test_pairs_are_located_by_their_difference_to_evidence_or_to_a_right_response(tmp_path: Path) -> None:
    lines = [
        "premise\thypothesis\tlabel",
        f"{PREMISE}\tEin Zug fährt nach Bergau.\te",
        f"{PREMISE}\tEin Zug fährt nach Altstadt.\tc",
        f"{PREMISE}\tDer Zug fährt um neun Uhr nach Bergau.\tc",
        f"{PREMISE}\tDie Leute in der Stadt sind sehr froh.\tn",
        f"{PREMISE}\tEin\tstray tab\tc",
    ]
    write(tmp_path / "farstail" / "Val-word.csv", "\n".join(lines))
    right, place, hour, unrelated = read_sources(list(tmp_path.iterdir()), 0)
    assert (right.unsupported, right.located, marked(right)) == (False, True, [])
    assert (place.unsupported, place.located, marked(place)) == (True, True, ["Altstadt"])
    assert (hour.unsupported, hour.located, marked(hour)) == (True, True, ["neun"])
    assert (unrelated.unsupported, unrelated.located, marked(unrelated)) == (True, False, [])
    assert right.twin == place.twin is not None
    assert {row.twin for row in (hour, unrelated)} == {None}
    assert len({row.example.group for row in (right, place, hour, unrelated)}) == 1


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "fever_it" / "dev.jsonl", "no JSON")
    write(tmp_path / "jaquad" / "dev.json", "[]")
    with pytest.raises(InputError, match="not in the published format"):
        list(read_sources(list(tmp_path.iterdir()), 0))
    with pytest.raises(InputError, match="not in the published format"):
        list(read_answers(list(tmp_path.iterdir())))


def test_parts_that_were_exchanged_are_both_marked(tmp_path: Path) -> None:
    first, second = "The Tabaci River flows into the Leurda .", "The Leurda flows into the Tabaci River ."
    write(tmp_path / "pawsx" / "dev-en.tsv", f"{first}\t{second}\t0\nNS\t{second}\t1\n{first}\t{first}\t0\n")
    write(tmp_path / "pawsx" / "dev-de.tsv", "Er kam .\tEr ging .\t0\n")
    german, row = read_sources(list(tmp_path.iterdir()), 0)
    assert set(marked(row)) == {"Tabaci River", "Leurda"}
    assert {row.example.response, *row.example.passages} == {first, second}
    assert row.example.group == german.example.group
    assert (german.unsupported, german.located) == (True, False)


def test_an_edited_summary_is_the_twin_of_its_reference(tmp_path: Path) -> None:
    record = {"article": "A long story.", "article_id": 3, "reference_summary": "She ran home.", "edited_summary": ""}
    write(tmp_path / "bump" / "task1.json", json.dumps([{**record, "edited_summary": "She walked home."}]))
    right, wrong = read_sources(list(tmp_path.iterdir()), 0)
    assert (right.unsupported, wrong.unsupported) == (False, True)
    assert marked(wrong) == ["walked"]
    assert right.twin == wrong.twin is not None


def test_answers_are_searched_for_and_long_passages_cut_around_them(tmp_path: Path) -> None:
    passage = "Burası güzel bir yer. " * 200 + "Kale 1200 yılında yapıldı. " + "Burası güzel bir yer. " * 200
    entries = entry("Kale ne zaman yapıldı?", "1200", 7), entry("Kim yaptı?", "Ahmet")
    write(tmp_path / "tquad" / "dev.json", squad(passage, *entries))
    (answer,) = read_answers(list(tmp_path.iterdir()))
    assert (answer.language, answer.text, answer.question_id) == ("tr", "1200", None)
    assert "Kale 1200 yılında yapıldı." in answer.passage
    assert len(answer.passage) <= 3000


def test_an_answer_across_languages_is_in_the_question_s_language_where_the_set_has_it(tmp_path: Path) -> None:
    german, english = "Bergau liegt am See.", "Bergau lies by the lake."
    questions = entry("Wo liegt Bergau?", "am See", 13), entry("Where is Bergau?", "by the lake", 12)
    for passage, of_passage, question, of_question in (
        (german, "de", questions[0], "de"),
        (english, "en", questions[1], "en"),
        (english, "en", entry("Wo liegt Bergau?", "by the lake", 12), "de"),
        (english, "en", entry("Bergau ở đâu?", "by the lake", 12), "vi"),
    ):
        path = tmp_path / "mlqa" / f"dev-context-{of_passage}-question-{of_question}.json"
        write(path, squad(passage, question, title=f"Bergau ({of_passage})"))
    answers = list(read_answers(list(tmp_path.iterdir())))
    across = [answer for answer in answers if answer.passage == english and answer.question != "Where is Bergau?"]
    assert [(a.language, a.text, a.passage) for a in across] == [
        ("de", "am See", english),
        ("en", "by the lake", english),
    ]
    (paragraph,) = paragraphs(list(read_parallel(list(tmp_path.iterdir()))))
    assert {tag: [a.text for a in some] for tag, some in paragraph.versions.items()} == {
        "de": ["am See"],
        "en": ["by the lake"],
    }


def test_questions_without_an_answer_are_read_apart(tmp_path: Path) -> None:
    question = {"id": "1", "question": "چرا؟", "answers": [], "is_impossible": True}
    write(tmp_path / "pquad" / "Test.json", squad("متن کوتاه.", question))
    assert list(read_answers(list(tmp_path.iterdir()))) == []
    assert list(read_unanswerable(list(tmp_path.iterdir()))) == [("fa", "متن کوتاه.", "چرا؟", "pquad:Bergau")]
