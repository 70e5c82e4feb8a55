"""Training the reader from parallel articles, and writing its weights beside the semantic detector's; seeded.

Each pass draws its own responses and the languages that they are held against, and its own questions about words left
out of the articles' sentences, which are asked across languages alone. The articles that `splitting` holds out
say how head and reader are put together, and calibrate the sum."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.resources import files
from random import Random
from string import Template
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from veriglot.datasets.translation.projection import VectorAligner, project, side_of
from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.semantic.detector import (
    FILES,
    READER,
    READS_WITH,
    Calibrations,
    Head,
    Together,
    check_encoder,
    check_weights,
    packaged_folder,
    read_too,
    shared_folder,
)
from veriglot.detectors.semantic.features import Case, Close, EncoderVectors, pieces, read_sample
from veriglot.detectors.semantic.reader import FURTHER, LEAST, SHARP, Reader, save_learned, shown
from veriglot.encoders.base import load_encoder
from veriglot.encoders.e5 import E5, LAYER, PARTS, E5File, Tokeniser, padded
from veriglot.errors import InputError, WeightsError
from veriglot.hub.checkpoints import batches
from veriglot.hub.registry import find
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.text.segmentation import sentences, space_of, words
from veriglot.training.calibration import logistic_rising
from veriglot.training.grounding.examples import Answer, Example, labels_of, read_labelled
from veriglot.training.grounding.synthetic_data import (
    Paragraph,
    answers_across,
    count_words,
    evidence_language,
    is_held_out_group,
    paragraphs,
    sentences_across,
    without_tests,
)
from veriglot.training.trainer import calibrate, counts_table, figures_table, train_network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from veriglot.datasets.translation.projection import Aligner, Side
    from veriglot.encoders.base import Encoder
    from veriglot.encoders.e5 import Pair
    from veriglot.training.grounding.examples import Labels
    from veriglot.training.grounding.synthetic_data import Commonness

__all__ = ["train"]


_SPANS = 10  # of a paragraph
_RARE = 9.0  # below 12 by how common a word is
_LONGEST = 4  # such words in a row; where another follows one word later, up to there
_SURE = 0.6  # quality of a projection that is taken
_TAKEN = 0.5  # share of gaps that are asked for at a time
_KEPT = (5, 14)  # words of the sentence that a question keeps, at least and at most
_DROPPED = 0.15  # share of these that are left out too
_FRONTED = 0.4  # share of questions with the gap at the front
_GAPS = ("…", "___", "?", "")
_ENDS = ("?", "?", "")


@dataclass(frozen=True)
class Gaps:
    """What can be left out of a paragraph."""

    paragraph: Paragraph
    places: Mapping[str, Mapping[int, tuple[int, int]]]


def gaps(paragraphs: Sequence[Paragraph], aligner: Aligner, commonness: Commonness, rng: Random) -> Iterator[Gaps]:
    """What can be left out of each paragraph, in English or its first language, and where that stands in the others.

    Words that stand in a passage twice, or whose place in a translation is not sure, are not taken there.
    """
    for paragraph in paragraphs:
        pivot = "en" if "en" in paragraph.versions else min(paragraph.versions)
        sides = {tag: side_of(paragraph.passage(tag), tag) for tag in paragraph.versions}
        spans = dict(enumerate(_spans(sides[pivot], commonness, rng)))
        places = {pivot: spans}
        for tag, side in sides.items():
            if tag != pivot:
                places[tag] = _laid(sides[pivot], side, spans, aligner)
        yield Gaps(paragraph, {tag: there for tag, there in places.items() if there})


def _spans(side: Side, commonness: Commonness, rng: Random) -> list[tuple[int, int]]:
    """Numbers, names and rare words, or a few words between two of them, that do not overlap: half-open."""
    bounds = list(side.words)
    telling = _telling(side, commonness)
    starts = [nth for nth, tells in enumerate(telling) if tells]
    rng.shuffle(starts)
    taken: set[int] = set()
    spans = []
    for first in starts:
        last = first
        while last + 1 < len(bounds) and telling[last + 1] and _beside(side, last) and last + 1 - first < _LONGEST:
            last += 1
        further = last + rng.choice((0, 0, 0, 2))
        if further < len(bounds) and telling[further] and all(_beside(side, nth) for nth in range(last, further)):
            last = further
        start, end = bounds[first][0], bounds[last][1]
        if taken.isdisjoint(range(first - 1, last + 2)) and side.text.count(side.text[start:end]) == 1:
            taken.update(range(first, last + 1))
            spans.append((start, end))
        if len(spans) == _SPANS:
            break
    return sorted(spans)


def _telling(side: Side, commonness: Commonness) -> list[bool]:
    """Whether each word is a number, a name as its capital says, or rare."""
    bounds = list(side.words)
    begins = {start for start, _ in sentences(side.text, side.tag)}
    return [
        tells > _RARE
        or any(c.isdigit() for c in side.text[start:end])
        or (side.text[start].isupper() and start not in begins)
        for tells, (start, end) in zip(12.0 - commonness.of(side.text, bounds), bounds, strict=True)
    ]


def _beside(side: Side, nth: int) -> bool:
    """Whether nothing but a space, a hyphen or an apostrophe, if that, stands between a word and the next."""
    return side.text[side.words[nth][1] : side.words[nth + 1][0]] in {"", " ", "-", "'", "’"}


def _laid(
    source: Side, target: Side, spans: Mapping[int, tuple[int, int]], aligner: Aligner
) -> dict[int, tuple[int, int]]:
    """Where each span stands in a translation, of those whose place is sure and whose words stand there once."""
    aligned = aligner.align(source, target)
    result = {}
    for number, span in spans.items():
        there = project(*aligned, span)
        if there is not None and len(there.parts) == 1 and there.quality >= _SURE:
            start, end = there.parts[0]
            if target.text.count(target.text[start:end]) == 1:
                result[number] = start, end
    return result


def clozes(all_gaps: Sequence[Gaps], rng: Random) -> list[Paragraph]:
    """The paragraphs with a question about some of their gaps, in every language; each call draws and words anew."""
    made = []
    for gap in all_gaps:
        taken = {number for number in range(_SPANS) if rng.random() < _TAKEN}
        versions = {tag: answers for tag in gap.places if (answers := list(_asked(gap, tag, taken, rng)))}
        if len(versions) > 1:
            made.append(Paragraph(gap.paragraph.group, versions))
    return made


def _asked(gap: Gaps, tag: str, taken: Set[int], rng: Random) -> Iterator[Answer]:
    """The questions about a paragraph in one language; those about a gap have the same id in all of them."""
    passage, like = gap.paragraph.passage(tag), gap.paragraph.versions[tag][0]
    first = gap.paragraph.passage(min(gap.paragraph.versions))
    bounds = sentences(passage, tag)
    for number in sorted(taken & gap.places[tag].keys()):
        start, end = gap.places[tag][number]
        low, high = next(((low, high) for low, high in bounds if low <= start < high), (0, len(passage)))
        question = _with_gap(passage[low:start], passage[end : max(high, end)], tag, rng)
        yield Answer(like.group, tag, passage, question, passage[start:end], f"gap {number} {first}", like.title)


def _with_gap(before: str, after: str, tag: str, rng: Random) -> str:
    """Some of the words around a gap, in their order."""
    size = rng.randint(*_KEPT)
    ours, after_words = ([text[start:end] for start, end in words(text, tag)] for text in (before, after))
    first = min(len(ours), max(rng.randint(0, size), size - len(after_words)))
    nearest = ours[len(ours) - first :], after_words[: size - first]
    ours, after_words = ([word for word in part if rng.random() >= _DROPPED] for part in nearest)
    gap = rng.choice(_GAPS)
    parts = [gap, *ours, *after_words] if rng.random() < _FRONTED else [*ours, gap, *after_words]
    return space_of(tag).join(part for part in parts if part) + rng.choice(_ENDS)


def drawn(paragraphs: Sequence[Paragraph], commonness: Commonness, rng: Random) -> Iterator[Example]:
    """Responses across languages, right and wrong, and every question once without any response."""
    yield from answers_across(paragraphs, rng)
    yield from sentences_across(paragraphs, commonness, rng)
    for paragraph in paragraphs:
        for language, answers in paragraph.versions.items():
            for answer in answers:
                other_language = evidence_language(paragraph, language, rng)
                yield Example(
                    "asked", "parallel answers", paragraph.group, language, "", (paragraph.passage(other_language),),
                    answer.question, evidence_language=other_language if other_language != language else None,
                )  # fmt: skip


class Rows:
    """Makes rows of examples, and keeps what it finds out of their texts."""

    def __init__(self, encoder: Encoder, tokeniser: Tokeniser) -> None:
        self._encoder, self._tokeniser = encoder, tokeniser
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._pieces: dict[tuple[str, str | None], NDArray[np.int64]] = {}
        self._asked: dict[tuple[str, str], str] = {}
        self._answers: dict[tuple[str, str], str] = {}

    def knows(self, paragraphs: Iterable[Paragraph]) -> None:
        """Take the paragraphs that examples are of: they say where the right answers stand."""
        for paragraph in paragraphs:
            for language, answers in paragraph.versions.items():
                for answer in answers:
                    key = answer.question_id or ""
                    self._asked[f"{language} {answer.question}", paragraph.group] = key
                    self._answers.setdefault((paragraph.passage(language), key), answer.text)

    def of(self, examples: Iterable[Example]) -> list[Row]:
        """The rows, in the order of the examples; a response that is longer than a sequence has several."""
        return [row for example in examples for row in self._of(example)]

    def _of(self, example: Example) -> Iterator[Row]:
        passage, tag = example.passages[0], example.evidence_language or example.language
        bounds = self._pieces_of(passage, tag)
        texts = [passage[low:high] for low, high in bounds.tolist()]
        response = (
            self._pieces_of(example.response, example.language) if example.response else np.zeros((0, 2), np.int64)
        )
        answer_tokens = self._answer_of(example)
        for pair in shown(
            self._tokeniser, example.response, response, example.question, texts, self._close(example, response, texts)
        ):
            target = np.zeros(len(pair.bounds), np.float32)
            for mark in example.marks:
                target[(pair.bounds[:, 0] < mark.end) & (pair.bounds[:, 1] > mark.start)] = 1
            answer = None
            if answer_tokens is not None:
                stands = bounds[pair.evidence[:, 0], 0][:, None] + pair.evidence[:, 1:]
                answer = (stands[:, 0] < answer_tokens[1]) & (stands[:, 1] > answer_tokens[0])
            yield Row(pair.pair, target, answer if answer is not None and answer.any() else None)

    def _answer_of(self, example: Example) -> tuple[int, int] | None:
        key = self._asked.get((f"{example.language} {example.question}", example.group))
        text = self._answers.get((example.passages[0], key)) if key is not None else None
        start = example.passages[0].find(text) if text else -1
        return (start, start + len(text)) if text and start >= 0 else None

    def _close(self, example: Example, bounds: NDArray[np.int64], texts: Sequence[str]) -> Close:
        pieces = self._of_texts(texts)
        question = pieces @ self._of_texts([example.question])[0] if example.question else None
        response = np.zeros((1, len(texts)), np.float32)
        if len(bounds):
            response = self._of_texts([example.response[low:high] for low, high in bounds.tolist()]) @ pieces.T
        return Close(response, question, np.zeros(len(texts), np.float32))

    def _of_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encoder.sentences(new), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def _pieces_of(self, text: str, tag: str | None) -> NDArray[np.int64]:
        if (text, tag) not in self._pieces:
            self._pieces[text, tag] = pieces(text, tag)
        return self._pieces[text, tag]


# Writing the reader beside the head: its numbers, how the two are put together, and what the model card says.


REVISION = "1.2"
_CARD = "MODEL_CARD.md"
_SECTION = "\n## Reader\n"
_JUDGED_A_LINE = 200


def ship(
    learned: Mapping[str, NDArray[np.float32]],
    held_out: Sequence[Example],
    base: Path,
    out: Path,
    *,
    encoder: Encoder,
    reads_with: Path,
    seed: int,
    paragraphs: Sequence[Paragraph],
    tests: bool,
    say: Callable[[str], None],
) -> None:
    """Write the folder."""
    manifest = check_weights(base)
    calibrations = msgspec.json.decode((base / "calibration.json").read_bytes(), type=Calibrations)
    with whole_folder(out) as part:
        save_learned(part / READER, learned)
        judged = _judged(held_out, base / "head.onnx", Reader(part / READER, reads_with), encoder, say)
        together, figures = _together(judged)
        shutil.copy(base / "head.onnx", part)
        read = msgspec.structs.replace(calibrations, read_across=together)
        write_json(part / "calibration.json", read)
        changed = msgspec.structs.replace(
            manifest,
            revision=REVISION,
            reads_with=file_sha256(reads_with)[:16],
            reads=_languages(paragraphs),
            sha256={name: file_sha256(part / name) for name in (*FILES, READER)},
        )
        write_json(part / "weights.json", changed)
        card = card_of(base).partition(_SECTION)[0]
        card = card.replace(f"semantic {manifest.revision}", f"semantic {REVISION}", 1)
        (part / _CARD).write_text(card + _section(seed, paragraphs, tests=tests, figures=figures), "utf-8")


def card_of(base: Path) -> str:
    """The model card of a folder of weights."""
    try:
        return (base / _CARD).read_text("utf-8")
    except FileNotFoundError as error:
        raise WeightsError(
            f"{base} has no {_CARD}.", remedy="Give a folder as `veriglot train semantic` made it."
        ) from error


def _languages(paragraphs: Sequence[Paragraph]) -> tuple[str, ...]:
    return tuple(sorted({tag for paragraph in paragraphs for tag in paragraph.versions}))


class _Judged:
    """A response with what is known of its words, and what head and reader say of them."""

    def __init__(
        self, labels: Labels, head: NDArray[np.float32], reader: NDArray[np.float32], seen: NDArray[np.bool_]
    ) -> None:
        self.labels, self.head, self.reader, self.seen = labels, head, reader, seen


def _judged(
    examples: Sequence[Example], head: Path, reader: Reader, encoder: Encoder, say: Callable[[str], None]
) -> list[_Judged]:
    network, lexicon, vectors = Head(head), Lexicon.load(shared_folder()), EncoderVectors(encoder)
    judged = []
    for nth, example in enumerate(examples, start=1):
        strong = [encoder.strength(tag) == "measured" for tag in (example.language, example.evidence_language)]
        case = Case(
            example.response, example.passages, example.question, example.language, example.evidence_language,
            strong=(strong[0], strong[1]),
        )  # fmt: skip
        reading = read_sample(case, lexicon, vectors)
        if reading is not None:
            labels = labels_of(example, reading.extract.response.bounds, reading.extract.markup)
            judged.append(_Judged(labels, network.judged(reading)[0], *reader.logits(case, reading)))
        if not nth % _JUDGED_A_LINE:
            say(f"{nth} of {len(examples)} held-out responses judged")
    return judged


def _together(judged: Sequence[_Judged]) -> tuple[Together, str]:
    """What each counts for, fitted on words; the calibration of the sum; and its figures as a table."""
    values = [
        np.stack([response.head[:, 0], np.where(response.seen, response.reader, 0.0), np.ones(len(response.head))], 1)
        for response in judged
    ]
    targets = np.concatenate([response.labels.target for response in judged]).astype(np.float64)
    weights = np.concatenate([(response.labels.weight > 0).astype(np.float64) for response in judged])
    head, reader, _ = logistic_rising(np.concatenate(values).astype(np.float64), targets, weights).tolist()
    rows = [response.labels for response in judged]
    logits = [read_too(head, reader, response.head, response.reader, response.seen) for response in judged]
    fitted = calibrate(rows, logits)
    figures = figures_table(rows, logits, fitted, 0.5)
    return Together(head, reader, fitted), f"{counts_table(rows)}\n\n{figures}"


def _section(seed: int, paragraphs: Sequence[Paragraph], *, tests: bool, figures: str) -> str:
    template = Template(files(__package__).joinpath("model_card.md").read_text("utf-8"))
    return _SECTION + template.substitute(
        seed=seed,
        paragraphs=len(paragraphs),
        articles=len({paragraph.group for paragraph in paragraphs}),
        languages=" ".join(_languages(paragraphs)),
        tests="among them" if tests else "not among them",
        figures=figures,
    )


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    weights: Path | None = None,
    seed: int = 0,
    encoder: Encoder | None = None,
    reads_with: Path | None = None,
    passes: int = 2,
    tests: bool = True,
    threads: int = 2,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Give a folder of weights for the semantic detector a reader, trained from parallel articles with questions.

    Args:
        paths: files and folders in any readable format; those that stand in several languages are taken.
        out: the folder for the weights: those given, and the reader.
        weights: a folder made by `veriglot train semantic`; None takes the weights in the package.
        seed: of everything that is drawn. Equal data, seed and versions give equal weights on one kind of processor
            with one number of threads.
        encoder: the encoder of `weights`; None loads it.
        reads_with: the file of `e5-multilingual`; None takes it from where `veriglot models` keeps it.
        passes: passes, each over responses of its own.
        tests: whether articles that the project's benchmarks test on are trained on.
        threads: threads that it computes with.
        say: told of progress, a line at a time.

    Raises:
        InputError: a file cannot be read, or holds no parallel articles with questions.
        MissingExtraError: PyTorch, or a package that an encoder needs, is not installed.
        WeightsError: an encoder's file is not here, or `weights` are no such folder.
    """
    torch.set_num_threads(threads)
    base = packaged_folder() if weights is None else weights
    manifest = check_weights(base)
    encoder = load_encoder(manifest.encoder) if encoder is None else encoder
    check_encoder(base, manifest, encoder)
    card_of(base)  # the last thing that is needed: better missed now than after the fit
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    encoder_path = find(READS_WITH) if reads_with is None else reads_with
    labelled = read_labelled(str(path) for path in paths)
    if not tests:
        without_tests(labelled)
    parallel = paragraphs(labelled.answers)
    learned_from = [paragraph for paragraph in parallel if not is_held_out_group(paragraph.group)]
    commonness = count_words(labelled)
    rng = Random(f"reader {seed} held out")  # noqa: S311
    held_out = [
        example
        for example in drawn(parallel, commonness, rng)
        if is_held_out_group(example.group) and example.evidence_language is not None and example.response
    ]
    if not learned_from or not held_out:
        raise InputError(
            "The data holds too few parallel articles with questions to train a reader and to calibrate it.",
            remedy="Give questions whose ids stand in several languages, with their articles' titles, such as XQuAD's.",
        )
    say(f"read {len(learned_from)} paragraphs to learn from, {len(parallel) - len(learned_from)} to calibrate on")
    rows = Rows(encoder, Tokeniser(encoder_path))
    rows.knows(parallel)
    left_out = list(gaps(learned_from, VectorAligner(E5(encoder_path)), commonness, Random(f"reader {seed} gaps")))  # noqa: S311
    say(f"found {sum(len(spans) for gap in left_out for spans in gap.places.values())} gaps to ask for")

    def of_pass(nth: int) -> list[Row]:
        rng = Random(f"reader {seed} {nth}")  # noqa: S311  a seeded draw, not a secret
        made = rows.of(example for example in drawn(parallel, commonness, rng) if not is_held_out_group(example.group))
        asked = clozes(left_out, rng)
        rows.knows(asked)
        made += rows.of(example for example in answers_across(asked, rng) if example.evidence_language is not None)
        say(f"pass {nth + 1}: {len(made)} sequences, {sum(row.answer is not None for row in made)} with their answers")
        return made

    torch.manual_seed(seed)  # the additions to start from are drawn here, before `fit` seeds itself
    network = ReaderNetwork(E5File(encoder_path))
    fit(network, of_pass, passes=passes, seed=seed, say=say)
    ship(
        network.learned(), held_out, base, out,
        encoder=encoder, reads_with=encoder_path, seed=seed, paragraphs=learned_from, tests=tests, say=say,
    )  # fmt: skip
    say(f"wrote {out}")


# The network: low-rank additions and two heads on the encoder. It computes what `encoders.e5_graph` and
# `detectors.semantic.reader` compute; there is a test of that.


_FIRST = 4  # layer with additions: those below are as they were, and need no gradient
_RANK = 16
_INNER = 128  # of the heads
_DROPOUT = 0.1
_MATRICES = ("q", "k", "v", "ao", "fi", "fo")
_MASKED = -1e4


@dataclass(frozen=True)
class Row:
    """One sequence to learn from."""

    pair: Pair
    target: NDArray[np.float32]
    answer: NDArray[np.bool_] | None


class ReaderNetwork(nn.Module):
    """The network."""

    def __init__(self, file: E5File, number: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        width = file.sizes.width
        self._file = file
        self._norm = _Norm(file, "emb.ln")
        self.layers = nn.ModuleList(
            _Layer(file, nth, _RANK if nth >= _FIRST else 0, number) for nth in range(file.sizes.layers)
        )
        self.part = nn.Parameter(torch.zeros(len(PARTS), width))
        self.heads = nn.ModuleDict({"answer": _head(width), "unsupported": _head(width + FURTHER)})

    def forward(self, pairs: Sequence[Pair]) -> list[tuple[Tensor, Tensor]]:
        """For each sequence a logit for every token of its response, and of its evidence; see `Judgement`."""
        ids, mask, parts = padded(pairs)
        bias = torch.from_numpy(np.where(mask, 0.0, _MASKED).astype(np.float32))[:, None, None]
        with torch.no_grad():
            state = self._norm(torch.from_numpy(self._file.embedded(ids)))
            for layer in self.layers[:_FIRST]:
                state = layer(state, bias)
        state = state + torch.from_numpy(parts) @ self.part
        tokens = state
        for nth, layer in enumerate(self.layers[_FIRST:], start=_FIRST + 1):
            state = layer(state, bias)
            tokens = state if nth == LAYER else tokens
        return [self._judged(pair, tokens[nth], state[nth]) for nth, pair in enumerate(pairs)]

    def _judged(self, pair: Pair, tokens: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """As `detectors.semantic.reader.judged`, with gradients."""
        question, response, evidence = (slice(*part) for part in (pair.question, pair.response, pair.evidence))
        answer = self.heads["answer"](last[evidence])[:, 0]
        unit = functional.normalize(tokens, dim=-1, eps=1e-6)
        rows = torch.zeros(pair.response[1] - pair.response[0], FURTHER)
        alike = unit[response] @ unit[evidence].T
        columns = [alike.amax(dim=1)] if alike.numel() else []
        if columns and question.stop > question.start:
            near = (unit[response] @ unit[question].T).amax(dim=1)
            asked = functional.softmax(SHARP * alike, dim=-1) @ functional.softmax(answer, dim=-1)
            new = (1.0 - near).clamp(0.01, 1.0).square()
            whole = torch.log((new * asked).sum() / new.sum() + LEAST)
            columns += [near, torch.log(asked + LEAST), whole.expand(len(near)), torch.ones(len(near))]
        if columns:
            features = torch.stack(columns, dim=1)
            rows = torch.cat([features, rows[:, features.shape[1] :]], dim=1)
        return self.heads["unsupported"](torch.cat([last[response], rows], dim=1))[:, 0], answer

    def learned(self) -> dict[str, NDArray[np.float32]]:
        """What was learned, as `detectors.semantic.reader` and `encoders.e5_graph` take it."""
        result: dict[str, Tensor] = {"part": self.part}
        for nth, layer in enumerate(self.layers):
            result |= {f"l{nth}.{name.replace('_', '.')}": values for name, values in layer.named_parameters()}
        for name, head in self.heads.items():
            for nth, part in enumerate(module for module in head.children() if isinstance(module, nn.Linear)):
                result |= {f"{name}.{nth}.w": part.weight, f"{name}.{nth}.b": part.bias}
        return {name: values.detach().float().numpy().copy() for name, values in result.items()}


class _Norm(nn.Module):
    """Layer normalisation as it is in the file."""

    scale: Tensor
    shift: Tensor

    def __init__(self, file: E5File, name: str) -> None:
        super().__init__()
        self._epsilon = file.sizes.epsilon
        self.register_buffer("scale", torch.from_numpy(file.numbers(f"{name}.w").copy()))
        self.register_buffer("shift", torch.from_numpy(file.numbers(f"{name}.b").copy()))

    def forward(self, state: Tensor) -> Tensor:
        return functional.layer_norm(state.float(), (state.shape[-1],), self.scale, self.shift, self._epsilon)


class _Layer(nn.Module):
    """One layer; its own numbers are fixed, its additions are parameters."""

    def __init__(self, file: E5File, nth: int, rank: int, number: torch.dtype) -> None:
        super().__init__()
        sizes = file.sizes
        self._heads, self._number, self._rank = sizes.heads, number, rank
        self._after_attention, self._after_all = _Norm(file, f"l{nth}.aln"), _Norm(file, f"l{nth}.oln")
        for name in _MATRICES:
            columns = sizes.inner if name == "fo" else sizes.width
            matrix = torch.from_numpy(file.dense(f"l{nth}.{name}.w", columns))
            self.register_buffer(f"{name}_w", matrix.to(number))
            self.register_buffer(f"{name}_b", torch.from_numpy(file.numbers(f"l{nth}.{name}.b").copy()).to(number))
            if rank:
                down = torch.randn(rank, columns) / columns**0.5
                self.register_parameter(f"{name}_down", nn.Parameter(down))
                self.register_parameter(f"{name}_up", nn.Parameter(torch.zeros(len(matrix), rank)))

    def forward(self, state: Tensor, bias: Tensor) -> Tensor:
        rows, count, width = state.shape
        given = state.to(self._number)
        query, key, value = (
            self._dense(given, name).view(rows, count, self._heads, -1).transpose(1, 2) for name in "qkv"
        )
        scores = query * (width // self._heads) ** -0.5 @ key.transpose(-1, -2) + bias.to(self._number)
        met = (torch.softmax(scores, dim=-1) @ value).transpose(1, 2).reshape(rows, count, width)
        attended = functional.dropout(self._dense(met, "ao").float(), _DROPOUT, self.training and self._rank > 0)
        between = self._after_attention(state + attended)
        inner = functional.gelu(self._dense(between.to(self._number), "fi"))
        output: Tensor = self._after_all(between + self._dense(inner, "fo").float())
        return output

    def _dense(self, state: Tensor, name: str) -> Tensor:
        output = functional.linear(state, getattr(self, f"{name}_w"), getattr(self, f"{name}_b"))
        if not self._rank:
            return output
        low = functional.linear(state, getattr(self, f"{name}_down").to(self._number))
        return output + functional.linear(low, getattr(self, f"{name}_up").to(self._number))


def _head(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, _INNER), nn.ReLU(), nn.Dropout(_DROPOUT), nn.Linear(_INNER, 1))


# Fitting the reader: batches of sequences of like length, two losses, a rate that falls to nothing.


_RATE = 1e-3
_DECAY = 0.01
_WARMING = 100  # steps until the rate is whole
_TOKENS = 1800  # of a batch
_JITTER = 12  # tokens by which lengths are blurred, so that batches differ from pass to pass
_ANSWERS = 0.3  # what the loss of answers counts for
_STEPS_A_LINE = 100  # steps between two lines of progress


def fit(
    network: ReaderNetwork,
    rows_of_pass: Callable[[int], Sequence[Row]],
    *,
    passes: int,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place."""
    rng = Random(seed)  # noqa: S311  a seeded order, not a secret
    total = step = 0
    sums = [0.0, 0.0]
    epoch = 0

    def batches_of(nth: int) -> list[list[Row]]:
        nonlocal epoch, total, sums
        rows = rows_of_pass(nth)
        order = _batches(rows, rng)
        epoch, total, sums = nth, total or passes * len(order), [0.0, 0.0]
        return [[rows[index] for index in batch] for batch in order]

    def loss_of(batch: list[Row]) -> Tensor | None:
        nonlocal step, sums
        unsupported, answer = _losses(network, batch)
        if not (unsupported.requires_grad or answer.requires_grad):
            return None  # questions alone, whose answers are not in view: nothing to learn
        step += 1
        sums = [sums[0] + unsupported.item(), sums[1] + answer.item()]
        if not step % _STEPS_A_LINE:
            say(
                f"pass {epoch + 1} of {passes}, step {step} of about {total}:"
                f" unsupported {sums[0] / _STEPS_A_LINE:.3f}, answers {sums[1] / _STEPS_A_LINE:.3f}"
            )
            sums = [0.0, 0.0]
        return unsupported + _ANSWERS * answer

    def rate(at: int) -> float:
        return _RATE * min(1.0, at / _WARMING) * max(0.02, 1.0 - at / total) if total else _RATE

    train_network(network, batches_of, loss_of, epochs=passes, seed=seed, rate=rate, decay=_DECAY)


def _batches(rows: Sequence[Row], rng: Random) -> list[list[int]]:
    order = list(batches([len(row.pair.ids) + rng.randrange(_JITTER) for row in rows], _TOKENS))
    rng.shuffle(order)
    return order


def _losses(network: ReaderNetwork, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Of unsupported tokens, by response with the root of its length as weight; and of where the answers stand."""
    of_tokens, weights, of_answers = [], [], []
    for row, (unsupported, answer) in zip(rows, network([row.pair for row in rows]), strict=True):
        if len(row.target):
            target = torch.from_numpy(row.target)
            of_tokens.append(functional.binary_cross_entropy_with_logits(unsupported.float(), target, reduction="sum"))
            weights.append(len(row.target) ** 0.5)
        if row.answer is not None:
            right = torch.logsumexp(answer[torch.from_numpy(row.answer)], 0)
            of_answers.append(torch.logsumexp(answer, 0) - right)
    nothing = torch.zeros(())
    loss = nothing
    if of_tokens:
        lengths = torch.tensor(weights)
        loss = (torch.stack(of_tokens) / lengths).sum() / lengths.sum()
    return loss, torch.stack(of_answers).mean() if of_answers else nothing
