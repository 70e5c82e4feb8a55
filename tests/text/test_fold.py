from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from tricky_texts import TEXTS

from veriglot.text.normalization import fold, fold_codes
from veriglot.text.unicode import code_points


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ÀÉ Straße ΣΑΣ", "àé straße σασ"),
        ("İSTANBUL ISPARTA ılık", "istanbul isparta ilik"),
        ("１２ ٣٤ ۵۶ ७८ m²", "12 34 56 78 m2"),
        ("ＡＢ ｱｲ", "ab アイ"),
        ("أحمد إلى مدرسة", "احمد الي مدرسه"),
        ("ארץ", "ארצ"),
        ("ещё Ёлка", "еще елка"),
        ("“q” «x» ‘y’ – —", '"q" "x" \'y\' - -'),
        ("漢語臺灣", "汉语台湾"),
        ("ﬁ", "ﬁ"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_every_code_point_folds_to_one_and_only_once() -> None:
    codes = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    once = fold_codes(codes)
    assert once.shape == codes.shape
    assert np.array_equal(fold_codes(once), once)
    assert int(once.max()) <= sys.maxunicode


def test_ascii_is_folded_like_the_table_says() -> None:
    for code in range(128):
        char = chr(code)
        assert fold(char) == fold(char + "é")[0]


@pytest.mark.fuzz
@given(TEXTS)
def test_fold_keeps_the_length(text: str) -> None:
    folded = fold(text)
    assert len(folded) == len(text)
    assert fold(folded) == folded
    assert [fold(char) for char in text] == list(folded)
    assert code_points(folded).tolist() == fold_codes(code_points(text)).tolist()
