"""The parts of the checks: seams, near-duplicates, agreement, repairs, splits."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import combinations
from pathlib import Path, PurePath

import pytest
from faulty_data import sample, sentences, write
from hypothesis import given
from hypothesis import strategies as st
from similarity import jaccard

from veriglot.datasets.checks.checker import AgreementSums, CleanedCopy, check
from veriglot.datasets.checks.findings import checks
from veriglot.datasets.checks.rows import SeamFinder, repaired, without_ranges
from veriglot.datasets.checks.scan import Row, Spool, split_in_name
from veriglot.datasets.near_duplicates import NearIndex
from veriglot.formats.reader import read
from veriglot.records import Annotation, Kind, Sample, Span

TEXTS = sentences(400, 20)


@pytest.fixture(scope="module")
def finder() -> SeamFinder:
    found = SeamFinder()
    for text in TEXTS:
        found.learn(text, "en")
    return found


@pytest.mark.parametrize(
    ("span", "at", "why"),
    [
        ("castlebridge", 6, "words"),
        ("the wooden chapelthe public library", 17, "words"),
        ("20142015", 4, "numbers"),
        ("1841年1840年", 5, "numbers"),
        ("5%95%", 2, "numbers"),
        ("RomeParis", None, "look"),
    ],
)
def test_a_seam_is_found_where_it_is(finder: SeamFinder, span: str, at: int | None, why: str) -> None:
    seam = finder.find(span, "", "en")
    assert seam is not None
    assert (seam.at, seam.why) == (at, why)


@pytest.mark.parametrize(
    "span", ["castle", "the wooden chapel", "2014", "1987", "until the war ended", "5%", "", "the"]
)
def test_what_is_not_glued_has_no_seam(finder: SeamFinder, span: str) -> None:
    assert finder.find(span, "", "en") is None


def test_what_stands_in_the_reference_is_not_glued(finder: SeamFinder) -> None:
    assert finder.find("castlebridge", "a place called castlebridge", "en") is None
    assert finder.find("20142015", "number 20142015 of the register", "en") is None


def test_half_a_number_of_the_reference_tells_two_numbers_from_one(finder: SeamFinder) -> None:
    assert finder.find("340300", "", "en") is None
    seam = finder.find("340300", "it weighs 340 tons", "en")
    assert seam is not None
    assert seam.at == 3


@given(st.text(max_size=60))
def test_a_seam_lies_inside_its_span(text: str) -> None:
    found = SeamFinder()
    found.learn("the castle and the bridge and the old mill", "en")
    seam = found.find(text, "", "en")
    assert seam is None or seam.at is None or 0 < seam.at < len(text)


def test_glued_spans_are_mended_to_what_was_put_in(tmp_path: Path) -> None:
    chance = random.Random(5)
    nouns = sorted({word for text in TEXTS for word in text[:-1].split() if len(word) > 6})
    rows, expected = [], {}
    for number, text in enumerate(TEXTS[:60]):
        words = text[:-1].split()
        place = chance.randrange(2, len(words))
        new = chance.choice([noun for noun in nouns if noun != words[place]])
        start = len(" ".join(words[:place])) + 1
        glued = " ".join([*words[:place], words[place] + new, *words[place + 1 :]]) + "."
        span = (start, start + len(words[place] + new), "entity")
        rows.append(sample(f"g{number}", glued, [span], evidence=text + " " + TEXTS[100 + number]))
        expected[f"g{number}"] = (" ".join([*words[:place], new, *words[place + 1 :]]) + ".", new)
    path = write(tmp_path / "rows.jsonl", rows)
    report = check([str(path)], clean=CleanedCopy(str(tmp_path / "clean.jsonl")))
    (glue,) = (finding for finding in report.findings if finding.check == "glued_span")
    assert glue.count >= 58
    kept = list(read(tmp_path / "clean.jsonl"))
    mended = [one for one in kept if "repaired" in one.meta["check"]]
    assert len(mended) >= 57
    for one in mended:
        (span,) = one.annotations[0].spans or ()
        assert (one.response, one.response[span.start : span.end]) == expected[one.id]


def test_people_s_marks_are_never_mended(tmp_path: Path) -> None:
    rows = [
        sample(f"g{n}", f"Nobody saw the castlebridge, {text}", [(15, 27, "entity")], evidence=text, kind=Kind.HUMAN)
        for n, text in enumerate(TEXTS[:30])
    ]
    report = check([str(write(tmp_path / "rows.jsonl", rows))], clean=CleanedCopy(str(tmp_path / "clean.jsonl")))
    assert report.cleaned is not None
    assert (report.cleaned.repairs, report.cleaned.reasons) == ({}, {"glued_span": 30})


def test_near_duplicates_are_those_of_all_pairs(tmp_path: Path) -> None:
    chance = random.Random(3)
    texts = sentences(120, 21)
    for text in texts[:40]:
        words = text.split()
        words[chance.randrange(len(words))] = "indeed"
        texts.append(" ".join(words))
    index = NearIndex(tmp_path / "texts")
    for row, text in enumerate(texts):
        index.add(text, row)
    found = sorted(index.groups(lambda rows: [texts[row] for row in rows], 0.8))
    index.close()
    pairs = list(combinations(range(len(texts)), 2))
    alike = jaccard([texts[a] for a, _ in pairs], [texts[b] for _, b in pairs]) >= 0.8
    expected = sorted([a, b] for (a, b), near in zip(pairs, alike, strict=True) if near)
    assert len(expected) > 10
    assert found == expected


def test_a_chain_of_near_duplicates_is_one_group(tmp_path: Path) -> None:
    words = " ".join(TEXTS[:12]).split()
    texts = [" ".join(words[5 * n : 5 * n + 80]) for n in range(6)]
    with closing(NearIndex(tmp_path / "chain")) as index:
        for row, text in enumerate(texts):
            index.add(text, row)
        assert list(index.groups(lambda rows: [texts[row] for row in rows], 0.8)) == [[0, 1, 2, 3, 4, 5]]
    assert jaccard([texts[0]], [texts[5]])[0] < 0.8


def test_alpha_is_that_of_the_textbook() -> None:
    """Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section A: two observers, binary data, 0.095."""
    first, second = (1, 0, 0, 0, 0, 0, 0, 0, 0, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    first = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0)
    sums = AgreementSums()
    annotations = [
        Annotation(name, Kind.HUMAN, "fava", spans=tuple(Span(n, n + 1, "entity") for n, on in enumerate(marks) if on))
        for name, marks in (("a", first), ("b", second))
    ]
    assert not sums.add("abcdefghij", annotations)
    found = sums.agreement("en", "human")
    assert found.alpha == pytest.approx(0.095, abs=0.0005)
    assert found.overlap == pytest.approx(2 * 1 / 6)
    assert found.same_type == 1.0


def test_agreement_of_the_same_marks_is_whole_and_white_space_does_not_count() -> None:
    one = Annotation("a", Kind.HUMAN, "fava", spans=(Span(0, 3, "entity"),))
    other = Annotation("b", Kind.HUMAN, "fava", spans=(Span(0, 4, "relation"),))
    sums = AgreementSums()
    assert sums.add("old mill", [one, other])
    found = sums.agreement("en", "human")
    assert (found.overlap, found.alpha, found.same_type) == (1.0, 1.0, 0.0)


marked = st.text(alphabet="ab \u00e9\U0001f600.", min_size=1, max_size=30).flatmap(
    lambda text: st.tuples(
        st.just(text),
        st.lists(st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text))).filter(lambda p: p[0] < p[1])),
        st.lists(st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text))).filter(lambda p: p[0] < p[1])),
    )
)


@given(marked)
def test_what_is_left_of_a_mark_is_what_was_not_cut(
    case: tuple[str, list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    text, spans, ranges = case
    before = sample("x", text, [(start, end, "entity") for start, end in spans], texts=True)
    after = without_ranges(before, ranges)
    gone = {place for start, end in ranges for place in range(start, end)}
    kept = ["".join(text[place] for place in range(start, end) if place not in gone) for start, end in spans]
    whole = "".join(char for place, char in enumerate(text) if place not in gone)
    if after is None:
        assert not whole.strip() or not all(kept)
        return
    assert after.response == whole
    found = after.annotations[0].spans or ()
    assert [whole[span.start : span.end] for span in found] == kept == [span.text for span in found]


@given(marked)
def test_repairs_are_done_once_and_for_all(case: tuple[str, list[tuple[int, int]], list[tuple[int, int]]]) -> None:
    text, spans, _ = case
    mended, _ = repaired(sample("x", text, [(start, end, "entity") for start, end in spans]))
    assert repaired(mended) == (mended, {})
    for span in mended.annotations[0].spans or ():
        inside = mended.response[span.start : span.end]
        assert inside == inside.strip() != ""


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("train.jsonl", "train"), ("mushroom.de-val.v2.jsonl", "dev"), ("data/test/de.json", "test"),
        ("gold_dev/german/x.json", "dev"), ("encs_majority_test_blind.tsv", "test"), ("attestation.json", None),
        ("train_test.json", None), ("trainer/x.json", None),
    ],
)  # fmt: skip
def test_splits_are_words_in_names(path: str, split: str | None) -> None:
    assert split_in_name(PurePath(path)) == split


def test_rows_come_back_from_disk_in_any_order(tmp_path: Path) -> None:
    rows = [Row(0, 0, Sample(f"r{n}", text * (n % 5 + 1), meta={"n": n})) for n, text in enumerate(TEXTS[:50])]
    spool = Spool(tmp_path / "rows")
    for row in rows:
        spool.add(row)
    assert list(spool) == rows
    assert [spool[n] for n in (49, 0, 7, 7)] == [rows[n] for n in (49, 0, 7, 7)]
    spool.add(rows[0])
    assert spool[50] == rows[0]
    with pytest.raises(IndexError):
        spool[51]
    spool.close()


def test_the_page_says_what_every_check_is() -> None:
    """`docs/check.md` has a row for each, with its level, unit and meaning."""
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text("utf-8")
    for name, one in checks().items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert row.startswith(f"| `{name}` | {one.level} | {one.unit} |")
        assert f"{one.title}. {one.meaning}" in row
