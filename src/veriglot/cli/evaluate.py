"""`veriglot evaluate`: measure a detector against labels."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from veriglot.cli.command import Options, command
from veriglot.cli.console import Account, ProgressBar, print_json
from veriglot.cli.detectors import detector_recipe, show_measured
from veriglot.cli.inputs import STDIN, Input, count_rows, find_inputs, jobs_for, known_tag, rows_of
from veriglot.detectors.registry import uses_gpu
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.formats.reader import SeenIds
from veriglot.plugins import read_package_data
from veriglot.records import Prediction, Sample, encode
from veriglot.report.tables import Cell, Table, open_console
from veriglot.report.text_layout import by_wording, number, percent, shortened
from veriglot.signatures import digest, stated_threshold
from veriglot.storage.files import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from veriglot.bench.evaluation import Evaluation
    from veriglot.bench.evaluation import Settings as EvaluationSettings
    from veriglot.bench.predictions import Predictions
    from veriglot.detectors.calibration import Calibration
    from veriglot.metrics.estimate import MetricResult
    from veriglot.training.calibration import Rows


_LEVELS = ("unit", "category", "type", "span", "char", "fact", "sentence", "response")
_OF_SUMMARY = ("unit", "response")


class EvaluateOptions(Options):
    """The options of `veriglot evaluate`."""

    data: list[str]
    detector: str = "auto"
    set_: tuple[str, ...] = ()
    calibration: str | None = None
    calibrate: str | None = None
    curve: Literal["platt", "isotonic"] = "platt"
    predictions: tuple[str, ...] = ()
    unit: str | None = None
    threshold: float | None = None
    annotator: str | None = None
    drop_flags: tuple[str, ...] = ()
    taxonomy: str | None = None
    levels: tuple[str, ...] = ()
    seed: int = 0
    resamples: int = 1000
    output: str | None = None
    counts: str | None = None
    full: bool = False
    json: bool = False
    language: str | None = None
    format_: str | None = None
    columns: tuple[str, ...] = ()
    processes: int | None = None
    engine: Literal["local", "ray"] = "local"
    on_error: Literal["stop", "skip"] = "skip"
    quiet: bool = False

    @property
    def figures(self) -> dict[str, Any]:
        """Which figures to compute, and how to make their intervals."""
        levels = self.levels or (None if self.full or self.json else _OF_SUMMARY)
        return {"seed": self.seed, "resamples": self.resamples, "levels": levels}


@command
def evaluate(options: EvaluateOptions) -> int:
    """Measure a detector against labels: figures for each language with 95% intervals, and the error profile.

    \b
    veriglot evaluate gold.jsonl -o profile.json
    veriglot evaluate gold.jsonl --predictions marked.jsonl --unit char
    veriglot evaluate mine.jsonl --calibrate mine.json
    veriglot evaluate gold.jsonl --calibration mine.json
    veriglot evaluate gold.jsonl --config c.toml    # counts = "c.json"
    veriglot evaluate c.json --seed 2               # figures anew, without judging

    Intervals come from a bootstrap of whole texts within each language; tables show them for five or more texts. No
    figure includes samples without labels or samples that the detector did not score; the command shows how many there
    are.
    """
    from veriglot.metrics.counts import CountsFile
    from veriglot.records.taxonomy import taxonomy

    for name in options.levels:
        if name not in _LEVELS:
            raise UnknownNameError("level", name, _LEVELS)
    if options.taxonomy is not None:
        taxonomy(options.taxonomy)
    known_tag(options.language)
    stored = [name for name in options.data if name != STDIN and CountsFile.is_at(Path(name))]
    if stored and len(stored) < len(options.data):
        raise UsageError("Counts and samples cannot be given together.", "Evaluate the samples first.")
    if stored:
        if options.calibrate:
            raise UsageError("Counts hold no confidence of each word.", "Give --calibrate with the samples.")
        _finish(options, _from_counts(options), None)
        return 0
    if options.calibration is not None and options.predictions:
        raise UsageError(
            "--calibration needs a detector, and with --predictions none runs.",
            "Give it to the veriglot detect that makes the predictions.",
        )
    account = Account(quiet=options.quiet)
    confidences = None
    if options.calibrate is not None:
        from veriglot.training.calibration import Rows

        confidences = Rows(options.annotator)
    try:
        evaluation = _measured(options, account, confidences)
    except KeyboardInterrupt:
        account.warn(
            "Interrupted: nothing was saved. To be able to resume, make predictions"
            " with `veriglot detect --words -o FILE`, and evaluate them with --predictions FILE."
        )
        raise
    _finish(options, evaluation, None if confidences is None else _calibration(options, evaluation, confidences))
    return account.close()


def _calibration(options: EvaluateOptions, evaluation: Evaluation, confidences: Rows) -> Calibration:
    """Fit a calibration to the detector's confidences, and write it."""
    from veriglot.training.calibration import fit_calibration

    detector, detector_signature = str(evaluation.stored.about["detector"]), evaluation.stored.about.get("made")
    if detector.startswith("calibrated@"):
        raise UsageError("--calibrate and --calibration exclude each other.", "Leave out --calibration.")
    calibration = fit_calibration(
        confidences,
        detector=detector,
        detector_signature=str(detector_signature) if detector_signature else None,
        method=options.curve,
        seed=options.seed,
    )
    write_json(Path(options.calibrate or ""), calibration, indent=2)
    return calibration


def _from_counts(options: EvaluateOptions) -> Evaluation:
    from veriglot.bench.evaluation import measured
    from veriglot.metrics.counts import Counts, CountsFile, Coverage

    parts = [CountsFile.load(Path(name)) for name in options.data]
    coverage: dict[str, Coverage] = {}
    for part in parts:
        for tag, row in part.coverage.items():
            coverage[tag] = Coverage.total([coverage.get(tag, Coverage()), row])
    about = {
        key: value if all(part.about.get(key) == value for part in parts) else "several"
        for key, value in parts[0].about.items()
    }
    if len(parts) > 1:
        about["data"] = digest(str(part.about.get("data")) for part in parts)
    return measured(CountsFile(Counts.join([part.counts for part in parts]), coverage, about), **options.figures)


def _measured(options: EvaluateOptions, account: Account, confidences: Rows | None) -> Evaluation:
    """Judge the samples, or join them with predictions, and compute the figures."""
    from veriglot.bench.evaluation import Evaluator
    from veriglot.bench.predictions import Predictions
    from veriglot.metrics.reference import FlagFilter
    from veriglot.pipeline.ray_engine import open_engine

    inputs = find_inputs(options.data, format_name=options.format_, skipped=account.warn, columns=options.columns)
    unit, samples = _labelled(options, _samples(options, inputs, account))
    flags = FlagFilter(options.drop_flags, options.annotator)
    with ExitStack() as stack:
        pairs: Iterable[tuple[Any, Prediction | None]]
        if options.predictions:
            given = Predictions.read(*options.predictions)
            settings = _settings_of(options, given, unit)
            spans_alone = sum(bool(each.spans) and each.words is None for each in given.by_id.values())
            joined = ((sample, given.take(sample.id)) for sample in samples)
            pairs = (pair for pair in joined if flags.admits(pair[0]))
            stack.callback(_warn, options, given, spans_alone, account)
        else:
            recipe = detector_recipe(
                options.detector,
                threshold=options.threshold,
                words=True,
                settings=options.set_,
                calibration=options.calibration,
            )
            jobs, gpu = jobs_for(inputs, options.processes), options.engine == "ray" and uses_gpu(options.detector)
            engine = stack.enter_context(open_engine(options.engine, recipe, jobs=jobs, gpu=gpu, say=account.warn))
            description = engine.description
            settings = _settings(
                options,
                unit=unit,
                detector=description.name,
                detector_signature=description.signature,
                detector_taxonomy=description.taxonomy,
                threshold=float(description.threshold),
            )
            pairs = engine.run(filter(flags.admits, samples))
        evaluator = Evaluator(settings, flags)
        bar = stack.enter_context(ProgressBar(shown=not options.quiet, total=lambda: count_rows(inputs)))
        for sample, prediction in pairs:
            evaluator.add(sample, prediction)
            if confidences is not None:
                confidences.add(sample, [prediction])
            if prediction is not None:
                account.add(prediction)
            bar.advance()
        if options.predictions and not given.used:
            raise InputError(
                f"no prediction is of a sample of {', '.join(options.data)}",
                "Give the data that they were made of, by the same file name: rows without an id are called after their"
                " file and line, such as answers-12. Or give both files a column of the same ids.",
                path=", ".join(options.predictions),
            )
    result = evaluator.result(**options.figures)
    if len(inputs) > 1 and "+" in str(result.stored.about["annotator"]):
        account.warn(
            "the labels are by several people, and each row counts as a response of its own; if they labelled the same"
            " responses in files of their own, add --annotator majority"
        )
    return result


def _settings(options: EvaluateOptions, **fields: Any) -> EvaluationSettings:
    from veriglot.bench.evaluation import Settings

    return Settings(
        annotator=options.annotator,
        taxonomy=options.taxonomy,
        drop_flags=options.drop_flags,
        **fields,
    )


def _samples(options: EvaluateOptions, inputs: Sequence[Input], account: Account) -> Iterator[Sample]:
    """The samples of all inputs; unreadable rows are reported and stored, or end the run."""
    from veriglot.metrics.reference import COMBINED
    from veriglot.studio.agreement import joined

    joining = options.annotator in COMBINED and len(inputs) > 1  # texts whose ids are the same in people's files
    seen = SeenIds() if options.predictions and not joining else None  # predictions are joined by id
    beside = options.output or options.counts
    failures = Path(f"{beside}.failed.jsonl") if beside else None
    tag = known_tag(options.language)
    rows = rows_of(
        inputs, format_name=options.format_, language=tag, report=account.report, seen=seen, columns=options.columns,
        labelled=True,
    )  # fmt: skip
    samples = account.samples(rows, failures, stop=options.on_error == "stop")
    return iter(joined(samples, lambda: next(reversed(account.report.files)))) if joining else samples


_LOOKED_AT = 10_000  # maximum samples to search for labels; later the figures show what is missing


def _labelled(options: EvaluateOptions, samples: Iterator[Sample]) -> tuple[str, Iterator[Sample]]:
    """The unit to count and the samples; if none has the needed labels, this is reported before any is judged."""
    from veriglot.metrics.reference import reference, require_annotator, response_label

    start = []
    rated = False
    for sample in islice(samples, _LOOKED_AT):
        start.append(sample)
        rated |= response_label(sample, options.annotator) is not None
        if reference(sample, options.annotator) is not None:
            return options.unit or "word", chain(start, samples)
    if rated and options.calibrate:
        raise UsageError(
            "--calibrate needs marked words, but the labels are of whole responses.",
            "Mark the unsupported parts of at least 10 texts, in a column of their own (--map spans=COLUMN).",
        )
    require_annotator(options.annotator, {each.annotator for sample in start for each in sample.annotations})
    if not rated and len(start) < _LOOKED_AT:
        unused = sorted({key for sample in start for key in sample.meta})
        remedy = "Say where they are: --map label=COLUMN, or --map spans=COLUMN ([[0, 4], [9, 12]]) for marked parts."
        remedy += f" Not used: {', '.join(unused) or 'no column'}."
        raise InputError("no sample has labels", remedy, path=", ".join(options.data))
    return options.unit or ("response" if rated else "word"), chain(start, samples)


def _settings_of(options: EvaluateOptions, given: Predictions, unit: str) -> EvaluationSettings:
    """How the predictions of a file were made, as far as known."""
    threshold = given.threshold if options.threshold is None else options.threshold
    predictions = given.by_id.values()
    if options.threshold is not None:
        for prediction in predictions:
            # Spans between a lower threshold and that of the predictions are missing in them; words would not be.
            made_at = stated_threshold(prediction.signature) or 0.0
            if prediction.spans is not None and prediction.words is None and options.threshold < made_at:
                raise UsageError(
                    f"--threshold {options.threshold} is below {made_at}, at which {', '.join(options.predictions)}"
                    " was made without words: it lacks the words between the two.",
                    "Make the predictions again with --words, or at this threshold.",
                )
    signatures = {prediction.signature for prediction in predictions}
    return _settings(
        options,
        unit=unit,
        detector="+".join(given.detectors),
        detector_signature=signatures.pop() if len(signatures) == 1 else None,
        detector_types=given.types,
        threshold=threshold,
        refilter=options.threshold is not None,
    )


def _warn(options: EvaluateOptions, given: Predictions, spans_alone: int, account: Account) -> None:
    """Report how many predictions belong to no sample, and whether the threshold applies only to spans."""
    unused = len(given.unused)
    if unused and given.used:
        account.warn(f"{unused:,} predictions of {', '.join(options.predictions)} belong to no sample of the data.")
    if spans_alone and options.threshold is not None:
        account.warn(
            f"{spans_alone:,} predictions carry no words: at --threshold spans are kept or dropped whole,"
            " where the detector would mark word by word."
        )


def _finish(options: EvaluateOptions, evaluation: Evaluation, calibration: Calibration | None) -> None:
    """Show the figures, and write the requested files."""
    if options.counts:
        evaluation.stored.save(Path(options.counts))
    try:
        if options.output:  # first: the reader of standard output may close it
            Path(options.output).write_bytes(encode(evaluation.profile()) + b"\n")
    finally:
        _show(options, evaluation, calibration)


def _show(options: EvaluateOptions, evaluation: Evaluation, calibration: Calibration | None) -> None:
    if options.json:
        print_json(_plain(evaluation, calibration))
        return
    if options.full or options.levels:
        _show_figures(evaluation, options.levels)
    else:
        _show_summary(evaluation)
    if calibration is not None:
        show_measured(
            calibration.quality,
            f"Calibration of {calibration.detector} ({calibration.method}), in {options.calibrate}",
            [
                "given: the detector's own confidences; calibrated: by fits to other texts; change: their difference,"
                " on the same resamples of whole texts. 95% intervals; those of ECE are too high in small data.",
                f"After calibration, F1 of words is best from {calibration.threshold:.4f} on: the threshold of the"
                " file.",
                calibration.signature,
            ],
        )


_SHOWN = {"detector", "source", "method", "threshold", "quality", "data", "signature"}  # without curves


def _plain(evaluation: Evaluation, calibration: Calibration | None) -> dict[str, Any]:
    import msgspec
    from msgspec.structs import asdict

    rows = {
        tag: [row._asdict() for row in table]
        for tag, table in evaluation.reliability().items()
        if any(r.units for r in table)
    }
    plain = {
        "signature": evaluation.signature,
        "about": evaluation.stored.about,
        "notes": evaluation.notes,
        "coverage": {tag: {**asdict(row), "share": row.share} for tag, row in evaluation.coverage.items()},
        "figures": [asdict(figure) for figure in evaluation.figures],
        "reliability": rows,
    }
    if calibration is not None:
        fitted = msgspec.to_builtins(calibration)
        plain["calibration"] = {name: value for name, value in fitted.items() if name in _SHOWN}
    return plain


# The summary: one line per language.


# Heading, level and name of a figure; {} is the unit.
_SUMMARY = (
    ("wrong,\nmarked", "response", "recall"),
    ("right,\nmarked", "response", "fpr"),
    ("{}\nprecision", "unit", "precision"),
    ("{}\nrecall", "unit", "recall"),
    ("{}\nF1", "unit", "f1"),
)
_WIDE = 120  # minimum columns for intervals beside figures, with one line per language
_SUMMARY_LEGEND = (
    "n: responses that were labelled and scored; wrong: those that the labels mark anywhere. Wrong, marked: recall, the"
    " share of them that the detector marks anywhere. Right, marked: FPR, the share of the right ones that it marks:"
    " its false alarms. --full and --json give every figure."
)


def _show_summary(evaluation: Evaluation) -> None:
    """Print one line for each language and one for all: responses, false alarms, and units."""
    from veriglot.metrics.estimate import MEAN, POOLED

    console = open_console()
    wide = console.width >= _WIDE
    by_key = {(figure.level, figure.name, figure.language): figure for figure in evaluation.figures}
    unit, about = evaluation.counts.unit.partition(":")[0], evaluation.stored.about
    rows = []
    for tag in _shown_languages([figure.language for figure in evaluation.figures]):
        first = by_key["response", "recall", tag]
        labelled = sum(row.labelled for of, row in evaluation.coverage.items() if tag in (of, POOLED))
        counted = f"{first.n_responses:,}" + (f" of {labelled:,}" if labelled > first.n_responses else "")
        wrong = round((first.prevalence or 0.0) * first.n_responses)
        cells = [_cell(by_key[level, name, tag], beside=wide) for _, level, name in _SUMMARY]
        if tag != MEAN:
            rows.append((tag, counted, f"{wrong:,}", *cells))
    title = f"{about['detector']}, threshold {about['threshold']}, labels of {about['annotator']}"
    heads = ("language", "n", "wrong", *(head.format("token" if unit == "hf" else unit) for head, _, _ in _SUMMARY))
    Table(title, heads, rows, totals=1 if len(rows) > 1 else 0, lead=3).print(console)
    beside = _INTERVALS.replace("Under", "Beside") if wide else _INTERVALS
    print(_SUMMARY_LEGEND + (beside if any(figure.low is not None for figure in evaluation.figures) else ""))
    for note in evaluation.notes:
        print(f"Note: {note}")
    print(f"Signature: {evaluation.signature}")


def _shown_languages(tags: Iterable[str]) -> list[str]:
    """Each once; with only one language, the mean and the pooled figures would repeat it."""
    languages = list(dict.fromkeys(tags))
    return languages[:1] if len(languages) == 3 else languages


# All figures, one table per level.


_LEGEND = (
    "n: responses that were labelled and scored; scored: their share of the labelled ones. mean: over languages;"
    " pooled: all counts added. prevalence: share that the labels call unsupported; figures at one prevalence do not"
    " carry over to another."
)
_INTERVALS = (
    " Under each value: its 95% interval, by a bootstrap of whole texts. From 5 texts up, none if all resamples agree;"
    " too narrow under 30."
)
_RATES = {"precision": "precision", "recall": "recall", "F1": "f1", "FPR": "fpr"}


def _show_figures(evaluation: Evaluation, levels: Sequence[str]) -> None:
    """Print the tables of an evaluation; `levels` are the requested ones, empty for all."""
    from veriglot.metrics.estimate import POOLED

    shown = []
    unit = evaluation.counts.unit
    for layout in read_package_data(__package__, "evaluate.toml", dict[str, list[dict[str, Any]]])["tables"]:
        level, names = layout["level"], layout["figures"]
        if not levels and level == "category" and len(evaluation.counts.types) == 1:
            continue  # with one type it would repeat the binary figures
        figures = [f for f in evaluation.figures if f.level == level and f.name in names.values()]
        _print_figures(figures, layout["title"].format(unit), layout["counted"].format(unit), names)
        shown += figures
        if level == "category":
            _print_types(evaluation)
    if not levels or "unit" in levels:
        rows = [
            (f"{row.low:.3f}", f"{row.high:.3f}", f"{row.units:,}", *map(number, (row.confidence, row.positive)))
            for row in evaluation.reliability()[POOLED]
            if row.units
        ]
        heads = ("from", "below", unit, "mean confidence", "unsupported")
        if rows:
            Table(f"Confidence of units ({unit}) against labels, pooled", heads, rows).print()
    print(_LEGEND + (_INTERVALS if any(figure.low is not None for figure in shown) else ""))
    for line in (*evaluation.notes, *_reasons(shown)):
        print(f"Note: {line}")
    print(f"Signature: {evaluation.signature}")


def _print_figures(figures: Sequence[MetricResult], title: str, counted: str, names: dict[str, str]) -> None:
    if all(figure.value is None for figure in figures):
        return  # the notes have the reason
    by_key = {(figure.name, figure.language): figure for figure in figures}
    present = {head: name for head, name in names.items() if name in {each.name for each in figures}}
    rows = []
    for tag in _shown_languages(figure.language for figure in figures):
        first = by_key[next(iter(present.values())), tag]
        cells = [_cell(by_key.get((name, tag))) for name in present.values()]
        counts = (f"{first.n_responses:,}", percent(first.coverage), f"{first.n_units:,}", percent(first.prevalence))
        rows.append((tag, *counts, *cells))
    heads = ("language", "n", "scored", counted, "prevalence", *present)
    Table(title, heads, rows, totals=2 if len(rows) > 1 else 0, lead=5).print()


def _print_types(evaluation: Evaluation) -> None:
    """One row per type: one against the rest, over all languages."""
    from veriglot.metrics.estimate import MEAN, POOLED

    by_key = {(figure.level, figure.name, figure.language): figure for figure in evaluation.figures}
    rows = []
    for name in evaluation.counts.types:
        level = f"type:{name}"
        f1 = by_key.get((level, "f1", POOLED))
        if f1 is not None:
            cells = [_cell(by_key[level, measure, POOLED]) for measure in _RATES.values()]
            rows.append((name, f"{f1.n_units:,}", percent(f1.prevalence), *cells, _cell(by_key[level, "f1", MEAN])))
    if rows:
        unit = evaluation.counts.unit
        heads = ("type", unit, "prevalence", *_RATES, "mean F1")
        Table(f"Units ({unit}), each type against the rest, pooled", heads, rows).print()


def _short(value: float) -> str:
    """Two digits without the leading zero: `.34`, `-.02`, `1.0`."""
    text = f"{value:.2f}"
    return {"1.00": "1.0", "-0.00": ".00"}.get(text, text.replace("0.", ".", 1))


def _cell(figure: MetricResult | None, *, beside: bool = False) -> Cell:
    """A figure with its interval, below it or beside it."""
    from veriglot.metrics.estimate import too_few

    if figure is None or figure.value is None:
        return Cell("–")
    if figure.low is None or figure.high is None or too_few(figure.n_clusters):
        return Cell(number(figure.value))
    low, high = _short(figure.low), _short(figure.high)
    return Cell(number(figure.value), f"[{low}, {high}]" if beside else f"\n{low} {high}")


def _reasons(shown: Sequence[MetricResult]) -> Iterator[str]:
    """Why values or intervals are missing, each reason once."""
    reasons = ((each.reason, f"{each.level}.{each.name} ({each.language})") for each in shown if each.reason)
    for reason, figures in by_wording(reasons).items():
        yield f"{shortened(figures, 3)}: {reason}"
