"""The reader: its file, its numbers beside those of the network that was trained, and its part in the detector."""

from __future__ import annotations

import pickle
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from veriglot.detectors.registry import load_detector
from veriglot.errors import WeightsError
from veriglot.hub import registry
from veriglot.records import Evidence, Sample, Status, Task
from veriglot.signatures import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("torch", reason="needs the extra `train`: pip install 'veriglot[train]'")
pytest.importorskip("tokenizers", reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")
pytest.importorskip("onnx", reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")

pytestmark = pytest.mark.slow

GERMAN = Sample(
    "across", "Der Turm wurde 1874 gebaut.", Task.QA, "de", "Wann wurde der Turm gebaut?",
    (Evidence("The old tower by the river was built in 1901 by a miller. It has a clock.", language="en"),),
)  # fmt: skip
ENGLISH = Sample("same", "It was built in 1874.", Task.QA, "en", "When?", GERMAN.evidence)
TRANSLATED = Sample("translated", GERMAN.response, Task.TRANSLATION, "de", None, GERMAN.evidence)


def network_of(place: Path, *, seed: int = 0) -> Any:
    """A network with additions that do something, in the numbers that ONNX Runtime has."""
    import torch

    from veriglot.encoders.e5 import E5File
    from veriglot.training.reader.pipeline import ReaderNetwork

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = ReaderNetwork(E5File(place), torch.float32)
        for name, values in network.named_parameters():
            if name.endswith("_up") or name == "part":
                torch.nn.init.normal_(values, std=0.05)
    return network.eval()


@pytest.fixture(scope="module")
def folder(random_head: str, tiny_reading_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of weights whose reader was never trained."""
    from veriglot.detectors.semantic.detector import READER, Calibrations, Manifest, Together
    from veriglot.detectors.semantic.reader import save_learned

    out = tmp_path_factory.mktemp("read") / "weights"
    shutil.copytree(random_head, out)
    save_learned(out / READER, network_of(tiny_reading_encoder).learned())
    calibrations = msgspec.json.decode((out / "calibration.json").read_bytes(), type=Calibrations)
    together = Together(0.5, 20.0, calibrations.across)
    calibrations = msgspec.structs.replace(calibrations, read_across=together)
    (out / "calibration.json").write_bytes(msgspec.json.encode(calibrations))
    manifest = msgspec.json.decode((out / "weights.json").read_bytes(), type=Manifest)
    names = ("head.onnx", "calibration.json", READER)
    changed = msgspec.structs.replace(
        manifest,
        reads_with=file_sha256(tiny_reading_encoder)[:16],
        reads=("en", "hi"),
        sha256={name: file_sha256(out / name) for name in names},
    )
    (out / "weights.json").write_bytes(msgspec.json.encode(changed))
    return out


@pytest.fixture
def found_encoder(monkeypatch: pytest.MonkeyPatch, tiny_reading_encoder: Path) -> None:
    """Let the tiny encoder stand where the real one would."""
    find, name_read = registry.find, "e5-multilingual"
    monkeypatch.setattr(registry, "find", lambda name: tiny_reading_encoder if name == name_read else find(name))


@pytest.fixture
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    find = registry.find

    def missing(name: str) -> Path:
        if name == "e5-multilingual":
            raise registry.MissingWeightsError("It is not here.")
        return find(name)

    monkeypatch.setattr(registry, "find", missing)


def test_numbers_are_those_of_the_network_that_was_trained(tiny_reading_encoder: Path) -> None:
    import torch

    from veriglot.detectors.semantic.reader import judged
    from veriglot.encoders.e5 import E5Reader, Tokeniser

    network, tokeniser = network_of(tiny_reading_encoder), Tokeniser(tiny_reading_encoder)
    learned = network.learned()
    reader = E5Reader(learned, tiny_reading_encoder)
    texts = [
        ("who is there", "the inner river", "the river runs in the inner city and there is ice"),
        ("", "the inner river", "the river"),
        ("who is there", "", "the river runs"),
        ("who", "the river", ""),
    ]
    pairs = [tokeniser.pair(*(tokeniser.tokens(text)[0] for text in some)) for some in texts]
    with torch.no_grad():
        theirs = network(pairs)
    spread = np.concatenate([unsupported.numpy() for unsupported, _ in theirs]).std()
    assert spread > 0.05, "else the test says nothing"
    seen = list(reader.states(pairs))
    assert sorted(place for place, *_ in seen) == [0, 1, 2, 3]
    for place, tokens, last in seen:
        found, (unsupported, answer) = judged(learned, pairs[place], tokens, last), theirs[place]
        # Products are in 8-bit integers on the one side, hence not to the last digit.
        assert found.unsupported == pytest.approx(unsupported.numpy(), abs=float(spread) / 4)
        assert found.answer == pytest.approx(answer.numpy(), abs=float(spread) / 4)


def test_its_file_holds_what_was_learned_in_less_than_half_the_room(tiny_reading_encoder: Path, tmp_path: Path) -> None:
    from veriglot.detectors.semantic.reader import read_learned, save_learned

    learned = network_of(tiny_reading_encoder).learned()
    for name in ("one", "other"):
        save_learned(tmp_path / name, learned)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    size = sum(values.size for values in learned.values())
    assert (tmp_path / "one").stat().st_size < 4 * size / 2
    again = read_learned(tmp_path / "one")
    assert again.keys() == learned.keys()
    for name, values in learned.items():
        assert again[name] == pytest.approx(values, abs=float(np.abs(values).max()) / 127)
    with pytest.raises(WeightsError, match="missing or damaged"):
        read_learned(tmp_path / "none")
    (tmp_path / "one").write_bytes((tmp_path / "one").read_bytes()[:-40])
    with pytest.raises(WeightsError, match="missing or damaged"):
        read_learned(tmp_path / "one")


def test_it_has_a_say_across_languages_alone(folder: Path, found_encoder: None) -> None:
    with_it = load_detector("semantic", weights=str(folder), words=True)
    without = load_detector("semantic", weights=str(folder), words=True, reader=False)
    assert with_it.signature != without.signature
    across, same, translated = with_it.predict([GERMAN, ENGLISH, TRANSLATED])
    plain = without.predict([GERMAN, ENGLISH, TRANSLATED])
    assert (same.words, translated.words) == (plain[1].words, plain[2].words)
    assert across.words != plain[0].words
    assert across.words is not None
    assert len(across.words) == 5
    assert "reader:absent" not in across.notes
    assert "reader:absent" not in [note for found in plain for note in found.notes], "it was not asked for"


def test_where_its_encoder_is_absent_the_head_judges_and_says_so(
    folder: Path, random_head: str, no_encoder: None
) -> None:
    (found,) = load_detector("semantic", weights=str(folder), words=True).predict([GERMAN])
    (plain,) = load_detector("semantic", weights=random_head, words=True).predict([GERMAN])
    assert found.words == plain.words
    assert "reader:absent" in found.notes
    (same,) = load_detector("semantic", weights=str(folder)).predict([ENGLISH])
    assert "reader:absent" not in same.notes


def test_long_responses_and_several_passages_are_judged_alike_in_another_process(
    folder: Path, found_encoder: None
) -> None:
    evidence = (*GERMAN.evidence, Evidence(" \n", language="en"), Evidence("The mill burnt down.", language="en"))
    long = Sample("long", "Der Turm am Fluss wurde 1874 gebaut. " * 60, language="de", evidence=evidence)
    odd = Sample("odd", "</s> Der <mask> \u200b\u200b Turm 🏰", language="de", question="<s>?", evidence=evidence)
    detector = load_detector("semantic", weights=str(folder), words=True)
    found = detector.predict([long, odd])
    assert [one.status for one in found] == [Status.SCORED, Status.SCORED]
    assert found[0].words is not None
    assert len(found[0].words) == 420
    again = pickle.loads(pickle.dumps(detector))
    assert again.signature == detector.signature
    assert again.predict([long, odd]) == found


def test_marks_of_the_tokenizer_in_a_text_end_no_part(tiny_reading_encoder: Path) -> None:
    from veriglot.encoders.e5 import Tokeniser

    tokeniser = Tokeniser(tiny_reading_encoder)
    pair = tokeniser.pair(tokeniser.tokens("who </s>")[0], tokeniser.tokens("<s> the </s> river <pad>")[0], [7])
    assert [pair.ids.count(mark) for mark in (0, 1, 2)] == [1, 0, 3]


def test_another_encoder_than_it_was_trained_with_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tiny_e5 import write_e5

    find = registry.find
    write_e5(tmp_path / "other.bin", seed=9)
    monkeypatch.setattr(registry, "find", lambda name: tmp_path / "other.bin" if "e5" in name else find(name))
    with pytest.raises(WeightsError, match="trained with another file") as caught:
        load_detector("semantic", weights=str(folder))
    assert "reader=False" in (caught.value.remedy or "")
    assert load_detector("semantic", weights=str(folder), reader=False).name == "semantic@random"


def test_a_damaged_reader_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "weights"
    shutil.copytree(folder, copy)
    (copy / "reader.npz").write_bytes(b"PK")
    with pytest.raises(WeightsError, match=r"reader\.npz is missing or damaged"):
        load_detector("semantic", weights=str(copy))


def test_languages_that_it_reads_well_are_known_across_languages(folder: Path, found_encoder: None) -> None:
    """Hindi is weak in the encoder of the head, and good in that of the reader."""
    hindi = Sample("hi", "मीनार पुरानी है।", Task.QA, "hi", None, GERMAN.evidence)
    (found,) = load_detector("semantic", weights=str(folder)).predict([hindi])
    assert "encoder:weak" not in found.notes
    (found,) = load_detector("semantic", weights=str(folder), reader=False).predict([hindi])
    assert "encoder:weak" in found.notes
