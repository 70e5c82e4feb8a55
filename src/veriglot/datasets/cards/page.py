"""A data card as a page of Markdown: front matter for the Hugging Face Hub, and the sections of a datasheet.

Sections are those of Gebru et al. (Datasheets for Datasets, 2021), with what the Hugging Face dataset card asks for
under them. Every figure is from the run; what nothing says is said to be unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from veriglot.datasets.checks.findings import checks
from veriglot.records.languages import languages
from veriglot.signatures import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from veriglot.datasets.cards.card import Card, Cost, Step

__all__ = ["card_page"]


# The front matter of a card: what the Hugging Face Hub reads of it. Values are written as JSON, which YAML holds.


_SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"),
)  # fmt: skip
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_NATIVE = {"jsonl", "parquet", "native"}


def _front_matter(card: Card) -> str:
    """The block, with its lines of dashes. What is not known is left out, but for the licence: `unknown`."""
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in _fields(card).items() if value]
    return "\n".join(["---", *lines, "---"])


def _fields(card: Card) -> dict[str, Any]:
    languages = sorted({tag.partition("-")[0] for tag, _ in card.contents.cells if tag})
    rows = card.contents.rows
    kinds = {labels.kind for labels in card.checks.labels}
    spans = any(labels.types for labels in card.checks.labels)
    return {
        "pretty_name": card.given.about.title,
        "language": languages,
        "multilinguality": [] if not languages else ["multilingual" if len(languages) > 1 else "monolingual"],
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
    by_split: dict[str, list[str]] = {}
    for file, name in zip(files, card.names, strict=True):
        by_split.setdefault(_SPLITS[file.split or ""], []).append(PurePath(name).as_posix())
    return [{"config_name": "default", "data_files": [{"split": k, "path": v} for k, v in by_split.items()]}]


# Words of a card as Markdown in which nothing that a file or a person wrote becomes a mark.


_BAR = re.compile(r"(?<!\\)\|")
_ESCAPED = r"\\|"
_MARKS = re.compile(r"([\\`*_\[\]<>|#])")


def _inline(text: str) -> str:
    """A text on one line, with its marks escaped."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """A text as code."""
    return f"`{' '.join(text.replace('`', chr(39)).split())}`" if text else "-"


def _bullets(answers: Mapping[str, str], otherwise: str) -> Iterator[str]:
    """A line for each, with `otherwise` where nothing is said."""
    for name, text in answers.items():
        yield f"- **{name}:** {_inline(text) or otherwise}"
    yield ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table; cells are escaped by whoever writes them, but for the bars of what is code."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(_BAR.sub(_ESCAPED, cell) for cell in row)} |"
    yield ""


def _share(part: int, whole: int) -> str:
    """A share in percent, with what it is of."""
    if not whole:
        return "-"
    percent = "under 0.1%" if 0 < part / whole < 0.0005 else f"{100 * part / whole:.1f}%"
    return f"{percent} ({part:,} of {whole:,})"


# What runs yielded and what they cost, read out of the accounts that steps of `veriglot dataset` leave.


_LINES = 40  # of an account of another shape
_NO_COUNTS = frozenset({"languages", "cells", "files", "types", "passages", "version", "made_by"})  # or of parts alone


class _Counted(NamedTuple):
    """What came of one type of marks, or of the passages, in all languages of a step."""

    name: str
    asked: int
    taken: int
    reasons: dict[str, int]


class _StepCost(NamedTuple):
    """What a step cost. None where its account does not say."""

    step: str
    calls: int | None
    tokens_in: int | None
    tokens_out: int | None
    money: float | None
    stated: bool = True
    here: bool = False


def _yields_of(step: Step) -> tuple[_Counted, ...]:
    """Yield by type, of silver data (`asked`, `taken`, `reasons`) and of translations (`asked`, `dropped`)."""
    yields = []
    for account in step.accounts.values():
        total = account.get("total")
        if not isinstance(total, dict):
            continue
        types = total.get("types")
        parts = [("passages", total.get("passages"))]
        parts += list(types.items()) if isinstance(types, dict) else []
        for name, counts in parts:
            if not isinstance(counts, dict) or not isinstance(counts.get("asked"), int) or not counts["asked"]:
                continue
            taken = counts.get("taken", counts["asked"] - counts.get("dropped", 0))
            yields.append(_Counted(name, counts["asked"], taken, dict(counts.get("reasons") or {})))
        if yields:
            break  # another account beside the same file says the same of it
    return tuple(yields)


def _counts_of(account: dict[str, Any]) -> dict[str, int | float]:
    """Numbers of any account by their path in it, such as `sample.union`; not those of single languages and cells,
    and no settings."""
    counts: dict[str, int | float] = {}
    for path, value in _numbers(account, ""):
        if len(counts) < _LINES:
            counts[path] = value
    return counts


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _NO_COUNTS:
                yield from _numbers(item, f"{path}.{key}" if path else str(key))


def _spent(step: Step, prices: Cost) -> _StepCost | None:
    """What a step cost, by its account; None where no account says a token."""
    costs: list[_StepCost] = []
    for account in step.accounts.values():
        total = account.get("total")
        if not isinstance(total, dict) or "tokens_in" not in total:
            continue
        calls, tokens_in, tokens_out = total.get("calls"), int(total["tokens_in"]), int(total.get("tokens_out", 0))
        if tokens_in + tokens_out == 0 and (calls or not _counts(step)):
            costs.append(_StepCost(step.output, calls or None, None, None, account.get("money"), False, _is_here(step)))
            continue
        money = 0.0 if tokens_in + tokens_out == 0 else _money_of(tokens_in, tokens_out, prices)
        stated = money is not None
        money = money if stated else account.get("money")
        costs.append(_StepCost(step.output, calls, tokens_in, tokens_out, money, stated))
    return max(costs, key=lambda cost: (cost.tokens_in or 0) + (cost.tokens_out or 0), default=None)


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


def _money_of(tokens_in: int, tokens_out: int, prices: Cost) -> float | None:
    """What tokens cost at the prices given; None without prices."""
    if not prices.prompts and not prices.replies:
        return None
    return (tokens_in * prices.prompts + tokens_out * prices.replies) / 1e6


def _made_lines(card: Card) -> Iterator[str]:
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
    yield from (f"#### {_inline(step.output)}", "")
    settings = msgspec.json.encode(step.settings, order="deterministic").decode()
    told = [("made by", _code(step.signature) if step.signature else "unknown")]
    if step.signature:
        told.append(("digest", _code(digest([step.signature, settings])[:16])))
    if step.settings:
        told.append(
            ("settings", "; ".join(f"{_inline(key)} {_code(_shown(value))}" for key, value in step.settings.items()))
        )
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
        told.append(("could not be read", ", ".join(map(_inline, step.damaged))))
    yield from (f"- {name}: {text}" for name, text in told)
    yield ""
    if step.sources:
        rows = [(_inline(source.name), _code(source.sha256), source.state) for source in step.sources]
        yield from _table(("made from", "SHA-256 then", "now"), rows)


def _listed(reasons: dict[str, int]) -> str:
    listed = ", ".join(f"{_inline(reason)} {count:,}" for reason, count in reasons.items())
    return f": {listed}" if listed else ""


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _models(card: Card) -> Iterator[str]:
    contents = card.contents
    yield from ("### Models that gave the responses", "")
    rows = []
    for model in contents.generated:
        settings = msgspec.json.encode(model.settings, order="deterministic").decode()
        rows.append(
            (
                _inline(model.name),
                _inline(model.revision or "") or "unknown",
                f"{model.rows:,}",
                f"{model.seeds:,}",
                _code(settings),
                _code(digest([model.name, model.revision or "", settings])[:16]),
            )
        )
    if rows:
        yield from _table(("model", "revision", "responses", "seeds", "settings", "digest"), rows)
    if contents.unnamed:
        yield from (f"{contents.unnamed:,} responses do not say which model, rule or person gave them.", "")
    elif not rows:
        yield from ("There are no responses.", "")


def _yields(card: Card) -> Iterator[str]:
    yield from ("### Yield and rejections", "")
    told = False
    for step in card.steps:
        yields = _yields_of(step)
        if yields:
            told = True
            rows = [
                (
                    _inline(counted.name), f"{counted.asked:,}", f"{counted.taken:,}",
                    _share(counted.taken, counted.asked).partition(" (")[0],
                    ", ".join(f"{_inline(reason)} {count:,}" for reason, count in counted.reasons.items()) or "-",
                )
                for counted in yields
            ]  # fmt: skip
            yield from (f"{_inline(step.output)}:", "")
            yield from _table(("what", "asked for", "taken", "yield", "rejections by reason"), rows)
        for name, account in step.accounts.items():
            counts = {} if yields else _counts_of(account)
            if counts:
                told = True
                yield from (f"{_inline(step.output)}, by {_code(name)}:", "")
                yield from _table(("count", "value"), [(_inline(path), f"{n:,}") for path, n in counts.items()])
    if not told:
        rejected = any(step.rejected_rows is not None for step in card.steps)
        yield from ("As the steps say." if rejected else "Unknown: no account lies beside the files.", "")


def _cost(card: Card) -> Iterator[str]:
    prices = card.given.cost
    currency = f" {_inline(prices.currency)}" if prices.currency else ""
    rows = []
    for step in card.steps:
        step_cost = _spent(step, prices)
        if step_cost is not None:
            stated = currency if step_cost.stated else ", in the currency of the run's prices"
            money = (
                "unknown"
                if step_cost.money is None
                else f"{step_cost.money:,.2f}{stated if step_cost.money else currency}"
            )
            calls = "none of a service: the model runs here" if step_cost.here else _count(step_cost.calls)
            rows.append(
                (_inline(step_cost.step), calls, _count(step_cost.tokens_in), _count(step_cost.tokens_out), money)
            )
    for model in card.contents.generated:
        if model.counted:
            cost = _money_of(model.tokens_in, model.tokens_out, prices)
            money = "unknown" if cost is None else f"{cost:,.2f}{currency}"
            name = f"responses of {_inline(model.name)} ({model.counted:,} of {model.rows - model.again:,} counted)"
            rows.append((name, f"{model.counted:,}", f"{model.tokens_in:,}", f"{model.tokens_out:,}", money))
    yield from ("### Cost", "")
    if rows:
        yield from _table(("step", "calls", "tokens of prompts", "tokens of replies", "money"), rows)
    answers = {"Seconds": _seconds(card)} if rows else {"Tokens and money": "", "Seconds": _seconds(card)}
    yield from _bullets(answers, "Unknown.")


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


_UNKNOWN = "Unknown."


def card_page(card: Card) -> str:
    """The whole card as Markdown; the same data and traces give the same bytes."""
    about = card.given.about
    lines = [_front_matter(card), "", f"# {_inline(about.title or _name(card))}", ""]
    lines += [*_summary(card), *_motivation(card), *_composition(card)]
    lines += ["## Collection process", "", *_made_lines(card)]
    lines += [*_labels(card), *_checks(card), *_uses(card), *_distribution(card), *_maintenance(card)]
    return "\n".join([*lines, ""])


def _name(card: Card) -> str:
    return card.names[0] if len(card.names) == 1 else f"{len(card.names)} files"


def _summary(card: Card) -> Iterator[str]:
    if card.given.about.summary:
        yield from (_inline(card.given.about.summary), "")
    tags = {tag for tag, _ in card.contents.cells if tag}
    kinds = {"human": "people", "model": "models or rules"}
    who = " and ".join(sorted({kinds[entry.kind] for entry in card.checks.labels}))
    labelled = sum(file.labelled for file in card.checks.files)
    yield (
        f"{card.contents.rows:,} rows in {len(tags):,} language{'' if len(tags) == 1 else 's'}; {labelled:,} of them"
        f" labelled{f' by {who}' if who else ''}. Figures on this card were counted in the files by Veriglot"
        f" {card.version}; what people said stands in their own words."
    )
    yield ""


def _motivation(card: Card) -> Iterator[str]:
    about = card.given.about
    yield from ("## Motivation", "")
    yield from _bullets(
        {
            "Purpose": about.purpose, "Creators": ", ".join(about.creators), "Funding": about.funding,
        },
        _UNKNOWN,
    )  # fmt: skip


def _composition(card: Card) -> Iterator[str]:
    contents = card.contents
    yield from ("## Composition", "", "### Files", "")
    rows = [
        (name, _code(digest), f"{size:,}", f"{file.samples:,}", f"{file.unreadable:,}", file.format, file.split or "-")
        for name, digest, size, file in zip(card.names, card.hashes, card.sizes, card.files, strict=True)
    ]
    yield from _table(("file", "SHA-256", "bytes", "rows", "unreadable", "format", "split"), rows)
    yield from ("### Rows by language and split", "")
    splits = sorted({split for _, split in contents.cells})
    by_language = {tag: [contents.cells.get((tag, split), 0) for split in splits] for tag, _ in contents.cells}
    counts = [
        (_language(tag), *(f"{n:,}" for n in numbers), f"{sum(numbers):,}") for tag, numbers in by_language.items()
    ]
    yield from _table(("language", *(split or "no split stated" for split in splits), "all"), counts)
    yield from _bullets(
        {
            "Tasks": ", ".join(f"{task} {count:,}" for task, count in contents.tasks.items()),
            "Rows with evidence": _share(contents.with_evidence, contents.rows),
            "Passages that say where they stand": _share(contents.urls, contents.passages),
            "Personal or offensive content": card.given.people.sensitive,
            "Consent of those whose texts these are": card.given.people.consent,
        },
        _UNKNOWN,
    )


def _labels(card: Card) -> Iterator[str]:
    yield from ("## Labels", "")
    sums: dict[tuple[str, str, str, str], Counter[str]] = {}
    types: dict[tuple[str, str, str, str], Counter[str]] = {}
    for entry in card.checks.labels:
        key = (entry.annotator, entry.kind, entry.taxonomy, entry.language)
        sums.setdefault(key, Counter()).update(
            responses=entry.responses, clean=entry.clean, words=entry.words, marked=entry.marked_words
        )
        types.setdefault(key, Counter()).update(entry.types)
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
    if rows:
        yield from _table((*heads, *(name or "no type" for name in names)), rows)
    else:
        yield from ("No row has labels of spans.", "")
    yield from _bullets({"Who annotated, how chosen, trained and paid": card.given.people.annotators}, _UNKNOWN)
    if card.checks.agreement:
        yield from ("Several annotations of one text agree, in code points, so far:", "")
        agreed = [
            (
                _language(entry.language), "people" if entry.kind == "human" else "models", f"{entry.texts:,}",
                _share(entry.same, entry.pairs), _number(entry.overlap), _number(entry.alpha),
            )
            for entry in card.checks.agreement
        ]  # fmt: skip
        yield from _table(("language", "by", "texts", "pairs the same", "Dice", "Krippendorff's alpha"), agreed)


def _checks(card: Card) -> Iterator[str]:
    report = card.checks
    yield from ("## Checks", "")
    rows = [
        (
            checks()[finding.check].title, finding.level, f"{finding.count:,}", f"{finding.of:,} {finding.unit}s",
            _share(finding.count, finding.of).partition(" ")[0], finding.how,
        )
        for finding in report.findings
    ]  # fmt: skip
    if rows:
        yield from _table(("finding of `veriglot dataset check`", "level", "count", "of", "share", "told by"), rows)
    passed = ", ".join(checks()[name].title.lower() for name in report.passed)
    reasons: dict[str, list[str]] = {}
    for name, why in report.not_looked_for.items():
        reasons.setdefault(why, []).append(checks()[name].title.lower())
    skipped = "; ".join(f"{', '.join(titles)} ({why})" for why, titles in reasons.items())
    yield from _bullets({"Looked for and not found": passed, "Not looked for": skipped}, "None.")
    yield from (f"Signature: {_code(report.signature)}", "")


def _uses(card: Card) -> Iterator[str]:
    uses = card.given.uses
    yield from ("## Uses", "")
    yield from _bullets(
        {"Intended": uses.intended, "Not suitable": uses.unsuitable, "Limits, as its makers say": uses.limits}, _UNKNOWN
    )
    limits = list(_limits(card))
    if limits:
        yield from ("Limits that the figures above show:", "", *(f"- {limit}" for limit in limits), "")


def _limits(card: Card) -> Iterator[str]:
    kinds = {labels.kind for labels in card.checks.labels}
    names = {finding.check for finding in card.checks.findings}
    if kinds == {"model"}:
        yield "Labels are by models or rules (silver), not by people: figures on them are no figures on real errors."
    if "no_clean_rows" in names:
        yield "Labels with hardly a clean response: false alarms cannot be measured on them."
    if "dense_marks" in names:
        yield "More is marked than in most answers of models: figures at one prevalence do not carry over to another."
    if "glued_span" in names and any(
        finding.check == "glued_span" and finding.level == "error" for finding in card.checks.findings
    ):
        yield "Old and new words stand glued together: a detector can learn the seam."
    if names & {name for name in checks() if name.startswith("leaked_") and checks()[name].level == "error"}:
        yield "Splits share texts or references: figures on one split after training on another are too good."
    if "repeated_text" in names:
        yield "Texts occur more than once: split by text, never by row."
    if card.contents.with_evidence < card.contents.rows:
        yield "Some rows have no evidence to hold the response against."


def _distribution(card: Card) -> Iterator[str]:
    licence = card.given.licence
    terms = " ".join(filter(None, (licence.id, licence.terms)))
    yield from ("## Distribution", "")
    about = card.given.about
    yield from _bullets(
        {
            "Licence": terms, "Licences of the sources": licence.sources, "Homepage": about.homepage,
            "Citation": about.citation,
        },
        _UNKNOWN,
    )  # fmt: skip


def _maintenance(card: Card) -> Iterator[str]:
    given = card.given
    yield from ("## Maintenance", "")
    yield from _bullets(
        {
            "Contact": given.about.contact, "Version": given.about.version, "Updated": given.maintenance.updated,
            "Plan": given.maintenance.plan,
        },
        _UNKNOWN,
    )  # fmt: skip


def _language(tag: str) -> str:
    known = languages().get(tag)
    return f"{known.name} ({tag})" if known is not None else _inline(tag) or "not stated"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
