"""The work of `veriglot estimate`: rates and plans from predictions and an error profile, as JSON, CSV and tables."""

from __future__ import annotations

import csv
import dataclasses
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from veriglot.cli.inputs import STDIN, find_inputs, known_tag
from veriglot.cli.progress import Account
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.reader import read_predictions
from veriglot.pipeline.engine import Description
from veriglot.rates.estimators import ESTIMATORS
from veriglot.rates.plan import plan_sample_size
from veriglot.records import ErrorProfile, Estimator, Reliability, Sample
from veriglot.records.languages import UNDETERMINED
from veriglot.study.config import StudyEntry
from veriglot.study.counts import Gold, Group, Key, Tallying, gold_in
from veriglot.study.rates import Counted, Judging, cell_rate, replicates
from veriglot.study.responses import Joining, rows_of
from veriglot.study.run import read_profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.rates.plan import Plan
    from veriglot.records import Prediction, Rate

__all__ = ["Request", "carry_out"]


@dataclass(frozen=True)
class Planned:
    """The plans of one model in one language; None where the data are too few to plan with."""

    model: str | None
    language: str
    responses: Plan | None
    labels: Plan | None


def show_plans(
    plans: Sequence[Planned], *, half_width: float, estimator: Estimator, form: Literal["table", "json", "csv"]
) -> None:
    """Print them."""
    if form == "json":
        rows = [{**dataclasses.asdict(plan), "estimator": str(estimator)} for plan in plans]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
        sys.stdout.buffer.flush()
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("model", "language", "estimator", "half_width", "now", "responses", "labelled"))
        for plan in plans:
            now = plan.responses.now if plan.responses else ""
            numbers = ("" if need is None or need.responses is None else need.responses for need in _both(plan))
            writer.writerow((plan.model or "", plan.language, estimator, half_width, now, *numbers))
    else:
        _print(plans, half_width, estimator)


def _both(plan: Planned) -> tuple[Plan | None, Plan | None]:
    return plan.responses, plan.labels


def _print(plans: Sequence[Planned], half_width: float, estimator: Estimator) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("model", overflow="fold")
    table.add_column("language")
    for name in ("half-width now", "responses needed", "or labelled"):
        table.add_column(name, justify="right")
    for plan in plans:
        now = f"{plan.responses.now:.2%}" if plan.responses else "-"
        table.add_row(plan.model or "-", plan.language, now, *(_needed(need) for need in _both(plan)))
    console.print(f"Intervals of at most {half_width:.2%} to either side, by {estimator}", highlight=False)
    console.print(table)
    console.print(
        "Responses: with the labels that there are. Labelled: with the responses that there are. Both count those that"
        " there are already. 'never' says which half-width remains however many are added.",
        highlight=False,
    )


def _needed(plan: Plan | None) -> str:
    if plan is None:
        return "too few to say"
    if plan.responses is None:
        return f"never: {plan.least:.2%}"
    return f"{plan.responses:,}"


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
    gold = gold_in([Path(name) for name in request.labels], unit=study.unit, annotator=request.annotator)
    account = Account(quiet=request.quiet)
    seen = _Predictions(request.predictions)
    tallying = _tally(request, study, seen, account, ids=bool(gold))
    unused = gold.unused(tallying.groups.values())
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
    estimators = tuple(dict.fromkeys(Estimator(name) for name in request.estimators))
    estimators = estimators or ((Estimator.PPI,) if request.labels else (Estimator.LABEL_SHIFT,))
    if Estimator.PPI in estimators and not request.labels:
        raise UsageError("The estimator ppi needs labels of some of the responses.", remedy="Give them with --labels.")
    return estimators


def _check_shares(request: Request) -> None:
    for name, value in (("--confidence", request.confidence), ("--plan", request.plan)):
        if value is not None and not 0.0 < value < 1.0:
            raise UsageError(f"{name} is a share above 0 and below 1, and not {value}.")


def _check_profile(request: Request, profile: ErrorProfile | None, estimators: Sequence[Estimator]) -> None:
    needing = [each for each in estimators if ESTIMATORS[each].needs_profile]
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
    values = [part.partition(":")[2] for part in line.split("|") if part.startswith("threshold:")]
    try:
        return {float(each) for each in values}
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
            account.add_failed(row, written=False)


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
        counted = Counted.of_groups(judging, groups, gold)
        scored = {seed: tallies for seed, tallies in counted.seeds.items() if len(tallies)}
        yield _Cell(part[0].model, part[0].language, dataclasses.replace(counted, seeds=scored))


def _rates(cell: _Cell, estimators: Sequence[Estimator], request: Request) -> Iterator[Rate]:
    for estimator in estimators:
        yield cell_rate(cell.model, cell.language, [cell.counted], estimator).rate
    if request.by_seed:
        yield from replicates(cell.model, cell.language, [cell.counted], estimators[0])


def _planned(cell: _Cell, estimator: Estimator, half_width: float, confidence: float) -> Planned:
    tallies, labels = cell.counted.joined, cell.counted.labels
    profile, _ = cell.counted.judging.of(cell.language)
    method = ESTIMATORS[estimator]
    if (profile is None and method.needs_profile) or (labels is None and method.needs_labels):
        return Planned(cell.model, cell.language, None, None)
    size = partial(
        plan_sample_size, tallies, profile, half_width, estimator=estimator, confidence=confidence, labels=labels
    )
    responses = size()
    if estimator is Estimator.RAW:
        return Planned(cell.model, cell.language, responses, None)
    return Planned(cell.model, cell.language, responses, size(of="labels"))


def _show(request: Request, rates: Sequence[Rate]) -> None:

    if request.form == "json":
        sys.stdout.buffer.write(as_json(rates))
        sys.stdout.buffer.flush()
    elif request.form == "csv":
        print_csv(rates)
    else:
        print_table(rates)
        counted = Counter(rate.status for rate in rates)
        if counted[Reliability.UNRELIABLE]:
            print("\nunreliable: the data do not support the number; do not quote it.")


_PLAIN_WIDTH = 200  # columns where no terminal says how many there are: enough for every table


def as_json(rates: Sequence[Rate]) -> bytes:
    """A list with one rate a line."""
    return b"[\n" + b",\n".join(msgspec.json.encode(rate) for rate in rates) + b"\n]\n"


def print_csv(rates: Sequence[Rate]) -> None:
    """One rate a row, under the names of its fields; empty where a field has no value."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    from veriglot.records import Rate

    fields = Rate.__struct_fields__
    writer.writerow(fields)
    for rate in rates:
        writer.writerow(["" if (value := getattr(rate, name)) is None else value for name in fields])


def print_table(rates: Sequence[Rate]) -> None:
    """Percentages with intervals; what is unreliable is said beside the number, and why below the table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    named = {
        "model": [rate.model or "-" for rate in rates],
        "language": [rate.language for rate in rates],
        "estimator": [str(rate.estimator) for rate in rates],
        "seed": ["all" if rate.seed is None else str(rate.seed) for rate in rates],
    }
    # A column that says the same of all says it once, above.
    shown = [name for name, values in named.items() if name == "language" or len(set(values)) > 1]
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in shown:
        table.add_column(name, overflow="fold", no_wrap=name != "model", min_width=8 if name == "model" else None)
    for name in ("rate", "interval, %", f"{rates[0].unit if rates else 'unit'}s", "judged"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=10 if any(rate.status != "ok" for rate in rates) else None)
    for index, rate in enumerate(rates):
        names = (named[name][index] for name in shown)
        table.add_row(*names, *_numbers(rate), "" if rate.status == "ok" else "unreliable")
    for name in ("model", "estimator"):
        if name not in shown and rates and named[name][0] != "-":
            console.print(f"{name}: {named[name][0]}", markup=False, highlight=False)
    console.print(table)
    for text in dict.fromkeys(f"{rate.model or '-'}, {rate.language}: {rate.reason}." for rate in rates if rate.reason):
        console.print(text, markup=False, highlight=False)
    for line in dict.fromkeys(_without_language(rate.signature) for rate in rates):
        console.print(f"Signature: {line}", markup=False, highlight=False, soft_wrap=True)


def _without_language(line: str) -> str:
    """The signature without the part that says which language's error rates were used: the table has a row for each."""
    return "|".join(part for part in line.split("|") if not part.startswith("rates:") or part == "rates:pooled")


def _numbers(rate: Rate) -> tuple[str, ...]:
    sure = "{:.2%}" if rate.status == "ok" else "({:.2%}?)"  # as in the report of a study
    value = "-" if rate.rate is None else sure.format(rate.rate)
    interval = "-" if rate.low is None or rate.high is None else f"{100 * rate.low:.2f} to {100 * rate.high:.2f}"
    given = round(rate.responses / rate.coverage) if rate.coverage else 0
    return value, interval, f"{rate.units:,}", f"{rate.responses:,} of {given:,}" if given else "0"
