"""The way of an annotator through the API, on both databases."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from studio_server import HOSTILE, TEXTS, event, layer, running

if TYPE_CHECKING:
    from pathlib import Path

    from studio_server import Running, Visitor

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("an_hour_passes")
def test_from_the_link_to_the_last_item(studio: Running) -> None:
    token = studio.link()
    client = studio.client()
    seen = client.get(f"/api/join/{token}").json()
    assert (seen["role"], seen["joined"], seen["consent"]["en"]) == ("annotator", False, HOSTILE)
    body = {"token": token, "name": "  Ada   L. ", "language": "en", "consent": True}
    joined = client.post("/api/join", json=body)
    assert joined.json()["stage"] == "work"
    cookie = joined.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/;" in cookie
    assert "secure" not in cookie  # it is reached over HTTP
    me = client.get("/api/me").json()
    assert me["person"]["name"] == "Ada L."
    assert [one["name"] for one in me["project"]["form"]["types"]][:2] == ["entity", "relation"]
    headers = {"X-CSRF-Token": me["csrf"]}
    texts = []
    while (given := client.post("/api/next", headers=headers).json())["assignment"] is not None:
        one = given["assignment"]
        texts.append(one["item"]["response"])
        for start, end in one["item"]["words"]:
            assert one["item"]["response"][start:end].strip()
        sent = event("submit", one["version"], layer=layer(*one["item"]["words"][0]), seconds=2.5)
        done = client.post(f"/api/assignments/{one['id']}/events", json=sent, headers=headers)
        assert done.json() == {"version": 1, "state": "submitted", "repeated": False}
    assert sorted(texts) == sorted(TEXTS)
    assert given["stage"] == "done"
    listed = client.get("/api/assignments").json()
    assert {(one["state"], one["seconds"]) for one in listed} == {("submitted", 2.5)}
    assert len(listed) == len(TEXTS)


def test_a_link_opens_the_same_work_on_another_device(studio: Running) -> None:
    one = studio.visitor()
    given = one.next()
    one.send(given["id"], layer=layer(0, 2))
    other = studio.client()
    assert other.post("/api/join", json={"token": one.token}).status_code == 200
    assert other.get("/api/me").json()["person"]["name"] == one.name
    found = other.get(f"/api/assignments/{given['id']}").json()
    assert (found["version"], found["layer"]["spans"][0]["end"]) == (1, 2)


@pytest.mark.usefixtures("an_hour_passes")
def test_what_was_sent_again_is_done_once(studio: Running) -> None:
    one = studio.visitor()
    number = one.next()["id"]
    sent = event("submit", layer=layer(), seconds=3)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: one.post(f"/api/assignments/{number}/events", sent), range(16)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["version"] for answer in answers} == {1}
    assert sum(not answer.json()["repeated"] for answer in answers) == 1
    assert one.get(f"/api/assignments/{number}").json()["seconds"] == 3


def test_two_tabs_lose_nothing(studio: Running) -> None:
    """The second of two saves is refused, told of what is there, and kept in the history."""
    one = studio.visitor()
    number = one.next()["id"]
    assert one.send(number, layer=layer(0, 1)).status_code == 200
    late = one.send(number, layer=layer(1, 2))
    assert late.status_code == 409
    said = late.json()
    assert (said["version"], said["state"], said["error"]["code"]) == (1, "open", "conflict")
    assert said["layer"]["spans"][0]["start"] == 0
    here = studio.studio()
    with here.store.reading() as tx:
        (kept,) = tx.events(here.id, kind=["conflict"])
    assert kept.layer is not None
    assert kept.layer.spans[0].start == 1


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"layer": layer(3, 3)}, "unfit", "spans[0]"),
        ({"layer": layer(0, 10_000)}, "unfit", "spans[0]"),
        ({"layer": layer(0, 1, "nonsense")}, "unfit", "spans[0].type"),
        ({"layer": {"spans": [{"id": "a", "start": "0", "end": 1, "type": "entity"}]}}, "malformed", None),
        ({"layer": {"spams": []}}, "malformed", None),
        ({"layer": layer(comment="x" * 10_001)}, "unfit", "comment"),
        ({"base_version": -1}, "malformed", None),
        ({"base_version": 2**63}, "malformed", None),
        ({"kind": "explode"}, "malformed", None),
        ({"kind": "skip"}, "refused", None),
        ({"kind": "confirm"}, "refused", None),
        ({"event_id": "server-12345678"}, "refused", None),
        ({"seconds": -1}, "malformed", None),
        ({"seconds": 1e308}, "malformed", None),
        ({"at": "0001-01-01T00:00:00+23:59"}, "malformed", None),
        ({"at": "2026-01-01T00:00:00"}, "malformed", None),
        ({"more": 1}, "malformed", None),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(start, body, code: str, field: str | None) -> None:
    studio = start()
    one = studio.visitor()
    number = one.next()["id"]
    answer = one.post(f"/api/assignments/{number}/events", {**event(), **body})
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    assert error.get("field") == field
    assert one.get(f"/api/assignments/{number}").json()["version"] == 0


def test_a_name_is_taken_once(studio: Running) -> None:
    studio.visitor(name="Ada")
    body = {"token": studio.link(), "name": "ada", "language": "en", "consent": True}
    answer = studio.client().post("/api/join", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "name")


def test_without_consent_nobody_joins(studio: Running) -> None:
    body = {"token": studio.link(), "name": "Ada", "language": "en", "consent": False}
    answer = studio.client().post("/api/join", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "consent")
    assert "set-cookie" not in answer.headers


def test_shared_words_are_where_they_are(studio: Running) -> None:
    one = studio.visitor()
    given = one.next()
    texts = {passage["id"]: passage["text"] for passage in given["item"]["evidence"]}
    words = one.get(f"/api/assignments/{given['id']}/shared").json()["words"]
    assert words
    for word in words:
        said = given["item"]["response"][word["start"] : word["end"]]
        assert {texts[place["id"]][place["start"] : place["end"]] for place in word["places"]} == {said}


def test_logging_out_ends_the_session_here_and_nowhere_else(studio: Running) -> None:
    one = studio.visitor()
    other = studio.client()
    other.post("/api/join", json={"token": one.token})
    kept = {"Cookie": f"veriglot_session_one={one.client.cookies['veriglot_session_one']}"}
    assert one.post("/api/logout").status_code == 200
    assert one.get("/api/me").status_code == 401
    assert studio.client().get("/api/me", headers=kept).status_code == 401  # the cookie alone is worth nothing now
    assert other.get("/api/me").status_code == 200


def test_an_unknown_event_id_form_is_refused(studio: Running) -> None:
    one = studio.visitor()
    number = one.next()["id"]
    for bad in ("short", "x" * 65, str(uuid.uuid4()) + "\n", "é" * 10):
        sent = {**event(), "event_id": bad}
        assert one.post(f"/api/assignments/{number}/events", sent).status_code == 422


def test_people_write_to_each_other_about_an_annotation(database: str, tmp_path: Path) -> None:
    with running(tmp_path, database, work={"reviews": 1}) as studio:
        anna, bo = studio.visitor(name="Anna"), studio.visitor(name="Bo")
        rev, lead = studio.visitor(role="reviewer", name="Rev"), studio.visitor(role="lead", name="Ines")
        mine = anna.next()
        other = bo.next()
        assert anna.send(mine["id"], "submit", layer={}).status_code == 200
        assert bo.send(other["id"], "submit", layer={}).status_code == 200

        def written(visitor: Visitor, number: int) -> list[tuple[str, int, str | None, bool, str]]:
            comments = visitor.get(f"/api/assignments/{number}").json()["conversation"]
            return [(row["role"], row["number"], row["name"], row["mine"], row["text"]) for row in comments]

        def unread(visitor: Visitor) -> dict[int, int]:
            return {row["id"]: row["unread"] for row in visitor.get("/api/assignments").json() if row["unread"]}

        review = rev.next()
        assert review["subject"]["assignment"] == mine["id"]
        assert review["conversation"] == []
        asked = anna.send(mine["id"], "comment", 0, comment="  Is 1815 right?  ")  # of any version, handed in or not
        assert asked.json()["state"] == "submitted"
        assert anna.send(mine["id"], "comment", comment=" ").status_code == 422
        assert bo.send(mine["id"], "comment", comment="x").status_code == 404
        assert unread(rev) == {review["id"]: 1}
        assert unread(anna) == unread(bo) == {}
        assert rev.send(review["id"], "opened").status_code == 200
        assert unread(rev) == {}
        assert rev.send(review["id"], "return", comment="Look it up.").status_code == 200
        answer = {"assignment": mine["id"], "text": "It is."}
        assert lead.get("/api/lead/conversations").json()[0]["waits"] is False  # the reviewer answered
        assert lead.post("/api/lead/comments", answer).json()["name"] == "Ines"
        assert unread(anna) == {mine["id"]: 2}
        assert written(anna, mine["id"]) == [
            ("annotator", 1, None, True, "Is 1815 right?"),
            ("reviewer", 1, None, False, "Look it up."),
            ("lead", 1, None, False, "It is."),
        ]
        assert anna.send(mine["id"], "comment", comment="Thanks.").status_code == 200
        (told,) = lead.get("/api/lead/conversations").json()
        assert (told["waits"], told["assignment"], len(told["comments"])) == (True, mine["id"], 4)
        assert written(bo, other["id"]) == []
        assert anna.post("/api/lead/comments", answer).status_code == 404
        assert lead.post("/api/lead/comments", {**answer, "assignment": review["id"]}).status_code == 404
