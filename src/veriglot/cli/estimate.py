"""`veriglot estimate`: from predictions and an error profile to rates, or to a plan, as JSON, CSV and tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from veriglot.cli.command import Argument, Help, Option, Options, command
from veriglot.cli.console import Account, print_json
from veriglot.cli.inputs import find_inputs, known_tag
from veriglot.errors import UnknownNameError, UsageError
from veriglot.formats.reader import read_predictions
from veriglot.records import ErrorProfile, Estimator, Prediction, Rate, Sample
from veriglot.report.tables import Table
from veriglot.report.text_layout import by_wording, shortened
from veriglot.signatures import stated_threshold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.pipeline.engine import Description
    from veriglot.rates.plan import Plan
    from veriglot.study.config import StudyEntry
    from veriglot.study.rates import Counted, Gold, Judging, Tallying


_CELLS_SHOWN = 12  # models and languages that a reason names


class EstimateOptions(Options):
    """The options of `veriglot estimate`."""

    predictions: str = Argument(
        ..., "PREDICTIONS", "Predictions of one detector: JSON lines or Parquet; - is standard input."
    )
    samples: tuple[str, ...] = Option(
        ...,
        "Samples that the predictions are of: a file in any readable format, or a folder; may be repeated."
        " `generator.name` says whose responses they are, `meta.query` which of them answer one query.",
        "FILE",
    )
    profile: str | None = Option(
        None,
        "Error profile of the detector, as `veriglot evaluate -o` writes it. Default: none, which only raw"
        " and ppi can do without.",
        "FILE",
    )
    estimator: tuple[str, ...] = Option(
        (), "label-shift, paper, raw, em or ppi; may be repeated. Default: label-shift, or ppi with --labels.", "NAME"
    )
    labels: tuple[str, ...] = Option(
        (), "Labelled samples by the ids of some of the responses, drawn at random, for ppi; may be repeated.", "FILE"
    )
    annotator: str | None = Help(None, "Default: the only annotator's.")
    pooled: bool = Option(
        False,
        "In languages that the profile does not hold, or holds fewer than 8 texts of, use its error rates"
        " over all of its languages. Default: such rates are not made, or unreliable.",
    )
    by_seed: bool = Option(False, "Also give one rate for each seed of the responses. Default: all seeds as one.")
    plan: float | None = Option(
        None,
        "Instead of rates, say how many responses or how many labels it would take for intervals of at most"
        " this share to either side, above 0 and below 1 (such as 0.01). Default: no plan.",
        "SHARE",
    )
    unit: str | None = Help(None, "Default: the profile's, or word.")
    confidence: float = Option(0.95, "Level of the intervals, between 0 and 1.", "P")
    seed: int = 0
    draws: int = Option(4000, "Number of draws behind the intervals.", "N", min=100)
    language: str | None = Help(None, "Default: the one that was detected.")
    columns: tuple[str, ...] = ()
    to: Literal["table", "json", "csv"] | None = Help(None, "Default: table.")
    json: bool = Help(False, "The same as --to json.")
    quiet: bool = False

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """Those that are named, each once, or the usual one."""
        known = [str(each) for each in Estimator]
        for name in self.estimator:
            if name not in known:
                raise UnknownNameError("estimator", name, known)
        estimators = tuple(dict.fromkeys(Estimator(name) for name in self.estimator))
        estimators = estimators or ((Estimator.PPI,) if self.labels else (Estimator.LABEL_SHIFT,))
        if Estimator.PPI in estimators and not self.labels:
            raise UsageError("The estimator ppi needs labels of some of the responses.", "Give them with --labels.")
        return estimators


@command
def estimate(options: EstimateOptions) -> int:
    """Estimate how often models hallucinate, per model and language, with intervals.

    veriglot detect answers.jsonl -o marked.jsonl --words

    veriglot evaluate labelled.jsonl -o profile.json

    veriglot estimate marked.jsonl --samples answers.jsonl --profile profile.json

    A rate is the share of units that the evidence does not support. Where the data cannot support a number, its status
    is `unreliable` and the reason says why.
    """
    from veriglot.study.config import StudyEntry, read_profile
    from veriglot.study.rates import Gold, Judging

    if options.json and options.to not in {None, "json"}:
        raise UsageError(f"--json and --to {options.to} exclude each other.")
    estimators = options.estimators
    for name, value in (("--confidence", options.confidence), ("--plan", options.plan)):
        if value is not None and not 0.0 < value < 1.0:
            raise UsageError(f"{name} is a share above 0 and below 1, and not {value}.")
    profile = read_profile(Path(options.profile)) if options.profile is not None else None
    _check_profile(options, profile, estimators)
    study = StudyEntry(
        unit=options.unit or (profile.unit if profile is not None else "word"),
        estimator=estimators[0],
        confidence=options.confidence,
        seed=options.seed,
        draws=options.draws,
        pooled=options.pooled,
    )
    gold = Gold.read(list(map(Path, options.labels)), unit=study.unit, annotator=options.annotator)
    account = Account(quiet=options.quiet)
    seen = _Predictions(options.predictions)
    tallying = _tally(options, study, seen, account, ids=bool(gold))
    unused = gold.unused(tallying.groups.values())
    if unused:
        account.warn(f"{unused:,} of {len(gold.counts):,} labelled responses are none of those that were judged.")
    judging = Judging(seen.description(profile), profile, study)
    _check_detector(profile, seen)
    cells = list(_cells(tallying, judging, gold))
    form = "json" if options.json else options.to
    if options.plan is not None:
        plans = [_planned(cell, estimators[0], options.plan, options.confidence) for cell in cells]
        _show_plans(plans, options.plan, estimators[0], form)
    else:
        _show_rates([rate for cell in cells for rate in _rates(cell, estimators, options)], form)
    return account.close()


def _check_profile(options: EstimateOptions, profile: ErrorProfile | None, estimators: Sequence[Estimator]) -> None:
    from veriglot.rates.estimators import ESTIMATORS

    needing = [each for each in estimators if ESTIMATORS[each].needs_profile]
    if profile is None and needing:
        raise UsageError(
            f"The estimator {needing[0]} needs an error profile.",
            "Give it with --profile; `veriglot evaluate LABELLED -o profile.json` measures one.",
        )
    if profile is not None and options.unit not in {None, profile.unit}:
        raise UsageError(
            f"The profile counts {profile.unit!r}, and the rates would count {options.unit!r}.",
            f"Leave --unit out, or measure a profile with: veriglot evaluate ... --unit {options.unit}",
        )


def _check_detector(profile: ErrorProfile | None, seen: _Predictions) -> None:
    """A profile says nothing of another detector, or of the same one at another threshold."""
    if profile is None or not seen.detectors:
        return
    if seen.detectors != {profile.detector}:
        raise UsageError(
            f"The profile is of {profile.detector}, and the predictions are of {', '.join(sorted(seen.detectors))}.",
            "Measure the detector that made the predictions.",
        )
    if seen.thresholds and any(abs(each - profile.threshold) > 1e-9 for each in seen.thresholds):
        raise UsageError(
            f"The profile holds at the threshold {profile.threshold}, and the predictions were made at"
            f" {', '.join(map(str, sorted(seen.thresholds)))}.",
            "Measure the profile at that threshold: veriglot evaluate ... --threshold",
        )


class _Predictions:
    """Predictions, and what they say of how they were made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.detectors: set[str] = set()
        self._signatures: set[str] = set()

    def __iter__(self) -> Iterator[Prediction]:
        for prediction in read_predictions(self._path):
            self.detectors.add(prediction.asked)
            if prediction.signature is not None:
                self._signatures.add(prediction.signature)
            yield prediction

    @property
    def thresholds(self) -> set[float]:
        """Those that the signatures state."""
        return {each for each in map(stated_threshold, self._signatures) if each is not None}

    def description(self, profile: ErrorProfile | None) -> Description:
        """Of the detector, as far as the predictions tell."""
        from veriglot.pipeline.engine import Description

        name = "+".join(sorted(self.detectors)) or (profile.detector if profile else "none")
        threshold = next(iter(self.thresholds), profile.threshold if profile is not None else float("nan"))
        return Description(name, "", threshold, "+".join(sorted(self._signatures)))


def _tally(options: EstimateOptions, study: StudyEntry, seen: _Predictions, account: Account, *, ids: bool) -> Tallying:
    """Count every response; what has no prediction counts as not judged."""
    from veriglot.study.rates import Tallying
    from veriglot.study.responses import joined

    tallying = Tallying(study.unit, ids=ids)
    strangers = 0
    for sample, prediction in joined(_samples(options, account), seen):
        if sample is None:
            strangers += 1
            continue
        tallying.add(sample, prediction)
        if prediction is not None:
            account.add(prediction)
    if strangers:
        account.warn(f"{strangers:,} predictions belong to no sample and are left out.")
    missing = sum(group.statuses["missing"] for group in tallying.groups.values())
    if missing:
        account.warn(f"{missing:,} samples have no prediction; the coverage of the rates counts them.")
    return tallying


def _samples(options: EstimateOptions, account: Account) -> Iterator[Sample]:
    from veriglot.formats.columns import columns_from
    from veriglot.study.responses import rows_of

    tag, columns = known_tag(options.language), columns_from(options.columns)
    paths = [Path(each.path) for each in find_inputs(options.samples, skipped=account.warn, columns=options.columns)]
    return account.samples(rows_of(paths, format_name=None, language=tag, columns=columns or None))


def _cells(tallying: Tallying, judging: Judging, gold: Gold) -> Iterator[Counted]:
    """What was marked in the responses of each model in each language, without seeds of which nothing was judged."""
    from veriglot.study.rates import Counted

    def cell(key: Any) -> tuple[str, str]:
        return key.model or "", key.language

    keys = sorted(tallying.groups, key=lambda key: (*cell(key), key.seed is None, key.seed or 0))
    for _, same in groupby(keys, key=cell):
        part = list(same)
        groups = {key.seed: tallying.groups[key] for key in part}
        counted = Counted.of_groups(part[0].model, part[0].language, judging, groups, gold)
        yield replace(counted, seeds={seed: tallies for seed, tallies in counted.seeds.items() if len(tallies)})


def _rates(counted: Counted, estimators: Sequence[Estimator], options: EstimateOptions) -> Iterator[Rate]:
    from veriglot.study.rates import cell_rate, replicates

    for estimator in estimators:
        yield cell_rate([counted], estimator).rate
    if options.by_seed:
        yield from replicates([counted], estimators[0])


class _Planned(NamedTuple):
    """The plans of one model in one language; None where the data are too few to plan with."""

    model: str | None
    language: str
    responses: Plan | None
    labels: Plan | None


def _planned(cell: Counted, estimator: Estimator, half_width: float, confidence: float) -> _Planned:
    from veriglot.rates.estimators import ESTIMATORS
    from veriglot.rates.plan import plan_sample_size

    tallies, labels = cell.joined, cell.labels
    profile, _ = cell.judging.of(cell.language)
    method = ESTIMATORS[estimator]
    if (profile is None and method.needs_profile) or (labels is None and method.needs_labels):
        return _Planned(cell.model, cell.language, None, None)
    size = partial(
        plan_sample_size, tallies, profile, half_width, estimator=estimator, confidence=confidence, labels=labels
    )
    more = None if estimator is Estimator.RAW else size(of="labels")
    return _Planned(cell.model, cell.language, size(), more)


def _show_plans(plans: Sequence[_Planned], half_width: float, estimator: Estimator, form: str | None) -> None:
    if form == "json":
        print_json([{**plan._asdict(), "estimator": str(estimator)} for plan in plans])
        return
    if form == "csv":
        heads = ("model", "language", "estimator", "half_width", "now", "responses", "labelled")
        rows = [
            (
                plan.model,
                plan.language,
                str(estimator),
                half_width,
                plan.responses and plan.responses.now,
                *(need and need.responses for need in (plan.responses, plan.labels)),
            )
            for plan in plans
        ]
        sys.stdout.write(Table("", heads, rows).to_csv())
        return
    plan_rows = [
        (
            plan.model or "-",
            plan.language,
            f"{plan.responses.now:.2%}" if plan.responses else "-",
            *map(_needed, (plan.responses, plan.labels)),
        )
        for plan in plans
    ]
    title = f"Intervals of at most {half_width:.2%} to either side, by {estimator}"
    Table(title, ("model", "language", "half-width now", "responses needed", "or labelled"), plan_rows, lead=2).print()
    print(
        "Responses: with the labels that there are. Labelled: with the responses that there are. Both count those that"
        " there are already. 'never' says which half-width remains however many are added."
    )


def _needed(plan: Plan | None) -> str:
    if plan is None:
        return "too few to say"
    if plan.responses is None:
        return f"never: {plan.limit:.2%}"
    return f"{plan.responses:,}"


def _show_rates(rates: Sequence[Rate], form: str | None) -> None:
    import msgspec

    if form == "json":
        sys.stdout.buffer.write(b"[\n" + b",\n".join(map(msgspec.json.encode, rates)) + b"\n]\n")
        sys.stdout.buffer.flush()
    elif form == "csv":
        fields = Rate.__struct_fields__
        rows = [[getattr(rate, name) for name in fields] for rate in rates]
        sys.stdout.write(Table("", fields, rows).to_csv())
    else:
        _print_rates(rates)


def _print_rates(rates: Sequence[Rate]) -> None:
    """Percentages with intervals; what is unreliable is said beside the number, and why below the table."""
    names = {
        "model": [rate.model or "-" for rate in rates],
        "language": [rate.language for rate in rates],
        "estimator": [str(rate.estimator) for rate in rates],
        "seed": ["all" if rate.seed is None else str(rate.seed) for rate in rates],
    }
    # A column that says the same of all says it once, above.
    shown = [name for name, values in names.items() if name == "language" or len(set(values)) > 1]
    for name in ("model", "estimator"):
        if name not in shown and rates and names[name][0] != "-":
            print(f"{name}: {names[name][0]}")
    heads = (*shown, "rate", "interval, %", f"{rates[0].unit if rates else 'unit'}s", "judged", "")
    rows = [
        (*(names[name][index] for name in shown), *_numbers(rate), "" if rate.status == "ok" else "unreliable")
        for index, rate in enumerate(rates)
    ]
    Table("", heads, rows, lead=len(shown)).print()
    for line in _reasons(rates):
        print(line)
    for line in dict.fromkeys(_without_language(rate.signature) for rate in rates):
        print(f"Signature: {line}")
    if any(rate.status == "unreliable" for rate in rates):
        print("\nunreliable: the data do not support the number; do not quote it.")


def _reasons(rates: Sequence[Rate]) -> Iterator[str]:
    """Why rates are unreliable, each reason once with its cells."""
    several = len({rate.model for rate in rates}) > 1
    reasons = (
        (reason, f"{rate.model or '-'} in {rate.language}" if several else rate.language)
        for rate in rates
        for reason in (rate.reason.split("; ") if rate.reason else ())
    )
    for reason, cells in by_wording(reasons).items():
        yield f"{shortened(list(dict.fromkeys(cells)), _CELLS_SHOWN)}: {reason}."


def _without_language(line: str) -> str:
    """The signature without the part that says which language's error rates were used: the table has a row for each."""
    return "|".join(part for part in line.split("|") if not part.startswith("rates:") or part == "rates:pooled")


def _numbers(rate: Rate) -> tuple[str, ...]:
    sure = "{:.2%}" if rate.status == "ok" else "({:.2%}?)"  # as in the report of a study
    value = "-" if rate.rate is None else sure.format(rate.rate)
    interval = "-" if rate.low is None or rate.high is None else f"{100 * rate.low:.2f} to {100 * rate.high:.2f}"
    given = round(rate.responses / rate.coverage) if rate.coverage else 0
    return value, interval, f"{rate.units:,}", f"{rate.responses:,} of {given:,}" if given else "0"
