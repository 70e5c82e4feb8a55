"""How far annotators agree while they work: with each other, and with the silver layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.annotate.gathering import SILVER, layered
from veriglot.metrics.agreement import ALL, FEWEST_TEXTS, agreement_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Reading
    from veriglot.metrics.agreement import AgreementFigure

__all__ = ["AgreementLine", "AgreementNow", "agreement_now"]


class AgreementLine(msgspec.Struct, frozen=True):
    """One figure of agreement.

    Attributes:
        among: `people` with each other, or people with the `silver` layer.
        measure: kappa, alpha, span_f1, span_f1_exact, gamma.
        scope: binary or typed.
        language: BCP 47 tag, or `all`.
        between: public ids (or `silver`); `all` and `all` for the mean over pairs, or all at once.
        value, low, high: the figure and its 95% interval over items; None where it is undefined.
        items: units, or spans.
        texts: how many items.
        reason: why a number is missing.
    """

    among: str
    measure: str
    scope: str
    language: str
    between: tuple[str, str]
    value: float | None
    low: float | None
    high: float | None
    items: int
    texts: int
    reason: str | None


class AgreementNow(msgspec.Struct, frozen=True):
    """Agreement as it is now.

    Attributes:
        unit: what is counted: `word`, `fact`, `sentence` or `pair`.
        shared: items that two people or more handed in.
        best: language to the public id of whoever agrees most with silver.
        lines: all figures.
        fewest_texts: figures of fewer items than this have no interval.
    """

    unit: str
    shared: int
    best: dict[str, str]
    lines: list[AgreementLine]
    fewest_texts: int = FEWEST_TEXTS


def agreement_now(
    tx: Reading,
    project: Project,
    *,
    language: str | None = None,
    gamma: int = 0,
    resamples: int = 200,
    seed: int = 1,
) -> AgreementNow:
    """How far those who annotated agree, with each other and with silver, over what is handed in now.

    Args:
        tx: the transaction.
        project: the project.
        language: of the items; None for all.
        gamma: random annotations an item for gamma; 0 leaves it out, which is most of the work.
        resamples: of whole items, for intervals; 0 for none.
        seed: of the resamples and of chance in gamma.

    Raises:
        MissingExtraError: gamma is asked for, and scipy is not installed.
    """
    project_id = tx.project(project.slug).id
    people = [text for text in layered(tx, project, project_id, language=language) if len(text.layers) > 1]
    silver = [
        text for text in layered(tx, project, project_id, language=language, silver=True) if SILVER in text.layers
    ]
    types = sorted({t or "" for text in (*people, *silver) for marks in text.layers.values() for t in marks.types})
    lines: list[AgreementLine] = []
    for names in [None, types] if len(types) > 1 or not project.form.has_spans else [None]:
        given: dict[str, Any] = {"resamples": resamples, "seed": seed}
        if people:
            lines += [_line("people", one) for one in agreement_figures(people, names, gamma=gamma, **given)]
        if silver:
            found = agreement_figures(silver, names, gamma=0, wanted=lambda pair: SILVER in pair, **given)
            lines += [_line("silver", one) for one in found]
    unit = "word" if project.form.has_spans else project.form.unit or "pair"
    return AgreementNow(unit, len(people), _best(lines), lines)


def _line(among: str, figure: AgreementFigure) -> AgreementLine:
    e = figure.estimate
    return AgreementLine(
        among, figure.measure, figure.scope, figure.language, figure.between,
        e.value, e.low, e.high, e.items, e.clusters, e.reason,
    )  # fmt: skip


def _best(lines: Sequence[AgreementLine]) -> dict[str, str]:
    """Language to whoever has the greatest kappa with silver; with types where there are any."""
    rated = [
        line
        for line in lines
        if (line.among, line.measure) == ("silver", "kappa") and ALL not in {*line.between, line.language}
    ]
    scope = "typed" if any(line.scope == "typed" for line in rated) else "binary"
    best: dict[str, tuple[float, str]] = {}
    for line in rated:
        if line.scope == scope and line.value is not None:
            who = next(name for name in line.between if name != SILVER)
            if line.language not in best or line.value > best[line.language][0]:
                best[line.language] = (line.value, who)
    return {language: who for language, (_, who) in sorted(best.items())}
