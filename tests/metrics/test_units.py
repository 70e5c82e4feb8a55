from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.spans import char_bounds, is_space, segmenter, token_bounds

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["The moon is 3 474 km wide.", "Луна вращается вокруг Земли.", "月球绕地球运行😀。", "القمر يدور حول الأرض", ""]


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["[BOS]"],
        show_progress=False,
    )
    made.train_from_iterator(TEXTS, trainer)
    made.enable_truncation(4)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def test_char_bounds_leave_out_white_space_only() -> None:
    text = "a b\u00a0\u3000c\u200d😀\n"
    assert [text[s:e] for s, e in char_bounds(text)] == ["a", "b", "c", "\u200d", "😀"]


@pytest.mark.fuzz
@given(st.text())
def test_is_space_agrees_with_str(text: str) -> None:
    assert is_space(text).tolist() == [c.isspace() for c in text]


def test_tokens_of_a_local_file_cover_every_visible_character(tokenizer_file: Path) -> None:
    for text in TEXTS:
        bounds = segmenter(f"hf:{tokenizer_file}")(text, None)
        covered = np.zeros(len(text), dtype=bool)
        for start, end in bounds:
            assert not text[start].isspace()
            assert not text[end - 1].isspace()
            covered[start:end] = True
        assert (covered | is_space(text)).all(), text  # the truncation that the file asks for is off
        assert (np.diff(bounds[:, 0]) >= 0).all()
        assert (np.diff(bounds[:, 1]) >= 0).all()


def test_a_folder_with_a_tokenizer_works_too(tokenizer_file: Path) -> None:
    whole = token_bounds(str(tokenizer_file), TEXTS[0])
    assert np.array_equal(whole, token_bounds(str(tokenizer_file.parent), TEXTS[0]))


def test_a_damaged_tokenizer_is_an_input_error(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": 3}')
    with pytest.raises(InputError, match="cannot be loaded"):
        token_bounds(str(path), "text")


def test_unknown_units_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unit named 'wrod'"):
        segmenter("wrod")
    with pytest.raises(UsageError, match="needs a tokenizer"):
        segmenter("hf:")
