"""The tables of a model card: what was learned from, and what was held out with its figures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from veriglot.train.grounding.calibrating import script_of_tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.detectors.grounding.calibration import Calibration
    from veriglot.train.grounding.table import WordLabels

__all__ = ["counts_table", "figures_table", "languages_line", "left_out_list"]

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
