"""Saves an assignment again and again, each event twice, and says the version of each answer; 0 for a conflict."""

from __future__ import annotations

import sys

from studio_rows import event, marked

from veriglot.studio.assignment import append
from veriglot.studio.store import ReadTransaction, open_store
from veriglot.studio.tables import Conflict

ReadTransaction.seconds_left = lambda tx, id_: 3600.0  # what each save states has passed
database, assignment_id, person_id, times, name = sys.argv[1:]
store = open_store(database)
for turn in range(int(times)):
    with store.reading() as tx:
        base = tx.assignment(int(assignment_id)).version
    new = event(base=base, layer=marked(comment=f"{name}:{turn}"), seconds=1)
    for _ in range(2):
        try:
            print(append(store, int(assignment_id), int(person_id), new).version, flush=True)
        except Conflict:
            print(0, flush=True)
