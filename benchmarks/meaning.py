"""One detector against another on texts that neither was trained on, language by language, in paired intervals.

    python benchmarks/meaning.py --data ../shared/data
    python benchmarks/meaning.py --data ../shared/data --first-predictions reader_folds.jsonl \
        --second-predictions grounding_folds.jsonl

The difference of two figures is resampled by drawing texts, the same for both, so that it is far surer than the figures
themselves. `verdict` says what the interval of the difference allows: `better` or `worse` where zero lies outside it;
`no worse` where the loss is less than a point at its lower end; else `unclear`. The means are over the languages in
which the encoder was measured and over the others. Predictions that are given stand in for the detector, by id: natural
answers need those of folds, for the shipped weights have seen these (see held_out.py).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cross_lingual import ENCODER
from figures import show
from held_out import LOWER_IS_BETTER, SETS
from ranking import mean_of, shown
from veriglot.bench.evaluation import Evaluator, Settings
from veriglot.detectors.registry import load_detector
from veriglot.encoders.base import measured_in, strength_among
from veriglot.formats.reader import read_predictions
from veriglot.metrics.estimate import percentile
from veriglot.metrics.measures import measures
from veriglot.records import Prediction, Sample, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from held_out import HeldOut, Measured
    from veriglot.metrics.counts import Counts, Sums
    from veriglot.records import Detector

    Array = NDArray[np.float64]

POINT = 0.01  # what may be lost where nothing is to be gained


@dataclass
class Side:
    """One of the two: a detector, and predictions that stand in for it."""

    detector: Detector
    given: dict[str, Prediction] = field(default_factory=dict)

    def judge(self, samples: Sequence[Sample]) -> tuple[list[Prediction], int]:
        """A prediction a sample, in order, and how many of them were given."""
        asked = iter(self.detector.predict([sample for sample in samples if sample.id not in self.given]))
        found = [self.given[s.id] if s.id in self.given else next(asked) for s in samples]
        return found, sum(sample.id in self.given for sample in samples)


def side(name: str, predictions: Sequence[Path]) -> Side:
    """A detector by name, with the predictions of files.

    Raises:
        UnknownNameError: no detector has that name.
        InputError: a file cannot be read.
    """
    given = {p.id: p for path in predictions for p in read_predictions(str(path))}
    return Side(load_detector(name, words=True), given)


def counted(detector: Detector, samples: Sequence[Sample], predictions: Sequence[Prediction]) -> Counts:
    """The counts of one side."""
    settings = Settings(
        detector.name, detector.signature, detector_taxonomy=detector.taxonomy, threshold=float(detector.threshold)
    )
    evaluator = Evaluator(settings)
    for sample, prediction in zip(samples, predictions, strict=True):
        evaluator.add(sample, prediction)
    return evaluator.stored().counts


def resampled(counts: Counts, resamples: int, seed: int) -> dict[str, Sums]:
    """Language to its sums in the data (draw 0) and in each resample; the same texts give the same draws."""
    return {tag: counts.sums(tag, resamples=resamples, seed=seed)[0] for tag in sorted(set(counts.languages))}


def values(sums: dict[str, Sums], measured: Measured) -> dict[str, Array]:
    """Language to the measure's value in each draw."""
    (measure,) = (m for m in measures(()) if (m.level, m.name) == measured)
    return {tag: measure.value(one) for tag, one in sums.items()}


def with_means(found: dict[str, Array]) -> dict[str, Array]:
    """The values with their means over the encoder's languages, over the others and over all."""
    known = [tag for tag in found if strength_among(measured_in(ENCODER), tag) == "measured"]
    groups = {
        "mean, measured": known,
        "mean, weak": [tag for tag in found if tag not in known],
        "mean": list(found),
    }
    return found | {name: mean_of([found[tag] for tag in tags]) for name, tags in groups.items() if tags}


def verdict(difference: Array) -> str:
    """What the interval of a difference allows; more is better."""
    low, high, _ = percentile(difference[1:])
    if low is None or high is None:
        return "-"
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "no worse" if low >= -POINT else "unclear"


def rows_of(first: dict[str, Array], second: dict[str, Array], names: Sequence[str], sign: int) -> list[dict[str, Any]]:
    """A row a language and a mean."""
    rows = []
    for tag, one in first.items():
        difference = one - second[tag]
        of_mean = tag.startswith("mean")
        rows.append(
            {
                "language": tag,
                "encoder": "" if of_mean else strength_among(measured_in(ENCODER), tag),
                names[0]: shown(one),
                names[1]: shown(second[tag]),
                "difference": shown(difference),
                "verdict": verdict(sign * difference),
            }
        )
    return rows


def compare(held_out: HeldOut, sides: tuple[Side, Side], options: argparse.Namespace) -> None:
    """The tables of one set."""
    samples = held_out.read(options.data, options.seed)
    if options.limit is not None:
        samples = samples[: options.limit]
    (one, given_one), (other, given_other) = (part.judge(samples) for part in sides)
    both = [
        i for i in range(len(samples)) if one[i].status is Status.SCORED and other[i].status is Status.SCORED
    ]  # the same texts on both sides, or the draws would not be paired
    names = [part.detector.name for part in sides]
    names[1] += " (second)" if names[0] == names[1] else ""
    chosen = [samples[i] for i in both]
    draws = [
        resampled(counted(part.detector, chosen, [found[i] for i in both]), options.resamples, options.seed)
        for part, found in zip(sides, (one, other), strict=True)
    ]
    notes = [f"{len(samples):,} responses; scored by both, and so in the figures: {len(both):,}"]
    if given_one or given_other or held_out.seen:
        notes.append(f"from given predictions: {given_one:,} of {names[0]}, {given_other:,} of {names[1]}")
    if held_out.seen and min(given_one, given_other) < len(samples):
        notes.append("NOT HELD OUT: shipped weights were trained on these texts; give predictions that folds made")
    for measured in held_out.measures:
        first, second = (with_means(values(sums, measured)) for sums in draws)
        sign = -1 if measured in LOWER_IS_BETTER else 1
        better = ", lower is better" if sign < 0 else ""
        title = f"{held_out.title}: {' '.join(measured)}{better}"
        show(title, rows_of(first, second, names, sign), as_json=options.json, notes=notes)


def main() -> None:
    """Read, judge, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds mfava, mu_shroom_val, wice, xquad")
    parser.add_argument("--first", default="reader", help="name of a detector")
    parser.add_argument("--second", default="grounding", help="name of the detector that it is held against")
    parser.add_argument("--first-predictions", type=Path, nargs="*", default=[], help="files that stand in for it")
    parser.add_argument("--second-predictions", type=Path, nargs="*", default=[])
    parser.add_argument("--sets", nargs="+", default=[s.name for s in SETS], choices=[s.name for s in SETS])
    parser.add_argument("--limit", type=int, default=None, help="the first responses of each set; default: all")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sides = side(options.first, options.first_predictions), side(options.second, options.second_predictions)
    for held_out in SETS:
        if held_out.name in options.sets:
            print(f"{held_out.title} ...", file=sys.stderr, flush=True)
            compare(held_out, sides, options)


if __name__ == "__main__":
    main()
