"""The tables of a study file, as records: what may stand in it, with its defaults."""

from __future__ import annotations

from typing import Any

import msgspec

from veriglot.build import MFAVA_SEEDS, Design, Style
from veriglot.llm import Settings
from veriglot.rates.estimate import DRAWS
from veriglot.records import Estimator

__all__ = ["DetectorEntry", "Entries", "LabelsEntry", "LimitsEntry", "ModelEntry", "QueriesEntry", "ResponsesEntry",
           "StudyEntry"]  # fmt: skip

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
    """`[queries]`: what the models are asked.

    Attributes:
        path: files of samples with a question and no response.
        design: `subsets` or `runs`; see `build.plan`.
        seeds: of the responses; the default is mfava's (section A.6).
        format: of the files; None to recognise it.
    """

    path: Paths
    design: Design = "subsets"
    seeds: tuple[int, ...] = MFAVA_SEEDS
    format: str | None = None


class ResponsesEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[responses]`: responses that exist already.

    Attributes:
        path: files of samples; `generator.name` says whose response it is, `meta.query` what it answers.
        format: of the files; None to recognise it.
        language: of samples that state none; None to leave that to the detector.
    """

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
    """`[labels]`: gold labels of some of the study's own responses, for the estimator `ppi`.

    Attributes:
        path: files of samples with annotations, by the ids of the responses.
        annotator: whose labels count; None where one only labelled.
        format: of the files; None to recognise it.
    """

    path: Paths
    annotator: str | None = None
    format: str | None = None


class LimitsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`: what may be spent, and what runs at the same time.

    Attributes:
        calls: the most calls of all models together; None for no bound.
        tokens: the most tokens, prompts and replies together; None for no bound.
        jobs: calls at the same time.
    """

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
