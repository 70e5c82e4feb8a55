"""Labelled samples that the tests of `bench` share: six short answers in two languages, written for them."""

from __future__ import annotations

from veriglot.records import Annotation, Evidence, Kind, Sample, Span

_ROWS = (
    ("en", "The bridge was opened in 1932 and is 503 metres long.",
     "The bridge was opened in 1958 and is 503 metres long.", [("1958", "entity")]),
    ("en", "Otters eat fish, crabs and frogs.",
     "Otters eat fish, crabs and frogs. Their queen rules from a glass palace.",
     [("Their queen rules from a glass palace.", "invented")]),
    ("en", "The lake freezes every winter.", "The lake freezes every winter.", []),
    ("de", "Die Brücke wurde 1932 eröffnet.", "Die Brücke wurde 1958 eröffnet.", [("1958", "entity")]),
    ("de", "Otter fressen Fische und Krebse.", "Otter fressen Fische, Krebse und Zauberkäfer.",
     [("Zauberkäfer", "invented")]),
    ("de", "Der See friert jeden Winter zu.", "Der See friert jeden Winter zu.", []),
)  # fmt: skip


def annotation(response: str, marks: list[tuple[str, str]], name: str = "gold", kind: Kind = Kind.HUMAN) -> Annotation:
    spans = [(response.index(text), text, type_) for text, type_ in marks]
    return Annotation(name, kind, "fava", spans=tuple(Span(at, at + len(text), type_) for at, text, type_ in spans))


def samples() -> list[Sample]:
    return [
        Sample(
            id=f"{language}-{index}", response=response, language=language, evidence=(Evidence(evidence),),
            annotations=(annotation(response, marks),),
        )
        for index, (language, evidence, response, marks) in enumerate(_ROWS)
    ]  # fmt: skip
