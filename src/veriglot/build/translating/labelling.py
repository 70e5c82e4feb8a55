"""Samples as labelled tokens, what a token classifier is trained on; and what of their spans the labels can say."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.translating.labels import Scheme, fast_tokenizer_of, spans_of_labels, token_labels
from veriglot.errors import InputError, MissingExtraError
from veriglot.records import taxonomies
from veriglot.run import FailedRow, Stage, lost_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.records import Annotation, Sample, Span
    from veriglot.run import Tally

__all__ = ["LabelAccount", "LabelledRow", "label_account_path", "label_samples", "load_label_account"]

_VERSION = "2"
_ROWS = 512  # rows of a group of a Parquet file


class LabelledRow(msgspec.Struct, frozen=True):
    """A response with its tokens labelled. The row of the stage.

    Attributes:
        id: of the sample.
        language: its tag, or None.
        annotator: whose spans they are.
        taxonomy: of their types.
        text: the response.
        input_ids, offsets, labels, cut: as in `TokenLabels`.
        spans: what became of each span: `exact` (the labels give it back to the code point), `cut` (by `max_length`, in
            part or whole), `widened` (an edge lies inside a token), `merged` (another span overlaps or touches it).
    """

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


class LabelAccount(msgspec.Struct, frozen=True):
    """What was labelled.

    Attributes:
        rows, clean: rows, and those of them without a span.
        cut: rows of which tokens were left out.
        tokens: by label; special ones and those left out are not counted.
        label_ids: a number for each label that occurs, `O` first, as a classifier needs it. What has no label (special
            tokens) is for the loss to pass over; transformers takes -100 for it.
        spans: what became of spans, as in `LabelledRow`.
        taxonomies: rows by taxonomy.
        unchecked: those of them that are not known here, so that no type of theirs could be looked up.
        failed: rows that came to nothing.
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
    scheme: Scheme = "io",
    max_length: int | None = None,
    annotator: str | None = None,
    inputs: Sequence[str] = (),
    options: dict[str, str | bool | None] | None = None,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Label the responses of samples.

    Args:
        output: `.parquet`, or JSON lines. The account goes to `label_account_path(output)`.
        samples: the same ones in the same order at each call.
        tokenizer: a tokenizer.json, or what `fast_tokenizer_of` takes.
        scheme: as for `token_labels`.
        max_length: as for `token_labels`.
        annotator: whose spans; None for the only one's who marked spans. A row where that cannot be said is failed,
            and so is one with a type that its taxonomy does not have.
        inputs, restart, retry, seen: as for `Stage`.
        options: further settings that change the rows.

    Raises:
        MissingExtraError: transformers is not installed, or pyarrow for Parquet.
        WeightsError: the tokenizer cannot be loaded.
        UsageError: it does not know where its tokens stand, or the output was begun otherwise.
    """
    if output.suffix == ".parquet":
        _arrow()
    loaded = fast_tokenizer_of(tokenizer)
    stage: Stage[Sample] = Stage(
        output,
        signature=f"labels@{_VERSION};tokenizer={_digest(loaded)}",
        inputs=inputs,
        options={
            "scheme": scheme,
            "max_length": None if max_length is None else str(max_length),
            "annotator": annotator,
            **(options or {}),
        },
        finish=_finish,
        restart=restart,
        retry=retry,
        maker="tokenizer",
    )

    def work(rows: Iterator[Sample]) -> Iterator[LabelledRow | FailedRow]:
        for sample in rows:
            try:
                yield labelled(sample, loaded, scheme=scheme, max_length=max_length, annotator=annotator)
            except InputError as error:
                yield FailedRow.of(error, "")

    return stage.run(samples, work, seen=seen)


def labelled(
    sample: Sample, tokenizer: Any, *, scheme: Scheme, max_length: int | None, annotator: str | None
) -> LabelledRow:
    """One response with its tokens labelled.

    Raises:
        InputError: nobody marked its spans, it cannot be said whose count, or one has a type that its taxonomy does not
            have: a label of its own would be trained on for good.
    """
    layer = _layer(sample, annotator)
    spans = layer.spans or ()
    _check_types(layer)
    found = token_labels(sample.response, spans, tokenizer, scheme=scheme, max_length=max_length)
    back = {(span.start, span.end, span.type) for span in spans_of_labels(sample.response, found.offsets, found.labels)}
    edges = {place for place, label in zip(found.offsets, found.labels, strict=True) if label is not None}
    starts, ends = {start for start, _ in edges}, {end for _, end in edges}
    became = Counter(_became(span, back, starts, ends, found.cut) for span in dict.fromkeys(spans))
    return LabelledRow(
        sample.id, sample.language, layer.annotator, layer.taxonomy, sample.response, found.ids, found.offsets,
        found.labels, found.cut, dict(sorted(became.items())),
    )  # fmt: skip


def _became(
    span: Span, back: set[tuple[int, int, str | None]], starts: set[int], ends: set[int], cut: int | None
) -> str:
    if (span.start, span.end, span.type) in back:
        return "exact"
    if cut is not None and span.end > cut:
        return "cut"
    return "merged" if span.start in starts and span.end in ends else "widened"


def _layer(sample: Sample, annotator: str | None) -> Annotation:
    marked = [one for one in sample.annotations if one.spans is not None]
    if annotator is not None:
        marked = [one for one in marked if one.annotator == annotator]
    if len(marked) == 1:
        return marked[0]
    if not marked:
        raise InputError("nobody marked spans" if annotator is None else f"{annotator} marked no spans")
    names = ", ".join(sorted({one.annotator for one in marked}))
    raise InputError(f"spans of several annotators ({names})", remedy="Say whose count: --annotator NAME.")


def _check_types(layer: Annotation) -> None:
    """Refuse a type that is none of a known taxonomy; a taxonomy of one's own has whatever types it has."""
    known = taxonomies().get(layer.taxonomy)
    for span in layer.spans or ():
        if known is not None and span.type is not None and span.type not in known.types:
            raise InputError(
                f"the span at {span.start} to {span.end} has the type {span.type!r}, which is none of the taxonomy"
                f" {known.name!r} ({', '.join(known.types)})",
                field="annotations",
                remedy="Mend the type, or name a taxonomy of your own; `veriglot build check` counts such spans.",
            )


def _digest(tokenizer: Any) -> str:
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode("utf-8", "replace")).hexdigest()[:16]


def label_account_path(output: Path) -> Path:
    """Where the account of an output is."""
    return output.with_name(output.name + ".account.json")


def load_label_account(output: Path) -> LabelAccount:
    """The account that lies beside an output."""
    return msgspec.json.decode(label_account_path(output).read_bytes(), type=LabelAccount)


def _finish(rows: Path, target: Path) -> None:
    """Write the rows as they were asked for, and the account."""
    output = target.with_name(target.name.removesuffix(".partial"))
    counts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    spans: Counter[str] = Counter()
    named: Counter[str] = Counter()

    def counted() -> Iterator[LabelledRow]:
        decoder = msgspec.json.Decoder(LabelledRow)
        with rows.open("rb") as lines:
            for line in lines:
                row = decoder.decode(line)
                counts.update(rows=1, clean=int(not row.spans), cut=int(row.cut is not None))
                tokens.update(label for label in row.labels if label is not None)
                spans.update(row.spans)
                named[row.taxonomy] += 1
                yield row

    if output.suffix == ".parquet":
        _write_parquet(counted(), target)
    else:
        with target.open("wb") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in counted())
    names = ["O", *sorted((label for label in tokens if label != "O"), key=lambda one: (one[2:], one))]
    account = LabelAccount(
        counts["rows"],
        counts["clean"],
        counts["cut"],
        {name: tokens[name] for name in names},
        {name: number for number, name in enumerate(names)},
        dict(sorted(spans.items())),
        dict(sorted(named.items())),
        tuple(sorted(named.keys() - taxonomies().keys())),
        lost_of(output).rows,
    )
    data = msgspec.json.format(msgspec.json.encode(account), indent=2)
    label_account_path(output).write_bytes(data + b"\n")


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Parquet", "parquet") from error
    return pyarrow


def _write_parquet(rows: Iterator[LabelledRow], target: Path) -> None:
    from itertools import islice

    arrow = _arrow()
    text, number = arrow.string(), arrow.int32()
    counts = arrow.struct([(name, number) for name in ("exact", "cut", "widened", "merged")])
    schema = arrow.schema(
        [
            ("id", text), ("language", text), ("annotator", text), ("taxonomy", text), ("text", text),
            ("input_ids", arrow.list_(number)),
            ("offsets", arrow.list_(arrow.list_(number, 2))), ("labels", arrow.list_(text)), ("cut", number),
            ("spans", counts),
        ]
    )  # fmt: skip
    with arrow.parquet.ParquetWriter(target, schema) as writer:
        while block := list(islice(rows, _ROWS)):
            writer.write_table(arrow.Table.from_pylist([msgspec.to_builtins(row) for row in block], schema=schema))
