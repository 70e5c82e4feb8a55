"""The detector `auto`: each sample goes to the detector that is best in its language, of those that are here.

Which is best, figures say that a bench recorded. Where there are none for a language, `reader` judges it if it is
installed, else `grounding`.
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
from veriglot.detectors.registry import load_if_here
from veriglot.errors import UsageError
from veriglot.judging.base import evidence_notes, resolve_language
from veriglot.plugins import PickledByArguments
from veriglot.records import Detector, Prediction, Record, Sample, Status, Task
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


__all__ = ["Recorded", "RecordedFigure"]

_Setting = Literal["evidence", "translation"]


class Known(NamedTuple):
    """A detector of the bench."""

    name: str  # the name that loads it
    options: tuple[tuple[str, str], ...]  # what it was made with, as pairs of name and JSON text
    revision: str  # its name and revision then; figures say nothing of another


class RecordedFigure(Record):
    """How well one detector did in one language on one data set.

    Attributes:
        detector: its name and revision.
        name: the name that loads it.
        language: BCP 47 tag of the responses.
        setting: `translation` where the evidence was their source text, otherwise `evidence`.
        data: name of the data set.
        value, low, high: the figure with its 95% interval; more is better.
        items, texts: units and texts behind it.
        options: what it was made with, as JSON text by option.
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
    def known(self) -> Known:
        """Which detector it is of."""
        return Known(self.name, tuple(sorted(self.options.items())), self.detector)


class Recorded(Versioned, kw_only=True):
    """Figures of one bench.

    Attributes:
        level, measure: what was measured, such as `word` and `auc_pr_nonfactual`.
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

    def detectors(self) -> list[Known]:
        """Every detector that figures are of, in their order."""
        return list(dict.fromkeys(figure.known for figure in self.figures))

    def ranking(self, language: str, setting: _Setting, among: Collection[Known]) -> list[tuple[Known, float]]:
        """Detectors with their mean in a language, the best first; empty where there are no figures.

        They are compared on the data sets that all of them have a figure on. Where there is no such data set, the one
        that has figures on fewest is left out, and so on.
        """
        table = defaultdict[Known, dict[str, float]](dict)
        for figure in self.figures:
            if figure.language == language and figure.setting == setting and figure.known in among:
                table[figure.known][figure.data] = figure.value
        while table:
            shared = set.intersection(*(set(row) for row in table.values()))
            if shared:
                break
            del table[min(table, key=lambda known: len(table[known]))]
        means = [(known, fmean(row[data] for data in sorted(shared))) for known, row in table.items()]
        return sorted(means, key=lambda pair: -pair[1])


def read_recorded(path: str | Path | None = None) -> Recorded | None:
    """Recorded figures."""
    file = Path(path or str(files("veriglot.detectors") / "recorded.json"))
    return Recorded.read(file) if path is not None or file.is_file() else None


_OWN = frozenset({"grounding", "reader"})
_BY_FOLDER = frozenset({"hf", "nli"})  # those that run a model in this process


def runs_here(name: str) -> bool:
    """Whether a detector is known to open no connection: our own, models in a folder, ensembles of these."""
    head, _, argument = name.partition(":")
    if head == "ensemble":
        return bool(argument) and all(runs_here(member) for member in argument.split("+"))
    return name in _OWN or (head in _BY_FOLDER and Path(argument).is_dir())


NO_READER = "auto:no reader"
BY_FIGURES = "auto:by figures"
_NO_FIGURES = "none"
_SHOWN = 3  # detectors whose figures a note gives


class Auto(PickledByArguments):
    """Chooses among detectors, sample by sample. Fetches nothing, and asks no language model unless told to.

    A prediction names the detector that made it as `detector`, and this one in its signature. Its note says why:
    `auto:by figures (...)` with the figures that were compared, or `auto:no reader` where there are none for the
    language and `grounding` stands in for `reader`, whose packages or model are not here.

    Figures hold for evidence in the response's language, or for translations, as they were measured; a sample whose
    evidence is in another language has none.

    Args:
        threshold: confidence from which a word is marked, 0 to 1, by whichever detector; None takes that of `reader`,
            or of `grounding` where that stands in.
        words: whether predictions carry every word.
        figures: a file that `veriglot bench record` wrote; None takes the one in the package, `none` takes none.
        candidates: the detectors to choose from by their figures, as names joined by `+` or a list, whatever they
            ask; None takes those that run on this machine alone, with models that are in a folder of it.
        reader_weights: folder of weights of `reader`; None takes those in the package.

    Raises:
        WeightsError: weights are damaged, or made for another encoder. That the encoder is missing is no error.
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
        reader = load_if_here("reader", threshold=threshold, words=words, weights=reader_weights)
        self._own: Detector = Grounding(threshold=threshold, words=words) if reader is None else reader
        self._note = NO_READER if reader is None else None
        self._recorded = None if figures == _NO_FIGURES else read_recorded(figures)
        if isinstance(candidates, str):
            candidates = [name for name in candidates.split("+") if name]
        loaded = {"grounding": self._own} if reader is None else {"reader": reader}
        self._best = _best(self._recorded, loaded, candidates, threshold=self.threshold, words=words)

    @cached_property
    def name(self) -> str:
        """`auto@`, and the names and revisions of the detectors that it has to choose from."""
        return "auto@" + "+".join(detector.name.replace("@", "-") for detector in self._detectors)

    @property
    def threshold(self) -> float:
        """Confidence from which a word is marked, by whichever detector."""
        return self._own.threshold

    @property
    def thresholds(self) -> Mapping[str, float]:
        """By strictness, those of its detector; none where it has several to choose from."""
        return getattr(self._own, "thresholds", {}) if len(self._detectors) == 1 else {}

    @cached_property
    def signature(self) -> str:
        """Name, the signatures of all detectors as a hash a kind, hashes of what it goes by, threshold and unit."""
        kinds: dict[str, list[str]] = {}  # `nli` may be there twice, with other models or settings
        for detector in self._detectors:
            kinds.setdefault(detector.name.partition("@")[0], []).append(settings_of(detector.signature) or "")
        made = {kind: digest(settings)[:12] for kind, settings in kinds.items()}
        figures = self._recorded.revision if self._recorded is not None else None
        return signature(chooser=self.name, **made, figures=figures, threshold=self.threshold, unit="word")

    def predict(self, samples: Sequence[Sample]) -> list[Prediction]:
        """Judge a batch: one prediction per sample, in order. No sample makes it raise."""
        chosen = [self._choice(sample) for sample in samples]
        predictions: dict[int, Prediction] = {}
        for detector in {id(own): own for own, _ in chosen}.values():  # each is asked once, for all that is its own
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
        """Who is to judge a sample, and the note that goes with it."""
        if self._best:
            try:
                resolved = resolve_language(sample)
                setting: _Setting = "translation" if sample.task is Task.TRANSLATION else "evidence"
                foreign = resolved is not None and setting == "evidence" and evidence_notes(sample, resolved)
            except Exception:  # one sample must not lose the batch: its detector says what is wrong with it
                return self._own, self._note
            if resolved is not None and not foreign and (resolved.tag, setting) in self._best:
                return self._best[resolved.tag, setting]
        return self._own, self._note


def _best(
    recorded: Recorded | None, loaded: Mapping[str, Detector], candidates: Sequence[str] | None, **options: Any
) -> dict[tuple[str, _Setting], tuple[Detector, str]]:
    """The best detector that is here for each language and setting that figures are of, and why.

    Each is loaded once, with these options. It is not here where its packages or its model are missing, or are of
    another revision than the figures.
    """
    if recorded is None:
        return {}
    names = {known.name for known in recorded.detectors()}
    strange = [name for name in candidates or () if name not in names]
    if strange:
        raise UsageError(
            f"There are no recorded figures of the candidate {strange[0]!r}.",
            remedy=f"There are of: {', '.join(sorted(names))}.",
        )
    by_options: dict[Any, Detector | None] = {(name, ()): detector for name, detector in loaded.items()}
    here: dict[Known, Detector] = {}
    for known in recorded.detectors():
        if known.name not in candidates if candidates is not None else not runs_here(known.name):
            continue
        key: Any = (known.name, known.options)
        if key not in by_options:
            own = {name: msgspec.json.decode(text) for name, text in known.options}
            by_options[key] = load_if_here(known.name, **(own | options))
        detector = by_options[key]
        if detector is not None and detector.name == known.revision:
            here[known] = detector
    choices = {}
    for language, setting in sorted({(figure.language, figure.setting) for figure in recorded.figures}):
        ranking = recorded.ranking(language, setting, here)
        if ranking:
            choices[language, setting] = here[ranking[0][0]], _why(recorded, language, setting, ranking)
    return choices


def _why(recorded: Recorded, language: str, setting: _Setting, ranking: Sequence[tuple[Known, float]]) -> str:
    shown = ", ".join(f"{known.name} {value:.3f}" for known, value in ranking[:_SHOWN])
    where = f"{language} translations" if setting == "translation" else language
    return f"{BY_FIGURES} ({recorded.measure} of {recorded.level}s, {where}: {shown})"
