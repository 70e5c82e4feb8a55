"""How the studio's server holds under load, and that it loses nothing when it is killed.

    python benchmarks/studio_load.py                         50 annotators, each saving every second for two minutes
    python benchmarks/studio_load.py --kills 10              the same, with `kill -9` of the server ten times
    python benchmarks/studio_load.py --database postgresql:///studio
    python benchmarks/studio_load.py --annotations 10000 --leads 3    beside three leads, with so much handed in before
    python benchmarks/studio_load.py --half-width 0.001 --turns 3     runs without and with a target, by turns

One server process and its database, on loopback. An annotator that hears no answer sends the same event again, as the
page does, until it is answered. Afterwards the store is read: every acknowledged save has to be there once, versions
have to count up without a gap, and nothing may be there that was not sent. Leaves with 1 where that does not hold.
Times are those of saves that were answered at the first try: what fell into a kill waits for the restart, and is told
apart. After every twentieth save an annotator hands the item in and takes the next one. Each lead opens a page of the
studio every five seconds, in turn: what the page asks for, until it shows figures. One of them has opened each before
the work begins; that time, and the first after each kill, are told apart. A target of the rates makes the server look
at them whenever somebody asks for the next item; one that is never reached leaves the work the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from sqlalchemy import insert

from veriglot.studio.items import import_all
from veriglot.studio.layers import Layer, LayerSpan
from veriglot.studio.people import invite
from veriglot.studio.project import Project, load
from veriglot.studio.tables import Purpose, Role, State, now
from veriglot.studio.tables import assignments as assignments_table
from veriglot.studio.web import Studios
from veriglot.text.segmentation import word_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.studio.tables import Person
    from veriglot.studio.web import Studio

SAMPLES = Path(__file__).resolve().parents[1] / "examples" / "samples.jsonl"
HANDED_IN_AFTER = 20  # saves
PROJECT = """
[project]
name = "Load"
slug = "{slug}"
task = "spans"

[data]
path = "data.jsonl"

[work]
overlap = 0
per_person = 100000
reviews = 0
{target}
"""


@dataclass
class Sent:
    """What annotators sent, and what they were told.

    Attributes:
        saves: event id to the assignment and the comment of its layer.
        acknowledged: event id to the version that was answered.
        seconds: of saves answered at the first try.
        waits: of saves that had to be sent again.
        nexts: seconds until the next item was there, after an item was handed in.
        refused: answers that were neither an acknowledgement nor no answer at all.
        behind: saves that were due while the one before was still on its way.
        pages: lead's page to the seconds until it showed figures, each time that it was opened.
        again: the same, of the first time that a lead opens it after the server was killed.
        first: the same, before the work begins, by a server that has never made these figures.
    """

    saves: dict[str, tuple[int, str]] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    nexts: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    behind: int = 0
    pages: dict[str, list[float]] = field(default_factory=dict)
    again: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, list[float]] = field(default_factory=dict)


class Server:
    """A server process that can be killed and started again at the same port."""

    def __init__(self, project: Path, database: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-c", "import sys; from veriglot.cli import main; sys.exit(main())"]
        self._command += ["studio", "--database", database, "serve", str(project)]
        self._command += ["--port", str(self.port)]
        self.process: subprocess.Popen[bytes] | None = None
        self.spent = 0.0
        self.starts = 0

    async def start(self) -> None:
        """Start it and wait until it answers."""
        self.starts += 1
        self.process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False) as client:
            for _ in range(1200):
                with suppress(httpx2.TransportError):
                    if (await client.get("/api/health")).status_code == 200:
                        return
                await asyncio.sleep(0.05)
        raise SystemExit("the server did not start")

    def kill(self) -> None:
        """`kill -9`, in the middle of whatever it does."""
        assert self.process is not None
        self._count()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        assert self.process is not None
        self._count()
        self.process.terminate()
        return self.process.wait(timeout=60)

    def _count(self) -> None:
        """Add up the processor time that it took."""
        assert self.process is not None
        with suppress(OSError, ValueError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            self.spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_data(folder: Path, items: int, length: int, slug: str, half_width: float | None) -> Project:
    """A project with long responses in many scripts, made of the project's own examples."""
    rows = [json.loads(line) for line in SAMPLES.read_text("utf-8").splitlines()]
    made = []
    for number in range(items):
        row = rows[number % len(rows)]
        passages = [{"text": passage["text"] * 20} for passage in row["evidence"]]
        times = max(1, length // len(row["response"]))
        made.append(
            {
                "id": f"i{number}",
                "language": row["language"],
                "question": row.get("question"),
                "response": " ".join([row["response"]] * times),
                "evidence": passages,
            }
        )
    (folder / "data.jsonl").write_text("\n".join(json.dumps(row) for row in made), "utf-8")
    target = "" if half_width is None else f"half_width = {half_width}"
    (folder / "project.toml").write_text(PROJECT.format(slug=slug, target=target), "utf-8")
    return load(folder / "project.toml")


def annotate_before(studio: Studio, people: Sequence[Person], annotations: int) -> None:
    """Annotations that were handed in before: of each third item two people's, who differ."""
    at, chance = now() - timedelta(days=1), random.Random(0)
    words: dict[str, list[list[int]]] = {}
    with studio.store.writing() as tx:
        items = tx.items(studio.id)[: 3 * annotations // 4]
        shared = items[: annotations // 4]
        rows = []
        for number, item in enumerate(items):
            sample = tx.sample(item.id)
            bounds = words.setdefault(sample.response, word_bounds(sample.response, sample.language).tolist())
            places = sorted(chance.sample(bounds, min(6, len(bounds))))
            for turn in range(2 if number < len(shared) else 1):
                spans = [LayerSpan(f"s{k}", start, end, "entity") for k, (start, end) in enumerate(places[turn:])]
                values = {"project_id": studio.id, "item_id": item.id, "purpose": Purpose.ANNOTATE, "round": 0}
                values |= {"person_id": people[(number + turn) % len(people)].id, "version": 1, "seconds": 60.0}
                values |= {"state": State.SUBMITTED, "layer": Layer(spans=tuple(spans)).to_data()}
                rows.append({**values, "created_at": at, "changed_at": at, "submitted_at": at})
        tx.connection.execute(insert(assignments_table), rows)
        for item in shared:
            tx.update_item(item, "wanted", wanted=2)


@dataclass
class Annotator:
    """Somebody who has joined and has an item open."""

    client: httpx2.AsyncClient
    name: str
    headers: dict[str, str]
    assignment: dict[str, Any]


async def join(client: httpx2.AsyncClient, token: str, name: str) -> Annotator:
    """Take up a link and take an item."""
    headers = await sign_in(client, token, name)
    given = (await client.post("/api/next", headers=headers)).raise_for_status().json()
    return Annotator(client, name, headers, given["assignment"])


async def sign_in(client: httpx2.AsyncClient, token: str, name: str) -> dict[str, str]:
    """Take up a link; the headers that writes carry."""
    body = {"token": token, "name": name, "language": "en", "consent": True}
    joined = (await client.post("/api/join", json=body)).raise_for_status()
    return {"X-CSRF-Token": joined.json()["csrf"]}


async def annotate(one: Annotator, until: float, every: float, sent: Sent) -> None:
    """Save the item again and again."""
    number, version, words = (
        one.assignment["id"],
        one.assignment["version"],
        one.assignment["item"]["words"],
    )
    due = time.monotonic() + random.uniform(0, every)
    turn = random.randrange(HANDED_IN_AFTER)  # so that not all hand in at once
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        turn += 1
        spans = [
            {"id": f"s{k}", "start": words[k][0], "end": words[k][1], "type": "entity", "note": f"note {turn}"}
            for k in range(min(turn % 12, len(words)))
        ]
        comment = f"{one.name} {turn}"
        layer = {"spans": spans, "comment": comment}
        is_last = turn % HANDED_IN_AFTER == 0
        kind, event_id = "submit" if is_last else "save", str(uuid.uuid4())
        event = {"event_id": event_id, "base_version": version, "kind": kind, "layer": layer, "seconds": 1}
        sent.saves[event_id] = (number, comment)
        version = await save(one.client, f"/api/assignments/{number}/events", event, one.headers, sent) or version
        if is_last:
            number, version, words = await next_item(one, sent)
        due += every
        if due < time.monotonic():
            sent.behind += 1
            due = time.monotonic()


async def next_item(one: Annotator, sent: Sent) -> tuple[int, int, list[list[int]]]:
    """Take an item, until one is given: its assignment, version and words."""
    while True:
        began = time.monotonic()
        try:
            answer = await one.client.post("/api/next", headers=one.headers)
        except httpx2.TransportError:
            await asyncio.sleep(random.uniform(0.1, 0.4))
            continue
        if answer.status_code != 200:
            sent.refused.append(f"next: {answer.status_code} {answer.text[:200]}")
        sent.nexts.append(time.monotonic() - began)
        given = answer.raise_for_status().json()["assignment"]
        return given["id"], given["version"], given["item"]["words"]


async def save(client: httpx2.AsyncClient, path: str, event: dict[str, Any], headers: Any, sent: Sent) -> int | None:
    """Send a save until it is answered; the version that it made."""
    first = time.monotonic()
    tries = 0
    while True:
        began = time.monotonic()
        tries += 1
        try:
            answer = await client.post(path, json=event, headers=headers)
        except httpx2.TransportError:
            await asyncio.sleep(random.uniform(0.1, 0.4))
            continue
        took = time.monotonic() - began
        if answer.status_code != 200:
            sent.refused.append(f"{answer.status_code} {answer.text[:200]}")
            return None
        version = int(answer.json()["version"])
        sent.acknowledged[event["event_id"]] = version
        (sent.seconds if tries == 1 else sent.waits).append(took if tries == 1 else time.monotonic() - first)
        return version


PAGES = {
    "progress": (),
    "agreement": ("agreement",),
    "rates": ("rates",),
    "disagreements": ("disagreements?limit=10",),
    "items": ("items?limit=50",),
    "conversations": ("conversations",),
}
"""The lead's pages, and what each asks for beside the overview."""


async def lead(client: httpx2.AsyncClient, until: float, server: Server, sent: Sent) -> None:
    """Open page after page; pages of one lead that wait ask again each second, as the studio's do."""
    opened: set[tuple[int, str]] = set()
    names = random.sample(list(PAGES), len(PAGES))
    for turn in range(10_000):
        began, name, starts = time.monotonic(), names[turn % len(names)], server.starts
        if began >= until:
            return
        is_first = starts > 1 and (starts, name) not in opened
        try:
            await open_page(client, name, sent, sent.again if is_first else sent.pages)
        except httpx2.TransportError:  # it fell into a kill
            await asyncio.sleep(0.2)
            continue
        opened.add((starts, name))
        await asyncio.sleep(max(0.0, began + 5 - time.monotonic()))


async def open_page(client: httpx2.AsyncClient, name: str, sent: Sent, times: dict[str, list[float]]) -> None:
    """Ask for what a page asks for, until it is there."""
    began = time.monotonic()
    await asyncio.gather(*(answered(client, path, sent) for path in ("overview", *PAGES[name])))
    times.setdefault(name, []).append(time.monotonic() - began)


async def answered(client: httpx2.AsyncClient, path: str, sent: Sent) -> None:
    """Ask for a figure until it is there."""
    while True:
        answer = await client.get(f"/api/lead/{path}")
        if answer.status_code == 200:
            return
        if answer.status_code != 202:
            sent.refused.append(f"{path}: {answer.status_code} {answer.text[:200]}")
            return
        await asyncio.sleep(1)


async def kill_now_and_then(server: Server, times: int, seconds: float, gone: list[float]) -> None:
    """Kill the server so many times in the time that there is, and start it again."""
    began = time.monotonic()
    for number in range(times):
        due = began + (number + 0.5) * seconds / times
        await asyncio.sleep(max(seconds / times / 2, due - time.monotonic()))  # however slowly it starts
        at = time.monotonic()
        server.kill()
        await server.start()
        gone.append(time.monotonic() - at)


def examine(studio: Studio, sent: Sent) -> list[str]:
    """What is wrong in the store; nothing, it is to be hoped."""
    wrong = list(sent.refused[:5])
    with studio.store.reading() as tx:
        saves = list(tx.events(studio.id, kind=["save", "submit"]))
        conflicts = sum(1 for _ in tx.events(studio.id, kind=["conflict"]))
        given = {number for number, _ in sent.saves.values()}
        assignments = {row.id: row for row in tx.assignments(studio.id) if row.id in given}
    kept = {event.event_id: event for event in saves}
    if len(kept) != len(saves):
        wrong.append(f"{len(saves) - len(kept)} saves are there twice")
    if conflicts:
        wrong.append(f"{conflicts} conflicts, though nobody worked on another's item")
    lost = [id_ for id_ in sent.acknowledged if id_ not in kept]
    if lost:
        wrong.append(f"{len(lost)} acknowledged saves are lost")
    strange = [id_ for id_ in kept if id_ not in sent.saves]
    if strange:
        wrong.append(f"{len(strange)} saves are there that nobody sent")
    for id_, event in kept.items():
        number, comment = sent.saves.get(id_, (None, None))
        if event.assignment_id != number or event.layer is None or event.layer.comment != comment:
            wrong.append(f"save {id_} says something else than was sent")
        if id_ in sent.acknowledged and sent.acknowledged[id_] != event.version:
            wrong.append(f"save {id_} has another version than was acknowledged")
    for number, assignment in assignments.items():
        mine = [event for event in saves if event.assignment_id == number]
        if [event.version for event in mine] != list(range(1, assignment.version + 1)):
            wrong.append(f"the versions of assignment {number} have gaps or doubles")
        if mine and assignment.layer != mine[-1].layer:
            wrong.append(f"assignment {number} does not hold what was saved last")
    return wrong


def share(values: list[float], part: float) -> float:
    """A quantile in milliseconds."""
    return 1000 * sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


async def measure(
    given: argparse.Namespace, folder: Path, slug: str, half_width: float | None
) -> tuple[Sent, float, bool]:
    """Do it all: what was sent, the server's processor time, and whether everything held."""
    handed_in = given.annotators * int(1 + given.seconds / given.every / HANDED_IN_AFTER)
    items = 2 * given.annotators + handed_in + 3 * given.annotations // 4
    project = write_data(folder, items, given.length, slug, half_width)
    database = given.database or str(folder / "load.sqlite")
    (studio,) = Studios([project], database)
    store = studio.store
    import_all(store, project)
    with store.writing() as tx:
        people = [invite(tx, studio, Role.ANNOTATOR) for _ in range(given.annotators)]
        leads = [invite(tx, studio, Role.LEAD) for _ in range(given.leads)]
    if given.annotations:
        annotate_before(studio, [invitation.person for invitation in people], given.annotations)
    server = Server(project.path, database)
    await server.start()
    sent = Sent()
    gone: list[float] = []
    clients = [httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=30) for _ in (*people, *leads)]
    began = time.monotonic()
    entries = [(client, invitation.token) for client, invitation in zip(clients, (*people, *leads), strict=True)]
    arrived = await asyncio.gather(
        *(join(client, token, f"a{n}") for n, (client, token) in enumerate(entries[: len(people)]))
    )
    await asyncio.gather(
        *(sign_in(client, token, f"lead {n}") for n, (client, token) in enumerate(entries[len(people) :]))
    )
    joining = time.monotonic() - began
    for client, _ in entries[len(people) :][:1]:  # pages that are open when the work begins
        for name in PAGES:
            await open_page(client, name, sent, sent.first)
    began = time.monotonic()
    work = [annotate(one, began + given.seconds, given.every, sent) for one in arrived]
    work += [lead(client, began + given.seconds, server, sent) for client, _ in entries[len(people) :]]
    killing = kill_now_and_then(server, given.kills, given.seconds, gone) if given.kills else asyncio.sleep(0)
    await asyncio.gather(*work, killing)
    took = time.monotonic() - began
    for client in clients:
        await client.aclose()
    code = server.stop()
    wrong = examine(studio, sent)
    store.close()
    if code != 0:
        wrong.append(f"the server left with {code} when it was asked to stop")
    print(f"all joined at once and got their items within {joining:.1f} s; load average {os.getloadavg()[0]:.1f}")
    kind = "PostgreSQL" if "://" in database else "SQLite"
    print(f"{given.annotators} annotators, a save each {given.every:g} s, {took:.0f} s, {kind}, {os.cpu_count()} cores")
    print("a target of the rates: " + ("none" if half_width is None else f"half-width {half_width:g}"))
    return sent, server.spent, report(given, server, sent, gone, took, wrong)


def report(
    given: argparse.Namespace, server: Server, sent: Sent, gone: list[float], took: float, wrong: list[str]
) -> bool:
    """Print what was measured; whether everything held."""
    print(f"saves sent {len(sent.saves):,}, acknowledged {len(sent.acknowledged):,} ({len(sent.seconds) / took:.1f}/s)")
    print(
        f"answered at the first try: p50 {share(sent.seconds, 0.5):.0f} ms, p95 {share(sent.seconds, 0.95):.0f} ms,"
        f" p99 {share(sent.seconds, 0.99):.0f} ms, max {share(sent.seconds, 1):.0f} ms"
    )
    print(f"next items: p50 {share(sent.nexts, 0.5):.0f} ms, p95 {share(sent.nexts, 0.95):.0f} ms")
    if gone:
        print(
            f"killed {len(gone)} times; away for {sum(gone) / len(gone):.1f} s each time; {len(sent.waits)} saves were"
            f" sent again, answered after {share(sent.waits, 0.5) / 1000:.1f} s (median)"
        )
    pages = [seconds for of in (sent.pages, sent.again) for times in of.values() for seconds in times]
    if given.leads:
        print(f"{given.leads} leads at {given.annotations:,} annotations; seconds until a page shows its figures:")
        for name in PAGES:
            times, again, first = (of.get(name, []) for of in (sent.pages, sent.again, sent.first))
            print(
                f"  {name:14} opened {len(times):3}: p50 {share(times, 0.5) / 1000:.2f},"
                f" p95 {share(times, 0.95) / 1000:.2f}; first after a kill {len(again):3}:"
                f" p50 {share(again, 0.5) / 1000:.2f}, p95 {share(again, 0.95) / 1000:.2f};"
                f" the first of all: {share(first, 0.5) / 1000:.1f}"
            )
        print(f"  all pages: p50 {share(pages, 0.5) / 1000:.2f}, p95 {share(pages, 0.95) / 1000:.2f}")
    print(f"server: {server.spent:.1f} s of processor time; {sent.behind} saves late by more than their interval")
    print("\n".join(wrong) if wrong else "every acknowledged save is there, none twice, none that was not sent")
    slow = share(sent.seconds, 0.95) > given.limit
    if slow:
        print(f"p95 is above {given.limit} ms")
    if given.leads and share(pages, 0.95) > given.page_limit:
        print(f"p95 of lead pages is above {given.page_limit} ms")
        slow = True
    return not wrong and not slow


def compare(runs: Sequence[tuple[Sent, float, bool]]) -> None:
    """Print what a target costs: runs with it held against those without, which took turns."""
    for name, part in (("saves", "seconds"), ("next items", "nexts")):
        without, with_target = ([s for sent, *_ in runs[arm::2] for s in getattr(sent, part)] for arm in (0, 1))
        ratios = ", ".join(f"p{100 * q:.0f} {share(with_target, q) / share(without, q):.2f}" for q in (0.5, 0.95))
        print(f"{name} with a target, as a multiple of those without: {ratios}")
    spent = [sum(run[1] for run in runs[arm::2]) for arm in (0, 1)]
    print(f"processor time of the server: {spent[1] / spent[0]:.2f} times")


def main() -> None:
    """Read the command line, and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between the saves of one annotator")
    parser.add_argument("--kills", type=int, default=0, help="how often the server is killed with kill -9")
    parser.add_argument("--length", type=int, default=1500, help="code points of a response, about")
    parser.add_argument("--annotations", type=int, default=0, help="that were handed in before")
    parser.add_argument("--leads", type=int, default=0, help="who open a page every five seconds")
    parser.add_argument(
        "--page-limit", type=float, default=float("inf"), help="milliseconds that p95 of pages may have"
    )
    parser.add_argument("--limit", type=float, default=float("inf"), help="milliseconds that p95 may have")
    parser.add_argument("--database", help="postgresql://... with an empty database; default: a file of SQLite")
    parser.add_argument("--half-width", type=float, help="a target of the rates; each run is made without and with it")
    parser.add_argument("--turns", type=int, default=1, help="pairs of such runs")
    given = parser.parse_args()
    runs = []
    for turn, half_width in enumerate([None] if given.half_width is None else [None, given.half_width] * given.turns):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(asyncio.run(measure(given, Path(folder), f"load-{turn}", half_width)))
    if len(runs) > 1:
        compare(runs)
    sys.exit(0 if all(held for *_, held in runs) else 1)


if __name__ == "__main__":
    main()
