"""Parallel questions and labelled translations of our own, in English, German and Chinese."""

from __future__ import annotations

from training_data import MAYORS, TOWNS

from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task

_PARTS = ("Alpha", "Beta", "Gamma", "Delta", "Omega")
_ASKED = {
    "en": ("In which year was the town {town} founded?", "Which mayor opened the first school of {town}?"),
    "de": (
        "In welchem Jahr wurde die Stadt {town} gegründet?",
        "Welcher Bürgermeister eröffnete die Schule von {town}?",
    ),
}


def parallel_samples(count: int) -> list[Sample]:
    """Answered questions about up to fifty towns, in English and in German, as a reader of XQuAD returns them."""
    found = []
    for n in range(count):
        town, mayor, year = f"{TOWNS[n % 10]}-{_PARTS[n // 10]}", MAYORS[(3 * n + 1) % 10], str(1200 + 7 * n)
        texts = {
            "en": f"The town of {town} lies on the river {n} there. It was founded in {year} by settlers."
            f" Mayor {mayor} opened the first school of {town}, and a library.",
            "de": f"Die Stadt {town} liegt am Fluss {n} im Tal. Gegründet wurde sie {year} von Siedlern."
            f" Bürgermeister {mayor} eröffnete die erste Schule von {town} und eine Bibliothek.",
        }
        for tag, passage in texts.items():
            for nth, (question, answer) in enumerate(zip(_ASKED[tag], (year, mayor), strict=True)):
                start = passage.index(answer)
                found.append(
                    Sample(
                        f"{tag}:{n}-{nth}", answer, Task.QA, tag, question.format(town=town),
                        (Evidence(passage, title=f"Town {n}", language=tag),),
                        annotations=(Annotation("gold", Kind.HUMAN, "fava", ()),),
                        meta={"question_id": f"{n}-{nth}", "answer_in_evidence": [start, start + len(answer)]},
                    )
                )  # fmt: skip
    return found


def translation(
    id_: str,
    source: str,
    response: str,
    *layers: Annotation,
    languages: tuple[str, str] = ("de", "en"),
    **meta: object,
) -> Sample:
    """A labelled translation of a source."""
    theirs, ours = languages
    return Sample(
        id_, response, Task.TRANSLATION, ours, None, (Evidence(source, language=theirs),), annotations=layers,
        meta=dict(meta),
    )  # fmt: skip


def token_layer(response: str, *marked: str) -> Annotation:
    """Spans that annotators agreed on."""
    spans = tuple(
        Span(response.index(text), response.index(text) + len(text), "hallucination", text=text) for text in marked
    )
    return Annotation("gold", Kind.HUMAN, "hat", spans)
