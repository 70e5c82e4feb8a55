"""What OpenAI-compatible servers answer, in the shapes that they really have, as a reply."""

from __future__ import annotations

from typing import Any

from veriglot.llm.errors import ModelError
from veriglot.llm.records import Reply, Token

__all__ = ["reply_of"]

_FINISH = {"content_filter": "filter", "eos": "stop", "stop_sequence": "stop", "max_tokens": "length", None: "unknown"}
_EXCERPT = 300


def reply_of(answer: Any, parameters: dict[str, Any]) -> Reply:
    """The first choice of an answer, of `chat/completions` or `completions`.

    Args:
        answer: the decoded JSON.
        parameters: what was sent beside the text, kept in the reply.

    Raises:
        ModelError: an error in the clothes of a success, or a shape that is none of theirs.
    """
    if isinstance(answer, dict) and "error" in answer and not answer.get("choices"):
        raise _error_inside(answer["error"])
    try:
        choice = answer["choices"][0]
        text, reasoning, refused = _text_of(choice)
        finish = choice.get("finish_reason")
        usage = answer.get("usage") or {}
        return Reply(
            text=text,
            finish="filter" if refused else _FINISH.get(finish, finish),
            tokens_in=_count(usage.get("prompt_tokens")),
            tokens_out=_count(usage.get("completion_tokens")),
            logprobs=_logprobs(choice.get("logprobs")),
            model=str(answer.get("model") or ""),
            settings=parameters,
            reasoning=reasoning,
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        shown = str(answer)[:_EXCERPT]
    raise ModelError(
        f"The server's answer is not that of an OpenAI-compatible API: {shown}",
        remedy="Check the address, and what stands between the server and here.",
    )


def _text_of(choice: dict[str, Any]) -> tuple[str, str | None, bool]:
    """Text, reasoning, and whether the provider refused."""
    if "message" not in choice:
        return _whole(choice["text"]), None, False
    message = choice["message"]
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):  # in parts, as some gateways do
        content = "".join(part.get("text", "") for part in content)
    reasoning = message.get("reasoning_content") or message.get("reasoning") or None
    if content is None and refusal:
        return _whole(refusal), reasoning, True
    return _whole(content or ""), reasoning, False


def _whole(text: str) -> str:
    """The text with half surrogate pairs, which a cut can leave, as U+FFFD: no file can hold them."""
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
        others = given.get("top_logprobs") or [None] * len(given["tokens"])
        rows = zip(given["tokens"], given["token_logprobs"], others, strict=True)
        return tuple(Token(_whole(text), value, _alternatives(other)) for text, value, other in rows)
    return None


def _alternatives(given: Any) -> tuple[tuple[str, float], ...]:
    """The likeliest tokens of one place: a list of objects as of chat, or a mapping as of completion."""
    listed = given.items() if isinstance(given, dict) else ((one["token"], one["logprob"]) for one in given or ())
    return tuple((_whole(text), float(value)) for text, value in listed)


def _count(value: Any) -> int | None:
    return int(value) if value is not None else None


def _error_inside(error: Any) -> ModelError:
    message = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and not isinstance(code, bool) else None
    retryable = status is not None and (status == 429 or status >= 500)
    return ModelError(
        f"The server answered with an error: {str(message)[:_EXCERPT]}", retryable=retryable, status=status
    )
