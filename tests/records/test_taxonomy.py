"""Taxonomies and the mappings between them: complete, and without a way that leads to an unknown type."""

from __future__ import annotations

from itertools import permutations

import pytest

from veriglot.errors import UnknownNameError, UsageError
from veriglot.records.taxonomy import taxonomies, taxonomy

FAVA = ("entity", "relation", "contradictory", "invented", "subjective", "unverifiable")
WAYS = {
    ("fava", "halluverse"), ("fava", "hat"), ("fava", "support"), ("halluverse", "hat"), ("halluverse", "support"),
    ("support", "hat"), ("hat", "support"),
}  # fmt: skip


def test_the_taxonomies_of_the_papers() -> None:
    types = {name: tuple(entry.types) for name, entry in taxonomies().items()}
    assert types == {
        "fava": FAVA,
        "halluverse": ("entity", "relation", "sentence"),
        "hat": ("hallucination",),
        "critical": ("critical_error",),
        "support": ("supported", "contradicted", "unverified"),
    }
    assert taxonomy("support").clean == ("supported",)
    assert {"context_conflict", "instruction_conflict"} <= set(taxonomy("support").flags)


@pytest.mark.parametrize(("source", "target"), list(permutations(("fava", "halluverse", "hat", "support"), 2)))
def test_a_mapping_takes_every_unclean_type_to_one_that_exists(source: str, target: str) -> None:
    if (source, target) not in WAYS:
        with pytest.raises(UsageError, match="There is no mapping"):
            taxonomy(source).to(target)
        return
    mapping = taxonomy(source).to(target)
    unclean = set(taxonomy(source).types) - set(taxonomy(source).clean)
    assert set(mapping) == unclean
    assert set(mapping.values()) <= set(taxonomy(target).types) - set(taxonomy(target).clean)


def test_every_type_leads_to_the_coarsest_taxonomy() -> None:
    for name in ("fava", "halluverse", "support"):
        assert set(taxonomy(name).to("hat").values()) == {"hallucination"}


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="fava"):
        taxonomy("favva")
    with pytest.raises(UnknownNameError, match="entity"):
        taxonomy("fava").check("entitty")
    assert taxonomy("fava").to("fava") == {name: name for name in FAVA}
