"""Named entity overlap: which entities of the response are in the evidence too, by spaCy (Nan et al. 2021)."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import spacy

from veriglot.errors import UnknownNameError, UsageError
from veriglot.judging.base import NotScored, text_language
from veriglot.judging.classifiers import split_chunks
from veriglot.records import Sample, Status
from veriglot.records.languages import get_language
from veriglot.scorers.base import RawScore, SampleScorer
from veriglot.scorers.rouge import Overlap, Value, agreement, check_options, tokens
from veriglot.signatures import digest, file_sha256, signature
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spacy.language import Language as SpacyPipeline


__all__ = []


_RECOGNISERS = frozenset({"ner", "entity_ruler", "span_ruler"})
_NO_USE_TO_NER = ("parser", "tagger", "lemmatizer", "morphologizer", "attribute_ruler", "senter", "textcat")
_PIECE = 50_000  # maximum code points at a time; spaCy refuses a million


class Pipeline(NamedTuple):
    """A spaCy pipeline, by its package or folder; `revision` is its name in signatures, `quality` its published F1."""

    name: str
    language: str
    revision: str
    quality: float
    components: tuple[str, ...]


@cache
def installed_pipelines() -> tuple[Pipeline, ...]:
    """The installed spaCy packages that recognise entities, best first by their published F1, then by name.

    Only their metadata is read; nothing of them is imported.
    """
    pipelines = []
    for name in spacy.util.get_installed_models():
        spec = find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            described = _described(name, Path(folder) / "meta.json")
            if described is not None and _RECOGNISERS.intersection(described.components):
                pipelines.append(described)
    return tuple(sorted(pipelines, key=lambda pipeline: (-pipeline.quality, pipeline.name)))


def pipeline_for(tag: str) -> Pipeline | None:
    """The best installed pipeline of a language; None if there is none."""
    try:
        wanted = _base(tag)
    except UnknownNameError:
        return None
    known = [pipeline for pipeline in installed_pipelines() if pipeline.language != "xx"]
    return next((pipeline for pipeline in known if _base(pipeline.language) == wanted), None)


def pipeline_named(name: str) -> Pipeline:
    """A pipeline by the name of its package or its folder (with `meta.json`).

    Raises:
        UsageError: there is no such folder or package, or it recognises no entities.
    """
    folder = Path(name)
    if folder.is_dir():
        pipeline = _described(name, folder / "meta.json")
    else:
        pipeline = next((own for own in installed_pipelines() if own.name == name), None)
    if pipeline is None:
        known = ", ".join(own.name for own in installed_pipelines()) or "none"
        raise UsageError(
            f"There is no spaCy pipeline {name!r} that recognises entities. Installed: {known}.",
            "Name the folder that `nlp.to_disk` wrote, or install the package from spaCy's own releases.",
        )
    if not _RECOGNISERS.intersection(pipeline.components):
        raise UsageError(
            f"The spaCy pipeline {name!r} recognises no entities: {', '.join(pipeline.components) or 'empty'}."
        )
    return pipeline


def entities(pipeline: Pipeline, text: str) -> list[tuple[int, int, str]]:
    """The entities of a text: half-open ranges of code points and labels, in order. Long texts are split into pieces.

    A piece ends at the end of a sentence, or, if a sentence is longer than a piece, between words. Lone surrogates,
    which spaCy cannot store, are replaced by replacement characters.
    """
    text = without_surrogates(text)
    places = np.arange(len(text))
    bounds = np.stack([places, places + 1], axis=1)
    return [
        (start + entity.start_char, start + entity.end_char, entity.label_)
        for start, end in split_chunks(text, bounds, _PIECE, overlap=False)
        for entity in _loaded(pipeline)(text[start:end]).ents
    ]


def _described(name: str, file: Path) -> Pipeline | None:
    try:
        meta: dict[str, Any] = json.loads(file.read_text("utf-8"))
        revision = f"{meta['lang']}_{meta['name']}-{meta['version']}"
        quality = float((meta.get("performance") or {}).get("ents_f") or 0.0)
        components = tuple(meta.get("pipeline") or meta.get("components") or ())
        if Path(name).is_dir():
            files = sorted(path for path in file.parent.rglob("*") if path.is_file())
            parts = (part for path in files for part in (path.relative_to(file.parent).as_posix(), file_sha256(path)))
            revision += f"-{digest(parts)[:8]}"
        return Pipeline(name, meta["lang"], revision, quality, components)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _base(tag: str) -> str:
    base = get_language(tag).base
    return "nb" if base in ("no", "nn") else base


@lru_cache(4)
def _loaded(pipeline: Pipeline) -> SpacyPipeline:
    rules = {"entity_ruler", "span_ruler"}.intersection(pipeline.components)  # they may use lemmas and tags
    return spacy.load(pipeline.name, exclude=() if rules else _NO_USE_TO_NER)


class EntityOverlap(SampleScorer):
    """The share of the response's named entities that are also entities of the evidence, 0 to 1 (NEO of Kang et al.).

    Entities are compared as sets of texts, in the form of `veriglot.scorers.rouge.tokens`. They are found by an
    installed spaCy pipeline for the language; if there is none, the status is `unsupported_language`. A response
    without entities has no precision: it is not scored, unless `empty` gives its value.

    Args:
        value: precision, recall or F1 as the score.
        pipeline: the name of an installed package, or a folder, for every language.
        labels: the entity labels that count, in the pipeline's own scheme; None for all.
        empty: the value of a response that has no entities, 0 to 1.

    Raises:
        UsageError: no such pipeline, or it recognises no entities; an invalid setting.
    """

    name = "entity-overlap@2"

    def __init__(
        self,
        value: Value = "precision",
        pipeline: str | None = None,
        labels: Sequence[str] | None = None,
        empty: float | None = None,
    ) -> None:
        check_options(value, empty)
        self.value, self.empty = value, empty
        self.pipeline = pipeline_named(pipeline) if pipeline is not None else None
        self.labels = None if labels is None else frozenset([labels] if isinstance(labels, str) else labels)
        asked = installed_pipelines() if self.pipeline is None else (self.pipeline,)
        self.signature = signature(
            scorer=self.name,
            value=value,
            labels=",".join(sorted(self.labels)) if self.labels is not None else None,
            empty=empty,
            pipelines=",".join(pipeline.revision for pipeline in asked) or "none",
        )

    def measure(self, sample: Sample) -> RawScore | NotScored:
        """P, R and F1 of the sets of entities, with their sizes."""
        tag = text_language(sample.response, sample.language)
        asked = [tag, *(passage.language or tag for passage in sample.evidence)]
        first, *others = pipelines = [self.pipeline or (pipeline_for(wanted) if wanted else None) for wanted in asked]
        if first is None or None in pipelines:
            missing = [wanted for wanted, known in zip(asked, pipelines, strict=True) if known is None]
            lacking = sorted({wanted or "an unknown language" for wanted in missing})
            reason = f"no spaCy pipeline that recognises entities is installed for {', '.join(lacking)}"
            return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
        try:
            overlap = self._overlap(sample, first, others, tag)
        except Exception as error:  # components of third parties may raise anything
            return NotScored(Status.FAILED, f"the spaCy pipeline failed: {type(error).__name__}: {error}")
        return agreement(overlap, self.value, self.empty, "named entity", tag)

    def _overlap(
        self, sample: Sample, first: Pipeline, pipelines: Sequence[Pipeline | None], tag: str | None
    ) -> Overlap:
        response = self._entities(first, sample.response, tag)
        evidence = set[str]()
        for passage, pipeline in zip(sample.evidence, pipelines, strict=True):
            evidence |= self._entities(pipeline, passage.text, passage.language or tag) if pipeline else set()
        return Overlap(len(response & evidence), len(response), len(evidence))

    def _entities(self, pipeline: Pipeline, text: str, tag: str | None) -> set[str]:
        ranges = entities(pipeline, text)
        texts = {
            tokens(text[start:end], tag) for start, end, label in ranges if self.labels is None or label in self.labels
        }
        return {" ".join(words) for words in texts if words}
