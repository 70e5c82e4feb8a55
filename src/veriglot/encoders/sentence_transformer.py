"""Any encoder of the sentence-transformers library, with all its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sentence_transformers
import torch
import transformers

from veriglot.encoders.base import WindowEncoder, fast_tokenizer
from veriglot.errors import UsageError
from veriglot.hub.checkpoints import effective_max_length, hub_options, loading
from veriglot.signatures import checkpoint_revision, signature

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.arrays import Float32s, Int64s
__all__ = []


class SentenceTransformer(WindowEncoder):
    """A checkpoint of sentence-transformers, with the pooling, dense and other layers of its configuration.

    Args:
        model: a folder, or a name on the hub.
        revision: of a model on the hub.
        prompt: prefix of every text, such as `query: `; None for the model's default prompt, if it has one.
        max_length: most tokens of a window; None for the model's own limit.
        languages: BCP 47 tags in which you measured its quality as good; it is `weak` in all others.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        trust_remote_code: run code that comes with the model.
        cache_mb: size in MiB of the cache of recently encoded sentences; 0 for no cache.

    Raises:
        WeightsError: the model cannot be loaded.
        UsageError: it has no fast tokenizer or excludes its prompt from pooling, or an option is invalid.
        UnknownNameError: no such language.
    """

    name = "sentence-transformers"

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        prompt: str | None = None,
        max_length: int | None = None,
        languages: Sequence[str] = (),
        device: str | None = None,
        trust_remote_code: bool = False,
        cache_mb: float = 64,
    ) -> None:
        with loading("encoder", str(model)):
            network: Any = sentence_transformers.SentenceTransformer(
                str(model), device=device, trust_remote_code=trust_remote_code, **hub_options(model, revision)
            )
        self._network = network.float().eval()
        words = network.prompts.get(network.default_prompt_name, "") if prompt is None else prompt
        if words and not all(getattr(layer, "include_prompt", True) for layer in network):
            raise UsageError(
                f"{str(model)!r} leaves its prompt out of the sentence, which is not supported.", "Give prompt ''."
            )
        room = effective_max_length(str(model), network.max_seq_length, max_length)
        self.signature = signature(
            encoder=self.name,
            model=model,
            revision=checkpoint_revision(model, getattr(network[0], "config", None)),
            prompt=words or None,
            window=room,
            device=network.device.type,
            sentence_transformers=sentence_transformers.__version__,
            transformers=transformers.__version__,
            torch=torch.__version__,
        )
        tokenizer = fast_tokenizer(network.tokenizer, str(model))
        super().__init__(tokenizer, room=room, prompt=words, languages=languages, cache_mb=cache_mb)

    def _run(self, ids: Int64s, mask: Int64s) -> tuple[Float32s, Float32s]:
        device = self._network.device
        features = {"input_ids": torch.from_numpy(ids).to(device), "attention_mask": torch.from_numpy(mask).to(device)}
        with torch.inference_mode():
            output = self._network(features)
        return output["sentence_embedding"].float().cpu().numpy(), output["token_embeddings"].float().cpu().numpy()
