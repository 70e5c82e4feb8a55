"""Models behind an OpenAI-compatible server: chat and completion, at any address."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from veriglot.errors import UnknownNameError, UsageError
from veriglot.http.session import HttpError, Session
from veriglot.llm.client import Client, ModelError, Reply, Request, Token
from veriglot.plugins import read_package_data
from veriglot.records.settings import StrictRecord
from veriglot.signatures import digest, signature

__all__ = []


# Replies from the answers of OpenAI-compatible servers, in their actual forms.


_FINISH = {"content_filter": "filter", "eos": "stop", "stop_sequence": "stop", "max_tokens": "length", None: "unknown"}
_EXCERPT = 300


def reply_of(answer: Any, parameters: dict[str, Any]) -> Reply:
    """The first choice of an answer to either endpoint; `parameters` were sent besides the text."""
    if isinstance(answer, dict) and "error" in answer and not answer.get("choices"):
        error = answer["error"] if isinstance(answer["error"], dict) else {"message": answer["error"]}
        message, code = error.get("message"), error.get("code")
        status = code if isinstance(code, int) and not isinstance(code, bool) else None
        retryable = status is not None and (status == 429 or status >= 500)
        what = f"The server answered with an error: {str(message)[:_EXCERPT]}"
        raise ModelError(what, retryable=retryable, status=status)
    try:
        choice = answer["choices"][0]
        text, reasoning, refused = _text_of(choice)
        finish = choice.get("finish_reason")
        usage = answer.get("usage") or {}
        return Reply(
            text=text,
            finish="filter" if refused else _FINISH.get(finish, finish),
            tokens_in=usage.get("prompt_tokens"),
            tokens_out=usage.get("completion_tokens"),
            logprobs=_logprobs(choice.get("logprobs")),
            model=str(answer.get("model") or ""),
            settings=parameters,
            reasoning=reasoning,
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        shown = str(answer)[:_EXCERPT]
    raise ModelError(
        f"The server's answer is not that of an OpenAI-compatible API: {shown}", "Check the address, and any proxy."
    )


def _text_of(choice: dict[str, Any]) -> tuple[str, str | None, bool]:
    """Text, reasoning, and whether the provider refused."""
    if "message" not in choice:
        return _whole(choice["text"]), None, False
    message = choice["message"]
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):  # in parts, from some gateways
        content = "".join(part.get("text", "") for part in content)
    reasoning = message.get("reasoning_content") or message.get("reasoning") or None
    if content is None and refusal:
        return _whole(refusal), reasoning, True
    return _whole(content or ""), reasoning, False


def _whole(text: str) -> str:
    """The text with lone surrogates, from truncation, replaced by U+FFFD: files cannot store them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _logprobs(given: Any) -> tuple[Token, ...] | None:
    if not given:
        return None
    if given.get("content") is not None:
        return tuple(
            Token(_whole(token["token"]), token.get("logprob"), _alternatives(token.get("top_logprobs")))
            for token in given["content"]
        )
    if given.get("tokens") is not None:
        alternatives = given.get("top_logprobs") or [None] * len(given["tokens"])
        rows = zip(given["tokens"], given["token_logprobs"], alternatives, strict=True)
        return tuple(Token(_whole(text), value, _alternatives(other)) for text, value, other in rows)
    return None


def _alternatives(given: Any) -> tuple[tuple[str, float], ...]:
    """The most likely tokens at one position: a list of objects (chat), or a mapping (completion)."""
    listed = given.items() if isinstance(given, dict) else ((token["token"], token["logprob"]) for token in given or ())
    return tuple((_whole(text), float(value)) for text, value in listed)


_FATAL = {*range(300, 400), 401, 402, 404, 405}  # not 403, which moderation also uses for single requests
_NO_SCHEMA = {400, 404, 415, 422, 501}  # statuses for an unknown response_format


class _Server(StrictRecord):
    about: str
    names: dict[str, str | None]


class OpenAI(Client):
    """A client of an OpenAI-compatible server: messages go to `chat/completions`, a prompt to `completions`.

    Each request has an `Idempotency-Key`, so that a gateway that supports it bills a call once, even if this process is
    killed between the call and storing the reply.

    Args:
        base_url: its address, with the version: `http://127.0.0.1:8000/v1`.
        model: ignored, because requests name their model; it exists so that all clients have the same arguments.
        key: the environment variable with the API key; None for servers without keys.
        key_header: the header for the key.
        server: the kind of server, from `servers.json`: which settings it supports, and their names there.
        identity: replaces the address in signatures and in the cache, for a server whose address changes.
        revision: of the models, for signatures and cache: change it when a new model gets an old name.
        headers: sent with every request.
        timeout: seconds for one attempt.
        retries, rate, longest_wait, backoff: as for `http.Session`.

    Raises:
        UsageError: invalid options, or a variable that is not set.
        UnknownNameError: an unknown kind of server.
        MissingExtraError: the extra `llm` is not installed.
    """

    name = "openai"

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,  # noqa: ARG002
        key: str | None = None,
        key_header: str = "Authorization",
        server: str = "any",
        identity: str | None = None,
        revision: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 600.0,
        retries: int = 6,
        rate: float | None = None,
        longest_wait: float = 120.0,
        backoff: float = 0.5,
    ) -> None:
        self._server_name = server
        self._names = _server(server).names
        self._session = Session(
            base_url,
            headers=headers,
            secrets={key_header: key} if key else None,
            timeout=timeout,
            retries=retries,
            rate=rate,
            longest_wait=longest_wait,
            backoff=backoff,
        )
        self.signature = signature(
            client=self.name, server=identity or self._session.base_url, kind=server, revision=revision
        )
        self._schemas_refused = set[str]()

    def close(self) -> None:
        """Close the connections; waits end."""
        self._session.close()

    def ask(self, request: Request) -> Reply:
        """Send a request; if the server does not support the schema, it is sent again with the schema as text.

        Raises:
            ModelError: no reply. Statuses 3xx, 401, 402, 404 and 405 are fatal, and so is an address where no server
                can be reached (such as one with an untrusted certificate), because every other request would fail too.
            UsageError: a setting that the server does not support.
        """
        if request.schema is None:
            return self._send(request)
        schema = digest([msgspec.json.encode(request.schema, order="deterministic")])
        refused: ModelError | None = None
        if schema not in self._schemas_refused:
            try:
                return self._send(request)
            except ModelError as error:
                if error.status not in _NO_SCHEMA:
                    raise
                refused = error
        try:
            reply = self._send(request.in_words())
        except ModelError as error:
            raise refused or error from None  # the schema was not the problem
        self._schemas_refused.add(schema)
        return msgspec.structs.replace(reply, settings={**reply.settings, "schema": "asked for in words"})

    def _send(self, asked: Request) -> Reply:
        path = "completions" if asked.prompt is not None else "chat/completions"
        parameters = self._parameters(asked)
        text = {"prompt": asked.prompt} if asked.prompt is not None else {"messages": asked.messages}
        key = asked.key(self.signature)
        try:
            answer = self._session.post(
                path, {"model": asked.model, **text, **parameters}, headers={"Idempotency-Key": key}
            )
        except HttpError as error:
            raise ModelError(
                error.message,
                error.remedy,
                retryable=error.retryable,
                fatal=error.status in _FATAL or (error.trouble == "connection" and not error.retryable),
                status=error.status,
            ) from None
        return reply_of(answer.json(), parameters)

    def _parameters(self, request: Request) -> dict[str, Any]:
        sent: dict[str, Any] = {}
        for name, value in request.settings.given().items():
            if name == "do_sample":
                continue
            known = self._names.get(name, name)
            if known is None:
                raise UsageError(
                    f"A server of the kind {self._server_name!r} has no {name}: it would ignore or refuse it.",
                    f"Leave {name} out, or set it on the server; the kinds are {', '.join(_servers())}.",
                )
            sent[known] = list(value) if name == "stop" else value
        if request.settings.do_sample is False:
            sent["temperature"] = 0.0
        if request.seed is not None:
            sent["seed"] = request.seed
        if request.logprobs:
            sent["logprobs"] = True if request.prompt is None else max(1, request.alternatives)
            if request.alternatives and request.prompt is None:
                sent["top_logprobs"] = request.alternatives
        if request.schema is not None:
            wanted = {"name": "answer", "strict": True, "schema": request.schema}
            sent["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return sent | request.settings.extra


@cache
def _servers() -> dict[str, _Server]:
    return read_package_data("veriglot.llm", "servers.json", dict[str, _Server])


def _server(name: str) -> _Server:
    try:
        return _servers()[name]
    except KeyError:
        raise UnknownNameError("kind of server", name, _servers()) from None
