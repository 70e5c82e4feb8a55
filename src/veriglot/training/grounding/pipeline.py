"""Trains the grounding detector: distils word vectors, trains in two stages, writes a folder of weights; seeded.

The first stage uses everything except natural answers. The second stage continues with those few and some of the other
rows. So cross-validation over natural answers is honest and repeats only the short second stage
(`benchmarks/grounding_natural.py`). A tenth of the other texts is held out."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from random import Random
from string import Template
from typing import TYPE_CHECKING

import numpy as np
import torch

from veriglot.detectors.grounding.detector import FILES, Manifest, ScriptCalibration, response_features
from veriglot.detectors.grounding.document import MEANING, Document, Lexicon
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract_features
from veriglot.errors import InputError, WeightsError, requires_extra
from veriglot.hub.checkpoints import onnx_session
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.training.calibration import fit_logistic, fit_platt, fit_platt_by_script
from veriglot.training.grounding.examples import (
    HELD_OUT,
    TYPES,
    Labelled,
    Labels,
    read_labelled,
    script_of_tag,
    share_of,
)
from veriglot.training.grounding.network import (
    Network,
    Row,
    WithLearnedVectors,
    export,
    fit,
    predict,
    rows_of,
    statistics,
)
from veriglot.training.grounding.synthetic_data import WordFrequencies, clean_texts, count_words, synthetic_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from veriglot.arrays import Float16s, Float32s, UInt8s, UInt64s

    Say = Callable[[str], None]

__all__ = []


# Distillation of word vectors from a multilingual sentence encoder.
#
# The encoder (Universal Sentence Encoder multilingual, as an ONNX file with its tokenizer inside) embeds every word of
# a vocabulary as a sentence. Its languages share one space, so words of one meaning are close to each other. The
# stored vectors are small: the first principal components, scaled to length 1, are the meaning of a word; a projection
# that is learned with the detector is its use (hedges, praise, tales ...).


ENCODER_LANGUAGES = ("ar", "zh", "en", "fr", "de", "it", "ja", "ko", "nl", "pl", "pt", "es", "th", "tr", "ru")
NEAR_LANGUAGES = ("ca", "yue")  # not languages of the encoder, but so close to one that their words get good vectors
LEARNED = 16  # dimensions of the learned projection
_LISTED = 14000  # most frequent words from each language's list
_MIN_COUNT = 4  # occurrences in the training texts
_MAX_LENGTH = 30
_BATCH = 512
_MEAN_SQUARE_EDGE = 4.0  # learned dimensions are clipped at four standard deviations


class Distilled:
    """A vocabulary with its vectors, sorted by key."""

    def __init__(self, keys: UInt64s, full: Float16s) -> None:
        self.keys, self.full = keys, full
        spread = full.astype(np.float32)
        values, vectors = np.linalg.eigh(spread.T @ spread / len(spread))
        self._principal = vectors[:, np.argsort(-values)].astype(np.float32)

    @property
    def directions(self) -> Float32s:
        """The principal components of the meaning part, shape (512, MEANING)."""
        return self._principal[:, :MEANING]

    def next_directions(self) -> Float32s:
        """The next principal components, the start of the learned projection; shape (512, LEARNED)."""
        return self._principal[:, MEANING : MEANING + LEARNED]

    def lexicon(self, frequencies: UInt8s, learned: Float32s | None) -> Lexicon:
        """The lexicon in the form of the weights."""
        full = self.full.astype(np.float32)
        meaning = full @ self.directions
        meaning /= np.linalg.norm(meaning, axis=1, keepdims=True) + 1e-9
        parts = [meaning]
        if learned is not None:
            usage = full @ learned
            parts.append(np.clip(usage / (_MEAN_SQUARE_EDGE * usage.std(axis=0)), -1, 1))
        return Lexicon(frequencies, self.keys, Lexicon.stored_vectors(np.concatenate(parts, axis=1)))


def vocabulary(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Case-folded words to embed: the most frequent of each of the encoder's languages, and frequent training words."""
    with requires_extra("Distilling word vectors", "vectors"):
        import wordfreq
    known = dict.fromkeys(
        fold(word)
        for language in ENCODER_LANGUAGES
        if language in wordfreq.available_languages()
        for word in wordfreq.top_n_list(language, _LISTED)
    )
    counts = Counter[str]()
    for language, text in texts:
        if language.split("-")[0] in ENCODER_LANGUAGES + NEAR_LANGUAGES:
            folded = fold(text)
            counts.update(folded[s:e] for s, e in words(text, language))
    known.update(dict.fromkeys(w for w, n in counts.items() if n >= _MIN_COUNT and len(w) < _MAX_LENGTH))
    return sorted(w for w in known if not w.isdigit())


def distil(vocabulary: list[str], encoder: Path) -> Distilled:
    """Embed a vocabulary."""
    with requires_extra("Distilling word vectors", "vectors"):
        from onnxruntime_extensions import get_library_path
    session = onnx_session(str(encoder), operators=get_library_path())
    document = Document(vocabulary, None)
    whole = np.bincount(document.passage, minlength=len(vocabulary)) == 1
    sizes = np.array([len(word) for word in vocabulary])
    alone = whole[document.passage] & (document.lengths == sizes[document.passage])
    keys = Lexicon.keys_of(document.word[alone])
    chosen = document.passage[alone]
    keys, first = np.unique(keys, return_index=True)
    chosen = chosen[first]
    by_length = np.argsort(sizes[chosen], kind="stable")  # batches of similar length need less padding
    full = np.zeros((len(chosen), 512), np.float16)
    name = session.get_inputs()[0].name
    for at in range(0, len(chosen), _BATCH):
        rows = by_length[at : at + _BATCH]
        embedded = session.run(None, {name: np.array([vocabulary[i] for i in chosen[rows]])})[0]
        full[rows] = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
    full -= full.astype(np.float32).mean(axis=0).astype(np.float16)
    return Distilled(keys, full)


_OTHERS_FOR_VECTORS = 5000  # rows that are not silver, for the learned projection
_MIXED = 3500  # rows of the first stage that the second stage uses too
_REPEATS = 10  # of each natural answer in the second stage
# Summaries are many and similar; verified claims are few and close to what models really write.
_SOURCE_SCALE = {"summarization": 0.7, "open": 2.0}
_ANSWER_SCALE = 2.0
_MADE_SCALE = 0.7
# Only with word vectors can the network learn what hedges and praise look like in *other* languages.
_WITH_VECTORS_SCALE = 1.8


def train(
    paths: Sequence[Path],
    out: Path,
    *,
    seed: int = 0,
    encoder: Path | None = None,
    epochs: int = 6,
    say: Say = lambda _: None,
) -> None:
    """Train on labelled files, and write a folder of weights for `load_detector("grounding", weights=...)`.

    Equal data, seed and versions give equal weights on one kind of processor.

    Args:
        paths: files and folders in any readable format.
        out: the folder for the weights.
        seed: for all random draws.
        encoder: the sentence encoder's ONNX file, for distillation of word vectors; None uses the installed vectors.
        epochs: passes of the first stage.
        say: callback for progress, one line at a time.

    Raises:
        InputError: a file cannot be read, or has no training data.
        MissingExtraError: a package that the encoder needs is not installed.
        WeightsError: outputs of the exported network differ.
    """
    torch.set_num_threads(1)  # faster for such a small network, and sums have a fixed order
    labelled = read_labelled(str(path) for path in paths)
    say(f"read {len(labelled.examples)} labelled responses, {len(labelled.articles)} articles")
    if labelled.translations:
        labelled.left_out["translation"] += len(labelled.translations)
    frequencies = count_words(labelled)
    if encoder is None:
        own_lexicon = Lexicon.load(Path(str(files("veriglot.detectors.grounding") / "weights")))
        lexicon = Lexicon(frequencies.table(), own_lexicon.keys, own_lexicon.vectors)
    else:
        lexicon = lexicon_for(labelled, frequencies, encoder, seed, say)
    rows = rows_of([*labelled.examples, *synthetic_examples(labelled, frequencies, seed)], lexicon)
    say(f"took features of {len(rows)} responses")
    if len(rows) < 1000:
        say("warning: so few responses give no detector that can be used; the installed one learned from 30,000")
    network = first_stage(rows, seed, say, epochs)
    answers = [row for row in rows if row.is_answer]
    fold = folds_of(answers)
    judged: list[tuple[Row, Float32s]] = []  # every answer with logits of a network that was not trained on it
    for number in sorted(set(fold)):
        seen = [row for row, part in zip(answers, fold, strict=True) if part != number]
        unseen = [row for row, part in zip(answers, fold, strict=True) if part == number]
        judged += zip(unseen, predict(second_stage(network, rows, seen, seed, lambda _: None), unseen), strict=True)
        say(f"second stage without fold {number + 1} of {_FOLDS}")
    held_out = [row for row in rows if is_held_out(row) and not row.is_answer]
    network = second_stage(network, rows, answers, seed, say)
    judged += zip(held_out, predict(network, held_out), strict=True)
    trained = [row for row in rows if row.is_answer or not is_held_out(row)]
    _write_weights(network, lexicon, trained, judged, out, seed=seed, left_out=labelled.left_out)
    say(f"wrote {out}")


def is_held_out(row: Labels) -> bool:
    """Whether a row is held out, for calibration: a tenth, by group."""
    return share_of(row.example.group) < HELD_OUT


def _scale(row: Row) -> float:
    if row.example.kind == "natural":
        return _ANSWER_SCALE if row.is_answer else _SOURCE_SCALE.get(row.example.source, 1.0)
    if row.example.kind == "silver":
        return _WITH_VECTORS_SCALE if (row.vector >= 0).mean() > 0.5 else 1.0
    return _MADE_SCALE


def lexicon_for(labelled: Labelled, frequencies: WordFrequencies, encoder: Path, seed: int, say: Say) -> Lexicon:
    """Distil word vectors from an encoder, and learn a projection of them together with a first network."""
    texts = [*clean_texts(labelled), *((e.language or "", e.response) for e in labelled.examples)]
    distilled = distil(vocabulary(texts), encoder)
    say(f"vectors of {len(distilled.keys)} words distilled")
    plain = distilled.lexicon(frequencies.table(), None)
    silver = [example for example in labelled.examples if example.kind == "silver"]
    others = [example for example in labelled.examples if example.kind != "silver" and example.source != "qa"]
    others += synthetic_examples(labelled, frequencies, seed)
    some = Random(seed).sample(others, min(len(others), _OTHERS_FOR_VECTORS))  # noqa: S311
    rows = [row for row in rows_of([*silver, *some], plain) if not is_held_out(row)]
    return distilled.lexicon(frequencies.table(), _projection(rows, distilled, seed, say))


def _projection(rows: Sequence[Row], distilled: Distilled, seed: int, say: Say) -> Float32s:
    means, deviations = statistics(rows)
    torch.manual_seed(seed)
    network = WithLearnedVectors(
        Network(torch.cat([means, torch.zeros(LEARNED)]), torch.cat([deviations, torch.full((LEARNED,), 0.3)])),
        torch.from_numpy(distilled.full),
        torch.from_numpy(distilled.next_directions() * 4.0),
    )
    fit(network, rows, epochs=4, seed=seed, type_weight=1.0, with_rows=True, say=say)
    return network.project.weight.detach().numpy().T.copy()


def first_stage(rows: Sequence[Row], seed: int, say: Say, epochs: int) -> Network:
    """Train on every row that is neither held out nor a natural answer."""
    chosen = [row for row in rows if not row.is_answer and not is_held_out(row)]
    if not chosen:
        raise InputError(
            "The data holds nothing to train on.",
            "Give labelled samples with evidence, clean articles, or answered questions.",
        )
    torch.manual_seed(seed)  # the initial weights are drawn here, before `fit` sets its seed
    network = Network(*statistics(chosen))
    fit(network, chosen, epochs=epochs, seed=seed, scale=_scale, say=say)
    return network


def second_stage(network: Network, rows: Sequence[Row], answers: Sequence[Row], seed: int, say: Say) -> Network:
    """Continue with natural answers and some rows of the first stage; the given network is not changed."""
    if not answers:
        return network
    others = [row for row in rows if not row.is_answer and not is_held_out(row)]
    mixed = Random(seed).sample(others, min(len(others), _MIXED)) + list(answers) * _REPEATS  # noqa: S311
    tuned = copy.deepcopy(network)
    fit(tuned, mixed, epochs=3, seed=seed, scale=_scale, say=say)
    return tuned


# Writing the folder of weights: network, lexicon, calibration, manifest, model card; visible only when complete.


REVISION = "1.0"
THRESHOLD = 0.5


def _write_weights(
    network: Network,
    lexicon: Lexicon,
    trained: Sequence[Row],
    judged: Sequence[tuple[Row, Float32s]],
    out: Path,
    *,
    seed: int,
    left_out: Counter[str],
) -> None:
    """Write the folder; `judged` are rows with logits of a network that was not trained on them."""
    if not judged:
        raise WeightsError("No text was held out, so nothing can be calibrated.", "Give more data.")
    held_out, logits = [row for row, _ in judged], [values for _, values in judged]
    calibration = calibrate(held_out, logits)
    unused = "\n".join(f"- {reason}: {count}" for reason, count in sorted(left_out.items()) if count)
    card = Template(files(__package__).joinpath("model_card.md").read_text("utf-8")).substitute(
        revision=REVISION,
        seed=seed,
        trained=_counts_table(trained),
        languages=" ".join(sorted({(row.example.language or "").split("-")[0] for row in trained})),
        left_out=unused or "- none",
        held_out=_counts_table(held_out),
        calibrated=" ".join(calibration.languages),
        figures=_figures_table(held_out, logits, calibration),
    )
    example = held_out[0].example
    features = extract_features(example.response, example.passages, example.question, example.language, lexicon)
    assert features is not None  # rows have words
    with whole_folder(out) as part:
        export(network, part / "network.onnx")
        lexicon.save(part)
        write_json(part / "calibration.json", calibration)
        manifest = Manifest(
            revision=REVISION,
            features_version=FEATURES_VERSION,
            features=features.names,
            types=TYPES,
            threshold=THRESHOLD,
            sha256={name: file_sha256(part / name) for name in FILES},
        )
        write_json(part / "weights.json", manifest)
        (part / "MODEL_CARD.md").write_text(card, "utf-8")


# Platt scaling of logits, fitted on held-out responses.


_MIN_WORDS = 1500  # minimum of held-out words of a script with its own scaling
_PRIOR = 500.0  # strength of the pull towards the default; counts like this number of words


def calibrate(rows: Sequence[Labels], logits: Sequence[Float32s]) -> ScriptCalibration:
    """Platt scaling by script, the default, and the weights of the response score.

    The scaling is fitted on rows that people labelled. Other held-out rows, which a model or a rule made as it made the
    training rows, are much easier than real data, and a fit on them would be overconfident; they are used only if there
    is nothing else. The response score needs clean responses and is fitted on all rows.

    Args:
        rows: held-out rows.
        logits: outputs for them of a network that was not trained on them, each of shape (n, 7).
    """
    natural = any(row.example.kind == "natural" for row in rows)
    words = [
        (row.example.language, values[:, 0].astype(np.float64), row.target, row.weight > 0)
        for row, values in zip(rows, logits, strict=True)
        if row.example.kind == "natural" or not natural
    ]
    default = fit_platt([(values, target, weight) for _, values, target, weight in words])
    lines, tags = fit_platt_by_script(words, default, _PRIOR, _MIN_WORDS)
    evidence = np.array([response_features(row[:, 0]) for row in logits])
    unsupported = np.array([float((row.target >= 0.5).any()) for row in rows])
    response = fit_logistic(evidence, unsupported, np.ones(len(rows)))
    return ScriptCalibration(lines, tags, default, tuple(response.tolist()))


_GROUPS = 15


def _counts_table(rows: Sequence[Labels]) -> str:
    """Number of responses and words of each kind and source, as a Markdown table."""
    counts = Counter[tuple[str, str]]()
    words = Counter[tuple[str, str]]()
    for row in rows:
        counts[row.example.kind, row.example.source] += 1
        words[row.example.kind, row.example.source] += len(row)
    lines = [f"| {kind} | {source} | {n} | {words[kind, source]} |" for (kind, source), n in sorted(counts.items())]
    return "\n".join(["| kind | source | responses | words |", "|---|---|---|---|", *lines])


def _figures_table(held_out: Sequence[Labels], logits: Sequence[Float32s], calibration: ScriptCalibration) -> str:
    """Measures on held-out words of each kind and source, as a Markdown table."""
    lines = [
        "| kind | source | words | unsupported | marked | F1 | calibration error |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, source in sorted({(row.example.kind, row.example.source) for row in held_out}):
        chosen = [i for i, row in enumerate(held_out) if (row.example.kind, row.example.source) == (kind, source)]
        truth = np.concatenate([held_out[i].target >= 0.5 for i in chosen])
        tags = [held_out[i].example.language or "" for i in chosen]
        chances = np.concatenate(
            [
                calibration.confidences(logits[i][:, 0], tag, script_of_tag(tag))
                for i, tag in zip(chosen, tags, strict=True)
            ]
        )
        marked = chances >= THRESHOLD
        both = int((marked & truth).sum())
        f1 = f"{2 * both / (marked.sum() + truth.sum()):.3f}" if truth.any() else "-"
        group = np.minimum((chances * _GROUPS).astype(int), _GROUPS - 1)  # of equal width
        parts = [group == number for number in np.unique(group)]
        error = sum(float(part.mean() * abs(truth[part].mean() - chances[part].mean())) for part in parts)
        lines.append(
            f"| {kind} | {source} | {len(truth)} | {truth.mean():.3f} | {marked.mean():.3f} | {f1} | {error:.3f} |"
        )
    return "\n".join(lines)


_FOLDS = 5


def folds_of(answers: Sequence[Labels]) -> list[int]:
    """The fold of each natural answer, 0 to 4, balanced inside each language."""
    fold = [0] * len(answers)
    by_language = defaultdict[str | None, list[int]](list)
    for i, row in enumerate(answers):
        by_language[row.example.language].append(i)
    for members in by_language.values():
        Random(0).shuffle(members)  # noqa: S311  a seeded draw, not a secret
        for rank, i in enumerate(members):
            fold[i] = rank % _FOLDS
    return fold
