"""The detector `ensemble`: means by hand, types by vote, pointers, and members that are missing."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from told_words import ToldWords, plugged_in, told

from veriglot.detectors.calibration import ByScript
from veriglot.detectors.ensemble import Ensemble, Member, Mix, StackedMember, Stacking, read_members
from veriglot.detectors.registry import DETECTORS, load_detector
from veriglot.errors import InputError, MissingExtraError, UnknownNameError, UsageError
from veriglot.records import DataSource, Status
from veriglot.testing import check_detector, ordinary_samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from veriglot.detectors.ensemble import Member as _Member

A = Member("told-words", options={"letter": "a"})
B = Member("told-words", options={"letter": "b", "kind": "invented"})


@pytest.fixture(autouse=True, scope="module")
def told_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The small detector by name, as a plug-in."""
    with plugged_in(tmp_path_factory.mktemp("site")):
        yield


def ensemble(*members: _Member, **options: Any) -> Ensemble:
    return Ensemble(list(members), **options)


def test_the_mean_of_words_and_of_scores() -> None:
    (found,) = ensemble(A, B, words=True).predict([told("one", "a20b40 a90b70x a10b95 zebra")])
    assert [word.confidence for word in found.words or ()] == [0.3, 0.8, 0.525, 0.0]
    assert [(span.text, span.confidence) for span in found.spans or ()] == [("a90b70x a10b95", 0.6625)]
    assert found.score == pytest.approx((0.9 + 0.95) / 2)


def test_members_may_weigh_more() -> None:
    heavy = msgspec.structs.replace(B, weight=3.0)
    (found,) = ensemble(A, heavy, words=True).predict([told("one", "a20b40")])
    assert [word.confidence for word in found.words or ()] == [0.35]
    assert ensemble(A, heavy).signature != ensemble(A, B).signature


def test_types_are_voted_on_and_pointers_kept() -> None:
    (found,) = ensemble(A, B).predict([told("one", "a90b51. Then a51b90. Then a80b00.")])
    assert [(span.text, span.type) for span in found.spans or ()] == [("a90b51", "entity"), ("a51b90", "invented")]
    assert all(len(span.evidence) == 1 for span in found.spans or ()), "the same pointer of both stands once"


def test_a_type_without_a_counterpart_does_not_vote() -> None:
    other = Member("told-words", options={"letter": "b", "kind": "hallucination", "taxonomy": "hat"})
    (found,) = ensemble(A, other).predict([told("one", "a51b99")])
    assert [span.type for span in found.spans or ()] == ["entity"]
    assert ensemble(other, A).taxonomy == "hat"
    assert [span.type for span in ensemble(other, A).predict([told("one", "a51b99")])[0].spans or ()] == [
        "hallucination"
    ]


def test_supported_words_keep_where_they_stand() -> None:
    (found,) = ensemble(A, B, words=True).predict([told("one", "a20b40 a90b70")])
    assert [len(word.evidence) for word in found.words or ()] == [1, 0]


def test_who_cannot_judge_a_language_leaves_it_to_the_others_and_is_named() -> None:
    choosy = Member("told-words", options={"letter": "b", "refuses": "fr"})
    (found,) = ensemble(A, choosy, words=True).predict([told("one", "a90b10", "fr")])
    assert [word.confidence for word in found.words or ()] == [0.9]
    assert "ensemble:without told-b@1 (unsupported_language)" in found.notes


def test_where_nobody_can_judge_a_language_it_is_unscored_and_says_who() -> None:
    choosy = [Member("told-words", options={"letter": letter, "refuses": "fr"}) for letter in "ab"]
    (found,) = ensemble(*choosy).predict([told("one", "a90b90", "fr")])
    assert found.status is Status.UNSUPPORTED_LANGUAGE
    assert found.reason == "told-a@1: does not read fr; told-b@1: does not read fr"
    assert found.spans is None


def test_the_gravest_status_counts() -> None:
    samples = [told("one", "a90", "xx"), msgspec.structs.replace(told("two", "a90"), evidence=()), told("three", " ")]
    found = ensemble(A, B).predict(samples)
    assert [one.status for one in found] == [Status.UNSUPPORTED_LANGUAGE, Status.NO_EVIDENCE, Status.FAILED]
    assert found[1].reason == "told-a@1: no evidence; told-b@1: no evidence"


def test_the_rest_goes_on_where_that_is_asked_for() -> None:
    alone = Member("told-words", options={"letter": "b", "spans_alone": True})
    (found,) = ensemble(A, alone, missing="rest", words=True).predict([told("one", "a90b10")])
    assert [word.confidence for word in found.words or ()] == [0.9]
    assert "ensemble:without told-b@1 (failed)" in found.notes


def test_spans_alone_cannot_be_averaged() -> None:
    alone = Member("told-words", options={"letter": "b", "spans_alone": True})
    (found,) = ensemble(A, alone).predict([told("one", "a90b90")])
    assert found.status is Status.FAILED
    assert "without the confidence of each word" in str(found.reason)


def test_a_member_that_is_not_installed(no_reader: None) -> None:
    with pytest.raises(MissingExtraError, match=r"veriglot\[reader\]"):
        Ensemble("grounding+reader")
    (found,) = Ensemble("grounding+reader", missing="rest").predict([told("one", "The mill is old.")])
    assert "ensemble:without reader (not installed)" in found.notes


def test_a_class_of_ones_own_is_a_member() -> None:
    sample = told("one", "The mill is old.")
    own = Member("told_words:ToldWords", options=A.options)
    (found,) = ensemble(own, B).predict([sample])
    (same,) = ensemble(A, B).predict([sample])
    assert (found.words, found.score, found.spans) == (same.words, same.score, same.spans)
    again = pickle.loads(pickle.dumps(Ensemble("told_words:ToldWords+grounding")))
    assert [one.detector for one in again._members] == ["told_words:ToldWords", "grounding"]
    with pytest.raises(UsageError, match="No module named 'no_such_module'"):
        Ensemble("grounding+no_such_module:Mine")


@pytest.mark.parametrize(
    ("given", "message"),
    [("grounding", "at least two"), ("grounding+grounding", "twice"), ("", "at least two")],
)
def test_members_that_make_no_ensemble(given: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Ensemble(given)
    with pytest.raises(UsageError, match="no members"):
        Ensemble()
    with pytest.raises(UnknownNameError):
        Ensemble("grounding+gruonding")


def test_a_file_of_members(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[[members]]\ndetector = "a"\n\n[[members]]\ndetector = "b"\nweight = 2\ncalibration = "b.json"\n'
        '[members.options]\nmodel = "m"\n', "utf-8"
    )  # fmt: skip
    assert read_members(str(path)) == (Member("a"), Member("b", str(tmp_path / "b.json"), 2.0, {"model": "m"}))
    for text in ('[[members]]\ndetector = "a"\nwieght = 2', '[[members]]\ndetector = "a"\nweight = 0', "[["):
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match="no plan of an ensemble"):
            read_members(str(path))


def stack(tmp_path: Path, members: Sequence[_Member], words: ByScript[Mix], **parts: Any) -> str:
    made = [ToldWords(**member.options) for member in members]
    learned = [
        StackedMember(member, one.name, one.signature.replace("|threshold:0.5", ""), "words")
        for member, one in zip(members, made, strict=True)
    ]
    file = Stacking(
        format=Stacking.known, members=tuple(learned), threshold=0.5, words=words, responses=parts.get("responses"),
        quality=(), data=DataSource("0" * 64, "gold"), signature="stacked:by hand",
    )  # fmt: skip
    path = tmp_path / "stack.json"
    path.write_bytes(msgspec.json.encode(file))
    return str(path)


def probability(log_odds: float) -> float:
    return round(float(1.0 / (1.0 + np.exp(-log_odds))), 4)


def test_a_stack_by_hand(tmp_path: Path) -> None:
    odds = {share: float(np.log(share / (1 - share))) for share in (0.2, 0.4, 0.9, 0.7)}
    path = stack(tmp_path, [A, B], ByScript(Mix((0.5, 1.5), -0.25)), responses=ByScript(Mix((1.0, 0.0), 0.0)))
    detector = Ensemble(stacking=path, words=True)
    (found,) = detector.predict([told("one", "a20b40 a90b70")])
    assert [word.confidence for word in found.words or ()] == [
        probability(0.5 * odds[0.2] + 1.5 * odds[0.4] - 0.25),
        probability(0.5 * odds[0.9] + 1.5 * odds[0.7] - 0.25),
    ]
    assert found.score == 0.9
    assert found.notes == ("calibration:default",), "of the stack; what members say of theirs is void"


def test_a_stack_without_a_member_makes_the_rest_carry_the_whole(tmp_path: Path) -> None:
    choosy = Member("told-words", options={"letter": "b", "refuses": "fr"})
    path = stack(tmp_path, [A, choosy], ByScript(Mix((0.5, 1.5), -0.25)))
    (found,) = Ensemble(stacking=path, words=True, missing="rest").predict([told("one", "a20b40", "fr")])
    assert [word.confidence for word in found.words or ()] == [probability(2.0 * float(np.log(0.25)) - 0.25)]


def test_what_the_stack_marks_has_a_type_though_no_member_marks_it(tmp_path: Path) -> None:
    path = stack(tmp_path, [A, B], ByScript(Mix((1.0, 1.0), 2.0)))
    (found,) = Ensemble(stacking=path).predict([told("one", "a30b35 a01b01")])
    assert [(span.text, span.type) for span in found.spans or ()] == [("a30b35", "invented")]


def test_a_stack_of_other_members_is_refused(tmp_path: Path) -> None:
    path = stack(tmp_path, [A, B], ByScript(Mix((1.0, 1.0), 0.0)))
    with pytest.raises(UsageError, match="were learned for told-words"):
        Ensemble("grounding+reader", stacking=path)
    text = (tmp_path / "stack.json").read_text("utf-8").replace("told-b@1", "told-b@2")
    (tmp_path / "stack.json").write_text(text, "utf-8")
    with pytest.raises(UsageError, match="learned with told-b@2"):
        Ensemble(stacking=path)


def test_weights_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="negative"):
        Mix((-0.1, 1.0), 0.0)
    with pytest.raises(ValueError, match="one weight for each"):
        stack(tmp_path, [A, B], ByScript(Mix((1.0,), 0.0)))
    (tmp_path / "other.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match="no file of ensemble weights"):
        Ensemble(stacking=str(tmp_path / "other.json"))


def test_it_travels_and_keeps_the_contract() -> None:
    other = Member("grounding")
    detector = ensemble(A, other)
    again = pickle.loads(pickle.dumps(detector))
    assert (again.name, again.signature) == (detector.name, detector.signature)
    check_detector(partial(Ensemble, [A, other]))


@pytest.mark.slow
def test_grounding_and_reader_keep_the_contract(reader_here: None) -> None:
    check_detector(partial(Ensemble, "grounding+reader"), ordinary_samples()[::4])


def test_it_is_found_by_name() -> None:
    assert "ensemble:grounding+reader" in DETECTORS
    with pytest.raises(UsageError, match="at least two"):
        load_detector("ensemble:grounding")
