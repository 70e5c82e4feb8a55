"""A card as a page: the front matter of a dataset card, and the sections of a datasheet.

Sections are those of Gebru et al. (Datasheets for Datasets, 2021), with what the Hugging Face dataset card asks for
under them. Every figure is from the run; what nothing says is said to be unknown.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from veriglot.build.cards.front import front_matter
from veriglot.build.cards.markdown import bullets, code, inline, share, table
from veriglot.build.cards.story import made_lines
from veriglot.build.checking import checks
from veriglot.records.languages import languages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.build.cards.card import Card

__all__ = ["card_page"]

UNKNOWN = "Unknown."


def card_page(card: Card) -> str:
    """The whole card as Markdown; the same data and traces give the same bytes."""
    about = card.given.about
    lines = [front_matter(card), "", f"# {inline(about.title or _name(card))}", ""]
    lines += [*_summary(card), *_motivation(card), *_composition(card)]
    lines += ["## Collection process", "", *made_lines(card)]
    lines += [*_labels(card), *_checks(card), *_uses(card), *_distribution(card), *_maintenance(card)]
    return "\n".join([*lines, ""])


def _name(card: Card) -> str:
    return card.names[0] if len(card.names) == 1 else f"{len(card.names)} files"


def _summary(card: Card) -> Iterator[str]:
    if card.given.about.summary:
        yield from (inline(card.given.about.summary), "")
    tags = {tag for tag, _ in card.contents.cells if tag}
    kinds = {"human": "people", "model": "models or rules"}
    who = " and ".join(sorted({kinds[one.kind] for one in card.checks.labels}))
    labelled = sum(one.labelled for one in card.checks.files)
    yield (
        f"{card.contents.rows:,} rows in {len(tags):,} language{'' if len(tags) == 1 else 's'}; {labelled:,} of them"
        f" labelled{f' by {who}' if who else ''}. Figures on this card were counted in the files by Veriglot"
        f" {card.version}; what people said stands in their own words."
    )
    yield ""


def _motivation(card: Card) -> Iterator[str]:
    about = card.given.about
    yield from ("## Motivation", "")
    yield from bullets(
        {
            "Purpose": about.purpose, "Creators": ", ".join(about.creators), "Funding": about.funding,
        },
        UNKNOWN,
    )  # fmt: skip


def _composition(card: Card) -> Iterator[str]:
    contents = card.contents
    yield from ("## Composition", "", "### Files", "")
    rows = [
        (name, code(digest), f"{size:,}", f"{one.samples:,}", f"{one.unreadable:,}", one.format, one.split or "-")
        for name, digest, size, one in zip(card.names, card.hashes, card.sizes, card.files, strict=True)
    ]
    yield from table(("file", "SHA-256", "bytes", "rows", "unreadable", "format", "split"), rows)
    yield from ("### Rows by language and split", "")
    splits = sorted({split for _, split in contents.cells})
    by_language = {tag: [contents.cells.get((tag, split), 0) for split in splits] for tag, _ in contents.cells}
    counts = [(_language(tag), *(f"{n:,}" for n in found), f"{sum(found):,}") for tag, found in by_language.items()]
    yield from table(("language", *(split or "no split stated" for split in splits), "all"), counts)
    yield from bullets(
        {
            "Tasks": ", ".join(f"{task} {count:,}" for task, count in contents.tasks.items()),
            "Rows with evidence": share(contents.with_evidence, contents.rows),
            "Passages that say where they stand": share(contents.urls, contents.passages),
            "Personal or offensive content": card.given.people.sensitive,
            "Consent of those whose texts these are": card.given.people.consent,
        },
        UNKNOWN,
    )


def _labels(card: Card) -> Iterator[str]:
    yield from ("## Labels", "")
    sums: dict[tuple[str, str, str, str], Counter[str]] = {}
    types: dict[tuple[str, str, str, str], Counter[str]] = {}
    for one in card.checks.labels:
        key = (one.annotator, one.kind, one.taxonomy, one.language)
        sums.setdefault(key, Counter()).update(
            responses=one.responses, clean=one.clean, words=one.words, marked=one.marked_words
        )
        types.setdefault(key, Counter()).update(one.types)
    names = sorted({name for found in types.values() for name in found})
    rows = [
        (
            inline(key[0]), "people" if key[1] == "human" else "model or rule", inline(key[2]), _language(key[3]),
            f"{found['responses']:,}", share(found["clean"], found["responses"]),
            share(found["marked"], found["words"]), *(f"{types[key][name]:,}" for name in names),
        )
        for key, found in sums.items()
    ]  # fmt: skip
    heads = ("annotator", "kind", "taxonomy", "language", "responses", "clean", "words marked")
    if rows:
        yield from table((*heads, *(name or "no type" for name in names)), rows)
    else:
        yield from ("No row has labels of spans.", "")
    yield from bullets({"Who annotated, how chosen, trained and paid": card.given.people.annotators}, UNKNOWN)
    if card.checks.agreement:
        yield from ("Several annotations of one text agree, in code points, so far:", "")
        agreed = [
            (
                _language(one.language), "people" if one.kind == "human" else "models", f"{one.texts:,}",
                share(one.same, one.pairs), _number(one.overlap), _number(one.alpha),
            )
            for one in card.checks.agreement
        ]  # fmt: skip
        yield from table(("language", "by", "texts", "pairs the same", "Dice", "Krippendorff's alpha"), agreed)


def _checks(card: Card) -> Iterator[str]:
    report = card.checks
    yield from ("## Checks", "")
    found = [
        (
            checks()[one.check].title, one.level, f"{one.count:,}", f"{one.of:,} {one.unit}s",
            share(one.count, one.of).partition(" ")[0], one.how,
        )
        for one in report.findings
    ]  # fmt: skip
    if found:
        yield from table(("finding of `veriglot build check`", "level", "count", "of", "share", "told by"), found)
    passed = ", ".join(checks()[name].title.lower() for name in report.passed)
    reasons: dict[str, list[str]] = {}
    for name, why in report.not_looked_for.items():
        reasons.setdefault(why, []).append(checks()[name].title.lower())
    skipped = "; ".join(f"{', '.join(titles)} ({why})" for why, titles in reasons.items())
    yield from bullets({"Looked for and not found": passed, "Not looked for": skipped}, "None.")
    yield from (f"Signature: {code(report.signature)}", "")


def _uses(card: Card) -> Iterator[str]:
    uses = card.given.uses
    yield from ("## Uses", "")
    yield from bullets(
        {"Intended": uses.intended, "Not suitable": uses.unsuitable, "Limits, as its makers say": uses.limits}, UNKNOWN
    )
    limits = list(_limits(card))
    if limits:
        yield from ("Limits that the figures above show:", "", *(f"- {one}" for one in limits), "")


def _limits(card: Card) -> Iterator[str]:
    kinds = {one.kind for one in card.checks.labels}
    names = {one.check for one in card.checks.findings}
    if kinds == {"model"}:
        yield "Labels are by models or rules (silver), not by people: figures on them are no figures on real errors."
    if "no_clean_rows" in names:
        yield "Labels with hardly a clean response: false alarms cannot be measured on them."
    if "dense_marks" in names:
        yield "More is marked than in most answers of models: figures at one prevalence do not carry over to another."
    if "glued_span" in names and any(
        one.check == "glued_span" and one.level == "error" for one in card.checks.findings
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
    yield from bullets(
        {
            "Licence": terms, "Licences of the sources": licence.sources, "Homepage": about.homepage,
            "Citation": about.citation,
        },
        UNKNOWN,
    )  # fmt: skip


def _maintenance(card: Card) -> Iterator[str]:
    given = card.given
    yield from ("## Maintenance", "")
    yield from bullets(
        {
            "Contact": given.about.contact, "Version": given.about.version, "Updated": given.maintenance.updated,
            "Plan": given.maintenance.plan,
        },
        UNKNOWN,
    )  # fmt: skip


def _language(tag: str) -> str:
    known = languages().get(tag)
    return f"{known.name} ({tag})" if known is not None else inline(tag) or "not stated"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
