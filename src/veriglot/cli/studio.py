"""`veriglot studio`: annotation projects, from the project file to people, the server, agreement and exports."""

from __future__ import annotations

import json as json_module
import os
import re
import sys
import unicodedata
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from veriglot.cli.command import Help, command
from veriglot.cli.options import (
    OUTPUT_FORMAT,
    Count,
    Database,
    InputFormat,
    Json,
    Language,
    Languages,
    Overwrite,
    PublicUrl,
    Quiet,
    Resamples,
    Seed,
    Unit,
    parts,
)
from veriglot.errors import EXIT_ROWS_FAILED, InputError, MissingExtraError, UsageError
from veriglot.records.languages import get_language
from veriglot.studio.project import load
from veriglot.studio.project import preset as preset_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.records import Sample
    from veriglot.studio.agreement import AgreementReport
    from veriglot.studio.backup import Backup
    from veriglot.studio.export import Exported
    from veriglot.studio.items import ImportResult
    from veriglot.studio.project import Project
    from veriglot.studio.store import Store

__all__ = ["agreement", "app", "export", "opened", "serve", "settle"]


_MOST_LINKS = 1000  # of one call
_SHOWN = 20  # rows that became no item; JSON has all


def project_at(path: Path) -> Project:
    """The project of a file, or of `project.toml` in a folder.

    Raises:
        InputError: see `annotate.project.load`.
    """
    return load(path / "project.toml" if path.is_dir() else path)


@contextmanager
def opened(project: Project, database: str | None, *, create: bool = False) -> Iterator[Store]:
    """The store of a project.

    Raises:
        MissingExtraError: the extra `studio` is not installed.
        StoreError: it cannot be opened.
    """
    try:
        from veriglot.studio.store import open_store
    except ModuleNotFoundError as error:
        raise MissingExtraError("The studio", "studio") from error
    store = open_store(database or project.database, create=create)
    try:
        yield store
    finally:
        store.close()


def write_project(folder: Path, preset: str, data: Sequence[str], name: str | None, languages: Sequence[str]) -> None:
    """Write a project file.

    Args:
        folder: where it is written.
        preset: what it begins with.
        data: files, as seen from where the command is typed; with none, `data.jsonl` beside the project file.
        name: of the project; None for the folder's.
        languages: of responses; with none, all.

    Raises:
        UsageError: there is one already, or no slug can be made of the name.
        UnknownNameError: no such preset or language.
    """
    path = folder / "project.toml"
    if path.exists():
        raise UsageError(f"{path} exists already.", remedy="Name another folder.")
    title = name or folder.resolve().name
    tags = [get_language(value).tag for value in languages]
    seen = [_seen_from(folder, value) for value in data] or ["data.jsonl"]
    text = preset_text(preset, title=title, slug=_slug(title), data=seen, languages=tags)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    print(path)
    print(f"Look through it, then type: veriglot studio import {folder}", file=sys.stderr)


def _seen_from(folder: Path, path: str) -> str:
    """A path as the project file says it: given from where the command is typed, it is written from the folder."""
    if Path(path).is_absolute() or ((folder / path).exists() and not Path(path).exists()):
        return path
    return Path(os.path.relpath(path, folder)).as_posix()


def _slug(title: str) -> str:
    """A slug of a name; of one that has no Latin letters, `project`."""
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64].strip("-") or "project"


def import_data(path: Path, database: str | None, *, json: bool) -> int:
    """Import, tell, and give the exit code."""
    from veriglot.studio.items import import_all

    project = project_at(path)
    if not project.entries.data.path:
        raise InputError("no data is named", path=str(project.path), field="data.path")
    with opened(project, database, create=True) as store:
        done = import_all(store, project)
    _tell_import(done, json=json)
    return EXIT_ROWS_FAILED if done.unusable else 0


def _tell_import(done: ImportResult, *, json: bool) -> None:
    for row in done.unusable[:_SHOWN]:
        message = (
            row.error.at(path=row.path or None, line=row.line or None)
            if isinstance(row.error, InputError)
            else row.error
        )
        print(f"left out{f' ({row.key})' if row.key else ''}: {message}", file=sys.stderr)
    if len(done.unusable) > _SHOWN:
        print(f"... and {len(done.unusable) - _SHOWN} more.", file=sys.stderr)
    counts = {
        "added": dict(sorted(done.added.items())),
        "known": done.known,
        "other_language": dict(sorted(done.other_language.items())),
        "beyond_limit": done.beyond,
        "left_out": len(done.unusable),
        "widened_marks": done.widened,
        "batches": done.batches,
    }
    if json:
        rows = [{"path": u.path, "line": u.line, "id": u.key, "error": str(u.error)} for u in done.unusable]
        _print({**counts, "left_out_rows": rows})
        return
    by_language = ", ".join(f"{language} {count:,}" for language, count in sorted(done.added.items()))
    print(
        f"{done.added.total():,} items added{f' ({by_language})' if by_language else ''}, {done.known:,} known before."
    )
    rest = [
        (done.other_language.total(), "rows in languages that the project does not name"),
        (done.beyond, "rows beyond the limit"),
        (len(done.unusable), "rows that became no item"),
        (done.widened, "marks widened to whole characters"),
        (done.batches, "batches made"),
    ]
    for count, what in rest:
        if count:
            print(f"{count:,} {what}.")


def make_invitations(
    path: Path,
    database: str | None,
    role: str,
    count: int,
    *,
    languages: Sequence[str],
    note: str | None,
    url: str,
    json: bool,
) -> None:
    """Invite, and print the links."""
    project = project_at(path)
    with opened(project, database, create=True) as store:
        from veriglot.studio.items import register_project
        from veriglot.studio.people import invite, secret_of
        from veriglot.studio.tables import Role

        register_project(store, project)
        secret = secret_of(project)
        with store.writing() as tx:
            made = [invite(tx, project, secret, Role(role), languages=languages, note=note) for _ in range(count)]
    links = [f"{url.rstrip('/')}/join/{invitation.token}" for invitation in made]
    if json:
        _print(
            [
                {"link": link, "expires": invitation.person.key_expires_at, "role": role}
                for link, invitation in zip(links, made, strict=True)
            ]
        )
        return
    print("\n".join(links))
    print(
        f"Each is for one {role}, and ends on {made[0].person.key_expires_at:%Y-%m-%d} unless taken up.",
        file=sys.stderr,
    )


def show_status(path: Path, database: str | None, *, json: bool) -> None:
    """Count."""
    project = project_at(path)
    with opened(project, database) as store, store.reading() as tx:
        row = tx.project(project.slug)
        items = tx.tally(row.id, "items", "role", "language")
        work = tx.tally(row.id, "assignments", "purpose", "state")
        people = tx.people(row.id)
        batches = tx.tally(row.id, "batches", "state")
    status = {
        "project": row.slug,
        "items": [{"role": role, "language": tag, "count": n} for (role, tag), n in sorted(items.items())],
        "people": [
            {"id": p.public_id, "role": p.role.value, "name": p.name, "joined": p.joined_at, "revoked": p.revoked_at}
            for p in people
        ],
        "assignments": [
            {"purpose": purpose, "state": state, "count": n} for (purpose, state), n in sorted(work.items())
        ],
        "batches": {state: n for (state,), n in sorted(batches.items())},
    }
    if json:
        _print(status)
        return
    print(f"{row.name} ({row.task}, {row.taxonomy})")
    for (role, tag), count in sorted(items.items()):
        print(f"  items       {role:10} {tag or '-':10} {count:>8,}")
    for role in sorted({p.role for p in people}):
        mine = [p for p in people if p.role is role]
        print(f"  people      {role:10} invited {len(mine):,}, joined {sum(p.joined_at is not None for p in mine):,}")
    for (purpose, state), count in sorted(work.items()):
        print(f"  assignments {purpose:10} {state:10} {count:>8,}")
    for (state,), count in sorted(batches.items()):
        print(f"  batches     {state:10} {'':10} {count:>8,}")


def make_backup(path: Path, database: str | None, file: Path, *, json: bool) -> None:
    """Back up."""
    project = project_at(path)
    with opened(project, database) as store:
        from veriglot.studio.backup import backup

        _account(backup(store, file), json=json)


def restore_backup(path: Path, database: str | None, file: Path, *, json: bool) -> None:
    """Restore."""
    project = project_at(path)
    with opened(project, database, create=True) as store:
        from veriglot.studio.backup import restore

        _account(restore(file, store), json=json)


def _account(done: Backup, *, json: bool) -> None:
    if json:
        _print({"path": str(done.path), "rows": done.rows, "sha256": done.digest})
        return
    print(", ".join(f"{count:,} {name}" for name, count in done.rows.items() if count) or "nothing yet")
    print(f"sha256 {done.digest}")


def _print(data: Any) -> None:
    print(json_module.dumps(data, ensure_ascii=False, indent=2, default=str))


@command
def agreement(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            show_default=False,
            help="Annotated samples in any readable format: files or folders, of one annotator each or of several.",
        ),
    ],
    *,
    unit: Annotated[Unit, Help("Default: word.")] = "word",
    gamma: Annotated[
        int,
        typer.Option(
            "--gamma",
            metavar="N",
            min=0,
            help="Random annotations a text that gamma is held against; 0 leaves gamma out, which is most of the work."
            " Default: 30.",
        ),
    ] = 30,
    seed: Annotated[Seed, Help("Default: 1.")] = 1,
    resamples: Annotated[Resamples, Help("Default: 1000.")] = 1000,
    format_: InputFormat = None,
    language: Annotated[Language, Help("Default: told from the text.")] = None,
    json: Annotated[Json, Help("Default: tables.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far annotators agree: with each other, and with a model's silver labels.

    Cohen's kappa and the F1 of spans, averaged over pairs of annotators and for each pair; Krippendorff's alpha; gamma,
    which holds place and type at once. Marked or not, and by type; by language; with 95% intervals over whole texts.

    Rows with the same response are one text, so that each annotator may have a file. Where one name annotated a text
    several times it stands for several people: pairs are pooled, Scott's pi stands in for kappa, and a warning names
    the rows.

    \b
    People:  veriglot studio agreement anna.jsonl ben.jsonl
    mFAVA:   veriglot studio agreement mfava/gold/ --json > agreement.json
    """
    from veriglot.cli.inputs import known_tag
    from veriglot.studio.agreement import agreement as measured

    bad: list[str] = []
    places: list[tuple[str, int, str]] = []
    report = measured(
        _samples(data, format_, known_tag(language), bad, places, quiet=quiet),
        unit=unit,
        resamples=resamples,
        seed=seed,
        gamma=gamma,
        where=lambda number: "{}, row {} (id {!r})".format(*places[number]),
    )
    _warn(report)
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    else:
        from veriglot.cli.tables import show_agreement as show

        show(report)
    if bad:
        print(
            f"veriglot: {len(bad):,} rows could not be read and are in no figure; the first: {bad[0]}", file=sys.stderr
        )
        raise typer.Exit(EXIT_ROWS_FAILED)


_MOST_REPEATS = 5  # that are named on standard error; the report has all


def _warn(report: AgreementReport) -> None:
    """Name the rows in which a name annotates a text again: one slip of a copy changes every figure."""
    for repeat in report.repeated[:_MOST_REPEATS]:
        print(
            f"veriglot: {repeat.annotator!r} annotated one text twice: {repeat.first}, and {repeat.again}."
            " Names are set aside, and kappa gives way to pi. If this is a slip, delete one of the rows.",
            file=sys.stderr,
        )
    more = len(report.repeated) - _MOST_REPEATS
    if more > 0:
        print(f"veriglot: {more:,} more texts stand twice under one name; --json lists all.", file=sys.stderr)


def _samples(
    data: Sequence[str],
    format_name: str | None,
    language: str | None,
    bad: list[str],
    places: list[tuple[str, int, str]],
    *,
    quiet: bool,
) -> Iterator[Sample]:
    """The samples of all files; annotators of one text have the same ids in files of their own, so ids may recur.

    `places` is filled with the file, row (from 1, unreadable ones counted) and id of each sample.
    """
    from veriglot.cli.inputs import find_inputs
    from veriglot.formats.containers import BadRow
    from veriglot.formats.reader import read_rows

    def skipped(line: str) -> None:
        if not quiet:
            print(f"veriglot: {line}", file=sys.stderr)

    for source in find_inputs(data, format_name=format_name, skipped=skipped):
        rows = read_rows(source.path, format=format_name, language=language)
        for number, row in enumerate(rows, start=1):
            if isinstance(row, BadRow):
                bad.append(str(row.error))
            else:
                places.append((source.path, number, row.id))
                yield row


ProjectFile = Annotated[
    Path, typer.Argument(metavar="PROJECT", show_default=False, help="The project file, as TOML, or its folder.")
]
JsonAccount = Annotated[Json, Help("Default: text.")]


@command
def export(
    project: ProjectFile,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", show_default=False, help="A folder that is made, or one ZIP file where it ends in .zip."
        ),
    ],
    *,
    to: Annotated[
        Literal["native", "mfava", "hat", "inline", "label-studio"], OUTPUT_FORMAT, Help("Default: native.")
    ] = "native",
    names: Annotated[
        bool, typer.Option("--names", help="Call annotators by the names that they chose. Default: by their ids.")
    ] = False,
    database: Database = None,
    json: JsonAccount = False,
) -> None:
    """Export what was annotated so far, while people work: every annotator's layer, gold, silver, and the history.

    What the format cannot hold is told; `native` holds everything.
    """

    loaded = project_at(project)
    with opened(loaded, database) as store:
        from veriglot.studio import export as exporting

        write = exporting.export_zip if out.suffix.lower() == ".zip" else exporting.export
        done = write(store, loaded, out, to, names=names)
    _tell_export(done, out, json=json)


def _tell_export(done: Exported, out: Path, *, json: bool) -> None:
    if json:
        print(json_module.dumps(msgspec.to_builtins(done), ensure_ascii=False, indent=2))
        return
    print(out)
    for file in done.files:
        print(f"  {file.path}  {file.rows:,} rows")
    for file in done.files:
        for what, count in file.lost.items():
            print(f"{file.path} cannot hold: {what.removeprefix('row: ')} ({count:,} rows).", file=sys.stderr)
    for what, count in done.beyond.items():
        print(f"The format cannot hold: {what} ({count:,}).", file=sys.stderr)
    for note in done.notes:
        print(note, file=sys.stderr)


@command
def settle(
    project: ProjectFile,
    rule: Annotated[
        Literal["agreed", "majority", "best-with-silver"],
        typer.Option(
            metavar="RULE",
            help="agreed: where all layers say the same. majority: what more than half mark; ties are left."
            " best-with-silver: from whoever agrees most with the silver layer, by language (mfava). Default: agreed.",
        ),
    ] = "agreed",
    language: Annotated[
        str | None, typer.Option("--only", metavar="TAG", help="Only items in this language. Default: all.")
    ] = None,
    overwrite: Annotated[Overwrite, Help("Here: also gold that a rule set or the data had; a lead's stays.")] = False,
    database: Database = None,
    json: JsonAccount = False,
) -> None:
    """Settle by a rule what two people or more annotated; what it cannot decide is left to a lead."""
    from veriglot.records.languages import get_language

    loaded = project_at(project)
    tag = None if language is None else get_language(language).tag
    with opened(loaded, database) as store:
        from veriglot.studio import adjudication as adjudicating

        rules: dict[str, adjudicating.Rule] = {
            "agreed": "agreed",
            "majority": "majority",
            "best-with-silver": "best_with_silver",
        }
        done = adjudicating.settle(store, loaded, rules[rule], language=tag, again=overwrite)
        with store.reading() as tx:
            names = {person.public_id: person.name for person in tx.people(tx.project(loaded.slug).id)}
    if json:
        print(json_module.dumps(msgspec.to_builtins(done), ensure_ascii=False, indent=2))
        return
    print(
        f"{done.settled:,} settled ({done.replaced:,} had a gold layer before), {done.left:,} left to a lead,"
        f" {done.unchanged:,} kept their gold layer ({done.by_hand:,} settled by hand)."
    )
    for tag, who in sorted(done.best.items()):
        print(f"  {tag}: from {names.get(who) or who}")


@command
def serve(
    projects: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROJECT...", show_default=False, help="Project files, as TOML, or their folders: one or several."
        ),
    ],
    *,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen; 0.0.0.0 for the network. Default: 127.0.0.1."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", metavar="N", min=1, max=65535, help="Port to listen at. Default: 8321.")
    ] = 8321,
    public_url: Annotated[PublicUrl, Help("Default: where it listens.")] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="Address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed;"
            " may be repeated. Default: none.",
        ),
    ] = None,
    open_api: Annotated[
        bool, typer.Option("--open-api", help="Let everybody read /api/openapi.json. Default: leads only.")
    ] = False,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request. Links hold keys: keep the log safe. Default: no.")
    ] = False,
    database: Database = None,
) -> None:
    """Serve the studio: annotators, reviewers and leads work in a browser, by links of `veriglot studio invite`.

    Ctrl+C stops it once running calls are done. Nothing is fetched from elsewhere, and nothing is sent there.

    \b
    Alone:         veriglot studio serve my-project/
    With a proxy:  veriglot studio serve my-project/ --public-url https://studio.example.org --trusted-proxy 127.0.0.1
    """

    read = [project_at(path) for path in projects]
    try:
        _serve(read, host, port, public_url, trusted_proxy or (), open_api=open_api, access_log=access_log, at=database)
    except ModuleNotFoundError as error:
        raise MissingExtraError("The studio", "studio") from error


def _serve(
    projects: Sequence[Project],
    host: str,
    port: int,
    base_url: str | None,
    proxies: Sequence[str],
    *,
    open_api: bool,
    access_log: bool,
    at: str | None,
) -> None:
    from veriglot.studio.app import serve as run
    from veriglot.studio.web import Settings, Studios

    local = host in {"127.0.0.1", "localhost", "::1"}
    settings = Settings(
        base_url=base_url,
        hosts=(host,),
        any_host=base_url is None and not local,
        trusted_proxies=tuple(proxies),
        open_api=open_api,
    )
    studios = Studios(projects, at)
    shown = base_url or f"http://{f'[{host}]' if ':' in host else host}:{port}"
    names = ", ".join(studio.project.name for studio in studios)
    print(f"Serving {names} at {shown} (Ctrl+C stops it).", file=sys.stderr)
    if base_url is None and not local:
        print(
            "veriglot: links and cookies travel unencrypted; put a proxy with HTTPS in front and set --public-url.",
            file=sys.stderr,
        )
    run(studios, settings, host=host, port=port, access_log=access_log)


app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


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
            help="Database, before the command: a file of SQLite, or postgresql://HOST/NAME. Default: as"
            " the project file says.",
        ),
    ] = None,
) -> None:
    """Annotate hallucinations in a team: projects, people, the studio, agreement, exports."""
    context.obj = {**(context.obj or {}), "database": database}


@app.command("init")
@command
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", show_default=False, help="Where project.toml is written.")
    ],
    *,
    preset: Annotated[
        str,
        typer.Option("--preset", metavar="NAME", help="mfava, hat, kang or halluverse. Default: mfava."),
    ] = "mfava",
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", metavar="PATH", help="What is annotated; may be repeated. Default: data.jsonl in FOLDER."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the project. Default: that of the folder."),
    ] = None,
    languages: Annotated[Languages, Help("Of the responses. Default: all.")] = None,
) -> None:
    """Write a project file to begin with, after one of the papers."""

    write_project(folder, preset, data or [], name, parts(languages or ""))


@app.command("import")
@command
def import_(
    project: ProjectFile,
    database: Database = None,
    json: JsonAccount = False,
) -> None:
    """Import the data that the project file names; what was imported before stays as it is.

    Rows that cannot become an item are told of, with their place, and the rest goes on; then it leaves with 3.
    """

    raise typer.Exit(import_data(project, database, json=json))


@app.command("invite")
@command
def invite(
    project: ProjectFile,
    *,
    role: Annotated[
        Literal["annotator", "reviewer", "lead"],
        typer.Option("--role", metavar="ROLE", help="annotator, reviewer or lead. Default: annotator."),
    ] = "annotator",
    count: Annotated[Count, Help("Links, 1000 at most. Default: 1.")] = 1,
    languages: Annotated[Languages, Help("Of their items. Default: all.")] = None,
    note: Annotated[
        str | None,
        typer.Option("--note", metavar="TEXT", help="For the lead's eyes, such as who is meant. Default: none."),
    ] = None,
    public_url: Annotated[PublicUrl, Help("Default: http://127.0.0.1:8321.")] = None,
    database: Database = None,
    json: JsonAccount = False,
) -> None:
    """Make links that people join by, one each. A link is shown once; only a hash of its key is kept."""

    if count > _MOST_LINKS:
        raise UsageError(f"{count:,} links are too many.", remedy=f"Ask for {_MOST_LINKS:,} at most.")
    url, tags = public_url or "http://127.0.0.1:8321", parts(languages or "")
    make_invitations(project, database, role, count, languages=tags, note=note, url=url, json=json)


@app.command("status")
@command
def status(project: ProjectFile, database: Database = None, json: JsonAccount = False) -> None:
    """Show how far the work is: items, people, assignments."""

    show_status(project, database, json=json)


@app.command("backup")
@command
def backup(
    project: ProjectFile,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", show_default=False, help="What to write: *.sqlite (a copy), or *.jsonl.gz (portable)."
        ),
    ],
    database: Database = None,
    json: JsonAccount = False,
) -> None:
    """Write everything into one file, while people work; it is read again to be sure."""

    make_backup(project, database, file, json=json)


@app.command("restore")
@command
def restore(
    project: ProjectFile,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="A file of `veriglot studio backup`.")
    ],
    database: Database = None,
    json: JsonAccount = False,
) -> None:
    """Bring a backup into a new database, of either kind. A database that holds anything is refused."""

    restore_backup(project, database, file, json=json)


app.command("agreement")(agreement)
app.command("export")(export)
app.command("settle")(settle)
app.command("serve")(serve)
