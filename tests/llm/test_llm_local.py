"""The local client on a real, tiny model: chat and completion, seeds, settings, lengths, log probabilities."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from veriglot.errors import UsageError, WeightsError
from veriglot.llm import client as llm
from veriglot.llm.registry import connect

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.llm.client import Client, Reply


@pytest.fixture(autouse=True, scope="module")
def _extra() -> None:
    for package in ("transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `local`: pip install 'veriglot[local]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_model import write_model

    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def client(folder: Path) -> Client:
    return connect("transformers", model=str(folder), device="cpu")


def ask(client: Client, folder: Path, *, prompt: str | None = None, seed: int | None = 1, **settings: object) -> Reply:
    messages = () if prompt is not None else (llm.Message("user", "Wer baute den Turm?"),)
    request = llm.Request(
        str(folder), messages, prompt, seed, llm.Settings(**{"max_tokens": 12, **settings}), logprobs=True
    )
    return client.ask(request)


def test_a_reply_says_how_long_it_is_and_why_it_ended(client: Client, folder: Path) -> None:
    reply = ask(client, folder, temperature=1.0)
    assert reply.tokens_in is not None
    assert reply.tokens_in > len(["Wer", "baute"])
    assert reply.tokens_out == 12
    assert reply.finish == "length"
    assert len(reply.logprobs or ()) == 12
    assert all(token.logprob is not None and token.logprob < 0 for token in reply.logprobs or ())


def test_how_a_model_is_loaded_tells_its_replies_apart(client: Client, folder: Path) -> None:
    other = connect("transformers", model=str(folder), device="cpu", options={"attn_implementation": "eager"})
    assert "options" not in client.signature
    assert other.signature.startswith("client:transformers")
    assert other.signature != client.signature


def test_a_setting_that_the_library_does_not_have_is_refused(client: Client, folder: Path) -> None:
    assert ask(client, folder, extra={"no_repeat_ngram_size": 2}).tokens_out
    with pytest.raises(UsageError, match="mirostat"):
        ask(client, folder, extra={"mirostat": 2})


def test_the_seed_decides(client: Client, folder: Path) -> None:
    first, second = ask(client, folder, seed=1, temperature=1.0), ask(client, folder, seed=2, temperature=1.0)
    assert first.text != second.text
    assert ask(client, folder, seed=1, temperature=1.0) == first


def test_greedy_needs_no_seed(client: Client, folder: Path) -> None:
    assert ask(client, folder, seed=1, temperature=0.0).text == ask(client, folder, seed=2, do_sample=False).text


def test_greedy_tokens_are_those_that_the_model_finds_likeliest(client: Client, folder: Path) -> None:
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("The lighthouse", return_tensors="pt")["input_ids"]
    reply = ask(client, folder, prompt="The lighthouse", temperature=0.0, max_tokens=5)
    expected = []
    with torch.inference_mode():
        for _ in range(5):
            row = torch.log_softmax(model(ids).logits[0, -1], -1)
            expected.append(row.max().item())
            ids = torch.cat([ids, row.argmax()[None, None]], 1)
    assert [token.logprob for token in reply.logprobs or ()] == pytest.approx(expected, abs=1e-4)
    assert reply.text == tokenizer.decode(ids[0, -5:], skip_special_tokens=True)


def test_settings_reach_the_model(client: Client, folder: Path) -> None:
    free = ask(client, folder, temperature=1.0, max_tokens=40)
    bound = ask(client, folder, temperature=1.0, max_tokens=40, top_k=1)
    assert bound.text == ask(client, folder, temperature=0.0, max_tokens=40).text != free.text
    tokens = [token.text for token in ask(client, folder, temperature=0.0, max_tokens=40).logprobs or ()]
    punished = ask(client, folder, temperature=0.0, max_tokens=40, repetition_penalty=5.0)
    assert len({token.text for token in punished.logprobs or ()}) > len(set(tokens))
    assert punished.settings["repetition_penalty"] == 5.0


def test_a_stop_text_ends_the_reply_and_is_no_part_of_it(client: Client, folder: Path) -> None:
    whole = ask(client, folder, prompt="The", temperature=0.0, max_tokens=30)
    stop = next(char for char in whole.text[3:] if char.isascii() and char.isprintable())
    cut = ask(client, folder, prompt="The", temperature=0.0, max_tokens=30, stop=(stop,))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish == "stop"
    assert (cut.tokens_out or 0) < 30


def test_a_prompt_that_does_not_fit_is_refused_not_cut(client: Client, folder: Path) -> None:
    with pytest.raises(llm.ModelError, match="context") as caught:
        ask(client, folder, prompt="The lighthouse of Norva. " * 200)
    assert not caught.value.retryable
    assert not caught.value.fatal


def test_without_a_length_the_context_is_filled(client: Client, folder: Path) -> None:
    reply = ask(client, folder, temperature=1.0, max_tokens=None)
    assert (reply.tokens_in or 0) + (reply.tokens_out or 0) == 256 or reply.finish == "stop"


def test_an_answer_of_a_schema_is_asked_for_in_words(client: Client, folder: Path) -> None:
    messages = (llm.Message("user", "Name it."),)
    plain = llm.Request(str(folder), messages, seed=1, settings=llm.Settings(max_tokens=4))
    with_schema = llm.Request(
        str(folder), messages, seed=1, settings=llm.Settings(max_tokens=4), schema={"type": "integer"}
    )
    assert (client.ask(with_schema).tokens_in or 0) > (client.ask(plain).tokens_in or 0)


def test_what_it_cannot_do_it_refuses(client: Client, folder: Path) -> None:
    with pytest.raises(UsageError, match="frequency_penalty"):
        ask(client, folder, frequency_penalty=0.5)
    with pytest.raises(UsageError, match="another"):
        client.ask(llm.Request("another", prompt="x"))
    with pytest.raises(WeightsError, match="There is no folder"):
        connect("transformers", model=str(folder / "nothing"))


def test_a_model_without_a_chat_template_completes_only(tmp_path: Path) -> None:
    from tiny_model import write_model

    folder = write_model(tmp_path, chat=False)
    client = connect("transformers", model=str(folder), device="cpu")
    assert ask(client, folder, prompt="The").tokens_out == 12
    with pytest.raises(llm.ModelError, match="chat template"):
        ask(client, folder)


def test_other_weights_are_another_signature(folder: Path, client: Client, tmp_path: Path) -> None:
    from tiny_model import write_model

    same = shutil.copytree(folder, tmp_path / "same")
    other = write_model(tmp_path / "other", seed=1)
    signatures = [connect("transformers", model=str(path), device="cpu").signature for path in (same, other)]
    revisions = [
        dict(part.split(":", 1) for part in signature.split("|"))["revision"]
        for signature in (client.signature, *signatures)
    ]
    assert revisions[0] == revisions[1] != revisions[2]


def test_many_threads_get_what_one_gets(client: Client, folder: Path) -> None:
    requests = [
        llm.Request(str(folder), prompt=f"The {n}", seed=n, settings=llm.Settings(max_tokens=6, temperature=1.0))
        for n in range(12)
    ]
    alone = [client.ask(request) for request in requests]
    together = [answer.reply for answer in llm.ask_all(client, requests, jobs=4)]
    assert together == alone
