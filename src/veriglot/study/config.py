"""A study file, read and checked: every word of it is known, and everything that could fail late is looked at now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from veriglot.errors import InputError, UsageError, VeriglotError
from veriglot.http.secrets import refuse_given_key, refuse_secret_headers
from veriglot.provenance import file_sha256
from veriglot.records import Estimator
from veriglot.records.languages import language as known_language
from veriglot.records.toml_file import read_toml_records
from veriglot.study.entries import Entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from veriglot.study.entries import DetectorEntry, ModelEntry, StudyEntry

__all__ = ["Config", "load"]

_DECLARED = {"name", "family", "parameters", "languages"}
_NEEDS_PROFILE = (Estimator.PAPER, Estimator.LABEL_SHIFT, Estimator.EM)


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
        return tuple(dict.fromkeys(known_language(name).tag for name in self.study.languages))

    def by_tag(self, table: dict[str, float]) -> dict[str, float | None]:
        """Numbers by language as BCP 47 tags."""
        return {known_language(name).tag: value for name, value in table.items()}

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
        _check(config)
    except InputError as error:
        raise error.at(path=str(path)) from None
    except VeriglotError as error:
        raise InputError(error.message, remedy=error.remedy, path=str(path)) from error
    return config


def _check(config: Config) -> None:
    _check_study(config)
    _check_sources(config)
    _check_models(config)
    _check_detectors(config)


def _check_study(config: Config) -> None:
    from veriglot.metrics.units import segmenter

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
        known_language(entries.responses.language)
    if (entries.queries is None) == (entries.responses is None):
        raise InputError(
            "a study asks queries or is given responses: it has either [queries] or [responses]", field="queries"
        )
    for field, entry in (("queries", entries.queries), ("responses", entries.responses), ("labels", entries.labels)):
        if entry is not None:
            places = config.places(entry.path)
            if not places:
                raise InputError("no file is named", field=f"{field}.path")
            for place in places:
                _exists(place, f"{field}.path")
    queries = entries.queries
    if queries is not None and (not queries.seeds or len(set(queries.seeds)) < len(queries.seeds)):
        raise InputError("a study needs at least one seed, and each seed once", field="queries.seeds")
    if Estimator.PPI in config.estimators and entries.labels is None:
        raise InputError("the estimator ppi needs labels of some of the study's responses", field="labels")
    limits = entries.limits
    for name, value, least in (("calls", limits.calls, 0), ("tokens", limits.tokens, 0), ("jobs", limits.jobs, 1)):
        if value is not None and value < least:
            raise InputError(f"this has to be at least {least}", field=f"limits.{name}")


def _exists(place: Path, field: str) -> None:
    if not place.exists():
        raise InputError(
            f"there is no file {place}", field=field, remedy="Paths are relative to the folder of the study file."
        )


def _check_models(config: Config) -> None:
    from veriglot.llm import CLIENTS, preset

    asked = config.entries.queries is not None
    if asked and not config.models:
        raise InputError("there is no model to ask", field="models", remedy="Add a table [[models]].")
    _once((model.name for model in config.models), "models", "name")
    for number, model in enumerate(config.models):
        place = f"models[{number}]"
        if not model.name.strip():
            raise InputError("a model has a name", field=f"{place}.name")
        if not asked:
            _only_declared(model, place)
            continue
        CLIENTS.entry(model.client)
        _no_secrets(model, place)
        if model.preset is not None:
            preset(model.preset)
        if model.client == "openai" and not model.base_url:
            raise InputError("the client openai needs the address of a server", field=f"{place}.base_url")
        if model.client == "scripted" and not model.script:
            raise InputError("the client scripted needs the file of its rules", field=f"{place}.script")
        if model.script is not None:
            _exists(config.place(model.script), f"{place}.script")


def _no_secrets(model: ModelEntry, place: str) -> None:
    """Refuse keys in the file itself, which is copied into the run's folder."""
    headers = model.options.get("headers")
    try:
        if model.key is not None:
            refuse_given_key(model.key)
        if isinstance(headers, dict):
            refuse_secret_headers(dict.fromkeys(headers, ""))
    except UsageError as error:
        raise InputError(error.message, field=f"{place}.key", remedy=error.remedy) from None


def _only_declared(model: ModelEntry, place: str) -> None:
    plain = type(model)(model.name)
    for name in plain.__struct_fields__:
        if name not in _DECLARED and getattr(model, name) != getattr(plain, name):
            raise InputError(
                "the responses are given, so nothing is asked of this model",
                field=f"{place}.{name}",
                remedy="Beside [responses], a model has a name, family, parameters and languages only.",
            )


def _check_detectors(config: Config) -> None:
    if not config.detectors:
        raise InputError("there is no detector", field="detectors", remedy="Add a table [[detectors]].")
    _once((entry.label or entry.name for entry in config.detectors), "detectors", "label")
    wanting = [name for name in config.estimators if name in _NEEDS_PROFILE]
    for number, entry in enumerate(config.detectors):
        place = f"detectors[{number}]"
        if entry.threshold is not None and not 0.0 <= entry.threshold <= 1.0:
            raise InputError("a threshold is a probability between 0 and 1", field=f"{place}.threshold")
        if entry.profile is not None and entry.labelled is not None:
            raise InputError("a detector has either a profile or labelled data to measure it on", field=place)
        for name, path in (("profile", entry.profile), ("labelled", entry.labelled)):
            if path is not None:
                _exists(config.place(path), f"{place}.{name}")
        if entry.profile is None and entry.labelled is None and wanting:
            raise InputError(
                f"the estimators {', '.join(wanting)} need the detector's error profile",
                field=f"{place}.profile",
                remedy="Make one with `veriglot evaluate LABELLED -o profile.json`, or use raw or ppi alone.",
            )


def _once(names: Iterable[str], table: str, key: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]!r} occurs twice", field=f"{table}.{key}", remedy="Give each a name of its own.")
