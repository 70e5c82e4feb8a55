"""Responses of a study: asked of its models with every call cached, or given by the user; and rows of its files."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import msgspec

from veriglot.datasets.responses import Budget, Respondent, budget, plan, responses
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.reader import SeenIds, files_in, read_rows
from veriglot.llm.client import preset
from veriglot.llm.registry import Limits, Store, connect
from veriglot.records import Prediction, Sample, encode
from veriglot.records.languages import tag_of
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import FailedRow, InputFile, Progress, without_traces
from veriglot.storage.files import open_whole, write_json, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.llm.client import Client
    from veriglot.study.config import Config, Folder, ModelEntry

__all__ = [
    "Joining",
    "Plan",
    "all_files",
    "ask_models",
    "budgets",
    "data_hashes",
    "made_samples",
    "pairs",
    "planned_languages",
    "respondent_of",
    "rows_of",
    "take_given",
]


R = TypeVar("R")


def all_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and in place of a folder those inside it, in order of their names, without what runs left there."""
    return [file for path in paths for file in (without_traces(files_in(path)) if path.is_dir() else [path])]


def rows_of(paths: Sequence[Path], *, format_name: str | None, language: str | None) -> Iterator[Sample | FailedRow]:
    """The rows of several files in any readable format; those that cannot be read come as `FailedRow`.

    Args:
        paths: the files.
        format_name: their format; None to recognise it.
        language: of samples that state none.

    Raises:
        InputError: a file cannot be read at all.
    """
    seen = SeenIds()
    for path in paths:
        for row in read_rows(path, format=format_name, language=tag_of(language), seen=seen):
            if isinstance(row, Sample) and row.language != (tag := tag_of(row.language)):
                yield msgspec.structs.replace(row, language=tag)
            else:
                yield row


def made_samples(path: Path) -> Iterator[Sample]:
    """The samples of a file that this run made."""
    return _decoded(path, Sample)


def pairs(responses: Path, predictions: Path) -> Iterator[tuple[Sample, Prediction]]:
    """Each response of a model with its prediction, in order.

    Raises:
        InputError: the two files do not belong together.
    """
    samples = made_samples(responses)
    for prediction in _decoded(predictions, Prediction):
        sample = next(samples, None)
        if sample is None or sample.id != prediction.id:
            raise InputError(
                f"the prediction of {prediction.id!r} stands beside another response", path=str(predictions)
            )
        yield sample, prediction
    if next(samples, None) is not None:
        raise InputError("there are fewer predictions than responses", path=str(predictions))


def _decoded(path: Path, kind: type[R]) -> Iterator[R]:
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"it was changed after it was made: {error}",
                    path=str(path),
                    line=number,
                    remedy="Type the command again with --overwrite.",
                ) from None


class Joining:
    """Pairs of two streams. What comes early waits, so two files in the same order take no memory.

    Attributes:
        without_sample: predictions that no sample has the id of; known once the pairs were read.
        without_prediction: samples without a prediction, by (model, language, seed); likewise.
    """

    def __init__(self) -> None:
        self.without_sample = 0
        self.without_prediction: Counter[tuple[str | None, str | None, int | None]] = Counter()

    def pairs(
        self, samples: Iterable[Sample], predictions: Iterable[Prediction]
    ) -> Iterator[tuple[Sample, Prediction]]:
        """Each sample that has a prediction, with it; in the order of the predictions.

        Args:
            samples: each id once.
            predictions: in any order.

        Raises:
            InputError: two predictions share an id.
        """
        source = iter(samples)
        early: dict[str, Sample] = {}
        met = SeenIds()
        for prediction in predictions:
            if not met.is_new(prediction.id):
                raise InputError(f"the id {prediction.id!r} occurs twice among the predictions", field="id")
            sample = early.pop(prediction.id, None)
            while sample is None and (following := next(source, None)) is not None:
                if following.id == prediction.id:
                    sample = following
                else:
                    early[following.id] = following
            if sample is None:
                self.without_sample += 1
            else:
                yield sample, prediction
        for left in chain(early.values(), source):
            name, seed = (left.generator.name, left.generator.seed) if left.generator is not None else (None, None)
            self.without_prediction[name, tag_of(left.language), seed] += 1


# Responses.


class Plan(msgspec.Struct, frozen=True):
    """What a run sets out to do.

    Attributes:
        title: of the study.
        detectors: labels.
        models: model -> language -> seed (`-` for none or unknown) -> planned responses.
        asked: whether models are asked; False for given responses.
    """

    title: str
    detectors: tuple[str, ...]
    models: dict[str, dict[str, dict[str, int]]]
    asked: bool

    def responses(self, model: str) -> int:
        """Planned responses of a model."""
        return sum(sum(seeds.values()) for seeds in self.models[model].values())


def _queries(config: Config) -> Iterator[Sample | FailedRow]:
    """The queries in the languages of the study, in the order of the files; rows that cannot be read among them."""
    entry = config.queries
    wanted = set(config.languages)
    for row in rows_of(_query_files(config), format_name=entry.format, language=None):
        if isinstance(row, FailedRow) or not wanted or row.language is None or row.language in wanted:
            yield row


def data_hashes(config: Config) -> list[str]:
    """SHA-256 of the files of queries or of given responses, in order."""
    entry = config.entries.responses or config.queries
    return [file_sha256(path) for path in all_files(config.places(entry.path))]


def respondent_of(config: Config, entry: ModelEntry) -> Respondent:
    """A model of the study file as `build` asks it."""
    settings = entry.settings if entry.preset is None else entry.settings.over(preset(entry.preset))
    return Respondent(
        name=entry.name,
        model=_server_name(config, entry),
        revision=entry.revision,
        style=entry.prompt,
        settings=settings,
        completion=entry.completion,
    )


def budgets(config: Config) -> dict[str, Budget]:
    """What each model would be asked, whatever is done or cached."""
    entry = config.queries
    return {
        model.name: budget(_queries(config), respondent_of(config, model), design=entry.design, seeds=entry.seeds)
        for model in config.models
    }


def planned_languages(config: Config) -> Counter[tuple[str, int | None]]:
    """How many responses the design asks of every model, by language and seed."""
    entry = config.queries
    rows = plan(_queries(config), "", design=entry.design, seeds=entry.seeds)
    return Counter((row.query.language or "und", row.seed) for row in rows if not isinstance(row, FailedRow))


def ask_models(
    config: Config, folder: Folder, *, seen: Callable[[str, msgspec.Struct | FailedRow], None] | None = None
) -> dict[str, int]:
    """Make the responses of every model, or what is missing of them; calls that gave nothing are tried again.

    A model whose responses are all there is not connected to: that needs no key and no server. `seen` is called with
    the model's name for every row that this call adds.

    Returns:
        Model -> calls that gave nothing.

    Raises:
        UsageError: the responses were begun otherwise.
        ModelError: what every further call would meet too, such as a spending limit; what is done is kept.
    """
    limits = _limits(config, folder)
    failed = {}
    for entry in config.models:
        output = folder.responses(entry.name)
        mark = output.with_name(output.name + ".asked")
        key = _key(config, entry)
        before = Progress.of(output)
        if before.finished and not before.failed and mark.exists() and mark.read_text("utf-8") == key:
            failed[entry.name] = 0
            continue
        client = _connect(config, entry, folder, limits)
        try:
            failed[entry.name] = _ask(config, entry, client, output, seen)
        finally:
            client.close()
        write_whole(mark, key.encode())
    return failed


def _ask(
    config: Config,
    entry: ModelEntry,
    client: Client,
    output: Path,
    seen: Callable[[str, msgspec.Struct | FailedRow], None] | None,
) -> int:
    asked = config.queries
    return responses(
        output,
        _queries(config),
        respondent_of(config, entry),
        client,
        design=asked.design,
        seeds=asked.seeds,
        inputs=[str(path) for path in _query_files(config)],
        jobs=config.entries.limits.jobs,
        retry=True,
        seen=None if seen is None else lambda row: seen(entry.name, row),
    ).failed


def _limits(config: Config, folder: Folder) -> Limits | None:
    """What the study may still spend: what its earlier runs paid counts."""
    wanted = config.entries.limits
    if wanted.calls is None and wanted.tokens is None:
        return None
    store = Store(folder.cache)
    try:
        return Limits(wanted.calls, wanted.tokens, spent=store.spent())
    finally:
        store.close()


def _connect(config: Config, entry: ModelEntry, folder: Folder, limits: Limits | None) -> Client:
    options: dict[str, Any] = dict(entry.options)
    if entry.base_url is not None:
        options["base_url"] = entry.base_url
    if entry.key is not None:
        options["key"] = entry.key
    if entry.script is not None:
        options["rules"] = config.place(entry.script)
    if entry.client == "transformers":
        options["model"] = _server_name(config, entry)
    if entry.revision is not None and entry.client != "scripted":
        options["revision"] = entry.revision
    return connect(entry.client, cache=folder.cache, limits=limits, **options)


def _server_name(config: Config, entry: ModelEntry) -> str:
    """What the client knows the model by; a local model may be a folder beside the study file."""
    name = entry.model or entry.name
    if entry.client == "transformers" and config.place(name).is_dir():
        return str(config.place(name))
    return name


def _query_files(config: Config) -> list[Path]:
    return all_files(config.places(config.queries.path))


def _key(config: Config, entry: ModelEntry) -> str:
    """What the responses of a model hang on, so far as the study file and the files it names say it."""
    files = [*_query_files(config), *([config.place(entry.script)] if entry.script else [])]
    respondent = respondent_of(config, entry)
    parts: list[str | bytes] = [
        encode(entry),
        encode(config.queries),
        respondent.prompt,
        *config.languages,
        *(file_sha256(path) for path in files),
    ]
    return digest(parts)


class Given(msgspec.Struct, frozen=True):
    """What was brought in, from which files with which options; it stands in `responses/given.json`.

    Attributes:
        inputs: the files that it came from.
        models: responses of each model, in the order in which the models appear.
        languages: model -> language (`und` where none is stated) -> responses.
        left_out: responses in languages that the study does not ask for.
        failed: rows that could not be read.
        sizes: bytes of the file of each model.
    """

    inputs: tuple[InputFile, ...]
    models: dict[str, int]
    languages: dict[str, dict[str, int]]
    left_out: int
    failed: int
    sizes: dict[str, int]
    options: tuple[str | None, ...] = ()


def take_given(config: Config, folder: Folder, *, seen: Callable[[Sample | FailedRow], None] | None = None) -> Given:
    """Sort the given responses by model into the run's folder, unless that was done from the same files.

    A row that cannot be read stands in `responses/given.failed.jsonl`, and is counted.

    Args:
        config: the study; models that it lists have to be there, and others are refused.
        folder: of the run.
        seen: called for every row.

    Raises:
        InputError: a file cannot be read, or a response names no model.
        UsageError: a model that the study lists gave no response, or one that it does not list did.
    """
    entry = config.entries.responses
    assert entry is not None
    paths = all_files(config.places(entry.path))
    before = _before(folder)
    inputs = tuple(_described(path, () if before is None else before.inputs) for path in paths)
    options = (entry.format, entry.language, *config.languages, *(model.name for model in config.models))
    if before is not None and _same(before, inputs, options, folder):
        return before
    folder.given.parent.mkdir(parents=True, exist_ok=True)
    failed_path = folder.given.with_name("given.failed.jsonl")
    declared, wanted = [model.name for model in config.models], set(config.languages)
    languages: dict[str, Counter[str]] = {}
    files: dict[str, BinaryIO] = {}
    failed = left_out = 0
    with ExitStack() as stack:
        failures = stack.enter_context(open_whole(failed_path))
        for number, row in enumerate(rows_of(paths, format_name=entry.format, language=entry.language)):
            if seen is not None:
                seen(row)
            if isinstance(row, FailedRow):
                failures.write(encode(msgspec.structs.replace(row, row=number)) + b"\n")
                failed += 1
            elif wanted and row.language is not None and row.language not in wanted:
                left_out += 1
            else:
                model = _model_of(row, declared)
                if model not in files:
                    files[model] = stack.enter_context(open_whole(folder.responses(model)))
                files[model].write(encode(row) + b"\n")
                languages.setdefault(model, Counter())[row.language or "und"] += 1
        _all_there(declared, files)
    if not failed:
        failed_path.unlink()
    given = Given(
        inputs,
        models={model: counts.total() for model, counts in languages.items()},
        languages={model: dict(counts) for model, counts in languages.items()},
        left_out=left_out,
        failed=failed,
        sizes={model: folder.responses(model).stat().st_size for model in files},
        options=options,
    )
    write_json(folder.given, given, indent=0)
    return given


def _before(folder: Folder) -> Given | None:
    try:
        return msgspec.json.decode(folder.given.read_bytes(), type=Given)
    except (FileNotFoundError, msgspec.DecodeError):
        return None  # or of another version: it is made anew


def _described(path: Path, known: Sequence[InputFile]) -> InputFile:
    same = (file for file in known if file.path == str(path) and file.size == path.stat().st_size)
    return InputFile.of(str(path), next(same, None))


def _same(before: Given, inputs: tuple[InputFile, ...], options: tuple[str | None, ...], folder: Folder) -> bool:
    if [file.sha256 for file in before.inputs] != [file.sha256 for file in inputs] or before.options != options:
        return False
    paths = {model: folder.responses(model) for model in before.models}
    return all(path.exists() and path.stat().st_size == before.sizes[model] for model, path in paths.items())


def _model_of(sample: Sample, declared: Collection[str]) -> str:
    if sample.generator is None:
        raise InputError(
            f"the response {sample.id!r} does not say which model gave it",
            field="generator.name",
            remedy='Write it as "generator": {"name": "..."}.',
        )
    name = sample.generator.name
    if declared and name not in declared:
        raise UnknownNameError("model in the study file", name, declared)
    return name


def _all_there(declared: Collection[str], present: Collection[str]) -> None:
    missing = [name for name in declared if name not in present]
    if missing:
        raise UsageError(
            f"No response is of the model {missing[0]!r}.",
            remedy="Its name has to be that of `generator.name` in the responses.",
        )
    if not present:
        raise UsageError("There are no responses in the languages that the study asks for.")
