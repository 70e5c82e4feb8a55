"""The NLI detector: what it marks and why, support anywhere in long evidence, statuses, the contract of detectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from detector_contract import check_contract, check_pointer, check_processes
from many_languages import TEXTS
from scripted_nli import FindsWords, Scripted

from json_lines import read_lines
from veriglot.cli import main
from veriglot.detectors.registry import DETECTORS, load_detector
from veriglot.detectors.units import WithUnits
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.reader import read
from veriglot.records import Evidence, Sample, Status

if TYPE_CHECKING:
    from veriglot.records import Prediction

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "samples.jsonl"
EVIDENCE = "The lighthouse of Norva was built in 1901. Its keeper was Ada Lind. The island is empty today."


def sample(response: str, evidence: str = EVIDENCE, language: str | None = "en", name: str = "1") -> Sample:
    return Sample(name, response, language=language, evidence=(Evidence(evidence),))


def found_in(given: Sample, **options: object) -> Prediction:
    return load_detector("nli", model=FindsWords(), **options).predict([given])[0]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    told = [Sample(f"own-{tag}", t.changed, language=tag, evidence=(Evidence(t.evidence),)) for tag, t in TEXTS.items()]
    unscored = [
        sample(" ", name="empty"),
        Sample("bare", "Norva."),
        sample("ᚠᚢᚦ", "ᚠᚢᚦᚨ", None, "unknown"),
        sample("half \ud800 a pair", name="half"),
        sample("…!", name="marks"),
        sample("Norva.", "…", name="wordless"),
    ]
    return [*list(read(EXAMPLES))[::8], *told[::3], *unscored]


@pytest.mark.parametrize("claim", ["sentence", "fact"])
def test_the_contract_is_kept_with_a_network_from_disk(tiny: str, samples: list[Sample], claim: str) -> None:
    check_contract(partial(load_detector, f"nli:{tiny}", claim=claim, device="cpu"), samples[::3])


@pytest.mark.parametrize("claim", ["sentence", "fact"])
def test_the_contract_is_kept_whatever_the_model(samples: list[Sample], claim: str) -> None:
    check_contract(partial(load_detector, "nli", model=FindsWords(), claim=claim), samples)


def test_new_processes_say_the_same(tiny: str, samples: list[Sample]) -> None:
    check_processes(load_detector(f"nli:{tiny}", words=True, device="cpu"), samples[::7])


def test_what_is_marked_and_what_it_points_at() -> None:
    response = "Its keeper was Ada Lind. The lighthouse was never built in 1901. Ships pass the reef at night."
    found = found_in(sample(response), words=True)
    assert found.status is Status.SCORED
    contradicted, unverified = found.spans or ()
    assert contradicted.type == "contradicted"
    assert contradicted.text == "The lighthouse was never built in 1901."
    assert contradicted.confidence == 1.0
    given = sample(response)
    assert check_pointer(given, contradicted.evidence[0]) == "The lighthouse of Norva was built in 1901."
    assert unverified.type == "unverified"
    assert unverified.text == "Ships pass the reef at night."
    assert unverified.confidence == round(1 - 1 / 6, 4), "only `the` stands in the evidence"
    first = (found.words or ())[0]
    assert first.confidence == 0.0
    assert check_pointer(given, first.evidence[0]) == "Its keeper was Ada Lind."
    assert found.score == 1.0


def test_support_by_any_passage_is_support() -> None:
    passages = tuple(
        Evidence(text) for text in ("Nothing of it here.", "The keeper was never there.", "Ada was the keeper.")
    )
    given = Sample("1", "Ada was the keeper.", language="en", evidence=passages)
    found = found_in(given, words=True)
    assert found.spans == ()
    assert found.score == 0.0
    assert {pointer.id for word in found.words or () for pointer in word.evidence} == {"p2"}


@pytest.mark.parametrize("place", [0, 1, 4_321, 9_998, 9_999])
@pytest.mark.parametrize("size", [1, 3, 0])
def test_support_is_found_anywhere_in_a_hundred_thousand_words(place: int, size: int) -> None:
    filler = [f"In the year {number} nothing of any note took place here." for number in range(1, 10_001)]
    filler[place] = "Ada Lind lit the great lamp of Norva for the first time."
    reference = " ".join(filler)
    assert len(reference.split()) > 100_000
    given = sample("Ada Lind lit the great lamp of Norva. Zebras dance.", reference)
    found = found_in(given, words=True, premise_sentences=size)
    assert [span.text for span in found.spans or ()] == ["Zebras dance."]
    pointed = check_pointer(given, (found.words or ())[0].evidence[0])
    assert filler[place] in pointed
    if size == 1:
        assert pointed == filler[place]


def test_facts_are_marked_apart() -> None:
    response = "Ada Lind, the keeper of Norva, was born there in 1850."
    found = found_in(sample(response, "Ada Lind, the keeper of Norva, was born there."), claim="fact", threshold=0.1)
    assert [span.text for span in found.spans or ()] == ["in 1850"]
    whole = found_in(sample(response, "Ada Lind, the keeper of Norva, was born there."), threshold=0.1)
    assert [span.text for span in whole.spans or ()] == [response]


def test_the_question_may_stand_before_each_claim() -> None:
    asked = Sample(
        "1", "In 1901.", language="en", question="When was it built?", evidence=(Evidence("It was built in 1901."),)
    )
    row = {("It was built in 1901.", "When was it built? In 1901."): (0.9, 0.1, 0.0)}
    found = load_detector("nli", model=Scripted(row), question=True, words=True).predict([asked])[0]
    assert found.score == 0.1
    assert [(word.start, word.end) for word in found.words or ()] == [(0, 2), (3, 7)]
    plain, with_question = found_in(asked), found_in(asked, question=True)
    assert plain.signature != with_question.signature
    assert found_in(sample("In 1901."), question=True).status is Status.SCORED


def test_notes_say_what_the_numbers_are_not() -> None:
    assert found_in(sample("Ada.")).notes == ("calibration:none", "languages:undeclared")
    told = {
        "facts:sentences": found_in(sample("Ada.", language="tlh"), claim="fact").notes,
        "language:from_response": found_in(sample("The keeper of the house was there.", language=None)).notes,
        "evidence:other_script": found_in(sample("The keeper was there.", "Смотритель был там.")).notes,
    }
    for note, notes in told.items():
        assert note in notes
    two = Scripted({("Yes.", "No."): (0.2, 0.8, 0.0)}, labels=("entailment", "not_entailment"))
    found = load_detector("nli", model=two).predict([sample("No.", "Yes.")])[0]
    assert "labels:contradiction not told apart" in found.notes
    assert [span.type for span in found.spans or ()] == ["unverified"]


def test_a_claim_longer_than_the_network_takes_is_said(tiny: str) -> None:
    detector = load_detector(f"nli:{tiny}", device="cpu")
    long, short = detector.predict([sample("Ada and " * 60 + "Lind."), sample("Ada.")])
    assert "claim:in pieces" in long.notes
    assert "claim:in pieces" not in short.notes


def test_languages_that_the_model_is_not_declared_for() -> None:
    german = load_detector("nli", model=FindsWords(languages=frozenset({"de"})))
    one, other = german.predict([sample("Ada war da.", language="de-AT"), sample("Ada was there.")])
    assert one.status is Status.SCORED
    assert "languages:undeclared" not in one.notes
    assert other.status is Status.UNSUPPORTED_LANGUAGE
    assert "de" in (other.reason or "")


def test_a_failure_is_of_one_sample_only() -> None:
    given = [sample("Ada Lind."), sample("It goes boom."), sample("Norva.")]
    found = load_detector("nli", model=FindsWords()).predict(given)
    assert [one.status for one in found] == [Status.SCORED, Status.FAILED, Status.SCORED]
    assert "the network broke" in (found[1].reason or "")


def test_names_and_options(tiny: str) -> None:
    assert DETECTORS.entry("nli:x").extra == "local"
    with pytest.raises(UsageError, match="model"):
        load_detector("nli")
    for wrong in ({"claim": "word"}, {"nonsense": 1}):
        with pytest.raises(UnknownNameError):
            load_detector(f"nli:{tiny}", **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        load_detector(f"nli:{tiny}", premise_sentences=-1)
    one, other = load_detector(f"nli:{tiny}"), load_detector(f"nli:{tiny}", claim="fact")
    assert one.name == other.name
    assert one.signature != other.signature


def test_units_come_from_its_words() -> None:
    detector = WithUnits(load_detector("nli", model=FindsWords(), words=True), "sentence")
    (found,) = detector.predict([sample("Ada Lind. Zebras dance.")])
    assert [unit.score for unit in found.units or ()] == [0.0, 1.0]


def test_on_the_command_line(tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "marked.jsonl"
    argv = ["detect", str(EXAMPLES), "--detector", f"nli:{tiny}", "--set", "claim=fact", "--set", "device=cpu"]
    assert main([*argv, "-o", str(out)]) == 0
    rows = read_lines(out)
    assert len(rows) > 50
    assert all(row["status"] == "scored" and row["detector"].startswith("nli@") for row in rows)
    assert main(["detect", str(EXAMPLES), "--detector", "nli:./absent"]) != 0
    assert "no folder './absent'" in capsys.readouterr().err
