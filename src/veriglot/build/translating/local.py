"""Any sequence-to-sequence model of transformers as translator: NLLB, M2M-100, mBART, Marian, MADLAD, T5 ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from veriglot.build.translating.seq2seq import Output, SequenceTranslator, Tongue
from veriglot.errors import UsageError
from veriglot.provenance import checkpoint_revision, signature
from veriglot.weights.checkpoints import checkpoint, hub_options, loading, positions
from veriglot.weights.device import device_for

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LocalTranslator", "codes_of_text", "tongue_of"]


class LocalTranslator(SequenceTranslator):
    """A checkpoint of `AutoModelForSeq2SeqLM`.

    Multilingual models are told the languages in their own codes (`records/translation_codes.py`), and their
    translations begin with the target's token. Where a model is made for one pair (Marian), that it is the right pair
    is the user's to know.

    Args:
        model: a folder, a model of the registry, or a name on the hub.
        revision: of a model on the hub.
        codes: further language codes of the model, `TAG=CODE` parted by commas.
        prefix: stands before every text, such as `translate {source} to {target}: ` for T5.
        beams: width of the beam search; 1 is greedy.
        batch: sentences that are translated together.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights, such as `float32`; `auto` for that of the file.

    Raises:
        WeightsError: the model cannot be loaded.
        UsageError: codes that cannot be read, or a number below 1.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        codes: str = "",
        prefix: str = "",
        beams: int = 4,
        batch: int = 16,
        device: str | None = None,
        dtype: str = "auto",
    ) -> None:
        if beams < 1 or batch < 1:
            raise UsageError("`beams` and `batch` are at least 1.")
        name = checkpoint(model)
        tokenizer, network = _loaded(name, revision, dtype)
        super().__init__(tongue_of(tokenizer, codes, prefix), positions(tokenizer, network))
        self._device = device_for(device)
        self._network: Any = network.to(self._device).eval()
        self._beams, self._batch = beams, batch
        # mBART-25 is told the target by the token that the decoder starts from; all others by one that is forced.
        self._starts = network.config.model_type == "mbart" and "MBart50" not in type(tokenizer).__name__
        self.signature = signature(
            translator="hf",
            model=model,
            revision=checkpoint_revision(name, network.config),
            beams=beams,
            codes=codes or None,
            prefix=prefix or None,
            dtype=str(network.dtype).removeprefix("torch."),
            device=self._device.type,
            transformers=transformers.__version__,
            torch=torch.__version__,
        )

    def run(self, rows: Sequence[tuple[list[int], int | None]]) -> list[Output]:
        """As `SequenceTranslator`: rows of one target and like lengths together."""
        order = sorted(range(len(rows)), key=lambda n: (rows[n][1] or -1, len(rows[n][0])))
        found: dict[int, Output] = {}
        at = 0
        while at < len(order):
            target = rows[order[at]][1]
            chosen = [n for n in order[at : at + self._batch] if rows[n][1] == target]
            outputs = self._generate([rows[n][0] for n in chosen], target)
            found.update(zip(chosen, outputs, strict=True))
            at += len(chosen)
        return [found[number] for number in range(len(rows))]

    def _generate(self, ids: Sequence[list[int]], target: int | None) -> list[Output]:
        longest = max(map(len, ids))
        padding = self._tongue.tokenizer.pad_token_id or 0
        padded = torch.tensor([row + [padding] * (longest - len(row)) for row in ids], device=self._device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids], device=self._device)
        told: dict[str, Any] = {}
        if target is not None:
            told = {"decoder_start_token_id" if self._starts else "forced_bos_token_id": target}
        with torch.inference_mode():
            output = self._network.generate(
                input_ids=padded,
                attention_mask=mask,
                num_beams=self._beams,
                do_sample=False,
                max_new_tokens=self.most_new(longest) - 1,
                max_length=None,
                forced_eos_token_id=None,  # mBART would seem to have ended by itself
                **told,
            )
        ends = self._ends()
        rows = zip(output[:, 1:].tolist(), ids, strict=True)
        return [_until_end(row[: self.most_new(len(given)) - 1], ends) for row, given in rows]

    def _ends(self) -> set[int]:
        end = self._network.generation_config.eos_token_id
        return set(end) if isinstance(end, list) else {end}


def _until_end(ids: list[int], ends: set[int]) -> Output:
    """The ids up to the one that ends the text. A forced token at the front is no end."""
    place = next((n for n, token in enumerate(ids) if token in ends and n), None)
    return Output(ids if place is None else ids[:place], place is not None)


def _loaded(name: str, revision: str | None, dtype: str) -> tuple[Any, Any]:
    with loading("translation model", name):
        given = hub_options(name, revision)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **given)
        network = transformers.AutoModelForSeq2SeqLM.from_pretrained(name, dtype=dtype, **given)
    return tokenizer, network


def tongue_of(tokenizer: Any, codes: str, prefix: str) -> Tongue:
    """The tokenizer with what it is told about languages."""
    return Tongue(tokenizer, prefix=prefix, codes=codes_of_text(codes))


def codes_of_text(text: str) -> dict[str, str]:
    """`TAG=CODE` parted by commas, as a table by tag.

    Raises:
        UsageError: a part without `=`.
        UnknownNameError: a tag that is none.
    """
    from veriglot.records.languages import language

    table = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        tag, sign, code = part.partition("=")
        if not sign or not code.strip():
            raise UsageError(f"{part!r} is no TAG=CODE.", remedy="Give codes such as de=deu_Latn,en=eng_Latn.")
        table[language(tag.strip()).tag] = code.strip()
    return table
