"""`veriglot studio`: annotation projects, from the project file to people, the server, agreement and exports."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veriglot.cli.command import Options, command, new_app
from veriglot.cli.console import Account, listed, print_json, say
from veriglot.cli.inputs import find_inputs, known_tag, parts
from veriglot.errors import EXIT_ROWS_FAILED, InputError, UsageError, VeriglotError, requires_extra
from veriglot.formats.reader import columns_from, read_rows
from veriglot.plugins import read_package_data
from veriglot.records.languages import get_language
from veriglot.report.tables import Cell, Table
from veriglot.storage.checkpoint import FailedRow
from veriglot.studio.project import Project, load
from veriglot.studio.project import preset as preset_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Sample
    from veriglot.studio.agreement import AgreementReport, AgreementRow
    from veriglot.studio.items import ImportResult
    from veriglot.studio.store import Store


_MOST_LINKS = 1000  # maximum per call
_SHOWN = 20  # maximum rejected rows shown; JSON has all


app = new_app()


@app.callback()
def _studio(
    context: typer.Context,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            envvar="VERIGLOT_STUDIO_DATABASE",
            show_default=False,
            help="Database: an SQLite file, or postgresql://HOST/NAME. Give it before the command. Default: as in"
            " the project file.",
        ),
    ] = None,
) -> None:
    """Annotate hallucinations in a team: projects, people, the studio, agreement, exports."""
    context.obj = {**(context.obj or {}), "database": database}


class ProjectOptions(Options):
    """The project of a command, and its output form."""

    project: Path
    database: str | None = None
    json: bool = False


def _project_at(path: Path) -> Project:
    """The project of a file, or of `project.toml` in a folder."""
    return load(path / "project.toml" if path.is_dir() else path)


@contextmanager
def _opened(project: Project, database: str | None, *, create: bool = False) -> Iterator[Store]:
    """The store of a project."""
    with requires_extra("The studio", "studio"):
        from veriglot.studio.store import open_store
    store = open_store(database or project.database, create=create)
    try:
        yield store
    finally:
        store.close()


@app.command("init")
@command
def init(
    folder: Path,
    *,
    preset: str = "mfava",
    data: list[str] | None = None,
    name: str | None = None,
    languages: str | None = None,
) -> None:
    """Write a project file for you to edit, after one of the papers."""
    path = folder / "project.toml"
    if path.exists():
        raise UsageError(f"{path} exists already.", "Name another folder.")
    title = name or folder.resolve().name
    tags = [get_language(value).tag for value in parts(languages or "")]
    seen = [_path_from(folder, value) for value in data or ()] or ["data.jsonl"]
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64].strip("-") or "project"  # if there is no Latin letter
    text = preset_text(preset, title=title, slug=slug, data=seen, languages=tags)
    files = [folder / value for value in seen]
    folder.mkdir(parents=True, exist_ok=True)
    unexamined = _EXAM.sub(lambda table: re.sub("^(?=.)", "# ", table[0], flags=re.MULTILINE), text)
    if unexamined != text and not any(map(_may_be_labelled, files)):
        text = unexamined
        say(f"no row has labels, so [exam] is commented out in {path}: annotators start without an exam")
    path.write_text(text, "utf-8")
    print(path)
    for file in files:
        if not file.exists():
            say(f"there is no {file} yet")
    print(f"Check it, then type: veriglot studio import {folder}", file=sys.stderr)


_EXAM = re.compile(r"^\[exam\].*?(?=^\[(?!\[exam))", re.DOTALL | re.MULTILINE)


def _may_be_labelled(file: Path) -> bool:
    """Whether a file has labels, or does not exist yet; the import reports unreadable files."""
    try:
        return not file.exists() or any(getattr(row, "annotations", ()) for row in read_rows(file))
    except VeriglotError:
        return True


def _path_from(folder: Path, path: str) -> str:
    """A path for the project file: relative to its folder instead of the current one."""
    if Path(path).is_absolute() or ((folder / path).exists() and not Path(path).exists()):
        return path
    return Path(os.path.relpath(path, folder)).as_posix()


@app.command("import")
@command
def import_(options: ProjectOptions) -> int:
    """Import the data that the project file names; items imported before do not change.

    The command reports each row that cannot become an item, with its line, imports the rest, and exits with 3.
    """
    loaded = _project_at(options.project)
    if not loaded.entries.data.path:
        raise InputError("no data is named", path=str(loaded.path), field="data.path")
    with _opened(loaded, options.database, create=True) as store:
        from veriglot.studio.items import import_all

        exit_code = _tell_import(import_all(store, loaded), json=options.json)
        try:
            _check_ready(store, loaded)
        except UsageError as error:  # `serve` will refuse it
            say(f"{error.message} {error.remedy}")
        with store.reading() as tx:
            if not tx.people(tx.project(loaded.slug).id):
                path = options.project
                say(f"next: veriglot studio invite {path} --role lead, then veriglot studio serve {path}")
    return exit_code


def _check_ready(store: Store, project: Project) -> None:
    """Refuse a project in which no annotator could start; warn of an exam that lacks items."""
    from veriglot.studio.assignment import check_ready
    from veriglot.studio.items import register_project

    project_id = register_project(store, project).id
    with store.reading() as tx:
        lacking = check_ready(tx, project, project_id)
    if lacking:
        say(
            f"the exam of {project.slug} lacks items: {', '.join(lacking)}. People who work in such a language cannot"
            " begin."
        )


def _tell_import(done: ImportResult, *, json: bool) -> int:
    """Report the results of the rows; returns the exit code."""
    for row in done.unusable[:_SHOWN]:
        message = (
            row.error.at(path=row.path or None, line=row.line or None)
            if isinstance(row.error, InputError)
            else row.error
        )
        print(f"left out{f' ({row.key})' if row.key else ''}: {message}", file=sys.stderr)
    if len(done.unusable) > _SHOWN:
        print(f"... and {len(done.unusable) - _SHOWN} more.", file=sys.stderr)
    counts = done.counts()
    exit_code = EXIT_ROWS_FAILED if done.unusable else 0
    if json:
        rows = [{"path": u.path, "line": u.line, "id": u.key, "error": str(u.error)} for u in done.unusable]
        print_json({**counts, "left_out_rows": rows})
        return exit_code
    by_language = f" ({listed(counts['added'])})" if done.added else ""
    print(f"Items added: {done.added.total():,}{by_language}; known before: {done.known:,}.")
    rest = [
        (done.other_language.total(), "rows in languages that the project does not name"),
        (done.identified, "rows without a language: it was identified"),
        (done.beyond, "rows beyond the limit"),
        (len(done.unusable), "rows that became no item"),
        (done.widened, "marks widened to whole characters"),
        (done.batches, "batches made"),
        (done.predicted, "predictions taken"),
        (done.unpredicted, "predictions left out: of no item here, or not scored"),
    ]
    for count, what in rest:
        if count:
            print(f"{count:,} {what}.")
    return exit_code


@app.command("invite")
@command
def invite(
    project: Path,
    *,
    role: Literal["annotator", "reviewer", "lead", "script"] = "annotator",
    count: int = 1,
    languages: str | None = None,
    note: str | None = None,
    email: str | None = None,
    public_url: str | None = None,
    database: str | None = None,
    json: bool = False,
) -> None:
    """Make invitation links, one for each person, or tokens. Each is shown once; only a hash of its key is kept."""
    if count > _MOST_LINKS:
        raise UsageError(f"{count:,} links are too many.", f"Ask for {_MOST_LINKS:,} at most.")
    if email is not None and (count > 1 or role == "script"):
        raise UsageError("An address belongs to one person.", "Give --email without --count and --role script.")
    url, tags = public_url or "http://127.0.0.1:8321", parts(languages or "")
    loaded = _project_at(project)
    with requires_extra("The studio", "studio"):
        from veriglot.studio.people import invite as make_invitation
        from veriglot.studio.people import make_token
        from veriglot.studio.tables import Role
        from veriglot.studio.web import Studios
    with closing(Studios([loaded], database)) as studios:
        (studio,) = studios
        with studio.store.writing() as tx:
            if role == "script":
                invitations = [make_token(tx, studio, note=note) for _ in range(count)]
            else:
                about: dict[str, Any] = {"languages": tags, "note": note, "email": email}
                invitations = [make_invitation(tx, studio, Role(role), **about) for _ in range(count)]
    if role == "script":
        kind, links = "token", [invitation.token for invitation in invitations]
    else:
        kind, links = "link", [f"{url.rstrip('/')}/join/{invitation.token}" for invitation in invitations]
    if json:
        print_json(
            [
                {kind: link, "expires": invitation.person.key_expires_at, "role": role}
                for link, invitation in zip(links, invitations, strict=True)
            ]
        )
        return
    print("\n".join(links))
    expires = invitations[0].person.key_expires_at
    if role == "script":
        print(f"Send it as `Authorization: Bearer TOKEN`; it expires on {expires:%Y-%m-%d}.", file=sys.stderr)
    else:
        print(f"Each is for one {role}, and expires on {expires:%Y-%m-%d} unless used.", file=sys.stderr)


@app.command("status")
@command
def status(options: ProjectOptions) -> None:
    """Show the progress of the work: items, people, assignments."""
    loaded = _project_at(options.project)
    with _opened(loaded, options.database) as store, store.reading() as tx:
        row = tx.project(loaded.slug)
        items = tx.tally(row.id, "items", "role", "language")
        gold = sum(item.has_gold for item in tx.items(row.id, role=("normal", "overlap")))
        work = tx.tally(row.id, "assignments", "purpose", "state")
        people = tx.people(row.id)
        batches = tx.tally(row.id, "batches", "state")
    counts = {
        "project": row.slug,
        "items": [{"role": role, "language": tag, "count": n} for (role, tag), n in sorted(items.items())],
        "gold": gold,
        "people": [
            {"id": p.public_id, "role": p.role.value, "name": p.name, "joined": p.joined_at, "revoked": p.revoked_at}
            for p in people
        ],
        "assignments": [
            {"purpose": purpose, "state": state, "count": n} for (purpose, state), n in sorted(work.items())
        ],
        "batches": {state: n for (state,), n in sorted(batches.items())},
    }
    if options.json:
        print_json(counts)
        return
    print(f"{row.name} ({row.task}, {row.taxonomy})\n  final labels {gold:>21,}")
    for name, tally in (("items", items), ("assignments", work), ("batches", batches)):
        for key, count in sorted(tally.items()):
            first, second = (*key, None)[:2]
            print(f"  {name:11} {first:10} {second or '-':10} {count:>8,}")
    for role in sorted({p.role for p in people}):
        of_role = [p for p in people if p.role is role]
        joined = sum(person.joined_at is not None for person in of_role)
        print(f"  people      {role:10} invited {len(of_role):,}, joined {joined:,}")


@app.command("backup")
@command
def backup(options: ProjectOptions, file: Path) -> None:
    """Write everything into one file, also while people work, and verify the file."""
    with _opened(_project_at(options.project), options.database) as store:
        from veriglot.studio.backup import backup as write_backup

        _tell_backup(write_backup(store, file), json=options.json)


@app.command("restore")
@command
def restore(options: ProjectOptions, file: Path) -> None:
    """Restore a backup into a new database, SQLite or PostgreSQL. A database that is not empty is refused."""
    loaded = _project_at(options.project)
    with _opened(loaded, options.database, create=True) as store:
        from veriglot.studio.backup import restore as read_backup
        from veriglot.studio.web import dead_links

        _tell_backup(read_backup(file, store), json=options.json)
        _warn_of_links(dead_links(store, loaded))


def _warn_of_links(message: str) -> None:
    if message:
        say(message)


def _tell_backup(done: Any, *, json: bool) -> None:
    if json:
        print_json({"path": str(done.path), "rows": done.rows, "sha256": done.digest})
        return
    print(", ".join(f"{count:,} {name}" for name, count in done.rows.items() if count) or "nothing yet")
    print(f"sha256 {done.digest}")


@app.command("agreement")
@command
def agreement(
    data: list[str],
    *,
    unit: str = "word",
    gamma: int = 30,
    seed: int = 0,
    resamples: int = 1000,
    format_: str | None = None,
    language: str | None = None,
    columns: tuple[str, ...] = (),
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Measure how far annotators agree: with each other, and with a model's silver labels.

    Measures: Cohen's kappa and span F1, averaged over pairs of annotators and for each pair; Krippendorff's alpha;
    gamma, which compares positions and types together. Each is given without and with types, by language, with 95%
    intervals over whole texts. Responses and facts have kappa and alpha.

    Rows with the same response, evidence and question are one text, so that each annotator may have a file. A name that
    annotated a text several times stands for several people: pairs are pooled, Scott's pi replaces kappa, and a
    warning names the rows.

    \b
    People:      veriglot studio agreement anna.jsonl ben.jsonl
    mFAVA:       veriglot studio agreement mfava/gold/ --json > agreement.json
    HalluVerse:  veriglot studio agreement anna.csv ben.csv --unit response
    """
    from veriglot.studio.agreement import agreement as measured

    inputs = find_inputs(data, format_name=format_, skipped=Account(quiet=quiet).warn, columns=columns)
    tag = known_tag(language)
    bad = []
    places: list[tuple[str, int, str]] = []  # file, row (from 1, unreadable ones counted) and id of each sample

    def samples() -> Iterator[Sample]:
        """Annotators of one text use the same ids in their own files, so ids may recur."""
        for source in inputs:
            for number, row in enumerate(
                read_rows(source.path, format=format_, language=tag, columns=columns_from(columns)), 1
            ):
                if isinstance(row, FailedRow):
                    bad.append(str(row.as_error()))
                else:
                    places.append((source.path, number, row.id))
                    yield row

    try:
        report = measured(
            samples(),
            unit=unit,
            resamples=resamples,
            seed=seed,
            gamma=gamma,
            where=lambda number: "{}, row {} (id {!r})".format(*places[number]),
            file=lambda number: places[number][0],
        )
    finally:  # where nothing can be compared, this may be why
        if bad:
            say(
                f"{len(bad):,} row{'s' * (len(bad) > 1)} could not be read: left out of every figure; "
                f"the first: {bad[0]}"
            )
    _warn(report)
    (print_json if json else _show_agreement)(report)
    return EXIT_ROWS_FAILED if bad else 0


_MOST_REPEATS = 5  # maximum on standard error; the report has all


def _warn(report: AgreementReport) -> None:
    """Report the rows in which an annotator has a text again: a single copying error changes every figure."""
    for repeat in report.repeated[:_MOST_REPEATS]:
        say(
            f"{repeat.annotator!r} annotated one text twice: {repeat.first}, and {repeat.second}. So names are not"
            " used, and Scott's pi replaces Cohen's kappa. If this is a mistake, delete one of the rows."
        )
    more = len(report.repeated) - _MOST_REPEATS
    if more > 0:
        say(f"Further texts annotated twice under one name: {more:,}; --json lists all.")


_AGREEMENT = read_package_data(__package__, "agreement.toml", dict[str, dict[str, str]])
_INTERVALS = (
    " Under each value: its 95% interval, from a bootstrap that draws whole texts, of the draws that give a value"
    " (--json counts the others)."
)
_WHOLE = ("all", "all")  # the pair of a figure over all pairs


def _show_agreement(report: AgreementReport) -> None:
    from veriglot.metrics.estimate import FEWEST_TEXTS

    for among, title in _AGREEMENT["titles"].items():
        rows = [row for row in report.rows if row.among == among]
        whole = [row for row in rows if row.between == _WHOLE]
        pairs = [row for row in rows if row.between != _WHOLE]
        if whole:
            _agreement_table(title, whole, ("language",)).print()
        if len({row.between for row in pairs}) > 1:
            _agreement_table(f"{title}, each pair", pairs, ("language", "annotator", "and")).print()
    intervals = _INTERVALS if any(row.low is not None for row in report.rows) else ""
    few = (
        f" too few: fewer than {FEWEST_TEXTS} texts, which give no interval." if any(map(_is_few, report.rows)) else ""
    )
    present = {"", *(row.measure for row in report.rows)}
    print(" ".join(text for name, text in _AGREEMENT["legend"].items() if name in present) + intervals + few)
    people = ", ".join(f"{name} ({count:,})" for name, count in report.annotators.items())
    counts = f"{report.texts:,} texts, {report.shared:,} of them with two people or more"
    print(counts + (f"; {people}" if people else ""))
    for language, name in report.best.items():
        print(f"Best with silver in {language or '?'}: {name}")
    reasons = {
        f"{row.measure} ({row.scope}) in {row.language}: {row.reason}"
        for row in report.rows
        if row.reason and row.low is None and row.between == _WHOLE and not _is_few(row)
    }
    for line in (*report.notes, *sorted(reasons)):
        print(f"Note: {line}")
    print(f"Signature: {report.signature}")


def _agreement_table(title: str, rows: Sequence[AgreementRow], lead: tuple[str, ...]) -> Table:
    """One row per language, or per pair in it."""
    present = {(row.scope, row.measure) for row in rows}
    columns = [
        (scope, name) for scope in ("binary", "typed") for name in _AGREEMENT["heads"] if (scope, name) in present
    ]
    by_name: dict[tuple[str, ...], dict[tuple[str, str], AgreementRow]] = {}
    for row in rows:
        name = (row.language or "?", *row.between)[: len(lead)]
        by_name.setdefault(name, {})[row.scope, row.measure] = row
    cells = [
        (*name, f"{max(row.texts for row in figures.values()):,}", *(_agreement(figures.get(each)) for each in columns))
        for name, figures in by_name.items()
    ]
    heads = [_AGREEMENT["heads"][measure] + ("\ntyped" if scope == "typed" else "") for scope, measure in columns]
    return Table(title, (*lead, "texts", *heads), cells, totals=int(("all",) in by_name), lead=len(lead) + 1)


def _agreement(row: AgreementRow | None) -> Cell:
    if row is None or row.value is None:
        return Cell("–")
    if row.low is not None and row.high is not None:
        return Cell(f"{row.value:.3f}", f"\n{row.low:.2f} {row.high:.2f}")
    return Cell(f"{row.value:.3f}", "\ntoo few" if _is_few(row) else "")


def _is_few(row: AgreementRow) -> bool:
    """Whether a figure has no interval because of too few texts."""
    from veriglot.metrics.estimate import FEWEST_TEXTS

    return row.value is not None and row.texts < FEWEST_TEXTS


@app.command("export")
@command
def export(
    project: Path,
    out: Path,
    *,
    to: Literal["native", "mfava", "hat", "inline", "label-studio"] = "native",
    names: bool = False,
    database: str | None = None,
    json: bool = False,
) -> None:
    """Export all annotations so far, also while people work: each layer, final and silver labels, and the history.

    The command lists what the format cannot hold; `native` holds everything.
    """
    loaded = _project_at(project)
    with _opened(loaded, database) as store:
        from veriglot.studio import export as exporting

        write = exporting.export_zip if out.suffix.lower() == ".zip" else exporting.export
        done = write(store, loaded, out, to, names=names)
    if json:
        print_json(done)
        return
    print(out)
    for file in done.files:
        print(f"  {file.path}  rows: {file.rows:,}")
    for file in done.files:
        for what, count in file.lost.items():
            print(f"{file.path} cannot hold: {what.removeprefix('row: ')} (rows: {count:,}).", file=sys.stderr)
    for what, count in done.beyond.items():
        print(f"The format cannot hold: {what} ({count:,}).", file=sys.stderr)
    for note in done.notes:
        print(note, file=sys.stderr)


@app.command("settle")
@command
def settle(
    project: Path,
    rule: Literal["agreed", "majority", "best-with-silver"] = "agreed",
    language: str | None = None,
    overwrite: bool = False,
    database: str | None = None,
    json: bool = False,
) -> None:
    """Settle by a rule the items that two or more people annotated; a lead settles the others."""
    loaded = _project_at(project)
    tag = None if language is None else get_language(language).tag
    with _opened(loaded, database) as store:
        from veriglot.studio import adjudication as adjudicating

        rules: dict[str, adjudicating.Rule] = {
            "agreed": "agreed",
            "majority": "majority",
            "best-with-silver": "best_with_silver",
        }
        done = adjudicating.settle(store, loaded, rules[rule], language=tag, overwrite=overwrite)
        with store.reading() as tx:
            names = {person.public_id: person.name for person in tx.people(tx.project(loaded.slug).id)}
    if json:
        print_json(done)
        return
    print(
        f"Settled: {done.settled:,} (final labels replaced: {done.replaced:,}). Left to a lead: {done.left:,}."
        f" Final labels unchanged: {done.unchanged:,} (a lead's: {done.by_hand:,})."
    )
    for tag, who in sorted(done.best.items()):
        print(f"  {tag}: from {names.get(who) or who}")


@app.command("rates")
@command
def rates(project: Path, database: str | None = None, json: bool = False) -> None:
    """Show how often models hallucinate by the labels so far, how sure that is, and what suggestions do to the labels.

    Rates are those of `veriglot estimate --estimator ppi` where the project has predictions, else of the labels alone.
    """
    loaded = _project_at(project)
    with _opened(loaded, database) as store:
        from veriglot.rates.proportion import FEWEST_CLUSTERS
        from veriglot.studio.rates import measure_rates

        with store.reading() as tx:
            done = measure_rates(tx, loaded)
    if json:
        print_json(done)
        return
    rows = [
        (
            line.language,
            str(line.estimator),
            f"{step.labels:,}",
            "-" if step.rate is None else f"{step.rate:.2%}" if not step.reasons else f"({step.rate:.2%}?)",
            "-" if step.low is None or step.high is None else f"{step.low:.2%} to {step.high:.2%}",
            ("enough" if line.enough else "" if line.needed is None else f"{line.needed:,}") if last else "",
        )
        for line in done.languages
        for step, last in ((step, step is line.steps[-1]) for step in line.steps)
    ]
    if not rows:
        print(f"Nothing is labelled yet. A rate needs final labels of {FEWEST_CLUSTERS} random items per language.")
        return
    title = f"Rates of hallucinated {done.unit}s; wanted: +-{done.half_width:.1%}"
    Table(title, ("language", "estimator", "labels", "rate", "95% interval", "labels needed"), rows, lead=2).print()
    for line in done.languages:
        for reason in line.reasons:
            print(f"{line.language}: {reason}.")
        if line.suggested:
            print(f"{line.language}: {line.suggested:,} of {line.labels:,} labels were made with suggestions in sight.")
    for effect in done.effects:
        what = "Of all words" if effect.measure == "marked" else "Of the words that are suggested"
        shares = " and ".join("-" if each is None else f"{each:.1%}" for each in (effect.shown, effect.blind))
        difference = effect.reason or f"difference {effect.difference:+.1%} [{effect.low:+.1%}, {effect.high:+.1%}]"
        print(f"{what}, people mark {shares} with and without suggestions: {difference}.")


@app.command("serve")
@command
def serve(
    projects: list[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    public_url: str | None = None,
    trusted_proxy: list[str] | None = None,
    open_api: bool = False,
    access_log: bool = False,
    database: str | None = None,
) -> None:
    """Serve the studio: annotators, reviewers and leads work in a browser, with links of `veriglot studio invite`.

    Ctrl+C stops the server after running calls are done. It fetches nothing from other servers, and sends them nothing.

    \b
    Alone:         veriglot studio serve my-project/
    With a proxy:  veriglot studio serve my-project/ --public-url https://studio.example.org --trusted-proxy 127.0.0.1
    """
    read = [_project_at(path) for path in projects]
    with requires_extra("The studio", "studio"):
        from veriglot.studio.app import serve as run
        from veriglot.studio.web import Settings, Studios, dead_links
    settings = Settings(
        host=host,
        port=port,
        base_url=public_url,
        trusted_proxies=tuple(trusted_proxy or ()),
        access_log=access_log,
        open_api=open_api,
    )
    studios = Studios(read, database)
    try:
        for studio in studios:
            _check_ready(studio.store, studio.project)
    except BaseException:
        studios.close()
        raise
    names = ", ".join(studio.project.name for studio in studios)

    def announce() -> None:
        print(f"Serving {names} at {settings.address} (Ctrl+C stops it).", file=sys.stderr)
        for studio in studios:
            _warn_of_links(dead_links(studio.store, studio.project))
        if public_url is None and not settings.is_local:
            say("links and cookies travel unencrypted; put a proxy with HTTPS in front and set --public-url.")

    run(studios, settings, announce)
