"""Queries: two an article, in its language, answerable from it; every rejection is written with a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from made_up import TEXTS, reference

from json_lines import read_lines
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.queries import (
    AnswerabilityCheck,
    Author,
    Reference,
    filter_queries,
    queries,
    reference_from,
)
from veriglot.errors import InputError
from veriglot.llm.client import ModelError, Reply
from veriglot.llm.registry import Limits, connect
from veriglot.records import Detector, Sample
from veriglot.storage.checkpoint import FailedRow, Progress, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

WHO = "Welche Witwe ließ die Mühle von Oberfeld bauen?"
WHEN = "In welchem Jahr brannte die Mühle von Oberfeld ab?"


def reply(*asked: str) -> Reply:
    return Reply(json.dumps({"queries": asked}, ensure_ascii=False))


def reasons(found: Reply, count: int = 2, tag: str = "de") -> tuple[list[str], list[tuple[str, str]]]:
    taken, rejected = filter_queries(reference(tag), found, count)
    return [text for _, text in taken], [(one.id, one.reason) for one in rejected]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"queries": [WHO, WHEN]}),
        f"Here they are:\n```json\n{json.dumps({'queries': [WHO, WHEN]})}\n```",
        f"{WHO}\n{WHEN}",
        f"Sure! Two questions:\n\n1. {WHO}\n2) **{WHEN}**\n",
        f"- „{WHO}“\n• {WHEN}",
        json.dumps([WHO, WHEN]),
        json.dumps({"questions": [WHO, WHEN]}),
        f'{{\n "queries": [\n  "{WHO}",\n  "{WHEN}"\n ',
    ],
)
def test_queries_are_read_as_models_write_them(text: str) -> None:
    assert reasons(Reply(text)) == ([WHO, WHEN], [])


def test_marks_of_questions_in_other_scripts() -> None:
    arabic = "من بنى طاحونة الحقل الأعلى؟\nومتى احترقت طاحونة الحقل الأعلى؟"
    assert len(reasons(Reply(arabic), tag="ar")[0]) == 2
    assert len(reasons(Reply("①谁建造了上田的磨坊？\n②上田的磨坊哪一年被烧毁？"), tag="zh-Hans")[0]) == 2


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (reply(WHO), ([WHO], [("de-0-q2", "number")])),
        (reply(WHO, WHEN, "Wer brannte sie ab?"), ([WHO, WHEN], [("de-0-q3", "number")])),
        (reply(), ([], [("de-0-q1", "unreadable"), ("de-0-q2", "unreadable")])),
        (Reply(f'{{"queries": ["{WHO}", "Wel'), ([], [("de-0-q1", "unreadable"), ("de-0-q2", "unreadable")])),
        (Reply("I cannot do that."), ([], [("de-0-q1", "unreadable"), ("de-0-q2", "unreadable")])),
        (reply(WHEN, WHEN.upper()), ([WHEN], [("de-0-q2", "duplicate")])),
        (reply(WHO, "Wer?"), ([WHO], [("de-0-q2", "form")])),
        (reply(WHO, "Warum " * 200 + "?"), ([WHO], [("de-0-q2", "form")])),
        (reply("Which widow had the mill of Upper Field built?", WHEN), ([WHEN], [("de-0-q1", "language")])),
    ],
)
def test_every_query_of_a_reply_is_taken_or_rejected_with_a_reason(said: Reply, expected: Any) -> None:
    assert reasons(said) == expected


def test_a_query_that_looks_like_a_sister_language_is_taken() -> None:
    """A regression: every second one in Indonesian was rejected as Malay."""
    asked = ["Kapan jembatan Ampera dibuka?", "Jembatan itu dibuka pada tahun berapa?"]
    bridge = msgspec.structs.replace(reference("de"), language="id")
    assert [text for _, text in filter_queries(bridge, reply(*asked), 2)[0]] == asked


def test_a_query_that_the_reply_breaks_off_in_is_not_taken() -> None:
    cut = Reply(f"{WHO}\nWas geschah? Und in welchem", finish="length")
    assert reasons(cut) == ([WHO], [("de-0-q2", "number")])


def test_a_rejection_says_why_in_words() -> None:
    _, (first, second) = filter_queries(reference("de"), reply("Which widow had the mill of Upper Field built?"), 2)
    assert (first.reference, first.language, first.question[:5]) == ("de-0", "de", "Which")
    assert first.detail == "it is in en and should be in de"
    assert second.detail == "2 queries were asked for, but the reply has 1"


# Answerable from the text: by a model


def said(answerable: bool, quote: str) -> Reply:
    return Reply(json.dumps({"answerable": answerable, "quote": quote}, ensure_ascii=False))


@pytest.mark.parametrize(
    ("found", "expected", "why"),
    [
        (said(True, "von der Witwe Anna Kroll gebaut"), True, ""),
        (said(True, "Von der WITWE Anna Kroll gebaut."), True, ""),
        (said(False, ""), False, "does not answer"),
        (said(True, ""), False, "is not in the text"),
        (said(True, "Der Graf hat sie seinem Bruder geschenkt"), False, "is not in the text"),
        (Reply("Yes, it does."), False, "cannot be read"),
    ],
)
def test_a_model_has_to_quote_what_stands_there(found: Reply, expected: bool, why: str) -> None:
    verdict = AnswerabilityCheck("m").verdict(reference("de"), WHO, found)
    assert verdict == {"quote": json.loads(found.text)["quote"]} if expected else why in verdict


def test_the_check_shows_text_and_question_and_asks_for_a_schema() -> None:
    request = AnswerabilityCheck("m", seed=3).request(reference("de"), WHO)
    assert TEXTS["de"] in request.text
    assert WHO in request.text
    assert request.schema is not None
    assert (request.seed, request.settings.temperature) == (3, 0)


# Answerable from the text: by the detector


@pytest.fixture(scope="module")
def grounding() -> Detector:
    from veriglot import load_detector

    return load_detector("grounding")


@pytest.mark.parametrize(
    ("answer", "expected", "why"),
    [
        ("Die Mühle von Oberfeld wurde von der Witwe Anna Kroll gebaut.", True, ""),
        ("Bürgermeister Friedrich Hagenbeck kaufte 1845 drei Pferde in Straßburg.", False, "does not support"),
        ("Der Text gibt keine Auskunft darüber.", False, "finds no answer"),
        ("", False, "finds no answer"),
    ],
)
def test_an_answer_from_the_text_has_to_be_supported_by_it(
    grounding: Detector, answer: str, expected: bool, why: str
) -> None:
    verdict = AnswerabilityCheck("m", grounding).verdict(reference("de"), WHO, Reply(answer))
    assert isinstance(verdict, dict) is expected
    assert (verdict["answer"] == answer) if isinstance(verdict, dict) else (why in verdict)


def test_what_the_detector_cannot_judge_is_not_taken_for_answerable(grounding: Detector) -> None:
    silent = Reference("x", "de", " ")
    verdict = AnswerabilityCheck("m", grounding).verdict(silent, WHO, Reply("Anna Kroll ließ die Mühle bauen."))
    assert "no_evidence" in verdict
    assert not isinstance(verdict, dict)


# References


def test_a_reference_is_the_lead_or_the_text_of_an_article() -> None:
    article = {
        "id": "de-7", "language": "de", "title": "Mühle", "page_id": 7, "url": "https://x", "text": "Kopf.\n\nRest.",
        "lead": "Kopf.", "revision": 9, "categories": ["Mühle"], "edits": 12,
    }  # fmt: skip
    lead, text = reference_from(article), reference_from(article, part="text")
    assert (lead.id, lead.text, lead.title, text.text) == ("de-7", "Kopf.", "Mühle", "Kopf.\n\nRest.")
    assert lead.meta == {"page_id": 7, "revision": 9, "categories": ["Mühle"], "part": "lead"}
    assert reference_from({**article, "lead": ""}).meta["part"] == "text"  # with a note
    assert reference_from({"language": "de", "title": "T", "text": "x"}).id == "de-T"
    assert reference_from({"language": "de", "page_id": 5, "text": "x"}).id == "de-5"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ([], None),
        ({"id": "a", "text": "x"}, "language"),
        ({"id": "a", "language": "de", "text": " "}, "text"),
        ({"language": "de", "text": "x"}, "id"),
    ],
)
def test_what_is_no_reference_is_refused(data: Any, field: str | None) -> None:
    with pytest.raises(InputError) as caught:
        reference_from(data)
    assert caught.value.field == field


# The stage

RULES: list[dict[str, Any]] = [
    {"match": "Does the text contain.*Witwe.*Text:", "reply": '{"answerable": true, "quote": "Witwe Anna Kroll"}'},
    {"match": "Does the text contain", "reply": '{"answerable": false, "quote": ""}'},
    {"match": "Title: Mill 1\n", "error": "the server fell over"},
    {"match": "Title: Mill 2\n", "reply": "no"},
    {"match": "Write 2 questions", "reply": json.dumps({"queries": [WHO, WHEN]}, ensure_ascii=False)},
]


def make(
    output: Path, *, rows: Iterable[Reference | FailedRow] | None = None, check: Any = "model", **more: Any
) -> Tally:
    client = more.pop("client", None) or connect("scripted", rules=RULES)
    found = [reference("de", number) for number in range(4)] if rows is None else rows
    return queries(
        output, found, Author("m"), client, check=AnswerabilityCheck("m") if check == "model" else check, jobs=2, **more
    )


def test_every_query_and_article_is_accounted_for(tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl"
    tally = make(output, rows=[*(reference("de", number) for number in range(4)), FailedRow("unreadable")])
    assert (tally.rows, tally.statuses.total(), tally.failed) == (5, 3, 2)
    kept, rejected = read_lines(output), read_lines(rejected_path(output))
    failed = read_lines(output.with_name("q.jsonl.failed.jsonl"))
    assert [row["id"] for row in kept] == ["de-0-q1", "de-3-q1"]
    assert [(row["id"], row["reason"]) for row in rejected] == [
        ("de-0-q2", "answerable"),
        ("de-2-q1", "unreadable"),
        ("de-2-q2", "unreadable"),
        ("de-3-q2", "answerable"),
    ]
    assert [(row.get("id"), row["message"]) for row in failed] == [
        ("de-1", "the server fell over"),
        (None, "unreadable"),
    ]


def test_a_query_is_a_sample_without_response_that_says_how_it_was_checked(tmp_path: Path) -> None:
    make(tmp_path / "q.jsonl")
    first = read_lines(tmp_path / "q.jsonl")[0]
    sample = Sample(**{key: value for key, value in first.items() if key != "evidence"})
    assert (sample.response, sample.task, sample.language, sample.question) == ("", "qa", "de", WHO)
    assert first["evidence"][0]["text"] == TEXTS["de"]
    assert first["evidence"][0]["url"] == "https://example.org/mill"
    assert first["meta"]["reference"] == "de-0"
    assert first["meta"]["checks"] == {
        "language": "identified",
        "answerable": "checked",
        "quote": "Witwe Anna Kroll",
    }


def test_unchecked_queries_say_that_they_are(tmp_path: Path) -> None:
    tally = make(tmp_path / "q.jsonl", check=None)
    rows = read_lines(tmp_path / "q.jsonl")
    assert (tally.statuses.total(), len(rows)) == (3, 4)
    assert {row["meta"]["checks"]["answerable"] for row in rows} == {"not checked"}


def test_a_run_that_stops_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    output, paid = tmp_path / "q.jsonl", 0
    texts = [reference("de", 10 + number) for number in range(8)]
    rows = [msgspec.structs.replace(one, text=f"{one.text} {one.id}.") for one in texts]  # for different calls
    make(tmp_path / "whole.jsonl", rows=rows)
    for calls in (3, 4, 7):
        limits = Limits(calls=calls)
        client = connect("scripted", rules=RULES, cache=tmp_path / "calls", limits=limits)
        with pytest.raises(ModelError, match="The limit of"):
            make(output, rows=rows, client=client)
        paid += limits.spent.calls
        assert not output.exists()
        assert not Progress.of(output).finished
    limits = Limits()
    make(output, rows=rows, client=connect("scripted", rules=RULES, cache=tmp_path / "calls", limits=limits))
    assert paid + limits.spent.calls == 24  # one to write and two to check, for each of the eight
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert rejected_path(output).read_bytes() == rejected_path(tmp_path / "whole.jsonl").read_bytes()
