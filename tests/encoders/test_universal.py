"""The real encoder: the same numbers as its own graph, offsets, batches, memory, threads, and what is refused."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multilingual import ODD, SENTENCES, UNRELATED

from veriglot.encoders.base import Encoder, load_encoder
from veriglot.errors import UnknownNameError, UsageError, WeightsError
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = "EncoderDNN/CNN_layers/dense/BiasAdd:0"  # what the sentence is summed from
ALL = (*SENTENCES.values(), UNRELATED)


@pytest.fixture(scope="module")
def original(universal_file: Path) -> Any:
    """The file as it was published, with the tokenizer in the graph, and token vectors as a second output."""
    extensions = pytest.importorskip("onnxruntime_extensions", reason="needs the extra `vectors`")
    import onnx
    import onnxruntime

    model = onnx.load(str(universal_file))
    name = next(name for node in model.graph.node for name in node.output if name.endswith(CONTEXT))
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, None]))
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(extensions.get_library_path())
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("text", [*ALL, ODD[0], ODD[1]])
def test_vectors_are_those_of_the_published_graph(universal: Encoder, original: Any, text: str) -> None:
    sentence, tokens = original.run(None, {"inputs": np.array([text])})
    assert (universal.sentences([text]) == sentence).all()
    assert (universal.tokens(text).vectors == tokens[1:-1]).all()  # all but the marks of beginning and end


def test_meaning_is_near_across_languages(universal: Encoder) -> None:
    vectors = universal.sentences(ALL)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    likeness = vectors @ vectors.T
    translations = likeness[:-1, :-1]
    assert translations.min() > 0.5 > 0.3 > likeness[-1, :-1].max()


def test_a_token_in_context_is_nearest_to_its_translation(universal: Encoder) -> None:
    def year(text: str) -> np.ndarray[Any, Any]:
        tokens, at = universal.tokens(text), text.index("1955")
        vector: np.ndarray[Any, Any] = tokens.of_words(np.array([[at, at + 4]]))[0]
        return vector / np.float32(np.linalg.norm(vector))

    years = np.stack([year(text) for text in SENTENCES.values()])
    other = universal.tokens(UNRELATED).vectors
    other = other / np.linalg.norm(other, axis=1, keepdims=True)
    assert (years @ years.T).mean() > (years @ other.T).max()


@pytest.mark.parametrize("text", [*ALL, *ODD])
def test_offsets_hold_the_text_of_each_token(universal: Encoder, text: str) -> None:
    check_bounds(text, universal.tokens(text).bounds)


@given(text=st.text(max_size=80) | st.text(st.sampled_from("aé ß\u0301中ก👍½\u200b \t\n1.ﷺ가"), max_size=40))
@pytest.mark.fuzz
def test_offsets_of_any_text(universal: Encoder, text: str) -> None:
    check_bounds(text, universal.tokens(text).bounds)


def check_bounds(text: str, bounds: np.ndarray[Any, Any]) -> None:
    assert (bounds[:, 0] <= bounds[:, 1]).all()
    assert (np.diff(bounds, axis=0) >= 0).all()
    assert not len(bounds) or 0 <= bounds[0, 0] <= bounds[-1, 1] <= len(text)
    assert not any(text[start].isspace() for start, end in bounds.tolist() if start < end)
    covered = {place for start, end in bounds.tolist() for place in range(start, end)}
    missed = {text[place] for place in range(len(text)) if place not in covered}
    assert not any(char.isalnum() for char in missed)


def test_known_offsets(universal: Encoder) -> None:
    text = "Hello  wörld½ 👍🏽"
    found = [text[start:end] for start, end in universal.tokens(text).bounds.tolist() if start < end]
    assert found == ["Hello", "w", "ör", "ld", "½", "👍🏽"]


def test_batch_order_and_memory_change_nothing(universal_file: Path) -> None:
    fresh = load_encoder("use-multilingual", path=universal_file, cache_mb=0)
    warm = load_encoder("use-multilingual", path=universal_file)
    alone = np.concatenate([fresh.sentences([text]) for text in ALL])
    assert (fresh.sentences(ALL) == alone).all()
    assert (warm.sentences(ALL[::-1])[::-1] == alone).all()
    assert (warm.sentences(ALL * 2) == np.tile(alone, (2, 1))).all()


def test_a_small_memory_forgets_and_stays_within_bounds(universal_file: Path) -> None:
    encoder: Any = load_encoder("use-multilingual", path=universal_file, cache_mb=0.25)
    first = encoder.sentences(ALL)
    assert 0 < len(encoder._recent) < len(ALL)
    assert encoder._recent.filled <= 1 << 18
    assert (encoder.sentences(ALL) == first).all()


def test_what_was_given_cannot_spoil_the_memory(universal: Encoder) -> None:
    before = universal.tokens(ALL[0]).vectors.copy()
    universal.sentences([ALL[0]])[:] = 0
    given = universal.tokens(ALL[0])
    given.vectors[:] = 0
    given.bounds[:] = 0
    assert (universal.tokens(ALL[0]).vectors == before).all()
    assert universal.sentences([ALL[0]]).any()


def test_threads_get_what_one_gets(universal_file: Path) -> None:
    encoder = load_encoder("use-multilingual", path=universal_file, cache_mb=1)
    alone = [universal_vectors(encoder, text) for text in ALL]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: universal_vectors(encoder, text), ALL * 6))
    assert all((one == alone[place % len(ALL)]).all() for place, one in enumerate(together))


def universal_vectors(encoder: Encoder, text: str) -> np.ndarray[Any, Any]:
    return encoder.tokens(text).vectors


def test_a_text_of_sentences(universal: Encoder) -> None:
    text = "\n".join(ALL)
    bounds = sentences(text)
    found = universal.tokens(text, bounds)
    for start, end in bounds:
        inside = (found.bounds[:, 0] >= start) & (found.bounds[:, 1] <= end)
        alone = universal.tokens(text[start:end])
        assert (found.bounds[inside] == alone.bounds + start).all()
        assert (found.vectors[inside] == alone.vectors).all()
    words = np.asarray(word_bounds(text), np.int64)
    assert found.of_words(words).any(axis=1).mean() > 0.9


def test_a_long_sentence_is_seen_whole_in_pieces_of_600(universal: Encoder) -> None:
    text = "the lamp of the tower " * 70
    found = universal.tokens(text)
    assert found.bounds[-1, 1] >= len(text.rstrip())
    pieces = [universal.tokens(text[low : low + 600]).vectors for low in (0, 600, 1200)]
    assert (found.vectors == np.concatenate(pieces)).all()
    (whole,) = universal.sentences([text])
    assert np.linalg.norm(whole) == pytest.approx(1.0, abs=1e-5)
    assert (universal.sentences([text[low : low + 600] for low in (0, 600, 1200)]) @ whole).min() > 0.9


def test_what_has_no_tokens_is_zero_and_no_sentence(universal: Encoder) -> None:
    texts = ["", "  ", "\u200b"]
    assert not universal.sentences(texts).any()
    assert universal.sentences([]).shape == (0, 512)
    for found in (universal.tokens("\u200b\u200b", [(0, 1), (1, 2)]), universal.tokens("", [])):
        assert (found.bounds.shape, found.vectors.shape) == ((0, 2), (0, 512))
        assert found.of_words(np.array([[0, 2]])).tolist() == [[0.0] * 512]


@pytest.mark.parametrize("bounds", [[(0, 99)], [(-1, 2)], [(3, 2)], [(2, 4), (0, 1)]])
def test_sentences_outside_the_text_are_refused(universal: Encoder, bounds: list[tuple[int, int]]) -> None:
    with pytest.raises(UsageError, match="not in order inside a text of 5 code points"):
        universal.tokens("Hello", bounds)


def test_it_pickles_as_its_name(universal: Encoder) -> None:
    sent = pickle.dumps(universal)
    assert len(sent) < 1000
    again: Encoder = pickle.loads(sent)
    assert again.signature == universal.signature
    assert (again.sentences(ALL[:1]) == universal.sentences(ALL[:1])).all()


def test_it_says_what_it_is(universal: Encoder) -> None:
    assert universal.name == "use-multilingual"
    assert universal.signature.startswith("encoder:use-multilingual|revision:3-int8|weights:b8b05b01f0861094")
    assert (universal.dimension, universal.token_dimension) == (512, 512)


def test_files_that_are_not_it_are_refused(universal_file: Path, tmp_path: Path) -> None:
    other = files("veriglot.detectors.grounding") / "weights" / "network.onnx"
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(universal_file.read_bytes()[:100_000])
    for path, said in (
        (other, "not the Universal"),
        (broken, "not the Universal"),
        (tmp_path / "no", "cannot be read"),
    ):
        with pytest.raises(WeightsError, match=said) as caught:
            load_encoder("use-multilingual", path=path)
        assert "veriglot models get use-multilingual" in caught.value.remedy


def test_options_are_checked(universal_file: Path) -> None:
    with pytest.raises(UsageError, match="-1"):
        load_encoder("use-multilingual", path=universal_file, cache_mb=-1)
    with pytest.raises(UnknownNameError, match="Did you mean cache_mb"):
        load_encoder("use-multilingual", cache=3)


def test_without_weights_it_says_what_to_type(
    universal_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path))
    with pytest.raises(WeightsError) as caught:
        load_encoder("use-multilingual")
    assert caught.value.remedy.endswith("veriglot models get use-multilingual")
