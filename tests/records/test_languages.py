from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from programs import printed
from veriglot.errors import UnknownNameError
from veriglot.records.languages import get_language, languages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("zh", "zh-Hans"), ("zho", "zh-Hans"), ("Chinese", "zh-Hans"), ("zh-CN", "zh-Hans"), ("cn", "zh-Hans"),
        ("zh_Hans_CN", "zh-Hans"), ("zh-TW", "zh-Hant"), ("zh-Hant-HK", "zh-Hant"), ("Simplified Chinese", "zh-Hans"),
        ("Traditional Chinese", "zh-Hant"), ("zh-yue", "yue"), ("Cantonese", "yue"), ("yue-Hant-HK", "yue"),
        ("German", "de"), ("GERMAN", "de"), ("deu", "de"), ("ger", "de"), ("de_DE", "de"), ("de_DE.UTF-8", "de"),
        ("Deutsch", "de"), ("de-AT-1996", "de"), ("sr", "sr-Cyrl"), ("sr-Latn-RS", "sr-Latn"), ("sh", "sr-Latn"),
        ("iw", "he"), ("in", "id"), ("jp", "ja"), ("pt-BR", "pt"), ("Farsi", "fa"), ("latina", "la"), (" ru ", "ru"),
        ("العربية", "ar"), ("ko-Kore", "ko"), ("ja-Jpan-JP", "ja"), ("nb", "no"), ("fil", "tl"), ("es-419", "es"),
    ],
)  # fmt: skip
def test_aliases(name: str, tag: str) -> None:
    assert get_language(name).tag == tag


def test_another_script_is_kept() -> None:
    uzbek = get_language("uz-Cyrl-UZ")
    assert (uzbek.tag, uzbek.script, uzbek.direction, uzbek.base) == ("uz-Cyrl", "Cyrl", "ltr", "uz")
    assert get_language("az-Arab").direction == "rtl"
    assert get_language("zh-Latn").word_breaking == "spaces"


@pytest.mark.parametrize("name", ["", "xx", "tlh-Latn", "de-Qqqq", "Germanish language", "e", "日本", "C++"])
def test_unknown_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError):
        get_language(name)


def test_unknown_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="german"):
        get_language("Germn")


def test_no_alias_has_two_languages() -> None:
    owner: dict[str, str] = {}
    for entry in languages().values():
        for alias in {a.casefold() for a in (entry.tag, entry.name, entry.native_name, *entry.aliases)}:
            assert owner.setdefault(alias, entry.tag) == entry.tag
            assert get_language(alias) is entry


def test_every_entry_is_whole() -> None:
    assert len(languages()) >= 160
    right_to_left = {"Arab", "Hebr", "Syrc", "Thaa", "Nkoo"}
    for tag, entry in languages().items():
        assert entry.tag == tag
        assert entry.name
        assert entry.native_name
        assert entry.family
        assert len(entry.script) == 4
        assert (entry.direction == "rtl") == (entry.script in right_to_left)


@pytest.mark.parametrize(("paper", "count"), [("mfava", 31), ("kang", 19), ("halluverse", 3), ("hat", 20)])
def test_papers_are_covered(paper: str, count: int) -> None:
    # mFAVA has 30 languages; its Serbian is in both scripts, so it holds 31 entries of the table.
    assert sum(paper in entry.sources for entry in languages().values()) == count


@pytest.mark.parametrize(
    ("paper", "file"),
    [("mfava", "mfava_table7_languages.csv"), ("kang", "kang_languages.csv"), ("hat", "hat_languages.csv")],
)
def test_papers_languages_are_those_of_the_papers(shared_data: Path, paper: str, file: str) -> None:
    path = shared_data.parent / "facts" / file
    with path.open(encoding="utf-8", newline="") as lines:
        listed = {get_language(row["language"]).tag for row in csv.DictReader(lines)}
    if paper == "mfava":
        listed.add("sr-Latn")
    assert listed == {entry.tag for entry in languages().values() if paper in entry.sources}


def test_import_does_not_load_the_table() -> None:
    code = "import sys, veriglot; print('veriglot.records.languages' in sys.modules)"
    assert printed(code) == "False\n"
