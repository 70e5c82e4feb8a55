"""`veriglot doctor` tells what is there, and what each extra would add."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Command = Callable[..., Outcome]

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_it_tells_versions_extras_and_models(veriglot: Command) -> None:
    outcome = veriglot("doctor", "--json")
    found = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (0, "")
    assert found["ok"] is True
    core = {package["name"]: package for package in found["core"]}
    assert core["msgspec"] == {"name": "msgspec", "version": version("msgspec"), "needs": ">=0.19", "status": "ok"}
    assert found["extras"]["parquet"]["install"] == "pip install 'veriglot[parquet]'"
    assert {"pyarrow"} == {package["name"] for package in found["extras"]["parquet"]["packages"]}
    detectors = {one["name"]: one for one in found["detectors"]}
    assert detectors["grounding"]["status"] == "ok"
    assert detectors["grounding"]["signature"]


def test_every_extra_says_what_it_gives(veriglot: Command) -> None:
    # What pyproject.toml names, for an editable install may still know the extras of an earlier day.
    named = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"].keys() - {"all", "dev"}
    extras = json.loads(veriglot("doctor", "--json").out)["extras"]
    assert {name for name, extra in extras.items() if extra["gives"]} == named, "install anew: pip install -e ."


def test_a_person_reads_the_same(veriglot: Command) -> None:
    found = json.loads(veriglot("doctor", "--json").out)
    shown = veriglot("doctor").out
    assert f"veriglot {found['veriglot']}, Python {found['python']}" in shown
    for package in found["core"]:
        assert f"{package['name']:<20} {package['version']}" in shown
    for name, extra in found["extras"].items():
        assert f"Extra {name}: {extra['gives']}" in shown


def test_a_model_that_was_not_fetched_is_no_fault(
    veriglot: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for package in ("sentencepiece", "onnx", "rapidfuzz", "anyascii"):
        pytest.importorskip(package, reason="needs the extra `semantic`: pip install 'veriglot[semantic]'")
    monkeypatch.setenv("VERIGLOT_WEIGHTS", str(tmp_path / "models"))
    outcome = veriglot("doctor", "--json")
    found = json.loads(outcome.out)
    assert (outcome.code, found["ok"]) == (0, True)
    detectors = {one["name"]: one for one in found["detectors"]}
    assert detectors["semantic"]["status"] == "needs a model"
    assert detectors["semantic"]["problem"].endswith("Type: veriglot models get use-multilingual")
    assert detectors["auto"]["status"] == "ok"
    assert detectors["auto"]["made"].startswith("auto@grounding-")
    shown = veriglot("doctor").out
    assert "needs a model" in shown
    assert f"{detectors['auto']['made']} loads and judges in" in shown


def test_detectors_whose_model_is_here_judge(veriglot: Command, use_multilingual: Path) -> None:
    detectors = {one["name"]: one for one in json.loads(veriglot("doctor", "--json").out)["detectors"]}
    if detectors["semantic"]["status"] == "needs an extra":
        pytest.skip("needs the extra `semantic`: pip install 'veriglot[semantic]'")
    assert {name: detectors[name]["status"] for name in ("auto", "semantic")} == {"auto": "ok", "semantic": "ok"}
    assert detectors["auto"]["made"].startswith("auto@semantic-")
