"""Samples as labelled tokens, for training of token classifiers; and spans from token labels."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import msgspec

from veriglot.datasets.generation import RunOptions, account_path, generate
from veriglot.errors import InputError, MissingExtraError, UsageError, WeightsError
from veriglot.formats.containers import parquet_module
from veriglot.formats.tags import in_order
from veriglot.records import Annotation, Sample, Span
from veriglot.records.settings import Record
from veriglot.records.taxonomy import taxonomies
from veriglot.storage.checkpoint import FailedRow, Tally, failed_rows
from veriglot.storage.files import final_path, write_json
from veriglot.text.unicode import trimmed, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


__all__ = ["LabelAccount", "label_samples", "labels_at"]


# Spans as labels of tokens, in IO or BIO scheme, for any tokenizer with token offsets.


_Scheme = Literal["io", "bio"]
_OUTSIDE = "O"
_E5 = b"E5S1"  # the first bytes of the file of `e5-multilingual`


class _TokenLabels(Record):
    """The tokens of a text with their labels."""

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    labels: tuple[str | None, ...]
    cut: int | None = None


def fast_tokenizer_of(model: str) -> Any:
    """The tokenizer of a checkpoint."""
    from veriglot.hub.checkpoints import checkpoint, hub_options, loading
    from veriglot.hub.registry import find, models

    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("Labels of tokens", "local") from error
    path = Path(model)
    if not path.exists() and model in models():
        path = find(model)  # a folder, or the only file of the model
    if not path.is_file():
        name = checkpoint(model)
        with loading("tokenizer", name):
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **hub_options(name, None))
        _require_offsets(tokenizer)
        return tokenizer
    with path.open("rb") as file:
        is_e5 = file.read(len(_E5)) == _E5
    if is_e5:
        try:
            from veriglot.encoders.e5 import tokenizer_of
        except ImportError as error:
            raise MissingExtraError("The tokenizer of e5-multilingual", "reader") from error
        return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(path))
    if path != Path(model) and path.suffix != ".json":
        raise WeightsError(
            f"The tokenizer of {model!r} is inside its file and does not give the offsets of its tokens.",
            "Give a tokenizer.json, the folder of a checkpoint, its name on the hub, or e5-multilingual.",
        )
    with loading("tokenizer", model):
        return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))


def token_labels(
    text: str, spans: Sequence[Span], tokenizer: Any, *, scheme: _Scheme = "io", max_length: int | None = None
) -> _TokenLabels:
    """Label the tokens of a text."""
    _require_offsets(tokenizer)
    encoded = tokenizer(
        without_surrogates(text),
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        truncation=max_length is not None,
        max_length=max_length,
        verbose=False,
    )
    places = [
        None if special else (start, end)
        for (start, end), special in zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True)
    ]
    offsets = [(0, 0) if bounds is None else _trimmed(text, *bounds) for bounds in places]
    labels = labels_at(text, spans, places, scheme)
    last = max((end for _, end in offsets), default=0)
    cut = last if max_length is not None and text[last:].strip() else None  # words after it have no token
    return _TokenLabels(tuple(encoded["input_ids"]), tuple(offsets), tuple(labels), cut)


def labels_at(
    text: str, spans: Sequence[Span], places: Sequence[tuple[int, int] | None], scheme: _Scheme
) -> list[str | None]:
    """A label for each token: `O`, `I` or `B`, with the type of the span with the largest overlap; None for no label.

    Args:
        text: of the response.
        spans: in any order.
        places: half-open code point ranges of the tokens in order, None for tokens that are not in the text.
        scheme: `io`, or `bio` in which spans begin with `B`.
    """
    begun = set[int]()
    order = in_order(spans)
    return [None if bounds is None else _label(order, *_trimmed(text, *bounds), scheme, begun) for bounds in places]


def spans_of_labels(text: str, offsets: Sequence[tuple[int, int]], labels: Sequence[str | None]) -> tuple[Span, ...]:
    """The spans of token labels in either scheme."""
    spans: list[list[Any]] = []
    open_ = False
    for (start, end), label in zip(offsets, labels, strict=True):
        if label is None:
            continue
        letter, _, type_ = label.partition("-")
        if label == _OUTSIDE:
            open_ = open_ and not text[start:end].strip()  # a token of white space alone does not end a span
        elif open_ and letter != "B" and spans[-1][2] == (type_ or None):
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([start, end, type_ or None])
            open_ = True
    return tuple(Span(start, end, type_) for start, end, type_ in spans if end > start)


def _require_offsets(tokenizer: Any) -> None:
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            "This tokenizer does not give the offsets of its tokens.",
            "Give one that the tokenizers library runs (with a tokenizer.json).",
        )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without white space at either end; a token of white space alone is unchanged."""
    first, last = trimmed(text, start, end)
    return (first, last) if first < last else (start, end)


def _label(spans: Sequence[Span], start: int, end: int, scheme: _Scheme, begun: set[int]) -> str:
    shared = [(min(end, span.end) - max(start, span.start), number) for number, span in enumerate(spans)]
    most, best = max(shared, default=(0, 0))  # of equal overlaps the last
    if most <= 0:
        return _OUTSIDE
    letter = "I" if scheme == "io" or best in begun else "B"
    begun.add(best)
    type_ = spans[best].type
    return f"{letter}-{type_}" if type_ else letter


_VERSION = "2"
_ROWS = 512  # rows of a group of a Parquet file


class LabelledRow(Record):
    """A response with labelled tokens; a row of the stage."""

    id: str
    language: str | None
    annotator: str
    taxonomy: str
    text: str
    input_ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    labels: tuple[str | None, ...]
    cut: int | None
    spans: dict[str, int]


class LabelAccount(Record):
    """Counts of labels.

    Attributes:
        rows, clean: number of rows, and of those without a span.
        cut: rows with truncated responses.
        tokens: by label, without special and truncated ones.
        label_ids: a number for each label that occurs, `O` first, as a classifier needs it. Special tokens have no
            label and must be ignored in the loss; transformers has -100 for that.
        spans: outcomes of spans, as in `LabelledRow`.
        taxonomies: rows by taxonomy.
        unchecked: those of them that are unknown here, so that their types could not be checked.
        failed: rows without a result.
    """

    rows: int
    clean: int
    cut: int
    tokens: dict[str, int]
    label_ids: dict[str, int]
    spans: dict[str, int]
    taxonomies: dict[str, int]
    unchecked: tuple[str, ...]
    failed: int


def label_samples(
    output: Path,
    samples: Iterable[Sample | FailedRow],
    tokenizer: str,
    *,
    scheme: _Scheme = "io",
    max_length: int | None = None,
    annotator: str | None = None,
    **run: Unpack[RunOptions],
) -> Tally:
    """Label the responses of samples.

    Args:
        output: `.parquet`, or JSON lines. The account goes to `account_path(output)`.
        samples: the same ones in the same order at each call.
        tokenizer: a tokenizer.json, a folder, a model of the registry, or a name on the hub.
        scheme: `io`, as in mFAVA (section 4.1), or `bio`, whose first token of each span is `B`.
        max_length: maximum number of tokens, including special ones; truncated tokens are reported.
        annotator: whose spans; None for the only annotator with spans. A row with several is failed, and so is a row
            with a type that its taxonomy does not have.
        run: see `RunOptions`.

    Raises:
        MissingExtraError: transformers is not installed, or pyarrow for Parquet.
        WeightsError: the tokenizer cannot be loaded.
        UsageError: the tokenizer has no token offsets, or the output was begun with other settings.
    """
    if output.suffix == ".parquet":
        parquet_module()
    loaded = fast_tokenizer_of(tokenizer)
    data = loaded.backend_tokenizer.to_str().encode("utf-8", "replace")

    def work(rows: Iterator[Sample]) -> Iterator[LabelledRow | FailedRow]:
        for sample in rows:
            try:
                yield _labelled(sample, loaded, scheme=scheme, max_length=max_length, annotator=annotator)
            except InputError as error:
                yield FailedRow.of(error, "")

    return generate(
        output,
        samples,
        work,
        signature=f"labels@{_VERSION};tokenizer={hashlib.sha256(data).hexdigest()[:16]}",
        settings={
            "scheme": scheme,
            "max_length": None if max_length is None else str(max_length),
            "annotator": annotator,
        },
        maker="tokenizer",
        finish=_finish,
        **run,
    )


def _labelled(
    sample: Sample, tokenizer: Any, *, scheme: _Scheme, max_length: int | None, annotator: str | None
) -> LabelledRow:
    """One response with labelled tokens."""
    layer = _layer(sample, annotator)
    spans = layer.spans or ()
    result = token_labels(sample.response, spans, tokenizer, scheme=scheme, max_length=max_length)
    back = set(spans_of_labels(sample.response, result.offsets, result.labels))
    edges = {offsets for offsets, label in zip(result.offsets, result.labels, strict=True) if label is not None}
    starts, ends = {start for start, _ in edges}, {end for _, end in edges}

    def outcome(span: Span) -> str:
        if Span(span.start, span.end, span.type) in back:
            return "exact"
        if result.cut is not None and span.end > result.cut:
            return "cut"
        return "merged" if span.start in starts and span.end in ends else "widened"

    return LabelledRow(
        sample.id, sample.language, layer.annotator, layer.taxonomy, sample.response, result.ids, result.offsets,
        result.labels, result.cut, dict(sorted(Counter(map(outcome, dict.fromkeys(spans))).items())),
    )  # fmt: skip


def _layer(sample: Sample, annotator: str | None) -> Annotation:
    """The chosen annotation; rejects a type that a known taxonomy does not have."""
    marked = [layer for layer in sample.annotations if layer.spans is not None and annotator in (None, layer.annotator)]
    if not marked:
        raise InputError("nobody marked spans" if annotator is None else f"{annotator} marked no spans")
    if len(marked) > 1:
        names = ", ".join(sorted({layer.annotator for layer in marked}))
        raise InputError(f"spans of several annotators ({names})", "Choose one: --annotator NAME.")
    (layer,) = marked
    known = taxonomies().get(layer.taxonomy)
    for span in layer.spans or ():
        if known is not None and span.type is not None and span.type not in known.types:
            raise InputError(
                f"the span at {span.start} to {span.end} has the type {span.type!r}, which is none of the taxonomy"
                f" {known.name!r} ({', '.join(known.types)})",
                "Correct the type, or name a taxonomy of your own; `veriglot dataset check` counts such spans.",
                field="annotations",
            )
    return layer


def _finish(rows: Path, target: Path) -> None:
    """Write the rows in the requested format, and the account."""
    output = final_path(target)
    counts, tokens, spans, named = (Counter[str]() for _ in range(4))

    def counted() -> Iterator[LabelledRow]:
        with rows.open("rb") as lines:
            for row in map(msgspec.json.Decoder(LabelledRow).decode, lines):
                counts.update(rows=1, clean=int(not row.spans), cut=int(row.cut is not None))
                tokens.update(filter(None, row.labels))
                spans.update(row.spans)
                named[row.taxonomy] += 1
                yield row

    if output.suffix == ".parquet":
        _write_parquet(counted(), target)
    else:
        with target.open("wb") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in counted())
    names = ["O", *sorted(tokens.keys() - {"O"}, key=lambda label: (label[2:], label))]
    account = LabelAccount(
        counts["rows"],
        counts["clean"],
        counts["cut"],
        {name: tokens[name] for name in names},
        {name: number for number, name in enumerate(names)},
        dict(sorted(spans.items())),
        dict(sorted(named.items())),
        tuple(sorted(named.keys() - taxonomies().keys())),
        failed_rows(output)[0],
    )
    write_json(account_path(output), account, indent=2)


def _write_parquet(rows: Iterator[LabelledRow], target: Path) -> None:
    import pyarrow as arrow

    text, number = arrow.string(), arrow.int32()
    schema = arrow.schema(
        [
            ("id", text), ("language", text), ("annotator", text), ("taxonomy", text), ("text", text),
            ("input_ids", arrow.list_(number)),
            ("offsets", arrow.list_(arrow.list_(number, 2))), ("labels", arrow.list_(text)), ("cut", number),
            ("spans", arrow.struct([(name, number) for name in ("exact", "cut", "widened", "merged")])),
        ]
    )  # fmt: skip
    with parquet_module().ParquetWriter(target, schema) as writer:
        while block := list(islice(rows, _ROWS)):
            writer.write_table(arrow.Table.from_pylist([msgspec.to_builtins(row) for row in block], schema=schema))
