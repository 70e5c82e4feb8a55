"""The parts of the data set: order of people, their articles, the language of responses, labels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from misbehaving import Faults
from wiki_server import WikiPage, WikiServer

from json_lines import write_lines
from veriglot import read
from veriglot.cli.dataset_articles import Wikimedia
from veriglot.datasets.factual import (
    ArticleStore,
    ChoiceAccount,
    Labels,
    choose,
    order_people,
    verdict_on,
    wiki_articles,
    write_sets,
)
from veriglot.datasets.queries import NamedPerson, Reference, person_from
from veriglot.errors import UsageError
from veriglot.http.session import Session
from veriglot.records import Annotation, Generator, Kind, Sample, encode
from veriglot.storage.checkpoint import FailedRow
from veriglot.wikipedia.api import Wikipedia

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def people(count: int) -> list[NamedPerson]:
    """Person number n has n page views."""
    return [NamedPerson(f"Q{n}", {"en": f"Person {n}"}, {"views": {"en": n}}) for n in range(count)]


def test_the_most_read_come_first_or_all_groups_in_turn() -> None:
    found = order_people(people(100), 10, spread="top")
    assert [one.views for one in found] == list(range(99, -1, -1))
    spread = order_people(people(100), 10, spread="diverse", groups=10)
    assert Counter(one.views // 10 for one in spread[:10]) == Counter(range(10))  # one of each tenth
    assert sorted(one.id for one in spread) == sorted(one.id for one in people(100))
    reserve = [one.views for one in spread[10:]]
    assert reserve not in (sorted(reserve), sorted(reserve, reverse=True))
    assert spread == order_people(people(100), 10, spread="diverse", groups=10)
    assert spread != order_people(people(100), 10, spread="diverse", groups=10, seed=1)
    assert order_people(people(5)[::-1], 2, spread="given") == people(5)[::-1]
    with pytest.raises(UsageError):
        order_people(people(3), 0)


def test_people_without_views_and_with_titles() -> None:
    found = person_from({"id": "Q1", "titles": {"zh": "安娜 (磨坊主)", "en": "Anna"}, "names": {"zh": "安娜"}})
    assert (found.views, found.name_in("zh-Hans"), found.titles["zh"]) == (0, "安娜", "安娜 (磨坊主)")
    assert found.name_in("en") == "Anna"
    assert found.name_in("fr") is None


class Library:
    """Articles of all people with an even number, and a record of lookups."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, people: Sequence[NamedPerson], tag: str) -> dict[str, Reference | str]:
        self.asked += [one.id for one in people]
        return {
            one.id: "missing" if one.views % 2 else Reference(f"{one.id}-{tag}", tag, "text " * one.views)
            for one in people
        }


def test_people_are_looked_up_until_there_are_enough() -> None:
    library, account = Library(), ChoiceAccount()
    found = list(choose(people(100), library, ["en"], 10, account, min_characters=11))
    assert [person.views for person, _ in found] == [4, 6, 8, 10, 12, 14, 16, 18, 20, 22]
    assert account.looked_up == len(library.asked) == 24 - 1  # up to the tenth, and no further
    assert account.lacking == {"en": Counter({"missing": 11, "too short": 2})}
    assert Counter(one.reason for one in account.set_aside) == {"articles": 13}
    for languages, at_least in (([], None), (["en"], 2), (["en"], 0)):
        with pytest.raises(UsageError):
            list(choose(people(1), library, languages, 1, ChoiceAccount(), at_least=at_least))


def test_articles_by_title_where_the_wiki_names_no_item_and_where_it_renames() -> None:
    pages = [
        WikiPage("Anna Kroll", "Anna ist Müllerin."),  # no item
        WikiPage("Bea Ulm", "Bea ist Müllerin.", item="Q2"),
        WikiPage("Beate", redirect="Bea Ulm"),
        WikiPage("Carl", "Carl ist ein Vorname.", item="Q33"),
        WikiPage("Diskussion", "Hallo.", ns=1),
        WikiPage("Eva", redirect="Evas"),
    ]
    titles = {"Q1": "anna Kroll", "Q2": "Beate", "Q3": "Carl", "own": "Carl", "Q4": "Dora", "Q5": "Diskussion"}
    titles |= {"Q6": "Eva", "Q7": "Wrong[title]", "Q9": "Two|titles"}
    asked = [NamedPerson(id_, {"de": title}, titles={"de": title}) for id_, title in titles.items()]
    asked.append(NamedPerson("Q8", {"de": "Nobody"}))
    with WikiServer(pages, Faults(seed=1, broken=0.1)) as server, Session(server.base_url) as session:
        articles_of = wiki_articles(lambda tag: Wikipedia(tag, session))
        found = articles_of(asked, "de")
    told = {id_: one.title if isinstance(one, Reference) else one for id_, one in found.items()}
    assert told == {
        "Q1": "Anna Kroll",
        "Q2": "Bea Ulm",
        "Q3": "another item",
        "own": "Carl",  # a user's own ids are not Wikidata items
        "Q4": "missing",
        "Q5": "not an article",
        "Q6": "missing",
        "Q7": "invalid title",
        "Q8": "no title",
        "Q9": "invalid title",
    }
    bea = found["Q2"]
    assert isinstance(bea, Reference)
    assert (bea.id, bea.language, bea.meta["item"], bea.meta["part"]) == ("Q2-de", "de", "Q2", "text")


@pytest.mark.parametrize(
    ("text", "asked", "reason"),
    [
        ("Anna Kroll wurde 1731 in Oberfeld geboren und war Müllerin.", "de", None),
        ("Anna Kroll was born in 1731 and worked as a miller in the village.", "de", "language"),
        ("安娜·克罗尔是一位磨坊主，生于1731年。", "zh-Hant", None),  # another script of the same language
        ("", "de", "empty"),
        ("1731 – 1802 …", "de", "empty"),
        ("Ja.", "de", "undetected"),
    ],
)
def test_the_language_of_a_response(text: str, asked: str, reason: str | None) -> None:
    found = verdict_on(text, asked)
    assert found.reason == reason
    assert bool(found.detail) == (reason is not None)
    assert (found.language is None) == (found.confidence is None) == (reason in ("empty", "undetected"))


def test_labels_belong_to_the_text_that_was_labelled() -> None:
    gold = Annotation("gold", Kind.HUMAN, "support", spans=())
    given = [Sample(id_, "text", annotations=(gold,)) for id_ in ("a", "b", "c")]
    labels = Labels([*given, Sample("d", "text")])
    assert labels.of(Sample("a", "text")) == (gold,)
    assert labels.of(Sample("b", "another text")) == ()
    assert labels.of(Sample("d", "text")) == ()
    assert labels.account() == {"given": 3, "used": 1, "of_another_text": 1, "of_no_row": 1}


def test_a_shelf_gives_each_article_by_its_id(tmp_path: Path) -> None:
    rows = [Reference(f"Q{n}-de", "de", f"Überall {n}\n") for n in range(50)]
    path = tmp_path / "articles.jsonl"
    write_lines(path, rows)
    with ArticleStore(path) as store:
        assert [store.get(row.id) for row in reversed(rows)] == rows[::-1]
        assert "Q7-de" in store
        assert store.get("Q7-fr") is None


def test_servers_of_wikis() -> None:
    wikis = Wikimedia(wiki_servers=("German=http://127.0.0.1:1", "https://{edition}.mirror.example"))
    assert wikis.server("de") == "http://127.0.0.1:1"
    assert wikis.server("yue") == "https://zh-yue.mirror.example"
    assert Wikimedia().server("de") is None


def response(person: str, tag: str, seed: int, text: str) -> Sample:
    meta = {"person": person, "name": person, "query": f"{person}-{tag}"}
    return Sample(
        f"{person}-{tag}/m/{seed}", text, language=tag, question="?", generator=Generator("m", seed=seed), meta=meta
    )


def test_refusals_stay_and_are_told_and_failed_calls_find_their_language(tmp_path: Path) -> None:
    rows = [
        response("a-b", "zh-Hans", 1, "安娜是上田村的一位磨坊主，生于1731年。"),
        response("a-b", "en", 1, "I'm sorry, but I do not have any information about this person."),
        response("a-b", "en", 2, "Anna was a miller who was born in the village of Upper Field."),
    ]
    path = tmp_path / "m.jsonl"
    write_lines(path, rows)
    failed = FailedRow("gone", id="a-b-zh-Hans/m/2")
    path.with_name("m.jsonl.failed.jsonl").write_bytes(encode(failed) + b"\n")
    (tmp_path / "articles.jsonl").write_bytes(b"")
    account = {"made_by": {"languages": ["en", "zh-Hans", "Hans"]}, "people": {}, "articles": {}}
    sets = write_sets(tmp_path, {"m": path}, account, {})
    assert write_sets(tmp_path, {"m": path}, account, {}) == sets
    chinese, english = sets.cells
    assert (chinese.language, chinese.asked, chinese.failed, chinese.alone) == ("zh-Hans", 2, 1, 1)
    assert (english.asked, english.failed, english.pairs) == (2, 0, 2)
    assert sets.without_cross == 1
    assert (sets.total["asked"], sets.total["pairs"]) == (4, 2)
    kept = list(read(tmp_path / "reference.jsonl", format="jsonl"))
    assert [one.meta.get("refused") for one in kept] == [None, True, None]
    assert [one.evidence for one in kept] == [(), (), ()]  # there is no article, and detectors will report that
