"""Training the semantic detector: stages, export to ONNX, and the folder of weights; seeded.

The stages are those of the grounding detector's training: the first learns from everything but natural answers, the
second goes on with those few, mixed with some of the rest. Between them some of the first stage's rows are seen once
more with their forms taken away (`blinding`). What is held out calibrates, relation by relation.
"""

from __future__ import annotations

import copy
import shutil
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.nn import functional

from veriglot.detectors.grounding.detector import OUTPUTS
from veriglot.detectors.grounding.document import Lexicon
from veriglot.detectors.grounding.features import extract
from veriglot.detectors.semantic.detector import (
    FILES,
    Calibrations,
    Manifest,
    joined,
    shared_folder,
    shared_hash,
    vectors_of,
    words_network,
)
from veriglot.detectors.semantic.features import READING_VERSION, STRIDE
from veriglot.encoders.base import load_encoder
from veriglot.errors import InputError, WeightsError
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.training.grounding.examples import TYPES, read_labelled
from veriglot.training.grounding.synthetic_data import without_tests
from veriglot.training.semantic.dataset import (
    TOKENS,
    Blinder,
    Shelves,
    examples_of,
    is_held_out,
    principal_directions,
    relation_of,
    rows_of,
)
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
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
    from veriglot.encoders.base import Encoder
    from veriglot.training.grounding.examples import WordLabels
    from veriglot.training.semantic.dataset import Arrays, Row

__all__ = ["train"]


HEADS = 2
_CHANNELS = HEADS + 1  # the last is matching by form
_REACHES = (4, 10)  # words on either side, as in the grounding detector's features
_SHARP = 12.0  # how much of a choice is made among windows
_CLIP = 6.0
_ABSENT = 30.0  # what keeps attention off empty slots


class Sizes:
    """Widths of a projection, of what attention hands on, and of the layers above; and the dropout of these."""

    look = 64
    value = 64
    attentions = 2
    width = 128
    dropout = 0.15


class SemanticNetwork(nn.Module):
    """Features and vectors to logits."""

    def __init__(
        self, features: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor], rarity: int, vectors: int
    ) -> None:
        super().__init__()
        self._means: Tensor
        self._deviations: Tensor
        self.register_buffer("_means", torch.cat([features[0], columns[0]]))
        self.register_buffer("_deviations", torch.cat([features[1], columns[1]]))
        self._rarity = rarity
        self.look = nn.Linear(vectors, HEADS * Sizes.look, bias=False)
        _start_plain(self.look.weight)
        self.value = nn.Linear(vectors, Sizes.value, bias=False)
        self.slope = nn.Parameter(torch.full((HEADS, 1, 1), 8.0))
        self.shift = nn.Parameter(torch.full((HEADS, 1, 1), 0.5))
        self.context = nn.Parameter(torch.ones(3, _CHANNELS, 1, 1))
        self.by_meaning = nn.Parameter(torch.full((Sizes.attentions, HEADS), 6.0))
        self.by_form = nn.Parameter(torch.full((Sizes.attentions, 1, 1), 3.0))
        self.by_context = nn.Parameter(torch.linspace(1.0, 6.0, Sizes.attentions).view(-1, 1, 1))
        compared_size = _CHANNELS * 8 + HEADS * 3 + Sizes.attentions * 4
        inputs = len(self._means) + compared_size + Sizes.value * (1 + 2 * Sizes.attentions)
        self.enter = nn.Linear(inputs, Sizes.width)
        self.blocks = Blocks(Sizes.width, Sizes.dropout)
        self.norm = nn.LayerNorm(Sizes.width)
        self.leave = nn.Linear(Sizes.width, OUTPUTS)
        self.dropout = nn.Dropout(Sizes.dropout)
        self.vector_dropout = nn.Dropout(0.1)

    def forward(
        self,
        features: Tensor,
        columns: Tensor,
        words: Tensor,
        evidence: Tensor,
        matched: Tensor,
        filled: Tensor,
        pool: Tensor,
        question: Tensor,
        asked: Tensor,
        present: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Logits."""
        given = torch.cat([features, columns], dim=-1)
        scaled = ((given - self._means) / self._deviations).clamp(-_CLIP, _CLIP)
        weight = (features[..., self._rarity] + 0.05) * present[..., 0]
        compared, position = self._compared(words, evidence, matched, filled, pool, question, asked, present, weight)
        hidden = self.blocks(self.enter(torch.cat([self.dropout(scaled), compared], dim=-1)), present, pool)
        return self.leave(self.norm(hidden)), position

    def _compared(
        self,
        words: Tensor,
        evidence: Tensor,
        matched: Tensor,
        filled: Tensor,
        pool: Tensor,
        question: Tensor,
        asked: Tensor,
        present: Tensor,
        weight: Tensor,
    ) -> tuple[Tensor, Tensor]:
        words = self.vector_dropout(words)
        evidence_looks = self._looks(evidence)
        empty = 2 * (1 - filled)[:, None, None, :]
        alike = self._looks(words) @ evidence_looks.transpose(2, 3) - empty  # (b, heads, n, l)
        by_form = _highest(matched).unsqueeze(1)
        similarities = torch.cat([self._windows(alike), by_form], dim=1) * present.unsqueeze(
            1
        )  # (b, channels, n, windows)
        to_question = (
            self._windows(self._looks(question) @ evidence_looks.transpose(2, 3) - empty) * asked[:, None, :, None]
        )
        of_question = to_question.sum(2, keepdim=True) / asked.sum(1)[:, None, None, None].clamp(min=1)
        of_question = torch.cat([of_question, of_question.mean(1, keepdim=True)], dim=1)
        near, far = (_around(similarities, weight, reach) for reach in _REACHES)
        sentence = _in_sentence(similarities, weight, pool)
        context = (self.context[0] * far + self.context[1] * sentence + self.context[2] * of_question).mean(1)
        best = torch.softmax(_SHARP * sentence.mean(1, keepdim=True), dim=-1)
        best_in_context = torch.softmax(_SHARP * context, dim=-1).unsqueeze(1)
        features = [
            *(
                part.amax(-1)
                for part in (
                    similarities,
                    near,
                    near * similarities,
                    far * similarities,
                    sentence,
                    of_question * similarities,
                )
            ),
            (best * similarities).sum(-1),
            (best_in_context * similarities).sum(-1),
        ]
        top = alike.topk(2, dim=-1).values
        features += [top[..., 0], top[..., 0] - top[..., 1], alike.clamp(min=0).mean(-1)]
        own = self.value(words)
        beside = _of_words(context)
        mixed = torch.einsum("kh,bhnl->bknl", self.by_meaning, alike)
        logits = mixed + self.by_form * matched.unsqueeze(1) + self.by_context * beside.unsqueeze(1)
        logits = logits - _ABSENT * (1 - filled)[:, None, None]
        shares = torch.softmax(logits, dim=-1)
        met = shares @ self.value(evidence).unsqueeze(1)
        features += [(shares * mixed).sum(-1) / 10, (shares * matched.unsqueeze(1)).sum(-1)]
        features += [shares.amax(-1), torch.logsumexp(logits, dim=-1) / 10]
        handed = [own, *(met * own.unsqueeze(1)).unbind(1), *(met - own.unsqueeze(1)).abs().unbind(1)]
        position = shares[:, -1].argmax(-1)
        return torch.cat([torch.cat(features, dim=1).transpose(1, 2), *handed], dim=-1), position

    def _looks(self, vectors: Tensor) -> Tensor:
        """Unit vectors of each head, shape (b, heads, n, look)."""
        split = self.look(vectors).unflatten(-1, (HEADS, Sizes.look)).transpose(1, 2)
        out: Tensor = split / (split.pow(2).sum(-1, keepdim=True) + 1e-4).sqrt()
        return out

    def _windows(self, alike: Tensor) -> Tensor:
        """How well any word of each window matches, between 0 and 1."""
        return torch.sigmoid(self.slope * (_highest(alike) - self.shift))


def _highest(values: Tensor) -> Tensor:
    """The highest of each window, two strides long, over slots on the last axis (`max_pool1d` cannot be exported)."""
    strides: Tensor = values.unflatten(-1, (-1, STRIDE)).amax(-1)  # type: ignore[no-untyped-call]
    return torch.maximum(strides[..., :-1], strides[..., 1:])


def _start_plain(weight: Tensor) -> None:
    """Each head begins as the first directions of the vectors, where meaning lies, with a little noise to part them."""
    with torch.no_grad():
        weight.normal_(0.0, 0.02)
        for head in range(HEADS):
            rows = slice(head * Sizes.look, (head + 1) * Sizes.look)
            weight[rows, : Sizes.look] += torch.eye(Sizes.look, min(Sizes.look, weight.shape[1]))


def _around(values: Tensor, weight: Tensor, reach: int) -> Tensor:
    """The share of the words up to `reach` away, by weight and without the word itself, that each window holds."""
    size = 2 * reach + 1
    weighted = values * weight[:, None, :, None]
    rows = weighted.permute(0, 1, 3, 2)
    sums: Tensor = functional.avg_pool1d(rows.flatten(1, 2), size, 1, reach) * size
    sums = sums.unflatten(1, (_CHANNELS, -1)).permute(0, 1, 3, 2) - weighted  # type: ignore[no-untyped-call]
    total = functional.avg_pool1d(weight.unsqueeze(1), size, 1, reach)[:, 0] * size - weight
    return sums / total.clamp(min=1e-3)[:, None, :, None]


def _in_sentence(values: Tensor, weight: Tensor, pool: Tensor) -> Tensor:
    """The share of each word's sentence, by weight, that each window holds."""
    shares = pool * weight.unsqueeze(1)
    shares = (shares / shares.sum(-1, keepdim=True).clamp(min=1e-3)).unsqueeze(1)
    back = (pool > 0).to(values.dtype).transpose(1, 2).unsqueeze(1)
    return back @ (shares @ values)


def _of_words(context: Tensor) -> Tensor:
    """From windows to slots: a slot lies in two windows, but for the first and the last stride; the better counts."""
    padded = functional.pad(context, (1, 1), value=-1e4)
    return torch.maximum(padded[..., :-1], padded[..., 1:]).repeat_interleave(STRIDE, dim=-1)


# Batches of responses with their evidence, and predictions one response at a time.


_BATCH_PAIRS = 700_000  # of a word and a slot: they take the memory
_BATCH_WORDS = 3000
_SORTED = 1024  # rows among which batches of like size are made
_SAMPLED = 2500  # rows that statistics are taken of
_MADE_SCALE = 0.7
_SILVER_SCALE = 1.8
# Of what people labelled: answers are what users bring, checked claims are close to what models really do, summaries
# are many and alike, and of translations few had every word looked at.
_NATURAL_SCALE = {"qa": 2.0, "open": 2.0, "summarization": 0.7, TOKENS: 4.0}


def statistics(rows: Sequence[Row], shelves: Shelves) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Mean and standard deviation of each feature, and of each further column, over a sample of the rows."""
    some = [shelves.record(row.address) for row in rows[:: max(1, len(rows) // _SAMPLED)]]
    pairs = []
    for parts in ([arrays.features[:200] for arrays in some], [arrays.columns[:200] for arrays in some]):
        values = np.concatenate(parts).astype(np.float32)
        pairs.append((torch.from_numpy(values.mean(axis=0)), torch.from_numpy(values.std(axis=0) + 0.05)))
    return pairs[0], pairs[1]


def fit(
    network: SemanticNetwork,
    rows: Sequence[Row],
    shelves: Shelves,
    plan: Plan,
    *,
    shown: Callable[[Arrays], Arrays] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train in place, seeded, on one thread."""

    def judged(batch: Sequence[Row]) -> tuple[Tensor, list[Tensor]]:
        given, labels = _batch(batch, shelves, shown)
        return network(*given)[0], labels

    fit_on(network, plan, lambda rng: _batches(rows, rng), judged, say=say)


def predict(network: SemanticNetwork, rows: Sequence[Row], shelves: Shelves) -> list[NDArray[np.float32]]:
    """Logits of each row, one response at a time as the detector does it; each of shape (n, 7)."""
    network.eval()
    logits = []
    with torch.no_grad():
        for row in rows:
            given, _ = _batch([row], shelves, None)
            logits.append(network(*given)[0][0].numpy())
    return logits


def _scale(row: Row) -> float:
    """What a row counts for beside the weights of its words."""
    if row.example.kind == "natural":
        return _NATURAL_SCALE.get(row.example.source, 1.0)
    return _SILVER_SCALE if row.example.kind == "silver" else _MADE_SCALE


def _batches(rows: Sequence[Row], rng: np.random.Generator) -> list[list[Row]]:
    order = rng.permutation(len(rows))
    batches: list[list[Row]] = []
    for at in range(0, len(order), _SORTED):
        near = sorted((rows[i] for i in order[at : at + _SORTED]), key=lambda row: len(row) * row.slots)
        batch: list[Row] = []
        for row in near:
            longest = max([len(row), *map(len, batch)])
            most = max([row.slots, *(other.slots for other in batch)])
            words = (len(batch) + 1) * longest
            if batch and (words * most > _BATCH_PAIRS or words > _BATCH_WORDS):
                batches.append(batch)
                batch = []
            batch.append(row)
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


def _batch(
    rows: Sequence[Row], shelves: Shelves, shown: Callable[[Arrays], Arrays] | None
) -> tuple[list[Tensor], list[Tensor]]:
    """The network's inputs, and target, types and weight, filled up with zeros."""
    arrays = [shelves.record(row.address) for row in rows]
    if shown is not None:
        arrays = [shown(some) if relation_of(row) == "same" else some for row, some in zip(rows, arrays, strict=True)]
    filled = _Filled(rows, arrays, shelves.width)
    for nth, row in enumerate(rows):
        filled.put(nth, row, shelves)
    return filled.tensors()


class _Filled:
    """The arrays of a batch."""

    def __init__(self, rows: Sequence[Row], arrays: Sequence[Arrays], width: int) -> None:
        self._arrays = arrays
        count, longest, slots = len(rows), max(map(len, rows)), max(row.slots for row in rows)
        sentences = max(int(some.sentence[-1]) + 1 for some in arrays)
        asked = max(1, *(len(some.question) for some in arrays))

        def empty(*shape: int) -> NDArray[np.float32]:
            return np.zeros((count, *shape), np.float32)

        self.features = empty(longest, arrays[0].features.shape[1])
        self.columns = empty(longest, arrays[0].columns.shape[1])
        self.words, self.evidence, self.question = empty(longest, width), empty(slots, width), empty(asked, width)
        self.matched, self.filled = empty(longest, slots), empty(slots)
        self.pool, self.asked, self.present = empty(sentences, longest), empty(asked), empty(longest, 1)
        self.target, self.types, self.weight = empty(longest), empty(longest, len(TYPES)), empty(longest)

    def put(self, nth: int, row: Row, shelves: Shelves) -> None:
        """Fill in one row."""
        some, n = self._arrays[nth], len(row)
        self.features[nth, :n], self.columns[nth, :n] = some.features, some.columns
        self.words[nth, :n] = shelves.take(some.words)
        self.evidence[nth, : row.slots] = shelves.take(some.slots)
        self.filled[nth, : row.slots] = some.slots >= 0
        np.maximum.at(self.matched[nth], (some.ours, some.slot), some.value.astype(np.float32))
        self.pool[nth, some.sentence, np.arange(n)] = 1 / np.bincount(some.sentence)[some.sentence]
        self.question[nth, : len(some.question)] = shelves.take(some.question)
        self.asked[nth, : len(some.question)] = 1
        self.present[nth, :n] = 1
        self.target[nth, :n], self.types[nth, :n] = row.target, some.types
        self.weight[nth, :n] = row.weight * _scale(row)

    def tensors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Inputs in the network's order, and labels."""
        given = (
            self.features, self.columns, self.words, self.evidence, self.matched, self.filled, self.pool,
            self.question, self.asked, self.present,
        )  # fmt: skip
        labels = (self.target, self.types, self.weight)
        return [torch.from_numpy(array) for array in given], [torch.from_numpy(array) for array in labels]


# From PyTorch to the ONNX file that the detector runs, checked against each other at several sizes.


if TYPE_CHECKING:
    _Inputs = dict[str, NDArray[np.float32]]


COLUMNS = 24  # further features of a word, beside the grounding detector's (`reading.read_sample`)
_INPUTS = ("features", "columns", "words", "evidence", "matched", "filled", "pool", "question", "asked")
_TOLERANCE = 2e-3  # of a logit
_SIZES = ((1, 2, 1, 1), (7, 2, 2, 9), (90, 22, 5, 1), (620, 70, 40, 30))  # words, strides, sentences, asked words


class _ForOne(nn.Module):
    """The network for one response, without padding."""

    def __init__(self, network: SemanticNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        features: Tensor,
        columns: Tensor,
        words: Tensor,
        evidence: Tensor,
        matched: Tensor,
        filled: Tensor,
        pool: Tensor,
        question: Tensor,
        asked: Tensor,
    ) -> tuple[Tensor, Tensor]:
        present = torch.ones_like(features[..., :1])
        output: tuple[Tensor, Tensor] = self.network(
            features, columns, words, evidence, matched, filled, pool, question, asked, present
        )
        return output


def export(network: SemanticNetwork, projection: NDArray[np.float32], path: Path) -> None:
    """Write the head as one self-contained ONNX file that takes the encoder's own vectors."""
    single = _ForOne(_unprojected(network, projection)).eval()
    length = len(projection)
    path.write_bytes(
        onnx_bytes(
            single,
            tuple(torch.from_numpy(array) for array in _drawn(single.network, length, 30, 4, 6, 5).values()),
            inputs=_INPUTS,
            outputs=("logits", "place"),
            axes=_axes(),
        )
    )
    _check(single, network, projection, path)


def _unprojected(network: SemanticNetwork, projection: NDArray[np.float32]) -> SemanticNetwork:
    """The same network for vectors that are not projected: both of its layers that take vectors are linear."""
    whole = copy.deepcopy(network)
    directions = torch.from_numpy(projection)
    for name in ("look", "value"):
        weight = getattr(network, name).weight.detach()
        layer = nn.Linear(len(projection), len(weight), bias=False)
        layer.weight = nn.Parameter(weight @ directions.T)
        setattr(whole, name, layer)
    return whole


def _axes() -> tuple[dict[int, object], ...]:
    """Which axes of the inputs take any length; slots come in whole strides."""
    words, sentences, asked = (torch.export.Dim(name, min=2) for name in ("words", "sentences", "asked"))
    slots = STRIDE * torch.export.Dim("strides", min=2)
    return (
        {1: words}, {1: words}, {1: words}, {1: slots}, {1: words, 2: slots}, {1: slots},
        {1: sentences, 2: words}, {1: asked}, {1: asked},
    )  # fmt: skip


def _drawn(network: SemanticNetwork, length: int, words: int, strides: int, sentences: int, asked: int) -> _Inputs:
    """Inputs as a detector might give them, for vectors of a length."""
    rng = np.random.default_rng(words)
    slots = strides * STRIDE
    filled = np.ones((1, slots), np.float32)
    filled[0, -STRIDE - 3 :] = 0
    sentence = np.sort(np.concatenate([np.arange(sentences), rng.integers(0, sentences, words - sentences)]))
    pool = np.zeros((1, sentences, words), np.float32)
    pool[0, sentence, np.arange(words)] = 1 / np.bincount(sentence)[sentence]
    shapes = {
        "features": (words, len(network._means) - COLUMNS), "columns": (words, COLUMNS), "words": (words, length),
        "evidence": (slots, length), "question": (asked, length),
    }  # fmt: skip
    arrays: _Inputs = {name: rng.normal(size=(1, *shape)).astype(np.float32) for name, shape in shapes.items()}
    arrays["evidence"] *= filled[..., None]
    matched = rng.random((1, words, slots)) < 1 / 40
    arrays |= {"matched": matched * filled[:, None], "filled": filled, "pool": pool}
    arrays["asked"] = np.ones((1, asked), np.float32)
    return {name: arrays[name] for name in _INPUTS}


def _check(single: _ForOne, network: SemanticNetwork, projection: NDArray[np.float32], path: Path) -> None:
    """Raise unless file, unprojected network and trained network agree."""
    trained = _ForOne(network).eval()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for sizes in _SIZES:
        given = _drawn(network, len(projection), *sizes)
        before = {n: a @ projection if n in ("words", "evidence", "question") else a for n, a in given.items()}
        exported, places = session.run(None, given)
        for module, inputs in ((single, given), (trained, before)):
            with torch.no_grad():
                logits, expected_places = module(*(torch.from_numpy(inputs[name]) for name in _INPUTS))
            same = (places == expected_places.numpy()).mean() if places.shape == expected_places.shape else 0.0
            if (
                exported.shape != (1, sizes[0], OUTPUTS)
                or np.abs(exported - logits.numpy()).max() > _TOLERANCE
                or same < 0.9
            ):
                raise WeightsError(f"The exported head differs from the trained one at {sizes[0]} words.")


# Writing a folder of weights for the semantic detector: head, calibrations, manifest, model card.


if TYPE_CHECKING:
    Judged = Sequence[tuple[WordLabels, NDArray[np.float32]]]


REVISION = "1.0"
THRESHOLD = 0.5
RELATIONS = ("same", "across", "translation")
_TITLES = {
    "same": "Evidence in the response's language",
    "across": "Evidence in another language",
    "translation": "Translations held against their sources",
}


def ship(
    network: SemanticNetwork,
    projection: NDArray[np.float32],
    trained: Sequence[WordLabels],
    judged: Mapping[str, Judged],
    out: Path,
    *,
    seed: int,
    encoder: Encoder,
    left_out: Counter[str],
    remark: str,
) -> None:
    """Write the folder."""
    if not judged.get("same"):
        raise WeightsError("No text was held out, so nothing can be calibrated.", remedy="Give more data.")
    fitted = _calibrated(judged)
    template = files(__package__).joinpath("model_card.md")
    card = model_card(
        template, trained, left_out, revision=REVISION, seed=seed, encoder=encoder.name, remark=remark,
        held_out="\n\n".join(_held_out(relation, judged.get(relation, ()), fitted[relation]) for relation in RELATIONS),
    )  # fmt: skip
    with whole_folder(out) as part:
        export(network, projection, part / "head.onnx")
        calibrations = Calibrations(fitted["same"], fitted["across"], fitted["translation"])
        write_json(part / "calibration.json", calibrations)
        manifest = Manifest(
            revision=REVISION,
            reading_version=READING_VERSION,
            encoder=encoder.name,
            vectors=vectors_of(encoder),
            shared=shared_hash(),
            types=TYPES,
            threshold=THRESHOLD,
            sha256={name: file_sha256(part / name) for name in FILES},
        )
        write_json(part / "weights.json", manifest)
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


def _calibrated(judged: Mapping[str, Judged]) -> dict[str, Calibration]:
    calibrations: dict[str, Calibration] = {}
    for nth, relation in enumerate(RELATIONS):
        pairs = judged.get(relation)
        if pairs:
            calibrations[relation] = calibrate([row for row, _ in pairs], [logits for _, logits in pairs])
        else:
            calibrations[relation] = calibrations[RELATIONS[nth - 1]]
    return calibrations


def _held_out(relation: str, pairs: Judged, calibration: Calibration) -> str:
    title = f"### {_TITLES[relation]}"
    if not pairs:
        return f"{title}\n\nNothing was held out; calibrated as above."
    rows, logits = [row for row, _ in pairs], [values for _, values in pairs]
    figures = figures_table(rows, logits, calibration, THRESHOLD)
    return f"{title}\n\n{counts_table(rows)}\n\n{figures}\n\nCalibrated languages: {' '.join(calibration.languages)}."


_MIXED = 3000  # rows of the first stage that the second sees again
_REPEATS = 8  # of each natural answer in the second stage
_RATE = 2e-3
_WITH_TESTS = "The parallel articles and translations that the benchmarks test on are among the training data."
_WITHOUT_TESTS = "The parallel articles and translations that the benchmarks test on were left out."
_BLIND_RATE = 1.2e-3
_BLIND_EPOCHS = 2
_BLIND_SHARE = 0.5
_BLIND_MOST = {"same": 12500, "across": 10000, "translation": 8000}  # rows of each relation that the blind stage sees
_ANSWER_RATE = 1e-3
_TYPE_WEIGHT = 0.7


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    seed: int = 0,
    encoder: Encoder | Path | None = None,
    epochs: int = 6,
    jobs: int = 1,
    tests: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train from labelled files to a folder of weights that `load_detector("semantic", weights=...)` takes.

    Equal data, seed and versions give equal weights on one kind of processor, whatever `jobs`. Vectors lie in
    `out.scratch` meanwhile, some 512 bytes a word of all texts.

    Args:
        paths: files and folders in any readable format.
        out: the folder for the weights.
        seed: of everything that is drawn.
        encoder: the encoder, or the file of the multilingual one; None takes that file from where `veriglot models`
            keeps it.
        epochs: passes of the first stage.
        jobs: processes that encode the texts; fitting takes one.
        tests: whether articles and translations that the project's benchmarks test on are trained on.
        say: told of progress, a line at a time.

    Raises:
        InputError: a file cannot be read, or nothing in it can be learned from.
        MissingExtraError: PyTorch, or a package that the encoder needs, is not installed.
        WeightsError: the encoder's file is not here, or the trained head could not be exported faithfully.
    """
    if encoder is None:
        encoder = load_encoder("use-multilingual")
    elif isinstance(encoder, Path):
        encoder = load_encoder("use-multilingual", path=encoder)
    torch.set_num_threads(1)  # so small a network is faster on one, and the sums keep their order
    labelled = read_labelled(str(path) for path in paths)
    say(
        f"read {len(labelled.examples)} labelled responses, {len(labelled.articles)} articles,"
        f" {len(labelled.answers)} answers, {len(labelled.translations)} translations"
    )
    if not tests:
        without_tests(labelled)
    examples = examples_of(labelled, seed)
    if not examples:
        raise _nothing()
    projection = principal_directions(examples, encoder, seed)
    folder = out.resolve().parent  # the vectors take gigabytes: where the weights go there is room, unlike in /tmp
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=f"{out.name}.scratch-", dir=folder))
    try:
        rows = rows_of(examples, encoder, projection, scratch, jobs=jobs, say=say)
        shelves = Shelves(scratch, projection.shape[1])
        network, trained, judged = _trained(rows, shelves, seed, epochs, say)
        ship(
            network, projection, trained, judged, out,
            seed=seed, encoder=encoder, left_out=labelled.left_out,
            remark=_WITH_TESTS if tests else _WITHOUT_TESTS,
        )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(f"wrote {out}")


def _trained(
    rows: Sequence[Row], shelves: Shelves, seed: int, epochs: int, say: Callable[[str], None]
) -> tuple[SemanticNetwork, list[Row], dict[str, list[tuple[Row, NDArray[np.float32]]]]]:
    """The network of both stages, what it learned from, and what was held out with logits, by relation."""
    network = blind_stage(first_stage(rows, shelves, seed, say, epochs), rows, shelves, seed, say)
    answers = [row for row in rows if row.is_answer]
    judged = by_folds(
        answers,
        lambda seen, unseen: predict(second_stage(network, rows, seen, shelves, seed, lambda _: None), unseen, shelves),
        say,
    )
    held_out = [row for row in rows if is_held_out(row) and not row.is_answer]
    network = second_stage(network, rows, answers, shelves, seed, say)
    judged += zip(held_out, _joined(held_out, predict(network, held_out, shelves), shelves), strict=True)
    by_relation: dict[str, list[tuple[Row, NDArray[np.float32]]]] = defaultdict(list)
    for row, logits in judged:
        by_relation[relation_of(row)].append((row, logits))
    return network, [row for row in rows if row.is_answer or not is_held_out(row)], by_relation


def _joined(rows: Sequence[Row], logits: Sequence[NDArray[np.float32]], shelves: Shelves) -> list[NDArray[np.float32]]:
    """Logits as the detector has them. Natural answers keep the head's: the network by words has seen them all."""
    by_words = words_network()
    result = []
    for row, own in zip(rows, logits, strict=True):
        arrays = shelves.record(row.address)
        values, sentence = arrays.features.astype(np.float32), arrays.sentence.astype(np.int64)
        result.append(joined(own, by_words.logits(values, sentence)) if relation_of(row) == "same" else own)
    return result


def first_stage(
    rows: Sequence[Row], shelves: Shelves, seed: int, say: Callable[[str], None], epochs: int
) -> SemanticNetwork:
    """Train on every row that is neither held out nor a natural answer."""
    chosen = [row for row in rows if not row.is_answer and not is_held_out(row)]
    if not chosen:
        raise _nothing()
    features, columns = statistics(chosen, shelves)
    torch.manual_seed(seed)  # the weights to start from are drawn here, before `fit` seeds itself
    network = SemanticNetwork(features, columns, _feature_names().index("rarity"), shelves.width)
    plan = Plan(epochs=epochs, rate=_RATE, seed=seed, type_weight=_TYPE_WEIGHT)
    say(f"fitting on {len(chosen)} responses")
    fit(network, chosen, shelves, plan, say=say)
    return network


def blind_stage(
    network: SemanticNetwork, rows: Sequence[Row], shelves: Shelves, seed: int, say: Callable[[str], None]
) -> SemanticNetwork:
    """Go on with some rows of the first stage, half of those in one language without their forms."""
    rng = Random(f"blind {seed}")  # noqa: S311  a seeded draw, not a secret
    chosen: list[Row] = []
    for relation, most in _BLIND_MOST.items():
        some = [row for row in rows if relation_of(row) == relation and not row.is_answer and not is_held_out(row)]
        chosen += rng.sample(some, min(len(some), most))
    tuned = copy.deepcopy(network)
    blinder = Blinder(_feature_names(), _BLIND_SHARE, np.random.default_rng(seed))
    plan = Plan(epochs=_BLIND_EPOCHS, rate=_BLIND_RATE, seed=seed, type_weight=_TYPE_WEIGHT)
    say(f"fitting on {len(chosen)} responses, half of those in one language without their forms")
    fit(tuned, chosen, shelves, plan, shown=blinder, say=say)
    return tuned


def second_stage(
    network: SemanticNetwork,
    rows: Sequence[Row],
    answers: Sequence[Row],
    shelves: Shelves,
    seed: int,
    say: Callable[[str], None],
) -> SemanticNetwork:
    """Go on with natural answers, mixed with rows of the first stage; the network given is not changed."""
    if not answers:
        return network
    others = [row for row in rows if not row.is_answer and not is_held_out(row)]
    mixed = Random(seed).sample(others, min(len(others), _MIXED)) + list(answers) * _REPEATS  # noqa: S311
    tuned = copy.deepcopy(network)
    fit(tuned, mixed, shelves, Plan(epochs=2, rate=_ANSWER_RATE, seed=seed, type_weight=_TYPE_WEIGHT), say=say)
    return tuned


def _feature_names() -> tuple[str, ...]:
    """The grounding detector's features, in order."""
    seen = extract("a", ["a"], None, "en", Lexicon.load(shared_folder()))
    assert seen is not None
    return seen.names


def _nothing() -> InputError:
    return InputError(
        "The data holds nothing to train on.",
        remedy="Give labelled samples with evidence, clean articles, or answered questions.",
    )
