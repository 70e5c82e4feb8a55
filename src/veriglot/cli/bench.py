"""`veriglot bench`: detectors and scorers against labelled data, its statistics, and figures recorded for `auto`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from veriglot.bench.results import BenchResults, read_results
from veriglot.cli.command import Verbs, command, new_app
from veriglot.cli.console import print_json, say, write_example
from veriglot.cli.detectors import load as load_detector
from veriglot.cli.inputs import parts, readable
from veriglot.errors import EXIT_ROWS_FAILED, UsageError
from veriglot.formats.reader import SeenIds, columns_from, read_rows
from veriglot.pipeline.progress import ProgressReporter
from veriglot.report.tables import Table, open_console, write_csv
from veriglot.storage.files import write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.records import Sample
    from veriglot.storage.checkpoint import FailedRow


class _Bench(Verbs):
    """`veriglot bench gold.csv` is `veriglot bench run gold.csv`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `run` before a path."""
        path = Path(args[0]) if args and args[0] not in self.commands else None
        if path is not None and not str(path).startswith("-") and (path.suffix or path.exists()):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = new_app(_Bench)


@app.callback()
def _bench() -> None:
    """Compare detectors and scorers on labelled data: thresholds, figures with intervals, win rates, cost.

    The shortest form: veriglot bench gold.csv --systems grounding,reader
    """


@app.command("init")
@command
def init(file: Path) -> None:
    """Write a bench file with comments, for you to edit and run."""
    write_example(file, "veriglot.bench", "bench.toml", then="veriglot bench run")


@app.command("run")
@command
def run(
    bench: Path,
    *,
    systems: str | None = None,
    columns: tuple[str, ...] = (),
    output: str | None = None,
    limit: int | None = None,
    processes: int | None = None,
    engine: Literal["local", "ray"] = "local",
    batch_size: int = 32,
    retry: bool = False,
    overwrite: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Run a bench: have every system judge every data set, measure, compare, and write the leaderboard.

    Rerun the command to resume: it keeps all predictions, also with other measures or another seed. A system whose
    model or packages are missing is shown as unavailable, with the remedy, and the other systems run. The folder of a
    finished run holds results.json, leaderboard.html, leaderboard.md, leaderboard.tex and tables as CSV.

    Without a file:  veriglot bench gold.csv --systems grounding,reader,rouge-l

    Exits with 3 if a system or samples failed.
    """
    from veriglot.bench.config import load
    from veriglot.bench.run import run as run_bench
    from veriglot.report.bench import render_bench

    of_data = bench.is_dir() or bench.suffix != ".toml"
    if systems is not None and not of_data:
        raise UsageError(f"{bench} names its systems itself.", "Give --systems with labelled samples.")
    bench = bench if bench.name else bench.resolve()  # `.` has no name
    names = parts(systems or "grounding,reader") if of_data else None
    config = load(bench, systems=names, limit=limit, columns=columns_from(columns))
    folder = Path(output) if output else bench.with_name(f"{bench.stem}-bench") if of_data else bench.with_suffix("")
    with ProgressReporter(shown=not quiet, resumes=True) as progress:
        results = run_bench(
            config,
            folder,
            jobs=int(engine == "local") if processes is None else processes,
            batch_size=batch_size,
            restart=overwrite,
            retry=retry,
            engine=engine,
            load=load_detector,
            progress=progress,
        )
    render(results, folder)
    if json:
        _write(results, "json", "-")
    else:
        render_bench(results, open_console())
    # Interrupted cells, or cells with failed samples; unavailable or unsupported systems are not failures.
    cells = [
        f"{cell.system} on {cell.data}"
        for cell in results.cells
        if (cell.status == "failed" and not cell.statuses)
        or any(counts.get("failed") for counts in cell.statuses.values())
    ]
    failed = list(dict.fromkeys(cells))
    if not quiet:
        ranked = f"leaderboard is {folder / _RANKED[0]}"
        say(f"the {ranked if _ranks(results) else f'page, which has no ranking, is {folder / _UNRANKED[0]}'}")
        if failed:
            say(f"failures in {', '.join(failed)}. The option --retry tries again.")
    return EXIT_ROWS_FAILED if failed else 0


# Views in the folder of a run; without any labels there is no leaderboard.
_RANKED = ("leaderboard.html", "leaderboard.md", "leaderboard.tex")
_UNRANKED = ("answers.html", "answers.md")


def render(results: BenchResults, folder: Path) -> None:
    """Write all views into the folder of a run."""
    from veriglot.report.bench import write_bench
    from veriglot.report.bench_tables import bench_tables

    names, stale = (_RANKED, _UNRANKED) if _ranks(results) else (_UNRANKED, _RANKED)
    for name in stale:  # from a run where the data had labels, or had none
        (folder / name).unlink(missing_ok=True)
    write_bench(results, folder / names[0])
    for name, kind in zip(names[1:], ("markdown", "latex"), strict=False):
        _write(results, kind, str(folder / name))
    write_csv(bench_tables(results), folder / "tables")


def _ranks(results: BenchResults) -> bool:
    return any(summary.labelled for summary in results.data)


def _write(results: BenchResults, kind: str, output: str) -> None:
    from veriglot.report.bench import bench_document
    from veriglot.report.pages import open_page

    text = bench_document(results, kind)
    with open_page(output) as file:
        file.write(text)


@app.command("statistics")
@command
def statistics(
    data: list[str],
    *,
    annotator: str | None = None,
    unit: str = "word",
    figure_level: Literal["response", "sentence", "fact"] = "response",
    columns: tuple[str, ...] = (),
    language: str | None = None,
    json: bool = False,
) -> None:
    """Describe labelled data by language: sizes, length ratios, character and sentence hallucination rates, types.

    The columns are those of HAT's Tables 1 and 2, mFAVA's Table 2, HalluVerse25's Table 2 and Figure 3, and Kang et
    al.'s Table 9.
    """
    from veriglot.bench.data import statistics_by_language

    seen, stated = SeenIds(), columns_from(columns)

    def rows() -> Iterator[Sample | FailedRow]:
        for path in data:
            yield from read_rows(path, columns=stated, language=language, seen=seen, labelled=True)

    samples = readable(rows(), "rows could not be read: left out of every figure")
    by_language = statistics_by_language(samples, unit=unit, annotator=annotator, level=figure_level)
    if json:
        print_json(by_language)
        return
    # One row per statistic, one column per language: there are more statistics than fit side by side.
    names = next(iter(by_language.values()), {})
    cells = [(name, *(_shown(row[name]) for row in by_language.values())) for name in names]
    Table("", ("", *by_language), cells).print()


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


@app.command("record")
@command
def record(
    run: Path,
    *,
    output: str,
    figure_level: Literal["word", "fact", "sentence", "response"] = "word",
    measure: str = "auc_pr_nonfactual",
) -> None:
    """Write a file of detectors' figures by language, from which the detector auto chooses.

    For example: veriglot bench record runs/mine -o figures.json

    Then: veriglot detect answers.jsonl --detector auto --set figures=figures.json
    """
    from veriglot.bench.leaderboard import recorded

    figures = recorded(read_results(run), level=figure_level, measure=measure)
    write_json(Path(output), figures, indent=2)
    detectors = ", ".join(known.name for known in figures.detectors())
    languages = {figure.language for figure in figures.figures}
    say(f"figures of {detectors}: {len(figures.figures)}, languages: {len(languages)}, in {output}")
