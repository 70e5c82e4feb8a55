"""Evidence in another alphabet."""

from __future__ import annotations

import pytest

from veriglot.detectors.grounding.document import Document
from veriglot.text.unicode import alphabet_table

LATIN = "Beograd je glavni grad Srbije i leži na ušću Save u Dunav"
CYRILLIC = "Београд је главни град Србије и лежи на ушћу Саве у Дунав"


def shared(response: str, evidence: str) -> list[bool]:
    table = alphabet_table(response, [evidence])
    known = set(Document([evidence], None, table).word.tolist())
    return [word in known for word in Document([response], None, table).word.tolist()]


@pytest.mark.parametrize(("response", "evidence"), [(LATIN, CYRILLIC), (CYRILLIC, LATIN)])
def test_serbian_meets_in_both_alphabets(response: str, evidence: str) -> None:
    found = shared(response, evidence)
    assert len(found) == 12
    assert sum(found) >= 10


def test_names_of_other_alphabets_meet_where_letters_are_one_for_one() -> None:
    assert sum(shared("Boris Vladimir Ivanov Moskva", "Борис Владимир Иванов Москва")) == 4


def test_other_words_still_do_not_meet() -> None:
    assert not any(shared("Zagreb ostaje pokraj mora", CYRILLIC))


@pytest.mark.parametrize(
    ("response", "evidence"),
    [
        (LATIN, "Beograd"),
        (CYRILLIC, CYRILLIC),
        ("東京は日本の首都", CYRILLIC),
        (LATIN, "القاهرة عاصمة مصر"),
        ("1998", LATIN),
    ],
)
def test_texts_of_one_script_and_other_scripts_are_not_touched(response: str, evidence: str) -> None:
    assert alphabet_table(response, [evidence]) is None


def test_no_offset_moves() -> None:
    table = alphabet_table(LATIN, [CYRILLIC])
    plain, turned = Document([CYRILLIC], None), Document([CYRILLIC], None, table)
    assert turned.bounds.tolist() == plain.bounds.tolist()
    assert len(turned.stream) == len(plain.stream)
