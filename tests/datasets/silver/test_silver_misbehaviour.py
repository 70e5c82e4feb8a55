"""A model with every kind of bad reply: only good rows are accepted, and every reason is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from misbehaviour import CASES, Case, passage, script, seeds

from veriglot import read
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.silver.injection import Injector
from veriglot.datasets.silver.job import SilverRejection, load_account, silver

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Sample

SOUND = {f"case-{n:02}" for n, case in enumerate(CASES) if case.reason is None}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("silver") / "out.jsonl"
    tally = silver(path, seeds(), Injector("m", types=("entity",), attempts=1), script())
    assert tally.failed == 0
    assert tally.statuses.total() == len(CASES)
    return path


def rejections(output: Path) -> dict[str, list[SilverRejection]]:
    found: dict[str, list[SilverRejection]] = {}
    for line in rejected_path(output).read_bytes().splitlines():
        one = msgspec.json.decode(line, type=SilverRejection)
        found.setdefault(one.id, []).append(one)
    return found


def samples(output: Path) -> dict[str, Sample]:
    return {sample.id: sample for sample in read(str(output))}


def test_at_least_twenty_ways_are_tried() -> None:
    assert sum(case.reason is not None for case in CASES) >= 20


def test_only_what_is_sound_passes_and_it_is_exact(output: Path) -> None:
    found = samples(output)
    assert set(found) == SOUND
    for number, case in enumerate(CASES):
        if case.reason is not None:
            continue
        sample = found[f"case-{number:02}"]
        assert sample.response == passage(number).replace("1731", "1764"), case.what
        (annotation,) = sample.annotations
        (span,) = annotation.spans or ()
        assert (span.type, sample.response[span.start : span.end]) == ("entity", "1764"), case.what
        assert sample.meta["silver"]["passage"] == passage(number)


@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=[case.what for case in CASES])
def test_what_does_not_pass_is_kept_with_its_reason(output: Path, number: int, case: Case) -> None:
    found = rejections(output).get(f"case-{number:02}", [])
    reasons = {one.reason for one in found if one.type == "entity"}
    if case.reason is None:
        assert not found
        return
    assert case.reason in reasons
    assert all(one.detail and one.language == "en" for one in found)


def test_the_account_counts_every_reason(output: Path) -> None:
    account = load_account(output)
    english = account.languages["en"]
    assert (english.seeds, english.rows, english.clean) == (len(CASES), len(SOUND), 0)
    kept = [one for some in rejections(output).values() for one in some]
    entity = english.types["entity"]
    assert entity.reasons == Counter(one.reason for one in kept if one.type == "entity")
    assert english.row_reasons == Counter(one.reason for one in kept if one.type == "row")
    assert (entity.asked, entity.taken, entity.errors) == (len(CASES), len(SOUND), len(SOUND))
    assert entity.share == len(SOUND) / len(CASES)
    assert english.calls == len(CASES)
    assert account.total == english
