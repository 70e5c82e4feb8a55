"""The accounts in a card: those of the file's own run, each cost once and in a stated currency."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from faulty_data import sample, sound, write

from veriglot.datasets.cards.card import card, card_page, read_given, trace
from veriglot.datasets.checks.checker import CleanedCopy, check
from veriglot.records import Generator, Sample

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST: dict[str, Any] = {
    "made_by": {"count": 500},
    "made_from": "x",
    "total": {"asked": 12, "tokens_in": 3_000_000, "tokens_out": 0},
    "money": 7.5,
    "files": {"reference.jsonl": {"rows": 4}},
}
FOREIGN: dict[str, dict[str, Any]] = {
    "manifest.json": MANIFEST,
    "report.json": {"signature": "mt|x", "cleaned": {"lines": 9}, "sample": {"parts": {"train": {}}}},
    "plan.json": {"models": {}, "detectors": [], "asked": True},
}


def prices(path: Path, text: str) -> Any:
    path.write_text(text, "utf-8")
    return read_given(path)


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("place", ["mine.jsonl", "mine/rows.jsonl", "mine/set/rows.jsonl", "mine/reference.jsonl"])
def test_what_another_run_left_above_is_not_told_of_the_data(tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / name).write_text(json.dumps(FOREIGN[name]), "utf-8")
    write(tmp_path / "rejected.jsonl", [b'{"reason": "theirs"}'])
    path = write(tmp_path / place, sound(4, 50))
    assert trace([str(path)]) == ()
    assert "Unknown: there is no manifest of a run" in card_page(card([str(path)]))


@pytest.mark.parametrize("between", [b'{"name": "app", "version": "1"}', b'["a", "b"]', b"{"])
def test_a_file_of_the_same_name_between_them_hides_nothing(tmp_path: Path, between: bytes) -> None:
    """An application's manifest in the folder of the responses, and the data set's own one in the parent."""
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST), "utf-8")
    path = write(tmp_path / "responses" / "m.jsonl", sound(4, 51))
    assert [step.output for step in trace([str(path)])] == [f"{tmp_path.name}/"]
    (tmp_path / "responses" / "manifest.json").write_bytes(between)
    found = {step.output: step for step in trace([str(path)])}
    if between.startswith(b'{"'):
        assert set(found) == {f"{tmp_path.name}/"}
    else:  # nobody can say whose it is
        assert found["responses/"].damaged == ["manifest.json"]


def test_a_cleaned_copy_beside_other_data_keeps_its_rejections(tmp_path: Path) -> None:
    rows = [*sound(6, 52), sample("none", "", [])]
    check([str(write(tmp_path / "rows.jsonl", rows))], clean=CleanedCopy(str(tmp_path / "out")))
    other = write(tmp_path / "out" / "other.jsonl", sound(3, 53))
    (own,) = trace([str(tmp_path / "out" / "rows.jsonl")])
    assert (own.output, own.rejected) == ("out/", {"no_response": 1})
    assert trace([str(other)]) == ()


def test_a_response_in_two_files_of_a_set_is_paid_once(tmp_path: Path) -> None:
    def row(number: int, cross: bool) -> Sample:
        meta: dict[str, Any] = {"tokens_in": 100, "tokens_out": 10}
        name = f"r{number}"
        about = {**meta, "response": name} if cross else meta
        return Sample(f"{name}/en" if cross else name, f"Text {number}.", language="de", meta=about,
                      generator=Generator("m", seed=1))  # fmt: skip

    write(tmp_path / "reference.jsonl", [row(n, False) for n in range(5)])
    write(tmp_path / "en.jsonl", [row(n, True) for n in range(4)])
    paths = [str(tmp_path / name) for name in ("reference.jsonl", "en.jsonl")]
    both = card(paths)
    (one,) = both.contents.generated
    assert (one.rows, one.repeated, one.counted, one.tokens_in, one.tokens_out) == (9, 4, 5, 500, 50)
    assert "| responses of m (5 of 5 counted) | 5 | 500 | 50 |" in card_page(both)
    (alone,) = card(paths[1:]).contents.generated
    assert (alone.rows, alone.repeated, alone.counted, alone.tokens_in) == (4, 0, 4, 400)


def test_money_has_the_currency_of_the_prices_that_made_it(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST), "utf-8")
    path = write(tmp_path / "reference.jsonl", sound(4, 54))
    named = prices(tmp_path / "a.toml", '[cost]\ncurrency = "EUR"\n')
    assert "| 3,000,000 | 0 | 7.50, in the currency of the run's prices |" in card_page(card([str(path)], given=named))
    priced = prices(tmp_path / "b.toml", '[cost]\ncurrency = "EUR"\nprompts = 2.0\n')
    assert "| 3,000,000 | 0 | 6.00 EUR |" in card_page(card([str(path)], given=priced))


def test_the_steps_of_a_set_are_told_with_their_time(tmp_path: Path) -> None:
    from veriglot.storage.checkpoint import Manifest
    from veriglot.storage.files import write_json

    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST), "utf-8")
    path = write(tmp_path / "reference.jsonl", sound(4, 55))
    write(tmp_path / "responses" / "m.jsonl", sound(2, 56))
    write_json(
        tmp_path / "responses" / "m.jsonl.progress",
        Manifest((), "client:x", {}, rows=2, finished=True, seconds=12.5),
    )
    assert [step.output for step in trace([str(path)])] == [f"{tmp_path.name}/", "m.jsonl"]
    assert "- **Seconds:** at least 12.5; 1 of the steps do not say" in card_page(card([str(path)]))
