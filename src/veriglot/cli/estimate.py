"""`veriglot estimate`: from predictions and an error profile to rates, or to a plan, as JSON, CSV and tables."""

from __future__ import annotations

import re
import sys
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from veriglot.cli.command import Options, command
from veriglot.cli.console import Account, print_json
from veriglot.cli.inputs import find_inputs, known_tag
from veriglot.errors import InputError, UsageError
from veriglot.formats.containers import Source
from veriglot.formats.labels import LABEL_PARTS
from veriglot.formats.reader import SeenIds, columns_from, read_predictions
from veriglot.records import Estimator, Prediction, Rate, Sample
from veriglot.report.tables import Table
from veriglot.report.text_layout import by_wording, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.rates.plan import Plan
    from veriglot.storage.checkpoint import FailedRow
    from veriglot.study.rates import CellCounts, ResponseCounter


_CELLS_SHOWN = 12  # maximum models and languages listed with a reason


class EstimateOptions(Options):
    """The options of `veriglot estimate`."""

    predictions: list[str]
    samples: tuple[str, ...]
    profile: str | None = None
    estimator: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    annotator: str | None = None
    pooled: bool = False
    by_seed: bool = False
    plan: float | None = None
    unit: str | None = None
    confidence: float = 0.95
    seed: int = 0
    draws: int = 4000
    language: str | None = None
    columns: tuple[str, ...] = ()
    to: Literal["table", "json", "csv"] | None = None
    json: bool = False
    quiet: bool = False


@command
def estimate(options: EstimateOptions) -> int:
    """Estimate how often models hallucinate, per model and language, with intervals.

    \b
    veriglot detect answers.jsonl -o marked.jsonl --words
    veriglot evaluate labelled.jsonl -o profile.json
    veriglot estimate marked.jsonl --samples answers.jsonl --profile profile.json

    A rate is the share of units that the evidence does not support. Where the data cannot support a number, its status
    is `unreliable` and the reason says why.
    """
    from veriglot.study.config import read_profile
    from veriglot.study.estimation import Estimation
    from veriglot.study.rates import Gold

    if options.json and options.to not in {None, "json"}:
        raise UsageError(f"--json and --to {options.to} exclude each other.")
    if options.plan is not None and not 0.0 < options.plan < 1.0:
        raise UsageError(f"--plan is a share above 0 and below 1, and not {options.plan}.")
    profile = read_profile(Path(options.profile)) if options.profile is not None else None
    settings = {name: getattr(options, name) for name in ("confidence", "seed", "draws", "pooled")}
    estimation = Estimation(options.estimator, profile, options.unit, bool(options.labels), **settings)
    unit, estimators = estimation.study.unit, estimation.estimators
    account = Account(quiet=options.quiet)
    path = ", ".join(options.labels) or None
    gold = Gold.of(_labelled(options, account), unit=unit, annotator=options.annotator, path=path)
    predictions = estimation.record_detectors(chain.from_iterable(map(read_predictions, options.predictions)))
    tallying = _tally(options, unit, predictions, account, ids=bool(gold))
    unused = gold.unused(tallying.groups.values())
    if unused:
        account.warn(f"{unused:,} of {len(gold.counts):,} labelled responses are none of those that were judged.")
    cells = list(estimation.cells(tallying, gold))
    form = "json" if options.json else options.to
    if options.plan is not None:
        plans = [_planned(cell, estimators[0], options.plan, options.confidence) for cell in cells]
        _show_plans(plans, options.plan, estimators[0], form)
    else:
        _show_rates([rate for cell in cells for rate in _rates(cell, estimators, options)], form, options.confidence)
    return account.close()


def _tally(
    options: EstimateOptions, unit: str, predictions: Iterator[Prediction], account: Account, *, ids: bool
) -> ResponseCounter:
    """Count every response; responses without a prediction count as not judged."""
    from veriglot.study.rates import ResponseCounter
    from veriglot.study.responses import joined

    tallying = ResponseCounter(unit, ids=ids)
    strangers = 0
    for sample, prediction in joined(_samples(options, account), predictions):
        if sample is None:
            strangers += 1
            continue
        tallying.add(sample, prediction)
        if prediction is not None:
            account.add(prediction)
    if strangers and not account.tally.rows:
        raise InputError("no prediction is of a sample of --samples", "Give the samples that were judged.")
    if strangers:
        account.warn(f"{strangers:,} predictions belong to no sample and are left out.")
    missing = sum(group.statuses["missing"] for group in tallying.groups.values())
    if missing:
        account.warn(f"samples without a prediction: {missing:,}; the coverage of the rates counts them.")
    return tallying


def _samples(options: EstimateOptions, account: Account) -> Iterator[Sample]:
    from veriglot.study.responses import rows_of

    tag, columns = known_tag(options.language), columns_from(options.columns)
    if options.labels and columns:  # --map also applies to --labels
        columns = {part: each for part, each in columns.items() if part not in LABEL_PARTS} | {"label": ""}
    paths = [Path(each.path) for each in find_inputs(options.samples, skipped=account.warn, columns=options.columns)]
    return account.samples(rows_of(paths, format_name=None, language=tag, columns=columns or None))


def _labelled(options: EstimateOptions, account: Account) -> Iterator[Sample | FailedRow]:
    """The rows of --labels. Columns of --map that a file lacks belong to the samples or to other labels."""
    from veriglot.study.responses import rows_of

    stated, seen = columns_from(options.columns), SeenIds()
    for file in find_inputs(options.labels, skipped=account.warn) if options.labels else ():
        path = Path(file.path)
        keys = Source(path).look().keys if path.is_file() else frozenset()
        there = {
            part: column
            for part, column in stated.items()
            if not column or not keys.isdisjoint({column, *re.split(r"\s*[+.]\s*", column)})
        }
        columns = there if any(there.values()) else None
        yield from rows_of([path], format_name=None, language=None, columns=columns, seen=seen)


def _rates(counted: CellCounts, estimators: Sequence[Estimator], options: EstimateOptions) -> Iterator[Rate]:
    from veriglot.study.rates import cell_rates, replicates

    estimates = cell_rates([counted], estimators)
    yield from (each.rate for each in estimates)
    if options.by_seed:
        yield from replicates([counted], estimators[0], estimates)


class _Planned(NamedTuple):
    """The plans of one model in one language; None if there are too few data for planning."""

    model: str | None
    language: str
    responses: Plan | None
    labels: Plan | None


def _planned(cell: CellCounts, estimator: Estimator, half_width: float, confidence: float) -> _Planned:
    from veriglot.rates.estimators import ESTIMATORS
    from veriglot.rates.plan import plan_sample_size

    tallies, labels = cell.joined, cell.labels
    profile, _ = cell.detector.of(cell.language)
    method = ESTIMATORS[estimator]
    if (profile is None and method.needs_profile) or (labels is None and method.needs_labels):
        return _Planned(cell.model, cell.language, None, None)
    size = partial(
        plan_sample_size, tallies, profile, half_width, estimator=estimator, confidence=confidence, labels=labels
    )
    return _Planned(cell.model, cell.language, size(), None if estimator is Estimator.RAW else size(of="labels"))


def _show_plans(plans: Sequence[_Planned], half_width: float, estimator: Estimator, form: str | None) -> None:
    if form == "json":
        print_json([{**plan._asdict(), "estimator": str(estimator)} for plan in plans])
        return
    if form == "csv":
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
        sys.stdout.write(Table.named("", "model language estimator half_width now responses labelled", rows).to_csv())
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
        "Responses: needed with the present labels. Labelled: needed with the present responses. Both include those"
        " that you have. 'never' gives the half-width that remains however many you add."
    )


def _needed(plan: Plan | None) -> str:
    if plan is None:
        return "too few to say"
    if plan.responses is None:
        return f"never: {plan.limit:.2%}"
    return f"{plan.responses:,}"


def _show_rates(rates: Sequence[Rate], form: str | None, confidence: float) -> None:
    """Percentages with intervals; contradictions are above the table, other reasons of unreliable rates below."""
    import msgspec

    from veriglot.study.rates import contradictions

    if form == "json":
        sys.stdout.buffer.write(b"[\n" + b",\n".join(map(msgspec.json.encode, rates)) + b"\n]\n")
        sys.stdout.buffer.flush()
        return
    if form == "csv":
        fields = Rate.__struct_fields__
        sys.stdout.write(Table("", fields, [[getattr(rate, name) for name in fields] for rate in rates]).to_csv())
        return
    against = list(_reasons(rates, contradictions))
    for line in against:
        print(f"Contradiction: {line}")
    if against:
        print()
    names = {
        "model": [rate.model or "-" for rate in rates],
        "language": [rate.language for rate in rates],
        "estimator": [str(rate.estimator) for rate in rates],
        "seed": ["all" if rate.seed is None else str(rate.seed) for rate in rates],
    }
    # A column with the same value in all rows is shown once, above.
    shown = [name for name, values in names.items() if name == "language" or len(set(values)) > 1]
    for name in ("model", "estimator"):
        if name not in shown and rates and names[name][0] != "-":
            print(f"{name}: {names[name][0]}")
    unit = f"{rates[0].unit if rates else 'unit'}s"
    heads = (*shown, "rate", "interval, %", unit, "judged", "")
    rows = [
        (*(names[name][index] for name in shown), *_numbers(rate), "" if rate.status == "ok" else "unreliable")
        for index, rate in enumerate(rates)
    ]
    title = f"Rate: share of {unit} that the evidence does not support, with its {100 * confidence:g}% interval"
    Table(title, heads, rows, lead=len(shown)).print()
    for line in _reasons(rates, lambda rate: rate.reason.split("; ") if rate.reason else []):
        if line not in against:
            print(line)
    for line in dict.fromkeys(
        re.sub(r"\|(rates:(?!pooled\b)|notes:(drift|ppi):)[^|]*|,drift:[^|]*", "", rate.signature) for rate in rates
    ):
        print(f"Signature: {line}")
    if any(rate.status == "unreliable" for rate in rates):
        print("\nunreliable: the data do not support the number; do not quote it.")


def _reasons(rates: Sequence[Rate], reasons_of: Callable[[Rate], Sequence[str]]) -> Iterator[str]:
    """The reasons of unreliable rates, each once with its cells."""
    several = len({rate.model for rate in rates}) > 1
    reasons = (
        (reason, f"{rate.model or '-'} in {rate.language}" if several else rate.language)
        for rate in rates
        for reason in reasons_of(rate)
    )
    for reason, cells in by_wording(reasons).items():
        yield f"{shortened(list(dict.fromkeys(cells)), _CELLS_SHOWN)}: {reason}."


def _numbers(rate: Rate) -> tuple[str, ...]:
    sure = "{:.2%}" if rate.status == "ok" else "({:.2%}?)"  # as in a study's report
    value = "-" if rate.rate is None else sure.format(rate.rate)
    interval = "-" if rate.low is None or rate.high is None else f"{100 * rate.low:.2f} to {100 * rate.high:.2f}"
    given = round(rate.responses / rate.coverage) if rate.coverage else 0
    return value, interval, f"{rate.units:,}", f"{rate.responses:,} of {given:,}" if given else "0"
