"""A study file: its tables as records, read and validated, and the folder of its run."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from veriglot.datasets.responses import MFAVA_SEEDS, Design, Style
from veriglot.errors import InputError, UsageError
from veriglot.http.session import refuse_secrets
from veriglot.llm.client import Settings, preset
from veriglot.rates.estimators import DRAWS, ESTIMATORS
from veriglot.records import ErrorProfile, Estimator
from veriglot.records.languages import get_language
from veriglot.records.settings import (
    StrictRecord,
    errors_of,
    paths_in,
    read_json_record,
    read_toml_records,
    require,
    require_files,
    require_unique,
)
from veriglot.signatures import digest
from veriglot.storage.files import partial_path

__all__ = ["REMEASURE", "Config", "DetectorEntry", "Folder", "ModelEntry", "StudyEntry", "load", "read_profile"]


# The tables of a study file, as records with defaults.


Paths = str | tuple[str, ...]


class StudyEntry(StrictRecord):
    """`[study]`: what is estimated, and how.

    Attributes:
        title: heading of the report; None for the name of the file.
        languages: by tag, code or name, in the order of the report; empty for all in the data.
        unit: `char`, `word` or `hf:<tokenizer>`; must be the profile's unit.
        estimator: of the rates in the report.
        estimators: further ones to show with it.
        confidence: level of the intervals, above 0 and below 1.
        seed: of the resampling.
        draws: number of resamples.
        pooled: use the profile's error rates over all languages for a language with fewer than 8 texts in the profile,
            or none; the report names these languages.
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


class QueriesEntry(StrictRecord):
    """`[queries]`: the inputs of the models."""

    path: Paths
    design: Design = "subsets"
    seeds: tuple[int, ...] = MFAVA_SEEDS
    format: str | None = None


class ResponsesEntry(StrictRecord):
    """`[responses]`: responses that exist already."""

    path: Paths
    format: str | None = None
    language: str | None = None
    columns: dict[str, str] = {}


class ModelEntry(StrictRecord):
    """`[[models]]`: one model. With given responses, only `name`, `family`, `parameters` and `languages` are allowed.

    Attributes:
        name: in every table.
        family: models of one maker and generation.
        parameters: in billions.
        languages: number of languages that its makers declare.
        client: a name of `llm.CLIENTS`.
        model: its name at its server; None for `name`.
        revision: of the weights.
        base_url: of the server.
        key: the environment variable that holds the key; never the key itself.
        script: the file of rules of the client `scripted`.
        preset: a name of `llm.presets()`, below `settings`.
        prompt: `closed`, `instructed` or `open`; see `build.answer_messages`.
        completion: complete a text instead of chatting.
        settings: of the generation.
        price_in: price of a million prompt tokens, in any currency, for `--dry-run`.
        price_out: price of a million reply tokens.
        options: further options of the client, such as `timeout` (seconds) or `rate` (requests per second).
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


class DetectorEntry(StrictRecord):
    """`[[detectors]]`: one detector with its error profile.

    Attributes:
        name: of the detector, as for `veriglot detect`.
        label: its name in the run's folder; needed only if one detector is used twice.
        threshold: confidence from which a word is marked, 0 to 1; None for the profile's, or else the detector's own.
        profile: the file that `veriglot evaluate -o` wrote.
        labelled: instead of a profile, labelled samples to measure it on.
        compare_profile: a second profile, such as one from gold labels in addition to one from silver; the report
            compares the rates by both.
    """

    name: str = "auto"
    label: str | None = None
    threshold: float | None = None
    profile: str | None = None
    labelled: str | None = None
    compare_profile: str | None = None

    @property
    def unique_name(self) -> str:
        """Its name in the run's folder."""
        return self.label or self.name


class LabelsEntry(StrictRecord):
    """`[labels]`: gold labels of some of the study's own responses, for the estimator `ppi`."""

    path: Paths
    annotator: str | None = None
    format: str | None = None
    columns: dict[str, str] = {}


class LimitsEntry(StrictRecord):
    """`[limits]`: budget, parallel calls, and where detectors run."""

    calls: int | None = None
    tokens: int | None = None
    jobs: int = 8
    engine: Literal["local", "ray"] = "local"


class Entries(StrictRecord):
    """A study file.

    `resources` are numbers by language to correlate with the rates, by name: `[resources."Wikipedia articles"]` with
    `de = 2900000` and so on.
    """

    study: StudyEntry = StudyEntry()
    queries: QueriesEntry | None = None
    responses: ResponsesEntry | None = None
    models: tuple[ModelEntry, ...] = ()
    detectors: tuple[DetectorEntry, ...] = ()
    labels: LabelsEntry | None = None
    limits: LimitsEntry = LimitsEntry()
    resources: dict[str, dict[str, float]] = {}


REMEASURE = "Measure it with `veriglot evaluate ... -o profile.json` as the study uses it."
_DECLARED = {"name", "family", "parameters", "languages"}


class Config(Entries, kw_only=True):
    """A study file with its path.

    Attributes:
        path: the file.
    """

    path: Path

    @property
    def title(self) -> str:
        """The title, or the file's name without its suffix."""
        return self.study.title or self.path.stem

    @property
    def asked(self) -> QueriesEntry:
        """`[queries]`, of a study that generates its responses."""
        assert self.queries is not None
        return self.queries

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """The study's own estimator first, then the others, each once; includes `ppi` if there are labels."""
        by_labels = () if self.labels is None else (Estimator.PPI,)
        return tuple(dict.fromkeys((self.study.estimator, *self.study.estimators, *by_labels)))

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of the languages in the file; empty for all."""
        return tuple(dict.fromkeys(get_language(name).tag for name in self.study.languages))

    def by_tag(self, table: dict[str, float]) -> dict[str, float | None]:
        """A table by language, with BCP 47 tags as keys."""
        return {get_language(name).tag: value for name, value in table.items()}

    def resolve(self, path: str) -> Path:
        """Resolve a path relative to the folder of the study file."""
        return self.path.parent / Path(path).expanduser()

    def resolve_all(self, paths: Paths) -> list[Path]:
        """Resolve one path or several likewise."""
        return paths_in(self.path.parent, paths)


def load(path: Path) -> Config:
    """Read a study file.

    Raises:
        InputError: it is not TOML; a key is unknown (the message names similar ones), missing or of a wrong type;
            values do not go together; or a file that it names does not exist.
        UnknownNameError: a language, estimator, client, preset or unit that does not exist.
    """
    with errors_of(path):
        config = Config(**msgspec.structs.asdict(read_toml_records(path, Entries, "study")), path=path)
        for check in (_check_study, _check_sources, _check_models, _check_detectors):
            check(config)
    return config


def _check_study(config: Config) -> None:
    from veriglot.metrics.spans import segmenter

    study = config.study
    segmenter(study.unit)
    config.languages  # noqa: B018  # raises an error for an unknown one
    for table in config.resources.values():
        config.by_tag(table)
    require(0.0 < study.confidence < 1.0, "a level lies between 0 and 1, such as 0.95", "study.confidence")
    require(study.draws >= 100, "an interval needs at least 100 draws", "study.draws")
    require(study.seed >= 0, "a seed is 0 or more", "study.seed")


def _check_sources(config: Config) -> None:
    queries, responses, limits = config.queries, config.responses, config.limits
    if responses is not None and responses.language is not None:
        get_language(responses.language)
    require(
        (queries is None) != (responses is None),
        "a study asks queries or is given responses: it has either [queries] or [responses]",
        "queries",
    )
    for field, entry in (("queries", queries), ("responses", responses), ("labels", config.labels)):
        if entry is not None:
            require(entry.path, "no file is named", f"{field}.path")
            require_files(config.path.parent, entry.path, f"{field}.path")
    seeds = (0,) if queries is None else queries.seeds
    require(
        seeds and len(set(seeds)) == len(seeds), "a study needs at least one seed, and each seed once", "queries.seeds"
    )
    require(
        Estimator.PPI not in config.estimators or config.labels is not None,
        "the estimator ppi needs labels of some of the study's responses",
        "labels",
    )
    for name, value, minimum in (("calls", limits.calls, 0), ("tokens", limits.tokens, 0), ("jobs", limits.jobs, 1)):
        require(value is None or value >= minimum, f"this has to be at least {minimum}", f"limits.{name}")
    require(
        limits.engine == "local" or find_spec(limits.engine),
        f'engine = "{limits.engine}" needs packages that are not installed',
        "limits.engine",
        "Type: pip install 'veriglot[ray]'",
    )


def _check_models(config: Config) -> None:
    require(config.queries is None or config.models, "there is no model to ask", "models", "Add a table [[models]].")
    require_unique((model.name for model in config.models), "models.name")
    for number, model in enumerate(config.models):
        field = f"models[{number}]"
        require(model.name.strip(), "a model has a name", f"{field}.name")
        if config.queries is not None:
            _check_asked_model(config, model, field)
            continue
        plain = type(model)(model.name)
        for name in plain.__struct_fields__:
            require(
                name in _DECLARED or getattr(model, name) == getattr(plain, name),
                "the responses are given, so nothing is asked of this model",
                f"{field}.{name}",
                "Beside [responses], a model has a name, family, parameters and languages only.",
            )


def _check_asked_model(config: Config, model: ModelEntry, field: str) -> None:
    from veriglot.llm.registry import CLIENTS

    CLIENTS.entry(model.client)
    headers = model.options.get("headers")
    try:  # a copy of the file is written to the run's folder
        refuse_secrets(model.key, headers if isinstance(headers, dict) else ())
    except UsageError as error:
        raise InputError(error.message, error.remedy, field=f"{field}.key") from None
    if model.preset is not None:
        preset(model.preset)
    for client, key, needed in (
        ("openai", "base_url", "the address of a server"),
        ("scripted", "script", "the file of its rules"),
    ):
        wanting = model.client == client and not getattr(model, key)
        require(not wanting, f"the client {client} needs {needed}", f"{field}.{key}")
    require_files(config.path.parent, model.script or (), f"{field}.script")


def _check_detectors(config: Config) -> None:
    require(config.detectors, "there is no detector", "detectors", "Add a table [[detectors]].")
    require_unique((entry.unique_name for entry in config.detectors), "detectors.label")
    wanting = [name for name in config.estimators if ESTIMATORS[name].needs_profile]
    for number, entry in enumerate(config.detectors):
        field = f"detectors[{number}]"
        require(
            entry.threshold is None or 0.0 <= entry.threshold <= 1.0,
            "a threshold is a probability between 0 and 1",
            f"{field}.threshold",
        )
        require(
            entry.profile is None or entry.labelled is None,
            "a detector has either a profile or labelled data to measure it on",
            field,
        )
        if entry.labelled is not None:
            require_files(config.path.parent, entry.labelled, f"{field}.labelled")
        for name, path in (("profile", entry.profile), ("compare_profile", entry.compare_profile)):
            if path is not None:
                require_files(config.path.parent, path, f"{field}.{name}")
                unit, own = read_profile(config.resolve(path)).unit, config.study.unit
                require(
                    unit == own, f"the profile counts {unit!r}, and the study {own!r}", f"{field}.{name}", REMEASURE
                )
        require(
            entry.compare_profile is None or ESTIMATORS[config.study.estimator].needs_profile,
            f"the study's estimator, {config.study.estimator}, uses no error profile, so there is nothing to compare",
            f"{field}.compare_profile",
            'Set study.estimator to "label-shift", "paper" or "em".',
        )
        require(
            not wanting or entry.profile is not None or entry.labelled is not None,
            f"the estimators {', '.join(wanting)} need the detector's error profile",
            f"{field}.profile",
            "Make one with `veriglot evaluate LABELLED -o profile.json`, or use raw or ppi alone.",
        )


def read_profile(path: Path) -> ErrorProfile:
    """The error profile in a file that `veriglot evaluate -o` wrote.

    Raises:
        InputError: there is none, or it has other content.
    """
    remedy = "An error profile is what `veriglot evaluate LABELLED -o profile.json` writes."
    return read_json_record(path, ErrorProfile, remedy)


# The folder of a study's run, and its files.


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(name: str) -> str:
    """A name as part of a path, on every system; different names always give different parts.

    Characters other than letters, digits, `.`, `_` and `-` become `-`, and the name's hash is added if anything had to
    change (also for capitals, since some file systems ignore case).
    """
    safe = _UNSAFE.sub("-", name).strip(".-")[:80]
    if safe == name and name == name.lower():
        return safe
    return f"{safe}-{digest([name])[:8]}"


class Folder:
    """Paths in the folder of a run.

    Args:
        path: the folder, which need not exist yet.
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

    def responses(self, model: str) -> Path:
        """The responses of one model."""
        return self.path / "responses" / f"{file_name(model)}.jsonl"

    def predictions(self, detector: str, model: str) -> Path:
        """The predictions of one detector (by its label) for them."""
        return self.path / "predictions" / file_name(detector) / f"{file_name(model)}.jsonl"

    def profile(self, detector: str) -> Path:
        """The error profile that the run measured for a detector."""
        return self.path / "profiles" / f"{file_name(detector)}.json"

    def compared_profile(self, detector: str) -> Path:
        """The copy of its `compare_profile`."""
        return self.path / "profiles" / "compared" / f"{file_name(detector)}.json"

    def prepare(self) -> None:
        """Make the folder, or check that it is the folder of a run.

        Raises:
            UsageError: it has other content.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file.", "Name a folder with -o.")
        if self.path.is_dir() and not self.study.exists() and any(self._foreign()):
            raise UsageError(
                f"{self.path} holds files, and is no run of a study.", "Name a new or empty folder with -o."
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def _foreign(self) -> list[Path]:
        return [path for path in self.path.iterdir() if path.name not in {"run.lock", partial_path(self.study).name}]

    def clear(self) -> None:
        """Remove what the run made, except the cache of calls: paid calls stay."""
        for name in ("responses", "predictions", "profiles", "tables"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for path in (self.plan, self.rates, self.results, self.report):
            path.unlink(missing_ok=True)
