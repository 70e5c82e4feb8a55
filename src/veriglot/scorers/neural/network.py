"""A checkpoint of transformers, loaded for scoring, and how its inputs are padded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.errors import WeightsError
from veriglot.provenance import checkpoint_revision
from veriglot.weights.cards import agree
from veriglot.weights.checkpoints import checkpoint, hub_options, loading
from veriglot.weights.device import device_for

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Network", "load", "padded"]

_PROBE = "the a 1 2"


@dataclass(frozen=True)
class Network:
    """A checkpoint that is ready to run.

    Attributes:
        place: its folder, or its name on the hub.
        tokenizer, model: of transformers.
        device: where the model is.
        about: what a signature says of it: revision, device, kind of numbers, versions.
    """

    place: str
    tokenizer: Any
    model: Any
    device: torch.device
    about: dict[str, str | None]


def load(
    kind: Any,
    model: str,
    *,
    what: str,
    tokenizer: str | None = None,
    revision: str | None = None,
    device: str | None = None,
    dtype: str = "float32",
    trust_remote_code: bool = False,
    accept_licence: bool = False,
) -> Network:
    """Load a checkpoint once its licence was shown, and accepted where it has to be.

    Args:
        kind: class of transformers whose `from_pretrained` loads it.
        model: a folder, a name that `veriglot models` lists, or a name on the hub.
        what: what it should be, for messages.
        tokenizer: checkpoint of the tokenizer, where the model's own has none.
        revision, device, dtype, trust_remote_code: as elsewhere.
        accept_licence: a licence that is not permissive is accepted.

    Raises:
        WeightsError: it cannot be loaded, or parts of its weights are missing from it.
        LicenceError: its licence has to be accepted first.
        UsageError: there is no such device.
    """
    agree(model, accepted=accept_licence)
    place, words = checkpoint(model), checkpoint(tokenizer or model)
    options = {"trust_remote_code": trust_remote_code, **hub_options(place, revision)}
    with loading(what, place):
        network, told = kind.from_pretrained(place, dtype=dtype, output_loading_info=True, **options)
    with loading(f"tokenizer of the {what}", words):
        own = options if words == place else {**options, **hub_options(words)}
        read = transformers.AutoTokenizer.from_pretrained(words, **own)
    absent = sorted(told.get("missing_keys", ()))
    if absent:
        raise WeightsError(
            f"The {what} {place!r} lacks weights: {', '.join(absent[:3])}{' ...' if len(absent) > 3 else ''}.",
            remedy="They would be random. Take a checkpoint that was trained for this.",
        )
    _knows_text(read, words, what)
    where = device_for(device)
    about: dict[str, str | None] = {
        "model": str(model),
        "revision": checkpoint_revision(place, network.config),
        "tokenizer": checkpoint_revision(words, None) if words != place else None,
        "dtype": dtype,
        "device": where.type,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
    }
    return Network(place, read, network.to(where).eval(), where, about)


def _knows_text(tokenizer: Any, place: str, what: str) -> None:
    """Of a checkpoint without one, the library makes a tokenizer that knows no letter, and says nothing."""
    ids = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
    special = {tokenizer.unk_token_id, *tokenizer.all_special_ids}
    if not [token for token in ids if token not in special and tokenizer.decode([token]).strip()]:
        raise WeightsError(
            f"The {what} {place!r} has no tokenizer.",
            remedy="Name the checkpoint of the right one by the option tokenizer.",
        )


def padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids on the left and `fill` on the right, and which are tokens: both of shape (b, longest)."""
    longest = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask
