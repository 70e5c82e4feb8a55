"""The network of a token classifier: from pairs of prompt and response to probabilities of the response's tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from veriglot.detectors.token_classifier.inputs import Tokens
from veriglot.encoders.windows import fast_tokenizer
from veriglot.errors import UsageError
from veriglot.provenance import checkpoint_revision
from veriglot.weights.batches import batches
from veriglot.weights.cards import agree
from veriglot.weights.checkpoints import checkpoint, hub_options, loading, positions
from veriglot.weights.device import device_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.token_classifier.inputs import Input

__all__ = ["Network", "TokenProbabilities", "load_network"]

_ANY_LENGTH = 512  # tokens of an input where the model sets no bound


@dataclass(frozen=True)
class TokenProbabilities:
    """What a network says of the response's tokens in one input.

    Attributes:
        bounds: half-open code point ranges of the response's piece, shape (t, 2); neither column falls.
        outputs: probability of each output, shape (t, outputs), float64.
    """

    bounds: NDArray[np.int64]
    outputs: NDArray[np.float64]


class Network:
    """A token classifier of transformers with its tokenizer; make it with `load_network`.

    Attributes:
        tokens: its tokenizer.
        names: the names of its outputs (`id2label`).
        room: tokens that it takes at a time, special tokens included.
        revision: the commit of a model from the hub, or a hash of the files of its folder.
        device: where it runs.
    """

    def __init__(self, model: Any, tokenizer: Any, *, room: int, revision: str, device: torch.device) -> None:
        self._model = model.to(device).eval()
        self._typed = "token_type_ids" in tokenizer.model_input_names
        self._padding = tokenizer.pad_token_id or 0
        self.tokens = Tokens(fast_tokenizer(tokenizer, model.name_or_path))
        self.names: dict[int, str] = model.config.id2label
        self.room = room
        self.revision = revision
        self.device = device

    def run(self, inputs: Sequence[Input]) -> list[TokenProbabilities | str]:
        """The probabilities of each input, in order; what went wrong where an input makes the network fail.

        Inputs of like length run together. Where a batch fails, its inputs run one by one, so that one sample's failure
        costs no other.
        """
        found: list[TokenProbabilities | str] = [""] * len(inputs)
        for batch in batches([len(one.encoding.ids) for one in inputs]):
            for place, said in zip(batch, self._tried([inputs[place] for place in batch]), strict=True):
                found[place] = said
        return found

    def _tried(self, inputs: Sequence[Input]) -> Sequence[TokenProbabilities | str]:
        try:
            return self._probabilities(inputs)
        except (RuntimeError, IndexError, ValueError) as error:  # of torch: too little memory, an id beyond its table
            if len(inputs) > 1:
                return [said for one in inputs for said in self._tried([one])]
            return [f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"]

    def _probabilities(self, inputs: Sequence[Input]) -> list[TokenProbabilities]:
        width = max(len(one.encoding.ids) for one in inputs)
        given = {
            "input_ids": _padded([one.encoding.ids for one in inputs], width, self._padding),
            "attention_mask": _padded([[1] * len(one.encoding.ids) for one in inputs], width, 0),
        }
        if self._typed:
            given["token_type_ids"] = _padded([one.encoding.type_ids for one in inputs], width, 0)
        with torch.inference_mode():
            logits = self._model(**{name: ids.to(self.device) for name, ids in given.items()}).logits
            outputs = torch.softmax(logits.double(), -1).cpu().numpy()
        if not np.isfinite(outputs).all():
            raise ValueError("the network gave something that is no number")
        return [_of_response(one, row) for one, row in zip(inputs, outputs, strict=True)]


def _of_response(one: Input, outputs: NDArray[np.float64]) -> TokenProbabilities:
    """The rows of the response's own tokens; those of the prompt, special ones and padding are left out."""
    mine = np.array([sequence == 1 for sequence in one.encoding.sequence_ids], bool)
    bounds = np.array(one.encoding.offsets, np.int64).reshape(-1, 2)[mine]
    return TokenProbabilities(np.maximum.accumulate(bounds, axis=0), outputs[: len(mine)][mine])


def _padded(rows: Sequence[Sequence[int]], width: int, padding: int) -> torch.Tensor:
    return torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows], dtype=torch.int64)


def load_network(
    model: str,
    *,
    revision: str | None = None,
    max_length: int | None = None,
    most: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    trust_remote_code: bool = False,
    accept_licence: bool = False,
) -> Network:
    """A checkpoint of transformers with a head that classifies tokens.

    Args:
        model: a folder, a name of the registry (`veriglot models`), or a name on the hub.
        revision: of a model on the hub.
        max_length: tokens of an input, special tokens included; None for as many as the model takes, and no more than
            `most`.
        most: what it was trained with, where that is less than it takes.
        device: where it runs, such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights.
        trust_remote_code: run code that comes with the model.
        accept_licence: you have read its licence, and it allows what you do; it is shown before the first use.

    Raises:
        LicenceError: its licence forbids something, and was not accepted.
        WeightsError: it cannot be loaded, or has no head that was trained.
        UsageError: it takes fewer tokens than `max_length`, its tokenizer does not say where tokens stand, or there is
            no such device.
    """
    name = checkpoint(model)
    agree(model, accepted=accept_licence)
    given = {**hub_options(name, revision), "trust_remote_code": trust_remote_code}
    with loading("token classifier", name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **given)
        network, report = transformers.AutoModelForTokenClassification.from_pretrained(
            name, dtype=dtype, output_loading_info=True, **given
        )
        if report["missing_keys"]:  # transformers would fill them with random numbers, and only warn
            missing = ", ".join(sorted(report["missing_keys"])[:3])
            raise ValueError(f"its files lack {missing}: it was not trained to classify tokens")
    takes = positions(tokenizer, network)
    if max_length is not None and takes is not None and max_length > takes:
        raise UsageError(
            f"{name!r} takes {takes:,} tokens, and {max_length:,} were asked for.",
            remedy=f"Give max_length {takes} or less.",
        )
    room = max_length or min(bound for bound in (takes or most or _ANY_LENGTH, most) if bound)
    return Network(
        network,
        tokenizer,
        room=room,
        revision=checkpoint_revision(name, network.config),
        device=device_for(device),
    )
