"""Where `veriglot detect` puts its results: standard output in one of three views, or files made from finished rows."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from veriglot.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path, PurePath

    from veriglot.records import Prediction, Sample
    from veriglot.run import FailedRow

    Rows = Callable[[], Iterable[Sample | FailedRow]]
    Pairs = Iterable[tuple[Sample, Prediction]]

__all__ = ["finisher", "kind_of", "output_names", "show"]

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
    short = [place.with_suffix(".jsonl") for place in places]
    shared = Counter(short)
    names = [
        name if shared[name] == 1 else place.with_name(place.name + ".jsonl")
        for name, place in zip(short, places, strict=True)
    ]
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(
                f"Two inputs are called {name.stem}, so their outputs would be too.",
                remedy="Name the folder that holds both, or use one --output-dir for each.",
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
        from veriglot.report import write_html

        write_html(_paired(rows(), done), target, title=title)

    return make_html


def _make_parquet(done: Path, target: Path) -> None:
    from veriglot.formats import write_predictions
    from veriglot.run import predictions_in

    write_predictions(predictions_in(done), target, format="parquet")


def _paired(rows: Iterable[Sample | FailedRow], done: Path) -> Iterator[tuple[Sample, Prediction]]:
    from veriglot.records import Sample
    from veriglot.run import predictions_in

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
        from veriglot.report import write_html

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

    from veriglot.report import render_terminal

    console = Console()
    for sample, prediction in pairs:
        render_terminal(sample, prediction, console)
