"""Talking to language models: one protocol, several clients, a cache that pays once, limits that stop cleanly."""

from veriglot.llm.client import Message, ModelError, Request, Settings, preset, presets
from veriglot.llm.output_parser import decode_answer
from veriglot.llm.pool import ask_all
from veriglot.llm.registry import Limits, connect

__all__ = [
    "Limits",
    "Message",
    "ModelError",
    "Request",
    "Settings",
    "ask_all",
    "connect",
    "decode_answer",
    "preset",
    "presets",
]
