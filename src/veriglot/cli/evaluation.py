"""The work of `veriglot evaluate`: labelled samples judged or joined with predictions, then measured."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from veriglot.bench.evaluation import Evaluation, Evaluator, Settings, measured
from veriglot.cli.detectors import Calibrating, detector_recipe, plain, show_calibration
from veriglot.cli.inputs import STDIN, Input, count_rows, find_inputs, jobs_for, known_tag, rows_of
from veriglot.cli.progress import Account, Bar
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.metrics.counts import Counts, CountsFile, Coverage
from veriglot.records import Prediction, Sample, encode
from veriglot.records.taxonomy import taxonomy
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.detectors.calibration import Calibration
    from veriglot.pipeline.engine import Engine
    from veriglot.storage.checkpoint import FailedRow
    from veriglot.training.calibration import Method

__all__ = ["Request", "carry_out"]

LEVELS = ("unit", "category", "type", "span", "char", "fact", "sentence", "response")


@dataclass(frozen=True)
class Request:
    """The options of `veriglot evaluate`, under the names that its help gives them."""

    data: Sequence[str]
    detector: str
    settings: Sequence[str]
    calibration: str | None
    calibrate: str | None
    curve: Method
    predictions: str | None
    unit: str
    threshold: float | None
    annotator: str | None
    taxonomy: str | None
    levels: tuple[str, ...] | None
    seed: int
    resamples: int
    output: str | None
    counts: str | None
    json: bool
    language: str | None
    format: str | None
    jobs: int | None
    stop: bool
    quiet: bool


def carry_out(request: Request) -> int:
    """Measure, show and write; returns the exit code.

    Raises:
        VeriglotError: what went wrong.
    """
    for name in request.levels or ():
        if name not in LEVELS:
            raise UnknownNameError("level", name, LEVELS)
    if request.taxonomy is not None:
        taxonomy(request.taxonomy)
    known_tag(request.language)
    stored = [name for name in request.data if name != STDIN and CountsFile.is_at(Path(name))]
    if stored and len(stored) < len(request.data):
        raise UsageError("Counts and samples cannot be given together.", remedy="Evaluate the samples first.")
    if stored:
        if request.calibrate:
            raise UsageError("Counts hold no confidence of each word.", remedy="Give --calibrate with the samples.")
        _show(request, _from_counts(request))
        return 0
    account = Account(quiet=request.quiet)
    _refuse_to_calibrate_predictions(request)
    calibrating = Calibrating(request.calibrate, method=request.curve, annotator=request.annotator, seed=request.seed)
    evaluation = _measured(request, account, calibrating)
    about = evaluation.stored.about
    made = about.get("made")
    _show(request, evaluation, calibrating.fitted(str(about["detector"]), str(made) if made else None))
    return account.close()


def _refuse_to_calibrate_predictions(request: Request) -> None:
    if request.calibration is not None and request.predictions is not None:
        raise UsageError(
            "--calibration calibrates a detector that is asked, and --predictions asks none.",
            remedy="Give it to veriglot detect when the predictions are made.",
        )


def _from_counts(request: Request) -> Evaluation:
    parts = [CountsFile.load(Path(name)) for name in request.data]
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
    joined = CountsFile(Counts.join([part.counts for part in parts]), coverage, about)
    return measured(joined, seed=request.seed, resamples=request.resamples, levels=request.levels)


def _measured(request: Request, account: Account, calibrating: Calibrating) -> Evaluation:
    inputs = find_inputs(request.data, format_name=request.format, skipped=account.warn)
    if request.predictions is not None:
        source = _Predictions(request)
        evaluator = Evaluator(source.settings)
        with Bar(shown=not request.quiet, total=lambda: count_rows(inputs)) as bar:
            for row in _rows(request, inputs, account):
                prediction = source.take(row.id)
                evaluator.add(row, prediction)
                calibrating.see(row, prediction)
                if prediction is not None:
                    account.add(prediction)
                bar.advance()
        source.warn(account)
    else:
        evaluator = _asked(request, inputs, account, calibrating)
    return evaluator.result(seed=request.seed, resamples=request.resamples, levels=request.levels)


def _asked(request: Request, inputs: Sequence[Input], account: Account, calibrating: Calibrating) -> Evaluator:
    """Ask a detector about every sample."""
    recipe = detector_recipe(
        request.detector,
        threshold=request.threshold,
        words=True,
        settings=request.settings,
        calibration=request.calibration,
    )
    from veriglot.pipeline.engine import Engine

    with Engine(recipe, jobs=jobs_for(inputs, request.jobs)) as engine:
        evaluator = Evaluator(_settings(request, engine))
        with Bar(shown=not request.quiet, total=lambda: count_rows(inputs)) as bar:
            for row, prediction in engine.run(_rows(request, inputs, account)):
                assert isinstance(row, Sample)
                evaluator.add(row, prediction)
                calibrating.see(row, prediction)
                if prediction is not None:
                    account.add(prediction)
                bar.advance()
    return evaluator


def _settings(request: Request, engine: Engine) -> Settings:
    made = engine.description
    return Settings(
        detector=made.name,
        detector_signature=made.signature,
        detector_taxonomy=made.taxonomy,
        threshold=float(made.threshold),
        unit=request.unit,
        annotator=request.annotator,
        taxonomy=request.taxonomy,
    )


def _rows(request: Request, inputs: Sequence[Input], account: Account) -> Iterator[Sample]:
    """The samples of all inputs; what cannot be read is told and kept, or ends the run."""
    from veriglot.formats.reader import SeenIds

    tag = known_tag(request.language)
    seen = SeenIds() if request.predictions is not None else None  # which are joined by id
    beside = request.output or request.counts
    failures = Path(f"{beside}.failed.jsonl") if beside else None
    if failures is not None:
        failures.unlink(missing_ok=True)
    for file in inputs:
        rows = rows_of(
            file,
            format_name=request.format,
            language=tag,
            report=account.report,
            alone=len(inputs) == 1,
            seen=seen,
        )
        for row in rows:
            if isinstance(row, Sample):
                yield row
            elif request.stop:
                raise row.as_error()
            else:
                _keep(row, failures)
                account.add_failed(row, written=failures is not None)


def _keep(row: FailedRow, failures: Path | None) -> None:
    if failures is not None:
        with failures.open("ab") as file:
            file.write(encode(row) + b"\n")


class _Predictions:
    """Predictions of a file, by id, and what they say of how they were made."""

    def __init__(self, request: Request) -> None:
        from veriglot.formats.reader import read_predictions

        assert request.predictions is not None
        self._path = request.predictions
        self._waiting: dict[str, Prediction] = {}
        for prediction in read_predictions(request.predictions):
            if prediction.id in self._waiting:
                raise InputError(f"the id {prediction.id!r} occurs twice", path=self._path, field="id")
            self._waiting[prediction.id] = prediction
        predictions = list(self._waiting.values())
        stated = {_part(prediction, "threshold") for prediction in predictions}
        threshold = request.threshold
        if threshold is None and len(stated) == 1:
            threshold = _share(stated.pop())
        if threshold is None and request.output is not None:
            raise UsageError(
                "An error profile holds at one threshold, and these predictions do not say theirs.",
                remedy="Give it with --threshold.",
            )
        self._spans_alone = 0
        if request.threshold is not None:
            self._refuse_to_lower(predictions, request.threshold)
            self._spans_alone = sum(bool(prediction.spans) and prediction.words is None for prediction in predictions)
        made = {prediction.signature for prediction in predictions}
        self.settings = Settings(
            detector="+".join(sorted({prediction.asked for prediction in predictions})) or "none",
            detector_signature=made.pop() if len(made) == 1 else None,
            detector_types=frozenset(s.type for p in predictions for s in p.spans or () if s.type is not None),
            threshold=threshold,
            unit=request.unit,
            annotator=request.annotator,
            taxonomy=request.taxonomy,
            refilter=request.threshold is not None,
        )

    def _refuse_to_lower(self, predictions: Sequence[Prediction], threshold: float) -> None:
        """Spans between a lower threshold and the one that made the predictions are not in them; words would be."""
        for prediction in predictions:
            made_at = _share(_part(prediction, "threshold"))
            if (
                prediction.spans is not None
                and prediction.words is None
                and made_at is not None
                and threshold < made_at
            ):
                raise UsageError(
                    f"--threshold {threshold} is below {made_at}, at which {self._path} was made without words: what"
                    " lies between the two is not in it.",
                    remedy="Make the predictions again with --words, or at this threshold.",
                )

    def take(self, id_: str) -> Prediction | None:
        """The prediction of a sample; None where the file has none."""
        return self._waiting.pop(id_, None)

    def warn(self, account: Account) -> None:
        """Say how many predictions belong to no sample, and where the threshold is held against spans alone."""
        if self._waiting:
            account.warn(f"{len(self._waiting):,} predictions of {self._path} belong to no sample of the data.")
        if self._spans_alone:
            account.warn(
                f"{self._spans_alone:,} predictions carry no words: at --threshold spans are kept or dropped whole,"
                " where the detector would mark word by word."
            )


def _part(prediction: Prediction, key: str) -> str | None:
    """One part of a prediction's signature."""
    for part in (prediction.signature or "").split("|"):
        name, _, value = part.partition(":")
        if name == key:
            return value
    return None


def _share(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _show(request: Request, evaluation: Evaluation, calibration: Calibration | None = None) -> None:
    profile = evaluation.profile() if request.output else None
    if request.counts:
        evaluation.stored.save(Path(request.counts))
    if profile is not None and request.output:
        Path(request.output).write_bytes(encode(profile) + b"\n")
    if request.json:
        sys.stdout.buffer.write(msgspec.json.encode(_plain(evaluation, calibration)) + b"\n")
        sys.stdout.buffer.flush()
        return
    from veriglot.cli.tables import show_figures as show

    show(evaluation, request.levels)
    if calibration is not None:
        show_calibration(calibration, str(request.calibrate))


def _plain(evaluation: Evaluation, calibration: Calibration | None) -> dict[str, object]:
    rows = {
        tag: [row._asdict() for row in table]
        for tag, table in evaluation.reliability().items()
        if any(r.units for r in table)
    }
    coverage = {tag: {**msgspec.structs.asdict(row), "share": row.share} for tag, row in evaluation.coverage.items()}
    return {
        "signature": evaluation.signature,
        "about": evaluation.stored.about,
        "notes": evaluation.notes,
        "coverage": coverage,
        "figures": [msgspec.structs.asdict(figure) for figure in evaluation.figures],
        "reliability": rows,
        **({} if calibration is None else {"calibration": plain(calibration)}),
    }
