"""Examples per CPU second: the grounding detector, transformers of LettuceDetect's shapes, and bare word segmentation.

All three in one run, on the same examples, one thread, by process time. The transformers are built from their
configuration with random weights and are given random token ids: their time depends on the number of tokens alone.
The number is `--tokens`; 1,250 is what the prompt (passages, question and response) of a gold row of mFAVA comes to.
"""

from __future__ import annotations

import argparse
import os
from time import process_time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import figures
import inputs
import veriglot
from veriglot.text import word_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from veriglot.records import Sample

BATCH = 32


def timed(work: Callable[[], object], count: int, repeats: int) -> float:
    """CPU seconds an example; the best of `repeats`, since everything else on a machine only ever adds."""
    taken = []
    for _ in range(repeats):
        start = process_time()
        work()
        taken.append(process_time() - start)
    return min(taken) / count


def in_batches(detector: Any, samples: Sequence[Sample], size: int) -> None:
    """Judge `samples`, `size` at a time."""
    for start in range(0, len(samples), size):
        detector.predict(samples[start : start + size])


def segment(samples: Sequence[Sample]) -> None:
    """Find the words of every text that a detector reads."""
    for sample in samples:
        for text in inputs.texts(sample):
            word_bounds(text, sample.language)


def measure(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """The table's rows, and what to know about them."""
    samples = inputs.read_rows(options.data, options.examples)
    detector = veriglot.load_detector("grounding")
    detector.predict(samples[:1])  # loads the weights
    status = {str(prediction.status) for prediction in detector.predict(samples)}
    count = len(samples)
    ours = timed(lambda: in_batches(detector, samples, BATCH), count, options.repeats)
    seconds = {
        f"grounding, batches of {BATCH}": ours,
        "grounding, one at a time": timed(lambda: in_batches(detector, samples, 1), count, options.repeats),
        "word segmentation alone": timed(lambda: segment(samples), count, options.repeats),
    }
    notes = [
        f"{count} examples of {inputs.code_points(samples):,.0f} code points on average, from "
        f"{options.data or 'examples/samples.jsonl, repeated to the length of gold rows'}; statuses: {sorted(status)}",
    ]
    if not options.no_transformers:
        import shapes

        for shape in shapes.SHAPES:
            found = shapes.cpu_seconds(shape, options.tokens, options.transformer_examples)
            seconds[f"{shape} shape, {found['parameters'] / 1e6:,.0f}M"] = found["seconds"]
        notes.append(f"transformers: random weights, {options.tokens:,} random token ids an example, one at a time")
    return [
        {"what": what, "CPU ms an example": 1000 * s, "examples a CPU s": 1 / s, "times grounding": s / ours}
        for what, s in seconds.items()
    ], notes


def main() -> None:
    """Read the options, measure, show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a file or folder in any readable format; default: our examples, lengthened")
    parser.add_argument("--examples", type=int, default=192, help="rows for the detector (default: 192)")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the best counts (default: 3)")
    parser.add_argument("--tokens", type=int, default=1250, help="token ids of a transformer's prompt (default: 1250)")
    parser.add_argument("--transformer-examples", type=int, default=3, help="rows for each transformer (default: 3)")
    parser.add_argument("--no-transformers", action="store_true", help="leave the transformers out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows, notes = measure(options)
    figures.show("Grounding speed, one thread", rows, as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
