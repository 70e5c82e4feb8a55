"""The lead's list of items and what a lead does to many at once, through the API, on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update
from studio_server import TEXTS, Running, layer

from veriglot.studio import tables as t
from veriglot.studio.tables import write_moment

if TYPE_CHECKING:
    from studio_server import Visitor


def _listed(lead: Visitor, **asked: Any) -> list[int]:
    """The texts that are listed, by their numbers."""
    answer = lead.get("/api/lead/items", params=asked)
    assert answer.status_code == 200, answer.text
    items = answer.json()["items"]
    return [int(item["key"].split(" ")[0].rpartition("-")[2]) for item in items]


def _id(visitor: Visitor) -> str:
    return str(visitor.get("/api/me").json()["person"]["id"])


def _change(lead: Visitor, action: str, **more: Any) -> dict[str, Any]:
    answer = lead.post("/api/lead/items", {"action": action, **more})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def _hand_in(visitor: Visitor, type_: str = "entity", **more: Any) -> None:
    given = visitor.next()
    marked = layer(*given["item"]["words"][0], type_, **more)
    assert visitor.send(given["id"], "submit", given["version"], layer=marked).status_code == 200


def test_a_list_is_narrowed_by_what_it_is_asked_for(studio: Running) -> None:
    lead, one, other = studio.visitor(role="lead"), studio.visitor(), studio.visitor()
    _hand_in(one)
    _hand_in(one, "relation")
    _hand_in(other, "relation", comment='"type":"invented"')
    other.next()
    with studio.studio().store.writing() as tx:
        flagged = replace(tx.assignment(2).layer, flags=("omission",)).to_data()
        tx.connection.execute(update(t.assignments).where(t.assignments.c.id == 2).values(layer=flagged))
        tx.set_gold(tx.items(studio.studio().id)[5], tx.assignments(studio.studio().id)[0].layer, "gold", by=None)
    assert _listed(lead) == [0, 1, 2, 3, 4, 5]
    assert _listed(lead, person=_id(one)) == [0, 1]
    assert _listed(lead, person=_id(other), state="open") == [3]
    assert _listed(lead, state="submitted") == [0, 1, 2]
    assert _listed(lead, state="free") == [4, 5]
    assert _listed(lead, type="relation") == [1, 2]
    assert _listed(lead, type="relation", person=_id(other)) == [2]
    assert _listed(lead, type="entity") == [0, 5]  # gold counts too
    assert _listed(lead, type="invented") == []  # what is written in a comment does not
    assert _listed(lead, flagged=True) == [1]
    assert _listed(lead, gold=True) == [5]
    assert _listed(lead, gold=False, state="free") == [4]
    assert _listed(lead, language="fr") == []
    assert lead.get("/api/lead/items?type=nothing").status_code == 422
    for more in (f"person={_id(one)}", "type=entity", "flagged=true", "stale=2"):
        assert lead.get(f"/api/lead/items?state=free&{more}").status_code == 422
    where = {"state": "free", "stale": 2}
    assert lead.post("/api/lead/items", {"action": "exclude", "where": where}).status_code == 422
    assert lead.get("/api/lead/items?person=nobody").status_code == 404
    two = studio.visitor("two")
    assert lead.get(f"/api/lead/items?person={_id(two)}").status_code == 404  # of another project


def test_a_search_finds_texts_of_any_script_without_regard_to_case(studio: Running) -> None:
    lead = studio.visitor(role="lead")
    assert _listed(lead, search="LONDON ada") == [0]
    assert _listed(lead, search="الاولى") == [1]  # alef without its hamza
    assert _listed(lead, search="巴黎") == [2]
    assert _listed(lead, search="क्षितिज") == [3]
    assert _listed(lead, search="one-4") == [4]
    assert _listed(lead, search="100%") == []
    assert len(_listed(lead, search="\0")) == 6  # which no database keeps, and is no text
    assert _listed(lead, search="ลืม") == []
    (item,) = lead.get("/api/lead/items", params={"search": "เมือง"}).json()["items"]
    assert item["snippet"] == TEXTS[4]
    assert lead.get("/api/lead/items", params={"search": "巴黎"}).json()["items"][0]["direction"] == "ltr"


def test_a_list_is_sorted_and_paged_by_the_server(studio: Running) -> None:
    lead, one = studio.visitor(role="lead"), studio.visitor()
    ids = [item["id"] for item in lead.get("/api/lead/items").json()["items"]]
    _change(lead, "priority", items=[ids[3]], value=5)
    _hand_in(one)
    assert _listed(lead, sort="priority", descending=True) == [3, 0, 1, 2, 4, 5]
    assert _listed(lead, sort="done", descending=True) == [3, 0, 1, 2, 4, 5]
    assert _listed(lead, sort="changed", descending=True)[0] == 3
    assert _listed(lead, sort="key", descending=True) == [5, 4, 3, 2, 1, 0]
    assert _listed(lead, offset=4, limit=3) == [4, 5]
    assert lead.get("/api/lead/items?offset=4&limit=1").json()["total"] == 6
    line = lead.get("/api/lead/items?search=one-3").json()["items"][0]
    assert (line["done"], line["wanted"], line["priority"]) == (1, 1, 5.0)
    assert line["holders"] == [{"by": _id(one), "purpose": "annotate", "state": "submitted"}]


def test_items_are_given_to_somebody_and_taken_back(studio: Running) -> None:
    lead, one, other = studio.visitor(role="lead"), studio.visitor(), studio.visitor()
    ids = [item["id"] for item in lead.get("/api/lead/items").json()["items"]]
    assert _change(lead, "assign", items=ids[3:], person=_id(one)) == {"changed": 3, "unchanged": {}}
    assert _change(lead, "assign", items=ids[3:4], person=_id(one)) == {"changed": 0, "unchanged": {"has_it": 1}}
    assert one.next()["item"]["id"] == ids[3]
    assert [other.next()["item"]["id"], _listed(lead, person=_id(one))] == [ids[0], [3, 4, 5]]
    one.send(one.next()["id"], "save", 0, layer=layer())
    assert _change(lead, "release", where={"person": _id(one), "state": "open"}) == {"changed": 3, "unchanged": {}}
    assert _listed(lead, person=_id(one)) == []
    assert _listed(lead, person=_id(other)) == [0]
    assert _change(lead, "release", items=ids[1:2]) == {"changed": 0, "unchanged": {"unchanged": 1}}
    history = lead.get(f"/api/lead/items/{ids[3]}/history").json()["events"]
    assert [(row["kind"], row["by"]) for row in history if row["kind"] != "imported"] == [
        ("assigned", _id(lead)), ("save", _id(one)), ("withdrawn", _id(lead)),
    ]  # fmt: skip


def test_what_is_stale_is_released_at_once(studio: Running) -> None:
    lead, one, other = studio.visitor(role="lead"), studio.visitor(), studio.visitor()
    held, _ = one.next(), other.next()
    with studio.studio().store.writing() as tx:
        old = t.assignments.c.id == held["id"]
        moment = tx.assignment(held["id"]).changed_at.replace(year=2020)
        tx.connection.execute(update(t.assignments).where(old).values(changed_at=moment))
    assert len(write_moment(moment)) == 27
    assert _listed(lead, stale=24) == [0]
    assert _change(lead, "release", where={"stale": 24.0}) == {"changed": 1, "unchanged": {}}
    assert one.get(f"/api/assignments/{held['id']}").json()["state"] == "withdrawn"
    late = one.send(held["id"], "save", 0, layer=layer())
    assert (late.status_code, late.json()["state"]) == (409, "withdrawn")  # and what was sent is in the history
    assert _listed(lead, state="open") == [1]


def test_excluded_items_leave_the_work_and_come_back(studio: Running) -> None:
    lead, one = studio.visitor(role="lead"), studio.visitor()
    ids = [item["id"] for item in lead.get("/api/lead/items").json()["items"]]
    held = one.next()
    assert _change(lead, "exclude", items=[ids[0], ids[1]]) == {"changed": 2, "unchanged": {}}
    assert _listed(lead) == [2, 3, 4, 5]
    assert _listed(lead, role="excluded") == [0, 1]
    assert one.get(f"/api/assignments/{held['id']}").json()["state"] == "withdrawn"
    assert one.next()["item"]["id"] == ids[2]
    assert lead.get("/api/lead/overview").json()["languages"][0]["items"] == 4
    assert _change(lead, "exclude", items=[ids[0]]) == {"changed": 0, "unchanged": {"not_work": 1}}
    assert _change(lead, "include", where={"role": "excluded"}) == {"changed": 2, "unchanged": {}}
    assert _listed(lead) == [0, 1, 2, 3, 4, 5]
    assert lead.get("/api/lead/overview").json()["languages"][0]["items"] == 6


def test_a_lead_says_how_many_people_annotate_an_item(studio: Running) -> None:
    lead, one, other = studio.visitor(role="lead"), studio.visitor(), studio.visitor()
    ids = [item["id"] for item in lead.get("/api/lead/items").json()["items"]]
    assert _change(lead, "wanted", items=ids[:1], value=2)["changed"] == 1
    assert [one.next()["item"]["id"], other.next()["item"]["id"]] == [ids[0], ids[0]]
    assert lead.get("/api/lead/overview").json()["languages"][0]["wanted"] == 7


@pytest.mark.parametrize(
    "body",
    [
        {"action": "assign"},
        {"action": "priority"},
        {"action": "wanted", "value": 0},
        {"action": "release", "value": 1},
        {"action": "delete"},
        {"action": "priority", "value": 1000},
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(studio: Running, body: dict[str, Any]) -> None:
    lead = studio.visitor(role="lead")
    assert lead.post("/api/lead/items", body).status_code == 422
    assert {item["priority"] for item in lead.get("/api/lead/items").json()["items"]} == {0.0}


def test_items_go_to_annotators_of_this_project_alone(studio: Running) -> None:
    lead, one = studio.visitor(role="lead"), studio.visitor()
    foreign = studio.visitor("two")
    ids = [item["id"] for item in lead.get("/api/lead/items").json()["items"]]
    assert lead.post("/api/lead/items", {"action": "assign", "items": ids, "person": _id(foreign)}).status_code == 404
    assert lead.post("/api/lead/items", {"action": "assign", "items": ids, "person": _id(lead)}).status_code == 422
    elsewhere = foreign.next()["item"]["id"]
    assert _change(lead, "exclude", items=[elsewhere]) == {"changed": 0, "unchanged": {}}
    for visitor in (one, studio.visitor(role="reviewer")):
        assert visitor.post("/api/lead/items", {"action": "exclude", "items": ids}).status_code == 404
