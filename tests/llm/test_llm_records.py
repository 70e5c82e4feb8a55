"""Requests, settings, presets, schemas, estimates and scripts."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from programs import printed
from veriglot.errors import InputError, UnknownNameError, UsageError
from veriglot.llm import client as llm
from veriglot.llm.client import AnswerError, Reply, estimate_tokens, schema_of
from veriglot.llm.registry import CLIENTS, connect

FAMILIES = {
    "Llama-3.x": "mfava-llama-3", "Aya": "mfava-aya", "Qwen-2.5": "mfava-qwen-2.5",
    "Mistral": "mfava-mistral", "Gemma-2": "mfava-gemma-2", "EuroLLM": "mfava-eurollm",
}  # fmt: skip


def test_the_digest_hangs_on_the_content_alone() -> None:
    first = llm.Request("m", prompt="x", settings=llm.Settings(extra={"a": 1, "b": 2}))
    second = msgspec.json.decode(msgspec.json.encode(first), type=llm.Request)
    third = llm.Request("m", prompt="x", settings=llm.Settings(extra={"b": 2, "a": 1}))
    assert first.key("s") == second.key("s") == third.key("s")
    assert first.key("s") != llm.Request("m", prompt="x").key("s")
    # Written down, so that a change of it, which would have every cache paid again, is no accident.
    assert llm.Request("m", prompt="x").key("s").startswith("22660ced53948737")


@pytest.mark.parametrize("parts", [{}, {"prompt": "x", "messages": (llm.Message("user", "x"),)}])
def test_a_request_has_messages_or_a_prompt(parts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="messages or a prompt"):
        llm.Request("m", **parts)


@pytest.mark.parametrize(
    "setting",
    [
        {"max_tokens": 0}, {"temperature": -0.1}, {"top_p": 0.0}, {"top_p": 1.1}, {"min_p": 2}, {"top_k": -2},
        {"repetition_penalty": 0}, {"frequency_penalty": 2.5}, {"presence_penalty": -3}, {"temperature": float("nan")},
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        llm.Settings(**setting)


def test_settings_over_a_preset() -> None:
    merged = llm.Settings(temperature=0.1, extra={"a": 1}).with_defaults(llm.preset("mfava-llama-3"))
    assert merged == llm.Settings(max_tokens=1024, temperature=0.1, top_p=0.9, do_sample=True, extra={"a": 1})
    with pytest.raises(msgspec.ValidationError, match="temprature"):
        msgspec.convert({"temprature": 1.0}, llm.Settings)


def test_every_preset_names_its_source() -> None:
    assert all(preset.source and preset.family for preset in llm.presets().values())
    with pytest.raises(UnknownNameError, match="mfava-llama-3"):
        llm.preset("llama-3")


def test_the_presets_of_table_8_are_as_printed(shared_facts: Path) -> None:
    with (shared_facts / "mfava_table8_generation_parameters.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["model_family"] for row in rows} == FAMILIES.keys()
    names = {"max_new_tokens": "max_tokens"}
    for row in rows:
        given = llm.preset(FAMILIES[row["model_family"]]).given()
        name = names.get(row["parameter"], row["parameter"])
        expected = None if row["status"] == "default" else {"True": True}.get(row["value"]) or float(row["value"])
        assert given.get(name) == expected, row


class Inner(msgspec.Struct):
    kind: str
    at: int | None = None


class Outer(msgspec.Struct):
    parts: list[Inner]
    title: str


def test_a_schema_has_no_references_and_nothing_optional() -> None:
    schema = schema_of(Outer)
    assert "$ref" not in str(schema)
    assert schema["properties"]["title"] == {"type": "string"}
    inner = schema["properties"]["parts"]["items"]
    assert inner["required"] == ["kind", "at"]
    assert inner["additionalProperties"] is False


@pytest.mark.parametrize(
    "text",
    [
        '{"parts": [], "title": "a {b}"}',
        'Sure!\n```json\n{"parts": [], "title": "a {b}"}\n```\nAnything else?',
        'Here you are: {"parts": [], "title": "a {b}"} I hope it helps.',
        '\ufeff  {"parts": [], "title": "a {b}"}\n',
    ],
)
def test_answers_as_models_give_them(text: str) -> None:
    assert Reply(text).decode(Outer) == Outer([], "a {b}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("I cannot.", "holds no JSON"), ("", "holds no JSON"), ('{"parts": [', "holds no JSON"),
        ('{"parts": [{"kind": 3}], "title": "x"}', r"\$\.parts\[0\]\.kind"),
    ],
)  # fmt: skip
def test_answers_that_are_none_say_why(text: str, says: str) -> None:
    with pytest.raises(AnswerError, match=says):
        Reply(text).decode(Outer)
    with pytest.raises(AnswerError, match="max_tokens"):
        Reply(text, "length").decode(Outer)


def test_a_schema_in_words_stands_with_the_user() -> None:
    user, assistant = llm.Message("user", "Name it."), llm.Message("assistant", "It:")
    asked = llm.Request("m", (user, assistant), schema={"type": "integer"}).in_words()
    assert asked.schema is None
    assert asked.messages[0].content.startswith("Name it.\n\n")
    assert '{"type": "integer"}' in asked.messages[0].content
    assert asked.messages[1] == assistant
    assert '{"type": "integer"}' in (
        llm.Request("m", prompt="Name", schema={"type": "integer"}).in_words().prompt or ""
    )


def test_estimates_grow_with_the_text() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("lighthouse") == 3
    assert estimate_tokens("灯塔建于") == 3
    assert llm.Request("m", (llm.Message("user", "lighthouse"),)).tokens == 7


SCRIPT = r"""
[[rules]]
match = 'Who built (?P<what>the \w+)\?'
reply = ['\g<what> was built by Ada, says {model}.', 'Nobody knows who built \1 ({seed}).']

[[rules]]
model = "small.*"
error = "too small"
retryable = true

[[rules]]
reply = "one two  three four"
"""


def test_a_script_follows_its_first_rule_that_fits(tmp_path: Path) -> None:
    (tmp_path / "script.toml").write_text(SCRIPT, "utf-8")
    client = connect("scripted", rules=tmp_path / "script.toml")
    asked = (llm.Message("system", "Short."), llm.Message("user", "Who built the tower?"))
    assert client.ask(llm.Request("m", asked)).text == "the tower was built by Ada, says m."
    assert client.ask(llm.Request("m", asked, seed=3)).text == "Nobody knows who built the tower (3)."
    with pytest.raises(llm.ModelError, match="too small") as caught:
        client.ask(llm.Request("small-1", prompt="x"))
    assert caught.value.retryable
    reply = client.ask(llm.Request("m", prompt="a b", settings=llm.Settings(max_tokens=3)))
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out) == ("one two  three", "length", 2, 3)


def test_a_script_without_a_rule_that_fits_says_so() -> None:
    client = connect("scripted", rules=[{"match": "x", "reply": ""}])
    assert client.ask(llm.Request("m", prompt="x")).text == ""
    with pytest.raises(llm.ModelError, match="No rule"):
        client.ask(llm.Request("m", prompt="y"))


def test_a_client_says_which_option_it_lacks() -> None:
    with pytest.raises(UsageError, match="'scripted' needs the option 'rules'"):
        connect("scripted")


def test_other_rules_are_another_signature() -> None:
    signatures = {connect("scripted", rules=[{"reply": text}]).signature for text in "aab"}
    assert len(signatures) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"rules": [{"match": "(a)", "reply": "\\\\2"}]}', "group"),
        ('{"rules": [{"reply": "a", "mtach": "b"}]}', "mtach"), ('{"rules": [{}]}', "a reply or an error"),
        ('{"rules": [{"match": "(", "reply": "a"}]}', "regular expression"), ("{", "JSON"), ("[3]", r"\$\[0\]"),
    ],
)  # fmt: skip
def test_a_script_that_makes_no_sense(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "script.json").write_text(content)
    with pytest.raises(InputError, match=says):
        connect("scripted", rules=tmp_path / "script.json")


def blocks(kind: str) -> list[str]:
    page = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text("utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_documentation_run(tmp_path: Path) -> None:
    (python,) = blocks("python")
    assert printed(python) == "the lighthouse was built by Ada.\n"
    (script,) = blocks("toml")
    (tmp_path / "script.toml").write_text(script, "utf-8")
    client = connect("scripted", rules=tmp_path / "script.toml")
    assert client.ask(llm.Request("small-1", prompt="Who built Norva?")).text == "Norva was built by Ada."
    with pytest.raises(llm.ModelError, match="overloaded"):
        client.ask(llm.Request("large-1", prompt="Who built Norva?"))


def test_the_documentation_names_every_preset_and_client() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text("utf-8")
    assert not [name for name in (*llm.presets(), *CLIENTS.names()) if f"`{name}`" not in page]


def test_llm_is_light() -> None:
    heavy = ("httpx2", "torch", "transformers", "numpy")
    code = f"import sys, veriglot.llm; print([name for name in {heavy!r} if name in sys.modules])"
    assert printed(code) == "[]\n"
