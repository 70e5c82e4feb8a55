"""Language models as judges: of spans, of translations, of atomic facts, of pairs. See `docs/judges.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.detectors.judge.facts import FactJudge
from veriglot.detectors.judge.pairs import PairJudge, confusion
from veriglot.detectors.judge.spans import SpanJudge
from veriglot.detectors.judge.translation import GuidedTranslationJudge, TranslationJudge
from veriglot.errors import UnknownNameError

if TYPE_CHECKING:
    from veriglot.detectors.judge.base import Judge

__all__ = ["confusion", "judge"]

JUDGES: dict[str, type[Judge]] = {
    kind.kind: kind for kind in (SpanJudge, FactJudge, TranslationJudge, GuidedTranslationJudge, PairJudge)
}


def judge(kind: str, *, threshold: float | None = None, words: bool = False, **options: Any) -> Judge:
    """A judge by name: `load_detector("judge:spans", model=..., url=...)`.

    Args:
        kind: a name of `JUDGES`.
        threshold: confidence from which something is marked, 0 to 1; None for the judge's own.
        words: whether predictions carry every word, where its confidence is known.
        options: of the judge and of `Asking`; see `docs/judges.md`.

    Raises:
        UnknownNameError: no such judge or option; the error suggests the nearest.
        UsageError: options that make no sense, or no model.
        InputError: a prompt of one's own, or a script, that cannot be used.
        MissingExtraError: the client's packages are not installed.
    """
    try:
        made = JUDGES[kind]
    except KeyError:
        raise UnknownNameError("judge", kind, JUDGES) from None
    return made(threshold=threshold, words=words, **options)
