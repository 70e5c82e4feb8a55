"""`veriglot dataset` on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from made_up import queries as made_up_queries
from made_up import reference
from misbehaving import ModelServer

from commands import command
from json_lines import read_lines, write_lines
from settings_file import main
from veriglot.cli.dataset_responses import file_name, seeds_of
from veriglot.cli.generation import Connection
from veriglot.errors import UnknownNameError, UsageError
from veriglot.llm.client import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command

build = command("dataset")


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.jsonl"
    return write_lines(path, made_up_queries(5))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Answers by rules; the model's name has no effect."""
    rules = [
        {"match": "^Does|Below are a text", "reply": '{"answerable": true, "quote": "Witwe Anna Kroll"}'},
        {"match": "Write 2 questions", "reply": "Welche Witwe baute die Mühle?\nWann brannte die Mühle ab?"},
        {"match": r"\(3\)", "error": "the line is dead"},
        {"reply": ["Die Mühle wurde von der Witwe Anna Kroll gebaut.", "Ich weiß es nicht."]},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"rules": rules}, ensure_ascii=False), "utf-8")
    return path


def test_responses_of_several_models_go_to_a_folder_with_a_table(build: Command, queries: Path, tmp_path: Path) -> None:
    with ModelServer() as server:
        outcome = build(
            "responses", queries, "-m", "org/first", "-m", "second=org/second:7b", "--base-url", server.base_url,
            "-o", tmp_path / "out", "--design", "runs", "--seeds", "1-2", "--generation", "max_tokens=20",
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
        assert {arrival.body["model"] for arrival in server.arrivals} == {"org/first", "org/second:7b"}
        assert {arrival.body["max_tokens"] for arrival in server.arrivals} == {20}
    assert sorted(path.name for path in (tmp_path / "out").glob("*.jsonl")) == ["org_first.jsonl", "second.jsonl"]
    assert read_lines(tmp_path / "out" / "second.jsonl")[0]["id"] == "de-0/second/1"
    table = outcome.out.splitlines()
    assert table[0].split()[:3] == ["model", "language", "responses"]
    assert len(table) == 2 + 2 * 3


def test_failed_calls_leave_with_3_and_the_same_command_says_what_was_done(
    build: Command, queries: Path, script: Path, tmp_path: Path
) -> None:
    words = ("responses", queries, "-m", "m", "--mock-rules", script, "-o", tmp_path / "out.jsonl")
    first = build(*words, "--json")
    assert first.code == 3
    assert "15 responses, 12 done, 3 failed" in first.err
    assert "The first that failed: " in first.err
    found = json.loads(first.out)
    assert [row["language"] for row in found] == ["de", "zh-Hans", "ar"]
    assert sum(row["responses"] for row in found) == 12
    assert [row["id"].split("/")[0] for row in read_lines(tmp_path / "out.jsonl.failed.jsonl")] == [
        "de-3",
        "zh-Hans-3",
        "ar-3",
    ]
    again = build(*words)
    assert again.code == 3
    assert "All of them had been done by an earlier run" in again.err


def test_an_output_is_not_gone_on_with_under_another_language(build: Command, script: Path, tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "question": "ok 12?", "response": "", "task": "qa"} for n in range(5)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    words = ("responses", tmp_path / "q.jsonl", "-m", "m", "--mock-rules", script)
    assert build(*words, "-o", tmp_path / "out.jsonl", "--language", "German").code in (0, 3)
    assert build(*words, "-o", tmp_path / "out.jsonl", "--language", "de").code in (0, 3)
    other = build(*words, "-o", tmp_path / "out.jsonl", "--language", "fr")
    assert other.code == 2
    assert "language was 'de' and is now 'fr'" in other.err


def test_the_folder_that_one_stands_in_is_an_output(
    build: Command, queries: Path, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    words = ("responses", queries, "-m", "m", "--mock-rules", script)
    assert build(*words, "-o", ".").code == 3
    assert (tmp_path / "here" / "m.jsonl").exists()


def test_another_revision_is_asked_anew(build: Command, queries: Path, tmp_path: Path) -> None:
    with ModelServer() as server:
        words = ("responses", queries, "-m", "m", "--base-url", server.base_url, "--cache", tmp_path / "calls")
        assert build(*words, "-o", tmp_path / "a.jsonl", "--revision", "1").code == 0
        assert build(*words, "-o", tmp_path / "b.jsonl", "--revision", "1").code == 0
        assert len(server.paid) == 15
        assert build(*words, "-o", tmp_path / "c.jsonl", "--revision", "2").code == 0
        assert len(server.arrivals) == 30


def test_a_model_in_this_process_is_the_one_that_is_named(build: Command, queries: Path, tmp_path: Path) -> None:
    for package in ("transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `local`: pip install 'veriglot[local]'")
    words = ("responses", queries, "--client", "transformers", "-o", tmp_path / "out")
    outcome = build(*words, "-m", f"tiny={tmp_path / 'nowhere'}")
    assert outcome.code == 1
    assert f"There is no folder '{tmp_path / 'nowhere'}'" in outcome.err
    outcome = build(*words, "-m", "first", "-m", "second")
    assert outcome.code == 2
    assert "runs one model" in outcome.err


def test_a_dry_run_asks_nothing(build: Command, queries: Path, tmp_path: Path) -> None:
    outcome = build(
        "responses",
        queries,
        "-m",
        "m",
        "-o",
        tmp_path / "out.jsonl",
        "--generation",
        "preset=mfava-llama-3",
        "--dry-run",
    )
    assert outcome.code == 0
    found = json.loads(outcome.out)["m"]
    assert (found["calls"], found["tokens_out"]) == (15, 15 * 1024)
    assert [path.name for path in tmp_path.iterdir()] == ["queries.jsonl"]


def test_a_limit_stops_with_1_and_says_how_to_go_on(build: Command, queries: Path, tmp_path: Path) -> None:
    with ModelServer() as server:
        words = ("responses", queries, "-m", "m", "--base-url", server.base_url, "-o", tmp_path / "out.jsonl")
        outcome = build(*words, "--max-calls", 4)
        assert outcome.code == 1
        assert "limit of 4 calls" in outcome.err
        assert build(*words).code == 0
        assert (len(server.paid), server.paid_most()) == (15, 1)


def test_a_key_comes_from_the_environment_and_stands_nowhere(
    build: Command, queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILL_KEY", "s3cr3t-0123456789")
    with ModelServer(key="s3cr3t-0123456789") as server:
        words = ("responses", queries, "-m", "m", "--base-url", server.base_url, "-o", tmp_path / "out.jsonl")
        refused = build(*words)
        assert refused.code == 1
        outcome = build(*words, "--key", "MILL_KEY")
    assert outcome.code == 0, outcome.err
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"s3cr3t" not in path.read_bytes(), path
    assert "s3cr3t" not in outcome.out + outcome.err + refused.out + refused.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "No server is named"),
        (("--client", "scripted"), "needs its rules"),
        (("--client", "openay", "--base-url", "http://127.0.0.1:9"), "Did you mean openai"),
        (("--base-url", "http://127.0.0.1:9", "--client-options", "rat=2"), "Did you mean rate"),
        (
            ("--base-url", "http://127.0.0.1:9", "--client-options", "rate=x"),
            "'rate' of the client 'openai' is a number",
        ),
        (
            ("--base-url", "http://127.0.0.1:9", "--client-options", "headers=x"),
            "'headers' of the client 'openai' is a t",
        ),
        (("--base-url", "http://127.0.0.1:9", "--generation", "temprature=1"), "Did you mean temperature"),
        (("--base-url", "http://127.0.0.1:9", "--generation", "top_p=3"), "top_p is 3"),
        (("--base-url", "http://127.0.0.1:9", "--generation", "preset=mfava-lama-3"), "Did you mean mfava-llama-3"),
        (("--base-url", "http://127.0.0.1:9", "--seeds", "a,b"), "is no list of seeds"),
        (("--base-url", "http://127.0.0.1:9", "--seeds", "1,1"), "each seed once"),
        (("--base-url", "http://127.0.0.1:9", "-m", "second"), "Name a folder"),
        (("--base-url", "http://127.0.0.1:9", "-m", "=x"), "names no model"),
    ],
)
def test_wrong_words_leave_with_2_and_a_remedy(
    build: Command, queries: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    outcome = build("responses", queries, "-m", "m", "-o", tmp_path / "out.jsonl", *words)
    assert outcome.code == 2, outcome.err
    assert says in outcome.err
    assert not (tmp_path / "out.jsonl").exists()


def test_the_files_of_two_models_are_two(build: Command, queries: Path, tmp_path: Path) -> None:
    outcome = build("responses", queries, "-m", "a/b", "-m", "a:b", "-o", tmp_path, "--base-url", "http://127.0.0.1:9")
    assert outcome.code == 2
    assert "same file" in outcome.err


def test_quality_of_given_responses(build: Command, queries: Path, script: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    build("responses", queries, "-m", "m", "--mock-rules", script, "-o", output, "--seeds", "0,1")
    output.write_bytes(output.read_bytes() + b"no json\n")
    outcome = build("check", "--quality", output, "--json")
    assert outcome.code == 0
    assert "1 row could not be read" in outcome.err
    german = json.loads(outcome.out)[0]
    assert (german["model"], german["language"], german["responses"]) == ("m", "de", 4)
    assert 0 < german["refused"] < 1
    assert german["right_language"] == 1
    assert build("check", "--quality", output).out.splitlines()[2].split()[:3] == ["m", "de", "4"]


def test_queries_are_written_checked_and_accounted_for(build: Command, script: Path, tmp_path: Path) -> None:
    articles, output = tmp_path / "articles.jsonl", tmp_path / "queries.jsonl"
    rows = [{"id": f"de-{n}", "language": "de", "title": "Mühle", "lead": reference("de", n).text} for n in range(3)]
    articles.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0], {"language": "de"}]), "utf-8")
    outcome = build("queries", articles, "-m", "m", "--mock-rules", script, "-o", output)
    assert outcome.code == 3
    assert "6 queries. Rejected: 0, listed in" in outcome.err
    assert "5 articles, 3 done, 2 failed" in outcome.err
    assert [row["id"] for row in read_lines(output)] == [f"de-{n}-q{m}" for n in range(3) for m in (1, 2)]
    reasons = [row["message"] for row in read_lines(tmp_path / "queries.jsonl.failed.jsonl")]
    assert reasons == ["the id 'de-0' was there before", "the reference has no text"]
    planned = build("queries", articles, "-m", "m", "-o", output, "--dry-run")
    assert json.loads(planned.out)["calls_at_most"] == 9


def test_queries_flow_into_responses_and_detection(build: Command, script: Path, tmp_path: Path) -> None:
    """From an article to marked words, through every step of a study."""
    articles = tmp_path / "articles.jsonl"
    row = {"id": "de-1", "language": "de", "title": "Mühle", "lead": reference("de").text}
    articles.write_text(json.dumps(row) + "\n", "utf-8")
    asked = ("--mock-rules", script)
    assert build("queries", articles, "-m", "w", *asked, "-o", tmp_path / "q.jsonl").code == 0
    words = ("-o", tmp_path / "r.jsonl", "--prompt", "open", "--seeds", "0")
    assert build("responses", tmp_path / "q.jsonl", "-m", "m", *asked, *words).code == 0
    assert main(["detect", str(tmp_path / "r.jsonl"), "-o", str(tmp_path / "p.jsonl"), "--quiet"]) == 0
    first, _ = read_lines(tmp_path / "p.jsonl")
    assert (first["id"], first["status"]) == ("de-1-q1/m/0", "scored")
    assert first["spans"] == []  # the answer agrees with the article


def test_prompts_of_ones_own_end_with_the_command(build: Command, queries: Path, tmp_path: Path) -> None:
    mine, script = tmp_path / "mine.toml", tmp_path / "echo.json"
    mine.write_text('user = "Sag auf {language}: {question}"\n', "utf-8")
    script.write_text('{"rules": [{"match": "^Sag auf [A-Z]", "reply": "Ja."}, {"reply": "Nein."}]}', "utf-8")
    words = ("responses", queries, "-m", "m", "--mock-rules", script, "--seeds", "0")
    for name, asked, reply in (("mine", mine, "Ja."), ("open", "open", "Nein."), ("closed", "closed", "Nein.")):
        assert build(*words, "--prompt", asked, "-o", tmp_path / f"{name}.jsonl").code == 0
        assert {row["response"] for row in read_lines(tmp_path / f"{name}.jsonl")} == {reply}
    outcome = build(*words, "--prompt", "opn", "-o", tmp_path / "x.jsonl")
    assert (outcome.code, "Did you mean open?" in outcome.err) == (2, True)
    outcome = build("translate", queries, "-l", "en", "--translator", "hf:x", "--prompt", mine, "-o", tmp_path / "y")
    assert (outcome.code, "--prompt goes with --translator llm." in outcome.err) == (2, True)
    outcome = build("halluverse", queries, "--rules", "--config", _settings(tmp_path, mine), "-o", tmp_path / "z")
    assert (outcome.code, "--rules uses no model." in outcome.err) == (2, True)


def _settings(folder: Path, prompt: Path) -> Path:
    path = folder / "settings.toml"
    path.write_text(f"prompt = {json.dumps(str(prompt))}\n", "utf-8")
    return path


def test_biographies_are_prompted_and_sampled_five_times(build: Command, script: Path, tmp_path: Path) -> None:
    people, output = tmp_path / "people.jsonl", tmp_path / "bios.jsonl"
    people.write_text(json.dumps({"id": "Q1", "names": {"de": "Anna Kroll", "fi": "Anna Kroll"}}) + "\n", "utf-8")
    prompts, asked = tmp_path / "prompts.jsonl", ("--mock-rules", script, "--design", "runs", "--seeds", "1-5")
    outcome = build("queries", "--people", people, "--languages", "German,fi,fr", "-o", prompts)
    assert outcome.code == 3  # no name in French
    assert [row["language"] for row in read_lines(prompts)] == ["de", "fi"]
    assert build("responses", prompts, "-m", "m", *asked, "-o", output).code == 0
    rows = read_lines(output)
    assert [row["id"] for row in rows] == [f"Q1-{tag}/m/{seed}" for tag in ("de", "fi") for seed in range(1, 6)]
    assert rows[0]["task"] == "biography"
    assert build("queries", "--people", people, "-m", "m", "-o", tmp_path / "x.jsonl").code == 2  # not for a model
    assert build("queries", "-o", tmp_path / "x.jsonl").code == 2  # of what?


def test_seeds_and_settings_as_words() -> None:
    assert seeds_of("42, 43,44") == [42, 43, 44]
    assert seeds_of("1-3,9") == [1, 2, 3, 9]
    assert seeds_of("none") == [None]
    for wrong in ("", "x", "1-", "1.5", "-1"):
        with pytest.raises(UsageError):
            seeds_of(wrong)
    found = Connection(
        generation={"preset": "mfava-llama-3", "temperature": 0.9, "stop": "END", "max_tokens": 7}
    ).settings
    assert found == Settings(max_tokens=7, temperature=0.9, top_p=0.9, do_sample=True, stop=("END",))
    with pytest.raises(UnknownNameError):
        _ = Connection(generation={"preset": "no-such-preset"}).settings
    assert file_name("org/a model:7b") == "org_a_model_7b"
    assert file_name("///") == "model"
