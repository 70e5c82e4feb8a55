"""Glued spans: the deleted word is found and removed, or else the span is ignored in training."""

from __future__ import annotations

from collections import Counter

import pytest

from veriglot.training.grounding.examples import Example, Mark, unglue, vocabulary_of


def example(language: str, reference: str, response: str, *marks: tuple[str, str]) -> Example:
    placed = tuple(Mark(response.index(text), response.index(text) + len(text), type_) for text, type_ in marks)
    return Example("silver", "silver", "g", language, response, (reference,), None, placed)


def vocabulary(*examples: Example) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in examples:
        counts.update(vocabulary_of(one))
    return counts


GLUED = [
    (
        "en",
        "Hellas Verona beat Torino. Roma lost.",
        "On Sunday HellasRoma beat Torino.",
        "HellasRoma", "Roma",
    ),
    (
        "de",
        "Der Fluss ist lang. Das Gebirge ist hoch.",
        "Hier ist der FlussGebirge sehr lang.",
        "FlussGebirge", "Gebirge",
    ),
    (
        "ru",
        "Город стоит на Волге. Он лежит у Дона.",
        "Город стоит на ВолгеДона давно.",
        "ВолгеДона", "Дона",
    ),
    (
        "el",
        "Η Αθήνα είναι μεγάλη. Η Σπάρτη είναι μικρή.",
        "Λένε ότι ΑθήναΣπάρτη είναι μεγάλη.",
        "ΑθήναΣπάρτη", "Σπάρτη",
    ),
    (
        "ar",
        "بنيت القاهرة قديما. وبنيت بغداد لاحقا.",
        "يقال إن القاهرةبغداد بنيت قديما.",
        "القاهرةبغداد", "بغداد",
    ),
    (
        "es",
        "El puente fue construido aquí. El puente fue destruido.",
        "El puente fue construidodestruido.",
        "construidodestruido", "destruido",
    ),
    (
        "en",
        "The race took place in New York. It was in San Remo.",
        "It took place in New YorkSan Remo then.",
        "New YorkSan Remo", "San Remo",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("language", "reference", "response", "glued", "new"), GLUED)
def test_the_new_word_stays_and_keeps_its_mark(
    language: str, reference: str, response: str, glued: str, new: str
) -> None:
    one = example(language, reference, response, (glued, "entity"))
    repaired = unglue(one, vocabulary(one))
    assert repaired is not None
    assert repaired.response == response.replace(glued, new)
    assert [(repaired.response[m.start : m.end], m.type) for m in repaired.marks] == [(new, "entity")]
    assert repaired.ignored == ()


def test_marks_after_a_repair_move_with_the_text() -> None:
    response = "HellasRoma beat Torino, which is a wonderful club, in VeronaTorino 🌊 yesterday."
    marks = [("HellasRoma", "entity"), ("which is a wonderful club", "subjective"), ("VeronaTorino", "entity")]
    one = example("en", "Hellas Verona beat Torino. Roma lost to Torino.", response, *marks)
    repaired = unglue(one, vocabulary(one))
    assert repaired is not None
    texts = [repaired.response[m.start : m.end] for m in repaired.marks]
    assert texts == ["Roma", "which is a wonderful club", "Torino"]
    assert repaired.response == "Roma beat Torino, which is a wonderful club, in Torino 🌊 yesterday."


def test_types_that_replace_nothing_are_left_alone() -> None:
    one = example("en", "Hellas Verona. Roma lost.", "So HellasRoma won.", ("HellasRoma", "invented"))
    assert unglue(one, vocabulary(one)) == one


def test_a_known_word_is_no_glue() -> None:
    reference = "A football is round. Every football counts. The ball flew."
    one = example("en", reference, "They kicked the football far.", ("football", "entity"))
    repaired = unglue(one, vocabulary(one))
    assert repaired is not None
    assert repaired.response == one.response
    assert repaired.ignored == ()


def test_an_unknown_word_without_a_seam_teaches_nothing() -> None:
    one = example("en", "The club won.", "The club Qxyzzyvram won.", ("Qxyzzyvram", "entity"))
    repaired = unglue(one, vocabulary(one))
    assert repaired is not None
    assert repaired.response == one.response
    assert [repaired.response[s:e] for s, e in repaired.ignored] == ["Qxyzzyvram"]


def test_crossing_spans_cannot_be_repaired() -> None:
    crossing = (Mark(0, 10, "entity"), Mark(5, 14, "relation"))
    one = Example("silver", "silver", "g", "en", "HellasRoma won it", ("Hellas. Roma.",), None, crossing)
    assert unglue(one, vocabulary(one)) is None


def test_the_vocabulary_does_not_learn_from_replaced_spans() -> None:
    one = example("en", "Hellas Verona", "So HellasRoma won", ("HellasRoma", "entity"))
    assert sorted(vocabulary_of(one)) == ["hellas", "so", "verona", "won"]


def test_a_compound_that_the_references_know_is_no_glue() -> None:
    reference = "Der Fußball rollt. Ein Ball und ein Fuß. Der Fußball fliegt. Der Ball, der Ball."
    one = example("de", reference, "Er traf den Fußball hart.", ("Fußball", "entity"))
    repaired = unglue(one, vocabulary(one))
    assert repaired is not None
    assert (repaired.response, repaired.ignored) == (one.response, ())
