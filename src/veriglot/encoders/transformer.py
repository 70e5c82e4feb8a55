"""Any encoder of the transformers library, with the pooling that its folder asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.encoders.pooling import POOLINGS, pooled, pooling_of
from veriglot.encoders.windows import WindowEncoder, fast_tokenizer
from veriglot.errors import UnknownNameError, UsageError
from veriglot.provenance import checkpoint_revision, signature
from veriglot.weights.checkpoints import hub_options, positions, without_bars
from veriglot.weights.device import device_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Transformer"]

_ANY_LENGTH = 512  # tokens of a window where the model sets no bound


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
        UsageError: the model cannot be loaded, has no fast tokenizer, is made of more than pooling knows, or an option
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
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._options = {**given, "model": str(model), "languages": tuple(languages)}
        if pooling is not None and pooling not in POOLINGS:
            raise UnknownNameError("pooling", pooling, POOLINGS)
        self._pooling = pooling or pooling_of(model)
        tokenizer, network = _loaded(
            str(model), dtype, trust_remote_code=trust_remote_code, **hub_options(model, revision)
        )
        if network.config.is_encoder_decoder:
            network = network.get_encoder()
        self._device = device_for(device)
        self._network: Any = network.to(self._device).eval()
        room = _room(str(model), tokenizer, network, max_length)
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

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._options,)

    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():
            here = torch.from_numpy(mask).to(self._device)
            output = self._network(input_ids=torch.from_numpy(ids).to(self._device), attention_mask=here)
            hidden = output.last_hidden_state.float()
            return pooled(hidden, here, self._pooling).cpu().numpy(), hidden.cpu().numpy()


def _again(options: dict[str, Any]) -> Transformer:
    return Transformer(**options)


def _loaded(model: str, dtype: str, **given: Any) -> tuple[Any, Any]:
    try:
        with without_bars():
            tokenizer = transformers.AutoTokenizer.from_pretrained(model, **given)
            return tokenizer, transformers.AutoModel.from_pretrained(model, dtype=dtype, **given)
    except (OSError, ValueError, ImportError, RuntimeError, AttributeError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"The encoder {model!r} cannot be loaded: {said}",
            remedy="Give the folder of an encoder that transformers can load, or its name on the hub.",
        ) from error


def _room(model: str, tokenizer: Any, network: Any, wanted: int | None) -> int:
    """Tokens of a window: as wanted, and no more than the model has positions for."""
    most = positions(tokenizer, network)
    if wanted is not None and most is not None and wanted > most:
        raise UsageError(
            f"{model!r} takes {most:,} tokens, and {wanted:,} were asked for.",
            remedy=f"Give max_length {most} or less.",
        )
    return wanted or most or _ANY_LENGTH
