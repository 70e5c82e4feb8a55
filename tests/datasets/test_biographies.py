"""Biographies: the same people in every language, with one prompt for each."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import reference

from veriglot.datasets.queries import NamedPerson, biographies, biography_languages, person_from
from veriglot.datasets.responses import Planned, plan
from veriglot.errors import InputError
from veriglot.records import Sample, Task
from veriglot.storage.checkpoint import FailedRow

NAMES = dict.fromkeys(biography_languages(), "Anna Kroll")


def test_every_person_is_asked_about_in_every_language_of_kang() -> None:
    found = list(biographies([NamedPerson("Q1", NAMES), NamedPerson("Q2", NAMES)]))
    assert len(found) == 38
    assert len({one.id for one in found}) == 38
    first = found[0]
    assert isinstance(first, Sample)
    assert (first.id, first.task, first.response, first.language) == ("Q1-bg", Task.BIOGRAPHY, "", "bg")
    assert first.question == "Напишете биография на следния човек: Anna Kroll"
    assert first.meta == {"person": "Q1", "name": "Anna Kroll", "prompt": "biography@1"}
    assert first.evidence == ()


def test_five_samples_a_prompt() -> None:
    rows = plan(biographies([NamedPerson("Q1", NAMES)]), "m", design="runs", seeds=range(5))
    assert sum(isinstance(one, Planned) for one in rows) == 19 * 5


def test_a_name_that_is_missing_is_a_failed_row() -> None:
    found = list(
        biographies([NamedPerson("Q1", {"de": "Anna", "zh": "安娜"}), FailedRow("broken")], ["de", "zh-Hans", "fr"])
    )
    assert [type(one) for one in found] == [Sample, Sample, FailedRow, FailedRow]
    assert found[2].id == "Q1-fr"
    assert "no name in fr" in found[2].message  # type: ignore[union-attr]


def test_references_become_evidence() -> None:
    held = {("Q1", "de"): reference("de")}
    german, english = biographies([NamedPerson("Q1", NAMES)], ["de", "en"], references=held)
    assert isinstance(german, Sample)
    assert isinstance(english, Sample)
    assert [one.text for one in german.evidence] == [reference("de").text]
    assert english.evidence == ()


def test_people_are_read_with_the_names_first() -> None:
    data: dict[str, Any] = {
        "item": "Q1",
        "titles": {"de": "Anna Kroll (Müllerin)", "fr": "Anna Kroll"},
        "names": {"de": "Anna Kroll"},
    }
    person = person_from({**data, "views": {"de": 12}})
    names = {"de": "Anna Kroll", "fr": "Anna Kroll"}
    assert person == NamedPerson("Q1", names, {"views": {"de": 12}}, data["titles"])


def test_only_the_views_of_a_language_go_on_with_its_prompt() -> None:
    person = NamedPerson("Q1", {"de": "Anna", "zh": "安娜", "fr": "Anne"}, {"born": 1702, "views": {"de": 12, "zh": 3}})
    found = list(biographies([person], ["de", "zh-Hans", "fr"]))
    assert [one.meta.get("views") for one in found if isinstance(one, Sample)] == [12, 3, None]
    assert {one.meta["born"] for one in found if isinstance(one, Sample)} == {1702}


@pytest.mark.parametrize("data", [[], {"names": {"de": "A"}}, {"id": "Q1"}, {"id": "Q1", "names": {"de": " "}}])
def test_what_is_no_person_is_refused(data: Any) -> None:
    with pytest.raises(InputError):
        person_from(data)
