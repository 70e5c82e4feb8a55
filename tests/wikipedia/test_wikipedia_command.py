"""`veriglot dataset articles` and `people`, as a person types them, against servers on loopback that misbehave."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from misbehaving import Faults
from wiki_server import PageViewServer, WikiPage, WikiServer
from wikidata_server import Entity, SparqlServer, graph_of

from json_lines import read_lines
from settings_file import with_settings
from veriglot.cli.dataset_articles import written_once

if TYPE_CHECKING:
    from pathlib import Path


COMMAND = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())"]


def veriglot(*words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *with_settings([*words])]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)


def wiki_pages(count: int = 60) -> list[WikiPage]:
    """Articles, every third short, every fifth marked, every seventh with few edits; and two that are none."""
    pages = [
        WikiPage(
            f"Ort {number}",
            f"Ort {number} ist ein Ort. {'Er hat Häuser. ' * (1 if number % 3 == 0 else 40)}\n== Lage ==\nAm Fluss.",
            templates=("Infobox", "Sin mojuro") if number % 5 == 0 else ("Infobox",),
            categories=("Ort", "Fluss"),
            edits=9,
            bots=7 if number % 7 == 0 else 1,
        )
        for number in range(1, count + 1)
    ]
    return [*pages, WikiPage("Ort", "Ort steht für:", disambiguation=True), WikiPage("Alt", redirect="Ort 1")]


def passing() -> set[str]:
    return {f"Ort {n}" for n in range(1, 61) if n % 3 and n % 5 and n % 7}


ENGLISH = [WikiPage("Template:Unreferenced", ns=10, langlinks=(("de", "Vorlage:Sin mojuro"),))]
STATISTICS = {"pages": 400, "articles": 100, "edits": 9000}


def words_for(wiki: WikiServer, english: WikiServer, output: Path, count: int = 500) -> list[object]:
    options = ["-e", "de", "-n", count, "-o", output, "--min-characters", 300, "--rate", 2000]
    return [
        "dataset",
        "articles",
        *options,
        "--wiki-servers",
        f"de={wiki.base_url}",
        "--wiki-servers",
        f"en={english.base_url}",
    ]


def test_random_articles_with_the_account_of_every_filter(tmp_path: Path) -> None:
    with WikiServer(wiki_pages(), statistics=STATISTICS) as wiki, WikiServer(ENGLISH) as english:
        words = words_for(wiki, english, tmp_path / "de.jsonl")
        done = veriglot(*words)
        asked = len(wiki.arrivals)
        again = veriglot(*words)
        assert len(wiki.arrivals) == asked
        other = veriglot(*words, "--seed", 1)
    assert done.returncode == 0, done.stderr
    rows = read_lines(tmp_path / "de.jsonl")
    assert {row["title"] for row in rows} == passing()
    assert all((row["edits"], row["bot_edits"], row["editors"]) == (9, 1, 7) for row in rows)
    assert rows[0]["lead"].startswith("Ort ")
    assert "Lage" not in rows[0]["lead"]
    account = json.loads((tmp_path / "de.jsonl.report.json").read_text("utf-8"))
    report = account["report"]
    assert (report["met"], report["absent"], report["written"]) == (61, {"disambiguation": 1}, len(passing()))
    assert [one["name"] for one in report["filters"]] == ["depth", "length", "maintenance", "edits"]
    assert [one["dropped"] for one in report["filters"]] == [0, 20, 8, 32 - len(passing())]
    assert report["filters"][2]["reasons"] == {"unreferenced": 8}  # a name that only the wikis themselves tell
    assert "61 pages met" in done.stdout
    assert "dropped by edits" in done.stdout
    assert f"{len(passing())} of the 500 articles that were asked for" in done.stderr
    assert (again.returncode, "is finished" in again.stderr) == (0, True)
    assert other.returncode == 2
    assert "--overwrite" in other.stderr


def test_a_shallow_wikipedia_is_refused_before_any_article_is_fetched(tmp_path: Path) -> None:
    shallow = {"pages": 110, "articles": 100, "edits": 500}
    with WikiServer(wiki_pages(), statistics=shallow) as wiki, WikiServer(ENGLISH) as english:
        words = words_for(wiki, english, tmp_path / "de.jsonl")
        refused = veriglot(*words)
        assert len(wiki.arrivals) == 1
        taken = veriglot(*words, "--min-depth", 0)
    assert (refused.returncode, taken.returncode) == (2, 0)
    assert "depth 0.0455, below 5" in refused.stderr
    assert "Set min_depth = 0" in refused.stderr


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    with WikiServer(wiki_pages(30), statistics=STATISTICS) as wiki, WikiServer(ENGLISH) as english:
        calm = veriglot(*words_for(wiki, english, tmp_path / "calm.jsonl"))
    assert calm.returncode == 0, calm.stderr
    moments = random.Random(5)
    with (
        WikiServer(
            wiki_pages(30),
            Faults(seed=8, busy=0.04, error=0.04, cut=0.06, broken=0.04),
            lagged=1,
            listed=9,
            statistics=STATISTICS,
        ) as wiki,
        WikiServer(ENGLISH, lagged=1) as english,
    ):
        words = words_for(wiki, english, tmp_path / "de.jsonl")
        kills = 0
        for _ in range(6):
            process = subprocess.Popen(
                [*COMMAND, *with_settings([*words])],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            before = len(wiki.arrivals)
            while len(wiki.arrivals) < before + moments.randrange(4, 30) and process.poll() is None:
                time.sleep(0.005)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
            assert not (tmp_path / "de.jsonl").exists() or process.returncode == 0
        done = veriglot(*words)
        assert done.returncode == 0, done.stderr
        assert kills >= 3
        # What was answered and killed before it was kept is asked again: at most once a kill.
        assert sum(count - 1 for count in wiki.paid.values()) <= kills
    calm_rows, rows = ((tmp_path / name).read_bytes() for name in ("calm.jsonl", "de.jsonl"))
    assert sorted(rows.splitlines()) == sorted(calm_rows.splitlines())


KILLED = """
import os, sys
from pathlib import Path
import msgspec
from veriglot.cli.dataset_articles import written_once

class Order(msgspec.Struct):
    name: str

sys.addaudithook(lambda event, _: os._exit(9) if event == "os.rename" else None)
written_once(Path(sys.argv[1]), Order("new"), lambda: ([Order("row")], {}), restart=True)
"""


def test_an_older_output_is_never_taken_for_that_of_a_restart_that_was_killed(tmp_path: Path) -> None:
    class Order(msgspec.Struct):
        name: str

    path = tmp_path / "out.jsonl"
    for is_new in (True, False):
        assert written_once(path, Order("old"), lambda: ([Order("row")], {}), restart=False)[1] is is_new
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == 9
    assert written_once(path, Order("new"), lambda: ([Order("row")], {}), restart=False)[1]


def test_titles_categories_and_people(tmp_path: Path) -> None:
    (tmp_path / "known.jsonl").write_text(
        '{"id": "Q1", "sitelinks": 3, "titles": {"de": "Ort 2"}}\n{"id": "Q2", "sitelinks": 3, "titles": {"en": "X"}}\n'
    )
    with WikiServer(wiki_pages()) as wiki:
        common = [
            "dataset",
            "articles",
            "-e",
            "de",
            "--wiki-servers",
            f"de={wiki.base_url}",
            "--no-filters",
            "--rate",
            2000,
            "--json",
        ]
        found: dict[str, Any] = {}
        for name, words, stdin in (
            ("titles", ["--titles", "-"], "Ort 4\n\nNirgends\nAlt\n"),
            ("people", ["--people", tmp_path / "known.jsonl"], ""),
            ("category", ["--category", "Ort", "-n", 5], ""),
        ):
            done = veriglot(*common, *words, "-o", tmp_path / f"{name}.jsonl", stdin=stdin)
            assert done.returncode == 0, done.stderr
            lines = (tmp_path / f"{name}.jsonl").read_text("utf-8").splitlines()
            found[name] = [json.loads(line)["title"] for line in lines]
            assert json.loads(done.stdout)["report"]["filters"] == []
            assert ("1 of the people" in done.stderr) == (name == "people")
        clash = veriglot(*common, "--titles", "-", "--category", "Ort", "-o", tmp_path / "clash.jsonl")
    assert found == {
        "titles": ["Ort 4", "Ort 1"],
        "people": ["Ort 2"],
        "category": ["Ort 1", "Ort 2", "Ort 3", "Ort 4", "Ort 5"],
    }
    assert clash.returncode == 2
    assert "exclude each other" in clash.stderr


def test_a_dump_says_what_it_cannot_check(tmp_path: Path) -> None:
    text = "Wort " * 100
    pages = "".join(
        f"<page><title>A{n}</title><ns>0</ns><id>{n}</id><revision><id>{n}</id><text>{text}</text></revision></page>"
        for n in range(1, 30)
    )
    base = "<siteinfo><base>https://de.wikipedia.org/wiki/X</base></siteinfo>"
    (tmp_path / "d.xml").write_text(f"<mediawiki>{base}{pages}</mediawiki>", "utf-8")
    words = ["dataset", "articles", "-e", "de", "--dump", tmp_path / "d.xml", "--min-characters", 100, "-n", 5]
    done = veriglot(*words, "-o", tmp_path / "a.jsonl")
    assert done.returncode == 0, done.stderr
    assert "NOT CHECKED by edits" in done.stdout
    assert "depth of the edition is not checked" in done.stderr
    rows = read_lines(tmp_path / "a.jsonl")
    assert [row["unchecked"] for row in rows] == [["depth", "edits"]] * 5
    told = veriglot(*words, "-o", tmp_path / "b.jsonl", "--statistics", "400,100,9000", "--strict-filters")
    assert "5 of the" not in told.stdout
    assert json.loads((tmp_path / "b.jsonl.report.json").read_text())["report"]["written"] == 0  # edits are unknown
    wrong = veriglot(*words, "-o", tmp_path / "c.jsonl", "--statistics", "many")
    assert wrong.returncode == 2


@pytest.mark.parametrize("views", [True, False])
def test_people(tmp_path: Path, views: bool) -> None:
    entities = [
        Entity(number, {"en": f"N {number}", "ar": f"ن{number}", "tr": f"T{number}"}, others=number % 4)
        for number in range(1, 41)
    ]
    counts = {("en.wikipedia", f"N_{number}"): [number] * 12 for number in range(1, 40)}
    words = ["dataset", "people", "-l", "en,ar,tr", "-n", 10, "--rate", 2000, "-o", tmp_path / "people.jsonl"]
    with (
        SparqlServer(graph_of(entities, {}), Faults(seed=3, busy=0.03, error=0.02, cut=0.03, broken=0.02)) as wikidata,
        PageViewServer(counts, Faults(seed=3, busy=0.03, error=0.02, cut=0.03, broken=0.02)) as viewed,
    ):
        words += ["--wikidata-server", wikidata.base_url, "--views-server", viewed.base_url]
        done = veriglot(*words, *([] if views else ["--views-in", "none"]))
        assert done.returncode == 0, done.stderr
        assert wikidata.paid_most() == 1
        assert viewed.paid_most() == int(views)
    rows = read_lines(tmp_path / "people.jsonl")
    assert len(rows) == 10
    assert all(set(row["names"]) == {"en", "ar", "tr"} for row in rows)
    if views:
        read = [row["views"]["en"] or 0 for row in rows]
        assert read == sorted(read, reverse=True)
        assert max(read) > 36 * 12  # one of each tenth
        assert min(read) < 5 * 12
        assert "40 people found, 40 described (1 without a count of views), 10 written" in done.stdout


def test_wikimedia_is_not_asked_without_a_contact(tmp_path: Path) -> None:
    done = veriglot("dataset", "articles", "-e", "de", "-o", tmp_path / "de.jsonl")
    assert done.returncode == 2
    assert "--contact" in done.stderr
    assert not (tmp_path / "de.jsonl").exists()
