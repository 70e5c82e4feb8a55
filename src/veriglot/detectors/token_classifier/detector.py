"""The detector `hf:MODEL`: any token classifier of transformers, its labels, words and spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers

from veriglot.detectors.token_classifier.inputs import (
    FORMATS,
    Tokens,
    arranged,
    checkpoint_language,
    format_of,
    prompt_for,
    wordings_version,
)
from veriglot.encoders.base import fast_tokenizer
from veriglot.errors import UnknownNameError, WeightsError
from veriglot.hub.cards import agree
from veriglot.hub.checkpoints import batches, checkpoint, device_for, hub_options, loading, positions, room_for
from veriglot.judging.base import (
    BaseDetector,
    NotScored,
    SpanLabel,
    admit,
    evidence_notes,
    spans_from_words,
    without_words,
    words_from_confidences,
)
from veriglot.judging.classifiers import label_aliases, label_names, normalised_label
from veriglot.records import Prediction, Span, Status, Word
from veriglot.records.languages import base_tag, get_language
from veriglot.records.taxonomy import taxonomies
from veriglot.signatures import checkpoint_revision, signature
from veriglot.text.segmentation import sentences, word_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from veriglot.detectors.token_classifier.inputs import Arranged, Input
    from veriglot.records import Pointer, Sample

__all__ = ["TokenClassifier"]


_SUPPORTED = "supported"
_TAXONOMIES = ("hat", "support", "fava", "halluverse")  # the first that holds all types of a model is taken
_SCHEME = re.compile(r"(?P<position>[BIESLU])[-_](?P<name>.+)")  # IO, BIO, BIOES and BILOU
_BEGINS = frozenset("BSU")
_UNNAMED = ("label_0", "label_1")  # what transformers writes where a model was given no names


@dataclass(frozen=True)
class Labels:
    """What the outputs of a token classifier mean.

    Attributes:
        taxonomy: name of the taxonomy that the types belong to.
        types: the types that mark a token.
        outputs: of each type, the outputs that say it.
        supported: the outputs that say that a token is supported.
        begins: the outputs that say that a span begins with the token.
    """

    taxonomy: str
    types: tuple[str, ...]
    outputs: tuple[tuple[int, ...], ...]
    supported: tuple[int, ...]
    begins: tuple[int, ...]

    @property
    def line(self) -> str:
        """All of it in one line, for a signature."""
        numbers = {"supported": self.supported, **dict(zip(self.types, self.outputs, strict=True))}
        if self.begins:  # they part spans
            numbers["begins"] = self.begins
        return ";".join(f"{name}={','.join(map(str, outputs))}" for name, outputs in numbers.items())


def labels_of(
    names: Mapping[int, str] | Sequence[str] | str, model: str, *, outputs: int | None = None, unnamed: bool = False
) -> Labels:
    """The meaning of each output of a model.

    Args:
        names: the labels by output (`id2label` of a configuration), or in order, or in order with commas between them.
            Types stand bare or behind the places of IO, BIO, BIOES or BILOU (`B-entity`). Case, hyphens, spaces and
            usual variants make no difference (`label_names.json`).
        model: its name, for the error.
        outputs: how many outputs it has; None for as many as there are names.
        unnamed: whether two outputs without names are `supported` and `hallucination`, as LettuceDetect's are.

    Raises:
        WeightsError: a name that says nothing of support, such as those of a model that finds names of persons; no
            output for supported tokens, or none for others; or types that are in no taxonomy together.
    """
    given = label_names(names)
    if outputs is not None and len(given) != outputs:
        raise WeightsError(
            f"{model!r} has {outputs} outputs, and {len(given)} labels were given.", remedy="Give one for each output."
        )
    if unnamed and tuple(normalised_label(name) for name in given) == _UNNAMED:
        given = [_SUPPORTED, "hallucination"]
    tags = [_SCHEME.fullmatch(name) for name in given]
    aliases = label_aliases(__package__, "label_names.json")
    meanings = [
        aliases.get(normalised_label(tag["name"] if tag else name)) for tag, name in zip(tags, given, strict=True)
    ]
    types = tuple(dict.fromkeys(meaning for meaning in meanings if meaning not in (None, _SUPPORTED)))
    taxonomy = next((name for name in _TAXONOMIES if types and set(types) <= taxonomies()[name].types.keys()), None)
    if None in meanings or _SUPPORTED not in meanings or taxonomy is None:
        raise WeightsError(
            f"Which outputs of {model!r} mark text that the evidence does not support cannot be told from its labels:"
            f" {', '.join(map(repr, given)) or 'none'}.",
            remedy="Take a model trained to find such text; where you know what its outputs mean, say so in their"
            " order, such as labels='supported,hallucination' or labels='O,B-entity,I-entity'.",
        )
    return Labels(
        taxonomy=taxonomy,
        types=tuple(str(type_) for type_ in types),
        outputs=tuple(tuple(output for output, meaning in enumerate(meanings) if meaning == type_) for type_ in types),
        supported=tuple(output for output, meaning in enumerate(meanings) if meaning == _SUPPORTED),
        begins=tuple(output for output, tag in enumerate(tags) if tag and tag["position"] in _BEGINS),
    )


DIGITS = 6  # of a confidence: batches of other sizes change the seventh
POOLINGS = ("max", "mean", "first")


def check_pooling(pooling: str) -> None:
    """Raise where there is no such way to make a word of its tokens.

    Raises:
        UnknownNameError: see there.
    """
    if pooling not in POOLINGS:
        raise UnknownNameError("pooling", pooling, POOLINGS)


@dataclass(frozen=True)
class MarkedWords:
    """The words of a response with what the network says of them.

    Attributes:
        bounds: half-open code point ranges of the words that the network saw, shape (n, 2).
        confidences: probability that a word is unsupported, by the window that speaks most for it, shape (n,).
        types: probability of each type, by the same window, shape (n, t).
        begins: whether a span is likelier to begin with the word than to go on with it, shape (n,).
        windows: that window, shape (n,).
        unseen: how many words the tokenizer makes no token of.
    """

    bounds: NDArray[np.int32]
    confidences: NDArray[np.float64]
    types: NDArray[np.float64]
    begins: NDArray[np.bool_]
    windows: NDArray[np.int64]
    unseen: int


def marked_words(
    bounds: NDArray[np.int32],
    arranged: Arranged,
    outputs: Sequence[TokenProbabilities],
    labels: Labels,
    pooling: str,
) -> MarkedWords:
    """Pool tokens to words in each window; then each word takes the window in which it is supported best.

    Support by any passage is support: the lowest probability counts. A word in several pieces of the response is taken
    from the one in which it stands furthest from an edge; one that is cut by all of them, from all.

    Args:
        bounds: words of the response, half-open code point ranges, shape (n, 2).
        made: the inputs.
        said: what the network says of each of them.
        labels: what its outputs mean.
        pooling: one of `POOLINGS`: a word is as unsupported as its worst token, as the mean, or as its first.
    """
    mine = _assigned(bounds, arranged.pieces)
    shape = (len(arranged.windows), len(bounds))
    unsupported = np.full(shape, -1.0)
    types = np.zeros((*shape, len(labels.types)))
    begins = np.zeros(shape, bool)
    for input_, tokens in zip(arranged.inputs, outputs, strict=True):
        chosen = _columns(tokens.outputs, labels)
        start = arranged.pieces[input_.piece][0]
        for word in np.flatnonzero(mine[input_.piece]).tolist():
            low, high = _tokens_of(tokens.bounds, int(bounds[word, 0]) - start, int(bounds[word, 1]) - start)
            if low == high:
                continue
            value, of_types, begun = _pooled(chosen, low, high, pooling)
            if value > unsupported[input_.window, word]:
                unsupported[input_.window, word], types[input_.window, word] = value, of_types
                begins[input_.window, word] = begun
    seen = (unsupported >= 0).all(axis=0)
    unsupported, types, begins = unsupported[:, seen], types[:, seen], begins[:, seen]
    best = unsupported.argmin(axis=0)
    every = np.arange(len(best))
    return MarkedWords(
        bounds=bounds[seen],
        confidences=unsupported[best, every].clip(0.0, 1.0).round(DIGITS),
        types=types[best, every],
        begins=begins[best, every],
        windows=best,
        unseen=int((~seen).sum()),
    )


@dataclass(frozen=True)
class _Columns:
    unsupported: NDArray[np.float64]  # (t,)
    types: NDArray[np.float64]  # (t, types)
    begins: NDArray[np.bool_]  # (t,)


def _columns(outputs: NDArray[np.float64], labels: Labels) -> _Columns:
    types = np.stack([outputs[:, list(columns)].sum(axis=1) for columns in labels.outputs], axis=1)
    begun = outputs[:, list(labels.begins)].sum(axis=1)
    unsupported = types.sum(axis=1)
    return _Columns(unsupported, types, begun > unsupported / 2)


def _pooled(columns: _Columns, low: int, high: int, pooling: str) -> tuple[float, NDArray[np.float64], bool]:
    """Tokens `low` to `high` as one word."""
    if pooling == "first":
        high = low + 1
    part = columns.unsupported[low:high]
    if pooling == "mean":
        return float(part.mean()), columns.types[low:high].mean(axis=0), bool(columns.begins[low])
    worst = low + int(part.argmax())
    return float(columns.unsupported[worst]), columns.types[worst], bool(columns.begins[low])


def _tokens_of(bounds: NDArray[np.int64], start: int, end: int) -> tuple[int, int]:
    """The tokens that overlap `[start, end)`, as a half-open range; empty where none does."""
    low = int(np.searchsorted(bounds[:, 1], start, side="right"))
    high = int(np.searchsorted(bounds[:, 0], end, side="left"))
    return low, max(high, low)


def _assigned(bounds: NDArray[np.int32], pieces: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which words are taken from which piece, shape (pieces, n)."""
    places = np.array(pieces, np.int64)
    starts, ends = bounds[:, 0].astype(np.int64), bounds[:, 1].astype(np.int64)
    far = np.int64(ends.max(initial=0) + places.max() + 1)
    before = np.where(places[:, :1] > 0, starts - places[:, :1], far)
    after = np.where(places[:, 1:] < places[-1, 1], places[:, 1:] - ends, far)
    margin = np.minimum(before, after)  # below 0 where the piece cuts the word
    best = margin.argmax(axis=0)
    taken = np.zeros(margin.shape, bool)
    taken[best, np.arange(len(bounds))] = True
    overlaps = (starts < places[:, 1:]) & (ends > places[:, :1])
    return np.where((margin >= 0).any(axis=0), taken, overlaps)


def span_list(
    response: str,
    marked: MarkedWords,
    sentences: Sequence[tuple[int, int]],
    labels: Labels,
    windows: Sequence[tuple[Pointer, ...]],
    threshold: float,
) -> tuple[Span, ...]:
    """The unsupported spans, in order.

    Neighbouring marked words of one sentence and of one type make one span, except where the network begins another.
    Its confidence is the mean of theirs. Where the evidence was held in several windows, a span points at the one that
    spoke most for its first word.
    """
    if not len(marked.bounds):
        return ()
    kinds = marked.types.argmax(axis=1)
    starts = np.array([start for start, _ in sentences], np.int64)
    sentence = np.searchsorted(starts, marked.bounds[:, 0], side="right")
    breaks = (np.diff(kinds) != 0) | (np.diff(sentence) != 0) | marked.begins[1:]
    parts = np.concatenate([[0], np.cumsum(breaks)])

    def label(low: int, _: int) -> SpanLabel:
        return SpanLabel(labels.types[int(kinds[low])], _pointers(windows, int(marked.windows[low])))

    return spans_from_words(response, marked.bounds, marked.confidences, threshold, parts, label, digits=DIGITS)


def word_list(marked: MarkedWords, windows: Sequence[tuple[Pointer, ...]], threshold: float) -> tuple[Word, ...]:
    """Every word; where there are several windows of evidence, a supported word points at the one that supports it."""
    numbers = marked.windows.tolist()
    return words_from_confidences(
        marked.bounds, marked.confidences, threshold, lambda word: _pointers(windows, numbers[word])
    )


def _pointers(windows: Sequence[tuple[Pointer, ...]], window: int) -> tuple[Pointer, ...]:
    """The places of a window; none where it holds all of the evidence, which would say nothing."""
    return windows[window] if len(windows) > 1 else ()


@dataclass(frozen=True)
class TokenProbabilities:
    """What a network says of the response's tokens in one input.

    Attributes:
        bounds: half-open code point ranges of the response's piece, shape (t, 2); neither column falls.
        outputs: probability of each output, shape (t, outputs), float64.
    """

    bounds: NDArray[np.int64]
    outputs: NDArray[np.float64]


class Network:
    """A token classifier of transformers with its tokenizer; make it with `load_network`.

    Attributes:
        tokens: its tokenizer.
        names: the names of its outputs (`id2label`).
        room: tokens that it takes at a time, special tokens included.
        revision: the commit of a model from the hub, or a hash of the files of its folder.
        device: where it runs.
    """

    def __init__(self, model: Any, tokenizer: Any, *, room: int, revision: str, device: torch.device) -> None:
        self._model = model.to(device).eval()
        self._typed = "token_type_ids" in tokenizer.model_input_names
        self._padding = tokenizer.pad_token_id or 0
        self.tokens = Tokens(fast_tokenizer(tokenizer, model.name_or_path))
        self.names: dict[int, str] = model.config.id2label
        self.room = room
        self.revision = revision
        self.device = device

    def run(self, inputs: Sequence[Input]) -> list[TokenProbabilities | str]:
        """The probabilities of each input, in order; what went wrong where an input makes the network fail.

        Inputs of like length run together. Where a batch fails, its inputs run one by one, so that one sample's failure
        costs no other.
        """
        results: list[TokenProbabilities | str] = [""] * len(inputs)
        for batch in batches([len(input_.encoding.ids) for input_ in inputs]):
            for index, result in zip(batch, self._tried([inputs[index] for index in batch]), strict=True):
                results[index] = result
        return results

    def _tried(self, inputs: Sequence[Input]) -> Sequence[TokenProbabilities | str]:
        try:
            return self._probabilities(inputs)
        except (RuntimeError, IndexError, ValueError) as error:  # of torch: too little memory, an id beyond its table
            if len(inputs) > 1:
                return [result for input_ in inputs for result in self._tried([input_])]
            return [f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"]

    def _probabilities(self, inputs: Sequence[Input]) -> list[TokenProbabilities]:
        width = max(len(input_.encoding.ids) for input_ in inputs)
        given = {
            "input_ids": _padded([input_.encoding.ids for input_ in inputs], width, self._padding),
            "attention_mask": _padded([[1] * len(input_.encoding.ids) for input_ in inputs], width, 0),
        }
        if self._typed:
            given["token_type_ids"] = _padded([input_.encoding.type_ids for input_ in inputs], width, 0)
        with torch.inference_mode():
            logits = self._model(**{name: ids.to(self.device) for name, ids in given.items()}).logits
            outputs = torch.softmax(logits.double(), -1).cpu().numpy()
        if not np.isfinite(outputs).all():
            raise ValueError("the network gave something that is no number")
        return [_of_response(input_, row) for input_, row in zip(inputs, outputs, strict=True)]


def _of_response(input_: Input, outputs: NDArray[np.float64]) -> TokenProbabilities:
    """The rows of the response's own tokens; those of the prompt, special ones and padding are left out."""
    mine = np.array([sequence == 1 for sequence in input_.encoding.sequence_ids], bool)
    bounds = np.array(input_.encoding.offsets, np.int64).reshape(-1, 2)[mine]
    return TokenProbabilities(np.maximum.accumulate(bounds, axis=0), outputs[: len(mine)][mine])


def _padded(rows: Sequence[Sequence[int]], width: int, padding: int) -> torch.Tensor:
    return torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows], dtype=torch.int64)


def load_network(
    model: str,
    *,
    revision: str | None = None,
    max_length: int | None = None,
    most: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    trust_remote_code: bool = False,
    accept_licence: bool = False,
) -> Network:
    """A checkpoint of transformers with a head that classifies tokens.

    Args:
        model: a folder, a name of the registry (`veriglot models`), or a name on the hub.
        revision: of a model on the hub.
        max_length: tokens of an input, special tokens included; None for as many as the model takes, and no more than
            `most`.
        most: what it was trained with, where that is less than it takes.
        device: where it runs, such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights.
        trust_remote_code: run code that comes with the model.
        accept_licence: you have read its licence, and it allows what you do; it is shown before the first use.

    Raises:
        LicenceError: its licence forbids something, and was not accepted.
        WeightsError: it cannot be loaded, or has no head that was trained.
        UsageError: it takes fewer tokens than `max_length`, its tokenizer does not say where tokens stand, or there is
            no such device.
    """
    name = checkpoint(model)
    agree(model, accepted=accept_licence)
    given = {**hub_options(name, revision), "trust_remote_code": trust_remote_code}
    with loading("token classifier", name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **given)
        network, report = transformers.AutoModelForTokenClassification.from_pretrained(
            name, dtype=dtype, output_loading_info=True, **given
        )
        if report["missing_keys"]:  # transformers would fill them with random numbers, and only warn
            missing = ", ".join(sorted(report["missing_keys"])[:3])
            raise ValueError(f"its files lack {missing}: it was not trained to classify tokens")
    takes = positions(tokenizer, network)
    room = room_for(name, takes, max_length)
    if max_length is None and most is not None:
        room = min(room if takes else most, most)
    return Network(
        network,
        tokenizer,
        room=room,
        revision=checkpoint_revision(name, network.config),
        device=device_for(device),
    )


_THRESHOLD = 0.5
_LETTUCE_LENGTH = 4096  # tokens that LettuceDetect's checkpoints were trained with


@dataclass(frozen=True)
class _Plan:
    """What is judged of a sample: the language of its response, its words, and the network's inputs."""

    language: str
    words: NDArray[np.int32]
    inputs: Arranged
    notes: tuple[str, ...]


class TokenClassifier(BaseDetector[_Plan, Sequence[TokenProbabilities]]):
    """Marks the words of a response that a token classifier finds unsupported by the evidence in front of it.

    A word's confidence is the network's probability as it stands: no calibration is claimed (note `calibration:none`).
    The response's score is the highest of its words' confidences. See `docs/token_classifiers.md`.

    Args:
        model: a folder, a name of the registry (`veriglot models`), or a name on the hub.
        threshold: confidence from which a word is marked, 0 to 1; None for 0.5.
        words: whether predictions carry every word.
        prompt: how evidence and question are written: `lettucedetect`, `request` or `plain`; None goes by the model's
            name.
        language: BCP 47 tag that the prompt is written in; None for the response's, where there is such a prompt, and
            otherwise English.
        labels: what the outputs mean, in their order, or with commas between them; None reads the configuration.
        languages: BCP 47 tags that the model knows: responses in others are `unsupported_language`; None for the one
            in the name of a checkpoint of LettuceDetect, or else any; empty for any.
        pooling: a word is as unsupported as its worst token (`max`), as the `mean` of them, or as its `first`.
        max_length: tokens of an input, special tokens included; None for as many as the model was made for.
        revision: of a model on the hub.
        device: where it runs, such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights. Of less than `float32`, confidences vary with the batch in their last digits.
        trust_remote_code: run code that comes with the model.
        accept_licence: you have read the model's licence, and it allows what you do.

    Raises:
        LicenceError: the model's licence forbids something, and was not accepted.
        WeightsError: the model cannot be loaded, or its labels do not say what they mean.
        UnknownNameError: no such prompt, pooling or language.
        UsageError: an option that makes no sense.
    """

    def __init__(
        self,
        *,
        model: str,
        threshold: float | None = None,
        words: bool = False,
        prompt: str | None = None,
        language: str | None = None,
        labels: Sequence[str] | str | None = None,
        languages: Sequence[str] | str | None = None,
        pooling: str = "max",
        max_length: int | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        trust_remote_code: bool = False,
        accept_licence: bool = False,
    ) -> None:
        super().__init__(_THRESHOLD if threshold is None else threshold, words=words)
        self._model, self._dtype = model, dtype
        self._format = format_of(model) if prompt is None else prompt
        if self._format not in FORMATS:
            raise UnknownNameError("prompt", self._format, FORMATS)
        check_pooling(pooling)
        self._pooling = pooling
        self._prompt_language = None if language is None else base_tag(language).lower()
        self._languages = _known(model, languages)
        lettuce = self._format == "lettucedetect"
        self._network = load_network(
            model, revision=revision, max_length=max_length, most=_LETTUCE_LENGTH if lettuce else None,
            device=device, dtype=dtype, trust_remote_code=trust_remote_code, accept_licence=accept_licence,
        )  # fmt: skip
        names = self._network.names
        self._labels = labels_of(names if labels is None else labels, model, outputs=len(names), unnamed=lettuce)
        self.taxonomy = self._labels.taxonomy

    @cached_property
    def name(self) -> str:
        """`hf:`, the last part of the model's name, and the revision of its weights."""
        last = self._model.rstrip("/\\").replace("\\", "/").split("/")[-1]
        return f"hf:{last.replace('@', '-').replace('|', '-')}@{self._network.revision[:12]}"

    @cached_property
    def signature(self) -> str:
        """Name, what the outputs mean, the prompt, the length, threshold and unit in one line."""
        return signature(
            detector=self.name,
            labels=self._labels.line,
            prompt=f"{self._format}.{wordings_version()}",
            prompt_language=self._prompt_language,
            languages=",".join(sorted(self._languages)) or None,
            window=self._network.room,
            pooling=self._pooling,
            threshold=self._threshold,
            unit="word",
            dtype=self._dtype,
            device=self._network.device.type,
            transformers=transformers.__version__,
            torch=torch.__version__,
        )

    def _plan(self, sample: Sample) -> _Plan | NotScored:
        resolved = admit(sample)
        if isinstance(resolved, NotScored):
            return resolved
        base = base_tag(resolved.tag).lower()
        if self._languages and base not in self._languages:
            known = ", ".join(sorted(self._languages))
            reason = f"the model knows {known}, and the response is in {resolved.tag}"
            return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
        words = word_bounds(sample.response, resolved.tag)
        if not len(words) or not any(len(word_bounds(passage.text)) for passage in sample.evidence):
            return without_words(sample)
        prompt = prompt_for(self._format, sample, self._prompt_language or base)
        inputs = arranged(prompt, sample.evidence, sample.response, self._network.tokens, self._network.room)
        notes = [*resolved.notes, *evidence_notes(sample, resolved), "calibration:none"]
        if not self._languages:
            notes.append("languages:not stated")
        if prompt.wording.language not in (None, base):
            notes.append(f"prompt:{prompt.wording.language}")
        return _Plan(resolved.tag, words, inputs, tuple(notes))

    def _run(self, plans: Sequence[tuple[Sample, _Plan]]) -> Iterator[list[TokenProbabilities] | NotScored]:
        outputs = iter(self._network.run([pair for _, plan in plans for pair in plan.inputs.inputs]))
        for _, plan in plans:
            own = [next(outputs) for _ in plan.inputs.inputs]
            errors = [output for output in own if isinstance(output, str)]
            tokens = [output for output in own if isinstance(output, TokenProbabilities)]
            yield NotScored(Status.FAILED, errors[0]) if errors else tokens

    def _scored(self, sample: Sample, plan: _Plan, result: Sequence[TokenProbabilities]) -> Prediction | NotScored:
        marked = marked_words(plan.words, plan.inputs, result, self._labels, self._pooling)
        if not len(marked.bounds):
            return NotScored(Status.FAILED, "the model's tokenizer knows none of the response's words")
        windows = plan.inputs.windows
        unseen = (f"words:{marked.unseen} not seen",) if marked.unseen else ()
        return self._prediction(
            sample,
            score=round(float(marked.confidences.max()), DIGITS),
            spans=span_list(
                sample.response,
                marked,
                sentences(sample.response, plan.language),
                self._labels,
                windows,
                self._threshold,
            ),
            words=word_list(marked, windows, self._threshold) if self._words else None,
            language=plan.language,
            notes=(*plan.notes, *unseen),
        )


def _known(model: str, given: Sequence[str] | str | None) -> frozenset[str]:
    """Base tags of the languages that a model knows; empty for any."""
    if given is None:
        tag = checkpoint_language(model)
        return frozenset([tag] if tag else [])
    tags = [tag.strip() for tag in given.split(",") if tag.strip()] if isinstance(given, str) else given
    return frozenset(get_language(tag).base for tag in tags)
