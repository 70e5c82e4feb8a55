"""`veriglot.estimate`: from predictions and an error profile to rates, one for each model and language."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.columns import read_row, rows_reading
from veriglot.pipeline.engine import Description
from veriglot.rates.estimators import DRAWS, ESTIMATORS
from veriglot.records import ErrorProfile, Estimator, Prediction, Rate, Sample, from_mapping
from veriglot.signatures import stated_threshold
from veriglot.study.config import StudyEntry, read_profile
from veriglot.study.rates import CellCounts, Gold, ProfiledDetector, ResponseCounter, cell_rates
from veriglot.study.responses import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Estimation", "estimate"]


def estimate(
    predictions: Iterable[Any],
    samples: Iterable[Any],
    profile: ErrorProfile | dict[str, Any] | str | Path | None = None,
    *,
    estimator: str | None = None,
    labels: Iterable[Any] = (),
    annotator: str | None = None,
    unit: str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    draws: int = DRAWS,
    pooled: bool = False,
) -> list[Rate]:
    """How often models hallucinate: a rate for each model and language, corrected for the detector's errors.

    Args:
        predictions: of one detector, in any order: from `detect_many`, from a detector, or read from a file.
        samples: the samples of these, each id once, or dictionaries as `detect_many` takes them; `generator.name` or
            `model` names the model. One without a prediction lowers the coverage.
        profile: from `evaluate(...).profile()`, or the file that `veriglot evaluate -o` wrote, or its content;
            `raw` and `ppi` need none.
        estimator: `label-shift`, `paper`, `raw`, `em` or `ppi`; None for `label-shift`, or for `ppi` if there are
            labels.
        labels: samples with the labels of some of the responses, drawn at random, for `ppi`.
        annotator: whose labels count; None for the only annotator's.
        unit: `char`, `word`, `response` or `hf:<tokenizer>`; None for the profile's, or `word`.
        confidence: level of the intervals, above 0 and below 1.
        seed: of the draws.
        draws: number of draws for an interval, 100 or more.
        pooled: use the profile's error rates over all languages for a language with fewer than 8 texts in it.

    Returns:
        Rates between 0 and 1 in the order of models and languages; `unreliable` ones have reasons.

    Raises:
        UnknownNameError: no such estimator or unit.
        UsageError: the profile is missing, of another detector, or at another threshold or unit; ppi without labels.
        InputError: a prediction has no sample, two share an id, or a dictionary does not fit.
    """
    if isinstance(profile, str | Path):
        profile = read_profile(Path(profile))
    elif isinstance(profile, dict):
        profile = from_mapping(profile, ErrorProfile)
    rows, labelled = _samples(samples, evidence=""), list(_samples(labels))
    estimation = Estimation(
        () if estimator is None else (estimator,), profile, unit, bool(labelled),
        confidence=confidence, seed=seed, draws=draws, pooled=pooled,
    )  # fmt: skip
    gold = Gold.of(labelled, unit=estimation.study.unit, annotator=annotator)
    tallying = ResponseCounter(estimation.study.unit, ids=bool(gold))
    records = (from_mapping(getattr(each, "record", each), Prediction) for each in predictions)
    for sample, prediction in joined(rows, estimation.record_detectors(records)):
        if sample is None:
            raise InputError(f"the prediction {getattr(prediction, 'id', '')!r} belongs to no sample", field="id")
        tallying.add(sample, prediction)
    return [cell_rates([cell], (estimation.study.estimator,))[0].rate for cell in estimation.cells(tallying, gold)]


def _samples(rows: Iterable[Any], **columns: str) -> Iterator[Sample]:
    reading = rows_reading(columns)
    for number, row in enumerate(rows):
        yield row if isinstance(row, Sample) else read_row(row, id_=str(number), reading=reading)


class Estimation:
    """The estimators of a call, and what the predictions state about their detector.

    Args:
        names: of estimators; empty for label-shift, or ppi if there are labels.
        profile: of the detector that made the predictions.
        unit: None for the profile's, or `word`.
        labelled: whether there are labels of some of the responses.
        settings: of `StudyEntry`: confidence, seed, draws and pooled.

    Raises:
        UnknownNameError: no such estimator.
        UsageError: an estimator needs a profile or labels, the profile has another unit, or the confidence is not
            between 0 and 1.
    """

    def __init__(
        self, names: Sequence[str], profile: ErrorProfile | None, unit: str | None, labelled: bool, **settings: Any
    ) -> None:
        known = [str(each) for each in Estimator]
        for name in names:
            if name not in known:
                raise UnknownNameError("estimator", name, known)
        usual = Estimator.PPI if labelled else Estimator.LABEL_SHIFT
        self.estimators = tuple(dict.fromkeys(map(Estimator, names))) or (usual,)
        if Estimator.PPI in self.estimators and not labelled:
            raise UsageError("The estimator ppi needs labels of some of the responses.", "Give them with --labels.")
        needing = [each for each in self.estimators if ESTIMATORS[each].needs_profile]
        if profile is None and needing:
            raise UsageError(
                f"The estimator {needing[0]} needs an error profile.",
                "Give it with --profile; `veriglot evaluate LABELLED -o profile.json` measures one.",
            )
        if profile is not None and unit not in {None, profile.unit}:
            raise UsageError(
                f"The profile counts {profile.unit!r}, and the rates would count {unit!r}.",
                f"Leave --unit out, or measure a profile with: veriglot evaluate ... --unit {unit}",
            )
        if not 0.0 < settings["confidence"] < 1.0:
            raise UsageError(f"--confidence is a share above 0 and below 1, and not {settings['confidence']}.")
        counted = unit or (profile.unit if profile is not None else "word")
        self.study = StudyEntry(unit=counted, estimator=self.estimators[0], **settings)
        self._profile = profile
        self._detectors = set[str]()
        self._signatures = set[str]()

    def record_detectors(self, predictions: Iterable[Prediction]) -> Iterator[Prediction]:
        """The same predictions; remembers their detectors and signatures."""
        for prediction in predictions:
            self._detectors.add(prediction.asked)
            if prediction.signature is not None:
                self._signatures.add(prediction.signature)
            yield prediction

    def _detector(self) -> ProfiledDetector:
        profile = self._profile
        thresholds = {each for each in map(stated_threshold, self._signatures) if each is not None}
        if profile is not None and self._detectors:
            if self._detectors != {profile.detector}:
                raise UsageError(
                    f"The profile is of {profile.detector}, and the predictions are of"
                    f" {', '.join(sorted(self._detectors))}.",
                    "Measure the detector that made the predictions.",
                )
            if any(abs(each - profile.threshold) > 1e-9 for each in thresholds):
                raise UsageError(
                    f"The profile is for the threshold {profile.threshold}, and the predictions were made at"
                    f" {', '.join(map(str, sorted(thresholds)))}.",
                    "Measure the profile at that threshold: veriglot evaluate ... --threshold",
                )
        name = "+".join(sorted(self._detectors)) or (profile.detector if profile else "none")
        threshold = next(iter(thresholds), profile.threshold if profile is not None else float("nan"))
        return ProfiledDetector(
            Description(name, "", threshold, "+".join(sorted(self._signatures))), profile, self.study
        )

    def cells(self, tallying: ResponseCounter, gold: Gold) -> Iterator[CellCounts]:
        """What was marked in the responses of each model in each language; leaves out seeds with no scored response.

        Raises:
            UsageError: the profile is of another detector than the predictions, or at another threshold.
        """

        def cell(key: Any) -> tuple[str, str]:
            return key.model or "", key.language

        detector = self._detector()
        keys = sorted(tallying.groups, key=lambda key: (*cell(key), key.seed is None, key.seed or 0))
        for _, same in groupby(keys, key=cell):
            part = list(same)
            groups = {key.seed: tallying.groups[key] for key in part}
            counted = CellCounts.of_groups(part[0].model, part[0].language, detector, groups, gold)
            yield replace(counted, seeds={seed: tallies for seed, tallies in counted.seeds.items() if len(tallies)})
