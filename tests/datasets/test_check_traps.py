"""The faults of mFAVA's files are found automatically; the figures were counted by hand when they were opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from veriglot.datasets.checks.checker import CleanedCopy, check

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.datasets.checks.checker import CheckReport

SILVER = ("french", "indonesian", "cantonese", "serbian", "latina", "malay", "persian")


pytestmark = pytest.mark.slow  # published sets, read whole


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mfava") / "clean"


@pytest.fixture(scope="module")
def report(shared_data: Path, cleaned: Path) -> CheckReport:
    mfava = shared_data / "mfava"
    files = [str(mfava / "silver" / f"silver_{name}.json") for name in SILVER]
    queries = mfava / "queries" / "wiki_references_and_queries_zh-yue.csv"
    return check([str(mfava / "gold_dev"), *files, str(queries)], clean=CleanedCopy(str(cleaned)))


def shares(report: CheckReport, name: str) -> dict[str, float]:
    """Share of each file, by the language in its name."""
    found = report.finding(name)
    if found is None:
        return {}
    return {
        path.rpartition("_")[2].partition(".")[0]: count / found.of_files[path] for path, count in found.files.items()
    }


def test_glued_spans(report: CheckReport) -> None:
    """27 to 83% of entity and relation spans in most silver files, 1 to 8% in the gold ones."""
    glued = shares(report, "glued_span")
    for name in SILVER:
        assert 0.27 <= glued[name] <= 0.9, name
    for name in ("arabic", "chinese", "german", "russian", "turkish"):
        assert glued.get(name, 0.0) <= 0.08, name


def test_one_garbled_reference_file_in_three_languages(report: CheckReport) -> None:
    """Latin, Malay and Persian carry the same garbled references."""
    tags = {file.path: tuple(file.languages) for file in report.files}
    pairs = {(tags[one.first], tags[one.second]) for one in report.shared if one.share > 0.9 and one.foreign}
    assert pairs == {(("la",), ("ms",)), (("la",), ("fa",)), (("ms",), ("fa",))}
    foreign, garbled = shares(report, "foreign_reference"), shares(report, "garbled_reference")
    for name in ("latina", "malay", "persian"):
        assert foreign[name] > 0.95
        assert garbled[name] == 1.0


def test_looping_references(report: CheckReport) -> None:
    """About 30% of the Chinese gold references, 39% of the Cantonese, 1 to 2% elsewhere."""
    garbled = shares(report, "garbled_reference")
    assert 0.25 <= garbled["chinese"] <= 0.4
    assert 0.3 <= garbled["cantonese"] <= 0.5
    assert all(garbled.get(name, 0.0) <= 0.02 for name in ("french", "indonesian", "serbian", "german", "turkish"))


def test_serbian_references_are_cyrillic_and_its_texts_latin(report: CheckReport) -> None:
    assert shares(report, "reference_script")["serbian"] > 0.95


def test_tags(report: CheckReport) -> None:
    """Misspelt, capitalised, openers as closers in German; 6.9% of gold and 20.8% of silver rows malformed."""
    found = report.finding("malformed_tags")
    assert found is not None
    assert found.kinds.keys() >= {"misspelt", "capitalised", "opener_as_closer", "unclosed", "cut_off"}
    assert 100 <= found.kinds["opener_as_closer"] <= 140
    rates = {layer: count / of for layer, (count, of) in found.layers.items()}
    assert 0.05 <= rates["gold"] <= 0.12
    assert 0.15 <= rates["silver"] <= 0.3
    assert report.finding("overlapping_spans") is not None


def test_tagged_texts_that_differ(report: CheckReport) -> None:
    """Equal to the response in 54% of gold rows."""
    found = report.finding("moved_text")
    assert found is not None
    count, of = found.layers["gold"]
    assert 0.4 <= count / of <= 0.5
    assert found.kinds["white space"] > found.kinds["letters"]


def test_repeats_with_other_labels(report: CheckReport) -> None:
    """The same text up to five times with different annotators' spans; 331 German rows hold 238 texts (here: half)."""
    repeated, disagreeing = report.finding("repeated_text"), report.finding("disagreeing_labels")
    assert repeated is not None
    assert disagreeing is not None
    assert "texts that occur 5 times" in repeated.kinds
    assert not any(f"texts that occur {n} times" in repeated.kinds for n in range(6, 20))
    assert shares(report, "repeated_text")["german"] == pytest.approx(1 - 238 / 331, abs=0.03)
    assert disagreeing.count >= 40
    people = {one.language: one for one in report.agreement if one.kind == "human"}
    assert all(0.4 < (people[tag].alpha or 0) < 0.9 for tag in ("de", "ru", "zh-Hans"))


def test_no_clean_rows_and_a_third_of_the_words_marked(report: CheckReport) -> None:
    gold = [one for one in report.labels if one.annotator == "gold"]
    assert sum(one.clean for one in gold) <= 2
    assert 0.25 <= sum(one.marked_words for one in gold) / sum(one.words for one in gold) <= 0.4
    clean = report.finding("no_clean_rows")
    assert clean is not None
    assert sum("gold" in path for path in clean.files) == 5


def test_absent_languages(report: CheckReport) -> None:
    found = report.finding("absent_languages")
    assert found is not None
    assert {"ja", "hi"} <= found.kinds.keys()


def test_the_cleaned_copy_is_free_of_what_can_be_cleaned(report: CheckReport, cleaned: Path) -> None:
    assert report.cleaned is not None
    assert {"garbled_reference", "foreign_reference", "glued_span"} <= report.cleaned.reasons.keys()
    assert report.cleaned.repairs["glued_span"] > 700
    again = check([str(cleaned)])
    left = {one.check: one.count for one in again.findings if one.level == "error"}
    assert not left
    assert all(share <= 0.1 for share in shares(again, "glued_span").values())


def test_other_published_sets_are_no_sea_of_false_alarms(shared_data: Path) -> None:
    names = ("wice", "mt_zhou_zhen", "xquad/xquad.de.json", "xquad/xquad.el.json", "mu_shroom_val", "xsum")
    report = check([str(shared_data / name) for name in names])
    errors = {one.check: one for one in report.findings if one.level == "error"}
    assert errors.keys() == {"wrong_language"}
    assert errors["wrong_language"].kinds.pop("en: cy") == 15  # a summariser that answered Welsh news in Welsh
    assert sum(errors["wrong_language"].kinds.values()) <= 2
