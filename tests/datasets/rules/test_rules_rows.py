"""Silver rows by rule in fourteen languages: correct by a second span check, with the requested shares."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from verified import faults, verify
from villages import LANGUAGES, WITH_PHRASES, articles

from json_lines import read_lines
from veriglot.datasets.generation import rejected_path
from veriglot.datasets.rules.material import Material
from veriglot.datasets.rules.silver import (
    RuleSettings,
    make_row,
    planned_rows,
    rule_silver,
)
from veriglot.datasets.silver.job import load_account
from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from veriglot.records import Sample

pytestmark = pytest.mark.slow


def plain(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    return [json.loads(encode(sample)) for sample in samples]


def rows_of(tag: str, **options: Any) -> list[dict[str, Any]]:
    chosen = RuleSettings(**{"rows": 40, "clean": 0.25, **options})
    material = Material(tag, articles(tag).of(tag))
    made = (make_row(one, material, chosen) for one in planned_rows([tag], chosen))
    return plain(sample for one in made for sample in one.samples)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_type_in_every_language_is_sound(tag: str) -> None:
    rows = rows_of(tag)
    number, found, types = verify(rows)
    assert found == []
    assert number == 40 if tag in WITH_PHRASES else number >= 30
    assert set(types) == set(RuleSettings().supported(tag))
    assert sum(not row["annotations"][0]["spans"] for row in rows) == 10


@pytest.mark.parametrize("tag", ["en", "ar", "zh-Hans", "th", "sw"])
def test_sentences_of_halluverse(tag: str) -> None:
    rows = rows_of(tag, taxonomy="halluverse", fewest=1, most=1)
    _, found, types = verify(rows)
    assert found == []
    assert set(types) == {"entity", "relation", "sentence"}
    assert {row["annotations"][0]["taxonomy"] for row in rows} == {"halluverse"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    tag=st.sampled_from(LANGUAGES),
    seed=st.integers(0, 10_000),
    clean=st.floats(0, 1),
    most=st.integers(1, 4),
    reworded=st.floats(0, 1),
)
def test_whatever_is_asked_rows_are_sound(tag: str, seed: int, clean: float, most: int, reworded: float) -> None:
    for row in rows_of(tag, rows=6, seed=seed, clean=clean, most=most, reworded=reworded):
        assert list(faults(row)) == []


def test_the_plan_has_the_shares_that_were_asked_for() -> None:
    shares = {"entity": 3.0, "invented": 1.0, "subjective": 0.0}
    chosen = RuleSettings(rows=400, shares=shares, clean=0.4, fewest=2, most=2)
    planned = list(planned_rows(["en", "de"], chosen))
    assert Counter(one.language for one in planned) == {"en": 200, "de": 200}
    assert sum(not one.types for one in planned) == 160
    types = Counter(type_ for one in planned for type_ in one.types)
    assert types == {"entity": 360, "invented": 120}
    assert {len(one.types) for one in planned} == {0, 2}


def test_types_that_a_language_lacks_go_to_the_others() -> None:
    planned = list(planned_rows(["sw"], RuleSettings(rows=100, clean=0.0)))
    types = Counter(type_ for one in planned for type_ in one.types)
    assert set(types) == {"entity", "relation", "invented"}
    assert max(types.values()) - min(types.values()) <= 1
    only = RuleSettings(rows=10, shares={"subjective": 1.0}, clean=0.0)
    assert all(not one.types for one in planned_rows(["sw"], only))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 300),
    clean=st.floats(0, 1),
    weights=st.dictionaries(st.sampled_from(RuleSettings().types), st.floats(0.01, 10), min_size=1),
    languages=st.lists(st.sampled_from(WITH_PHRASES), min_size=1, max_size=4, unique=True),
)
def test_a_plan_is_exact_by_largest_remainders(
    rows: int, clean: float, weights: dict[str, float], languages: list[str]
) -> None:
    chosen = RuleSettings(rows=rows, clean=clean, shares=weights)
    planned = list(planned_rows(languages, chosen))
    assert len(planned) == rows
    assert len({one.id for one in planned}) == rows
    for tag in languages:
        of_it = [one for one in planned if one.language == tag]
        assert abs(len(of_it) - rows / len(languages)) < 1
        assert sum(not one.types for one in of_it) == round(clean * len(of_it))
        types = Counter(type_ for one in of_it for type_ in one.types)
        for type_, weight in chosen.weights().items():
            assert abs(types[type_] - weight * types.total()) < 1


def test_one_seed_makes_one_set_whatever_the_order_of_the_seeds(tmp_path: Path) -> None:
    def made(name: str, tag: str, **options: Any) -> bytes:
        rule_silver(tmp_path / name, articles(tag), RuleSettings(rows=30, **options))
        return (tmp_path / name).read_bytes()

    first = made("a.jsonl", "en")
    assert made("b.jsonl", "en") == first
    assert made("c.jsonl", "en", seed=2) != first


def test_a_row_does_not_depend_on_the_rows_before_it() -> None:
    chosen = RuleSettings(rows=20)
    planned = list(planned_rows(["de"], chosen))
    forth, back = Material("de", articles("de").of("de")), Material("de", articles("de").of("de"))
    one = [make_row(row, forth, chosen) for row in planned]
    other = [make_row(row, back, chosen) for row in reversed(planned)]
    assert one == other[::-1]


def test_the_account_and_the_rejections_tell_of_every_row(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    tally = rule_silver(output, articles("en", "sw", "zh-Hans"), RuleSettings(rows=90))
    account = load_account(output)
    assert tally.rows == account.total.seeds == 90
    assert {tag: one.seeds for tag, one in account.languages.items()} == {"en": 30, "sw": 30, "zh-Hans": 30}
    lines = read_lines(output)
    assert len(lines) == account.total.rows
    assert sum(one.errors for one in account.total.types.values()) == sum(
        len(line["annotations"][0]["spans"]) for line in lines
    )
    assert account.languages["sw"].types["subjective"].asked == 0
    counted = sum(sum(one.reasons.values()) for one in account.total.types.values())
    counted += sum(account.total.row_reasons.values()) + sum(account.total.passages.reasons.values())
    assert counted == len(rejected_path(output).read_bytes().splitlines())


def test_two_on_one_article_have_one_group() -> None:
    rows = rows_of("en", rows=60)
    assert {row["meta"]["group"] for row in rows} <= {f"en-{n}-0" for n in range(6)}
    assert any(row["question"] for row in rows if "question" in row)
