"""Ask the models of a study: one stage a model, every finished call in the cache of the run's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.build import Budget, Respondent, budget, plan, responses
from veriglot.llm import Limits, connect, preset
from veriglot.llm.store import Store
from veriglot.provenance import digest, file_sha256
from veriglot.records import Sample, encode
from veriglot.run import FailedRow, Progress
from veriglot.run.manifest import write_whole
from veriglot.study.files import all_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import msgspec

    from veriglot.llm import Client
    from veriglot.study.config import Config
    from veriglot.study.entries import ModelEntry
    from veriglot.study.folder import Folder

__all__ = ["ask_models", "budgets", "data_hashes", "planned_languages", "queries", "respondent_of"]


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
