"""Any encoder of the transformers library, with the pooling that its folder asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch
import transformers

from veriglot.encoders.base import WindowEncoder, fast_tokenizer
from veriglot.errors import UnknownNameError, UsageError
from veriglot.hub.checkpoints import device_for, hub_options, loading, positions, room_for
from veriglot.signatures import checkpoint_revision, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Transformer"]


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
    """The pooling that a folder's configuration (of sentence-transformers) asks for; `mean` where it has none."""
    modules = Path(model) / "modules.json"
    if not modules.is_file():
        return "mean"
    parts = msgspec.json.decode(modules.read_bytes(), type=list[_Module])
    pooling = "mean"
    for part in parts:
        kind = part.type.rpartition(".")[2]
        if kind not in _PLAIN:
            raise _refused(model, f"a layer of the kind {kind}")
        if kind == "Pooling":
            pooling = _mode(model, Path(model) / part.path / "config.json")
    return pooling


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


class Transformer(WindowEncoder):
    """A checkpoint of transformers; its last layer gives the tokens their vectors.

    Args:
        model: a folder, or a name on the hub.
        revision: of a model on the hub.
        pooling: what makes a sentence of tokens: `mean`, `cls`, `max` or `lasttoken`; None for what the folder's own
            pooling configuration says, and the mean where it has none.
        prompt: stands before every text, as some models ask for, such as `query: `.
        max_length: tokens of a window; None for as many as the model takes.
        languages: BCP 47 tags in which you measured its quality; it is `weak` in all others.
        device: where it runs, such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights. Of less than `float32`, vectors vary with the batch in their last digits.
        trust_remote_code: run code that comes with the model.
        cache_mb: MiB of vectors to keep of the sentences that were encoded last; 0 keeps none.

    Raises:
        WeightsError: the model cannot be loaded.
        UsageError: it has no fast tokenizer, is made of more than pooling knows, or an option
            makes no sense.
        UnknownNameError: no such pooling or language.
    """

    name = "transformers"

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        pooling: str | None = None,
        prompt: str = "",
        max_length: int | None = None,
        languages: Sequence[str] = (),
        device: str | None = None,
        dtype: str = "float32",
        trust_remote_code: bool = False,
        cache_mb: float = 64,
    ) -> None:
        if pooling is not None and pooling not in POOLINGS:
            raise UnknownNameError("pooling", pooling, POOLINGS)
        self._pooling = pooling or pooling_of(model)
        given = {"trust_remote_code": trust_remote_code, **hub_options(model, revision)}
        with loading("encoder", str(model)):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(model), **given)
            network = transformers.AutoModel.from_pretrained(str(model), dtype=dtype, **given)
        if network.config.is_encoder_decoder:
            network = network.get_encoder()
        self._device = device_for(device)
        self._network: Any = network.to(self._device).eval()
        room = room_for(str(model), positions(tokenizer, network), max_length)
        self.signature = signature(
            encoder=self.name,
            model=model,
            revision=checkpoint_revision(model, network.config),
            pooling=self._pooling,
            prompt=prompt or None,
            window=room,
            dtype=dtype,
            device=self._device.type,
            transformers=transformers.__version__,
            torch=torch.__version__,
        )
        super().__init__(
            fast_tokenizer(tokenizer, str(model)), room=room, prompt=prompt, languages=languages, cache_mb=cache_mb
        )

    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():
            here = torch.from_numpy(mask).to(self._device)
            output = self._network(input_ids=torch.from_numpy(ids).to(self._device), attention_mask=here)
            hidden = output.last_hidden_state.float()
            return pooled(hidden, here, self._pooling).cpu().numpy(), hidden.cpu().numpy()
