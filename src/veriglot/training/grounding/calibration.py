"""The tables of a model card: what was learned from, and what was held out with its figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from veriglot.detectors.grounding.detector import Line, response_evidence
from veriglot.detectors.grounding.detector import ScriptCalibration as Calibration
from veriglot.errors import UnknownNameError
from veriglot.records.languages import get_language
from veriglot.training.regression import logistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.training.grounding.dataset import WordLabels

__all__ = ["calibrate", "counts_table", "figures_table", "languages_line", "left_out_list"]


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
