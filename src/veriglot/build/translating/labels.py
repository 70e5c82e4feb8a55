"""Spans as labels of tokens, Inside-Outside or with Beginnings, for any tokenizer that knows where its tokens stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from veriglot.errors import UsageError, WeightsError
from veriglot.records import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OUTSIDE", "Scheme", "TokenLabels", "fast_tokenizer_of", "spans_of_labels", "token_labels"]

Scheme = Literal["io", "bio"]
OUTSIDE = "O"
_E5 = b"E5S1"  # what the file of `e5-multilingual` begins with


class TokenLabels(msgspec.Struct, frozen=True):
    """A text's tokens with their labels.

    Attributes:
        ids: token ids, special ones included.
        offsets: half-open code point ranges of the text, without the white space that a token begins or ends with;
            `(0, 0)` for special tokens. Several tokens share a range where they are parts of one character.
        labels: `O`, `I-type` and, in `bio`, `B-type` (`I` and `B` where a span has no type); None for special tokens,
            which no loss should count.
        cut: code points of the text from which on tokens were left out because of `max_length`; None where none was.
        spans_cut: spans that lost tokens by that, in part or whole.
    """

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    labels: tuple[str | None, ...]
    cut: int | None = None
    spans_cut: int = 0


def fast_tokenizer_of(model: str, *, revision: str | None = None) -> Any:
    """The tokenizer of a checkpoint.

    Args:
        model: a tokenizer.json, a folder, a model of the registry, or a name on the hub. Of models that are a single
            file only `e5-multilingual` has one that says where its tokens stand.
        revision: of a model on the hub.

    Raises:
        MissingExtraError: transformers is not installed, or what `e5-multilingual` needs.
        WeightsError: it cannot be loaded; or a model of the registry has none.
        UsageError: it does not know where its tokens stand.
    """
    from veriglot.errors import MissingExtraError
    from veriglot.weights.checkpoints import checkpoint, hub_options, loading

    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("Labels of tokens", "local") from error
    place = _file_of(model)
    if place is not None and _is_e5(place):
        return transformers.PreTrainedTokenizerFast(tokenizer_object=_e5_tokenizer(place))
    if place is not None and not Path(model).is_file() and place.suffix != ".json":
        raise WeightsError(
            f"The tokenizer of {model!r} is inside its file and does not say where its tokens stand.",
            remedy="Give a tokenizer.json, the folder of a checkpoint, its name on the hub, or e5-multilingual.",
        )
    if place is not None:
        with loading("tokenizer", model):
            return transformers.PreTrainedTokenizerFast(tokenizer_file=str(place))
    name = checkpoint(model)
    with loading("tokenizer", name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **hub_options(name, revision))
    _require_offsets(tokenizer)
    return tokenizer


def _file_of(model: str) -> Path | None:
    """The file that a model is: a file of that name, or the only one of a model of the registry."""
    from veriglot import weights

    path = Path(model)
    if path.is_file() or path.is_dir() or model not in weights.models():
        return path if path.is_file() else None
    found = weights.find(model)
    return found if found.is_file() else None


def _is_e5(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_E5)) == _E5


def _e5_tokenizer(path: Path) -> Any:
    from veriglot.errors import MissingExtraError

    try:
        from veriglot.encoders.e5 import tokenizer_of
    except ImportError as error:
        raise MissingExtraError("The tokenizer of e5-multilingual", "semantic") from error
    return tokenizer_of(path)


def token_labels(
    text: str, spans: Sequence[Span], tokenizer: Any, *, scheme: Scheme = "io", max_length: int | None = None
) -> TokenLabels:
    """Label the tokens of a text.

    A token that shares a code point with a span is inside it. Of several spans that it touches it takes the one with
    which it shares the most; of equal ones the one that begins later, which is the inner. Without `max_length` nothing
    is cut, whatever length the tokenizer names.

    Args:
        text: any text; lone surrogates are read as the replacement character.
        spans: of the text, in any order; they may cross.
        tokenizer: a fast tokenizer of transformers.
        scheme: `io`, as in mFAVA (section 4.1), or `bio`, whose first token of each span is `B`.
        max_length: the most tokens, special ones included; what is left out is reported.

    Raises:
        UsageError: the tokenizer does not know where its tokens stand.
    """
    _require_offsets(tokenizer)
    readable = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    encoded = tokenizer(
        readable,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        truncation=max_length is not None,
        max_length=max_length,
        verbose=False,
    )
    offsets: list[tuple[int, int]] = []
    labels: list[str | None] = []
    begun: set[int] = set()
    order = sorted(spans, key=lambda span: (span.start, -span.end))
    for (start, end), special in zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True):
        if special:
            offsets.append((0, 0))
            labels.append(None)
            continue
        start, end = _trimmed(text, start, end)
        offsets.append((start, end))
        labels.append(_label(order, start, end, scheme, begun))
    cut = _cut_at(text, offsets, labels) if max_length is not None else None
    lost = sum(span.end > cut for span in spans) if cut is not None else 0
    return TokenLabels(tuple(encoded["input_ids"]), tuple(offsets), tuple(labels), cut, lost)


def spans_of_labels(text: str, offsets: Sequence[tuple[int, int]], labels: Sequence[str | None]) -> tuple[Span, ...]:
    """The spans that labels of tokens say, of either scheme.

    A span goes from the first of its tokens to the last, with the white space between; spans of one type that touch are
    one in `io`, and stay two in `bio`.

    Args:
        text: the text.
        offsets, labels: as in `TokenLabels`; tokens without a label are passed over.

    Returns:
        The spans, in order.
    """
    found: list[list[Any]] = []
    open_ = False
    for (start, end), label in zip(offsets, labels, strict=True):
        if label is None:
            continue
        letter, _, type_ = label.partition("-")
        if label == OUTSIDE:
            open_ = open_ and not text[start:end].strip()  # a token of white space alone ends nothing
        elif open_ and letter != "B" and found[-1][2] == (type_ or None):
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end, type_ or None])
            open_ = True
    return tuple(Span(start, end, type_) for start, end, type_ in found if end > start)


def _require_offsets(tokenizer: Any) -> None:
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            "This tokenizer does not know where its tokens stand.",
            remedy="Give one that the tokenizers library runs (with a tokenizer.json).",
        )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without the white space at either end; a token of nothing else keeps its place."""
    first, last = start, end
    while first < last and text[first].isspace():
        first += 1
    while first < last and text[last - 1].isspace():
        last -= 1
    return (first, last) if first < last else (start, end)


def _label(spans: Sequence[Span], start: int, end: int, scheme: Scheme, begun: set[int]) -> str:
    best, most = None, 0
    for number, span in enumerate(spans):
        if span.start >= end:
            break
        shared = min(end, span.end) - max(start, span.start)
        if shared > 0 and shared >= most:
            best, most = number, shared
    if best is None:
        return OUTSIDE
    letter = "I" if scheme == "io" or best in begun else "B"
    begun.add(best)
    type_ = spans[best].type
    return f"{letter}-{type_}" if type_ else letter


def _cut_at(text: str, offsets: Sequence[tuple[int, int]], labels: Sequence[str | None]) -> int | None:
    """Where the tokens end, if words follow that no token holds."""
    last = max((end for (_, end), label in zip(offsets, labels, strict=True) if label is not None), default=0)
    return last if text[last:].strip() else None
