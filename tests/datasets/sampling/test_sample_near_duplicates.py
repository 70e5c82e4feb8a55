"""Near-duplicates: n-grams against a plain reference; MinHash and exact groups against all pairs."""

from __future__ import annotations

import random
import unicodedata
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from similarity import jaccard

from veriglot.datasets.near_duplicates import (
    count_bits,
    groups_of,
    jaccard_with,
    max_differing_bits,
    minhash,
    shingle_sets,
    shingles,
    similar_pairs,
)
from veriglot.datasets.sampling import filters
from veriglot.datasets.sampling.filters import (
    Cleaning,
    DropReason,
    LineChecker,
    Shards,
    in_slice,
    mark_near_duplicates,
    mark_repeats,
)
from veriglot.datasets.sampling.lines import Line, LineStore, LineWriter, key_of
from veriglot.pipeline.progress import ProgressReporter
from veriglot.text.normalization import fold

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

WORDS = (
    "der", "Fluss", "die", "Mühle", "im", "Wald", "am", "alten", "Markt", "bei", "Nacht", "sieht", "man", "den",
    "hellen", "Turm", "und", "das", "Licht", "der", "Stadt",
)  # fmt: skip
_DENSE = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def reference_ngrams(text: str) -> set[str]:
    """The same in plain Python, character by character."""
    plain = ""
    for char in fold(unicodedata.normalize("NFC", text)):
        category = unicodedata.category(char)
        plain += "0" if category[0] == "N" else char if category[0] in "LM" else " "
    plain = " ".join(plain.split(" ")) if plain.strip() else ""
    plain = " ".join(part for part in plain.split(" ") if part)
    dense = sum(unicodedata.name(char, "").startswith(_DENSE) for char in plain)
    size = 3 if 2 * dense > len(plain) else 5
    return {plain[i : i + size] for i in range(max(len(plain) - size + 1, 1))} if plain else set()


def reference_jaccard(one: str, other: str) -> float:
    first, second = reference_ngrams(one), reference_ngrams(other)
    return len(first & second) / len(first | second) if first | second else 0.0


LETTERS = st.text("abäßçΣдя 上田的ひカ한글१२٣7 .,!?-\n", max_size=30)


@pytest.mark.fuzz
@given(st.lists(st.tuples(LETTERS, LETTERS), max_size=6))
def test_similarity_is_that_of_sets_of_ngrams(pairs: list[tuple[str, str]]) -> None:
    found = jaccard([one for one, _ in pairs], [other for _, other in pairs])
    sets = [shingle_sets(pair) for pair in pairs]
    assert [float(jaccard_with(one, [other])[0]) for one, other in sets] == pytest.approx(found.tolist())
    assert found.tolist() == pytest.approx([reference_jaccard(one, other) for one, other in pairs])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Am 3. Mai 1897 kam er an.", "am 9 mai 2024, kam er an", True),  # case, digits, punctuation
        ("Cafe\u0301 am See", "Café am See", True),  # one letter or two
        ("ＡＢＣ ｓｔｒａｓｓｅ", "abc strasse", True),  # width
        ("上田的磨坊建于1731年。", "上田的磨坊建于1902年", True),
        ("", "", False),
        ("...", "!!!", False),  # nothing to compare
        ("Ja", "ja!", True),
        ("Ja", "Nein", False),
    ],
)
def test_what_makes_no_difference(one: str, other: str, same: bool) -> None:
    assert jaccard([one], [other])[0] == float(same)


def test_a_text_has_the_same_ngrams_whatever_stands_beside_it() -> None:
    texts = ["Die Mühle am Fluss", "", "上田的磨坊", "a", "Die Mühle am Markt"]
    hashes, starts = shingles(texts)
    for place, text in enumerate(texts):
        assert hashes[starts[place] : starts[place + 1]].tolist() == shingles([text])[0].tolist()


def sentences(count: int, seed: int) -> list[str]:
    """Sentences, many of them a few characters different from an earlier one."""
    draw = random.Random(seed)
    found: list[str] = []
    for _ in range(count):
        if found and draw.random() < 0.5:
            text = list(draw.choice(found))
            for _ in range(draw.randint(0, 2)):
                text[draw.randrange(len(text))] = draw.choice("aeiou x")
            found.append("".join(text))
        else:
            found.append(" ".join(draw.choices(WORDS, k=draw.randint(8, 16))))
    return found


@pytest.mark.parametrize("near", [0.5, 0.8, 1.0])
def test_the_join_misses_no_pair_and_makes_up_none(near: float) -> None:
    texts = sorted(set(sentences(250, seed=3)))
    found = {tuple(sorted(pair)) for pair in similar_pairs(texts, near)}
    every = [(i, j) for i in range(len(texts)) for j in range(i + 1, len(texts))]
    similarity = jaccard([texts[i] for i, _ in every], [texts[j] for _, j in every])
    assert found == {pair for pair, value in zip(every, similarity.tolist(), strict=True) if value >= near - 1e-9}
    assert len(found) > 10 or near == 1


def test_groups_follow_chains_over_either_column() -> None:
    sources = ["aaaaa bbbbb", "ccccc ddddd", "aaaaa bbbbb!", "eeeee fffff", "???"]
    targets = ["ggggg hhhhh", "ggggg hhhhh.", "iiiii jjjjj", "kkkkk lllll", "mmmmm"]
    assert groups_of([sources, targets], 0.8).tolist() == [0, 0, 0, 3, 4]
    assert groups_of([["???", "???", "!!!"]], 0.8).tolist() == [0, 0, 2]  # equal, though there is nothing to compare
    assert groups_of([[]], 0.8).tolist() == []


def test_minhash_estimates_similarity() -> None:
    texts = sentences(200, seed=5)
    first, second = texts[:-1], texts[1:]
    _, sketches = minhash(texts)
    differing = count_bits(sketches[:-1] ^ sketches[1:])
    similarity = jaccard(first, second)
    estimated = 1 - differing / 32  # a bit differs with probability (1 - J) / 2
    assert abs(float((estimated - similarity).mean())) < 0.03
    assert all(differing[similarity >= 0.8] <= max_differing_bits(0.8))


def stored(folder: Path, texts: list[str]) -> LineStore:
    with LineWriter(folder) as writer:
        for number, text in enumerate(texts, start=1):
            writer.add(Line(text, None, None, 0, number), key_of(text), ())
    return LineStore(folder)


@pytest.mark.parametrize("at_once", [50, 2_000_000])
def test_of_a_chain_of_near_duplicates_the_first_stays(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "_AT_ONCE", at_once)
    texts = sentences(400, seed=7)
    with stored(tmp_path / "lines", texts) as store:
        fates = np.zeros(len(texts), np.uint8)
        mark_repeats(store, fates)
        firsts = {text: number for number, text in reversed(list(enumerate(texts)))}
        assert np.flatnonzero(fates == DropReason.CLEAN).tolist() == sorted(firsts.values())
        np.save(tmp_path / "fates.npy", fates)
        shards = Shards(tmp_path / "shards", len(texts), 150)
        cleaning = Cleaning("de", min_length=0, min_confidence=0.0)
        shards.run(
            partial(LineChecker, tmp_path / "lines", tmp_path / "fates.npy", cleaning),
            jobs=1,
            progress=ProgressReporter(),
        )
        left = mark_near_duplicates(store, shards, fates, near=0.8, unique="source", progress=ProgressReporter())
    assert left == 0
    seen = np.flatnonzero(shards.joined("sketches") != 0)
    kept = [number for number in seen.tolist() if fates[number] == DropReason.CLEAN]
    fallen = np.flatnonzero(fates == DropReason.NEAR_DUPLICATE).tolist()
    assert len(fallen) > 40
    for number in fallen:  # an earlier line, dropped or not, is as similar as this
        before = texts[:number]
        assert jaccard(before, [texts[number]] * number).max() >= 0.8
    pairs = [(i, j) for place, i in enumerate(kept) for j in kept[place + 1 :]]
    similarity = jaccard([texts[i] for i, _ in pairs], [texts[j] for _, j in pairs])
    assert (similarity >= 0.8).sum() <= 1  # MinHash may miss one in thousands


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.integers(1, 40))
def test_every_hash_is_in_one_slice(hashes: list[int], slices: int) -> None:
    numbers = np.array(hashes, np.uint64)
    assert (sum(in_slice(numbers, one, slices).astype(int) for one in range(slices)) == 1).all()


def test_lines_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    lines = [Line(f"{number} \ud7ff\n上", None if number % 2 else "x", str(number), 3, number) for number in range(50)]
    with LineWriter(tmp_path) as writer:
        for number, line in enumerate(lines):
            writer.add(line, number * 7, (float(number), float("nan")))
    with LineStore(tmp_path) as store:
        assert store.count == 50
        assert store.lines(0, 50) == lines
        for chosen in ([3, 4, 6, 40], [0, 49], list(range(50)), []):
            numbers = np.array(chosen, np.uint32)
            assert store.pick(numbers) == [lines[number] for number in chosen]
            assert store.keys(0, 50)[numbers].tolist() == [number * 7 for number in chosen]
            assert store.given(numbers)[:, 0].tolist() == chosen
            assert np.isnan(store.given(numbers)[:, 1]).all()
