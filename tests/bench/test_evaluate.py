from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from absent_words import REFUSED, AbsentWords
from labelled_texts import annotation, samples

from veriglot.bench.evaluation import Evaluator, Settings, compare_types, evaluate
from veriglot.detectors.registry import load_detector
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.records import Kind, LanguageProfile, Prediction, Sample, Span, Status, encode
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from pathlib import Path


def replace(sample: Sample, **changes: object) -> Sample:
    return msgspec.structs.replace(sample, **changes)


def test_word_counts_are_those_of_a_plain_loop() -> None:
    data = samples()
    found = evaluate(data, AbsentWords(), resamples=0)
    predictions = AbsentWords().predict(data)
    for row, sample, prediction in zip(found.counts.blocks["unit"], data, predictions, strict=True):
        expected = [0, 0, 0, 0]
        for start, end in word_bounds(sample.response, sample.language).tolist():
            gold = any(s.start < end and start < s.end for s in sample.annotations[0].spans or ())
            marked = any(s.start < end and start < s.end for s in prediction.spans or ())
            expected[{(True, True): 0, (False, True): 1, (True, False): 2, (False, False): 3}[gold, marked]] += 1
        assert row.tolist() == expected


def test_a_detector_by_name_and_what_is_no_sample() -> None:
    named = evaluate(samples(), "grounding", resamples=0)
    loaded = evaluate(samples(), load_detector("grounding", words=True), resamples=0)
    assert named.signature == loaded.signature
    assert repr(named).startswith("<Evaluation of grounding@")
    assert "word F1 " in repr(named)
    for stray in ({"response": "a"}, "a"):
        with pytest.raises(TypeError, match="this is no Sample"):
            evaluate([stray], AbsentWords())  # type: ignore[list-item]


def test_profile_is_what_the_design_asks_for() -> None:
    found = evaluate(samples(), AbsentWords(), resamples=20)
    profile = found.profile()
    plain = json.loads(encode(profile))
    assert list(plain) == ["unit", "threshold", "detector", "languages", "pooled", "data", "signature"]
    assert plain["languages"]["de"]["responses"] == [list(row) for row in profile.languages["de"].responses]
    assert (profile.unit, profile.threshold, profile.detector, profile.data.kind) == (
        "word", 0.5, "absent-words@1", "gold",
    )  # fmt: skip
    assert set(profile.languages) == {"en", "de"}
    both = [r for tag in ("en", "de") for r in profile.languages[tag].responses]
    assert profile.pooled == LanguageProfile.of(both, histograms=profile.pooled.histograms)
    apart = [cells for tag in ("en", "de") for cells in profile.languages[tag].histograms]
    assert profile.pooled.histograms == tuple(apart)
    for part in (profile.pooled, *profile.languages.values()):
        unsupported, supported = (sum(column) for column in zip(*part.confidences, strict=True))
        assert (unsupported, supported) == (part.tp + part.fn, part.fp + part.tn)
        for counts, cells in zip(part.responses, part.histograms, strict=True):
            assert sum(cell[1] for cell in cells) == counts.tp + counts.fn
            assert sum(cell[2] for cell in cells) == counts.fp + counts.tn
        surely = [sum(column) for column in zip(*part.confidences[10:], strict=True)]
        assert surely == [part.tp, part.fp], "bin 10 begins at the detector's threshold of 0.5"

    assert profile.pooled.recall == found.figure("unit", "recall", "pooled").value
    assert profile.pooled.fpr == found.figure("unit", "fpr", "pooled").value
    assert len(profile.data.sha256) == 64
    for part in ("data:", "detector:absent-words@1", "threshold:0.5", "unit:word", "seed:0", "resamples:20",
                 "annotator:gold", "version:"):  # fmt: skip
        assert part in profile.signature


def test_profile_says_which_responses_hold_one_text() -> None:
    twice = [msgspec.structs.replace(sample, id=f"{sample.id}-{n}") for n in range(2) for sample in samples()]
    profile = evaluate(twice, AbsentWords(), resamples=0).profile()
    each = len(profile.pooled.responses) // 2
    assert profile.pooled.clusters[:each] == profile.pooled.clusters[each:]
    assert evaluate(samples(), AbsentWords(), resamples=0).profile().pooled.clusters == ()


def test_signature_follows_data_and_settings() -> None:
    data = samples()
    base = evaluate(data, AbsentWords(), resamples=0).signature
    assert evaluate(data, AbsentWords(), resamples=0).signature == base
    changed = [replace(data[0], annotations=(annotation(data[0].response, []),)), *data[1:]]
    assert evaluate(changed, AbsentWords(), resamples=0).signature != base
    assert evaluate(data, AbsentWords(threshold=0.7), resamples=0).signature != base
    assert evaluate(data, AbsentWords(), resamples=0, unit="char").signature != base


def test_what_was_not_scored_is_never_clean() -> None:
    data = samples()
    refused = [*data, replace(data[2], id="x1", language=REFUSED), replace(data[2], id="x2", evidence=())]
    found = evaluate(refused, AbsentWords(), resamples=0)
    assert len(found.counts) == 6
    assert found.coverage[REFUSED].unscored == {"unsupported_language": 1}
    assert found.coverage["en"].unscored == {"no_evidence": 1}
    assert found.figure("unit", "f1", "en").coverage == 0.75
    none = found.figure("unit", "fpr", REFUSED)
    assert (none.value, none.reason, none.coverage) == (None, "no labelled response was scored", 0.0)
    mean = found.figure("unit", "f1", "mean")
    assert mean.reason is not None
    assert "without xx" in mean.reason
    assert any("2 of 8 labelled samples not scored" in note for note in found.notes)


def test_samples_without_labels_are_counted_and_left_out() -> None:
    data = samples()
    found = evaluate([*data, replace(data[0], id="bare", annotations=())], AbsentWords(), resamples=0)
    assert len(found.counts) == 6
    assert (found.coverage["en"].samples, found.coverage["en"].labelled) == (4, 3)
    assert any("1 of 7 samples have no labels" in note for note in found.notes)


def test_annotators_are_chosen_by_name() -> None:
    data = [replace(s, annotations=(*s.annotations, annotation(s.response, [], "gpt", Kind.MODEL))) for s in samples()]
    gold = evaluate(data, AbsentWords(), resamples=0)
    silver = evaluate(data, AbsentWords(), resamples=0, annotator="gpt")
    assert gold.figure("unit", "recall", "en").value is not None
    assert silver.figure("unit", "recall", "en").reason == "the reference marks nothing"
    assert silver.profile().data.kind == "silver"
    with pytest.raises(UnknownNameError, match="annotator named 'gtp'"):
        evaluate(data, AbsentWords(), annotator="gtp", resamples=0)


def test_repeats_of_a_text_are_one_cluster() -> None:
    data = samples()
    again = [replace(s, id=f"{s.id}-again") for s in data]
    grouped = [replace(s, id=f"{s.id}-g", response=s.response + " ", meta={"group": 7}) for s in data[:3]]
    found = evaluate([*data, *again, *grouped], AbsentWords(), resamples=0)
    assert found.figure("unit", "f1", "de").n_clusters == 3
    assert found.figure("unit", "f1", "en").n_clusters == 4
    assert found.figure("unit", "f1", "en").n_responses == 9


def test_answers_of_several_models_to_one_query_are_one_cluster() -> None:
    """They share what is hard in the question, so intervals that took them for independent were too short."""
    asked = [
        replace(sample, id=f"{sample.id}-{model}", response=sample.response + " " * model, meta={"query": sample.id})
        for sample in samples()
        for model in range(3)
    ]
    alone, together = (evaluate(data, AbsentWords(), resamples=0) for data in (samples(), asked))
    for tag in ("de", "en"):
        assert together.figure("unit", "f1", tag).n_clusters == alone.figure("unit", "f1", tag).n_clusters
    assert together.figure("unit", "f1", "de").n_responses == 3 * alone.figure("unit", "f1", "de").n_responses


def test_batches_and_order_change_nothing() -> None:
    data = [replace(s, id=f"{s.id}-{n}", response=s.response + " " * n) for n in range(30) for s in samples()]
    whole = evaluate(data, AbsentWords(), resamples=0)
    back = evaluate(data[::-1], AbsentWords(), resamples=0)
    for one, other in zip(whole.figures, back.figures, strict=True):
        assert (one.level, one.name, one.language, one.n_units) == (
            other.level,
            other.name,
            other.language,
            other.n_units,
        )
        assert one.value == pytest.approx(other.value)


def test_languages_that_nobody_stated() -> None:
    data = [replace(s, language=None) for s in samples()]
    found = evaluate(data, AbsentWords(), resamples=0)
    assert set(found.coverage) == {"und"}


def test_a_prediction_of_another_sample_is_refused() -> None:
    data = samples()
    evaluator = Evaluator(Settings("d@1"))
    with pytest.raises(InputError, match="cannot be compared with"):
        evaluator.add(data[0], AbsentWords().predict([data[1]])[0])
    evaluator.add(data[0], None)
    assert evaluator.result(resamples=0).coverage["en"].unscored == {"missing": 1}


def test_nothing_to_evaluate() -> None:
    found = evaluate([], AbsentWords(), resamples=10)
    assert all(figure.value is None and figure.reason for figure in found.figures)
    with pytest.raises(UsageError, match="There is no error profile"):
        found.profile()


def test_an_unknown_threshold_makes_no_profile() -> None:
    evaluator = Evaluator(Settings("d@1"))
    with pytest.raises(UsageError, match="--threshold"):
        evaluator.result(resamples=0).profile()


class TestTypes:
    def test_own_taxonomy(self) -> None:
        types = compare_types("fava", "fava", None, set())
        assert (types.taxonomy, len(types.names), types.why) == ("fava", 6, "")

    def test_detector_leads_to_data(self) -> None:
        types = compare_types("support", "fava", None, set())
        assert types.names == ("contradicted", "unverified")
        assert types.of_detector(["entity", "invented", None]) == ("contradicted", "unverified", None)
        assert types.of_reference("support", ["unverified"]) == ("unverified",)
        assert types.why == "types of fava are compared as those of support"

    def test_data_leads_to_detector(self) -> None:
        types = compare_types("fava", "hat", None, set())
        assert types.names == ("hallucination",)
        assert types.of_reference("fava", ["entity"]) == ("hallucination",)

    def test_asked_for(self) -> None:
        types = compare_types("fava", "fava", "halluverse", set())
        assert types.names == ("entity", "relation", "sentence")
        with pytest.raises(UsageError, match="do not both map to 'fava'"):
            compare_types("hat", "fava", "fava", set())
        with pytest.raises(UnknownNameError):
            compare_types("fava", "fava", "flava", set())

    def test_found_from_the_types_that_were_given(self) -> None:
        assert compare_types("halluverse", None, None, {"entity"}).taxonomy == "halluverse"
        assert compare_types("fava", None, None, {"hallucination"}).names == ("hallucination",)
        none = compare_types("fava", None, None, {"Entity!"})
        assert (none.names, none.taxonomy) == ((), None)
        assert "predictions" in none.why

    def test_no_way_between(self) -> None:
        found = compare_types("fava", None, None, set())
        assert found.names == ()
        sample = samples()[0]
        evaluator = Evaluator(Settings("d@1", threshold=0.5))
        spans = (Span(0, 3, "odd", 0.9),)
        evaluator.add(sample, Prediction(sample.id, Status.SCORED, "d@1", score=0.9, spans=spans))
        result = evaluator.result(resamples=0)
        assert result.figure("unit", "precision", "en").value == 0.0
        assert result.figure("category", "f1_macro", "en").value is None
        assert any("types are not compared" in note for note in result.notes)


def test_halluverse_types_of_a_fava_detector() -> None:
    found = evaluate(samples(), AbsentWords(), resamples=0, taxonomy="halluverse")
    assert {f.level for f in found.figures if f.level.startswith("type:")} == {
        "type:entity", "type:relation", "type:sentence",
    }  # fmt: skip
    as_fava = evaluate(samples(), AbsentWords(), resamples=0)
    for name in ("precision", "recall", "fpr"):  # the only sentences here are invented ones
        sentence = found.figure("type:sentence", name, "en").value
        assert sentence == as_fava.figure("type:invented", name, "en").value
        assert sentence is not None


def test_mark_everything_on_real_data(shared_data: Path) -> None:
    """The character IoU of marking everything is the share of marked characters: a figure known without a detector."""
    from veriglot.formats.reader import read

    data = [s for s in read(shared_data / "mu_shroom_val" / "mushroom.de-val.v2.extra.jsonl") if s.response]

    class Everything:
        name, taxonomy, threshold, signature = "everything@1", "hat", 0.5, "everything"

        def predict(self, batch: list[Sample]) -> list[Prediction]:
            return [
                Prediction(s.id, Status.SCORED, self.name, score=1.0, spans=(Span(0, len(s.response)),)) for s in batch
            ]

    found = evaluate(data, Everything(), unit="char", resamples=200)
    shares = []
    for sample in data:
        gold = next(a for a in sample.annotations if a.annotator == "gold")
        shares.append(len({p for s in gold.spans or () for p in range(s.start, s.end)}) / len(sample.response))
    figure = found.figure("char", "iou", "de")
    assert figure.value == pytest.approx(sum(shares) / len(shares))
    assert figure.low is not None
    assert figure.low < figure.value < figure.high  # type: ignore[operator]
    assert found.figure("unit", "recall", "de").value == 1.0
    assert found.figure("unit", "ece", "de").value is None  # it gives no confidence of words
