"""WiCE JSONL: claims held against the article they cite (Kamoi et al. 2023).

`non_supported_tokens` files mark the tokens of a claim that the article does not support: runs of such tokens become
spans of type `unverified` (taxonomy `support`), with exact offsets in `claim`. `claims` files carry a label only:
`supported` is a claim with no unsupported span, `not_supported` one that is unsupported from end to end; of
`partially_supported` no spans are known, so none are given.

The article's sentences become one passage, a line each; `meta.supporting` keeps where the supporting ones stand in it
(one list of ranges a minimal set). The data set is English.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff, need, optional
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head

__all__ = []

_TITLE = "(meta data) TITLE: "
_UNSUPPORTED = "unverified"
_LABELS = frozenset({"supported", "partially_supported", "not_supported"})


class Wice(Format):
    """WiCE claims and non-supported tokens."""

    name = "wice"
    summary = "WiCE claims and non-supported tokens"
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By `claim`, `evidence` and either kind of label."""
        if head.has("claim", "evidence") and head.has_any("claim_tokens", "supporting_sentences"):
            kind = "claim_tokens" if "claim_tokens" in head.keys else "supporting_sentences"
            return Sniff(0.95, f"the keys `claim`, `evidence` and `{kind}`")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a claim."""
        claim = need(data, "claim", str)
        meta = need(data, "meta", dict)
        label = need(data, "label", str)
        if label not in _LABELS:
            raise InputError(f"the label {label!r} is none of {', '.join(sorted(_LABELS))}", field="label")
        spans = _token_spans(data, claim, reading) if "claim_tokens" in data else _label_spans(label, claim)
        passage, places = _passage(need(data, "evidence", list))
        others = {key: value for key, value in meta.items() if key != "id"}
        annotation = Annotation(
            annotator="gold", kind=Kind.HUMAN, taxonomy="support", spans=spans, ratings={"label": label}
        )
        yield Sample(
            id=need(meta, "id", str, within="meta"),
            response=claim,
            task=Task.OPEN,
            language="en",
            evidence=(passage,),
            annotations=(annotation,),
            meta={**others, "supporting": _supporting(data, places)},
        )


def token_offsets(tokens: list[str], text: str) -> list[tuple[int, int]]:
    """Where each token stands in `text`, in order; white space between (and in) tokens may differ.

    A token that is nothing but white space has the empty range where it would stand.

    Raises:
        InputError: the tokens do not spell the text.
    """
    offsets = []
    position = 0
    for index, token in enumerate(tokens):
        start = end = None
        for char in token:
            if char.isspace():
                continue
            position = _skip_space(text, position)
            if text[position : position + 1] != char:
                raise InputError(f"the token {token!r} does not stand in the text", field=f"claim_tokens[{index}]")
            start = position if start is None else start
            position += 1
            end = position
        offsets.append((position, position) if start is None or end is None else (start, end))
    if _skip_space(text, position) != len(text):
        raise InputError(f"the tokens end at code point {position}, but the text goes on", field="claim_tokens")
    return offsets


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _token_spans(data: Any, claim: str, reading: Reading) -> tuple[Span, ...]:
    tokens, marks = need(data, "claim_tokens", list), need(data, "non_supported_spans", list)
    if len(tokens) != len(marks):
        raise InputError(f"{len(marks)} marks for {len(tokens)} tokens", field="non_supported_spans")
    offsets = token_offsets([str(token) for token in tokens], claim)
    spans = []
    for marked, run in groupby(zip(marks, offsets, strict=True), key=lambda pair: bool(pair[0])):
        ranges = [(start, end) for _, (start, end) in run if start < end]
        if marked and ranges:
            spans.append(Span(ranges[0][0], ranges[-1][1], _UNSUPPORTED))
        elif marked:
            reading.repaired("empty_spans", "only white space is marked", where="non_supported_spans")
    return tuple(spans)


def _label_spans(label: str, claim: str) -> tuple[Span, ...] | None:
    if label == "supported":
        return ()
    return (Span(0, len(claim), _UNSUPPORTED),) if label == "not_supported" and claim else None


def _passage(sentences: list[Any]) -> tuple[Evidence, list[tuple[int, int]]]:
    places = []
    at = 0
    for index, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise InputError("text is expected", field=f"evidence[{index}]")
        places.append((at, at + len(sentence)))
        at += len(sentence) + 1
    first = sentences[0] if sentences else ""
    title = first.removeprefix(_TITLE) if first.startswith(_TITLE) else None
    return Evidence("\n".join(sentences), title=title, language="en"), places


def _supporting(data: Any, places: list[tuple[int, int]]) -> list[list[list[int]]]:
    sets = optional(data, "supporting_sentences", list) or []
    for number, indices in enumerate(sets):
        if not isinstance(indices, list) or any(type(i) is not int or not 0 <= i < len(places) for i in indices):
            raise InputError("no such sentence in `evidence`", field=f"supporting_sentences[{number}]")
    return [[list(places[index]) for index in indices] for indices in sets]
