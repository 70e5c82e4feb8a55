"""Every detector and scorer that runs without a server, on all labelled data at hand; and benchmarks/results.md.

    python benchmarks/results.py --data ../shared/data --out runs/results --record "0.1.0, November 2026"

first parts the data by what the shipped weights learned from, into `OUT/data`: of translations the development half is
for tuning and the other for testing (`translation_data.py`), of WiCE's claims the tenth that trained nothing is a set
of its own. Then it runs `veriglot bench run benchmarks/results.toml` on that, which resumes: what is judged stays
judged. `--systems` and `--sets` take a part, where time is short. `--record NAME` adds the figures to
`benchmarks/history.csv` as those of a run of this name, in place of earlier ones of the same name, and what it was to
`benchmarks/history.toml`.

    python benchmarks/results.py --facts ../shared/facts --markdown benchmarks/results.md

makes the page from what is recorded and from published tables; it judges nothing. `--smoke N` takes N samples a
language, to try a run. `entity-overlap` judges the languages that a spaCy pipeline is installed for.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import veriglot
from gates import read_set
from translation_data import FOLDERS, PARTS, part_of
from veriglot.bench.results import read_results
from veriglot.cli import main as veriglot_command
from veriglot.records.languages import language_name
from veriglot.report.bench_findings import findings
from veriglot.report.bench_tables import View
from veriglot.report.tables import Table, escape_markdown
from veriglot.report.text_layout import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from veriglot.bench.results import BenchFigure, BenchResults
    from veriglot.records import Sample

HERE = Path(__file__).parent
AS_THEY_ARE = ("mfava/gold_dev", "mu_shroom_val", "wice/claims", "xsum")
LEVELS = ("word", "sentence", "response")
OWN = ("f1", "precision", "recall")  # of words at a detector's own threshold, in each language: papers print them


class Figure(NamedTuple):
    """A row of history.csv: a figure of one run. Empty where there is none; `seen` is `yes` on data trained on."""

    run: str
    system: str
    level: str
    data: str
    measure: str
    at: str
    language: str
    value: str
    low: str
    high: str
    seen: str


def parted(data: Path, out: Path) -> None:
    """Write the parts, once; they are the same for the same data."""
    whole = out / "whole"
    if whole.exists():
        return
    shutil.rmtree(out, ignore_errors=True)
    for name in AS_THEY_ARE:
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to((data / name).resolve(), target_is_directory=True)
    _write(read_set("wice", data), out / "wice_held_out.jsonl")
    for folder in FOLDERS.values():
        labelled = [sample for sample in veriglot.read(data / folder) if sample.annotations]
        for part in PARTS:
            _write((sample for sample in labelled if part_of(sample) == part), out / folder / f"{part}.jsonl")
    whole.touch()


def _write(samples: Iterable[Sample], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    veriglot.write(samples, path)


def bench_file(systems: str | None, sets: str | None) -> str:
    """The bench file, of some systems and sets alone where these are named."""
    blocks = re.split(r"(?m)^(?=\[)", (HERE / "results.toml").read_text("utf-8"))
    chosen = []
    for block in blocks:
        ((kind, entries),) = (tomllib.loads(block) or {"": [{}]}).items()
        entry = entries[0] if isinstance(entries, list) else {}
        wanted, key = {"systems": (systems, "label"), "data": (sets, "name")}.get(kind, (None, ""))
        name = entry.get(key) or entry.get("detector") or entry.get("scorer")
        if wanted is None or name in wanted.split(","):
            chosen.append(block)
    return "".join(chosen)


# What is recorded.


def record(results: BenchResults, name: str, folder: Path) -> None:
    """Add the figures of a run to history.csv and its description to history.toml, in `folder`."""
    labels = {system.name: _version(system.name, system.signature) for system in results.systems}
    rows = [row for row in figures(folder) if row.run != name]
    rows += [_figure(name, labels[each.system], each) for each in results.figures if _wanted(results, each)]
    write_figures(rows, folder)
    sentences = findings(View(results))
    path = folder / "history.toml"
    blocks = [b for b in re.split(r"(?m)^(?=\[\[)", path.read_text("utf-8")) if f"name = {_quoted(name)}\n" not in b]
    who, what = (", ".join(each.name for each in part) for part in (results.systems, results.data))
    block = f"[[runs]]\nname = {_quoted(name)}\nsource = {_quoted(f'`results.py`, {who} on {what}')}\n"
    block += f"signature = {_quoted(results.signature)}\nfindings = [\n"
    block += "".join(f"  {_quoted(text)},\n" for text in sentences) + "]\n\n"
    runs = [each for each in blocks if each.startswith("[[runs]]")]
    others = [each for each in blocks if not each.startswith("[[runs]]")]
    path.write_text("".join([*others[:1], *runs, block, *others[1:]]), "utf-8")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _version(name: str, signature: str | None) -> str:
    """A detector with the version in its signature, since its figures change with it; a scorer as it is called."""
    match = re.match(r"detector:(\S+?)@([\d.]+)", signature or "")
    return f"{match[1]} {match[2]}" if match else name


def _wanted(results: BenchResults, figure: BenchFigure) -> bool:
    if (figure.measure, figure.language) == (results.ranking.get(figure.level), "mean") and figure.at != "own":
        return True
    return figure.level == "word" and figure.measure in OWN and figure.at == "own"


def _figure(run: str, system: str, each: BenchFigure) -> Figure:
    value, low, high = ("" if end is None else f"{end:.4f}" for end in (each.value, each.low, each.high))
    where = each.level, each.data, each.measure, each.at or "", each.language
    return Figure(run, system, *where, value, low, high, "yes" if each.seen else "")


def figures(folder: Path) -> list[Figure]:
    """The rows of history.csv."""
    with (folder / "history.csv").open(encoding="utf-8", newline="") as file:
        return [Figure(**row) for row in csv.DictReader(file)]


def write_figures(rows: Iterable[Figure], folder: Path) -> None:
    """Write history.csv."""
    with (folder / "history.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Figure._fields, *rows])


# The page.


def page(folder: Path, facts: Path) -> str:
    """The page, from history.csv and history.toml in `folder` and the published tables in `facts`."""
    rows, history = figures(folder), tomllib.loads((folder / "history.toml").read_text("utf-8"))
    runs = {run["name"]: run for run in history["runs"]}
    letters = {name: chr(ord("A") + index) for index, name in enumerate(runs)}
    lines = ["# Results", "", history["lead"], ""]
    newest = list(runs.values())[-1]
    if newest["findings"]:
        lines += [f"What the tests of run {letters[newest['name']]}, the last one ({newest['source']}), show:", ""]
        lines += [*(f"- {escape_markdown(text)}" for text in newest["findings"]), ""]
    for level in LEVELS:
        lines += [f"## {level.capitalize()}s", "", *_board(rows, level, letters), ""]
    lines += ["## Beside published figures", ""]
    for entry in history["published"]:
        lines += [*_published(entry, rows, letters, facts), ""]
    lines += ["## Runs", ""]
    lines += [f"- **{letters[name]}**, {name}: {run['source']}. `{run['signature']}`" for name, run in runs.items()]
    return "\n".join([*lines, ""])


def _cell(row: Figure | None) -> str:
    if row is None or not row.value:
        return "–"
    ends = f" [{number(float(row.low))}, {number(float(row.high))}]" if row.low else ""
    return f"{number(float(row.value))}{'†' if row.seen else ''}{ends}"


def _board(rows: list[Figure], level: str, letters: dict[str, str]) -> Iterator[str]:
    """Each version of a detector in each of its runs, and each scorer in its last, by data set."""
    chosen = [row for row in rows if (row.level, row.language) == (level, "mean") and row.at != "own"]
    sets = list(dict.fromkeys(row.data for row in chosen))
    by_row: dict[tuple[str, str], dict[str, Figure]] = {}
    for row in chosen:
        by_row.setdefault((row.system, row.run), {})[row.data] = row
    last = dict(by_row.keys())  # of the same system the run that comes last
    order = {name: index for index, name in enumerate(letters)}
    lines = [
        (system, letters[run], *(_cell(cells.get(data)) for data in sets))
        for (system, run), cells in sorted(
            by_row.items(), key=lambda item: (not _versioned(item[0][0]), item[0][0], order[item[0][1]])
        )
        if (_versioned(system) or last[system] == run) and any(row.value for row in cells.values())
    ]
    measures = " and ".join(dict.fromkeys(row.measure for row in chosen))
    yield f"{measures} at tuned thresholds, mean over the languages of each set, 95% intervals over texts:"
    yield ""
    yield Table("", ("system", "run", *sets), lines).to_markdown().rstrip()
    changed = [
        text for system in dict.fromkeys(row.system for row in chosen) for text in _changed(system, chosen, letters)
    ]
    if changed:
        yield from (
            "",
            f"One version, different figures: {'; '.join(changed)}. The code, the rows or the processor differ: the"
            " reader multiplies in 8-bit numbers, and rounding differs between processors.",
        )


def _changed(system: str, rows: list[Figure], letters: dict[str, str]) -> Iterator[str]:
    """The sets on which two runs of one version of a detector differ, in the figures as they are printed."""
    own = [row for row in rows if row.system == system and row.value and _versioned(system)]
    for data in dict.fromkeys(row.data for row in own):
        values = {letters[row.run]: number(float(row.value)) for row in own if row.data == data}
        if len(set(values.values())) > 1:
            yield f"{system} on {data}, {', '.join(f'{value} in run {run}' for run, value in values.items())}"


def _versioned(system: str) -> bool:
    return bool(re.search(r" \d[\d.]*$", system))


def _published(entry: dict[str, Any], rows: list[Figure], letters: dict[str, str], facts: Path) -> Iterator[str]:
    """Published figures beside ours of the newest runs that have them, and every difference of protocol."""
    with (facts / entry["file"]).open(encoding="utf-8", newline="") as file:
        printed = [row for row in csv.DictReader(file) if all(row[k] == v for k, v in entry["where"].items())]
    ours: dict[str, dict[tuple[str, str], Figure]] = {}
    for row in rows:
        if (row.level, row.data, row.at) == (entry["level"], entry["data"], "own") and row.measure in entry["measures"]:
            ours.setdefault(f"{row.system}, run {letters[row.run]}", {})[row.language, row.measure] = row
    codes = {
        row[entry["language"]]: entry["tags"].get(row[entry["language"]], row[entry["language"]]) for row in printed
    }
    ours = {
        name: cells
        for name, cells in ours.items()
        if any((tag, m) in cells for tag in codes.values() for m in entry["measures"])
    }
    lines = [
        (
            f"{language_name(codes[row[entry['language']]])}, {measure}",
            number(float(row[measure]) / entry["scale"]),
            *(_cell(cells.get((codes[row[entry["language"]]], measure))) for cells in ours.values()),
        )
        for row in printed
        for measure in entry["measures"]
    ]
    yield f"**{entry['title']}**"
    yield ""
    yield Table("", ("", entry["paper"], *ours), lines).to_markdown().rstrip()
    yield ""
    yield "The two were not measured alike:"
    yield ""
    yield from (f"- {text}" for text in entry["differences"])


def main() -> int:
    """Part the data and run the bench, record it, make the page, as asked; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of labelled data: runs the bench; default: run nothing")
    parser.add_argument("--out", type=Path, default=Path("runs/results"), help="folder of the run")
    parser.add_argument("--systems", metavar="NAMES", help="of results.toml, with commas; default: all")
    parser.add_argument("--sets", metavar="NAMES", help="of results.toml, with commas; default: all")
    parser.add_argument("--record", metavar="NAME", help="add the figures of the run in OUT to history.csv")
    parser.add_argument("--facts", type=Path, help="folder of published tables, for --markdown")
    parser.add_argument("--markdown", type=Path, help="where the page goes; default: make none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--smoke", type=int, help="samples of a language, to try it; default: as results.toml says")
    given = parser.parse_args()
    if given.markdown and not given.facts:
        parser.error("--markdown needs --facts")
    code = 0
    if given.data:
        parted(given.data, given.out / "data")
        bench = given.out / "data" / "results.toml"  # paths are relative to it
        bench.write_text(bench_file(given.systems, given.sets), "utf-8")
        words = ["bench", "run", str(bench), "--output", str(given.out), "--processes", str(given.jobs)]
        code = veriglot_command([*words, *(["--limit", str(given.smoke)] if given.smoke else [])])
    if given.record and not code:
        record(read_results(given.out), given.record, HERE)
    if given.markdown and not code:
        given.markdown.write_text(page(HERE, given.facts), "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
