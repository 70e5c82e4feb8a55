"""Every option of every command: one name has one meaning, each has help, and there are not too many."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from veriglot.cli.app import VERBS, app, load_verb
from veriglot.cli.command import _OPTIONS, commented_toml
from veriglot.formats.columns import _PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 321  # over all commands: 300, 13 that Door may add, 3 for shards, --engine twice, and 3 more
MOST_OF_DETECT = 22  # 20, --shard and --engine
MOST_OF_A_COMMAND = 16


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its words, groups before their members, and the root."""
    from typer.main import get_command

    yield "veriglot", get_command(app)
    for verb in VERBS:
        command = load_verb(verb)
        yield verb, command
        for name, member in getattr(command, "commands", {}).items():
            yield f"{verb} {name}", member


def options(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "option" and "--help" not in one.opts]


def element(annotation: Any) -> str:
    """The type of one value: whether it may be absent, repeated, or is one of a few words makes no other meaning."""
    text = str(annotation).replace("typing.", "").replace("<class '", "").replace("'>", "")
    text = re.sub(r"Literal\[.*?\]", "str", text)
    return re.sub(r" \| None|^list\[|\]$", "", text)


def meaning(option: Any) -> tuple[str, str | None, str]:
    """Type, placeholder, and what commands share of the help, or its first sentence."""
    text = option.help or ""
    shared = [start for each in _OPTIONS.values() if (start := each.help.rstrip(".")) and text.startswith(start)]
    first = re.match(r".*?\.(?= |$)|.*", text)
    assert first is not None
    return element(option.type_descriptor.annotation), option.metavar, max(shared, key=len, default=first[0])


def test_an_option_has_one_meaning_wherever_it_stands() -> None:
    meanings: dict[str, dict[tuple[str, str | None, str], list[str]]] = {}
    for name, command in commands():
        for option in options(command):
            for spelling in option.opts:
                meanings.setdefault(spelling, {}).setdefault(meaning(option), []).append(name)
    twice = {spelling: found for spelling, found in meanings.items() if len(found) > 1}
    assert not twice


def test_every_option_says_its_default_or_that_it_is_required() -> None:
    silent = [
        f"{name} {option.opts[0]}"
        for name, command in commands()
        for option in options(command)
        if name != "veriglot"
        and not option.required
        and not re.search(r"Default: |Required, here or in", option.help or "")
    ]
    assert not silent


def test_no_command_has_too_many() -> None:
    counts = {name: len(options(command)) for name, command in commands()}
    assert counts.pop("detect") <= MOST_OF_DETECT
    assert {name: count for name, count in counts.items() if count > MOST_OF_A_COMMAND} == {}


def test_there_are_not_too_many_in_all() -> None:
    assert sum(len(options(command)) for _, command in commands()) <= MOST


def test_settings_have_help_and_no_option_of_their_command_has_their_name() -> None:
    for name, command in commands():
        flat = getattr(command.callback, "parameters", [])
        keys = [one.key for one in flat]
        assert len(set(keys)) == len(keys), name
        assert all(one.help.endswith(".") for one in flat if one.info.kind == "setting"), name


def test_a_settings_file_shows_lists_as_lists() -> None:
    text = commented_toml("veriglot serve", load_verb("serve").callback)
    assert {'# origins = ["..."]', '# keys = "FILE"'} <= {*text.splitlines()}


def test_the_help_of_map_names_every_part_that_it_takes() -> None:
    assert [part for part in _PARTS if not re.search(rf"\b{part}\b", _OPTIONS["columns"].help.partition(")")[0])] == []
