"""Detection in Python: `detect` and `detect_many`, and the predictions that they return.

Detectors return records (`veriglot.records.Prediction`), which files store as JSON; a record of an unchecked response
has no spans. `detect` returns `Prediction` instead: a record with its sample, which raises an error if you ask for the
spans of an unchecked response.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Literal, TypeVar

import msgspec

from veriglot import records
from veriglot.detectors.registry import as_detector, load_detector
from veriglot.errors import InputError, InputTypeError, NotChecked, UsageError
from veriglot.formats.base import Reading, cell_text, language_tag, plain_value
from veriglot.formats.columns import object_passages, read_row, rows_reading
from veriglot.formats.reader import say_in_python
from veriglot.pipeline.engine import Engine
from veriglot.pipeline.progress import ProgressBar
from veriglot.records import Detector, Evidence, JudgedUnit, Sample, Span, Status, Verdict, Word, encode, sample_from
from veriglot.records.languages import get_language

__all__ = ["Prediction", "detect", "detect_many", "plain_cell", "sample_from_row"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """The result of a detector for one response.

    Look at `verdict` first: only checked responses have `spans`. Two predictions are equal if their records are equal.

    Attributes:
        record: the prediction as plug-ins return it and files store it; `spans` is None if the response was not
            checked.
        sample: the judged sample, for display; None if it is not available.
    """

    record: records.Prediction
    sample: Sample | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The sample's id."""
        return self.record.id

    @property
    def verdict(self) -> Verdict:
        """`supported`, `unsupported` (at least one span), or `not_checked`."""
        return self.record.verdict

    @property
    def status(self) -> Status:
        """`scored`, or the reason why there is no score."""
        return self.record.status

    @property
    def reason(self) -> str | None:
        """Why the response was not checked."""
        return self.record.reason

    @property
    def score(self) -> float | None:
        """Probability, 0 to 1, that the response has any unsupported span; None unless scored."""
        return self.record.score

    @property
    def spans(self) -> tuple[Span, ...]:
        """The unsupported spans, in order, half-open in code points.

        Raises:
            NotChecked: the status is not `scored`.
        """
        if self.record.spans is None:
            raise NotChecked(
                f"The response {self.id!r} was not checked ({self.status}): {self.reason}.",
                "Look at `verdict` first, or say what you want instead: get_spans(default).",
            )
        return self.record.spans

    def get_spans(self, default: T) -> tuple[Span, ...] | T:
        """The unsupported spans, or `default` if the response was not checked."""
        return default if self.record.spans is None else self.record.spans

    @property
    def words(self) -> tuple[Word, ...] | None:
        """Every word with its confidence, if they were requested and the response was checked."""
        return self.record.words

    @property
    def units(self) -> tuple[JudgedUnit, ...] | None:
        """The sentences or facts with their scores, if they were requested and the response was checked."""
        return self.record.units

    @property
    def language(self) -> str | None:
        """BCP 47 tag of the language that the detector assumed."""
        return self.record.language

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the prediction, such as `calibration:default`; docs/detect.md lists them."""
        return self.record.notes

    @property
    def detector(self) -> str:
        """Name and revision of the detector, such as `grounding@1.0`."""
        return self.record.detector

    @property
    def signature(self) -> str | None:
        """One line with the settings of the prediction."""
        return self.record.signature

    def to_dict(self) -> dict[str, Any]:
        """The record as `veriglot detect` writes it: plain data, without `spans` if the response was not checked."""
        plain: dict[str, Any] = msgspec.json.decode(encode(self.record))
        return plain

    def as_dicts(self) -> list[dict[str, Any]]:
        """The spans as dictionaries of `start`, `end`, `text`, `confidence` and, if known, `type` and `evidence`.

        Raises:
            NotChecked: the status is not `scored`.
        """
        plain: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(self.spans))
        return plain

    def __bool__(self) -> bool:
        raise TypeError(
            "A prediction is neither true nor false. Use prediction.verdict (supported, unsupported, not_checked)"
            " or prediction.spans."
        )

    def __repr__(self) -> str:
        marked = "" if self.record.spans is None else f" spans={[span.text for span in self.spans]!r}"
        return f"<Prediction {self.id!r} {self.verdict}{marked} detector={self.detector!r}>"

    def __str__(self) -> str:
        """The response with marked spans and the evidence below, as in a terminal; without the sample, the line of
        `repr`."""
        if self.sample is None:
            return repr(self)
        from rich.console import Console

        from veriglot.report.terminal import render_terminal

        text = io.StringIO()
        render_terminal(self.sample, self.record, Console(file=text, no_color=True, force_jupyter=False))
        return f"{self.verdict}: {text.getvalue()}".rstrip()

    def _repr_html_(self) -> str | None:
        """The marked text beside the evidence, for a notebook; without the sample, `repr`."""
        from veriglot.report.pages import fragment

        return None if self.sample is None else fragment(self.record, self.sample)


_load_once = cache(load_detector)


def _loaded(detector: str | Detector, threshold: float | None, words: bool, strictness: str) -> Detector:
    if isinstance(detector, str):
        return _load_once(detector, threshold=threshold, words=words, strictness=strictness)
    if threshold is not None or words or strictness != "normal":
        raise UsageError(
            "A detector that was loaded before keeps its own threshold, words and strictness.",
            "Give them to load_detector instead.",
        )
    return as_detector(detector)


def detect(
    evidence: str | Evidence | Sequence[str | Evidence] | None,
    *,
    response: str,
    question: str | None = None,
    language: str | None = None,
    detector: str | Detector = "auto",
    strictness: str = "normal",
    threshold: float | None = None,
    words: bool = False,
) -> Prediction:
    """Mark what the evidence does not support in one response.

    The detector is loaded once and cached. For many responses use `detect_many`.

    Args:
        evidence: one passage or several, as texts or as documents of LangChain, LlamaIndex or Haystack; support by any
            of them counts. If there is none, the status is `no_evidence`.
        response: the text to judge; keyword-only, because `assert_grounded` takes these two in the other order.
        question: the question, if known.
        language: BCP 47 tag of the response, or None to detect it.
        detector: a name, or a loaded detector.
        strictness: `low`, `normal` or `high`: how much is marked, false alarms included; only with a name.
        threshold: minimum confidence of a marked word, 0 to 1, instead of `strictness`; only with a name.
        words: whether the prediction has all words with their confidences; only with a name.

    Returns:
        A prediction; its `verdict` is `supported`, `unsupported` or `not_checked`.

    Raises:
        UnknownNameError: there is no such detector or language.
        InputTypeError: an argument is not a text; `field` names it. It is also a TypeError.
        UsageError: the detector does not have that strictness; or `threshold`, `words` or `strictness` was given for a
            loaded detector, which has its own.
    """
    row = {"response": response, "question": question, "language": _named(language), "evidence": evidence}
    sample = sample_from_row(row, "response")
    return Prediction(_loaded(detector, threshold, words, strictness).predict([sample])[0], sample)


def detect_many(
    rows: Iterable[Any],
    *,
    detector: str | Detector = "auto",
    strictness: str = "normal",
    threshold: float | None = None,
    words: bool = False,
    language: str | None = None,
    columns: Mapping[str, str] | None = None,
    batch_size: int = 32,
    processes: int = 1,
    progress: bool = False,
    on_error: Literal["stop", "skip"] = "stop",
) -> Iterator[Prediction]:
    """Mark what the evidence does not support in many responses, in the order of the rows.

    Rows are read lazily, at most one batch ahead, so the input may be endless or larger than memory.

    Args:
        rows: dictionaries with `response` and `evidence` (a text, texts, or objects with `text`), or with other common
            names (`formats.columns.read_row`; the log lists the names at level INFO), or `Sample`s; a list, any
            iterator, a table with such columns (pandas, polars, pyarrow, datasets), or several such tables. A row
            without an id gets its number, counted from 0.
        detector: as for `detect`, like `strictness`, `threshold` and `words`; with several processes it must be a name.
        strictness, threshold, words: options of the detector, only with a name.
        language: BCP 47 tag of rows that have none, or None to detect it.
        columns: mapping from sample field to column, such as `{"response": "reply"}`, as in `read`.
        batch_size: maximum number of rows judged together; 1 returns each prediction as soon as its row is there.
        processes: worker processes; 0 for one per core. A script then needs `if __name__ == "__main__":`.
        progress: whether to show a progress bar on standard error.
        on_error: what to do with an unreadable row: `stop` raises, `skip` returns it as `not_checked`.

    Returns:
        An iterator of predictions, one per row. Rows that cannot be judged are `not_checked`.

    Raises:
        InputTypeError: a row or one of its fields has the wrong type; the message names both. It is also a TypeError,
            and is raised after the predictions of the rows before it.
        InputError: a row lacks a field.
        UnknownNameError, UsageError: as for `detect`.
    """
    walked = any(hasattr(rows, name) for name in ("__iter__", "__getitem__", "collect", "to_batches"))
    if isinstance(rows, str | bytes | Mapping | Sample) or not walked:
        raise InputTypeError(
            f"rows are a list, an iterator or a table, and this is a {type(rows).__name__}",
            'Use veriglot.read(FILE) for a file, [row] for one row, and dataset["test"] for a split.',
        )
    if on_error not in ("stop", "skip"):
        raise UsageError(f"on_error is 'stop' or 'skip', and not {on_error!r}.")
    engine = Engine(partial(_loaded, detector, threshold, words, strictness), jobs=processes, batch_size=batch_size)
    failing = engine.description.name if on_error == "skip" else None
    samples = _samples(rows, _named(language), rows_reading(columns), failing)
    total = len(rows) if isinstance(rows, Sized) else None
    return _judged(engine, samples, ProgressBar(shown=progress, total=lambda: total))


def _judged(
    engine: Engine, samples: Iterator[Sample | records.Prediction | Exception], progress: ProgressBar
) -> Iterator[Prediction]:
    with engine, progress as bar:
        for sample, record in engine.run(samples):
            if isinstance(sample, Exception):
                raise sample
            bar.advance()
            judged = sample if isinstance(sample, records.Prediction) else record
            assert judged is not None
            yield Prediction(judged, sample if isinstance(sample, Sample) else None)


def _samples(
    rows: Iterable[Any], language: str | None, reading: Reading, failing: str | None
) -> Iterator[Sample | records.Prediction | Exception]:
    """The rows as samples; an error takes the place of its row, so that the rows before it are judged first.

    If `failing` is the name of a detector, an unreadable row becomes its failed prediction instead of an error.
    """
    try:
        for number, row in enumerate(_plain(rows)):
            try:
                sample = sample_from_row(row, str(number), f"rows[{number}]", reading)
            except InputError as error:
                if failing is None:
                    if number or not error.remedy:  # the remedy of the first row is one for all rows
                        remedy = (error.remedy or "Correct the row").removesuffix(".")
                        error.remedy = f'{remedy}, or say on_error="skip" to have it as not_checked.'
                    raise
                yield records.Prediction(str(_id_of(row, str(number))), Status.FAILED, failing, reason=str(error))
                continue
            if language and sample.language is None:
                sample = msgspec.structs.replace(sample, language=language)
            yield sample
    except Exception as error:
        yield error


def _plain(rows: Any) -> Iterator[Any]:
    """Rows of one table or several as dictionaries; other rows unchanged."""
    if hasattr(rows, "lazy") and hasattr(rows, "collect"):  # a LazyFrame of polars
        rows = rows.collect()
    if hasattr(rows, "to_batches"):  # a Table of pyarrow
        rows = rows.to_batches()
    if hasattr(rows, "iter_rows"):  # polars
        yield from rows.iter_rows(named=True)
    elif hasattr(rows, "to_pylist"):  # a RecordBatch of pyarrow; iterating over it gives columns
        yield from rows.to_pylist()
    elif hasattr(rows, "itertuples"):  # pandas, which uses NaN for missing values
        names = [str(name) for name in rows.columns]
        for values in rows.itertuples(index=False, name=None):
            yield {name: plain_cell(value) for name, value in zip(names, values, strict=True)}
    else:
        for row in rows:
            table = any(hasattr(row, name) for name in ("iter_rows", "to_pylist", "itertuples"))
            yield from _plain(row) if table else [row]


def plain_cell(value: Any) -> Any:
    """A cell of a table as `plain_value`; missing values are dropped from lists."""
    value = plain_value(value)
    return [part for part in map(plain_cell, value) if part is not None] if isinstance(value, list) else value


_FIELDS = frozenset(Sample.__struct_fields__)


def _tag(language: Any) -> Any:
    """The tag of a language given by any name; an unknown name is returned unchanged."""
    return (language_tag(language) or language) if isinstance(language, str) else language


def _named(language: Any) -> Any:
    """The tag of the language that a caller names.

    Raises:
        UnknownNameError: the name is unknown; tags of two or three letters are accepted without a check.
    """
    tag = _tag(language)
    if isinstance(tag, str) and len(tag.partition("-")[0]) > _LONGEST_TAG:
        get_language(tag)
    return tag


_LONGEST_TAG = 3  # letters of a language in a BCP 47 tag


def sample_from_row(
    row: Any,
    id_: str,
    path: str | None = None,
    reading: Reading | None = None,
    columns: Mapping[str, str] | None = None,
) -> Sample:
    """A row as a sample, with the field names of `Sample` or other common ones; `id_` is used if the row has no id."""
    if isinstance(row, Sample):
        return row
    if not isinstance(row, Mapping):
        raise InputTypeError(f"a dictionary or a Sample is expected, and this is a {type(row).__name__}", path=path)
    try:
        if not (reading and reading.columns) and not any((columns or {}).values()) and row.keys() <= _FIELDS:
            given = {key: value for key, value in row.items() if plain_value(value) is not None}
            texts = {
                part: cell_text(given[part], part)
                for part in ("response", "question")
                if isinstance(given.get(part), Mapping | list)
            }
            return sample_from({
                **given,
                **texts,
                "id": _id_of(row, id_),
                "language": _tag(given.get("language")),
                "evidence": _passages(row.get("evidence")),
            })  # fmt: skip
        return read_row(row, id_=id_, columns=columns, reading=reading)
    except InputError as error:
        say_in_python(error)
        named = path and row.get("id") is not None
        raise error.at(path=f"{path} (id {_id_of(row, id_)!r})" if named else path) from error


def _id_of(row: Any, id_: str) -> Any:
    """The id of a row, or `id_` if it has none."""
    own = row.get("id") if isinstance(row, Mapping) else None
    whole = type(own) is int or (isinstance(own, float) and own.is_integer())  # pandas turns 7 into 7.0
    return id_ if own is None else str(int(own)) if whole else own


def _document_text(value: Any) -> Any:
    """The text of a document of LangChain, LlamaIndex or Haystack; other values unchanged."""
    texts = (getattr(value, name, None) for name in ("page_content", "text", "content"))
    return next((text for text in texts if isinstance(text, str)), value)


def _passages(evidence: Any) -> Any:
    evidence = plain_cell(evidence)
    if evidence is None or evidence == "":
        return []
    passages = [evidence] if isinstance(evidence, str | Evidence | Mapping) else evidence
    if not isinstance(passages, Iterable) or isinstance(passages, bytes):
        raise InputTypeError(
            f"a text or a list of texts is expected, and this is {type(evidence).__name__}", field="evidence"
        )
    return [
        each
        for passage in passages
        for each in (
            [msgspec.to_builtins(passage)] if isinstance(passage, Evidence)
            else object_passages(passage) if isinstance(passage, Mapping)
            else [{"text": _document_text(passage)}]
        )
    ]  # fmt: skip
