"""What `veriglot build translate` does, and how it shows what came of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from veriglot.cli.building import Queries, print_json, say, tell
from veriglot.cli.inputs import count_rows
from veriglot.cli.progress import Bar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from veriglot.build.translating import MarkAccount, TranslationAccount, TranslationSettings, Translator

__all__ = ["Work", "translate_all"]


class Work(NamedTuple):
    """What is to be translated, into what, and how; as the options of the command have it."""

    data: Sequence[str]
    format_name: str | None
    language: str | None
    to: str
    settings: TranslationSettings
    aligner: str
    output: Path
    restart: bool
    retry: bool
    json: bool
    quiet: bool


def translate_all(work: Work, translator: Translator) -> int:
    """Translate, and say what came of it.

    Returns:
        The exit code.
    """
    from veriglot.build.translating import load_aligner, load_translation_account, translate
    from veriglot.records.languages import language

    source = Queries(work.data, format_name=work.format_name, language=work.language)
    targets = [language(part.strip()).tag for part in work.to.split(",") if part.strip()]
    options = {"begun": _begun(work)} if work.aligner == "auto" else {}
    aligner = load_aligner(work.aligner, **options) if "align" in work.settings.strategies else None

    def total() -> int | None:
        found = count_rows(source.inputs)
        return None if found is None else found * len(targets)

    with Bar(shown=not work.quiet, total=total) as bar:
        tally = translate(
            work.output,
            source.rows(),
            targets,
            translator,
            aligner=aligner,
            settings=work.settings,
            inputs=source.paths,
            options={**source.options},
            restart=work.restart,
            retry=work.retry,
            seen=lambda _: bar.advance(),
        )
    account = load_translation_account(work.output)
    if not work.quiet:
        _show(account, work.output, json=work.json)
    code = tell(work.output, tally, what="rows")
    if not account.total.kept:
        asked = _asked(account)
        say(f"No row was kept of {asked:,}: {work.output} is empty." if asked else "There was no row to translate.")
    return code


def _asked(account: TranslationAccount) -> int:
    """All rows that were to be translated: those that failed are in no language."""
    return account.total.rows + account.failed


def _begun(work: Work) -> str | None:
    """The signature of the aligner that an output was begun with, if it is to be continued."""
    from veriglot.run.manifest import Manifest

    before = None if work.restart else Manifest.load(work.output.with_name(f"{work.output.name}.progress"))
    begun = before.options.get("aligner") if before is not None else None
    return begun if isinstance(begun, str) else None


def _show(account: TranslationAccount, output: Path, *, json: bool) -> None:
    """The account per language and type on standard output; why the rest was not taken on standard error."""
    from veriglot.build import rejected_path

    if json:
        print_json(account)
        return
    _table(account)
    total = account.total
    marks = total.marks
    failed = f"{account.failed:,} failed, " if account.failed else ""
    cost = f" {total.calls:,} calls, {total.tokens_in:,} tokens of prompts, {total.tokens_out:,} of replies."
    say(
        f"{output}: {total.kept:,} of {_asked(account):,} rows kept,"
        f" {failed}{marks.dropped:,} of {marks.asked:,} spans dropped." + (cost if total.calls else "")
    )
    reasons = {"row": total.row_reasons, **total.reply_reasons}
    if any(reasons.values()):
        say(f"What was not taken stands in {rejected_path(output)}:")
    for what, counts in reasons.items():
        if counts:
            say(f"  {what}: " + ", ".join(f"{reason} {number:,}" for reason, number in counts.items()))


def _table(account: TranslationAccount) -> None:
    from rich.console import Console
    from rich.table import Table

    types = list(account.total.types)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("language")
    for name in ("rows", "kept", "partial", "spans", "quality", "dropped", *types):
        table.add_column(name or "no type", justify="right")
    rows = [*account.languages.items()]
    if len(rows) != 1 or account.failed:
        rows.append(("all", account.total))
    for tag, one in rows:
        asked = _asked(account) if one is account.total else one.rows
        counts = [f"{number:,}" for number in (asked, one.kept, one.partial, one.marks.asked)]
        quality = "-" if one.marks.quality is None else f"{one.marks.quality:.2f}"
        rates = [_rate(each) for each in (one.marks, *(one.types.get(type_) for type_ in types))]
        table.add_row(tag, *counts, quality, *rates)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _rate(account: MarkAccount | None) -> str:
    rate = account.drop_rate if account is not None else None
    return "-" if rate is None else f"{rate:.1%}"
