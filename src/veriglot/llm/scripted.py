"""A client that replies by rules, deterministically: for tests, and to rehearse a study without a model."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError
from veriglot.llm.client import Client, ModelError, Reply, Request
from veriglot.records.settings import StrictRecord
from veriglot.signatures import digest, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = []

_EXCERPT = 120


class Rule(StrictRecord, omit_defaults=True):
    """A reply rule. The first rule that matches a request is used.

    Attributes:
        match: a regular expression that is searched in the whole input, line breaks included; None matches everything.
        model: a regular expression that must match the whole name of the model; None matches every model.
        reply: the reply; one of several is chosen by the seed (`seed` modulo their number; without a seed 0).
            `\\1` and `\\g<name>` stand for groups of `match`, and `{model}` and `{seed}` for those of the request.
        finish: why the reply ended.
        error: fail with this message instead.
        retryable: whether that error is retryable.
        delay: seconds before the reply.
    """

    match: str | None = None
    model: str | None = None
    reply: str | tuple[str, ...] = ()
    finish: str = "stop"
    error: str | None = None
    retryable: bool = False
    delay: float = 0.0

    def __post_init__(self) -> None:
        for expression in (self.match, self.model):
            try:
                re.compile(expression or "")
            except re.error as error:
                raise ValueError(f"{expression!r} is no regular expression: {error}") from error
        try:
            match = re.compile(f"{self.match or ''}|").match("")  # the empty alternative matches: all groups are known
            for reply in self.replies:
                match and match.expand(reply)
        except (re.error, IndexError) as error:
            raise ValueError(f"a reply names a group that `match` does not have: {error}") from error
        if (self.error is None) == (not self.replies):
            raise ValueError("a rule has either a reply or an error")

    @property
    def replies(self) -> tuple[str, ...]:
        """The possible replies."""
        return (self.reply,) if isinstance(self.reply, str) else self.reply


class Scripted(Client):
    """Replies by rules. Tokens are words between spaces, and `max_tokens` truncates after so many of them.

    Args:
        rules: a file (`.json` or `.toml`, with a list `rules`), or the rules themselves, as records or dictionaries.
        model: ignored; it exists so that all clients have the same arguments.

    Raises:
        InputError: the file cannot be read, or a rule is invalid; the message says which.
    """

    name = "scripted"

    def __init__(
        self,
        rules: str | Path | Sequence[Rule | dict[str, Any]],
        *,
        model: str | None = None,  # noqa: ARG002
    ) -> None:
        self._rules = _read(Path(rules)) if isinstance(rules, str | Path) else _checked(list(rules), None)
        self.signature = signature(
            client=self.name, rules=digest([msgspec.json.encode(self._rules, order="deterministic")])[:16]
        )

    def ask(self, request: Request) -> Reply:
        """Reply by the first matching rule.

        Raises:
            ModelError: no rule matches, or the rule says to fail.
        """
        for rule in self._rules:
            if rule.model is not None and not re.fullmatch(rule.model, request.model):
                continue
            match = re.search(rule.match or "", request.text, re.DOTALL)
            if match:
                return _follow(rule, match, request)
        text = " ".join(request.text.split())[:_EXCERPT]
        raise ModelError(
            f"No rule of the script fits the request to {request.model!r} that begins {text!r}.",
            "Add a rule without `match` at the end.",
        )


def _follow(rule: Rule, match: re.Match[str], request: Request) -> Reply:
    if rule.delay:
        time.sleep(rule.delay)
    if rule.error is not None:
        raise ModelError(rule.error, retryable=rule.retryable)
    template = rule.replies[(request.seed or 0) % len(rule.replies)]
    seed = "" if request.seed is None else str(request.seed)
    text = match.expand(template) if "\\" in template else template
    text = text.replace("{model}", request.model).replace("{seed}", seed)
    words, bound, finish = list(re.finditer(r"\S+", text)), request.settings.max_tokens, rule.finish
    if bound is not None and len(words) > bound:
        text, finish = text[: words[bound - 1].end()], "length"
    used = request.settings.given() | request.settings.extra
    return Reply(text, finish, len(request.text.split()), len(text.split()), model=request.model, settings=used)


def _read(path: Path) -> tuple[Rule, ...]:
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        data = path.read_bytes()
        content = msgspec.toml.decode(data) if kind == "TOML" else msgspec.json.decode(data)
    except OSError as error:
        raise InputError.of(error, path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The script is no {kind}: {error}", path=str(path)) from error
    return _checked(content["rules"] if isinstance(content, dict) and [*content] == ["rules"] else content, str(path))


def _checked(rules: Any, path: str | None) -> tuple[Rule, ...]:
    try:
        return msgspec.convert(rules, tuple[Rule, ...])
    except msgspec.ValidationError as error:
        raise InputError(f"The rules of the script cannot be followed: {error}", path=path) from error
