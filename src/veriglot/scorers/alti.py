"""ALTI+ (Ferrando et al. 2022): how much the source contributes to each token of a translation.

HAT scored its data with it (section 2.2). The output of an attention block at a position is a sum of vectors: one for
each attended position, and the residual. A vector's contribution is how much nearer it brings the output in the L1
norm, max(0, |y| - |y - v|), as a share of the sum. Contributions are multiplied through the layers of encoder and
decoder.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.errors import WeightsError
from veriglot.hub.checkpoints import checkpoint, hub_options, loading
from veriglot.scorers.base import RawScore
from veriglot.scorers.neural import ForcedDecoding, Network
from veriglot.signatures import signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Passed = dict[torch.nn.Module, tuple[Any, Any]]  # inputs and output of each module

__all__ = []

_NORM_FIRST = {"marian": False, "m2m_100": True}  # whether layer norm comes before a block, or after it
_NUMBERS = 1 << 25  # maximum size of the vectors in memory
_TINY = 1e-30  # below any contribution of a float32, and above 0


class Alti(ForcedDecoding):
    """The mean contribution of the source to the tokens of a translation: 0 to 1, higher is better.

    The rest is the contribution of the earlier target tokens. The score is low if a model invented text, so `model`
    should be the one that translated; with another model, the score is that model's view. See `ForcedDecoding` for the
    tokens that count. `parts` has `tokens`, and `least`, the lowest share of a token. As in the paper, layer norm is
    linearised with its actual standard deviation, biases are attributed to no token, and feed-forward layers are
    ignored.

    Args:
        model: a Marian, M2M100 or NLLB: a folder, a name that `veriglot models` lists, or a name on the hub.
        codes: if the tokenizer needs language codes: `TAG=CODE` separated by commas, such as
            `de=deu_Latn,en=eng_Latn`; missing tags are looked up in the tokenizer's own codes.
        revision: of a model on the hub.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights; below `float32`, scores vary with the batch in their last digits.
        accept_licence: whether to accept the model's licence, if it is not a permissive one.

    Raises:
        WeightsError: the model cannot be loaded, its licence must be accepted first, or it is of another kind.
        UsageError: invalid codes.
    """

    name = "alti@1"

    def __init__(
        self,
        model: str,
        *,
        codes: str = "",
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        accept_licence: bool = False,
    ) -> None:
        source, what = checkpoint(model), "translation model"
        with loading(what, source):
            kind = transformers.AutoConfig.from_pretrained(source, **hub_options(source, revision)).model_type
        if kind not in _NORM_FIRST:
            raise WeightsError(
                f"ALTI+ reads Marian, M2M100 and NLLB, and {str(model)!r} is of the kind {kind}.",
                "Give the model that translated, or leave ALTI+ out and use log-probability:MODEL.",
            )
        network = Network(
            transformers.AutoModelForSeq2SeqLM,
            str(model),
            what=what,
            revision=revision,
            device=device,
            dtype=dtype,
            accept_licence=accept_licence,
        )
        network.model.set_attn_implementation("eager")  # other implementations do not return attention weights
        super().__init__(network, codes)
        self.signature = signature(scorer=self.name, codes=codes or None, unit="token", **network.about)

    def _run(self, rows: list[tuple[list[int], list[int]]]) -> list[RawScore]:
        network, config = self._network, self._network.model.config
        ids, mask = network.padded([row for row, _ in rows], config.pad_token_id)
        labels, produced = network.padded([row for _, row in rows], config.pad_token_id)
        begin = labels.new_full((len(rows), 1), config.decoder_start_token_id)
        with torch.inference_mode():
            source, _ = _shares(network.model.base_model, ids, mask, torch.cat([begin, labels[:, :-1]], 1))
        counted = produced.bool() & self._counted(labels)
        results = [shares[tokens] for shares, tokens in zip(source.sum(-1).double(), counted, strict=True)]
        return [
            RawScore(float(shares.mean()), {"tokens": float(len(shares)), "least": float(shares.min())})
            for shares in results
        ]


def _shares(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, ahead: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The contributions of source and target tokens to each generated token.

    Args:
        model: encoder and decoder, with an attention implementation that returns its weights.
        ids: of the source, of shape (b, s), padded to the longest.
        mask: 1 for tokens, 0 for padding.
        ahead: decoder input, of shape (b, t): the token before each generated one.

    Returns:
        Two arrays of shapes (b, t, s) and (b, t, t), whose rows together sum to one.
    """
    first = _NORM_FIRST[model.config.model_type]
    encoder = [(layer.self_attn, layer.self_attn_layer_norm) for layer in model.encoder.layers]
    decoder = [
        ((layer.self_attn, layer.self_attn_layer_norm), (layer.encoder_attn, layer.encoder_attn_layer_norm))
        for layer in model.decoder.layers
    ]
    blocks = [*encoder, *(block for pair in decoder for block in pair)]
    modules = [module for attention, norm in blocks for module in (attention, attention.v_proj, norm)]
    with _recorded(modules) as record:
        model(input_ids=ids, attention_mask=mask, decoder_input_ids=ahead, use_cache=False)
    read = _identity(ids)
    for block in encoder:
        read = _contributions(record, *block, first=first, own=True) @ read
    source, target = torch.zeros(*ahead.shape, ids.shape[1], device=ids.device), _identity(ahead)
    for itself, across in decoder:
        before = _contributions(record, *itself, first=first, own=True)
        attended = _contributions(record, *across, first=first, own=False)
        residual = attended[..., -1:]
        source = attended[..., :-1] @ read + residual * (before @ source)
        target = residual * (before @ target)
    return source, target


def _identity(ids: torch.Tensor) -> torch.Tensor:
    return torch.eye(ids.shape[1], device=ids.device).expand(len(ids), -1, -1)


@contextmanager
def _recorded(modules: Iterable[torch.nn.Module]) -> Iterator[Passed]:
    """Record inputs and output of each module while the model runs."""
    record: Passed = {}

    def keep(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        record[module] = inputs, output

    handles = [module.register_forward_hook(keep) for module in modules]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _contributions(record: Passed, attention: Any, norm: Any, *, first: bool, own: bool) -> torch.Tensor:
    """Contributions to the output of an attention block, of shape (b, q, k); each row sums to one.

    Args:
        record: filled by `_recorded`.
        attention: the attention of the block.
        norm: its layer norm.
        first: whether layer norm comes before the attention, not after the block.
        own: whether it is self-attention, so that the residual belongs to its own position; otherwise the residual has
            a last column of its own.
    """
    attended, weights = (tensor.float() for tensor in record[attention][1])
    before, after = record[norm][0][0].float(), record[norm][1].float()
    parts = _parts(attention, record[attention.v_proj][1])  # of shape (b, h, k, d)
    if first:
        residual, output = before, before + attended
    else:  # apply the linear map without its bias
        deviation = (before.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
        parts, residual = (
            (vectors - vectors.mean(-1, keepdim=True)) * norm.weight.float() for vectors in (parts, before - attended)
        )
        weights, residual, output = weights / deviation.unsqueeze(1), residual / deviation, after
    step = max(1, _NUMBERS // parts[:, 0].numel())
    shares = []
    for start in range(0, output.shape[1], step):
        some = torch.arange(start, min(start + step, output.shape[1]), device=output.device)
        vectors = torch.einsum("bhqk,bhkd->bqkd", weights[:, :, some], parts)
        if own:
            vectors[:, some - start, some] += residual[:, some]
        else:
            vectors = torch.cat([vectors, residual[:, some, None]], 2)
        nearer = output[:, some].abs().sum(-1, keepdim=True) - (output[:, some, None] - vectors).abs().sum(-1)
        shares.append(nearer.clamp(min=0))
    result = torch.cat(shares, 1)
    (result.diagonal(dim1=1, dim2=2) if own else result[..., -1]).add_(_TINY)  # if no vector contributes
    return result / result.sum(-1, keepdim=True)


def _parts(attention: Any, values: torch.Tensor) -> torch.Tensor:
    """Output of each head for each position, as if all attention were on it: (b, h, k, d)."""
    heads = values.float().view(*values.shape[:2], attention.num_heads, -1)
    projection = attention.out_proj.weight.float().view(-1, *heads.shape[2:])
    return torch.einsum("bkhe,dhe->bhkd", heads, projection)
