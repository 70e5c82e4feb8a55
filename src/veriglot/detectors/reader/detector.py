"""The reader: question, response and evidence are shown to an encoder together, and it has learned to judge them.

multilingual-e5-small, its upper layers trained whole, judges each token of the response with all of the question and
the closest evidence in view, and the response as one. What it says is joined with what the grounding detector's network
says of the same words by weights that were learned on texts that trained neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import msgspec
import numpy as np

from veriglot.detectors.grounding.detector import (
    JUDGING_VERSION,
    QUOTED,
    Grounding,
    ScriptCalibration,
    Seen,
    Weights,
    WordDetector,
    pool,
)
from veriglot.detectors.reader.sequences import Shown, shown
from veriglot.encoders.e5 import E5Reader, Tokeniser
from veriglot.errors import WeightsError
from veriglot.hub import registry
from veriglot.judging.base import ResolvedLanguage, evidence_language
from veriglot.records import Sample, Task
from veriglot.records.settings import Record
from veriglot.signatures import digest, file_sha256, signature
from veriglot.text.segmentation import sentences
from veriglot.text.values import COMPUTED, likeliest_amount, read_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from veriglot.arrays import Float32s, Int64s, Numbers
    from veriglot.encoders.e5 import Pair

__all__ = [
    "ANSWERS", "BY_WORDS", "FILES", "READS_WITH", "RELATIONS", "WHOLE", "Join", "Manifest", "Network", "Reader",
    "join_features", "numbers_alike", "read_network", "relation_of", "save_network",
]  # fmt: skip

FILES = ("network.npz", "joins.json")
ANSWERS = "answers.npz"  # weights have it or not
READS_WITH = "e5-multilingual"
RELATIONS = ("same", "same asked", "across", "across asked", "translation")  # asked: with a question
BY_WORDS = 3  # column of `join_features` with grounding's logit of the word
WHOLE = 8  # column of `join_features` with the logit of the response
_HEADS = ("tokens", "response")
_CLOSE = 128  # tokens of the evidence that a sentence of an answer is held against
_ANSWERS_ROOM = 360  # tokens of a sequence that `Answers` reads
_DECIDING, _A_LINE = 2, 24  # lines of evidence in another language that are read, one more for so many tokens
_SHARP = 20.0  # inverse temperature: how soft "the place that a token comes closest to" is
_LEAST = 1e-3  # share of what is asked below which all is one
_SAY = 0.5  # what `Answers` counts in the logit of the response
_PLAIN = -2.0  # logit of an ordinary supported word
_SHOWN_VERSION = 6  # of what the network is shown of a sample: it changes predictions
_DIGIT = re.compile(r"\d")


class Join(Record):
    """How reader and grounding are joined where response and evidence are related in one way.

    Attributes:
        weights: of `join_features`, in its order.
        calibration: of the sum.
        locating: weights that say which words of an unsupported response are wrong; None takes `weights`.
    """

    weights: tuple[float, ...]
    calibration: ScriptCalibration
    locating: tuple[float, ...] | None = None


class Manifest(Weights, frozen=True, kw_only=True):
    """See `Weights`.

    Attributes:
        reads_with: hash of the encoder's file.
        grounding: hash of the grounding detector's network.
    """

    kind = "reader"

    reads_with: str
    grounding: str


@dataclass(frozen=True)
class Words:
    """What the network says of the words of one response.

    Attributes:
        unsupported: mean logit of each word's tokens, shape (n,); 0 for a word without a token of its own.
        types: mean probability of each type, given that the word is unsupported, shape (n, 6).
        response: logit of the part of the response that each word is in, shape (n,).
        answers: what `Answers` says of each word, shape (n, 3); None where it was not asked.
    """

    unsupported: Float32s
    types: Float32s
    response: Float32s
    answers: Float32s | None = None


class Network:
    """The encoder with what it learned, and the heads.

    Args:
        learned: the file that `veriglot train reader` wrote.
        encoder: the file of `e5-multilingual`.
        answers: the file of `Answers`; None does without.

    Raises:
        WeightsError: a file is missing, damaged or not of its kind.
    """

    def __init__(self, learned: Path, encoder: Path, answers: Path | None = None) -> None:
        self._learned = read_network(learned)
        self._tokeniser = Tokeniser(encoder)
        missing = [name for head in _HEADS for name in (f"{head}.0.w", f"{head}.1.w") if name not in self._learned]
        if missing:
            raise WeightsError(f"{learned} lacks {', '.join(missing)}.", remedy="Install Veriglot again.")
        self._encoder = E5Reader(
            {name: values for name, values in self._learned.items() if not name.startswith(_HEADS)}, encoder
        )

        self._answers_file, self._file = answers, encoder

    @cached_property
    def _answers(self) -> Answers | None:
        return None if self._answers_file is None else Answers(self._answers_file, self._file)

    def read(
        self, sample: Sample, seen: Seen, relation: str, language: str, evidence: str
    ) -> tuple[str, Float32s, Float32s]:
        """The join to take, what `join_features` gives, and how likely each type is, shape (n, 6).

        Args:
            sample: has response and evidence.
            seen: what grounding says of it.
            relation: of response and evidence, one of `RELATIONS`: it says how they are read.
            language: BCP 47 tag of the response.
            evidence: BCP 47 tag of the evidence.
        """
        question = sample.question
        passages = numbers_alike(sample.response, language, tuple(sample.passages), evidence)
        bounds = seen.extract.response.bounds
        answers = None
        if relation == "across asked":
            lines = tuple(text[slice(*line)] for text in passages for line in sentences(text, evidence))
            sequences = shown(self._tokeniser, sample.response, language, question, lines, _ANSWERS_ROOM)
            relation = "across"
            if self._answers is not None and len(sequences) == 1:
                by_tokens, passages = self._answers.read(sequences[0].pair, lines, self._tokeniser)
                answers, relation = _means(by_tokens, sequences[0].bounds, bounds), "across asked"
        close = _CLOSE if relation == "same asked" else 0
        words = self.words(sample.response, bounds, language, question, passages, close=close)
        if answers is not None:
            more = np.float32(_SAY * (answers[:, 0].max() - answers[:, 2].min()))
            words = replace(words, answers=answers, response=words.response + more)
        return relation, join_features(words, seen), words.types

    def words(
        self,
        response: str,
        bounds: Int64s,
        language: str | None,
        question: str | None,
        passages: Sequence[str],
        *,
        close: int = 0,
    ) -> Words:
        """Judge the words of a response, half-open code point ranges in order, shape (n, 2); `close`: see `shown`."""
        sequences = shown(self._tokeniser, response, language, question, passages, close=close)
        logits = [np.zeros((0, 0), np.float32)] * len(sequences)
        whole = np.zeros(len(sequences), np.float32)
        for index, _, last in self._encoder.states([sequence.pair for sequence in sequences]):
            inside = last[1:]
            logits[index] = head(self._learned, "tokens", inside)
            pooled = np.concatenate([last[0], inside.mean(axis=0), inside.max(axis=0)])
            whole[index] = head(self._learned, "response", pooled[None])[0, 0]
        return _of_words(sequences, logits, whole, bounds)


class Answers:
    """The encoder with low-rank additions that learned where the evidence has what a question asks for.

    A word that comes closest to another place than that is the wrong answer, though the evidence has it.

    Args:
        learned: the file of the additions and the heads; matrices may be in 8 bits, with a scale for each row.
        encoder: the file of `e5-multilingual`.

    Raises:
        WeightsError: a file is missing, damaged or not of its kind.
    """

    def __init__(self, learned: Path, encoder: Path) -> None:
        arrays = read_network(learned)
        whole = np.float32(1.0)
        self._learned: dict[str, Float32s] = {
            name: values * arrays.get(f"{name}.scales", whole)
            for name, values in arrays.items()
            if not name.endswith(".scales")
        }
        self._encoder = E5Reader(self._learned, encoder)

    def read(self, pair: Pair, lines: tuple[str, ...], tokeniser: Tokeniser) -> tuple[Float32s, tuple[str, ...]]:
        """What is said of each token of the response, shape (t, 3), and the lines of the evidence that decide.

        How unsupported it is, a logit; the logarithm of the share of what is asked for at the place that it comes
        closest to, and of the mean of these over the response, words of the question set aside. The lines are those
        with what is asked for and with what comes closest to response and question; all where not all were in view.

        Args:
            pair: question, response and lines.
            lines: the sentences of the evidence.
            tokeniser: the reader's.
        """
        ((_, tokens, last),) = self._encoder.states([pair], whole=True)
        question, response, evidence = (slice(*part) for part in (pair.question, pair.response, pair.evidence))
        unit = tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), 1e-6)
        further = np.zeros((response.stop - response.start, 5), np.float32)
        counts = [len(tokeniser.tokens(line)[0]) for line in lines]
        alike = unit[response] @ unit[evidence].T
        if alike.size and question.stop > question.start:
            closest, wanted = _softmax(_SHARP * alike), _softmax(head(self._learned, "answer", last[evidence])[:, 0])
            asked = closest @ wanted
            near = (unit[response] @ unit[question].T).max(axis=1)
            new = np.square(np.clip(1.0 - near, 0.01, 1.0))
            whole = np.full(len(near), (new * asked).sum() / new.sum())
            columns = alike.max(axis=1), near, np.log(asked + _LEAST), np.log(whole + _LEAST), np.ones(len(near))
            further = np.stack(columns, axis=1).astype(np.float32)
            if sum(counts) == len(wanted):
                wanted = wanted + closest.mean(axis=0)
                wanted += _softmax(_SHARP * (unit[question] @ unit[evidence].T)).mean(axis=0)
                shares = np.bincount(np.repeat(np.arange(len(lines)), counts), wanted, len(lines))
                most = _DECIDING + (response.stop - response.start) // _A_LINE
                lines = tuple(lines[index] for index in sorted(np.argsort(-shares, kind="stable")[:most]))
        logits = head(self._learned, "unsupported", np.concatenate([last[response], further], axis=1))
        return np.concatenate([logits, further[:, 2:4]], axis=1), lines


def head(learned: Mapping[str, Float32s], name: str, values: Float32s) -> Float32s:
    """What two layers make of vectors, shape (n, outputs)."""
    inner = np.maximum(values @ learned[f"{name}.0.w"].T + learned[f"{name}.0.b"], 0.0)
    output: Float32s = inner @ learned[f"{name}.1.w"].T + learned[f"{name}.1.b"]
    return output


def _softmax(values: Float32s) -> Float32s:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    shares: Float32s = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _means(values: Float32s, tokens: Int64s, words: Int64s) -> Float32s:
    """Of the tokens of each word, half-open code point ranges of both; 0 for a word without one."""
    first = np.searchsorted(tokens[:, 1], words[:, 0], side="right")
    after = np.maximum(np.searchsorted(tokens[:, 0], words[:, 1]), first)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0, dtype=np.float64)])
    means: Float32s = ((sums[after] - sums[first]) / np.maximum(after - first, 1)[:, None]).astype(np.float32)
    return means


def _of_words(sequences: Sequence[Shown], logits: Sequence[Float32s], whole: Float32s, words: Int64s) -> Words:
    """From tokens to words: means of the tokens of each."""
    if not sequences:
        nothing = np.zeros(len(words), np.float32)
        return Words(nothing, np.full((len(words), 6), 1 / 6, np.float32), nothing)
    bounds = np.concatenate([sequence.bounds for sequence in sequences])
    of_tokens = np.concatenate(logits)
    part = np.repeat(np.arange(len(sequences)), [len(sequence.bounds) for sequence in sequences])
    powers = np.exp(of_tokens[:, 1:] - of_tokens[:, 1:].max(axis=1, keepdims=True))
    values = np.concatenate([of_tokens[:, :1], powers / powers.sum(axis=1, keepdims=True)], axis=1)
    mean = _means(values, bounds, words)
    first = np.searchsorted(bounds[:, 1], words[:, 0], side="right")
    return Words(mean[:, 0], mean[:, 1:], whole[part[np.minimum(first, len(part) - 1)]])


def join_features(words: Words, seen: Seen) -> Float32s:
    """What the logit of a word is made from, shape (n, 18).

    Its logit by the reader and by grounding, each with the mean and the highest of its sentence; by the reader the mean
    and the highest of the response, and the logit of the response; by `Answers`, or 0, its logit, the mean and the
    highest of the response, and both shares; the logarithm of the words; whether it is a number that the evidence
    lacks, or has; the constant last.

    Numbers that can be computed from the evidence make nothing suspect: no network can compute. A response with such a
    number is as suspect as its most suspect other word.

    Args:
        words: what the reader says.
        seen: what grounding says of the same words.
    """
    computed, sentence, count = seen.numbers == COMPUTED, seen.extract.sentence, len(seen.numbers)
    answers = np.zeros((count, 3), np.float32) if words.answers is None else words.answers
    ours, by_words, by_answers = (
        np.where(computed, np.minimum(logits, _PLAIN), logits)
        for logits in (words.unsupported, seen.logits[:, 0], answers[:, 0])
    )
    whole = np.minimum(words.response, ours.max()) if computed.any() else words.response
    columns: list[Numbers] = []
    for logits in (ours, by_words):
        columns += [logits, pool(logits, sentence, "mean"), pool(logits, sentence, "max")]
    columns += [np.full(count, ours.mean()), np.full(count, ours.max()), whole, by_answers]
    columns += [np.full(count, by_answers.mean()), np.full(count, by_answers.max()), *answers[:, 1:].T]
    columns += [np.full(count, np.log(count)), seen.numbers < 0, seen.numbers > 0, np.ones(count)]
    return np.stack(columns, axis=1).astype(np.float32)


def relation_of(language: str | None, evidence: str | None, *, translation: bool, asked: bool) -> str:
    """How response and evidence are related: one of `RELATIONS`."""
    ours, others = ((tag or "").partition("-")[0] for tag in (language, evidence))
    if translation:
        return "translation"
    return ("across" if others and ours != others else "same") + " asked" * asked


def numbers_alike(response: str, language: str, passages: Sequence[str], evidence: str) -> tuple[str, ...]:
    """The passages with numbers written as the response writes the same values: `1.780` as `1,780`, `1780` or in words.

    The network learned most from texts in which equal values are written alike, and takes another form for another one.

    Args:
        response: the response.
        language: its BCP 47 tag.
        passages: the evidence.
        evidence: BCP 47 tag of the evidence.
    """
    ours = {
        (value.kind, likeliest_amount(value, response, language)): response[value.start : value.end]
        for value in read_values(response, language)
        if language == evidence or _DIGIT.search(response, value.start, value.end)
    }
    ours = {key: form for key, form in ours.items() if not any(form in p for p in passages)}
    shown = []
    for text in passages:
        for value in reversed(read_values(text, evidence) if ours else []):
            form = ours.get((value.kind, likeliest_amount(value, text, evidence)))
            if form is not None and _DIGIT.search(text, value.start, value.end):
                text = text[: value.start] + form + text[value.end :]
        shown.append(text)
    return tuple(shown)


class Reader(WordDetector):
    """Marks the words of a response that its evidence does not support, read together with question and evidence.

    Evidence may be in another language; a sample whose task is `translation` is held against its source. See
    `docs/reader.md`.

    Args:
        threshold: confidence from which a word is marked, 0 to 1; None takes the weights' own.
        words: whether predictions carry every word.
        weights: a folder of weights made by `veriglot train reader`; None takes those in the package.

    Raises:
        MissingExtraError: the packages of the encoder are not installed.
        WeightsError: the encoder's file is not here (the remedy says what to type), or weights are missing, damaged, or
            made for another encoder or other weights of grounding.
    """

    def __init__(self, *, threshold: float | None = None, words: bool = False, weights: str | None = None) -> None:
        self._folder = Path(weights) if weights is not None else Path(str(files(__package__) / "weights"))
        self._manifest = Manifest.read(self._folder)
        self._files = FILES if ANSWERS not in self._manifest.sha256 else (*FILES, ANSWERS)
        self._manifest.check(self._folder, self._files)
        self._by_words = Grounding()
        super().__init__(threshold, self._manifest, words=words)
        self._encoder = registry.find(READS_WITH)
        for name, file, known in (
            ("encoder", self._encoder, self._manifest.reads_with),
            ("grounding network", self._by_words.network, self._manifest.grounding),
        ):
            if file_sha256(file)[:16] != known:
                raise WeightsError(
                    f"The weights in {self._folder} were trained with another {name} than {file}.",
                    remedy="Train them anew with `veriglot train reader`, or install Veriglot again.",
                )

    @property
    def name(self) -> str:
        """Name and revision of the weights."""
        return f"reader@{self._manifest.revision}"

    @cached_property
    def signature(self) -> str:
        """Name, weights, encoder, threshold and unit in one line."""
        return signature(
            detector=self.name,
            weights=digest([*(self._manifest.sha256[name] for name in self._files), self._manifest.grounding])[:12],
            encoder=self._manifest.reads_with[:12],
            judging=JUDGING_VERSION,
            shown=_SHOWN_VERSION,
            threshold=self._threshold,
            unit="word",
        )

    @cached_property
    def _network(self) -> Network:
        answers = self._folder / ANSWERS if ANSWERS in self._files else None
        return Network(self._folder / FILES[0], self._encoder, answers)

    @cached_property
    def _joins(self) -> dict[str, Join]:
        return msgspec.json.decode((self._folder / "joins.json").read_bytes(), type=dict[str, Join])

    def _see(self, sample: Sample, resolved: ResolvedLanguage) -> Seen | None:
        evidence, note = evidence_language(sample, resolved.tag)
        relation = relation_of(
            resolved.tag, evidence, translation=sample.task is Task.TRANSLATION, asked=bool(sample.question)
        )
        seen = self._by_words.see(sample, resolved, evidence_language=evidence)
        if seen is None:
            return None
        notes = () if note is None else (note,)
        if (seen.free | seen.quoted).all():
            logits = np.minimum(seen.logits, QUOTED)  # there is nothing left to read
            calibration = self._joins[relation].calibration
            return replace(seen, logits=logits, calibration=calibration, notes=notes, whole=QUOTED)
        relation, features, probable = self._network.read(sample, seen, relation, resolved.tag, evidence)
        join = self._joins[relation]
        unsupported = features @ np.array(join.weights, np.float32)
        located = features @ np.array(join.locating or join.weights, np.float32)
        by_reading = np.log(np.maximum(probable, 1e-6) / np.maximum(1.0 - probable, 1e-6))
        types = (by_reading + seen.logits[:, 1:]) / 2  # both alone are wrong more often, grounding the less
        logits = np.concatenate([unsupported[:, None], types], axis=1).astype(np.float32)
        whole = float(features[:, WHOLE].max())
        return replace(seen, logits=logits, calibration=join.calibration, notes=notes, whole=whole, located=located)


def save_network(path: Path, arrays: Mapping[str, Numbers]) -> None:
    """Write arrays; equal numbers make equal files, which `numpy.savez` does not."""
    with ZipFile(path, "w") as file:
        for name, values in arrays.items():
            entry = ZipInfo(f"{name}.npy")
            entry.compress_type = ZIP_DEFLATED  # an entry of its own does not take that of the file
            with file.open(entry, "w") as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(values), allow_pickle=False)


def read_network(path: Path) -> dict[str, Numbers]:
    """What is in the file, numbers of 16 bits as float32.

    Raises:
        WeightsError: the file is missing or damaged.
    """
    arrays = {}
    try:
        with ZipFile(path) as file:
            for name in file.namelist():
                with file.open(name) as part:
                    values = np.lib.format.read_array(part, allow_pickle=False)
                half = values.dtype == np.float16
                arrays[name.removesuffix(".npy")] = values.astype(np.float32) if half else values
    except (OSError, ValueError, BadZipFile) as error:
        raise WeightsError(f"{path} is missing or damaged: {error}.", remedy="Install Veriglot again.") from error
    return arrays
