"""Languages as model input: T5 by a prefix, Marian by `>>code<<`, NLLB by codes of FLORES-200."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

transformers = pytest.importorskip("transformers", reason="needs the extra local")
pytest.importorskip("sentencepiece", reason="needs the extra reader")

from tiny_translators import pieces, vocabulary  # noqa: E402

from veriglot.datasets.translation.translators import TranslationRequest, load_translator  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses.:UserWarning")]

SMALL = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64,
}  # fmt: skip


def inner_tokenizer(folder: Path, first: list[str]) -> object:
    """The trained pieces as a Unigram model of the tokenizers library, with special tokens at the front."""
    import tokenizers

    names = list(vocabulary(pieces(folder / "training"), first))
    found = tokenizers.Tokenizer(tokenizers.models.Unigram([(name, -float(n)) for n, name in enumerate(names)], 2))
    found.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    found.decoder = tokenizers.decoders.Metaspace()
    return found


def test_t5_is_told_by_a_prefix(tmp_path: Path) -> None:
    inner = inner_tokenizer(tmp_path, ["<pad>", "</s>", "<unk>"])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(tmp_path)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    translator = load_translator(f"hf:{tmp_path}", beams=1, prefix="translate {source} to {target}: ")
    wanted = TranslationRequest("The bridge.", "en", "de")
    plain = load_translator(f"hf:{tmp_path}", beams=1)
    assert translator._encode(wanted.text, wanted) == plain._encode("translate English to German: The bridge.", wanted)
    assert translator._forced(wanted) is None
    assert "prefix" in translator.signature
    (reply,) = translator.translate([wanted])
    assert reply.text or reply.unfit


def test_marian_of_several_targets_is_told_by_a_token(tmp_path: Path) -> None:
    model = pieces(tmp_path / "training")
    names = [name for name in vocabulary(model, ["</s>", "<unk>", ">>deu<<", ">>fra<<"]) if name != "<pad>"]
    table = tmp_path / "training" / "vocab.json"
    table.write_text(json.dumps({name: n for n, name in enumerate([*names, "<pad>"])}), "utf-8")
    tokenizer = transformers.MarianTokenizer(str(model), str(model), str(table), source_lang="en", target_lang="gmw")
    tokenizer.save_pretrained(tmp_path)
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, eos_token_id=0, forced_eos_token_id=None,
        decoder_start_token_id=tokenizer.pad_token_id, **SMALL,
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(tmp_path)
    translator = load_translator(f"hf:{tmp_path}", beams=1)
    for tag, token in (("de", ">>deu<<"), ("fr", ">>fra<<")):
        ids = translator._encode("The bridge.", TranslationRequest("The bridge.", "en", tag))
        assert translator._tokenizer.convert_ids_to_tokens(ids)[0] == token
    (reply,) = translator.translate([TranslationRequest("The bridge.", "en", "eu")])
    assert reply.unfit == "unsupported_language"


def test_nllb_is_told_by_codes_of_flores(tmp_path: Path) -> None:
    names = list(vocabulary(pieces(tmp_path / "training"), ["<s>", "<pad>", "</s>", "<unk>"]))
    tokenizer = transformers.NllbTokenizer(
        vocab={name: n for n, name in enumerate(names)}, merges=[], src_lang="eng_Latn", tgt_lang="deu_Latn"
    )
    tokenizer.save_pretrained(tmp_path)
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer), pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, **SMALL
    )
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(tmp_path)
    translator = load_translator(f"hf:{tmp_path}", beams=1)
    assert translator._family == "nllb"
    for tag, code in (("de", "deu_Latn"), ("zh-Hant", "zho_Hant")):
        wanted = TranslationRequest("The bridge.", "en", tag)
        ids = translator._encode(wanted.text, wanted)
        assert translator._tokenizer.convert_ids_to_tokens(ids)[0] == "eng_Latn"
        forced = translator._forced(wanted)
        assert translator._tokenizer.convert_ids_to_tokens(forced) == code
        (output,) = translator._run([(ids, forced)])
        assert output.ids[0] == forced
