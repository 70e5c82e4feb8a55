"""Models of CTranslate2 as translators: the networks of `seq2seq`, in C++, with 8-bit weights if asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ctranslate2
import transformers

from veriglot.datasets.translation.seq2seq import Output, SequenceTranslator, language_tokenizer
from veriglot.errors import UsageError, WeightsError
from veriglot.signatures import checkpoint_revision, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ConvertedTranslator"]

_FILE = "model.bin"


class ConvertedTranslator(SequenceTranslator):
    """A folder that `ct2-transformers-converter` wrote, with the tokenizer's files beside the model.

    Args:
        model: the folder. Copy the tokenizer's files into it (`--copy_files`), or name their folder by `tokenizer`.
        tokenizer: a folder; None for that of the model.
        room: tokens that the model takes, special ones included; a converted model does not say. None for what the
            tokenizer says, if it says anything sensible, otherwise 512.
        codes, prefix, beams, batch: as for `LocalTranslator`.
        device: `cpu`, `cuda` or `auto`.
        compute: how weights are kept, such as `int8`; `default` as they were converted.

    Raises:
        WeightsError: the folder holds no converted model, or it cannot be loaded.
        UsageError: a number below 1.
    """

    def __init__(
        self,
        model: str,
        *,
        tokenizer: str | None = None,
        room: int | None = None,
        codes: str = "",
        prefix: str = "",
        beams: int = 4,
        batch: int = 16,
        device: str = "auto",
        compute: str = "default",
    ) -> None:
        if beams < 1 or batch < 1:
            raise UsageError("`beams` and `batch` are at least 1.")
        if not Path(model, _FILE).is_file():
            raise WeightsError(
                f"{model} holds no model of CTranslate2 ({_FILE}).",
                remedy="Convert one: ct2-transformers-converter --model FOLDER --output_dir OUT --copy_files ...",
            )
        try:
            loaded = transformers.AutoTokenizer.from_pretrained(tokenizer or model, local_files_only=True)
            self._network: Any = ctranslate2.Translator(model, device=device, compute_type=compute, intra_threads=1)
        except (OSError, ValueError, RuntimeError) as error:
            raise WeightsError(
                f"The model of CTranslate2 in {model} cannot be loaded: {str(error).splitlines()[0]}",
                remedy="The tokenizer's files have to lie beside it (--copy_files), or in the folder `tokenizer`.",
            ) from error
        most = loaded.model_max_length
        super().__init__(language_tokenizer(loaded, codes, prefix), room or (most if most < 1e6 else 512))
        self._beams, self._batch = beams, batch
        self.signature = signature(
            translator="ct2",
            model=model,
            revision=checkpoint_revision(model, None),
            beams=beams,
            codes=codes or None,
            prefix=prefix or None,
            compute=self._network.compute_type,
            device=self._network.device,
            ctranslate2=ctranslate2.__version__,
            transformers=transformers.__version__,
        )

    def run(self, rows: Sequence[tuple[list[int], int | None]]) -> list[Output]:
        """As `SequenceTranslator`."""
        if not rows:
            return []
        names = self._tongue.tokenizer.convert_ids_to_tokens
        end = self._tongue.tokenizer.eos_token
        by_row: dict[int, Output] = {}
        order = sorted(range(len(rows)), key=lambda n: len(rows[n][0]))
        for at in range(0, len(order), self._batch):
            chosen = order[at : at + self._batch]
            results = self._network.translate_batch(
                [names(rows[n][0]) for n in chosen],
                target_prefix=[[names(rows[n][1])] if rows[n][1] is not None else None for n in chosen],
                beam_size=self._beams,
                max_input_length=0,
                max_decoding_length=self.most_new(max(len(rows[n][0]) for n in chosen)) - 1,
                return_end_token=True,
            )
            for n, result in zip(chosen, results, strict=True):
                tokens = result.hypotheses[0]
                ended = bool(tokens) and tokens[-1] == end
                ids = self._tongue.tokenizer.convert_tokens_to_ids(tokens[:-1] if ended else tokens)
                most = self.most_new(len(rows[n][0])) - 1
                by_row[n] = Output(ids[:most], ended and len(ids) < most)
        return [by_row[number] for number in range(len(rows))]
