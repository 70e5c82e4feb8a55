"""The options by which commands say which model to ask, how it generates and what may be spent."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veriglot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.llm import Client, Settings

__all__ = [
    "BaseUrl",
    "Cache",
    "ClientName",
    "ClientOption",
    "Connection",
    "Jobs",
    "Key",
    "MaxCalls",
    "MaxTokensSpent",
    "Preset",
    "Script",
    "Setting",
    "settings_of",
]

ClientName = Annotated[
    str,
    typer.Option(
        "--client",
        metavar="NAME",
        show_default=False,
        help="How the model is reached: openai (any server with OpenAI's API), transformers (in this process) or"
        " scripted (replies by rules, to rehearse). Default: openai.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="Address of the server, with the version: http://127.0.0.1:8000/v1."
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="VARIABLE",
        help="Name of the environment variable that holds the server's key; the key itself is never written down."
        " Default: no key.",
    ),
]
Script = Annotated[
    str | None,
    typer.Option("--script", metavar="FILE", help="Rules of the scripted client, as TOML or JSON."),
]
ClientOption = Annotated[
    list[str] | None,
    typer.Option(
        "--client-option",
        metavar="NAME=VALUE",
        help="A further option of the client, its value as JSON or text, such as rate=2 (requests a second) or"
        " timeout=120 (seconds); repeat it for several.",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Generation settings by name, such as mfava-llama-3. Default: those of the server.",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A generation setting, its value as JSON or text, over those of the preset: max_tokens=256,"
        " temperature=0.6, top_p=0.9, top_k, min_p, repetition_penalty, stop; repeat it for several.",
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="Folder of finished calls, which are never paid for twice; several runs may share one."
        " Default: OUT.calls.",
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", metavar="N", min=0, help="Stop before the call after N paid ones. Default: no bound."),
]
MaxTokensSpent = Annotated[
    int | None,
    typer.Option(
        "--max-tokens-spent",
        metavar="N",
        min=0,
        help="Stop before prompts and replies of this run pass N tokens. Default: no bound.",
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", min=1, show_default=False, help="Calls at the same time. Default: 8.")
]


@dataclass(frozen=True)
class Connection:
    """Whom to ask, as the command line says it."""

    client: str = "openai"
    base_url: str | None = None
    key: str | None = None
    script: str | None = None
    options: Sequence[str] = ()
    cache: str | None = None
    calls: int | None = None
    tokens: int | None = None
    jobs: int = 8
    _given: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        named = {"base_url": self.base_url, "key": self.key, "rules": self.script}
        self._given.update({name: value for name, value in named.items() if value is not None})
        self._given.update(_pairs(self.options, "--client-option"))
        if self.client == "openai" and "base_url" not in self._given:
            raise UsageError("Which server is to be asked?", remedy="Add --base-url http://HOST:PORT/v1.")
        if self.client == "scripted" and "rules" not in self._given:
            raise UsageError("The scripted client needs its rules.", remedy="Add --script FILE.")

    @contextmanager
    def open(self, output: Path, models: Iterable[str], revision: str | None = None) -> Iterator[Client]:
        """The client, with the cache that belongs to `output` where none was named.

        Args:
            output: what is made.
            models: the names of all models that are going to be asked.
            revision: of the models; calls of another one are not used again.

        Raises:
            UsageError: several models of a client that runs a single one, or an option that is missing.
            UnknownNameError: no such client or option.
            MissingExtraError: its packages are not installed.
        """
        from veriglot.llm import Limits, connect

        limits = None
        if self.calls is not None or self.tokens is not None:
            limits = Limits(self.calls, self.tokens)
        output = output.resolve()  # `.` has no name
        folder = self.cache or str(output.with_name(output.name + ".calls"))
        client = connect(self.client, cache=folder, limits=limits, **self._options_for(models, revision))
        try:
            yield client
        finally:
            client.close()

    def _options_for(self, models: Iterable[str], revision: str | None) -> dict[str, Any]:
        options = dict(self._given)
        if self.client == "transformers":
            first, *others = dict.fromkeys(models)
            if others:
                raise UsageError(
                    f"The client transformers runs one model, and {first!r} and {others[0]!r} are named.",
                    remedy="Give the command once for each.",
                )
            options.setdefault("model", first)
        if revision is not None and self.client != "scripted":
            options.setdefault("revision", revision)
        return options


def settings_of(preset: str | None, given: Sequence[str]) -> Settings:
    """Generation settings: those given, over those of the preset.

    Raises:
        UnknownNameError: no such preset or setting; the error suggests the nearest.
        UsageError: a value out of range, or of the wrong kind.
    """
    import msgspec

    from veriglot.errors import UnknownNameError
    from veriglot.llm import Settings
    from veriglot.llm import preset as preset_settings

    values = _pairs(given, "--set")
    for name in values:
        if name not in Settings.__struct_fields__:
            raise UnknownNameError("generation setting", name, Settings.__struct_fields__)
    if isinstance(values.get("stop"), str):
        values["stop"] = [values["stop"]]
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"A generation setting cannot be used: {error}.") from error
    return settings if preset is None else settings.over(preset_settings(preset))


def _pairs(given: Sequence[str], option: str) -> dict[str, Any]:
    """`NAME=VALUE` as a mapping; values that are JSON are read as such, all others are text."""
    import msgspec

    pairs: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {word!r} is not of the form NAME=VALUE.")
        try:
            pairs[name.strip().replace("-", "_")] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            pairs[name.strip().replace("-", "_")] = text
    return pairs
