"""The sets that detectors are held against each other on, and what is measured on each.

Every set but one holds texts that neither `grounding` nor `reader` was trained on. The exception are the natural
answers of Mu-SHROOM: so few that the shipped weights have seen them all, so a figure on them is honest only where it
comes from predictions made by folds (`benchmarks/grounding_natural.py --out`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import veriglot
from parallel_questions import LANGUAGES, ROLES, item_of, read_questions
from veriglot.records import Annotation, Evidence, Kind, Sample, Task
from veriglot.text.segmentation import space_of
from veriglot.training.grounding.examples import HELD_OUT, read_labelled, share_of
from veriglot.training.grounding.synthetic_data import quotable

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "samples.jsonl"
_MOST_QUOTED = 12  # quotations a language: more say little more

# A measure: level and name as in `veriglot.metrics.measures`.
Measured = tuple[str, str]
LOWER_IS_BETTER = frozenset({("unit", "fpr"), ("response", "fpr")})


@dataclass(frozen=True)
class HeldOut:
    """One set.

    Attributes:
        name: what `--sets` calls it.
        title: what a table of it is called.
        read: the folder of data and a seed to the samples.
        measures: what is shown, the main one first.
        seen: whether shipped weights were trained on it.
    """

    name: str
    title: str
    read: Callable[[Path, int], list[Sample]]
    measures: tuple[Measured, ...]
    seen: bool = False


def gold_dev(data: Path, _: int) -> list[Sample]:
    """mFAVA gold, the half that is for development: errors that were put in, labelled by people."""
    return list(veriglot.read(data / "mfava" / "gold_dev"))


def natural(data: Path, _: int) -> list[Sample]:
    """Mu-SHROOM validation, in the languages that have the page's text: answers that models really gave."""
    return [sample for sample in veriglot.read(data / "mu_shroom_val") if sample.evidence]


def claims(data: Path, _: int) -> list[Sample]:
    """The tenth of WiCE that trains nothing: claims of Wikipedia against the article they cite."""
    read = veriglot.read(data / "wice" / "non_supported_tokens")
    return [sample for sample in read if share_of(str(sample.meta.get("group") or sample.id)) < HELD_OUT]


def answers(data: Path, seed: int) -> list[Sample]:
    """Right and wrong answers and sentences made of XQuAD, evidence in the response's language.

    Articles that are test, and of these the paragraphs that `grounding` had held out, language by language: it holds
    out a tenth by the paragraph's text. A question comes in every role.
    """
    rng = Random(seed)
    return [
        item_of(question, tag, tag, form, wrong, before=rng.random() < 0.5).sample
        for question in read_questions(data / "xquad", seed)
        for tag in LANGUAGES
        for form, wrong in dict.fromkeys(ROLES)
        if share_of(_group(tag, question.versions[tag].paragraph)) < HELD_OUT
    ]


def _group(tag: str, paragraph: str) -> str:
    """The group of a paragraph as `train.grounding.answers` names it."""
    return f"passage:{'zh-Hans' if tag == 'zh' else tag}:{paragraph[:200]}"


def quotations(data: Path, seed: int) -> list[Sample]:
    """One to four sentences of articles that trained nothing, in 22 languages, with nothing wrong in them."""
    made: dict[str, list[Sample]] = {}
    for article in read_labelled([str(data / "mfava" / "queries")]).articles:
        language = article.language
        if share_of(f"article:{language}:{article.group}") >= HELD_OUT or len(made.get(language, ())) >= _MOST_QUOTED:
            continue
        rng = Random(f"{seed} {article.group}")
        listed = quotable(rng.choice(article.passages), language)
        if len(listed) < 5:
            continue
        first, count = rng.randrange(len(listed) - 4), rng.randint(1, 4)
        sample = Sample(
            id=f"quoted:{language}:{article.group}",
            task=Task.SUMMARIZATION,
            language=language,
            evidence=tuple(Evidence(text=text, language=language) for text in article.passages),
            response=space_of(language).join(listed[first : first + count]),
            annotations=(Annotation(annotator="rule", kind=Kind.HUMAN, taxonomy="support", spans=()),),
        )
        made.setdefault(language, []).append(sample)
    return [sample for samples in made.values() for sample in samples]


def right_answers(data: Path, seed: int) -> list[Sample]:
    """The right ones of `answers`."""
    return [sample for sample in answers(data, seed) if not sample.annotations[0].spans]


def own(_: Path, __: int) -> list[Sample]:
    """The project's examples: short, in 38 languages, right ones in words of their own."""
    return list(veriglot.read(EXAMPLES))


SETS = (
    HeldOut("gold_dev", "mFAVA gold_dev", gold_dev, (("unit", "f1"), ("unit", "auroc"))),
    HeldOut("natural", "Mu-SHROOM validation", natural, (("char", "iou"), ("unit", "auroc")), seen=True),
    HeldOut("claims", "WiCE, the held-out tenth", claims, (("unit", "f1"), ("unit", "auroc"))),
    HeldOut("answers", "XQuAD, made right and wrong", answers, (("response", "auroc"), ("unit", "f1"))),
    HeldOut("own", "our own examples", own, (("unit", "f1"), ("response", "auroc"))),
    HeldOut("quotations", "clean text: quotations", quotations, (("unit", "fpr"), ("response", "fpr"))),
    HeldOut("right_answers", "clean text: right answers", right_answers, (("unit", "fpr"), ("response", "fpr"))),
)
