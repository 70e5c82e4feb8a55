"""The registry that ships is whole, and registries of users' own join it under the same rules."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from own_registry import MIT, content

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.hub import registry as hub_registry
from veriglot.hub.registry import Local, PackageSource
from veriglot.records.languages import get_language

if TYPE_CHECKING:
    from pathlib import Path

    from own_registry import OwnRegistry

SHIPPED = [one for one in hub_registry.models().values() if not one.third_party]


def test_the_encoder_has_a_name() -> None:
    encoder = hub_registry.model("use-multilingual")
    assert encoder.licence.name == "Apache-2.0"
    assert encoder.licence.permissive
    assert encoder.origin == "veriglot"


@pytest.mark.parametrize("model", SHIPPED, ids=lambda model: model.name)
def test_shipped_entries_are_whole(model: hub_registry.Model) -> None:
    assert model.places, "there must be a place to get it from"
    assert len(model.places) > 1, "one place is one too few"
    assert [get_language(tag).tag for tag in model.languages] == list(model.languages)
    for place in model.places:
        assert not isinstance(place, Local), "a path of ours is nobody else's"
        if isinstance(place, PackageSource):
            assert set(place.members) == {file.name for file in model.files}
            assert place.licence.name


def test_users_add_models_that_are_shown_as_theirs(registry: OwnRegistry) -> None:
    registry.add("team-encoder", {"model.onnx": content(10)}, languages=["de", "hsb"])
    found = {one.name: one for one in hub_registry.listing()}
    assert (found["team-encoder"].third_party, found["team-encoder"].origin) == (True, str(registry.path))
    assert found["team-encoder"].languages == ("de", "hsb")
    assert not found["use-multilingual"].third_party


def test_several_registries_join(registry: OwnRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.add("one", {"a": b"a"})
    other = type(registry)(tmp_path / "other.json")
    other.add("two", {"b": b"b"})
    monkeypatch.setenv("VERIGLOT_MODELS", os.pathsep.join([str(registry.path), str(other.path)]))
    assert {"one", "two", "use-multilingual"} <= set(hub_registry.models())


def test_a_shipped_name_cannot_be_taken(registry: OwnRegistry) -> None:
    registry.add("use-multilingual", {"a": b"a"})
    with pytest.raises(UsageError, match="names a model 'use-multilingual', and so does veriglot") as caught:
        hub_registry.listing()
    assert "mirrors" in caught.value.remedy


def test_a_mirror_stands_first_and_relative_paths_begin_at_the_registry(registry: OwnRegistry) -> None:
    registry.mirrors["use-multilingual"] = [{"kind": "local", "path": "copies"}]
    registry.write()
    first, *rest = hub_registry.model("use-multilingual").places
    assert first == Local(str(registry.path.parent / "copies"))
    assert rest


def test_a_mirror_of_nothing_is_refused(registry: OwnRegistry) -> None:
    registry.mirrors["use-multilingal"] = [{"kind": "local", "path": "copies"}]
    registry.write()
    with pytest.raises(UnknownNameError, match="model to mirror"):
        hub_registry.models()


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../model.onnx", "a/../../b", "..", "", "a\\b", "C:model", ".hidden", "a\u0000b"]
)
def test_no_file_leads_out_of_the_folder(registry: OwnRegistry, name: str) -> None:
    registry.add("wicked", {name: b"x"})
    with pytest.raises(InputError, match="leads out of the model's folder"):
        hub_registry.models()


@pytest.mark.parametrize("name", ["../up", "UP", "a/b", "", ".locks", "x" * 65])
def test_names_are_plain(registry: OwnRegistry, name: str) -> None:
    registry.add(name, {"a": b"a"})
    with pytest.raises(InputError, match="is no name for a model"):
        hub_registry.models()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": []}, "files"),
        ({"files": [{"name": "a", "bytes": 1, "sha256": "abc"}]}, "sha256"),
        ({"licence": "MIT"}, "licence"),
        ({"places": [{"kind": "ftp", "base": "x"}]}, "ftp"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_entry_that_is_wrong_says_where(registry: OwnRegistry, change: dict[str, object], said: str) -> None:
    registry.add("own", {"a": b"a"})
    registry.models["own"].update(change)
    registry.write()
    with pytest.raises(InputError, match=said) as caught:
        hub_registry.models()
    assert str(registry.path) in caught.value.message


def test_a_package_must_carry_every_file(registry: OwnRegistry) -> None:
    place = {
        "kind": "package", "package": "p", "version": "1", "sha256": "0" * 64, "bytes": 1, "licence": MIT,
        "members": {"a": "p/a"},
    }  # fmt: skip
    registry.add("own", {"a": b"a", "b": b"b"}, place)
    with pytest.raises(InputError, match="does not say where 'b' stands"):
        hub_registry.models()
    registry.mirrors["own"] = [place]
    registry.add("own", {"a": b"a", "b": b"b"})
    with pytest.raises(InputError, match="does not say where 'b' stands"):
        hub_registry.models()


def test_a_registry_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VERIGLOT_MODELS", str(tmp_path / "none.json"))
    with pytest.raises(UsageError, match=r"none.json cannot be read: No such file"):
        hub_registry.models()


def test_a_registry_of_ones_own_cannot_widen_what_is_permissive(registry: OwnRegistry) -> None:
    registry.path.write_text(json.dumps({"models": {}, "permissive": ["Anything"]}), "utf-8")
    with pytest.raises(InputError, match="Only the shipped registry"):
        hub_registry.models()


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean use-multilingual"):
        hub_registry.find("use-multilingal")
