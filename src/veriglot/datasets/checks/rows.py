"""Checks of single rows: repair, faults of labels and offsets, language and script, glued spans; the index of rows."""

from __future__ import annotations

import re
import struct
import unicodedata
from collections import Counter, defaultdict
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from veriglot.datasets.near_duplicates import hash64
from veriglot.formats.tags import in_order
from veriglot.metrics.reference import source_flags
from veriglot.records import Annotation, Kind, Sample, Span, Task, Unit
from veriglot.records.languages import find_language, same_language
from veriglot.records.taxonomy import taxonomies
from veriglot.text.identification import Identified, identify
from veriglot.text.noise import garbled, looks_glued
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.text.unicode import script_of, script_shares, trimmed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


__all__ = ["Fault", "Glue", "Index", "repaired", "row_faults"]


# Repairs of a cleaned copy: offsets in another unit, white space of spans, duplicate spans, glued words.


def _placed(span: Span, response: str) -> tuple[Span, str] | None:
    """The span in code points, and the unit of its given offsets: empty for code points, or `utf-16`, `utf-8`.

    None if the text of the span is not at these offsets in any unit.
    """
    if span.text is None or response[span.start : span.end] == span.text:
        return span, ""
    for unit, coding, width in (("utf-16", "utf-16-le", 2), ("utf-8", "utf-8", 1)):
        data = response.encode(coding, "surrogatepass")
        try:
            start = len(data[: width * span.start].decode(coding))
            inside = data[width * span.start : width * span.end].decode(coding)
        except UnicodeDecodeError:
            continue
        if inside == span.text:
            return replace(span, start=start, end=start + len(inside)), unit
    return None


def repaired(sample: Sample, keep: Collection[str] = ()) -> tuple[Sample, Counter[str]]:
    """The sample with repaired spans, and the number of changes by check.

    Spans that `_placed` cannot place, and a blank span that is the only one of its annotation, are not changed: such
    rows are removed, because no repair would be right.

    Args:
        sample: any sample.
        keep: checks whose faults stay.
    """
    changes = Counter[str]()
    annotations = tuple(_annotation(annotation, sample.response, changes, keep) for annotation in sample.annotations)
    return (replace(sample, annotations=annotations) if changes else sample), changes


def _annotation(annotation: Annotation, response: str, changes: Counter[str], keep: Collection[str]) -> Annotation:
    spans = []
    seen = set[tuple[int, int, str | None]]()
    for span in annotation.spans or ():
        meant, unit = _placed(span, response) or (span, "")
        if unit and "text_mismatch" not in keep:
            changes["text_mismatch"] += 1
            span = meant
        bare = _trimmed(span, response)
        if bare is None and "blank_span" not in keep:
            changes["blank_span"] += 1
            continue
        if bare is not None and bare is not span and "span_edges" not in keep:
            changes["span_edges"] += 1
            span = bare
        key = (span.start, span.end, span.type)
        if key in seen and "repeated_span" not in keep:
            changes["repeated_span"] += 1
            continue
        seen.add(key)
        spans.append(span)
    return annotation if annotation.spans is None else replace(annotation, spans=tuple(spans))


def _is_blank(text: str) -> bool:
    """Whether a marked text has no letter, digit or symbol, so that nothing can be wrong."""
    return not any(char.isalnum() or unicodedata.category(char)[0] in "SM" for char in text)


def _trimmed(span: Span, response: str) -> Span | None:
    """The span without white space at its edges; None if the rest is blank."""
    if _is_blank(response[span.start : span.end]):
        return None
    start, end = trimmed(response, span.start, span.end)
    if (start, end) == (span.start, span.end):
        return span
    return replace(span, start=start, end=end, text=None if span.text is None else response[start:end])


# Checks of one sample by itself: labels, offsets, characters.


_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


class Fault(NamedTuple):
    """A problem of a sample.

    Attributes:
        check: name of the check.
        detail: the problem, in a few words.
        kind: kind of the problem, if the check has kinds.
        text: the text, if any.
        lasting: whether it cannot be repaired, so that the row is removed by a check that repairs.
        layer: whose labels, if the check separates them.
    """

    check: str
    detail: str
    kind: str | None = None
    text: str | None = None
    lasting: bool = False
    layer: str | None = None


def row_faults(sample: Sample) -> Iterator[Fault]:
    """All problems of a sample by itself."""
    yield from _sample_faults(sample)
    yield from _language_faults(sample)
    yield from _span_faults(sample)


def _sample_faults(sample: Sample) -> Iterator[Fault]:
    """Problems of the sample as a whole."""
    labelled = bool(sample.annotations)
    if labelled and not sample.response.strip():
        yield Fault("no_response", "it has labels and no response")
    if labelled and not any(passage.text.strip() for passage in sample.evidence):
        yield Fault("no_evidence", "there is nothing to check it against")
    flags = source_flags(sample)
    if flags:
        source = next((passage.text for passage in sample.evidence), None)
        yield Fault("faulty_source", f"annotators flagged {', '.join(flags)}", kind=", ".join(flags), text=source)
    if sample.language is None:
        yield Fault("no_language", "no language is stated", text=sample.response or sample.question)
    tags = _tags().findall(sample.response)
    if tags:
        yield Fault("leftover_tags", f"{tags[0]} is in the response", kind=tags[0].lower(), text=sample.response)
    for name, text in (("response", sample.response), *(("evidence", passage.text) for passage in sample.evidence)):
        broken = _BROKEN.search(text)
        if broken:
            around = text[max(0, broken.start() - 20) : broken.end() + 20]
            yield Fault("broken_characters", f"U+{ord(broken.group()):04X} in the {name}", kind=name, text=around)
            break


@cache
def _tags() -> re.Pattern[str]:
    """Inline tags of any taxonomy."""
    names = sorted({type_ for entry in taxonomies().values() for type_ in entry.types} | {"mark", "delete"})
    return re.compile(rf"</?(?:{'|'.join(map(re.escape, names))})>", re.IGNORECASE)


def _span_faults(sample: Sample) -> Iterator[Fault]:
    """Problems of single spans and of the spans of one annotator together; one for each span."""
    for annotation in sample.annotations:
        spans, taxonomy = annotation.spans or (), taxonomies().get(annotation.taxonomy)
        lost = 0
        for span in spans:
            text = sample.response[span.start : span.end]
            if taxonomy is None:
                detail = f"there is no taxonomy {annotation.taxonomy!r}"
                yield Fault("unknown_type", detail, kind=annotation.taxonomy)
            elif span.type is not None and span.type not in taxonomy.types:
                detail = f"{span.type!r} is no type of {annotation.taxonomy}"
                yield Fault("unknown_type", detail, kind=span.type, text=text)
            _, unit = _placed(span, sample.response) or (span, "unknown")
            if unit:
                detail = f"its text is {span.text!r}, but its offsets give {text!r}"
                yield Fault("text_mismatch", detail, kind=unit, text=text, lasting=unit == "unknown")
            if _is_blank(text):
                lost += 1
                yield Fault("blank_span", f"{text!r} is marked", kind=str(annotation.kind), lasting=lost == len(spans))
            elif text != text.strip():
                yield Fault("span_edges", f"{text!r} is marked", kind=str(annotation.kind))
        yield from _together(spans, sample.response)


def _together(spans: Sequence[Span], response: str) -> Iterator[Fault]:
    """Relations between spans of one annotator; each span is compared with those that begin before it."""
    open_: list[Span] = []
    seen = set[tuple[int, int, str | None]]()
    for span in in_order(spans):
        key = (span.start, span.end, span.type)
        text = response[span.start : span.end]
        if key in seen:
            yield Fault("repeated_span", f"{span.type} twice", text=text)
            continue
        seen.add(key)
        open_ = [earlier for earlier in open_ if earlier.end > span.start]
        if open_:
            crosses = any(earlier.end < span.end for earlier in open_)
            detail, kind = ("it crosses another", "crossing") if crosses else ("it is inside another", "nested")
            yield Fault("overlapping_spans", detail, kind=kind, text=text)
        open_.append(span)


_TOGETHER = ({"Hira", "Kana", "Hani"}, {"Hang", "Hani"})  # scripts that are used together
_MOST = 0.6  # minimum share of the letters for the script of a text
_FEWEST_LETTERS = 24
_SURE = 0.9
_OWN = 0.1  # minimum share of the letters for the script of the text's own language
_FOREIGN = 0.25  # share of letters in the response's script from which a reference may be in either language
_SHORTEST_LOOP = 64  # letters of a response; less is emphasis or a stock phrase
_SHORTEST_GARBLED = 150  # letters of a reference: titles, headings and lists are repetitive too
_DENSE_LETTER = 2.5  # weight of a letter that is a syllable or a word
_NO_LETTERS = re.compile(r"[\W_]+")
_LOOKED_AT = 4000  # code points


class _TextFacts(NamedTuple):
    """The script of most letters of a text, the shares of all scripts, and the language, if known."""

    script: str | None = None
    shares: Mapping[str, float] = {}
    identified: Identified | None = None


def _language_faults(sample: Sample) -> Iterator[Fault]:
    """Script and language of the response and of its evidence, and garbled evidence."""
    response = _facts(sample.response)
    if _broken(sample.response) == "looping":
        yield Fault("looping_response", "it repeats itself", text=sample.response)
    tag = sample.language
    wrong = None if tag is None else _misfit(tag, response)
    if wrong is not None and not _quoted(sample):
        yield Fault(
            f"wrong_{wrong[0]}", f"it states {tag}, but is in {wrong[1]}", f"{tag}: {wrong[1]}", sample.response
        )
    whole = "\n".join(passage.text for passage in sample.evidence)
    broken = _garbled_in(whole)
    if broken is not None:
        yield Fault("garbled_reference", broken.replace("_", " "), broken, whole)
        return
    for tag, text in _by_tag(sample):
        yield from _evidence_faults(sample, tag, text, response.script if wrong is None else None)


def _quoted(sample: Sample) -> bool:
    """Whether evidence in its recorded language contains the response, as for names and titles."""
    if sample.task is Task.TRANSLATION:
        return False
    response = _letters(sample.response)
    return any(
        response in _letters(passage.text)
        and _misfit(passage.language or sample.language or "", _facts(passage.text)) is None
        for passage in sample.evidence
    )


def _evidence_faults(sample: Sample, tag: str, text: str, own: str | None) -> Iterator[Fault]:
    known = _facts(text)
    same = sample.language is not None and same_language(tag, sample.language)
    apart = own and known.script and not any({own, known.script} <= scripts for scripts in _TOGETHER)
    if same and own and apart and known.shares.get(own, 0.0) < _FOREIGN:
        detail = f"the response is in {own}, the reference in {known.script}"
        yield Fault("reference_script", detail, f"{own}/{known.script}", text)
    wrong = _misfit(tag, known)
    if wrong is not None and (wrong[0] == "language" or not same):
        yield Fault("reference_language", f"it states {tag}, but is in {wrong[1]}", f"{tag}: {wrong[1]}", text)


@lru_cache(4096)
def _garbled_in(text: str) -> str | None:
    """Why the evidence of a row is unusable, `looping` or `unknown_characters`; None if it is usable."""
    why = _broken(text)
    if why != "looping":
        return why
    return why if _weight(_NO_LETTERS.sub(" ", text), text) >= _SHORTEST_GARBLED else None


def _by_tag(sample: Sample) -> Iterator[tuple[str, str]]:
    """The beginnings of the passages, joined by language; passages without a language are left out."""
    assumed = None if sample.task is Task.TRANSLATION else sample.language
    share = max(_FEWEST_LETTERS * 4, _LOOKED_AT // max(1, len(sample.evidence)))
    parts = defaultdict[str, list[str]](list)
    for passage in sample.evidence:
        tag = passage.language or assumed
        if tag is not None:
            parts[tag].append(passage.text[:share])
    for tag, texts in parts.items():
        yield tag, "\n".join(texts)


@lru_cache(4096)
def _facts(text: str) -> _TextFacts:
    part = text[:_LOOKED_AT]
    if sum(map(str.isalpha, part)) < _FEWEST_LETTERS:
        return _TextFacts()
    shares = script_shares(part)
    script, share = next(iter(shares.items()), (None, 0.0))
    return _TextFacts(script if share >= _MOST else None, shares, identify(text))


def _broken(text: str) -> str | None:
    """Like `garbled`, but rows of exclamation marks and a phrase that occurs three times are not a loop."""
    why = garbled(text)
    if why != "looping":
        return why
    letters = _NO_LETTERS.sub(" ", text)
    return why if len(letters) >= _SHORTEST_LOOP and garbled(letters) == "looping" else None


def _misfit(tag: str, known: _TextFacts) -> tuple[str, str] | None:
    """`script` or `language`, and the detected one; None if the text fits or nothing can be detected."""
    expected = find_language(tag)
    if known.script is None or expected is None:
        return None
    if known.script not in expected.scripts:
        own = sum(known.shares.get(script, 0.0) for script in expected.scripts)
        return ("script", known.script) if own < _OWN else None
    identified = known.identified
    if identified is None or identified.confidence < _SURE or same_language(identified.tag, tag, similar=True):
        return None
    return "language", identified.tag


# Stored for every row: hashes of its text, labels and references, about 40 bytes, independent of the text's length.


_ENOUGH = 32.0  # letters of a text that is never written twice by chance
_ROW = np.dtype([("text", "<u8"), ("long", "?"), ("whole", "<u8"), ("file", "<u4"), ("split", "<u2"), ("tag", "<u2")])
_PASSAGE = np.dtype([("text", "<u8"), ("owner", "<u4"), ("number", "<u2"), ("own", "?")])


def _letters(text: str) -> str:
    """Letters and digits of a text, case-folded: equal for two copies with different spaces."""
    return _NO_LETTERS.sub("", fold(text))


def _weight(letters: str, text: str) -> float:
    """Number of letters of a text; letters that are syllables or words count more."""
    dense = sum("\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in text)
    return len(letters) + (_DENSE_LETTER - 1) * dense


class Index:
    """Hashes by row and by passage; `freeze` makes arrays of them.

    Attributes:
        texts: of each row's response, with question and evidence if it is short; 0 if it is empty.
        long: whether the hash is of the response alone.
        whole: of the complete row: question, evidence, response, labels.
        files, splits: numbers of each row's file and split.
        languages: number of each row's language, without its script; 0 if unknown. Names are in `language_names`.
        passages: of each passage that is long enough.
        owners, places: number of the passage's row, and index of the passage in it.
        own: whether a passage is in the language of its response, by its record or by default.
    """

    def __init__(self) -> None:
        self._rows, self._passages = bytearray(), bytearray()
        self._count = 0
        self.language_names = [""]
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def add(self, sample: Sample, file: int, split: int) -> None:
        """Add the next row."""
        response, question = _letters(sample.response), _letters(sample.question or "")
        passages = [_letters(passage.text) for passage in sample.evidence]
        is_long = _weight(response, response) >= _ENOUGH
        text = hash64(response, *(() if is_long else (question, *passages))) if response else 0
        labels = self._encode(sample.annotations).decode()
        model = sample.generator.name if sample.generator is not None else ""
        base = _plain_tag(sample.language)
        if base not in self.language_names:
            self.language_names.append(base)
        whole = hash64(question, *passages, sample.response, model, labels)
        self._rows += struct.pack("<Q?QIHH", text, is_long, whole, file, split, self.language_names.index(base))
        for number, passage in enumerate(passages):
            if _weight(passage, passage) >= _ENOUGH:
                stated = sample.evidence[number].language
                own = _plain_tag(stated) == base if stated else sample.task is not Task.TRANSLATION
                self._passages += struct.pack("<QIH?", hash64(passage), self._count, min(number, 0xFFFF), own)
        self._count += 1

    def freeze(self) -> None:
        """Make arrays; nothing can be added afterwards."""
        rows, passages = np.frombuffer(self._rows, _ROW), np.frombuffer(self._passages, _PASSAGE)
        self.texts, self.long, self.whole = rows["text"], rows["long"], rows["whole"]
        self.files, self.splits, self.languages = rows["file"], rows["split"], rows["tag"]
        self.passages, self.owners = passages["text"], passages["owner"]
        self.places, self.own = passages["number"], passages["own"]

    def by_language(self, rows: Sequence[int]) -> list[list[int]]:
        """Rows grouped by the language of their responses."""
        parts = defaultdict[int, list[int]](list)
        for row in rows:
            parts[int(self.languages[row])].append(row)
        return list(parts.values())


def _plain_tag(tag: str | None) -> str:
    return (tag or "").partition("-")[0]


# Glued spans: the replaced word and its replacement in one ("RomeParis"), and the position of the join ("seam").
#
# `text.noise` finds seams that are visible (`RomeParis`, `20142015`). Most are not, so here the texts of a language
# give its words, the letters that follow each other, and beginnings and endings of words. A position inside a span is
# a seam if both sides are known and the joined word is not. Counts come from the data set itself (references, and
# responses outside their marks), so nothing is assumed about a language.
#
# The result is an estimate and a lower bound: in mFAVA's gold files, where no rule glues words, it reports 1 to 6% of
# the spans as glued; in its silver files 30 to 90%.


Mark = TypeVar("Mark", Span, Unit)

_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_TWICE = re.compile(r"(\d+(?:[.,]\d+)?([^\d\s]{1,3}))\d+(?:[.,]\d+)?\2")  # 1841年1840年, 5%95%
_YEARS = (1000, 2100)
_SHORTEST_WORD = 4  # of two words of two letters
_SURE_PART = 3  # letters of the shorter part from which one occurrence is enough
_SEEN_OFTEN = 5
_DENSE = frozenset({"Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"})  # no spaces between words
_SYLLABIC = "Hang"  # few letters in a word, spaces between phrases
_LONGEST_DENSE = 16  # code points: in a longer span some pair of letters is new by chance
_LEARNT_ENOUGH = 6_000_000  # code points of a language after which learning stops
_MOST_STRINGS = 1 << 20  # different strings in memory before those with one occurrence are removed


class _Seam(NamedTuple):
    """The seam in a span, if known, and the evidence for it: `words`, `letters`, `numbers` or `look`."""

    at: int | None
    why: str


class _Counted(Counter[str]):
    """A counter that removes entries with a count of 1 when there are too many."""

    def take(self, strings: Iterable[str]) -> None:
        """Count more strings."""
        self.update(strings)
        if len(self) > _MOST_STRINGS:
            for key in [key for key, count in self.items() if count == 1]:
                del self[key]


class SeamFinder:
    """Words and letters of one language, learned from texts; memory and time are bounded."""

    def __init__(self) -> None:
        self._learnt = 0
        self._words = _Counted()
        self._strings = _Counted()  # letter sequences: words, or clauses in scripts without spaces between words
        self._runs = Counter[str]()  # n-grams of two, three and four letters
        self._endings = Counter[str]()
        self._beginnings = Counter[str]()

    def learn(self, text: str, language: str | None = None) -> None:
        """Learn from a text without glued words: a reference, or a response outside its marks; up to a limit."""
        if self._learnt > _LEARNT_ENOUGH:
            return
        self._learnt += len(text)
        folded = fold(text)
        self._words.take(folded[start:end] for start, end in words(text, language))
        self._strings.take(_WORD.findall(folded))
        self._runs.clear()

    def _count_letters(self) -> None:
        """Count n-grams, endings and beginnings in the distinct strings."""
        runs, endings, beginnings = self._runs, self._endings, self._beginnings
        endings.clear()
        beginnings.clear()
        for word, count in self._strings.items():
            for size in (2, 3, 4):
                for at in range(len(word) - size + 1):
                    runs[word[at : at + size]] += count
            if len(word) > 1:
                for size in (2, 3):
                    endings[word[-size:]] += count
                    beginnings[word[:size]] += count

    def find(self, span: str, reference: str, language: str | None = None) -> _Seam | None:
        """The first seam of a marked text, or None."""
        folded = fold(span)
        if folded in reference:
            return None
        if (at := self._between_numbers(folded, reference)) is not None:
            return _Seam(at, "numbers")
        if (at := self._between_words(folded, span, language)) is not None:
            return _Seam(at, "words")
        if (at := self._between_letters(folded)) is not None:
            return _Seam(at, "letters")
        folded_words = (fold(span[start:end]) for start, end in words(span, language))
        if looks_glued(span) and not all(self._words[word] for word in folded_words):
            return _Seam(None, "look")
        return None

    def knows(self, text: str, language: str | None) -> bool:
        """Whether every word of a case-folded text is a known word of the language."""
        bounds = words(text, language)
        return bool(bounds) and all(self._words[text[start:end]] for start, end in bounds)

    def _between_numbers(self, span: str, reference: str) -> int | None:
        twice = _TWICE.fullmatch(span)
        if twice:
            return len(twice.group(1))
        for number in _NUMBER.finditer(span):
            digits = number.group()
            half, odd = divmod(len(digits), 2)
            is_year = half == 2 and _YEARS[0] <= int(digits) <= _YEARS[1]
            if odd or half < 2 or is_year or digits in reference:
                continue
            first, second = digits[:half], digits[half:]
            both_years = half == 4 and all(_YEARS[0] <= int(part) <= _YEARS[1] for part in (first, second))
            if both_years or any(re.search(rf"(?<!\d){part}(?!\d)", reference) for part in (first, second)):
                return number.start() + half
        return None

    def _between_words(self, folded: str, span: str, language: str | None) -> int | None:
        for start, end in words(span, language):
            word = folded[start:end]
            if len(word) < _SHORTEST_WORD or self._words[word] or any(char.isdigit() for char in word):
                continue
            best, seam = 0, None
            for cut in range(2, len(word) - 1):
                seen = min(self._words[word[:cut]], self._words[word[cut:]])
                short = min(cut, len(word) - cut)
                if seen >= (1 if short >= _SURE_PART else _SEEN_OFTEN) and seen * short > best:
                    best, seam = seen * short, start + cut
            if seam is not None:
                return seam
        return None

    def _between_letters(self, span: str) -> int | None:
        if not self._runs:
            self._count_letters()
        script = script_of(span)
        for match in _WORD.finditer(span):
            word = match.group()
            if script in _DENSE:
                cut = self._new_pair(word, self._runs, self._runs, 1) if len(span) <= _LONGEST_DENSE else None
            elif script == _SYLLABIC:
                cut = self._new_pair(word, self._endings, self._beginnings, 2)
            else:
                cut = self._new_run(word)
            if cut is not None:
                return match.start() + cut
        return None

    def _new_pair(self, word: str, before: Counter[str], after: Counter[str], fewest: int) -> int | None:
        """In scripts without spaces between words: two letters that never follow each other, between known pairs."""
        for cut in range(2, len(word) - 1):
            left, right = word[cut - 2 : cut], word[cut : cut + 2]
            known = before[left] >= fewest and after[right] >= fewest
            if known and not self._runs[left[1] + right[0]]:
                return cut
        return None

    def _new_run(self, word: str) -> int | None:
        """A frequent ending before a frequent beginning, with a new 4-gram across them."""
        runs = self._runs
        for cut in range(_SURE_PART, len(word) - _SURE_PART + 1):
            left, right = word[cut - 3 : cut], word[cut : cut + 3]
            if self._endings[left] < _SEEN_OFTEN or self._beginnings[right] < _SEEN_OFTEN:
                continue
            across = left[1:] + right[:2]
            if not runs[across] and runs[across[:3]] <= 1 and runs[across[1:]] <= 1:
                return cut
        return None


# Glued spans of a whole data set: learn each language, find seams in replaced spans.


_REPLACING = frozenset({"entity", "relation"})
"""Types of spans in which one wording took the place of another; the others were put in as they are."""


class Glue:
    """Finds glued spans, with one finder for each language. Languages in `wanted` have spans that may be glued."""

    def __init__(self) -> None:
        self._finders = defaultdict[str, SeamFinder](SeamFinder)
        self.wanted = set[str]()

    def want(self, sample: Sample) -> None:
        """Mark the language of a sample for learning if the sample has replaced spans."""
        if any(True for _ in _replaced(sample)):
            self.wanted.add(_plain_tag(sample.language))

    def learn(self, sample: Sample, text: str) -> None:
        """Learn from a text in the language of a sample that has no marks: a passage, or part of a response."""
        base = _plain_tag(sample.language)
        if base in self.wanted:
            self._finders[base].learn(text, sample.language)

    def learn_response(self, sample: Sample) -> None:
        """Learn from a response, without its marked parts."""
        read = 0
        spans = sorted((span.start, span.end) for annotation in sample.annotations for span in annotation.spans or ())
        for start, end in [*spans, (len(sample.response), len(sample.response))]:
            if start > read:
                self.learn(sample, sample.response[read:start])
            read = max(read, end)

    def look(self, sample: Sample) -> Iterator[tuple[Span, _Seam | None, str]]:
        """Each replaced span, its seam or None, and its annotator."""
        replaced = list(_replaced(sample))
        reference, finder = _reference(sample) if replaced else "", self._finders[_plain_tag(sample.language)]
        for span, annotator in replaced:
            yield span, finder.find(sample.response[span.start : span.end], reference, sample.language), annotator

    def without_glue(self, sample: Sample) -> tuple[Sample, int] | None:
        """The sample without the old words in its glued spans, and their number; None if the repair is not safe.

        Only labels of models are repaired: people marked the text with its glued words. A word is removed only if the
        seam is known, and the word is in the reference or in the language's words.
        """
        glued = [(span, seam) for span, seam, _ in self.look(sample) if seam is not None]
        if not glued:
            return sample, 0
        if any(annotation.kind is not Kind.MODEL for annotation in sample.annotations):
            return None
        reference = _reference(sample)
        finder = self._finders[_plain_tag(sample.language)]
        ranges = []
        for span, seam in glued:
            old = "" if seam.at is None else fold(sample.response[span.start : span.start + seam.at])
            if seam.at is None or not (seam.why == "numbers" or old in reference or finder.knows(old, sample.language)):
                return None
            ranges.append((span.start, span.start + seam.at))
        mended = without_ranges(sample, ranges)
        if mended is None or any(seam is not None for _, seam, _ in self.look(mended)):
            return None
        return mended, len(glued)


def _reference(sample: Sample) -> str:
    return fold("\n".join(passage.text for passage in sample.evidence))


def _replaced(sample: Sample) -> Iterator[tuple[Span, str]]:
    for annotation in sample.annotations:
        for span in annotation.spans or ():
            if span.type in _REPLACING:
                yield span, annotation.annotator


_STALE = ("glued",)  # `meta` that readers set for the unrepaired text


def without_ranges(sample: Sample, ranges: Iterable[tuple[int, int]]) -> Sample | None:
    """The sample without parts of its response, with moved marks; None if a mark or the response would be empty."""
    gone = bytearray(len(sample.response))
    for start, end in ranges:
        gone[start:end] = b"\x01" * (end - start)
    response = "".join(char for char, out in zip(sample.response, gone, strict=True) if not out)
    moved = [0, *accumulate(not out for out in gone)]
    annotations = []
    for annotation in sample.annotations:
        spans, units = _moved(annotation.spans, moved), _moved(annotation.units, moved)
        if (spans is None) != (annotation.spans is None) or (units is None) != (annotation.units is None):
            return None
        spans = spans and tuple(
            span if span.text is None else replace(span, text=response[span.start : span.end]) for span in spans
        )
        annotations.append(replace(annotation, spans=spans, units=units))
    if not response.strip():
        return None
    meta = {key: value for key, value in sample.meta.items() if key not in _STALE}
    return replace(sample, response=response, annotations=tuple(annotations), meta=meta)


def _moved(marks: Sequence[Mark] | None, moved: Sequence[int]) -> tuple[Mark, ...] | None:
    """Marks at their new offsets; None if there are none, or one would be empty."""
    if marks is None or any(moved[mark.start] == moved[mark.end] for mark in marks):
        return None
    return tuple(replace(mark, start=moved[mark.start], end=moved[mark.end]) for mark in marks)
