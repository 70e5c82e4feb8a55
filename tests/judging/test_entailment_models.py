"""Models of each family, loaded from disk: the library's own numbers, batches, windows, memory, refusals."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tiny_nli import POSITIONS, TEXTS, byte_tokenizer, write_nli

from programs import printed
from veriglot.errors import UnknownNameError, UsageError, WeightsError
from veriglot.judging.classifiers import LockedTokenizer
from veriglot.judging.nli import load_entailment

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.slow

LONG = " ".join(TEXTS * 3)
PAIRS = [(premise, hypothesis) for premise in TEXTS for hypothesis in TEXTS[:4]]
ODD = [("", "a"), ("a", ""), ("\ud800 The lighthouse", "half \udfff"), ("a\x00b\u202e", "🏳️‍🌈" * 30), (" \n", "\u200b")]


@pytest.fixture(scope="module")
def bytes_tokens() -> LockedTokenizer:
    return LockedTokenizer(byte_tokenizer(), "bytes")


def direct(folder: Path, pairs: list[tuple[str, str]]) -> NDArray[np.float64]:
    """Entailment, neutral and contradiction of pairs that fit, one at a time, straight from transformers."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    rows = []
    for pair in pairs:
        given = tokenizer(*pair, return_tensors="pt")
        assert given["input_ids"].shape[1] <= POSITIONS
        with torch.inference_mode():
            rows.append(torch.softmax(network(**given).logits[0], -1).numpy()[::-1])  # tiny_nli: contradiction first
    return np.array(rows, np.float64)


def test_pairs_that_fit_get_the_library_s_own_numbers(checkpoint: Path) -> None:
    short = [(premise[:20], hypothesis[:20]) for premise, hypothesis in PAIRS]
    found = load_entailment(checkpoint, device="cpu").judge(short)
    np.testing.assert_allclose(found, direct(checkpoint, short), atol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    assert found[:, 0].std() > 1e-3 or found[:, 2].std() > 1e-3, "the network tells pairs apart, so the test can fail"


def test_batch_equals_single_in_any_order(checkpoint: Path) -> None:
    model = load_entailment(checkpoint, device="cpu", memory=0)
    pairs = [*PAIRS, (LONG, TEXTS[0]), (TEXTS[0], LONG), *ODD]
    together = model.judge(pairs)
    single = np.concatenate([model.judge([pair]) for pair in pairs])
    np.testing.assert_allclose(together, single, atol=1e-5)
    np.testing.assert_allclose(model.judge(pairs[::-1])[::-1], together, atol=1e-5)
    few = load_entailment(checkpoint, device="cpu", memory=0, batch_tokens=1)
    np.testing.assert_allclose(few.judge(pairs), together, atol=1e-5)
    assert ((together >= 0) & (together <= 1)).all()
    assert model.judge([]).shape == (0, 3)


def test_a_long_premise_gets_the_greatest_of_its_windows(checkpoint: Path) -> None:
    model = load_entailment(checkpoint, device="cpu", memory=0)
    hypothesis = TEXTS[0][:15]
    tokens = model._tokens  # type: ignore[attr-defined]
    room = POSITIONS - tokens.special - tokens.count(hypothesis)
    windows = [LONG[start:end] for start, end in tokens.split_chunks(LONG, room, overlap=True)]
    assert len(windows) > 5
    rows = direct(checkpoint, [(window, hypothesis) for window in windows])
    entailed, contradicted = rows[:, 0].max(), rows[:, 2].max()
    expected = [entailed, 1 - max(entailed, contradicted), contradicted]
    np.testing.assert_allclose(model.judge([(LONG, hypothesis)])[0], expected, atol=1e-5)


def test_a_long_hypothesis_needs_support_for_every_piece(checkpoint: Path) -> None:
    model = load_entailment(checkpoint, device="cpu", memory=0)
    pieces = model.pieces(LONG)
    assert "".join(LONG[start:end] for start, end in pieces) == LONG
    assert len(pieces) > 3
    assert model.pieces(TEXTS[3][:8]) == [(0, 8)]
    rows = model.judge([(TEXTS[0], LONG[start:end]) for start, end in pieces])
    found = model.judge([(TEXTS[0], LONG)])[0]
    np.testing.assert_allclose(found[[0, 2]], [rows[:, 0].min(), rows[:, 2].max()], atol=1e-5)


def test_no_text_can_write_a_special_token(checkpoint: Path) -> None:
    import transformers

    own = transformers.AutoTokenizer.from_pretrained(checkpoint)
    special = set(own.all_special_ids) - {own.unk_token_id}
    tokens = load_entailment(checkpoint, device="cpu")._tokens  # type: ignore[attr-defined]
    rows = [
        tokens.pairs([premise], [hypothesis])["input_ids"][0].tolist()
        for premise, hypothesis in [("a b", "c"), (f"a {''.join(own.all_special_tokens)} b", f"c {own.sep_token}")]
    ]
    plain, spelled = ([one for one in row if one in special] for row in rows)
    assert plain == spelled


@example(text="<<\u200d ", room=5, overlap=False)  # its last token stands nowhere
@given(
    text=st.text(alphabet="ab .灯🏳️‍🌈é</s>[SEP]\n\u0301", max_size=300),
    room=st.integers(5, 30),
    overlap=st.booleans(),
)
def test_chunks_of_any_text_fit_the_network(bytes_tokens: LockedTokenizer, text: str, room: int, overlap: bool) -> None:
    """Tokens of single bytes are the hardest: several share one character, and none may be cut."""
    found = bytes_tokens.split_chunks(text, room, overlap=overlap)
    assert all(bytes_tokens.count(text[start:end]) <= room for start, end in found)
    assert {place for start, end in found for place in range(start, end)} == set(range(len(text)))


def test_it_travels_and_is_shared(checkpoint: Path) -> None:
    model = load_entailment(checkpoint, device="cpu")
    again = pickle.loads(pickle.dumps(model))
    assert (again.signature, again.revision, again.labels) == (model.signature, model.revision, model.labels)
    expected = model.judge(PAIRS)
    np.testing.assert_allclose(again.judge(PAIRS), expected, atol=1e-5)
    fresh = load_entailment(checkpoint, device="cpu", memory=0)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(fresh.judge, [PAIRS] * 8):
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_pair_is_judged_once(bert: Path) -> None:
    model = load_entailment(bert, device="cpu")
    seen: list[int] = []
    model._network.register_forward_hook(lambda *given: seen.append(len(given[2].logits)))  # type: ignore[attr-defined]
    first = model.judge([PAIRS[0], PAIRS[1], PAIRS[0]])
    assert sum(seen) == 2
    assert (model.judge([PAIRS[1], PAIRS[0]]) == first[[1, 0]]).all()
    assert sum(seen) == 2
    model.judge([PAIRS[2]])
    assert sum(seen) == 3


def test_other_weights_are_another_model(bert: Path, tmp_path: Path) -> None:
    other = load_entailment(write_nli(tmp_path, "bert", seed=1), device="cpu")
    model = load_entailment(bert, device="cpu")
    assert other.revision != model.revision
    assert other.signature != model.signature
    assert load_entailment(bert, device="cpu", max_length=20).signature != model.signature


def test_loading_draws_nothing(bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    drawn = logging.is_progress_bar_enabled()
    load_entailment(bert, device="cpu")
    assert "Loading weights" not in capfd.readouterr().err
    assert logging.is_progress_bar_enabled() is drawn, "other programs' setting is theirs"


def test_what_cannot_be_loaded_says_what_to_do(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    with pytest.raises(WeightsError, match="no folder"):
        load_entailment("./not/here")
    with pytest.raises(WeightsError, match="cannot be loaded") as empty:
        load_entailment(tmp_path)
    assert "save_pretrained" in empty.value.remedy
    monkeypatch.setenv("VERIGLOT_OFFLINE", "1")
    with pytest.raises(WeightsError, match="nobody/nothing") as offline:
        load_entailment("nobody/nothing")
    assert "VERIGLOT_OFFLINE" in offline.value.remedy
    bare = tmp_path / "bare"
    network = transformers.AutoModelForSequenceClassification.from_pretrained(bert)
    network.base_model.save_pretrained(bare)
    transformers.AutoTokenizer.from_pretrained(bert).save_pretrained(bare)
    with pytest.raises(WeightsError, match="lacks weights"):
        load_entailment(bare, labels="entailment,neutral,contradiction")


def test_options_that_make_no_sense(bert: Path) -> None:
    for wrong in ({"max_length": 4}, {"max_length": 1000}, {"memory": -1}, {"device": "abacus"}):
        with pytest.raises(UsageError):
            load_entailment(bert, **wrong)
    with pytest.raises(UnknownNameError, match="labels"):
        load_entailment(bert, label="x")
    with pytest.raises(UnknownNameError):
        load_entailment(bert, languages=["klingonish"])
    assert load_entailment(bert, languages=["de", "zh-Hant"]).languages == {"de", "zh"}


def test_the_area_is_light_to_import() -> None:
    code = "import sys, veriglot.judging.nli, veriglot.scorers.nli; print('torch' in sys.modules)"
    assert printed(code) == "False\n"
