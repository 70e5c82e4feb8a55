"""What mT5's checkpoints say of their head, and what the library makes of it."""

from __future__ import annotations

from typing import Any

import transformers

__all__ = ["head_scale"]


def head_scale(place: str, model: Any, **options: Any) -> float:
    """What the logits of a checkpoint have to be multiplied by to be those of transformers 4.

    Checkpoints were published for that version. Where the head is the embeddings, it divided the decoder's output by
    the square root of its width. Version 5 does so for T5, and not for mT5; and it sets the flag that says so, whatever
    the file holds.

    Args:
        place: folder or name on the hub.
        model: the loaded model.
        options: further arguments of `get_config_dict`, such as the revision.
    """
    if model.config.model_type != "mt5":
        return 1.0
    stored, _ = transformers.PretrainedConfig.get_config_dict(place, **options)
    return float(model.config.d_model**-0.5) if stored.get("tie_word_embeddings", True) else 1.0
