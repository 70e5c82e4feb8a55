"""Which sentences of a page are accepted as facts; number of sentences of a page; names in a sentence."""

from __future__ import annotations

import pytest

from veriglot.datasets.halluverse.facts import (
    Chooser,
    FactSettings,
    Page,
    PageText,
    names_person,
    pages_of,
    read_sentences,
)
from veriglot.datasets.prompts import prompt_version
from veriglot.datasets.queries import Reference
from veriglot.llm.client import Reply
from veriglot.wikipedia.wikidata import Person

TEXT = """Early life
Anna Kroll was born in 1731 in the town of Oberfeld as a child of a miller.
She went to school in Lindau and learned three languages there.
In 1750 Kroll sold the mill. The buyer was a merchant from the town of Marbach.
Early career and first works
In the year 1762 Anna Kroll built a wooden bridge over the river Elm near Oberfeld.
In the year 1762 Anna Kroll built a wooden bridge over the river Elm, near Oberfeld!
Kroll's bridge stood until 1902, when a flood carried all of it away at night.[3]"""


def page(text: str = TEXT, title: str = "Anna Kroll (miller)", tag: str = "en") -> Page:
    return Page(Reference(f"{tag}-1", tag, text, title=title))


def unfit(given: Page, least: int, *, known: bool = False) -> str | None:
    row = FactSettings(min_sentences=least, known=known).unfit(given)
    return None if row is None else row.unfit


def test_sentences_are_counted_without_headings() -> None:
    assert len(page().sentences) == 7
    assert page("出生于1731年的安娜·克罗尔建造了一座桥。她后来搬到了林道。", tag="zh").sentences != []
    assert len(page("عاشت آنا في لينداو حتى عام 1750. ثم باعت الطاحونة إلى تاجر من ماربخ.", tag="ar").sentences) == 2
    assert len(page("แอนนาเกิดที่เมืองโอเบอร์เฟลด์ในปีหนึ่งพันเจ็ดร้อยสามสิบเอ็ด", tag="th").sentences) == 1
    assert page("Life and work of the miller\nReferences", tag="en").sentences == []


def test_pages_that_are_short_or_about_nobody_are_unfit() -> None:
    assert unfit(page(), 7) is None
    assert unfit(page(), 8) == "short"
    someone = Person("Q5", 3, names={"en": "Anna Kroll"}, titles={"en": "Anna Kroll (miller)"})
    (found,) = pages_of([page().reference], {"Q5": someone})
    assert isinstance(found, Page)
    assert found.person == someone
    assert found.names == ("Anna Kroll",)
    assert unfit(found, 7, known=True) is None
    assert unfit(page(), 7, known=True) == "nobody"
    assert unfit(page("the mill the mill " * 200 + "."), 1) == "garbled"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("In the year 1762 Anna Kroll built a wooden bridge over the river Elm near Oberfeld.", None),
        ("in the year 1762, anna kroll built a wooden bridge over the river Elm near Oberfeld", None),
        ("In 1762 Anna Kroll built a wooden bridge over the river Elm near Oberfeld.", None),
        ("In the year 1765 Bert Kroll sold a wooden bridge over the river Elm near Oberfeld.", "unsupported"),
        ("She won the Golden Sieve of the Guild of Millers in 1748.", "unsupported"),
        ("Anna Kroll built a wooden bridge over the river Elm", "part"),
        ("In 1750 Kroll sold the mill. The buyer was a merchant from the town of Marbach.", "several"),
        ("She went to school in Lindau and learned three languages there.", "subject"),
        ("The buyer was a merchant from the town of Marbach.", "subject"),
    ],
)
def test_what_was_chosen_is_looked_up_on_the_page(said: str, reason: str | None) -> None:
    text = PageText(page())
    text.take(said)
    assert [fault.reason for fault in text.rejections] == ([] if reason is None else [reason])
    assert [fact.text in TEXT for fact in text.facts] == [True] * (reason is None)


def test_a_sentence_is_taken_once_and_as_the_page_has_it() -> None:
    text = PageText(page())
    text.take("In 1762 Anna Kroll built a wooden bridge over the river Elm near Oberfeld.")
    (fact,) = text.facts
    assert not fact.exact
    assert fact.text.startswith("In the year 1762")
    text.take("In the year 1762 Anna Kroll built a wooden bridge over the river Elm, near Oberfeld!")
    assert [fault.reason for fault in text.rejections] == ["duplicate"]
    text.take("In 1750 Kroll sold the mill.")
    assert [one.id for one in text.facts] == ["en-1/1", "en-1/2"]


def test_sentences_of_another_language_are_no_facts() -> None:
    german = "Anna Kroll wurde im Jahr 1731 in der kleinen Stadt Oberfeld als Kind eines Müllers geboren."
    text = PageText(page(f"{TEXT}\n{german}"))
    text.take(german)
    assert [fault.reason for fault in text.rejections] == ["language"]


def test_any_subject_may_be_asked_for() -> None:
    text = PageText(page(), named=False)
    text.take("She went to school in Lindau and learned three languages there.")
    assert (len(text.facts), text.rejections) == (1, [])


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('{"sentences": ["One two three.", "Four five six."]}', ["One two three.", "Four five six."]),
        ('```json\n["One two three."]\n```', ["One two three."]),
        ("['It\\'s one.', \"Two.\"]", ["It's one.", "Two."]),
        ("Here they are:\n1. One two three.\n2) Four five six.", ["One two three.", "Four five six."]),
        ('{"facts": ["One two three."]}', ["One two three."]),
        ("<think>[1]</think>- One two three.", ["One two three."]),
        ("I cannot help with that.", []),
        ("", []),
    ],
)
def test_replies_are_read_in_the_forms_that_models_use(said: str, found: list[str]) -> None:
    assert read_sentences(Reply(said, "stop")) == found


@pytest.mark.parametrize(
    ("sentence", "name", "tag", "stands"),
    [
        ("Bennington'un ebeveynleri 1987 yılında ayrıldı.", "Chester Bennington", "tr", True),
        ("Роман Толстого вышел в 1869 году.", "Лев Толстой", "ru", True),
        ("Его роман вышел в 1869 году.", "Лев Толстой", "ru", False),
        ("漱石は1867年に生まれた。", "夏目漱石", "ja", True),
        ("彼は1867年に生まれた。", "夏目漱石", "ja", False),
        ("هبط بين على سطح القمر عام 1969.", "ألان بين", "ar", True),
        ("Sie reiste von Wien nach Rom.", "Herbert von Karajan", "de", False),
        ("KARAJAN reiste nach Rom.", "Herbert von Karajan", "de", True),
        ("Die Reise ging nach Rom.", "A. B. C", "de", False),
    ],
)
def test_names_are_found_in_whatever_form(sentence: str, name: str, tag: str, stands: bool) -> None:
    assert names_person(sentence, [name], tag) is stands


def test_the_prompt_says_what_is_wanted() -> None:
    said = Chooser("m").request(page("The page {with} braces.", tag="tr"), 5, ["One.", "Two."]).text
    assert "Choose 5 sentences" in said
    assert "in Turkish about Anna Kroll" in said
    assert said.endswith("The page {with} braces.")
    assert "- One.\n- Two." in said
    assert "{" not in said.replace('{"sentences"', "").replace("{with}", "")
    assert prompt_version("facts").startswith("facts@")
