"""Examples per CPU second: our detectors, transformers of LettuceDetect's shapes, and bare word segmentation.

All in one run, on the same examples, one thread, by process time. A detector is made anew for each run, so that none
profits from what it saw in the one before; making it is not counted. The transformers are built from their
configuration with random weights and are given random token ids: their time depends on the number of tokens alone. The
number is `--tokens`; 1,250 is what the prompt (passages, question and response) of a gold row of mFAVA comes to.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import figures
import inputs
import veriglot
from veriglot.errors import MissingExtraError
from veriglot.hub.registry import MissingWeightsError
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.records import Detector, Sample

BATCH = 32
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
    veriglot.detect(*PAIR, detector=detector)
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


def main() -> None:
    """Read the options, measure, show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detector", action="append", help="name; may be repeated (default: grounding, reader)")
    parser.add_argument("--reader-weights", help="folder of weights for reader (default: those in the package)")
    parser.add_argument("--data", help="a file or folder in any readable format; default: our examples, lengthened")
    parser.add_argument("--examples", type=int, default=192, help="rows for a detector (default: 192)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the best counts (default: 3)")
    parser.add_argument("--tokens", type=int, default=1250, help="token ids of a transformer's prompt (default: 1250)")
    parser.add_argument("--transformer-examples", type=int, default=3, help="rows for each transformer (default: 3)")
    parser.add_argument("--no-transformers", action="store_true", help="leave the transformers out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows, notes = measure(options)
    figures.show("Detector speed, one thread", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
