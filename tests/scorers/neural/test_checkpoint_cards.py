"""Licences are shown before checkpoints are used, and have to be accepted where they forbid something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from veriglot.errors import WeightsError
from veriglot.hub import checkpoints
from veriglot.hub.checkpoints import _ACCEPTED as ACCEPTED
from veriglot.hub.checkpoints import card_of, check_licence
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_known_of_published_checkpoints() -> None:
    kiwi = card_of("Unbabel/wmt22-cometkiwi-da")
    assert kiwi is not None
    assert kiwi.licence is not None
    assert kiwi.licence.name == "CC-BY-NC-SA"
    unknown = card_of("yfqiu-nlp/mFACT-zh_CN")
    assert unknown is not None
    assert unknown.licence is None
    assert card_of("somebody/else") is None


def test_a_licence_that_forbids_something_has_to_be_accepted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkpoints, "_shown", set())
    monkeypatch.delenv(ACCEPTED, raising=False)
    with pytest.raises(WeightsError, match="accept_licence=true"):
        check_licence("Unbabel/XCOMET-XL")
    check_licence("Unbabel/XCOMET-XL", accepted=True)
    monkeypatch.setenv(ACCEPTED, "MIT, cc-by-nc-sa")
    check_licence("Unbabel/XCOMET-XL")
    check_licence("google/seahorse-large-q4")
    check_licence("yfqiu-nlp/mFACT-en_XX")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3  # each once
    assert "no commercial use" in said[0]
    assert "we do not know" in said[2]


def test_the_licence_is_the_first_thing_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ACCEPTED, raising=False)
    for name in ("comet:Unbabel/XCOMET-XXL", "blaser"):
        with pytest.raises(WeightsError):
            load_scorer(name)


def test_the_card_in_a_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ACCEPTED, raising=False)
    check_licence(tmp_path)  # no card: its owner's business
    card = tmp_path / "README.md"
    card.write_text("---\nlanguage: en\nlicense: cc-by-nc-4.0\n---\nlicense: mit\n", encoding="utf-8")
    with pytest.raises(WeightsError, match=r"cc-by-nc-4\.0"):
        check_licence(tmp_path)
    card.write_text("---\nlicense: apache-2.0\n---\n", encoding="utf-8")
    check_licence(tmp_path)
    cached = tmp_path / "models--Unbabel--XCOMET-XL" / "snapshots" / "0a1b"
    cached.mkdir(parents=True)
    with pytest.raises(WeightsError, match="CC-BY-NC-SA"):
        check_licence(cached)
