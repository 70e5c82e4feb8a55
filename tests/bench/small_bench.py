"""A small bench that the tests share: real systems on samples written for them, in two languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from absent_words import AbsentWords

from veriglot.bench import leaderboard
from veriglot.bench.config import load
from veriglot.bench.results import BenchComparison
from veriglot.bench.run import run
from veriglot.detectors.registry import load_detector
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, encode

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.bench.leaderboard import ThresholdedItems
    from veriglot.bench.results import BenchResults
    from veriglot.metrics.estimate import Resampling
    from veriglot.records import Detector

_ANIMALS = {
    "en": ("otter", "heron", "badger", "falcon", "weasel", "toad", "salmon", "beetle", "marten", "swallow"),
    "de": ("Otter", "Reiher", "Dachs", "Falke", "Wiesel", "Kröte", "Lachs", "Käfer", "Marder", "Schwalbe"),
}
_FACT = {"en": "The {0} was counted {1} times by the river.", "de": "Der {0} wurde am Fluss {1} Mal gezählt."}
_WRONG = {"en": " A marble palace belongs to it.", "de": " Ein marmornes Schloss gehört ihm."}

BENCH = """
[bench]
title = "Small"
resamples = 60
baseline = "absent"

[[systems]]
detector = "absent_words:AbsentWords"
label = "absent"

[[systems]]
scorer = "rouge-l"
threshold = 0.7

[[systems]]
scorer = "top-ngram"

[[systems]]
detector = "hf:./no-such-folder"
label = "missing"

[[data]]
name = "animals"
path = "animals.jsonl"
dev_share = 0.4
levels = ["word", "sentence", "response"]
"""


def samples(languages: tuple[str, ...] = ("en", "de")) -> list[Sample]:
    """Twenty answers a language, half of them with a sentence that the evidence does not hold."""
    found = []
    for language in languages:
        for number in range(20):
            fact = _FACT[language].format(_ANIMALS[language][number % 10], 100 + 7 * number)
            wrong = _WRONG[language] if number % 2 else ""
            spans = (Span(len(fact) + 1, len(fact) + len(wrong), "invented"),) if wrong else ()
            found.append(
                Sample(
                    id=f"{language}-{number}",
                    response=fact + wrong,
                    language=language,
                    evidence=(Evidence(fact),),
                    annotations=(Annotation("gold", Kind.HUMAN, "fava", spans=spans),),
                )
            )
    return found


def written(folder: Path, text: str = BENCH, rows: list[Sample] | None = None) -> Path:
    """The bench file in a folder, with its data beside it."""
    (folder / "animals.jsonl").write_bytes(b"".join(encode(row) + b"\n" for row in rows or samples()))
    path = folder / "bench.toml"
    path.write_text(text, "utf-8")
    return path


class Listener:
    """Counts what a bench judges; stops it after so many rows, as Ctrl-C would."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.rows = 0
        self.said: list[str] = []
        self._stop_after = stop_after

    def begin(self, step: str, total: int | None) -> None:
        """Not of interest."""

    def advance(self) -> None:
        self.rows += 1
        if self.rows == self._stop_after:
            raise KeyboardInterrupt

    def say(self, text: str) -> None:
        self.said.append(text)


def loading(name: str, *, threshold: float | None, words: bool, **options: Any) -> Detector:
    """Knows the detector of these tests beside those of the table, as the command line does."""
    if name == "absent_words:AbsentWords":
        return AbsentWords(threshold=threshold, words=words)
    return load_detector(name, threshold=threshold, words=words, **options)


def ran(path: Path, folder: Path, progress: Listener | None = None, **options: Any) -> BenchResults:
    """Run the bench in a folder."""
    return run(load(path), folder, load=loading, progress=progress, **options)


def difference(
    first: ThresholdedItems, second: ThresholdedItems, measure: str, resampling: Resampling, **parts: Any
) -> BenchComparison:
    """Hold systems of no name against each other."""
    return leaderboard.difference(
        first, second, resampling, BenchComparison("", "response", measure, None, "", ""), **parts
    ).row
