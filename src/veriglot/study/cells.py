"""Rates of one model in one language: by every estimator, over all seeds and detectors, and of each alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from veriglot import __version__
from veriglot.provenance import digest, signature
from veriglot.rates import Estimate, Labels, Tallies, detector_rates, estimate
from veriglot.rates.diagnosis import FEWEST_CLUSTERS
from veriglot.records import Estimator, Rate, Reliability, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from veriglot.records import ErrorProfile, LanguageProfile
    from veriglot.run import Description
    from veriglot.study.entries import StudyEntry

    Array = NDArray[np.float64]

__all__ = ["Counted", "Judging", "Made", "cell_rate", "replicates"]

_LABELLED_ONLY = (Estimator.RAW, Estimator.PPI)


@dataclass(frozen=True)
class Judging:
    """A detector with its profile, and what the study asks of rates.

    Attributes:
        description: of the detector.
        profile: its error profile, or None.
        study: `[study]`.
    """

    description: Description
    profile: ErrorProfile | None
    study: StudyEntry

    @cached_property
    def profile_hash(self) -> str | None:
        """What names the profile in signatures; None without one."""
        return None if self.profile is None else digest([encode(self.profile)])[:16]

    def of(self, language: str) -> tuple[LanguageProfile | None, str | None]:
        """The error rates to use in a language, and which these are (its tag, or `pooled`); None where there are none.

        Pooled ones are used where the study asks for them, and the profile holds the language not at all, or too few
        texts of it for any interval to hold.
        """
        if self.profile is None:
            return None, None
        found = self.profile.languages.get(language)
        if self.study.pooled and (found is None or _too_small(found)):
            return self.profile.pooled, "pooled"
        return found, None if found is None else language


def _too_small(profile: LanguageProfile) -> bool:
    rates = detector_rates(profile, seed=0, draws=1)
    return any(share is None or share.clusters < FEWEST_CLUSTERS for share in (rates.tpr, rates.fpr))


@dataclass(frozen=True)
class Counted:
    """What one detector marked in the responses of one model in one language.

    Attributes:
        judging: the detector.
        seeds: tallies by seed of the responses (None where they state none).
        labels: of people, with places in the joined tallies; None where there are none.
        given: responses that the design asks for or that were given, judged or not, by seed.
    """

    judging: Judging
    seeds: dict[int | None, Tallies]
    labels: Labels | None
    given: dict[int | None, int]

    @property
    def joined(self) -> Tallies:
        """All seeds."""
        return Tallies.join(list(self.seeds.values()))

    @property
    def coverage(self) -> float:
        """Judged responses over those that were asked for or given; 0 where there is none."""
        given = sum(self.given.values())
        return sum(map(len, self.seeds.values())) / given if given else 0.0

    def of(self, seed: int | None) -> Counted:
        """One seed alone; labels are too few to part."""
        return Counted(self.judging, {seed: self.seeds[seed]}, None, {seed: self.given.get(seed, 0)})


@dataclass(frozen=True)
class Made:
    """A rate with what means and differences are made of.

    Attributes:
        rate: as it is shown.
        draws: behind it, not cut to [0, 1], shape `(draws,)`.
        value: the rate before it was cut to [0, 1]; NaN without one.
    """

    rate: Rate
    draws: Array
    value: float


def cell_rate(model: str | None, language: str, counted: Sequence[Counted], estimator: Estimator) -> Made:
    """The rate by one estimator over all seeds and detectors.

    Of several detectors it is the mean. All of them judged the same responses, so the noise of these does not average
    out: the interval is as wide as theirs are on average.
    """
    made = [_one(model, language, each, estimator) for each in counted]
    if len(made) == 1:
        return made[0]
    return _mean(made)


def replicates(model: str | None, language: str, counted: Sequence[Counted], estimator: Estimator) -> tuple[Rate, ...]:
    """One rate for each detector and seed (mfava: 3 x 5)."""
    return tuple(
        _one(model, language, each.of(seed), estimator, seed).rate
        for each in counted
        for seed in sorted(each.seeds, key=lambda seed: (seed is None, seed or 0))
    )


def _one(
    model: str | None, language: str, counted: Counted, estimator: Estimator, seed: int | None = None
) -> Made:  # fmt: skip
    judging, tallies = counted.judging, counted.joined
    profile, used = judging.of(language)
    study = judging.study
    found = _estimate(
        tallies,
        profile,
        estimator,
        study,
        counted.labels,
        counted.coverage,
        language,
        given=any(counted.given.values()),
    )
    return Made(
        Rate(
            model=model,
            language=language,
            rate=found.rate,
            low=found.low,
            high=found.high,
            estimator=estimator,
            unit=study.unit,
            units=int(tallies.units.sum()),
            responses=len(tallies),
            coverage=counted.coverage,
            status=found.status,
            reason="; ".join(found.reasons) or None,
            signature=_signature(judging, estimator, used, found.notes),
            detector=judging.description.name,
            seed=seed,
        ),
        found.draws,
        found.value,
    )


def _estimate(
    tallies: Tallies,
    profile: LanguageProfile | None,
    estimator: Estimator,
    study: StudyEntry,
    labels: Labels | None,
    coverage: float,
    language: str,
    *,
    given: bool,
) -> Estimate:
    nothing = np.full(study.draws, np.nan)
    if not given:
        return Estimate(None, None, None, (f"no response was asked for or given in the language {language}",), nothing)
    if profile is None and estimator not in _LABELLED_ONLY:
        return Estimate(None, None, None, (f"the error profile does not hold the language {language}",), nothing)
    if estimator is Estimator.PPI and (labels is None or not len(labels.response)):
        return Estimate(None, None, None, ("no response is labelled",), nothing)
    if estimator is Estimator.EM and (tallies.confidences is None):
        return Estimate(None, None, None, ("the predictions have no confidence of every word",), nothing)
    return estimate(
        tallies,
        profile,
        estimator=estimator,
        confidence=study.confidence,
        seed=study.seed,
        draws=study.draws,
        labels=labels,
        coverage=coverage,
    )


def _signature(judging: Judging, estimator: Estimator, used: str | None, notes: tuple[str, ...]) -> str:
    study = judging.study
    needs = judging.profile is not None and estimator not in _LABELLED_ONLY
    return signature(
        estimator=estimator,
        notes=",".join(notes) or None,
        unit=study.unit,
        detector=judging.description.name,
        threshold=judging.description.threshold,
        profile=judging.profile_hash if needs else None,
        rates=used if needs else None,
        confidence=study.confidence,
        seed=study.seed,
        draws=study.draws,
        version=__version__,
    )


def _mean(made: Sequence[Made]) -> Made:
    rates = [each.rate for each in made]
    reasons = tuple(dict.fromkeys(f"{rate.detector}: {rate.reason}" for rate in rates if rate.reason))
    numbers = [(rate.rate, rate.low, rate.high) for rate in rates]
    whole = all(None not in row for row in numbers)
    means = [float(np.mean([row[place] for row in numbers if row[place] is not None])) for place in range(3)] if whole \
        else [None, None, None]  # fmt: skip
    first = rates[0]
    return Made(
        Rate(
            model=first.model,
            language=first.language,
            rate=means[0],
            low=means[1],
            high=means[2],
            estimator=first.estimator,
            unit=first.unit,
            units=first.units,
            responses=min(rate.responses for rate in rates),
            coverage=min(rate.coverage for rate in rates),
            status=Reliability.UNRELIABLE if reasons or not whole else Reliability.OK,
            reason="; ".join(reasons) or (None if whole else "a detector gives no rate"),
            signature=_mean_signature([rate.signature for rate in rates]),
            detector="+".join(rate.detector or "" for rate in rates),
        ),
        _mean_draws([each.draws for each in made]),
        float(np.mean([each.value for each in made])),
    )


def _mean_signature(lines: Sequence[str]) -> str:
    """What all of them state, once; where they differ (detector, threshold, profile), each."""
    stated = [dict(part.split(":", 1) for part in line.split("|")) for line in lines]
    merged = {}
    for key in dict.fromkeys(key for parts in stated for key in parts):
        values = [parts.get(key, "none") for parts in stated]
        merged[key] = values[0] if len(set(values)) == 1 else "+".join(values)
    return signature(mean_of=len(lines), **merged)


def _mean_draws(draws: Sequence[Array]) -> Array:
    """The mean of draws, spread as widely as each of them is on average."""
    mean: Array = np.mean(draws, axis=0)
    if np.isnan(mean).all():  # a detector gives no rate
        return mean
    centre, spread = np.nanmean(mean), np.nanstd(mean)
    wanted = float(np.mean([np.nanstd(each) for each in draws]))
    if not spread > 0:
        return mean
    wide: Array = centre + (mean - centre) * (wanted / spread)
    return wide
