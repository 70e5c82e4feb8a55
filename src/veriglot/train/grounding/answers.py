"""From right answers: wrong ones, and answers said as people and models say them, with words of the question.

A model rarely gives the bare answer. It repeats the question's words around it, and where it errs the answer alone is
wrong. Nothing here knows grammar: question words in their order with the answer before, after or among them are
enough to teach that words of the question need no support and that the answer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.text import fold, sentences, words
from veriglot.text.spacing import space_of
from veriglot.train.grounding.example import Example, Mark

if TYPE_CHECKING:
    from random import Random

    from veriglot.train.grounding.reading import Answer

__all__ = ["LONGEST", "RIGHT", "answer_example", "around"]

_BARE, _QUOTED, _SAID = 0.3, 0.55, 1.0  # cumulative shares of the forms
RIGHT = 0.45  # of every form
LONGEST = 60  # code points of another answer that is taken for a wrong one
_MARKS = "?？؟;।"


def answer_example(answer: Answer, others: list[Answer], rng: Random) -> Example | None:
    """One example: right or wrong, bare, in its sentence, or said with the words of the question.

    Args:
        answer: the right answer.
        others: answers in the same language to take wrong ones from.
        rng: draws the form.

    Returns:
        The example, or None where no wrong answer was at hand.
    """
    right = rng.random() < RIGHT
    text = answer.text if right else _wrong(answer, others, rng)
    if text is None:
        return None
    before, after = around(answer, rng)
    start = len(before)
    marks = () if right else (Mark(start, start + len(text), "entity"),)
    return Example(
        "clean" if right else "wrong", "answers", f"passage:{answer.language}:{answer.passage[:200]}", answer.language,
        before + text + after, (answer.passage,), answer.question, marks,
    )  # fmt: skip


def around(answer: Answer, rng: Random) -> tuple[str, str]:
    """What stands before and after an answer: nothing, its sentence in the passage, or words of the question."""
    form = rng.random()
    if form >= _QUOTED:
        return _question_around(answer, rng)
    return _sentence_around(answer) if form >= _BARE else ("", "")


def _wrong(answer: Answer, others: list[Answer], rng: Random) -> str | None:
    """Another answer of the same kind (with digits or without), as often as not one that the same passage holds."""
    right = fold(answer.text)
    passage = fold(answer.passage)
    has_digit = any(c.isdigit() for c in right)
    near = rng.random() < 0.5
    for other in rng.sample(others, min(len(others), 80)):
        text = fold(other.text)
        if text in right or right in text or len(other.text) > LONGEST:
            continue
        if any(c.isdigit() for c in text) == has_digit and (text in passage) == near:
            return other.text
    return None


def _sentence_around(answer: Answer) -> tuple[str, str]:
    place = answer.passage.find(answer.text)
    for start, end in sentences(answer.passage, answer.language):
        if start <= place < end:
            return answer.passage[start:place], answer.passage[place + len(answer.text) : end]
    return "", ""


def _question_around(answer: Answer, rng: Random) -> tuple[str, str]:
    question = answer.question.strip().rstrip(_MARKS).strip()
    bounds = words(question, answer.language)
    if len(bounds) < 3:
        return "", ""
    kept = question[bounds[rng.choice((0, 1, 1, 2))][0] :]
    space = space_of(answer.language)
    stop = rng.choice((".", "", "."))
    way = rng.random()
    if way < 0.4:
        return f"{kept}{rng.choice((space, ': ', ', ') if space else ('：', '，', ''))}", stop
    if way < 0.7:
        return "", f"{space}{kept}{stop}"
    inner = words(kept, answer.language)
    cut = inner[rng.randrange(len(inner))][0]
    return kept[:cut], f"{space}{kept[cut:]}{stop}"
