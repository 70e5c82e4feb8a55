"""Figures of leads: made in processes of their own, which are told of, cancelled and ended, and remembered."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec
import pytest
from studio_server import Running, any_database, layer, write_project
from test_studio_serve import COMMAND, _free_port

from veriglot.studio import figures
from veriglot.studio.items import import_all
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.people import invite
from veriglot.studio.project import load
from veriglot.studio.tables import Purpose, Role, State
from veriglot.studio.web import Studios

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from studio_server import Visitor

    from veriglot.studio.web import Studio

pytestmark = pytest.mark.slow
GAMMA = "/api/lead/agreement?gamma=true"


def _marked_by_many(studio: Studio) -> None:
    """Items on which gamma takes minutes: three people mark each character for itself."""
    with studio.store.writing() as tx:
        people = [invite(tx, studio, Role.ANNOTATOR).person for _ in range(3)]
        for item in tx.items(studio.id)[:2]:
            length = len(tx.sample(item.id).response.split(" ")[0]) + 16
            for number, person in enumerate(people):
                spans = (
                    LayerSpan(f"s{at}", at, at + 1, ("entity", "relation")[at % 2]) for at in range(number, length)
                )
                row = tx.assign(item, person.id, Purpose.ANNOTATE, layer=Layer(spans=tuple(spans)))
                tx.move(row.id, State.SUBMITTED)


def _until(call: Callable[[], Any], seconds: float = 60) -> Any:
    until = time.monotonic() + seconds
    while not (result := call()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return result


@any_database
def test_gamma_tells_how_far_it_is_and_is_cancelled_and_people_work_on(studio: Running) -> None:
    _marked_by_many(studio.studio())
    lead, annotator = studio.visitor(role="lead"), studio.visitor()
    lead.client.headers.pop("Prefer")
    began = time.monotonic()
    answer = lead.get(GAMMA)
    assert (answer.status_code, time.monotonic() - began < 10) == (202, True)
    number = answer.json()["pending"]["id"]
    assert annotator.send(annotator.next()["id"], layer=layer()).status_code == 200
    assert lead.get("/api/lead/agreement", headers={"Prefer": "wait=60"}).json()["shared"] == 2
    pending = _until(lambda: (now := lead.get(GAMMA).json()["pending"])["seconds"] > 1 and now)
    assert pending["id"] == number
    assert pending["done"] is None or 0 < pending["done"] < 1
    made = next(made for made in _made(studio) if made.id == number)
    process = made.process
    assert process.is_alive()
    assert annotator.post(f"/api/lead/figures/{number}/cancel", json={}).status_code == 404
    assert lead.post(f"/api/lead/figures/{number}/cancel", json={}).status_code == 200
    _until(lambda: not process.is_alive())
    assert lead.post(f"/api/lead/figures/{number}/cancel", json={}).status_code == 404


def test_the_server_stops_while_gamma_is_made(tmp_path: Path) -> None:
    path, port = write_project(tmp_path, "one", name="One"), _free_port()
    (studio,) = studios = Studios([load(path)])
    import_all(studio.store, studio.project)
    _marked_by_many(studio)
    with studio.store.writing() as tx:
        token = invite(tx, studio, Role.LEAD).token
    studios.close()
    with subprocess.Popen([*COMMAND, str(path), "-p", str(port)], stderr=subprocess.PIPE, text=True) as server:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            body = {"token": token, "name": "L", "language": "en", "consent": True}

            def join() -> httpx2.Response | None:
                assert server.poll() is None
                try:
                    return client.post("/api/join", json=body)
                except httpx2.TransportError:
                    return None

            assert _until(join).status_code == 200
            assert _until(lambda: client.get(GAMMA).json()["pending"]["seconds"] > 1)
        children = _children(server.pid)
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=15)
    assert server.returncode == 0
    assert children
    _until(lambda: not any(map(_is_alive, children)), 15)


def _children(pid: int) -> list[int]:
    """All processes below one."""
    done = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    below = [child for child, parent in rows if parent == pid]
    return below + [deeper for child in below for deeper in _children(child)]


def _is_alive(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


def _made(studio: Running) -> list[Any]:
    state = studio.server.config.app.app.state.figures  # type: ignore[union-attr]
    return list(state._figures.values())


def _finished(studio: Running) -> dict[int, float]:
    return {made.id: made.finished for made in _made(studio)}


def test_a_figure_is_made_anew_once_something_happened_and_never_for_saves(studio: Running) -> None:
    lead, annotator = studio.visitor(role="lead"), studio.visitor()
    assignment = annotator.next()["id"]
    paths = [f"/api/lead/{name}" for name in ("overview", "agreement", "rates", "disagreements")]
    first, times = [lead.get(path).json() for path in paths], _finished(studio)
    assert len(times) == 4
    assert annotator.send(assignment, layer=layer()).status_code == 200
    assert [lead.get(path).json() for path in paths] == first
    assert _finished(studio) == times
    assert annotator.send(assignment, "submit", base=1, layer=layer()).status_code == 200
    assert lead.get(paths[0]).json()["queue"]["annotate"] == {"submitted": 1}
    assert sorted(_finished(studio).values())[:3] == sorted(times.values())[1:]


@any_database
def test_saves_alone_change_times_of_work_after_a_while(studio: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    lead, annotator = studio.visitor(role="lead"), studio.visitor()
    assignment = annotator.next()["id"]
    assert lead.get("/api/lead/overview").json()["seconds"] == 0
    time.sleep(1.1)
    assert annotator.send(assignment, layer=layer(), seconds=1).status_code == 200
    monkeypatch.setattr(figures, "_AFTER_SAVES", 0.0)
    assert lead.get("/api/lead/overview").json()["seconds"] == pytest.approx(1, abs=0.1)


@any_database
def test_an_old_figure_is_shown_while_the_new_one_is_made(studio: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    lead, annotator = studio.visitor(role="lead"), studio.visitor()
    before = lead.get("/api/lead/overview")
    assert "x-outdated" not in before.headers
    state = studio.server.config.app.app.state.figures  # type: ignore[union-attr]
    with state._workers[studio.studio()].turn:  # others are made: this one has to wait
        annotator.next()
        after = lead.get("/api/lead/overview", headers={"Prefer": "wait=0"})
        assert (after.headers["x-outdated"], after.json()) == ("1", before.json())
        assert after.headers["x-as-of"] == before.headers["x-as-of"]
    answer = lead.get("/api/lead/overview")
    assert answer.headers["x-as-of"] > before.headers["x-as-of"]
    assert "x-outdated" not in answer.headers
    assert answer.json()["queue"]["annotate"] == {"open": 1}


@any_database
@pytest.mark.parametrize("changed", ["nothing", "file", "project", "version"])
def test_the_last_figures_are_there_right_after_a_start(
    studio: Running, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead, annotator = studio.visitor(role="lead"), studio.visitor()
    before = lead.get("/api/lead/overview")
    (file,) = _until(lambda: [*studio.folder.glob("*.figures")])
    assert file.stat().st_mode & 0o077 == 0
    app = studio.server.config.app.app  # type: ignore[union-attr]
    app.state.figures.close()
    if changed == "file":
        file.write_bytes(b"half of it")
    elif changed == "project":
        entries = studio.studio().project.entries
        msgspec.structs.force_setattr(entries, "pace", msgspec.structs.replace(entries.pace, hourly=1.0))
    elif changed == "version":
        monkeypatch.setattr(figures, "__version__", "0.0")
    app.state.figures = figures.FigureCache()
    worker = app.state.figures._workers[studio.studio()] = figures._Worker(studio.studio())
    annotator.next()
    with worker.turn:
        after = lead.get("/api/lead/overview", headers={"Prefer": "wait=0"})
    if changed == "nothing":
        assert (after.headers["x-outdated"], after.json()) == ("1", before.json())
    else:
        assert after.status_code == 202
    assert lead.get("/api/lead/overview").json()["queue"]["annotate"] == {"open": 1}


def test_one_process_makes_figures_as_long_as_it_lives(studio: Running) -> None:
    lead, annotator = studio.visitor(role="lead"), studio.visitor()
    state = studio.server.config.app.app.state.figures  # type: ignore[union-attr]
    assert lead.get("/api/lead/overview").json()["queue"] == {}
    worker = state._workers[studio.studio()]
    process = worker.process
    assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)
    assignment = annotator.next()["id"]
    assert lead.get("/api/lead/overview").json()["queue"]["annotate"] == {"open": 1}
    assert worker.process is process
    process.kill()
    process.join()
    assert annotator.send(assignment, "submit", layer=layer()).status_code == 200
    assert lead.get("/api/lead/overview").json()["queue"]["annotate"] == {"submitted": 1}
    assert worker.process is not process


@any_database
def test_a_figure_whose_process_dies_is_a_failure_and_made_again(studio: Running) -> None:
    _marked_by_many(studio.studio())
    lead = studio.visitor(role="lead")
    assert lead.get(GAMMA, headers={"Prefer": "wait=0"}).status_code == 202
    process = _until(lambda: next((made.process for made in _made(studio) if made.process), None))
    time.sleep(0.5)
    process.kill()
    answer = _until(lambda: (now := _answer(lead)).status_code != 202 and now)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "internal")
    lead.client.headers["Prefer"] = "wait=0"
    made = _until(lambda: next((made for made in _made(studio) if lead.get(GAMMA) and made.process), None))
    assert made.process is not process


@pytest.mark.parametrize(("module", "name"), [("_context", "Pipe"), ("threading", "Thread")])
@any_database
def test_a_process_that_cannot_start_is_a_failure_and_tried_again(
    studio: Running, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    lead = studio.visitor(role="lead")
    with monkeypatch.context() as patch:
        patch.setattr(figures, module, SimpleNamespace(**{name: fail}))
        answer = lead.get("/api/lead/overview", headers={"Prefer": "wait=5"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, "Something went wrong here.")
    assert lead.get("/api/lead/overview").status_code == 200


@any_database
def test_what_waits_for_its_turn_is_cancelled_alone(studio: Running) -> None:
    lead = studio.visitor(role="lead")
    assert lead.get("/api/lead/overview").status_code == 200
    worker = studio.server.config.app.app.state.figures._workers[studio.studio()]  # type: ignore[union-attr]
    process = worker.process
    with worker.turn:
        number = lead.get("/api/lead/rates", headers={"Prefer": "wait=0"}).json()["pending"]["id"]
        assert lead.post(f"/api/lead/figures/{number}/cancel", json={}).status_code == 200
        assert lead.post(f"/api/lead/figures/{number}/cancel", json={}).status_code == 404
    assert lead.get("/api/lead/rates").status_code == 200
    assert process.is_alive()
    assert worker.process is process


def test_an_event_that_comes_in_after_a_later_one_makes_a_figure_old(
    studio: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "_OVERTAKEN", 10)
    served, made = studio.studio(), figures.FigureCache()
    before = made._version(served)
    with served.store.reading() as tx:
        first = max(event.id for event in tx.events(served.id)) + 100
    for number, kind in ((0, "save"), (9, "submit"), (5, "submit"), (4, "save"), (30, "save"), (25, "submit")):
        with served.store.writing() as tx:
            tx.record(kind, served.id, id=first + number)
        version = made._version(served)
        shown = figures._Figure(1, served, (200, b""), before, finished=time.monotonic())
        assert (shown.is_old(version), version > before) == (kind == "submit", True)
        assert figures.FigureCache()._version(served) == version
        before = version


def _answer(lead: Visitor) -> httpx2.Response:
    return lead.get(GAMMA, headers={"Prefer": "wait=1"})
