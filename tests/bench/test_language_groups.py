"""Groups of languages: as hat and kang group them, and a user's own."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from veriglot.bench.config import resource_groups, resources, scopes, script_group
from veriglot.errors import UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path


def test_scripts_are_those_of_hat(shared_facts: Path) -> None:
    rows = list(csv.DictReader((shared_facts / "hat_languages.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 20
    for row in rows:
        name = {"Simplified Chinese": "zh-Hans", "Traditional Chinese": "zh-Hant"}.get(row["language"], row["language"])
        if row["script_group"] == "both":
            assert script_group(name, "German") == "latin"
            assert script_group("Thai", name) == "non_latin"
        else:
            assert script_group("English", name) == script_group(name) == row["script_group"], row


def test_resources_are_those_of_kang(shared_facts: Path) -> None:
    rows = list(csv.DictReader((shared_facts / "kang_languages.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 19
    assert all(resources(row["code"]) == resources(row["language"]) == row["resource_group"] for row in rows)
    assert sum(len(tags) for tags in resource_groups().values()) == 19


def test_a_pair_has_the_scarcer_language_s_group_and_an_unknown_one_none() -> None:
    assert resources("en", "fi") == "low"
    assert resources("zh-Hant", "sv") == "middle"
    assert resources("en", "eu") is None
    assert resources() is None
    assert script_group("sr-Latn") == "latin"
    assert script_group("sr-Cyrl") == "non_latin"
    assert script_group("xx-unknown", "de") is None


def test_scopes_in_order_with_own_groups() -> None:
    cells = {"d/ru": ("ru",), "d/de": ("de",), "d/en": ("en",), "d/und": ("und",), "m/zh-en": ("zh", "en")}
    found = scopes(cells, ("latin", "resources", "script", "family"), own={"slavic": ["Russian", "pl"]})
    assert list(found)[:6] == ["all", "latin", "non_latin", "high", "middle", "low"]
    assert found["all"] == tuple(cells)
    assert found["latin"] == ("d/de", "d/en")
    assert found["non_latin"] == ("d/ru", "m/zh-en")
    assert found["high"] == ("d/en", "m/zh-en")
    assert found["low"] == ("d/ru",)
    assert found["script:Cyrl"] == ("d/ru",)
    assert found["script:Hans+Latn"] == ("m/zh-en",)
    assert found["family:Indo-European"] == ("d/ru", "d/de", "d/en")
    assert found["slavic"] == ("d/ru",)


def test_wrong_names() -> None:
    with pytest.raises(UnknownNameError, match="latin"):
        scopes({}, ("latn",))
    with pytest.raises(UnknownNameError, match="language"):
        scopes({}, (), own={"mine": ["Klingonese"]})
