"""The detector `auto`: each sample goes to the best installed detector for its language.

The best one has the highest figures that a bench recorded. Languages without figures go to `reader` if it is installed,
else to `grounding`.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from veriglot.detectors.calibration import Versioned, settings_of
from veriglot.detectors.grounding.detector import Grounding
from veriglot.detectors.registry import load_if_installed
from veriglot.errors import UsageError
from veriglot.judging.base import evidence_notes, resolve_language
from veriglot.plugins import PickledByArguments
from veriglot.records import Detector, Prediction, Record, Sample, Status, Task
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


__all__ = ["Recorded", "RecordedFigure"]

_Setting = Literal["evidence", "translation"]


class BenchDetector(NamedTuple):
    """A detector of the bench."""

    name: str  # for `load_detector`
    options: tuple[tuple[str, str], ...]  # pairs of name and JSON text
    revision: str  # name and revision when it was measured; its figures hold for no other revision


class RecordedFigure(Record):
    """The result of one detector in one language on one data set.

    Attributes:
        detector: its name and revision.
        name: name for `load_detector`.
        language: BCP 47 tag of the responses.
        setting: `translation` if the evidence was their source text, otherwise `evidence`.
        data: name of the data set.
        value, low, high: the figure with its 95% interval; higher is better.
        items, texts: number of units and texts.
        options: options of the detector, as JSON text by name.
    """

    detector: str
    name: str
    language: str
    setting: _Setting
    data: str
    value: float
    low: float | None
    high: float | None
    items: int
    texts: int
    options: dict[str, str] = {}

    @property
    def measured(self) -> BenchDetector:
        """The detector that was measured."""
        return BenchDetector(self.name, tuple(sorted(self.options.items())), self.detector)


class Recorded(Versioned, kw_only=True):
    """Figures of one bench.

    Attributes:
        level, measure: unit and metric, such as `word` and `auc_pr_nonfactual`.
        figures: all of them.
        signature: of the bench.
    """

    known = "veriglot-recorded/1"
    what = "file of recorded figures"
    command = "veriglot bench record"

    level: str
    measure: str
    figures: tuple[RecordedFigure, ...]
    signature: str

    @property
    def revision(self) -> str:
        """A short hash of the figures."""
        return digest([msgspec.json.encode(self.figures)])[:8]

    def detectors(self) -> list[BenchDetector]:
        """Every detector that has figures, in the order of the figures."""
        return list(dict.fromkeys(figure.measured for figure in self.figures))

    def ranking(
        self, language: str, setting: _Setting, among: Collection[BenchDetector]
    ) -> list[tuple[BenchDetector, float]]:
        """Detectors with their mean in a language, the best first; empty if there are no figures.

        They are compared on the data sets on which all of them have a figure. If there is no such data set, the
        detector with figures on the fewest is dropped, and so on.
        """
        table = defaultdict[BenchDetector, dict[str, float]](dict)
        for figure in self.figures:
            if figure.language == language and figure.setting == setting and figure.measured in among:
                table[figure.measured][figure.data] = figure.value
        while table:
            shared = set.intersection(*(set(row) for row in table.values()))
            if shared:
                break
            del table[min(table, key=lambda detector: len(table[detector]))]
        means = [(detector, fmean(row[data] for data in sorted(shared))) for detector, row in table.items()]
        return sorted(means, key=lambda pair: -pair[1])


def read_recorded(path: str | Path | None = None) -> Recorded | None:
    """The figures of a file, by default that of the package; None if the package has none."""
    file = Path(path or str(files("veriglot.detectors") / "recorded.json"))
    return Recorded.read(file) if path is not None or file.is_file() else None


_OWN = frozenset({"grounding", "reader"})
_BY_FOLDER = frozenset({"hf", "nli"})  # these run a model of a folder in this process


def runs_here(name: str) -> bool:
    """Whether a detector opens no connection: `grounding`, `reader`, models in a folder, ensembles of these."""
    head, _, argument = name.partition(":")
    if head == "ensemble":
        return bool(argument) and all(runs_here(member) for member in argument.split("+"))
    return name in _OWN or (head in _BY_FOLDER and Path(argument).is_dir())


NO_READER = "auto:no reader"
BY_FIGURES = "auto:by figures"
_NO_FIGURES = "none"
_SHOWN = 3  # most detectors in a note


class Auto(PickledByArguments):
    """Chooses a detector for each sample. Downloads nothing, and calls language models only as explicit candidates.

    The field `detector` of a prediction names the chosen detector, and its signature is that of `auto`. A note gives
    the reason: `auto:by figures (...)` with the figures that were compared, or `auto:no reader` if there are none for
    the language and `grounding` replaces `reader`, whose packages or model are not installed.

    Figures apply to evidence in the response's language or to translations, as they were measured; a sample with
    evidence in another language has none.

    Args:
        threshold: confidence from which a word is marked, 0 to 1, for every detector; None takes that of `reader`, or
            of `grounding` if that replaces it.
        words: whether predictions include every word.
        figures: a file that `veriglot bench record` wrote; None for the one in the package, `none` for no figures.
        candidates: the detectors to choose from by their figures, as names joined by `+` or a list, even if they use
            the network; None for those that only use this machine, with models in local folders.
        reader_weights: folder of weights of `reader`; None for those in the package.

    Raises:
        WeightsError: weights are damaged, or made for another encoder. A missing encoder is no error.
        InputError: the figures cannot be read.
        UsageError: a candidate has no figures.
    """

    taxonomy = Grounding.taxonomy

    def __init__(
        self,
        *,
        threshold: float | None = None,
        words: bool = False,
        figures: str | None = None,
        candidates: str | Sequence[str] | None = None,
        reader_weights: str | None = None,
    ) -> None:
        reader = load_if_installed("reader", threshold=threshold, words=words, weights=reader_weights)
        self._own: Detector = Grounding(threshold=threshold, words=words) if reader is None else reader
        self._note = NO_READER if reader is None else None
        self._recorded = None if figures == _NO_FIGURES else read_recorded(figures)
        if isinstance(candidates, str):
            candidates = [name for name in candidates.split("+") if name]
        loaded = {"grounding": self._own} if reader is None else {"reader": reader}
        self._best = _best(self._recorded, loaded, candidates, threshold=self.threshold, words=words)

    @cached_property
    def name(self) -> str:
        """`auto@`, and the names and revisions of the detectors that it chooses from."""
        return "auto@" + "+".join(detector.name.replace("@", "-") for detector in self._detectors)

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked, for every detector."""
        return self._own.threshold

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Thresholds of its detector by strictness; empty if it chooses from several."""
        return getattr(self._own, "thresholds", {}) if len(self._detectors) == 1 else {}

    @cached_property
    def signature(self) -> str:
        """Name, a hash of the detectors' signatures for each kind, a hash of the figures, threshold and unit."""
        kinds: dict[str, list[str]] = {}  # `nli` may occur twice, with other models or settings
        for detector in self._detectors:
            kinds.setdefault(detector.name.partition("@")[0], []).append(settings_of(detector.signature) or "")
        digests = {kind: digest(settings)[:12] for kind, settings in kinds.items()}
        figures = self._recorded.revision if self._recorded is not None else None
        return signature(chooser=self.name, **digests, figures=figures, threshold=self.threshold, unit="word")

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. A bad sample never raises an error."""
        chosen = [self._choice(sample) for sample in samples]
        predictions: dict[int, Prediction] = {}
        for detector in {id(own): own for own, _ in chosen}.values():  # one batch for each detector
            indices = [index for index, (own, _) in enumerate(chosen) if own is detector]
            for index, prediction in zip(indices, detector.predict([samples[i] for i in indices]), strict=True):
                predictions[index] = self._signed(prediction, chosen[index][1])
        return [predictions[index] for index in range(len(samples))]

    @property
    def _detectors(self) -> list[Detector]:
        own = [self._own, *(detector for detector, _ in self._best.values())]
        return list({id(detector): detector for detector in own}.values())

    def _signed(self, prediction: Prediction, note: str | None) -> Prediction:
        notes = (*prediction.notes, note) if note and prediction.status is Status.SCORED else prediction.notes
        return msgspec.structs.replace(prediction, notes=notes, signature=self.signature)

    def _choice(self, sample: Sample) -> tuple[Detector, str | None]:
        """The detector for a sample, and the note for its prediction."""
        if self._best:
            try:
                resolved = resolve_language(sample)
                setting: _Setting = "translation" if sample.task is Task.TRANSLATION else "evidence"
                foreign = resolved is not None and setting == "evidence" and evidence_notes(sample, resolved)
            except Exception:  # one sample must not fail the batch: its detector will report the error
                return self._own, self._note
            if resolved is not None and not foreign and (resolved.tag, setting) in self._best:
                return self._best[resolved.tag, setting]
        return self._own, self._note


def _best(
    recorded: Recorded | None, loaded: Mapping[str, Detector], candidates: Sequence[str] | None, **options: Any
) -> dict[tuple[str, _Setting], tuple[Detector, str]]:
    """The best available detector for each language and setting that has figures, and the note with the reason.

    Each is loaded once, with these options. It is unavailable if its packages or its model are missing, or if its
    revision is not that of the figures.
    """
    if recorded is None:
        return {}
    names = {candidate.name for candidate in recorded.detectors()}
    strange = [name for name in candidates or () if name not in names]
    if strange:
        raise UsageError(
            f"There are no recorded figures of the candidate {strange[0]!r}.",
            remedy=f"There are of: {', '.join(sorted(names))}.",
        )
    by_options: dict[Any, Detector | None] = {(name, ()): detector for name, detector in loaded.items()}
    available: dict[BenchDetector, Detector] = {}
    for candidate in recorded.detectors():
        if candidate.name not in candidates if candidates is not None else not runs_here(candidate.name):
            continue
        key: Any = (candidate.name, candidate.options)
        if key not in by_options:
            own = {name: msgspec.json.decode(text) for name, text in candidate.options}
            by_options[key] = load_if_installed(candidate.name, **(own | options))
        detector = by_options[key]
        if detector is not None and detector.name == candidate.revision:
            available[candidate] = detector
    choices = {}
    for language, setting in sorted({(figure.language, figure.setting) for figure in recorded.figures}):
        ranking = recorded.ranking(language, setting, available)
        if ranking:
            choices[language, setting] = available[ranking[0][0]], _why(recorded, language, setting, ranking)
    return choices


def _why(recorded: Recorded, language: str, setting: _Setting, ranking: Sequence[tuple[BenchDetector, float]]) -> str:
    shown = ", ".join(f"{detector.name} {value:.3f}" for detector, value in ranking[:_SHOWN])
    where = f"{language} translations" if setting == "translation" else language
    return f"{BY_FIGURES} ({recorded.measure} of {recorded.level}s, {where}: {shown})"
