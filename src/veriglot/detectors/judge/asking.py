"""Whom a judge asks and how: the options of every judge, and a client that no failure of one request stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import UsageError, VeriglotError
from veriglot.llm import Limits, ModelError, Reply, Request, Settings, ask_all, connect
from veriglot.llm import preset as preset_settings
from veriglot.llm.client import Closing
from veriglot.llm.records import canonical
from veriglot.provenance import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from veriglot.llm import Client

__all__ = ["Asked", "Asking", "ask"]

_LOCAL = "transformers"


@dataclass(frozen=True, kw_only=True)
class Asking:
    """The options that say which model judges, how it generates and what may be spent.

    Attributes:
        model: the model, as its server names it; with the client `transformers` its folder or its name on the hub.
        client: `openai` (any server with OpenAI's API), `transformers` (in this process), `scripted` (replies by
            rules), the name of another package's client, or a client that was made before.
        url: address of the server, with the version, such as `http://127.0.0.1:8000/v1`.
        key: name of the environment variable that holds the server's key; None for no key.
        rules: file of the client `scripted`.
        client_options: further options of the client, such as `{"rate": 2}`; as a mapping, or as a JSON text of one.
        cache: folder of finished calls, which are never paid for twice; None for no cache.
        max_calls: stop before the call after so many paid ones; None for no bound.
        max_tokens_spent: stop before prompts and replies pass so many tokens; None for no bound.
        jobs: calls at the same time.
        samples: how many times each question is asked, with seeds one after the other. From 2 on confidences are the
            shares of the opinions.
        probabilities: ask for the log probabilities of the tokens, and take confidences from those of the labels.
        seed: of the first call; None leaves it to the server, where one sample is taken.
        temperature: at least 0, or `server` to leave it to the server; None for 0 with one sample, and for 1 with
            several, whose shares then estimate the model's own probability.
        max_tokens: the most tokens of a reply; None for the prompt's own bound.
        settings: further generation settings, such as `{"top_p": 1.0}`, over those of the preset; likewise.
        preset: generation settings by name, under all others.
        schema: whether the form of the answer is sent as a JSON schema too, besides being asked for in words.

    Raises:
        UsageError: no model, or options that exclude each other or are out of range.
    """

    model: str | None = None
    client: str | Client = "openai"
    url: str | None = None
    key: str | None = None
    rules: str | None = None
    client_options: Mapping[str, Any] | str = field(default_factory=dict)
    cache: str | None = None
    max_calls: int | None = None
    max_tokens_spent: int | None = None
    jobs: int = 8
    samples: int = 1
    probabilities: bool = False
    seed: int | None = None
    temperature: float | str | None = None
    max_tokens: int | None = None
    settings: Mapping[str, Any] | str = field(default_factory=dict)
    preset: str | None = None
    schema: bool = True

    def __post_init__(self) -> None:
        if not self.model and self.client != "scripted":
            raise UsageError("Which model is to judge?", remedy="Set the option model, as its server names it.")
        if self.samples < 1 or self.jobs < 1:
            raise UsageError("A judge takes at least 1 sample, and asks at least 1 at a time.")
        if isinstance(self.temperature, str) and self.temperature != "server":
            raise UsageError(f"The temperature is a number or 'server', not {self.temperature!r}.")
        if self.samples > 1 and self.generation(1).temperature == 0:
            raise UsageError(
                f"{self.samples} samples at temperature 0 are the same one.", remedy="Leave the temperature out."
            )
        if self.client == "openai" and self.url is None and "base_url" not in self._client_options:
            raise UsageError("Which server is to be asked?", remedy="Set the option url to http://HOST:PORT/v1.")
        if self.client == "scripted" and self.rules is None:
            raise UsageError("The scripted client needs its rules.", remedy="Set the option rules to their file.")

    @property
    def model_name(self) -> str:
        """The model as requests name it."""
        return str(self.model or "scripted")

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """One per sample."""
        if self.samples == 1:
            return (self.seed,)
        return tuple((self.seed or 0) + n for n in range(self.samples))

    @property
    def _client_options(self) -> dict[str, Any]:
        return _mapping("client_options", self.client_options)

    @property
    def _settings(self) -> dict[str, Any]:
        return _mapping("settings", self.settings)

    def connected(self, limits: Limits) -> Client:
        """The client, with its cache.

        Args:
            limits: count what it spends, and stop it; a client that was made before keeps its own.

        Raises:
            UsageError: options that it does not have.
            MissingExtraError: its packages are not installed.
        """
        if not isinstance(self.client, str):
            return self.client
        given = {"base_url": self.url, "key": self.key, "rules": self.rules}
        options = {name: value for name, value in given.items() if value is not None} | self._client_options
        if self.client == _LOCAL:
            options.setdefault("model", self.model)
        return connect(self.client, cache=self.cache, limits=limits, **options)

    def generation(self, bound: int) -> Settings:
        """How the model generates.

        Args:
            bound: the most tokens of a reply where the user set none.

        Raises:
            UsageError: a setting that there is none of, or out of range.
        """
        own: dict[str, Any] = {"max_tokens": self.max_tokens, "temperature": self._temperature()}
        given = {name: value for name, value in own.items() if value is not None} | self._settings
        try:
            settings = msgspec.convert(given, Settings)
        except msgspec.ValidationError as error:
            raise UsageError(f"A generation setting cannot be used: {error}.") from error
        if self.preset is not None:
            settings = settings.over(preset_settings(self.preset))
        return settings.over(Settings(max_tokens=bound))

    def _temperature(self) -> float | None:
        if isinstance(self.temperature, str) or "temperature" in self._settings:
            return None
        if self.temperature is not None:
            return self.temperature
        if self.preset is not None and preset_settings(self.preset).temperature is not None:
            return None
        return 0.0 if self.samples == 1 else 1.0

    def parts(self, client: Client, bound: int) -> dict[str, object]:
        """What of this the signature of a judge holds."""
        return {
            "model": self.model_name,
            "client": digest([client.signature])[:12],
            "settings": canonical(self.generation(bound)).decode(),
            "samples": self.samples if self.samples > 1 else None,
            "seed": self.seeds[0],
            "probabilities": "tokens" if self.probabilities else None,
            "schema": None if self.schema else "words",
        }


def _mapping(name: str, given: Mapping[str, Any] | str) -> dict[str, Any]:
    if not isinstance(given, str):
        return dict(given)
    try:
        return msgspec.json.decode(given, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(f"The option {name} is no JSON object: {given!r}.") from error


class Asked(msgspec.Struct, frozen=True):
    """What became of a request: a reply, or why there is none."""

    reply: Reply | None = None
    error: VeriglotError | None = None


class _Steady(Closing):
    """A client whose every failure is that of one request, unless all others would meet it as well."""

    def __init__(self, client: Client) -> None:
        self.name, self.signature = client.name, client.signature
        self._client = client

    def ask(self, request: Request) -> Reply:
        try:
            return self._client.ask(request)
        except ModelError:
            raise
        except VeriglotError as error:
            raise ModelError(error.message, remedy=error.remedy) from error
        except Exception as error:  # other packages' clients raise what they like
            raise ModelError(f"The client {self.name} raised {type(error).__name__}: {error}") from error


def ask(client: Client, requests: Sequence[Request], jobs: int) -> list[Asked]:
    """Ask all, several at a time; one result per request, in order, whatever happens.

    Where every further request would fail likewise (a refused key, a spending limit, a server that is down), those
    without an answer have that error.
    """
    return list(_asked(client, requests, jobs))


def _asked(client: Client, requests: Sequence[Request], jobs: int) -> Iterator[Asked]:
    left = len(requests)
    try:
        for answer in ask_all(_Steady(client), requests, jobs=max(1, min(jobs, left))):
            left -= 1
            yield Asked(answer.reply, answer.error)
    except ModelError as error:
        yield from [Asked(error=error)] * left
