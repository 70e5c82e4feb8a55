"""Judged samples in several scripts, written for these tests, with spans placed by looking their text up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from veriglot.records import (
    Annotation,
    Evidence,
    Generator,
    Kind,
    Pointer,
    Prediction,
    Sample,
    Span,
    Status,
    Task,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Pair = tuple[Sample, Prediction]
Mark = tuple[str, str | None, float | None, str | None]


def pointer_to(evidence: Sequence[Evidence], text: str) -> Pointer:
    for passage in evidence:
        at = passage.text.find(text)
        if at >= 0:
            return Pointer(passage.id or "", at, at + len(text))
    raise AssertionError(f"{text!r} is in no passage")


def words_of(response: str, evidence: Sequence[Evidence]) -> tuple[Word, ...]:
    """Every word, supported where the evidence holds the same letters: a plain rule, but a real one."""
    found = []
    for match in re.finditer(r"\w+", response):
        places = [(p.id or "", p.text.casefold().find(match.group().casefold())) for p in evidence]
        held = tuple(Pointer(name, at, at + len(match.group())) for name, at in places if at >= 0)
        found.append(Word(match.start(), match.end(), 0.04 if held else 0.77, held))
    return tuple(found)


def judged(
    name: str,
    tag: str | None,
    evidence: Sequence[str],
    response: str,
    marks: Sequence[Mark],
    *,
    question: str | None = None,
    words: bool = True,
    gold: Sequence[tuple[str, str]] | None = None,
) -> Pair:
    """A sample and its prediction; a mark is (text in the response, type, confidence, text in the evidence)."""
    passages = tuple(Evidence(text, id=f"p{i}", language=tag) for i, text in enumerate(evidence))
    spans = []
    for text, type_, confidence, proof in marks:
        at = response.index(text)
        places = (pointer_to(passages, proof),) if proof else ()
        spans.append(Span(at, at + len(text), type_, confidence, text, places))
    notes: tuple[Annotation, ...] = ()
    if gold is not None:
        found = tuple(Span(response.index(t), response.index(t) + len(t), type_) for t, type_ in gold)
        notes = (Annotation("gold", Kind.HUMAN, "fava", spans=found),)
    sample = Sample(name, response, Task.QA, tag, question, passages, generator=Generator("model-x"), annotations=notes)
    score = max((span.confidence or 0.5 for span in spans), default=0.05)
    prediction = Prediction(
        name, Status.SCORED, "rule@1", score, tuple(spans), words_of(response, passages) if words else None, tag,
        notes=("calibration:default",), signature="detector:rule|threshold:0.5",
    )  # fmt: skip
    return sample, prediction


def english() -> Pair:
    return judged(
        "en-lighthouse", "en",
        ["The lighthouse of Orrin Point was finished in 1871 by Ada Fenwick. It stands 34 metres high.",
         "Its lamp burned whale oil until 1903, when electric light was put in."],
        "The lighthouse of Orrin Point was finished in 1887 by Ada Fenwick, the greatest engineer of her age. "
        "It stands 34 metres high and its lamp went out in the storm of Glass Night.",
        [("1887", "entity", 0.94, "1871"), ("the greatest engineer of her age", "subjective", 0.81, None),
         ("its lamp went out in the storm of Glass Night", "contradictory", 0.72,
          "Its lamp burned whale oil until 1903"),
         ("the storm of Glass Night", "invented", 0.58, None)],
        question="Who built the lighthouse of Orrin Point, and when?",
        gold=[("1887", "entity"), ("the greatest engineer of her age", "subjective")],
    )  # fmt: skip


def arabic() -> Pair:
    return judged(
        "ar-market", "ar",
        ["افتُتح سوق النحاسين عام 1932 في المدينة القديمة، ويضم 48 دكانًا "
         "يعمل فيها الحرفيون. يقع السوق قرب المسجد الكبير (باب النحاس)."],
        "افتُتح سوق النحاسين عام 1952 في المدينة القديمة، ويضم 48 دكانًا. "
        "هدم السوق المسجد الكبير، وهو أجمل سوق في العالم حسب دليل Lonely Road.",
        [("1952", "entity", 0.97, "1932"), ("هدم", "relation", 0.83, "يقع السوق قرب"),
         ("وهو أجمل سوق في العالم حسب دليل Lonely Road", "subjective", 0.66, None)],
        question="متى افتُتح سوق النحاسين؟",
    )  # fmt: skip


def hebrew() -> Pair:
    return judged(
        "he-bridge", "he",
        ["הגשר הישן מעל הנחל נבנה בשנת 1911 מאבן מקומית."],
        "הגשר הישן מעל הנחל נבנה בשנת 1991 מברזל (steel).",
        [("1991", "entity", 0.9, "1911"), ("מברזל (steel)", "entity", 0.7, "מאבן מקומית")],
    )  # fmt: skip


def chinese() -> Pair:
    return judged(
        "zh-library", "zh-Hans",
        ["青石图书馆建于1928年,馆藏古籍约三万册,其中包括𠮷田先生捐赠的手稿😀。图书馆位于河东路12号。"],
        "青石图书馆建于1938年,馆藏古籍约三万册😀,其中包括𠮷田先生出售的手稿。图书馆位于河西路12号,据说夜里会发光。",
        [("1938年", "entity", 0.92, "1928年"), ("出售", "relation", 0.74, "捐赠"), ("河西路", "entity", 0.69, "河东路"),
         ("据说夜里会发光", "unverifiable", 0.51, None)],
    )  # fmt: skip


def hindi() -> Pair:
    return judged(
        "hi-garden", "hi",
        ["कमल उद्यान की स्थापना 1964 में हुई थी और इसमें तीन तालाब हैं।"],
        "कमल उद्यान की स्थापना 1946 में हुई थी और इसमें पाँच तालाब हैं।",
        [("1946", "entity", 0.95, "1964"), ("पाँच", "entity", 0.88, "तीन")],
    )  # fmt: skip


def thai() -> Pair:
    return judged(
        "th-temple", "th",
        ["วัดริมน้ำสร้างขึ้นในปี พ.ศ. 2450 โดยชาวบ้านในหมู่บ้าน"],
        "วัดริมน้ำสร้างขึ้นในปี พ.ศ. 2540 โดยพ่อค้าในหมู่บ้าน",
        [("2540", "entity", 0.93, "2450"), ("พ่อค้า", "entity", 0.61, "ชาวบ้าน")],
        words=False,
    )  # fmt: skip


def crossing() -> Pair:
    """Spans that nest and cross: [0, 9) outer, [4, 6) inside it, [7, 12) across its end."""
    sample = Sample("crossing", "abcdefghijklmno", evidence=(Evidence("abc"),))
    spans = (Span(0, 9, "contradictory", 0.8), Span(4, 6, "entity", 0.9), Span(7, 12, "relation", 0.7))
    return sample, Prediction("crossing", Status.SCORED, "rule@1", 0.9, spans)


def clean() -> Pair:
    return judged("en-clean", "en", ["The ferry leaves at nine."], "The ferry leaves at nine.", [])


def unchecked(status: Status, reason: str) -> Pair:
    sample = Sample(f"x-{status.value}", "Nobody looked at this.", language="en")
    return sample, Prediction(sample.id, status, "rule@1", reason=reason)


def empty() -> Pair:
    sample = Sample("empty", "", language="en", evidence=(Evidence("Something."),))
    return sample, Prediction("empty", Status.SCORED, "rule@1", 0.0, ())


def long_evidence(sentences: int = 20_000) -> Pair:
    """About a megabyte in one passage, half of it without a single line break, with a place far inside."""
    hall = [f"Ledger line {i} names a debtor of the harbour office." for i in range(sentences)]
    text = "\n".join(hall[: sentences // 2]) + " " + " ".join(hall[sentences // 2 :])
    return judged(
        "en-ledger", "en", [text, "A short second passage."],
        f"Ledger line {sentences * 3 // 4} names a friend of the harbour office.",
        [("friend", "relation", 0.77, f"Ledger line {sentences * 3 // 4} names a debtor")],
    )  # fmt: skip


def every_kind() -> list[Pair]:
    """One judged sample per script, and one of every other kind."""
    return [
        english(), arabic(), hebrew(), chinese(), hindi(), thai(), crossing(), clean(), empty(),
        unchecked(Status.NO_EVIDENCE, "the sample has no evidence"),
        unchecked(Status.UNSUPPORTED_LANGUAGE, "no word breaks for tlh"),
    ]  # fmt: skip
