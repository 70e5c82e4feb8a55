"""Training the grounding detector: word vectors distilled, two stages fitted, a folder of weights written; seeded.

The first stage learns from everything but natural answers; the second goes on with those few, mixed with some of the
rest. So natural answers can be left out in parts and the figure on the rest be honest, at the price of the short
second stage alone (`benchmarks/grounding_natural.py`). A tenth of the other texts trains nothing."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from veriglot.detectors.grounding.detector import FILES, OUTPUTS, Manifest, Model
from veriglot.detectors.grounding.document import MEANING, Document, Lexicon
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.errors import InputError, MissingExtraError, WeightsError
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.training.grounding.examples import HELD_OUT, TYPES, Labels, WordLabels, labels_of, read_labelled, share_of
from veriglot.training.grounding.synthetic_data import clean_texts, count_words, made_by_rule
from veriglot.training.trainer import (
    Blocks,
    Plan,
    by_folds,
    calibrate,
    counts_table,
    figures_table,
    fit_on,
    model_card,
    onnx_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.training.grounding.examples import Example, Labelled
    from veriglot.training.grounding.synthetic_data import Commonness

__all__ = ["train"]


# Distilling word vectors from a multilingual sentence encoder.
#
# The encoder (Universal Sentence Encoder multilingual, as an ONNX file with its tokenizer inside) embeds every word of
# a vocabulary as if it were a sentence. Its space is shared by its languages, so words of one meaning lie together.
# What ships is small: the first principal directions, scaled to length 1, say what a word means; a projection that is
# learned with the detector says how it is used (hedges, praise, tales ...).


ENCODER_LANGUAGES = ("ar", "zh", "en", "fr", "de", "it", "ja", "ko", "nl", "pl", "pt", "es", "th", "tr", "ru")
NEAR_LANGUAGES = ("ca", "yue")  # not among the encoder's, but close enough to one that its words land well
LEARNED = 16  # numbers of the learned projection
_LISTED = 14000  # commonest words taken from each language's list
_MIN_COUNT = 4  # occurrences in the training texts
_MAX_LENGTH = 30
_BATCH = 512
_MEAN_SQUARE_EDGE = 4.0  # learned numbers beyond four standard deviations are cut


class Distilled:
    """A vocabulary with its vectors, sorted by key."""

    def __init__(self, keys: NDArray[np.uint64], full: NDArray[np.float16]) -> None:
        self.keys, self.full = keys, full
        spread = full.astype(np.float32)
        values, vectors = np.linalg.eigh(spread.T @ spread / len(spread))
        self._principal = vectors[:, np.argsort(-values)].astype(np.float32)

    @property
    def directions(self) -> NDArray[np.float32]:
        """The directions of the meaning part, shape (512, MEANING)."""
        return self._principal[:, :MEANING]

    def next_directions(self) -> NDArray[np.float32]:
        """The directions that follow, to start the learned projection from; shape (512, LEARNED)."""
        return self._principal[:, MEANING : MEANING + LEARNED]

    def lexicon(self, frequencies: NDArray[np.uint8], learned: NDArray[np.float32] | None) -> Lexicon:
        """The lexicon that ships."""
        full = self.full.astype(np.float32)
        meaning = full @ self.directions
        meaning /= np.linalg.norm(meaning, axis=1, keepdims=True) + 1e-9
        parts = [meaning]
        if learned is not None:
            usage = full @ learned
            parts.append(np.clip(usage / (_MEAN_SQUARE_EDGE * usage.std(axis=0)), -1, 1))
        return Lexicon(frequencies, self.keys, Lexicon.stored_vectors(np.concatenate(parts, axis=1)))


def vocabulary(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Folded words to distil: the commonest of each of the encoder's languages, and what the texts repeat."""
    try:
        import wordfreq
    except ModuleNotFoundError as error:
        raise MissingExtraError("Distilling word vectors", "vectors") from error
    known = dict.fromkeys(
        fold(word)
        for language in ENCODER_LANGUAGES
        if language in wordfreq.available_languages()
        for word in wordfreq.top_n_list(language, _LISTED)
    )
    counts: Counter[str] = Counter()
    for language, text in texts:
        if language.split("-")[0] in ENCODER_LANGUAGES + NEAR_LANGUAGES:
            folded = fold(text)
            counts.update(folded[s:e] for s, e in words(text, language))
    known.update(dict.fromkeys(w for w, n in counts.items() if n >= _MIN_COUNT and len(w) < _MAX_LENGTH))
    return sorted(w for w in known if not w.isdigit())


def distil(vocabulary: list[str], encoder: Path) -> Distilled:
    """Embed a vocabulary."""
    try:
        import onnxruntime
        from onnxruntime_extensions import get_library_path
    except ModuleNotFoundError as error:
        raise MissingExtraError("Distilling word vectors", "vectors") from error
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(encoder), options, providers=["CPUExecutionProvider"])
    document = Document(vocabulary, None)
    whole = np.bincount(document.passage, minlength=len(vocabulary)) == 1
    sizes = np.array([len(word) for word in vocabulary])
    alone = whole[document.passage] & (document.lengths == sizes[document.passage])
    keys = Lexicon.keys_of(document.word[alone])
    chosen = document.passage[alone]
    keys, first = np.unique(keys, return_index=True)
    chosen = chosen[first]
    by_length = np.argsort(sizes[chosen], kind="stable")  # batches of like length waste no padding
    full = np.zeros((len(chosen), 512), np.float16)
    name = session.get_inputs()[0].name
    for at in range(0, len(chosen), _BATCH):
        rows = by_length[at : at + _BATCH]
        embedded = session.run(None, {name: np.array([vocabulary[i] for i in chosen[rows]])})[0]
        full[rows] = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
    full -= full.astype(np.float32).mean(axis=0).astype(np.float16)
    return Distilled(keys, full)


_OTHERS_FOR_VECTORS = 5000  # rows beside the silver ones from which the projection is learned
_MIXED = 3500  # rows of the first stage that the second sees again
_REPEATS = 10  # of each natural answer in the second stage
# Summaries are many and alike; checked claims are few and close to what models really do.
_SOURCE_SCALE = {"summarization": 0.7, "open": 2.0}
_ANSWER_SCALE = 2.0
_MADE_SCALE = 0.7
# Only where words have vectors can the network learn what hedges and praise look like in *other* languages.
_WITH_VECTORS_SCALE = 1.8


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    seed: int = 0,
    encoder: Path | None = None,
    epochs: int = 6,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train from labelled files to a folder of weights that `load_detector("grounding", weights=...)` takes.

    Equal data, seed and versions give equal weights on one kind of processor.

    Args:
        paths: files and folders in any readable format.
        out: the folder for the weights.
        seed: of everything that is drawn.
        encoder: the sentence encoder's ONNX file, to distil word vectors from; None keeps the shipped vectors.
        epochs: passes of the first stage.
        say: told of progress, a line at a time.

    Raises:
        InputError: a file cannot be read, or nothing in it can be learned from.
        MissingExtraError: a package that the encoder needs is not installed.
        WeightsError: the trained network could not be exported faithfully.
    """
    torch.set_num_threads(1)  # so small a network is faster on one, and the sums keep their order
    labelled = read_labelled(str(path) for path in paths)
    say(f"read {len(labelled.examples)} labelled responses, {len(labelled.articles)} articles")
    if labelled.translations:
        labelled.left_out["translation"] += len(labelled.translations)
    commonness = count_words(labelled)
    if encoder is None:
        own_lexicon = Lexicon.load(Path(str(files("veriglot.detectors.grounding") / "weights")))
        lexicon = Lexicon(commonness.table(), own_lexicon.keys, own_lexicon.vectors)
    else:
        lexicon = lexicon_for(labelled, commonness, encoder, seed, say)
    rows = rows_of([*labelled.examples, *made_by_rule(labelled, commonness, seed)], lexicon)
    say(f"took features of {len(rows)} responses")
    network = first_stage(rows, seed, say, epochs)
    answers = [row for row in rows if row.is_answer]
    judged = by_folds(
        answers,
        lambda seen, unseen: predict(second_stage(network, rows, seen, seed, lambda _: None), unseen),
        say,
    )
    held_out = [row for row in rows if is_held_out(row) and not row.is_answer]
    network = second_stage(network, rows, answers, seed, say)
    judged += zip(held_out, predict(network, held_out), strict=True)
    trained = [row for row in rows if row.is_answer or not is_held_out(row)]
    _ship(network, lexicon, trained, judged, out, seed=seed, left_out=labelled.left_out)
    say(f"wrote {out}")


def is_held_out(row: WordLabels) -> bool:
    """Whether a row trains nothing and calibrates: a tenth, by group."""
    return share_of(row.example.group) < HELD_OUT


def rows_of(examples: Iterable[Example], lexicon: Lexicon) -> list[Row]:
    """Arrays of the examples that hold words."""
    return [row for row in (row_of(example, lexicon) for example in examples) if row is not None]


def _scale(row: Row) -> float:
    if row.example.kind == "natural":
        return _ANSWER_SCALE if row.is_answer else _SOURCE_SCALE.get(row.example.source, 1.0)
    if row.example.kind == "silver":
        return _WITH_VECTORS_SCALE if (row.vector >= 0).mean() > 0.5 else 1.0
    return _MADE_SCALE


def lexicon_for(
    labelled: Labelled, commonness: Commonness, encoder: Path, seed: int, say: Callable[[str], None]
) -> Lexicon:
    """Distil word vectors from an encoder, and learn a projection of them together with a first network."""
    texts = [*clean_texts(labelled), *((e.language or "", e.response) for e in labelled.examples)]
    distilled = distil(vocabulary(texts), encoder)
    say(f"vectors of {len(distilled.keys)} words distilled")
    plain = distilled.lexicon(commonness.table(), None)
    silver = [example for example in labelled.examples if example.kind == "silver"]
    others = [example for example in labelled.examples if example.kind != "silver" and example.source != "qa"]
    others += made_by_rule(labelled, commonness, seed)
    some = Random(seed).sample(others, min(len(others), _OTHERS_FOR_VECTORS))  # noqa: S311
    rows = [row for row in rows_of([*silver, *some], plain) if not is_held_out(row)]
    return distilled.lexicon(commonness.table(), _projection(rows, distilled, seed, say))


def _projection(
    rows: Sequence[Row], distilled: Distilled, seed: int, say: Callable[[str], None]
) -> NDArray[np.float32]:
    means, deviations = statistics(rows)
    torch.manual_seed(seed)
    network = WithLearnedVectors(
        Network(torch.cat([means, torch.zeros(LEARNED)]), torch.cat([deviations, torch.full((LEARNED,), 0.3)])),
        torch.from_numpy(distilled.full),
        torch.from_numpy(distilled.next_directions() * 4.0),
    )
    fit(network, rows, Plan(epochs=4, rate=2e-3, seed=seed, type_weight=1.0), with_rows=True, say=say)
    learned: NDArray[np.float32] = network.project.weight.detach().numpy().T.copy()
    return learned


def first_stage(rows: Sequence[Row], seed: int, say: Callable[[str], None], epochs: int = 6) -> Network:
    """Train on every row that is neither held out nor a natural answer."""
    chosen = [row for row in rows if not row.is_answer and not is_held_out(row)]
    if not chosen:
        raise InputError(
            "The data holds nothing to train on.",
            remedy="Give labelled samples with evidence, clean articles, or answered questions.",
        )
    torch.manual_seed(seed)  # the weights to start from are drawn here, before `fit` seeds itself
    network = Network(*statistics(chosen))
    fit(network, chosen, Plan(epochs=epochs, rate=2e-3, seed=seed, type_weight=0.7), scale=_scale, say=say)
    return network


def second_stage(
    network: Network, rows: Sequence[Row], answers: Sequence[Row], seed: int, say: Callable[[str], None]
) -> Network:
    """Go on with natural answers, mixed with rows of the first stage; the network given is not changed."""
    if not answers:
        return network
    others = [row for row in rows if not row.is_answer and not is_held_out(row)]
    mixed = Random(seed).sample(others, min(len(others), _MIXED)) + list(answers) * _REPEATS  # noqa: S311
    tuned = copy.deepcopy(network)
    fit(tuned, mixed, Plan(epochs=3, rate=2e-3, seed=seed, type_weight=0.7), scale=_scale, say=say)
    return tuned


# Writing a folder of weights: network, lexicon, calibration, manifest, model card; moved in when all are whole.


REVISION = "1.0"
THRESHOLD = 0.5


def _ship(
    network: Network,
    lexicon: Lexicon,
    trained: Sequence[Row],
    judged: Sequence[tuple[Row, NDArray[np.float32]]],
    out: Path,
    *,
    seed: int,
    left_out: Counter[str],
) -> None:
    """Write the folder; `judged` are rows with logits of a network that did not see them."""
    if not judged:
        raise WeightsError("No text was held out, so nothing can be calibrated.", remedy="Give more data.")
    held_out, logits = [row for row, _ in judged], [values for _, values in judged]
    calibration = calibrate(held_out, logits)
    template = files(__package__).joinpath("model_card.md")
    card = model_card(
        template, trained, left_out, revision=REVISION, seed=seed, held_out=counts_table(held_out),
        calibrated=" ".join(calibration.languages), figures=figures_table(held_out, logits, calibration, THRESHOLD),
    )  # fmt: skip
    with whole_folder(out) as part:
        export(network, part / "network.onnx")
        lexicon.save(part)
        write_json(part / "calibration.json", calibration)
        manifest = Manifest(
            revision=REVISION,
            features_version=FEATURES_VERSION,
            features=_feature_names(held_out[0], lexicon),
            types=TYPES,
            threshold=THRESHOLD,
            sha256={name: file_sha256(part / name) for name in FILES},
        )
        write_json(part / "weights.json", manifest)
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


def _feature_names(row: Row, lexicon: Lexicon) -> tuple[str, ...]:
    example = row.example
    features = extract(example.response, example.passages, example.question, example.language, lexicon)
    return features.names if features is not None else ()


# The network.
#
# Convolutions see a word's neighbours; two layers pool every sentence, look at the sentences beside it, and hand the
# result back to its words, since most unsupported text comes in whole sentences. No attention: time stays linear.


_CLIP = 6.0


class Network(nn.Module):
    """Word features to logits."""

    def __init__(self, means: Tensor, deviations: Tensor, width: int = 96, dropout: float = 0.15) -> None:
        super().__init__()
        self.means: Tensor
        self.deviations: Tensor
        self.register_buffer("means", means)
        self.register_buffer("deviations", deviations)
        self.enter = nn.Linear(len(means), width)
        self.blocks = Blocks(width, dropout)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, OUTPUTS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Logits."""
        scaled = ((features - self.means) / self.deviations).clamp(-_CLIP, _CLIP)
        hidden = self.blocks(self.enter(self.dropout(scaled)), present, pool)
        out: Tensor = self.leave(self.norm(hidden))
        return out


class WithLearnedVectors(nn.Module):
    """A network that learns its own projection of the encoder's vectors; the last feature is the word's row, or -1."""

    def __init__(self, network: Network, vectors: Tensor, start: Tensor) -> None:
        super().__init__()
        self.network = network
        self.vectors = vectors  # no parameter: it is never changed, and too large to copy with the state
        self.project = nn.Linear(start.shape[0], start.shape[1], bias=False)
        self.project.weight.data = start.T.contiguous()
        self.dropout = nn.Dropout(0.3)

    def forward(self, features: Tensor, present: Tensor, pool: Tensor) -> Tensor:
        """Logits, as `Network.forward`; `features` has the row of the word's vector last."""
        rows = features[..., -1].long()
        known = (rows >= 0).unsqueeze(-1)
        vectors = self.vectors[rows.clamp(min=0)].to(features.dtype) * known
        projected = self.project(self.dropout(vectors))
        out: Tensor = self.network(torch.cat([features[..., :-1], projected], dim=-1), present, pool)
        return out


# Fitting the network: batches by length, and predictions one response at a time.


_BATCH_WORDS = 6000
_SORTED = 512  # rows among which batches of like length are made


def statistics(rows: Sequence[Row], *, with_rows: bool = False, most: int = 2000) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature over a sample of the rows; both of shape (f,)."""
    step = max(1, len(rows) // most)
    values = np.concatenate([_inputs(row, with_rows=with_rows)[:200] for row in rows[::step]]).astype(np.float32)
    return torch.from_numpy(values.mean(axis=0)), torch.from_numpy(values.std(axis=0) + 0.05)


def _inputs(row: Row, *, with_rows: bool) -> NDArray[np.float32]:
    values = row.values.astype(np.float32)
    return np.concatenate([values, row.vector[:, None].astype(np.float32)], axis=1) if with_rows else values


def _batch(rows: Sequence[Row], scale: Callable[[Row], float], *, with_rows: bool) -> list[Tensor]:
    longest = max(len(row) for row in rows)
    sentences = max(int(row.sentence[-1]) + 1 for row in rows)
    width = rows[0].values.shape[1] + with_rows
    values = np.zeros((len(rows), longest, width), np.float32)
    present = np.zeros((len(rows), longest, 1), np.float32)
    pool = np.zeros((len(rows), sentences, longest), np.float32)
    target = np.zeros((len(rows), longest), np.float32)
    types = np.zeros((len(rows), longest, rows[0].types.shape[1]), np.float32)
    weight = np.zeros((len(rows), longest), np.float32)
    for i, row in enumerate(rows):
        n = len(row)
        values[i, :n] = _inputs(row, with_rows=with_rows)
        present[i, :n] = 1
        pool[i, row.sentence, np.arange(n)] = 1 / np.bincount(row.sentence)[row.sentence]
        target[i, :n], types[i, :n], weight[i, :n] = row.target, row.types, row.weight * scale(row)
    return [torch.from_numpy(a) for a in (values, present, pool, target, types, weight)]


def _batches(rows: Sequence[Row], rng: np.random.Generator) -> list[list[Row]]:
    order = rng.permutation(len(rows))
    batches: list[list[Row]] = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=len)
        batch: list[Row] = []
        for row in near:
            batch.append(row)
            if len(batch) * len(row) >= _BATCH_WORDS:
                batches.append(batch)
                batch = []
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


def fit(
    network: nn.Module,
    rows: Sequence[Row],
    plan: Plan,
    *,
    scale: Callable[[Row], float] = lambda _: 1.0,
    with_rows: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place, seeded, on one thread."""

    def judged(batch: Sequence[Row]) -> tuple[Tensor, list[Tensor]]:
        values, present, pool, *labels = _batch(batch, scale, with_rows=with_rows)
        return network(values, present, pool), labels

    fit_on(network, plan, lambda rng: _batches(rows, rng), judged, say=say)


def predict(network: nn.Module, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
    """Logits of each row, one response at a time as the detector does it; each of shape (n, 7)."""
    logits = []
    with torch.no_grad():
        for row in rows:
            values, present, pool, *_ = _batch([row], lambda _: 1.0, with_rows=False)
            logits.append(network(values, present, pool)[0].numpy())
    return logits


# From PyTorch to ONNX, checked.


_TOLERANCE = 2e-3  # of a logit
_LENGTHS = ((1, 1), (7, 2), (90, 5), (700, 40))  # words and sentences


class _ForOne(nn.Module):
    """The network for one response, without padding."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, pool: Tensor) -> Tensor:
        out: Tensor = self.network(features, torch.ones_like(features[..., :1]), pool)
        return out


def export(network: Network, path: Path) -> None:
    """Write the network as one self-contained ONNX file."""
    single = _ForOne(network).eval()
    width = len(network.means)
    words, sentences = torch.export.Dim("words", min=2), torch.export.Dim("sentences", min=2)
    path.write_bytes(
        onnx_bytes(
            single,
            (torch.randn(1, 30, width), torch.rand(1, 4, 30)),
            inputs=("features", "pool"),
            outputs=("logits",),
            axes=({1: words}, {1: sentences, 2: words}),
        )
    )
    _check(single, Model(path), width)


def _check(single: nn.Module, model: Model, width: int) -> None:
    rng = np.random.default_rng(0)
    for length, count in _LENGTHS:
        features = rng.normal(size=(length, width)).astype(np.float32)
        sentence = np.sort(np.concatenate([np.arange(count), rng.integers(0, count, length - count)]))
        logits = model.logits(features, sentence)
        pool = np.zeros((1, count, length), np.float32)
        pool[0, sentence, np.arange(length)] = 1 / np.bincount(sentence)[sentence]
        with torch.no_grad():
            expected = single(torch.from_numpy(features[None]), torch.from_numpy(pool))[0].numpy()
        if logits.shape != (length, OUTPUTS) or np.abs(logits - expected).max() > _TOLERANCE:
            raise WeightsError(f"The exported network differs from the trained one at {length} words.")


# Examples as arrays.


@dataclass(frozen=True)
class Row(Labels):
    """One example as arrays."""

    values: NDArray[np.float16]
    vector: NDArray[np.int32]
    sentence: NDArray[np.int32]
    bounds: NDArray[np.int32]


def row_of(example: Example, lexicon: Lexicon) -> Row | None:
    """The arrays of an example; None where response or evidence hold no word."""
    extract_result = extract(example.response, example.passages, example.question, example.language, lexicon)
    if extract_result is None:
        return None
    labels = labels_of(example, extract_result.response.bounds, extract_result.markup)
    return Row(
        example,
        labels.target,
        labels.weight,
        labels.types,
        extract_result.values.astype(np.float16),
        extract_result.vector_place.astype(np.int32),
        extract_result.sentence.astype(np.int32),
        extract_result.response.bounds.astype(np.int32),
    )
