"""The process protocol, over real processes of this interpreter."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from veriglot.errors import UsageError, VeriglotError, WeightsError
from veriglot.pipeline.external import (
    ExternalEngine,
    environments,
    instructions,
    python_of,
)
from veriglot.pipeline.external_engines import ENGINES
from veriglot.records import Status

ENGINE = """
import os, signal, sys, time

class Engine:
    packages = ("msgspec", "no-such-package")

    def __init__(self, refuse=False, **options):
        if refuse:
            error = ValueError("no such model")
            error.remedy = "Give another."
            raise error
        self.about = {"options": options, "path": os.environ.get("PYTHONPATH")}
        print("this is no message")

    def run(self, rows):
        if len(rows) > 1 and any(row["text"] == "clumsy" for row in rows):
            raise RuntimeError("not in a batch")
        return [self.one(row["text"]) for row in rows]

    def one(self, text):
        if text == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "once" and not os.path.exists(self.about["options"]["seen"]):
            open(self.about["options"]["seen"], "w").close()
            os._exit(3)
        if text == "sleep":
            time.sleep(60)
        if text == "long":
            return {"error": "too many tokens", "status": "too_long"}
        if text == "odd":
            return {"error": "?", "status": "scored"}
        if text == "nan":
            return {"value": float("nan")}
        if text == "none":
            return {}
        if text == "raise":
            raise ValueError("cannot")
        print("noise", file=sys.stdout, flush=True)
        return {"value": float(len(text)), "parts": {"n": 1.0}, "details": {"text": text}}
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engine") / "length_engine.py"
    path.write_text(ENGINE, encoding="utf-8")
    return path


def engine_with(engine: Path, timeout: float = 30.0, **options: object) -> ExternalEngine:
    return ExternalEngine(sys.executable, engine, options, timeout=timeout)


def rows(*texts: str) -> list[dict[str, object]]:
    return [{"text": text} for text in texts]


def test_it_says_what_it_is_and_answers_in_order(engine: Path) -> None:
    external = engine_with(engine, threshold=0.5)
    assert external.packages["msgspec"][0].isdigit()
    assert external.packages["no-such-package"] == "absent"
    assert external.about["options"] == {"threshold": 0.5}
    assert external.about["path"] is None  # what is installed beside us is not found there
    found = external.ask(rows("abc", "", "สวัสดี", "a\u2028b\n😀", "abc"))
    assert [one.value for one in found if one.error is None] == [3, 0, 6, 5, 3]
    assert found[2].details["text"] == "สวัสดี"
    external.close()
    assert external.ask(rows("ab"))[0].value == 2  # it starts again
    external.close()


def test_an_error_is_a_record_of_its_row_alone(engine: Path) -> None:
    external = engine_with(engine)
    found = external.ask(rows("a", "long", "odd", "nan", "none", "raise", "clumsy", "b"))
    external.close()
    assert [one.value for one in (found[0], found[6], found[7]) if one.error is None] == [1, 6, 1]
    bad = [one for one in found if one.error is not None]
    assert [one.status for one in bad] == [Status.TOO_LONG, *[Status.FAILED] * 4]
    assert bad[0].error == "too many tokens"
    assert "ValueError: cannot" in str(bad[-1].error)


def test_a_row_that_kills_the_process_costs_no_other_row(engine: Path, tmp_path: Path) -> None:
    external = engine_with(engine, seen=str(tmp_path / "seen"))
    found = external.ask(rows("a", "bb", "die", "once", "ccc"))
    external.close()
    assert [one.value for one in found if one.error is None] == [1, 2, 4, 3]
    assert found[2].status is Status.FAILED
    assert "signal 9" in str(found[2].error)


def test_a_row_that_takes_too_long_is_given_up_on(engine: Path) -> None:
    external = engine_with(engine, timeout=1.0)
    began = time.monotonic()
    found = external.ask(rows("a", "sleep"))
    external.close()
    assert found[0].value == 1
    assert "longer than 1 s" in str(found[1].error)
    assert time.monotonic() - began < 20


def test_a_model_that_cannot_be_loaded_is_an_error_with_the_engines_own_remedy(engine: Path) -> None:
    with pytest.raises(WeightsError, match=r"no such model.*Give another\."):
        engine_with(engine, refuse=True)


def test_an_engine_that_does_not_start_says_its_last_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken_engine.py"
    broken.write_text("import no_such_module_of_anyone", encoding="utf-8")
    with pytest.raises(VeriglotError, match="no_such_module_of_anyone"):
        engine_with(broken)
    with pytest.raises(VeriglotError, match="cannot be run"):
        ExternalEngine(tmp_path / "python", broken, {})


def test_another_protocol_is_refused(tmp_path: Path) -> None:
    talker = tmp_path / "talker.py"
    talker.write_text('print(\'{"type": "hello", "protocol": 99, "engine": "x", "python": "3"}\')', encoding="utf-8")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {talker}\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(VeriglotError, match="protocol 99"):
        ExternalEngine(python, talker, {})


def test_an_environment_is_named_by_option_then_setting_then_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("VERIGLOT_ENV_COMET", raising=False)
    with pytest.raises(UsageError, match=r"-m venv .*unbabel-comet.*VERIGLOT_ENV_COMET"):
        python_of("comet")
    standing = tmp_path / "veriglot" / "environments" / "comet" / "bin" / "python"
    standing.parent.mkdir(parents=True)
    standing.touch()
    assert python_of("comet") == standing
    monkeypatch.setenv("VERIGLOT_ENV_COMET", sys.executable)
    assert python_of("comet") == Path(sys.executable)
    assert python_of("comet", standing.parents[1]) == standing
    with pytest.raises(UsageError):
        python_of("comet", tmp_path / "nowhere")


@pytest.mark.parametrize("name", environments())
def test_every_environment_has_an_engine_and_commands(name: str, tmp_path: Path) -> None:
    assert name in ENGINES
    assert all(package in instructions(name, tmp_path) for step in environments()[name].steps for package in step)
