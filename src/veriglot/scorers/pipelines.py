"""spaCy's pipelines that recognise named entities: which are installed, for which language, and what they find."""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import spacy

from veriglot.errors import UnknownNameError, UsageError
from veriglot.provenance import digest, file_sha256
from veriglot.records.languages import language
from veriglot.text import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spacy.language import Language as SpacyPipeline

__all__ = ["Pipeline", "entities", "installed_pipelines", "pipeline_for", "pipeline_named"]

_RECOGNISERS = frozenset({"ner", "entity_ruler", "span_ruler"})
_WITHOUT = (
    "parser",
    "tagger",
    "lemmatizer",
    "morphologizer",
    "attribute_ruler",
    "senter",
    "textcat",
)  # no use to `ner`
_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE = 50_000  # code points at once; spaCy refuses a million


class Pipeline(NamedTuple):
    """A pipeline of spaCy.

    Attributes:
        name: of the installed package, or the folder.
        language: BCP 47 tag.
        revision: what a signature calls it: name and version, and a digest of the files where it is a folder.
        licence: as its author states it, or `not stated`.
        quality: its author's own F1 of entities, 0 to 1, or 0 where none is stated.
        components: what it is made of, in order.
    """

    name: str
    language: str
    revision: str
    licence: str
    quality: float
    components: tuple[str, ...]


@cache
def installed_pipelines() -> tuple[Pipeline, ...]:
    """The installed packages of spaCy that recognise entities, best first by their own figures, then by name.

    Only their descriptions are read; nothing of them is imported.
    """
    found = []
    for name in spacy.util.get_installed_models():
        spec = find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            described = _described(name, Path(folder) / "meta.json")
            if described is not None and _RECOGNISERS.intersection(described.components):
                found.append(described)
    return tuple(sorted(found, key=lambda one: (-one.quality, one.name)))


def pipeline_for(tag: str) -> Pipeline | None:
    """The best installed pipeline of a language; None where there is none."""
    try:
        wanted = _base(tag)
    except UnknownNameError:
        return None
    return next((one for one in installed_pipelines() if one.language != "xx" and _base(one.language) == wanted), None)


def pipeline_named(name: str) -> Pipeline:
    """A pipeline by the name of its package or its folder (which holds `meta.json`).

    Raises:
        UsageError: there is no such folder or package, or it recognises no entities.
    """
    folder = Path(name)
    if folder.is_dir():
        found = _described(name, folder / "meta.json")
    else:
        found = next((one for one in installed_pipelines() if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in installed_pipelines()) or "none"
        raise UsageError(
            f"There is no spaCy pipeline {name!r} that recognises entities. Installed: {known}.",
            remedy="Name the folder that `nlp.to_disk` wrote, or install the package from spaCy's own releases.",
        )
    if not _RECOGNISERS.intersection(found.components):
        raise UsageError(
            f"The spaCy pipeline {name!r} recognises no entities: {', '.join(found.components) or 'empty'}."
        )
    return found


def entities(pipeline: Pipeline, text: str) -> list[tuple[int, int, str]]:
    """The entities of a text: half-open ranges of code points and labels, in order. Long texts go in pieces.

    A piece ends where a sentence does, or, where one is longer than a piece, behind a space. Lone surrogates, which
    spaCy cannot store, are taken as replacement characters.
    """
    text = _SURROGATE.sub("\ufffd", text)
    return [
        (start + entity.start_char, start + entity.end_char, entity.label_)
        for start, end in _pieces(text)
        for entity in _loaded(pipeline)(text[start:end]).ents
    ]


def _described(name: str, file: Path) -> Pipeline | None:
    try:
        meta: dict[str, Any] = json.loads(file.read_text("utf-8"))
        revision = f"{meta['lang']}_{meta['name']}-{meta['version']}"
        quality = float((meta.get("performance") or {}).get("ents_f") or 0.0)
        components = tuple(meta.get("pipeline") or meta.get("components") or ())
        if Path(name).is_dir():
            revision += f"-{_folder_digest(file.parent)}"
        return Pipeline(name, meta["lang"], revision, meta.get("license") or "not stated", quality, components)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _folder_digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest(part for path in files for part in (path.relative_to(folder).as_posix(), file_sha256(path)))[:8]


def _base(tag: str) -> str:
    base = language(tag).base
    return "nb" if base in ("no", "nn") else base


@lru_cache(maxsize=4)
def _loaded(pipeline: Pipeline) -> SpacyPipeline:
    rules = {"entity_ruler", "span_ruler"}.intersection(pipeline.components)  # they may look at lemmas and tags
    return spacy.load(pipeline.name, exclude=() if rules else _WITHOUT)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    if len(text) <= _PIECE:
        yield 0, len(text)
        return
    start = 0
    for _, end in _short(text):
        if end - start >= _PIECE:
            yield start, end
            start = end
    if start < len(text):
        yield start, len(text)


def _short(text: str) -> Iterator[tuple[int, int]]:
    """Sentences, those longer than a piece parted behind spaces or, where there are none, anywhere."""
    for first, end in sentences(text):
        start = first
        while end - start > _PIECE:
            space = text.rfind(" ", start + 1, start + _PIECE)
            cut = space + 1 if space > start else start + _PIECE
            yield start, cut
            start = cut
        yield start, end
