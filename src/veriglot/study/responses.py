"""Responses of a study: asked of its models with every call cached, or given by the user; and what they would take."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from veriglot.datasets.responses import Budget, Respondent, budget, plan, responses
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.reader import SeenIds, files_in, read_rows
from veriglot.llm.client import Client, preset
from veriglot.llm.registry import Limits, connect, spent_in
from veriglot.records import Prediction, Sample, encode
from veriglot.records.languages import UNDETERMINED, tag_of
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256
from veriglot.storage.checkpoint import FailedRow, Progress, without_side_files
from veriglot.storage.files import open_whole, write_json, write_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from veriglot.pipeline.progress import Watch
    from veriglot.study.config import Config, Folder, ModelEntry

__all__ = [
    "Plan",
    "Rehearsal",
    "all_files",
    "joined",
    "made_samples",
    "make_responses",
    "pairs",
    "rehearse",
    "respondent_of",
    "rows_of",
]


R = TypeVar("R")


def all_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and in place of a folder those inside it, in order of their names, without what runs left there."""
    return [file for path in paths for file in (without_side_files(files_in(path)) if path.is_dir() else [path])]


def rows_of(
    paths: Sequence[Path],
    *,
    format_name: str | None,
    language: str | None,
    columns: Mapping[str, str] | None = None,
    seen: SeenIds | None = None,
) -> Iterator[Sample | FailedRow]:
    """The rows of files and folders in any readable format; those that cannot be read come as `FailedRow`.

    Args:
        paths: the files and folders.
        format_name: their format; None to recognise it.
        language: of samples that state none.
        columns: part of a sample to the column that holds it, where any are stated.
        seen: ids that may not occur again.

    Raises:
        InputError: a file cannot be read at all.
    """
    seen = seen or SeenIds()
    for path in paths:
        for row in read_rows(path, format=format_name, language=tag_of(language), seen=seen, columns=columns):
            if isinstance(row, Sample) and row.language != (tag := tag_of(row.language)):
                yield replace(row, language=tag)
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
            raise InputError(f"the prediction of {prediction.id!r} belongs to another response", path=str(predictions))
        yield sample, prediction
    if next(samples, None) is not None:
        raise InputError("there are fewer predictions than responses", path=str(predictions))


def _decoded(path: Path, kind: type[R]) -> Iterator[R]:
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"it was changed after it was made: {error}",
                    "Type the command again with --overwrite.",
                    path=str(path),
                    line=number,
                ) from None


def joined(
    samples: Iterable[Sample], predictions: Iterable[Prediction]
) -> Iterator[tuple[Sample | None, Prediction | None]]:
    """Predictions in their order, each with the sample of its id (None where there is none); then samples without one.

    What comes early waits, so two files in the same order take no memory.

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
        yield sample, prediction
    for sample in chain(early.values(), source):
        yield sample, None


# Responses.


class Plan(Record):
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


def make_responses(config: Config, folder: Folder, watch: Watch) -> tuple[Plan, int]:
    """Have the responses in the folder of a run, asked or given; the plan, and how many rows came to nothing.

    Raises:
        InputError: a file cannot be read, or a response names no model.
        UsageError: the responses were begun differently; a model that the study lists gave no response, or one that it
            does not list did.
        ModelError: what every further call would meet too, such as a spending limit; what is done is kept.
    """
    labels = tuple(entry.unique_name for entry in config.detectors)
    if config.responses is not None:
        watch.begin("reading responses", None)
        models, left_out, failed = _take_given(config, folder, watch)
        if left_out:
            watch.say(f"{left_out:,} responses are in languages that the study does not ask for.")
        given = {model: {tag: {"-": count} for tag, count in counts.items()} for model, counts in models.items()}
        made = Plan(config.title, labels, given, asked=False)
        write_json(folder.plan, made)
        return made, failed
    asked = config.asked
    planned: dict[str, dict[str, int]] = defaultdict(Counter)
    for row in plan(_queries(config), "", design=asked.design, seeds=asked.seeds):
        if not isinstance(row, FailedRow):
            seed = "-" if row.seed is None else str(row.seed)
            planned[row.query.language or UNDETERMINED][seed] += 1
    made = Plan(config.title, labels, {entry.name: planned for entry in config.models}, asked=True)
    write_json(folder.plan, made)
    watch.begin("asking models", sum(made.responses(model) for model in made.models))
    return made, _ask_models(config, folder, watch)


def _queries(config: Config) -> Iterator[Sample | FailedRow]:
    """The queries in the languages of the study, in the order of the files; rows that cannot be read among them."""
    rows = rows_of(config.places(config.asked.path), format_name=config.asked.format, language=None)
    return (row for row in rows if isinstance(row, FailedRow) or _is_wanted(row, config.languages))


def _is_wanted(row: Sample, languages: Collection[str]) -> bool:
    return not languages or row.language is None or row.language in languages


def respondent_of(config: Config, entry: ModelEntry) -> Respondent:
    """A model of the study file as `build` asks it."""
    return Respondent(
        name=entry.name,
        model=_server_name(config, entry),
        revision=entry.revision,
        style=entry.prompt,
        settings=entry.settings if entry.preset is None else entry.settings.with_defaults(preset(entry.preset)),
        completion=entry.completion,
    )


def _ask_models(config: Config, folder: Folder, watch: Watch) -> int:
    """Make the responses of every model, or what is missing of them; how many calls gave nothing, which are repeated.

    A model whose responses are all there is not connected to: that needs no key and no server.
    """
    limits, asked = _limits(config, folder), config.asked
    failed = 0
    for entry in config.models:
        output = folder.responses(entry.name)
        mark = output.with_name(output.name + ".asked")
        key = _key(config, entry)
        before = Progress.of(output)
        if before.finished and not before.failed and mark.exists() and mark.read_text("utf-8") == key:
            continue
        client = _connect(config, entry, folder, limits)
        try:
            failed += responses(
                output,
                _queries(config),
                respondent_of(config, entry),
                client,
                design=asked.design,
                seeds=asked.seeds,
                inputs=[str(path) for path in _query_files(config)],
                jobs=config.limits.jobs,
                retry=True,
                seen=lambda _: watch.advance(),
            ).failed
        finally:
            client.close()
        write_whole(mark, key.encode())
    return failed


def _limits(config: Config, folder: Folder) -> Limits | None:
    """What the study may still spend: what its earlier runs paid counts."""
    wanted = config.limits
    if wanted.calls is None and wanted.tokens is None:
        return None
    return Limits(wanted.calls, wanted.tokens, spent=spent_in(folder.cache))


def _connect(config: Config, entry: ModelEntry, folder: Folder, limits: Limits | None) -> Client:
    stated = {
        "base_url": entry.base_url,
        "key": entry.key,
        "rules": None if entry.script is None else config.place(entry.script),
        "model": _server_name(config, entry) if entry.client == "transformers" else None,
        "revision": None if entry.client == "scripted" else entry.revision,
    }
    options = entry.options | {name: value for name, value in stated.items() if value is not None}
    return connect(entry.client, cache=folder.cache, limits=limits, **options)


def _server_name(config: Config, entry: ModelEntry) -> str:
    """What the client knows the model by; a local model may be a folder beside the study file."""
    name = entry.model or entry.name
    if entry.client == "transformers" and config.place(name).is_dir():
        return str(config.place(name))
    return name


def _query_files(config: Config) -> list[Path]:
    return all_files(config.places(config.asked.path))


def _key(config: Config, entry: ModelEntry) -> str:
    """What the responses of a model hang on, so far as the study file and the files it names say it."""
    files = [*_query_files(config), *([config.place(entry.script)] if entry.script else [])]
    hashes = (file_sha256(path) for path in files)
    prompt = respondent_of(config, entry).prompt
    return digest([encode(entry), encode(config.asked), prompt, *config.languages, *hashes])


def _given_rows(config: Config) -> Iterator[Sample | FailedRow]:
    entry = config.responses
    assert entry is not None
    return rows_of(config.places(entry.path), format_name=entry.format, language=entry.language, columns=entry.columns)


def _take_given(config: Config, folder: Folder, watch: Watch) -> tuple[dict[str, Counter[str]], int, int]:
    """Sort the given responses by model into the run's folder; rows that cannot be read go to `given.failed.jsonl`.

    Returns model to language (`und` where none is stated) to responses; how many are in other languages, or unreadable.
    """
    failed_path = folder.path / "responses" / "given.failed.jsonl"
    failed_path.parent.mkdir(parents=True, exist_ok=True)
    declared = [model.name for model in config.models]
    languages: dict[str, Counter[str]] = {}
    files: dict[str, BinaryIO] = {}
    failed = left_out = 0
    with ExitStack() as stack:
        failures = stack.enter_context(open_whole(failed_path))
        for number, row in enumerate(_given_rows(config)):
            watch.advance()
            if isinstance(row, FailedRow):
                failures.write(encode(replace(row, row=number)) + b"\n")
                failed += 1
            elif not _is_wanted(row, config.languages):
                left_out += 1
            else:
                model = _model_of(row, declared)
                if model not in files:
                    files[model] = stack.enter_context(open_whole(folder.responses(model)))
                files[model].write(encode(row) + b"\n")
                languages.setdefault(model, Counter())[row.language or UNDETERMINED] += 1
        if missing := [name for name in declared if name not in files]:
            raise UsageError(
                f"No response is by the model {missing[0]!r}.", "Use the name in `generator.name` of the responses."
            )
        if not files:
            raise UsageError("There are no responses in the languages that the study asks for.")
    if not failed:
        failed_path.unlink()
    return languages, left_out, failed


def _model_of(sample: Sample, declared: Collection[str]) -> str:
    if sample.generator is None:
        raise InputError(
            f"the response {sample.id!r} does not say which model gave it",
            'Write it as "generator": {"name": "..."}.',
            field="generator.name",
        )
    name = sample.generator.name
    if declared and name not in declared:
        raise UnknownNameError("model in the study file", name, declared)
    return name


# The rehearsal: what a study would take.


class ModelCost(Budget, kw_only=True):
    """What one model would take; of given responses, only the languages.

    Attributes:
        model: its name.
        done: how many calls the run's folder has already.
        cost: the most that all calls may cost, in the currency of the prices; None without prices or `tokens_out`.
    """

    model: str
    done: int
    cost: float | None


class Rehearsal(Record):
    """What a study would take.

    Attributes:
        title: of the study.
        models: each.
        calls: calls that are still to be made, at most.
        judgements: responses that the detectors are to judge, all together.
        unreadable: rows of the input that cannot be read.
        limits: calls and tokens that may be spent; None for no bound.
        enough: whether the limits let the study finish; None where that is not known.
    """

    title: str
    models: tuple[ModelCost, ...]
    calls: int
    judgements: int
    unreadable: int
    limits: tuple[int | None, int | None]
    enough: bool | None


def rehearse(config: Config, folder: Folder) -> Rehearsal:
    """Count; nothing is asked, and nothing written.

    Raises:
        InputError: a file of the study cannot be read.
    """
    models, unreadable = (_asked(config, folder), 0) if config.queries is not None else _given(config)
    limits = config.limits
    return Rehearsal(
        title=config.title,
        models=tuple(models),
        calls=sum(model.calls - model.done for model in models),
        judgements=sum(sum(model.languages.values()) for model in models) * len(config.detectors),
        unreadable=unreadable,
        limits=(limits.calls, limits.tokens),
        enough=_enough(models, limits.calls, limits.tokens),
    )


def _asked(config: Config, folder: Folder) -> list[ModelCost]:
    asked, costs = config.asked, []
    for entry in config.models:
        needed = budget(_queries(config), respondent_of(config, entry), design=asked.design, seeds=asked.seeds)
        cost = None
        if entry.price_in is not None and entry.price_out is not None and needed.tokens_out is not None:
            cost = (needed.tokens_in * entry.price_in + needed.tokens_out * entry.price_out) / 1e6
        done = Progress.of(folder.responses(entry.name)).done
        costs.append(ModelCost(**asdict(needed), model=entry.name, done=done, cost=cost))
    return costs


def _given(config: Config) -> tuple[list[ModelCost], int]:
    counts: dict[str, Counter[str]] = {model.name: Counter() for model in config.models}
    unreadable = 0
    for row in _given_rows(config):
        if isinstance(row, FailedRow):
            unreadable += 1
        elif _is_wanted(row, config.languages):
            name = row.generator.name if row.generator is not None else ""
            counts.setdefault(name, Counter())[row.language or UNDETERMINED] += 1
    return [
        ModelCost(0, 0, 0, 0, dict(sorted(languages.items())), model=name, done=0, cost=None)
        for name, languages in counts.items()
    ], unreadable


def _enough(models: list[ModelCost], calls: int | None, tokens: int | None) -> bool | None:
    if calls is not None and sum(model.calls for model in models) > calls:
        return False
    # What replies take is not always known: that of prompts alone may be too much already.
    known = all(model.tokens_out is not None for model in models)
    enough = tokens is None or sum(model.tokens_in + (model.tokens_out or 0) for model in models) <= tokens
    return enough if tokens is None or known or not enough else None
