"""What the labels of a row say of its response: a word for all of it, quotations of it, or marked ranges."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import cell_text, decoded_value, present
from veriglot.plugins import read_package_data
from veriglot.records import Annotation, Kind, Span, Task
from veriglot.records.taxonomy import taxonomy_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.formats.base import Reading

__all__ = []

_SENSES = {"supported": 0, "unsupported": 1}
LABEL_PARTS = ("unsupported", "supported", "spans", "start", "end", "label")
_NEGATIONS = {"not", "no", "non", "without", "free", "lack", "lacks", "lacking", "missing", "never", "isnt"}
_SENSE = re.compile(
    r"(?:is|has)?(?P<against>un|in|non|not|no|mis|dis)?(?:(?P<wrong>halluc|wrong|error|false|contradict|fabricat)"
    r"|support|faith|ground(?=ed|ing)|consist|fact|correct|attribut|entail|true|valid|clean|right|accura|verif)"
)
_BETWEEN_WORDS = re.compile("[\0-/:-@[-`{-\u00bf\u0964\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]+")
EMPTY = {"", "nan", "none", "null", "n/a"}  # cells without a label or evidence
_PARTING = "|;\n\uff1b\u061b"  # quotations in a cell: full-width and Arabic semicolons too
_SAYS_NOTHING = re.compile(r"(true|correct|right|valid)_(label|class|answer|target)")  # the true label is any label
_TABLE = read_package_data(__package__, "labels.toml", dict[str, dict[str, list[str]]])


# Names and keys, compared.


@lru_cache(maxsize=1 << 10)
def normalized(name: str) -> str:
    """A name in small letters, its words joined by `_`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unicodedata.normalize("NFC", name.strip()))
    return ("_" if apart.startswith("_") else "") + _BETWEEN_WORDS.sub("_", apart).strip("_").lower()


def first_of(item: Any, keys: Iterable[str], kind: Any) -> Any:
    """The first value of that kind among these keys of an object, however it spells them; None where there is none."""
    given = item.items() if isinstance(item, Mapping) else ()
    right = {key: each for key, each in given if isinstance(each, kind) and not isinstance(each, bool)}
    named = {normalized(str(key)): each for key, each in right.items()} | right
    return next((named[key] for key in keys if key in named), None)


def is_native(key: str, value: Any) -> bool:
    """Whether a column is a field of the native format with that name."""
    if key == "task":
        return isinstance(value, str) and value in list(Task)
    if key == "annotations":
        return isinstance(value, list) and all(
            isinstance(each, dict) and "annotator" in each and {"taxonomy", "spans"} & each.keys() for each in value
        )
    return isinstance(value, dict) and (key == "meta" or (key == "generator" and isinstance(value.get("name"), str)))


# One label for the whole response.


class UnclearLabelError(InputError):
    """A label of which nobody can say what it means; with a remedy where that is so of its column."""


class NoQuotationError(InputError):
    """A text among the labels that is no quotation of the response; it may be a tag that is no label at all."""


def meaning_of_1(column: str) -> int | None:
    """What 1 means in a column of this name: 1 for unsupported, 0 for supported, None where it says neither."""
    name = _SAYS_NOTHING.sub("", normalized(column.rpartition(".")[2]))
    words = name.split("_")
    matches = [match for word in words if (match := _SENSE.match(word))]
    senses = [bool(match["wrong"]) != bool(match["against"]) for match in matches]
    if not senses:
        return None
    negated = sum(word in _NEGATIONS for word in words) % 2 == 1  # hallucination_free, not_fully_supported
    return int(any(senses) != negated)


def _unsupported(value: Any, part: str, column: str, evidence: Sequence[str] = ()) -> int | None:
    """1 where a label says that the response is unsupported, 0 where supported, None where there is none.

    Raises:
        UnclearLabelError: it is no known word, or the column does not say what 1 means.
    """
    words, word = _TABLE["words"], str(value).strip().lower()
    if word in EMPTY:
        return None
    of_1 = _SENSES.get(part, meaning_of_1(column))
    known, exact = word in {*words["true"], *words["false"]}, str(value).strip()
    if known and of_1 is not None and exact != "NEI":
        return of_1 if word in words["true"] else 1 - of_1
    short = _TABLE["beside_premise"] if of_1 is None and "premise" in map(normalized, evidence) else {}
    if word == "nei" and re.search("label|verdict", column.lower()):  # as rows of FEVER are written
        exact = "NEI"
    for meaning, number in _SENSES.items():
        if {normalized(word), exact} & {*words[meaning], *short.get(meaning, ())}:
            return number
    if not known:
        raise UnclearLabelError(
            f"the label {str(value)[:40]!r} in {column!r} is not known",
            remedy="Write supported or unsupported for it (of NLI: entailment, neutral, contradiction), or add a column"
            " of 0 and 1 and --map unsupported=COLUMN or --map supported=COLUMN; --map label= leaves the labels out.",
        )
    raise UnclearLabelError(
        f"{column!r} does not say whether {value!r} is supported or unsupported",
        remedy=f"Add --map {quote(f'unsupported={column}')} if 1 or true is unsupported,"
        f" --map {quote(f'supported={column}')} if it is supported.",
    )


def _is_label(text: str) -> bool:
    """Whether a text is a label of a response rather than a quotation of it, such as `0` or `supported`."""
    return any(text.strip().lower() in words or normalized(text) in words for words in _TABLE["words"].values())


# Spans.


def _edges(item: Any, where: str, response: str, reading: Reading) -> tuple[int, int] | None:
    """The range of a span: `start` and `end` in any spelling, a pair, or a text that occurs once."""
    if isinstance(item, list | tuple) and list(map(type, item[:2])) == [int, int] and len(item) < 4:  # with a type
        return reading.located(None, item[0], item[1], where, response)
    known = _TABLE["keys"]
    start, end, length = (first_of(item, keys, int) for keys in (known["start"], known["end"], ["length"]))
    marked = item if isinstance(item, str) else first_of(item, known["marked"], str)
    if start is not None and end is None and length is not None:
        end = start + length
    if start is not None and end is not None:
        return reading.located(marked, start, end, where, response)
    remedy = "--map spans= leaves the labels out."
    if not isinstance(marked, str) or not marked.strip():
        raise InputError("a span has `start` and `end`, or a text of the response", field=where, remedy=remedy)
    if (count := response.count(marked)) != 1:
        detail = f"{marked[:60]!r} occurs {count} times in the response: give start and end"
        raise (NoQuotationError if isinstance(item, str) else InputError)(detail, remedy, field=where)
    return response.index(marked), response.index(marked) + len(marked)


def _spans(
    items: Sequence[Any], column: str, response: str, reading: Reading
) -> tuple[str, tuple[Span, ...], list[Any]]:
    """The taxonomy, the spans, and what their objects say beside the span."""
    known = _TABLE["keys"]
    ranges, types, others = [], [], []
    for index, item in enumerate(items):
        edges = _edges(item, f"{column}[{index}]", response, reading)
        if edges is None:
            continue
        name = str(item[2]) if isinstance(item, list | tuple) and item[2:] else first_of(item, known["type"], str) or ""
        name = normalized(name)
        if re.search("conflict|contradict", name) and name != "contradictory":
            name = "contradicted"
        elif re.search("baseless|unverified|not_support|unsupport", name):
            name = "unverified"
        ranges.append(edges)
        types.append(name)
        edge_names, marked = {*known["start"], *known["end"]}, response[slice(*edges)]
        other = {k: v for k, v in item.items() if k not in edge_names} if isinstance(item, Mapping) else {}
        others.append({k: v for k, v in other.items() if k not in known["marked"] or v != marked})
    taxonomy = taxonomy_with(types) if types else None
    if taxonomy:  # else the type is nowhere but here
        others = [
            {k: v for k, v in other.items() if k not in known["type"] or v != type_}
            for other, type_ in zip(others, types, strict=True)
        ]
    spans = (Span(*edges, type_ if taxonomy else "hallucination") for edges, type_ in zip(ranges, types, strict=True))
    return taxonomy or "hat", tuple(sorted(spans, key=lambda span: (span.start, span.end))), others


def layers_of(items: Any, response: str, reading: Reading) -> list[dict[str, Any]]:
    """Native annotations, of which the kind and, beside spans in any shape, the taxonomy may be missing."""
    if not is_native("annotations", items):
        reading.report.notes["annotations_not_used"] += 1
        return []
    layers = [{"kind": "human", **item} for item in items]
    for item in layers:
        if "taxonomy" not in item:
            item["taxonomy"], item["spans"], _ = _spans(item["spans"], "annotations.spans", response, reading)
    return layers


def _marks(parts: Mapping[str, tuple[str, ...]], flat: Mapping[str, Any], response: str, reading: Reading) -> Any:
    """What a row marks: a list, the span from `start` to `end`, or what a cell quotes; else the cell as it is."""
    value = decoded_value(flat.get(column := next(iter(parts.get("spans", ())), "")))
    if isinstance(value, list | tuple):
        return value
    quoted = isinstance(value, str) and (value in response or value.strip().lower() not in EMPTY)
    label = quoted and "start" not in parts and _is_label(value)
    if label and "label" not in column.lower() and re.search(rf"\b{re.escape(value)}\b", response):
        detail = f"{value!r} in {column!r} may be quoted, or say whether anything is wrong"
        raise InputError(detail, f'Write [] where nothing is wrong, ["{value}"] where it is quoted.', field="spans")
    text = value if quoted and value.strip() and not label else ""
    edges = [re.sub("[.,]0$", "", str(flat[column])) for part in ("start", "end") for column in parts.get(part, ())]
    if len(edges) == 2 and all(map(str.isdecimal, edges)) and text in response:
        if not text and int(edges[1]) > len(response) + 1:  # they may be times
            detail = f"[{edges[0]}, {edges[1]}) does not lie in the response of {len(response)} code points"
            raise NoQuotationError(detail, "--map start= leaves such columns out.", field="start")
        type_ = first_of(flat, _TABLE["keys"]["type"], str)
        value = [present({"start": int(edges[0]), "end": int(edges[1]), "text": text or None, "type": type_})]
    elif text:
        value = [text] if text in response else re.split(rf"\s*[{_PARTING}][{_PARTING}\s]*", text.strip(f" {_PARTING}"))
    else:
        return value
    reading.shared |= "annotator" not in reading.columns  # with rows of further spans
    return value


def annotation_of(
    parts: Mapping[str, tuple[str, ...]],
    unclear: str,
    flat: Mapping[str, Any],
    response: str,
    reading: Reading,
    meta: dict[str, Any],
) -> tuple[Annotation, ...]:
    """What the columns of labels say, if they say anything of this row. Why none can is `unclear`."""
    before = reading.state.get("unclear")  # where some words are not known, none is used
    prodigy = "_input_hash" in flat and str(flat.get("answer")) in {"reject", "ignore"}
    unclear += "who labelled did not accept them: leave such rows out" * prodigy
    if before or unclear:
        raise before or UnclearLabelError(unclear)
    taxonomy, spans = "hat", None
    rating: int | None = None
    for part in ("spans", "label", "unsupported", "supported"):
        for column in parts.get(part, ()) or (parts.get("start", ()) if part == "spans" else ()):
            value = _marks(parts, flat, response, reading) if part == "spans" else decoded_value(flat.get(column))
            if isinstance(value, list | tuple):
                taxonomy, spans, others = _spans(value, column, response, reading)
                if any(others):
                    meta["labels"] = others
            elif (
                spans
                and part == "label"
                and taxonomy_with([name := normalized(str(value))])
                and (name == spans[0].type or not _is_label(name))
            ):
                continue  # the type of the span
            elif (label := _unsupported(value, part, column, parts.get("evidence", ()))) is not None:
                if rating not in (None, label):
                    raise UnclearLabelError(f"{column!r} says the reverse of another label")
                rating = label
    annotator = cell_text(next((flat.get(column) for column in parts.get("annotator", ())), None), "annotator")
    if spans is None and rating is None:
        meta |= {"annotator": annotator} if annotator else {}
        return ()
    if spans and rating == 0:
        raise UnclearLabelError("the label says supported, and spans are marked")
    if rating:
        spans = spans or None  # unsupported, and nobody marked where: no spans are not a clean response
    # A rating, of 0 or 1, is of a response that was labelled as a whole.
    ratings: dict[str, float | str] = {} if rating is None else {"unsupported": float(rating)}
    return (Annotation(annotator or "gold", Kind.HUMAN, taxonomy, spans=spans, ratings=ratings),)
