"""The Dockerfile and the compose file, as far as they can be read where nothing is built."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    if not (ROOT / "Dockerfile").is_file():
        pytest.skip("the source archive has no Dockerfile")
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def values(name: str) -> list[str]:
    return [rest for each, rest in instructions() if each == name]


def test_what_is_copied_and_installed_is_there() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for copied in values("COPY"):
        if copied.startswith("--from=build"):
            source = copied.split()[1]
            assert any(source in command for command in values("RUN"))  # made in that stage
            continue
        for source in copied.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source
    (install,) = [command for command in values("RUN") if "pip install" in command]
    (extra,) = re.findall(r'"\.\[(\w+)\]"', install)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert extra in project["optional-dependencies"]
    for file in ("README.md", *project["license-files"]):  # which the build reads
        assert any(fnmatch.fnmatch(file, part) for copied in values("COPY") for part in copied.split())


def test_it_is_slim_and_runs_without_root() -> None:
    assert all(image.startswith("python:3.11-slim") for image in values("FROM"))
    (user,) = values("USER")
    assert user.partition(":")[0] not in {"root", "0"}
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "HEALTHCHECK" in names


def test_its_command_and_port_are_the_ones_of_the_command() -> None:
    from veriglot.cli.app import load_verb

    program, verb, *options = json.loads(values("ENTRYPOINT")[0])
    assert (program, verb) == ("veriglot", "serve")
    known = {parameter.name: parameter for parameter in load_verb(verb).params}
    assert options[0].removeprefix("--") in known
    port = str(known["port"].default)
    assert values("EXPOSE") == [port]
    assert f":{port}/ready" in values("HEALTHCHECK")[0]
    assert f":{port}:{port}" in compose()["ports"][0]


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    document = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    assert list(document) == ["services"]
    (service,) = document["services"].values()
    return service


def test_the_compose_file_takes_rights_away() -> None:
    service = compose()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["ports"][0].startswith("127.0.0.1:")
    assert "privileged" not in service
    assert service["tmpfs"] == "/tmp"
    known = "build image ports environment command read_only cap_drop security_opt mem_limit pids_limit init"
    assert set(service) <= {*known.split(), "tmpfs", "stop_grace_period", "restart"}
