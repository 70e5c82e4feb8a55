"""Twins in answer form: is the wrong one scored higher, where all its words stand in the evidence?

    python benchmarks/minimal_pairs.py --detector grounding reader --language de ru ja

Twins are drawn as for the reader's training (`veriglot.training.reader.twins` says how), but about facts that trained
nothing in any language: a few sentences of evidence, a question about one of them, a right answer, and a wrong one that
differs in as few words as carry the difference. `--across` draws the evidence in another language than the answers.
`--show` prints twins to read.

The figure is the share of twins whose wrong answer has the higher score, ties counting half: 0.5 is chance.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import numpy as np

from figures import command_line, show
from veriglot.detectors.registry import load_detector
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task
from veriglot.training.reader.twins import TYPES, Twin, World, draw_twins, languages, wordings

SENTENCES = (2, 6)  # of the evidence


def samples_of(twin: Twin, tag: str, answer_language: str, number: int) -> tuple[Sample, Sample]:
    """The right and the wrong answer as samples, with what is wrong as spans."""
    space = "" if wordings(tag).get("no_spaces") else " "
    evidence = (Evidence(text=space.join(twin.evidence), language=tag),)
    spans = tuple(Span(start=start, end=end, type=TYPES[twin.kind]) for start, end in twin.wrong.marks)
    return tuple(  # type: ignore[return-value]
        Sample(
            id=f"{tag}-{answer_language}-{number}-{name}",
            task=Task.QA,
            language=answer_language,
            question=twin.question,
            evidence=evidence,
            response=answer.text,
            annotations=(Annotation(annotator="authors", kind=Kind.HUMAN, taxonomy="fava", spans=marks),),
            meta={"kind": twin.kind, "twin": name},
        )
        for name, answer, marks in (("right", twin.right, ()), ("wrong", twin.wrong, spans))
    )


def draw_twin(tag: str, answer_language: str, rng: Random) -> Twin:
    """A twin about a fact that trains nothing, with evidence that says more than what is asked for."""
    twins = draw_twins(World(tag, answer_language, rng), held_out=True)
    twin = next(twins)
    evidence = list(twin.evidence)
    for further in twins:
        if len(evidence) >= rng.randint(*SENTENCES):
            break
        evidence += further.evidence
    rng.shuffle(evidence)
    return twin._replace(evidence=evidence)


def draw(tag: str, count: int, seed: int, *, across: bool = False) -> list[tuple[Sample, Sample]]:
    """Twins of a language; with answers in another one where `across` asks for it."""
    rng = Random(f"{seed} {tag}")
    others = [other for other in languages() if other != tag]
    pairs = []
    for number in range(count):
        answer_language = rng.choice(others) if across else tag
        pairs.append(samples_of(draw_twin(tag, answer_language, rng), tag, answer_language, number))
    return pairs


def rows_of(wins: dict[str, list[float]]) -> list[dict[str, Any]]:
    """A row a group, with the share of wins and its 95% interval over twins (normal approximation)."""
    rows = []
    for name, values in wins.items():
        half = 1.96 * float(np.std(values)) / len(values) ** 0.5
        mean = float(np.mean(values))
        figure = f"{mean:.2f} [{max(mean - half, 0):.2f}, {min(mean + half, 1):.2f}]"
        rows.append({"twins": name, "n": len(values), "wrong one higher": figure})
    return rows


def main() -> None:
    """Draw, judge, count, print."""
    parser = command_line(__doc__)
    parser.add_argument("--detector", nargs="+", default=["grounding"], help="names of detectors, a table for each")
    parser.add_argument("--language", nargs="+", default=languages(), help="tags; all that there are by default")
    parser.add_argument("-n", "--count", type=int, default=100, help="twins a language")
    parser.add_argument("--across", action="store_true", help="answers in another language than the evidence")
    parser.add_argument("--show", action="store_true", help="print twins to read instead")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    twins = {tag: draw(tag, options.count, options.seed, across=options.across) for tag in options.language}
    if options.show:
        for right, wrong in (pair for pairs in twins.values() for pair in pairs):
            print(f"\n{right.meta['kind']}: {right.evidence[0].text}\n  ? {right.question}\n  + {right.response}")
            marked = [wrong.response[span.start : span.end] for span in wrong.annotations[0].spans or ()]
            print(f"  - {wrong.response}   {marked}")
        return
    for name in options.detector:
        detector = load_detector(name)
        wins: dict[str, list[float]] = defaultdict(list)
        for tag, pairs in twins.items():
            scores = [p.score for p in detector.predict([sample for pair in pairs for sample in pair])]
            for (right, _), first, second in zip(pairs, scores[::2], scores[1::2], strict=True):
                if first is not None and second is not None:
                    won = float(second > first) + 0.5 * (second == first)
                    for group in ("all", f"kind {right.meta['kind']}", f"language {tag}"):
                        wins[group].append(won)
        unchecked = sum(map(len, twins.values())) - len(wins["all"])
        notes = [f"{options.count} twins a language, seed {options.seed}; not checked: {unchecked}"]
        show(detector.name, rows_of(dict(sorted(wins.items()))), as_json=options.json, notes=notes)


if __name__ == "__main__":
    main()
