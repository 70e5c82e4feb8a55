"""Designs: which query is asked with which seed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import queries

from veriglot.datasets.responses import Planned, plan
from veriglot.errors import UsageError
from veriglot.records import Sample
from veriglot.storage.checkpoint import FailedRow


def planned(rows: list[Sample], **settings: object) -> list[Planned]:
    found = list(plan(rows, "m", **settings))  # type: ignore[arg-type]
    assert all(isinstance(one, Planned) for one in found)
    return found  # type: ignore[return-value]


@given(count=st.integers(0, 40), seeds=st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True))
def test_subsets_are_disjoint_cover_everything_and_differ_by_one_at_most(count: int, seeds: list[int]) -> None:
    rows = queries(count)
    found = planned(rows, design="subsets", seeds=seeds)
    assert [one.query.id for one in found] == [row.id for row in rows]  # every query once, in order
    for tag in ("de", "zh-Hans", "ar"):
        sizes = Counter(one.seed for one in found if one.query.language == tag)
        assert sizes.keys() <= set(seeds)
        assert max((sizes[seed] for seed in seeds), default=0) - min(sizes[seed] for seed in seeds) <= 1


def test_runs_ask_every_query_with_every_seed() -> None:
    found = planned(queries(3), design="runs", seeds=[42, 43])
    assert [one.id for one in found[:3]] == ["de-0/m/42", "de-0/m/43", "zh-Hans-0/m/42"]
    assert len(found) == 18
    assert len({one.id for one in found}) == 18
    assert [one.seed for one in found[:3]] == [42, 43, 42]


def test_a_query_keeps_its_seed_whatever_comes_after_it_and_in_other_languages() -> None:
    def seeds(rows: list[Sample]) -> dict[str, int | None]:
        return {one.query.id: one.seed for one in planned(rows, design="subsets", seeds=[1, 2, 3])}

    many, few = seeds(queries(30)), seeds([row for row in queries(7) if row.language == "de"])
    assert few == {id_: seed for id_, seed in many.items() if id_ in few}


def test_the_two_queries_of_an_article_do_not_always_meet_the_same_seeds() -> None:
    """With alternating seeds, the first and second query of an article would be confounded with the seed."""
    found = planned(queries(400, ("de",)), design="subsets", seeds=[1, 2])
    first = Counter(one.seed for one in found[::2])
    assert 60 < first[1] < 140


def test_no_language_is_assumed() -> None:
    told = Sample("a", "", question="Wann wurde die alte Mühle von Oberfeld eigentlich gebaut?")
    untold = Sample("b", "", question="1731?")
    found = list(plan([told, untold, Sample("c", "", language="de")], "m", design="runs", seeds=[1]))
    assert isinstance(found[0], Planned)
    assert found[0].query.language == "de"
    assert [one.id for one in found[1:]] == ["b", "c"]
    assert all(isinstance(one, FailedRow) for one in found[1:])
    assert "no question" in found[2].message  # type: ignore[union-attr]


def test_rows_that_could_not_be_read_pass_through_in_their_place() -> None:
    rows = queries(1)
    found = list(plan([rows[0], FailedRow("broken"), rows[1]], "m", design="subsets", seeds=[1]))
    assert [type(one) for one in found] == [Planned, FailedRow, Planned]


@pytest.mark.parametrize(("design", "seeds"), [("runs", []), ("runs", [1, 1])])
def test_what_makes_no_sense_is_refused_at_once(design: str, seeds: list[int]) -> None:
    with pytest.raises(UsageError):
        plan([], "m", design=design, seeds=seeds)  # type: ignore[arg-type]


def test_a_seed_may_be_left_to_the_server() -> None:
    (one,) = planned(queries(1, ("de",)), design="runs", seeds=[None])
    assert (one.id, one.seed) == ("de-0/m/-", None)
