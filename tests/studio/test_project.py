"""Project files: the presets are right, and what is wrong is refused with its place."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.studio.project import Project, changed_settings, load, preset, presets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = '[project]\nname = "N"\nslug = "n"\ntask = "spans"\n'


def made(name: str, tmp_path: Path, **more) -> Project:
    path = tmp_path / "project.toml"
    path.write_text(preset(name, **{"title": "N", "slug": "n", "data": ["d.jsonl"], **more}), "utf-8")
    return load(path)


def test_presets_follow_the_papers(tmp_path: Path) -> None:
    assert presets() == ("halluverse", "hat", "kang", "mfava")
    hat = made("hat", tmp_path).entries
    assert hat.exam is not None
    assert (hat.exam.items, hat.exam.bar, hat.exam.attempts, hat.exam.measure) == (25, 0.95, 2, "precision_recall")
    assert [(s.items, s.low, s.high, s.several) for s in hat.exam.strata] == [
        (2, 0.9, 1.0, 0),
        (10, 0.4, 0.6, 4),
        (10, 0.1, 0.2, 2),
        (3, 0.0, 0.0, 0),
    ]
    assert hat.work.reviews == 1
    mfava = made("mfava", tmp_path).entries
    assert mfava.exam is not None
    assert (mfava.exam.items, mfava.exam.bar, mfava.exam.measure, mfava.exam.against) == (
        10,
        0.4,
        "agreement",
        "silver",
    )
    assert (mfava.work.overlap, mfava.work.per_person) == (50, 50)
    assert made("mfava", tmp_path).form.span_rating is not None
    kang = made("kang", tmp_path).form
    assert [label.name for label in kang.unit_labels] == ["supported", "contradicted", "unverified"]
    assert (kang.unit, kang.evidence) == ("fact", True)
    conflicts, hard = (
        ("context_conflict", "instruction_conflict"),
        ("inferred", "subjective", "nuanced_difference", "temporal"),
    )
    assert kang.unit_flags == (*conflicts, *hard), "Kang et al., Tables 5 and 8"
    assert [label.name for label in made("halluverse", tmp_path).form.labels] == ["0", "entity", "relation", "sentence"]
    with pytest.raises(UnknownNameError, match="Did you mean mfava"):
        preset("mfavaa", title="N", slug="n", data=[])


@pytest.mark.parametrize("name", presets())
def test_every_key_of_a_preset_is_explained_and_has_an_effect(name: str) -> None:
    modules = [file for file in files("veriglot.studio").iterdir() if file.name.endswith(".py")]
    code = "".join(file.read_text("utf-8") for file in modules if file.name != "project.py")
    written = preset(name, title="N", slug="n", data=["d.jsonl"]).partition("[consent]")[0]
    for table in written.replace("[[exam.strata]]", "[strata]").split("\n["):
        for line in table.split("\n"):
            key, is_key, comment = line.partition(" = ")
            if is_key and not key.startswith("#"):
                assert "# " in comment or table.startswith(("strata", "[ratings")), line
                assert re.search(rf"\.{key}\b", code), key


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
)
def test_presets_hold_any_name_and_path(tmp_path_factory: pytest.TempPathFactory, title: str, data: list[str]) -> None:
    found = made("mfava", tmp_path_factory.mktemp("p"), title=title, data=data, languages=["de"])
    assert (found.name, found.entries.data.path, found.languages) == (title, tuple(data), ("de",))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "project"),
        ("[project]\nname = 3", "name"),
        (HEAD.replace('"n"', '"../etc"'), "project.slug"),
        (HEAD.replace('"n"', '""'), "project.slug"),
        (HEAD.replace("spans", "spam"), "task"),
        (HEAD + 'taxonomy = "favaa"', "Did you mean fava"),
        (HEAD + 'languages = ["xx-nothing"]', "language"),
        (HEAD + 'colours = {entity = "red; }"}', "project.colours.entity"),
        (HEAD + 'flags = ["<b>"]', "project.flags"),
        (HEAD + "[wrok]\noverlap = 1", "Did you mean work"),
        (HEAD + "[work]\noverlap = -1", "work.overlap"),
        (HEAD + "[work]\nreviews = 3", "work.reviews"),
        (HEAD + "[exam]\nitems = 3\n[[exam.strata]]\nitems = 2", "exam"),
        (HEAD + "[exam]\nthreshold = 1.5", "exam.threshold"),
        (HEAD + "[validation]\nshare = 0.0", "validation.share"),
        (HEAD + "[checks]\nshare = 0.9", "checks.share"),
        (HEAD + "[suggestions]\n", "suggestions"),
        (HEAD + '[guidelines]\nen = "absent.md"', "guidelines.en"),
        (HEAD + '[consent]\n"<b>" = "x"', "consent"),
        (HEAD + '[[ratings]]\nname = "a"\nsteps = 1', "ratings[0].steps"),
        (HEAD + '[[ratings]]\nname = "a"\n[[ratings]]\nname = "b"', "ratings"),
        (HEAD + '[store]\nurl = "postgresql://me:sesame@host/db"', "store.url"),
        (HEAD + '[store]\nurl = "mysql://host/db"', "store.url"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(make_project: Callable[..., Project], text: str, place: str) -> None:
    with pytest.raises(InputError) as refused:
        make_project(text)
    assert place in str(refused.value)
    assert "project.toml" in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_paths_are_relative_to_the_file(make_project: Callable[..., Project], tmp_path: Path) -> None:
    project = make_project(HEAD + '[store]\nurl = "work/n.sqlite"\n')
    assert project.database == str(tmp_path / "work" / "n.sqlite")
    assert make_project(HEAD).database == str(tmp_path / "n.sqlite")
    assert project.resolve("a") == tmp_path / "a"


_WIDTH = ("work", "half_width")


def _change(path: Path, text: str, changes: dict[tuple[str, str], Any]) -> str:
    path.write_bytes(text.encode())
    with changed_settings(load(path), changes) as changed:
        assert path.read_bytes() == text.encode()
    assert load(path).entries == changed.entries
    return path.read_bytes().decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[work]", "[work]\nhalf_width = 0.2\n"),
        ("[ work ]\noverlap = 1\n", "[ work ]\noverlap = 1\nhalf_width = 0.2\n"),
        ("  [work]\r\n  overlap = 1\r\n", "  [work]\r\n  overlap = 1\r\n  half_width = 0.2\n"),
        ("[work]\n'half_width' = 0.1 # [sure]\n[pace]\n", "[work]\n'half_width' = 0.2 # [sure]\n[pace]\n"),
    ],
)
def test_settings_are_written_where_people_write_them(tmp_path: Path, before: str, after: str) -> None:
    assert _change(tmp_path / "p.toml", HEAD + before, {_WIDTH: 0.2}) == HEAD + after
    assert 'name = "Q\'s"' in _change(tmp_path / "p.toml", HEAD.replace('"N"', "'P p'"), {("project", "name"): "Q's"})
    assert _change(tmp_path / "p.toml", HEAD, {("work", "per_person"): None}) == HEAD


@pytest.mark.parametrize("before", ["work = {overlap = 0}\n", "work.overlap = 0\n", "# no [work]\n"])
def test_settings_are_written_in_rarer_ways_too(tmp_path: Path, before: str) -> None:
    text = before + HEAD.replace('"N"', '"""P"""')
    after = _change(tmp_path / "p.toml", text, {_WIDTH: 0.2, ("project", "name"): "Q"})
    assert after.startswith(before[:-2])
    assert load(tmp_path / "p.toml").entries.work.half_width == 0.2
    assert _change(tmp_path / "p.toml", after, {_WIDTH: None, ("project", "name"): "P"}).count("half_width") == 0


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        *((HEAD, ("project", "name"), f"Q{control}") for control in ("\0", "\n", "\ud800", "\x85")),
        *((HEAD, ("work", "release_hours"), hours) for hours in (0.0, 1e5, 1e300)),
        *((HEAD, ("work", key), 10**12) for key in ("per_item", "per_person", "per_disputed_item")),
    ],
)
def test_settings_that_cannot_be_written_or_kept_leave_the_file(
    tmp_path: Path, text: str, key: tuple[str, str], value: Any
) -> None:
    path = tmp_path / "p.toml"
    with pytest.raises(InputError):
        _change(path, text, {key: value})
    assert path.read_bytes() == text.encode()
    assert [file.name for file in tmp_path.iterdir()] == ["p.toml"]


def test_a_file_that_somebody_changed_is_not_made_live(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(HEAD, "utf-8")
    project = load(path)
    for text in (HEAD.replace('"n"', '"other"'), f"{HEAD}[exam]\n", "["):
        path.write_text(text, "utf-8")
        with pytest.raises(UsageError, match="was changed"), changed_settings(project, {_WIDTH: 0.2}):
            pytest.fail("it was taken")
        assert path.read_text("utf-8") == text


def test_the_file_is_written_last_and_keeps_its_link_and_permissions(tmp_path: Path) -> None:
    real, path = tmp_path / "real.toml", tmp_path / "p.toml"
    real.write_text(HEAD, "utf-8")
    real.chmod(0o600)
    path.symlink_to(real)
    with pytest.raises(ZeroDivisionError), changed_settings(load(path), {_WIDTH: 0.2}):
        raise ZeroDivisionError  # such as a database that does not answer
    assert real.read_text("utf-8") == HEAD
    with changed_settings(load(path), {_WIDTH: 0.2}):
        pass
    assert (path.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o600)
    assert load(path).entries.work.half_width == 0.2
