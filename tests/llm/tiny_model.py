"""A real causal language model of some thousand random weights, with a tokenizer, written by transformers itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tokenizers
import torch
import transformers

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = 256
TEXT = [
    "The lighthouse of Norva was built in 1871.",
    "Wer baute den Turm?",
    "灯塔建于1871年。",
    '{["user": assistant]}',
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def write_model(folder: Path, *, seed: int = 0, chat: bool = True) -> Path:
    """Write a Llama of two small layers to a folder.

    Args:
        folder: where to.
        seed: of the weights.
        chat: whether the tokenizer has a chat template.
    """
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(), eos_token="<|end|>", pad_token="<|end|>", model_max_length=CONTEXT
    )
    if chat:
        tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT,
            bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def _tokenizer() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer
