"""Data cards: they have the accounts of runs and the information of people; anything else is unknown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from faulty_data import sample, sentences, sound, write
from made_up import queries as made_up_queries

from json_lines import read_lines, write_lines
from settings_file import main
from veriglot.datasets.cards.card import Given, blank, card, card_page, read_given, trace
from veriglot.datasets.checks.checker import CleanedCopy, check
from veriglot.errors import InputError, UsageError
from veriglot.records import Annotation, Evidence, Kind, Sample, Span, encode
from veriglot.signatures import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = """
[about]
title = "Mills | of <the> north"
contact = "mills@example.org"
creators = ["Ada", "Bo_b"]
[licence]
id = "cc-by-4.0"
[cost]
currency = "EUR"
prompts = 2.0
replies = 8.0
"""


def front(page: str) -> dict[str, Any]:
    """The front matter; each value is JSON, which is YAML too."""
    _, block, _ = page.split("---\n", 2)
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in block.splitlines())}


@pytest.fixture
def silver(tmp_path: Path) -> Path:
    """Silver data by rule, made by the command from a file of articles in tmp_path."""
    source = write(tmp_path / "articles.jsonl", sound(30, 31))
    output = tmp_path / "silver.jsonl"
    words = ["dataset", "rules", source, "-n", 12, "--shares", "entity=1,contradictory=1", "-o", output]
    assert main([*map(str, words), "-q"]) in {0, 3}
    return output


def test_a_card_says_how_silver_data_was_made_and_what_came_of_it(silver: Path) -> None:
    manifest = json.loads(silver.with_name("silver.jsonl.progress").read_text())
    account = json.loads(silver.with_name("silver.jsonl.account.json").read_text())["total"]
    page = card_page(card([str(silver)]))
    assert f"`{manifest['signature']}`" in page
    assert f"| articles.jsonl | `{file_sha256(silver.with_name('articles.jsonl'))}` | unchanged |" in page
    assert f"- rows: {manifest['rows']} processed, {manifest['failed']} failed" in page
    assert f"- seconds: {manifest['seconds']:,.1f}" in page
    assert f"- **Seconds:** {manifest['seconds']:,.1f}\n" in page
    for name in ("entity", "contradictory"):
        one = account["types"][name]
        assert f"| {name} | {one['asked']} | {one['taken']} |" in page
    assert f"| silver.jsonl | `{file_sha256(silver)}` |" in page
    assert "| silver.jsonl | 0 | 0 | 0 | 0.00 |" in page
    assert "by models or rules (silver), not by people" in page
    assert front(page)["annotations_creators"] == ["machine-generated"]
    rejected = silver.with_name("silver.jsonl.rejected.jsonl")
    lines = read_lines(rejected)
    made = {json.loads(line)["id"] for line in silver.read_text().splitlines()}
    (step,) = trace([str(silver)])
    unmade = {line["id"] for line in lines} - made
    assert unmade
    assert len(unmade) < len(lines)  # a row has several attempts
    assert step.rejected_rows == manifest["rows"] - len(made) == len(unmade) == sum(step.rejected.values())
    assert sum(step.tries.values()) == len(lines) - len(unmade)
    assert f"- rejected rows: {len(unmade)}: no\\_place {len(unmade)}\n" in page
    assert f"- rejected replies or attempts: {len(lines) - len(unmade)}: " in page


def test_a_source_that_changed_or_went_is_said_so(silver: Path) -> None:
    source = silver.with_name("articles.jsonl")
    source.write_bytes(source.read_bytes() + encode(sample("more", "More.")) + b"\n")
    assert [one.state for one in trace([str(silver)])[0].sources] == ["changed"]
    source.unlink()
    assert [one.state for one in trace([str(silver)])[0].sources] == ["absent"]


def test_models_and_costs_are_those_of_the_rows(tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    write_lines(queries, made_up_queries(5))
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [{"reply": "Die Mühle wurde von der Witwe gebaut."}]}), "utf-8")
    answers = tmp_path / "answers.jsonl"
    asked = ["dataset", "responses", queries, "-m", "scripted-7b", "--mock-rules", script]
    assert main([*map(str, asked), "--revision", "r3", "-o", str(answers), "-q"]) == 0
    given = tmp_path / "about.toml"
    given.write_text(ABOUT, "utf-8")
    found = card([str(answers)], given=read_given(given))
    page = card_page(found)
    (one,) = found.contents.generated
    assert (one.name, one.revision, one.rows) == ("scripted-7b", "r3", 15)
    assert "| scripted-7b | r3 | 15 |" in page
    assert [step.output for step in found.steps] == ["answers.jsonl"]
    assert one.counted == 15
    assert one.tokens_in > 0
    assert (
        f"| 15 | {one.tokens_in:,} | {one.tokens_out:,} | {(2 * one.tokens_in + 8 * one.tokens_out) / 1e6:,.2f} EUR |"
        in page
    )


def test_steps_are_followed_back_to_what_the_sources_were_made_from(silver: Path) -> None:
    again = silver.with_name("again.jsonl")
    main(["dataset", "rules", str(silver), "-n", "4", "-o", str(again), "-q"])
    assert [step.output for step in trace([str(again)])] == ["again.jsonl", "silver.jsonl"]


def test_a_time_that_one_step_does_not_say_makes_the_sum_the_least(silver: Path) -> None:
    again = silver.with_name("again.jsonl")
    main(["dataset", "rules", str(silver), "-n", "4", "-o", str(again), "-q"])
    both = [json.loads(path.with_name(path.name + ".progress").read_text()) for path in (again, silver)]
    assert f"- **Seconds:** {sum(one['seconds'] for one in both):,.1f}\n" in card_page(card([str(again)]))
    del both[1]["seconds"]
    silver.with_name("silver.jsonl.progress").write_text(json.dumps(both[1]))
    told = f"- **Seconds:** at least {both[0]['seconds']:,.1f}; 1 of the steps do not say"
    assert told in card_page(card([str(again)]))


def test_a_plain_file_has_a_card_that_claims_nothing(tmp_path: Path) -> None:
    page = card_page(card([str(write(tmp_path / "rows.jsonl", sound(10, 32)))]))
    assert "Unknown: there is no manifest of a run beside the files" in page
    assert "Unknown: there is no account beside the files" in page
    for name in ("Purpose", "Licence", "Contact", "Intended", "Seconds", "Tokens and money", "Citation"):
        assert f"- **{name}:** Unknown." in page
    assert "10 responses do not say which model, rule or person gave them." in page
    head = front(page)
    assert head["license"] == "unknown"
    assert "pretty_name" not in head
    assert (head["language"], head["size_categories"]) == (["en"], ["n<1K"])


def test_what_people_say_stands_on_it_and_marks_nothing(tmp_path: Path) -> None:
    given = tmp_path / "about.toml"
    given.write_text(ABOUT, "utf-8")
    path = write(tmp_path / "rows.jsonl", sound(3, 33))
    page = card_page(card([str(path)], given=read_given(given)))
    assert "# Mills \\| of \\<the\\> north" in page
    assert "- **Creators:** Ada, Bo\\_b" in page
    assert "- **Licence:** cc-by-4.0" in page
    assert front(page)["pretty_name"] == "Mills | of <the> north"
    assert front(page)["license"] == "cc-by-4.0"


def test_the_blank_file_is_everything_unknown(tmp_path: Path) -> None:
    path = tmp_path / "blank.toml"
    path.write_text(blank(), "utf-8")
    assert read_given(path) == Given()


@pytest.mark.parametrize(
    ("text", "told"),
    [("[about]\ncontct = 'me'", "contct"), ("[cost]\nprompts = -1.0", "at least 0"), ("[about", "not valid TOML")],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "about.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=told):
        read_given(path)


def test_splits_are_counted_and_named_as_the_hub_names_them(tmp_path: Path) -> None:
    files: dict[str, list[Sample]] = {"train": sound(6, 34), "dev": sound(3, 35), "test": sound(4, 36)}
    for name, rows in files.items():
        write(tmp_path / "set" / f"{name}.jsonl", rows)
    page = card_page(card([str(tmp_path / "set")]))
    assert "| language | dev | test | train | all |" in page
    assert "| English (en) | 3 | 4 | 6 | 13 |" in page
    (config,) = front(page)["configs"]
    assert {one["split"] for one in config["data_files"]} == {"train", "validation", "test"}


def test_a_cleaned_copy_says_what_was_left_out(tmp_path: Path) -> None:
    rows = [*sound(6, 37), sample("tags", f"{sentences(1, 38)[0]} <entity>so</entity>.", []), sample("none", "", [])]
    check([str(write(tmp_path / "rows.jsonl", rows))], clean=CleanedCopy(str(tmp_path / "out")))
    (step,) = trace([str(tmp_path / "out" / "rows.jsonl")])
    assert (step.output, step.rejected_rows) == ("out/", 2)
    assert step.rejected == {"leftover_tags": 1, "no_response": 1}
    assert "rejected rows: 2: leftover\\_tags 1, no\\_response 1" in card_page(card([str(tmp_path / "out")]))


def test_accounts_of_other_shapes_are_shown_as_counts_and_damaged_files_are_named(tmp_path: Path) -> None:
    write(tmp_path / "set" / "rows.jsonl", sound(4, 39))
    account = {
        "signature": "mt|x",
        "cleaned": {"lines": 900, "fates": {"kept": 700}},
        "sample": {"union": 40, "parts": {"rows": {"wanted": 4, "lines": 4}}},
    }
    (tmp_path / "set" / "report.json").write_text(json.dumps(account))
    (tmp_path / "set" / "rows.jsonl.progress").write_text("{")
    page = card_page(card([str(tmp_path / "set" / "rows.jsonl")]))
    assert "| cleaned.fates.kept | 700 |" in page
    assert "| sample.union | 40 |" in page
    assert "- made by: `mt|x`" in page
    assert "- could not be read: rows.jsonl.progress" in page


def test_two_accounts_of_one_file_are_told_once_with_the_cost_of_all_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "set.jsonl", sound(4, 42))
    types = {"entity": {"asked": 9, "taken": 4, "reasons": {"glued": 5}}}
    for name, tokens in (("account", 40), ("summary", 70)):
        total = {"types": types, "calls": tokens // 10, "tokens_in": tokens, "tokens_out": tokens}
        (tmp_path / f"set.jsonl.{name}.json").write_text(json.dumps({"total": total}))
    (tmp_path / "set.jsonl.rejected.jsonl").write_bytes(b'{"reasons": [{"odd": 1}]}\n{"reason": "\xff"}\n')
    page = card_page(card([str(path)]))
    assert page.count("| entity | 9 | 4 |") == 1
    assert "| set.jsonl | 7 | 70 | 70 |" in page
    assert "not said 1" in page  # for a row that cannot be read


def test_settings_are_no_counts_and_a_file_without_a_readable_row_is_on_the_card(tmp_path: Path) -> None:
    good = write(tmp_path / "set" / "train.jsonl", sound(4, 41))
    bad = write(tmp_path / "set" / "dev.jsonl", [b'{"id": "x", "response": {}}'])
    files = {"train.jsonl": {"rows": 4}, "dev.jsonl": {"rows": 1}}
    manifest = {"made_by": {"count": 500, "seed": 3}, "made_from": "x", "total": {"asked": 12}, "files": files}
    (tmp_path / "set" / "manifest.json").write_text(json.dumps(manifest))
    made = card([str(good), str(bad)])
    page = card_page(made)
    assert "| total.asked | 12 |" in page
    assert "made\\_by.count" not in page
    assert f"| dev.jsonl | `{file_sha256(bad)}` | 28 | 0 | 1 | jsonl | dev |" in page
    assert len(made.files) == 2
    lone = write(tmp_path / "lone.jsonl", [b'{"id": "x", "response": {}}'])
    assert "configs" not in front(card_page(card([str(lone)])))  # no split, and no rows


def test_the_command_writes_card_and_questions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "rows.jsonl", [*sound(3, 40), b"{broken"])
    words = [
        "dataset",
        "card",
        str(path),
        "-q",
        "-o",
        str(tmp_path / "card.md"),
        "--write-about",
        str(tmp_path / "about.toml"),
    ]
    assert main(words) == 3
    assert (tmp_path / "card.md").read_text("utf-8") == card_page(card([str(path)]))
    assert main(words) == 2
    assert "already exists" in capfd.readouterr().err
    assert main(["dataset", "card", str(path), "-q", "--about", str(tmp_path / "about.toml")]) == 3
    assert capfd.readouterr().out.startswith("---\n")
    with pytest.raises(UsageError, match="Standard input"):
        card(["-"])


def rated(number: int, tag: str, **people: dict[str, float | str]) -> Sample:
    layers = tuple(
        Annotation(name, Kind.HUMAN, "fava", spans=(Span(0, 3, "entity"),), ratings=ratings)
        for name, ratings in people.items()
    )
    return Sample(f"r{number}", "Oslo it is.", language=tag, evidence=(Evidence("Bergen it is."),), annotations=layers)


def test_ratings_stand_by_language_with_the_share_of_each_step(tmp_path: Path) -> None:
    """mFAVA's Table 1: five steps, of spans. Gold repeats ratings of annotators, which must not count twice."""
    rows = [
        rated(1, "de", ada={"fools[0:3]": 4, "clear": "yes"}, gold={"fools[0:3]": 4}),
        rated(2, "de", ada={"fools[0:3]": 1, "fools[4:6]": 2}, bo={"fools[0:3]": 5}),
        rated(3, "ru", gold={"fools[0:3]": 4}),
    ]
    path = write(tmp_path / "rated.jsonl", rows)
    lines = card_page(card([str(path)])).splitlines()
    assert "| fools | people | German (de) | 4 | 3.00 ± 1.83 | 1: 25.0%, 2: 25.0%, 4: 25.0%, 5: 25.0% |" in lines
    assert "| fools | people | Russian (ru) | 1 | 4.00 ± 0.00 | 4: 100.0% |" in lines
    assert "| fools | people | all languages | 5 | 3.20 ± 1.64 | 1: 20.0%, 2: 20.0%, 4: 40.0%, 5: 20.0% |" in lines
    assert "| clear | people | German (de) | 1 | - | yes: 100.0% |" in lines
    (total,) = (line for line in lines if line.startswith("| gold | people | fava | all languages"))
    assert total.endswith("| 2 | 2 |")  # entities, spans
    many = [rated(number, "de", ada={"score": number / 7}) for number in range(20)]
    page = card_page(card([str(write(tmp_path / "many.jsonl", many))]))
    assert "| score | people | German (de) | 20 | 1.36 ± 0.85 | - |" in page


def test_labels_of_whole_responses_are_not_said_to_be_none(tmp_path: Path) -> None:
    """A regression: the card said that 0 rows were labelled, and had their labels in a table."""
    layers = [(Annotation("ada", Kind.HUMAN, "hat", ratings={"unsupported": number % 2}),) for number in range(4)]
    rows = [Sample(f"r{number}", "A híd.", language="hu", annotations=own) for number, own in enumerate(layers)]
    page = card_page(card([str(write(tmp_path / "a.jsonl", rows))]))
    assert "; 0 of them with labels of spans. Figures" in page
    assert "| unsupported | people |" in page


def test_questions_are_told_with_their_articles_and_categories(tmp_path: Path) -> None:
    """mFAVA's Table 9: an article with two questions counts once, and so does a category of two articles."""
    head = "Article Title,URL,Category,reference_1,query_1,query_2\n"
    (tmp_path / "wiki_references_and_queries_de.csv").write_text(
        head + "Aal,u/a,Fische,Der Aal ist ein Fisch.,Was ist der Aal?,Wo lebt er?\n"
        "Hecht,u/h,Fische,Der Hecht ist ein Fisch.,Was ist der Hecht?,\n"
    )
    (tmp_path / "wiki_references_and_queries_tr.csv").write_text(
        head + "Ankara,u/n,Kentler,Ankara bir kenttir.,Ankara nedir?,Nerede?\n"
    )
    write(tmp_path / "own.jsonl", [
        Sample("x", "", language="de", question="Was frisst er?", evidence=(Evidence("Der Aal.", url="u/a"),),
               meta={"categories": ["Fische", "Flüsse"]}),
    ])  # fmt: skip
    lines = card_page(card([str(tmp_path)])).splitlines()
    rows = ["| German (de) | 2 | 2 | 4 |", "| Turkish (tr) | 1 | 1 | 2 |", "| all languages | 3 | 3 | 6 |"]
    start = lines.index(rows[0])
    assert lines[start : start + 3] == rows
