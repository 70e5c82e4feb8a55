"""What a study would take, before anything is asked: calls, tokens, money and judgements."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from veriglot.records import Sample
from veriglot.run import Progress
from veriglot.study.asking import budgets
from veriglot.study.detecting import given_profile
from veriglot.study.files import all_files, rows_of

if TYPE_CHECKING:
    from veriglot.study.config import Config
    from veriglot.study.folder import Folder

__all__ = ["ModelCost", "Rehearsal", "rehearse"]


class ModelCost(msgspec.Struct, frozen=True):
    """What one model would take.

    Attributes:
        model: its name.
        calls: responses that the design asks for; for given responses, 0.
        done: how many of them the run's folder has already.
        impossible: queries that cannot be asked.
        tokens_in: tokens of all prompts, estimated roughly from their length.
        tokens_out: the most tokens of all replies; None where `max_tokens` is not set.
        cost: the most that all calls may cost, in the currency of the prices; None without prices or `tokens_out`.
        languages: responses by language.
    """

    model: str
    calls: int
    done: int
    impossible: int
    tokens_in: int
    tokens_out: int | None
    cost: float | None
    languages: dict[str, int]


class Rehearsal(msgspec.Struct, frozen=True):
    """What a study would take.

    Attributes:
        title: of the study.
        models: each.
        calls: calls that are still to be made, at most.
        judgements: responses that the detectors are to judge, all together.
        unreadable: rows of the input that cannot be read.
        limits: calls and tokens that may be spent; None for no bound.
        enough: whether the limits let the study finish; None where that is not known.
    """

    title: str
    models: tuple[ModelCost, ...]
    calls: int
    judgements: int
    unreadable: int
    limits: tuple[int | None, int | None]
    enough: bool | None


def rehearse(config: Config, folder: Folder) -> Rehearsal:
    """Count; nothing is asked, and nothing written.

    Raises:
        InputError: a file of the study cannot be read.
        UsageError: an error profile counts another unit than the study.
    """
    for entry in config.detectors:
        given_profile(config, entry)
    models, unreadable = _asked(config, folder) if config.entries.queries is not None else _given(config)
    responses = sum(sum(model.languages.values()) for model in models)
    calls = sum(model.calls - model.done for model in models)
    limits = config.entries.limits
    return Rehearsal(
        title=config.title,
        models=tuple(models),
        calls=calls,
        judgements=responses * len(config.detectors),
        unreadable=unreadable,
        limits=(limits.calls, limits.tokens),
        enough=_enough(models, limits.calls, limits.tokens),
    )


def _asked(config: Config, folder: Folder) -> tuple[list[ModelCost], int]:
    found = []
    for entry, budget in zip(config.models, budgets(config).values(), strict=True):
        cost = None
        if entry.price_in is not None and entry.price_out is not None and budget.tokens_out is not None:
            cost = (budget.tokens_in * entry.price_in + budget.tokens_out * entry.price_out) / 1e6
        found.append(
            ModelCost(
                model=entry.name,
                calls=budget.calls,
                done=Progress.of(folder.responses(entry.name)).done,
                impossible=budget.impossible,
                tokens_in=budget.tokens_in,
                tokens_out=budget.tokens_out,
                cost=cost,
                languages=budget.languages,
            )
        )
    return found, 0


def _given(config: Config) -> tuple[list[ModelCost], int]:
    entry = config.entries.responses
    assert entry is not None
    wanted = set(config.languages)
    counts: dict[str, Counter[str]] = {model.name: Counter() for model in config.models}
    unreadable = 0
    for row in rows_of(all_files(config.places(entry.path)), format_name=entry.format, language=entry.language):
        if not isinstance(row, Sample):
            unreadable += 1
        elif not wanted or row.language is None or row.language in wanted:
            name = row.generator.name if row.generator is not None else ""
            counts.setdefault(name, Counter())[row.language or "und"] += 1
    return [
        ModelCost(name, 0, 0, 0, 0, 0, None, dict(sorted(languages.items()))) for name, languages in counts.items()
    ], unreadable


def _enough(models: list[ModelCost], calls: int | None, tokens: int | None) -> bool | None:
    if calls is not None and sum(model.calls for model in models) > calls:
        return False
    if tokens is None:
        return True
    if sum(model.tokens_in for model in models) > tokens:
        return False
    if any(model.tokens_out is None for model in models):
        return None
    return sum(model.tokens_in + (model.tokens_out or 0) for model in models) <= tokens
