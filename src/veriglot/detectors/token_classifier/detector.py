"""The detector `hf:MODEL`: any token classifier of transformers, such as LettuceDetect's checkpoints.

Usually the input is one pair of prompt and response. Long evidence is split into windows, each with the whole prompt
around it, and a long response into overlapping pieces; every piece is paired with every window. Nothing is truncated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import product
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from msgspec.structs import replace

from veriglot.detectors.token_classifier.networks import Attention, load_network
from veriglot.encoders.base import fast_tokenizer
from veriglot.errors import UnknownNameError, WeightsError
from veriglot.hub.checkpoints import check_licence, in_batches, max_positions, pad
from veriglot.judging.base import (
    BaseDetector,
    NotScored,
    SpanLabel,
    TooLongError,
    check_sample,
    evidence_notes,
    no_words,
    spans_from_words,
    words_from_confidences,
)
from veriglot.judging.classifiers import label_aliases, label_names, normalised_label, split_chunks
from veriglot.plugins import read_package_data
from veriglot.records import Evidence, Pointer, Prediction, Record, Sample, Span, Status, Task, Word
from veriglot.records.languages import base_tag, get_language
from veriglot.records.taxonomy import taxonomies
from veriglot.signatures import signature
from veriglot.text.segmentation import sentences, word_bounds
from veriglot.text.unicode import without_surrogates

if TYPE_CHECKING:
    from veriglot.arrays import Bools, Float64s, Int32s, Int64s

__all__ = ["FORMATS", "PairTokenizer", "prompt_for"]


_MIN_TOKENS = 16  # of the response, and of the evidence, that must fit into an input besides the prompt
_ATTEMPTS = 20
Range = tuple[int, int]


class PairTokenizer:
    """A tokenizer of the library tokenizers, without truncation and padding.

    Special tokens that occur in a text are encoded as text.
    """

    def __init__(self, tokenizer: Any) -> None:
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    def pair(self, prompt: str, response: str) -> Any:
        """The encoding of prompt and response, special tokens included."""
        return self._tokenizer.encode(without_surrogates(prompt), response)

    def bounds(self, text: str) -> Int64s:
        """Code point ranges of the tokens of a text, shape (t, 2), without special tokens; neither column falls."""
        encoding = self._tokenizer.encode(without_surrogates(text), add_special_tokens=False)
        return np.maximum.accumulate(np.array(encoding.offsets, np.int64).reshape(-1, 2), axis=0)

    def count(self, text: str) -> int:
        """Number of tokens of a text, without special tokens."""
        return len(self.bounds(text))


class ModelInputs(Record):
    """The inputs of a sample."""

    encodings: tuple[Any, ...]  # of every window with every piece, window by window
    windows: tuple[tuple[Pointer, ...], ...]  # the parts of the evidence in each window
    pieces: tuple[Range, ...]  # half-open code point ranges of the response, in order


class _Part(NamedTuple):
    """A passage of the evidence, or a chunk of one."""

    pointer: Pointer
    text: str
    tokens: int


def model_inputs(
    prompt: Prompt, evidence: Sequence[Evidence], response: str, tokens: PairTokenizer, room: int
) -> ModelInputs:
    """The inputs of a sample.

    Windows contain as many whole passages as fit, in order, as LettuceDetect groups them; a passage that does not fit
    into a window is split between sentences into overlapping chunks.
    """
    passages = [passage for passage in evidence if passage.text.strip()]
    whole = tokens.pair(prompt.over([passage.text for passage in passages]), response)
    if len(whole.ids) <= room:
        everything = tuple(Pointer(str(passage.id), 0, len(passage.text)) for passage in passages)
        return ModelInputs((whole,), (everything,), ((0, len(response)),))
    free = room - len(tokens.pair(prompt.over([""]), "").ids)
    if free < 2 * _MIN_TOKENS:
        raise TooLongError(
            f"the question and the words around it take {room - free:,} of the {room:,} tokens that the model takes"
        )
    pieces, longest = _pieces(response, tokens, free // 2)
    budget = free - longest
    for _ in range(_ATTEMPTS):
        windows = _windows(prompt, passages, tokens, budget)
        prompts = [prompt.over([part.text for part in window]) for window in windows]
        encodings = [tokens.pair(text, response[slice(*piece)]) for text in prompts for piece in pieces]
        beyond = max(len(encoding.ids) for encoding in encodings) - room
        if beyond <= 0:
            places = (tuple(part.pointer for part in window) for window in windows)
            return ModelInputs(tuple(encodings), tuple(places), tuple(pieces))
        budget -= beyond  # joined texts may have more tokens than separate ones
        if budget < 1:
            break
    raise TooLongError(f"no piece of evidence and response fits into the {room:,} tokens that the model takes")


def _pieces(response: str, tokens: PairTokenizer, room: int) -> tuple[list[Range], int]:
    """The whole response if it fits, else overlapping chunks; and the number of tokens of the longest."""
    bounds = tokens.bounds(response)
    if len(bounds) <= room:
        return [(0, len(response))], len(bounds)
    pieces = split_chunks(response, bounds, room, overlap=True)
    return pieces, max(tokens.count(response[start:end]) for start, end in pieces)


def _windows(prompt: Prompt, passages: Sequence[Evidence], tokens: PairTokenizer, budget: int) -> list[list[_Part]]:
    """Passages in groups of at most `budget` tokens."""
    windows: list[list[_Part]] = []
    filled = 0
    for number, passage in enumerate(passages, start=1):
        for part in _parts(prompt, number, passage, tokens, budget):
            taken = part.tokens + bool(filled)  # a line break between two
            if not windows or filled + taken > budget:
                windows.append([])
                filled, taken = 0, part.tokens
            windows[-1].append(part)
            filled += taken
    return windows


def _parts(prompt: Prompt, number: int, passage: Evidence, tokens: PairTokenizer, budget: int) -> list[_Part]:
    """A whole passage if it fits, otherwise its chunks."""
    text, cuts = passage.text, [(0, len(passage.text))]
    if tokens.count(prompt.line(number, text)) > budget:
        around = tokens.count(prompt.line(number, ""))
        cuts = split_chunks(text, tokens.bounds(text), max(budget - around, 1), overlap=True)
    return [
        _Part(Pointer(str(passage.id), start, end), part, tokens.count(prompt.line(number, part)))
        for start, end in cuts
        if (part := text[start:end]).strip()
    ]


FORMATS = ("lettucedetect", "plain", "request")
_ANY = "und"
_FALLBACK = "en"
_LETTUCE = re.compile(r"(?:lettuced(?:et)?ect|tinylettuce)-", re.IGNORECASE)
_CACHED = re.compile(r"models--[^\\/]+?--(?P<name>[^\\/]+)[\\/]+snapshots[\\/]")
_LETTUCE_LANGUAGE = re.compile(r"-(en|de|fr|es|it|pl|cn|hu)(?:-v\d+)?$", re.IGNORECASE)


class Prompt(Record):
    """A prompt format in one language, with the question of a sample."""

    passage: str  # template of a passage: `$text`, and `$number` counted from 1
    question: str  # template with a question: `$question`, `$evidence` and `$count`, the number of passages
    no_question: str  # template without a question
    language: str | None = None  # None if the format contains no words
    asked: str | None = None  # the question

    def line(self, number: int, text: str) -> str:
        """One passage, with its number from 1."""
        return Template(self.passage).substitute(number=number, text=text)

    def over(self, passages: Sequence[str]) -> str:
        """The prompt before the response, with these passages."""
        evidence = "\n".join(self.line(number, text) for number, text in enumerate(passages, start=1))
        whole = Template(self.no_question if self.asked is None else self.question)
        return whole.substitute(question=self.asked, count=len(passages), evidence=evidence)


@cache
def _all() -> tuple[str, dict[str, dict[str, Prompt]]]:
    """Version of the file of prompts, raised with every change; and formats by name and language."""
    data = read_package_data(__package__, "prompts.toml", dict[str, Any])
    formats = {
        name: {tag: Prompt(**words, language=None if tag == _ANY else tag) for tag, words in by_language.items()}
        for name, by_language in data["formats"].items()
    }
    return data["version"], formats


def wording(name: str, language: str) -> Prompt:
    """A format in the language of a response, else in English."""
    wordings = _all()[1][name]
    return wordings.get(_ANY) or wordings.get(language.split("-")[0].lower()) or wordings[_FALLBACK]


def prompt_for(name: str, sample: Sample, language: str) -> Prompt:
    """The prompt of a sample. For summaries the question is left out."""
    asked = sample.question if (sample.question or "").strip() and sample.task is not Task.SUMMARIZATION else None
    return replace(wording(name, language), asked=asked)


def format_of(model: str) -> str:
    """The format of a checkpoint, guessed from its name: `lettucedetect` for that project's, else `plain`."""
    return "lettucedetect" if _LETTUCE.search(_basename(model)) else "plain"


def checkpoint_language(model: str) -> str | None:
    """The language of a LettuceDetect checkpoint, if its name has one; else None."""
    name = _basename(model)
    match = _LETTUCE_LANGUAGE.search(name) if _LETTUCE.search(name) else None
    if match is None:
        return None
    tag = match[1].lower()
    return "zh" if tag == "cn" else tag


def _basename(model: str) -> str:
    """The last part of a model's name; for a folder in the hub's cache, that of the model on the hub."""
    cached = _CACHED.search(model)
    return cached["name"] if cached else re.split(r"[\\/]", model.rstrip("\\/"))[-1]


_SUPPORTED = "supported"
_TAXONOMIES = ("hat", "support", "fava", "halluverse")  # the first that has all types of a model applies
_SCHEME = re.compile(r"(?P<position>[BIESLU])[-_](?P<name>.+)")  # IO, BIO, BIOES and BILOU
_BEGINS = frozenset("BSU")
_UNNAMED = ("label_0", "label_1")  # the default names of transformers


class Labels(Record):
    """What the outputs of a token classifier mean."""

    taxonomy: str  # name of the taxonomy that the types belong to
    types: tuple[str, ...]  # the types of unsupported tokens
    outputs: tuple[tuple[int, ...], ...]  # indices of the outputs of each type
    supported: tuple[int, ...]  # indices of the outputs for supported tokens
    begins: tuple[int, ...]  # indices of the outputs for the first token of a span, as in BIO

    @property
    def line(self) -> str:
        """All fields in one line, for a signature."""
        numbers = {"supported": self.supported, **dict(zip(self.types, self.outputs, strict=True))}
        if self.begins:  # they separate spans
            numbers["begins"] = self.begins
        return ";".join(f"{name}={','.join(map(str, outputs))}" for name, outputs in numbers.items())


def labels_of(
    names: Mapping[int, str] | Sequence[str] | str, model: str, *, outputs: int | None = None, unnamed: bool = False
) -> Labels:
    """The meaning of each output of a model."""
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
            f"The labels of {model!r} do not show which outputs mark unsupported text:"
            f" {', '.join(map(repr, given)) or 'none'}.",
            remedy="Use a model trained to find such text. If you know what its outputs mean, name them in order,"
            " such as labels='supported,hallucination' or labels='O,B-entity,I-entity'.",
        )
    return Labels(
        taxonomy=taxonomy,
        types=tuple(str(type_) for type_ in types),
        outputs=tuple(tuple(output for output, meaning in enumerate(meanings) if meaning == type_) for type_ in types),
        supported=tuple(output for output, meaning in enumerate(meanings) if meaning == _SUPPORTED),
        begins=tuple(output for output, tag in enumerate(tags) if tag and tag["position"] in _BEGINS),
    )


DIGITS = 6  # decimals of a confidence; further ones depend on the batch
POOLINGS = ("max", "mean", "first")


class MarkedWords(Record):
    """The words of a response with the network's predictions."""

    bounds: Int32s  # half-open code point ranges of the words that have tokens, shape (n, 2)
    confidences: Float64s  # shape (n,)
    types: Float64s  # probability of each type, from the window in `windows`, shape (n, t)
    begins: Bools  # whether a span more probably begins at the word than continues, shape (n,)
    windows: Int64s  # index of the window that supports the word best, shape (n,)
    unseen: int  # number of words without tokens


def marked_words(
    bounds: Int32s, inputs: ModelInputs, outputs: Sequence[TokenProbabilities], labels: Labels, pooling: str
) -> MarkedWords:
    """Pool tokens to words in each window; then use for each word the window that supports it best.

    Support by any passage is support: the lowest probability counts. If several pieces of the response contain a word,
    the piece counts in which the word is furthest from an edge; if every piece cuts the word, all of them count.
    """
    mine = _assigned(bounds, inputs.pieces)
    shape = (len(inputs.windows), len(bounds))
    unsupported = np.full(shape, -1.0)
    types = np.zeros((*shape, len(labels.types)))
    begins = np.zeros(shape, bool)
    pairs = product(range(len(inputs.windows)), range(len(inputs.pieces)))
    for (window, piece), tokens in zip(pairs, outputs, strict=True):
        by_type = np.stack([tokens.outputs[:, list(columns)].sum(axis=1) for columns in labels.outputs], axis=1)
        total = by_type.sum(axis=1)
        begun = tokens.outputs[:, list(labels.begins)].sum(axis=1) > total / 2
        start = inputs.pieces[piece][0]
        for word in np.flatnonzero(mine[piece]).tolist():
            low = int(np.searchsorted(tokens.bounds[:, 1], bounds[word, 0] - start, side="right"))
            high = int(np.searchsorted(tokens.bounds[:, 0], bounds[word, 1] - start, side="left"))
            if low >= high:  # no token overlaps the word
                continue
            worst = low if pooling == "first" else low + int(total[low:high].argmax())
            part = slice(low, high) if pooling == "mean" else slice(worst, worst + 1)
            value = float(total[part].mean())
            if value > unsupported[window, word]:
                unsupported[window, word], types[window, word] = value, by_type[part].mean(axis=0)
                begins[window, word] = begun[low]
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


def _assigned(bounds: Int32s, pieces: Sequence[tuple[int, int]]) -> Bools:
    """Whether each piece counts for each word, shape (pieces, n)."""
    places = np.array(pieces, np.int64)
    starts, ends = bounds[:, 0].astype(np.int64), bounds[:, 1].astype(np.int64)
    far = np.int64(ends.max(initial=0) + places.max() + 1)
    before = np.where(places[:, :1] > 0, starts - places[:, :1], far)
    after = np.where(places[:, 1:] < places[-1, 1], places[:, 1:] - ends, far)
    margin = np.minimum(before, after)  # below 0 if the piece cuts the word
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

    Neighbouring marked words of one sentence and type make one span, unless the network begins another. Its confidence
    is the mean over the words. With several windows, a span points to the window that supports its first word best.
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
    """Every word; with several windows of evidence, supported words point to the window that supports them best."""
    numbers = marked.windows.tolist()
    return words_from_confidences(
        marked.bounds, marked.confidences, threshold, lambda word: _pointers(windows, numbers[word])
    )


def _pointers(windows: Sequence[tuple[Pointer, ...]], window: int) -> tuple[Pointer, ...]:
    """The parts of the evidence in a window; empty if it is the only one, since the pointer would say nothing."""
    return windows[window] if len(windows) > 1 else ()


class TokenProbabilities(Record):
    """The network's probabilities for the response's tokens in one input."""

    bounds: Int64s  # half-open code point ranges in the piece of the response, shape (t, 2); neither column falls
    outputs: Float64s  # probability of each output, shape (t, outputs), float64


def _of_response(encoding: Any, outputs: Float64s) -> TokenProbabilities:
    """The rows of the response's tokens, without prompt, special tokens and padding."""
    mine = np.array([sequence == 1 for sequence in encoding.sequence_ids], bool)
    bounds = np.array(encoding.offsets, np.int64).reshape(-1, 2)[mine]
    return TokenProbabilities(np.maximum.accumulate(bounds, axis=0), outputs[: len(mine)][mine])


_THRESHOLD = 0.5
_LETTUCE_LENGTH = 4096  # most tokens in the training of LettuceDetect's checkpoints


class _Plan(Record):
    """Language and words of the response, and the network's inputs."""

    language: str
    words: Int32s
    inputs: ModelInputs
    notes: tuple[str, ...]


class TokenClassifier(BaseDetector[_Plan, Sequence[TokenProbabilities]]):
    """Marks the words of a response that a token classifier labels as unsupported by the evidence.

    A word's confidence is the network's probability, without calibration (note `calibration:none`). The response's
    score is the maximum over its words. See `docs/token_classifiers.md`.

    Args:
        model: a folder, a name of the registry (`veriglot models`), or a name on the hub.
        threshold: confidence from which a word is marked, 0 to 1; None for 0.5.
        words: whether predictions include every word.
        prompt: format of evidence and question: `lettucedetect`, `request` or `plain`; None for that of the checkpoint,
            else by the model's name.
        language: BCP 47 tag of the prompt's language; None for that of the response, or English if there is no such
            prompt.
        labels: meanings of the outputs, in order, as a list or with commas; None for those of the configuration.
        languages: BCP 47 tags of the languages that the model supports; responses in others get the status
            `unsupported_language`. None for those that the checkpoint (or the name of one of LettuceDetect's) states,
            else any; empty for any.
        pooling: confidence of a word from its tokens: `max`, `mean`, or that of the `first`.
        max_length: most tokens of an input, special tokens included; None for the model's own limit.
        attention: `bidirectional` or `causal`; None for that of its configuration.
        four_bit: whether to load weights in 4 bits (NF4); None for as the adapter was trained.
        revision: of a model on the hub.
        device: such as `cpu` or `cuda:0`; None for the first accelerator, otherwise the CPU.
        dtype: of the weights. Below `float32`, the last digits of confidences depend on the batch.
        trust_remote_code: run code that comes with the model.
        accept_licence: you have read the model's licence, and it allows what you do.

    Raises:
        WeightsError: the model's licence is restrictive and was not accepted; the model cannot be loaded; or its labels
            are not known.
        UnknownNameError: no such prompt, pooling or language.
        UsageError: an invalid option.
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
        attention: Attention | None = None,
        four_bit: bool | None = None,
        revision: str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        trust_remote_code: bool = False,
        accept_licence: bool = False,
    ) -> None:
        super().__init__(_THRESHOLD if threshold is None else threshold, words=words)
        self._model = model
        if prompt not in (None, *FORMATS):
            raise UnknownNameError("prompt", str(prompt), FORMATS)
        if pooling not in POOLINGS:
            raise UnknownNameError("pooling", pooling, POOLINGS)
        if attention not in (None, "bidirectional", "causal"):
            raise UnknownNameError("attention", str(attention), ("bidirectional", "causal"))
        self._pooling = pooling
        self._prompt_language = None if language is None else base_tag(language).lower()
        check_licence(model, accepted=accept_licence)
        self._loaded, stated = load_network(
            model, attention=attention, four_bit=four_bit, revision=revision, device=device, dtype=dtype,
            trust_remote_code=trust_remote_code,
        )  # fmt: skip
        self._format = prompt or stated.prompt or format_of(model)
        lettuce = self._format == "lettucedetect"
        self._languages = _known(model, languages if languages is not None else stated.languages or None)
        max_length = max_length or stated.max_length
        tokenizer, self._network = self._loaded.tokenizer, self._loaded.network
        self._room = self._loaded.effective_max_length(max_length)
        if max_length is None and lettuce:
            self._room = (
                min(self._room, _LETTUCE_LENGTH) if max_positions(tokenizer, self._network) else _LETTUCE_LENGTH
            )
        self._tokens = PairTokenizer(fast_tokenizer(tokenizer, self._network.name_or_path))
        self._typed = "token_type_ids" in tokenizer.model_input_names
        self._padding = tokenizer.pad_token_id or 0
        names = self._network.config.id2label
        self._labels = labels_of(names if labels is None else labels, model, outputs=len(names), unnamed=lettuce)
        self.taxonomy = self._labels.taxonomy

    @cached_property
    def name(self) -> str:
        """`hf:`, the last part of the model's name, and the revision of its weights."""
        last = self._model.rstrip("/\\").replace("\\", "/").split("/")[-1]
        return f"hf:{last.replace('@', '-').replace('|', '-')}@{self._loaded.revision[:12]}"

    @cached_property
    def signature(self) -> str:
        """Name, labels, prompt, length, threshold and unit in one line."""
        return signature(
            detector=self.name,
            labels=self._labels.line,
            prompt=f"{self._format}.{_all()[0]}",
            prompt_language=self._prompt_language,
            languages=",".join(sorted(self._languages)) or None,
            window=self._room,
            pooling=self._pooling,
            threshold=self._threshold,
            unit="word",
            **self._loaded.settings,
        )

    def _plan(self, sample: Sample) -> _Plan | NotScored:
        resolved = check_sample(sample)
        if isinstance(resolved, NotScored):
            return resolved
        base = base_tag(resolved.tag).lower()
        if self._languages and base not in self._languages:
            known = ", ".join(sorted(self._languages))
            reason = f"the model knows {known}, and the response is in {resolved.tag}"
            return NotScored(Status.UNSUPPORTED_LANGUAGE, reason)
        words = word_bounds(sample.response, resolved.tag)
        if not len(words) or not any(len(word_bounds(passage)) for passage in sample.passages):
            return no_words(sample)
        prompt = prompt_for(self._format, sample, self._prompt_language or base)
        inputs = model_inputs(prompt, sample.evidence, sample.response, self._tokens, self._room)
        notes = [*resolved.notes, *evidence_notes(sample, resolved), "calibration:none"]
        if not self._languages:
            notes.append("languages:not stated")
        if prompt.language not in (None, base):
            notes.append(f"prompt:{prompt.language}")
        return _Plan(resolved.tag, words, inputs, tuple(notes))

    def _run(self, plans: Sequence[tuple[Sample, _Plan]]) -> Iterator[list[TokenProbabilities] | NotScored]:
        outputs = iter(self._outputs([pair for _, plan in plans for pair in plan.inputs.encodings]))
        for _, plan in plans:
            own = [next(outputs) for _ in plan.inputs.encodings]
            errors = [output for output in own if isinstance(output, str)]
            tokens = [output for output in own if isinstance(output, TokenProbabilities)]
            yield NotScored(Status.FAILED, errors[0]) if errors else tokens

    def _outputs(self, encodings: Sequence[Any]) -> list[TokenProbabilities | str]:
        """The probabilities of each input, in order, or the error message if the network fails on it.

        Inputs of similar length run together. If a batch fails, its inputs run one by one, so that one sample does not
        fail the others.
        """
        lengths = [len(encoding.ids) for encoding in encodings]
        return in_batches(lengths, lambda batch: self._tried([encodings[index] for index in batch]))

    def _tried(self, encodings: Sequence[Any]) -> Sequence[TokenProbabilities | str]:
        try:
            return self._probabilities(encodings)
        except (RuntimeError, IndexError, ValueError) as error:  # of torch: out of memory, unknown token id
            if len(encodings) > 1:
                return [result for encoding in encodings for result in self._tried([encoding])]
            return [f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"]

    def _probabilities(self, encodings: Sequence[Any]) -> list[TokenProbabilities]:
        ids, mask = pad([encoding.ids for encoding in encodings], self._padding)
        given = {"input_ids": ids, "attention_mask": mask}
        if self._typed:
            given["token_type_ids"], _ = pad([encoding.type_ids for encoding in encodings])
        with torch.inference_mode():
            logits = self._network(
                **{name: torch.from_numpy(array).to(self._loaded.device) for name, array in given.items()}
            ).logits
            outputs = torch.softmax(logits.double(), -1).cpu().numpy()
        if not np.isfinite(outputs).all():
            raise ValueError("the network's output is not a number")
        return [_of_response(*pair) for pair in zip(encodings, outputs, strict=True)]

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
    """Base tags of the languages that a model supports; empty for any."""
    if given is None:
        tag = checkpoint_language(model)
        return frozenset([tag] if tag else [])
    tags = [tag.strip() for tag in given.split(",") if tag.strip()] if isinstance(given, str) else given
    return frozenset(get_language(tag).base for tag in tags)
