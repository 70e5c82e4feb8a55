"""Talking to language models: one protocol, several clients, a cache that pays once, limits that stop cleanly."""

from veriglot.llm.cache import Cached
from veriglot.llm.client import (
    AnswerError,
    CacheError,
    Client,
    Message,
    ModelError,
    Reply,
    Request,
    Settings,
    SpendingLimitError,
    Token,
    request_key,
)
from veriglot.llm.limits import Limited, Limits, estimate_request, estimate_tokens, usage_of
from veriglot.llm.output_parser import decode_answer, schema_of
from veriglot.llm.pool import Answer, ask_all
from veriglot.llm.presets import preset, presets
from veriglot.llm.registry import CLIENTS, connect
from veriglot.storage.checkpoint import Usage

__all__ = [
    "CLIENTS",
    "Answer",
    "AnswerError",
    "CacheError",
    "Cached",
    "Client",
    "Limited",
    "Limits",
    "Message",
    "ModelError",
    "Reply",
    "Request",
    "Settings",
    "SpendingLimitError",
    "Token",
    "Usage",
    "ask_all",
    "connect",
    "decode_answer",
    "estimate_request",
    "estimate_tokens",
    "preset",
    "presets",
    "request_key",
    "schema_of",
    "usage_of",
]
