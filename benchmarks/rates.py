"""Do the rates come out right, and do their intervals hold? Simulated studies, whose truth is known.

    python benchmarks/rates.py            # five minutes on one core
    python benchmarks/rates.py --quick    # half a minute, rougher

A detector that marks 75% of unsupported and 6% of supported words is measured on labelled texts of which 30% is
unsupported, and then judges models whose true rates lie between 0.5% and 50%. Words of one text go wrong together, and
some texts are harder for the detector than others (see `rates_world.py`). One line a true rate and estimator:

    mean        of the estimates
    bias %      of the mean, relative to the true rate, with its Monte Carlo error
    covered %   studies whose 95% interval holds the true rate, with its Monte Carlo error
    width       of the interval, on average
    flagged %   studies that were called unreliable, of those with all tests

Every fourth study is also judged by the confidences of all words, which costs ten times the rest: by em, and by the
test whether the study looks like the profile's data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import command_line, show
from rates_world import World
from veriglot.rates.estimators import estimate
from veriglot.rates.proportion import Labels, Tallies
from veriglot.records import Estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from rates_world import Told
    from veriglot.rates.estimators import RateEstimate
    from veriglot.records import LanguageProfile

RATES = (0.005, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
PROFILE_RATE = 0.3
DRIFTS = {
    World(0.1, tpr=0.55, fpr=0.12): "the detector marks 55% and 12% instead of 75% and 6%",
    World(0.1, tpr=0.4): "the detector marks 40% instead of 75% of unsupported words",
    World(0.1, lookalike=0.1): "10% of supported words look unsupported to the detector",
}
LABELS = (50, 100, 200)
_USUAL = World(0.1)
CLAIMED_FROM = 3  # percent: rates from which the bias of label-shift is to be below 3%


@dataclass(frozen=True)
class Design:
    """How much data: queries and responses to each of the study, labelled texts of the profile."""

    queries: int
    responses: int
    texts: int

    def __str__(self) -> str:
        return f"{self.queries} queries x {self.responses} responses, a profile of {self.texts} texts"


MAIN = Design(500, 2, 300)
OTHERS = (Design(20, 2, 30), Design(50, 2, 100), Design(3000, 1, 1000))


@dataclass
class Tally:
    """What came of many studies of one true rate."""

    truth: float
    values: list[float] = field(default_factory=list)
    covered: int = 0
    caught: int = 0  # flagged, or the interval holds the truth
    widths: list[float] = field(default_factory=list)
    flagged: int = 0
    tested: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, found: RateEstimate, *, tested: bool = True) -> None:
        """Count one study; `tested` where nothing was left out of what could flag it."""
        if tested:
            self.tested += 1
            self.flagged += bool(found.reasons)
            self.reasons.update({_short(reason) for reason in found.reasons})
        if found.value is None or found.low is None or found.high is None:
            return
        self.values.append(found.value)
        self.covered += (holds := found.low <= self.truth <= found.high)
        self.caught += tested and (holds or bool(found.reasons))
        self.widths.append(found.high - found.low)

    def row(self) -> dict[str, Any]:
        """The line of the table."""
        values = np.array(self.values)
        n = len(values)
        share = self.covered / n if n else float("nan")
        return {
            "true rate": f"{self.truth:.1%}",
            "mean": _places(values.mean(), 4),
            "bias %": _places(100 * (values.mean() / self.truth - 1), 1),
            "± ": _places(100 * values.std(ddof=1) / n**0.5 / self.truth, 1),
            "covered %": _places(100 * share, 1),
            "±": _places(100 * (share * (1 - share) / n) ** 0.5, 1),
            "width": _places(float(np.mean(self.widths)), 4),
            "flagged %": _places(100 * self.flagged / self.tested, 1),
            "studies": n,
        }


def _places(value: float, places: int) -> float:
    return round(float(value), places)


def _short(reason: str) -> str:
    for words, name in {
        "hardly tells": "detector too blunt",
        "the profile needs": "profile too small",
        "independent texts or queries, and": "study too small",
        "distributed unlike": "drift",
        "fewer units were marked": "below its false alarms",
        "more units were marked": "beyond its hits",
        "were judged": "coverage",
        "label": "labels too few",
    }.items():
        if words in reason:
            return name
    return reason


def main() -> None:
    """Print all tables."""
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the studies")
    parser.add_argument("--studies", type=int, default=800, metavar="N", help="of each true rate (default: 800)")
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    options = parser.parse_args()
    studies = options.studies // 10 if options.quick else options.studies
    if studies < 20:
        parser.error("give at least 20 studies")
    rows = designed(MAIN, RATES, studies, options.seed)
    show(f"Main design: {MAIN}", rows, as_json=options.json, notes=claims(rows))
    for design in OTHERS:
        some = RATES if design is OTHERS[0] else RATES[::3]
        few = studies if design.queries < 100 else studies // 4
        rows = designed(design, some, few, options.seed)
        show(f"Other designs: {design}", rows, as_json=options.json, notes=claims(rows))
    for drift, words in DRIFTS.items():
        rows = drifted(drift, studies // 4, options.seed)
        show(f"Labels of the study, where {words}: {MAIN}", rows, as_json=options.json, notes=covered(rows, "ppi"))
    rows = apart(max(8, studies // 16), options.seed)
    title = f"A detector whose errors differ from its profile's: {APART}, rates of 2%, 10% and 30%"
    show(title, rows, as_json=options.json, notes=[])
    rows, notes = flagged(studies // 4, options.seed)
    show(f"What is flagged: {MAIN} and 10% unless said otherwise", rows, as_json=options.json, notes=notes)


# Rates and intervals.


def designed(design: Design, rates: Sequence[float], studies: int, seed: int) -> list[dict[str, Any]]:
    """Studies of one size, of several true rates, by all estimators side by side."""
    rows = []
    for rate in rates:
        found = {name: Tally(rate) for name in (Estimator.LABEL_SHIFT, Estimator.PAPER, Estimator.RAW, Estimator.EM)}
        generator = np.random.default_rng([seed, design.queries, design.texts, int(rate * 10_000)])
        for study in range(studies):
            profile, tallies = _study(World(rate), design, generator)
            whole = study % 4 == 0
            given = tallies if whole else replace(tallies, confidences=None)
            for name in found:
                if whole or name is not Estimator.EM:
                    found[name].add(estimate(given, profile, estimator=name, seed=study), tested=whole)
        rows += [{"estimator": str(name), **each.row()} for name, each in found.items()]
    return rows


def _study(world: World, design: Design, generator: Generator) -> tuple[LanguageProfile, Tallies]:
    profile = world.measured(design.texts, generator, rate=PROFILE_RATE)
    return profile, world.told(design.queries, design.responses, generator).tallies


def claims(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What is asked of `label-shift`, from its table; and the same of em."""
    said = []
    for name in ("label-shift", "em"):
        of_it = [row for row in rows if row["estimator"] == name and float(row["true rate"][:-1]) >= CLAIMED_FROM]
        worst = max(abs(row["bias %"]) for row in of_it)
        said.append(f"{name}: bias of at most {worst:.1f}% for rates of {CLAIMED_FROM}% and more")
        said += covered(rows, name)
    return said


def covered(rows: Sequence[dict[str, Any]], name: str) -> list[str]:
    """How often the intervals of an estimator hold."""
    found = [row["covered %"] for row in rows if row["estimator"].startswith(name)]
    mean = sum(found) / len(found)
    return [f"{name}: intervals cover {min(found):.1f}% to {max(found):.1f}%, {mean:.1f}% on average"]


# Labels of the study itself.


def drifted(drift: World, studies: int, seed: int) -> list[dict[str, Any]]:
    """ppi from some gold labels, beside label-shift from a profile that no longer holds, and beside labels alone."""
    rows = []
    for rate in (0.05, 0.2):
        names = ["label-shift", *(f"{kind}, {count} labels" for count in LABELS for kind in ("ppi", "labels alone"))]
        found = {name: Tally(rate) for name in names}
        generator = np.random.default_rng([seed, 7, int(rate * 10_000)])
        for study in range(studies):
            profile = World(rate).measured(MAIN.texts, generator, rate=PROFILE_RATE)
            told = replace(drift, rate=rate).told(MAIN.queries, MAIN.responses, generator)
            found["label-shift"].add(estimate(told.tallies, profile, seed=study))
            for count in LABELS:
                labels = _labelled(told, count, generator)
                ppi = estimate(told.tallies, estimator=Estimator.PPI, labels=labels, seed=study)
                found[f"ppi, {count} labels"].add(ppi)
                found[f"labels alone, {count} labels"].add(_of_labels(told.tallies, labels, study))
        rows += [{"estimator": name, **each.row()} for name, each in found.items()]
    return rows


def _labelled(told: Told, count: int, generator: Generator) -> Labels:
    """Labels of one response to each of `count` queries, drawn at random."""
    queries = generator.choice(MAIN.queries, count, replace=False)
    places = np.sort(queries * MAIN.responses + generator.integers(0, MAIN.responses, count))
    return Labels(told.unsupported[places].sum(axis=1), places)


def _of_labels(tallies: Tallies, labels: Labels, seed: int) -> RateEstimate:
    chosen = tallies.select(labels.response)
    return estimate(Tallies(labels.unsupported, chosen.units, chosen.cluster), estimator=Estimator.RAW, seed=seed)


# Detectors whose errors differ from their profile's.


APART = Design(250, 2, 150)
DETECTORS = {  # what the parts of a drift were chosen on, what the choice was tried on, and what it had not seen
    "chosen on": World(0.1),
    "bold, TPR 50%, FPR 2%": World(0.1, 0.5, 0.02, difficulty=0.3, spread_of_confidence=2.0),
    "blunt, TPR 45%, FPR 10%": World(0.1, 0.45, 0.1, spread_of_confidence=0.6),
    "rough: bin by bin": World(0.1, rough=(0.0, 1)),
    "held out: heavy tails, TPR 65%, FPR 4%": World(0.1, 0.65, 0.04, difficulty=0.25, words=120, tail=4),
    "held out: rough and bold": World(0.1, 0.6, 0.08, spread_of_confidence=1.6, tail=8, rough=(0.0, 1)),
    "looks like another rate: 15% of words are hard": World(0.1, hard=0.15),
}


def apart(studies: int, seed: int) -> list[dict[str, Any]]:
    """How often label-shift is unreliable, and holds; em in every fourth study. Each detector, then them together."""
    outcomes: dict[tuple[str, Estimator, float], list[tuple[bool, bool, float]]] = {}
    for number, (name, measured) in enumerate(DETECTORS.items()):
        group = "held out" if name.startswith("held out") else "the others"
        for by in (0.0, 0.05, 0.1, 0.2):
            generator = np.random.default_rng([seed, 9, number, int(100 * by)])
            for study in range(3 * studies):
                world = replace(measured, rate=(0.02, 0.1, 0.3)[study % 3])
                profile = measured.measured(APART.texts, generator, rate=PROFILE_RATE)
                tallies = world.apart(by, generator).told(APART.queries, APART.responses, generator).tallies
                for estimator in (Estimator.LABEL_SHIFT, Estimator.EM)[: 1 if study % 4 else 2]:
                    rate = estimate(tallies, profile, estimator=estimator, seed=study, draws=2000)
                    assert rate.low is not None
                    assert rate.high is not None
                    outcome = (rate.low <= world.rate <= rate.high, bool(rate.reasons), rate.high - rate.low)
                    for key in (name, group):
                        outcomes.setdefault((key, estimator, by), []).append(outcome)
    together = ("the others", "held out")
    return [_apart_row(key, outcomes[key]) for key in sorted(outcomes, key=lambda key: (key[0] in together, key[:2]))]


def _apart_row(key: tuple[str, Estimator, float], outcomes: list[tuple[bool, bool, float]]) -> dict[str, Any]:
    holds, bad, widths = (np.array(column) for column in zip(*outcomes, strict=True))
    good = ~bad
    return {
        "detector": key[0],
        "estimator": str(key[1]),
        "apart by": key[2],
        "unreliable %": _places(100 * bad.mean(), 1),
        "covered %": _places(100 * holds.mean(), 1),
        "of the reliable %": _places(100 * holds[good].mean(), 1) if good.any() else float("nan"),
        "neither %": _places(100 * (good & ~holds).mean(), 1),
        "width": _places(float(np.median(widths[good])), 3) if good.any() else float("nan"),
        "studies": len(outcomes),
    }


# What is flagged.


@dataclass(frozen=True)
class Case:
    """A study, the profile that it is corrected with, and whether the rate should be called unreliable."""

    name: str
    expected: str
    world: World = _USUAL
    measured: World = _USUAL
    design: Design = MAIN
    coverage: float = 1.0
    estimator: Estimator = Estimator.LABEL_SHIFT


CASES = (
    Case("right", "no"),
    Case("right, 0.5%", "no", World(0.005)),
    Case("right, 50%", "no", World(0.5)),
    Case(
        "right, texts very unlike", "no", World(0.1, alike=0.4, difficulty=0.4), World(0.1, alike=0.4, difficulty=0.4)
    ),
    Case("right, TPR 30%", "no", World(0.1, tpr=0.3), World(0.1, tpr=0.3)),
    Case("right, 20 queries, 30 texts", "no", design=OTHERS[0]),
    Case("TPR 12%", "yes", World(0.1, tpr=0.12), World(0.1, tpr=0.12)),
    Case("TPR 30%, FPR 30%", "yes", World(0.1, 0.3, 0.3), World(0.1, 0.3, 0.3)),
    Case("FPR fell to 2%, 1%", "yes", World(0.01, fpr=0.02)),
    Case("FPR rose to 12%", "yes", World(0.1, fpr=0.12)),
    Case("TPR fell to 40%, 50%", "yes", World(0.5, tpr=0.4)),
    Case("TPR fell to 40%", "unseen", World(0.1, tpr=0.4)),
    Case("TPR rose from 40%, 80%", "yes", World(0.8), World(0.8, tpr=0.4)),
    Case("fainter confidences", "no", World(0.1, spread_of_confidence=0.5)),
    Case("bolder confidences", "no", World(0.1, spread_of_confidence=2.0)),
    Case("a profile of 5 texts", "yes", design=Design(500, 2, 5)),
    Case("a study of 5 queries", "yes", design=Design(5, 2, 300)),
    Case("60% of responses judged", "yes", coverage=0.6),
    Case("10% of supported look unsupported", "unseen", World(0.1, lookalike=0.1)),
)


def flagged(studies: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """How often each case is called unreliable, and for what."""
    rows = []
    for number, case in enumerate(CASES):
        generator = np.random.default_rng([seed, 8, number])
        found = Tally(case.world.rate)
        for study in range(studies):
            profile = case.measured.measured(case.design.texts, generator, rate=PROFILE_RATE)
            tallies = case.world.told(case.design.queries, case.design.responses, generator).tallies
            found.add(estimate(tallies, profile, estimator=case.estimator, seed=study, coverage=case.coverage))
        rows.append(_case_row(case, found))
    false = [row["flagged %"] for row in rows if row["to flag"] == "no"]
    missed = [100 - row["caught %"] for row in rows if row["to flag"] == "yes"]
    return rows, [
        f"flagged without need: {sum(false) / len(false):.1f}% on average, {max(false):.1f}% at most;"
        f" neither flagged nor within the interval: {sum(missed) / len(missed):.1f}% on average, {max(missed):.1f}% at"
        " most",
        "unseen: where words of one kind come to look as those of the other do, the confidences are those of another"
        " rate, and labels of the study alone can tell (the tables above)",
    ]


def _case_row(case: Case, found: Tally) -> dict[str, Any]:
    most = ", ".join(f"{name} {count / found.tested:.0%}" for name, count in found.reasons.most_common(1))
    covered = 100 * found.covered / len(found.values) if found.values else float("nan")
    return {
        "case": case.name,
        "to flag": case.expected,
        "flagged %": _places(100 * found.flagged / found.tested, 1),
        "for": most or "-",
        "covered %": _places(covered, 1),
        "caught %": _places(100 * found.caught / found.tested, 1),
    }


if __name__ == "__main__":
    main()
