"""Scorers and the detector whose packages run in environments of their own, where these are here."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from veriglot.detectors.registry import load_detector
from veriglot.errors import UsageError, WeightsError
from veriglot.pipeline.external import python_of
from veriglot.records import Evidence, Sample, Status, Task
from veriglot.records.languages import tag_of, translation_codes
from veriglot.scorers.registry import load_scorer
from veriglot.testing import check_detector, check_scorer

HERE = Path(__file__).parent


def sample(response: str, source: str, **given: object) -> Sample:
    return Sample("x", response, task=Task.TRANSLATION, language="en", evidence=(Evidence(source, language="de"),))


def interpreter(name: str) -> Path:
    try:
        return python_of(name)
    except UsageError as error:
        pytest.skip(f"needs the environment {name!r}: {error.remedy}")


def written(script: str, *arguments: str, environment: str) -> None:
    command = [str(interpreter(environment)), str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def comets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comet")
    for kind in ("qe", "kiwi", "xcomet", "reference"):
        written("write_comet.py", kind, str(folder / kind), environment="comet")
    return folder


@pytest.fixture(scope="session")
def laser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laser") / "model"
    written("write_laser.py", str(folder), environment="laser")
    return folder


@pytest.mark.parametrize("kind", ["qe", "kiwi", "xcomet"])
def test_comet_gives_each_pair_a_score(comets: Path, kind: str) -> None:
    scorer = load_scorer(f"comet:{comets / kind}")
    asked = [sample("The dog.", "der hund"), sample("ab " * 40, "der hund"), sample("Cats, 12", "die katze schläft.")]
    found = scorer.score(asked)
    scorer.close()  # type: ignore[attr-defined]
    assert [one.status for one in found] == [Status.SCORED, Status.TOO_LONG, Status.SCORED]
    assert found[0].value != found[2].value
    assert ("mqm" in found[0].parts) == (kind == "xcomet")
    assert "unbabel_comet:2." in scorer.signature


def test_comet_keeps_the_contract(comets: Path) -> None:
    report = check_scorer(lambda **given: load_scorer(f"comet:{comets / 'kiwi'}", **given), tolerance=1e-5)
    assert "contract is kept" in str(report)


def test_the_encoder_may_lie_elsewhere(comets: Path, tmp_path: Path) -> None:
    moved = tmp_path / "encoder"
    (comets / "kiwi" / "encoder").rename(moved)
    try:
        with pytest.raises(WeightsError, match=r"encoder .* is not here.*option encoder"):
            load_scorer(f"comet:{comets / 'kiwi'}")
        scorer = load_scorer(f"comet:{comets / 'kiwi'}", encoder=str(moved))
        assert scorer.score([sample("The dog.", "der hund")])[0].status is Status.SCORED
        scorer.close()  # type: ignore[attr-defined]
    finally:
        moved.rename(comets / "kiwi" / "encoder")


def test_a_model_that_needs_references_is_refused(comets: Path) -> None:
    with pytest.raises(WeightsError, match="reference translation"):
        load_scorer(f"comet:{comets / 'reference'}")
    with pytest.raises(WeightsError, match="marks no errors"):
        load_detector(f"xcomet:{comets / 'kiwi'}")


def test_xcomet_keeps_the_contract_of_detectors(comets: Path) -> None:
    report = check_detector(lambda **given: load_detector(f"xcomet:{comets / 'xcomet'}", **given), tolerance=2e-4)
    assert "contract is kept" in str(report)


def test_xcomet_keeps_what_the_published_decoding_drops(comets: Path) -> None:
    """With random weights nearly every token is marked, the last one of this text among them."""
    detector = load_detector(f"xcomet:{comets / 'xcomet'}", published=True)
    found = detector.predict([sample("The dog 😀 sleeps, and 12 cat", "der hund")])[0]
    detector.close()  # type: ignore[attr-defined]
    assert found.spans
    assert found.spans[-1].end == len("The dog 😀 sleeps, and 12 cat")
    assert all(span.text == span.text.strip() for span in found.spans if span.text)
    severities = next(note for note in found.notes if note.startswith("severities:"))
    assert len(severities.partition(":")[2].split(",")) == len(found.spans)


def test_laser_gives_a_cosine(laser: Path) -> None:
    scorer = load_scorer(f"laser:{laser}")
    found = scorer.score([sample("the dog", "the dog"), sample("zz 99", "der hund schlaeft")])
    assert found[0].value == pytest.approx(1, abs=1e-6)
    assert found[1].value is not None
    assert -1 <= found[1].value < 0.999
    scorer.close()  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def sonar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    interpreter("sonar")
    sentencepiece = pytest.importorskip("sentencepiece", reason="needs the extra `reader`")
    folder = tmp_path_factory.mktemp("sonar")
    text = ["the dog sleeps", "der hund schlaeft", "a b c d e f g h i j k l m n o p q r s t u v w x y z"] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=str(folder / "pieces"), vocab_size=60, hard_vocab_limit=False
    )
    pieces = folder / "pieces.model"
    count = sentencepiece.SentencePieceProcessor(model_file=str(pieces)).get_piece_size()
    written("write_sonar.py", str(folder), str(pieces), str(count), environment="sonar")
    return folder


def test_blaser_is_told_both_languages(sonar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSEQ2_USER_ASSET_DIR", str(sonar / "cards"))
    scorer = load_scorer(f"blaser:{sonar / 'blaser'}", encoder="tiny_sonar")
    asked = [sample("the dog", "der hund"), sample("the dog sleeps a b c", "der hund")]
    latin = Sample("la", "canis", language="la", evidence=(Evidence("der hund", language="de"),))
    found = scorer.score([*asked, latin])
    assert [scorer.score([one])[0].value for one in asked] == pytest.approx([one.value for one in found[:2]], abs=1e-5)
    assert found[0].value != found[1].value
    assert found[2].status is Status.UNSUPPORTED_LANGUAGE
    scorer.close()  # type: ignore[attr-defined]


def test_an_engine_of_ones_own(tmp_path: Path) -> None:
    engine = tmp_path / "ratio_engine.py"
    engine.write_text(
        "class Engine:\n"
        "    def __init__(self, factor):\n"
        "        self.factor = factor\n"
        "    def run(self, rows):\n"
        "        return [{'value': self.factor * len(row['response']) / len(row['source'])} for row in rows]\n",
        encoding="utf-8",
    )
    scorer = load_scorer(f"process:{engine}", python=sys.executable, options={"factor": 2})
    asked = [sample("abcd", "ab"), Sample("bare", "abcd"), sample("ab\ud800", "abc")]
    found = scorer.score(asked)
    assert [one.value for one in found] == [4, None, 2]
    assert found[1].status is Status.NO_EVIDENCE
    again = pickle.loads(pickle.dumps(scorer))
    assert again.signature == scorer.signature
    assert [one.value for one in again.score(asked)] == [4, None, 2]
    again.close()
    scorer.close()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="no engine"):
        load_scorer("process:nowhere.py", python=sys.executable)
    with pytest.raises(WeightsError, match="factor"):
        load_scorer(f"process:{engine}", python=sys.executable)


def test_codes_of_sonar_come_from_our_table() -> None:
    codes = translation_codes()["nllb"]
    assert [codes[tag_of(tag) or ""] for tag in ("de", "ar", "zh-Hant", "th", "ko", "lv")] == [
        "deu_Latn", "arb_Arab", "zho_Hant", "tha_Thai", "kor_Hang", "lvs_Latn",
    ]  # fmt: skip
    assert "la" not in codes  # FLORES-200 has no Latin
