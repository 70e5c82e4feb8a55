"""Sampling for translation over millions of lines: counts, memory, time, and whether it comes out the same.

    python benchmarks/mt_sample.py [--lines 5000000] [--jobs 2] [--folder DIR] [--twice]

Generates sources with translations and six columns of scores (`mt_sample_lines.py`), samples them with hat's numbers,
or, of fewer than 5 million lines, with numbers smaller in proportion, and holds what comes out against what was
generated. The memory is that of all processes together, resident, looked at every fifth of a second; what several of
them map counts several times. That no near-duplicates stand in two parts is found out anew: every pair of the sample,
by n-grams that are made here. `--twice` samples again in one process, and compares the files byte by byte. Leaves with
1 where something does not hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import figures
from mt_sample_lines import SCORERS, generate
from veriglot.datasets.sampling.filters import Cleaning
from veriglot.datasets.sampling.lines import Columns
from veriglot.datasets.sampling.sample import Account, MtSample, SampleAccount, Sampling, mt_sample
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

HAT_LINES = 5_000_000
NEAR = 0.8
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK = 0.2  # seconds


class Memory(threading.Thread):
    """Watches the resident memory of this process and its children; `most` is the greatest sum, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        while not self.stopped.wait(_LOOK):
            self.most = max(self.most, sum(_resident(process) for process in _family(os.getpid())))


def _family(process: int) -> list[int]:
    try:
        children = "".join(path.read_text("ascii") for path in Path(f"/proc/{process}/task").glob("*/children"))
    except OSError:
        return [process]
    return [process, *(one for child in children.split() for one in _family(int(child)))]


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * _PAGE
    except OSError:
        return 0


class Clock(ProgressReporter):
    """Takes the time of every stage."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, float]] = []

    def begin(self, step: str, total: int | None) -> None:  # noqa: ARG002
        """A stage begins."""
        self.steps.append((step, time.monotonic()))
        print(f"{time.strftime('%H:%M:%S')} {step}", file=sys.stderr, flush=True)

    def seconds(self) -> dict[str, float]:
        """Seconds of each stage."""
        ends = [*(began for _, began in self.steps[1:]), time.monotonic()]
        return {step: end - began for (step, began), end in zip(self.steps, ends, strict=True)}


def sampling_of(lines: int) -> Sampling:
    """Hat's numbers, in proportion where there are fewer lines than hat had."""
    lines = min(lines, HAT_LINES)
    parts = {"train": lines // 1_000, "dev": lines // 2_500, "test": 3 * lines // 5_000}
    return Sampling(worst=lines // 5_000, drawn=lines // 5_000, most=sum(parts.values()), parts=parts)


def sample(path: Path, folder: Path, sampling: Sampling, jobs: int) -> tuple[Account, dict[str, float], int]:
    """Sample the lines; returns the account, the seconds of every stage and the greatest memory in bytes."""
    given = tuple(Direction.HIGHER_IS_WORSE if name == "top-ngram" else Direction.HIGHER_IS_BETTER for name in SCORERS)
    order = MtSample((str(path),), "en", Cleaning("de"), sampling, Columns(given=SCORERS), given=given)
    memory, clock = Memory(), Clock()
    memory.start()
    account = mt_sample(order, folder, jobs=jobs, progress=clock)
    memory.stopped.set()
    memory.join()
    return account, clock.seconds(), memory.most


def hashes(folder: Path) -> dict[str, str]:
    """Hash of every output."""
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(folder.iterdir()) if one.is_file()}


def rows_of(folder: Path, parts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Every line of the sample with its part."""
    return [(part, json.loads(line)) for part in parts for line in (folder / f"{part}.jsonl").read_bytes().splitlines()]


def most_similar(texts: Sequence[str], parts: Sequence[str]) -> tuple[float, int]:
    """Of all pairs of texts: the greatest similarity in two parts, and how many are near-duplicates in one part.

    Similarity is that of sets of 5 characters, in lower case. Every pair is counted, by what holds each n-gram.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    sizes = np.zeros(len(texts))
    own: list[set[str]] = []
    for number, text in enumerate(texts):
        plain = re.sub(r"[\W_]+", " ", re.sub(r"\d", "0", text.lower())).strip()
        own.append({plain[i : i + 5] for i in range(max(len(plain) - 4, 1))})
        sizes[number] = len(own[-1])
        for ngram in own[-1]:
            holders[ngram].append(number)
    of_ngram = {ngram: np.array(numbers) for ngram, numbers in holders.items()}
    part = np.array(parts)
    greatest, together = 0.0, 0
    for number, ngrams in enumerate(own):
        shared = np.bincount(np.concatenate([of_ngram[ngram] for ngram in ngrams]), minlength=len(texts))
        similarity = shared / (sizes + len(ngrams) - shared)
        similarity[: number + 1] = 0.0
        elsewhere = part != part[number]
        greatest = max(greatest, float(similarity[elsewhere].max(initial=0.0)))
        together += int((similarity[~elsewhere] >= NEAR).sum())
    return greatest, together


def is_bad_enough(row: dict[str, Any], sample: SampleAccount) -> bool:
    """Whether the scorers that chose a line gave it a number as bad as those of the lines that they may choose."""
    told = row["meta"]["sampling"]
    accounts = {one.scorer: one for one in sample.scorers}
    for scorer, step in told["chosen_by"].items():
        own, value = accounts[scorer], told["scores"][scorer]
        border = own.worst_border if step == "worst" else own.percentile_border
        assert border is not None
        if (value < border) if own.direction is Direction.HIGHER_IS_WORSE else (value > border):
            return False
    return bool(told["chosen_by"])


def holds(account: Account, kinds: dict[str, int], sampling: Sampling, folder: Path) -> list[dict[str, Any]]:
    """What has to be so, with what was found."""
    cleaned, chosen = account.cleaned, account.sample
    assert chosen is not None
    lines = sum(count for kind, count in kinds.items() if kind != "detached")
    fallen, again = cleaned.drop_reasons, kinds["repeated"] + kinds["near"]
    scorers, parts = chosen.scorers, {name: part.lines for name, part in chosen.parts.items()}
    rows = rows_of(folder, list(parts))
    sources = [row["evidence"][0]["text"] for _, row in rows]
    names = [part for part, _ in rows]
    source, _ = most_similar(sources, names)
    target, together = most_similar([row["response"] for _, row in rows], names)
    found = fallen["repeated"] + fallen["near_duplicate"]
    steps = sorted({(one.worst, one.drawn) for one in scorers})
    checks: list[tuple[str, Any, bool]] = [
        ("each line has one fate", sum(fallen.values()), sum(fallen.values()) == cleaned.lines == lines),
        (
            "repeats, of those generated",
            fallen["repeated"] / kinds["repeated"],
            fallen["repeated"] >= kinds["repeated"],
        ),
        ("repeats and near-duplicates, likewise", found / again, 0.9999 * again <= found <= 1.001 * again),
        ("short lines, likewise", fallen["too_short"] / kinds["short"], fallen["too_short"] == kinds["short"]),
        ("English lines", cleaned.other_languages["en"], cleaned.other_languages["en"] == kinds["English"]),
        ("new lines that stay", fallen["kept"] / kinds["new"], 0.999 < fallen["kept"] / kinds["new"] <= 1),
        ("worst and drawn of each scorer", str(steps), steps == [(sampling.worst, sampling.drawn)]),
        (
            "lines scored and not",
            scorers[3].unscored,
            {one.scored + one.unscored for one in scorers} == {cleaned.clean},
        ),
        ("lines of the sample", chosen.sample, chosen.sample == min(sampling.most, chosen.union) == len(rows)),
        ("parts", str(list(parts.values())), parts == sampling.parts),
        ("lines chosen for a bad score", len(rows), all(is_bad_enough(row, chosen) for _, row in rows)),
        ("different sources", len(set(sources)), len(set(sources)) == len(rows)),
        ("near-duplicate translations, in one part", together, together > 0),
        ("most similar translations of two parts", target, target < NEAR),
        ("most similar sources of two parts", source, source < NEAR),
    ]
    return [{"what": what, "found": value, "holds": "yes" if good else "NO"} for what, value, good in checks]


def show(account: Account, kinds: dict[str, int], *, as_json: bool) -> None:
    """Every count."""
    chosen = account.sample
    assert chosen is not None
    rows = [{"lines": what.replace("_", " "), "count": count} for what, count in account.cleaned.drop_reasons.items()]
    told = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
    figures.show(f"Outcomes of {account.cleaned.lines:,} lines", rows, as_json=as_json, notes=[f"generated: {told}"])
    rows = [
        {
            "scorer": one.scorer,
            "scored": one.scored,
            "worst": one.worst,
            "up to": one.worst_border,
            "percentile": one.percentile,
            "up to ": one.percentile_border,
            "drawn": one.drawn,
            "in sample": one.in_sample,
        }
        for one in chosen.scorers
    ]
    notes = [
        f"{chosen.worst:,} worst + {chosen.drawn:,} drawn = {chosen.union:,}; {chosen.sample:,} in the sample",
        f"{chosen.groups:,} groups of near-duplicates, the largest of {chosen.largest_group:,} lines",
        ", ".join(f"{name} {part.lines:,}" for name, part in chosen.parts.items()),
    ]
    figures.show("What each scorer gave", rows, as_json=as_json, notes=notes)


def measured(path: Path, folder: Path, lines: int, jobs: int, *, as_json: bool) -> bool:
    """Generate, sample, show; returns whether all holds."""
    kinds, sampling = generate(path, lines, seed=0), sampling_of(lines)
    account, seconds, memory = sample(path, folder, sampling, jobs)
    show(account, kinds, as_json=as_json)
    rows: list[dict[str, Any]] = [{"stage": stage, "seconds": taken} for stage, taken in seconds.items()]
    rows.append({"stage": "all", "seconds": sum(seconds.values())})
    disk = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    notes = [
        f"processes: {jobs}; greatest memory of all together: {memory / 2**20:,.0f} MiB",
        f"input: {path.stat().st_size / 2**20:,.0f} MiB; written: {disk / 2**20:,.0f} MiB",
    ]
    figures.show("What it took", rows, as_json=as_json, notes=notes)
    rows = holds(account, kinds, sampling, folder)
    rows.append({"what": "MiB of memory", "found": memory // 2**20, "holds": "yes" if memory < 2**30 else "NO"})
    figures.show("Held against what was generated", rows, as_json=as_json, notes=[])
    return all(row["holds"] == "yes" for row in rows)


def again(path: Path, first: Path, second: Path, lines: int, *, as_json: bool) -> bool:
    """Sample once more in one process; returns whether the files are the same."""
    _, seconds, memory = sample(path, second, sampling_of(lines), 1)
    same = hashes(first) == hashes(second)
    row = {"files": len(hashes(first)), "the same": "yes" if same else "NO", "seconds": sum(seconds.values())}
    figures.show("Once more, in one process", [{**row, "MiB": memory // 2**20}], as_json=as_json, notes=[])
    return same


def main() -> int:
    """Read the options, measure, show; returns the exit code."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--lines", type=int, default=HAT_LINES, help="lines to generate (default: 5,000,000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--folder", type=Path, help="where to work, which stays (default: a temporary folder)")
    parser.add_argument("--twice", action="store_true", help="sample again in one process, and compare")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "lines.jsonl"
    try:
        good = measured(path, folder / "first", asked.lines, asked.jobs, as_json=asked.json)
        if asked.twice:
            good &= again(path, folder / "first", folder / "second", asked.lines, as_json=asked.json)
    finally:
        if asked.folder is None:
            shutil.rmtree(folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
