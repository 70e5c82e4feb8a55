"""A study file: its tables as records, read and checked, and the folder of its run."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.datasets.responses import MFAVA_SEEDS, Design, Style
from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.http.session import refuse_given_key, refuse_secret_headers
from veriglot.llm.client import Settings
from veriglot.rates.estimators import DRAWS, ESTIMATORS
from veriglot.records import Estimator
from veriglot.records.languages import get_language
from veriglot.records.settings import read_toml_records
from veriglot.signatures import digest, file_sha256
from veriglot.storage.files import partial_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Config", "DetectorEntry", "Folder", "ModelEntry", "StudyEntry", "load"]


# The tables of a study file, as records: what may stand in it, with its defaults.


Paths = str | tuple[str, ...]


class StudyEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[study]`: what is estimated, and how.

    Attributes:
        title: heading of the report; None for the name of the file.
        languages: by tag, code or name, in the order of the report; empty for all that the data hold.
        unit: `char`, `word` or `hf:<tokenizer>`; the profile has to count the same.
        estimator: whose rates the report is about.
        estimators: further ones to show beside it.
        confidence: level of the intervals, above 0 and below 1.
        seed: of the resampling.
        draws: how often is resampled.
        pooled: use the profile's error rates over all languages where it holds a language not at all, or fewer than 8
            texts of it; the report says where.
    """

    title: str | None = None
    languages: tuple[str, ...] = ()
    unit: str = "word"
    estimator: Estimator = Estimator.LABEL_SHIFT
    estimators: tuple[Estimator, ...] = (Estimator.RAW, Estimator.PAPER)
    confidence: float = 0.95
    seed: int = 0
    draws: int = DRAWS
    pooled: bool = False


class QueriesEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[queries]`: what the models are asked."""

    path: Paths
    design: Design = "subsets"
    seeds: tuple[int, ...] = MFAVA_SEEDS
    format: str | None = None


class ResponsesEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[responses]`: responses that exist already."""

    path: Paths
    format: str | None = None
    language: str | None = None


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[models]]`: one model. Beside given responses, only `name`, `family`, `parameters` and `languages`.

    Attributes:
        name: in every table.
        family: models of one maker and generation.
        parameters: in billions.
        languages: how many its makers declare.
        client: a name of `llm.CLIENTS`.
        model: as its server names it; None for `name`.
        revision: of the weights.
        base_url: of the server.
        key: the environment variable that holds the key; never the key itself.
        script: the file of rules of the client `scripted`.
        preset: a name of `llm.presets()`, below `settings`.
        prompt: `closed`, `instructed` or `open`; see `build.answer_messages`.
        completion: go on from a text instead of chatting.
        settings: how it generates.
        price_in: what a million tokens of prompts cost, in any currency, for `--dry-run`.
        price_out: what a million tokens of replies cost.
        options: further options of the client, such as `timeout` (seconds) or `rate` (requests a second).
    """

    name: str
    family: str | None = None
    parameters: float | None = None
    languages: int | None = None
    client: str = "openai"
    model: str | None = None
    revision: str | None = None
    base_url: str | None = None
    key: str | None = None
    script: str | None = None
    preset: str | None = None
    prompt: Style = "closed"
    completion: bool = False
    settings: Settings = Settings()
    price_in: float | None = None
    price_out: float | None = None
    options: dict[str, Any] = {}


class DetectorEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[detectors]]`: one detector with its error profile.

    Attributes:
        name: of the detector, as for `veriglot detect`.
        label: its name in the run's folder; needed only where one detector is used twice.
        threshold: confidence from which a word is marked, 0 to 1; None for the profile's, or else the detector's own.
        profile: the file that `veriglot evaluate -o` wrote.
        labelled: instead of a profile, labelled samples to measure it on.
    """

    name: str = "grounding"
    label: str | None = None
    threshold: float | None = None
    profile: str | None = None
    labelled: str | None = None


class LabelsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[labels]`: gold labels of some of the study's own responses, for the estimator `ppi`."""

    path: Paths
    annotator: str | None = None
    format: str | None = None


class LimitsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`: what may be spent, and what runs at the same time."""

    calls: int | None = None
    tokens: int | None = None
    jobs: int = 8


class Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study file.

    `resources` are numbers by language that rates are held against, by what they are:
    `[resources."Wikipedia articles"]` with `de = 2900000` and so on.
    """

    study: StudyEntry = StudyEntry()
    queries: QueriesEntry | None = None
    responses: ResponsesEntry | None = None
    models: tuple[ModelEntry, ...] = ()
    detectors: tuple[DetectorEntry, ...] = ()
    labels: LabelsEntry | None = None
    limits: LimitsEntry = LimitsEntry()
    resources: dict[str, dict[str, float]] = {}


_DECLARED = {"name", "family", "parameters", "languages"}


@dataclass(frozen=True)
class Config:
    """A study file with its place.

    Attributes:
        path: the file.
        entries: what stands in it.
    """

    path: Path
    entries: Entries

    @property
    def study(self) -> StudyEntry:
        """`[study]`."""
        return self.entries.study

    @property
    def title(self) -> str:
        """The title, or the file's name without its suffix."""
        return self.study.title or self.path.stem

    @property
    def queries(self) -> QueriesEntry:
        """`[queries]`, of a study that asks its models."""
        assert self.entries.queries is not None
        return self.entries.queries

    @property
    def models(self) -> Sequence[ModelEntry]:
        """`[[models]]`."""
        return self.entries.models

    @property
    def detectors(self) -> Sequence[DetectorEntry]:
        """`[[detectors]]`."""
        return self.entries.detectors

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """The study's own estimator first, then the others, each once."""
        return tuple(dict.fromkeys((self.study.estimator, *self.study.estimators)))

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags that the file names; empty for all."""
        return tuple(dict.fromkeys(get_language(name).tag for name in self.study.languages))

    def by_tag(self, table: dict[str, float]) -> dict[str, float | None]:
        """Numbers by language as BCP 47 tags."""
        return {get_language(name).tag: value for name, value in table.items()}

    def place(self, path: str) -> Path:
        """Where a path of the file leads: it is relative to the folder that the file is in."""
        return self.path.parent / Path(path).expanduser()

    def places(self, paths: str | tuple[str, ...]) -> list[Path]:
        """The same of one path or several."""
        return [self.place(path) for path in ((paths,) if isinstance(paths, str) else paths)]

    @property
    def sha256(self) -> str:
        """Of the file."""
        return file_sha256(self.path)


def load(path: Path) -> Config:
    """Read a study file.

    Raises:
        InputError: it is no TOML, a key is unknown (with the nearest that are known), missing or of a wrong kind, or
            values do not go together; a file that it names does not exist.
        UnknownNameError: a language, estimator, client, preset or unit that does not exist.
    """
    try:
        config = Config(path, read_toml_records(path, Entries, "study"))
        for check in (_check_study, _check_sources, _check_models, _check_detectors):
            check(config)
    except InputError as error:
        raise error.at(path=str(path)) from None
    except VeriglotError as error:
        raise InputError(error.message, remedy=error.remedy, path=str(path)) from error
    return config


def _check_study(config: Config) -> None:
    from veriglot.metrics.spans import segmenter

    study = config.study
    segmenter(study.unit)
    config.languages  # noqa: B018  # an unknown one is refused here
    for table in config.entries.resources.values():
        config.by_tag(table)
    if not 0.0 < study.confidence < 1.0:
        raise InputError("a level lies between 0 and 1, such as 0.95", field="study.confidence")
    if study.draws < 100:
        raise InputError("an interval needs at least 100 draws", field="study.draws")
    if study.seed < 0:
        raise InputError("a seed is 0 or more", field="study.seed")


def _check_sources(config: Config) -> None:
    entries = config.entries
    if entries.responses is not None and entries.responses.language is not None:
        get_language(entries.responses.language)
    if (entries.queries is None) == (entries.responses is None):
        raise InputError(
            "a study asks queries or is given responses: it has either [queries] or [responses]", field="queries"
        )
    for field, entry in (("queries", entries.queries), ("responses", entries.responses), ("labels", entries.labels)):
        if entry is not None:
            places = config.places(entry.path)
            if not places:
                raise InputError("no file is named", field=f"{field}.path")
            for path in places:
                _exists(path, f"{field}.path")
    queries = entries.queries
    if queries is not None and (not queries.seeds or len(set(queries.seeds)) < len(queries.seeds)):
        raise InputError("a study needs at least one seed, and each seed once", field="queries.seeds")
    if Estimator.PPI in config.estimators and entries.labels is None:
        raise InputError("the estimator ppi needs labels of some of the study's responses", field="labels")
    limits = entries.limits
    for name, value, minimum in (("calls", limits.calls, 0), ("tokens", limits.tokens, 0), ("jobs", limits.jobs, 1)):
        if value is not None and value < minimum:
            raise InputError(f"this has to be at least {minimum}", field=f"limits.{name}")


def _exists(path: Path, field: str) -> None:
    if not path.exists():
        raise InputError(
            f"there is no file {path}", field=field, remedy="Paths are relative to the folder of the study file."
        )


def _check_models(config: Config) -> None:
    from veriglot.llm.client import preset
    from veriglot.llm.registry import CLIENTS

    asked = config.entries.queries is not None
    if asked and not config.models:
        raise InputError("there is no model to ask", field="models", remedy="Add a table [[models]].")
    _once((model.name for model in config.models), "models", "name")
    for number, model in enumerate(config.models):
        field = f"models[{number}]"
        if not model.name.strip():
            raise InputError("a model has a name", field=f"{field}.name")
        if not asked:
            _only_declared(model, field)
            continue
        CLIENTS.entry(model.client)
        _no_secrets(model, field)
        if model.preset is not None:
            preset(model.preset)
        if model.client == "openai" and not model.base_url:
            raise InputError("the client openai needs the address of a server", field=f"{field}.base_url")
        if model.client == "scripted" and not model.script:
            raise InputError("the client scripted needs the file of its rules", field=f"{field}.script")
        if model.script is not None:
            _exists(config.place(model.script), f"{field}.script")


def _no_secrets(model: ModelEntry, field: str) -> None:
    """Refuse keys in the file itself, which is copied into the run's folder."""
    headers = model.options.get("headers")
    try:
        if model.key is not None:
            refuse_given_key(model.key)
        if isinstance(headers, dict):
            refuse_secret_headers(dict.fromkeys(headers, ""))
    except UsageError as error:
        raise InputError(error.message, field=f"{field}.key", remedy=error.remedy) from None


def _only_declared(model: ModelEntry, field: str) -> None:
    plain = type(model)(model.name)
    for name in plain.__struct_fields__:
        if name not in _DECLARED and getattr(model, name) != getattr(plain, name):
            raise InputError(
                "the responses are given, so nothing is asked of this model",
                field=f"{field}.{name}",
                remedy="Beside [responses], a model has a name, family, parameters and languages only.",
            )


def _check_detectors(config: Config) -> None:
    if not config.detectors:
        raise InputError("there is no detector", field="detectors", remedy="Add a table [[detectors]].")
    _once((entry.label or entry.name for entry in config.detectors), "detectors", "label")
    wanting = [name for name in config.estimators if ESTIMATORS[name].needs_profile]
    for number, entry in enumerate(config.detectors):
        field = f"detectors[{number}]"
        if entry.threshold is not None and not 0.0 <= entry.threshold <= 1.0:
            raise InputError("a threshold is a probability between 0 and 1", field=f"{field}.threshold")
        if entry.profile is not None and entry.labelled is not None:
            raise InputError("a detector has either a profile or labelled data to measure it on", field=field)
        for name, path in (("profile", entry.profile), ("labelled", entry.labelled)):
            if path is not None:
                _exists(config.place(path), f"{field}.{name}")
        if entry.profile is None and entry.labelled is None and wanting:
            raise InputError(
                f"the estimators {', '.join(wanting)} need the detector's error profile",
                field=f"{field}.profile",
                remedy="Make one with `veriglot evaluate LABELLED -o profile.json`, or use raw or ppi alone.",
            )


def _once(names: Iterable[str], table: str, key: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]!r} occurs twice", field=f"{table}.{key}", remedy="Give each a name of its own.")


# The folder of a study's run: what lies where.


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(name: str) -> str:
    """A name as part of a path, on every system; other names never give the same.

    What is not a letter, digit, point, line or underscore becomes a line, and the name's hash is added where anything
    had to change (capitals count, since some systems do not tell them apart).
    """
    safe = _UNSAFE.sub("-", name).strip(".-")[:80]
    if safe == name and name == name.lower():
        return safe
    return f"{safe}-{digest([name])[:8]}"


class Folder:
    """Paths in the folder of a run.

    Args:
        path: the folder, which need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.study = path / "study.toml"
        self.plan = path / "plan.json"
        self.rates = path / "rates.json"
        self.results = path / "results.json"
        self.tables = path / "tables"
        self.report = path / "report.html"
        self.cache = path / "cache"
        self.given = path / "responses" / "given.json"

    def responses(self, model: str) -> Path:
        """The responses of one model."""
        return self.path / "responses" / f"{file_name(model)}.jsonl"

    def predictions(self, detector: str, model: str) -> Path:
        """What one detector (by its label) said of them."""
        return self.path / "predictions" / file_name(detector) / f"{file_name(model)}.jsonl"

    def profile(self, detector: str) -> Path:
        """The error profile that the run measured for a detector."""
        return self.path / "profiles" / f"{file_name(detector)}.json"

    def take(self) -> None:
        """Make the folder, or see that it is the folder of a run.

        Raises:
            UsageError: it is something else.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file.", remedy="Name a folder with -o.")
        if self.path.is_dir() and not self.study.exists() and any(self._foreign()):
            raise UsageError(
                f"{self.path} holds files, and is no run of a study.", remedy="Name a new or empty folder with -o."
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def _foreign(self) -> list[Path]:
        return [path for path in self.path.iterdir() if path.name not in {"run.lock", partial_path(self.study).name}]

    def clear(self) -> None:
        """Remove what the run made, but for the cache of calls: what was paid stays paid."""
        for name in ("responses", "predictions", "profiles", "tables"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for path in (self.plan, self.rates, self.results, self.report):
            path.unlink(missing_ok=True)
