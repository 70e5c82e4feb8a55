"""`veriglot detect`: mark what the evidence does not support, on the terminal, as files, or as a page."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veriglot.cli.command import Help, command
from veriglot.cli.detectors import Level, detector_recipe
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
from veriglot.cli.options import (
    OUTPUT_FORMAT,
    BatchSize,
    CalibrationFile,
    DetectorName,
    DetectorSettings,
    InputFormat,
    Json,
    Language,
    OnError,
    OptionalOutput,
    OptionalProcesses,
    Overwrite,
    Quiet,
    Threshold,
)
from veriglot.cli.progress import Account, Bar
from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import Sample, decode_json, encode, sample_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import PurePath

    from veriglot.pipeline.engine import Engine, OutputJob, Recipe
    from veriglot.records import Prediction
    from veriglot.storage.checkpoint import Checkpoint, FailedRow

__all__ = ["detect"]


@command
def detect(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...",
            help="Files of samples in any readable format, folders of such files, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            "--evidence",
            metavar="FILE",
            help="Text file that the response is held against; may be repeated, and arguments after it count as more"
            " of them, so that --evidence notes/*.txt works. - is standard input. Default: none.",
        ),
    ] = None,
    evidence_text: Annotated[
        list[str] | None,
        typer.Option(
            "--evidence-text", metavar="TEXT", help="Evidence given in place; may be repeated. Default: none."
        ),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option("--response", metavar="FILE", help="Text file to judge; - is standard input. Default: none."),
    ] = None,
    response_text: Annotated[
        str | None,
        typer.Option("--response-text", metavar="TEXT", help="Response to judge, given in place. Default: none."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("--question", metavar="TEXT", help="Question that the response of a pair answers. Default: none."),
    ] = None,
    language: Annotated[Language, Help("Default: identified from the text.")] = None,
    format_: InputFormat = None,
    detector: DetectorName = "grounding",
    set_: DetectorSettings = None,
    calibration: CalibrationFile = None,
    threshold: Annotated[Threshold, Help("Default: the detector's own.")] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Also give every word with its confidence. Default: spans only.")
    ] = False,
    level: Annotated[
        Literal["fact", "sentence", "response"],
        typer.Option(
            "--level",
            help="Also give each atomic fact (clause, apposition, date, number, name) or each sentence with the"
            " probability that it holds anything unsupported. Default: response, which has a score anyway.",
        ),
    ] = "response",
    output: Annotated[
        OptionalOutput,
        Help(
            "A file (.jsonl, .parquet or .html), or a folder (its name ends in /) that gets one .jsonl file for each"
            " input. A run that was interrupted goes on; one that is finished is not redone. Default: standard output."
        ),
    ] = None,
    to: Annotated[
        Literal["terminal", "json", "html"] | None,
        OUTPUT_FORMAT,
        Help(
            "On standard output alone; json is one prediction a line. Default: terminal for a pair on a terminal, json"
            " otherwise."
        ),
    ] = None,
    json: Annotated[Json, Help("The same as --to json. Default: off.")] = False,
    processes: Annotated[OptionalProcesses, Help("Default: 0, and 1 for less than 1 MiB of input.")] = None,
    batch_size: BatchSize = 32,
    on_error: OnError = "skip",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Mark the spans of responses that their evidence does not support.

    One pair:    veriglot detect --evidence source.txt --response answer.txt

    Many:        veriglot detect answers.jsonl -o marked.jsonl

    Folders:     veriglot detect a.jsonl b.parquet answers/ -o marked/

    A pipe:      produce | veriglot detect - | consume
    """
    if json and to not in {None, "json"}:
        raise UsageError(f"--json and --to {to} exclude each other.")
    folder = output is not None and (output.endswith("/") or Path(output).is_dir())
    request = Request(
        inputs=inputs or [],
        evidence=evidence or [],
        evidence_text=evidence_text or [],
        response=response,
        response_text=response_text,
        question=question,
        language=language,
        format=format_,
        detector=detector,
        settings=tuple(set_ or ()),
        calibration=calibration,
        threshold=threshold,
        words=words,
        level=level,
        output=None if folder or output == "-" else output,
        output_dir=output if folder else None,
        view="json" if json else to,
        jobs=processes,
        batch_size=batch_size,
        stop=on_error == "stop",
        restart=overwrite,
        quiet=quiet,
    )
    raise typer.Exit(carry_out(request))


if TYPE_CHECKING:
    Rows = Callable[[], Iterable[Sample | FailedRow]]
    Pairs = Iterable[tuple[Sample, Prediction]]


_KINDS = {".jsonl": "jsonl", ".parquet": "parquet", ".html": "html", ".htm": "html"}


def kind_of(path: Path) -> str:
    """`jsonl`, `parquet` or `html`, by the suffix of the output.

    Raises:
        UnknownNameError: another suffix.
    """
    try:
        return _KINDS[path.suffix.lower()]
    except KeyError:
        raise UnknownNameError("kind of output", path.suffix or path.name, _KINDS) from None


def output_names(places: Sequence[PurePath]) -> list[PurePath]:
    """Names in the output folder for inputs of these names: `a.json` gives `a.jsonl`.

    Where two inputs would share one, both keep their whole name: `a.json.jsonl`, `a.csv.jsonl`.

    Raises:
        UsageError: two inputs have the same name.
    """
    short = [path.with_suffix(".jsonl") for path in places]
    shared = Counter(short)
    names = [
        name if shared[name] == 1 else path.with_name(path.name + ".jsonl")
        for name, path in zip(short, places, strict=True)
    ]
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(
                f"Two inputs are called {name.stem}, so their outputs would be too.",
                remedy="Name the folder that holds both, or use one folder for each.",
            )
    return names


def finisher(kind: str, rows: Rows, title: str) -> Callable[[Path, Path], None] | None:
    """What makes an output of this kind from its finished rows; None where the rows are the output.

    Args:
        kind: `jsonl`, `parquet` or `html`.
        rows: reads the input once more, for a view that shows the samples.
        title: heading of the HTML view.
    """
    if kind == "jsonl":
        return None
    if kind == "parquet":
        from veriglot.formats.containers import parquet_module

        parquet_module()  # what is missing is to be known before the work, not after it
        return _make_parquet

    def make_html(done: Path, target: Path) -> None:
        from veriglot.report.pages import write_html

        write_html(_paired(rows(), done), target, title=title)

    return make_html


def _make_parquet(done: Path, target: Path) -> None:
    from veriglot.formats.writer import write_predictions
    from veriglot.pipeline.engine import predictions_in

    write_predictions(predictions_in(done), target, format="parquet")


def _paired(rows: Iterable[Sample | FailedRow], done: Path) -> Iterator[tuple[Sample, Prediction]]:
    from veriglot.pipeline.engine import predictions_in
    from veriglot.records import Sample

    samples = (row for row in rows if isinstance(row, Sample))
    return zip(samples, predictions_in(done), strict=True)


def show(pairs: Pairs, view: str, title: str) -> None:
    """Write results to standard output as they come.

    Args:
        pairs: each sample with its prediction.
        view: `terminal`, `json` (one prediction a line) or `html`.
        title: heading of the HTML view.
    """
    if view == "html":
        from veriglot.report.pages import write_html

        write_html(pairs, "-", title=title)
    elif view == "terminal":
        _show_on_terminal(pairs)
    else:
        _show_lines(pairs)


def _show_lines(pairs: Pairs) -> None:
    from veriglot.records import encode

    out = sys.stdout.buffer
    for _, prediction in pairs:
        out.write(encode(prediction) + b"\n")
        out.flush()  # whoever reads the pipe sees each row when it is done


def _show_on_terminal(pairs: Pairs) -> None:
    from rich.console import Console

    from veriglot.report.terminal import render_terminal

    console = Console()
    for sample, prediction in pairs:
        render_terminal(sample, prediction, console)


if TYPE_CHECKING:
    _Rows = Callable[[], Iterable[Sample | FailedRow]]


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
        raise UsageError("--output and --to (or --json) exclude each other.")
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
    from veriglot.pipeline.engine import Engine

    return Engine(request.recipe, jobs=jobs_for(inputs, request.jobs), batch_size=request.batch_size)


def _pair(request: Request, account: Account) -> int:
    from veriglot.pipeline.engine import Engine

    sample = _pair_sample(request)
    with Engine(request.recipe) as engine:
        pairs = list(engine.run([sample]))
    ((_, prediction),) = pairs
    assert prediction is not None
    account.add(prediction)
    if request.output_dir is not None:
        raise UsageError("A folder is for files of samples; name a file for the output of a pair.")
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
        from veriglot.report.pages import write_html

        write_html([(sample, prediction)], output, title=title)
    elif kind == "parquet":
        from veriglot.formats.writer import write_predictions

        write_predictions([prediction], output, format="parquet")
    else:
        from veriglot.records import encode
        from veriglot.storage.files import write_whole

        write_whole(output, encode(prediction) + b"\n")


def _rows(
    request: Request, inputs: Sequence[Input], every: Sequence[Input], account: Account | None
) -> Callable[[], Iterator[Sample | FailedRow]]:
    """Opens the rows of `inputs`; without an account they are read a second time and repairs are not counted again."""
    from veriglot.formats.base import Report
    from veriglot.formats.reader import SeenIds

    report = Report() if account is None else account.report
    tag = known_tag(request.language)

    def rows() -> Iterator[Sample | FailedRow]:
        seen = SeenIds()  # a prediction is told from others of its output by its id alone
        for file in inputs:
            yield from rows_of(
                file, format_name=request.format, language=tag, report=report, alone=len(every) == 1, seen=seen
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
                    account.add_failed(row, written=False)

    show(pairs(), view, request.title)


def _to_files(request: Request, inputs: Sequence[Input], engine: Engine, account: Account) -> None:
    from veriglot.pipeline.engine import run_jobs
    from veriglot.records import Sample

    shares = _shares(request, inputs)
    jobs = [
        _output_job(request, output, share, engine, _rows(request, share, inputs, account)) for output, share in shares
    ]
    with Bar(shown=not request.quiet, total=lambda: count_rows(inputs)) as bar:

        def seen(row: Sample | FailedRow, prediction: Prediction | None) -> None:  # noqa: ARG001
            bar.advance()
            if not isinstance(row, Sample):
                account.add_failed(row, written=True)

        try:
            tally = run_jobs(jobs, engine, stop=request.stop, seen=seen)
        except KeyboardInterrupt:
            account.warn("Interrupted. What is done is kept: the same command goes on from there.")
            raise
    account.take(tally, [job.checkpoint for job in jobs])


def _shares(request: Request, inputs: Sequence[Input]) -> list[tuple[Path, Sequence[Input]]]:
    """Each output with the inputs whose rows it gets."""
    if request.output is not None:
        return [(Path(request.output), inputs)]
    assert request.output_dir is not None
    folder = Path(request.output_dir)
    names = output_names([file.place for file in inputs])
    return [(folder / name, [file]) for name, file in zip(names, inputs, strict=True)]


def _output_job(request: Request, output: Path, inputs: Sequence[Input], engine: Engine, rows: _Rows) -> OutputJob:
    from veriglot.pipeline.engine import OutputJob

    again: _Rows = _rows(request, inputs, inputs, None)
    if kind_of(output) == "html" and any(file.path == STDIN for file in inputs):
        spool = Spool()  # the page shows the samples, and standard input cannot be read twice
        return OutputJob(lambda: spool.through(rows()), _checkpoint(request, output, inputs, engine, spool.samples))
    return OutputJob(rows, _checkpoint(request, output, inputs, engine, again))


def _checkpoint(request: Request, output: Path, inputs: Sequence[Input], engine: Engine, again: _Rows) -> Checkpoint:
    from veriglot.storage.checkpoint import Checkpoint

    return Checkpoint(
        output,
        inputs=[file.path for file in inputs],
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
        maker="detector",
        restart=request.restart,
    )


class Spool:
    """A nameless temporary file of samples; it goes when the spool does."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # open as long as the spool is

    def through(self, rows: Iterable[Sample | FailedRow]) -> Iterator[Sample | FailedRow]:
        """The rows as they come; the samples among them are written down."""
        for row in rows:
            if isinstance(row, Sample):
                self._file.write(encode(row) + b"\n")
            yield row

    def samples(self) -> Iterator[Sample]:
        """The samples that passed, in order; to be asked for once, after the last row."""
        with self._file as file:
            file.seek(0)
            for line in file:
                yield sample_from(decode_json(line))
