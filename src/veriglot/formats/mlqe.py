"""Critical translation errors, TSV (Specia et al. 2021, WMT21 quality estimation task 3, of MLQE-PE).

A row is an identifier, a source, its translation, the scores of three people and what most of them say; a blind test
file has the first three columns. There is no header, and quotes stand for themselves. A score of 1 is a critical error,
0 none; 2 and 3 say that the source or the translation cannot be understood.

Annotator `gold` is the majority, `annotator_1` to `_3` are the people: a unit `critical_error` (taxonomy `critical`)
over the whole response, or no unit. Who could not understand the texts has no units, and the score as a rating. A
critical error is wider than a hallucination, and no one marked where in the translation it is. Translations are
published as tokens with spaces between them, also those into Japanese and Chinese.

Rows state no language: a pair in the file's name that fits the texts is believed (`ende_majority_dev.tsv`). The part of
the data that the name says goes to `meta.split`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError
from veriglot.formats.base import Format, Reading, Sniff
from veriglot.formats.language import pair_of
from veriglot.records import Annotation, Evidence, Kind, Sample, Task, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.formats.containers import Head

__all__ = []

_SCORES = re.compile(r"\[([0-3](?:, ?[0-3])*)\]")
_VERDICTS = {"ERR": True, "NOT": False}
_LABELLED, _BLIND = 5, 3
_ERROR, _NONE = "1", "0"
_SPLITS = frozenset({"train", "dev", "test"})
_LINES_LOOKED_AT = 20


class Mlqe(Format):
    """TSV without a header: sources, translations, and whether there is a critical error."""

    name = "mlqe"
    summary = "critical translation errors of MLQE-PE, TSV"
    containers = ("tsv", "text")
    takes_lines = True
    writable = False

    def sniff(self, head: Head) -> Sniff | None:
        """By rows of number, two texts, scores in brackets and ERR or NOT; or of number and two texts alone."""
        lines = [line.rstrip("\r").split("\t") for line in head.text.split("\n")[:_LINES_LOOKED_AT] if line.strip()]
        if not lines or not all(cells[0].isdigit() and len(cells) == len(lines[0]) for cells in lines):
            return None
        if len(lines[0]) == _LABELLED and all(_SCORES.fullmatch(c[3]) and c[4] in _VERDICTS for c in lines):
            return Sniff(0.95, "rows of a number, two texts, people's scores and ERR or NOT")
        if len(lines[0]) == _BLIND:
            return Sniff(0.6, "rows of a number and two texts, without a header")
        return None

    def samples(self, data: Any, line: int, reading: Reading) -> Iterator[Sample]:  # noqa: ARG002
        """One sample a row."""
        cells = str(data).split("\t")
        if len(cells) not in {_LABELLED, _BLIND}:
            raise InputError(f"a row has {_LABELLED} columns, or {_BLIND} in a blind test file, not {len(cells)}")
        number, source, target = cells[:3]
        source_tag, target_tag = pair_of(_beginning(reading), reading)
        split = next((part for part in reading.source.stem.split("_") if part in _SPLITS), None)
        yield Sample(
            id=f"{reading.source.stem}-{number}",
            response=target,
            task=Task.TRANSLATION,
            language=target_tag,
            evidence=(Evidence(source, language=source_tag),),
            annotations=tuple(_annotations(*cells[3:], target=target)) if len(cells) == _LABELLED else (),
            meta={"split": split} if split else {},
        )


def _annotations(scores: str, verdict: str, *, target: str) -> Iterator[Annotation]:
    match = _SCORES.fullmatch(scores)
    if match is None:
        raise InputError(f"scores are numbers from 0 to 3 in brackets, not {scores[:60]!r}", field="scores")
    if verdict not in _VERDICTS:
        raise InputError(f"the majority says ERR or NOT, not {verdict[:60]!r}", field="aggregated-score")
    given = [score.strip() for score in match.group(1).split(",")]
    if (given.count(_ERROR) > len(given) / 2) is not _VERDICTS[verdict]:
        raise InputError(f"{verdict} is not what most of the scores {scores} say", field="aggregated-score")
    yield _annotation("gold", _VERDICTS[verdict], target)
    for index, score in enumerate(given, start=1):
        understood = score in {_ERROR, _NONE}
        yield _annotation(f"annotator_{index}", score == _ERROR if understood else None, target, score)


def _annotation(annotator: str, critical: bool | None, target: str, score: str | None = None) -> Annotation:
    units: tuple[Unit, ...] | None = None if critical is None else ()
    if critical and target:
        units = (Unit(0, len(target), "critical_error"),)
    return Annotation(
        annotator=annotator,
        kind=Kind.HUMAN,
        taxonomy="critical",
        units=units,
        ratings={} if score is None else {"score": float(score)},
    )


def _beginning(reading: Reading) -> Iterator[tuple[str, str]]:
    for line in reading.source.head.decode("utf-8", "replace").split("\n"):
        cells = line.split("\t")
        if len(cells) >= _BLIND:
            yield cells[1], cells[2]
