"""Ids that occur in several inputs: a prediction is told from others of its output by its id alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from rows import samples

from veriglot.records import encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Command = Callable[..., Outcome]

WORD_ABSENCE = ("--detector", "word_absence:WordAbsence")


def _twice(folder: Path) -> tuple[Path, Path]:
    lines = b"".join(encode(row) + b"\n" for row in samples(3))
    paths = (folder / "a.jsonl", folder / "b.jsonl")
    for path in paths:
        path.write_bytes(lines)
    return paths


def test_an_output_holds_every_id_once(veriglot: Command, tmp_path: Path) -> None:
    a, b = _twice(tmp_path)
    outcome = veriglot("detect", a, b, *WORD_ABSENCE, "-o", tmp_path / "out.jsonl")
    assert outcome.code == 3
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 3
    failed = (tmp_path / "out.jsonl.failed.jsonl").read_text("utf-8")
    assert failed.count("occurred before") == 3
    assert failed.count("b.jsonl") == 3


def test_outputs_of_their_own_may_share_ids(veriglot: Command, tmp_path: Path) -> None:
    a, b = _twice(tmp_path)
    assert veriglot("detect", a, b, *WORD_ABSENCE, "--output", f"{tmp_path / 'out'}/").code == 0


TEXTS = {"a": "It rains in Rome.", "b": "It snows in Rome.", "c": "It hails in Rome."}
WRONG = {"anna": "abc", "ben": "ab", "cleo": "a"}  # the majority: a and b


def _of_people(folder: Path, ids: str | None = "id", name: str = "annotator") -> Path:
    """A row for each person and response; `ids` is what the ids are of: `id` a response, `row` a row, None nothing."""
    rows = [
        {
            ids: each if ids == "id" else f"{person}-{each}",
            "response": text,
            "evidence": "It rains in Rome.",
            name: person,
        }
        | {"unsupported": int(each in WRONG[person])}
        for person in WRONG
        for each, text in TEXTS.items()
    ]
    path = folder / "people.jsonl"
    renamed = ({("id" if key == "row" else key): value for key, value in row.items() if key} for row in rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in renamed), "utf-8")
    return path


def _figure(outcome: Outcome) -> tuple[Any, ...]:
    """Whose labels, how many responses, and the share of wrong ones."""
    document = json.loads(outcome.out)
    first = next(each for each in document["figures"] if each["level"] == "response")
    return document["about"]["annotator"], first["n_responses"], first["prevalence"]


@pytest.mark.parametrize("ids", ["id", None])
@pytest.mark.parametrize(("asked", "wrong"), [("majority", 2), ("union", 3), ("cleo", 1)])
def test_rows_of_several_people_are_one_response(
    veriglot: Command, tmp_path: Path, ids: str | None, asked: str, wrong: int
) -> None:
    """Each row counted as a response, and of those who labelled one as a whole the first alone counted."""
    words = ("evaluate", _of_people(tmp_path, ids), *WORD_ABSENCE, "--json")
    assert _figure(veriglot(*words, "--annotator", asked)) == (asked, 3, pytest.approx(wrong / 3))
    assert _figure(veriglot(*words)) == ("majority", 3, pytest.approx(2 / 3))


def test_files_of_several_people_count_apart_and_that_is_said(veriglot: Command, tmp_path: Path) -> None:
    """Three people's files of the same responses counted each response thrice, and nobody was told."""
    rows = _of_people(tmp_path).read_text("utf-8").splitlines()
    files = [tmp_path / f"{name}.jsonl" for name in WRONG]
    for file in files:
        file.write_text("\n".join(row for row in rows if json.loads(row)["annotator"] == file.stem), "utf-8")
    apart = veriglot("evaluate", *files, *WORD_ABSENCE, "--json")
    assert _figure(apart)[1] == 9
    assert "add --annotator majority" in apart.err
    together = veriglot("evaluate", *files, *WORD_ABSENCE, "--json", "--annotator", "majority")
    assert _figure(together)[1] == 3
    assert "add --annotator" not in together.err


def test_rows_of_one_response_with_ids_of_their_own_are_refused(veriglot: Command, tmp_path: Path) -> None:
    words = ("evaluate", _of_people(tmp_path, "row"), *WORD_ABSENCE, "--json")
    outcome = veriglot(*words)
    assert outcome.code == 1
    assert "--map id=" in outcome.err
    assert _figure(veriglot(*words, "--map", "id="))[1] == 3
    assert _figure(veriglot(*words, "--map", "annotator="))[1] == 9


def test_people_under_a_name_that_is_not_known_are_mapped(veriglot: Command, tmp_path: Path) -> None:
    words = ("evaluate", _of_people(tmp_path, name="who"), *WORD_ABSENCE, "--json")
    outcome = veriglot(*words)
    assert outcome.code == 3
    assert "--map annotator=COLUMN" in outcome.err
    assert _figure(veriglot(*words, "--map", "annotator=who"))[:2] == ("majority", 3)


def test_a_column_without_a_name_holds_no_names_of_people(veriglot: Command, tmp_path: Path) -> None:
    """Numbers of rows that pandas writes first were taken for annotators."""
    path = tmp_path / "pandas.csv"
    path.write_text(",response,evidence,unsupported\n0,It rains.,It rains.,0\n1,It snows.,It rains.,1\n", "utf-8")
    assert _figure(veriglot("evaluate", path, *WORD_ABSENCE, "--json"))[:2] == ("gold", 2)


def test_who_labelled_whole_responses_beside_marked_ones_is_known(veriglot: Command, tmp_path: Path) -> None:
    """The error said that there is nobody of that name."""
    path = tmp_path / "marked.csv"
    path.write_text(
        "id,response,evidence,annotator,unsupported,spans\n"
        'a,It snows.,It rains.,anna,1,"[[3, 8]]"\na,It snows.,It rains.,ben,1,\n',
        "utf-8",
    )
    assert _figure(veriglot("evaluate", path, *WORD_ABSENCE, "--json", "--annotator", "ben"))[:2] == ("ben", 1)


@pytest.mark.parametrize("ids", ["id,", ""])
def test_a_second_label_by_one_person_is_refused(veriglot: Command, tmp_path: Path, ids: str) -> None:
    """Without ids it counted as another response; with them the row was told to have an id of its own."""
    path = tmp_path / "twice.csv"
    rows = [f"{ids and 'a,'}It snows.,It rains.,{name}\n" for name in ("anna,1", "ben,1", "anna,0")]
    path.write_text(f"{ids}response,evidence,annotator,unsupported\n{''.join(rows)}", "utf-8")
    outcome = veriglot("evaluate", path, *WORD_ABSENCE, "--json")
    assert outcome.code == 3
    assert "line 4, field annotator: 'anna' labels the response of line 2 again. Delete the row" in outcome.err
    assert _figure(outcome)[:2] == ("majority", 1)
