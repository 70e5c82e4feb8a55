"""Checks of single rows: repair, faults of labels and offsets, language and script; and the index of all rows."""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
from collections import Counter, defaultdict
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from veriglot.formats.tags import in_order
from veriglot.records import Task
from veriglot.records.languages import base_tag, find_language, same_language
from veriglot.records.taxonomy import taxonomies
from veriglot.text.identification import identify
from veriglot.text.noise import garbled
from veriglot.text.normalization import fold
from veriglot.text.unicode import script_shares

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from veriglot.records import Annotation, Sample, Span
    from veriglot.storage.checkpoint import FailedRow
    from veriglot.text.identification import Identified

__all__ = ["Fault", "Index", "kind_of_error", "repaired", "row_faults"]


# What a cleaned copy changes in a sample: offsets in another unit, edges of spans, spans twice, glued words.


def _placed(span: Span, response: str) -> tuple[Span, str] | None:
    """The span as it is meant, and the unit of its offsets: empty for code points, or `utf-16`, `utf-8`.

    None where the text that it carries does not stand there in any unit.
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
            return msgspec.structs.replace(span, start=start, end=start + len(inside)), unit
    return None


def repaired(sample: Sample, keep: Collection[str] = ()) -> tuple[Sample, Counter[str]]:
    """The sample with its spans put right, and how many changes were made, by check.

    A span that `_placed` cannot place stays as it is, and so does a blank span that is the only one of its annotation:
    such rows are left out, since no repair is right.

    Args:
        sample: any sample.
        keep: checks whose faults stay.
    """
    changes: Counter[str] = Counter()
    annotations = tuple(_annotation(annotation, sample.response, changes, keep) for annotation in sample.annotations)
    return (msgspec.structs.replace(sample, annotations=annotations) if changes else sample), changes


def _annotation(annotation: Annotation, response: str, changes: Counter[str], keep: Collection[str]) -> Annotation:
    spans: list[Span] = []
    seen: set[tuple[int, int, str | None]] = set()
    for span in annotation.spans or ():
        meant, unit = _placed(span, response) or (span, "")
        if unit and "text_mismatch" not in keep:
            changes["text_mismatch"] += 1
            span = meant
        trimmed = _trimmed(span, response)
        if trimmed is None and "blank_span" not in keep:
            changes["blank_span"] += 1
            continue
        if trimmed is None or "span_edges" in keep:
            trimmed = span
        if trimmed is not span:
            changes["span_edges"] += 1
        key = (trimmed.start, trimmed.end, trimmed.type)
        if key in seen and "repeated_span" not in keep:
            changes["repeated_span"] += 1
            continue
        seen.add(key)
        spans.append(trimmed)
    return annotation if annotation.spans is None else msgspec.structs.replace(annotation, spans=tuple(spans))


def _is_blank(text: str) -> bool:
    """Whether a marked text holds nothing that could be wrong: no letter, no digit, no symbol."""
    return not any(char.isalnum() or unicodedata.category(char)[0] in "SM" for char in text)


def _trimmed(span: Span, response: str) -> Span | None:
    """Without white space at its edges; None where nothing is left that could be wrong."""
    text = response[span.start : span.end]
    if _is_blank(text):
        return None
    start = span.start + len(text) - len(text.lstrip())
    end = span.end - (len(text) - len(text.rstrip()))
    if (start, end) == (span.start, span.end):
        return span
    return msgspec.structs.replace(span, start=start, end=end, text=None if span.text is None else response[start:end])


# What can be told of one sample by itself: its labels, its offsets, its characters.


_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
_OFFSETS = re.compile(r"\.(?:start|end|spans|units)\b|(?:spans|units|hard_labels|soft_labels)(?:\[|$)")


class Fault(NamedTuple):
    """Something wrong with a sample.

    Attributes:
        check: the check that it belongs to.
        detail: what is wrong, in a few words.
        kind: which kind of it, where the check tells kinds.
        text: the text concerned, if any.
        lasting: whether no repair removes it, so that the row is left out where the check repairs.
        layer: whose labels, where the check tells them apart.
    """

    check: str
    detail: str
    kind: str | None = None
    text: str | None = None
    lasting: bool = False
    layer: str | None = None


def kind_of_error(row: FailedRow) -> str:
    """The check that a row belongs to that could not be read."""
    if row.field == "id" and "occurred before" in row.message:
        return "repeated_id"
    about_offsets = "half-open" in row.message or "ends beyond" in row.message
    if about_offsets or _OFFSETS.search(row.field or ""):
        return "bad_offsets"
    return "unreadable_row"


def row_faults(sample: Sample) -> Iterator[Fault]:
    """Everything that is wrong with a sample by itself."""
    yield from _sample_faults(sample)
    yield from _language_faults(sample)
    yield from _span_faults(sample)


def _sample_faults(sample: Sample) -> Iterator[Fault]:
    """Faults of the sample as a whole."""
    labelled = bool(sample.annotations)
    if labelled and not sample.response.strip():
        yield Fault("no_response", "it has labels and no response")
    if labelled and not any(passage.text.strip() for passage in sample.evidence):
        yield Fault("no_evidence", "there is nothing to hold it against")
    if sample.language is None:
        yield Fault("no_language", "no language is stated", text=sample.response or sample.question)
    tags = _tags().findall(sample.response)
    if tags:
        yield Fault("leftover_tags", f"{tags[0]} stands in the response", kind=tags[0].lower(), text=sample.response)
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
    """Faults of single spans and of the spans of one annotator together; one for each span concerned."""
    for annotation in sample.annotations:
        spans = annotation.spans or ()
        lost = 0
        for span in spans:
            text = sample.response[span.start : span.end]
            yield from _type_fault(annotation, span, text)
            _, unit = _placed(span, sample.response) or (span, "unknown")
            if unit:
                detail = f"it says {span.text!r} and cuts out {text!r}"
                yield Fault("text_mismatch", detail, kind=unit, text=text, lasting=unit == "unknown")
            if _is_blank(text):
                lost += 1
                alone = lost == len(spans)
                yield Fault("blank_span", f"{text!r} is marked", kind=str(annotation.kind), lasting=alone)
            elif text != text.strip():
                yield Fault("span_edges", f"{text!r} is marked", kind=str(annotation.kind))
        yield from _together(annotation.spans or (), sample.response)


def _type_fault(annotation: Annotation, span: Span, text: str) -> Iterator[Fault]:
    known = taxonomies().get(annotation.taxonomy)
    if known is None:
        yield Fault("unknown_type", f"there is no taxonomy {annotation.taxonomy!r}", kind=annotation.taxonomy)
    elif span.type is not None and span.type not in known.types:
        detail = f"{span.type!r} is no type of {annotation.taxonomy}"
        yield Fault("unknown_type", detail, kind=span.type, text=text)


def _together(spans: Sequence[Span], response: str) -> Iterator[Fault]:
    """What spans of one annotator are to each other; each span is held against those that begin before it."""
    open_: list[Span] = []
    seen: set[tuple[int, int, str | None]] = set()
    for span in in_order(spans):
        key = (span.start, span.end, span.type)
        text = response[span.start : span.end]
        if key in seen:
            yield Fault("repeated_span", f"{span.type} twice", text=text)
            continue
        seen.add(key)
        open_ = [earlier for earlier in open_ if earlier.end > span.start]
        if any(earlier.end < span.end for earlier in open_):
            yield Fault("overlapping_spans", "it crosses another", kind="crossing", text=text)
        elif open_:
            yield Fault("overlapping_spans", "it lies in another", kind="nested", text=text)
        open_.append(span)


_TOGETHER = ({"Hira", "Kana", "Hani"}, {"Hang", "Hani"})  # scripts of one way of writing
_MOST = 0.6  # share of the letters from which a text is in a script
_FEWEST_LETTERS = 24
_SURE = 0.9
_NEIGHBOURS = (  # what identification takes for one another
    {"id", "ms"}, {"hr", "bs", "sr"}, {"nb", "nn", "no", "da"}, {"cs", "sk"}, {"gl", "pt", "es"}, {"hi", "mr", "ne"},
    {"fa", "prs", "tg"}, {"bg", "mk"},
)  # fmt: skip
_OWN = 0.1  # share of the letters from which the script of its language makes a text one of it
_FOREIGN = 0.25  # share of the letters from which a reference is as much in the script of the response as in its own
_SHORTEST_LOOP = 64  # letters of a response; less is emphasis or a stock phrase
_SHORTEST_GARBLED = 150  # letters of a reference: titles, headings and lists repeat themselves too
_DENSE_LETTER = 2.5  # what a letter counts that is a syllable or a word
_NO_LETTERS = re.compile(r"[\W_]+")
_LOOKED_AT = 4000  # code points


class _TextFacts(NamedTuple):
    """The script that most letters of a text are of, the shares of all scripts, and the language, as far as known."""

    script: str | None = None
    shares: Mapping[str, float] = {}
    identified: Identified | None = None


def _language_faults(sample: Sample) -> Iterator[Fault]:
    """Script and language of the response and of its evidence, and garbled evidence."""
    response = _facts(sample.response)
    if _broken(sample.response) == "looping":
        yield Fault("looping_response", "it goes round in circles", text=sample.response)
    tag = sample.language
    wrong = None if tag is None else _misfit(tag, response)
    if wrong is not None and not _quoted(sample):
        detail = f"it says {tag} and is in {wrong[1]}"
        yield Fault(f"wrong_{wrong[0]}", detail, f"{tag}: {wrong[1]}", sample.response)
    whole = "\n".join(passage.text for passage in sample.evidence)
    broken = _garbled_in(whole)
    if broken is not None:
        yield Fault("garbled_reference", broken.replace("_", " "), broken, whole)
        return
    for tag, text in _by_tag(sample):
        yield from _evidence_faults(sample, tag, text, response.script if wrong is None else None)


def _quoted(sample: Sample) -> bool:
    """Whether the response stands in evidence that is in the language it says, as names and titles do."""
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
        yield Fault("reference_language", f"it says {tag} and is in {wrong[1]}", f"{tag}: {wrong[1]}", text)


@lru_cache(maxsize=4096)
def _garbled_in(text: str) -> str | None:
    """Why the evidence of a row is unusable, `looping` or `unknown_characters`; None where it looks sound."""
    why = _broken(text)
    if why != "looping":
        return why
    return why if _weight(_NO_LETTERS.sub(" ", text), text) >= _SHORTEST_GARBLED else None


def _by_tag(sample: Sample) -> Iterator[tuple[str, str]]:
    """The beginnings of the passages, those that say one language together; what says none is left out."""
    assumed = None if sample.task is Task.TRANSLATION else sample.language
    share = max(_FEWEST_LETTERS * 4, _LOOKED_AT // max(1, len(sample.evidence)))
    parts: dict[str, list[str]] = defaultdict(list)
    for passage in sample.evidence:
        tag = passage.language or assumed
        if tag is not None:
            parts[tag].append(passage.text[:share])
    for tag, texts in parts.items():
        yield tag, "\n".join(texts)


@lru_cache(maxsize=4096)
def _facts(text: str) -> _TextFacts:
    part = text[:_LOOKED_AT]
    if sum(map(str.isalpha, part)) < _FEWEST_LETTERS:
        return _TextFacts()
    shares = script_shares(part)
    script, share = next(iter(shares.items()), (None, 0.0))
    return _TextFacts(script if share >= _MOST else None, shares, identify(text))


def _broken(text: str) -> str | None:
    """As `garbled`, but rows of exclamation marks and a phrase that is said thrice are no loop."""
    why = garbled(text)
    if why != "looping":
        return why
    letters = _NO_LETTERS.sub(" ", text)
    return why if len(letters) >= _SHORTEST_LOOP and garbled(letters) == "looping" else None


def _misfit(tag: str, known: _TextFacts) -> tuple[str, str] | None:
    """`script` or `language`, and what the text is in instead; None where it fits or cannot be told."""
    expected = find_language(tag)
    if known.script is None or expected is None:
        return None
    if known.script not in expected.scripts:
        own = sum(known.shares.get(script, 0.0) for script in expected.scripts)
        return ("script", known.script) if own < _OWN else None
    identified = known.identified
    if identified is None or identified.confidence < _SURE or base_tag(identified.tag) == expected.base:
        return None
    pair = {base_tag(identified.tag), expected.base}
    return None if any(pair <= group for group in _NEIGHBOURS) else ("language", identified.tag)


# What is kept of every row: hashes of its text, labels and references, 40 bytes or so, however long the text.


_ENOUGH = 32.0  # letters of a text that nobody writes twice by chance
_ROW = np.dtype([("text", "<u8"), ("long", "?"), ("whole", "<u8"), ("file", "<u4"), ("split", "<u2"), ("tag", "<u2")])
_PASSAGE = np.dtype([("text", "<u8"), ("owner", "<u4"), ("number", "<u2"), ("own", "?")])


def _letters(text: str) -> str:
    """Letters and digits of a text, folded: what two copies have in common whatever was done to their spaces."""
    return _NO_LETTERS.sub("", fold(text))


def _weight(letters: str, text: str) -> float:
    """How many letters a text has, of which those that are syllables or words count more."""
    dense = sum("\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in text)
    return len(letters) + (_DENSE_LETTER - 1) * dense


def _hash(*parts: str) -> int:
    """64 bits, never 0; framed, so that joins cannot collide."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(4, "little"))
        hasher.update(data)
    return int.from_bytes(hasher.digest(), "little") or 1


class Index:
    """Hashes by row and by passage; `freeze` makes arrays of them.

    Attributes:
        texts: of each row's response, with its question and evidence where it is short; 0 where it is empty.
        long: whether the response alone made the hash.
        whole: of everything that a row says: question, evidence, response, labels.
        files, splits: numbers of each row's file and split.
        languages: number of each row's language, without its script; 0 where none is stated. `language_names` has them.
        passages: of each passage that is long enough.
        owners, places: which row each belongs to, and which of its passages it is.
        own: whether a passage is said, or has to be assumed, to be in the language of its response.
    """

    def __init__(self) -> None:
        self._rows, self._passages = bytearray(), bytearray()
        self._count = 0
        self.language_names = [""]
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def add(self, sample: Sample, file: int, split: int) -> None:
        """Take in the next row."""
        response, question = _letters(sample.response), _letters(sample.question or "")
        passages = [_letters(passage.text) for passage in sample.evidence]
        is_long = _weight(response, response) >= _ENOUGH
        text = _hash(response, *(() if is_long else (question, *passages))) if response else 0
        labels = self._encode(sample.annotations).decode()
        model = sample.generator.name if sample.generator is not None else ""
        base = _plain_tag(sample.language)
        if base not in self.language_names:
            self.language_names.append(base)
        whole = _hash(question, *passages, sample.response, model, labels)
        self._rows += struct.pack("<Q?QIHH", text, is_long, whole, file, split, self.language_names.index(base))
        for number, passage in enumerate(passages):
            if _weight(passage, passage) >= _ENOUGH:
                stated = sample.evidence[number].language
                own = _plain_tag(stated) == base if stated else sample.task is not Task.TRANSLATION
                self._passages += struct.pack("<QIH?", _hash(passage), self._count, min(number, 0xFFFF), own)
        self._count += 1

    def freeze(self) -> None:
        """Make arrays; nothing can be added after it."""
        rows, passages = np.frombuffer(self._rows, _ROW), np.frombuffer(self._passages, _PASSAGE)
        self.texts, self.long, self.whole = rows["text"], rows["long"], rows["whole"]
        self.files, self.splits, self.languages = rows["file"], rows["split"], rows["tag"]
        self.passages, self.owners = passages["text"], passages["owner"]
        self.places, self.own = passages["number"], passages["own"]

    def by_language(self, rows: Sequence[int]) -> list[list[int]]:
        """Rows parted by the language of their responses."""
        parts: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            parts[int(self.languages[row])].append(row)
        return list(parts.values())


def _plain_tag(tag: str | None) -> str:
    return (tag or "").partition("-")[0]
