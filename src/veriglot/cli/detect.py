"""`veriglot detect`: mark what the evidence does not support, on the terminal, as files, or as a page."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal

from veriglot.cli.command import Options, command
from veriglot.cli.console import Account, ProgressBar, say
from veriglot.cli.detectors import Level, detector_recipe
from veriglot.cli.inputs import STDIN, Input, count_rows, find_inputs, jobs_for, kind_of, known_tag, read_text, rows_of
from veriglot.detectors.registry import uses_gpu
from veriglot.errors import EXIT_OVER_LIMIT, InputError, UnknownNameError, UsageError
from veriglot.records import Evidence, Prediction, Sample, Status, decode_json, encode, from_mapping, sample_from
from veriglot.storage.checkpoint import Checkpoint, FailedRow, JsonLines, Tally
from veriglot.storage.files import write_whole
from veriglot.storage.shards import SHARD, Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import PurePath

    from veriglot.pipeline.engine import Description, Engine, OutputJob
    from veriglot.storage.parts import Block, Part

    Rows = Callable[[], Iterable[Sample | FailedRow]]
    Pairs = Iterable[tuple[Sample, Prediction]]


View = Literal["terminal", "json", "html"]


class DetectOptions(Options):
    """The options of `veriglot detect`."""

    inputs: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    evidence_text: tuple[str, ...] = ()
    response: str | None = None
    response_text: str | None = None
    question: str | None = None
    language: str | None = None
    columns: tuple[str, ...] = ()
    detector: str = "auto"
    set_: tuple[str, ...] = ()
    threshold: float | None = None
    strictness: Literal["low", "normal", "high"] = "normal"
    words: bool = False
    level: Level = "response"
    output: str | None = None
    to: View | None = None
    fail_on: tuple[str, ...] = ()
    max_rate: str | None = None
    processes: int | None = None
    shard: str | None = None
    engine: Literal["local", "ray"] = "local"
    on_error: Literal["stop", "skip"] = "skip"
    overwrite: bool = False
    quiet: bool = False

    @property
    def is_pair(self) -> bool:
        """Whether the input is one response and its evidence, not files of samples."""
        return any((self.evidence, self.evidence_text, self.response is not None, self.response_text is not None))

    @cached_property
    def folder(self) -> Path | None:
        """The folder of the outputs, if given."""
        named = self.output is not None and (self.output.endswith("/") or Path(self.output).is_dir())
        return Path(self.output or "") if named else None

    @property
    def file(self) -> str | None:
        """The single output, if given; None for standard output."""
        return None if self.folder is not None or self.output == STDIN else self.output

    @cached_property
    def part(self) -> Shard:
        """The rows to judge."""
        return Shard.parse("1/1" if self.shard is None else self.shard)

    @property
    def recipe(self) -> Callable[[], Any]:
        """The detector and its options."""
        return detector_recipe(
            self.detector,
            threshold=self.threshold,
            words=self.words,
            level=self.level,
            settings=self.set_,
            strictness=self.strictness,
        )

    @cached_property
    def limit(self) -> float | None:
        """The share of `max_rate`, from 0 to 1."""
        if self.max_rate is None:
            return None
        number, percent, rest = self.max_rate.partition("%")
        try:
            share = -1.0 if rest else float(number) / (100 if percent else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise UsageError(f"--max-rate is a share such as 5% or 0.05, but {self.max_rate} was given.")
        return share

    @property
    def limits(self) -> list[str]:
        """The limits of `--fail-on`."""
        return [name.strip().replace("_", "-") for text in self.fail_on for name in text.split(",")]

    @property
    def title(self) -> str:
        """Heading of the HTML view."""
        return f"{', '.join(self.inputs) or self.response or 'Response'}: {self.detector}"


@command
def detect(options: DetectOptions) -> int:
    """Mark the spans of responses that their evidence does not support.

    One pair:    veriglot detect --evidence source.txt --response answer.txt

    Many:        veriglot detect answers.jsonl -o marked.jsonl

    Folders:     veriglot detect a.jsonl b.parquet answers/ -o marked/

    A pipe:      produce | veriglot detect - | consume

    Part 3 of 16:   veriglot detect answers.jsonl --shard 3/16 -o parts/3.jsonl

    A cluster:   RAY_ADDRESS=head:6379 veriglot detect answers/ --engine ray -o marked/
    """
    from veriglot.pipeline.engine import Engine

    to_stdout = options.file is None and options.folder is None
    if not to_stdout and options.to is not None:
        raise UsageError("--output and --to exclude each other.")
    for name in set(options.limits) - _LIMITS.keys():
        raise UnknownNameError("verdict to fail on", name, _LIMITS)
    _ = options.limit  # fail before the work
    _check_division(options)
    account = Account(quiet=options.quiet, live=to_stdout and STDIN in options.inputs)
    if options.is_pair:
        return _pair(options, account)
    if not options.inputs:
        raise UsageError(
            "There is nothing to read.", "Name files or folders, - for standard input, or --evidence and --response."
        )
    texts = [name for name in options.inputs if " " in name and not Path(name).exists()]
    if texts:
        raise UsageError(f"There is no file {texts[0]!r}.", "Give texts after --evidence-text and --response-text.")
    if options.question is not None:
        raise UsageError("--question belongs to --response; a file of samples holds its own questions.")
    inputs = find_inputs(options.inputs, skipped=account.warn, columns=options.columns)
    known_tag(options.language)  # reject a wrong name before the detector loads
    if options.engine == "ray":
        _on_ray(options, inputs, account)
    else:
        with Engine(options.recipe, jobs=jobs_for(inputs, options.processes)) as engine:
            run = _to_stdout if to_stdout else _to_files
            run(options, inputs, engine, account)
    code = account.close()
    return _verdict(options, account.tally) or code


def _check_division(options: DetectOptions) -> None:
    """Reject --shard if its output could not be merged, and --engine ray without a folder of parts as output."""
    on_ray = options.engine == "ray"
    if options.shard is None and not on_ray:
        return
    assert options.part  # fail before the work
    if options.is_pair or STDIN in options.inputs:
        name = _ON_RAY if on_ray else SHARD
        raise UsageError(f"{name} goes with files, which can be read again.", "Name files or folders.")
    if on_ray and options.shard is not None:
        raise UsageError(f"{_ON_RAY} and {SHARD} exclude each other.", f"Leave out {SHARD}.")
    if on_ray and options.folder is None:
        raise UsageError(f"{_ON_RAY} makes a folder of Parquet parts.", "Name it with -o; its name ends in /.")
    if not on_ray and (options.file is None or kind_of(options.file, _KINDS) in _VIEWS):
        raise UsageError(f"{SHARD} makes one .jsonl or .parquet file.", "Name it with -o, another for each part.")


_ON_RAY = "--engine ray"
_LIMITS = {"unsupported": "marked", "not-checked": "not checked"}


def _verdict(options: DetectOptions, tally: Tally) -> int:
    """Report exceeded limits; returns the exit code, 0 or 4."""
    if not (options.fail_on or options.max_rate):
        return 0
    if tally.verdicts.total() < tally.statuses.total():
        raise UsageError("An earlier version made this output and counted no verdicts.", "Add --overwrite.")
    checked, marked = tally.statuses["scored"], tally.marked
    counts = {"unsupported": marked, "not-checked": tally.rows - checked}
    messages = [f"--fail-on {name}: {counts[name]:,} {_LIMITS[name]}" for name in options.limits if counts[name]]
    limit = options.limit
    if not checked:
        messages.append("nothing was checked")
    elif limit is not None and marked / checked > limit:
        messages.append(
            f"--max-rate {options.max_rate}: {marked:,} of {checked:,} checked are marked, {marked / checked:.1%}"
        )
    for message in messages:
        say(f"over the limit: {message}.")
    return EXIT_OVER_LIMIT if messages else 0


_KINDS = {".jsonl": "jsonl", ".parquet": "parquet", ".csv": "csv", ".html": "html", ".htm": "html"}
_VIEWS = {"csv", "html"}  # kinds that show the samples


def _output_names(places: Sequence[PurePath]) -> list[PurePath]:
    """Names in the output folder: `a.json` becomes `a.jsonl`; two with the same result keep theirs, `a.csv.jsonl`."""
    short = [path.with_name(path.name.removesuffix(".gz")).with_suffix(".jsonl") for path in places]
    shared = Counter(short)
    names = [
        name if shared[name] == 1 else path.with_name(path.name + ".jsonl")
        for name, path in zip(short, places, strict=True)
    ]
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(
                f"Two inputs are called {name.stem}, so their outputs would have the same name.",
                "Name the folder that holds both, or use one folder for each.",
            )
    return names


def _with_failed(rows: Iterable[Sample | FailedRow], predictions: Iterator[Prediction]) -> Pairs:
    """Each sample with its prediction; an unreadable row is shown as not checked."""
    for number, row in enumerate(rows, start=1):
        if isinstance(row, Sample):
            yield row, next(predictions)
        else:
            name = row.id or f"row {row.line or number}"
            yield Sample(name, response=row.raw or ""), Prediction(name, Status.FAILED, "-", reason=row.message)
    if next(predictions, None) is not None:
        raise ValueError("there are more predictions than samples")


def _write(kind: str, pairs: Iterable[tuple[Any, Prediction]], target: Path, title: str) -> None:
    """Write a complete output of a kind; only those in `_VIEWS` show the samples."""
    from veriglot.formats.base import load_format
    from veriglot.formats.writer import Writer
    from veriglot.report.pages import write_html
    from veriglot.report.tables import Table

    if kind == "html":
        write_html(pairs, target, title=title)
    elif kind == "csv":
        rows = []
        for sample, each in pairs:
            marked = " | ".join(sample.response[span.start : span.end] for span in each.spans or ())
            row = {"id": each.id, "verdict": each.verdict, "score": each.score, "marked": marked, "reason": each.reason}
            rows.append(row | load_format("columns").record(sample) | sample.meta | row)  # none is replaced
        columns = list(dict.fromkeys(chain.from_iterable(rows))) or ["id"]
        table = Table("", columns, [[row.get(column) for column in columns] for row in rows])
        write_whole(target, table.to_csv().encode("utf-8-sig"))  # Excel needs the byte order mark
    else:
        with Writer(target, format=kind, kind="predictions") as writer:
            for _, prediction in pairs:
                writer.write(prediction)


def _finisher(kind: str, rows: Rows, title: str) -> Callable[[Path, Path], None] | None:
    """The function that makes an output of this kind from its finished rows; None if the rows are the output.

    `rows` reads the input again, for a view that shows the samples.
    """
    if kind == "jsonl":
        return None
    if kind == "parquet":
        from veriglot.formats.containers import parquet_module

        parquet_module()  # report a missing package before the work, not after it

    def finish(done: Path, target: Path) -> None:
        predictions = (from_mapping(decode_json(line), Prediction) for line in JsonLines(done).lines())
        pairs = _with_failed(rows(), predictions) if kind in _VIEWS else ((None, each) for each in predictions)
        _write(kind, pairs, target, title)

    return finish


def _show(pairs: Pairs, view: View, title: str) -> None:
    """Write results to standard output as they arrive."""
    if view == "html":
        from veriglot.report.pages import write_html

        write_html(pairs, "-", title=title)
    elif view == "terminal":
        from rich.console import Console

        from veriglot.report.terminal import render_terminal

        console = Console()
        for sample, prediction in pairs:
            render_terminal(sample, prediction, console)
    else:
        for _, prediction in pairs:
            sys.stdout.buffer.write(encode(prediction) + b"\n")
            sys.stdout.buffer.flush()  # the reader of a pipe gets each row when it is done


def _pair(options: DetectOptions, account: Account) -> int:
    from veriglot.pipeline.engine import Engine

    sample = _pair_sample(options)
    with Engine(options.recipe) as engine:
        ((_, prediction),) = engine.run([sample])
    assert prediction is not None
    account.add(prediction)
    if options.folder is not None:
        raise UsageError("A folder is for files of samples; name a file for the output of a pair.")
    if options.file is None:
        usual: View = "terminal" if sys.stdout.isatty() else "json"
        _show([(sample, prediction)], options.to or usual, options.title)
    else:
        file = Path(options.file)
        _write(kind_of(file, _KINDS), [(sample, prediction)], file, options.title)
    return _verdict(options, account.tally) or account.exit_code


def _pair_sample(options: DetectOptions) -> Sample:
    if options.inputs and not options.evidence:
        raise UsageError(
            f"{options.inputs[0]} is a file of samples, and the other options give a pair.",
            "Give one of the two; write --evidence before files to check a response against.",
        )
    if (options.response is None) == (options.response_text is None):
        raise UsageError("A pair has one response: give either --response or --response-text.")
    if options.columns:
        raise UsageError("--map is for files of samples; a pair is plain text.")
    files = [*options.evidence, *options.inputs]  # `--evidence notes/*.txt` expands to both
    if options.file is not None and options.file in {*files, options.response}:
        raise UsageError(f"{options.file} is an input and would be overwritten.", "Name another output.")
    if [*files, options.response].count(STDIN) > 1:
        raise UsageError("Standard input can be read only once.")
    try:
        passages = [*map(read_text, files), *options.evidence_text]
        response = options.response_text if options.response is None else read_text(options.response)
    except InputError as error:
        if " " not in (error.path or ""):
            raise
        remedy = "Give a text itself by --evidence-text or --response-text."
        raise InputError(error.detail, remedy, path=error.path) from error
    assert response is not None
    evidence = tuple(map(Evidence, passages))
    return Sample(
        "response", response, evidence=evidence, question=options.question, language=known_tag(options.language)
    )


def _rows(
    options: DetectOptions, inputs: Sequence[Input], account: Account | None, *, alone: bool | None = None
) -> Callable[[], Iterator[Sample | FailedRow]]:
    """Opens the rows of `inputs`; without an account it is a second pass, in which repairs are not counted again."""
    from veriglot.formats.reader import SeenIds

    report = None if account is None else account.report
    tag = known_tag(options.language)

    def rows() -> Iterator[Sample | FailedRow]:
        # Ids must be unique: a prediction is identified only by its id.
        every = rows_of(inputs, language=tag, report=report, alone=alone, seen=SeenIds(), columns=options.columns)
        return options.part.rows(every)

    return rows


def _to_stdout(options: DetectOptions, inputs: Sequence[Input], engine: Engine, account: Account) -> None:
    from veriglot.formats.containers import standard_input_ready

    bar_fits = not options.quiet and not sys.stdout.isatty()  # otherwise it would appear among the results
    rows = _rows(options, inputs, account)
    live = any(file.path == STDIN for file in inputs)

    def pairs() -> Iterator[tuple[Sample, Prediction]]:
        with ProgressBar(shown=bar_fits, total=lambda: count_rows(inputs), lines=not live) as bar:
            for row, prediction in engine.run(rows(), ready=standard_input_ready if live else lambda: True):
                bar.advance()
                if isinstance(row, Sample):
                    assert prediction is not None
                    account.add(prediction)
                    yield row, prediction
                elif options.on_error == "stop":
                    raise row.as_error()
                else:
                    account.add_failed(row, written=False)

    _show(pairs(), options.to or "json", options.title)


def _to_files(options: DetectOptions, inputs: Sequence[Input], engine: Engine, account: Account) -> None:
    from veriglot.pipeline.engine import run_jobs

    if options.folder is None:
        shares: list[tuple[Path, Sequence[Input]]] = [(Path(options.file or ""), inputs)]
    else:
        names = _output_names([file.relative_path for file in inputs])
        shares = [(options.folder / name, [file]) for name, file in zip(names, inputs, strict=True)]
    jobs = [
        _output_job(options, output, share, engine, _rows(options, share, account, alone=len(inputs) == 1))
        for output, share in shares
    ]

    def total() -> int | None:
        rows = count_rows(inputs)
        return None if rows is None else sum(1 for _ in options.part.rows(range(rows)))

    with ProgressBar(shown=not options.quiet, total=total, resumes=True) as bar:

        def seen(row: Sample | FailedRow, prediction: Prediction | None) -> None:  # noqa: ARG001
            bar.advance()
            if not isinstance(row, Sample):
                account.add_failed(row, written=True)

        tally = run_jobs(jobs, engine, stop=options.on_error == "stop", seen=seen)
    account.take(tally, [job.checkpoint for job in jobs])


def _output_job(options: DetectOptions, output: Path, inputs: Sequence[Input], engine: Engine, rows: Rows) -> OutputJob:
    from veriglot.pipeline.engine import OutputJob

    if kind_of(output, _KINDS) in _VIEWS and any(file.path == STDIN for file in inputs):
        spool = _Spool()  # standard input cannot be read twice
        return OutputJob(lambda: spool.through(rows()), _checkpoint(options, output, inputs, engine, spool.rows))
    return OutputJob(rows, _checkpoint(options, output, inputs, engine, _rows(options, inputs, None)))


def _checkpoint(
    options: DetectOptions, output: Path, inputs: Sequence[Input], engine: Engine, rows_anew: Rows
) -> Checkpoint:
    return Checkpoint(
        output,
        inputs=[file.path for file in inputs],
        signature=engine.description.signature,
        options=_stated(options, engine.description),
        finish=_finisher(kind_of(output, _KINDS), rows_anew, options.title),
        maker="detector",
        restart=options.overwrite,
    )


def _stated(options: DetectOptions, detector: Description) -> dict[str, bool | int | float | str | None]:
    """The options that change the rows, for the manifest."""
    from veriglot.formats.reader import columns_from

    columns = sorted(columns_from(options.columns).items())
    return {
        "--detector": options.detector,
        "--threshold": detector.threshold,
        "--words": options.words,
        **({} if options.level == "response" else {"--level": options.level}),
        "--language": known_tag(options.language),
        **({} if options.shard is None else {SHARD: str(options.part)}),
        **({"--map": ",".join(f"{part}={column}" for part, column in columns)} if columns else {}),
    }


def _on_ray(options: DetectOptions, inputs: Sequence[Input], account: Account) -> None:
    from veriglot.formats.containers import parquet_module
    from veriglot.formats.reader import read_predictions
    from veriglot.formats.writer import predictions_as_parquet
    from veriglot.pipeline.ray_engine import Cluster, RunStats, text_bytes
    from veriglot.storage.parts import PartFolder

    assert options.folder is not None
    folder_path = options.folder.resolve()
    for file in inputs:
        if folder_path in Path(file.path).resolve().parents:
            raise UsageError(f"{options.folder} holds {file.path}, which is an input.", "Name another folder with -o.")
    parquet_module()  # report a missing package before the work
    counted = all(file.relative_path.suffix.lower() == ".parquet" for file in inputs)  # others must be read to count

    def total() -> int | None:
        return count_rows(inputs) if counted else None

    workers = options.processes or 0
    gpu = uses_gpu(options.detector)
    with Cluster(options.recipe, predictions_as_parquet, processes=workers, gpu=gpu, say=account.warn) as cluster:
        folder = PartFolder(
            options.folder,
            read=read_predictions,
            size=text_bytes,
            inputs=[file.path for file in inputs],
            signature=cluster.description.signature,
            options=_stated(options, cluster.description),
            restart=options.overwrite,
        )
        pace = RunStats(cluster.processes)
        rows = _rows(options, inputs, account)
        with ProgressBar(shown=not options.quiet, total=total, resumes=True, lines=False) as bar:

            def seen(part: Part, process: int | None) -> None:
                pace.add(part, process)
                pace.deaths, pace.processes = cluster.deaths, cluster.processes
                bar.advance(part.end - part.start)
                for row in part.failed:
                    account.add_failed(row, written=True, where=str(folder.listing))
                if not sys.stderr.isatty() and (line := pace.due_line(total)):
                    account.warn(line)

            def make(blocks: Iterator[Block], into: PartFolder) -> Iterator[Part]:
                pace.done_before = into.rows  # without damaged parts, which are made again
                return cluster.make(blocks, into, seen=seen)

            tally = folder.run(rows, make, stop=options.on_error == "stop")
    if pace.rows:
        account.warn(pace.summary)
    account.take(tally, [], folder.listing)


class _Spool:
    """A temporary file of rows, which is deleted with this object."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # open until the spool is closed

    def through(self, rows: Iterable[Sample | FailedRow]) -> Iterator[Sample | FailedRow]:
        """The rows as they arrive; each is stored."""
        for row in rows:
            self._file.write((b"+" if isinstance(row, Sample) else b"-") + encode(row) + b"\n")
            yield row

    def rows(self) -> Iterator[Sample | FailedRow]:
        """The stored rows, in order; only after the last one has passed."""
        with self._file as file:
            file.seek(0)
            for line in file:
                row = decode_json(line[1:])
                yield sample_from(row) if line.startswith(b"+") else FailedRow(**row)
