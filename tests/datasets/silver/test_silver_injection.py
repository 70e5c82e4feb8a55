"""Silver data from seeds to rows: rounds, turns, clean rows, checks by detector and model, resuming."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from veriglot import load_detector, read
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.silver.check import Change, Edited, check
from veriglot.datasets.silver.injection import Injector, tasks
from veriglot.datasets.silver.job import SilverRejection, Support, load_account, silver
from veriglot.errors import UnknownNameError, UsageError
from veriglot.llm.client import ModelError
from veriglot.llm.registry import Limited, Limits
from veriglot.llm.scripted import Scripted
from veriglot.records import Evidence, Sample
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.llm.client import Client

ARTICLE = "The mill of Oberfeld was built in 1731 by the widow Anna Kroll. It burnt down in 1902."
PASSAGE = "The mill was built in 1731. The widow Anna Kroll built it. It burnt down in 1902."
TYPES = ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable")


def rule(type_: str, before: str, after: str, **more: Any) -> dict[str, Any]:
    """Inserts an error into every passage."""
    match = rf'error is "{type_}".*Passage:\n(?P<a>.*){before}(?P<b>.*)\Z'
    return {"match": match, "reply": rf"\g<a>{after}\g<b>", **more}


def edit(type_: str, old: str, new: str) -> str:
    return f"<{type_}><delete>{old}</delete><mark>{new}</mark></{type_}>"


ANSWER = {"match": "^Answer the question", "reply": PASSAGE}
RULES = [
    ANSWER,
    rule("entity", "1731", edit("entity", "1731", "1764")),
    rule("relation", "built it", edit("relation", "built", "sold") + " it"),
    rule(
        "contradictory", r"It burnt down in 1902\.", edit("contradictory", "It burnt down in 1902.", "It never burnt.")
    ),
    rule("invented", r"\Z", " <invented>It won the Golden Sieve.</invented>"),
    rule("subjective", "The mill", "The mill<subjective>, the loveliest of all,</subjective>"),
    rule("unverifiable", "Anna Kroll", "Anna Kroll<unverifiable>, who liked to hum,</unverifiable>"),
]


def seeds(count: int, *, given: bool = False, tag: str = "en") -> list[Sample]:
    evidence = (Evidence(ARTICLE),)
    response = PASSAGE if given else ""
    return [Sample(f"{tag}-{n}", response, language=tag, question="When?", evidence=evidence) for n in range(count)]


def made(
    path: Path, client: Client | None = None, injector: Injector | None = None, count: int = 3, **more: Any
) -> Any:
    given = more.pop("seeds", seeds(count))
    return silver(path, given, injector or Injector("m", seed=1, attempts=1), client or Scripted(RULES), **more)


def rows(path: Path) -> list[Sample]:
    return list(read(str(path)))


def rejected(path: Path) -> list[SilverRejection]:
    lines = rejected_path(path).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=SilverRejection) for line in lines]


def marks(sample: Sample) -> list[tuple[str | None, str]]:
    return [(s.type, sample.response[s.start : s.end]) for s in sample.annotations[0].spans or ()]


@pytest.mark.parametrize("order", ["given", "shuffled"])
def test_six_types_one_after_another_whatever_the_order(tmp_path: Path, order: Any) -> None:
    made(tmp_path / "out.jsonl", order=order)
    found = rows(tmp_path / "out.jsonl")
    assert len(found) == 3
    for sample in found:
        assert sorted(marks(sample)) == [
            ("contradictory", "It never burnt."),
            ("entity", "1764"),
            ("invented", "It won the Golden Sieve."),
            ("relation", "sold"),
            ("subjective", ", the loveliest of all,"),
            ("unverifiable", ", who liked to hum,"),
        ]
        silver_ = sample.meta["silver"]
        changes = msgspec.convert(silver_["changes"], list[Change])
        assert Edited(silver_["passage"], sample.response, tuple(changes)).restored == PASSAGE
        assert check(Edited(PASSAGE, sample.response, tuple(changes)), language="en", evidence=[ARTICLE]) == []
        assert silver_["support"] == "not checked"
        assert sample.evidence[0].text == ARTICLE
    assert load_account(tmp_path / "out.jsonl").languages["en"].calls == 3 * 7


def test_later_rounds_are_told_what_to_leave_alone(tmp_path: Path) -> None:
    """The entity round changes `1731`; a relation round that touches it again is rejected, and the row goes on."""
    rules = [
        ANSWER,
        rule("entity", "1731", edit("entity", "1731", "1764")),
        {"match": 'Leave these parts of the passage as they are: "1764".*Passage:\n(?P<a>.*)in 1764(?P<b>.*)\\Z',
         "reply": r"\g<a><relation><delete>in 1764</delete><mark>before 1764</mark></relation>\g<b>"},
    ]  # fmt: skip
    path = tmp_path / "out.jsonl"
    made(path, Scripted(rules), Injector("m", types=("entity", "relation"), seed=1, attempts=1), 1)
    # only `in` was exchanged, so that the relation is next to the entity and does not touch it
    assert marks(rows(path)[0]) == [("relation", "before"), ("entity", "1764")]
    rules[2]["reply"] = r"\g<a><relation><delete>in 1764</delete><mark>before 1799</mark></relation>\g<b>"
    path = tmp_path / "again.jsonl"
    made(path, Scripted(rules), Injector("m", types=("entity", "relation"), seed=1, attempts=1), 1)
    assert marks(rows(path)[0]) == [("entity", "1764")]
    assert [(one.type, one.reason) for one in rejected(path)] == [("relation", "overlap")]


def test_a_further_attempt_has_another_seed(tmp_path: Path) -> None:
    entity = rule("entity", "1731", "")
    entity["reply"] = ["no idea", r"\g<a>" + edit("entity", "1731", "1764") + r"\g<b>"]  # by the seed's number
    path = tmp_path / "out.jsonl"
    made(path, Scripted([ANSWER, entity]), Injector("m", types=("entity",), seed=4, attempts=2), 1)
    assert marks(rows(path)[0]) == [("entity", "1764")]
    assert [(one.reason, one.attempt) for one in rejected(path)] == [("nothing", 1)]
    account = load_account(path).total.types["entity"]
    assert (account.asked, account.taken, account.reasons) == (1, 1, {"nothing": 1})


def test_halluverse_gives_each_sentence_one_type_in_balance(tmp_path: Path) -> None:
    rules: list[dict[str, Any]] = [
        {"match": rf'error is "{type_}".*Original: The mill (?P<n>\d+) was built in 1731\.', "reply": reply}
        for type_, reply in (
            ("entity", r"The mill \g<n> was built in 1764."),
            ("relation", r"The mill \g<n> was destroyed in 1731."),
            ("sentence", r"<sentence_error>The mill \g<n> won a prize in 1731.</sentence_error>"),
        )
    ]
    given = [Sample(f"s{n}", f"The mill {n} was built in 1731.", language="en") for n in range(30)]
    path = tmp_path / "out.jsonl"
    made(path, Scripted(rules), Injector("m", taxonomy="halluverse", form="plain", seed=1), seeds=given)
    found = rows(path)
    assert [sample.id for sample in found] == [f"s{n}/s1" for n in range(30)]
    drawn = [(sample.annotations[0].units or ())[0].label for sample in found]
    assert Counter(drawn) == {"entity": 10, "relation": 10, "sentence": 10}
    assert len({tuple(drawn[3 * n : 3 * n + 3]) for n in range(10)}) > 2  # drawn at random inside each three
    for number, sample in enumerate(found):
        expected = {
            "entity": [("entity", "1764")],
            "relation": [("relation", "destroyed")],
            "sentence": [("sentence", sample.response)],
        }
        assert marks(sample) == expected[drawn[number]]
        assert sample.evidence[0].text == given[number].response


def test_sentences_of_a_passage_take_turns(tmp_path: Path) -> None:
    rules = [{"match": r'error is "(?P<t>\w+)".*Original: (?P<s>[^\n]*)\.\nEdited', "reply": r"\g<s> \g<t>x."}]
    path = tmp_path / "out.jsonl"
    made(path, Scripted(rules), Injector("m", taxonomy="halluverse", form="plain", seed=1), seeds=seeds(4, given=True))
    labels = [(sample.annotations[0].units or ())[0].label for sample in rows(path)]
    assert Counter(labels) == {"entity": 4, "relation": 4, "sentence": 4}
    assert [sample.id for sample in rows(path)][:4] == ["en-0/s1", "en-0/s2", "en-0/s3", "en-1/s1"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0])
def test_clean_rows_have_their_share_in_each_language(share: float) -> None:
    given = [sample for pair in zip(seeds(60), seeds(60, tag="de"), strict=True) for sample in pair]
    planned = list(tasks(given, TYPES, turns=False, clean=share))
    for tag in ("en", "de"):
        assert sum(not t.types for t in planned if t.id.startswith(tag)) == round(60 * share)  # type: ignore[union-attr]


def test_clean_rows_say_that_somebody_looked_and_marked_nothing(tmp_path: Path) -> None:
    made(tmp_path / "out.jsonl", clean=1.0)
    assert [(sample.response, sample.annotations[0].spans) for sample in rows(tmp_path / "out.jsonl")] == [
        (PASSAGE, ())
    ] * 3


def test_seeds_that_are_none_are_named(tmp_path: Path) -> None:
    given = [
        Sample("nothing", "", language="en", question="When?"),
        Sample("which language", "12 34 56"),
        Sample("told", "Die Mühle wurde im Jahr 1731 von der Witwe Anna Kroll gebaut und ist 1902 abgebrannt."),
        Sample("other language", PASSAGE, language="de"),
        Sample("cut", PASSAGE, language="en", meta={"finish": "length"}),
        Sample("loops", "It was a mill. " * 30, language="en"),
        Sample("declines", "I'm sorry, but I can't help with that question.", language="en"),
        Sample("tags", f"<b>{PASSAGE}</b>", language="en"),
        Sample("short", "Ja.", language="de"),
        Sample("sister", "Jembatan itu dibuka pada tahun 1874.", language="id"),  # it was rejected as Malay
    ]
    path = tmp_path / "out.jsonl"
    tally = made(path, seeds=given, clean=1.0)
    assert tally.failed == 2
    assert [sample.id for sample in rows(path)] == ["told", "sister"]
    assert {one.id: one.reason for one in rejected(path)} == {
        "other language": "language", "cut": "cut", "loops": "garbled", "declines": "refused", "tags": "markup",
        "short": "no_text",
    }  # fmt: skip
    assert load_account(path).failed == 2
    assert load_account(path).total.passages.asked == 8


def test_a_detector_says_what_is_supported_after_all(tmp_path: Path) -> None:
    rules = [
        ANSWER,
        rule("entity", "1731", edit("entity", "1731", "1764")),
        rule("unverifiable", "The widow Anna", "The widow Anna<unverifiable> of Oberfeld</unverifiable>"),
    ]
    path = tmp_path / "out.jsonl"
    support = Support(load_detector("grounding"))
    injector = Injector("m", types=("entity", "unverifiable"), seed=1, attempts=1)
    made(path, Scripted(rules), injector, 1, support=support)
    (sample,) = rows(path)
    assert marks(sample) == [("entity", "1764")]
    assert sample.response == PASSAGE.replace("1731", "1764")  # the rejected error is removed
    assert [(one.type, one.reason, one.text.strip()) for one in rejected(path)] == [
        ("unverifiable", "supported", "of Oberfeld")
    ]
    assert sample.meta["silver"]["support"].startswith("support:detector|")


def test_a_detector_rejects_passages_that_the_evidence_does_not_support(tmp_path: Path) -> None:
    wrong = Sample(
        "w",
        "Napoleon sailed from Corsica to Peru and founded forty schools.",
        language="en",
        evidence=(Evidence(ARTICLE),),
    )
    path = tmp_path / "out.jsonl"
    made(path, seeds=[wrong], clean=1.0, support=Support(load_detector("grounding")))
    assert path.read_bytes() == b""
    assert [(one.type, one.reason) for one in rejected(path)] == [("passage", "unsupported")]


def test_a_model_says_what_is_supported(tmp_path: Path) -> None:
    rules = [
        {"match": "Statement:\n.*hum", "reply": '{"supported": true}'},
        {"match": "Statement:\nThe mill was built in 1764", "reply": "false, I would say"},
        {"match": f"Statement:\n{PASSAGE}", "reply": '{"supported": true}'},
        {"match": "Statement:", "reply": '{"supported": false}'},
        *RULES,
    ]
    path = tmp_path / "out.jsonl"
    injector = Injector("m", types=("entity", "relation", "unverifiable"), seed=1, attempts=1)
    made(path, Scripted(rules), injector, 2, support=Support("judge", seed=1))
    assert [marks(sample) for sample in rows(path)] == [[("relation", "sold")]] * 2
    assert Counter((one.type, one.reason) for one in rejected(path)) == {
        ("entity", "unchecked"): 2,
        ("unverifiable", "supported"): 2,
    }
    assert load_account(path).total.calls == 2 * (1 + 1 + 3 + 3)  # passages and errors are made, then checked


def test_a_run_that_stops_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    made(whole, count=20, jobs=1)
    with pytest.raises(ModelError, match="The limit of"):
        made(part, Limited(Scripted(RULES), Limits(calls=70)), count=20, jobs=1)
    assert not part.exists()
    assert made(part, count=20, jobs=3).reused == 8  # a block of rows, of 7 calls each
    assert part.read_bytes() == whole.read_bytes()
    assert rejected_path(part).read_bytes() == rejected_path(whole).read_bytes()
    assert load_account(part) == load_account(whole)
    with pytest.raises(UsageError, match="was started differently"):
        made(part, count=20, clean=0.5)


def test_a_call_that_gives_nothing_is_a_failed_row(tmp_path: Path) -> None:
    rules = [{"match": "When, en-1", "error": "the line is dead"}, *RULES]
    given = [msgspec.structs.replace(sample, question=f"When, {sample.id}?") for sample in seeds(3)]
    path = tmp_path / "out.jsonl"
    assert made(path, Scripted(rules), seeds=given).failed == 1
    assert [sample.id for sample in rows(path)] == ["en-0", "en-2"]
    (line,) = (tmp_path / "out.jsonl.failed.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["message"] == "the line is dead"
    assert load_account(path).failed == 1


def test_what_a_seed_cost_before_it_failed_is_in_the_account(tmp_path: Path) -> None:
    rules = [{"match": 'error is "relation".*Passage', "error": "the line is dead"}, *RULES]
    injector = Injector("m", types=("entity", "relation"), seed=1, attempts=1)
    costs = {}
    for name, script in (("sound", RULES), ("broken", rules)):
        path = tmp_path / f"{name}.jsonl"
        made(path, Scripted(script), injector, count=2)
        costs[name] = load_account(path)
    assert (costs["broken"].failed, costs["broken"].total.seeds) == (2, 0)
    assert costs["sound"].total.calls == 6  # an answer and two errors for each of two seeds
    assert costs["broken"].total.calls == 4
    assert 0 < costs["broken"].total.tokens_in < costs["sound"].total.tokens_in
    assert 0 < costs["broken"].total.tokens_out < costs["sound"].total.tokens_out


@pytest.mark.parametrize(
    ("injector", "more", "error"),
    [
        (Injector("m", taxonomy="hat"), {}, UnknownNameError),
        (Injector("m", types=("sentence",)), {}, UnknownNameError),
        (Injector("m", types=("entity", "entity")), {}, UsageError),
        (Injector("m", taxonomy="halluverse"), {}, UsageError),
        (Injector("m", attempts=0), {}, UsageError),
        (Injector("m"), {"clean": 1.5}, UsageError),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, injector: Injector, more: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        made(tmp_path / "out.jsonl", injector=injector, **more)
    assert not list(tmp_path.iterdir())


def test_rows_that_could_not_be_read_pass_through() -> None:
    broken = FailedRow("no JSON")
    assert list(tasks([broken], TYPES, turns=False)) == [broken]
