"""Responses of a study: asked of its models with every call cached, or given by the user and brought in."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from veriglot.datasets.responses import Budget, Respondent, budget, plan, responses
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.llm.cache import Store
from veriglot.llm.limits import Limits
from veriglot.llm.presets import preset
from veriglot.llm.registry import connect
from veriglot.records import Sample, encode
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import FailedRow, InputFile, Progress
from veriglot.storage.files import open_whole, write_json, write_whole
from veriglot.study.files import all_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from veriglot.llm.client import Client
    from veriglot.study.config import Config, Folder, ModelEntry

__all__ = ["ask_models", "budgets", "data_hashes", "planned_languages", "queries", "respondent_of", "take_given"]


def queries(config: Config) -> Iterator[Sample | FailedRow]:
    """The queries in the languages of the study, in the order of the files; rows that cannot be read among them."""
    entry = config.entries.queries
    assert entry is not None
    wanted = set(config.languages)
    for row in rows_of(_query_files(config), format_name=entry.format, language=None):
        if isinstance(row, FailedRow) or not wanted or row.language is None or row.language in wanted:
            yield row


def data_hashes(config: Config) -> list[str]:
    """SHA-256 of the files of queries or of given responses, in order."""
    entry = config.entries.queries or config.entries.responses
    assert entry is not None
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
    entry = config.entries.queries
    assert entry is not None
    return {
        model.name: budget(queries(config), respondent_of(config, model), design=entry.design, seeds=entry.seeds)
        for model in config.models
    }


def planned_languages(config: Config) -> dict[tuple[str, int | None], int]:
    """How many responses the design asks of every model, by language and seed."""
    entry = config.entries.queries
    assert entry is not None
    counts: dict[tuple[str, int | None], int] = {}
    for row in plan(queries(config), "", design=entry.design, seeds=entry.seeds):
        if not isinstance(row, FailedRow):
            key = (row.query.language or "und", row.seed)
            counts[key] = counts.get(key, 0) + 1
    return counts


def ask_models(
    config: Config, folder: Folder, *, seen: Callable[[str, msgspec.Struct | FailedRow], None] | None = None
) -> dict[str, int]:
    """Make the responses of every model, or what is missing of them; calls that gave nothing are tried again.

    A model whose responses are all there is not connected to: that needs no key and no server.

    Args:
        config: the study.
        folder: of the run.
        seen: called with the model's name for every row that this call adds.

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
    asked = config.entries.queries
    assert asked is not None
    return responses(
        output,
        queries(config),
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
    entry = config.entries.queries
    assert entry is not None
    return all_files(config.places(entry.path))


def _key(config: Config, entry: ModelEntry) -> str:
    """What the responses of a model hang on, so far as the study file and the files it names say it."""
    asked = config.entries.queries
    assert asked is not None
    files = [*_query_files(config), *([config.place(entry.script)] if entry.script else [])]
    respondent = respondent_of(config, entry)
    parts: list[str | bytes] = [
        encode(entry),
        encode(asked),
        respondent.prompt,
        *config.languages,
        *(file_sha256(path) for path in files),
    ]
    return digest(parts)


class Given(msgspec.Struct, frozen=True):
    """What was brought in.

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


class _Sorting:
    """Files that are being filled, one a model."""

    def __init__(self, folder: Folder, stack: ExitStack) -> None:
        self.files: dict[str, BinaryIO] = {}
        self.languages: dict[str, Counter[str]] = {}
        self._folder, self._stack = folder, stack

    def add(self, model: str, sample: Sample) -> None:
        if model not in self.files:
            self.files[model] = self._stack.enter_context(open_whole(self._folder.responses(model)))
            self.languages[model] = Counter()
        self.files[model].write(encode(sample) + b"\n")
        self.languages[model][sample.language or "und"] += 1


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
    known = {file.sha256: file for file in before.inputs} if before is not None else {}
    inputs = tuple(_described(path, known) for path in paths)
    options = (entry.format, entry.language, *config.languages, *(model.name for model in config.models))
    if before is not None and _same(before, inputs, options, folder):
        return before
    folder.given.parent.mkdir(parents=True, exist_ok=True)
    failed_path = folder.given.with_name("given.failed.jsonl")
    declared, wanted = [model.name for model in config.models], set(config.languages)
    failed = left_out = 0
    with ExitStack() as stack:
        sorting = _Sorting(folder, stack)
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
                sorting.add(_model_of(row, declared), row)
        _all_there(declared, sorting.files)
    if not failed:
        failed_path.unlink()
    given = Given(
        inputs,
        models={model: sorting.languages[model].total() for model in sorting.files},
        languages={model: dict(counts) for model, counts in sorting.languages.items()},
        left_out=left_out,
        failed=failed,
        sizes={model: folder.responses(model).stat().st_size for model in sorting.files},
        options=options,
    )
    write_json(folder.given, given, indent=0)
    return given


def _before(folder: Folder) -> Given | None:
    try:
        return msgspec.json.decode(folder.given.read_bytes(), type=Given)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        return None  # of another version: it is made anew


def _described(path: Path, known: dict[str, InputFile]) -> InputFile:
    state = path.stat()
    same = (f for f in known.values() if f.path == str(path) and f.size == state.st_size)
    return InputFile.of(str(path), next(same, None))


def _same(before: Given, inputs: tuple[InputFile, ...], options: tuple[str | None, ...], folder: Folder) -> bool:
    if [file.sha256 for file in before.inputs] != [file.sha256 for file in inputs] or before.options != options:
        return False
    places = {model: folder.responses(model) for model in before.models}
    return all(path.exists() and path.stat().st_size == before.sizes[model] for model, path in places.items())


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
