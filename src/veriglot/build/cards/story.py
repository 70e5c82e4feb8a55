"""How the data was made: models, steps with their sources and prompts, what they yielded and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.cards.markdown import bullets, code, inline, share, table
from veriglot.build.cards.yields import counts_of, money_of, spent, yields_of
from veriglot.provenance import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build.cards.card import Card
    from veriglot.build.cards.tracing import Step

__all__ = ["made_lines"]


def made_lines(card: Card) -> Iterator[str]:
    """The section, without its heading."""
    yield from _steps(card)
    yield from _models(card)
    yield from _yields(card)
    yield from _cost(card)


def _steps(card: Card) -> Iterator[str]:
    yield from ("### Steps", "")
    if not card.steps:
        yield from (
            "Unknown: no manifest of a run lies beside the files, so nothing here says how they were made.", ""
        )  # fmt: skip
        return
    yield "What lies beside the files says this of their making. A signature names the model or the rules and the"
    yield "versions of prompts; its digest stands for it and all settings."
    yield ""
    for step in card.steps:
        yield from _step(step)


def _step(step: Step) -> Iterator[str]:
    yield from (f"#### {inline(step.output)}", "")
    settings = msgspec.json.encode(step.settings, order="deterministic").decode()
    told = [("made by", code(step.signature) if step.signature else "unknown")]
    if step.signature:
        told.append(("digest", code(digest([step.signature, settings])[:16])))
    if step.settings:
        told.append(("settings", "; ".join(f"{inline(key)} {code(_shown(one))}" for key, one in step.settings.items())))
    if step.rows is not None:
        ended = "" if step.finished else "; the run did not come to its end"
        told.append(("rows", f"{step.rows:,} taken up, {step.failed or 0:,} failed{ended}"))
    if step.seconds is not None:
        told.append(("seconds", f"{step.seconds:,.1f}"))
    if step.rejected_rows is not None:
        told.append(("set aside", f"{step.rejected_rows:,}{_listed(step.rejected)}"))
    if step.tries:
        told.append(("replies or tries not taken", f"{sum(step.tries.values()):,}{_listed(step.tries)}"))
    if step.damaged:
        told.append(("could not be read", ", ".join(map(inline, step.damaged))))
    yield from (f"- {name}: {text}" for name, text in told)
    yield ""
    if step.sources:
        rows = [(inline(one.name), code(one.sha256), one.state) for one in step.sources]
        yield from table(("made from", "SHA-256 then", "now"), rows)


def _listed(reasons: dict[str, int]) -> str:
    listed = ", ".join(f"{inline(reason)} {count:,}" for reason, count in reasons.items())
    return f": {listed}" if listed else ""


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _models(card: Card) -> Iterator[str]:
    contents = card.contents
    yield from ("### Models that gave the responses", "")
    rows = [
        (
            inline(one.name), inline(one.revision or "") or "unknown", f"{one.rows:,}", f"{one.seeds:,}",
            code(msgspec.json.encode(one.settings, order="deterministic").decode()),
            code(digest([one.name, one.revision or "", msgspec.json.encode(one.settings, order="deterministic")])[:16]),
        )
        for one in contents.generated
    ]  # fmt: skip
    if rows:
        yield from table(("model", "revision", "responses", "seeds", "settings", "digest"), rows)
    if contents.unnamed:
        yield from (f"{contents.unnamed:,} responses do not say which model, rule or person gave them.", "")
    elif not rows:
        yield from ("There are no responses.", "")


def _yields(card: Card) -> Iterator[str]:
    yield from ("### Yield and rejections", "")
    told = False
    for step in card.steps:
        found = yields_of(step)
        if found:
            told = True
            rows = [
                (
                    inline(one.name), f"{one.asked:,}", f"{one.taken:,}",
                    share(one.taken, one.asked).partition(" (")[0],
                    ", ".join(f"{inline(reason)} {count:,}" for reason, count in one.reasons.items()) or "-",
                )
                for one in found
            ]  # fmt: skip
            yield from (f"{inline(step.output)}:", "")
            yield from table(("what", "asked for", "taken", "yield", "rejections by reason"), rows)
        for name, account in step.accounts.items():
            counts = {} if found else counts_of(account)
            if counts:
                told = True
                yield from (f"{inline(step.output)}, by {code(name)}:", "")
                yield from table(("count", "value"), [(inline(path), f"{n:,}") for path, n in counts.items()])
    if not told:
        rejected = any(step.rejected_rows is not None for step in card.steps)
        yield from ("As the steps say." if rejected else "Unknown: no account lies beside the files.", "")


def _cost(card: Card) -> Iterator[str]:
    prices = card.given.cost
    currency = f" {inline(prices.currency)}" if prices.currency else ""
    rows = []
    for step in card.steps:
        one = spent(step, prices)
        if one is not None:
            stated = currency if one.stated else ", in the currency of the run's prices"
            money = "unknown" if one.money is None else f"{one.money:,.2f}{stated if one.money else currency}"
            calls = "none of a service: the model runs here" if one.here else _count(one.calls)
            rows.append((inline(one.step), calls, _count(one.tokens_in), _count(one.tokens_out), money))
    for model in card.contents.generated:
        if model.counted:
            cost = money_of(model.tokens_in, model.tokens_out, prices)
            money = "unknown" if cost is None else f"{cost:,.2f}{currency}"
            name = f"responses of {inline(model.name)} ({model.counted:,} of {model.rows - model.again:,} counted)"
            rows.append((name, f"{model.counted:,}", f"{model.tokens_in:,}", f"{model.tokens_out:,}", money))
    yield from ("### Cost", "")
    if rows:
        yield from table(("step", "calls", "tokens of prompts", "tokens of replies", "money"), rows)
    said = {"Seconds": _seconds(card)} if rows else {"Tokens and money": "", "Seconds": _seconds(card)}
    yield from bullets(said, "Unknown.")


def _count(known: int | None) -> str:
    return "unknown" if known is None else f"{known:,}"


def _seconds(card: Card) -> str:
    """What people say, or else the sum of what the steps say; empty where neither says anything."""
    if card.given.cost.seconds:
        return f"{card.given.cost.seconds:,.0f}"
    known = [step.seconds for step in card.steps if step.seconds is not None]
    if not known:
        return ""
    rest = len(card.steps) - len(known)
    return f"{sum(known):,.1f}" if not rest else f"at least {sum(known):,.1f}; {rest:,} of the steps do not say"
