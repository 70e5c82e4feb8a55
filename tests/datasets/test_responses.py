"""Responses: every planned one is asked once, and becomes a row or a failed row, also after interruptions."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from made_up import queries
from misbehaving import Faults, ModelServer

from veriglot.datasets.responses import Respondent, budget, responses
from veriglot.errors import UsageError
from veriglot.llm.client import ModelError, Settings
from veriglot.llm.registry import Limits, connect
from veriglot.records import Sample, encode
from veriglot.storage.checkpoint import Progress, Tally

RULES = [{"reply": ["null", "eins {model} {seed}", "zwei"]}]
SETTINGS = Settings(max_tokens=50, temperature=0.6)


def ask(output: Path, rows: Any = None, rules: Any = None, **settings: Any) -> Tally:
    respondent = settings.pop("respondent", Respondent("mill", "mill-7b", "r1", settings=SETTINGS))
    given: dict[str, Any] = {"design": "runs", "seeds": [1, 2], "jobs": 3, **settings}
    client = given.pop("client", None) or connect("scripted", rules=rules or RULES)
    return responses(output, queries(4) if rows is None else rows, respondent, client, **given)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_response_is_a_sample_that_says_who_gave_it_and_how(tmp_path: Path) -> None:
    tally = ask(tmp_path / "out.jsonl")
    assert (tally.rows, tally.failed) == (24, 0)
    first = lines(tmp_path / "out.jsonl")[0]
    query = json.loads(encode(queries(1)[0]))
    assert first == {
        **query,
        "id": "de-0/mill/1",
        "response": "eins mill-7b 1",
        "generator": {
            "name": "mill",
            "revision": "r1",
            "seed": 1,
            "settings": {"model": "mill-7b", "prompt": "closed", "max_tokens": 50, "temperature": 0.6},
        },
        "meta": {"category": "mills", "query": "de-0", "finish": "stop", "tokens_in": 8, "tokens_out": 3},
    }


def test_the_same_plan_gives_the_same_bytes_for_any_number_of_jobs(tmp_path: Path) -> None:
    for jobs in (1, 2, 9):
        ask(tmp_path / f"{jobs}.jsonl", jobs=jobs)
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "9.jsonl").read_bytes()


def test_a_call_that_gives_nothing_is_a_failed_row_and_can_be_taken_up_again(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    broken = [{"match": r"\(2\)", "error": "no such page"}, *RULES]
    tally = ask(output, rules=broken)
    assert (tally.statuses.total(), tally.failed) == (18, 6)
    failed = lines(output.with_name("out.jsonl.failed.jsonl"))
    assert [row["id"] for row in failed[:2]] == ["de-2/mill/1", "de-2/mill/2"]
    assert failed[0]["message"] == "no such page"
    with pytest.raises(UsageError, match=r"the client differs \(rules was"):  # other rules make another client
        ask(output, retry=True)
    ask(output, restart=True)
    ask(tmp_path / "whole.jsonl")
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_query_that_cannot_be_asked_is_a_failed_row(tmp_path: Path) -> None:
    rows = [*queries(1), Sample("bare", "", language="de", question="Wann?"), Sample("x", "", language="de")]
    tally = ask(tmp_path / "out.jsonl", rows, respondent=Respondent("m", "m", style="open"))
    assert (tally.statuses.total(), tally.failed) == (6, 3)
    reasons = [row["message"] for row in lines(tmp_path / "out.jsonl.failed.jsonl")]
    assert [("evidence" in reason, "question" in reason) for reason in reasons] == [(True, False)] * 2 + [(False, True)]


def test_other_settings_refuse_to_continue(tmp_path: Path) -> None:
    ask(tmp_path / "out.jsonl")
    hotter = Respondent("mill", "mill-7b", "r1", settings=Settings(max_tokens=50, temperature=0.7))
    with pytest.raises(UsageError, match=r"settings was .*0\.6.* and is now .*0\.7"):
        ask(tmp_path / "out.jsonl", respondent=hotter)
    with pytest.raises(UsageError, match="seeds was '1,2' and is now '1,3'"):
        ask(tmp_path / "out.jsonl", seeds=[1, 3])
    with pytest.raises(UsageError, match="prompt was 'closed' and is now 'open:answer@1'"):
        ask(tmp_path / "out.jsonl", respondent=Respondent("mill", "mill-7b", "r1", "open", SETTINGS))


def test_a_spending_limit_stops_and_the_next_run_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    script = {"rules": RULES, "cache": tmp_path / "calls"}
    with pytest.raises(ModelError, match="The limit of"):
        ask(output, client=connect("scripted", limits=Limits(calls=7), **script))
    progress = Progress.of(output)
    assert 0 < progress.done <= 7
    assert not progress.failed
    rest = Limits(calls=17)  # 24 are planned: finished calls are not paid again
    tally = ask(output, client=connect("scripted", limits=rest, **script))
    assert (tally.rows, tally.failed, rest.spent.calls) == (24, 0, 17)


def test_thoughts_are_no_part_of_the_response(tmp_path: Path) -> None:
    rules = [{"reply": ["", "<think>\nhm, 1731?\n</think>\n\nIm Jahr 1731.", "<think>never ends", "plain <think>x"]}]
    ask(tmp_path / "out.jsonl", queries(1, ("de",)), rules, seeds=[1, 2, 3])
    found = lines(tmp_path / "out.jsonl")
    assert [row["response"] for row in found] == ["Im Jahr 1731.", "", "plain <think>x"]
    assert [row["meta"].get("reasoning") for row in found] == ["hm, 1731?", "never ends", None]


def test_thoughts_whose_opening_tag_stood_in_the_prompt_are_no_part_of_the_response(tmp_path: Path) -> None:
    rules = [{"reply": "hm, 1731?\nor so </think>\n\nIm Jahr 1731."}]
    ask(tmp_path / "out.jsonl", queries(1, ("de",)), rules, seeds=[1])
    (row,) = lines(tmp_path / "out.jsonl")
    assert (row["response"], row["meta"]["reasoning"]) == ("Im Jahr 1731.", "hm, 1731?\nor so")


def test_a_cut_reply_says_so(tmp_path: Path) -> None:
    short = Respondent("m", "m", settings=Settings(max_tokens=2))
    ask(tmp_path / "out.jsonl", queries(1, ("de",)), respondent=short, seeds=[1])
    (row,) = lines(tmp_path / "out.jsonl")
    assert (row["response"], row["meta"]["finish"]) == ("eins m", "length")


def test_a_completion_model_gets_one_text_and_stops_before_the_next_question(tmp_path: Path) -> None:
    with ModelServer() as server:
        client = connect("openai", base_url=server.base_url)
        respondent = Respondent("m", "m", style="open", completion=True)
        ask(tmp_path / "out.jsonl", queries(1, ("de",)), client=client, respondent=respondent, seeds=[1])
        (arrival,) = server.arrivals
    assert arrival.path.endswith("/completions")
    assert "messages" not in arrival.body
    assert arrival.body["prompt"].endswith("\n\nAntwort:\n")
    assert arrival.body["stop"] == ["\nFrage:"]
    assert arrival.body["seed"] == 1


def test_a_budget_counts_what_would_be_asked() -> None:
    rows = [*queries(5), Sample("bare", "", language="de", question="Wann?")]
    respondent = Respondent("m", "m", style="open", settings=SETTINGS)
    found = budget(rows, respondent, design="runs", seeds=[1, 2])
    assert (found.calls, found.impossible, found.tokens_out) == (30, 2, 1500)
    assert found.languages == {"ar": 10, "de": 10, "zh-Hans": 10}
    assert found.tokens_in > 30 * 20
    assert budget(rows, respondent, design="subsets", seeds=[1, 2]).calls == 15


def test_a_server_that_misbehaves_changes_nothing_and_is_paid_once(tmp_path: Path) -> None:
    rows = queries(10)
    with ModelServer() as server:
        ask(tmp_path / "calm.jsonl", rows, client=connect("openai", base_url=server.base_url, identity="test"))
    with ModelServer(Faults.many(11), idempotent=True) as server:
        client = connect("openai", base_url=server.base_url, identity="test", cache=tmp_path / "calls", backoff=0.01)
        tally = ask(tmp_path / "wild.jsonl", rows, client=client, jobs=6)
        assert sum(server.faults_seen[fault] for fault in ("busy", "error", "cut", "broken")) > 10
        assert (len(server.paid), server.paid_most()) == (60, 1)
    assert tally.failed == 0
    assert (tmp_path / "wild.jsonl").read_bytes() == (tmp_path / "calm.jsonl").read_bytes()


def test_a_server_that_is_gone_stops_the_run_instead_of_failing_every_row(tmp_path: Path) -> None:
    with ModelServer() as server:
        address = server.base_url
    client = connect("openai", base_url=address, retries=0)
    with pytest.raises(ModelError):
        ask(tmp_path / "out.jsonl", queries(20), client=client)
    assert Progress.of(tmp_path / "out.jsonl").done == 0
    assert Progress.of(tmp_path / "out.jsonl").failed < 20


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from made_up import queries
from test_responses import Respondent, SETTINGS, ask
from veriglot.llm.registry import connect

folder = Path({folder!r})
client = connect("openai", base_url={url!r}, identity="test", cache=folder / "calls", backoff=0.01)
ask(folder / "out.jsonl", queries(25), client=client, jobs=4)
"""


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_nothing_and_pays_each_call_once(tmp_path: Path) -> None:
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    draw = random.Random(3)
    with ModelServer(
        Faults(seed=5, busy=0.05, error=0.05, cut=0.1, slow=0.3, slow_seconds=0.05), idempotent=True
    ) as server:
        folders = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "http")]
        code = KILLED.format(tests=folders[0], folder=str(tmp_path), url=server.base_url)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        kills = 0
        while kills < 4:
            before = len(server.paid)
            running = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE)
            while len(server.paid) == before and running.poll() is None:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, 0.15))
            if running.poll() is not None:
                break
            os.kill(running.pid, signal.SIGKILL)
            running.communicate()
            kills += 1
        assert kills >= 2
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        assert (len(server.paid), server.paid_most()) == (150, 1)
    with ModelServer() as server:
        ask(whole, queries(25), client=connect("openai", base_url=server.base_url, identity="test"))
    assert output.read_bytes() == whole.read_bytes()
