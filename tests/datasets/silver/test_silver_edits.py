"""Texts and their errors: added, removed, trimmed, found by difference; read from replies; conversations."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.datasets.generation import run_conversations
from veriglot.datasets.prompts import filled, load_prompts, prompt_version
from veriglot.datasets.silver.check import Change, Edited, Violation
from veriglot.datasets.silver.injection import (
    Injector,
    Task,
    differing,
    read_reply,
    trim_unchanged_words,
)
from veriglot.llm.client import Client, Message, Reply, Request
from veriglot.records import Evidence, Sample
from veriglot.records.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Generator

ROUND = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.sampled_from(["Q", "QQ Q", "zz"])), max_size=3)


def put_into(text: str, round_: list[tuple[int, int, str]], type_: str) -> Edited:
    """The text with errors at some ranges, without overlapping ones."""
    put: list[tuple[Change, str]] = []
    read = 0
    for start, length, new in sorted(round_):
        end = min(len(text), start + length)
        if start < read or start > len(text):
            continue
        put.append((Change(0, 0, start, end, type_), new))
        read = end + 1
    return Edited.of(text, put)


@given(original=st.text("abc .", min_size=1, max_size=40), rounds=st.lists(ROUND, max_size=4), data=st.data())
def test_rounds_of_errors_keep_their_places_and_can_be_taken_out(
    original: str, rounds: list[list[tuple[int, int, str]]], data: st.DataObject
) -> None:
    edited = Edited(original, original)
    for number, round_ in enumerate(rounds):
        further = put_into(edited.text, round_, str(number))
        after = edited.then(further.text, further.changes)
        if after is not None:
            assert [c for c in after.changes if c.type != str(number)] or not edited.changes
            for change in edited.changes:  # the replaced text is still recorded
                text = edited.text[change.start : change.end]
                assert any(
                    after.text[c.start : c.end] == text
                    and (c.old_start, c.old_end) == (change.old_start, change.old_end)
                    for c in after.changes
                )
            edited = after
    assert edited.restored == original
    out = data.draw(st.sets(st.integers(0, max(0, len(edited.changes) - 1))))
    less = edited.without(out)
    assert less.restored == original
    assert len(less.changes) == len([n for n in range(len(edited.changes)) if n not in out])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("born in Rome", "born in Paris", ("Rome", "Paris")),
        ("in Rome by Kroll", "in Paris by Kroll", ("Rome", "Paris")),
        ("Rome, Italy", "Paris, Italy", ("Rome", "Paris")),
        ("Rome", "Rome and Paris", ("Rome", "Rome and Paris")),
        ("the the", "the", ("the the", "the")),
        ("in  Rome", "in Paris", ("in  Rome", "in Paris")),  # the white space would differ from the original
        ("", "Paris", ("", "Paris")),
    ],
)
def test_an_error_is_narrowed_to_what_is_wrong(old: str, new: str, expected: tuple[str, str]) -> None:
    original, text = f"He was {old} .", f"He was {new} ."
    found = trim_unchanged_words(original, text, Change(7, 7 + len(new), 7, 7 + len(old), "entity"), "en")
    assert (original[found.old_start : found.old_end], text[found.start : found.end]) == expected
    assert Edited(original, text, (found,)).restored == original


@pytest.mark.parametrize(
    ("tag", "before", "after", "expected"),
    [
        ("en", "Kroll sold the mill.", "Kroll bought the mill.", ["bought"]),
        ("en", "Kroll sold the mill.", "Kroll sold the mill in May.", ["in May"]),
        ("en", "Kroll sold the mill.", "Senn sold the church.", ["Senn", "church"]),
        ("en", "Kroll sold the mill.", "Kroll  sold the mill.", []),
        ("en", "Kroll never sold the mill.", "Kroll sold the mill.", None),
        ("en", "Kroll never sold the mill.", "Senn sold the mill.", ["Senn"]),
        ("zh-Hans", "他出生于北京。", "他出生于上海。", ["上海"]),
        ("th", "เขาเกิดที่กรุงเทพ", "เขาเกิดที่เชียงใหม่", ["เชียงใหม่"]),
        ("ar", "باعت آنا الطاحونة.", "اشترت آنا الطاحونة.", ["اشترت"]),
    ],
)
def test_differences_are_words(tag: str, before: str, after: str, expected: list[str] | None) -> None:
    spans = differing(before, after, "entity", tag)
    assert (None if spans is None else [after[s.start : s.end] for s in spans]) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Kroll bought the mill.", "bought"),
        ('"Kroll bought the mill."', "bought"),
        ("Edited: Kroll bought the mill.", "bought"),
        ("Here is the edited text:\n\nKroll bought the mill.", "bought"),
        ("<relation_error>Kroll bought the mill.</relation_error>", "bought"),
        ("Kroll sold the mill.", "nothing"),
        ("Kroll the mill.", "deleted"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("Kroll bought the mill.\nKroll burnt the mill.", "outside"),
    ],
)
def test_plain_replies(reply: str, expected: str) -> None:
    passage = "Kroll sold the mill."
    found = read_reply(passage, Reply(reply), "relation", form="plain", taxonomy="halluverse", language="en")
    if isinstance(found, Violation):
        assert found.reason == expected
    else:
        assert [span.text for span in found.spans] == [expected]


@pytest.mark.parametrize("type_", taxonomy("halluverse").types)
@pytest.mark.parametrize(
    ("passage", "more"),
    [
        ("Kroll sold the mill.", " It was a ruin."),
        ("Kroll sold the mill. It burnt down in 1902.", " Senn never forgave her."),
    ],
)
def test_a_sentence_more_is_no_error_of_halluverse(type_: str, passage: str, more: str) -> None:
    changed = passage.replace("sold the mill", "bought a church")
    told: dict[str, Any] = {"form": "plain", "taxonomy": "halluverse", "language": "en"}
    found = read_reply(passage, Reply(changed + more), type_, **told)
    assert isinstance(found, Violation)
    assert (found.reason, "says more" in found.detail) == ("outside", True)
    assert not isinstance(read_reply(passage, Reply(changed), type_, **told), Violation)
    explained = f"{changed}\n\nI exchanged what she did. The rest is as it was."
    assert not isinstance(read_reply(passage, Reply(explained), type_, **told), Violation)


def test_a_sentence_more_is_what_some_types_of_fava_are() -> None:
    passage, reply = "Kroll sold the mill.", Reply("Kroll sold the mill. It won the Golden Sieve.")
    found = read_reply(passage, reply, "invented", form="plain", taxonomy="fava", language="en")
    assert not isinstance(found, Violation)
    assert "Golden Sieve" in found.spans[0].text


def test_prompts_know_every_type_and_show_what_the_model_needs() -> None:
    evidence = (Evidence("Ref {0}"),)
    seed = Sample("s", "", language="de", question="Wann?", evidence=evidence)
    marks = (Change(0, 3, 0, 3, "entity"), Change(4, 9, 4, 9, "entity"))
    edited = Edited("Das {ist} es.", "Das {ist} es.", marks)
    for name in ("fava", "halluverse"):
        types = tuple(taxonomy(name).types)
        assert tuple(load_prompts("injection")[name]) == types
        for type_ in types:
            for form in ("tags", "plain"):
                injector = Injector("m", taxonomy=name, form=form)  # type: ignore[arg-type]
                asked = injector.request(Task("s", seed, types), edited, type_, 1).text
                assert "Das {ist} es." in asked
                assert "German" in asked
                assert '"Das", "{ist}"' in asked
                assert f'"{type_}"' in asked
                assert ("Reference:\nRef {0}" in asked) == (
                    type_ in {"contradictory", "invented", "subjective", "unverifiable"}
                )
                assert ("<mark>" in asked or f"</{type_}>" in asked) == (form == "tags")
                assert "\n\n\n" not in asked
    injector = Injector("m")
    assert "Question: Wann?" in injector.passage_request(seed, 1).text
    assert "Question" not in injector.passage_request(msgspec.structs.replace(seed, question=" "), 1).text
    texts = {"statement": "S", "passage": "P", "reference": "R"}
    assert "Statement:\nS" in filled("injection", "support", "xx-unknown", **texts)
    assert prompt_version("injection") == "injection@2"


class _Counting(Client):
    """Records how many calls ran at the same time."""

    name = "counting"
    signature = "client:counting"

    def __init__(self) -> None:
        self.most = self._now = 0
        self._lock = threading.Lock()

    def ask(self, request: Request) -> Reply:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.001)
        with self._lock:
            self._now -= 1
        return Reply(request.text.upper())


def test_waves_keep_the_order_and_the_number_of_calls() -> None:
    def work(sample: Sample) -> Generator[tuple[Request, ...], list[Reply], str]:
        row, said = int(sample.id), ""
        for number in range(row % 4):
            replies = yield tuple(Request("m", (Message("user", f"r{row} {number} {i}"),)) for i in range(row % 3))
            said += "".join(reply.text for reply in replies)
        return f"{row}: {said}"

    client = _Counting()
    found = list(run_conversations(client, (Sample(str(n), "") for n in range(50)), work, jobs=3))
    assert [str(one).partition(":")[0] for one in found] == [str(n) for n in range(50)]
    assert found[11] == "11: R11 0 0R11 0 1R11 1 0R11 1 1R11 2 0R11 2 1"
    assert 1 < client.most <= 3
