"""`detect` and `load_detector`, and the status of what cannot be judged."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from many_languages import TEXTS

import veriglot
from veriglot.detection import detect
from veriglot.detectors.registry import DETECTORS, load_detector
from veriglot.errors import InputError, NotChecked, UnknownNameError, UsageError, WeightsError
from veriglot.judging.base import evidence_notes, resolve_language
from veriglot.records import Evidence, Prediction, Sample, Status, Task, Verdict

WEIGHTS = Path(str(files("veriglot.detectors.grounding") / "weights"))
ENGLISH = TEXTS["en"]
SEVERAL = [ENGLISH.evidence, "The Lenna flows north.", ""]


def test_detect_marks_the_changed_word_by_default() -> None:
    prediction = veriglot.detect(ENGLISH.evidence, response=ENGLISH.changed)
    (span,) = prediction.as_dicts()
    assert ENGLISH.changed[span["start"] : span["end"]] == span["text"] == "1907"
    assert span["confidence"] > 0.5
    assert prediction.language == "en"
    assert prediction.score is not None
    assert prediction.score > 0.5 > (detect(ENGLISH.evidence, response=ENGLISH.sentence).score or 1)


def test_detect_says_what_the_detector_says() -> None:
    detector = load_detector(words=True, threshold=0.3)
    sample = Sample(
        "response", ENGLISH.changed, question="When?", language="en", evidence=tuple(map(Evidence, SEVERAL))
    )
    (wanted,) = detector.predict([sample])
    assert (
        detect(SEVERAL, response=ENGLISH.changed, question="When?", language="en", words=True, threshold=0.3).record
        == wanted
    )
    assert (
        detect(tuple(SEVERAL), response=ENGLISH.changed, question="When?", language="en", detector=detector).record
        == wanted
    )
    assert wanted.words is not None


def test_one_passage_may_be_a_string() -> None:
    assert detect(ENGLISH.evidence, response=ENGLISH.changed) == detect([ENGLISH.evidence], response=ENGLISH.changed)


def test_unknown_names_and_thresholds_out_of_range_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="grounding"):
        load_detector("groundign")
    for threshold in (-0.1, 1.5, 95.0, float("nan")):
        with pytest.raises(UsageError, match="between 0 and 1"):
            load_detector(threshold=threshold)
    assert "grounding" in DETECTORS.names()
    assert load_detector(threshold=0.25).threshold == 0.25


def test_a_name_of_an_earlier_version_says_what_it_is_called_now() -> None:
    for name in ("semantic", "ensemble:grounding+semantic"):
        with pytest.raises(UnknownNameError, match="It is called reader"):
            load_detector(name)


@pytest.mark.parametrize("response", ["", " ", "\n\t\r\n", "\u3000\u00a0"])
def test_an_empty_response_is_not_checked(response: str) -> None:
    prediction = detect(ENGLISH.evidence, response=response)
    assert (prediction.status, prediction.get_spans(None), prediction.score) == (Status.FAILED, None, None)
    assert "empty" in str(prediction.reason)
    with pytest.raises(NotChecked, match="not checked"):
        prediction.as_dicts()


@pytest.mark.parametrize("response", ["?!", "🌊🌊", "— … —", "\u202e\u200f"])
def test_a_response_without_words_is_not_checked(response: str) -> None:
    prediction = detect(ENGLISH.evidence, response=response, language="en")
    assert prediction.status is Status.FAILED
    assert "no word" in str(prediction.reason)


@pytest.mark.parametrize("evidence", [[], "", [""], [" ", "\n"], ["\u3000"], ["?!", "…"]])
def test_without_evidence_nothing_is_checked(evidence: list[str] | str) -> None:
    prediction = detect(evidence, response=ENGLISH.sentence)
    assert (prediction.status, prediction.get_spans(None), prediction.words) == (Status.NO_EVIDENCE, None, None)
    assert "evidence" in str(prediction.reason)


def test_one_blank_passage_among_others_does_no_harm() -> None:
    assert detect(["", ENGLISH.evidence, " "], response=ENGLISH.changed, words=True).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("text", ["ᚠᚢᚦᚨᚱᚲ ᚠᚢᚦ", "42 17", "𐌰𐌱𐌲 𐌰𐌱"])
def test_a_language_that_cannot_be_told_is_not_guessed(text: str) -> None:
    prediction = detect(text, response=text)
    assert prediction.status is Status.UNSUPPORTED_LANGUAGE
    assert "`language`" in str(prediction.reason)
    assert detect(text, response=text, language="en").status is Status.SCORED


def test_the_language_is_taken_from_the_question_or_the_evidence_and_the_prediction_says_so() -> None:
    assert detect(ENGLISH.evidence, response=ENGLISH.sentence).notes == ("language:from_response",)
    assert detect(ENGLISH.evidence, response=ENGLISH.sentence, language="eng").notes == ()
    german = TEXTS["de"]
    question = "Wann wurde die steinerne Brücke über die Lenna eröffnet?"
    asked = detect(german.evidence, response="1862", question=question)
    assert (asked.language, asked.notes) == ("de", ("language:from_question",))
    unasked = detect(german.evidence, response="1862")
    assert (unasked.language, unasked.notes) == ("de", ("language:from_evidence",))


@pytest.mark.parametrize(
    ("response", "question", "evidence", "language", "source"),
    [
        ("1897-ben", "Mikor nyílt meg a híd?", "Bridges opened in 1897 and 1901.", "hu", "question"),  # else br
        ("Uko Kenya.", None, "Mlima Kilimanjaro una urefu wa mita 5895 na uko Tanzania.", "sw", "evidence"),  # else ki
        ("Die Brücke wurde 1862 eröffnet.", None, "The bridge was opened in 1862.", "de", "response"),  # sure
        ("Uko Kenya.", None, "大橋於一八六二年啟用。", "ki", "response"),  # nothing around it is in its script
        ("東京都", "首都はどこですか。", "東京都は日本の首都である。", "ja", "question"),  # else zh-Hans
        ("1589年", "アンリ4世が王位を継承したのはいつですか。", "1589年に即位した。", "ja", "question"),  # else unknown
        ("カナダ", "他出生在哪个国家？", "他出生在加拿大。", "ja", "response"),  # its script proves it
        ("Abilene", "Ποιο ήταν το πρώτο όνομα του δικτύου;", "Το δίκτυο λεγόταν Abilene.", "el", "question"),
        ("Αθήνα", "What is the capital?", "The capital is Athens.", "el", "response"),
        ("24 Monate", "Wie lange dauert die Ausbildung?", "The training takes 24 months.", "de", "question"),
        ("24 months", "Wie lange dauert die Ausbildung?", "Le stage dure deux ans.", "de", "question"),
        ("Dvořák", "Who wrote the symphony?", "The symphony was written by Dvořák.", "en", "question"),  # else cs
        ("Super Bowl 50", "Who won Super Bowl 50?", "Die Denver Broncos gewannen das Endspiel.", "de", "evidence"),
        (
            "La formation dure deux ans et se termine par un examen.",
            "Wie lange dauert die Ausbildung?", "The training takes 24 months.", "fr", "response",
        ),  # enough words of a third language
        (
            "The stone bridge over the river was opened by the mayor of the town.",
            None, "Die steinerne Brücke wurde 1862 vom Bürgermeister eröffnet.", "en", "response",
        ),  # long
    ],
)  # fmt: skip
def test_a_short_response_whose_language_is_unsure_has_that_of_what_surrounds_it(
    response: str, question: str | None, evidence: str, language: str, source: str
) -> None:
    prediction = detect(evidence, response=response, question=question)
    assert (prediction.language, prediction.notes[0]) == (language, f"language:from_{source}")


def test_a_detector_given_dictionaries_names_what_takes_them() -> None:
    with pytest.raises(TypeError, match=r"predict takes only Samples. veriglot\.detect_many takes dictionaries"):
        load_detector("grounding").predict([{"evidence": "a", "response": "b"}])  # type: ignore[list-item]


def test_an_unknown_tag_is_kept_and_noted() -> None:
    prediction = detect(ENGLISH.evidence, response=ENGLISH.changed, language="tlh", detector="grounding")
    assert prediction.status is Status.SCORED
    assert prediction.language == "tlh"
    assert prediction.notes == ("language:unknown_tag", "calibration:default")
    with pytest.raises(UnknownNameError, match="Did you mean portuguese"):
        detect(ENGLISH.evidence, response=ENGLISH.changed, language="portugese")


@pytest.mark.parametrize("tag", ["ka", "th", "hi"])
def test_a_language_that_nothing_was_calibrated_on_says_so(tag: str) -> None:
    told = TEXTS[tag]
    prediction = detect(told.evidence, response=told.changed, language=tag, detector="grounding")
    assert prediction.status is Status.SCORED
    assert "calibration:default" in prediction.notes
    german = detect(TEXTS["de"].evidence, response=TEXTS["de"].changed, language="de", detector="grounding")
    assert "calibration:default" not in german.notes


def test_control_tokens_of_chat_templates_are_never_marked() -> None:
    response = f"<|im_start|>{ENGLISH.changed}<|im_end|>"
    prediction = detect(ENGLISH.evidence, response=response, language="en", words=True)
    assert prediction.words is not None
    said = {response[word.start : word.end]: word.confidence for word in prediction.words}
    assert said["im_start"] == said["im_end"] == 0
    assert any("1907" in str(span.text) for span in prediction.spans)
    assert not any("im_" in str(span.text) for span in prediction.spans or ())


def test_weights_that_are_missing_damaged_or_for_other_features(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no grounding weights"):
        load_detector("grounding", weights=str(tmp_path))
    folder = tmp_path / "weights"
    shutil.copytree(WEIGHTS, folder)
    assert load_detector("grounding", weights=str(folder)).signature == load_detector("grounding").signature
    whole = (folder / "frequencies.npy").read_bytes()
    (folder / "frequencies.npy").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(WeightsError, match=r"frequencies\.npy is missing or damaged"):
        load_detector("grounding", weights=str(folder))
    (folder / "frequencies.npy").unlink()
    with pytest.raises(WeightsError, match=r"frequencies\.npy is missing or damaged"):
        load_detector("grounding", weights=str(folder))
    manifest = (folder / "weights.json").read_text()
    (folder / "weights.json").write_text(manifest.replace('"features_version": ', '"features_version": 9'))
    with pytest.raises(WeightsError, match="for features 9"):
        load_detector("grounding", weights=str(folder))
    (folder / "weights.json").write_text("{}")
    with pytest.raises(WeightsError, match="not a manifest"):
        load_detector("grounding", weights=str(folder))


@pytest.mark.parametrize("task", [Task.QA, Task.TRANSLATION])
@pytest.mark.parametrize("given", ["en", None])
def test_of_evidence_in_another_language_grounding_marks_numbers_alone(task: Task, given: str | None) -> None:
    """Its words cannot be compared: where no number tells, the response was not checked, and nothing is marked."""
    source = "The bridge was opened in 1897 and is 107 metres high. It connects both banks of the river."
    detector = load_detector("grounding")

    def judge(response: str, source: str = source) -> Prediction:
        evidence = (Evidence(source, language=given),)
        return detector.predict([Sample("s", response, task=task, language="de", evidence=evidence)])[0]

    wrong = judge("Die Brücke wurde 1879 eröffnet und ist 107 Meter hoch.")
    assert [span.text for span in wrong.spans or ()] == ["1879"]
    assert "evidence:other_language" in wrong.notes
    assert judge("1897").verdict is Verdict.SUPPORTED
    plain = "The weather was nice yesterday and we went to the beach with the children."
    for response, evidence in (
        ("Die Brücke wurde 1897 eröffnet und verbindet die beiden Ufer des Flusses.", source),
        ("Gestern war das Wetter schön und wir gingen mit den Kindern an den Strand.", plain),
        ("Gestern war das Wetter schlecht und wir blieben zu Hause.", plain),
    ):
        unchecked = judge(response, evidence)
        assert (unchecked.status, unchecked.spans) == (Status.UNSUPPORTED_LANGUAGE, None)
        assert "pip install 'veriglot[reader]'" in str(unchecked.reason)


def test_evidence_in_another_script_is_noted() -> None:
    german = TEXTS["de"]
    arabic = detect(TEXTS["ar"].evidence, response=german.changed, language="de", detector="grounding")
    assert "evidence:other_script" in arabic.notes
    assert detect(german.evidence, response=german.sentence, language="de", detector="grounding").notes == ()


@pytest.mark.parametrize("options", [{"threshold": 0.9}, {"words": True}])
def test_a_loaded_detector_takes_no_further_options(options: dict[str, float | bool]) -> None:
    with pytest.raises(UsageError, match="load_detector"):
        detect("The mill stands.", response="The mill stands.", detector=load_detector(), **options)  # type: ignore[arg-type]


def test_arguments_that_are_no_text_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"evidence\[1\]\.text"):
        detect(["a cat", 3], response="A cat.", language="en")  # type: ignore[list-item]
    with pytest.raises(InputError, match="response"):
        detect("a cat", response=3, language="en")  # type: ignore[arg-type]
    assert detect(None, response="A cat.", language="en").status is Status.NO_EVIDENCE


def test_a_response_of_control_tokens_alone_was_not_checked() -> None:
    prediction = detect(ENGLISH.evidence, response="<|im_end|>", language="en")
    assert (prediction.status, prediction.get_spans(None)) == (Status.FAILED, None)


def test_a_given_language_counts_in_the_script_that_the_text_is_in() -> None:
    prediction = detect("Most je otvoren 1907. godine.", response="Most je otvoren 1907. godine.", language="sr-Cyrl")
    assert "language:other_script" in prediction.notes
    chinese = detect("桥建于1907年。", response="桥建于1907年。", language="zh", detector="grounding")
    assert chinese.notes == ("calibration:default",)


def test_a_translation_never_takes_the_language_of_its_source() -> None:
    sample = Sample("t", "1862", task=Task.TRANSLATION, evidence=(Evidence(text=TEXTS["de"].evidence),))
    (prediction,) = load_detector().predict([sample])
    assert prediction.status is Status.UNSUPPORTED_LANGUAGE


@pytest.mark.parametrize(
    ("stated", "response", "language"),
    [
        ("pt-BR", "A cidade de Lisboa é famosa por belos museus e bondes amarelos.", "pt"),  # else Galician
        ("nl", "De stad is bekend om haar musea.", "nl"),  # else Afrikaans
        ("nl", "Die stad is bekend vir sy museums.", "af"),  # surely
        ("und", "The city of Berlin houses several million residents.", "en"),
        ("mul", "The city of Berlin houses several million residents.", "en"),
    ],
)
def test_a_response_is_not_taken_for_a_sister_of_the_language_that_the_evidence_states(
    stated: str, response: str, language: str
) -> None:
    """Such responses were not checked, as if the evidence were in another language."""
    evidence = (Evidence("Lisboa é a capital de Portugal.", language=stated),)
    sample = Sample("s", response, evidence=evidence)
    resolved = resolve_language(sample)
    assert resolved is not None
    assert resolved.tag == language
    assert (evidence_notes(sample, resolved) == ()) is (language != "af")


def test_a_question_in_the_language_of_the_response_backs_it() -> None:
    response, page = "Lisboa é a capital de Portugal.", (Evidence("Texto.", language="es"),)
    asked = resolve_language(Sample("s", response, question="A cidade é famosa polos seus museus?", evidence=page))
    assert asked is not None
    assert asked.tag == "gl"


@pytest.mark.parametrize("response", ["नहीं", "לא", "ไม่", "年"])
def test_a_word_in_a_script_of_its_own_is_not_in_the_language_around_it(response: str) -> None:
    """A Hindi no to an English question counted as English, and was judged."""
    page = (Evidence("Delhi is the capital of India."),)
    assert resolve_language(Sample("s", response, question="Is it true?", evidence=page)) is None


@pytest.mark.parametrize(
    ("response", "language"),
    [
        ("I don't know.", "en"),
        ("No idea.", "en"),
        ("Nevím.", "cs"),
        ("Saya tidak tahu.", "id"),
        ("Keine Ahnung.", "de"),
    ],
)
def test_a_refusal_is_in_the_language_that_knows_it(response: str, language: str) -> None:
    """An English refusal of a German question counted as German, which knows no such refusal, and as a claim."""
    page = (Evidence("Die Brücke über die Lenna wurde 1897 eröffnet."),)
    sample = Sample("s", response, question="Wann wurde die Brücke eröffnet?", evidence=page)
    resolved = resolve_language(sample)
    assert resolved is not None
    assert resolved.tag == language
    assert load_detector("grounding").predict([sample])[0].spans == ()
