"""`veriglot studio` from the outside: a project from its first file to a restored backup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from veriglot.studio.people import invite, person_of_token, renew
from veriglot.studio.project import load
from veriglot.studio.tables import Role
from veriglot.studio.web import InvitationError, Studios, dead_links

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from veriglot.studio.project import Project

_MAIN = "import sys; from veriglot.cli import main; sys.exit(main())"


def veriglot(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _MAIN, "studio", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_project_from_its_file_to_a_restored_backup(tmp_path: Path) -> None:
    folder = tmp_path / "Größe"
    veriglot("init", folder, "--preset", "mfava", "--languages", "German")
    assert load(folder / "project.toml").slug == "grosse"
    assert "exists already" in veriglot("init", folder, code=2).stderr
    assert "there is no such file" in veriglot("import", folder, code=1).stderr
    rows = ['{"id": "a", "response": "Ada war hier.", "language": "de"}', "{broken"]
    (folder / "data.jsonl").write_text("\n".join(rows), "utf-8")
    done = veriglot("import", folder, code=3)
    assert "Items added: 1 (de 1)" in done.stdout
    assert "data.jsonl, line 2" in done.stderr
    assert f"next: veriglot studio invite {folder} --role lead" in " ".join(done.stderr.split())
    assert "Nothing is labelled yet. A rate needs final labels of 8 random items" in veriglot("rates", folder).stdout
    assert json.loads(veriglot("import", folder, "--json", code=3).stdout)["known"] == 1
    (link,) = veriglot("invite", folder, "--role", "lead", "--public-url", "https://studio.example/").stdout.split()
    assert link.startswith("https://studio.example/join/")
    project = load(folder / "project.toml")
    (studio,) = Studios([project])
    with studio.store.reading() as tx:
        person = person_of_token(tx, studio, link.rpartition("/")[2])
        assert person.role is Role.LEAD
    studio.store.close()
    status = json.loads(veriglot("status", folder, "--json").stdout)
    assert status["items"] == [{"role": "normal", "language": "de", "count": 1}]
    assert status["gold"] == 0
    assert [one["role"] for one in status["people"]] == ["lead"]
    assert "people      lead       invited 1, joined 0" in veriglot("status", folder).stdout
    assert "next:" not in veriglot("import", folder, code=3).stderr
    file = tmp_path / "b.jsonl.gz"
    made = json.loads(veriglot("backup", folder, file, "--json").stdout)
    target = tmp_path / "new.sqlite"
    back = veriglot("--database", target, "restore", folder, file, "--json")
    assert made["sha256"] == json.loads(back.stdout)["sha256"]
    assert not back.stderr  # its secret is where it was, so links open
    assert "not empty" in veriglot("--database", target, "restore", folder, file, code=1).stderr
    assert json.loads(veriglot("--database", target, "status", folder, "--json").stdout) == status


def test_data_is_found_where_the_command_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"id": "a", "response": "Ada war hier.", "language": "de", "annotations": [{"annotator": "ben", "spans": []}]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(row), "utf-8")
    veriglot("init", "p", "--data", "answers.jsonl")
    assert '"../answers.jsonl"' in (tmp_path / "p" / "project.toml").read_text("utf-8")
    done = veriglot("import", "p")
    assert "Items added: 1 (de 1)" in done.stdout
    for refused in (done, veriglot("serve", "p", code=2)):  # before an annotator asks for work
        told = " ".join(refused.stderr.split())
        assert "The exam of p has no items: nobody could begin. It needs items with known answers" in told
        assert "name who gave them as `silver` under [data]" in told


@pytest.mark.parametrize("preset", ["mfava", "hat"])
def test_without_labels_there_is_no_exam(tmp_path: Path, preset: str) -> None:
    """It was asked for, nobody could begin, and the next step was told all the same."""
    row = {"id": "a", "response": "Ада була тут.", "language": "uk", "evidence": [{"text": "Ada was here."}]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(row), "utf-8")
    made = veriglot("init", tmp_path, "--preset", preset, "--data", tmp_path / "answers.jsonl")
    assert "annotators start without an exam" in made.stderr
    assert "exam" not in veriglot("import", tmp_path).stderr
    file = tmp_path / "project.toml"
    file.write_text(re.sub(r"^# (?=\[|\w+ = )", "", file.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    assert "The exam of" in veriglot("import", tmp_path).stderr


def test_an_exam_of_another_file_begins_as_the_comment_of_the_preset_says(tmp_path: Path) -> None:
    spans = [{"start": 9, "end": 13, "type": "entity"}]
    rows = [{"id": "a", "response": "Ada was here.", "language": "en", "evidence": "Ada was here."}]
    exam = [{**rows[0], "id": "b", "response": "Ada was home.", "annotations": [{"annotator": "Kim", "spans": spans}]}]
    (tmp_path / "data.jsonl").write_text(json.dumps(rows[0]), "utf-8")
    (tmp_path / "exam.jsonl").write_text(json.dumps(exam[0]), "utf-8")
    veriglot("init", tmp_path)
    file = tmp_path / "project.toml"
    text = re.sub(r"^# (?=\[|\w+ = )", "", file.read_text("utf-8"), flags=re.MULTILINE)
    text = text.replace("items = 10", 'items = 1\npath = "exam.jsonl"').replace(
        'against = "silver"', 'against = "gold"'
    )
    file.write_text(text, "utf-8")
    told = veriglot("import", tmp_path, code=3).stderr
    assert 'this item has no known answer. Name who gave it under [data]: gold = "NAME".' in " ".join(told.split())
    file.write_text(text.replace('silver = "silver"', 'silver = "silver"\ngold = "Kim"'), "utf-8")
    assert veriglot("import", tmp_path).stdout.startswith("Items added: 1 (")


def test_a_detector_that_cannot_be_loaded_is_told_of_before_the_work(tmp_path: Path) -> None:
    veriglot("init", tmp_path, "--preset", "hat", "--data", tmp_path / "hat.jsonl")
    row = {"id": "a", "response": "Ada war hier.", "language": "de", "evidence": [{"text": "Ada was here."}]}
    (tmp_path / "hat.jsonl").write_text(json.dumps(row), "utf-8")
    file = tmp_path / "project.toml"
    text = re.sub(r"\[exam\].*?(?=\n\[(?!\[?exam))", "", file.read_text("utf-8"), flags=re.DOTALL)
    file.write_text(text + '\n[suggestions]\ndetector = "groundin"\n', "utf-8")
    for command in ("import", "serve"):
        assert "Did you mean grounding?" in veriglot(command, tmp_path, code=1).stderr


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    veriglot("init", tmp_path / "p")
    assert "There is no database" in veriglot("status", tmp_path / "p", code=1).stderr
    assert not list((tmp_path / "p").glob("*.sqlite"))


def test_agreement_names_a_row_that_stands_twice_and_tells_of_too_few_texts(tmp_path: Path) -> None:
    def row(number: int, name: str, end: int) -> str:
        spans = [{"start": 0, "end": end, "type": "entity"}]
        said = {"annotator": name, "kind": "human", "taxonomy": "fava", "spans": spans}
        text = f"Ada lived in Rome {number}."
        return json.dumps({"id": f"s{number}", "response": text, "language": "en", "annotations": [said]})

    anna, ben = tmp_path / "anna.jsonl", tmp_path / "ben.jsonl"
    anna.write_text("\n".join(row(number, "anna", 3 + 6 * (number % 2)) for number in range(3)), "utf-8")
    ben.write_text("\n".join(row(number, "ben", 3) for number in range(3)), "utf-8")
    done = veriglot("agreement", anna, ben)
    assert "too few: fewer than 5 texts" in done.stdout
    assert done.stderr == ""
    ben.write_text(ben.read_text("utf-8") + "\n" + row(1, "ben", 9).replace("s1", "s9"), "utf-8")
    done = veriglot("agreement", anna, ben, "--json")
    assert f"'ben' annotated one text twice: {ben}, row 2 (id 's1'), and {ben}, row 4 (id 's9')" in done.stderr
    told = json.loads(done.stdout)
    assert (told["anonymous"], len(told["repeated"])) == (True, 1)


def test_links_that_died_in_a_move_are_told_of(tmp_path: Path, make_project: Callable[..., Project]) -> None:
    """A backup restored elsewhere, without the secret: it is said how many links are dead, and what to do."""
    project = make_project()
    with closing(Studios([project])) as studios, studios.by_slug["test"].store.writing() as tx:
        tokens = [invite(tx, studios.by_slug["test"], Role.ANNOTATOR).token for _ in range(2)]
    file, there = tmp_path / "b.jsonl.gz", tmp_path / "there"
    veriglot("backup", project.path, file)
    there.mkdir()
    shutil.copy(project.path, there)
    message = veriglot("restore", there, file).stderr
    assert "the links of 2 people open nothing here" in message
    assert f"Copy test.secret from where the project was served to {there / 'test.secret'}" in message
    moved = load(there / "project.toml")
    with closing(Studios([moved])) as studios:  # as `serve` opens it, with a new secret
        studio = studios.by_slug["test"]
        assert "2 people" in dead_links(studio.store, moved)
        with pytest.raises(InvitationError):
            studios.of_token(tokens[0])
        with studio.store.writing() as tx:
            renew(tx, studio, tx.people(studio.id)[0].id)
        assert "the links of 1 people" in dead_links(studio.store, moved)
    shutil.copy(tmp_path / "test.secret", there)
    with closing(Studios([moved])) as studios:
        assert studios.of_token(tokens[1]).slug == "test"
        assert "the links of 1 people" in dead_links(studios.by_slug["test"].store, moved)  # the renewed one


def test_one_short_answer_beside_two_pieces_of_evidence_is_two_texts(tmp_path: Path) -> None:
    """Two people who agreed on every mark had a pi of 0.15, and were said to have annotated one text twice."""
    path = tmp_path / "short.csv"
    rows = [
        f"q{e},{e}년에 개통되었다.,1879년,{m},{who}" for who in ("ana", "bo") for e, m in ((1879, "[]"), (1897, "1879"))
    ]
    path.write_text("\n".join(["id,evidence,response,spans,annotator", *rows]), "utf-8")
    done = veriglot("agreement", path, "--resamples", "0", "--gamma", "0", "--json")
    report = json.loads(done.stdout)
    assert (report["texts"], report["repeated"]) == (2, [])
    assert {row["value"] for row in report["rows"] if row["measure"] == "kappa"} == {1.0}


def test_agreement_takes_a_column_of_names_and_labels_of_whole_responses(tmp_path: Path) -> None:
    """It had no --map, and saw marked parts alone."""
    path = tmp_path / "labels.csv"
    votes = {"ada": (1, 0, 1, 1), "bea": (1, 0, 0, 1)}
    rows = [f"r{i},It rains {i}.,Rain.,{wrong},{who}" for who in votes for i, wrong in enumerate(votes[who])]
    path.write_text("\n".join(["id,response,evidence,unsupported,name", *rows]), "utf-8")
    said = veriglot("agreement", path, code=1).stderr
    assert "--map annotator=COLUMN" in said
    assert "4 rows could not be read: left out of every figure; the first: " in said  # which is why
    done = veriglot("agreement", path, "--map", "annotator=name", "--unit", "response", "--resamples", "0", "--json")
    report = json.loads(done.stdout)
    assert (report["annotators"], report["shared"]) == ({"ada": 4, "bea": 4}, 4)
    kappa = next(row for row in report["rows"] if row["measure"] == "kappa")
    assert kappa["value"] == pytest.approx(0.5)
    assert "unit:response" in report["signature"]
    whole = veriglot("agreement", path, "--map", "annotator=name", "--unit", "pair", "--resamples", "0", "--json")
    assert json.loads(whole.stdout) == report


def test_notes_on_resamples_are_of_figures_without_an_interval(tmp_path: Path) -> None:
    """A note a figure, language and scope: dozens of lines below the tables."""
    for name, marked in (("anna", {0, 1, 2, 3}), ("ben", {1, 2, 3, 4})):
        rows = [
            {"id": str(number), "response": f"Міст {number} відкрили 1897 року.", "language": "uk", "annotator": name}
            | {"evidence": "Міст відкрили.", "spans": ["1897"] if number in marked else []}
            for number in range(9)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    files = (tmp_path / "anna.jsonl", tmp_path / "ben.jsonl", "--gamma", "0")
    assert any(each["reason"] for each in json.loads(veriglot("agreement", *files, "--json").stdout)["rows"])
    assert "undefined in" not in veriglot("agreement", *files).stdout
