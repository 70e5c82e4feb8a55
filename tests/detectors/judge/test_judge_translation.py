"""The judges of translations: one verdict a translation, and how sure it was."""

from __future__ import annotations

import math
from typing import Any

import pytest
from misbehaving import ModelServer
from scripted_judges import judge, sample, says

from veriglot.detectors.registry import load_detector
from veriglot.errors import UsageError
from veriglot.records import Evidence, Sample, Status, Task

SOURCE = "Der Zug fährt um acht ab."
YES = {"reason": "It adds a station.", "hallucination": True}
NO = {"reason": "It is faithful.", "hallucination": False}
KINDS = ("translation", "translation-guided")


def translated(response: str = " The train leaves at eight from the old station. ", id_: str = "t") -> Sample:
    source = Evidence(SOURCE, language="de")
    return Sample(id_, response, task=Task.TRANSLATION, language="en", evidence=(source,))


@pytest.mark.parametrize("kind", KINDS)
def test_a_verdict_marks_all_or_nothing(kind: str) -> None:
    made = judge(kind, says(YES, match="old station"), says(NO))
    bad, good = made.predict([translated(), translated("The train leaves at eight.")])
    assert made.taxonomy == "hat"
    assert [(s.start, s.end, s.type, s.confidence) for s in bad.spans or ()] == [(1, 48, "hallucination", None)]
    assert (bad.score, good.score, good.spans) == (1.0, 0.0, ())
    assert bad.notes == ("reason:It adds a station.", "confidence:verdict")
    assert good.notes == ("reason:It is faithful.", "confidence:verdict")


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_sees_source_translation_and_languages(kind: str) -> None:
    with ModelServer() as server:
        made = load_detector(f"judge:{kind}", model="m", url=server.base_url)
        made.predict([translated()])
        text = server.arrivals[-1].body["messages"][0]["content"]
    assert f"<source>\n{SOURCE}\n</source>" in text
    assert "The source is in German, the translation in English." in text
    assert ("If all three are no" in text) == (kind == "translation-guided")


def test_the_language_of_a_source_is_identified_where_it_is_not_given() -> None:
    with ModelServer() as server:
        made = load_detector("judge:translation", model="m", url=server.base_url)
        made.predict([sample("It is late and it is raining.", "Il est tard et il pleut sur la ville de Lyon.")])
        text = server.arrivals[-1].body["messages"][0]["content"]
    assert "The source is in French" in text


def test_the_guidelines_contrast_as_many_hallucinations_as_other_errors() -> None:
    with ModelServer() as server:
        load_detector("judge:translation-guided", model="m", url=server.base_url).predict([translated()])
        text = server.arrivals[-1].body["messages"][0]["content"]
    assert text.count('"hallucination": true}') == text.count('"hallucination": false}') == 5


@pytest.mark.parametrize("said", [True, False])
def test_the_probability_of_the_verdict_is_that_of_its_token(said: bool) -> None:
    answer = f'{{"reason":"one", "hallucination":{str(said).lower()}}}'  # the label is in the second token: -0.25
    with ModelServer(answer=lambda _: answer, schemas=False) as server:
        made = load_detector("judge:translation", model="m", url=server.base_url, probabilities=True)
        (found,) = made.predict([translated()])
    sure = math.exp(-0.25)
    assert found.score == round(sure if said else 1 - sure, 4)
    assert found.notes == ("reason:one", "confidence:token_probabilities", "calibration:none")
    assert bool(found.spans) == (found.score >= made.threshold)


def test_shares_of_samples_are_scores_and_the_threshold_decides() -> None:
    replies = says(YES, NO, NO, YES, NO)
    (found,) = judge("translation", replies, samples=5).predict([translated()])
    assert (found.score, found.spans) == (0.4, ())
    (lower,) = judge("translation", replies, samples=5, threshold=0.4).predict([translated()])
    assert [span.confidence for span in lower.spans or ()] == [0.4]


def test_a_refusal_is_no_verdict() -> None:
    (found,) = judge("translation", says("I would rather not say.")).predict([translated()])
    assert found.status is Status.FAILED


@pytest.mark.parametrize(("stated", "options", "score"), [(85, {}, 0.85), (0.3, {"highest": 1}, 0.3), (0, {}, 0.0)])
def test_a_number_that_the_judge_states_is_the_score(stated: float, options: dict[str, Any], score: float) -> None:
    made = judge("score", says({"reason": "A station was added.", "score": stated}), **options)
    (found,) = made.predict([translated()])
    assert found.score == score
    marks = [(span.start, span.end, span.type, span.confidence) for span in found.spans or ()]
    assert marks == ([(1, 48, None, score)] if score >= 0.5 else [])
    assert found.notes == ("reason:A station was added.", "confidence:verbalised", "calibration:none")


def test_the_score_of_several_answers_is_their_mean_and_one_out_of_range_is_none() -> None:
    replies = says({"score": 90}, {"score": 40}, {"score": 20})
    (found,) = judge("score", replies, samples=3).predict([translated()])
    assert found.score == 0.5
    (found,) = judge("score", says({"score": 101})).predict([translated()])
    assert (found.status, found.score) == ("failed", None)
    assert "it lies from 0 to 100" in (found.reason or "")
    with pytest.raises(UsageError, match="highest score"):
        judge("score", says({"score": 1}), highest=0)
    first, second = (judge("score", says({"score": 1}), highest=highest) for highest in (1, 100))
    assert first.signature != second.signature


def test_the_judge_of_scores_is_told_the_range() -> None:
    with ModelServer() as server:
        load_detector("judge:score", model="m", url=server.base_url, highest=10).predict([translated()])
        text = server.arrivals[-1].body["messages"][0]["content"]
    assert "to 10 (certainly not supported)" in text
    assert f"<evidence>\n{SOURCE}\n</evidence>" in text
