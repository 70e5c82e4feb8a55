"""`veriglot models`: what a person and a script see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from own_registry import content

from commands import Outcome, command
from programs import printed
from veriglot.hub import registry as hub_registry

if TYPE_CHECKING:
    from pathlib import Path

    from own_registry import OwnRegistry

    from commands import Command

DATA = content()
GUARDED = {"name": "Team-Terms-1.0", "url": "https://example.org/terms"}
models = command("models")


@pytest.fixture(autouse=True)
def _named(registry: OwnRegistry, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "model.onnx").write_bytes(DATA)
    registry.add("own", {"model.onnx": DATA}, {"kind": "local", "path": "given"}, languages=["de", "hsb"])
    registry.add("guarded", {"model.onnx": DATA}, {"kind": "local", "path": "given"}, licence=GUARDED)


def test_get_prints_the_path_and_tells_the_rest_to_standard_error(models: Command) -> None:
    code, out, err = models("get", "own")
    assert (code, out) == (0, f"{hub_registry.find('own')}\n")
    assert "Licence: MIT, https://example.org/mit" in err
    assert "third party" in err
    assert "is verified and lies in" in err
    again = models("get", "own")
    assert (again.code, again.out, again.err) == (0, out, "")


def test_quiet_is_quiet(models: Command) -> None:
    code, out, err = models("get", "own", "--quiet")
    assert (code, out, err) == (0, f"{hub_registry.find('own')}\n", "")


def test_path_is_for_scripts(models: Command) -> None:
    missing = models("path", "own")
    assert (missing.code, missing.out) == (1, "")
    assert "  Type: veriglot models get own\n" in missing.err
    models("get", "own")
    assert models("path", "own") == Outcome(0, f"{hub_registry.find('own')}\n", "")


def test_list_as_json(models: Command) -> None:
    models("get", "own")
    listed = {one["name"]: one for one in json.loads(models("list", "--json").out)}
    assert listed["own"]["state"] == "here"
    assert listed["own"]["bytes"] == len(DATA)
    assert listed["own"]["languages"] == ["de", "hsb"]
    assert listed["own"]["third_party"] is True
    assert listed["use-multilingual"]["state"] == "missing"
    assert listed["use-multilingual"]["path"] is None
    assert listed["use-multilingual"]["licence"] == "Apache-2.0"


def test_list_as_a_table(models: Command, folder: Path) -> None:
    out = models("list").out
    row = next(line for line in out.splitlines() if "use-multilingual" in line)
    assert row.split()[:5] == ["use-multilingual", "missing", "71.8", "Apache-2.0", "veriglot"]
    assert "third party" in out
    assert f"The folder of models is {folder}." in out


def test_remove_says_what_it_freed(models: Command) -> None:
    models("get", "own")
    assert models("remove", "own").err == "own: 0.3 MB freed.\n"
    assert "Nothing of it was in" in models("remove", "own").err
    assert models("path", "own").code == 1


@pytest.mark.parametrize("words", [("get", "ow"), ("path", "ow"), ("remove", "ow")], ids=lambda words: words[0])
def test_a_slip_of_the_pen(models: Command, words: tuple[str, str]) -> None:
    code, _, err = models(*words)
    assert code == 2
    assert "There is no model named 'ow'" in err
    assert "Did you mean own?" in err


def test_a_slip_in_the_last_name_costs_no_download(models: Command) -> None:
    assert models("get", "own", "nothing-like-it").code == 2
    assert models("path", "own").code == 1


def test_from_a_path(models: Command, tmp_path: Path) -> None:
    (tmp_path / "brought.bin").write_bytes(DATA)
    assert models("get", "own", "--from", tmp_path / "brought.bin").code == 0
    wrong = tmp_path / "wrong.bin"
    wrong.write_bytes(bytes(len(DATA)))
    models("remove", "own")
    code, out, err = models("get", "own", "--from", wrong)
    assert (code, out) == (1, "")
    assert f"{wrong} gave model.onnx with the SHA-256" in err


def test_a_licence_that_is_not_permissive_has_to_be_accepted(models: Command) -> None:
    code, out, err = models("get", "guarded")
    assert (code, out) == (1, "")
    assert "Team-Terms-1.0, https://example.org/terms, has to be accepted" in err
    assert "veriglot models get guarded --accept-licence" in err
    assert models("path", "guarded").code == 1
    assert models("get", "guarded", "--accept-licence").code == 0
    assert models("get", "guarded").code == 0, "what is here was accepted"


@pytest.mark.parametrize("option", ["--yes", "-y"])
def test_yes_accepts_too(models: Command, option: str) -> None:
    assert models("get", "guarded", option).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)], ids=["yes", "no", "nothing"])
def test_at_a_terminal_one_is_asked(answer: bytes, code: int) -> None:
    import pty

    ours, theirs = pty.openpty()
    words = "import sys; from veriglot.cli import main; sys.exit(main(['models', 'get', 'guarded']))"
    process = subprocess.Popen([sys.executable, "-c", words], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, answer)
    rest = drained(ours)
    assert process.wait(timeout=60) == code, rest
    assert b"Do you accept the licence of guarded" in shown


def drained(terminal: int) -> bytes:
    """What a terminal shows until its program ends."""
    shown = b""
    while True:
        try:
            read = os.read(terminal, 1000)
        except OSError:  # Linux says so when nobody holds the other end
            read = b""
        if not read:
            os.close(terminal)
            return shown
        shown += read


def test_the_doctor_says_which_models_are_here(models: Command, folder: Path) -> None:
    from veriglot.cli.doctor import examine

    models("get", "own")
    found = examine()
    assert found["weights"]["folder"] == str(folder)
    states = {one["name"]: one["status"] for one in found["weights"]["models"]}
    del states["e5-multilingual"]  # comes with the extra `reader`
    assert states == {"use-multilingual": "missing", "own": "here", "guarded": "missing"}
    assert found["ok"] is True, "a model that nobody asked for is no fault"


def test_the_doctor_names_a_registry_that_cannot_be_read(registry: OwnRegistry) -> None:
    from veriglot.cli.doctor import examine

    registry.path.write_text("{", "utf-8")
    found = examine()
    assert str(registry.path) in found["weights"]["problem"]
    assert found["ok"] is False


def test_looking_for_a_model_loads_nothing_heavy() -> None:
    heavy = ("numpy", "onnxruntime", "huggingface_hub", "httpx2", "torch")
    code = f"import sys; from veriglot.hub.registry import listing; listing(); print(set({heavy!r}) & set(sys.modules))"
    assert printed(code) == "set()\n"
