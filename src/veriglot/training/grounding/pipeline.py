"""Training the grounding detector: word vectors distilled, two stages fitted, a folder of weights written; seeded.

The first stage learns from everything but natural answers; the second goes on with those few, mixed with some of the
rest. So natural answers can be left out in parts and the figure on the rest be honest, at the price of the short
second stage alone (`benchmarks/grounding_natural.py`). A tenth of the other texts trains nothing.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from random import Random
from string import Template
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from veriglot.detectors.grounding.detector import FILES, Line, Manifest, response_evidence
from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
from veriglot.detectors.grounding.document import MEANING, VECTOR_SCALE, Document, Lexicon, vector_key
from veriglot.detectors.grounding.features import FEATURES_VERSION, extract
from veriglot.errors import InputError, MissingExtraError, UnknownNameError, WeightsError
from veriglot.records.languages import get_language
from veriglot.signatures import file_sha256
from veriglot.storage.files import whole_folder, write_json
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.training.calibration import logistic
from veriglot.training.grounding.examples import TYPES, Row, WordLabels, read_labelled, row_of, share_of
from veriglot.training.grounding.network import Network, Plan, WithLearnedVectors, export, fit, predict, statistics
from veriglot.training.grounding.synthetic_data import clean_texts, count_words, made_by_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from veriglot.training.grounding.examples import Example, Labelled
    from veriglot.training.grounding.synthetic_data import Commonness

__all__ = [
    "HELD_OUT",
    "by_folds",
    "calibrate",
    "counts_table",
    "figures_table",
    "is_answer",
    "languages_line",
    "left_out_list",
    "train",
]


# Fitting the lines that turn logits into probabilities, on responses that no weight was fitted on.


_MIN_WORDS = 1500  # held-out words that a script needs for a line of its own
_PRIOR = 500.0  # words' worth of pull towards the default line


def calibrate(rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]) -> Calibration:
    """Lines by script, the default, and the weights of the response score.

    Rows labelled by people fit the lines. Held-out rows that were made like the training rows, by a model or by
    rule, are far easier than what users bring, and lines fitted on them would promise too much; they serve only
    where there is nothing else. The response score needs clean responses and is fitted on all.

    Args:
        rows: held-out rows.
        logits: what a network that did not see them says of them, each of shape (n, 7).
    """
    chosen = [i for i, row in enumerate(rows) if row.example.kind == "natural"] or list(range(len(rows)))
    default = logistic(*_words([rows[i] for i in chosen], [logits[i] for i in chosen]))
    by_script: dict[str, list[int]] = defaultdict(list)
    for i in chosen:
        script = script_of_tag(rows[i].example.language)
        if script is not None:
            by_script[script].append(i)
    lines, tags = {}, set()
    for script, members in by_script.items():
        if sum(len(rows[i]) for i in members) >= _MIN_WORDS:
            some = _words([rows[i] for i in members], [logits[i] for i in members])
            lines[script] = _line(logistic(*some, start=default, pull=_PRIOR))
            tags |= {(rows[i].example.language or "").split("-")[0] for i in members}
    return Calibration(lines, tuple(sorted(tags)), _line(default), _response_weights(rows, logits))


def script_of_tag(tag: str | None) -> str | None:
    """The script of a language, or None where the language table does not hold it."""
    try:
        return get_language(tag or "").script
    except UnknownNameError:
        return None


def _words(
    rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Logits and ones, targets, and weights of every word."""
    values = np.concatenate([row[:, 0] for row in logits]).astype(np.float64)
    targets = np.concatenate([row.target for row in rows]).astype(np.float64)
    weights = np.concatenate([(row.weight > 0).astype(np.float64) for row in rows])
    return np.stack([values, np.ones_like(values)], axis=1), targets, weights


def _line(weights: NDArray[np.float64]) -> Line:
    return Line(slope=float(weights[0]), offset=float(weights[1]))


def _response_weights(rows: Sequence[WordLabels], logits: Sequence[NDArray[np.float32]]) -> tuple[float, ...]:
    evidence = np.array([np.append(response_evidence(row[:, 0]), 1.0) for row in logits])
    any_marked = np.array([float((row.target >= 0.5).any()) for row in rows])
    return tuple(logistic(evidence, any_marked, np.ones(len(rows))).tolist())


_GROUPS = 15


def counts_table(rows: Sequence[WordLabels]) -> str:
    """Responses and words of each kind and source, as a Markdown table."""
    counts: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row.example.kind, row.example.source] += 1
        words[row.example.kind, row.example.source] += len(row)
    lines = [f"| {kind} | {source} | {n} | {words[kind, source]} |" for (kind, source), n in sorted(counts.items())]
    return "\n".join(["| kind | source | responses | words |", "|---|---|---|---|", *lines])


def figures_table(
    held_out: Sequence[WordLabels],
    logits: Sequence[NDArray[np.float32]],
    calibration: Calibration,
    threshold: float,
) -> str:
    """How well held-out words of each kind and source were told apart, as a Markdown table.

    Args:
        held_out: what trained nothing.
        logits: what a network that did not see them says of them, each of shape (n, 7).
        calibration: what makes probabilities of the logits.
        threshold: probability from which a word is marked.
    """
    lines = [
        "| kind | source | words | unsupported | marked | F1 | calibration error |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, source in sorted({(row.example.kind, row.example.source) for row in held_out}):
        chosen = [i for i, row in enumerate(held_out) if (row.example.kind, row.example.source) == (kind, source)]
        truth = np.concatenate([held_out[i].target >= 0.5 for i in chosen])
        chances = np.concatenate([_confidences(held_out[i], logits[i], calibration) for i in chosen])
        marked = chances >= threshold
        both = int((marked & truth).sum())
        f1 = f"{2 * both / (marked.sum() + truth.sum()):.3f}" if truth.any() else "-"
        lines.append(
            f"| {kind} | {source} | {len(truth)} | {truth.mean():.3f} | {marked.mean():.3f} | {f1} |"
            f" {_calibration_error(truth, chances):.3f} |"
        )
    return "\n".join(lines)


def _confidences(row: WordLabels, logits: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float64]:
    tag = row.example.language or ""
    return calibration.confidences(logits[:, 0], tag, script_of_tag(tag))


def _calibration_error(truth: NDArray[np.bool_], chances: NDArray[np.float64]) -> float:
    """Expected calibration error over groups of equal width."""
    group = np.minimum((chances * _GROUPS).astype(int), _GROUPS - 1)
    total = 0.0
    for g in np.unique(group):
        inside = group == g
        total += float(inside.mean() * abs(truth[inside].mean() - chances[inside].mean()))
    return total


def languages_line(rows: Sequence[WordLabels]) -> str:
    """The base tags of all responses, in order."""
    return " ".join(sorted({(row.example.language or "").split("-")[0] for row in rows}))


def left_out_list(left_out: Counter[str]) -> str:
    """What was not used, by reason, as a Markdown list."""
    return "\n".join(f"- {reason}: {count}" for reason, count in sorted(left_out.items()) if count) or "- none"


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
        stored = np.round(np.concatenate(parts, axis=1) * VECTOR_SCALE).astype(np.int8)
        return Lexicon(frequencies, self.keys, stored)


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
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(encoder), options, providers=["CPUExecutionProvider"])
    document = Document(vocabulary, None)
    whole = np.bincount(document.passage, minlength=len(vocabulary)) == 1
    sizes = np.array([len(word) for word in vocabulary])
    alone = whole[document.passage] & (document.lengths == sizes[document.passage])
    keys = vector_key(document.word[alone])
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


L = TypeVar("L", bound=WordLabels)

HELD_OUT = 0.1
_OTHERS_FOR_VECTORS = 5000  # rows beside the silver ones from which the projection is learned
_MIXED = 3500  # rows of the first stage that the second sees again
_REPEATS = 10  # of each natural answer in the second stage
_FOLDS = 5
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
    answers = [row for row in rows if is_answer(row)]
    judged = cross_fitted(network, rows, answers, seed, say)
    held_out = [row for row in rows if is_held_out(row) and not is_answer(row)]
    network = second_stage(network, rows, answers, seed, say)
    judged += zip(held_out, predict(network, held_out), strict=True)
    trained = [row for row in rows if is_answer(row) or not is_held_out(row)]
    _ship(network, lexicon, trained, judged, out, seed=seed, left_out=labelled.left_out)
    say(f"wrote {out}")


def cross_fitted(
    network: Network, rows: Sequence[Row], answers: Sequence[Row], seed: int, say: Callable[[str], None]
) -> list[tuple[Row, NDArray[np.float32]]]:
    """Every natural answer with its logits from a second stage that did not see it."""
    return by_folds(
        answers,
        lambda seen, unseen: predict(second_stage(network, rows, seen, seed, lambda _: None), unseen),
        say,
    )


def by_folds(
    answers: Sequence[L],
    judged: Callable[[list[L], list[L]], list[NDArray[np.float32]]],
    say: Callable[[str], None],
) -> list[tuple[L, NDArray[np.float32]]]:
    """Every answer with its logits from a network that did not see it.

    Args:
        answers: the answers.
        judged: the logits of the second list, from a network that learned from the first.
        say: told of each fold.
    """
    results: list[tuple[L, NDArray[np.float32]]] = []
    fold = folds_of(answers)
    for k in sorted(set(fold)):
        seen = [row for row, part in zip(answers, fold, strict=True) if part != k]
        unseen = [row for row, part in zip(answers, fold, strict=True) if part == k]
        results += zip(unseen, judged(seen, unseen), strict=True)
        say(f"second stage without fold {k + 1} of {_FOLDS}")
    return results


def folds_of(answers: Sequence[WordLabels]) -> list[int]:
    """A fold for each natural answer, 0 to 4, balanced inside each language."""
    fold = [0] * len(answers)
    by_language: dict[str | None, list[int]] = defaultdict(list)
    for i, row in enumerate(answers):
        by_language[row.example.language].append(i)
    for members in by_language.values():
        Random(0).shuffle(members)  # noqa: S311  a seeded draw, not a secret
        for rank, i in enumerate(members):
            fold[i] = rank % _FOLDS
    return fold


def is_answer(row: WordLabels) -> bool:
    """Whether a row is a natural answer to a question, which the first stage does not see."""
    return row.example.kind == "natural" and row.example.source == "qa"


def is_held_out(row: WordLabels) -> bool:
    """Whether a row trains nothing and calibrates: a tenth, by group."""
    return share_of(row.example.group) < HELD_OUT


def rows_of(examples: Iterable[Example], lexicon: Lexicon) -> list[Row]:
    """Arrays of the examples that hold words."""
    return [row for row in (row_of(example, lexicon) for example in examples) if row is not None]


def _scale(row: Row) -> float:
    if row.example.kind == "natural":
        return _ANSWER_SCALE if is_answer(row) else _SOURCE_SCALE.get(row.example.source, 1.0)
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
    chosen = [row for row in rows if not is_answer(row) and not is_held_out(row)]
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
    others = [row for row in rows if not is_answer(row) and not is_held_out(row)]
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
    card = _card(trained, held_out, logits, calibration, seed, left_out)
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


def _card(
    trained: Sequence[Row],
    held_out: Sequence[Row],
    logits: Sequence[NDArray[np.float32]],
    calibration: Calibration,
    seed: int,
    left_out: Counter[str],
) -> str:
    template = Template(files(__package__).joinpath("model_card.md").read_text("utf-8"))
    return template.substitute(
        revision=REVISION,
        seed=seed,
        trained=counts_table(trained),
        held_out=counts_table(held_out),
        left_out=left_out_list(left_out),
        languages=languages_line(trained),
        calibrated=" ".join(calibration.languages),
        figures=figures_table(held_out, logits, calibration, THRESHOLD),
    )
