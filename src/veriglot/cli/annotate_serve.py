"""`veriglot annotate serve`."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003  typer reads it
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from veriglot.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.annotate.project import Project

__all__ = ["serve"]


def serve(
    projects: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROJECT...", show_default=False, help="Project files, as TOML, or their folders: one or several."
        ),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 for the network. Default: 127.0.0.1.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", metavar="N", min=1, max=65535, help="Port to listen at. Default: 8321.")
    ] = 8321,
    base_url: Annotated[
        Optional[str],  # noqa: UP045  # typer reads it
        typer.Option(
            metavar="URL",
            show_default=False,
            help="Where people reach the studio, such as https://studio.example.org, or a path below a host."
            " Default: where it listens.",
        ),
    ] = None,
    trusted_proxy: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="ADDRESS",
            show_default=False,
            help="Address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed;"
            " may be given several times. Default: none.",
        ),
    ] = None,
    open_api: Annotated[
        bool, typer.Option("--open-api", help="Let everybody read /api/openapi.json. Default: leads only.")
    ] = False,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request. Links hold keys: keep the log safe. Default: no.")
    ] = False,
    database: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--database",
            metavar="URL",
            envvar="VERIGLOT_STUDIO_DATABASE",
            show_default=False,
            help="A file of SQLite, or postgresql://HOST/NAME, for all projects. Default: as the project files say.",
        ),
    ] = None,
) -> None:
    """Serve the studio: annotators, reviewers and leads work in a browser, by links of `veriglot annotate invite`.

    Ctrl+C stops it once running calls are done. Nothing is fetched from elsewhere, and nothing is sent there.

    \b
    Alone:         veriglot annotate serve my-project/
    With a proxy:  veriglot annotate serve my-project/ --base-url https://studio.example.org --trusted-proxy 127.0.0.1
    """
    from veriglot.cli.annotating import project_at

    read = [project_at(path) for path in projects]
    try:
        _serve(read, host, port, base_url, trusted_proxy or (), open_api=open_api, access_log=access_log, at=database)
    except ModuleNotFoundError as error:
        raise MissingExtraError("The studio", "annotate") from error


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
    from veriglot.web.studio.serving import serve as run
    from veriglot.web.studio.settings import Settings
    from veriglot.web.studio.studios import Studios

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
            "veriglot: links and cookies travel unencrypted; put a proxy with HTTPS in front and set --base-url.",
            file=sys.stderr,
        )
    run(studios, settings, host=host, port=port, access_log=access_log)
