"""multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672), in 4-bit numbers, on ONNX Runtime, without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from veriglot.encoders.e5_file import E5File, Embeddings
from veriglot.encoders.e5_graph import built
from veriglot.encoders.quality import languages_of, strength_of
from veriglot.encoders.windows import WindowEncoder
from veriglot.errors import UsageError, WeightsError
from veriglot.provenance import file_sha256, signature

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from veriglot.encoders.encoder import Strength

__all__ = ["E5", "LAYER", "PROMPT", "session_of", "tokenizer_of", "unusable"]

_NAME = "e5-multilingual"
PROMPT = "query: "  # as its makers ask for, where texts are compared with each other and neither is a search's answer
# Whose output is given for tokens. Of 6, 8, 10 and 12, words find their translation best by the tenth.
LAYER = 10
# Its tokenizer's normalisation (nmt_nfkc of SentencePiece): these vanish, these are white space, the rest is NFKC.
_VANISH = r"[\x01-\x08\x0b\x0e-\x1f\x7f\x{8f}\x{9f}]"
_SPACE = r"[\t\n\f\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"


class E5(WindowEncoder):
    """384 dimensions a sentence, and 384 a token.

    A text of more than 512 tokens is seen in windows that overlap by a quarter. It is good in far more languages than
    `use-multilingual`, and takes about six times as long (docs/encoders.md).

    Args:
        path: its file; None for that of `veriglot models get e5-multilingual`.
        cache_mb: MiB of vectors to keep of the texts that were encoded last; 0 keeps none.

    Raises:
        WeightsError: the file is missing (the remedy says what to type) or is not that model.
        UsageError: `cache_mb` is negative.
    """

    name = _NAME

    def __init__(self, path: str | Path | None = None, *, cache_mb: float = 64) -> None:
        self._options = {"path": path, "cache_mb": cache_mb}
        place = _shipped() if path is None else Path(path)
        try:
            self._file = E5File(place)
            self._session = session_of(built(self._file, LAYER))
            self._embeddings = Embeddings(self._file)
            super().__init__(
                _tokenizer(self._file), room=self._embeddings.room, prompt=PROMPT, languages=(), cache_mb=cache_mb
            )
        except UsageError:
            raise
        except Exception as error:  # the errors of tokenizers and ONNX Runtime share no base
            raise unusable(place, error) from error
        self.signature = signature(
            encoder=_NAME,
            revision="small-q4",
            weights=file_sha256(place)[:16],
            tokens=f"layer{LAYER}",
            prompt=PROMPT.strip(),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self._options)

    @property
    def languages(self) -> frozenset[str]:
        """See `Encoder`. docs/encoders.md says how they were measured."""
        return languages_of(_NAME)

    def strength(self, tag: str | None) -> Strength:
        """See `Encoder`."""
        return strength_of(_NAME, tag)

    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        tokens, last = self._session.run(None, {"embedded": self._embeddings.of(ids), "mask": mask.astype(np.int32)})
        weights = mask[..., None].astype(np.float32)
        pooled: NDArray[np.float32] = (last * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled, tokens


def _again(kind: type[E5], options: dict[str, Any]) -> E5:
    return kind(**options)


def _shipped() -> Path:
    from veriglot import weights

    return weights.find(_NAME)


def unusable(place: Path, error: Exception) -> WeightsError:
    """What to raise where its file could not be loaded."""
    if isinstance(error, FileNotFoundError):
        return WeightsError(f"There is no file {place}.", remedy=f"Type: veriglot models get {_NAME}")
    return WeightsError(
        f"{place} is not multilingual-e5-small in 4-bit numbers: {error}.",
        remedy=f"Get it again: veriglot models remove {_NAME}; veriglot models get {_NAME}",
    )


def tokenizer_of(path: str | Path) -> Tokenizer:
    """The tokenizer in its file, that of XLM-RoBERTa: it adds `<s>` and `</s>`, and neither cuts nor pads.

    Raises:
        WeightsError: the file is missing or is not that model.
    """
    place = Path(path)
    try:
        return _tokenizer(E5File(place))
    except Exception as error:  # the errors of tokenizers share no base
        raise unusable(place, error) from error


def _tokenizer(file: E5File) -> Tokenizer:
    """That of XLM-RoBERTa, from the pieces in the file."""
    pieces = file.pieces()
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=file.unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_VANISH), ""),
            normalizers.Replace(Regex(_SPACE), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(left=False, right=True),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    begin, end = ((pieces[place][0], place) for place in (file.begin, file.end))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin[0]} $A {end[0]}", special_tokens=[begin, end]
    )
    return tokenizer


def session_of(network: bytes) -> Any:
    """A session of ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
