"""Does a detector pass the gates to ship: nothing worse than another beyond chance, and verbatim sentences unmarked?

    python benchmarks/gates.py --data ../shared/data --detector reader --baseline grounding
    python benchmarks/gates.py --data ../shared/data --detector reader --sets wice qags --part calibration --limit 50

Every set holds texts that trained nothing (the tenth that `veriglot train` holds out, or a whole set that it is not
given), in its published form, with labels of people. Mu-SHROOM's validation is the exception: the shipped weights of
`grounding` learned from it, so a figure needs predictions made by folds over its entries (`grounding_natural.py --out`)
for both sides, with `--predictions` and `--baseline-predictions`.

A figure of both detectors stands on the texts that both scored. Its difference is resampled by drawing groups (article,
entry, document) again, the same for both; `worse` says whether all of its 95% interval lies on the wrong side of zero.
The score of a sentence or keyword is the mean or the maximum of its words' confidences; `qags_sentences` asks for each
sentence by itself and takes the response score. Each set falls into two halves by its groups: what is calibrated on one
(`--part calibration`) is reported on the other. Not here: negation and roles, which `minimal_pairs.py` measures.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import veriglot
from figures import command_line, show
from parallel_questions import LANGUAGES, ROLES, is_test, item_of, read_questions
from ranking import shown
from veriglot.datasets.rules.material import quotable
from veriglot.detectors.registry import load_detector
from veriglot.formats.reader import read_predictions
from veriglot.metrics.counts import intersection_over_union
from veriglot.metrics.estimate import Resampling, mean_of_draws, percentile
from veriglot.metrics.measures import Items, draws
from veriglot.metrics.reference import answer, reference
from veriglot.metrics.scores import ratio
from veriglot.metrics.spans import covered, marked, ranges, segmenter, unit_probabilities
from veriglot.records import Annotation, Evidence, Kind, Prediction, Sample, Status, Task, Unit, encode
from veriglot.text.segmentation import space_of
from veriglot.training.grounding.examples import HELD_OUT, TYPES, read_labelled, share_of
from veriglot.training.reader.data import part_of, text_key

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from veriglot.records import Detector

    Array = NDArray[np.float64]
    Bounds = NDArray[np.int32]
    Mask = NDArray[np.bool_]
    Read = Callable[[Path], Iterable[Sample]]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "samples.jsonl"
PARTS = ("calibration", "report")
CUT = 0.5  # of response scores: from there on, something must be marked
MOST_MARKED = 0.01  # of verbatim responses
CALIBRATION_BINS = 10
CHANCES = 200  # draws of labels by the scores

# Where sentences are quoted from beside `mfava/queries` and `gold_dev`, in languages that these lack.
SILVER = ("french", "hebrew", "italian", "portuguese", "spanish", "urdu")
PARAGRAPHS = {f"xquad/xquad.{tag}.json": "zh-Hans" if tag == "zh" else tag for tag in LANGUAGES} | {
    "jaquad/jaquad_dev_sample.json": "ja",
    "tydiqa/tydiqa.goldp.sw.train.json": "sw",
}
MOST_QUOTED = 24  # articles or paragraphs a language


# Groups, and which part of a set they belong to.


def select(samples: Iterable[Sample], part: str = "all", limit: int | None = None) -> list[Sample]:
    """The samples of one part, or `all`; with a limit those of so many groups, which hang on the groups alone."""
    chosen = [sample for sample in samples if part in ("all", part_of(sample.meta["group"]))]
    groups = sorted({sample.meta["group"] for sample in chosen}, key=lambda group: text_key(f"chosen {group}"))
    taken = set(groups[:limit])
    return [sample for sample in chosen if sample.meta["group"] in taken]


# The sets.


def _in_group(sample: Sample, group: str) -> Sample:
    return msgspec.structs.replace(sample, meta={**sample.meta, "group": group})


def _labelled(response: str, wrong: bool) -> tuple[Annotation, ...]:
    """The label of a whole response."""
    return _of_units([Unit(0, len(response), "unverified" if wrong else "supported")])


def _of_units(units: Sequence[Unit]) -> tuple[Annotation, ...]:
    return (Annotation("gold", Kind.HUMAN, "support", units=tuple(units)),)


def read_gold_dev(data: Path) -> Iterator[Sample]:
    """mFAVA gold, the half for development: errors that were put in. A text may stand there with several labels."""
    for sample in veriglot.read(data / "mfava" / "gold_dev"):
        yield _in_group(sample, str(sample.meta["group"]))


def read_mu_shroom(data: Path) -> Iterator[Sample]:
    """Mu-SHROOM validation, in the languages that have the page's text; a group is an entry of Wikipedia."""
    for sample in veriglot.read(data / "mu_shroom_val"):
        if sample.evidence:
            yield _in_group(sample, text_key(sample.evidence_text))


def read_wice(data: Path) -> Iterator[Sample]:
    """The tenth of WiCE that trains nothing: claims of Wikipedia with the tokens that the cited article lacks.

    The split is by claim, as that of training; 25 of the 81 cite an article that a claim which trains cites too.
    """
    for sample in veriglot.read(data / "wice" / "non_supported_tokens"):
        if share_of(str(sample.meta.get("group") or sample.id)) < HELD_OUT:
            yield _in_group(sample, text_key(sample.evidence_text))


def read_xsum(data: Path) -> Iterator[Sample]:
    """The tenth of the XSum articles that trains nothing, with the spans that most of three people marked."""
    for sample in veriglot.read(data / "xsum" / "hallucination_annotations_xsum_summaries.csv"):
        if sample.evidence and share_of(sample.meta["bbcid"]) < HELD_OUT:
            yield _in_group(sample, sample.meta["bbcid"])


def read_qags(data: Path) -> Iterator[Sample]:
    """QAGS: summaries whose sentences three people called consistent with the article or not; the majority counts."""
    for path in sorted((data / "qags").glob("*.jsonl")):
        for number, row in enumerate(_rows(path), start=1):
            response, units = "", []
            for sentence in row["summary_sentences"]:
                response += " " if response else ""
                votes = Counter(vote["response"] for vote in sentence["responses"])
                label = "supported" if votes["yes"] > votes["no"] else "unverified"
                units.append(Unit(len(response), len(response) + len(sentence["sentence"]), label))
                response += sentence["sentence"]
            yield Sample(
                id=f"{path.stem}-{number}",
                task=Task.SUMMARIZATION,
                language="en",
                evidence=(Evidence(row["article"], language="en"),),
                response=response,
                annotations=_of_units(units),
                meta={"group": text_key(row["article"]), "source": path.stem},
            )


def read_qags_sentences(data: Path) -> Iterator[Sample]:
    """The sentences of QAGS, each a response."""
    for sample in read_qags(data):
        for number, unit in enumerate(sample.annotations[0].units or (), start=1):
            text = sample.response[unit.start : unit.end]
            labels = _labelled(text, unit.label != "supported")
            yield msgspec.structs.replace(sample, id=f"{sample.id}-{number}", response=text, annotations=labels)


def read_attribution(data: Path) -> Iterator[Sample]:
    """AttributionBench: claims against their references; rows without any are left out.

    Claims of one question are a group. Those of BEGIN have no question of their own: they are in `begin` too.
    """
    for path in sorted((data / "attributionbench").glob("*.jsonl")):
        for row in _rows(path):
            references = [text for text in row["references"] if text.strip()]
            if references:
                yield Sample(
                    id=f"attribution-{row['id']}",
                    language="en",
                    evidence=tuple(Evidence(text, language="en") for text in references),
                    response=row["claim"],
                    annotations=_labelled(row["claim"], row["attribution_label"] != "attributable"),
                    meta={
                        "group": text_key("".join(references) if row["src_dataset"] == "BEGIN" else row["question"]),
                        "source": row["src_dataset"],
                    },
                )


def read_begin(data: Path) -> Iterator[Sample]:
    """BEGIN: answers in conversations against the knowledge that they were given; generic ones are left out."""
    for path in sorted((data / "begin").glob("*/*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
                if row["begin_label"] != "Generic" and row["response"].strip():
                    yield Sample(
                        id=f"{path.stem}-{number}",
                        task=Task.DIALOGUE,
                        language="en",
                        evidence=(Evidence(row["knowledge"], language="en"),),
                        response=row["response"],
                        annotations=_labelled(row["response"], row["begin_label"] != "Fully attributable"),
                        meta={"group": text_key(row["knowledge"]), "source": row["data_source"]},
                    )


def read_uhgeval(data: Path) -> Iterator[Sample]:
    """UHGEval: news that a model went on with, its keywords reasonable or not; and the real continuations, all right.

    Keywords have no offsets: each is the next one of its text after the keyword before it, or else the first.
    """
    for row in _rows(data / "uhgeval" / "dataset_uhgeval_concise.jsonl"):
        made, units, reached = row["hallucinatedContinuation"], [], 0
        for keyword, label in (annotation.split("<sep>", 1) for annotation in row["annotations"]):
            start = made.find(keyword, reached)
            start = made.find(keyword) if start < 0 else start
            if start >= 0 and keyword:
                reached = start + len(keyword)
                units.append(Unit(start, reached, "supported" if label.startswith("合理") else "unverified"))
        real = row["realContinuation"]
        for kind, response, labels in (("made", made, _of_units(units)), ("real", real, _labelled(real, wrong=False))):
            yield Sample(
                id=f"uhgeval-{row['id']}-{kind}",
                language="zh-Hans",
                evidence=tuple(Evidence(row[name], language="zh-Hans") for name in ("newsBeginning", "newsRemainder")),
                response=response,
                annotations=labels,
                meta={"group": text_key(row["newsBeginning"]), "kind": kind},
            )


def read_verbatim(data: Path) -> Iterator[Sample]:
    """Sentences word for word from articles and paragraphs that train nothing: alone, joined, as a list, cited."""
    counts: Counter[str] = Counter()
    for language, group, passages in _quoted_from(data):
        rng = Random(group)
        if share_of(group) >= HELD_OUT or counts[language] >= MOST_QUOTED:
            continue
        sentences = quotable(rng.choice(passages), language)
        if len(sentences) < 3:
            continue
        counts[language] += 1
        first = rng.randrange(len(sentences) - 2)
        chosen = sentences[first : first + 3]
        forms = {
            "alone": chosen[0],
            "joined": space_of(language).join(chosen[:2]),
            "list": "\n".join(f"- {sentence}" for sentence in chosen),
            "cited": f"{chosen[0]} [1]",
        }
        for form, response in forms.items():
            yield Sample(
                id=f"verbatim-{language}-{counts[language]}-{form}",
                task=Task.SUMMARIZATION,
                language=language,
                evidence=tuple(Evidence(text, language=language) for text in passages),
                response=response,
                annotations=_labelled(response, wrong=False),
                meta={"group": group, "form": form},
            )


def _quoted_from(data: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Language, group as training names it, and passages of each text that may be quoted."""
    for article in read_labelled([str(data / "mfava" / "queries")]).articles:
        yield article.language, f"article:{article.language}:{article.group}", article.passages
    groups = set()
    for name in ("gold_dev", *(f"silver/silver_{language}.json" for language in SILVER)):
        for sample in veriglot.read(data / "mfava" / name):
            group = str(sample.meta["group"])
            if group not in groups and sample.language and "reference_garbled" not in sample.meta:
                groups.add(group)
                yield sample.language, group, tuple(passage.text for passage in sample.evidence)
    for path, tag in PARAGRAPHS.items():
        for article in json.loads((data / path).read_text("utf-8"))["data"]:
            if not path.startswith("xquad") or is_test(article["title"]):
                for paragraph in article["paragraphs"]:
                    yield tag, f"passage:{tag}:{paragraph['context'][:200]}", (paragraph["context"],)


def read_answers(data: Path) -> Iterator[Sample]:
    """Right and wrong answers and sentences made of XQuAD, in every role: test articles, and held-out paragraphs."""
    rng = Random(1)
    for question in read_questions(data / "xquad", 1):
        for tag in LANGUAGES:
            paragraph = question.versions[tag].paragraph
            if share_of(f"passage:{'zh-Hans' if tag == 'zh' else tag}:{paragraph[:200]}") < HELD_OUT:
                for form, wrong in dict.fromkeys(ROLES):
                    sample = item_of(question, tag, tag, form, wrong, before=rng.random() < 0.5).sample
                    yield _in_group(sample, question.place)


def read_own(_: Path) -> Iterator[Sample]:
    """The project's examples: short, in 38 languages, right ones in words of their own."""
    for sample in veriglot.read(EXAMPLES):
        yield _in_group(sample, text_key(sample.evidence_text))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


# What is measured: what a response gives to a figure, as numbers (greater is worse, where they rank) and labels.

WORDS = segmenter("word")


def _gold(sample: Sample) -> Bounds:
    labels = reference(sample)
    if labels is None:
        raise ValueError(f"{sample.id} has no labels")
    return labels.marks.spans


def is_wrong(sample: Sample) -> bool:
    """Whether the labels call anything in a response unsupported."""
    return len(_gold(sample)) > 0


def marked_words(sample: Sample, prediction: Prediction) -> tuple[Array, Mask]:
    """Words: 1 where the detector marks them, and whether the labels do."""
    bounds = WORDS(sample.response, sample.language)
    return marked(bounds, ranges(prediction.spans or ())).astype(np.float64), marked(bounds, _gold(sample))


def word_confidences(sample: Sample, prediction: Prediction) -> tuple[Array, Mask]:
    """Words: their confidences, NaN where there are none, and whether the labels mark them."""
    bounds, confidences = _confidences(sample, prediction)
    return confidences, marked(bounds, _gold(sample))


def _confidences(sample: Sample, prediction: Prediction) -> tuple[Bounds, Array]:
    bounds = WORDS(sample.response, sample.language)
    chances = answer(prediction, len(sample.response)).probability
    return bounds, np.full(len(bounds), np.nan) if chances is None else unit_probabilities(bounds, chances)


def marked_characters(sample: Sample, prediction: Prediction) -> tuple[Array, Mask]:
    """Code points: 1 where the detector marks them, and whether the labels do."""
    length = len(sample.response)
    return covered(length, ranges(prediction.spans or ())).astype(np.float64), covered(length, _gold(sample))


def overlap(sample: Sample, prediction: Prediction) -> tuple[Array, Mask]:
    """The response: intersection over union of the code points that are marked."""
    predicted, gold = marked_characters(sample, prediction)
    return np.array([intersection_over_union(gold, predicted > 0)]), np.zeros(1, bool)


def response_score(sample: Sample, prediction: Prediction) -> tuple[Array, Mask]:
    """The response: its score, and whether anything in it is wrong."""
    return np.array([prediction.score], np.float64), np.array([is_wrong(sample)])


def false_alarm(sample: Sample, prediction: Prediction) -> tuple[Array, Mask]:
    """A response that is right: 1 where anything in it is marked. Others give nothing."""
    size = 0 if is_wrong(sample) else 1
    return np.full(size, float(bool(prediction.spans))), np.zeros(size, bool)


def pooled_units(sample: Sample, prediction: Prediction, pool: Callable[[Array], float]) -> tuple[Array, Mask]:
    """Labelled sentences or keywords: the pooled confidences of their words, and whether they are wrong."""
    bounds, confidences = _confidences(sample, prediction)
    units = sample.annotations[0].units or ()
    inside = [confidences[(bounds[:, 0] < unit.end) & (bounds[:, 1] > unit.start)] for unit in units]
    scores = [float(pool(values)) if len(values) else float("nan") for values in inside]
    return np.array(scores, np.float64), np.array([unit.label != "supported" for unit in units], bool)


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        name: what a table calls it.
        items: what one response gives to it.
        measure: `mean` of the numbers, or one of `metrics.measures.ITEM_MEASURES`.
        mean: whether it is the mean over languages of what it is in each, and not taken of all items together.
        lower: whether less is better.
    """

    name: str
    items: Callable[[Sample, Prediction], tuple[Array, Mask]]
    measure: str
    mean: bool = False
    lower: bool = False

    def drawn(self, samples: Sequence[Sample], predictions: Sequence[Prediction], resampling: Resampling) -> Array:
        """Its value in the data (draw 0) and in each resample, shape `(1 + resamples,)`; NaN where undefined."""
        if self.mean:
            return mean_of_draws(list(self.by("language", samples, predictions, resampling).values()))
        items = [self.items(sample, prediction) for sample, prediction in zip(samples, predictions, strict=True)]
        numbers, labels = (np.concatenate(parts) for parts in zip(*items, strict=True))
        repeated = replace(resampling, cluster=np.repeat(resampling.cluster, [len(part) for part, _ in items]))
        if self.measure == "mean":
            return np.concatenate([ratio(weights @ numbers, weights.sum(axis=1)) for weights in repeated.blocks()])
        return draws(self.measure, Items(numbers, labels), repeated, cut=0.5)

    def by(
        self, key: str, samples: Sequence[Sample], predictions: Sequence[Prediction], resampling: Resampling
    ) -> dict[str, Array]:
        """The same of the samples of each language, or of each value of another key of `meta`."""
        names = np.array([(s.language if key == "language" else s.meta.get(key)) or "" for s in samples])
        values = {}
        for name in sorted(set(names.tolist()) - {""}):
            inside = np.flatnonzero(names == name).tolist()
            part = [samples[i] for i in inside], [predictions[i] for i in inside], resampling.select(names == name)
            values[name] = replace(self, mean=False).drawn(*part)
        return values


@dataclass(frozen=True)
class GateSet:
    """One set.

    Attributes:
        read: the folder of data to all of its samples.
        figures: what is measured.
        gate: whether a detector that is worse on it does not ship.
        seen: whether the shipped weights of `grounding` learned from it.
    """

    read: Read
    figures: tuple[Figure, ...]
    gate: bool = True
    seen: bool = False


RESPONSES = Figure("responses AUC", response_score, "auroc")
WORD_F1, WORD_AUC = Figure("words F1", marked_words, "f1"), Figure("words AUC", word_confidences, "auroc")
SETS = {
    "gold_dev": GateSet(read_gold_dev, (replace(WORD_F1, name="words F1, mean", mean=True), WORD_F1)),
    "mu_shroom_val": GateSet(
        read_mu_shroom,
        (
            Figure("characters IoU, mean", overlap, "mean", mean=True),
            replace(WORD_AUC, name="words AUC, mean", mean=True),
        ),
        seen=True,
    ),
    "wice": GateSet(read_wice, (WORD_F1, WORD_AUC)),
    "xsum": GateSet(read_xsum, (Figure("characters F1", marked_characters, "f1"), WORD_AUC)),
    "qags": GateSet(
        read_qags,
        tuple(
            Figure(f"sentences by {name} {title}", partial(pooled_units, pool=pool), measure)
            for name, pool in (("mean", np.mean), ("max", np.max))
            for title, measure in (("AUC", "auroc"), ("AP", "auc_pr_nonfactual"))
        ),
    ),
    "qags_sentences": GateSet(
        read_qags_sentences,
        (RESPONSES, Figure("responses AP", response_score, "auc_pr_nonfactual")),
    ),
    "attributionbench": GateSet(read_attribution, (RESPONSES,)),
    "begin": GateSet(read_begin, (RESPONSES,)),
    "uhgeval": GateSet(
        read_uhgeval,
        (
            Figure("keywords by mean AUC", partial(pooled_units, pool=np.mean), "auroc"),
            Figure("real ones marked", false_alarm, "mean", lower=True),
        ),
    ),
    "verbatim": GateSet(read_verbatim, (Figure("marked", false_alarm, "mean", lower=True),)),
    "answers": GateSet(read_answers, (RESPONSES, WORD_F1), gate=False),
    "own": GateSet(read_own, (RESPONSES, WORD_F1), gate=False),
}


def read_set(name: str, data: Path) -> list[Sample]:
    """All samples of one of `SETS`, labelled by spans or units, with `meta["group"]`: see `part_of` and `select`.

    Raises:
        InputError: a file of the set is missing or broken.
        OSError: the same, of those that no format of the library reads.
    """
    return list(SETS[name].read(data))


# Detectors, judged and compared.


@dataclass
class Side:
    """A detector, and predictions that stand in for it."""

    detector: Detector
    given: dict[str, Prediction] = field(default_factory=dict)

    def judge(self, samples: Sequence[Sample]) -> list[Prediction]:
        """A prediction for each sample; the same text is judged once."""
        keys = [(s.response, s.question, s.language, tuple(p.text for p in s.evidence)) for s in samples]
        asked = {key: s for key, s in zip(keys, samples, strict=True) if s.id not in self.given}
        judged = dict(zip(asked, self.detector.predict(list(asked.values())), strict=True))
        return [
            self.given[s.id] if s.id in self.given else msgspec.structs.replace(judged[key], id=s.id)
            for key, s in zip(keys, samples, strict=True)
        ]


def side_of(name: str, files: Sequence[Path], weights: Path | None = None) -> Side:
    """A detector by name, with the predictions of files.

    Raises:
        UnknownNameError: no detector has that name, or it takes no weights.
        InputError: a file cannot be read.
    """
    options: dict[str, Any] = {} if weights is None else {"weights": str(weights)}
    return Side(load_detector(name, words=True, **options), {p.id: p for file in files for p in read_predictions(file)})


@dataclass(frozen=True)
class Pair:
    """One set judged by both: the texts that both scored, and how they are resampled.

    Attributes:
        name: of the set.
        samples: those that both scored.
        predictions: of the detector and of the baseline, in the same order.
        resampling: of the samples, by group.
        unscored: how many samples one of the two did not score.
    """

    name: str
    samples: list[Sample]
    predictions: tuple[list[Prediction], list[Prediction]]
    resampling: Resampling
    unscored: int

    @classmethod
    def of(
        cls, name: str, samples: Sequence[Sample], first: Sequence[Prediction], second: Sequence[Prediction],
        resamples: int, seed: int,
    ) -> Pair:  # fmt: skip
        """Leave out what either did not score, and draw the resamples."""
        scored = [p.status is Status.SCORED and q.status is Status.SCORED for p, q in zip(first, second, strict=True)]
        chosen = list(compress(samples, scored))
        resampling = Resampling.of([s.meta["group"] for s in chosen], resamples=resamples, seed=seed)
        predictions = list(compress(first, scored)), list(compress(second, scored))
        return cls(name, chosen, predictions, resampling, scored.count(False))

    def figures(self, titles: Sequence[str], key: str | None) -> list[dict[str, Any]]:
        """A row a figure, and one for each language or value of another key, where one is named."""
        rows = []
        for figure in SETS[self.name].figures:
            drawn = []
            for part in self.predictions:
                drawn.append({figure.name: figure.drawn(self.samples, part, self.resampling)})
                for name, values in (figure.by(key, self.samples, part, self.resampling) if key else {}).items():
                    drawn[-1][f"{figure.name}: {name}"] = values
            for name, first in drawn[0].items():
                difference = first - drawn[1][name]
                rows.append(
                    {
                        "set": self.name,
                        "figure": name,
                        titles[0]: shown(first),
                        titles[1]: shown(drawn[1][name][:1]),
                        "difference": shown(difference),
                        "worse": worse(difference, lower=figure.lower),
                    }
                )
        return rows

    def whole(self, titles: Sequence[str]) -> list[dict[str, Any]]:
        """A row a detector; responses are `contradictory` where the score alone or marks alone call them wrong."""
        wrong = np.array([is_wrong(sample) for sample in self.samples], bool)
        rows = []
        for title, part in zip(titles, self.predictions, strict=True):
            scores = np.array([prediction.score for prediction in part], np.float64)
            hit = np.array([bool(prediction.spans) for prediction in part], bool)
            rows.append(
                {
                    "set": self.name,
                    "detector": title,
                    "n": len(part),
                    "groups": self.resampling.clusters(),
                    "wrong": share(wrong),
                    "calibration": round(calibration_error(scores, wrong), 4),
                    "by chance": round(chance_error(scores), 4),
                    "false alarms": share(hit[~wrong]),
                    "misses": share(~hit[wrong]),
                    "contradictory": int(((scores >= CUT) != hit).sum()),
                }
            )
        return rows

    def types(self, titles: Sequence[str]) -> list[dict[str, Any]]:
        """A row a detector: how many of a hundred marks have which type, or none, and how right the types are."""
        rows = []
        for title, part in zip(titles, self.predictions, strict=True):
            counts = Counter(span.type or "none" for prediction in part for span in prediction.spans or ())
            shares = [f"{name} {100 * count / counts.total():.0f}" for name, count in counts.most_common()]
            f1 = type_f1(self.samples, part)
            mean = round(sum(f1.values()) / len(f1), 3) if f1 else "-"
            rows.append({"set": self.name, "detector": title, "macro F1": mean, "% of marks": " ".join(shares)})
        return rows


def type_f1(samples: Sequence[Sample], predictions: Sequence[Prediction]) -> dict[str, float]:
    """F1 of each type of the taxonomy `fava` that people gave, over characters that both marked with a type."""
    counts: Counter[tuple[str, str]] = Counter()
    for sample, prediction in zip(samples, predictions, strict=True):
        for gold in (span for annotation in sample.annotations for span in annotation.spans or ()):
            for span in prediction.spans or ():
                overlap = min(gold.end, span.end) - max(gold.start, span.start)
                if overlap > 0 and gold.type in TYPES and span.type is not None:
                    counts[gold.type, span.type] += overlap
    given, predicted = Counter[str](), Counter[str]()
    for (gold_type, type_), characters in counts.items():
        given[gold_type] += characters
        predicted[type_] += characters
    return {name: 2 * counts[name, name] / (given[name] + predicted[name]) for name in given}


def worse(difference: Array, *, lower: bool) -> str:
    """Whether a difference is on the wrong side of zero beyond chance: `yes` or `no`, or a dash where it is unknown."""
    low, high, _ = percentile(-difference[1:] if lower else difference[1:])
    return "-" if low is None or high is None else "yes" if high < 0 else "no"


def calibration_error(scores: Array, wrong: Mask) -> float:
    """Mean distance of score and share of wrong ones over ten groups of equal size, in order of the score."""
    if not len(scores):
        return float("nan")
    groups = np.array_split(np.argsort(scores, kind="stable"), min(CALIBRATION_BINS, len(scores)))
    return sum(len(g) * abs(float(scores[g].mean() - wrong[g].mean())) for g in groups) / len(scores)


def chance_error(scores: Array) -> float:
    """What `calibration_error` comes to, on average, where every score is exactly the chance of being wrong.

    Few responses a group differ from their chances by luck: ten groups of four by some 0.15.
    """
    drawn = np.random.default_rng(0).random((CHANCES, len(scores))) < scores
    return float(np.mean([calibration_error(scores, wrong) for wrong in drawn])) if len(scores) else float("nan")


def share(flags: Mask) -> float | str:
    """A share of flags, or a dash where there are none."""
    return round(float(flags.mean()), 4) if len(flags) else "-"


def gate_rows(figures: Sequence[dict[str, Any]], whole: Sequence[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    """A row a gate: whether the detector passes it, on the sets that were judged."""
    names = {(name, figure.name) for name, entry in SETS.items() if entry.gate for figure in entry.figures}
    gated = [row for row in figures if (row["set"], row["figure"]) in names]
    lost = [f"{row['set']}: {row['figure']}" for row in gated if row["worse"] != "no"]
    own = [row for row in whole if row["detector"] == title]
    contradictory = sum(row["contradictory"] for row in own)
    gates: list[tuple[str, float, float]] = [
        (f"figures worse, or unknown, of {len(gated)}", len(lost), 0),
        ("contradictory responses", contradictory, 0),
    ]
    gates += [
        ("verbatim responses marked", row["false alarms"], MOST_MARKED) for row in own if row["set"] == "verbatim"
    ]
    rows = [
        {"gate": gate, "figure": str(value), "at most": str(most), "passes": "yes" if value <= most else "no"}
        for gate, value, most in gates
    ]
    return rows + [{"gate": f"- {name}", "figure": "", "at most": "", "passes": ""} for name in lost]


def judged(name: str, role: str, side: Side, samples: Sequence[Sample], out: Path | None) -> list[Prediction]:
    """The predictions of one side, which are written to `out` too where it is a folder."""
    begin = time.perf_counter()
    predictions = side.judge(samples)
    seconds = time.perf_counter() - begin
    print(f"{name}, {side.detector.name}: {len(samples)} responses, {seconds:.0f} s", file=sys.stderr, flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}-{role}.jsonl").write_bytes(b"".join(encode(prediction) + b"\n" for prediction in predictions))
    return predictions


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = command_line(__doc__, draws=True)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    parser.add_argument("--detector", default="reader", help="name of the detector")
    parser.add_argument("--weights", type=Path, default=None, help="folder of its weights; default: those shipped")
    parser.add_argument("--baseline", default="grounding", help="name of the detector that it is held against")
    parser.add_argument("--predictions", type=Path, nargs="*", default=[], help="files that stand in for it, by id")
    parser.add_argument("--baseline-predictions", type=Path, nargs="*", default=[], help="and for the baseline")
    parser.add_argument(
        "--sets", nargs="+", choices=list(SETS), default=[name for name, entry in SETS.items() if entry.gate],
        help="default: all that are gates",
    )  # fmt: skip
    parser.add_argument("--part", choices=[*PARTS, "all"], default="report", help="half of each set (default: report)")
    parser.add_argument("--limit", type=int, default=None, help="groups of each set, by hash; default: all")
    parser.add_argument("--by", metavar="KEY", help="figures by language, source or form as well")
    parser.add_argument("--out", type=Path, default=None, help="folder for the predictions; default: none")
    return parser.parse_args()


def main() -> None:
    """Read, judge, compare, print."""
    options = arguments()
    sides = [
        side_of(options.detector, options.predictions, options.weights),
        side_of(options.baseline, options.baseline_predictions),
    ]
    titles = [side.detector.name for side in sides]
    titles[1] += " (baseline)" if titles[0] == titles[1] else ""
    notes = [f"part {options.part}; intervals by {options.resamples} resamples of groups, seed {options.seed}"]
    tables: dict[str, list[dict[str, Any]]] = {"figures": [], "responses as a whole": [], "types of marks": []}
    for name in options.sets:
        samples = select(read_set(name, options.data), options.part, options.limit)
        first = judged(name, "detector", sides[0], samples, options.out)
        second = judged(name, "baseline", sides[1], samples, options.out)
        pair = Pair.of(name, samples, first, second, resamples=options.resamples, seed=options.seed)
        if not pair.samples:
            notes.append(f"{name}: nothing to compare in this part")
            continue
        if pair.unscored:
            notes.append(f"{name}: {pair.unscored} responses are in no figure, for one of the two did not score them")
        if SETS[name].seen and not all(s.id in side.given for s in pair.samples for side in sides):
            notes.append(f"{name}: NOT HELD OUT where the shipped weights judge it; give predictions made by folds")
        rows = pair.figures(titles, options.by), pair.whole(titles), pair.types(titles)
        for table, more in zip(tables.values(), rows, strict=True):
            table += more
        for row in rows[0]:
            print("  " + "  ".join(map(str, row.values())), file=sys.stderr, flush=True)
    if not tables["figures"]:
        sys.exit("Nothing to compare.")
    figures, whole, _ = tables.values()
    tables["gates"] = gate_rows(figures, whole, titles[0])
    for title, table in tables.items():
        show(title, table, as_json=options.json, notes=notes if title == "gates" else [])


if __name__ == "__main__":
    main()
