"""Right answers must come back clean and wrong ones marked: 792 answers to our own texts, half right, in 12 languages.

    python benchmarks/answer_set.py --detector grounding reader auto

`answer_set/` holds one file a language, each with three articles that exist nowhere else and 22 answers to each: 11
right ones (in other words, joined from several sentences, lists, citations, refusals, converted values, in another
language than the evidence) and 11 with one known error, whose words stand between tags. Written for this benchmark: a
detector must never be trained, calibrated or chosen on it, and it is not edited any more. Four readers who saw neither
kinds nor tags judged every answer, twice; what they found unclear was reworded, and in the end they agreed with every
label (`sha256sum answer_set/*.toml | sha256sum` names the state that figures are of).

    python benchmarks/answer_set.py --thresholds 0.3 0.4 0.5 0.6 0.7 --data ../shared/data/mfava/gold_dev

prints what a threshold costs: a row each, with word F1 (mean over languages) on other labelled data beside it.

`--articles long` takes 792 answers to other articles instead, in `answer_set_long/`: four times as much evidence,
answers twice as long, in words further from it. A language model wrote them, and alone read them a second time.

A quarter of the articles is there to be looked at (`--part look`); figures come from the rest. *Marked* is the share of
answers in which anything is marked: false alarms among right answers. *At the place* is the share of wrong answers with
a mark that touches the wrong words. Intervals of a kind are Wilson's; those of all answers draw articles again.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import veriglot
from figures import show
from veriglot.detectors.registry import load_detector
from veriglot.records import Annotation, Evidence, Kind, Sample, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Prediction

HERE = Path(__file__).resolve().parent
AUTHORING = {"short": HERE / "answer_set", "long": HERE / "answer_set_long"}

sys.path.insert(0, str(HERE.parent / "examples"))

from make_samples import read_marks  # noqa: E402  the tags are those of the examples

RIGHT = ("paraphrase", "several", "list", "citation", "refusal", "conversion", "cross-right")
WRONG = (
    *("negation", "roles", "entity", "crossed", "direction", "order", "quantity", "polarity", "number"),
    *("cross-wrong", "addition"),
)


def read_answers(articles: str = "short") -> list[Sample]:
    """Every answer to the `short` or `long` articles; `meta` has its `kind`, its `article` and its `part` (`look` or
    `report`).

    Raises:
        ValueError: a kind is unknown, a right answer has marks, or a wrong one has none.
    """
    samples = []
    for order, path in enumerate(sorted(AUTHORING[articles].glob("*.toml"))):
        data = tomllib.loads(path.read_text("utf-8"))
        for place, article in enumerate(data["article"]):
            passages = tuple(Evidence(text=text, title=article["title"]) for text in article["evidence"])
            meta = {"article": f"{data['language']}-{place + 1}", "part": "report" if (order + place) % 4 else "look"}
            for number, (kind, question, tagged, *language) in enumerate(article["answers"], start=1):
                response, spans = read_marks(tagged)
                if kind not in RIGHT + WRONG or bool(spans) != (kind in WRONG):
                    raise ValueError(f"{path.name}, {article['title']}, answer {number}: check its kind and its marks")
                samples.append(
                    Sample(
                        id=f"{meta['article']}-{number}",
                        task=Task.QA,
                        language=(language or [data["language"]])[0],
                        question=question,
                        evidence=passages,
                        response=response,
                        annotations=(Annotation(annotator="authors", kind=Kind.HUMAN, taxonomy="fava", spans=spans),),
                        meta={**meta, "kind": kind},
                    )
                )
    return samples


def is_marked(prediction: Prediction) -> bool:
    """Whether anything is marked; what was not checked is not."""
    return bool(prediction.spans)


def is_located(sample: Sample, prediction: Prediction) -> bool:
    """Whether a mark touches the wrong words."""
    wrong = sample.annotations[0].spans or ()
    return any(span.start < w.end and w.start < span.end for span in prediction.spans or () for w in wrong)


def wilson(count: int, total: int) -> str:
    """A share with its 95% interval of Wilson."""
    share, z = count / total, 1.96
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return f"{share:.2f} [{middle - half:.2f}, {middle + half:.2f}]"


def resampled(values: Sequence[bool], articles: Sequence[str], seed: int, resamples: int = 2000) -> str:
    """A share with the 95% interval of drawing articles again."""
    names = sorted(set(articles))
    counts = np.array(
        [[sum(v for v, a in zip(values, articles, strict=True) if a == n), articles.count(n)] for n in names]
    )
    drawn = counts[np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    return f"{sum(values) / len(values):.2f} [{low:.2f}, {high:.2f}]"


def rows_of(samples: Sequence[Sample], predictions: Sequence[Prediction], seed: int) -> list[dict[str, Any]]:
    """A row a kind of answer, and one for all right and all wrong answers."""
    rows = []
    pairs = list(zip(samples, predictions, strict=True))
    for title, kinds in (("right", RIGHT), ("wrong", WRONG)):
        for name in (*kinds, f"all {title}"):
            chosen = [
                (s, p) for s, p in pairs if s.meta["kind"] == name or (name not in kinds and s.meta["kind"] in kinds)
            ]
            hits = {"marked": [is_marked(p) for _, p in chosen], "at the place": [is_located(s, p) for s, p in chosen]}
            if not chosen:
                continue
            row: dict[str, Any] = {"answers": name, "n": len(chosen)}
            for column, values in hits.items():
                if column == "marked" or title == "wrong":
                    articles = [str(s.meta["article"]) for s, _ in chosen]
                    row[column] = (
                        wilson(sum(values), len(values)) if name in kinds else resampled(values, articles, seed)
                    )
                else:
                    row[column] = ""
            rows.append(row)
    return rows


def curve(name: str, thresholds: Sequence[float], samples: Sequence[Sample], data: Path | None) -> list[dict[str, Any]]:
    """A row a threshold: right answers marked, wrong ones marked at the place, word F1 on `data`."""
    labelled = list(veriglot.read(data)) if data else []
    rows = []
    for threshold in thresholds:
        detector = load_detector(name, threshold=threshold)
        pairs = list(zip(samples, detector.predict(samples), strict=True))
        right = [is_marked(p) for s, p in pairs if s.meta["kind"] in RIGHT]
        wrong = [is_located(s, p) for s, p in pairs if s.meta["kind"] in WRONG]
        row: dict[str, Any] = {"threshold": threshold}
        row |= {"right, marked": wilson(sum(right), len(right)), "wrong, at the place": wilson(sum(wrong), len(wrong))}
        if labelled:
            f1 = veriglot.evaluate(labelled, detector, resamples=0).figure("unit", "f1", "mean").value
            row["word F1"] = round(f1, 3) if f1 is not None else "-"
        rows.append(row)
    return rows


def main() -> None:
    """Judge, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--detector", nargs="+", default=["grounding"], help="names of detectors, a table for each")
    parser.add_argument("--articles", choices=["short", "long"], default="short", help="how long the evidence is")
    parser.add_argument("--part", choices=["look", "report"], default="report")
    parser.add_argument("--thresholds", nargs="+", type=float, help="a table of these thresholds instead, 0 to 1")
    parser.add_argument("--data", type=Path, help="labelled data for the word F1 of that table; default: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    samples = [sample for sample in read_answers(options.articles) if sample.meta["part"] == options.part]
    for name in options.detector:
        if options.thresholds:
            show(name, curve(name, options.thresholds, samples, options.data), as_json=options.json, notes=[])
            continue
        detector = load_detector(name)
        predictions = detector.predict(samples)
        unchecked = sum(prediction.spans is None for prediction in predictions)
        notes = [f"{len({s.meta['article'] for s in samples})} articles, part {options.part}; not checked: {unchecked}"]
        show(detector.name, rows_of(samples, predictions, options.seed), as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
