"""`veriglot dataset biographies` on the command line, with local Wikipedias, Wikidata and a local model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from small_wikis import COMPLETE, NAMES, TEXTS, World

from commands import command
from json_lines import read_lines
from veriglot import read
from veriglot.scorers.registry import load_scorer

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command

pytestmark = pytest.mark.slow
veriglot = command()


def cells(manifest: Path) -> dict[str, dict[str, Any]]:
    return {cell["language"]: cell for cell in json.loads(manifest.read_text("utf-8"))["cells"]}


def test_a_set_from_the_wikipedias(veriglot: Command, tmp_path: Path) -> None:
    root = tmp_path / "set"
    with World() as world:
        done = veriglot(*world.words(root), "--price-in", 1, "--price-out", 10)
        assert done.code == 0, done.err
        asked = world.asked
        again = veriglot(*world.words(root), "--price-in", 1, "--price-out", 10)
        assert (again.code, world.asked) == (0, asked)
        assert again.out == done.out
        other = veriglot(*world.words(root, count=2))
        assert other.code == 2
        assert "--overwrite" in other.err
        assert {arrival.body["temperature"] for arrival in world.model.arrivals} == {1.0}
        assert {arrival.body["top_p"] for arrival in world.model.arrivals} == {0.9}

    people = read_lines(root / "people.jsonl")
    assert [person["id"] for person in people] == [f"Q{number}" for number in COMPLETE]
    assert people[0]["views"] == {"en": 70}
    aside = {row["id"]: row["languages"] for row in read_lines(root / "people.set_aside.jsonl")}
    assert aside == {
        "Q3": {"de": "disambiguation"},
        "Q4": {"fi": "no text"},
        "Q6": {"de": "another item"},
        "Q8": {"de": "missing"},
    }
    articles = {row["id"]: row for row in read_lines(root / "articles.jsonl")}
    assert len(articles) == 9
    assert articles["Q2-de"]["title"] == "Bea Ulm"  # through the redirect
    assert articles["Q2-de"]["text"].endswith("Die Mühle brannte 1902 ab.")

    assert [row["id"] for row in read_lines(root / "prompts.jsonl")][:3] == ["Q2-en", "Q2-de", "Q2-fi"]
    found = cells(root / "manifest.json")
    counts = ("asked", "responses", "kept", "empty", "language_wrong", "alone", "pairs", "cross")
    assert [tuple(found[tag][name] for name in counts) for tag in ("en", "de", "fi")] == [
        (15, 15, 15, 0, 0, 0, 60, 0),
        (15, 15, 12, 0, 3, 0, 36, 12),
        (15, 15, 9, 3, 3, 0, 18, 9),
    ]
    assert found["de"]["quality"]["right_language"] == pytest.approx(12 / 15)
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    assert manifest["people"]["found"] == 7  # Egon has no Finnish article, so Wikidata does not name him
    assert manifest["people"]["looked_up"] == 7
    assert manifest["articles"]["de"] == {"another item": 1, "disambiguation": 1, "missing": 1}
    total = manifest["total"]
    assert manifest["money"] == pytest.approx((total["tokens_in"] + 10 * total["tokens_out"]) / 1e6, abs=1e-6)
    for name, one in manifest["files"].items():
        assert one["rows"] == len(read_lines(root / name))
    table = done.out.splitlines()
    assert table[0].split()[:6] == ["model", "language", "asked", "failed", "responses", "kept"]
    assert table[-1].split()[:5] == ["all", "45", "0", "45", "36"]
    assert f"Responses rejected, with reasons in {root / 'rejected.jsonl'}: 9." in done.err


def test_rows_of_the_sets(veriglot: Command, tmp_path: Path) -> None:
    root = tmp_path / "set"
    with World() as world:
        assert veriglot(*world.words(root), "-q").code == 0
    reference = list(read(root / "reference.jsonl"))
    by_id = {sample.id: sample for sample in reference}
    finnish = by_id["Q7-fi/org/mill/1"]
    assert [one.language for one in finnish.evidence] == ["fi"]
    assert finnish.evidence[0].text.startswith(TEXTS["fi"].split("\n")[0].format(name=NAMES[7]))
    # Only accepted samples count: not the one in English (3), and not the one without a word (4).
    assert finnish.meta["samples"] == [by_id[f"Q7-fi/org/mill/{seed}"].response for seed in (2, 5)]
    assert {sample.meta["group"] for sample in reference} == {"Q1", "Q2", "Q7"}
    crossed = list(read(root / "en.jsonl"))
    assert {sample.language for sample in crossed} == {"de", "fi"}
    assert {passage.language for sample in crossed for passage in sample.evidence} == {"en"}
    pairs = list(read(root / "pairs.jsonl"))
    assert len({sample.id for sample in pairs}) == len(pairs) == 60 + 36 + 18
    for pair in pairs:
        own, sister = by_id[pair.meta["response"]], by_id[pair.meta["sister"]]
        assert (pair.response, pair.evidence[0].text) == (own.response, sister.response)
        assert own.id != sister.id
        assert own.meta["query"] == sister.meta["query"]
    rejected = read_lines(root / "rejected.jsonl")
    assert {(row["language"], row["reason"], row["found"]) for row in rejected} == {
        ("de", "language", "en"),
        ("fi", "language", "en"),
        ("fi", "empty", None),
    }
    assert all(row["sample"]["response"] for row in rejected)

    # The mean score of the pairs is the score of the rows with the other samples.
    single = load_scorer("pairwise:rouge-l").score(reference)
    every = load_scorer("rouge-l").score(pairs)
    means: dict[str, list[float]] = {}
    for pair, score in zip(pairs, every, strict=True):
        assert score.value is not None
        means.setdefault(pair.meta["response"], []).append(score.value)
    for sample, score in zip(reference, single, strict=True):
        assert score.value == pytest.approx(sum(means[sample.id]) / len(means[sample.id]))
    assert all(score.value is not None for score in load_scorer("rouge-1").score(reference))


def test_labels_and_the_bench_that_stands_beside_the_set(veriglot: Command, tmp_path: Path) -> None:
    root, labels = tmp_path / "set", tmp_path / "labels.jsonl"
    with World() as world:
        words = [*world.words(root), "-q"]
        assert veriglot(*words).code == 0
        rows = read_lines(root / "reference.jsonl")
        given = [
            {
                **row,
                "annotations": [{"annotator": "gold", "kind": "human", "taxonomy": "support", "spans": marks(row)}],
            }
            for row in rows
            if row["generator"]["seed"] != 5  # one of the samples has no labels, and still counts as another sample
        ]
        other = {**given[0], "response": "Something else."}
        strange = {**given[0], "id": "nobody"}
        annotated = [given[0] | other, *given[1:], strange]
        annotated[0]["annotations"] = [{**given[0]["annotations"][0], "spans": []}]
        labels.write_text("".join(json.dumps(row) + "\n" for row in annotated), "utf-8")
        asked = world.asked
        done = veriglot(*words[:-1], "--labels", labels)
        assert done.code == 0, done.err
        assert world.asked == asked  # labels cost nothing
    assert "for no row: 1." in done.err
    counts = json.loads((root / "manifest.json").read_text("utf-8"))["labels"]
    assert counts == {"given": len(given) + 1, "used": len(given) - 1, "of_another_text": 1, "of_no_row": 1}

    assert veriglot("bench", "run", root / "bench.toml", "-o", tmp_path / "bench", "-q").code in (0, 3)
    results = json.loads((tmp_path / "bench" / "results.json").read_text("utf-8"))
    seen = {figure["system"] for figure in results["figures"] if figure.get("value") is not None}
    assert {"rouge-1", "rouge-l", "pairwise:rouge-1", "pairwise:rouge-l"} <= seen
    # Half of the biographies have the wrong trade; their overlap with the article is lower.
    area = next(
        figure["value"]
        for figure in results["figures"]
        if (figure["system"], figure["level"], figure["measure"], figure["language"])
        == ("rouge-1", "response", "auroc", "mean")
    )
    assert area > 0.5
    evaluated = veriglot("evaluate", root / "reference.jsonl", "--detector", "grounding", "--json")
    assert evaluated.code in (0, 3), evaluated.err


def marks(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The trade, if it is the wrong one."""
    for trade in ("baker", "Bäcker", "leipuri"):
        place = row["response"].find(trade)
        if place >= 0:
            return [{"start": place, "end": place + len(trade), "type": "contradicted"}]
    return []


def test_fewer_languages_are_enough_where_one_says_so(veriglot: Command, tmp_path: Path) -> None:
    root = tmp_path / "set"
    with World() as world:
        done = veriglot(*world.words(root, count=8), "--at-least", 2, "--prompts-only")
    assert done.code == 0, done.err
    assert "People looked up: 8, taken: 8." in done.err
    prompts = {row["id"] for row in read_lines(root / "prompts.jsonl")}
    assert len(prompts) == 8 * 3 - 5
    assert prompts.isdisjoint({"Q3-de", "Q4-fi", "Q5-fi", "Q6-de", "Q8-de"})
    aside = {(row["id"], row["language"]): row["reason"] for row in read_lines(root / "people.set_aside.jsonl")}
    assert aside["Q5", "fi"] == "no title"
    assert not (root / "manifest.json").exists()


def test_a_language_outside_the_set_is_held_against_where_there_is_an_article(
    veriglot: Command, tmp_path: Path
) -> None:
    with World() as world:
        words = world.words(tmp_path / "none")
        done = veriglot(*words, "--cross", "none")
        assert done.code == 0
        assert not (tmp_path / "none" / "en.jsonl").exists()
        words = world.words(tmp_path / "fi")
        assert veriglot(*words, "--cross", "fi").code == 0
    crossed = read_lines(tmp_path / "fi" / "fi.jsonl")
    assert {row["language"] for row in crossed} == {"en", "de"}
