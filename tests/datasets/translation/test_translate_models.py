"""Real sequence-to-sequence models, of random weights, end to end through the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from json_lines import write_lines
from settings_file import main
from veriglot.datasets.generation import Account, read_account
from veriglot.datasets.translation.job import TranslationLanguage
from veriglot.datasets.translation.translators import TranslationRequest, load_translator

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("transformers", reason="needs the extra local")
pytest.importorskip("sentencepiece", reason="needs the extra reader")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses:UserWarning")]

ROW = {
    "id": "a", "language": "en", "question": "When was the bridge opened?",
    "evidence": [{"text": "The bridge was opened in 1897."}],
    "response": "The bridge was opened in 1879 by Karl Meyer. It is a nice old bridge.",
    "annotations": [{"annotator": "gold", "kind": "human", "taxonomy": "fava",
                     "spans": [{"start": 25, "end": 29, "type": "entity"}]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def m2m(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_translators import write_m2m

    return write_m2m(tmp_path_factory.mktemp("m2m"))


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_translators import write_marian

    return write_marian(tmp_path_factory.mktemp("marian"))


def test_a_translation_of_many_languages_begins_with_the_target(m2m: Path) -> None:
    translator = load_translator(f"hf:{m2m}", beams=1)
    assert translator._family == "m2m100"
    wanted = TranslationRequest("The bridge.", "en", "de")
    ids = translator._encode(wanted.text, wanted)
    assert translator._tokenizer.convert_ids_to_tokens(ids)[0] == "__en__"
    forced = translator._forced(wanted)
    assert translator._tokenizer.convert_ids_to_tokens(forced) == "__de__"
    (output,) = translator._run([(ids, forced)])
    assert output.ids[0] == forced


def test_a_language_that_the_model_lacks_is_said_and_not_guessed(m2m: Path) -> None:
    translator = load_translator(f"hf:{m2m}", beams=1)
    (reply,) = translator.translate([TranslationRequest("The bridge.", "en", "eu")])
    assert (reply.unfit, reply.text) == ("unsupported_language", "")


def test_a_long_sentence_is_parted_and_nothing_is_lost(m2m: Path) -> None:
    translator = load_translator(f"hf:{m2m}", beams=1)
    text = "The bridge was opened in 1879 by Karl Meyer, and it is a nice old bridge over the river " * 6
    wanted = TranslationRequest(text.strip(), "en", "de")
    parts = translator._fitting(wanted.text, wanted)
    assert len(parts) > 2
    assert "".join(" ".join(parts).split()) == "".join(text.split())
    assert all(len(translator._encode(part, wanted)) <= 64 for part in parts)


def test_batches_change_nothing(m2m: Path) -> None:
    wanted = [
        TranslationRequest(text, "en", tag)
        for text in ("The bridge.", "It is a nice old bridge.")
        for tag in ("de", "fr")
    ]
    together = load_translator(f"hf:{m2m}", beams=1, batch=8).translate(wanted)
    alone = [load_translator(f"hf:{m2m}", beams=1, batch=1).translate([one])[0] for one in wanted]
    assert list(together) == alone


@pytest.mark.parametrize("kind", ["m2m", "marian"])
def test_the_command_runs_a_real_model_and_accounts_for_every_row(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(kind)
    data, out = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    write_lines(data, ({**ROW, "id": name} for name in "abc"))
    options = ["-l", "de", "--translator", f"hf:{folder}", "--translator-options", "beams=1", "-q"]
    assert main(["dataset", "translate", str(data), *options, "-o", str(out)]) == 0
    account = read_account(out, Account[TranslationLanguage])
    assert account.total.rows == 3
    assert account.total.translated + sum(account.total.row_reasons.values()) == 3
    assert account.total.translated == len(out.read_text("utf-8").splitlines())
    assert account.total.row_reasons, "random weights translate nothing, and the check has to see it"
    before = out.read_bytes()
    assert main(["dataset", "translate", str(data), *options, "-o", str(out)]) == 0
    assert out.read_bytes() == before
