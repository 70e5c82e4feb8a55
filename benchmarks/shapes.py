"""Token classifiers of the shapes of LettuceDetect's checkpoints, with random weights: speed needs no training."""

from __future__ import annotations

from time import process_time
from typing import Any

import torch
import transformers

SHAPES = ("ModernBERT-base", "EuroBERT-210m", "Ettin-17M")


def build(shape: str) -> Any:
    """The model of a shape, ready to be asked. Configurations as published with the checkpoints."""
    if shape == "ModernBERT-base":
        config = transformers.ModernBertConfig(num_labels=2)
    elif shape == "EuroBERT-210m":
        config = transformers.EuroBertConfig(num_labels=2)
    elif shape == "Ettin-17M":
        config = transformers.ModernBertConfig(
            num_labels=2, hidden_size=256, num_hidden_layers=7, num_attention_heads=4, intermediate_size=384
        )
    else:
        raise ValueError(f"no shape {shape!r}; there are {', '.join(SHAPES)}")
    return transformers.AutoModelForTokenClassification.from_config(config).eval()


def cpu_seconds(shape: str, tokens: int, count: int) -> dict[str, float]:
    """CPU seconds an example of `tokens` ids, one example a call as LettuceDetect does, on one thread; parameters."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    model = build(shape)
    ids = torch.randint(5, 50_000, (count + 1, 1, tokens), generator=generator)
    mask = torch.ones((1, tokens), dtype=torch.long)
    with torch.inference_mode():
        model(input_ids=ids[0], attention_mask=mask)  # the first call allocates
        start = process_time()
        for row in ids[1:]:
            model(input_ids=row, attention_mask=mask).logits.argmax(-1)
        seconds = (process_time() - start) / count
    return {"seconds": seconds, "parameters": float(sum(weight.numel() for weight in model.parameters()))}
