"""A real model behind a real server: what the client promises, and a study from its questions to its report.

Needs `make small-model`, which `.ci/run` calls. Nothing is asked of what the model says, only of what becomes of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from real_server import CONTEXT, EXAMPLE, MODEL, RealServer, start_real_server

from veriglot.llm.client import Message, ModelError, Request, Settings, schema_of
from veriglot.llm.registry import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.llm.client import Client

SAMPLES = EXAMPLE.parent / "samples.jsonl"
LANGUAGES = ("en", "ar", "zh-Hans")
SEEDS = (42, 43)
TOKENS = 24  # of each reply


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    started = start_real_server()
    yield started
    assert started.stop() == 0, "the server did not end by itself"


@pytest.fixture
def client(server: RealServer) -> Iterator[Client]:
    with connect("openai", base_url=server.base_url, server="llama.cpp", retries=0) as opened:
        yield opened


def ask(text: str, seed: int = 1, **options: Any) -> Request:
    settings = Settings(max_tokens=TOKENS, temperature=0.8)
    return Request(MODEL, (Message("user", text),), seed=seed, settings=settings, **options)


class Verdict(msgspec.Struct):
    answerable: bool
    reason: str


@pytest.mark.slow
def test_the_same_seed_gives_the_same_reply_and_another_another(client: Client) -> None:
    question = "Tell me a story about a bridge."
    first, again, other = (client.ask(ask(question, seed)) for seed in (1, 1, 2))
    assert first.text == again.text
    assert first.text != other.text


@pytest.mark.slow
def test_a_reply_says_why_it_ended_and_what_it_cost(client: Client) -> None:
    reply = client.ask(ask("Tell me a long story about a bridge."))
    assert reply.finish == "length"
    assert reply.tokens_out == TOKENS
    assert reply.tokens_in is not None
    assert 5 < reply.tokens_in < 100


@pytest.mark.slow
def test_log_probabilities_belong_to_the_tokens_of_the_reply(client: Client) -> None:
    reply = client.ask(ask("Name a colour.", logprobs=True))
    assert reply.logprobs
    assert "".join(token.text for token in reply.logprobs).strip() == reply.text.strip()
    assert all(token.logprob is not None and -math.inf < token.logprob <= 0 for token in reply.logprobs)


@pytest.mark.slow
def test_an_answer_follows_its_schema(client: Client) -> None:
    request = ask("Can this be answered: who built the bridge?", schema=schema_of(Verdict))
    settings = msgspec.structs.replace(request.settings, max_tokens=200)
    answer = client.ask(msgspec.structs.replace(request, settings=settings)).decode(Verdict)
    assert isinstance(answer.answerable, bool)


def test_completion_goes_on_from_a_text(client: Client) -> None:
    settings = Settings(max_tokens=8, temperature=0.0)
    reply = client.ask(Request(MODEL, prompt="The capital of France is", seed=1, settings=settings))
    assert reply.text.strip()
    assert reply.tokens_out is not None
    assert reply.tokens_out <= 8


def test_what_is_too_long_for_the_model_is_refused_and_not_tried_again(client: Client) -> None:
    with pytest.raises(ModelError) as caught:
        client.ask(ask("bridge " * 2 * CONTEXT))
    assert caught.value.status == 400
    assert not caught.value.retryable


def study_file(folder: Path, base_url: str) -> Path:
    """A study of both ways to ask, on two questions a language."""
    rows = map(json.loads, (EXAMPLE / "queries.jsonl").read_text("utf-8").splitlines())
    chosen = [row for row in rows if row["language"] in LANGUAGES and row["meta"]["group"][-2:] in ("-1", "-4")]
    queries = folder / "queries.jsonl"
    queries.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in chosen), "utf-8")
    models = "".join(
        f"""
        [[models]]
        name = "small-{style}"
        model = "{MODEL}"
        parameters = 0.135
        prompt = "{style}"
        base_url = "{base_url}"
        options = {{ server = "llama.cpp", identity = "llama.cpp" }}
        settings = {{ max_tokens = {TOKENS}, temperature = 0.2, top_p = 0.9 }}
        """
        for style in ("closed", "open")
    )
    path = folder / "study.toml"
    path.write_text(
        f"""
        [study]
        title = "A small model"
        languages = {json.dumps(LANGUAGES)}
        pooled = true
        draws = 200

        [queries]
        path = "queries.jsonl"
        design = "runs"
        seeds = {list(SEEDS)}
        {models}
        [[detectors]]
        labelled = {json.dumps(str(SAMPLES))}

        [limits]
        jobs = 1
        """,
        "utf-8",
    )
    return path


def veriglot(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("veriglot"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def content(folder: Path) -> dict[str, str]:
    """The hash of every file that a run leaves, but for its cache and its bookkeeping."""
    kept = [path for path in folder.rglob("*") if path.suffix in {".jsonl", ".json", ".csv", ".html"}]
    found = {path.relative_to(folder): path for path in kept if "cache" not in path.relative_to(folder).parts}
    return {str(name): hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(found.items())}


@pytest.mark.slow
def test_a_study_from_its_questions_to_its_report(tmp_path: Path) -> None:
    server = start_real_server()
    try:
        study, folder = study_file(tmp_path, server.base_url), tmp_path / "run"
        done = veriglot("study", "run", study, "-o", folder, "--processes", "1")
        assert done.returncode == 0, done.stderr
    finally:
        server.stop()

    planned = len(LANGUAGES) * 4 * len(SEEDS)
    spoken: list[str] = []
    for style in ("closed", "open"):
        lines = (folder / "responses" / f"small-{style}.jsonl").read_bytes().splitlines()
        rows = [json.loads(line) for line in lines]
        assert len(rows) == planned
        assert {row["generator"]["seed"] for row in rows} == set(SEEDS)
        assert all(row["meta"]["finish"] in {"stop", "length"} for row in rows)
        assert all(0 < row["meta"]["tokens_out"] <= TOKENS for row in rows)
        spoken += [row["response"] for row in rows]
    assert len(set(spoken)) > planned, "one and the same reply, over and over, is no model's"

    results = json.loads((folder / "results.json").read_text("utf-8"))
    cells = {(cell["model"], cell["language"]): cell for cell in results["cells"]}
    assert set(cells) == {(f"small-{style}", tag) for style in ("closed", "open") for tag in LANGUAGES}
    for cell in cells.values():
        assert cell["coverage"]["planned"] == cell["coverage"]["answered"] == 4 * len(SEEDS)
        assert cell["coverage"]["statuses"].get("scored", 0) > 0
    page = (folder / "report.html").read_text("utf-8")
    assert "A small model" in page
    assert "small-open" in page

    before = content(folder)
    again = veriglot("study", "run", study, "-o", folder, "--processes", "1")  # nobody is there to be asked any more
    assert again.returncode == 0, again.stderr
    assert content(folder) == before
