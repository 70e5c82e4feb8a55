"""Labelled data sets: their development and test parts, and their statistics as papers print them.

Dependent samples form one text: samples that share a response, a group that the source names, or a piece of evidence.
A text is on one side of the split and is resampled as one by the bootstrap. The split is by a hash of the text, so a
new row moves no other row.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from veriglot.bench.items import ItemLabels, ItemTable, item_labels, made_by, tag_of
from veriglot.datasets.near_duplicates import text_keys, texts_of
from veriglot.errors import InputError
from veriglot.formats.reader import SeenIds, read_rows
from veriglot.judging.base import resolve_language
from veriglot.metrics.reference import (
    COMBINED,
    FlagFilter,
    Reference,
    labelled,
    reference,
    response_label,
    source_flags,
)
from veriglot.metrics.spans import covered, segmenter
from veriglot.plugins import read_package_data
from veriglot.records import Kind, Record, Sample, Span, Unit, encode
from veriglot.signatures import digest
from veriglot.storage.checkpoint import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.bench.config import Config, DataEntry
    from veriglot.bench.results import Level
    from veriglot.metrics.spans import Segmenter

__all__ = ["DataSet", "statistics_by_language"]


_DEV, _TEST = "dev", "test"


class DataSet(Record):
    """A data set in a bench.

    Attributes:
        entry: its table in the bench file.
        test: labelled samples for the figures, in order; every sample if none has labels.
        dev: labelled samples for tuning thresholds.
        texts: id of a sample to the text that it belongs to.
        bad_rows: number of rows that could not be read.
        unlabelled: number of samples without labels of the annotator.
        split: how dev and test were split, in words.
        labelled: whether there are labels at all.
        makers: names of the models that made the labels; empty if people did.
        unnamed_models: models whose annotations of samples without other labels do not count, since no `annotator`
            names them.
        flagged: sentences about samples with flags; see `metrics.reference.FlagFilter`.
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
    unnamed_models: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()

    @classmethod
    def read(cls, entry: DataEntry, config: Config) -> DataSet:
        """Read, filter and split a data set. If nothing is labelled it is not split, since there is nothing to tune on.

        Raises:
            InputError: a file cannot be read at all, it has no sample of the languages, none has labels of the
                annotator that is named, or all that have some are for tuning.
            UsageError: several annotators labelled it, and none is named.
        """
        seen, bad, flags = SeenIds(), 0, FlagFilter(entry.drop_flags, entry.annotator)
        rows: dict[str, list[Sample]] = {}
        for part, paths in ((_TEST, entry.path), (_DEV, entry.dev or ())):
            every = list(_rows(config.resolve_all(paths), entry, seen))
            rows[part] = [row for row in every if not isinstance(row, FailedRow)]
            bad += len(every) - len(rows[part])
        chosen = {part: list(filter(flags.admits, _wanted(samples, entry))) for part, samples in rows.items()}
        with_labels = {
            part: [sample for sample in samples if has_labels(sample, entry.annotator)]
            for part, samples in chosen.items()
        }
        texts = _texts([*with_labels[_TEST], *with_labels[_DEV]])
        unlabelled = sum(len(chosen[part]) - len(with_labels[part]) for part in chosen)
        if chosen[_TEST] and not with_labels[_TEST] and entry.annotator is None:
            return _unlabelled(entry, config, chosen, bad, flags)
        if not with_labels[_TEST]:
            raise _no_labels(entry, config, rows[_TEST], chosen[_TEST], flags)
        alike = _constant_label(with_labels[_TEST], entry)
        if entry.dev is None and alike is not None:
            test, dev = with_labels[_TEST], list[Sample]()
            split = f"none for tuning: the labels call {alike} unsupported"
        elif entry.dev is None:
            test, dev = _split(with_labels[_TEST], texts, entry.dev_share)
            split = f"{entry.dev_share:.0%} of the texts for tuning, by a hash of the text"
        else:
            tuning = {texts[sample.id] for sample in with_labels[_DEV]}
            test, dev = [sample for sample in with_labels[_TEST] if texts[sample.id] not in tuning], with_labels[_DEV]
            left_out = len(with_labels[_TEST]) - len(test)
            split = "files named for tuning"
            split += f"; {left_out} test samples left out, whose text is among them" if left_out else ""
        if not test:
            raise InputError(
                f"{entry.name}: all labelled samples are used for tuning, and none is left for testing.",
                "Give more texts, or another file as dev.",
            )
        seed, split = config.bench.seed, split + _dropped(flags)
        test, dev = _limited(test, texts, entry.limit, seed), _limited(dev, texts, entry.dev_limit, seed)
        if entry.limit is not None or entry.dev_limit is not None:
            split += f"; at most {entry.limit or 'all'} test and {entry.dev_limit or 'all'} dev samples a language"
        return cls(
            entry,
            tuple(test),
            tuple(dev),
            texts,
            bad,
            unlabelled,
            split,
            makers=made_by([*test, *dev], entry.annotator) if entry.annotator else frozenset(),
            unnamed_models=_unnamed_models(chosen, entry),
            flagged=flags.notes(),
        )

    @property
    def name(self) -> str:
        """Its name in every table."""
        return self.entry.name

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Test, then dev: the order in which systems score them."""
        return self.test + self.dev

    def hashed(self) -> str:
        """SHA-256 of all samples, with their labels and their part of the split."""
        return digest([encode(sample) for sample in self.test] + [_DEV] + [encode(sample) for sample in self.dev])

    def statistics(self) -> dict[str, float]:
        """The statistics of the test part that are defined, by name; see `statistics_row`."""
        row = statistics_of(self.test, annotator=self.entry.annotator) if self.labelled else {}
        return {name: value for name, value in row.items() if value is not None}

    def notes(self) -> list[str]:
        """What a reader must know about flagged samples, and about models that labelled it, a sentence each."""
        notes = [f"{self.name}: {note}." for note in self.flagged]
        if self.makers:
            notes.append(
                f"{self.name}: its labels were made by a model, {self.entry.annotator}, not by people: figures say"
                " how far systems agree with it, not how often they are right."
            )
        if self.unnamed_models:
            notes.append(
                f"{self.name}: annotations by models ({', '.join(self.unnamed_models)}) do not count as labels of"
                " samples that no person labelled; to use them, name the model as `annotator` in the bench file."
            )
        return notes

    def pairs(self) -> dict[str, tuple[str, ...]]:
        """Tag of the response's language to all languages of its samples; for translations with the source's."""
        result = defaultdict[str, set[str]](set)
        for sample in self.test:
            tag = tag_of(sample.language)
            result[tag] |= {tag, *(tag_of(passage.language) for passage in sample.evidence if passage.language)}
        return {tag: (tag, *sorted(others - {tag})) for tag, others in sorted(result.items())}


def _constant_label(samples: Sequence[Sample], entry: DataEntry) -> str | None:
    """Whether the labels call `all` items, or `nothing`, unsupported; None if they differ."""
    seen = set()
    for sample in samples:
        labels, rated = reference(sample, entry.annotator), response_label(sample, entry.annotator)
        marks = covered(len(sample.response), labels.marks.spans) if labels is not None else None
        bad = len(labels.marks.spans) > 0 if labels is not None else rated is not None and rated[1]
        seen |= {bad} if marks is None or set(entry.levels) == {"response"} else {bool(marks.any()), bool(marks.all())}
        if len(seen) > 1:
            return None
    return "all" if seen == {True} else "nothing"


def has_labels(sample: Sample, annotator: str | None) -> bool:
    """Whether spans or the response are labelled; a model's labels count only if `annotator` names it.

    Published silver labels count, since they are known to be silver. A detector's marks that somebody put into the data
    are no reference by themselves: measured on its own marks, every detector is perfect.
    """
    named = annotator is not None and annotator not in COMBINED
    rated = response_label(sample, annotator)
    annotations = [*labelled(sample), *([rated[0]] if rated else [])]
    if not named and all(annotation.kind is Kind.MODEL for annotation in annotations):
        return False
    return rated is not None or reference(sample, annotator) is not None


def _unnamed_models(chosen: dict[str, list[Sample]], entry: DataEntry) -> tuple[str, ...]:
    """The models whose labels are a sample's only ones, if the bench file names no annotator."""
    names = {
        annotation.annotator
        for samples in chosen.values()
        for sample in samples
        if not has_labels(sample, entry.annotator)
        for annotation in labelled(sample)
        if annotation.kind is Kind.MODEL
    }
    return tuple(sorted(names))


def _unlabelled(
    entry: DataEntry, config: Config, chosen: dict[str, list[Sample]], bad_rows: int, flags: FlagFilter
) -> DataSet:
    samples = chosen[_TEST]
    texts = _texts(samples)
    test = _limited(samples, texts, entry.limit, config.bench.seed)
    split = f"no labels, so nothing is tuned{_dropped(flags)}"
    split += f"; at most {entry.limit} samples a language" if entry.limit is not None else ""
    return DataSet(
        entry,
        tuple(test),
        (),
        texts,
        bad_rows,
        len(samples),
        split,
        labelled=False,
        unnamed_models=_unnamed_models(chosen, entry),
        flagged=flags.notes(),
    )


def _dropped(flags: FlagFilter) -> str:
    """The part of `split` about dropped samples."""
    return f"; {flags.total} samples dropped, flagged {' or '.join(flags.drop)}" if flags.drop else ""


def _no_labels(
    entry: DataEntry, config: Config, rows: Sequence[Sample], chosen: Sequence[Sample], flags: FlagFilter
) -> InputError:
    """The error for a data set without a sample to measure on, with what it has instead."""
    reason, remedy = "no sample has labels", "Say where they are: --map label=COLUMN, or spans=COLUMN for marked parts."
    if flags.total and not chosen:
        reason, remedy = flags.notes()[0], "Take flags out of drop_flags."
    elif rows and not chosen:
        reason = f"no sample is in any of the languages {', '.join(entry.languages)}"
        remedy = f"Its languages are {', '.join(sorted({tag_of(sample.language) for sample in rows}))}."
    elif entry.annotator is not None:
        names = sorted({annotation.annotator for sample in chosen for annotation in sample.annotations})
        if names:
            reason = f"no sample has labels of {entry.annotator!r}"
            remedy = f"Its annotators are {', '.join(names)}."
    return InputError(reason, remedy, path=str(config.resolve_all(entry.path)[0]), field=f"data {entry.name!r}")


def _rows(paths: Sequence[Path], entry: DataEntry, seen: SeenIds) -> Iterator[Sample | FailedRow]:
    language = tag_of(entry.language) if entry.language else None
    for path in paths:
        yield from read_rows(
            path, format=entry.format, language=language, seen=seen, columns=entry.columns, labelled=True
        )


def _wanted(samples: Sequence[Sample], entry: DataEntry) -> Iterator[Sample]:
    """Samples of the selected languages, each with the tag under which its language is counted."""
    wanted = {tag_of(name) for name in entry.languages}
    for sample in map(_with_language, samples):
        tag = tag_of(sample.language)
        if not wanted or tag in wanted:
            yield sample if sample.language in {None, tag} else replace(sample, language=tag)


def _with_language(sample: Sample) -> Sample:
    """The sample with its language; detectors' identification if it states none."""
    identified = resolve_language(sample) if sample.language is None else None
    return sample if identified is None else replace(sample, language=identified.tag)


def _texts(samples: Sequence[Sample]) -> dict[str, str]:
    """Id of a sample to its text."""
    return dict(zip((sample.id for sample in samples), texts_of(list(map(text_keys, samples))), strict=True))


def _share(text: str, salt: str) -> float:
    """A number from 0 to 1, always the same for a text."""
    return int(digest([salt, text])[:13], 16) / 16**13


def _split(samples: Sequence[Sample], texts: dict[str, str], share: float) -> tuple[list[Sample], list[Sample]]:
    parts: tuple[list[Sample], list[Sample]] = [], []
    for sample in samples:
        parts[_share(texts[sample.id], _DEV) < share].append(sample)
    return parts


def _limited(samples: list[Sample], texts: dict[str, str], limit: int | None, seed: int) -> list[Sample]:
    """At most `limit` samples of each language, in order; whole texts as far as possible."""
    if limit is None:
        return samples
    by_language = defaultdict[str, list[Sample]](list)
    for sample in samples:
        by_language[tag_of(sample.language)].append(sample)
    ids = set[str]()
    for group in by_language.values():
        drawn = sorted(group, key=lambda member: _share(texts[member.id], f"limit {seed}"))
        ids |= {member.id for member in drawn[:limit]}
    return [member for member in samples if member.id in ids]


# Statistics of labelled data sets as papers print them: HAT, Tables 1, 2; mFAVA, Table 2; HalluVerse25, Table 2 and
# Figure 3; Kang et al., Table 9.
#
# A statistic is computed from counts that are summed sample by sample, so data of any size can be read.

BANDS = ((0, 5), (5, 25), (25, 100))  # of hallucinated characters in percent, half-open below: (0, 5], (5, 25], ...

_STATISTICS = read_package_data(__package__, "statistics.toml", dict[str, dict[str, tuple[str, ...]]])
_VERDICTS = {"support": "supported", "contradicted": "contradicted", "unverified": "unverified"}
_BY_TYPE = ("marks_", "responses_")  # how many marks have a type, and how many responses have any of it

Statistics = dict[str, float | int | None]


def statistics_row(sums: Counter[str]) -> Statistics:
    """All statistics by name, in the order of HAT's columns, then HalluVerse25's and Kang et al.'s.

    Lengths are in code points, of labelled samples with evidence and a response. `length_ratio` is response over
    evidence, of summed lengths (HAT's T2SLR), `mean_length_ratio` the mean of the samples' own ratios: HAT does not say
    which of the two it is. `character_rate` is the share of marked characters in all labelled responses (CHR),
    `sentence_rate` the share of samples with any mark (SHR), and the bands count the latter by their share of marked
    characters. `faulty_source` counts samples whose annotators flagged the source (HAT drops them). Units are those of
    evidence and response (HalluVerse25: original and edited sentence); facts those of labelled responses, the last two
    shares only of responses whose labels distinguish them. Then come the marks of each type (mFAVA, Table 2), and the
    responses that have one (HalluVerse25, Figure 3).
    """

    def value(part: str, whole: str | None = None) -> float | int | None:
        if whole is None:
            return sums[part]
        return sums[part] / sums[whole] if sums[whole] else None

    return {
        **{name: value(*parts) for name, parts in _STATISTICS["responses"].items()},
        **{f"band_{low}_{high}": value(f"band_{low}_{high}", "hallucinated") for low, high in BANDS},
        **{name: value(*parts) for name, parts in _STATISTICS["units"].items()},
        **{name: value for name, value in example_row(sums).items() if name not in {"examples", "mean_words"}},
        **{name: value(name, f"{name}_facts") for name in _VERDICTS.values()},
        **{name: sums[name] for name in sorted(sums) if name.startswith(_BY_TYPE)},
    }


def example_row(sums: Counter[str]) -> Statistics:
    """Kang et al.'s Table 9, and how often annotators set each flag, such as those of its Table 8.

    Examples are labelled responses, sentences or facts. Rates are means over the examples whose facts are known. Places
    in the evidence are those that annotators selected, each counted once per example; None if nobody selected any.
    `flag_<name>` is the share of examples with a flag that is set anywhere in the data.
    """

    def mean(part: str, whole: str = "examples") -> float | None:
        return sums[part] / sums[whole] if sums[whole] else None

    return {
        "examples": sums["examples"],
        "mean_words": mean("words"),
        "mean_evidence_places": mean("places") if sums["places"] else None,
        "mean_facts": mean("facts", "with_facts"),
        **{f"{rate}_rate": mean(f"{name}_rates", f"{name}_items") for rate, name in _VERDICTS.items()},
        **{name: mean(name) for name in sorted(sums) if name.startswith("flag_")},
    }


def statistics_of(samples: Iterable[Sample], *, unit: str = "word", annotator: str | None = None) -> Statistics:
    """The statistics of a data set; see `statistics_row`.

    Args:
        samples: read once.
        unit: of the token counts: `word`, `char` or `hf:<tokenizer>`. HalluVerse25 does not say which tokens it counts.
        annotator: whose labels; see `metrics.reference`.

    Raises:
        UnknownNameError: no such unit.
        UsageError: several annotators labelled the samples, and none is named.
    """
    total = Counter[str]()
    for part in _sums(samples, unit, annotator).values():
        total.update(part)
    return statistics_row(total)


def statistics_by_language(
    samples: Iterable[Sample], *, unit: str = "word", annotator: str | None = None, level: Level = "response"
) -> dict[str, Statistics]:
    """The statistics of each language of a data set, in the order of the tags; translations by pair, as `de-en`.

    Arguments and errors as for `statistics_of`; at level `sentence` or `fact`, only the statistics of `example_row`.
    """
    row = statistics_row if level == "response" else example_row
    return {tag: row(part) for tag, part in _sums(samples, unit, annotator, level).items()}


def _sums(
    samples: Iterable[Sample], unit: str, annotator: str | None, level: Level = "response"
) -> dict[str, Counter[str]]:
    segment = segmenter(unit)
    sums = defaultdict[str, Counter[str]](Counter)
    for sample in map(_with_language, samples):
        tag = tag_of(sample.language)
        source = tag_of(next((passage.language for passage in sample.evidence if passage.language), tag))
        part = sums[tag if source == tag else f"{source}-{tag}"]
        if level == "response":
            _count(part, sample, annotator, segment)
        _count_examples(part, sample, annotator, segment, level)
    # A flag that nobody set in a language, and a type that none of its labels has, count 0 there.
    everywhere = ("flag_", *_BY_TYPE)
    names = {name: 0 for part in sums.values() for name in part if name.startswith(everywhere)}
    return {tag: Counter(names | part) for tag, part in sorted(sums.items())}


def band_of(marked: int, length: int) -> tuple[int, int] | None:
    """The band of `BANDS` for a response with `marked` of `length` characters marked; None if none is.

    A share on the border of two bands belongs to the lower one.
    """
    return next((band for band in BANDS if 100 * marked <= band[1] * length), None) if marked > 0 else None


def _count(sums: Counter[str], sample: Sample, annotator: str | None, segment: Segmenter) -> None:
    sums["samples"] += 1
    sums["faulty_source"] += bool(source_flags(sample, annotator))
    labels = reference(sample, annotator)
    if labels is None:
        return
    length = len(sample.response)
    marked = int(np.count_nonzero(covered(length, labels.marks.spans)))
    sums.update(labelled=1, length=length, marked=marked, marks=len(labels.marks.spans))
    types = Counter(name for name in labels.marks.types if name is not None)
    sums.update({f"marks_{name}": number for name, number in types.items()})
    sums.update(f"responses_{name}" for name in types)
    band = band_of(marked, length)
    if band is not None:
        sums.update({"hallucinated": 1, f"band_{band[0]}_{band[1]}": 1})
    evidence = sum(len(passage.text) for passage in sample.evidence)
    if evidence and length:
        lengths = {"with_evidence": 1, "evidence_length": evidence, "response_length": length}
        sums.update(lengths)
        sums["ratios"] += length / evidence  # type: ignore[assignment]
        sums["evidence_units"] += sum(len(segment(passage.text, passage.language)) for passage in sample.evidence)
        sums["response_units"] += len(segment(sample.response, sample.language))
        if band is not None:
            sums.update({f"hallucinated_{name}": number for name, number in lengths.items()})
            sums["hallucinated_ratios"] += length / evidence  # type: ignore[assignment]


def _count_examples(
    sums: Counter[str], sample: Sample, annotator: str | None, segment: Segmenter, level: Level
) -> None:
    labels = reference(sample, annotator)
    items = item_labels(sample, level, annotator)
    if labels is None or items is None:
        return
    texts = [sample.response[item.start : item.end] for item in items]
    if level == "fact":  # with the context that it needs to be read alone
        table = ItemTable.of([sample], {sample.id: sample.id}, level, annotator=annotator)
        texts = [row.response for row in table.item_samples([sample])]
    for item, text in zip(items, texts, strict=True):
        sums.update(examples=1, words=len(segment(text, sample.language)))
        sums["places"] += len({pointer for mark in _marks_in(labels, item) for pointer in mark.evidence})
        sums.update(f"flag_{flag}" for flag in _flags_in(labels, item, level))
        sums.update(facts=item.facts, with_facts=bool(item.facts))
        for rate, name in _VERDICTS.items():
            share = getattr(item, rate)
            if share is not None:
                sums.update({name: round(share * item.facts), f"{name}_facts": item.facts, f"{name}_items": 1})
                sums[f"{name}_rates"] += share


_FLAG_OF_UNIT = re.compile(r"(.+)\[(\d+):(\d+)\]")


def _marks_in(labels: Reference, item: ItemLabels) -> Iterator[Span | Unit]:
    """What annotators marked in an item; only its own label if they labelled exactly this unit: facts may be nested."""
    marks: list[Span | Unit] = []
    for annotation in labels.annotations:
        marks += [*(annotation.spans or ()), *(annotation.units or ())]
    own = [mark for mark in marks if (mark.start, mark.end) == item[:2]]
    yield from own or (mark for mark in marks if item.start <= mark.start < item.end)


def _flags_in(labels: Reference, item: ItemLabels, level: Level) -> list[str]:
    """Flags of an item that most annotators set (of a `union`, any); a response has those of its units."""
    voices = Counter[str]()
    for annotation in labels.annotations:
        names = set()
        for flag in annotation.flags:
            of_unit = _FLAG_OF_UNIT.fullmatch(flag)
            if level == "response" or (of_unit and (int(of_unit[2]), int(of_unit[3])) == item[:2]):
                names.add(of_unit[1] if of_unit else flag)
        voices.update(names)
    enough = len(labels.annotations) / 2 if labels.annotator != "union" else 0
    return [name for name in voices if voices[name] > enough]
