"""Studies of random models: responses with known errors, judged by a random marker, through rates and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from veriglot.pipeline.engine import Description
from veriglot.pipeline.progress import ProgressReporter
from veriglot.records import (
    Annotation,
    Confusion,
    DataSource,
    ErrorProfile,
    Estimator,
    Evidence,
    Generator,
    Kind,
    LanguageProfile,
    Prediction,
    Sample,
    Span,
    Status,
    Word,
    encode,
)
from veriglot.study.config import (
    Config,
    DetectorEntry,
    Folder,
    LabelsEntry,
    ModelEntry,
    QueriesEntry,
    ResponsesEntry,
    StudyEntry,
)
from veriglot.study.methods import described
from veriglot.study.rates import ProfiledDetector, estimate_all
from veriglot.study.responses import Plan as Planned
from veriglot.study.results import assemble

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from veriglot.study.results import StudyResults

WORDS = 20  # of a response
TAGS = ("de", "tr", "ar")


class Plan(NamedTuple):
    """What a random study is made of.

    Attributes:
        seed: of its random numbers.
        estimator: of the report; raw and another one stand beside it.
        rates: of each model: how many of its words are unsupported.
        queries: in each language.
        missing: share of the responses that are not judged.
        failed: share of the calls that fail; None where the responses are given.
        tpr: of the marker here; its profile says 0.8, so others contradict what labels say.
        labelled: share of the judged responses with labels.
        known: languages that the profile holds.
        pooled: whether its rates over all languages are used in the others.
        gaps: models and languages, by their places, of whose responses 60% are not judged.
        seeds: that the queries are parted among.
        cut: share of the responses that the token limit cut.
        labelled_by: who made the labels, response by response in turn.
    """

    seed: int
    estimator: Estimator
    rates: tuple[float, ...]
    queries: tuple[int, ...]
    missing: float = 0.0
    failed: float | None = None
    tpr: float = 0.8
    labelled: float = 0.0
    known: int = 3
    pooled: bool = False
    gaps: tuple[tuple[int, int], ...] = ()
    seeds: int = 1
    cut: float = 0.0
    labelled_by: tuple[Kind, ...] = (Kind.HUMAN,)


@st.composite
def plans(draw: Callable[..., Any]) -> Plan:
    """Studies of one to four models in one to three languages."""
    labelled = draw(st.sampled_from([0.0, 0.0, 0.5]))
    estimators = [Estimator.LABEL_SHIFT, Estimator.LABEL_SHIFT, Estimator.RAW, Estimator.PAPER, Estimator.EM]
    return Plan(
        draw(st.integers(0, 10**6)),
        draw(st.sampled_from(estimators + [Estimator.PPI] * (labelled > 0))),
        tuple(draw(st.lists(st.sampled_from([0.0, 0.02, 0.1, 0.12, 0.3, 0.6]), min_size=1, max_size=4))),
        tuple(draw(st.lists(st.sampled_from([3, 10, 10, 20]), min_size=1, max_size=3))),
        draw(st.sampled_from([0.0, 0.0, 0.05, 0.6])),
        draw(st.sampled_from([None, None, 0.0, 0.1])),
        draw(st.sampled_from([0.8, 0.8, 0.4])),
        labelled,
        draw(st.sampled_from([3, 3, 3, 1])),
        draw(st.booleans()),
        tuple(draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=3))),
        draw(st.sampled_from([1, 1, 2])),
        draw(st.sampled_from([0.0, 0.0, 0.3])),
        draw(st.sampled_from([(Kind.HUMAN,), (Kind.HUMAN,), (Kind.MODEL,), (Kind.HUMAN, Kind.MODEL)])),
    )


class Row(NamedTuple):
    """A response as it was made: its words that are unsupported and that are marked, and whether it was judged."""

    model: str
    language: str
    wrong: int
    marked: int
    judged: bool
    labelled: bool
    labelled_by: Kind


def random_study(
    plan: Plan, path: Path, names: tuple[str, ...] = (), tags: tuple[str, ...] = TAGS
) -> tuple[StudyResults, list[Row]]:
    """The study of a plan, and its responses; `path` is an empty folder."""
    generator = np.random.default_rng(plan.seed)
    names = names or tuple(f"m{index}" for index in range(len(plan.rates)))
    languages = tags[: len(plan.queries)]
    folder, rows, labels = Folder(path), [], []
    hard = dict(zip(languages, generator.uniform(0.7, 1.3, len(languages)), strict=True))
    planned: dict[str, dict[str, dict[str, int]]] = {}
    for name, rate in zip(names, plan.rates, strict=True):
        for file in (folder.responses(name), folder.predictions("marker", name)):
            file.parent.mkdir(parents=True, exist_ok=True)
        with folder.responses(name).open("wb") as responses, folder.predictions("marker", name).open("wb") as judged:
            for tag, queries in zip(languages, plan.queries, strict=True):
                parted = {str(seed + 1): len(range(seed, queries, plan.seeds)) for seed in range(plan.seeds)}
                planned.setdefault(name, {})[tag] = parted if plan.failed is not None else {"-": queries}
                for query in range(queries):
                    if plan.failed and generator.random() < plan.failed:
                        continue
                    sample, prediction, row, label = _response(plan, (name, tag, query), rate * hard[tag], generator)
                    rows.append(row)
                    responses.write(encode(sample) + b"\n")
                    judged.write(encode(prediction) + b"\n")
                    labels += [label] * row.labelled
    for name in ("data.jsonl", "labels.jsonl"):
        (path / name).write_bytes(b"".join(encode(label) + b"\n" for label in labels))
    known = languages[: plan.known]
    profile = _profile(known or languages, np.random.default_rng(1))
    others = tuple(dict.fromkeys((Estimator.RAW, Estimator.LABEL_SHIFT)))
    study = StudyEntry(draws=200, pooled=plan.pooled, estimator=plan.estimator, estimators=others, languages=languages)
    asked = plan.failed is not None
    seeds = tuple(range(1, plan.seeds + 1))
    config = Config(
        path=path / "study.toml", study=study, queries=QueriesEntry("data.jsonl", seeds=seeds) if asked else None,
        responses=None if asked else ResponsesEntry("data.jsonl"),
        models=tuple(ModelEntry(name, parameters=float(2**index)) for index, name in enumerate(names)),
        detectors=(DetectorEntry("marker"),), labels=LabelsEntry("labels.jsonl") if labels else None,
    )  # fmt: skip
    plan_of_run = Planned("study", ("marker",), planned, asked=asked)
    judging = ProfiledDetector(Description("marker@1", "", 0.5, "marker@1"), profile, study, "marker")
    estimated = estimate_all(config, folder, plan_of_run, [judging], ProgressReporter())
    lost = sum(sum(counts.values()) for tags_ in planned.values() for counts in tags_.values()) - len(rows)
    results = assemble(config, folder, plan_of_run, estimated, ProgressReporter())
    return described(results, config, plan_of_run, estimated, lost), rows


def _response(
    plan: Plan, cell: tuple[str, str, int], rate: float, generator: np.random.Generator
) -> tuple[Sample, Prediction, Row, Sample]:
    name, tag, query = cell
    id_, text = f"{name}/{tag}/{query}", " ".join(["word"] * WORDS)
    wrong = generator.random(WORDS) < min(rate * generator.gamma(4, 0.25), 0.95)
    marked = generator.random(WORDS) < np.where(wrong, plan.tpr, 0.05)
    gap = (int(name[1:]), TAGS.index(tag)) in plan.gaps if plan.gaps else False
    unjudged = generator.random() < (0.6 if gap else plan.missing)
    labelled = not unjudged and generator.random() < plan.labelled
    places = [(5 * index, 5 * index + 4) for index in range(WORDS)]
    finish = "length" if plan.cut and generator.random() < plan.cut else "stop"
    asked = {"question": f"q{tag}{query}", "meta": {"query": f"q{tag}{query}", "finish": finish}}
    maker = Generator(name, seed=1 + query % plan.seeds)
    sample = Sample(id_, text, language=tag, evidence=(Evidence("words"),), generator=maker, **asked)  # type: ignore[arg-type]
    if unjudged:
        prediction = Prediction(id_, Status.TOO_LONG, "marker@1", reason="it is too long")
    else:
        spans = tuple(Span(*place, "entity", 0.9) for place, mark in zip(places, marked, strict=True) if mark)
        words = tuple(Word(*place, 0.9 if mark else 0.2) for place, mark in zip(places, marked, strict=True))
        prediction = Prediction(id_, Status.SCORED, "marker@1", 0.5, spans, words, language=tag)
    gold = tuple(Span(*place, "hallucination") for place, bad in zip(places, wrong, strict=True) if bad)
    kind = plan.labelled_by[query % len(plan.labelled_by)]
    label = Sample(id_, text, language=tag, annotations=(Annotation("gold", kind, "hat", spans=gold),), **asked)  # type: ignore[arg-type]
    return sample, prediction, Row(name, tag, int(wrong.sum()), int(marked.sum()), not unjudged, labelled, kind), label


def _profile(languages: tuple[str, ...], generator: np.random.Generator) -> ErrorProfile:
    """Of the marker at a TPR of 0.8 and an FPR of 0.05."""
    measured = {}
    for tag in languages:
        wrong = generator.binomial(20, 0.3, 80)
        hits, false = generator.binomial(wrong, 0.8), generator.binomial(20 - wrong, 0.05)
        texts = [
            Confusion(int(tp), int(fp), int(bad - tp), int(20 - bad - fp))
            for tp, fp, bad in zip(hits, false, wrong, strict=True)
        ]
        measured[tag] = LanguageProfile.of(
            texts, histograms=[[(18, each.tp, each.fp), (4, each.fn, each.tn)] for each in texts]
        )
    return ErrorProfile("word", 0.5, "marker@1", measured, measured[languages[0]], DataSource("0" * 64, "gold"), "x")
