"""Settings of a command that only its file gives, as tests write them: like options, and laid into a file here."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from veriglot import cli
from veriglot.cli.app import VERBS, load_verb


def main(words: list[Any]) -> int:
    """Run a command in this process; see `with_settings`."""
    return cli.main(with_settings(words))


def with_settings(words: list[Any]) -> list[str]:
    """The words of a command, with those that are settings (`--max-calls 3`) in the file of a --config.

    A flag is true (`--no-filters`: false), a table takes NAME=VALUE, a list takes its items one by one, as options do.
    """
    texts = [str(word) for word in words]
    settings = {f"--{one.key.replace('_', '-')}": one for one in _parameters(texts) if one.info.kind == "setting"}
    rest: list[str] = []
    values: dict[str, Any] = {}
    waiting = iter(texts)
    for word in waiting:
        one = settings.get(word.replace("--no-", "--", 1))
        if one is None:
            rest.append(word)
        elif one.type is bool:
            values[one.key] = not word.startswith("--no-")
        elif isinstance(one.default, dict):
            name, _, value = next(waiting).partition("=")
            values.setdefault(one.key, {})[name] = _value(value)
        elif "tuple[int" in str(one.type):
            text = next(waiting)
            values[one.key] = list(map(_value, text.split(","))) if "," in text else text
        elif one.repeated:
            values.setdefault(one.key, []).append(next(waiting))
        else:
            numeric = "int" in str(one.type) or "float" in str(one.type)
            values[one.key] = _value(next(waiting)) if numeric else next(waiting)
    if not values:
        return rest
    path = Path(tempfile.mkdtemp()) / "settings.toml"
    tables = {name: value for name, value in values.items() if isinstance(value, dict)}
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if name not in tables]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    path.write_text("\n".join(lines), "utf-8")
    return [*rest, "--config", str(path)]


def _parameters(words: list[str]) -> list[Any]:
    command = load_verb(words[0]) if words and words[0] in VERBS else None
    if command is not None and hasattr(command, "commands"):
        command = command.commands.get(words[1])
    return list(getattr(getattr(command, "callback", None), "parameters", []))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
