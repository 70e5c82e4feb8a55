"""People and articles from files, models by script and in this process, failed calls, and invalid options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from misbehaving import Arrival, ModelServer, prompt_of

from commands import command
from json_lines import read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Command

pytestmark = pytest.mark.slow

PEOPLE = [
    {"id": "Q1", "names": {"en": "Anna Kroll", "zh": "安娜·克罗尔"}, "views": {"en": 5}, "born": 1731},
    {"id": "own-2", "names": {"en": "Jan Vos", "zh": "扬·沃斯"}, "views": {"en": 50}},
    {"id": "Q3", "names": {"en": "Eva Ray", "zh": "伊娃·雷"}, "views": {"en": 500}},
    {"id": "Q4", "names": {"en": "No Chinese Name"}, "views": {"en": 1}},
]
TEXTS = {
    "en": "{name} was a miller in the village of Upper Field and was born in 1731.",
    "zh": "{name}是上田村的一位磨坊主，生于1731年，在那里建造了磨坊。",
}

FRENCH = r"\1 était boulanger à Paris et vivait là-bas."
factual = command("dataset", "biographies")


def article(person: dict[str, Any], tag: str) -> dict[str, Any]:
    name = person["names"].get(tag, "他")
    text = TEXTS[tag].format(name=name)
    return {"id": f"{tag}-{person['id']}", "item": person["id"], "language": tag, "title": name, "text": text}


def write(path: Path, rows: list[Any]) -> Path:
    texts = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    """People and articles, some of them unusable; and the options with their paths."""
    rows: list[Any] = [article(person, tag) for person in PEOPLE for tag in TEXTS]
    empty = {**article(PEOPLE[2], "zh"), "text": " "}
    rows = [row for row in rows if row["id"] != "zh-Q3"]
    rows += [empty, "no json", {**rows[0], "id": "another"}, {**rows[0], "id": "third", "item": None}]
    people = write(tmp_path / "people.jsonl", [*PEOPLE, {"names": {"en": "Nobody"}}])
    articles = write(tmp_path / "articles.jsonl", rows)
    return ["-l", "en,zh", "--people", people, "--articles", articles]


@pytest.fixture
def script(tmp_path: Path) -> list[object]:
    rules = [
        {"match": "Eva Ray", "error": "the line is dead"},
        {"match": r"Write.*: (.*)", "reply": [r"\1 was a baker in the town of Lower Field.", FRENCH, ""]},
        {"match": "：(.*)", "reply": [r"\1是一位面包师，住在下田镇，生于1802年。", r"\1是上田村的一位磨坊主。{seed}"]},
    ]  # fmt: skip
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"rules": rules}, ensure_ascii=False), "utf-8")
    return ["-m", "m", "--mock-rules", path]


def test_an_article_is_named_by_its_person_alone(factual: Command, script: list[object], tmp_path: Path) -> None:
    rows = [{key: article(PEOPLE[0], tag)[key] for key in ("item", "language", "text")} for tag in TEXTS]
    people = write(tmp_path / "people.jsonl", PEOPLE[:1])
    articles = write(tmp_path / "articles.jsonl", rows)
    given = ["-l", "en,zh", "--people", people, "--articles", articles]
    done = factual(*given, *script, "-o", tmp_path / "set", "-n", 1)
    assert done.code == 0, done.err
    assert [row["id"] for row in read_lines(tmp_path / "set" / "articles.jsonl")] == ["Q1-en", "Q1-zh-Hans"]


def test_a_set_of_nobody_says_why_and_asks_nothing(factual: Command, script: list[object], tmp_path: Path) -> None:
    people = write(tmp_path / "people.jsonl", PEOPLE[:2])
    articles = write(tmp_path / "articles.jsonl", [article(PEOPLE[0], "en"), {"language": "en", "text": "Nameless."}])
    given = ["-l", "en,zh", "--people", people, "--articles", articles]
    done = factual(*given, *script, "-o", tmp_path / "set", "-n", 2)
    assert done.code == 1
    assert "missing in zh-Hans 2, missing in en 1, rows of people or articles that cannot be used 1" in done.err
    assert "people.set_aside.jsonl, correct" in done.err
    assert not (tmp_path / "set" / "prompts.jsonl").exists()


def test_files_alone_make_a_set(factual: Command, files: list[object], script: list[object], tmp_path: Path) -> None:
    root = tmp_path / "set"
    done = factual(*files, *script, "-o", root, "-n", 4)
    assert done.code == 0, done.err
    assert "2 of the 4 requested people have the required articles" in done.err
    assert not (root / "fetched").exists()
    assert [row["id"] for row in read_lines(root / "people.jsonl")] == ["Q1", "own-2"]  # in the order of the file
    aside = read_lines(root / "people.set_aside.jsonl")
    unusable = [row.get("detail", "") for row in aside if row["reason"] == "unusable"]
    assert len(unusable) == 5
    for part in (
        "no id",
        "not valid JSON",
        "no text",
        "article another: an earlier row has an article on this person",
        "names no `item`",
    ):
        assert any(part in detail for detail in unusable), (part, unusable)
    assert {row["id"]: row["languages"] for row in aside if row["reason"] == "articles"} == {
        "Q3": {"zh-Hans": "missing"},
        "Q4": {"zh-Hans": "no name"},
    }
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    assert manifest["people"] == {
        "candidates": 4, "looked_up": 4, "chosen": 2, "too_few_articles": 2, "unusable_rows": 5,
    }  # fmt: skip
    english, chinese = manifest["cells"]
    # Seeds 1 to 5 by threes: French, nothing, English, French, nothing.
    assert [english[name] for name in ("asked", "kept", "empty", "language_wrong", "alone", "pairs")] == [
        10, 2, 4, 4, 2, 0,
    ]  # fmt: skip
    assert (chinese["language"], chinese["kept"], chinese["pairs"], chinese["cross"]) == ("zh-Hans", 10, 40, 10)
    reference = read_lines(root / "reference.jsonl")
    assert reference[0]["evidence"][0]["text"] == TEXTS["en"].format(name="Anna Kroll")
    assert "samples" not in reference[0]["meta"]  # alone
    assert reference[0]["meta"]["born"] == 1731
    assert [row["reason"] for row in read_lines(root / "rejected.jsonl")[:3]] == ["language", "empty", "language"]
    assert done.out.splitlines()[2].split()[:2] == ["m", "en"]
    as_json = factual(*files, *script, "-o", root, "-n", 4, "--json")
    assert json.loads(as_json.out) == manifest


def test_calls_that_fail_are_counted_in_their_cell_and_can_be_made_up_for(
    factual: Command, files: list[object], script: list[object], tmp_path: Path
) -> None:
    root = tmp_path / "set"
    done = factual(*files, *script, "-o", root, "-n", 3, "--at-least", 1, "--spread", "top", "--samples", 2)
    assert done.code == 3
    assert [row["id"] for row in read_lines(root / "people.jsonl")] == ["Q3", "own-2", "Q1"]
    english, chinese = json.loads((root / "manifest.json").read_text("utf-8"))["cells"]
    assert {english["language"], chinese["language"]} == {"en", "zh-Hans"}
    assert (english["asked"], english["failed"], english["responses"]) == (6, 2, 4)
    assert (chinese["asked"], chinese["failed"]) == (4, 0)
    assert len(read_lines(root / "responses" / "m.jsonl.failed.jsonl")) == 2


class Picky(ModelServer):
    """Fails for Jan, until a flag is changed."""

    refuses = True

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        if self.refuses and "Jan Vos" in prompt_of(arrival.body):
            return 400, {"error": {"message": "not him"}}
        return super().handle(arrival)


def test_what_failed_is_taken_up_again_and_the_sets_are_made_anew(
    factual: Command, files: list[object], tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> str:
        return f"This person was born in the year {1700 + body['seed']} and worked as a miller in the village."

    root = tmp_path / "set"
    with Picky(answer=answer) as server:
        words = [*files, "-m", "m", "-o", root, "-n", 2, "--samples", 2, "--base-url", server.base_url]
        first = factual(*words)
        assert first.code == 3
        assert "--retry" in first.err
        assert json.loads((root / "manifest.json").read_text("utf-8"))["total"]["failed"] == 2
        server.refuses = False
        paid = dict(server.paid)
        again = factual(*words, "--retry")
        assert again.code == 0, again.err
        assert all(server.paid[digest] == 1 for digest in paid)
    total = json.loads((root / "manifest.json").read_text("utf-8"))["total"]
    assert (total["asked"], total["failed"], total["kept"], total["pairs"]) == (8, 0, 4, 4)
    assert {row["meta"]["person"] for row in read_lines(root / "reference.jsonl")} == {"Q1", "own-2"}


def test_several_models_and_another_one_later(factual: Command, files: list[object], tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        return f"This person was born in the year {1700 + body['seed']} and worked as a miller, said {body['model']}."

    root = tmp_path / "set"
    with ModelServer(answer=answer) as server:
        words = [*files, "-o", root, "-n", 2, "--samples", 2, "--base-url", server.base_url, "-q"]
        words += ["--temperature", 0.3, "--generation", "max_tokens=50"]
        assert factual(*words, "-m", "first").code == 0
        paid = len(server.arrivals)
        assert factual(*words, "-m", "first", "-m", "b=org/second").code == 0
        assert len(server.arrivals) == 2 * paid == 16
        assert {(one.body["temperature"], one.body["max_tokens"]) for one in server.arrivals} == {(0.3, 50)}
        stopped = factual(*words, "-m", "first", "-m", "third", "--max-calls", 3)
        assert stopped.code == 1
        assert "limit of 3 calls" in stopped.err
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    assert [(cell["model"], cell["language"]) for cell in manifest["cells"]] == [
        ("first", "en"), ("first", "zh-Hans"), ("b", "en"), ("b", "zh-Hans"),
    ]  # fmt: skip
    samples = read_lines(root / "reference.jsonl")
    for sample in samples:  # other samples are of the same model
        assert sample["generator"]["settings"]["model"].split("/")[-1] in sample["meta"]["samples"][0]


def test_a_real_model_in_this_process_gives_five_different_samples(
    factual: Command, files: list[object], tmp_path: Path
) -> None:
    for package in ("transformers", "torch"):
        pytest.importorskip(package, reason="needs the extra `local`: pip install 'veriglot[local]'")
    from tiny_model import write_model

    model, root = write_model(tmp_path / "model"), tmp_path / "set"
    words = [
        *files,
        "-o",
        root,
        "-n",
        1,
        "--client",
        "transformers",
        "-m",
        f"tiny={model}",
        "--generation",
        "max_tokens=12",
    ]
    done = factual(*words)
    assert done.code == 0, done.err
    responses = read_lines(root / "responses" / "tiny.jsonl")
    assert len(responses) == 10
    for tag in ("en", "zh-Hans"):
        assert len({row["response"] for row in responses if row["language"] == tag}) == 5  # drawn, not five times one
    cells = json.loads((root / "manifest.json").read_text("utf-8"))["cells"]
    for cell in cells:
        told = cell["kept"] + cell["empty"] + cell["undetected"] + cell["language_wrong"]
        assert told == cell["responses"] == 5
        assert cell["tokens_out"] <= 60
    before = (root / "manifest.json").read_bytes()
    assert factual(*words).code == 0
    assert (root / "manifest.json").read_bytes() == before


def test_a_dry_run_asks_and_writes_nothing(factual: Command, files: list[object], tmp_path: Path) -> None:
    done = factual("-o", tmp_path / "set", "-m", "m", "--dry-run", "--generation", "max_tokens=100")
    plan = json.loads(done.out)["m"]
    assert (plan["calls"], plan["tokens_out"]) == (500 * 19 * 5, 500 * 19 * 5 * 100)
    own = factual(*files, "-n", 2, "-o", tmp_path / "set", "-m", "m", "--dry-run")
    assert own.code == 3  # a row is not a person
    assert json.loads(own.out)["m"]["languages"] == {"en": 10, "zh-Hans": 10}
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "No model is named"),
        (("-m", "m"), "No server is named"),
        (("-m", "m", "-m", "m"), "one name"),
        (("--prompts-only", "--spread", "given"), "needs a file of people"),
        (("--prompts-only", "--articles", "a.jsonl"), "need a file of people"),
        (("--prompts-only", "--at-least", 3), "3 of 2 languages"),
        (("--prompts-only", "--views-in", "fr"), "not among --languages"),
        (("--prompts-only", "--views-from", "soon"), "views_from cannot be used"),
        (("--prompts-only", "--wiki-servers", "http://127.0.0.1:9"), "name its Wikipedia"),
        (("--prompts-only",), "without a contact address"),
        (("--prompts-only", "--price-in", 1), "both prices"),
    ],
)
def test_wrong_words_leave_with_2_before_anything_is_made(
    factual: Command,
    tmp_path: Path,
    words: tuple[object, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VERIGLOT_CONTACT", raising=False)
    done = factual("-l", "en,de", "-o", tmp_path / "set", *words)
    assert done.code == 2, done.err
    assert says in done.err
    assert not (tmp_path / "set" / "articles.jsonl").exists()


@pytest.mark.parametrize("more", [("--dry-run",), ("--prompts-only",)])
@pytest.mark.parametrize(
    "option",
    [
        ("--base-url", "http://ada:s3same@127.0.0.1:1/v1"),
        ("--wikidata-server", "http://ada:s3same@127.0.0.1:1"),
        ("--views-server", "ada:s3same@127.0.0.1:1"),
        ("--wiki-servers", "de=http://ada:s3same@127.0.0.1:1"),
        ("--wiki-servers", "https://ada:s3same@{edition}.mirror.example"),
    ],
)
def test_a_password_in_an_address_is_refused_and_shown_and_kept_nowhere(
    factual: Command,
    files: list[object],
    tmp_path: Path,
    option: tuple[str, str],
    more: tuple[str, ...],
) -> None:
    done = factual(*files, "-n", 2, "-o", tmp_path / "set", "-m", "m", *option, *more)
    assert done.code == 2
    assert "holds a user name or a password" in done.err
    assert "s3same" not in done.out + done.err
    assert not (tmp_path / "set").exists()


def test_a_file_that_is_not_there_is_named(factual: Command, tmp_path: Path) -> None:
    done = factual("-o", tmp_path / "set", "--prompts-only", "--people", tmp_path / "nowhere.jsonl")
    assert done.code == 1
    assert "nowhere.jsonl: there is no such file" in done.err
    assert not (tmp_path / "set").exists()
