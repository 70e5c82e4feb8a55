"""Labelled data sets, parted into what thresholds are tuned on and what figures stand on.

Texts that hang together stay together: samples that share a response, a group that the source names, or a piece of
evidence are one text, on one side of the split and drawn as one by the bootstrap. The split is by a hash of the text,
so a row that is added moves no other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from veriglot.bench.belonging import tag_of
from veriglot.bench.model_labels import bench_reference, made_by, model_annotators
from veriglot.errors import InputError
from veriglot.formats import BadRow, SeenIds, read_rows
from veriglot.provenance import digest
from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from veriglot.bench.config import Config
    from veriglot.bench.entries import DataEntry
    from veriglot.records import Sample

__all__ = ["DataSet", "read_data"]

_DEV, _TEST = "dev", "test"


@dataclass(frozen=True)
class DataSet:
    """A data set as it is used.

    Attributes:
        entry: what the bench file says of it.
        test: labelled samples that figures stand on, in order; every sample where none has labels.
        dev: labelled samples that thresholds are tuned on.
        texts: id of a sample to the text that it belongs to.
        bad_rows: rows that could not be read.
        unlabelled: samples without labels of the annotator.
        split: how dev and test were parted, in words.
        labelled: whether there are labels at all.
        makers: names of the model that made the labels; empty where people did.
        aside: models whose annotations of samples without other labels are no labels, since no `annotator` names them.
    """

    entry: DataEntry
    test: tuple[Sample, ...]
    dev: tuple[Sample, ...]
    texts: dict[str, str]
    bad_rows: int
    unlabelled: int
    split: str
    labelled: bool = True
    makers: frozenset[str] = frozenset()
    aside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.entry.name

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Test, then dev: the order in which systems judge them."""
        return self.test + self.dev

    def hashed(self) -> str:
        """SHA-256 of everything that is judged, with its labels and its place in the split."""
        return digest([encode(one) for one in self.test] + [_DEV] + [encode(one) for one in self.dev])

    def pairs(self) -> dict[str, tuple[str, ...]]:
        """Tag of the response's language to all languages that its samples are in: in translations the source's too."""
        found: dict[str, set[str]] = defaultdict(set)
        for sample in self.test:
            tag = tag_of(sample.language)
            found[tag] |= {tag, *(tag_of(passage.language) for passage in sample.evidence if passage.language)}
        return {tag: (tag, *sorted(others - {tag})) for tag, others in sorted(found.items())}


def read_data(entry: DataEntry, config: Config) -> DataSet:
    """Read, choose and part a data set. One without a single label is not parted: there is nothing to tune on.

    Raises:
        InputError: a file cannot be read at all, it holds no sample of the languages, or none has labels of the
            annotator that is named.
        UsageError: the labels cannot be chosen without a name of their annotator.
    """
    seen, bad = SeenIds(), Counter[str]()
    rows: dict[str, list[Sample]] = {_TEST: [], _DEV: []}
    for part, paths in ((_TEST, entry.path), (_DEV, entry.dev)):
        if paths is not None:
            rows[part] = list(_rows(config.places(paths), entry, seen, bad))
    chosen = {part: list(_wanted(found, entry)) for part, found in rows.items()}
    labelled = {
        part: [one for one in found if bench_reference(one, entry.annotator) is not None]
        for part, found in chosen.items()
    }
    texts = _texts([*labelled[_TEST], *labelled[_DEV]])
    unlabelled = sum(len(chosen[part]) - len(labelled[part]) for part in chosen)
    if chosen[_TEST] and not labelled[_TEST] and entry.annotator is None:
        return _unlabelled(entry, config, chosen, bad.total())
    if not labelled[_TEST]:
        raise _no_labels(entry, config, rows[_TEST], chosen[_TEST])
    if entry.dev is None:
        test, dev = _parted(labelled[_TEST], texts, entry.dev_share)
        split = f"{entry.dev_share:.0%} of the texts for tuning, by a hash of the text"
    else:
        tuning = {texts[one.id] for one in labelled[_DEV]}
        test, dev = [one for one in labelled[_TEST] if texts[one.id] not in tuning], labelled[_DEV]
        left_out = len(labelled[_TEST]) - len(test)
        split = "files named for tuning"
        split += f"; {left_out} test samples left out, whose text is among them" if left_out else ""
    seed = config.bench.seed
    test, dev = _limited(test, texts, entry.limit, seed), _limited(dev, texts, entry.dev_limit, seed)
    if entry.limit is not None or entry.dev_limit is not None:
        split += f"; at most {entry.limit or 'all'} test and {entry.dev_limit or 'all'} dev samples a language"
    return DataSet(
        entry,
        tuple(test),
        tuple(dev),
        texts,
        bad.total(),
        unlabelled,
        split,
        makers=made_by([*test, *dev], entry.annotator) if entry.annotator else frozenset(),
        aside=_aside(chosen, entry),
    )


def _aside(chosen: dict[str, list[Sample]], entry: DataEntry) -> tuple[str, ...]:
    """The models that labelled samples which nobody else did, where the bench file names no annotator."""
    every = (one for found in chosen.values() for one in found)
    return model_annotators(one for one in every if bench_reference(one, entry.annotator) is None)


def _unlabelled(entry: DataEntry, config: Config, chosen: dict[str, list[Sample]], bad_rows: int) -> DataSet:
    samples = chosen[_TEST]
    texts = _texts(samples)
    test = _limited(samples, texts, entry.limit, config.bench.seed)
    split = "no labels, so nothing is tuned"
    split += f"; at most {entry.limit} samples a language" if entry.limit is not None else ""
    aside = _aside(chosen, entry)
    return DataSet(entry, tuple(test), (), texts, bad_rows, len(samples), split, labelled=False, aside=aside)


def _no_labels(entry: DataEntry, config: Config, rows: Sequence[Sample], chosen: Sequence[Sample]) -> InputError:
    """The error of a data set without a sample to measure on, with what there is instead."""
    reason, remedy = "no sample has labels", ""
    if rows and not chosen:
        reason = f"no sample is in any of the languages {', '.join(entry.languages)}"
        remedy = f"Its languages are {', '.join(sorted({tag_of(one.language) for one in rows}))}."
    elif entry.annotator is not None:
        names = sorted({found.annotator for one in chosen for found in one.annotations})
        if names:
            reason = f"no sample has labels of {entry.annotator!r}"
            remedy = f"Its annotators are {', '.join(names)}."
    return InputError(reason, path=str(config.places(entry.path)[0]), field=f"data {entry.name!r}", remedy=remedy)


def _rows(paths: Sequence[Path], entry: DataEntry, seen: SeenIds, bad: Counter[str]) -> Iterator[Sample]:
    language = tag_of(entry.language) if entry.language else None
    for path in paths:
        for row in read_rows(path, format=entry.format, language=language, seen=seen):
            if isinstance(row, BadRow):
                bad[str(path)] += 1
            else:
                yield row


def _wanted(samples: Sequence[Sample], entry: DataEntry) -> Iterator[Sample]:
    """Samples of the languages that are asked for, each under the tag that its language is counted under."""
    wanted = {tag_of(name) for name in entry.languages}
    for sample in samples:
        tag = tag_of(sample.language)
        if wanted and tag not in wanted:
            continue
        yield sample if sample.language in {None, tag} else msgspec.structs.replace(sample, language=tag)


def _texts(samples: Sequence[Sample]) -> dict[str, str]:
    """Id of a sample to its text: the least key of everything that hangs together with it."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    first: dict[str, str] = {}
    for sample in samples:
        keys = _keys(sample)
        first[sample.id] = keys[0]
        for other in keys[1:]:
            one, two = sorted((root(keys[0]), root(other)))
            parent[two] = one
    return {id_: root(key) for id_, key in first.items()}


def _keys(sample: Sample) -> list[str]:
    group = sample.meta.get("group")
    named = [f"group:{group}"] if isinstance(group, str | int) else []
    passages = [digest(["evidence", passage.text])[:16] for passage in sample.evidence if passage.text.strip()]
    return [digest(["response", sample.response])[:16], *named, *passages]


def _share(text: str, salt: str) -> float:
    """A number from 0 to 1 that a text always has."""
    return int(digest([salt, text])[:13], 16) / 16**13


def _parted(samples: Sequence[Sample], texts: dict[str, str], share: float) -> tuple[list[Sample], list[Sample]]:
    dev = {text for text in set(texts.values()) if _share(text, _DEV) < share}
    return [one for one in samples if texts[one.id] not in dev], [one for one in samples if texts[one.id] in dev]


def _limited(samples: list[Sample], texts: dict[str, str], limit: int | None, seed: int) -> list[Sample]:
    """At most `limit` samples of each language, whole texts as far as that goes; the order stays."""
    if limit is None:
        return samples
    by_language: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_language[tag_of(sample.language)].append(sample)
    kept: set[str] = set()
    for found in by_language.values():
        drawn = sorted(found, key=lambda one: _share(texts[one.id], f"limit {seed}"))
        kept |= {one.id for one in drawn[:limit]}
    return [one for one in samples if one.id in kept]
