"""`veriglot dataset halluverse` on the command line: from files, by rule, and everything from local servers."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from lives import LifeModel, article, lines_of, name_of, page_text, person
from wiki_server import WikiPage, WikiServer
from wikidata_server import Entity, SparqlServer, graph_of

from settings_file import main, with_settings
from veriglot import read
from veriglot.datasets.halluverse.facts import facts_path
from veriglot.datasets.halluverse.pairs import Summary, read_facts
from veriglot.datasets.silver.check import Change, Edited, check

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.records import Sample

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())"]
PEOPLE = 20


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Pages in two languages, one of them too short in each, one about an unknown person, and the people."""
    for tag in ("en", "de"):
        rows = [article(number, tag, 12 if number == 3 else 24) for number in range(PEOPLE)]
        rows[5] |= {"item": "Q1", "title": "Somebody else"}
        (tmp_path / f"{tag}.jsonl").write_text(lines_of(rows), "utf-8")
    (tmp_path / "people.jsonl").write_text(lines_of([person(number) for number in range(PEOPLE)]), "utf-8")
    return [str(tmp_path / "en.jsonl"), str(tmp_path / "de.jsonl"), "--people", str(tmp_path / "people.jsonl")]


def run(*words: object) -> int:
    return main(["dataset", "halluverse", *map(str, words)])


def load_summary(output: Path) -> Summary:
    return msgspec.json.decode(output.with_name(output.name + ".summary.json").read_bytes(), type=Summary)


def sound(output: Path) -> list[Sample]:
    """The pairs, each checked against its page again."""
    found = list(read(str(output)))
    assert found
    for sample in found:
        made, tag = sample.meta["silver"], sample.language or ""
        original = sample.evidence[0].text
        number = int(sample.meta["page"].split("-")[1])
        page = page_text(number, tag)
        assert original in page.splitlines()
        assert made["passage"] == original
        assert name_of(number).split()[1] in original
        assert "Nobody knows why" not in sample.response  # an additional sentence is not an error of a type
        changes = msgspec.convert(made["changes"], list[Change])
        assert check(Edited(original, sample.response, tuple(changes)), language=tag, evidence=[page]) == []
        (annotation,) = sample.annotations
        assert annotation.taxonomy == "halluverse"
        assert annotation.units is not None
        (unit,) = annotation.units
        assert (unit.start, unit.end) == (0, len(sample.response))
        assert {change.type for change in changes} == {unit.label}
    return found


def counts_of(found: list[Sample]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for sample in found:
        units = sample.annotations[0].units or ()
        counts.setdefault(sample.language or "", Counter())[units[0].label] += 1
    return counts


def test_a_set_by_a_model(files: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "set.jsonl"
    with LifeModel() as server:
        words = [*files, "-m", "m", "--base-url", server.base_url, "-o", output, "--price-in", 1, "--price-out", 2]
        assert run(*words) == 0
        asked = len(server.arrivals)
        shown = capfd.readouterr()
        assert run(*words) == 0
        assert len(server.arrivals) == asked
    table = [line.split() for line in shown.out.splitlines()]
    assert table[0] == [
        "language",
        "pages",
        "used",
        "facts",
        "pairs",
        "entity",
        "relation",
        "sentence",
        "balance",
        "people",
    ]
    assert [row[:3] for row in table[2:] if len(row) > 1] == [
        ["de", "20", "18"],
        ["en", "20", "18"],
        ["all", "40", "36"],
    ]
    assert "nobody 2, short 2" in shown.err
    assert "at the prices given" in shown.err
    summary = load_summary(output)
    found = sound(output)
    for tag, counts in counts_of(found).items():
        one = summary.languages[tag]
        assert max(counts.values()) - min(counts.values()) <= 2
        assert sum(counts.values()) == one.pairs
        assert one.types["relation"].asked > one.types["entity"].asked
        assert one.facts <= 18 * 5
        assert one.inexact > 0
        assert {"unsupported", "subject"} <= set(one.fact_reasons)
        assert sum(each.asked for each in one.types.values()) == one.facts
    assert {"nothing", "refused", "outside"} <= set(summary.total.types["relation"].reasons)
    assert summary.total.calls == asked
    with (tmp_path / "set.jsonl.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    back = {sample.id: sample for sample in read(str(tmp_path / "set.jsonl.csv"))}
    assert len(rows) == len(back) == len(found)
    for sample in found:
        assert back[sample.id].response == sample.response
        assert back[sample.id].evidence[0].text == sample.evidence[0].text
        assert (back[sample.id].annotations[0].units or ())[0].label == (sample.annotations[0].units or ())[0].label


def test_what_is_known_of_the_people_stands_in_tables_and_plots(files: list[str], tmp_path: Path) -> None:
    output = tmp_path / "set.jsonl"
    assert run(*files, "--rules", "-o", output, "-q") == 0
    summary = load_summary(output)
    groups = {sample.meta["group"] for sample in read(str(output))}
    people = {f"Q{900 + number}": person(number) for number in range(PEOPLE)}
    assert summary.given is not None
    assert (summary.given.people, summary.set.people, summary.unknown) == (PEOPLE, len(groups), 0)
    writers = sum(any(job["label"] == "writer" for job in people[item]["occupations"]) for item in groups)
    assert {one.label: one.people for one in summary.set.professions.categories}["writer"] == writers == len(groups)
    born = [people[item]["born"] for item in groups if "born" in people[item]]
    births = summary.set.births
    assert (births.known, births.earliest, births.latest) == (len(born), min(born), max(born))
    assert sum(span.people for span in births.spans) == len(born)
    page = (tmp_path / "set.jsonl.html").read_text("utf-8")
    for text in ("Professions", "inventor", "Austria", "Years of birth", "effective number", "<rect"):
        assert text in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_set_by_rule_is_sound_even_and_the_same_again(files: list[str], tmp_path: Path) -> None:
    first, second = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    assert run(*files, "--rules", "-o", first, "-q") == 0
    assert run(*files, "--rules", "-o", second, "-q") == 0
    assert first.read_bytes() == second.read_bytes()
    found = sound(first)
    for counts in counts_of(found).values():
        assert set(counts) == {"entity", "relation", "sentence"}
        assert max(counts.values()) - min(counts.values()) <= 2
    facts = read_facts(facts_path(first))
    assert all(len(row.facts) <= 5 for row in facts)
    assert sum(len(row.facts) for row in facts) > 100
    assert {row.id: row.unfit for row in facts if row.unfit} == {
        "en-3": "short", "en-5": "nobody", "de-3": "short", "de-5": "nobody",
    }  # fmt: skip
    other = tmp_path / "three.jsonl"
    assert run(*files, "--rules", "--types", "entity,sentence", "--seed", 2, "--facts", 2, "-o", other, "-q") == 0
    assert all(set(counts) == {"entity", "sentence"} for counts in counts_of(sound(other)).values())
    assert run(*files, "--rules", "--facts", 4, "-o", other, "-q") == 2


def test_all_of_it_from_servers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    entities = [
        Entity(
            900 + number,
            dict.fromkeys(("en", "de"), name_of(number)),
            labels=dict.fromkeys(("en", "de"), name_of(number)),
            facts={"P106": ["Q36180"], "P27": ["Q40"], "P569": [f"{1700 + number}-01-01T00:00:00Z"]},
        )
        for number in range(8)
    ]
    wikis = {
        tag: [
            WikiPage(name_of(number), f"{page_text(number, tag, 10 if number == 2 else 24)}", item=f"Q{900 + number}")
            for number in range(7)
        ]
        for tag in ("en", "de")
    }
    output = tmp_path / "set.jsonl"
    with (
        SparqlServer(graph_of(entities, {"Q36180": "writer", "Q40": "Austria"})) as wikidata,
        WikiServer(wikis["en"]) as english,
        WikiServer(wikis["de"]) as german,
        LifeModel() as model,
    ):
        words = [
            "-l", "en,de", "-n", 8, "--rate", 2000, "--contact", "me@example.org",
            "--wikidata-server", wikidata.base_url, "--wiki-servers", f"en={english.base_url}",
            "--wiki-servers", f"de={german.base_url}",
            "-m", "m", "--base-url", model.base_url, "-o", output, "--facts", 3,
        ]  # fmt: skip
        assert run(*words) == 0
        arrivals = [len(server.arrivals) for server in (wikidata, english, german, model)]
        assert run(*words) == 0
        assert [len(server.arrivals) for server in (wikidata, english, german, model)] == arrivals
    assert "7 pages about 8 people, 1 missing" in capfd.readouterr().err
    summary = load_summary(output)
    assert summary.given is not None
    assert summary.given.people == 8
    assert {tag: (one.pages, one.unfit) for tag, one in summary.languages.items()} == {
        "en": (7, {"short": 1}), "de": (7, {"short": 1}),
    }  # fmt: skip
    assert summary.set.professions.categories[0].label == "writer"
    assert {sample.language for sample in read(str(output))} == {"en", "de"}


def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(files: list[str], tmp_path: Path) -> None:
    files = [files[0], *files[2:]]
    calm, torn = tmp_path / "calm.jsonl", tmp_path / "torn.jsonl"
    with LifeModel() as server:
        assert run(*files, "-m", "m", "--base-url", server.base_url, "-o", calm, "-q", "--concurrency", 3) == 0
    with LifeModel() as server:
        words = [
            "dataset",
            "halluverse",
            *files,
            "-m",
            "m",
            "--base-url",
            server.base_url,
            "-o",
            torn,
            "-q",
            "--concurrency",
            2,
        ]
        kills = 0
        for stop in (5, 20, 40, 70):
            process = subprocess.Popen(
                [*COMMAND, *with_settings(words)], stderr=subprocess.DEVNULL, start_new_session=True
            )
            deadline = time.monotonic() + 60
            while len(server.arrivals) < stop and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
        assert kills >= 3
        assert main([str(word) for word in words]) == 0
        assert sum(count - 1 for count in server.paid.values()) <= 2 * kills  # calls in progress during the kill
    for name in ("", ".facts.jsonl", ".rejected.jsonl", ".csv", ".account.json"):
        assert (tmp_path / f"torn.jsonl{name}").read_bytes() == (tmp_path / f"calm.jsonl{name}").read_bytes(), name


def test_what_fails_is_said_and_taken_up_again(files: list[str], tmp_path: Path) -> None:
    output, script = tmp_path / "set.jsonl", tmp_path / "script.json"
    dead = {"match": "about Ivo Almgren", "error": "the line is dead"}
    reply = {"match": r"Page:\n[^\n]*\n([^\n]+)", "reply": '{"sentences": ["\\1"]}'}
    edit = {"match": r"\nOriginal: ([^\n]*?)\d{4}([^\n]*)\nEdited:\Z", "reply": r"\g<1>1234\g<2>"}
    words = [
        files[0], "-m", "m", "--mock-rules", script, "-o", output, "-q", "--types", "entity",
        "--facts", 1, "--cache", tmp_path / "calls",
    ]  # fmt: skip
    script.write_text(json.dumps({"rules": [dead, reply, edit]}), "utf-8")
    assert run(*words) == 3
    first = list(read(str(output)))
    failed = (tmp_path / "set.jsonl.facts.jsonl.failed.jsonl").read_text("utf-8")
    assert json.loads(failed)["id"] == "en-8"
    assert len(first) == 17  # of 20 pages, one is short, one about an unknown person, one failed
    assert run(*words, "--retry") == 3
    assert list(read(str(output))) == first
    assert load_summary(output).total.fact_failures == 1


def test_what_a_page_cost_before_it_failed_is_in_the_summary(files: list[str], tmp_path: Path) -> None:
    """The page of Ivo Almgren gives one fact; the second call for another one fails."""
    reply = {"match": r"Page:\n[^\n]*\n([^\n]+)", "reply": '{"sentences": ["\\1"]}'}
    dead = {"match": "about Ivo Almgren.*- [A-Z]", "error": "the line is dead"}
    edit = {"match": r"\nOriginal: ([^\n]*?)\d{4}([^\n]*)\nEdited:\Z", "reply": r"\g<1>1234\g<2>"}
    found = {}
    for name, rules in (("sound", [reply, edit]), ("broken", [dead, reply, edit])):
        output, script = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.json"
        script.write_text(json.dumps({"rules": rules}), "utf-8")
        words = [files[0], "-m", "m", "--mock-rules", script, "-o", output, "-q"]
        run(*words, "--types", "entity", "--facts", 2, "--attempts", 2)
        found[name] = load_summary(output).total
    assert (found["sound"].fact_failures, found["broken"].fact_failures) == (0, 1)
    assert found["sound"].calls - found["broken"].calls == 2  # its second call, and the error in its one fact


def test_what_makes_no_sense_is_refused(files: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "set.jsonl"
    (tmp_path / "short.jsonl").write_text(lines_of([article(1, "en", 5)]), "utf-8")
    for words, said in (
        ([*files, "-o", output], "--model"),
        ([*files, "-o", output, "--rules", "-m", "m"], "--rules uses no model"),
        ([*files, "-o", output, "--rules", "--types", "entity,name"], "name"),
        ([*files, "-o", output, "--rules", "-n", 5], "--count"),
        ([tmp_path / "none.jsonl", "-o", output, "--rules"], "no such file"),
        ([tmp_path / "short.jsonl", "-o", output, "--rules"], "No page gave"),
        (["-l", "en", "-o", output, "--rules", "--wiki-servers", "http://x"], "does not name its Wikipedia"),
    ):
        capfd.readouterr()
        assert run(*words) in (1, 2), words
        assert said in capfd.readouterr().err
    assert run(*files, "-o", output, "-m", "m", "--dry-run") == 0
    plan = json.loads(capfd.readouterr().out)
    assert (plan["calls"], plan["pages_that_cannot_be_used"]) == (36 * 6, 4)
