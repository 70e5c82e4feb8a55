"""A data card as a page of Markdown: front matter for the Hugging Face Hub, and the sections of a datasheet.

Sections are those of Gebru et al. (Datasheets for Datasets, 2021), with what the Hugging Face dataset card asks for
under them; their words stand in `page.md.jinja`. Every figure is from the run; what nothing says is unknown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from veriglot.datasets.checks.findings import checks
from veriglot.records.languages import languages
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from veriglot.datasets.cards.card import Card, Cost, Step

__all__ = ["card_page"]

_BAR = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"([\\`*_\[\]<>|#])")
_SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"),
)  # fmt: skip
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_NATIVE = {"jsonl", "parquet", "native"}
_LINES = 40  # of an account of another shape
_NO_COUNTS = frozenset({"languages", "cells", "files", "types", "passages", "version", "made_by"})  # or of parts alone


def card_page(card: Card) -> str:
    """The whole card as Markdown; the same data and traces give the same bytes."""
    environment = Environment(  # noqa: S701  Markdown, whose marks the filters escape
        loader=PackageLoader(__package__, "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "inline": _inline,
        "code": _code,
        "cell": lambda text: _BAR.sub(r"\\|", text),
        "n": lambda number: f"{number:,}",
        "figure": lambda value: "-" if value is None else f"{value:.2f}",
        "json": _json,
        "sorted_json": _sorted_json,
        "counts": lambda counts: ", ".join(f"{name} {count:,}" for name, count in counts.items()),
        "inline_counts": _inline_counts,
        "language": _language,
        "title_of": lambda name: checks()[name].title,
    }
    about, report = card.given.about, card.checks
    tags = {tag for tag, _ in card.contents.cells if tag}
    splits = sorted({split for _, split in card.contents.cells})
    kinds = {"human": "people", "model": "models or rules"}
    skipped: dict[str, list[str]] = defaultdict(list)
    for name, why in report.not_looked_for.items():
        skipped[why].append(checks()[name].title.lower())
    label_heads, labels = _labels(card)
    return environment.get_template("page.md.jinja").render(
        card=card,
        given=card.given,
        about=about,
        contents=card.contents,
        checks=report,
        front=_front_matter(card),
        name=card.names[0] if len(card.names) == 1 else f"{len(card.names)} files",
        tags=len(tags),
        labelled=sum(file.labelled for file in report.files),
        who=" and ".join(sorted({kinds[entry.kind] for entry in report.labels})),
        files=list(zip(card.names, card.hashes, card.sizes, card.files, strict=True)),
        split_heads=("language", *(split or "no split stated" for split in splits), "all"),
        by_language={
            tag: [card.contents.cells.get((tag, split), 0) for split in splits] for tag, _ in card.contents.cells
        },
        digest=lambda *parts: digest([part if isinstance(part, str) else _sorted_json(part) for part in parts])[:16],
        share=_share,
        yields=list(_yields(card)),
        costs=list(_costs(card)),
        seconds=_seconds(card),
        label_heads=label_heads,
        labels=labels,
        skipped="; ".join(f"{', '.join(titles)} ({why})" for why, titles in skipped.items()),
        limits=list(_limits(card)),
    )


def _inline(text: str) -> str:
    """A text on one line, with its marks escaped."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', chr(39)).split())}`" if text else "-"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _sorted_json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _inline_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_inline(name)} {count:,}" for name, count in counts.items())


def _language(tag: str) -> str:
    known = languages().get(tag)
    return f"{known.name} ({tag})" if known is not None else _inline(tag) or "not stated"


def _share(part: int, whole: int) -> str:
    """A share in percent, with what it is of."""
    if not whole:
        return "-"
    percent = "under 0.1%" if 0 < part / whole < 0.0005 else f"{100 * part / whole:.1f}%"
    return f"{percent} ({part:,} of {whole:,})"


def _front_matter(card: Card) -> dict[str, Any]:
    """What the Hub reads, as JSON, which YAML holds. What is not known is empty, but for the licence: `unknown`."""
    tags = sorted({tag.partition("-")[0] for tag, _ in card.contents.cells if tag})
    rows = card.contents.rows
    kinds = {labels.kind for labels in card.checks.labels}
    spans = any(labels.types for labels in card.checks.labels)
    return {
        "pretty_name": card.given.about.title,
        "language": tags,
        "multilinguality": [] if not tags else ["multilingual" if len(tags) > 1 else "monolingual"],
        "license": card.given.licence.id or "unknown",
        "size_categories": [next((name for bound, name in _SIZES if rows < bound), "n>100M")],
        "task_categories": ["token-classification"] if spans else [],
        "annotations_creators": ["machine-generated"] if kinds == {"model"} else [],
        "tags": ["hallucination-detection"],
        "configs": _configs(card),
    }


def _configs(card: Card) -> list[dict[str, Any]]:
    """Which file is which split, where each is one of the Hub's three and in the native format."""
    files = card.files
    if not files or any(file.split not in _SPLITS or file.format not in _NATIVE for file in files):
        return []
    by_split: dict[str, list[str]] = defaultdict(list)
    for file, name in zip(files, card.names, strict=True):
        by_split[_SPLITS[file.split or ""]].append(PurePath(name).as_posix())
    return [{"config_name": "default", "data_files": [{"split": k, "path": v} for k, v in by_split.items()]}]


def _yields(card: Card) -> Iterator[tuple[str, str, list[tuple[str, ...]]]]:
    """What steps yielded: output, account where it is of another shape than silver data's, and rows of the table."""
    for step in card.steps:
        types = _types(step)
        if types:
            yield step.output, "", types
            continue
        for name, account in step.accounts.items():
            counts = list(_numbers(account, ""))[:_LINES]
            if counts:
                yield step.output, name, [(_inline(path), f"{number:,}") for path, number in counts]


def _types(step: Step) -> list[tuple[str, ...]]:
    """Yield by type, of silver data (`asked`, `taken`, `reasons`) and of translations (`asked`, `dropped`)."""
    for account in step.accounts.values():
        total = account.get("total")
        if not isinstance(total, dict):
            continue
        types = total.get("types")
        parts = {"passages": total.get("passages"), **(types if isinstance(types, dict) else {})}
        rows: list[tuple[str, ...]] = []
        for name, counts in parts.items():
            if not isinstance(counts, dict) or not isinstance(counts.get("asked"), int) or not counts["asked"]:
                continue
            asked = counts["asked"]
            taken = counts.get("taken", asked - counts.get("dropped", 0))
            share = _share(taken, asked).partition(" (")[0]
            rows.append(
                (_inline(name), f"{asked:,}", f"{taken:,}", share, _inline_counts(counts.get("reasons") or {}) or "-")
            )
        if rows:
            return rows  # another account beside the same file says the same of it
    return []


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    """Numbers of any account by their path in it, but for those of single languages and cells, and settings."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _NO_COUNTS:
                yield from _numbers(item, f"{path}.{key}" if path else str(key))


def _costs(card: Card) -> Iterator[tuple[str, ...]]:
    """The rows of the table of costs: steps by the account that says most, and responses by what is counted there."""
    prices = card.given.cost
    currency = f" {_inline(prices.currency)}" if prices.currency else ""
    for step in card.steps:
        totals = [a for a in step.accounts.values() if isinstance(a.get("total"), dict) and "tokens_in" in a["total"]]
        account = max(totals, key=lambda account: _tokens(step, account["total"]) or 0, default=None)
        if account is None:
            continue
        total = account["total"]
        calls = total.get("calls")
        if _tokens(step, total) is None:
            here = _translator(step) in {"hf", "ct2"}
            called = "none of a service: the model runs here" if here else _count(calls or None)
            yield (_inline(step.output), called, "unknown", "unknown", _money(account.get("money"), currency, run=True))
            continue
        tokens_in, tokens_out = int(total["tokens_in"]), int(total.get("tokens_out", 0))
        money = _price(tokens_in, tokens_out, prices) if tokens_in + tokens_out else 0.0
        shown = _money(account.get("money"), currency, run=True) if money is None else _money(money, currency)
        yield _inline(step.output), _count(calls), f"{tokens_in:,}", f"{tokens_out:,}", shown
    for model in card.contents.generated:
        if model.counted:
            name = f"responses of {_inline(model.name)} ({model.counted:,} of {model.rows - model.again:,} counted)"
            money = _price(model.tokens_in, model.tokens_out, prices)
            counts = (model.counted, model.tokens_in, model.tokens_out)
            yield name, *(f"{count:,}" for count in counts), _money(money, currency)


def _tokens(step: Step, total: dict[str, Any]) -> int | None:
    """The tokens of an account; None where it has none because nobody counted them.

    Clients and rules count, so that their 0 is one; a translator of another kind may just have told nothing.
    """
    tokens = int(total["tokens_in"]) + int(total.get("tokens_out", 0))
    if tokens:
        return tokens
    translates = str(step.settings.get("method", "")).startswith("translating@")
    counted = step.signature is not None and (not translates or _translator(step) == "llm")
    return None if total.get("calls") or not counted else 0


def _translator(step: Step) -> str:
    """The kind of translator that a signature names; empty where it names none."""
    kind, _, name = (step.signature or "").partition("|")[0].partition(":")
    return name if kind == "translator" else ""


def _price(tokens_in: int, tokens_out: int, prices: Cost) -> float | None:
    if not prices.prompts and not prices.replies:
        return None
    return (tokens_in * prices.prompts + tokens_out * prices.replies) / 1e6


def _money(money: float | None, currency: str, *, run: bool = False) -> str:
    """Money in the currency that people state; what a run was told by its own prices is in a currency nobody knows."""
    if money is None:
        return "unknown"
    return f"{money:,.2f}" + (", in the currency of the run's prices" if run and money else currency)


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


def _labels(card: Card) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows of the table of labels, by annotator and language over all files."""
    sums: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    types: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for entry in card.checks.labels:
        key = (entry.annotator, entry.kind, entry.taxonomy, entry.language)
        sums[key].update(responses=entry.responses, clean=entry.clean, words=entry.words, marked=entry.marked_words)
        types[key].update(entry.types)
    names = sorted({name for counts in types.values() for name in counts})
    rows = [
        (
            _inline(key[0]), "people" if key[1] == "human" else "model or rule", _inline(key[2]), _language(key[3]),
            f"{counts['responses']:,}", _share(counts["clean"], counts["responses"]),
            _share(counts["marked"], counts["words"]), *(f"{types[key][name]:,}" for name in names),
        )
        for key, counts in sums.items()
    ]  # fmt: skip
    heads = ("annotator", "kind", "taxonomy", "language", "responses", "clean", "words marked")
    return (*heads, *(name or "no type" for name in names)), rows


def _limits(card: Card) -> Iterator[str]:
    levels = {finding.check: finding.level for finding in card.checks.findings}
    if {labels.kind for labels in card.checks.labels} == {"model"}:
        yield "Labels are by models or rules (silver), not by people: figures on them are no figures on real errors."
    if "no_clean_rows" in levels:
        yield "Labels with hardly a clean response: false alarms cannot be measured on them."
    if "dense_marks" in levels:
        yield "More is marked than in most answers of models: figures at one prevalence do not carry over to another."
    if levels.get("glued_span") == "error":
        yield "Old and new words stand glued together: a detector can learn the seam."
    if any(name.startswith("leaked_") and checks()[name].level == "error" for name in levels):
        yield "Splits share texts or references: figures on one split after training on another are too good."
    if "repeated_text" in levels:
        yield "Texts occur more than once: split by text, never by row."
    if card.contents.with_evidence < card.contents.rows:
        yield "Some rows have no evidence to hold the response against."
