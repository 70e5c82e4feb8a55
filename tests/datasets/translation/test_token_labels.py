"""Labels of tokens: byte-level BPE and sentencepiece-like tokenizers, special tokens, cuts."""

from __future__ import annotations

from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="needs the extra local")
tokenizers = pytest.importorskip("tokenizers", reason="needs the extra hf")

from veriglot.datasets.token_labels import token_labels  # noqa: E402
from veriglot.records import Span  # noqa: E402

pytestmark = pytest.mark.slow

TEXT = "Norva's bridge 🌉 opened in 1879, 桥梁很老。"


def made(kind: str) -> Any:
    pre = tokenizers.pre_tokenizers
    if kind == "bytes":
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = pre.ByteLevel(add_prefix_space=False, trim_offsets=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<s>", "</s>"],
            initial_alphabet=pre.ByteLevel.alphabet(),
            show_progress=False,
        )
    else:
        inner = tokenizers.Tokenizer(tokenizers.models.Unigram())
        inner.pre_tokenizer = pre.Metaspace()
        trainer = tokenizers.trainers.UnigramTrainer(
            vocab_size=80, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        )
    inner.train_from_iterator([TEXT] * 8, trainer)
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", inner.token_to_id("<s>")), ("</s>", inner.token_to_id("</s>"))]
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("kind", ["bytes", "metaspace"])
@pytest.mark.parametrize("scheme", ["io", "bio"])
def test_the_labels_cover_exactly_the_spans(kind: str, scheme: Any) -> None:
    spans = [Span(27, 31, "entity"), Span(33, 35, "invented")]
    found = token_labels(TEXT, spans, made(kind), scheme=scheme)
    assert found.labels[0] is None
    assert found.labels[-1] is None
    inside = {place for (s, e), label in zip(found.offsets, found.labels, strict=True)
              if label not in (None, "O") for place in range(s, e)}  # fmt: skip
    wanted = {place for span in spans for place in range(span.start, span.end)}
    assert wanted <= inside
    if kind == "bytes":
        assert all(TEXT[s:e].strip() == TEXT[s:e] for (s, e), one in zip(found.offsets, found.labels, strict=True)
                   if one not in (None, "O"))  # fmt: skip
    begun = [label for label in found.labels if label and label.startswith("B-")]
    assert begun == (["B-entity", "B-invented"] if scheme == "bio" else [])
    assert found.cut is None


def test_what_is_cut_is_said() -> None:
    found = token_labels(TEXT, [Span(0, 5, "entity"), Span(33, 37, "entity")], made("bytes"), max_length=6)
    assert len(found.ids) == 6
    assert found.cut is not None
    assert found.cut < 33


def test_the_inner_of_two_spans_counts() -> None:
    found = token_labels(TEXT, [Span(0, 31, "invented"), Span(27, 31, "entity")], made("bytes"))
    labels = {label for (s, e), label in zip(found.offsets, found.labels, strict=True) if s >= 27 and e <= 31 and label}
    assert labels == {"I-entity"}
