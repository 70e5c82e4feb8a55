"""From confidences to spans and words."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_lexicon import small_lexicon

from veriglot.detectors.grounding.detector import evidence_sentences, make_spans, word_list
from veriglot.detectors.grounding.features import SampleFeatures, extract_features
from veriglot.records import Evidence, Pointer, Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESPONSE = "Der alte 🏚 Turm steht. Er wurde (1901) gebaut! Heute wohnt hier niemand."
WORDS = ["Der", "alte", "Turm", "steht", "Er", "wurde", "1901", "gebaut", "Heute", "wohnt", "hier", "niemand"]
EVIDENCE = (
    Evidence("🌊 ..."),
    Evidence("Heute steht hier 🌊 der alte Turm.", id="b"),
    Evidence("Er wurde 1874 gebaut."),
)
SAMPLE = Sample("x", RESPONSE, language="de", evidence=EVIDENCE)
NAMES = ("entity", "relation")
CONFIDENCES = st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), min_size=len(WORDS), max_size=len(WORDS))


def found() -> SampleFeatures:
    extracted = extract_features(RESPONSE, [p.text for p in EVIDENCE], None, "de", small_lexicon())
    assert extracted is not None
    return extracted


EXTRACT = found()
READ = evidence_sentences(EXTRACT, SAMPLE, "de")


def texts(pointers: tuple[Pointer, ...]) -> list[str]:
    by_id = {str(p.id): p.text for p in SAMPLE.evidence}
    return [by_id[p.id][p.start : p.end] for p in pointers]


def types(*entity: int) -> NDArray[np.float64]:
    likely = np.full((len(WORDS), 2), 0.2)
    likely[:, 1] = 0.52
    likely[list(entity), 0] = 0.9
    return likely


def test_the_words_are_those_of_the_examples() -> None:
    assert [RESPONSE[s:e] for s, e in EXTRACT.response.bounds.tolist()] == WORDS
    assert EXTRACT.sentence.tolist() == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.fuzz
@given(confidences=CONFIDENCES, threshold=st.sampled_from([0.0, 0.3, 0.5, 0.6, 1.0]))
def test_spans_hold_the_marked_words_and_nothing_else(confidences: list[float], threshold: float) -> None:
    spans = make_spans(SAMPLE, EXTRACT, np.array(confidences), types(), NAMES, threshold, READ)
    marked = []
    for i, (start, end) in enumerate(EXTRACT.response.bounds.tolist()):
        holders = [s for s in spans if s.start <= start and end <= s.end]
        assert len(holders) == (confidences[i] >= threshold)
        marked += [i] * len(holders)
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert all(s.text == RESPONSE[s.start : s.end] for s in spans)
    runs = sum(1 for i in marked if i == 0 or i - 1 not in marked or EXTRACT.sentence[i] != EXTRACT.sentence[i - 1])
    assert len(spans) == runs
    assert all(texts(span.evidence) for span in spans)


def test_a_run_is_parted_where_a_sentence_ends() -> None:
    chosen = np.zeros(len(WORDS))
    chosen[[3, 4, 5, 8, 9, 11]] = [0.6, 0.7, 0.8, 0.9, 0.7, 0.55]
    spans = make_spans(SAMPLE, EXTRACT, chosen, types(5, 8, 9), NAMES, 0.5, READ)
    assert [s.text for s in spans] == ["steht", "Er wurde", "Heute wohnt", "niemand"]
    assert [s.confidence for s in spans] == [0.6, 0.75, 0.8, 0.55]
    assert [s.type for s in spans] == ["relation", "entity", "entity", "relation"]


def test_a_type_that_is_improbable_is_not_given() -> None:
    (span,) = make_spans(SAMPLE, EXTRACT, np.eye(len(WORDS))[5], types() - 0.03, NAMES, 0.5, READ)
    assert (span.text, span.type) == ("wurde", None)


def test_a_span_points_at_what_stands_in_its_place_or_at_a_whole_sentence() -> None:
    spans = make_spans(SAMPLE, EXTRACT, np.ones(len(WORDS)), types(), NAMES, 0.5, READ)
    assert [texts(span.evidence) for span in spans] == [
        ["Heute steht hier 🌊 der alte Turm."],
        ["1874"],
        ["Heute steht hier 🌊 der alte Turm."],
    ]
    assert [span.evidence[0].id for span in spans] == ["b", "p2", "b"]
    (span,) = make_spans(SAMPLE, EXTRACT, np.eye(len(WORDS))[WORDS.index("Er")], types(), NAMES, 0.5, READ)
    assert texts(span.evidence) == ["Er wurde 1874 gebaut."]


@pytest.mark.parametrize(
    ("language", "evidence", "response", "pointed"),
    [
        ("en", "The bridge is old. It opened in 1897, by night.", "The bridge opened in [1879].", "1897"),
        ("en", "It is large. It was built by Gustave Eiffel.", "It was built by [Karl Benz].", "Gustave Eiffel"),
        ("es", "La Feria se celebra desde 1952. La fundó Julián.", "La fundó Karl Benz en [1962].", "1952"),
        ("zh", "大桥于1883年通车。设计者是王小明。", "大桥于[1893]年通车。", "1883"),
        (
            "en",
            "It was made by Ada Rohde herself! It is old.",
            "It was [pink], I think.",
            "It was made by Ada Rohde herself!",
        ),
    ],
)
def test_a_mark_points_at_what_contradicts_it(language: str, evidence: str, response: str, pointed: str) -> None:
    start, end = response.index("["), response.index("]") - 1
    response = response.replace("[", "").replace("]", "")
    sample = Sample("x", response, language=language, evidence=(Evidence(evidence),))
    extracted = extract_features(response, [evidence], None, language, small_lexicon())
    assert extracted is not None
    words = extracted.response.bounds
    chosen = ((words[:, 0] >= start) & (words[:, 1] <= end)).astype(float)
    read = evidence_sentences(extracted, sample, language)
    (span,) = make_spans(sample, extracted, chosen, np.full((len(chosen), 2), 0.5), NAMES, 0.5, read)
    (pointer,) = span.evidence
    assert (span.text, evidence[pointer.start : pointer.end]) == (response[start:end], pointed)


def test_supported_words_point_at_themselves_in_the_evidence() -> None:
    confidences = np.array([0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    words = word_list(SAMPLE, EXTRACT, confidences, 0.5)
    assert [RESPONSE[w.start : w.end] for w in words] == WORDS
    assert [w.confidence for w in words] == confidences.tolist()
    pointed = {RESPONSE[w.start : w.end]: texts(w.evidence) for w in words}
    assert pointed == {
        "Der": ["der"], "alte": ["alte"], "Turm": ["Turm"], "steht": [], "Er": ["Er"], "wurde": ["wurde"], "1901": [],
        "gebaut": ["gebaut"], "Heute": ["Heute"], "wohnt": [], "hier": ["hier"], "niemand": [],
    }  # fmt: skip


def test_a_stem_stands_for_a_word_that_the_evidence_has_only_in_another_form() -> None:
    sample = Sample("x", "Mehrere Türme, Turmhäuser", language="de", evidence=(Evidence("ein Turmhaus"),))
    extracted = extract_features(sample.response, ["ein Turmhaus"], None, "de", small_lexicon())
    assert extracted is not None
    *_, last = word_list(sample, extracted, np.zeros(3), 0.5)
    assert [(p.id, p.start, p.end) for p in last.evidence] == [("p0", 4, 12)]
