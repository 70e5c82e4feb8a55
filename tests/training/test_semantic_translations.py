"""What people's labels of translations teach."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from parallel_data import token_layer, translation

from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task, Unit
from veriglot.training.semantic.dataset import TOKENS, labelled_translations

if TYPE_CHECKING:
    from veriglot.training.grounding.examples import Example

SOURCE = "Der Zug hält in Bergau."
RIGHT = "The train stops in Bergau."


def learned(*samples: Sample) -> tuple[list[Example], Counter[str]]:
    left_out: Counter[str] = Counter()
    found = list(labelled_translations(samples, left_out, Random(1)))
    return found, +left_out


def marked(example: Example) -> list[str]:
    return [example.response[mark.start : mark.end] for mark in example.marks]


def layer(annotator: str, response: str, *texts: str) -> Annotation:
    spans = tuple(Span(response.index(t), response.index(t) + len(t), "hallucination") for t in texts)
    return Annotation(annotator, Kind.HUMAN, "hat", spans)


def pathology(response: str, *flags: str) -> Sample:
    annotation = Annotation("gold", Kind.HUMAN, "hat", None, (), flags=flags)
    return translation("p", SOURCE, response, annotation)


def test_agreed_spans_teach_every_word() -> None:
    response = "The train of dreams stops in Bergau."
    (found,), left_out = learned(translation("a", SOURCE, response, token_layer(response, "of dreams")))
    assert (found.kind, found.source, found.language, found.evidence_language) == ("natural", TOKENS, "en", "de")
    assert found.translation
    assert found.passages == (SOURCE,)
    assert marked(found) == ["of dreams"]
    assert {mark.type for mark in found.marks} == {"invented"}
    assert not left_out


def test_several_raters_count_by_majority_and_rare_additions_are_all_kept() -> None:
    response = "The fast train stops in Bergau."
    agreed = [layer(f"rater{n}", response, "fast") for n in range(2)] + [layer("rater9", response, "train")]
    plain = [translation(f"{n}", f"{SOURCE} {n}", RIGHT, layer("rater1", RIGHT), errors=[]) for n in range(1700)]
    found, left_out = learned(translation("a", SOURCE, response, *agreed), *plain)
    assert marked(found[0]) == ["fast"]
    assert len(found) == 1 + 1500
    assert left_out == {"translation without an addition, beyond the sample": 200}


def test_pathologies_mark_the_whole_or_what_repeats() -> None:
    twice = "The train stops. The train stops. The train stops in Bergau."
    found, _ = learned(
        pathology("Buy cheap watches.", "full_detachment"),
        pathology("The lake stops.", "strong_detachment"),
        pathology(twice, "oscillation"),
        pathology(RIGHT, "omission"),
    )
    assert marked(found[0]) == ["Buy cheap watches."]
    assert found[1].shares == ((0, len("The lake stops."), 0.6),)
    assert marked(found[2]) == ["The", "train", "stops"] * 2
    assert found[2].marks[0].start == twice.index("The", 1)
    assert found[3].marks == ()
    assert [example.source for example in found] == ["translation pathologies"] * 4


def test_a_critical_error_somewhere_teaches_nothing_and_right_ones_make_more() -> None:
    def judged(n: int, *, critical: bool) -> Sample:
        response = f"The train number {n} stops in Bergau."
        units = (Unit(0, len(response), "critical_error"),) if critical else ()
        annotation = Annotation("gold", Kind.HUMAN, "critical", None, units)
        return translation(f"{n}", f"Der Zug Nummer {n} hält in Bergau.", response, annotation)

    found, left_out = learned(*(judged(n, critical=n >= 10) for n in range(14)))
    assert left_out == {"translation with a critical error somewhere": 4}
    assert [e.source for e in found[:10]] == ["translation critical"] * 10
    assert {e.kind for e in found[:10]} == {"clean"}
    made = found[10:]
    assert len(made) == 60
    assert {(e.language, e.evidence_language) for e in made} == {("en", "de"), ("de", "en")}
    assert all("number 1" not in p or int(p.split()[3]) < 10 for e in made for p in e.passages if "train" in p)


def test_a_translation_without_a_source_language_is_left_out_and_counted() -> None:
    sample = Sample(
        "x", RIGHT, Task.TRANSLATION, "en", None, (Evidence(SOURCE),), annotations=(token_layer(RIGHT),)
    )  # fmt: skip
    found, left_out = learned(sample)
    assert found == []
    assert left_out == {"translation without a language or with several sources": 1}
