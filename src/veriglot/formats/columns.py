"""Rows with any column names: which column has which field of a sample, and the sample of such a row.

`read_row` converts one row; the format `columns` does it for files. Unless stated, the mapping depends only on column
names, so that all rows of a file are read alike; if two columns are possible, the row is refused with the choice.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from difflib import SequenceMatcher, get_close_matches
from functools import cache, lru_cache, reduce
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.base import (
    FileReport,
    Format,
    Reading,
    Sniff,
    cell_text,
    decoded_value,
    is_conversation,
    is_native,
    language_tag,
    messages_of,
    plain_value,
    present,
)  # fmt: skip
from veriglot.formats.containers import Record, Source, failure_in, is_one_object, rows_of_object
from veriglot.plugins import packaged
from veriglot.records import Annotation, Kind, Sample, Span, Task, sample_from
from veriglot.records.taxonomy import taxonomy_with
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from veriglot.formats.containers import Head, Records

__all__ = ["read_row", "rows_reading"]

_LOG = logging.getLogger(__name__)


class Preset(msgspec.Struct, frozen=True):
    """The columns of a known tool or data set.

    Attributes:
        name: the tool or data set.
        columns: field to column; alternatives are separated by `|`, and `inputs.question` is a key of an object.
        beside: further columns by which it is recognised.
        task: the task of its responses; rows without a question answer none.
    """

    name: str
    columns: dict[str, str]
    beside: tuple[str, ...] = ()
    task: Task = Task.QA


class _Table(msgspec.Struct, frozen=True):
    """The data file beside this module."""

    names: dict[str, list[list[str]]]
    words: dict[str, list[str]]
    beside_premise: dict[str, list[str]]
    objects: dict[str, list[str]]
    presets: tuple[Preset, ...]


@cache
def _table() -> _Table:
    return packaged(__package__, "columns.toml", _Table)


def presets() -> tuple[Preset, ...]:
    """The tools and data sets whose rows are recognised by their columns."""
    return _table().presets


_PARTS = (
    "unsupported", "supported", "id", "response", "evidence", "question", "language", "source_language", "model",
    "spans", "start", "end", "label", "annotator"
)  # fmt: skip
_SENSES = {"supported": 0, "unsupported": 1}
LABEL_PARTS = ("unsupported", "supported", "spans", "start", "end", "label")
_TEXTS = ("id", "question", "language", "source_language", "model", "annotator")
_CHOICES = (*_TEXTS, "start", "end")  # the first known name is used; for other fields there must be only one
_NEGATIONS = {"not", "no", "non", "without", "free", "lack", "lacks", "lacking", "missing", "never", "isnt"}
_SENSE = re.compile(
    r"(?:is|has)?(?P<against>un|in|non|not|no|mis|dis)?(?:(?P<wrong>halluc|wrong|error|false|contradict|fabricat)"
    r"|support|faith|ground(?=ed|ing)|consist|fact|correct|attribut|entail|true|valid|clean|right|accura|verif)"
)
_LETTER, _NO_WORD = re.compile(r"[^\W\d_]"), re.compile(r"[\d/\\_@]|\w[.:]\w")
_ASKS = re.compile(r"[?\uff1f\u061f\u055e]\s*\Z")  # with full-width, Arabic and Armenian question marks
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # Thai to Chinese
_BETWEEN_WORDS = re.compile("[\0-/:-@[-`{-\u00bf\u0964\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]+")
_EMPTY = {"", "nan", "none", "null", "n/a"}  # cells without a label or evidence
_PARTING = "|;\n\uff1b\u061b"  # separators of quotations in a cell, with full-width and Arabic semicolons
_SAYS_NOTHING = re.compile(r"(true|correct|right|valid)_(label|class|answer|target)")  # a true label may be any label


# The mapping of columns to fields.


class _Plan(NamedTuple):
    """Field to columns (evidence may have several), the preset or whether they were stated, and unclear labels."""

    parts: Mapping[str, tuple[str, ...]]
    preset: Preset | None
    stated: bool
    unclear: str = ""

    def __str__(self) -> str:
        shown = {part: " + ".join(columns) for part, columns in self.parts.items()}
        names = [part if part == column else f"{part} from {column}" for part, column in shown.items()]
        if "label" in self.parts and (meaning := _meaning(self.parts["label"][0])) is not None:
            names[list(self.parts).index("label")] += f" (1 is {'unsupported' if meaning else 'supported'})"
        return f"{f'{self.preset.name} rows, ' if self.preset else ''}{', '.join(names)}"


def checked(columns: Mapping[str, str]) -> dict[str, str]:
    """Validated `columns`: a mapping from sample field to column name.

    Raises:
        UsageError: it is not a mapping of names to names.
        UnknownNameError: no such field.
    """
    if not isinstance(columns, Mapping) or not all(isinstance(column, str) for column in columns.values()):
        raise UsageError(
            f"columns are names under the parts of a sample, but this is {columns!r}.",
            remedy='Write columns={"response": "answer", "evidence": "a+b"}; + joins several columns.',
        )
    for part in columns:
        if part not in _PARTS:
            parts, names = ("response", "evidence", "question"), _table().names
            meant = next((known for known in parts if part in chain(*names[known])), None)
            raise UnknownNameError("part of a sample", str(part), _PARTS, renamed=meant)
    return dict(columns)


@lru_cache(maxsize=1 << 10)
def _normalized(name: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unicodedata.normalize("NFC", name.strip()))
    return ("_" if apart.startswith("_") else "") + _BETWEEN_WORDS.sub("_", apart).strip("_").lower()


def _flat(row: Mapping[str, Any], stated: Iterable[str] = ()) -> dict[str, Any]:
    """The columns of a row, with keys of objects as `outer.inner`, and the values of stated paths."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        flat[str(key)] = value
        if isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": each for inner, each in value.items()})
    for path in (each.strip() for column in stated for each in column.split("+")):
        if path not in flat:
            with suppress(LookupError, TypeError, ValueError):  # the path does not exist
                flat[path] = reduce(_inner, path.split("."), row)
    return flat


def _inner(value: Any, key: str) -> Any:
    value = decoded_value(value)
    return value[int(key)] if isinstance(value, list) else value[key]


@lru_cache(maxsize=256)
def _plan(keys: tuple[tuple[str, bool], ...], stated: tuple[tuple[str, str], ...]) -> _Plan:
    """The mapping for rows with these keys, each with whether its value is an object.

    Raises:
        InputError: a stated column is missing, two columns are possible, or none; `field` is then the sample field.
    """
    names = {key: _name(key) for key, _ in keys}
    texts = {key: names[key] for key, is_object in keys if not is_object}
    parts = dict(_stated(stated, names))
    preset = next((preset for preset in presets() if _fits(preset, names, texts)), None)
    unclear, labelled = "", any(part in LABEL_PARTS for part, _ in stated)
    for part in _PARTS:
        of_data = part == "source_language" and (preset is None or preset.task != Task.TRANSLATION)  # not of the text
        if part in parts or (part in LABEL_PARTS and labelled) or of_data:
            continue
        if part == "annotator" and not any(map(parts.get, LABEL_PARTS)):
            break  # there are no labels
        possible = names if part in {"evidence", "spans"} else texts
        own = _of_preset(preset, part, possible) if preset is not None else None
        columns = (own,) if own else _columns_of(part, possible, parts)
        if part == "evidence" and not columns and [names[key] for key in parts["response"]] == ["messages"]:
            columns = parts["response"]  # its tool messages
        numbered = len({re.sub(r"_?\d+$", "", names[column]) for column in columns}) == 1  # context_1, context_2
        if len(columns) < 2 or (part == "evidence" and numbered):
            parts[part] = columns
        elif part in LABEL_PARTS:
            unclear = f"labels could be in {' or '.join(columns)}: choose with --map {quote(f'label={columns[0]}')}"
        else:
            remedy = " or ".join(f"--map {quote(f'{part}={column}')}" for column in columns)
            raise InputError(f"the {part} could be in {' or '.join(columns)}", f"Choose with {remedy}", field=part)
    for part in ("response", "evidence"):
        if not parts[part] and part not in dict(stated):
            raise InputError(f"no column is known to hold the {part}", field=part)
    return _Plan({part: columns for part, columns in parts.items() if columns}, preset, bool(stated), unclear)


def _stated(stated: Iterable[tuple[str, str]], names: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The stated columns of each field; without those that this row lacks, unless they are required."""
    for part, column in stated:
        chosen = (column,) if column and column in names else tuple(filter(None, map(str.strip, column.split("+"))))
        if len(chosen) > 1 and part != "evidence":
            more = " Those of several people go into a list `annotations`: docs/formats.md." * (part in LABEL_PARTS)
            remedy = f"Name one, such as --map {quote(f'{part}={chosen[0]}')}.{more}"
            raise InputError(f"{part} takes one column, not {' + '.join(chosen)}", remedy, field=part)
        missing = [each for each in chosen if each not in names]
        if missing and part in {"response", "evidence"}:
            near = "".join(get_close_matches(missing[0], names, 1, 0.8))
            raise InputError(f"there is no column {missing[0]!r}", near and f"Did you mean {near}?", field=part)
        if not missing:
            yield part, chosen


def _name(key: str) -> str:
    """The normalized name of a column; empty for a key of an object without columns."""
    outer, _, inner = key.rpartition(".")
    if inner == "text" and _normalized(outer) in _table().names["response"][0]:
        return "output_text"  # {"response": {"text": ...}} is not evidence
    return _normalized(inner) if not outer or _normalized(outer) in _table().objects["holders"] else ""


def _of_preset(preset: Preset, part: str, names: Mapping[str, str]) -> str | None:
    return next((column for column in preset.columns.get(part, "").split("|") if column in names), None)


def _fits(preset: Preset, names: Mapping[str, str], texts: Mapping[str, str]) -> bool:
    wanted = [_of_preset(preset, part, names if part == "evidence" else texts) for part in preset.columns]
    return None not in wanted and all(column in names for column in preset.beside)


def _columns_of(part: str, names: Mapping[str, str], parts: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The possible columns of a field, by name; only our own name if present, and only one if the order decides."""
    taken = {column for columns in parts.values() for column in columns}
    names = {key: name for key, name in names.items() if key not in taken or name == "messages"}
    if part == "label" and any(parts.get(each) for each in ("supported", "unsupported")):
        return ()
    for known in _table().names.get(part, ()):
        columns = tuple(key for key, name in names.items() if re.sub(r"_?\d+$", "", name) in known)
        exact = [key for key in columns if names[key] == known[0]]
        if exact and part not in {"spans", "label"}:
            return tuple(exact[:1])
        if columns:
            first = min(columns, key=lambda key: [*known, names[key]].index(names[key]))
            return (first,) if part in _CHOICES else columns
    return ()


def _unreadable(row: Mapping[str, Any], error: InputError, columns: Mapping[str, str]) -> InputError:
    """The error for a row with unknown columns, with its keys and a suggestion for `--map`."""
    remedy, names = error.remedy, list(map(str, row))
    if not remedy and 2 * sum(name.isdecimal() or _length(name) > 20 for name in names) > len(names):
        remedy = "Has it no header line? Write one, such as evidence,response,label."
    elif not remedy:
        proposed = _proposed(row, columns)
        unclear = " or the ".join(part for part, column in proposed.items() if column == "COLUMN")
        pairs = ",".join(f"{part}={column}" for part, column in proposed.items())
        start = f"No column is clearly the {unclear}: add" if unclear else "Add"
        remedy = f"{start} --map {quote(pairs)}"
        if "response" in unclear:
            remedy += "; a path such as response=answer.parts.0.text leads into objects and lists."
        if error.field == "evidence":
            remedy += "; rows without any evidence: --map evidence= reads them, and all will be not checked."
    return InputError(f"{error.detail}: its keys are {', '.join(name[:60] for name in names[:12])}", remedy=remedy)


def _proposed(row: Mapping[str, Any], stated: Mapping[str, str]) -> dict[str, str]:
    """Stated columns that exist, and the most likely columns of response, evidence and question, else `COLUMN`."""
    flat = _flat(row, stated.values())
    result = dict(stated)
    for part in ("evidence", "response"):
        chosen = [column.strip() for column in result.get(part, "").split("+")]
        if part in result and (result[part] in {"", *flat} or all(column in flat for column in chosen)):
            continue
        taken = {each.strip() for column in result.values() for each in (column, *column.split("+"))}
        others = {key: v for key, v in flat.items() if key not in taken and (part, type(v)) != ("response", dict)}
        known = _columns_of(part, {key: _name(key) for key in others}, {})
        result[part] = known[0] if len(known) == 1 else _likeliest(part, others)
    asking = [key for key, value in flat.items() if key not in result.values() and _ASKS.search(str(value))]
    result = {"question": asking[0], **result} if len(asking) == 1 else result
    return {part: result[part] for part in ("response", "evidence", *result)}


def _likeliest(part: str, flat: Mapping[str, Any]) -> str:
    """The most likely column by its name and text; `COLUMN` if there is no single one."""
    stems = Counter(re.sub(r"\d+", "", key) for key in flat)  # answer_1 and answer_2 are equally likely
    sizes = {key: size for key, value in flat.items() if (size := _length(value))}
    scores = {
        key: _likeness(key, part, flat[key], size / max(sizes.values()))
        for key, size in sizes.items()
        if stems[re.sub(r"\d+", "", key)] == 1
    }
    best, second = [*sorted(scores.values(), reverse=True), 0.0, 0.0][:2]
    return max(scores, key=lambda key: scores[key]) if best >= 0.6 and best - second >= 0.1 else "COLUMN"


def _likeness(key: str, part: str, value: Any, share: float) -> float:
    name = _normalized(key.rpartition(".")[2])
    like_others = any(name in names for other in _table().names if other != part for names in _table().names[other])
    bonus = 0.5 * share + 0.2 * isinstance(value, list) if part == "evidence" else 0.5 * (not isinstance(value, list))
    alike = _name_likeness(name, part)
    return (alike if alike >= 0.7 else 0.2) + bonus - 0.6 * bool(_ASKS.search(str(value))) - like_others


@lru_cache(maxsize=4096)  # many rows of a file may fail for the same reason
def _name_likeness(name: str, part: str) -> float:
    return max(SequenceMatcher(None, name, known).ratio() for names in _table().names[part] for known in names)


def _length(value: Any) -> int:
    """Characters of a text of several words, or of a list of such texts; 0 for dates, paths, numbers and ids."""
    if isinstance(value, str):
        words = [word for word in value[:1000].split() if _LETTER.search(word) and not _NO_WORD.search(word)]
        return len(value) if len(words) > 2 or len(_WITHOUT_SPACES.findall(value[:1000])) > 5 else 0
    if isinstance(value, list):
        keys = _table().objects["text"]
        return sum(_length(_first(each, keys, str) if isinstance(each, Mapping) else each) for each in value)
    return 0


# Values of columns.


def _passages(value: Any) -> Iterator[dict[str, Any]]:
    """The passages of a column: a text, an object, a list of either, or any of these as JSON."""
    value = decoded_value(value)
    if value is None or value == "":
        return
    if isinstance(value, list | tuple):
        titled = len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], list)  # HotpotQA's form
        if titled and all(isinstance(sentence, str) for sentence in value[1]):
            yield {"title": value[0], "text": " ".join(map(str.strip, value[1]))}
        elif len(value) == 3 and list(map(type, value)) == [str, int, str]:  # FEVER's form with sentences
            yield {"title": value[0], "text": value[2]}
        else:
            for each in value:
                yield from _passages(each) if not isinstance(each, str) else ({"text": each},) if each else ()
    elif isinstance(value, Mapping):
        yield from object_passages(value)
    elif isinstance(value, str):
        yield {"text": value}
    else:
        remedy = "Write the passages themselves: texts, or objects with `text`."
        raise InputError(f"text is expected, but this is {type(value).__name__}", field="evidence", remedy=remedy)


def object_passages(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The passage of an object, or several if its values are lists; wrapper objects are searched.

    Raises:
        InputError: no known key for its text (as JSON text, a score in it would count as evidence).
    """
    known = _table().objects
    key = next((key for key in known["text"] if isinstance(value.get(key), str | list)), None)
    if key is None:
        wrappers = value if len(value) == 1 else known["wrappers"]  # {"passages": [...]}
        key = next((key for key in wrappers if isinstance(value.get(key), Mapping | list)), None)
        if key is None:
            detail = f"this object has no text under a known key: its keys are {', '.join(map(str, value))}"
            raise InputError(detail, "Write it under `text`.", field="evidence")
        yield from _passages(value[key] if isinstance(value[key], list) else {**value, key: None, **value[key]})
        return
    if isinstance(value[key], list):
        for index, text in enumerate(value[key]):
            sentences = isinstance(text, list) and all(isinstance(each, str) for each in text)
            if not sentences and not isinstance(text, str):
                raise InputError(
                    f"text is expected, but this is {type(text).__name__}", field=f"evidence.{key}[{index}]"
                )
            one_each = {k: v[index] for k, v in value.items() if isinstance(v, list) and len(v) > index}
            yield from object_passages({**one_each, key: " ".join(text) if sentences else text})
        return
    flat = {**(about if isinstance(about := value.get("metadata"), Mapping) else {}), **value}
    named = {name: _first(flat, known.get(name, [name]), str | int) for name in ("id", "url", "title", "language")}
    rest = {k: v for k, v in value.items() if k != key and k not in {*named, *known["id"], *known["url"]}}
    yield rest | {"text": value[key], **{name: str(each) for name, each in named.items() if each not in (None, "")}}


def _first(item: Any, keys: Iterable[str], kind: Any) -> Any:
    """The first value with that type among these keys of an object; None if there is none."""
    values = (item.get(key) for key in keys) if isinstance(item, Mapping) else ()
    return next((value for value in values if isinstance(value, kind) and not isinstance(value, bool)), None)


# Labels: spans, or one label for the whole response.


UNSUPPORTED = "unsupported"
"""Rating of a response with one label for the whole: 1 for unsupported, 0 for supported."""


class _UnclearLabelError(InputError):
    """A label with an unclear meaning; the remedy is set if this is a problem of the whole column."""


class _NoQuotationError(InputError):
    """A text among the labels that is not in the response; it may be a tag instead of a label."""


def _meaning(column: str) -> int | None:
    """The meaning of 1 in a column with this name: 1 for unsupported, 0 for supported, None if unclear."""
    name = _SAYS_NOTHING.sub("", _normalized(column.rpartition(".")[2]))
    words = name.split("_")
    matches = [match for word in words if (match := _SENSE.match(word))]
    senses = [bool(match["wrong"]) != bool(match["against"]) for match in matches]
    if not senses:
        return None
    negated = sum(word in _NEGATIONS for word in words) % 2 == 1  # hallucination_free, not_fully_supported
    return int(any(senses) != negated)


def _unsupported(value: Any, part: str, column: str, evidence: Sequence[str] = ()) -> int | None:
    """1 if a label means unsupported, 0 if supported, None if there is no label.

    Raises:
        _UnclearLabelError: the word is unknown, or the column name does not tell what 1 means.
    """
    if str(value).strip().lower() in _EMPTY:
        return None
    words, word = _table().words, str(value).strip().lower()
    meaning_of_1 = _SENSES.get(part, _meaning(column))
    short = _table().beside_premise if meaning_of_1 is None and "premise" in map(_normalized, evidence) else {}
    for meaning, number in _SENSES.items():
        if _normalized(word) in {*words[meaning], *short.get(meaning, ())}:
            return number
    if word not in {*words["true"], *words["false"]}:
        raise _UnclearLabelError(
            f"the label {str(value)[:40]!r} in {column!r} is not known",
            remedy="Write supported or unsupported for it (of NLI: entailment, neutral, contradiction), or add a column"
            " of 0 and 1 and --map unsupported=COLUMN or --map supported=COLUMN; --map label= leaves the labels out.",
        )
    if meaning_of_1 is not None:
        return meaning_of_1 if word in words["true"] else 1 - meaning_of_1
    raise _UnclearLabelError(
        f"{column!r} does not say whether {value!r} is supported or unsupported",
        remedy=f"Add --map {quote(f'unsupported={column}')} if 1 is unsupported,"
        f" --map {quote(f'supported={column}')} if 1 is supported.",
    )


def _is_label(text: str) -> bool:
    """Whether a text is a label of a response, such as `0` or `supported`, rather than a quotation of it."""
    return any(text.strip().lower() in words or _normalized(text) in words for words in _table().words.values())


def _edges(item: Any, where: str, response: str, reading: Reading) -> tuple[int, int] | None:
    """The range of a span: `start` and `end` in any spelling, a pair, or a text that occurs exactly once."""
    if isinstance(item, list | tuple) and len(item) == 2 and all(type(edge) is int for edge in item):
        return reading.located(None, item[0], item[1], where, response)
    known = _table().objects
    start, end, length = (_first(item, keys, int) for keys in (known["start"], known["end"], ["length"]))
    marked = item if isinstance(item, str) else _first(item, known["marked"], str)
    if start is not None and end is None and length is not None:
        end = start + length
    if start is not None and end is not None:
        return reading.located(marked, start, end, where, response)
    remedy = "--map spans= leaves the labels out."
    if not isinstance(marked, str) or not marked.strip():
        raise InputError("a span has `start` and `end`, or a text of the response", field=where, remedy=remedy)
    if (count := response.count(marked)) != 1:
        detail = f"{marked[:60]!r} occurs {count} times in the response: give start and end"
        raise (_NoQuotationError if isinstance(item, str) else InputError)(detail, remedy, field=where)
    return response.index(marked), response.index(marked) + len(marked)


def _spans(
    items: Sequence[Any], column: str, response: str, reading: Reading
) -> tuple[str, tuple[Span, ...], list[Any]]:
    """The taxonomy, the spans, and the other content of their objects."""
    known = _table().objects
    ranges, types, others = [], [], []
    for index, item in enumerate(items):
        edges = _edges(item, f"{column}[{index}]", response, reading)
        if edges is None:
            continue
        name = _normalized(_first(item, known["type"], str) or "")
        if re.search("conflict|contradict", name) and name != "contradictory":
            name = "contradicted"
        elif re.search("baseless|unverified|not_support|unsupport", name):
            name = "unverified"
        ranges.append(edges)
        types.append(name)
        edge_names = {*known["start"], *known["end"]}
        others.append({k: v for k, v in item.items() if k not in edge_names} if isinstance(item, Mapping) else {})
    taxonomy = taxonomy_with(types) if types else None
    spans = (Span(*edges, type_ if taxonomy else "hallucination") for edges, type_ in zip(ranges, types, strict=True))
    return taxonomy or "hat", tuple(sorted(spans, key=lambda span: (span.start, span.end))), others


def _layers(items: Any, response: str, reading: Reading) -> list[dict[str, Any]]:
    """Native annotations, which may lack the kind and, with spans in any form, the taxonomy."""
    if not is_native("annotations", items):
        reading.report.notes["annotations_not_used"] += 1
        return []
    layers = [{"kind": "human", **item} for item in items]
    for item in layers:
        if "taxonomy" not in item:
            item["taxonomy"], item["spans"], _ = _spans(item["spans"], "annotations.spans", response, reading)
    return layers


def _marks(plan: _Plan, flat: Mapping[str, Any], response: str, reading: Reading) -> Any:
    """The marks of a row: a list, the span from `start` to `end`, or quotations in a cell; else the cell itself."""
    value = decoded_value(flat.get(column := next(iter(plan.parts.get("spans", ())), "")))
    if isinstance(value, list | tuple):
        return value
    quoted = isinstance(value, str) and (value in response or value.strip().lower() not in _EMPTY)
    label = quoted and "start" not in plan.parts and _is_label(value)
    if label and "label" not in column.lower() and re.search(rf"\b{re.escape(value)}\b", response):
        detail = f"{value!r} in {column!r} may be quoted, or say whether anything is wrong"
        raise InputError(detail, f'Write [] where nothing is wrong, ["{value}"] where it is quoted.', field="spans")
    text = value if quoted and value.strip() and not label else ""
    edges = [str(flat[column]).removesuffix(".0") for part in ("start", "end") for column in plan.parts.get(part, ())]
    if len(edges) == 2 and all(map(str.isdecimal, edges)) and text in response:
        if not text and int(edges[1]) > len(response) + 1:  # they may be times
            detail = f"[{edges[0]}, {edges[1]}) does not lie in the response of {len(response)} code points"
            raise _NoQuotationError(detail, "--map start= leaves such columns out.", field="start")
        type_ = _first({_normalized(key): each for key, each in flat.items()}, _table().objects["type"], str)
        value = [present({"start": int(edges[0]), "end": int(edges[1]), "text": text or None, "type": type_})]
    elif text:
        value = [text] if text in response else re.split(rf"\s*[{_PARTING}][{_PARTING}\s]*", text.strip(f" {_PARTING}"))
    else:
        return value
    reading.shared |= "annotator" not in reading.columns  # other rows may have further spans
    return value


def _annotation(
    plan: _Plan, flat: Mapping[str, Any], response: str, reading: Reading, meta: dict[str, Any]
) -> Annotation | None:
    """The annotation from the label columns; None if they are empty in this row."""
    unclear: list[_UnclearLabelError] = reading.once("unclear", list)  # if some words are unknown, no label is used
    if unclear or plan.unclear:
        raise unclear[0] if unclear else _UnclearLabelError(plan.unclear)
    taxonomy, spans = "hat", None
    rating: int | None = None
    for part in ("spans", "label", "unsupported", "supported"):
        for column in plan.parts.get(part, ()) or (plan.parts.get("start", ()) if part == "spans" else ()):
            value = _marks(plan, flat, response, reading) if part == "spans" else decoded_value(flat.get(column))
            if isinstance(value, list | tuple):
                taxonomy, spans, others = _spans(value, column, response, reading)
                if any(others):
                    meta["labels"] = others
            elif (
                spans
                and part == "label"
                and taxonomy_with([name := _normalized(str(value))])
                and (name == spans[0].type or not _is_label(name))
            ):
                continue  # the type of the span
            elif (label := _unsupported(value, part, column, plan.parts.get("evidence", ()))) is not None:
                if rating not in (None, label):
                    raise _UnclearLabelError(f"{column!r} says the reverse of another label")
                rating = label
    annotator = cell_text(next((flat.get(column) for column in plan.parts.get("annotator", ())), None), "annotator")
    if spans is None and rating is None:
        meta |= {"annotator": annotator} if annotator else {}
        return None
    if spans and rating == 0:
        raise _UnclearLabelError("the label says supported, and spans are marked")
    if rating:
        spans = spans or None  # unsupported without marked spans; an empty list would mean a clean response
    ratings: dict[str, float | str] = {} if rating is None else {UNSUPPORTED: float(rating)}
    return Annotation(annotator or "gold", Kind.HUMAN, taxonomy, spans=spans, ratings=ratings)


# Rows to samples.


def rows_reading(columns: Mapping[str, str] | None = None) -> Reading:
    """Shared state for reading rows that do not come from a file; see `read_row`."""
    return Reading(Source("rows"), FileReport("rows", "columns"), columns=checked(columns or {}))


def read_row(
    row: Mapping[str, Any], *, id_: str = "1", columns: Mapping[str, str] | None = None, reading: Reading | None = None
) -> Sample:
    """The sample of one row with any common column names, such as `question`, `contexts`, `answer`.

    Native rows, rows of the tools in `presets` and rows with similar names are recognised by their keys. A label of the
    whole response becomes the rating `unsupported` (0 or 1) of the annotator `gold`, marked spans become its spans.
    Other values go to `meta`, also labels with unknown meaning.

    Args:
        row: column to value; evidence is text, an object, a list of either, or any of these as JSON.
        id_: id of a row without one.
        columns: mapping from sample field (`response`, `evidence`, `question`, `id`, `language`, `model`, `label`,
            `spans`, or `start` and `end`, or `unsupported` and `supported` for labels where 1 has that meaning) to
            column; several columns of evidence are joined by `+`, an inner key by a dot. Other fields are found by
            column names.
        reading: shared by several rows, with their `columns`: the mapping is logged once, at level INFO.

    Raises:
        InputError: no column, or more than one, is possible for the response or the evidence; or a value is invalid.
            The message has the keys and the columns to state.
        UnknownNameError: `columns` has a field that samples do not have.
    """
    memory = reading or rows_reading(columns)
    plan = _plan_of(row, memory.columns)
    if reading:
        _tell(plan, reading)
    return _sample(row, plan, memory, id_)


def has_labels(row: Mapping[str, Any]) -> bool:
    """Whether a row has a column of labels, according to its name."""
    names = (_table().names[part][0] for part in ("spans", "start", "label"))
    return not set(chain(*names)).isdisjoint(map(_normalized, map(str, row)))


def names_other_evidence(row: Mapping[str, Any]) -> bool:
    """Whether a row without `evidence` has another column that is known to contain it."""
    return "evidence" not in row and bool(_columns_of("evidence", {str(key): _normalized(str(key)) for key in row}, {}))


def sample_of(row: Mapping[str, Any], reading: Reading) -> Sample:
    """The sample of a row in the current file, where evidence may be missing; otherwise as `read_row`."""
    plan = _plan_of(row, {} if "evidence" in row else {"evidence": ""})
    return _sample(row, plan, reading, reading.row_name)


def _plan_of(row: Mapping[str, Any], columns: Mapping[str, str]) -> _Plan:
    if not isinstance(row, Mapping):
        raise InputError(f"a row is an object, but this is {type(row).__name__}")
    flat = _flat(row, columns.values()).items()
    keys = tuple((key, isinstance(value, Mapping) and not is_conversation(value)) for key, value in flat)
    try:
        return _plan(keys, tuple(columns.items()))
    except InputError as error:
        if error.field == "response" or not dict(flat).get(_proposed(row, columns)["response"]):
            _refuse_failed(row)
        raise _unreadable(row, error, columns) from error


def _refuse_failed(row: Mapping[str, Any]) -> None:
    if why := failure_in(row):
        raise InputError(f"the request to the model failed: {why.rstrip('.')}", "Send that request again.")


def _sample(row: Mapping[str, Any], plan: _Plan, reading: Reading, id_: str) -> Sample:
    try:
        return _sample_of_parts(row, plan, reading, id_)
    except (ValueError, RecursionError) as error:  # from the validation of records, such as a span outside the response
        raise InputError(str(error)) from error


def _sample_of_parts(row: Mapping[str, Any], plan: _Plan, reading: Reading, id_: str) -> Sample:
    flat = _flat(row, chain(*plan.parts.values()))
    parts = {part: columns[0] for part, columns in plan.parts.items()}
    response = cell_text(flat[parts["response"]], "response")
    if response is None:
        _refuse_failed(row)
        raise InputError("the response is missing", field=parts["response"])
    used = {column for part, columns in plan.parts.items() if part not in {"start", "end"} for column in columns}
    data: dict[str, Any] = {"id": id_, "response": response, "meta": {}}
    for key, value in present({key: plain_value(value) for key, value in row.items() if key not in used}).items():
        if key == "annotations" and value and (layers := _layers(value, response, reading)):
            data[key] = layers
        elif is_native(key, value):
            data[key] = {**value, **data["meta"]} if key == "meta" else value
        elif isinstance(value, Mapping):
            rest = {inner: each for inner, each in value.items() if f"{key}.{inner}" not in used}
            data["meta"] |= {key: rest} if rest else {}
        else:
            data["meta"][key] = value
    stated = {part: cell_text(flat.get(parts[part]), part) for part in _TEXTS if part in parts}
    language, source = (tag and (language_tag(tag) or tag) for tag in map(stated.get, ("language", "source_language")))
    data |= {
        "id": stated.get("id") or id_,
        "question": stated.get("question"),
        "language": language or reading.language,
        "evidence": [{"language": source} | passage for passage in _evidence(plan, flat)],
    }
    if stated.get("model"):
        data["generator"] = {"name": stated["model"]}
    if plan.preset is not None and (data["question"] or plan.preset.task is not Task.QA):
        data.setdefault("task", plan.preset.task)
    annotation = None
    try:
        annotation = _annotation(plan, flat, response, reading, data["meta"])
    except (_UnclearLabelError, _NoQuotationError) as error:
        if reading.labelled:
            raise
        if not reading.report.notes["labels_not_used"]:
            _LOG.warning("%s: labels are not used: %s", reading.source.path, error)
        reading.report.notes["labels_not_used"] += 1
        unclear: list[_UnclearLabelError] = reading.once("unclear", list)
        unclear += [error] if isinstance(error, _UnclearLabelError) and error.remedy else []
        data["meta"] |= {column: flat.get(column) for part in LABEL_PARTS for column in plan.parts.get(part, ())}
    sample = sample_from(data)
    if annotation is not None:
        sample = msgspec.structs.replace(sample, annotations=(*sample.annotations, annotation))
    return sample


def _evidence(plan: _Plan, flat: Mapping[str, Any]) -> list[dict[str, Any]]:
    values = {column: flat.get(column) for column in plan.parts.get("evidence", ())}
    if (response := plan.parts["response"][0]) in values:
        values[response] = messages_of(decoded_value(values[response]), "evidence") or values[response]
    passages = [
        passage
        for passage in chain(*map(_passages, values.values()))
        if str(passage["text"]).strip().lower() not in _EMPTY
    ]
    ids = [passage.get("id") for passage in passages]
    if len(set(ids)) < len(ids):  # two chunks of one document; then the ids are p0, p1 ...
        passages = [{("document" if key == "id" else key): each for key, each in p.items()} for p in passages]
    return passages


def _is_ours(row: Mapping[str, Any]) -> bool:
    """Whether the native format can read the whole row."""
    evidence = row.get("evidence") or []
    passages = isinstance(evidence, list) and all(isinstance(p, dict) and type(p.get("text")) is str for p in evidence)
    return passages and not has_labels(row) and all(type(row.get(key)) is str for key in ("id", "response"))


class Columns(Format):
    """Rows with any column names: JSON, JSON lines, CSV, TSV, Parquet, Arrow, and folders saved by `datasets`."""

    summary = "rows under any names; `--map` states them"
    containers = ("jsonl", "json", "csv", "tsv", "parquet", "arrow")
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By column names; surer than the native format if that cannot read the first row."""
        if head.keys >= {"id", "status", "detector"} or not head.keys:
            return None
        try:
            plan = check_columns(head, {})
        except InputError:
            return None
        native = head.keys >= {"id", "response"} and head.container not in {"csv", "tsv"}
        sure = 0.92 if native and head.record is not None and not _is_ours(head.record) else 0.5
        return Sniff(sure, str(plan))

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples and bad rows. If labels are required, a label with unknown meaning ends the file."""
        for record in rows_of_object(records) if is_one_object(reading.container, reading.source.look()) else records:
            if isinstance(record, FailedRow):
                yield record
                continue
            reading.line = record.line
            try:
                plan = _plan_of(record.data, reading.columns)
                _tell(plan, reading)
                reading.shared = "annotator" in plan.parts
                yield _sample(record.data, plan, reading, reading.row_name)
            except _UnclearLabelError as error:
                raise error.at(path=reading.source.path, line=record.line) from error
            except InputError as error:
                yield reading.bad(record, error)
        met: dict[str, tuple[str, ...]] = dict(reading.once("named", set))
        for part, column in reading.columns.items():
            if column and part not in met:
                _LOG.info("%s: no row has the column %s (%s)", reading.source.path, column, part)


def _tell(plan: _Plan, reading: Reading) -> None:
    """Log the mapping, once per file and after a change."""
    named: set[tuple[str, tuple[str, ...]]] = reading.once("named", set)
    news = {part: columns for part, columns in plan.parts.items() if (part, columns) not in named}
    recoded = reading.source.recoded and not named and reading.source.encoding != "utf-8"
    stated = plan.stated and not named and news.keys() <= reading.columns.keys() - {"label"}
    if news and (recoded or not stated):
        text = str(plan._replace(parts=news, preset=None if named else plan.preset))
        ids = "" if "id" in plan.parts or named else ", id from the line"
        by_bytes = f" (as {reading.source.encoding}; if letters look wrong, save it as UTF-8)" if recoded else ""
        where = f", line {reading.line}" if named and reading.line else ""
        _LOG.info("%s%s: read as %s%s%s", reading.source.path, where, text, ids, by_bytes)
    named.update(plan.parts.items())


def check_columns(head: Head, columns: Mapping[str, str]) -> _Plan:
    """The mapping of columns to sample fields for a file with this beginning.

    Raises:
        InputError: no column, or more than one, is possible for the response or the evidence; with a `--map` to give.
    """
    row: Any = head.record if head.record is not None else dict.fromkeys(head.keys)
    first = next(rows_of_object(iter([Record(1, row)])), None) if is_one_object(head.container, head) else None
    plan = _plan_of(first.data if isinstance(first, Record) else row, columns)
    if head.container in {"csv", "tsv", "parquet", "arrow"} and head.keys:  # all rows have the same columns
        for part in (each for each in columns if columns[each] and each not in plan.parts):
            raise InputError(f"there is no column {columns[part]!r}: its keys are {', '.join(_flat(row))}", field=part)
    return plan
