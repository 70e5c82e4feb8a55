"""Examples per CPU second: our detectors, transformers of LettuceDetect's shapes, and bare word segmentation.

All in one run, on the same examples, one thread, by process time. A detector is made anew for each run, so that none
profits from what it saw in the one before; making it is not counted. The transformers are built from their
configuration with random weights and are given random token ids: their time depends on the number of tokens alone. The
number is `--tokens`; 1,250 is what the prompt (passages, question and response) of a gold row of mFAVA comes to.

With `--files` instead: what `veriglot detect` costs from a file to a file, all its processes together, beside what its
detector alone costs on the same rows. A run over the first half tells what starting costs in every process (loading,
the first use of a language), which does not grow with the rows.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import msgspec

import figures
import inputs
import veriglot
from veriglot.errors import MissingExtraError
from veriglot.hub.registry import MissingWeightsError
from veriglot.records import encode
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from veriglot.records import Detector, Sample

BATCH = 32
MOST = 1.4  # times the detector's own time that a row may cost from file to file
DETECT = "import sys; from veriglot.cli import main; sys.exit(main())"
PAIR = ("The mill was built in 1874.", "It was built in 1901.")


def timed(work: Callable[[], object], count: int, repeats: int) -> float:
    """CPU seconds an example; the best of `repeats`, since everything else on a machine only ever adds."""
    return min(_run(work) for _ in range(repeats)) / count


def _run(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def timed_anew(name: str, options: argparse.Namespace, samples: Sequence[Sample], size: int) -> float:
    """CPU seconds an example of a detector that is made and warmed up before each run, `size` at a time."""
    taken = []
    for _ in range(options.repeats):
        detector = loaded(name, options)
        taken.append(_run(partial(in_batches, detector, samples, size)))
    return min(taken) / len(samples)


def loaded(name: str, options: argparse.Namespace) -> Detector:
    """The detector, its weights in memory."""
    more = {"weights": options.reader_weights} if name == "reader" and options.reader_weights else {}
    detector = veriglot.load_detector(name, **more)
    veriglot.detect(PAIR[0], response=PAIR[1], detector=detector)
    return detector


def in_batches(detector: Detector, samples: Sequence[Sample], size: int) -> None:
    """Judge `samples`, `size` at a time."""
    for start in range(0, len(samples), size):
        detector.predict(samples[start : start + size])


def segment(samples: Sequence[Sample]) -> None:
    """Find the words of every text that a detector reads."""
    for sample in samples:
        for text in inputs.texts(sample):
            word_bounds(text, sample.language)


def can_be_loaded(options: argparse.Namespace, notes: list[str]) -> list[str]:
    """The detectors that were asked for; without any, ours but those whose packages or model are not here."""
    if options.detector:
        return list(dict.fromkeys(options.detector))
    try:
        loaded("reader", options)
    except (MissingExtraError, MissingWeightsError) as error:
        notes.append(f"without reader: {error}")
        return ["grounding"]
    return ["grounding", "reader"]


def measure(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """The table's rows, and what to know about them."""
    samples, notes = inputs.read_rows(options.data, options.examples), list[str]()
    count = len(samples)
    names = can_be_loaded(options, notes)
    seconds, status = {}, set()
    for name in names:
        status |= {str(prediction.status) for prediction in loaded(name, options).predict(samples)}
        seconds[f"{name}, batches of {BATCH}"] = timed_anew(name, options, samples, BATCH)
        seconds[f"{name}, one at a time"] = timed_anew(name, options, samples, 1)
    seconds["word segmentation alone"] = timed(lambda: segment(samples), count, options.repeats)
    notes.append(
        f"{count} examples of {inputs.code_points(samples):,.0f} code points on average, from "
        f"{options.data or 'examples/samples.jsonl, repeated to the length of gold rows'}; statuses: {sorted(status)}"
    )
    if not options.no_transformers:
        import shapes

        for shape in shapes.SHAPES:
            found = shapes.cpu_seconds(shape, options.tokens, options.transformer_examples)
            seconds[f"{shape} shape, {found['parameters'] / 1e6:,.0f}M"] = found["seconds"]
        notes.append(f"transformers: random weights, {options.tokens:,} random token ids an example, one at a time")
    ours = {f"times {name}": seconds[f"{name}, batches of {BATCH}"] for name in names}
    return [
        {
            "what": what,
            "CPU ms an example": 1000 * taken,
            "examples a CPU s": 1 / taken,
            **{column: taken / base for column, base in ours.items()},
        }
        for what, taken in seconds.items()
    ], notes


def from_files(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """CPU milliseconds a row of `veriglot detect` with one process and two, and of its detector alone."""
    samples, notes = inputs.read_rows(options.data, options.examples), list[str]()
    samples = [msgspec.structs.replace(row, id=str(number), annotations=()) for number, row in enumerate(samples)]
    count, half, rows = len(samples), len(samples) // 2, []
    with tempfile.TemporaryDirectory() as folder:
        source, first = Path(folder) / "rows.jsonl", Path(folder) / "half.jsonl"
        for path, number in ((source, count), (first, half)):
            with path.open("wb") as file:
                file.writelines(encode(sample) + b"\n" for sample in islice(samples, number))
        for name in options.detector or ["grounding"]:
            for words in (False, True):
                runs: dict[str, Callable[[], float]] = {"alone": partial(_alone, name, source, half, words=words)}
                for processes in (1, 2):
                    for path in (first, source):
                        runs[f"{path.stem} {processes}"] = partial(_detect, name, path, processes, words=words)
                taken = [{what: work() for what, work in runs.items()} for _ in range(options.repeats)]  # by turns
                best = {what: min(times[what] for times in taken) for what in runs}
                alone = best["alone"] / (count - half)
                for processes in (1, 2):
                    whole = best[f"rows {processes}"]
                    each = (whole - best[f"half {processes}"]) / (count - half)
                    rows.append(
                        {
                            "detector": name,
                            "words": "yes" if words else "no",
                            "processes": processes,
                            "detector ms": 1000 * alone,
                            "from file to file ms": 1000 * each,
                            "ratio": each / alone,
                            "start s": whole - each * count,
                            "ratio with start": whole / count / alone,
                        }
                    )
    notes.append(
        f"{count} rows of {inputs.code_points(samples):,.0f} code points on average; CPU time, user and system"
    )
    notes.append("detector: in a process of its own, the second half of the rows after the first, as from file to file")
    notes.append(f"ratio: at most {MOST} times the detector's own time; the start is paid once a run")
    return rows, notes


def _alone(name: str, source: Path, half: int, *, words: bool) -> float:
    """CPU seconds that a detector takes over the rows from `half` on, after those before it, in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_second_half, name, source, half, words=words).result()


def _second_half(name: str, source: Path, half: int, *, words: bool) -> float:
    detector = veriglot.load_detector(name, words=words)
    samples = list(veriglot.read(source))
    in_batches(detector, samples[:half], BATCH)
    return _run(partial(in_batches, detector, samples[half:], BATCH))


def _detect(name: str, source: Path, processes: int, *, words: bool) -> float:
    """CPU seconds of one `veriglot detect` and the processes that it starts."""
    command = [sys.executable, "-c", DETECT, "detect", str(source), "-o", str(source.with_suffix(".predictions.jsonl"))]
    command += ["--detector", name, "--processes", str(processes), "--overwrite", *(["--words"] if words else [])]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} left with {running.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Read the options, measure, show."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--detector", action="append", help="name; may be repeated (default: grounding, reader)")
    parser.add_argument("--reader-weights", help="folder of weights for reader (default: those in the package)")
    parser.add_argument("--data", help="a file or folder in any readable format; default: our examples, lengthened")
    parser.add_argument("--examples", type=int, default=192, help="rows for a detector (default: 192)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the best counts (default: 3)")
    parser.add_argument("--tokens", type=int, default=1250, help="token ids of a transformer's prompt (default: 1250)")
    parser.add_argument("--transformer-examples", type=int, default=3, help="rows for each transformer (default: 3)")
    parser.add_argument("--no-transformers", action="store_true", help="leave the transformers out")
    parser.add_argument("--files", action="store_true", help="detect from file to file beside the detector alone")
    options = parser.parse_args()
    if options.files:
        rows, notes = from_files(options)
        figures.show("From file to file, beside the detector alone", rows, as_json=options.json, notes=notes)
        return
    rows, notes = measure(options)
    figures.show("Detector speed, one thread", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
