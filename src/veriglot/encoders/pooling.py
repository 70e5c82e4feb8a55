"""From token vectors to a sentence vector, as a checkpoint's own configuration says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch

from veriglot.errors import UsageError

__all__ = ["POOLINGS", "pooled", "pooling_of"]

POOLINGS = ("mean", "cls", "max", "lasttoken")
_OLDER = {  # keys of configurations before sentence-transformers 6
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
_PLAIN = ("Transformer", "Pooling", "Normalize")  # modules that this encoder stands for


class _Module(msgspec.Struct):
    type: str
    path: str = ""


def pooling_of(model: str | Path) -> str:
    """The pooling that a folder's configuration (of sentence-transformers) asks for; `mean` where it has none.

    Raises:
        UsageError: the folder asks for a pooling, or for layers behind it, that are not among ours.
    """
    modules = Path(model) / "modules.json"
    if not modules.is_file():
        return "mean"
    parts = msgspec.json.decode(modules.read_bytes(), type=list[_Module])
    found = "mean"
    for part in parts:
        kind = part.type.rpartition(".")[2]
        if kind not in _PLAIN:
            raise _refused(model, f"a layer of the kind {kind}")
        if kind == "Pooling":
            found = _mode(model, Path(model) / part.path / "config.json")
    return found


def _mode(model: str | Path, file: Path) -> str:
    config = msgspec.json.decode(file.read_bytes(), type=dict[str, object])
    given = config.get("pooling_mode") or [mode for key, mode in _OLDER.items() if config.get(key)] or "mean"
    modes = [given] if isinstance(given, str) else list(given) if isinstance(given, list) else [str(given)]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise _refused(model, f"the pooling {'+'.join(map(str, modes))}")
    return str(modes[0])


def _refused(model: str | Path, what: str) -> UsageError:
    return UsageError(
        f"The encoder {str(model)!r} has {what}, which `transformers` alone does not run.",
        remedy="Load it with the encoder sentence-transformers, or name a pooling.",
    )


def pooled(hidden: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Sentence vectors, shape (b, d), of token vectors (b, t, d) of which `mask` (b, t) counts those with 1.

    Special tokens count like others, as in sentence-transformers.
    """
    counted = mask.unsqueeze(-1).bool()
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "max":
        return hidden.masked_fill(~counted, float("-inf")).amax(1)
    if pooling == "lasttoken":
        return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]
    return hidden.masked_fill(~counted, 0.0).sum(1) / mask.sum(1, keepdim=True)
