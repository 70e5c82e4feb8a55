"""What leads and reviewers do through the API, on both databases; and that nobody else does it."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from studio_server import Running, layer, running

from veriglot.studio.project import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from studio_server import Visitor

pytestmark = pytest.mark.slow


@pytest.fixture
def team(database: str, tmp_path: Path) -> Iterator[Running]:
    """A studio in which everybody gets the same items, and work is reviewed."""
    with running(tmp_path, database, work={"overlap": 50, "reviews": 1}) as found:
        yield found


def _do_all(visitor: Visitor, type_: str = "entity") -> list[int]:
    """Submit everything that there is; the items."""
    seen = []
    while (one := visitor.next()) is not None:
        marked = layer(*one["item"]["words"][0], type_)
        assert visitor.send(one["id"], "submit", one["version"], layer=marked).status_code == 200
        seen.append(one["item"]["id"])
    return seen


def test_a_reviewer_sends_back_and_the_annotator_hears_why(team: Running) -> None:
    one, reviewer = team.visitor(), team.visitor(role="reviewer")
    given = one.next()
    one.send(given["id"], "submit", layer=layer(*given["item"]["words"][0]))
    review = reviewer.next()
    assert (review["purpose"], review["subject"]["assignment"]) == ("review", given["id"])
    assert review["subject"]["by"] == one.get("/api/me").json()["person"]["id"]
    assert review["subject"]["name"] is None  # reviewers judge a text, not a name
    assert (review["subject"]["role"], review["subject"]["number"]) == ("annotator", 1)
    assert review["item"]["response"] == given["item"]["response"]
    silent = reviewer.send(review["id"], "return", review["version"])
    assert (silent.status_code, silent.json()["error"]["code"]) == (422, "refused")
    assert reviewer.send(review["id"], "return", review["version"], comment="Look again.").status_code == 200
    back = one.next()
    assert (back["id"], back["state"], back["message"]) == (given["id"], "returned", "Look again.")
    assert back["layer"]["spans"]  # with everything that they had marked


def test_a_second_reviewer_sees_what_the_first_left(database: str, tmp_path: Path) -> None:
    with running(tmp_path, database, work={"overlap": 50, "reviews": 2}) as studio:
        one, first, second = studio.visitor(), studio.visitor(role="reviewer"), studio.visitor(role="reviewer")
        given = one.next()
        word, other = given["item"]["words"][:2]
        one.send(given["id"], "submit", layer=layer(*word))
        review = first.next()
        first.send(review["id"], "correct", review["version"], layer=layer(*other))
        again = second.next()
        place = [(span["start"], span["end"]) for span in again["subject"]["layer"]["spans"]]
        assert (again["subject"]["assignment"], place) == (given["id"], [tuple(other)])
        assert again["layer"] == again["subject"]["layer"]
        assert second.send(again["id"], "confirm", again["version"]).json()["state"] == "submitted"
        looked = first.get(f"/api/assignments/{review['id']}").json()  # what they looked at stays what they looked at
        assert [(span["start"], span["end"]) for span in looked["subject"]["layer"]["spans"]] == [tuple(word)]
        assert one.get(f"/api/assignments/{given['id']}").json()["state"] == "accepted"


def test_a_lead_settles_what_two_disagree_on(team: Running) -> None:
    one, other, lead = team.visitor(), team.visitor(), team.visitor(role="lead")
    items = _do_all(one)
    assert _do_all(other, "relation") == items
    found = lead.get("/api/lead/disagreements?limit=3").json()
    assert (found["total"], len(found["items"])) == (len(items), 3)
    first = found["items"][0]
    assert [said["layer"]["spans"][0]["type"] for said in first["said"]] == ["entity", "relation"]
    given = lead.post("/api/lead/adjudications", {"item": first["item"]["id"]}).json()["assignment"]
    view = lead.get(f"/api/assignments/{given}").json()
    assert (view["purpose"], len(view["subjects"])) == ("adjudicate", 2)
    assert all(each["name"] for each in view["subjects"])  # a lead knows them
    settled = view["subjects"][1]["layer"]
    assert lead.send(given, "submit", view["version"], layer=settled).status_code == 200
    told = lead.get(f"/api/lead/items/{first['item']['id']}/history").json()
    assert told["gold"]["spans"] == settled["spans"]
    assert {"imported", "assigned", "submit", "adjudicated"} <= {event["kind"] for event in told["events"]}
    assert lead.get("/api/lead/disagreements").json()["total"] == len(items) - 1
    listed = lead.get("/api/lead/items").json()
    assert {(line["done"], line["role"]) for line in listed["items"]} == {(2, "overlap")}
    seen = lead.get("/api/lead/overview").json()
    assert seen["disagreements"] == len(items) - 1
    assert {person["role"] for person in seen["people"]} == {"annotator", "lead"}
    rows = lead.get("/api/lead/agreement").json()["lines"]
    kappa = {row["scope"]: row["value"] for row in rows if (row["measure"], row["language"]) == ("kappa", "de")}
    assert kappa["binary"] == 1.0  # the same words
    assert kappa["typed"] < 1.0  # of other types


def test_a_lead_settles_by_a_rule_what_it_decides(team: Running) -> None:
    one, other, lead = team.visitor(), team.visitor(), team.visitor(role="lead")
    items = _do_all(one)
    _do_all(other, "relation")
    assert one.post("/api/lead/settle", {"rule": "agreed"}).status_code == 404
    assert lead.post("/api/lead/settle", {"rule": "dice"}).status_code == 422
    told = lead.post("/api/lead/settle", {"rule": "agreed"}).json()
    assert told == {"settled": 0, "left": len(items), "kept": 0, "replaced": 0, "by_hand": 0, "best": {}}
    assert lead.post("/api/lead/settle", {"rule": "majority"}).json() == told  # one to one on the type
    _do_all(team.visitor())
    told = lead.post("/api/lead/settle", {"rule": "majority", "language": "de"}).json()
    settled = told["settled"]
    assert settled > 0
    told = lead.post("/api/lead/settle", {"rule": "majority"}).json()
    assert (told["kept"], told["settled"] + settled) == (settled, len(items))
    told = lead.post("/api/lead/settle", {"rule": "majority", "again": True}).json()
    assert (told["settled"], told["replaced"]) == (len(items), len(items))
    refused = lead.post("/api/lead/settle", {"rule": "best_with_silver"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "refused")
    assert lead.get("/api/lead/overview").json()["disagreements"] == 0


def test_a_lead_invites_and_shuts_out(team: Running) -> None:
    lead = team.visitor(role="lead")
    body = {"role": "annotator", "languages": ["de"], "note": "<b>Eva</b>"}
    made = lead.post("/api/lead/invitations", body).json()
    assert made["link"].startswith(f"{team.url}/join/")
    token = urlsplit(made["link"]).path.rpartition("/")[2]
    person = made["person"]
    client = team.client()
    joined = {"token": token, "name": "Eva", "language": "en", "consent": True}
    assert client.post("/api/join", json=joined).status_code == 200
    path = f"/api/lead/people/{person}"
    assert lead.post(f"{path}/revoke").json() == {"id": person, "revoked": True, "exam_attempts": 0}
    assert client.get("/api/me").status_code == 401
    assert lead.post(f"{path}/restore").json()["revoked"] is False
    renewed = lead.post(f"{path}/renew").json()["link"]
    assert client.post("/api/join", json=joined).json()["error"]["code"] == "invitation_unknown"  # the old link is dead
    again = {"token": urlsplit(renewed).path.rpartition("/")[2]}
    assert client.post("/api/join", json=again).status_code == 200
    assert client.get("/api/me").json()["person"]["name"] == "Eva"
    myself = lead.get("/api/me").json()["person"]["id"]
    assert lead.post(f"/api/lead/people/{myself}/revoke").status_code == 422
    assert lead.get("/api/me").status_code == 200


@pytest.mark.parametrize("format_", ["native", "mfava", "hat", "inline", "label_studio"])
def test_a_lead_takes_the_work_away(start, format_: str) -> None:
    studio = start()
    one, lead = studio.visitor(), studio.visitor(role="lead")
    items = _do_all(one)
    answer = lead.get(f"/api/lead/export?format={format_}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].startswith(f'attachment; filename="one-{format_}-')
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert not [name for name in archive.namelist() if ".." in name or name.startswith("/") or "<" in name]
        names = {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
    history = [json.loads(line) for line in names["history.jsonl"].splitlines()]
    assert sum(event["kind"] == "submit" for event in history) == len(items)
    assert one.name.encode() not in b"".join(names.values())  # their public ids, unless asked for
    assert lead.get("/api/lead/export?format=../../etc/passwd").status_code == 422


_CALLS: list[tuple[str, str, Any]] = [
    ("GET", "/api/lead/overview", None),
    ("GET", "/api/lead/agreement", None),
    ("GET", "/api/lead/disagreements", None),
    ("GET", "/api/lead/items", None),
    ("GET", "/api/lead/items/1/history", None),
    ("POST", "/api/lead/items", {"action": "release"}),
    ("GET", "/api/lead/export?format=native", None),
    ("POST", "/api/lead/invitations", {"role": "lead"}),
    ("POST", "/api/lead/adjudications", {"item": 1}),
    ("POST", "/api/lead/batches/1/validate", None),
]


def test_only_leads_lead(team: Running) -> None:
    lead = team.visitor(role="lead")
    person = lead.get("/api/me").json()["person"]["id"]
    calls = [*_CALLS, *(("POST", f"/api/lead/people/{person}/{what}", None) for what in ("revoke", "renew", "restore"))]
    for role in ("annotator", "reviewer"):
        visitor = team.visitor(role=role)
        for method, path, body in calls:
            answer = visitor.get(path) if method == "GET" else visitor.post(path, body)
            assert answer.status_code == 404, (role, path)
    for method, path, body in calls:
        assert team.client().request(method, path, json=body).status_code == 401, path
    with team.studio().store.reading() as tx:
        assert [one.role for one in tx.people(team.studio().id)] == ["lead", "annotator", "reviewer"]


def test_a_lead_leads_one_project(team: Running) -> None:
    """What the other project of the same server holds is not there."""
    lead, theirs = team.visitor(role="lead"), team.visitor("two")
    foreign = theirs.next()["item"]["id"]
    person = theirs.get("/api/me").json()["person"]["id"]
    assert lead.get(f"/api/lead/items/{foreign}/history").status_code == 404
    assert lead.post("/api/lead/adjudications", {"item": foreign}).status_code == 404
    for what in ("revoke", "restore", "renew", "reset_exam"):
        assert lead.post(f"/api/lead/people/{person}/{what}").status_code == 404
    assert theirs.get("/api/me").status_code == 200
    assert person not in lead.get("/api/lead/overview").text
    assert foreign not in {line["id"] for line in lead.get("/api/lead/items").json()["items"]}


def _sent(lead: Visitor, kind: str, rows: list[dict[str, Any]]) -> Any:
    content = base64.b64encode("\n".join(map(json.dumps, rows)).encode()).decode()
    return lead.post("/api/lead/import", {"name": "../more.jsonl", "kind": kind, "content": content})


def test_a_lead_imports_and_sets_and_the_queue_stops_at_the_target(database: str, tmp_path: Path) -> None:
    rows = [
        {"id": f"m{n}", "language": "de", "response": f"Ada war {n} mal in Rom.", "evidence": [{"text": str(n)}]}
        for n in range(30)
    ]
    with running(tmp_path, database, slugs=("one",), work={"overlap": 0, "reviews": 0}) as studio:
        lead, annotator = studio.visitor(role="lead"), studio.visitor()
        assert _sent(annotator, "data", rows).status_code == 404
        done = _sent(lead, "data", [*rows, {"id": "bad", "language": "de"}]).json()
        assert (done["counts"]["added"], done["counts"]["left_out"]) == ({"de": 30}, 1)
        assert done["left_out"] == [{"line": 31, "id": "", "error": "response: it is missing"}]
        again = _sent(lead, "data", rows).json()["counts"]
        assert (again["added"], again["known"]) == ({}, 30)
        scored = [{"id": row["id"], "status": "scored", "score": 0.1, "spans": [], "detector": "d@1"} for row in rows]
        assert _sent(lead, "predictions", scored).json()["counts"]["predictions"] == 30
        refused = _sent(lead, "predictions", rows)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "unfit")

        settings = lead.get("/api/lead/settings").json()
        assert (settings["half_width"], settings["share"]) == (None, None)
        for wrong, field in (
            ({"per_item": 0}, "work.per_item"),
            ({"share": 0.5}, "share"),
            ({"name": " "}, "project.name"),
        ):
            answer = lead.post("/api/lead/settings", {**settings, **wrong})
            assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)
        assert lead.get("/api/lead/settings").json() == settings
        settings |= {"name": 'One "more"', "half_width": 0.4}
        for name in ("name", "half_width"):  # what is not sent stays
            changed = lead.post("/api/lead/settings", {name: settings[name]}).json()
        assert changed == settings
        assert lead.get("/api/me").json()["project"]["name"] == 'One "more"'

        for number in range(22):
            if (given := annotator.next()) is None:  # newer rates came meanwhile, and were narrow enough
                break
            marked = layer(0, 3) if number % 4 else {"spans": []}
            annotator.send(given["id"], "submit", given["version"], layer=marked)
        lead.get("/api/lead/rates")  # as the page does
        answer = annotator.post("/api/next").json()
        assert (answer["assignment"], answer["left"], answer["enough"]) == (None, 0, ["de"])
        assert lead.get("/api/lead/rates").json()["stops"]
        lead.post("/api/lead/settings", {"per_item": 2})  # the rates that there are hold until new ones are made
        assert annotator.post("/api/next").json()["enough"] == ["de"]
        busy = studio.studios.changing("one")
        with busy, pytest.MonkeyPatch.context() as patch:
            patch.setattr("veriglot.studio.web._PATIENCE", 0.1)
            assert lead.post("/api/lead/settings", {"per_item": 1}).status_code == 503
        with studio.studio().store.reading() as tx:
            events = list(tx.events(studio.studio().id, kind=("settings", "import")))
        assert [event.person_id is None for event in events] == [True, False, False, False, False, False]
        path = tmp_path / "one.toml"
        text = path.read_text("utf-8")
        path.write_text(text.replace('"one"', '"other"'), "utf-8")
        refused = lead.post("/api/lead/settings", {"per_item": 1}).json()["error"]
        assert (refused["code"], refused["remedy"]) == ("refused", "Restart the server.")
        path.write_text(text, "utf-8")
        lead.post("/api/lead/settings", {"stop_when_enough": False})
        answer = annotator.post("/api/next").json()
        assert (answer["assignment"] is not None, answer["enough"]) == (True, [])
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert load(tmp_path / "one.toml").entries.work.half_width == 0.4
