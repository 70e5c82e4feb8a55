"""The reader with random weights: what it keeps to whatever it has learned."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="needs the extra `reader`: pip install 'veriglot[reader]'")
pytest.importorskip("onnx", reason="needs the extra `reader`: pip install 'veriglot[reader]'")

from detector_contract import check_contract

from tiny_e5 import write_e5
from tiny_reader import features_of, learned, write_encoder, write_reader
from veriglot.detectors.reader import detector as reader_module
from veriglot.detectors.reader.detector import (
    ANSWERS_FILE,
    AnswerFinder,
    Manifest,
    Network,
    Reader,
    relation_of,
    unify_numbers,
)
from veriglot.detectors.reader.sequences import input_sequences
from veriglot.encoders.e5 import Tokeniser
from veriglot.errors import WeightsError
from veriglot.hub import registry
from veriglot.records import Evidence, Prediction, Sample, Status, Task
from veriglot.testing import ordinary_samples
from veriglot.text.segmentation import sentences

EVIDENCE = "The old mill burned down in May. It was sold to a farmer, who built an inn. The inn stands there today."
RESPONSE = "In May the mill burned down. A farmer from the valley bought it. He built a church there."


def test_the_shipped_weights_know_every_strictness() -> None:
    """A new `weights.json` has none until they are measured; `docs/reader.md` tells those of this one."""
    thresholds = Manifest.read(Path(reader_module.__file__).parent / "weights").thresholds
    assert thresholds == {"low": 0.55, "high": 0.35}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("e5") / "tiny.bin")


@pytest.fixture(scope="module")
def weights(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reader(tmp_path_factory.mktemp("reader") / "weights", encoder)


@pytest.fixture(autouse=True)
def _tiny(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find", lambda _name: encoder)


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(Network, "words", fail)


def sample(response: str, evidence: str = EVIDENCE, **fields: Any) -> Sample:
    return Sample("x", response, language="en", evidence=(Evidence(evidence),), **fields)


def judged(weights: Path, response: str, evidence: str = EVIDENCE, **fields: Any) -> Prediction:
    (prediction,) = Reader(weights=str(weights), words=True).predict([sample(response, evidence, **fields)])
    assert prediction.status is Status.SCORED, prediction.reason
    return prediction


def confidences(prediction: Prediction) -> list[float]:
    return [word.confidence for word in prediction.words or ()]


@pytest.mark.slow
def test_the_contract_is_kept(weights: Path) -> None:
    own = [sample(RESPONSE), sample(RESPONSE * 12, EVIDENCE * 30, question="Who bought the mill?"), sample(" ")]
    check_contract(partial(Reader, weights=str(weights)), [*ordinary_samples()[::3], *own])


def test_a_pickled_reader_predicts_the_same(weights: Path) -> None:
    reader = Reader(weights=str(weights), words=True)
    here = reader.predict([sample(RESPONSE)])
    again = pickle.loads(pickle.dumps(reader))
    assert again.predict([sample(RESPONSE)]) == here
    assert again.signature == reader.signature


def test_score_and_spans_agree(weights: Path) -> None:
    predictions = [p for p in Reader(weights=str(weights)).predict(ordinary_samples()) if p.status is Status.SCORED]
    assert {bool(prediction.spans) for prediction in predictions} == {True, False}
    assert all(bool(p.spans) == ((p.score or 0.0) >= 0.5) for p in predictions)


def test_words_are_given_where_they_are_asked_for(weights: Path) -> None:
    reader, with_words = (Reader(weights=str(weights), words=words).predict([sample(RESPONSE)])[0] for words in (0, 1))
    assert reader.words is None
    assert [RESPONSE[w.start : w.end] for w in with_words.words or ()] == RESPONSE.replace(".", "").split()
    assert (reader.score, reader.spans) == (with_words.score, with_words.spans)


def test_question_and_evidence_are_read(weights: Path) -> None:
    alone = confidences(judged(weights, RESPONSE))
    assert confidences(judged(weights, RESPONSE, question="Who bought the mill?")) != alone
    assert confidences(judged(weights, RESPONSE, EVIDENCE + " The church is new.")) != alone


def test_other_weights_of_the_network_give_other_confidences(weights: Path, encoder: Path, tmp_path: Path) -> None:
    other = write_reader(tmp_path / "other", encoder, arrays=learned(seed=1))
    assert confidences(judged(other, RESPONSE)) != confidences(judged(weights, RESPONSE))


def test_an_answer_is_read_sentence_by_sentence(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where there is a question, in the language of the evidence; translations never."""
    rooms, words = [], Network.words

    def watched(self: Network, *given: Any, evidence_room: int) -> Any:
        rooms.append(evidence_room)
        return words(self, *given, evidence_room=evidence_room)

    monkeypatch.setattr(Network, "words", watched)
    question = "Who bought the mill?"
    for fields in ({"question": question}, {}, {"question": question, "task": Task.TRANSLATION}):
        judged(weights, RESPONSE, **fields)
    Reader(weights=str(weights)).predict(
        [
            Sample(
                "x", RESPONSE, language="en", question=question, evidence=(Evidence("Die alte Mühle.", language="de"),)
            )
        ]
    )
    assert [room > 0 for room in rooms] == [True, False, False, False]


def test_a_short_answer_is_held_against_where_evidence_in_another_language_answers(
    weights: Path, encoder: Path, tmp_path: Path
) -> None:
    """Only where there is a question; the response may not be longer than one sequence."""
    asking = write_reader(tmp_path / "asking", encoder, answers=True)

    def both(response: str, language: str, question: str | None) -> list[Any]:
        evidence = (Evidence(EVIDENCE, language=language),)
        sample = Sample("x", response, language="en", question=question, evidence=evidence)
        return [Reader(weights=str(folder), words=True).predict([sample])[0].words for folder in (weights, asking)]

    question = "Who bought the mill?"
    without, with_answers = both(RESPONSE, "de", question)
    assert without != with_answers
    for fields in ((RESPONSE, "en", question), (RESPONSE, "de", None), (RESPONSE * 12, "de", question)):
        without, with_answers = both(*fields)
        assert without == with_answers
    (asking / "answers.npz").write_bytes(b"damaged")
    with pytest.raises(WeightsError, match=r"answers\.npz is missing or damaged"):
        Reader(weights=str(asking))


def test_of_evidence_in_another_language_the_lines_that_decide_are_read(encoder: Path, tmp_path: Path) -> None:
    weights = write_reader(tmp_path / "asking", encoder, answers=True)
    answers, tokeniser = AnswerFinder(weights / ANSWERS_FILE, encoder), Tokeniser(encoder)
    text = f"{EVIDENCE} {EVIDENCE}"
    lines = tuple(text[start:end] for start, end in sentences(text, "en"))
    assert len(lines) == 6
    for response, most in (("the farmer", 2), (RESPONSE, 2 + len(tokeniser.tokens(RESPONSE)[0]) // 24)):
        (seen,) = input_sequences(tokeniser, response, "en", "who bought the mill?", lines)
        by_tokens, chosen = answers.read(seen.pair, lines, tokeniser)
        assert by_tokens.shape == (len(seen.bounds), 3)
        assert len(chosen) == most
        assert set(chosen) <= set(lines)
        (seen,) = input_sequences(tokeniser, response, "en", "who bought the mill?", lines, len(seen.pair.ids) - 30)
        assert answers.read(seen.pair, lines, tokeniser)[1] == lines, "not all of them were in view"


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(
    "response",
    [
        "It was sold to a farmer, who built an inn.",
        "1. The old mill burned down in May.\n2. THE INN stands there today",
    ],
)
def test_quotations_are_not_read_again(weights: Path, response: str) -> None:
    prediction = judged(weights, response)
    assert not prediction.spans
    assert prediction.score == pytest.approx(0.0, abs=0.01)


def test_quoted_words_stay_supported_beside_others(weights: Path) -> None:
    quoted = "It was sold to a farmer, who built an inn."
    prediction = judged(weights, f"{quoted} He wept.", task=Task.TRANSLATION)
    inside = [word.confidence for word in prediction.words or () if word.end <= len(quoted)]
    assert max(inside) < 0.01
    assert {span.text for span in prediction.spans or ()} == {"He wept"}


def test_words_of_an_unsupported_answer_are_located_by_weights_of_their_own(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = judged(weights, RESPONSE, question="Who bought it?")
    known = Reader._fusion.func(Reader(weights=str(weights)))
    turned = tuple(-weight for weight in known["same asked"].weights)
    fusion = known | {"same asked": msgspec.structs.replace(known["same asked"], locating=turned)}
    monkeypatch.setattr(Reader, "_fusion", fusion)
    after = judged(weights, RESPONSE, question="Who bought it?")
    assert after.score == before.score
    assert confidences(after) != confidences(before)
    order = np.argsort(confidences(before))
    assert (np.diff(np.array(confidences(after))[order]) <= 0).all()


def test_translations_have_a_join_of_their_own(weights: Path) -> None:
    assert max(confidences(judged(weights, RESPONSE))) < min(
        confidences(judged(weights, RESPONSE, task=Task.TRANSLATION))
    )


@pytest.mark.parametrize(
    ("language", "evidence", "translation", "asked", "relation"),
    [
        ("de", "en", True, False, "translation"),
        ("de", "de", True, True, "translation"),
        ("de", "en", False, True, "across asked"),
        ("de", "en", False, False, "across"),
        ("zh-Hant", "zh-Hans", False, False, "same"),
        ("zh-Hant", "zh-Hans", False, True, "same asked"),
        ("de", None, False, False, "same"),
        (None, None, False, True, "same asked"),
    ],
)
def test_response_and_evidence_are_related_by_their_languages_and_the_question(
    language: str | None, evidence: str | None, translation: bool, asked: bool, relation: str
) -> None:
    assert relation_of(language, evidence, translation=translation, asked=asked) == relation


def test_a_word_is_judged_by_its_tokens_whatever_part_they_are_in(weights: Path, encoder: Path) -> None:
    network = Network(weights, encoder)
    response = "the river in the den. " * 20
    bounds = np.array([(at, at + 3) for at in range(0, len(response), 22)] + [(len(response) - 1, len(response))])
    words = network.words(response, bounds, "en", None, ["the den"])
    assert words.unsupported.shape == words.response.shape == (21,)
    assert words.unsupported[-1] == 0.0  # white space has no token
    assert words.types.sum(axis=1)[:-1] == pytest.approx(1, abs=1e-5)
    assert 1 < len(set(words.response.tolist())) < 6  # of parts, not of words
    (alone,) = network.words("the river", np.array([(0, 3)]), "en", None, ["the den"]).unsupported
    assert alone != words.unsupported[0]


def test_a_response_without_a_token_is_judged_by_nothing(weights: Path, encoder: Path) -> None:
    words = Network(weights, encoder).words("", np.zeros((2, 2), np.int64), "en", None, ["the den"])
    assert words.unsupported.tolist() == words.response.tolist() == [0, 0]
    assert words.types.sum(axis=1) == pytest.approx(1)


def test_a_number_that_can_be_computed_makes_nothing_suspect(weights: Path) -> None:
    evidence = (Evidence("The tower is 42 metres high."),)
    right, wrong = (
        Sample("a", f"It is {n} centimetres.", evidence=evidence, language="en") for n in ("4,200", "4,300")
    )
    reader = Reader(weights=str(weights), words=True)
    calm, suspect = reader.predict([right, wrong])
    words = [word for word in calm.words or () if right.response[word.start : word.end] == "4,200"]
    assert [word.confidence < 0.01 for word in words] == [True]
    assert any("4,300" in span.text for span in suspect.spans or ())


@pytest.mark.parametrize(
    ("response", "language", "evidence", "tag", "shown"),
    [
        ("Высота 1780 метров.", "ru", "Tingginya 1.780 meter.", "id", "Tingginya 1780 meter."),
        (
            "It had 3,500 in 2010.",
            "en",
            "Es hatte 3.500 und 35 im Jahr 2010.",
            "de",
            "Es hatte 3,500 und 35 im Jahr 2010.",
        ),
        ("Es misst 3,5 Meter.", "de", "It is 3.5 metres, not 35.", "en", "It is 3,5 metres, not 35."),
        ("Founded in 1862, 64 shops", "en", "سنة ١٨٦٢ وفيه ٦٤ دكانا", "ar", "سنة 1862 وفيه 64 دكانا"),
        ("The canal is 2345 km long.", "en", "long de 2,345 km", "fr", "long de 2,345 km"),  # 2.345 there
        ("Er wiegt 1500 kg.", "de", "It weighs 1.500 kg.", "en", "It weighs 1.500 kg."),
        ("Er wiegt 1500 kg.", "de", "It weighs 1,500 kg.", "en", "It weighs 1500 kg."),
        ("It has twelve.", "en", "Es hat 12.", "de", "Es hat 12."),
        ("Es hat zwölf im Mai.", "de", "Es hat 12 im 5.", "de", "Es hat zwölf im 5."),
        ("It has 12.", "en", "Es hat zwölf und 13.", "de", "Es hat zwölf und 13."),
    ],
)
def test_equal_numbers_are_shown_alike(response: str, language: str, evidence: str, tag: str, shown: str) -> None:
    assert unify_numbers(response, language, (evidence, "-"), tag) == (shown, "-")


@pytest.mark.parametrize(
    ("tag", "shown"), [("de", "Der Berg ist 1,780 Meter hoch."), ("en", "Der Berg ist 1.780 Meter hoch.")]
)
def test_numbers_are_shown_alike_across_languages_alone(
    weights: Path, monkeypatch: pytest.MonkeyPatch, tag: str, shown: str
) -> None:
    passages, words = [], Network.words

    def watched(self: Network, *given: Any, **fields: Any) -> Any:
        passages.append(given[-1])
        return words(self, *given, **fields)

    monkeypatch.setattr(Network, "words", watched)
    evidence = (Evidence("Der Berg ist 1.780 Meter hoch.", language=tag),)
    (prediction,) = Reader(weights=str(weights)).predict(
        [Sample("a", "It is 1,780 high.", language="en", evidence=evidence)]
    )
    assert prediction.status is Status.SCORED
    assert passages == [(shown,)]


def test_features_of_a_join_are_the_stated_columns() -> None:
    ours, by_words = np.array([1.0, 3.0, -2.0], np.float32), np.array([0.0, 4.0, 5.0], np.float32)
    response, numbers = np.array([7.0, 7.0, 8.0], np.float32), np.array([0, -1, 1])
    features = features_of(ours, by_words, np.array([0, 0, 1]), numbers=numbers, response=response)
    assert features[:, [0, 3]].tolist() == np.stack([ours, by_words], axis=1).tolist()
    assert features[:, [1, 2, 4, 5]].tolist() == [[2, 3, 2, 4], [2, 3, 2, 4], [-2, -2, 5, 5]]
    assert features[0, [6, 7, 8, 14]] == pytest.approx([2 / 3, 3, 7, np.log(3)])
    assert not features[:, 9:14].any()  # nobody was asked where the answer stands
    assert features[:, 15:17].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert features[:, -1].tolist() == [1, 1, 1]


def test_the_signature_says_what_judges(weights: Path, encoder: Path, tmp_path: Path) -> None:
    other = write_reader(tmp_path / "other", encoder, arrays=learned(seed=1))
    readers = Reader(weights=str(weights)), Reader(weights=str(weights), threshold=0.7), Reader(weights=str(other))
    assert len({reader.signature for reader in readers}) == 3
    assert [reader.threshold for reader in readers] == [0.5, 0.7, 0.5]
    assert {reader.name for reader in readers} == {"reader@tiny"}


def test_another_encoder_is_refused(
    weights: Path, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_e5(tmp_path / "other.bin", seed=1, room=512)
    monkeypatch.setattr(registry, "find", lambda _name: tmp_path / "other.bin")
    with pytest.raises(WeightsError, match=r"trained with another encoder than .*other\.bin") as caught:
        Reader(weights=str(weights))
    assert "veriglot train reader" in (caught.value.remedy or "")


def test_another_network_of_grounding_is_refused(encoder: Path, tmp_path: Path) -> None:
    folder = write_reader(tmp_path / "weights", encoder, grounding="0" * 16)
    with pytest.raises(WeightsError, match=r"trained with another grounding network than .*network\.onnx") as caught:
        Reader(weights=str(folder))
    assert "veriglot train reader" in (caught.value.remedy or "")


@pytest.mark.parametrize("name", ["weights.json", "network.npz", "fusion.json"])
@pytest.mark.parametrize("data", [None, b"{"])
def test_weights_that_are_missing_or_damaged_are_refused(
    encoder: Path, tmp_path: Path, name: str, data: bytes | None
) -> None:
    folder = write_reader(tmp_path / "weights", encoder)
    (folder / name).unlink()
    if data is not None:
        (folder / name).write_bytes(data)
    with pytest.raises(WeightsError):
        Reader(weights=str(folder))


def test_a_network_without_its_heads_or_of_another_size_is_refused(encoder: Path, tmp_path: Path) -> None:
    arrays = learned()
    headless = {name: values for name, values in arrays.items() if not name.startswith("tokens.")}
    folder = write_reader(tmp_path / "headless", encoder, arrays=headless)
    with pytest.raises(WeightsError, match=r"lacks tokens\.0\.w, tokens\.1\.w"):
        Network(folder, encoder)
    folder = write_reader(tmp_path / "narrow", encoder, arrays=arrays | {"l7.q.w": arrays["l7.q.w"][:-1]})
    with pytest.raises(WeightsError, match="not for the network in"):
        Network(folder, encoder)
