"""A scripted model with bad replies: only valid rows are accepted, and each reason is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from veriglot.datasets.generation import Account, read_account, rejected_path
from veriglot.datasets.translation.job import TranslationLanguage, TranslationSettings, translate
from veriglot.datasets.translation.translators import ModelTranslator
from veriglot.llm.registry import connect
from veriglot.records import Annotation, Evidence, Kind, Sample, Span

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "The bridge was opened in 1879 by Karl Meyer, and it still stands over the river today."
GOOD = "Die Brücke wurde <1>1879</1> von Karl Meyer eröffnet, und sie steht noch heute über dem Fluss."
PLAIN = GOOD.replace("<1>", "").replace("</1>", "")
CASES = {
    "markers_lost": {"reply": PLAIN},
    "markers_added": {"reply": GOOD.replace("heute", "<2>heute</2>")},
    "markers_unpaired": {"reply": GOOD.replace("<1>1879</1>", "</1>1879<1>")},
    "markers_empty": {"reply": GOOD.replace("<1>1879</1>", "1879 <1></1>")},
    "no_text": {"reply": "..."},
    "refused": {"reply": "I'm sorry, but I cannot translate this text."},
    "cut": {"reply": "Die Brücke wurde <1>1879</1> von", "finish": "length"},
    "held_back": {"reply": "", "finish": "filter"},
    "untranslated": {"reply": TEXT.replace("1879", "<1>1879</1>")},
    "wrong_script": {"reply": "Мост был открыт в <1>1879</1> году Карлом Мейером и стоит над рекой до сих пор."},
    "wrong_language": {
        "reply": "Le pont a été ouvert en <1>1879</1> par Karl Meyer, et il se dresse encore aujourd'hui au-dessus du"
        " fleuve."
    },
    "loops": {"reply": "<1>1879</1> " + "die Brücke " * 12},
    "too_short": {"reply": "<1>1879</1>"},
    "too_long": {"reply": GOOD + " Außerdem ist sie sehr schön, wie alle wissen, die je dort gewesen sind. Der Fluss"
                 " fließt langsam unter ihr hindurch, und am Ufer wachsen Weiden, Pappeln und viele andere Bäume, unter"
                 " denen im Sommer Kinder spielen, während ihre Eltern auf Bänken sitzen und in der Zeitung lesen."},
}  # fmt: skip


def sample(name: str) -> Sample:
    gold = Annotation("gold", Kind.HUMAN, "fava", spans=(Span(25, 29, "entity"),))
    return Sample(name, TEXT, language="en", annotations=(gold,))


def run(out: Path, rules: list[dict[str, object]], given: Sample | None = None, **settings: object) -> None:
    chosen = TranslationSettings(**{"strategies": ("tags",), "attempts": 1, **settings})
    with connect("scripted", rules=rules) as client:
        translate(out, [given or sample("a")], ["de"], ModelTranslator(client, "m", jobs=1), settings=chosen)


@pytest.mark.parametrize("reason", sorted(CASES))
def test_each_misbehaviour_sets_the_row_aside_with_its_reason(reason: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run(out, [CASES[reason]])
    account = read_account(out, Account[TranslationLanguage])
    assert out.read_bytes() == b""
    assert account.total.translated == 0
    assert account.total.row_reasons == {reason: 1}
    assert account.total.reply_reasons == {"tags": {reason: 1}}
    lines = rejected_path(out).read_bytes().splitlines()
    assert [msgspec.json.decode(line)["reason"] for line in lines] == [reason, reason]


def test_a_good_reply_passes_and_costs(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run(out, [{"reply": f"Translation:\n{GOOD}"}])
    made = msgspec.json.decode(out.read_bytes().splitlines()[0], type=Sample)
    (span,) = made.annotations[0].spans or ()
    assert (made.response, made.response[span.start : span.end], span.type) == (PLAIN, "1879", "entity")
    assert made.annotations[0].kind is Kind.MODEL
    assert read_account(out, Account[TranslationLanguage]).total.calls == 1


def test_another_attempt_is_made_and_both_are_counted(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run(out, [{"reply": [PLAIN, GOOD]}], attempts=2)  # seed 0 is asked first, then 1
    account = read_account(out, Account[TranslationLanguage]).total
    assert (account.translated, account.calls, account.reply_reasons) == (1, 2, {"tags": {"markers_lost": 1}})


def test_what_a_row_cost_before_a_call_gave_nothing_is_in_the_account(tmp_path: Path) -> None:
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    dead = {"match": "Text:\n1879", "error": "the line is dead"}
    for path, rules in ((whole, [{"reply": PLAIN}]), (out, [dead, {"reply": PLAIN}])):
        run(path, rules, strategies=("spans",))
    account, sound = read_account(out, Account[TranslationLanguage]), read_account(whole, Account[TranslationLanguage])
    assert (account.failed, account.total.rows, account.total.calls) == (1, 0, 1)
    assert sound.total.calls == 2  # the response, and the span separately
    assert 0 < account.total.tokens_in < sound.total.tokens_in
    assert 0 < account.total.tokens_out < sound.total.tokens_out


def test_a_row_whose_spans_are_lost_never_becomes_clean(tmp_path: Path) -> None:
    for dropped in ("aside", "keep"):
        out = tmp_path / f"{dropped}.jsonl"
        lost = PLAIN.replace("1879 ", "")
        run(out, [{"match": "Text:\n1879", "reply": "1879"}, {"reply": lost}], strategies=("spans",), dropped=dropped)
        account = read_account(out, Account[TranslationLanguage]).total
        assert (account.translated, account.row_reasons) == (0, {"spans_dropped": 1})
        assert account.types["entity"].drop_rate == 1.0


def test_a_span_is_found_by_its_own_translation(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run(out, [{"match": "Text:\n1879", "reply": "1879."}, {"reply": PLAIN}], strategies=("spans",))
    made = msgspec.json.decode(out.read_bytes().splitlines()[0], type=Sample)
    (span,) = made.annotations[0].spans or ()
    assert made.response[span.start : span.end] == "1879"
    assert made.meta["translated"]["marks"][0]["way"] == "spans"


def test_a_sentence_that_the_evidence_says_as_well_is_missed_there_too(tmp_path: Path) -> None:
    """Refused without markers but not with them: the response has a translation, its evidence has none."""
    out = tmp_path / "out.jsonl"
    given = msgspec.structs.replace(sample("a"), evidence=(Evidence(TEXT),))
    rules = [{"match": "<1>", "reply": GOOD}, CASES["refused"]]
    run(out, rules, given, strategies=("tags", "spans"), evidence="translate")
    account = read_account(out, Account[TranslationLanguage]).total
    assert (account.translated, account.row_reasons) == (0, {"refused": 1})


def test_a_translation_is_of_one_group_with_its_original(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    given = msgspec.structs.replace(sample("a"), meta={"samples": ["Another."], "kept": 1})
    run(out, [{"reply": GOOD}], given)
    meta = msgspec.json.decode(out.read_bytes().splitlines()[0], type=Sample).meta
    assert (meta["group"], meta["kept"], "samples" in meta) == ("a", 1, False)
