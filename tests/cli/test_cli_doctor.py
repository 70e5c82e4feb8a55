"""`veriglot doctor` tells what is there, and what each extra would add."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from veriglot.hub.registry import MissingWeightsError, find

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


@pytest.fixture
def reader() -> None:
    pytest.importorskip("veriglot.detectors.reader.detector", reason="needs the extra `reader`")


def test_a_model_that_was_not_fetched_is_no_fault(veriglot: Command, reader: None, no_models: Path) -> None:
    outcome = veriglot("doctor", "--json")
    found = json.loads(outcome.out)
    assert (outcome.code, found["ok"]) == (0, True)
    detectors = {one["name"]: one for one in found["detectors"]}
    assert detectors["reader"]["status"] == "needs a model"
    assert detectors["reader"]["problem"].endswith("Type: veriglot models get e5-multilingual")
    assert detectors["auto"]["status"] == "ok"
    assert detectors["auto"]["made"].startswith("auto@grounding-")
    shown = veriglot("doctor").out
    assert "needs a model" in shown
    assert f"{detectors['auto']['made']} loads and judges in" in shown


@pytest.mark.slow
def test_detectors_whose_model_is_here_judge(veriglot: Command, reader: None) -> None:
    try:
        find("e5-multilingual")
    except MissingWeightsError as error:
        pytest.skip(f"needs the reader's encoder: {error}")
    detectors = {one["name"]: one for one in json.loads(veriglot("doctor", "--json").out)["detectors"]}
    assert {name: detectors[name]["status"] for name in ("auto", "reader")} == {"auto": "ok", "reader": "ok"}
    assert detectors["auto"]["made"].startswith("auto@reader-")
