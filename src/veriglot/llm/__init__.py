"""Talking to language models: one protocol, several clients, a cache that pays once, limits that stop cleanly."""

from veriglot.llm.asking import Answer, ask_all
from veriglot.llm.cached import Cached
from veriglot.llm.client import Client, request_key
from veriglot.llm.clients import CLIENTS, connect
from veriglot.llm.errors import AnswerError, CacheError, ModelError, SpendingLimitError
from veriglot.llm.estimates import estimate_request, estimate_tokens
from veriglot.llm.limits import Limited, Limits, Spent
from veriglot.llm.presets import Preset, preset, presets
from veriglot.llm.records import Message, Reply, Request, Settings, Token
from veriglot.llm.schemas import decode_answer, schema_of

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
    "Preset",
    "Reply",
    "Request",
    "Settings",
    "SpendingLimitError",
    "Spent",
    "Token",
    "ask_all",
    "connect",
    "decode_answer",
    "estimate_request",
    "estimate_tokens",
    "preset",
    "presets",
    "request_key",
    "schema_of",
]
