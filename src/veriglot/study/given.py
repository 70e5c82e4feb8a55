"""Given responses, brought into the run's folder: one file a model, in one pass, whole or not at all."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records import encode
from veriglot.run import FailedRow, InputFile
from veriglot.run.manifest import write_whole
from veriglot.study.files import all_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from veriglot.records import Sample
    from veriglot.study.config import Config
    from veriglot.study.folder import Folder

__all__ = ["Given", "take_given"]


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
        self.files: dict[str, tuple[Path, BinaryIO]] = {}
        self.languages: dict[str, Counter[str]] = {}
        self._folder, self._stack = folder, stack

    def add(self, model: str, sample: Sample) -> None:
        if model not in self.files:
            path = self._folder.responses(model)
            partial = path.with_name(path.name + ".partial")
            self.files[model] = (path, self._stack.enter_context(partial.open("wb")))
            self.languages[model] = Counter()
        self.files[model][1].write(encode(sample) + b"\n")
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
        failures = stack.enter_context(failed_path.with_name(failed_path.name + ".partial").open("wb"))
        for place, row in enumerate(rows_of(paths, format_name=entry.format, language=entry.language)):
            if seen is not None:
                seen(row)
            if isinstance(row, FailedRow):
                failures.write(encode(msgspec.structs.replace(row, row=place)) + b"\n")
                failed += 1
            elif wanted and row.language is not None and row.language not in wanted:
                left_out += 1
            else:
                sorting.add(_model_of(row, declared), row)
    _all_there(declared, sorting.files)
    for path, _ in sorting.files.values():
        path.with_name(path.name + ".partial").replace(path)
    failed_path.with_name(failed_path.name + ".partial").replace(failed_path)
    if not failed:
        failed_path.unlink()
    given = Given(
        inputs,
        models={model: sorting.languages[model].total() for model in sorting.files},
        languages={model: dict(counts) for model, counts in sorting.languages.items()},
        left_out=left_out,
        failed=failed,
        sizes={model: path.stat().st_size for model, (path, _) in sorting.files.items()},
        options=options,
    )
    write_whole(folder.given, msgspec.json.encode(given) + b"\n")
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


def _all_there(declared: Collection[str], found: Collection[str]) -> None:
    missing = [name for name in declared if name not in found]
    if missing:
        raise UsageError(
            f"No response is of the model {missing[0]!r}.",
            remedy="Its name has to be that of `generator.name` in the responses.",
        )
    if not found:
        raise UsageError("There are no responses in the languages that the study asks for.")
