"""Rows with usual column names: which column has which field of a sample, and the sample of such a row.

`read_row` converts one row; the format `columns` does it for files. Unless stated, the mapping depends only on column
names, so that all rows of a file are read alike; if two columns are possible, the row is refused with the choice.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache, reduce
from itertools import chain, repeat
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.base import (
    FIELDS,
    FileReport,
    Format,
    Reading,
    Sniff,
    cell_text,
    decoded_value,
    is_conversation,
    language_tag,
    messages_of,
    plain_value,
    present,
    span_fields,
)  # fmt: skip
from veriglot.formats.containers import Record, Source, failure_in, is_one_object, rows_of_object
from veriglot.formats.labels import (
    EMPTY,
    LABEL_PARTS,
    NoQuotationError,
    UnclearLabelError,
    annotation_of,
    first_of,
    is_native,
    layers_of,
    meaning_of_1,
    normalized,
)
from veriglot.plugins import read_package_data
from veriglot.records import Sample, Task, sample_from
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

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
    objects: dict[str, list[str]]
    presets: tuple[Preset, ...]


_TABLE = read_package_data(__package__, "columns.toml", _Table)
_PATHS = {name for known in chain(*_TABLE.names.values()) for name in known if "." in name}
_DEEP = [name for each in _TABLE.presets for name in "|".join(each.columns.values()).split("|") if name.count(".") > 1]


PRESETS = _TABLE.presets
"""The tools and data sets whose rows are known by their columns."""

_PARTS = (
    "unsupported", "supported", "id", "response", "evidence", "question", "language", "source_language", "model",
    "spans", "start", "end", "label", "annotator"
)  # fmt: skip
_TEXTS = ("id", "question", "language", "source_language", "model", "annotator")
_CHOICES = (*_TEXTS, "start", "end")  # the first known name counts; of others one alone
_LETTER, _NO_WORD = re.compile(r"[^\W\d_]"), re.compile(r"[\d/\\_@]|\w[.:]\w")
_ASKS = re.compile(r"[?\uff1f\u061f\u055e]\s*\Z")  # with full-width, Arabic and Armenian question marks
# As spreadsheets of any language write them: #NAME?, #NAZWA?, #¡REF!, #DIV/0!, #Н/Д.
_SHEET_ERROR = re.compile(r"#[¡¿]?[^\W\da-z]+(?:/0)?[!?]|#[^\W\da-z]/[^\W\da-z]!?|#NV|#YOK|Err:\d{3}")
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # Thai to Chinese


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
        if "label" in self.parts and (meaning := meaning_of_1(self.parts["label"][0])) is not None:
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
            parts, names = ("response", "evidence", "question"), _TABLE.names
            meant = next((known for known in parts if part in chain(*names[known])), None)
            raise UnknownNameError("part of a sample", str(part), _PARTS, renamed=meant)
    return dict(columns)


def _flat(row: Mapping[str, Any], stated: Iterable[str] = ()) -> dict[str, Any]:
    """The columns of a row, with keys of objects as `outer.inner`, and the values of stated paths."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        flat[str(key)] = value
        if isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": each for inner, each in value.items()})
    for path in (each.strip() for column in (*stated, *_DEEP) for each in column.split("+")):
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
    preset = next((preset for preset in PRESETS if _fits(preset, names, texts)), None)
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
        if part == "evidence" and not columns:  # messages of tools
            columns = tuple(key for key in texts if names[key] == "messages")[:1]
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
    """The normalized name of a column, or its path if that has a name; empty for a key of what holds no columns."""
    outer, _, inner = key.rpartition(".")
    if inner == "text" and normalized(outer) in _TABLE.names["response"][0]:
        return "response.text"
    if (path := ".".join(map(normalized, key.split(".")))) in _PATHS:
        return path
    if outer and normalized(outer) not in _TABLE.objects["holders"]:
        return ""
    return "messages" if (name := normalized(inner)) in {"conversation", "conversations"} else name  # of ShareGPT


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
    own = {key: name for key, name in names.items() if not re.match(r"(?i)(data|fields|request)\.", key)}
    if own != names and (columns := _columns_of(part, own, parts)):
        return columns
    for known in _TABLE.names.get(part, ()):
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
    if len(asking) == 1:
        result.setdefault("question", asking[0])
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
    name = normalized(key.rpartition(".")[2])
    like_others = any(name in names for other in _TABLE.names if other != part for names in _TABLE.names[other])
    bonus = 0.5 * share + 0.2 * isinstance(value, list) if part == "evidence" else 0.5 * (not isinstance(value, list))
    alike = _name_likeness(name, part)
    return (alike if alike >= 0.7 else 0.2) + bonus - 0.6 * bool(_ASKS.search(str(value))) - like_others


@lru_cache(maxsize=4096)  # many rows of a file may fail for the same reason
def _name_likeness(name: str, part: str) -> float:
    return max(SequenceMatcher(None, name, known).ratio() for names in _TABLE.names[part] for known in names)


def _length(value: Any) -> int:
    """Characters of a text of several words, or of a list of such texts; 0 for dates, paths, numbers and ids."""
    if isinstance(value, str):
        words = [word for word in value[:1000].split() if _LETTER.search(word) and not _NO_WORD.search(word)]
        return len(value) if len(words) > 2 or len(_WITHOUT_SPACES.findall(value[:1000])) > 5 else 0
    if isinstance(value, list):
        keys = _TABLE.objects["text"]
        return sum(_length(first_of(each, keys, str) if isinstance(each, Mapping) else each) for each in value)
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


def _of_tools(value: Any) -> Iterator[dict[str, Any]]:
    """The passages in messages of tools: what is no known object there counts as text."""
    messages = messages_of(decoded_value(value), "evidence")
    if messages is None:
        yield from _passages(value)
    for message in messages or ():
        try:
            yield from list(_passages(message["content"]))
        except InputError:
            yield {"text": cell_text(message, "evidence")}


def object_passages(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The passage of an object, or several if its values are lists; wrapper objects are searched.

    Raises:
        InputError: no known key for its text (as JSON text, a score in it would count as evidence).
    """
    known = _TABLE.objects
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
    named = {name: first_of(flat, known.get(name, [name]), str | int) for name in ("id", "url", "title", "language")}
    rest = {k: v for k, v in value.items() if k != key and k not in {*named, *known["id"], *known["url"]}}
    yield rest | {"text": value[key], **{name: str(each) for name, each in named.items() if each not in (None, "")}}


# Rows to samples.


def rows_reading(columns: Mapping[str, str] | None = None) -> Reading:
    """Shared state for reading rows that do not come from a file; see `read_row`."""
    return Reading(Source("rows"), FileReport("rows", "columns"), columns=checked(columns or {}))


def read_row(
    row: Mapping[str, Any], *, id_: str = "1", columns: Mapping[str, str] | None = None, reading: Reading | None = None
) -> Sample:
    """The sample of one row with any common column names, such as `question`, `contexts`, `answer`.

    Native rows, rows of the tools in `PRESETS` and rows with names like theirs are known by their keys. A label of the
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
    """Whether a row has a column of labels, by its name."""
    names = (_TABLE.names[part][0] for part in ("spans", "start", "label"))
    return not set(chain(*names)).isdisjoint(map(normalized, map(str, row)))


def sample_of(row: Mapping[str, Any], reading: Reading) -> Sample:
    """The sample of a row in the current file, where evidence may be missing; otherwise as `read_row`."""
    plan = _plan_of(row, {} if "evidence" in row else {"evidence": ""})
    return _sample(row, plan, reading, reading.row_name)


def _plan_of(row: Mapping[str, Any], columns: Mapping[str, str], seen: Collection[str] = ()) -> _Plan:
    """The mapping for a row; one with only columns that were `seen` in rows with evidence may lack the evidence."""
    if not isinstance(row, Mapping):
        raise InputError(f"a row is an object, but this is {type(row).__name__}")
    flat = _flat(row, columns.values()).items()
    keys = tuple((key, isinstance(value, Mapping) and not is_conversation(value)) for key, value in flat)
    try:
        return _plan(keys, tuple(columns.items()))
    except InputError as error:
        if error.field == "evidence" and not row.keys() - seen:
            return _plan_of(row, {**columns, "evidence": ""})
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
    broken = _SHEET_ERROR.fullmatch(response or "")
    if (
        response is None or broken or ("_input_hash" in flat and response in {"accept", "reject", "ignore"})
    ):  # Prodigy's
        _refuse_failed(row)
        cell = f": the cell holds {response}, an error of the spreadsheet" if broken else ""
        remedy = "Repair the cell; an answer that starts with =, + or - needs the format Text." if broken else ""
        raise InputError(f"the response is missing{cell}", remedy, field=parts["response"])
    used = {column for part, columns in plan.parts.items() if part not in {"start", "end"} for column in columns}
    data: dict[str, Any] = {"response": response, "meta": {}}
    for key, value in present({key: plain_value(value) for key, value in row.items() if key not in used}).items():
        if key == "annotations" and value and (added := layers_of(value, response, reading)):
            data[key] = added
        elif is_native(key, value):
            data[key] = {**value, **data["meta"]} if key == "meta" else value
        elif isinstance(value, Mapping):
            rest = {inner: each for inner, each in value.items() if f"{key}.{inner}" not in used}
            data["meta"] |= {key: rest} if rest else {}
        else:
            data["meta"][key] = value
    stated = {part: cell_text(flat.get(parts[part]), part) for part in _TEXTS if part in parts}
    language, source = (tag and (language_tag(tag) or tag) for tag in map(stated.get, ("language", "source_language")))
    pair = first_of(flat, _TABLE.objects["pair"], str) if "language" not in reading.columns else None
    halves = [language_tag(half) for half in (pair or "").split("-")]
    source_of_pair, target = halves if len(halves) == 2 and all(halves) else (None, None)
    data |= {
        "id": stated.get("id") or id_,
        "question": stated.get("question") or None,
        "language": language or reading.language or target,
        "evidence": [{"language": source or source_of_pair} | passage for passage in _evidence(plan, flat)],
    }
    if stated.get("model"):
        data["generator"] = {"name": stated["model"]}
    if plan.preset is not None and (data["question"] or plan.preset.task is not Task.QA):
        data.setdefault("task", plan.preset.task)
    try:
        layers = annotation_of(plan.parts, plan.unclear, flat, response, reading, data["meta"])
    except (UnclearLabelError, NoQuotationError) as error:
        if reading.labelled:
            raise
        if not reading.report.notes["labels_not_used"]:
            _LOG.warning("%s: labels are not used: %s", reading.source.path, error)
        reading.report.notes["labels_not_used"] += 1
        if isinstance(error, UnclearLabelError) and error.remedy:
            reading.state["unclear"] = error
        data["meta"] |= {column: flat.get(column) for part in LABEL_PARTS for column in plan.parts.get(part, ())}
        layers = ()
    sample = sample_from(data)
    return msgspec.structs.replace(sample, annotations=(*sample.annotations, *layers))


def _evidence(plan: _Plan, flat: Mapping[str, Any]) -> list[dict[str, Any]]:
    response = plan.parts["response"][0]
    values = {column: plain_value(flat.get(column)) for column in plan.parts.get("evidence", ())}
    if plan.preset and not (plan.stated or any(values.values())):  # DeepEval writes null for one of its contexts
        others = plan.preset.columns["evidence"].split("|")
        values = {column: flat.get(column) for column in others if _name(column) in _TABLE.names["evidence"][0]}
    passages = [
        passage
        for column, value in values.items()
        for passage in (_passages if _name(column) != "messages" and column != response else _of_tools)(value)
        if (text := str(passage["text"]).strip()).lower() not in EMPTY and not _SHEET_ERROR.fullmatch(text)
    ]
    ids = [passage.get("id") for passage in passages]
    if len(set(ids)) < len(ids):  # two chunks of one document; then the ids are p0, p1 ...
        passages = [{("document" if key == "id" else key): each for key, each in p.items()} for p in passages]
    return passages


def _rows_in(row: Any) -> Iterator[Any]:
    """The rows in a row: one per turn or response (Amazon Bedrock), one per annotator (Argilla), else itself."""
    if not isinstance(row, Mapping):
        yield row
        return
    for key in _TABLE.objects["rows"]:
        if isinstance(items := row.get(key), list) and items and isinstance(items[0], Mapping):
            yield from ({**row, key: None, **item} for item in items)
            return
    questions = dict(row["responses"]) if isinstance(row.get("responses"), Mapping) else {}
    for key in (key for key in row if row[key] and row.get(f"{key}.users")):  # flat rows of Argilla
        columns = (row[key], row[f"{key}.users"], row.get(f"{key}.status") or repeat("submitted"))
        questions[key.removesuffix(".responses")] = [
            {"value": value, "user_id": user, "status": status} for value, user, status in zip(*columns, strict=False)
        ]
    answers: dict[str, dict[str, Any]] = {}
    for question, items in questions.items():
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping) and "user_id" in item and item.get("status") in {None, "submitted"}:
                answers.setdefault(str(item["user_id"]), {})[question] = item.get("value")
    yield from ({**row, "responses": None, **each, "annotator": user} for user, each in answers.items())
    if not answers:
        yield row


def _is_ours(row: Mapping[str, Any]) -> bool:
    """Whether the native format can read the whole row."""
    evidence = row.get("evidence") or []
    passages = isinstance(evidence, list) and all(isinstance(p, dict) and type(p.get("text")) is str for p in evidence)
    return passages and not has_labels(row) and all(type(row.get(key)) is str for key in ("id", "response"))


class Columns(Format):
    """Rows with usual column names: JSON, JSON lines, CSV, TSV, Parquet, Arrow, and folders saved by `datasets`."""

    summary = "rows under any names; `--map` states them"
    containers = ("jsonl", "json", "csv", "tsv", "parquet", "arrow")
    columns = ("id", "question", "evidence", "response", "language", "model", "spans", "unsupported")
    fields = FIELDS["columns"]

    def sniff(self, head: Head) -> Sniff | None:
        """By column names; surer than the native format if that cannot read the first row."""
        if head.keys >= {"id", "status", "detector"} or not head.keys:
            return None
        try:
            plan = check_columns(head, {})
        except InputError as error:  # the native format would lose the evidence silently
            return Sniff(0.91, "unclear evidence") if "evidence could be in" in error.detail else None
        native = head.keys >= {"id", "response"} and head.container not in {"csv", "tsv"}
        other = plan.parts.get("evidence", ("evidence",)) != ("evidence",)  # which the native format would not read
        sure = 0.92 if native and head.record is not None and (other or not _is_ours(head.record)) else 0.5
        return Sniff(sure, str(plan))

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples and bad rows. If labels are required, a label with unknown meaning ends the file."""
        seen: set[str] = set()
        for record in rows_of_object(records) if is_one_object(reading.container, reading.source.look()) else records:
            if isinstance(record, FailedRow):
                yield record
                continue
            reading.line = record.line
            try:
                for index, row in enumerate(_rows_in(record.data)):
                    plan = _plan_of(row, reading.columns, seen)
                    seen |= row.keys()
                    _tell(plan, reading)
                    reading.shared = "annotator" in plan.parts or "annotator" in row.keys() - record.data.keys()
                    yield _sample(row, plan, reading, f"{reading.row_name}{f'-{index}' * bool(index)}")
            except UnclearLabelError as error:
                raise error.at(path=reading.source.path, line=record.line) from error
            except InputError as error:
                yield reading.bad(record, error)
        met: dict[str, tuple[str, ...]] = dict(reading.once("named", set))
        for part, column in reading.columns.items():
            if column and part not in met:
                _LOG.info("%s: no row has the column %s (%s)", reading.source.path, column, part)

    def samples(self, data: Any, reading: Reading) -> Iterator[Sample]:
        """The sample of one row."""
        yield sample_of(data, reading)

    def labels(self, sample: Sample) -> dict[str, Any]:
        """The first annotation: its spans as JSON with their text, and its label of the whole response."""
        labels: dict[str, Any] = {}
        for annotation in sample.annotations[:1]:
            labels["unsupported"] = annotation.ratings.get("unsupported")
            if annotation.spans is not None:
                spans = [{**span_fields(sample, span), "type": span.type} for span in annotation.spans]
                labels["spans"] = msgspec.json.encode(spans).decode()
        return labels


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
    plan = _plan_of(next(_rows_in(first.data if isinstance(first, Record) else row)), columns)
    if head.container in {"csv", "tsv", "parquet", "arrow"} and head.keys:  # all rows have the same columns
        for part in (each for each in columns if columns[each] and each not in plan.parts):
            raise InputError(f"there is no column {columns[part]!r}: its keys are {', '.join(_flat(row))}", field=part)
    return plan
