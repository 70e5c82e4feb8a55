"""Local translation models, of transformers or CTranslate2: language codes, and texts split to the model's maximum."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import ChainMap
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import transformers

from veriglot.datasets.translation.translators import Translation, TranslationRequest
from veriglot.errors import UsageError, WeightsError, requires_extra
from veriglot.hub.checkpoints import load_pretrained, max_positions, pad
from veriglot.records.languages import get_language, tag_of, translation_codes
from veriglot.scorers.base import parse_codes
from veriglot.signatures import checkpoint_revision, signature
from veriglot.text.segmentation import space_of, words

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = []

_BREAK = re.compile(r"[,;:،؛、，；：—–]\s*")


class _Output(NamedTuple):
    """The output of a model: token ids without special ones at the front, and whether it ended with an end token."""

    ids: list[int]
    ended: bool


class _SequenceTranslator(ABC):
    """A sequence-to-sequence model that translates sentence by sentence.

    A sentence that is too long for the model is split at commas and the like, or else between words; it is not
    truncated. A translation without an end token is `cut`. `room` is the maximum number of tokens of the input,
    including special ones; None for no maximum.
    """

    by_sentence = True
    varies = False
    signature = ""

    def __init__(self, tokenizer: Any, codes: str, prefix: str, room: int | None, beams: int, batch: int) -> None:
        if beams < 1 or batch < 1:
            raise UsageError("`beams` and `batch` are at least 1.")
        self._beams = beams
        self._tokenizer = tokenizer
        self._prefix = prefix
        self._room = room
        self._batch = batch
        self._codes = parse_codes(codes)
        apart = (getattr(tokenizer, name, None) or {} for name in ("lang_token_to_id", "lang_code_to_id"))
        self._vocabulary = ChainMap(*apart, tokenizer.added_tokens_encoder, tokenizer.get_vocab())
        family: str | None = None
        if hasattr(tokenizer, "src_lang"):
            probes = ("en", "de", "fr", "zh-Hans", "ar", "ru", "es")
            tables = translation_codes().items()
            family = next((f for f, codes in tables for tag in probes if self._token(codes[tag], f) is not None), None)
        self._family = family
        codes_by_tag = translation_codes()[family] if family else {}
        self._languages = {self._token(code, family) for code in codes_by_tag.values()}  # never in a text
        marian = getattr(tokenizer, "supported_language_codes", None) or []
        self._marian = {re.sub(r"[<>]", "", code): code for code in marian}

    def _code(self, tag: str) -> str | None:
        """The model's code for a language; None if it does not support the language, or has no codes."""
        if tag in self._codes:
            return self._codes[tag]
        if self._family is not None:
            code = translation_codes()[self._family].get(tag_of(tag) or "")
            return code if self._token(code, self._family) is not None else None
        if self._marian:
            entry = get_language(tag)
            known = [f"{alias}_{entry.script}" for alias in (*entry.aliases, entry.base)]
            return next((c for c in (entry.base, *entry.aliases, *known) if c in self._marian), None)
        return None

    def _token(self, code: str | None, family: str | None) -> int | None:
        """The id of the token for a language."""
        return self._vocabulary.get(f"__{code}__" if family == "m2m100" else code or "")

    def _unsupported(self, wanted: TranslationRequest) -> str | None:
        """The language of a pair that the model does not support; None if it supports both, or is for a single pair."""
        if self._family is not None:
            return next((tag for tag in (wanted.source, wanted.target) if self._code(tag) is None), None)
        if self._marian and self._code(wanted.target) is None:
            return wanted.target
        return None

    def _encode(self, text: str, wanted: TranslationRequest) -> list[int]:
        """Token ids of a text with its language tokens; never truncated."""
        if self._family is not None:
            self._tokenizer.src_lang = self._code(wanted.source)
        elif self._marian:
            text = f"{self._marian[self._code(wanted.target) or '']} {text}"
        if self._prefix:
            names = {"source": get_language(wanted.source).name, "target": get_language(wanted.target).name}
            text = self._prefix.format(**names) + text
        return list(self._tokenizer(text, truncation=False, verbose=False)["input_ids"])

    def _forced(self, wanted: TranslationRequest) -> int | None:
        """The required first token of a translation."""
        return self._token(self._code(wanted.target), self._family) if self._family is not None else None

    def _decode(self, ids: Sequence[int]) -> str:
        """The text of a translation."""
        tokens = [token for token in ids if token not in self._languages]
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()

    def translate(self, wanted: Sequence[TranslationRequest]) -> list[Translation]:
        """As `Translator`."""
        missing = [self._unsupported(request) for request in wanted]
        parted = [
            [] if tag is not None else self._fitting(request.text, request)
            for tag, request in zip(missing, wanted, strict=True)
        ]
        outputs = iter(
            self._run(
                [
                    (self._encode(part, request), self._forced(request))
                    for parts, request in zip(parted, wanted, strict=True)
                    for part in parts
                ]
            )
        )
        results = []
        for request, parts, tag in zip(wanted, parted, missing, strict=True):
            if tag is not None:
                results.append(Translation("", "unsupported_language", f"the model has no {tag}"))
            else:
                results.append(self._joined([next(outputs) for _ in parts], request))
        return results

    def _run(self, rows: Sequence[tuple[list[int], int | None]]) -> list[_Output]:
        """Translate rows of token ids, each with the first token of its translation; results are in input order."""
        order = sorted(range(len(rows)), key=lambda n: (rows[n][1] or -1, len(rows[n][0])))
        by_row: dict[int, _Output] = {}
        for target, numbers in groupby(order, key=lambda n: rows[n][1]):
            while chosen := list(islice(numbers, self._batch)):
                by_row.update(zip(chosen, self._generate([rows[n][0] for n in chosen], target), strict=True))
        return [by_row[number] for number in range(len(rows))]

    @abstractmethod
    def _generate(self, ids: Sequence[list[int]], target: int | None) -> list[_Output]:
        """Translate rows of token ids with the same first token of their translations, in order."""

    def _most_new(self, length: int) -> int:
        """Maximum tokens of a translation: twice the length and a few more, limited by the model."""
        most = 2 * length + 32
        return most if self._room is None else min(most, self._room)

    def _joined(self, outputs: Sequence[_Output], wanted: TranslationRequest) -> Translation:
        text = space_of(wanted.target).join(self._decode(output.ids) for output in outputs)
        if not all(output.ended for output in outputs):
            return Translation(text, "cut", "the translation did not end within the model's length")
        return Translation(text, None if text.strip() else "no_text", "" if text.strip() else "nothing came back")

    def _fitting(self, text: str, wanted: TranslationRequest) -> list[str]:
        """The text in as few pieces as fit."""
        if self._room is None or len(self._encode(text, wanted)) <= self._room:
            return [text]
        cut = _middle(text, [match.end() for match in _BREAK.finditer(text)])
        if cut is None:
            cut = _middle(text, [start for start, _ in words(text, wanted.source)])
        cut = cut if cut is not None else len(text) // 2
        halves = (text[:cut].strip(), text[cut:].strip())
        if len(text) < 2 or not all(halves):
            return [text]
        return [part for half in halves for part in self._fitting(half, wanted)]


def _middle(text: str, places: Sequence[int]) -> int | None:
    """The offset that is nearest to the middle, and not at either end."""
    inner = [position for position in places if text[:position].strip() and text[position:].strip()]
    return min(inner, key=lambda position: abs(position - len(text) / 2), default=None)


class LocalTranslator(_SequenceTranslator):
    """A checkpoint of `AutoModelForSeq2SeqLM`.

    Multilingual models get the languages as their own codes (`records/languages.py`), and their translations begin with
    the token of the target. For a model of one pair (Marian), the user is responsible for the right pair.

    Args:
        model: a folder, a model of the registry, or a name on the hub.
        revision: of a model on the hub.
        codes: further language codes of the model, `TAG=CODE` separated by commas.
        prefix: before every text, such as `translate {source} to {target}: ` for T5.
        beams: width of the beam search; 1 is greedy.
        batch: sentences that are translated together.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights, such as `float32`; `auto` for that of the file.

    Raises:
        WeightsError: the model cannot be loaded.
        UsageError: invalid codes, or a number below 1.
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
        kind = transformers.AutoModelForSeq2SeqLM
        loaded = load_pretrained(kind, model, what="translation model", revision=revision, device=device, dtype=dtype)
        tokenizer, network = loaded.tokenizer, loaded.network
        super().__init__(tokenizer, codes, prefix, max_positions(tokenizer, network), beams, batch)
        self._device, self._network = loaded.device, network
        # mBART-25 gets the target as the start token of the decoder; all others as a forced first token.
        self._starts = network.config.model_type == "mbart" and "MBart50" not in type(tokenizer).__name__
        self.signature = signature(
            translator="hf",
            model=model,
            revision=loaded.revision,
            beams=beams,
            codes=codes or None,
            prefix=prefix or None,
            **loaded.settings,
        )

    def _generate(self, ids: Sequence[list[int]], target: int | None) -> list[_Output]:
        padded, mask = (torch.from_numpy(part).to(self._device) for part in pad(ids, self._tokenizer.pad_token_id or 0))
        options: dict[str, Any] = {}
        if target is not None:
            options = {"decoder_start_token_id" if self._starts else "forced_bos_token_id": target}
        with torch.inference_mode():
            output = self._network.generate(
                input_ids=padded,
                attention_mask=mask,
                num_beams=self._beams,
                do_sample=False,
                max_new_tokens=self._most_new(max(map(len, ids))) - 1,
                max_length=None,
                forced_eos_token_id=None,  # otherwise mBART would always have an end token
                **options,
            )
        end = self._network.generation_config.eos_token_id
        ends = set(end) if isinstance(end, list) else {end}
        rows = zip(output[:, 1:].tolist(), ids, strict=True)
        return [_until_end(row[: self._most_new(len(given)) - 1], ends) for row, given in rows]


def _until_end(ids: list[int], ends: set[int]) -> _Output:
    """The ids before the end token. A forced token at the front is not an end token."""
    index = next((n for n, token in enumerate(ids) if token in ends and n), None)
    return _Output(ids if index is None else ids[:index], index is not None)


class ConvertedTranslator(_SequenceTranslator):
    """A folder of `ct2-transformers-converter`, with the tokenizer's files beside the model.

    Args:
        model: the folder. Copy the tokenizer's files into it (`--copy_files`), or give their folder as `tokenizer`.
        tokenizer: a folder; None for that of the model.
        room: maximum number of tokens of the input, including special ones, which a converted model does not have in
            its files. None for the tokenizer's value if it is plausible, otherwise 512.
        codes, prefix, beams, batch: as for `LocalTranslator`.
        device: `cpu`, `cuda` or `auto`.
        compute: type of the weights in memory, such as `int8`; `default` as they were converted.

    Raises:
        WeightsError: the folder has no converted model, or it cannot be loaded.
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
        with requires_extra("The translator 'ct2'", "ct2"):
            import ctranslate2
        if not Path(model, "model.bin").is_file():
            raise WeightsError(
                f"{model} holds no model of CTranslate2 (model.bin).",
                "Convert one: ct2-transformers-converter --model FOLDER --output_dir OUT --copy_files ...",
            )
        try:
            loaded = transformers.AutoTokenizer.from_pretrained(tokenizer or model, local_files_only=True)
            self._network: Any = ctranslate2.Translator(model, device=device, compute_type=compute, intra_threads=1)
        except (OSError, ValueError, RuntimeError) as error:
            raise WeightsError(
                f"The model of CTranslate2 in {model} cannot be loaded: {str(error).splitlines()[0]}",
                "The tokenizer's files have to lie beside it (--copy_files), or in the folder `tokenizer`.",
            ) from error
        most = loaded.model_max_length
        super().__init__(loaded, codes, prefix, room or (most if most < 1e6 else 512), beams, batch)
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

    def _generate(self, ids: Sequence[list[int]], target: int | None) -> list[_Output]:
        names = self._tokenizer.convert_ids_to_tokens
        results = self._network.translate_batch(
            [names(row) for row in ids],
            target_prefix=[None if target is None else [names(target)]] * len(ids),
            beam_size=self._beams,
            max_input_length=0,
            max_decoding_length=self._most_new(max(map(len, ids))) - 1,
            return_end_token=True,
        )
        outputs = []
        for row, result in zip(ids, results, strict=True):
            tokens = result.hypotheses[0]
            ended = bool(tokens) and tokens[-1] == self._tokenizer.eos_token
            given = self._tokenizer.convert_tokens_to_ids(tokens[:-1] if ended else tokens)
            most = self._most_new(len(row)) - 1
            outputs.append(_Output(given[:most], ended and len(given) < most))
        return outputs
