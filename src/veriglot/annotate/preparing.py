"""What items are for, said once before the work: shared by all, for the exam, or hidden checks.

Items that the project file names for the exam or as checks come with their role; the others are drawn here from the
data. It is done when somebody first asks for work, and again when more items were imported; what was said stays.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlalchemy import exists, select

from veriglot.annotate import exam
from veriglot.annotate.drawing import draw
from veriglot.annotate.store import Item, ItemRole
from veriglot.annotate.store import tables as t

if TYPE_CHECKING:
    from collections.abc import Iterable

    from veriglot.annotate.project import Project
    from veriglot.annotate.store import Reading, Store, Writing

__all__ = ["is_prepared", "prepare", "prepare_in"]


def prepare(store: Store, project: Project) -> None:
    """Say what every item is for. Does no harm when it is called again.

    Raises:
        NotFound: the store does not know the project.
    """
    with store.writing(lock=f"assign {project.slug}") as tx:
        prepare_in(tx, project, tx.project(project.slug).id)


def is_prepared(tx: Reading, project: Project, project_id: int) -> bool:
    """Whether there is nothing to prepare: every language has its shared items, and what was to be drawn is."""
    counts = tx.tally(project_id, "items", "language", "role")
    languages = {language for language, _ in counts if language is not None}
    return all(not _lacks(tx, project, project_id, counts, language) for language in languages)


def _lacks(
    tx: Reading, project: Project, project_id: int, counts: dict[tuple[str | None, str], int], language: str
) -> bool:
    entries = project.entries

    def of(role: ItemRole) -> int:
        return counts.get((language, role), 0)

    if not of(ItemRole.NORMAL):
        return False
    if of(ItemRole.OVERLAP) < entries.work.overlap:
        return True
    exam_entry, checks = entries.exam, entries.checks
    if exam_entry is not None and not exam_entry.path and not of(ItemRole.EXAM):
        return bool(_usable(tx, project_id, language, exam_entry.against))
    if checks is not None and not checks.path and not of(ItemRole.CHECK):
        return bool(_usable(tx, project_id, language, "gold"))
    return False


def prepare_in(tx: Writing, project: Project, project_id: int) -> None:
    """`prepare` inside a transaction, which has to hold the lock `assign SLUG`."""
    entries = project.entries
    counts = tx.tally(project_id, "items", "language", "role")
    for language in sorted({language for language, _ in counts if language is not None}):
        roles = {role: counts.get((language, role), 0) for role in ItemRole}
        free = tx.items(project_id, role=ItemRole.NORMAL, language=language)
        if entries.exam is not None and not entries.exam.path and not roles[ItemRole.EXAM]:
            usable = _usable(tx, project_id, language, entries.exam.against)
            chosen = exam.draw_pool(tx, project, [item for item in free if item.id in usable])
            free = _say(tx, free, chosen, ItemRole.EXAM)
        if entries.checks is not None and not entries.checks.path and not roles[ItemRole.CHECK]:
            usable = _usable(tx, project_id, language, "gold")
            most = math.ceil(entries.checks.share * (len(free) + roles[ItemRole.OVERLAP]))
            fitting = draw([item for item in free if item.id in usable], _key, project.slug, "checks")
            chosen = {item.id for item in fitting[: min(most, max(1, len(fitting) // 2))]}
            free = _say(tx, free, chosen, ItemRole.CHECK)
        missing = max(0, entries.work.overlap - roles[ItemRole.OVERLAP])
        _say(tx, free, {item.id for item in free[:missing]}, ItemRole.OVERLAP)


def _key(item: Item) -> str:
    return item.key


def _say(tx: Writing, items: list[Item], chosen: Iterable[int], role: ItemRole) -> list[Item]:
    """Give a role to the chosen ones; the rest."""
    ids = set(chosen)
    tx.set_role(sorted(ids), role)
    return [item for item in items if item.id not in ids]


def _usable(tx: Reading, project_id: int, language: str, layer: str) -> set[int]:
    """Items of the data with this layer that nobody was given yet: only of them it can still be said what they are."""
    given = exists().where(t.assignments.c.item_id == t.items.c.id)
    found = select(t.items.c.id).where(
        t.items.c.project_id == project_id,
        t.items.c.role == ItemRole.NORMAL,
        t.items.c.language == language,
        t.items.c[layer].is_not(None),
        ~given,
    )
    return {row[0] for row in tx.connection.execute(found)}
