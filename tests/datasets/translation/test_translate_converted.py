"""Models converted by CTranslate2's own converter, compared with the same ones in transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ctranslate2", reason="needs the extra ct2")
pytest.importorskip("transformers", reason="needs the extra local")
pytest.importorskip("sentencepiece", reason="needs the extra reader")

from veriglot.datasets.translation.translators import TranslationRequest, load_translator
from veriglot.errors import WeightsError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses.:UserWarning")]


def converted(folder: Path, out: Path) -> Path:
    from ctranslate2.converters import TransformersConverter

    files = [path.name for path in folder.iterdir() if path.suffix in {".json", ".spm", ".model"}]
    files = [name for name in files if name not in {"config.json", "generation_config.json"}]
    TransformersConverter(str(folder), copy_files=files).convert(str(out))
    return out


@pytest.mark.parametrize("beams", [1, 3])
def test_a_converted_model_says_what_the_original_says(beams: int, tmp_path: Path) -> None:
    import tiny_translators

    folder = tiny_translators.write_marian(tmp_path / "original")
    other = load_translator(f"ct2:{converted(folder, tmp_path / 'converted')}", beams=beams, room=64, batch=2)
    own = load_translator(f"hf:{folder}", beams=beams, dtype="float32")
    wanted = [TranslationRequest(text, "en", "de") for text in ("The bridge.", "It is a nice old bridge.")]
    ours = list(own.translate(wanted))
    theirs = list(other.translate(wanted))
    assert [one.unfit for one in theirs] == [one.unfit for one in ours]
    if beams == 1:
        assert [one.text for one in theirs] == [one.text for one in ours]
    assert "ct2" in other.signature


def test_a_folder_without_a_converted_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"model\.bin"):
        load_translator(f"ct2:{tmp_path}")
