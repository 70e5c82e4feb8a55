"""What `veriglot detect` does once its words are understood."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from veriglot.cli.inputs import (
    STDIN,
    Input,
    count_rows,
    find_inputs,
    jobs_for,
    known_tag,
    pair_sample,
    read_text,
    rows_of,
)
from veriglot.cli.outputs import finisher, kind_of, output_names, show
from veriglot.cli.progress import Bar
from veriglot.cli.recipe import Level, detector_recipe
from veriglot.cli.summary import Account
from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from veriglot.records import Prediction, Sample
    from veriglot.run import Engine, Errand, FailedRow, Ledger, Recipe

    _Rows = Callable[[], Iterable[Sample | FailedRow]]

__all__ = ["Request", "View", "carry_out"]

View = Literal["terminal", "json", "html"]


@dataclass(frozen=True)
class Request:
    """The options of `veriglot detect`, under the names that its help gives them."""

    inputs: Sequence[str]
    evidence: Sequence[str]
    evidence_text: Sequence[str]
    response: str | None
    response_text: str | None
    question: str | None
    language: str | None
    format: str | None
    detector: str
    settings: Sequence[str]
    calibration: str | None
    threshold: float | None
    words: bool
    level: Level
    output: str | None
    output_dir: str | None
    view: View | None
    jobs: int | None
    batch_size: int
    stop: bool
    restart: bool
    quiet: bool

    @property
    def is_pair(self) -> bool:
        """Whether one response and its evidence are given, rather than files of samples."""
        return any((self.evidence, self.evidence_text, self.response is not None, self.response_text is not None))

    @property
    def recipe(self) -> Recipe:
        """How to make the detector."""
        return detector_recipe(
            self.detector,
            threshold=self.threshold,
            words=self.words,
            level=self.level,
            settings=self.settings,
            calibration=self.calibration,
        )

    @property
    def title(self) -> str:
        """Heading of the HTML view."""
        return f"{', '.join(self.inputs) or self.response or 'Response'}: {self.detector}"


def carry_out(request: Request) -> int:
    """Do it.

    Returns:
        The exit code: 0, or 3 where rows failed.

    Raises:
        VeriglotError: anything that ends the run.
    """
    if sum(given is not None for given in (request.output, request.output_dir, request.view)) > 1:
        raise UsageError("--output, --output-dir and --view exclude each other.")
    account = Account(quiet=request.quiet)
    if request.is_pair:
        return _pair(request, account)
    if not request.inputs:
        raise UsageError(
            "There is nothing to read.",
            remedy="Name files or folders, - for standard input, or --evidence and --response.",
        )
    if request.question is not None:
        raise UsageError("--question belongs to --response; a file of samples holds its own questions.")
    inputs = find_inputs(request.inputs, format_name=request.format, skipped=account.warn)
    known_tag(request.language)  # a wrong name is to be known before the detector loads
    with _engine(request, inputs) as engine:
        if request.output is None and request.output_dir is None:
            _to_stdout(request, inputs, engine, account)
        else:
            _to_files(request, inputs, engine, account)
    return account.close()


def _engine(request: Request, inputs: Sequence[Input]) -> Engine:
    from veriglot.run import Engine

    return Engine(request.recipe, jobs=jobs_for(inputs, request.jobs), batch_size=request.batch_size)


def _pair(request: Request, account: Account) -> int:
    from veriglot.run import Engine

    sample = _pair_sample(request)
    with Engine(request.recipe) as engine:
        pairs = list(engine.run([sample]))
    ((_, prediction),) = pairs
    assert prediction is not None
    account.add(prediction)
    if request.output_dir is not None:
        raise UsageError("--output-dir is for files of samples; name the output of a pair with --output.")
    if request.output is None or request.output == STDIN:
        show([(sample, prediction)], request.view or _view_of_a_pair(request), request.title)
    else:
        _write_pair(sample, prediction, Path(request.output), request.title)
    return account.exit_code


def _view_of_a_pair(request: Request) -> View:
    return "terminal" if sys.stdout.isatty() and request.output is None else "json"


def _pair_sample(request: Request) -> Sample:
    if (request.response is None) == (request.response_text is None):
        raise UsageError("A pair has one response: give either --response or --response-text.")
    if request.inputs and not request.evidence:
        raise UsageError(
            f"{request.inputs[0]} stands beside --response but is no --evidence.",
            remedy="Put --evidence before the files that the response is held against.",
        )
    if request.format is not None:
        raise UsageError("--format is for files of samples; a pair is plain text.")
    files = [*request.evidence, *request.inputs]  # so that `--evidence notes/*.txt` means all of them
    if request.output is not None and request.output in {*files, request.response}:
        raise UsageError(f"{request.output} is an input and would be overwritten.", remedy="Name another output.")
    if [*files, request.response].count(STDIN) > 1:
        raise UsageError("Standard input can be read only once.")
    evidence = [*(read_text(path) for path in files), *request.evidence_text]
    response = request.response_text if request.response is None else read_text(request.response)
    assert response is not None
    return pair_sample(
        evidence, response, id_="response", question=request.question, language=known_tag(request.language)
    )


def _write_pair(sample: Sample, prediction: Prediction, output: Path, title: str) -> None:
    kind = kind_of(output)
    if kind == "html":
        from veriglot.report import write_html

        write_html([(sample, prediction)], output, title=title)
    elif kind == "parquet":
        from veriglot.formats import write_predictions

        write_predictions([prediction], output, format="parquet")
    else:
        from veriglot.records import encode
        from veriglot.run.manifest import write_whole

        write_whole(output, encode(prediction) + b"\n")


def _rows(
    request: Request, inputs: Sequence[Input], every: Sequence[Input], account: Account | None
) -> Callable[[], Iterator[Sample | FailedRow]]:
    """Opens the rows of `inputs`; without an account they are read a second time and repairs are not counted again."""
    from veriglot.formats import Report, SeenIds

    report = Report() if account is None else account.report
    tag = known_tag(request.language)

    def rows() -> Iterator[Sample | FailedRow]:
        seen = SeenIds()  # a prediction is told from others of its output by its id alone
        for one in inputs:
            yield from rows_of(
                one, format_name=request.format, language=tag, report=report, alone=len(every) == 1, seen=seen
            )

    return rows


def _to_stdout(request: Request, inputs: Sequence[Input], engine: Engine, account: Account) -> None:
    from veriglot.records import Sample

    view = request.view or "json"
    bar_fits = not request.quiet and not sys.stdout.isatty()  # otherwise it would stand among the results

    def pairs() -> Iterator[tuple[Sample, Prediction]]:
        with Bar(shown=bar_fits, total=lambda: count_rows(inputs)) as bar:
            for row, prediction in engine.run(_rows(request, inputs, inputs, account)()):
                bar.advance()
                if isinstance(row, Sample):
                    assert prediction is not None
                    account.add(prediction)
                    yield row, prediction
                elif request.stop:
                    raise row.as_error()
                else:
                    account.add_failed(row, kept=False)

    show(pairs(), view, request.title)


def _to_files(request: Request, inputs: Sequence[Input], engine: Engine, account: Account) -> None:
    from veriglot.records import Sample
    from veriglot.run import carry

    shares = _shares(request, inputs)
    errands = [
        _errand(request, output, share, engine, _rows(request, share, inputs, account)) for output, share in shares
    ]
    with Bar(shown=not request.quiet, total=lambda: count_rows(inputs)) as bar:

        def seen(row: Sample | FailedRow, prediction: Prediction | None) -> None:  # noqa: ARG001
            bar.advance()
            if not isinstance(row, Sample):
                account.add_failed(row, kept=True)

        try:
            tally = carry(errands, engine, stop=request.stop, seen=seen)
        except KeyboardInterrupt:
            account.warn("Interrupted. What is done is kept: the same command goes on from there.")
            raise
    account.take(tally, [errand.ledger for errand in errands])


def _shares(request: Request, inputs: Sequence[Input]) -> list[tuple[Path, Sequence[Input]]]:
    """Each output with the inputs whose rows it gets."""
    if request.output is not None:
        return [(Path(request.output), inputs)]
    assert request.output_dir is not None
    folder = Path(request.output_dir)
    names = output_names([one.place for one in inputs])
    return [(folder / name, [one]) for name, one in zip(names, inputs, strict=True)]


def _errand(request: Request, output: Path, inputs: Sequence[Input], engine: Engine, rows: _Rows) -> Errand:
    from veriglot.run import Errand

    again: _Rows = _rows(request, inputs, inputs, None)
    if kind_of(output) == "html" and any(one.path == STDIN for one in inputs):
        from veriglot.cli.spool import Spool

        spool = Spool()  # the page shows the samples, and standard input cannot be read twice
        return Errand(lambda: spool.through(rows()), _ledger(request, output, inputs, engine, spool.samples))
    return Errand(rows, _ledger(request, output, inputs, engine, again))


def _ledger(request: Request, output: Path, inputs: Sequence[Input], engine: Engine, again: _Rows) -> Ledger:
    from veriglot.run import Ledger

    return Ledger(
        output,
        inputs=[one.path for one in inputs],
        signature=engine.description.signature,
        options={
            "--detector": request.detector,
            "--threshold": engine.description.threshold,
            "--words": request.words,
            **({} if request.level == "response" else {"--level": request.level}),
            "--language": known_tag(request.language),
            "--format": request.format,
        },
        finish=finisher(kind_of(output), again, request.title),
        restart=request.restart,
    )
