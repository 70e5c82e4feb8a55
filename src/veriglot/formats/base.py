"""Base class of formats: detection, conversion of records to samples and back, checks of offsets, and reports."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

from veriglot.errors import InputError, InputTypeError, UsageError
from veriglot.plugins import Entry, Registry, read_package_data
from veriglot.records import Annotation, Evidence, Generator, Sample, Span, Task, decode_json
from veriglot.records.languages import find_language, same_language
from veriglot.records.taxonomy import taxonomy
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.formats.containers import Head, Record, Records, Source

__all__ = [
    "FIELDS",
    "FORMATS",
    "FileReport",
    "Format",
    "Reading",
    "Report",
    "Sniff",
    "TagReport",
    "beside_spans",
    "grouped",
    "language_tag",
    "load_format",
    "need",
    "optional",
    "present",
    "spanned_annotation",
    "type_in",
]

T = TypeVar("T")

_TARGETS = read_package_data(__package__, "formats.toml", dict[str, str])
FORMATS = Registry(
    "format", "veriglot.formats", {name: Entry(f"veriglot.formats.{target}") for name, target in _TARGETS.items()}
)
"""Name of a format to its class, imported on use."""


def load_format(name: str) -> Format:
    """The format with a name.

    Raises:
        UnknownNameError: no such format; the error suggests the most similar ones.
    """
    return cast("Format", FORMATS.load(name)())


class Sniff(NamedTuple):
    """How sure a format is that a file is its own (0 to 1), and why."""

    confidence: float
    why: str


@dataclass(frozen=True)
class Fields:
    """Which key of a record has which field of a sample, for reading and writing; None if there is no key.

    Attributes:
        response: the response; `evidence` is a single passage, with its `title` and `url`.
        language: the response's language, also of the evidence unless there is an `evidence_language`.
        task: of every sample, unless `tasks` contains the record's `task_type`, in lower case.
        needed: required text keys besides the response (`id` may be a number).
        meta: keys that are copied to `meta`.
    """

    response: str
    question: str | None = None
    evidence: str | None = None
    title: str | None = None
    url: str | None = None
    language: str | None = None
    evidence_language: str | None = None
    model: str | None = None
    task: Task = Task.OPEN
    tasks: Mapping[str, Task] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()


FIELDS = read_package_data(__package__, "fields.toml", dict[str, Fields])


class Format:
    """A file format of labelled responses.

    A format with one key per field defines `fields`, `annotations` and, if it is writable, `labels`; others define
    `samples` and `record`.

    Attributes:
        summary: one line of description.
        containers: containers of its records; the first is used for writing.
        companions: names of files beside its own that are read with them.
        keys: the keys (columns of a table) by which `sniff` detects its files; a format without keys defines its own
            `sniff`.
        any_keys: keys of which a file must have at least one, besides `keys`.
        confidence: how sure the detection by keys is, 0 to 1.
        takes_lines: whether its records are lines of text that the format parses itself, such as tables without header
            or quotes; then `samples` gets lines, whatever the container looks like.
        writable: whether it can be written.
        columns: header, for formats written as CSV.
        fields: which key of a record has which field of a sample.
    """

    summary: ClassVar[str]
    containers: ClassVar[tuple[str, ...]] = ("jsonl", "json", "parquet")
    companions: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    any_keys: ClassVar[tuple[str, ...]] = ()
    confidence: ClassVar[float] = 0.95
    takes_lines: ClassVar[bool] = False
    writable: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()
    fields: ClassVar[Fields]

    def sniff(self, head: Head) -> Sniff | None:
        """Whether a file with this beginning has this format, by default by `keys`; None if it certainly does not."""
        present_keys = [key for key in self.any_keys if key in head.keys]
        if not self.keys or not head.keys.issuperset(self.keys) or (self.any_keys and not present_keys):
            return None
        *others, last = (f"`{key}`" for key in (*self.keys, *present_keys))
        named = f"{', '.join(others)} and {last}" if others else last
        return Sniff(self.confidence, f"the {'columns' if self.containers[0] in {'csv', 'tsv'} else 'keys'} {named}")

    def reads_beside(self, file: Path) -> bool:
        """Whether a file is read with the format's own files, without having the format itself."""
        return any(file.match(pattern) for pattern in self.companions)

    def rows(self, records: Records, reading: Reading) -> Iterator[Sample | FailedRow]:
        """Samples and bad rows of a file, in order."""
        for record in records:
            if isinstance(record, FailedRow):
                yield record
                continue
            reading.line = record.line
            try:
                yield from self.samples(record.data, reading)
            except InputError as error:
                yield reading.bad(record, error)
            except ValueError as error:  # from the validation of records, such as two passages with one id
                yield reading.bad(record, InputError(str(error)))

    def samples(self, data: Any, reading: Reading) -> Iterable[Sample | FailedRow]:
        """The samples of one record, by default one by `fields`; an unreadable part is a failed row.

        Raises:
            InputError: the record does not fit the format; `field` names the position.
        """
        fields = self.fields
        response = need(data, fields.response, str)
        for key in fields.needed:
            if key != "id" or not data.get("id"):
                need(data, key, str)
        language = self.language(data, response, reading)
        meta = {key: data[key] for key in fields.meta if data.get(key) not in (None, {})}
        annotations = tuple(self.annotations(data, response, meta, reading))
        yield Sample(
            str(data["id"]) if "id" in fields.needed else reading.row_id(data),
            response,
            task=fields.tasks.get(str(data.get("task_type")).lower(), fields.task),
            language=language,
            question=self.question(data),
            evidence=tuple(self.passages(data, language, reading)),
            generator=self.generator(data),
            annotations=annotations,
            meta=meta,
        )

    def tag_of(self, code: str) -> str | None:
        """The BCP 47 tag of a language code of the format; None if it is unknown."""
        return language_tag(code)

    def language(self, data: Any, response: str, reading: Reading) -> str | None:  # noqa: ARG002
        """The language of the response, by default from the record, or else the reader's default."""
        code = _text(data, self.fields.language)
        return self.tag_of(code) if code else reading.language

    def question(self, data: Any) -> str | None:
        """The question, if there was one."""
        return _text(data, self.fields.question)

    def passages(self, data: Any, language: str | None, reading: Reading) -> Iterator[Evidence]:  # noqa: ARG002
        """The evidence, by default a single passage."""
        fields = self.fields
        text = _text(data, fields.evidence)
        if fields.evidence_language:
            code = _text(data, fields.evidence_language)
            language = self.tag_of(code) if code else None
        if text:
            yield Evidence(text, title=_text(data, fields.title), language=language, url=_text(data, fields.url))

    def generator(self, data: Any) -> Generator | None:
        """The model of the response, if the record names one."""
        model = _text(data, self.fields.model)
        return Generator(model) if model else None

    def annotations(self, data: Any, response: str, meta: dict[str, Any], reading: Reading) -> Iterable[Annotation]:  # noqa: ARG002
        """The labels of a record, by default none. Data that do not fit an annotation go into `meta`."""
        return ()

    def record(self, sample: Sample) -> Any:
        """The sample as a record of the container, by default by `fields`.

        The writer records what is lost when it is read back.

        Raises:
            InputError: the format cannot represent this sample at all.
        """
        fields = self.fields
        first = sample.evidence[0] if sample.evidence else None
        values = {
            "id": sample.id,
            fields.language: sample.language,
            fields.evidence_language: first and first.language,
            fields.question: sample.question,
            fields.response: sample.response,
            fields.model: sample.generator and sample.generator.name,
            fields.evidence: sample.evidence_text,
            fields.title: first and first.title,
            fields.url: first and first.url,
        }
        values.pop(None, None)
        row = values | {key: sample.meta[key] for key in fields.meta if key in sample.meta} | self.labels(sample)
        return present(row)

    def labels(self, sample: Sample) -> dict[str, Any]:  # noqa: ARG002
        """The labels in a record besides `fields`, by default none."""
        return {}


@dataclass
class Reading:
    """The state of reading one file.

    Attributes:
        source: the file.
        report: counts of repairs and observations.
        strict: whether anything that needs a repair is an error.
        language: BCP 47 tag to use if neither the file nor its name has one; None leaves it unset.
        columns: mapping from sample field to column, from the caller.
        labelled: whether labels with unknown meaning are an error.
        named: whether the caller named the format.
        container: container of the records.
        line: the line of the current record.
        shared: whether other rows may have other people's labels of its response.
        state: a format's own state while it reads the file.
    """

    source: Source
    report: FileReport
    strict: bool = False
    language: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    labelled: bool = False
    named: bool = False
    container: str = "jsonl"
    line: int = 0
    shared: bool = False
    state: dict[str, Any] = field(default_factory=dict)

    def repaired(self, kind: str, message: str, *, where: str | None = None) -> None:
        """Count a repair.

        Raises:
            InputError: repairs are refused (`strict`).
        """
        if self.strict:
            raise InputError(message, "Without strict this is repaired and counted.", field=where)
        self.report.notes[kind] += 1

    def once(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make`, computed once per file."""
        if name not in self.state:
            self.state[name] = make()
        made: T = self.state[name]
        return made

    def beside(self, name: str) -> Path | None:
        """The file with that name beside the input file; None if there is none."""
        file = self.source.file and self.source.file.with_name(name)
        return file if file and file.is_file() else None

    @property
    def row_name(self) -> str:
        """The name of a row without an id: file name and line."""
        return f"{self.source.stem}-{self.line}"

    def row_id(self, data: Any) -> str:
        """The id of a row: its own `id`, or file name and line."""
        return optional(data, "id", str) or self.row_name

    def bad(self, record: Record, error: InputError) -> FailedRow:
        """The record as an unreadable row."""
        raw = (record.raw or b"").decode("utf-8", "replace")
        return FailedRow.of(error.at(path=self.source.path, line=record.line), raw)

    def placed(self, start: int, end: int, where: str, text: str) -> tuple[int, int] | None:
        """A half-open range in `text`. An empty one gives None; one that ends one character too far is shortened.

        Both are counted in the report.

        Raises:
            InputError: the range is not in the text, or a repair is needed and refused.
        """
        length = len(text)
        if start == end and 0 <= start <= length:
            self.repaired("empty_spans", f"the span [{start}, {end}) is empty", where=where)
            return None
        if end == length + 1 and 0 <= start < length:
            self.repaired("spans_cut_to_the_text", f"[{start}, {end}) ends one beyond {length}", where=where)
            end = length
        if not 0 <= start < end <= length:
            raise InputError(f"[{start}, {end}) does not lie in the response of {length} code points", field=where)
        return start, end

    def located(self, marked: str | None, start: int, end: int, where: str, text: str) -> tuple[int, int] | None:
        """The half-open range of a span whose text may be given too: if the offsets do not fit, the text decides.

        Args:
            marked: the span's text, or None if the file has none; then the offsets are used unchanged.
            start: first position in the file's counting.
            end: one past the last position, in the file's counting.
            where: field, for messages.
            text: the response.

        Raises:
            InputError: the span's text is not in the response, or a repair is needed and refused.
        """
        if marked is None:
            return self.placed(start, end, where, text)
        if not marked.strip():
            self.repaired("empty_spans", "the span holds no text", where=where)
            return None
        if start >= 0 and text[start:end] == marked:
            return start, end
        occurrences = (match.start() for match in re.finditer(f"(?={re.escape(marked)})", text))
        nearest = min(occurrences, key=lambda index: abs(index - start), default=None)
        if nearest is None:
            raise InputError(f"the text of the span, {marked[:60]!r}, is not in the response", field=where)
        self.repaired("offsets_corrected_by_text", f"[{start}, {end}) does not hold {marked[:60]!r}", where=where)
        return nearest, nearest + len(marked)

    def ranges(
        self, items: Any, name: str, text: str, *, by_text: bool = False
    ) -> Iterator[tuple[tuple[int, int], Any, str]]:
        """The half-open ranges of a list in a file, each with its item and the item's field.

        Args:
            items: pairs `[start, end]`, or objects with `start` and `end`.
            name: field of the list.
            text: the response.
            by_text: whether the `text` of an object decides if its offsets do not fit.

        Raises:
            InputError: an item has neither form, or is not in the text.
        """
        if not isinstance(items, list):
            raise InputError("a list is expected", field=name)
        for index, item in enumerate(items):
            where = f"{name}[{index}]"
            if isinstance(item, dict):
                start, end = (need(item, edge, int, within=where) for edge in ("start", "end"))
            elif isinstance(item, list) and len(item) == 2 and all(type(edge) is int for edge in item):
                start, end = item
            else:
                raise InputError("`start` and `end`, or a pair of whole numbers, are expected", field=where)
            marked = optional(item, "text", str) if by_text and isinstance(item, dict) else None
            edges = self.located(marked, start, end, where, text)
            if edges is not None:
                yield edges, item, where

    def stated_language(self, data: Any) -> str | None:
        """The tag in the `language` of a row, unchanged if it is unknown; None if there is none."""
        tag = optional(data, "language", str)
        return (language_tag(tag) or tag) if tag else None

    def language_of_file(self) -> str | None:
        """The language of a file whose rows have none: the reader's default, else the one in the file's name.

        The explicit default takes precedence: `ben.txt` may be Bengali, or notes by Ben.
        """
        return self.language or _language_in_name(self.source.stem)

    def identified(self, text: str) -> str | None:
        """The detected language of a response, for formats whose rows may lack it; None if unclear.

        It is counted in the report, and never assumed from the language of a format's published data.
        """
        language = _language_of([text])
        self.report.notes["languages_identified" if language else "languages_unknown"] += 1
        return language

    def pair_of(self, texts: Iterable[tuple[str, str]]) -> tuple[str | None, str | None]:
        """BCP 47 tags of source and target of a file whose rows have none, detected once; None if unclear.

        They are detected from the file's first texts together, because rows are short and a hallucinated translation
        may be in the wrong language. A pair in the file's name (`mqm_ted_zhen.tsv`, `news.en-de.tsv`) is used if the
        texts have at least one of the two languages, so that `test.tsv` does not become Telugu to Southern Sotho.
        Nothing is assumed from the pair of a published data set.

        Args:
            texts: pairs of a source text and its translation, from the beginning of the file.
        """
        if "pair" not in self.state:
            taken = list(islice(texts, 100))
            seen = tuple(_language_of([pair[side] for pair in taken]) for side in (0, 1))
            named: tuple[str | None, str | None] | None
            named = next((pair for pair in pairs_in_name(self.source.stem) if any(map(_same, pair, seen))), None)
            if named is None:
                self.report.notes["languages_identified"] += sum(tag is not None for tag in seen)
                named = seen[0], seen[1]
            source, target = (tag if tag and _same(name, tag) else name for name, tag in zip(named, seen, strict=True))
            self.state["pair"] = source, self.language or target
        return cast("tuple[str | None, str | None]", self.state["pair"])


def grouped(
    records: Records, reading: Reading, parsed: Callable[[Any], T | None], key: Callable[[T], object]
) -> Iterator[list[T] | FailedRow]:
    """Groups of consecutive parsed records with the same key, and bad rows; a bad row does not end a group."""
    group: list[T] = []
    for record in records:
        if isinstance(record, FailedRow):
            yield record
            continue
        reading.line = record.line
        try:
            row = parsed(record.data)
        except InputError as error:
            yield reading.bad(record, error)
            continue
        if row is not None and group and key(row) != key(group[0]):
            yield group
            group = []
        group += [row] if row is not None else []
    if group:
        yield group


# The language in a file's name (`silver_gold_german.json` -> de, `xquad.zh.json` -> zh-Hans), or of its text.


_WORDS_THAT_ARE_NO_LANGUAGE = frozenset({"and", "as", "is", "in", "to", "so", "no", "or", "be", "wiki", "gold", "test"})
# Spellings that occur only in published file names.
_FILE_SPELLINGS = {"latina": "la", "zh-yue": "yue", "malay": "ms", "persian": "fa"}
_HALVES = re.compile(r"([a-z]{2,3})[-_]?([a-z]{2,3})")


def language_tag(name: str) -> str | None:
    """The BCP 47 tag of a language given by any name or tag; None if it is unknown."""
    entry = find_language(_FILE_SPELLINGS.get(name.lower(), name.replace("_", "-")))
    return entry.tag if entry else None


def _language_in_name(file_name: str) -> str | None:
    """The tag of the last part of a file name (without folders) that names a language."""
    parts = re.split(r"[_.\s]+", file_name.lower())
    named = (language_tag(p) for p in reversed(parts) if p not in _WORDS_THAT_ARE_NO_LANGUAGE and len(p) > 1)
    return next(filter(None, named), None)


def pairs_in_name(stem: str) -> list[tuple[str, str]]:
    """All pairs of languages that a part of a file's name may mean: `ende`, `en-de`, `eng_deu`."""
    pairs = []
    parts = re.split(r"[_.\s]+", stem.lower())
    for part in [*parts, *(f"{a}-{b}" for a, b in pairwise(parts))]:
        match = _HALVES.fullmatch(part)
        if match is None or ("-" not in part and len(part) != 4):
            continue
        source, target = (language_tag(half) for half in match.groups())
        if source and target and source != target:
            pairs.append((source, target))
    return pairs


def _same(named: str | None, seen: str | None) -> bool:
    return named is not None and seen is not None and same_language(named, seen)


def _language_of(texts: list[str]) -> str | None:
    """The language of most of the texts, weighted by length."""
    from veriglot.text.identification import identify

    weight = Counter[str]()
    for text in texts:
        if (language := identify(text)) is not None:
            weight[language.tag] += len(text)
    return next((tag for tag, _ in weight.most_common(1)), None)


_KINDS: dict[type, str] = {
    str: "text", int: "a whole number", float: "a number", list: "a list", dict: "an object", bool: "true or false",
    type(None): "null",
}  # fmt: skip


def need(data: Any, key: str, kind: type[T], *, within: str = "") -> T:
    """`data[key]`, checked to have the type `kind`.

    Raises:
        InputError: `data` is not an object, or the key is missing or has another type.
    """
    path = f"{within}.{key}" if within else key
    if not isinstance(data, dict):
        raise InputError(f"an object is expected here, but this is {_kind_of(data)}", field=within or None)
    value: Any = data.get(key)
    if value is None:
        raise InputError("the field is missing", "If the file is in another format, name it.", field=path)
    if kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{_KINDS.get(kind, kind.__name__)} is expected, but this is {_kind_of(value)}", field=path)
    return value


def _kind_of(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def optional(data: Any, key: str, kind: type[T]) -> T | None:
    """`data[key]` checked to have the type `kind`, or None if it is missing, null, or empty text.

    Raises:
        InputError: it has another type, or `data` is not an object.
    """
    if isinstance(data, dict) and data.get(key) in (None, ""):
        return None
    return need(data, key, kind)


def _text(data: Any, key: str | None) -> str | None:
    return optional(data, key, str) if key else None


def present(data: Mapping[str, Any]) -> dict[str, Any]:
    """The members of `data` that are not null."""
    return {key: value for key, value in data.items() if value is not None}


# Values of cells.


_ROLES = {
    "response": ("assistant", "ai", "AIMessageChunk", "gpt", "model"), "question": ("user", "human"),
    "evidence": ("tool", "function"), "": ("system", "developer"),
}  # fmt: skip
# NumPy prints no commas between texts.
_LITERAL = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""


def plain_value(value: Any) -> Any:
    """A numpy or column value as a Python value; None for missing values, such as NaN and pandas' NA."""
    if as_list := getattr(value, "tolist", None) or getattr(value, "to_list", None):
        value = as_list()
    return value if (value != value) is False else None


def decoded_value(value: Any) -> Any:
    """The value of a text that is JSON or a printed Python list; other values and texts unchanged."""
    value = plain_value(value)
    if not isinstance(value, str) or value.strip()[:1] + value.strip()[-1:] not in {"[]", "{}"}:
        return value
    try:
        return decode_json(value)
    except InputError:
        try:
            return ast.literal_eval(re.sub(rf"({_LITERAL})(?=\s+['\"])", r"\1,", value.strip()))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value


def is_conversation(value: Any) -> bool:
    """Whether a value has the form of messages of OpenAI, LangChain or ShareGPT: one, a list, or an API response."""
    messages = _messages(value)
    return bool(messages) and all(isinstance(each, Mapping) and {"role", "content"} <= each.keys() for each in messages)


def _messages(value: Any) -> list[Any]:
    chosen, content = "", None
    for key in ("body", "message", "output", "choices", "candidates"):  # of a batch, and of its content
        if isinstance(value, Mapping) and isinstance(value.get(key), dict | list):
            value, chosen = value[key], key
            if key == "output":  # also has reasoning and tool calls
                value = [each for each in value if isinstance(each, Mapping) and "role" in each]
    if isinstance(value, list) and value and isinstance(first := value[0], Mapping):  # the first choice counts
        if chosen == "choices" or "finish_reason" in first:
            content = first.get("text")  # of a completion without messages
        elif chosen == "candidates":
            with suppress(LookupError, TypeError, AttributeError):  # it was blocked
                parts = first["content"]["parts"]
                content = [{"type": "text", **part} for part in parts if not part.get("thought")]
        elif isinstance(content := first.get("generated_text"), list):  # with the prompt's messages
            return content
        value = first.get("message", value) if content is None else {"role": "assistant", "content": content}
    return list(map(_message, value if isinstance(value, list) else [value]))


def _message(value: Any) -> Any:
    """A message of LangChain (with `type`, also stored ones) or ShareGPT (`from`, `value`) in OpenAI's form."""
    if not isinstance(value, Mapping) or "role" in value:
        return value
    whole = {**value, **next((value[key] for key in ("data", "kwargs") if isinstance(value.get(key), Mapping)), {})}
    role, content = whole.get("type", whole.get("from")), whole.get("content", whole.get("value"))
    return value if content is None or str(role) not in chain(*_ROLES.values()) else {"role": role, "content": content}


def messages_of(value: Any, part: str) -> list[Mapping[str, Any]] | None:
    """The messages of a conversation for one field of a sample; None if the value is not a conversation.

    Args:
        value: of a column.
        part: `response`, `question`, or `evidence`: only messages of tools, because the others are not evidence.

    Raises:
        InputError: there are no such messages, and the field is not the question.
    """
    roles = _ROLES.get(part)
    if roles is None or not is_conversation(value):
        return None
    messages = [each for each in _messages(value) if each["role"] in roles]
    if not messages and part != "question":
        remedy = f"Give it in messages with that role, in a column of its own (--map {part}=COLUMN), or by"
        remedy += f" its place: --map {part}=messages.0.content for the first message."
        raise InputError(f"no message has the role {roles[0]}", remedy, field=part)
    return messages


def cell_text(value: Any, part: str) -> str | None:
    """The text of a response or a question: a text, a number, or the last of its messages in a conversation."""
    value = plain_value(value)
    messages = messages_of(decoded_value(value), part)
    if messages is not None:
        value = messages[-1].get("content") if messages else None
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = value.get("content", value.get("text", value))
    objects = isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
    if objects and all("text" in str(each.get("type", [*each])) for each in value):
        return "".join(str(each.get("text") or "") for each in value)
    text = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
    if isinstance(text, str):
        return text
    if isinstance(text, int | float) and not isinstance(text, bool):
        return str(int(text)) if text == text // 1 and abs(text) < 1e16 else str(text)  # 7 may be stored as 7.0
    count = f" of {len(value)}" if isinstance(value, list | tuple) else ""
    remedy = f"Give the path of the text in it, such as --map {part}=COLUMN.0.text."
    raise InputTypeError(f"a text is expected, but this is {type(value).__name__}{count}", remedy, field=part)


def spanned_annotation(sample: Sample, annotator: str | None = None) -> Annotation | None:
    """The annotation of `annotator`, or else the first, that has spans; None if there is none."""
    spanned = [annotation for annotation in sample.annotations if annotation.spans is not None]
    return next((annotation for annotation in spanned if annotation.annotator == annotator), next(iter(spanned), None))


def span_fields(sample: Sample, span: Span) -> dict[str, Any]:
    """The range of a span and its text, as most formats write them."""
    return {"start": span.start, "end": span.end, "text": sample.response[span.start : span.end]}


def beside_spans(sample: Sample, key: str, spans: Sequence[Span]) -> list[Any] | None:
    """The list in `meta` under `key`, one item per span; None if it does not fit the spans."""
    items = sample.meta.get(key)
    return items if isinstance(items, list) and len(items) == len(spans) else None


def type_in(target: str, annotation: Annotation, span: Span) -> str | None:
    """The span's type in the taxonomy `target`; None if it has no counterpart or the taxonomies have no mapping."""
    try:
        return taxonomy(annotation.taxonomy).to(target).get(span.type or "")
    except UsageError:
        return None


@dataclass
class TagReport:
    """Counts of tags, each in exactly one place: `seen == parsed + repaired.total() + reported.total()`.

    Attributes:
        seen: tags and fragments of tags; an opener and its closer are two.
        parsed: valid tags.
        repaired: kind of repair to count; the tag's span was kept.
        reported: kind of error to count; the tag gave no span.
        spans: span type to count of the resulting spans.
    """

    seen: int = 0
    parsed: int = 0
    repaired: Counter[str] = field(default_factory=Counter)
    reported: Counter[str] = field(default_factory=Counter)
    spans: Counter[str] = field(default_factory=Counter)

    def add(self, other: TagReport) -> None:
        """Add other counts to these."""
        self.seen += other.seen
        self.parsed += other.parsed
        self.repaired.update(other.repaired)
        self.reported.update(other.reported)
        self.spans.update(other.spans)


@dataclass
class FileReport:
    """Counts from reading one file.

    Attributes:
        path: the file.
        format: the format of the file.
        why: how the format was detected.
        samples: number of samples.
        bad: number of rows that did not become a sample.
        notes: repairs and observations other than tags, by kind; counts of occurrences (not rows).
        tags: tags by layer ("gold", "silver"; "response" if the error is in the response itself).
    """

    path: str
    format: str
    why: str = ""
    samples: int = 0
    bad: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    tags: dict[str, TagReport] = field(default_factory=dict)

    def layer(self, name: str) -> TagReport:
        """The counts of the tags of one layer."""
        return self.tags.setdefault(name, TagReport())

    def all_tags(self) -> TagReport:
        """The tags of all layers together."""
        total = TagReport()
        for report in self.tags.values():
            total.add(report)
        return total


@dataclass
class Report:
    """Result of reading: files in the order of reading, and skipped files with the reason."""

    files: dict[str, FileReport] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
