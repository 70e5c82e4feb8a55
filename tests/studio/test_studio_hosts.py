"""Where calls come from: names of hosts, proxies and the addresses that they tell, and too many calls from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio_server import running

if TYPE_CHECKING:
    from pathlib import Path


def test_names_of_others_hosts_are_refused(start) -> None:
    """A name that somebody else's DNS points at us: their page would be of one origin with ours."""
    studio = start(base_url="https://studio.example.org")
    client = studio.client()
    for host, status in (("evil.example", 400), ("studio.example.org", 200), ("studio.example.org.evil", 400)):
        assert client.get("/api/health", headers={"Host": host}).status_code == status
    ours = {"Host": "studio.example.org", "X-Forwarded-Host": "evil.example"}
    assert client.get("/api/health", headers=ours).status_code == 200


def test_behind_https_cookies_are_secure(start) -> None:
    studio = start(base_url="https://studio.example.org")
    headers = {"Host": "studio.example.org", "Origin": "https://studio.example.org"}
    body = {"token": studio.link(), "name": "Ada", "language": "en", "consent": True}
    answer = studio.client().post("/api/join", json=body, headers=headers)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-veriglot_session_one=")
    assert "Secure" in cookie
    assert "HttpOnly" in cookie
    assert "max-age=" in answer.headers["strict-transport-security"]
    evil = {**headers, "Origin": "http://studio.example.org"}
    assert studio.client().post("/api/join", json=body, headers=evil).status_code == 403


def test_a_path_below_a_host(start) -> None:
    """Whether a proxy passes the path on or takes it away."""
    studio = start(base_url="https://example.org/studio")
    headers = {"Host": "example.org", "Origin": "https://example.org"}
    body = {"token": studio.link(), "name": "Ada", "language": "en", "consent": True}
    answer = studio.client().post("/studio/api/join", json=body, headers=headers)
    assert answer.status_code == 200
    assert "Path=/studio;" in answer.headers["set-cookie"]
    assert answer.headers["cache-control"] == "no-store"
    assert studio.client().get("/api/health", headers=headers).status_code == 200


# Limits are by the day here: a limit by the minute starts anew with the clock's minute, in the middle of a test.


def test_forwarded_addresses_are_believed_of_trusted_proxies_only(start, tmp_path: Path) -> None:
    studio = start(rates={"join": "3/day"})
    client = studio.client()
    said = [client.get("/api/join/x", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(5)]
    assert said == [403, 403, 403, 429, 429]  # the header changes nothing
    (tmp_path / "proxied").mkdir()
    given = {"rates": {"join": "3/day"}, "trusted_proxies": ("127.0.0.1",)}
    with running(tmp_path / "proxied", str(tmp_path / "proxied" / "s.sqlite"), **given) as proxied:
        client = proxied.client()
        said = [client.get("/api/join/x", headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(5)]
        assert said == [403] * 5
        again = [client.get("/api/join/x", headers={"X-Forwarded-For": "10.0.0.1"}).status_code for n in range(4)]
        assert again[-1] == 429


def test_links_that_open_something_are_no_tries(start) -> None:
    """A class of 30 behind one address joins at once; tries of links that open nothing are counted."""
    studio = start(rates={"join": "5/day"})
    people = [studio.visitor() for _ in range(8)]
    assert [studio.client().get(f"/api/join/{one.token}").status_code for one in people] == [200] * 8
    codes = [studio.client().post("/api/join", json={"token": "x"}).status_code for _ in range(7)]
    assert codes == [403] * 5 + [429] * 2
    assert studio.client().get(f"/api/join/{people[0].token}").status_code == 200
    codes = [studio.client().get(f"/api/join/{people[1].token}").status_code for _ in range(6)]
    assert codes[-1] == 429  # one link, over and over


def test_too_often_is_said_with_a_time(start) -> None:
    studio = start(rates={"call": "5/day", "stranger": "2/day"})
    one = studio.visitor()
    answers = [one.get("/api/me") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 86_400
    assert [studio.client().get("/api/me").status_code for _ in range(3)] == [401, 401, 429]
    assert studio.visitor().get("/api/me").status_code == 200  # others are not held up
