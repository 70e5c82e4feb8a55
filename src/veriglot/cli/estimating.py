"""What `veriglot estimate` does once its words are understood."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.inputs import STDIN, find_inputs, known_tag
from veriglot.cli.plan_tables import Planned, show_plans
from veriglot.cli.summary import Account
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats import read_predictions
from veriglot.rates import plan_labels, plan_responses
from veriglot.records import ErrorProfile, Estimator, Reliability, Sample, Status
from veriglot.run import Description
from veriglot.study.cells import Counted, Judging, cell_rate, replicates
from veriglot.study.detecting import read_profile
from veriglot.study.entries import StudyEntry
from veriglot.study.files import rows_of
from veriglot.study.gold import Gold, gold_in, labels_of, without_response
from veriglot.study.joining import Joining
from veriglot.study.tallying import UNDETERMINED, Group, Key, Tallying, together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Prediction, Rate

__all__ = ["Request", "carry_out"]


@dataclass(frozen=True)
class Request:
    """The options of `veriglot estimate`, under the names that its help gives them."""

    predictions: str
    samples: Sequence[str]
    profile: str | None
    estimators: tuple[str, ...]
    labels: tuple[str, ...]
    annotator: str | None
    pooled: bool
    by_seed: bool
    plan: float | None
    unit: str | None
    confidence: float
    seed: int
    draws: int
    language: str | None
    form: Literal["table", "json", "csv"]
    quiet: bool


def carry_out(request: Request) -> int:
    """Estimate and show; returns the exit code.

    Raises:
        VeriglotError: what went wrong.
    """
    estimators = _estimators(request)
    _check_shares(request)
    profile = read_profile(Path(request.profile)) if request.profile is not None else None
    _check_profile(request, profile, estimators)
    study = StudyEntry(
        unit=request.unit or (profile.unit if profile is not None else "word"),
        estimator=estimators[0],
        confidence=request.confidence,
        seed=request.seed,
        draws=request.draws,
        pooled=request.pooled,
    )
    gold = gold_in([Path(name) for name in request.labels], unit=study.unit, annotator=request.annotator) \
        if request.labels else Gold()  # fmt: skip
    account = Account(quiet=request.quiet)
    seen = _Predictions(request.predictions)
    tallying = _tally(request, study, seen, account, ids=bool(gold))
    unused = without_response(gold, tallying.groups.values())
    if unused:
        account.warn(f"{unused:,} of {len(gold.counts):,} labelled responses are none of those that were judged.")
    judging = Judging(seen.description(profile), profile, study)
    _check_detector(profile, seen)
    cells = list(_cells(tallying, judging, gold))
    if request.plan is not None:
        show_plans(
            [_planned(cell, estimators[0], request.plan, request.confidence) for cell in cells],
            half_width=request.plan,
            estimator=estimators[0],
            form=request.form,
        )
    else:
        _show(request, [rate for cell in cells for rate in _rates(cell, estimators, request)])
    return account.close()


def _estimators(request: Request) -> tuple[Estimator, ...]:
    known = [str(each) for each in Estimator]
    for name in request.estimators:
        if name not in known:
            raise UnknownNameError("estimator", name, known)
    found = tuple(dict.fromkeys(Estimator(name) for name in request.estimators))
    found = found or ((Estimator.PPI,) if request.labels else (Estimator.LABEL_SHIFT,))
    if Estimator.PPI in found and not request.labels:
        raise UsageError("The estimator ppi needs labels of some of the responses.", remedy="Give them with --labels.")
    return found


def _check_shares(request: Request) -> None:
    for name, value in (("--confidence", request.confidence), ("--plan", request.plan)):
        if value is not None and not 0.0 < value < 1.0:
            raise UsageError(f"{name} is a share above 0 and below 1, and not {value}.")


def _check_profile(request: Request, profile: ErrorProfile | None, estimators: Sequence[Estimator]) -> None:
    needing = [each for each in estimators if each not in (Estimator.RAW, Estimator.PPI)]
    if profile is None and needing:
        raise UsageError(
            f"The estimator {needing[0]} needs an error profile.",
            remedy="Give it with --profile; `veriglot evaluate LABELLED -o profile.json` measures one.",
        )
    if profile is not None and request.unit not in {None, profile.unit}:
        raise UsageError(
            f"The profile counts {profile.unit!r}, and the rates would count {request.unit!r}.",
            remedy=f"Leave --unit out, or measure a profile with: veriglot evaluate ... --unit {request.unit}",
        )


def _check_detector(profile: ErrorProfile | None, seen: _Predictions) -> None:
    """A profile says nothing of another detector, or of the same one at another threshold."""
    if profile is None or not seen.detectors:
        return
    if seen.detectors != {profile.detector}:
        raise UsageError(
            f"The profile is of {profile.detector}, and the predictions are of {', '.join(sorted(seen.detectors))}.",
            remedy="Measure the detector that made the predictions.",
        )
    if seen.thresholds and any(abs(each - profile.threshold) > 1e-9 for each in seen.thresholds):
        raise UsageError(
            f"The profile holds at the threshold {profile.threshold}, and the predictions were made at"
            f" {', '.join(map(str, sorted(seen.thresholds)))}.",
            remedy="Measure the profile at that threshold: veriglot evaluate ... --threshold",
        )


class _Predictions:
    """Predictions, and what they say of how they were made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.detectors: set[str] = set()
        self.thresholds: set[float] = set()
        self._signatures: set[str] = set()

    def __iter__(self) -> Iterator[Prediction]:
        for prediction in read_predictions(self._path):
            self.detectors.add(prediction.asked)
            line = prediction.signature
            if line is not None and line not in self._signatures:
                self._signatures.add(line)
                self.thresholds |= _threshold_in(line)
            yield prediction

    def description(self, profile: ErrorProfile | None) -> Description:
        """Of the detector, as far as the predictions tell."""
        name = "+".join(sorted(self.detectors)) or (profile.detector if profile else "none")
        threshold = next(iter(self.thresholds), profile.threshold if profile is not None else float("nan"))
        return Description(name, "", threshold, "+".join(sorted(self._signatures)))


def _threshold_in(line: str) -> set[float]:
    """The threshold that a prediction's signature states."""
    found = [part.partition(":")[2] for part in line.split("|") if part.startswith("threshold:")]
    try:
        return {float(each) for each in found}
    except ValueError:
        return set()


def _tally(request: Request, study: StudyEntry, seen: _Predictions, account: Account, *, ids: bool) -> Tallying:
    """Count every response; what has no prediction counts as not judged."""
    tallying = Tallying(study.unit, ids=ids)
    joining = Joining()
    for sample, prediction in joining.pairs(_samples(request, account), seen):
        tallying.add(sample, prediction)
        account.add(prediction)
    if joining.without_sample:
        account.warn(f"{joining.without_sample:,} predictions belong to no sample and are left out.")
    missing = joining.without_prediction
    if missing:
        account.warn(f"{missing.total():,} samples have no prediction; the coverage of the rates counts them.")
    for (model, language, seed), count in missing.items():
        key = Key(model, language or UNDETERMINED, seed)
        group = tallying.groups.setdefault(key, Group())
        group.statuses["missing"] += count
    return tallying


def _samples(request: Request, account: Account) -> Iterator[Sample]:
    tag = known_tag(request.language)
    if STDIN in request.samples:
        paths = [Path(STDIN)]
    else:
        paths = [Path(each.path) for each in find_inputs(request.samples, format_name=None, skipped=account.warn)]
    for row in rows_of(paths, format_name=None, language=tag):
        if isinstance(row, Sample):
            yield row
        else:
            account.add_failed(row, kept=False)


@dataclass(frozen=True)
class _Cell:
    model: str | None
    language: str
    counted: Counted


def _cells(tallying: Tallying, judging: Judging, gold: Gold) -> Iterator[_Cell]:
    def cell(key: Key) -> tuple[str, str]:
        return key.model or "", key.language

    keys = sorted(tallying.groups, key=lambda key: (*cell(key), key.seed is None, key.seed or 0))
    for _, same in groupby(keys, key=cell):
        part = list(same)
        groups = {key.seed: tallying.groups[key] for key in part}
        whole = together(groups.values())
        labels = labels_of(whole.ids, whole.tallies.units.tolist(), gold) if gold else None
        seeds = {seed: group.tallies for seed, group in groups.items() if group.statuses[Status.SCORED]}
        given = {seed: group.statuses.total() for seed, group in groups.items()}
        yield _Cell(part[0].model, part[0].language, Counted(judging, seeds, labels, given))


def _rates(cell: _Cell, estimators: Sequence[Estimator], request: Request) -> Iterator[Rate]:
    for estimator in estimators:
        yield cell_rate(cell.model, cell.language, [cell.counted], estimator).rate
    if request.by_seed:
        single = Estimator.RAW if estimators[0] is Estimator.PPI else estimators[0]
        yield from replicates(cell.model, cell.language, [cell.counted], single)


def _planned(cell: _Cell, estimator: Estimator, half_width: float, confidence: float) -> Planned:
    tallies, labels = cell.counted.joined, cell.counted.labels
    profile, _ = cell.counted.judging.of(cell.language)
    if (profile is None and estimator not in (Estimator.RAW, Estimator.PPI)) or (
        labels is None and estimator is Estimator.PPI
    ):
        return Planned(cell.model, cell.language, None, None)
    responses = plan_responses(tallies, profile, half_width, estimator=estimator, confidence=confidence, labels=labels)
    if estimator is Estimator.RAW:
        return Planned(cell.model, cell.language, responses, None)
    more = plan_labels(tallies, profile, half_width, estimator=estimator, confidence=confidence, labels=labels)
    return Planned(cell.model, cell.language, responses, more)


def _show(request: Request, rates: Sequence[Rate]) -> None:
    from veriglot.cli import rate_tables

    if request.form == "json":
        sys.stdout.buffer.write(rate_tables.as_json(rates))
        sys.stdout.buffer.flush()
    elif request.form == "csv":
        rate_tables.print_csv(rates)
    else:
        rate_tables.print_table(rates)
        counted = Counter(rate.status for rate in rates)
        if counted[Reliability.UNRELIABLE]:
            print("\nunreliable: the data do not support the number; do not quote it.")
