"""The likeliest tokens at each place: asked for, read as servers write them, and given by a local model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from misbehaving import ModelServer

from veriglot.llm import client as llm
from veriglot.llm.client import Reply, Token
from veriglot.llm.openai import reply_of
from veriglot.llm.registry import connect

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SAID = llm.Message("user", "Yes or no?")


@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        (llm.Request("m", (SAID,), logprobs=True, alternatives=5), {"logprobs": True, "top_logprobs": 5}),
        (llm.Request("m", (SAID,), logprobs=True), {"logprobs": True}),
        (llm.Request("m", prompt="Yes", logprobs=True, alternatives=5), {"logprobs": 5}),
    ],
)
def test_they_are_asked_for_as_each_endpoint_has_it(request_: llm.Request, sent: dict[str, Any]) -> None:
    with ModelServer() as server:
        connect("openai", base_url=server.base_url).ask(request_)
        body = server.arrivals[0].body
    assert {name: value for name, value in body.items() if "logprobs" in name} == sent


def test_those_of_a_chat_are_read() -> None:
    top = [{"token": "yes", "logprob": -0.1, "bytes": [1]}, {"token": "no", "logprob": -2.5}]
    tokens = [{"token": "yes", "logprob": -0.1, "top_logprobs": top}, {"token": ".", "logprob": None}]
    choice = {"message": {"content": "yes."}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    found = reply_of({"choices": [choice]}, {}).logprobs
    assert found == (Token("yes", -0.1, (("yes", -0.1), ("no", -2.5))), Token(".", None))


def test_those_of_a_completion_are_read() -> None:
    given = {"tokens": ["yes", "."], "token_logprobs": [-0.1, -0.2], "top_logprobs": [{"yes": -0.1, "no": -2.5}, None]}
    found = reply_of({"choices": [{"text": "yes.", "logprobs": given}]}, {}).logprobs
    assert found == (Token("yes", -0.1, (("yes", -0.1), ("no", -2.5))), Token(".", -0.2))


def test_a_kept_reply_of_before_is_read_and_requests_without_them_are_the_same_calls() -> None:
    old = b'{"text":"yes","logprobs":[["yes",-0.1]]}'
    assert msgspec.json.decode(old, type=Reply).logprobs == (Token("yes", -0.1),)
    assert b"alternatives" not in msgspec.json.encode(llm.Request("m", (SAID,), logprobs=True))


def test_a_local_model_gives_the_likeliest_first(tmp_path: Path) -> None:
    for package in ("transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `local`: pip install 'veriglot[local]'")
    from tiny_model import write_model

    folder = str(write_model(tmp_path))
    settings = llm.Settings(max_tokens=4, temperature=0.0)
    request = llm.Request(folder, prompt="The ", settings=settings, logprobs=True, alternatives=3)
    reply = connect("transformers", model=folder, device="cpu").ask(request)
    for token in reply.logprobs or ():
        values = [value for _, value in token.alternatives]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)
        assert token.alternatives[0] == (token.text, token.logprob)  # greedy takes the likeliest
        assert sum(math.exp(value) for value in values) <= 1
