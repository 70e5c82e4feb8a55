"""How the grounding detector does on natural answers that it has not seen: by folds, and language by language.

    python benchmarks/grounding_natural.py --data ../shared/data

trains the first stage once (it never sees a natural answer), then the short second stage once for each of five folds
of the Mu-SHROOM validation items, and once for each language left out, and prints from the held-out items alone: mean
character IoU as in the shared task, the same for marking everything, the expected calibration error, and the share of
words marked in clean held-out text. Network and lexicon are as `veriglot train grounding` makes them. `--out` writes
the predictions of the folds, for `gates.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from veriglot.detectors.grounding.document import Lexicon
from veriglot.records import Prediction, Span, Status, Word, encode
from veriglot.training.grounding.examples import read_labelled, script_of_tag
from veriglot.training.grounding.network import predict, rows_of
from veriglot.training.grounding.pipeline import calibrate, first_stage, folds_of, is_held_out, second_stage
from veriglot.training.grounding.synthetic_data import count_words, synthetic_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
    from veriglot.training.grounding.network import Network, Row

SETS = ("mfava/silver", "mfava/queries", "mu_shroom_val", "wice/non_supported_tokens", "xsum", "xquad")
BINS = 15


def say(line: str) -> None:
    """Progress, to standard error."""
    print(line, file=sys.stderr, flush=True)


def characters(row: Row, chances: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which code points the detector would mark: marked words of one sentence, with what stands between them."""
    marked = np.zeros(len(row.example.response), bool)
    for i, (start, end) in enumerate(row.bounds.tolist()):
        if chances[i] >= 0.5:
            marked[start:end] = True
            if i and chances[i - 1] >= 0.5 and row.sentence[i] == row.sentence[i - 1]:
                marked[row.bounds[i - 1, 1] : start] = True
    return marked


def iou(row: Row, marked: NDArray[np.bool_]) -> float:
    """Intersection over union with the hard labels; 1 where both are empty."""
    truth = np.zeros(len(marked), bool)
    for mark in row.example.marks:
        truth[mark.start : mark.end] = True
    union = int((truth | marked).sum())
    return float((truth & marked).sum()) / union if union else 1.0


def calibration_error(truth: NDArray[np.float64], chances: NDArray[np.float64]) -> float:
    """Expected calibration error over groups of equal width."""
    group = np.minimum((chances * BINS).astype(int), BINS - 1)
    return float(
        sum((group == g).mean() * abs(truth[group == g].mean() - chances[group == g].mean()) for g in set(group))
    )


def confidences(row: Row, logits: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float64]:
    """Word confidences of one row, 0 for markup as the detector has it."""
    tag = row.example.language or ""
    found = calibration.confidences(logits[:, 0], tag, script_of_tag(tag))
    return np.where(row.weight > 0, found, 0.0)


def by_parts(
    parts: Sequence[tuple[str, set[int]]],
    answers: Sequence[Row],
    held_out: Sequence[Row],
    tuned: Callable[[list[Row]], Network],
) -> tuple[list[NDArray[np.float64]], float]:
    """Confidences of each answer from a network and a calibration that did not see it; share of clean words marked."""
    logits: list[Any] = [None] * len(answers)
    others = []
    for name, part in parts:
        network = tuned([row for i, row in enumerate(answers) if i not in part])
        for i, found in zip(sorted(part), predict(network, [answers[i] for i in sorted(part)]), strict=True):
            logits[i] = found
        others.append(predict(network, held_out))
        say(f"held out {name}: {len(part)} answers")
    chances: list[Any] = [None] * len(answers)
    false = []
    for (_, part), beside in zip(parts, others, strict=True):
        seen = [i for i in range(len(answers)) if i not in part]
        calibration = calibrate([*(answers[i] for i in seen), *held_out], [*(logits[i] for i in seen), *beside])
        for i in part:
            chances[i] = confidences(answers[i], logits[i], calibration)
        false += [
            confidences(row, found, calibration) >= 0.5
            for row, found in zip(held_out, beside, strict=True)
            if row.example.kind == "clean"
        ]
    return chances, float(np.concatenate(false).mean())


def summary(answers: Sequence[Row], chances: Sequence[NDArray[np.float64]]) -> dict[str, Any]:
    """Figures per language and their mean."""
    languages: dict[str, Any] = {}
    for tag in sorted({row.example.language or "" for row in answers}):
        chosen = [i for i, row in enumerate(answers) if row.example.language == tag]
        ours = [iou(answers[i], characters(answers[i], chances[i])) for i in chosen]
        everything = [iou(answers[i], np.ones(len(answers[i].example.response), bool)) for i in chosen]
        spread = np.random.default_rng(0).choice(ours, (1000, len(ours))).mean(axis=1)
        languages[tag] = {
            "items": len(chosen), "iou": float(np.mean(ours)), "low": float(np.quantile(spread, 0.025)),
            "high": float(np.quantile(spread, 0.975)), "mark_everything": float(np.mean(everything)),
        }  # fmt: skip
    truth = np.concatenate([row.target for row in answers]).astype(np.float64)
    return {
        "languages": languages,
        "mean_iou": float(np.mean([entry["iou"] for entry in languages.values()])),
        "mean_mark_everything": float(np.mean([entry["mark_everything"] for entry in languages.values()])),
        "calibration_error_soft": calibration_error(truth, np.concatenate(list(chances))),
        "calibration_error_hard": calibration_error((truth >= 0.5).astype(np.float64), np.concatenate(list(chances))),
        "marked": float((np.concatenate(list(chances)) >= 0.5).mean()),
        "prevalence": float((truth >= 0.5).mean()),
    }


def prediction_of(row: Row, chances: NDArray[np.float64]) -> Prediction:
    """What the detector would have said of an answer; its score is the confidence of the most suspect word."""
    edges = np.flatnonzero(np.diff(characters(row, chances), prepend=False, append=False)).reshape(-1, 2)
    text = row.example.response
    places = list(zip(row.bounds.tolist(), chances.tolist(), strict=True))
    spans = []
    for start, end in edges.tolist():
        inside = [chance for (first, last), chance in places if start <= first and last <= end]
        spans.append(Span(start, end, confidence=float(np.mean(inside)), text=text[start:end]))
    return Prediction(
        id=row.example.group,  # which is the sample's own where the data name no other
        status=Status.SCORED,
        detector="grounding by folds",
        score=float(chances.max(initial=0.0)),
        spans=tuple(spans),
        words=tuple(Word(first, last, chance) for (first, last), chance in places),
        language=row.example.language,
    )


def show(title: str, figures: dict[str, Any], clean: float) -> None:
    """One table."""
    print(f"\n{title}\n{'':9}{'items':>6}{'IoU':>8}{'95% interval':>18}{'mark all':>10}")
    for tag, entry in figures["languages"].items():
        interval = f"[{entry['low']:.3f}, {entry['high']:.3f}]"
        print(f"{tag:9}{entry['items']:6}{entry['iou']:8.3f}{interval:>18}{entry['mark_everything']:10.3f}")
    print(f"{'mean':9}{'':6}{figures['mean_iou']:8.3f}{'':18}{figures['mean_mark_everything']:10.3f}")
    errors = f"{figures['calibration_error_hard']:.3f} against hard labels, {figures['calibration_error_soft']:.3f}"
    print(f"calibration error: {errors} against the share of annotators")
    print(f"words marked: {figures['marked']:.3f}, by people {figures['prevalence']:.3f}, in clean text {clean:.4f}")


def main() -> None:
    """Train, hold out, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds " + ", ".join(SETS))
    parser.add_argument(
        "--weights", type=Path, default=None, help="folder whose word vectors are taken; default: shipped"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=6, help="passes of the first stage")
    parser.add_argument("--out", type=Path, default=None, help="file for the predictions of the folds; default: none")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)

    from importlib.resources import files

    labelled = read_labelled(str(options.data / name) for name in SETS)
    frequencies = count_words(labelled)
    vectors = Lexicon.load(options.weights or Path(str(files("veriglot.detectors.grounding") / "weights")))
    lexicon = Lexicon(frequencies.table(), vectors.keys, vectors.vectors)
    rows = rows_of([*labelled.examples, *synthetic_examples(labelled, frequencies, options.seed)], lexicon)
    network = first_stage(rows, options.seed, say, options.epochs)
    answers = [row for row in rows if row.is_answer]
    held_out = [row for row in rows if is_held_out(row) and not row.is_answer]
    fold = folds_of(answers)

    def tuned(seen: list[Row]) -> Network:
        return second_stage(network, rows, seen, options.seed, lambda _: None)

    parts = [(f"fold {k + 1}", {i for i in range(len(answers)) if fold[i] == k}) for k in sorted(set(fold))]
    tags = sorted({row.example.language or "" for row in answers})
    without = [(tag, {i for i, row in enumerate(answers) if row.example.language == tag}) for tag in tags]
    report = {}
    for title, split in (("folds by item", parts), ("language left out", without)):
        chances, false = by_parts(split, answers, held_out, tuned)
        if options.out is not None and split is parts:
            lines = [encode(prediction_of(row, chance)) + b"\n" for row, chance in zip(answers, chances, strict=True)]
            options.out.write_bytes(b"".join(lines))
        report[title] = {**summary(answers, chances), "clean_marked": false}
        if not options.json:
            show(title, report[title], false)
    if options.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
