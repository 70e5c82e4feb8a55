"""Inputs: articles in any order, garbled, empty, hostile ones; and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from random import Random
from typing import TYPE_CHECKING

import pytest
from verified import verify
from villages import LANGUAGES, articles, seeds

from commands import command
from json_lines import write_lines
from settings_file import main, with_settings
from veriglot import read
from veriglot.datasets.rules.material import Articles
from veriglot.datasets.rules.silver import RuleSettings, rule_silver
from veriglot.errors import InputError, UsageError
from veriglot.records import Evidence, Sample

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command

pytestmark = pytest.mark.slow
silver = command("dataset", "rules")
COMMAND = "import sys; from veriglot.cli import main; sys.exit(main())"


def test_the_articles_that_are_kept_depend_on_their_texts_alone() -> None:
    given = seeds("en", "de")
    kept = {}
    for order in range(3):
        found = Articles(3, 7)
        for sample in Random(order).sample(given, len(given)):
            found.add(sample)
        kept[order] = {tag: {one.texts for one in found.of(tag)} for tag in found.languages()}
        assert all(len(one.questions) == 2 for tag in found.languages() for one in found.of(tag))
    assert kept[0] == kept[1] == kept[2]
    assert {tag: len(some) for tag, some in kept[0].items()} == {"en": 3, "de": 3}
    others = [{one.texts for one in articles("en", most=3, seed=seed).of("en")} for seed in range(8, 14)]
    assert any(other != kept[0]["en"] for other in others)


def test_what_cannot_be_quoted_is_left_out_with_a_reason() -> None:
    looping = "the end of the line " * 60
    found = Articles(9, 1)
    for sample in [
        Sample("none", "", language="en"),
        Sample("blank", "", language="en", evidence=(Evidence("  \r\n "),)),
        Sample("nameless", "", evidence=(Evidence("1897, 1902."),)),
        Sample("both", "", evidence=(Evidence("Ein Text.", language="de"), Evidence("A text.", language="en"))),
        Sample("loop", "", language="en", evidence=(Evidence(looping),)),
        Sample("loop again", "", language="en", evidence=(Evidence(looping),)),
        Sample("known", "", language="en", evidence=(Evidence("Words."),), meta={"reference_garbled": "loops"}),
    ]:  # fmt: skip
        found.add(sample)
    assert found.left_out == {
        "no evidence": 2,
        "no language": 1,
        "evidence in several languages": 1,
        "garbled evidence": 3,
    }
    assert found.languages() == []
    with pytest.raises(InputError, match="two articles"):
        rule_silver(None, found, RuleSettings())  # type: ignore[arg-type]


def test_evidence_without_a_language_has_the_one_that_its_text_is_in() -> None:
    """The help says so; all of it was left out."""
    found = Articles(9, 1)
    for text in (
        "A hidat Kovács Ilona avatta fel.",
        "A múzeumot Nagy Béla alapította.",
        "Міст збудувала Олена Коваль.",
    ):
        found.add(Sample("s", "", evidence=(Evidence(text),)))
    assert (found.languages(), found.quotable, found.left_out) == (["hu", "uk"], ["hu"], {})


HOSTILE = {
    "crlf": "The mill was built in 1731 by Anna Kroll.\r\nIt stands north of Kesten.\r\n\r\nMore than 40 lived there.",
    "emoji": "The mill 🏚️ was built in 1731 by Anna Kroll 👩‍🌾. It stands north of Kesten 🧭 and was sold before 1800.",
    "combining": "Die Mu\u0308hle wurde 1731 von Anna Kro\u0308ll gebaut. Der erste war damals Carl O\u0308swin.",
    "mixed": "The name \u202bالزهراء\u202c was given in 1731. It is older than שלום עולם and larger than 村庄.",
    "zero width": "The mill\u200b was built\u00ad in 1731 by Anna\u00a0Kroll. It was more than 40 feet high.",
    "one word": "Mill" * 90,
    "marks": "!?!?!? ... ,,, ;;; --- ((( ))) [[[ ]]] <b>1731</b> {year} {sentence} %s \\n",
    "digits": " ".join(str(n) for n in range(1700, 1780)) + ".",
    "dotted": "İstanbul İli İçinde 1731 yılında İpek İnci tarafından yapılmıştır. Kuzey tarafında İZMİR vardır.",
    "surrogates' heirs": "𝕿𝖍𝖊 mill was built in 1731 by 𠮷田 Kroll. It is the oldest of 𝟙𝟚 mills and was sold in 1800.",
}


@pytest.mark.parametrize("tag", ["en", "ar", "th", "tr", "zh-Hans", "xx"])
def test_hostile_texts_make_sound_rows_or_reasons(tmp_path: Path, tag: str) -> None:
    found = Articles(99, 1)
    for name, text in HOSTILE.items():
        found.add(Sample(name, "", language=tag, question="\u202e?\r\n", evidence=(Evidence(text, title="{} ("),)))
    output = tmp_path / "out.jsonl"
    assert rule_silver(output, found, RuleSettings(rows=60)).rows == 60
    rows = [json.loads(line) for line in output.read_text("utf-8").split("\n") if line]
    number, faults, _ = verify(rows)
    strange = "is in another script"  # some of the texts are not in their stated language
    assert [fault for fault in faults if not fault.endswith(strange)] == []
    assert number >= 30


def test_a_language_with_one_article_is_said_and_left_out(silver: Command, tmp_path: Path) -> None:
    given = write_lines(tmp_path / "in.jsonl", [*seeds("en", "sw"), *seeds("ko", number=1)])
    outcome = silver(given, "-n", "20", "-o", tmp_path / "out.jsonl")
    assert outcome.code == 0, outcome.err
    assert "No rows in ko" in outcome.err
    assert "no errors of contradictory, subjective, unverifiable in sw" in outcome.err
    assert articles("en", "ko", number=1).quotable == []
    assert {sample.language for sample in read(str(tmp_path / "out.jsonl"))} == {"en", "sw"}


def test_the_account_is_shown_and_given_as_json(silver: Command, tmp_path: Path) -> None:
    answered = Sample("answered", "It is a bridge.", language="en", evidence=(Evidence("It is a bridge."),))
    given = write_lines(tmp_path / "in.jsonl", [*seeds("en", "ar"), answered])
    words = (given, "-n", "30", "--shares", "entity=2,invented=1", "--errors", "2", "--clean", "0.5")
    outcome = silver(*words, "-o", tmp_path / "out.jsonl", "--json")
    assert outcome.code == 0, outcome.err
    assert "responses not used: 1;" in outcome.err
    total = json.loads(outcome.out)["total"]
    assert (total["rows"], total["clean"], total["calls"]) == (30, 16, 0)
    assert {name: one["errors"] for name, one in total["types"].items() if one["errors"]} == {
        "entity": 18,
        "invented": 10,
    }
    again = silver(*words, "-o", tmp_path / "out.jsonl")
    assert again.code == 0
    assert "done by an earlier run" in again.err
    other = silver(*words, "--seed", "2", "-o", tmp_path / "out.jsonl")
    assert other.code == 2
    assert "--overwrite" in other.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shares", "entity"], "entity=2"),
        (["--shares", "name=1"], "name"),
        (["--shares", "entity=-1"], "from 0 up"),
        (["--shares", "entity=nan"], "from 0 up"),
        (["--errors", "3-1"], "the fewest"),
        (["--errors", "many"], "no range"),
        (["--errors", "9"], "1 to 6"),
        (["--model", "m"], "No such option"),
        (["--clean", "2"], "out of range"),
    ],
)
def test_what_makes_no_sense_is_refused(silver: Command, tmp_path: Path, words: list[str], said: str) -> None:
    given = write_lines(tmp_path / "in.jsonl", seeds("en"))
    outcome = silver(given, "-o", tmp_path / "out.jsonl", *words)
    assert outcome.code == 2
    assert said in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_options_of_rules_need_rules(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = write_lines(tmp_path / "in.jsonl", seeds("en"))
    assert main(["dataset", "silver", str(given), "-m", "m", "-n", "5", "-o", str(tmp_path / "o.jsonl")]) == 2
    assert "No such option: -n" in capfd.readouterr().err
    with pytest.raises(UsageError):
        RuleSettings(taxonomy="support")


def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    given = write_lines(tmp_path / "in.jsonl", seeds())
    words = ["dataset", "rules", str(given), "-n", "1400", "--quiet"]
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    assert main([*words, "-o", str(whole)]) == 0
    rows = tmp_path / "cut.jsonl.rows.jsonl"
    run = subprocess.Popen([sys.executable, "-c", COMMAND, *with_settings(words), "-o", str(cut)])
    begun = time.monotonic()
    while not (rows.exists() and rows.stat().st_size > 20_000):
        assert run.poll() is None, "it ended before it could be killed"
        assert time.monotonic() - begun < 60
        time.sleep(0.01)
    run.kill()
    run.wait()
    assert not cut.exists()
    done = rows.read_bytes().count(b"\n")
    assert 0 < done < 1400
    assert main([*words, "-o", str(cut)]) == 0
    assert cut.read_bytes() == whole.read_bytes()


def test_clean_rows_can_be_all_or_none(silver: Command, tmp_path: Path) -> None:
    given = write_lines(tmp_path / "in.jsonl", seeds(*LANGUAGES[:3]))
    for clean, expected in (("1", 12), ("0", 0)):
        output = tmp_path / f"{clean}.jsonl"
        assert silver(given, "-n", "12", "--clean", clean, "-o", output).code == 0
        assert sum(not sample.annotations[0].spans for sample in read(str(output))) == expected
