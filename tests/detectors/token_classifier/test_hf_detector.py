"""The detector `hf:` on checkpoints from disk: architectures, windows, pieces, spans, statuses."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from detector_contract import check_contract, check_pointer, check_processes
from many_languages import TEXTS

from veriglot.detectors.registry import load_detector
from veriglot.errors import UnknownNameError, UsageError, WeightsError
from veriglot.records import Evidence, Sample, Status, Task

if TYPE_CHECKING:
    from veriglot.records import Prediction

pytestmark = pytest.mark.slow

EVIDENCE = "The mill was built in 1874 by Jonas Reed."
CHANGED = "The mill was built in 1901 by Jonas Reed."


def sample(response: str, *evidence: str, **fields: Any) -> Sample:
    passages = tuple(Evidence(text) for text in evidence)
    return Sample("s", response, **{"language": "en", "evidence": passages, **fields})


def marked(prediction: Prediction) -> list[str | None]:
    assert prediction.spans is not None, prediction.reason
    return [span.text for span in prediction.spans]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    told = [Sample(f"own-{tag}", t.changed, language=tag, evidence=(Evidence(t.evidence),)) for tag, t in TEXTS.items()]
    long = " ".join(t.evidence for t in TEXTS.values())
    asked = sample(CHANGED, EVIDENCE, "It stands near the river.", question="When was the mill built?")
    return [*told, asked, Sample("long", TEXTS["en"].changed, language="en", evidence=(Evidence(long), Evidence(long)))]


@pytest.mark.parametrize("kind", ["modernbert", "eurobert", "xlm-roberta", "deberta-v2", "bert"])
def test_every_architecture_keeps_the_contract(
    kind: str, needs_local: None, texts: list[str], samples: list[Sample], tmp_path: Path
) -> None:
    from tiny_classifiers import write_random

    names = {0: "O", 1: "B-contradiction", 2: "I-contradiction", 3: "B-baseless info", 4: "I-baseless info"}
    folder = write_random(tmp_path / kind, kind, texts, names=names)
    load = partial(load_detector, f"hf:{folder}", device="cpu")
    check_contract(load, [*samples[:-2:4], *samples[-2:]], tolerance=1e-5)
    found = load(words=True, threshold=0.0).predict(samples)
    assert load().taxonomy == "support"
    assert len({word.confidence for one in found for word in one.words or ()}) > 50, "a network that looks"


def test_new_processes_say_the_same(copying: str, samples: list[Sample]) -> None:
    check_processes(load_detector(f"hf:{copying}", words=True, device="cpu"), samples[::6])


def test_it_marks_what_the_network_finds_absent(copying: str) -> None:
    found = load_detector(f"hf:{copying}", words=True).predict([sample(CHANGED, EVIDENCE)])[0]
    assert marked(found) == ["1901"]
    assert found.score == max(word.confidence for word in found.words or ())
    assert "calibration:none" in found.notes
    assert found.spans
    assert found.spans[0].type == "hallucination"
    assert found.spans[0].evidence == (), "one window of everything points at nothing"


def test_support_by_any_window_is_support(narrow: str) -> None:
    detector = load_detector(f"hf:{narrow}", words=True)
    filler = "The bridge near the river stands over nine arches and was closed to cars. " * 12
    passages = (filler, EVIDENCE, filler)
    response = "Jonas Reed built 1874 arches in 1950."
    found = detector.predict([sample(response, *passages)])[0]
    words = {response[word.start : word.end]: word for word in found.words or ()}
    assert marked(found) == ["1950"], "1874 stands in one window alone, arches in others"
    for word in ("1874", "arches"):
        there = [check_pointer(sample(response, *passages), pointer) for pointer in words[word].evidence]
        assert word in " ".join(there)


@pytest.mark.parametrize("place", [0, 37_000, 99_990])
def test_support_is_found_anywhere_in_a_hundred_thousand_words(copying: str, place: int) -> None:
    words = random.Random(4).choices(["nine", "arches", "stone", "bridge", "over", "closed", "cars"], k=100_000)
    words[place : place + 8] = EVIDENCE.rstrip(".").split()
    evidence = " ".join(f"{word}." if number % 9 == 8 else word for number, word in enumerate(words))
    response = "Jonas Reed built the mill in 1874, 1901."
    (found,) = load_detector(f"hf:{copying}", words=True).predict([sample(response, evidence)])
    assert marked(found) == ["1901"]
    (pointer,) = next(word for word in found.words or () if response[word.start : word.end] == "1874").evidence
    assert "1874" in check_pointer(sample(response, evidence), pointer)


def test_a_long_response_is_judged_to_its_end(narrow: str) -> None:
    sentence = "The mill was built in 1874 by Jonas Reed. "
    response = sentence * 30 + "It was closed in 1950. " + sentence * 30 + "It was 1901."
    (found,) = load_detector(f"hf:{narrow}", words=True).predict([sample(response, EVIDENCE)])
    words = {response[word.start : word.end] for word in found.words or () if word.confidence >= 0.5}
    assert {"1950", "1901", "closed"} <= words
    assert not {"Jonas", "1874", "mill"} & words - {"the"}
    assert len(found.words or ()) == 30 * 9 * 2 + 5 + 3


def test_a_question_that_leaves_no_room_is_too_long(narrow: str) -> None:
    asked = sample(CHANGED, EVIDENCE * 3, question="when was the mill built " * 20)
    (found,) = load_detector(f"hf:{narrow}").predict([asked])
    assert found.status is Status.TOO_LONG
    assert "of the 64 tokens" in (found.reason or "")


def test_a_summary_has_no_question(narrow: str) -> None:
    asked = sample(CHANGED, EVIDENCE, question="when was the mill built " * 20, task=Task.SUMMARIZATION)
    assert load_detector(f"hf:{narrow}").predict([asked])[0].status is Status.SCORED


def test_what_looks_like_a_special_token_is_text(copying: str) -> None:
    (found,) = load_detector(f"hf:{copying}", words=True).predict([sample("Built [SEP] in 1901 [CLS].", EVIDENCE)])
    assert "1901" in (marked(found)[-1] or "")
    assert len(found.words or ()) == 5


def test_types_and_beginnings_part_spans(needs_local: None, texts: list[str], tmp_path: Path) -> None:
    from tiny_classifiers import write_copying

    names = {0: "O", 1: "B-entity", 2: "I-entity", 3: "B-relation"}
    folder = write_copying(tmp_path, texts, names=names)
    detector = load_detector(f"hf:{folder}")
    (found,) = detector.predict([sample("The mill was nine arches.", EVIDENCE)])
    assert detector.taxonomy == "fava"
    assert marked(found) == ["nine", "arches"], "the likeliest output begins a span with each word"
    plain = load_detector(f"hf:{folder}", labels="O,entity,entity,relation")
    assert marked(plain.predict([sample("The mill was nine arches.", EVIDENCE)])[0]) == ["nine arches"]


def test_languages_that_the_model_does_not_know_are_refused(copying: str) -> None:
    given = sample(CHANGED, EVIDENCE)
    assert "languages:not stated" in load_detector(f"hf:{copying}").predict([given])[0].notes
    (found,) = load_detector(f"hf:{copying}", languages="de, fr").predict([given])
    assert found.status is Status.UNSUPPORTED_LANGUAGE
    assert found.reason == "the model knows de, fr, and the response is in en"
    assert load_detector(f"hf:{copying}", languages=["eng"]).predict([given])[0].status is Status.SCORED


def test_one_failing_sample_costs_no_other(needs_local: None, texts: list[str], tmp_path: Path) -> None:
    from tiny_classifiers import write_copying
    from tokenizers import Tokenizer

    folder = write_copying(tmp_path, texts)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["zebra"])  # a token that the network has no row for
    tokenizer.save(str(folder / "tokenizer.json"))
    batch = [sample(CHANGED, EVIDENCE), sample("The zebra was built.", EVIDENCE), sample(EVIDENCE, EVIDENCE)]
    first, second, third = load_detector(f"hf:{folder}").predict(batch)
    assert (first.status, third.status) == (Status.SCORED, Status.SCORED)
    assert second.status is Status.FAILED
    assert "IndexError" in (second.reason or "")


def test_models_that_cannot_serve_are_refused(copying: str, needs_local: None, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be loaded"):
        load_detector(f"hf:{tmp_path}")
    with pytest.raises(WeightsError, match="no folder"):
        load_detector(f"hf:{tmp_path / 'absent'}")
    with pytest.raises(UsageError, match="needs its model"):
        load_detector("hf")
    with pytest.raises(UsageError, match="takes 512 tokens, and 600"):
        load_detector(f"hf:{copying}", max_length=600)
    with pytest.raises(UnknownNameError, match="plan"):
        load_detector(f"hf:{copying}", prompt="plan")
    with pytest.raises(UnknownNameError, match="mex"):
        load_detector(f"hf:{copying}", pooling="mex")
    with pytest.raises(WeightsError, match="has 2 outputs, and 3 labels"):
        load_detector(f"hf:{copying}", labels="O,entity,relation")


def test_an_encoder_without_a_head_is_refused(copying: str, tmp_path: Path) -> None:
    import transformers

    transformers.AutoModel.from_pretrained(copying).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(copying).save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match="lacks weights"):
        load_detector(f"hf:{tmp_path}")


def test_a_licence_that_forbids_something_has_to_be_accepted(
    needs_local: None, texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tiny_classifiers import write_copying

    folder = write_copying(tmp_path, texts)
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\nNot for sale.\n")
    with pytest.raises(WeightsError, match="has to be accepted"):
        load_detector(f"hf:{folder}")
    assert "licence cc-by-nc-4.0" in capsys.readouterr().err
    assert load_detector(f"hf:{folder}", accept_licence=True).predict([]) == []


def test_a_hub_name_that_is_not_here_says_what_to_do(needs_local: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIGLOT_OFFLINE", "1")
    with pytest.raises(WeightsError, match="VERIGLOT_OFFLINE is set"):
        load_detector("hf:KRLabsOrg/lettucedect-base-modernbert-en-v1")


def test_the_signature_says_what_changes_a_result(copying: str) -> None:
    made = [{}, {"prompt": "request"}, {"pooling": "mean"}, {"max_length": 300}, {"threshold": 0.7}, {"language": "de"}]
    signatures = {load_detector(f"hf:{copying}", **options).signature for options in made}
    assert len(signatures) == len(made)
    name = load_detector(f"hf:{copying}").name
    assert name.startswith(f"hf:{Path(copying).name}@")
