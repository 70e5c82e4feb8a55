"""Hypothesis strategies for records: any text that UTF-8 can hold, any spans that lie in it."""

from __future__ import annotations

from hypothesis import strategies as st

from veriglot.records import (
    Annotation,
    Evidence,
    Generator,
    Kind,
    Pointer,
    Prediction,
    Sample,
    Span,
    Status,
    Task,
    Unit,
    Word,
)
from veriglot.records.taxonomy import taxonomies

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
filled = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
shares = st.floats(0, 1)
names = st.text("abcdefgh0123456789-_", min_size=1, max_size=12)
languages = st.sampled_from([None, "de", "tr", "zh-Hans", "ar", "sr-Latn"])
numbers = st.integers(-(2**53), 2**53)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def ranges(draw: st.DrawFn, length: int) -> tuple[int, int]:
    start = draw(st.integers(0, length - 1))
    return start, draw(st.integers(start + 1, length))


pointers = st.builds(lambda id_, a, b: Pointer(id_, a, a + b), names, st.integers(0, 99), st.integers(1, 99))


@st.composite
def spans(draw: st.DrawFn, length: int, types: st.SearchStrategy[str | None]) -> Span:
    return Span(
        *draw(ranges(length)),
        draw(types),
        draw(st.none() | shares),
        draw(st.none() | texts),
        tuple(draw(st.lists(pointers, max_size=2))),
    )


@st.composite
def annotations(draw: st.DrawFn, length: int) -> Annotation:
    name = draw(st.sampled_from(sorted(taxonomies())))
    types = st.none() | st.sampled_from(sorted(taxonomies()[name].types))
    marks = st.lists(spans(length, types), max_size=4).map(tuple) if length else st.just(())
    units = (
        st.builds(lambda r, label, p: Unit(*r, label, p), ranges(length), names, st.none() | shares) if length else None
    )
    return Annotation(
        annotator=draw(st.sampled_from(["gold", "silver", "annotator_1", "model-x"])),
        kind=draw(st.sampled_from(list(Kind))),
        taxonomy=name,
        spans=draw(st.none() | marks),
        units=draw(st.none() | (st.lists(units, max_size=3).map(tuple) if units is not None else st.just(()))),
        ratings=draw(st.dictionaries(names, st.floats(-9, 9) | texts, max_size=2)),
        flags=tuple(draw(st.lists(names, max_size=2))),
    )


generators = st.builds(
    Generator, filled, st.none() | texts, st.none() | st.integers(-(2**63), 2**63 - 1),
    st.dictionaries(texts, json_values, max_size=2),
)  # fmt: skip


@st.composite
def samples(draw: st.DrawFn, response: st.SearchStrategy[str] = texts) -> Sample:
    text = draw(response)
    passages = [
        Evidence(draw(texts), None, draw(st.none() | texts), draw(languages), draw(st.none() | texts))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return Sample(
        id=draw(filled),
        response=text,
        task=draw(st.sampled_from(list(Task))),
        language=draw(languages),
        question=draw(st.none() | texts),
        evidence=tuple(passages),
        generator=draw(st.none() | generators),
        annotations=tuple(draw(st.lists(annotations(len(text)), max_size=3))),
        meta=draw(st.dictionaries(texts, json_values, max_size=2)),
    )


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    status = draw(st.sampled_from(list(Status)))
    if status is not Status.SCORED:
        return Prediction(draw(filled), status, "rule@1", reason=draw(filled))
    words = st.builds(lambda r, c, e: Word(*r, c, tuple(e)), ranges(50), shares, st.lists(pointers, max_size=1))
    return Prediction(
        draw(filled),
        status,
        "rule@1",
        score=draw(shares),
        spans=tuple(draw(st.lists(spans(50, st.none() | names), max_size=3))),
        words=draw(st.none() | st.lists(words, max_size=3).map(tuple)),
        language=draw(languages),
        notes=tuple(draw(st.lists(names, max_size=2))),
        signature=draw(st.none() | texts),
    )
