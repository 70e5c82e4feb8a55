"""What runs yielded and what they cost, read out of the accounts that steps of `veriglot build` leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build.cards.given import Cost
    from veriglot.build.cards.tracing import Step

__all__ = ["Counted", "Spent", "counts_of", "money_of", "spent", "yields_of"]

_LINES = 40  # of an account of another shape
_NO_COUNTS = frozenset({"languages", "cells", "files", "types", "passages", "version", "made_by"})  # or of parts alone


class Counted(NamedTuple):
    """What came of one type of marks, or of the passages, in all languages of a step.

    Attributes:
        name: the type.
        asked: how many were to be made.
        taken: how many were.
        reasons: why others were not, where the account says.
    """

    name: str
    asked: int
    taken: int
    reasons: dict[str, int]


class Spent(NamedTuple):
    """What a step cost. None where its account does not say.

    Attributes:
        step: its output.
        calls, tokens_in, tokens_out: of models; tokens are estimated where a server did not count.
        money: at the prices that people state now, or else at those that the run was given.
        stated: whether it is at the prices stated now, whose currency is known; a run is told no currency.
        here: whether its model ran in the process itself, so that no service was called; nobody counted its tokens.
    """

    step: str
    calls: int | None
    tokens_in: int | None
    tokens_out: int | None
    money: float | None
    stated: bool = True
    here: bool = False


def yields_of(step: Step) -> tuple[Counted, ...]:
    """Yield by type, of silver data (`asked`, `taken`, `reasons`) and of translations (`asked`, `dropped`)."""
    found = []
    for account in step.accounts.values():
        total = account.get("total")
        if not isinstance(total, dict):
            continue
        types = total.get("types")
        parts = [("passages", total.get("passages"))]
        parts += list(types.items()) if isinstance(types, dict) else []
        for name, one in parts:
            if not isinstance(one, dict) or not isinstance(one.get("asked"), int) or not one["asked"]:
                continue
            taken = one.get("taken", one["asked"] - one.get("dropped", 0))
            found.append(Counted(name, one["asked"], taken, dict(one.get("reasons") or {})))
        if found:
            break  # another account beside the same file says the same of it
    return tuple(found)


def counts_of(account: dict[str, Any]) -> dict[str, int | float]:
    """Numbers of any account by their path in it, such as `sample.union`; not those of single languages and cells,
    and no settings."""
    found: dict[str, int | float] = {}
    for path, value in _numbers(account, ""):
        if len(found) < _LINES:
            found[path] = value
    return found


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in _NO_COUNTS:
                yield from _numbers(one, f"{path}.{key}" if path else str(key))


def spent(step: Step, prices: Cost) -> Spent | None:
    """What a step cost, by its account; None where no account says a token.

    Of several the one that says most: the summary of a set counts the steps before its last too.
    """
    found: list[Spent] = []
    for account in step.accounts.values():
        total = account.get("total")
        if not isinstance(total, dict) or "tokens_in" not in total:
            continue
        calls, tokens_in, tokens_out = total.get("calls"), int(total["tokens_in"]), int(total.get("tokens_out", 0))
        if tokens_in + tokens_out == 0 and (calls or not _counts(step)):
            found.append(Spent(step.output, calls or None, None, None, account.get("money"), False, _is_here(step)))
            continue
        money = 0.0 if tokens_in + tokens_out == 0 else money_of(tokens_in, tokens_out, prices)
        stated = money is not None
        money = money if stated else account.get("money")
        found.append(Spent(step.output, calls, tokens_in, tokens_out, money, stated))
    return max(found, key=lambda one: (one.tokens_in or 0) + (one.tokens_out or 0), default=None)


def _counts(step: Step) -> bool:
    """Whether a count of 0 is one: clients and rules count, a translator of another kind may just have told nothing."""
    if step.signature is None:
        return False
    translates = str(step.settings.get("method", "")).startswith("translating@")
    return not translates or _translator(step) == "llm"


def _is_here(step: Step) -> bool:
    return _translator(step) in {"hf", "ct2"}


def _translator(step: Step) -> str:
    """The kind of translator that a signature names; empty where it names none."""
    kind, _, name = (step.signature or "").partition("|")[0].partition(":")
    return name if kind == "translator" else ""


def money_of(tokens_in: int, tokens_out: int, prices: Cost) -> float | None:
    """What tokens cost at the prices given; None without prices."""
    if not prices.prompts and not prices.replies:
        return None
    return (tokens_in * prices.prompts + tokens_out * prices.replies) / 1e6
