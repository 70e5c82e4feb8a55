"""Importing: from any format, hostile and broken rows told of and never items, and again changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from veriglot.studio.items import import_all, register_project
from veriglot.studio.layers import Layer
from veriglot.studio.tables import ItemRole, Purpose, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from veriglot.studio.project import Project
    from veriglot.studio.store import Store

HEAD = """
[project]
name = "Test"
slug = "test"
task = "{task}"
languages = {languages}
"""


AS_FILED = '[work]\norder = "file"\n'


def lines(path: Path, *rows: object) -> None:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row, ensure_ascii=True) for row in rows)
    path.write_text(text + "\n", encoding="utf-8")


def row(id_: str = "a", response: str = "Ada war in Paris.", language: str | None = "de", **more: object) -> dict:
    return {"id": id_, "response": response, "language": language, **more}


def annotation(*spans: tuple[int, int, str], annotator: str = "silver") -> dict:
    marked = [{"start": start, "end": end, "type": type_} for start, end, type_ in spans]
    return {"annotator": annotator, "kind": "model", "taxonomy": "fava", "spans": marked}


@pytest.fixture
def make(make_project: Callable[..., Project], tmp_path: Path) -> Callable[..., Project]:
    def build(*rows: object, more: str = "", task: str = "spans", languages: str = "[]") -> Project:
        lines(tmp_path / "data.jsonl", *rows)
        head = HEAD.format(task=task, languages=languages)
        return make_project(head + '[data]\npath = "data.jsonl"\nsilver = "silver"\ngold = "gold"\n' + more)

    return build


def test_a_row_without_a_language_has_the_one_that_its_text_is_in(store: Store, make: Callable[..., Project]) -> None:
    """Every such row was refused, though data of several languages can have no language of their own."""
    rows = [
        row("a", "A híd 1897-ben nyílt meg.", None),
        row("b", "Міст відкрили 1897 року.", None),
        row("c", "1897", None),
    ]
    project = make(*rows, languages='["hu", "uk"]')
    for added in (2, 0):
        done = import_all(store, project)
        assert (done.added.total(), done.identified) == (added, 2)
        assert [(each.key, each.error.field) for each in done.unusable] == [("c", "language")]
    with store.reading() as tx:
        items = tx.items(tx.project("test").id)
        assert {item.key: (item.language, tx.sample(item.id).language) for item in items} == {
            "a": ("hu", "hu"),
            "b": ("uk", "uk"),
        }


def test_rows_become_items_in_order_with_their_layers(store: Store, make: Callable[..., Project]) -> None:
    project = make(
        row("a", annotations=[annotation((11, 16, "entity"))]), row("b", "字 字。", "zh-Hans"), more=AS_FILED
    )
    done = import_all(store, project)
    assert dict(done.added) == {"de": 1, "zh-Hans": 1}
    with store.reading() as tx:
        items = tx.items(tx.project("test").id)
        assert [(i.key, i.position, i.language, i.has_silver, i.has_gold, i.words) for i in items] == [
            ("a", 0, "de", True, False, 4),
            ("b", 1, "zh-Hans", False, False, 2),
        ]
        silver = tx.silver(items[0].id)
        assert silver is not None
        assert [(s.start, s.end, s.type) for s in silver.spans] == [(11, 16, "entity")]
        assert tx.sample(items[0].id).annotations == ()  # nobody who annotates sees what others said
        assert len(tx.original(items[0].id).annotations) == 1
        kinds = [e.kind for e in tx.events(tx.project("test").id)]
    assert kinds == ["created", "imported", "imported", "import"]


def test_importing_again_changes_nothing_and_new_rows_join(store: Store, make: Callable[..., Project]) -> None:
    import_all(store, make(row("a"), row("b"), more=AS_FILED))
    done = import_all(store, make(row("a"), row("b", "Etwas anderes."), row("c"), more=AS_FILED))
    assert (dict(done.added), done.known, [u.key for u in done.unusable]) == ({"de": 1}, 1, ["b"])
    assert "another item has this id" in str(done.unusable[0].error)
    with store.reading() as tx:
        items = tx.items(tx.project("test").id)
        assert [i.key for i in items] == ["a", "b", "c"]
        assert tx.sample(items[1].id).response == "Ada war in Paris."


def test_hostile_and_broken_rows_are_told_of_and_never_items(store: Store, make: Callable[..., Project]) -> None:
    bad = {
        "empty": row("empty", "  \n"),
        "none": row("none", language=None),
        "long": row("long", "x" * 100_001),
        "evidence": row("evidence", evidence=[{"text": "x" * 2_000_001}]),
        "\t": row("\t"),
        "span": row("span", annotations=[annotation((3, 99, "entity"))]),
        "type": row("type", annotations=[{**annotation((0, 3, "entity")), "taxonomy": "nonsense"}]),
    }
    broken = ['{"id": "cut', "null", '{"id": "half", "response": "\\ud800"}', json.dumps(row("good"))]
    scripts = row("<script>alert(1)</script>", "<img src=x onerror=alert(1)>\u202e\u0000 ../../etc/passwd")
    done = import_all(store, make(*bad.values(), *broken, scripts, more=AS_FILED))
    assert dict(done.added) == {"de": 2}
    assert len(done.unusable) == len(bad) + 3
    with store.reading() as tx:
        items = tx.items(tx.project("test").id)
        assert [i.key for i in items] == ["good", scripts["id"]]
        assert tx.sample(items[1].id).response == scripts["response"]  # as it stands: escaping is the page's


def test_other_languages_and_what_is_beyond_the_limit_are_counted(store: Store, make: Callable[..., Project]) -> None:
    project = make(*(row(str(n)) for n in range(5)), row("x", language="fr"), more="limit = 3\n", languages='["de"]')
    for _ in range(2):
        done = import_all(store, project)
        assert (done.beyond, dict(done.other_language)) == (2, {"fr": 1})
    assert (done.known, dict(done.added)) == (3, {})
    path = project.path.with_name("more.jsonl")  # what a lead imports comes on top of what is there
    path.write_text(json.dumps(row("more")), "utf-8")
    assert import_all(store, project, {"data": str(path)}).beyond == 1


def test_languages_are_known_by_whatever_name_the_data_give_them(store: Store, make: Callable[..., Project]) -> None:
    rows = row("a", "字 字。", "zh"), row("b", "字。", "zh-CN"), row("c", "x", "qaa")
    project = make(*rows, languages='["zh"]', more=AS_FILED)
    done = import_all(store, project)
    assert (dict(done.added), dict(done.other_language)) == ({"zh-Hans": 2}, {"qaa": 1})
    with store.reading() as tx:
        items = tx.items(tx.project("test").id)
        assert [item.language for item in items] == ["zh-Hans", "zh-Hans"]
        assert tx.original(items[0].id).language == "zh"  # and exports give it back as it came


def test_marks_of_other_layers_are_widened_to_whole_characters_and_counted(
    store: Store, make: Callable[..., Project]
) -> None:
    done = import_all(store, make(row("a", "क्षि क्षि", "hi", annotations=[annotation((1, 2, "entity"))])))
    assert done.widened == 1
    with store.reading() as tx:
        (item,) = tx.items(tx.project("test").id)
        silver = tx.silver(item.id)
    assert silver is not None
    assert (silver.spans[0].start, silver.spans[0].end) == (0, 4)


def test_exam_items_need_the_layer_that_they_are_held_against(
    store: Store, make: Callable[..., Project], tmp_path: Path
) -> None:
    gold = annotation((0, 3, "entity"), annotator="gold")
    lines(tmp_path / "exam.jsonl", row("e1", annotations=[gold]), row("e2"))
    project = make(row("a"), more='[exam]\nitems = 1\npath = "exam.jsonl"\n')
    done = import_all(store, project)
    assert [u.key for u in done.unusable] == ["e2"]
    with store.reading() as tx:
        assert [i.key for i in tx.items(tx.project("test").id, role=ItemRole.EXAM)] == ["e1"]


def test_pairs_without_hallucination_have_a_label_too(
    store: Store, make_project: Callable[..., Project], tmp_path: Path
) -> None:
    text = "original_sentence,edited_sentence,hallucination_type,language\nA b.,A c.,Entity,en\nA b.,A b.,0,en\n"
    (tmp_path / "pairs.csv").write_text(text, encoding="utf-8")
    head = HEAD.format(task="pairs", languages="[]")
    import_all(store, make_project(head + '[data]\npath = "pairs.csv"\nsilver = "gold"\n' + AS_FILED))
    with store.reading() as tx:
        items = tx.items(tx.project("test").id)
        assert [tx.silver(i.id) for i in items] == [Layer(label="entity"), Layer(label="0")]


@pytest.mark.parametrize("task", ["pairs", "translation"])
def test_what_has_no_original_is_left_out_with_what_to_do(
    store: Store, make: Callable[..., Project], task: str
) -> None:
    whole = row("b", evidence=[{"text": "Ada was in Paris."}])
    done = import_all(store, make(row("a"), row("c", evidence=[{"text": " "}]), whole, task=task))
    assert [(u.key, u.error.field) for u in done.unusable] == [("a", "evidence"), ("c", "evidence")]
    assert all(
        word in str(done.unusable[0].error) for word in ("original" if task == "pairs" else "source", "`evidence`")
    )
    assert dict(done.added) == {"de": 1}


def test_batches_hold_each_item_once_and_one_language_each(store: Store, make: Callable[..., Project]) -> None:
    rows = [row(f"{language}{n}", language=language) for n in range(5) for language in ("de", "fr")]
    project = make(*rows, more="[validation]\nbatch_size = 2\n")
    assert import_all(store, project).batches == 6
    assert import_all(store, project).batches == 0
    with store.reading() as tx:
        id_ = tx.project("test").id
        for batch in tx.batches(id_):
            inside = tx.items(id_, batch_id=batch.id)
            assert 1 <= len(inside) <= 2
            assert {item.language for item in inside} == {batch.language}
        assert all(item.batch_id is not None for item in tx.items(id_))


def _sorted_file(count: int = 30) -> list[dict]:
    """Rows as files have them: languages one after the other, and in each the models one after the other."""
    return [
        row(f"{language}-{model}-{number}", language=language, generator={"name": model})
        for language in ("de", "fr", "sw")
        for model in ("a", "b")
        for number in range(count if language == "de" else count // 3)
    ]


def _queue(store: Store) -> list[str]:
    with store.reading() as tx:
        return [item.key for item in tx.items(tx.project("test").id)]


def test_languages_take_turns_and_models_come_by_chance(store: Store, make: Callable[..., Project]) -> None:
    rows = _sorted_file()
    project = make(*rows)
    import_all(store, project)
    queue = _queue(store)
    assert sorted(queue) == sorted(line["id"] for line in rows)
    turns = [key.split("-")[0] for key in queue]
    assert [sorted(turns[n : n + 3]) for n in range(0, 60, 3)] == [["de", "fr", "sw"]] * 20
    assert turns[60:] == ["de"] * 40
    german = [key.split("-")[1] for key in queue if key.startswith("de")]
    for part in (german[:30], german[30:]):
        assert 9 <= part.count("a") <= 21  # within 3 standard deviations of 15
    import_all(store, project)
    assert _queue(store) == queue
    assert [e.payload for e in _events(store, "ordered")] == [{"items": _moved(rows, queue), "random": 1.0}]


def _events(store: Store, kind: str) -> list:
    with store.reading() as tx:
        return list(tx.events(tx.project("test").id, kind=kind))


def _moved(rows: list[dict], queue: list[str]) -> int:
    return sum(line["id"] != key for line, key in zip(rows, queue, strict=True))


def test_the_order_of_the_queue_depends_on_the_project_and_the_ids_alone(
    make: Callable[..., Project], tmp_path: Path
) -> None:
    from veriglot.studio.store import open_store

    queues = []
    for number, rows in enumerate((_sorted_file(), _sorted_file()[::-1])):
        opened = open_store(str(tmp_path / f"{number}.sqlite"))
        import_all(opened, make(*rows))
        queues.append(_queue(opened))
        opened.close()
    assert queues[0] == queues[1]


def test_a_project_that_was_begun_in_the_order_of_its_file_goes_on_with_the_languages_that_are_behind(
    store: Store, make: Callable[..., Project]
) -> None:
    from studio_rows import person

    rows = _sorted_file()
    import_all(store, make(*rows, more=AS_FILED))
    assert _queue(store) == [line["id"] for line in rows]
    with store.writing() as tx:
        given = tx.items(tx.project("test").id)[:10]
        someone = person(tx, tx.project("test").id)
        for item in given:
            tx.assign(item, someone.id, Purpose.ANNOTATE)
    rows.append(row("late", language="sw"))
    import_all(store, make(*rows, more="[validation]\nbatch_size = 10\n"))
    queue = _queue(store)
    assert queue[:10] == [line["id"] for line in rows[:10]]  # what somebody has stays where it was
    behind = queue[10:30]  # until they have caught up
    assert (sum(key.startswith("fr") for key in behind), sum(key.startswith("de") for key in behind)) == (10, 0)
    rows += [row(f"more-{number}", language="sw") for number in range(5)]
    import_all(store, make(*rows, more="[validation]\nbatch_size = 10\n"))
    assert _queue(store)[: len(queue)] == queue  # batches stay as they are, and new items follow


def test_a_task_cannot_change_under_work(store: Store, make: Callable[..., Project]) -> None:
    from studio_rows import person

    import_all(store, make(row("a")))
    register_project(store, make(row("a"), task="translation"))
    row_ = register_project(store, make(row("a")))
    with store.writing() as tx:
        tx.assign(tx.items(row_.id)[0], person(tx, row_.id).id, Purpose.ANNOTATE)
    with pytest.raises(StoreError, match="was begun as spans"):
        register_project(store, make(row("a"), task="translation"))
