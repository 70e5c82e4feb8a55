"""The client for OpenAI-compatible servers, against a real server: what is sent, what comes back, what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from misbehaving import Arrival, Faults, FaultyServer, ModelServer

from veriglot.errors import UnknownNameError, UsageError
from veriglot.llm import client as llm
from veriglot.llm import registry
from veriglot.llm.client import Client, Token, schema_of
from veriglot.llm.openai import reply_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = llm.Settings(
    max_tokens=9, temperature=0.6, top_p=0.9, top_k=20, min_p=0.05, repetition_penalty=1.05, frequency_penalty=0.5,
    presence_penalty=-0.5, stop=("\n", "###"), extra={"cache_prompt": False},
)  # fmt: skip
CHAT = llm.Request("m", (llm.Message("system", "Be short."), llm.Message("user", "Wer baute den Turm?")), seed=7)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(models=["m", "n"]) as running:
        yield running


def connect(server: FaultyServer, /, **options: Any) -> Client:
    return registry.connect("openai", base_url=server.base_url, **{"timeout": 5.0, "backoff": 0.01, **options})


def test_chat_sends_messages_seed_and_every_setting(server: ModelServer) -> None:
    reply = connect(server).ask(msgspec.structs.replace(CHAT, settings=ALL))
    body = server.arrivals[0].body
    assert server.arrivals[0].path == "/v1/chat/completions"
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Wer baute den Turm?"}],
        "seed": 7, "max_tokens": 9, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05,
        "repetition_penalty": 1.05, "frequency_penalty": 0.5, "presence_penalty": -0.5, "stop": ["\n", "###"],
        "cache_prompt": False,
    }  # fmt: skip
    assert reply.settings == {name: value for name, value in body.items() if name not in ("model", "messages")}


def test_nothing_is_sent_that_was_not_asked_for(server: ModelServer) -> None:
    connect(server).ask(llm.Request("m", (llm.Message("user", "Hi"),)))
    assert server.arrivals[0].body == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def test_completion_sends_the_prompt_as_it_is(server: ModelServer) -> None:
    request = llm.Request("m", prompt="Der Turm ", settings=llm.Settings(max_tokens=2), logprobs=True)
    reply = connect(server).ask(request)
    assert server.arrivals[0].path == "/v1/completions"
    assert server.arrivals[0].body == {"model": "m", "prompt": "Der Turm ", "max_tokens": 2, "logprobs": 1}
    assert "".join(token.text for token in reply.logprobs or ()) == reply.text


def test_a_reply_says_what_the_server_said() -> None:
    with ModelServer(answer=lambda _: "one two three four") as server:
        request = msgspec.structs.replace(CHAT, settings=llm.Settings(max_tokens=3), logprobs=True)
        reply = connect(server).ask(request)
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out, reply.model) == (
        "one two three",
        "length",
        6,
        3,
        "m",
    )
    assert reply.logprobs == (Token("one", 0.0), Token(" two", -0.25), Token(" three", -0.5))


@pytest.mark.parametrize(
    ("kind", "name"), [("llama.cpp", "repeat_penalty"), ("vllm", "repetition_penalty"), ("any", "repetition_penalty")]
)
def test_each_kind_of_server_has_its_names(server: ModelServer, kind: str, name: str) -> None:
    request = msgspec.structs.replace(CHAT, settings=llm.Settings(repetition_penalty=1.1))
    connect(server, server=kind).ask(request)
    assert server.arrivals[0].body[name] == 1.1


@pytest.mark.parametrize(("kind", "setting"), [("ollama", {"top_k": 20}), ("openai", {"min_p": 0.1})])
def test_a_setting_that_would_be_ignored_is_refused(server: ModelServer, kind: str, setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(setting))):
        connect(server, server=kind).ask(msgspec.structs.replace(CHAT, settings=llm.Settings(**setting)))
    assert not server.arrivals


def test_greedy_by_name_is_temperature_zero(server: ModelServer) -> None:
    connect(server).ask(msgspec.structs.replace(CHAT, settings=llm.Settings(do_sample=False)))
    assert server.arrivals[0].body["temperature"] == 0.0


def test_each_call_has_its_idempotency_key(server: ModelServer) -> None:
    client = connect(server)
    for seed in (1, 1, 2):
        client.ask(msgspec.structs.replace(CHAT, seed=seed))
    keys = [arrival.headers["idempotency-key"] for arrival in server.arrivals]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0] == msgspec.structs.replace(CHAT, seed=1).key(client.signature)


class Person(msgspec.Struct):
    name: str
    born: int
    places: list[str]


def test_a_schema_goes_to_the_server_that_takes_it(server: ModelServer) -> None:
    reply = connect(server).ask(msgspec.structs.replace(CHAT, schema=schema_of(Person)))
    sent = server.arrivals[0].body["response_format"]["json_schema"]["schema"]
    assert sent["required"] == ["name", "born", "places"]
    assert sent["additionalProperties"] is False
    assert reply.decode(Person) == Person("text", 1, ["text"])


def test_a_schema_is_put_into_words_for_a_server_that_does_not() -> None:
    with ModelServer(
        schemas=False, answer=lambda _: 'Here: ```json\n{"name": "A", "born": 1, "places": []}\n```'
    ) as server:
        client = connect(server)
        for seed in (1, 2):
            reply = client.ask(msgspec.structs.replace(CHAT, seed=seed, schema=schema_of(Person)))
            assert reply.decode(Person) == Person("A", 1, [])
            assert reply.settings["schema"] == "asked for in words"
    assert ["response_format" in arrival.body for arrival in server.arrivals] == [True, False, False]
    assert '"born"' in server.arrivals[1].body["messages"][-1]["content"]
    assert server.arrivals[1].body["messages"][0]["content"] == "Be short."


def test_an_error_that_is_not_the_schemas_is_told_as_it_was() -> None:
    class Full(FaultyServer):
        def handle(self, arrival: Arrival) -> tuple[int, Any]:
            return 400, {"error": {"message": "context length exceeded"}}

    with Full() as server, pytest.raises(llm.ModelError, match="context length") as caught:
        connect(server).ask(msgspec.structs.replace(CHAT, schema={"type": "object"}))
    assert not caught.value.fatal
    assert not caught.value.retryable
    assert len(server.arrivals) == 2


def test_what_is_wrong_for_all_requests_is_fatal(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(llm.ModelError, match="no such model") as caught:
        connect(server).ask(msgspec.structs.replace(CHAT, model="o"))
    assert caught.value.fatal
    monkeypatch.setenv("TEST_KEY", "sk-0123456789abcdef")
    with ModelServer(key="sk-fedcba9876543210") as locked:
        for options in ({}, {"key": "TEST_KEY"}):
            with pytest.raises(llm.ModelError, match="401") as caught:
                connect(locked, **options).ask(CHAT)
            assert caught.value.fatal
            assert "environment variable" in caught.value.remedy


def test_an_address_that_leads_nowhere_is_fatal_and_a_refusal_of_one_text_is_not(server: ModelServer) -> None:
    client = registry.connect("openai", base_url=server.base_url.replace("http:", "https:"), backoff=0.01)
    with pytest.raises(llm.ModelError, match="SSL") as caught:
        client.ask(CHAT)
    assert caught.value.fatal
    assert "attempts" not in str(caught.value)

    class Saying(FaultyServer):
        def handle(self, arrival: Arrival) -> tuple[int, Any]:
            return arrival.body["seed"], {"error": {"message": "no"}}

    with Saying() as other:
        for status, fatal in ((307, True), (405, True), (400, False), (403, False)):
            with pytest.raises(llm.ModelError) as caught:
                connect(other).ask(msgspec.structs.replace(CHAT, seed=status))
            assert (caught.value.status, caught.value.fatal) == (status, fatal)


def test_faults_pass_and_each_call_is_paid_once() -> None:
    requests = [llm.Request("m", (llm.Message("user", f"Question {n}, please?"),), seed=1) for n in range(60)]
    with ModelServer() as quiet:
        expected = [answer.reply for answer in llm.ask_all(connect(quiet), requests)]
    with ModelServer(Faults.many(11), idempotent=True) as server:
        answers = [answer.reply for answer in llm.ask_all(connect(server), requests)]
    assert answers == expected
    assert len(server.paid) == 60
    assert server.paid_most() == 1
    assert sum(server.received.values()) > 60


@pytest.mark.parametrize(
    ("answer", "text", "finish"),
    [
        ({"choices": [{"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}]}, "No.", "filter"),
        ({"choices": [{"message": {"content": None}, "finish_reason": "length"}]}, "", "length"),
        ({"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}, "x", "filter"),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}, "ab", "unknown"),
        ({"choices": [{"text": "cut \ud83d", "finish_reason": "eos"}], "usage": None}, "cut \ufffd", "stop"),
    ],
)
def test_shapes_that_servers_have(answer: dict[str, Any], text: str, finish: str) -> None:
    reply = reply_of(answer, {})
    assert (reply.text, reply.finish, reply.tokens_in) == (text, finish, None)
    msgspec.json.encode(reply)


def test_log_probabilities_in_both_shapes() -> None:
    new = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97]}, {"token": "b", "logprob": None}]}
    old = {"tokens": ["a", "b"], "token_logprobs": [-0.5, None], "top_logprobs": None}
    for shape in (new, old):
        reply = reply_of({"choices": [{"text": "ab", "finish_reason": "stop", "logprobs": shape}]}, {})
        assert reply.logprobs == (Token("a", -0.5), Token("b", None))


def test_reasoning_is_kept_apart() -> None:
    choice = {"message": {"content": "4", "reasoning_content": "2 and 2 ..."}, "finish_reason": "stop"}
    reply = reply_of({"choices": [choice]}, {})
    assert (reply.text, reply.reasoning) == ("4", "2 and 2 ...")


@pytest.mark.parametrize(
    "answer", [[], {}, "x", None, {"choices": []}, {"choices": [{}]}, {"choices": [{"text": None}]}]
)
def test_an_answer_of_another_shape_is_no_reply(answer: Any) -> None:
    with pytest.raises(llm.ModelError, match="OpenAI-compatible"):
        reply_of(answer, {})


def test_an_error_that_comes_as_a_success() -> None:
    with pytest.raises(llm.ModelError, match="overloaded") as caught:
        reply_of({"error": {"message": "overloaded", "code": 503}}, {})
    assert caught.value.retryable


def test_signatures_tell_servers_apart_and_can_be_told() -> None:
    def signature(**options: Any) -> str:
        return registry.connect("openai", **{"base_url": "http://127.0.0.1:1/v1", **options}).signature

    assert signature() == signature(timeout=3.0, rate=2.0, base_url="http://127.0.0.1:1/v1/")
    others = [signature(base_url="http://127.0.0.1:2/v1"), signature(revision="2"), signature(server="vllm")]
    assert len({signature(), *others}) == 4
    assert signature(identity="ours") == signature(identity="ours", base_url="http://127.0.0.1:2/v1")


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="openai"):
        registry.connect("opena")
    with pytest.raises(UnknownNameError, match="base_url"):
        registry.connect("openai", base_ur="http://127.0.0.1:1")
    with pytest.raises(UnknownNameError, match=r"llama\.cpp"):
        registry.connect("openai", base_url="http://127.0.0.1:1", server="llamacpp")
