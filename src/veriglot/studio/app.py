"""The studio's web app: routes, static files, request guard, and the server."""

from __future__ import annotations

from contextlib import asynccontextmanager, closing
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, FastAPI, Request, Response

from veriglot.http.server import Guard, PageFiles, files_below, json_response, run_server, server_of
from veriglot.records.settings import Record
from veriglot.signatures import __version__
from veriglot.studio import (
    adjudication,
    assignment,
    dashboard,
    exam,
    export,
    figures,
    item_list,
    people,
    rates,
    review,
    sign_in,
    texts,
)
from veriglot.studio.dashboard import MOST_IMPORTED
from veriglot.studio.tables import NotFound
from veriglot.studio.web import (
    Rates,
    Router,
    Settings,
    Studios,
    error_response,
    install_handlers,
    record_schemas,
    require_lead,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import uvicorn


__all__ = ["serve"]


_PAGES = (
    "/",
    "/join/{rest:path}",
    "/mark",
    "/mark/{rest:path}",
    "/exam",
    "/exam/{rest:path}",
    "/guidelines",
    "/lead",
    "/lead/{rest:path}",
)
page_router = APIRouter(include_in_schema=False)


@page_router.get("/page/{digest}/{name:path}")
def file(request: Request, digest: str, name: str) -> Response:
    """A file of the page."""
    page: PageFiles = request.app.state.page
    response = page.response(digest, name, request.headers.get("accept-encoding", ""))
    if response is None:
        raise NotFound("file")
    return response


def _index(request: Request) -> Response:
    page: PageFiles = request.app.state.page
    return page.index_response()


for _path in _PAGES:
    page_router.add_api_route(_path, _index, methods=["GET", "HEAD"])


@page_router.get("/api/openapi.json")
def open_api(request: Request) -> Response:
    """The OpenAPI description: for leads, and for everybody if the operator allows it."""
    if not request.app.state.settings.open_api:
        require_lead(request)
    return json_response(request.app.openapi())


class Health(Record):
    """Whether the server responds and reaches its databases."""

    status: Literal["ok"]
    version: str


health_router = Router()


@health_router.call("GET", "/api/health")
def health(request: Request) -> Health:
    """Whether the server responds and reaches its databases."""
    request.app.state.studios.check()
    return Health("ok", __version__)


_RULES = (people, assignment, exam, adjudication, review, dashboard, figures, item_list, rates, export, texts)
_PARTS = (*(rules.router for rules in _RULES), health_router, sign_in.router, page_router)
_THREADS = 16  # concurrent calls: each needs the database or the interpreter, so more would only wait


def _make_app(studios: Studios, settings: Settings) -> FastAPI:
    app = FastAPI(
        title="Veriglot Studio",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    sign_in.check_secret(studios)
    app.state.settings = settings
    app.state.studios = studios
    app.state.rates = Rates(settings.rates)
    app.state.figures = figures.FigureCache()
    app.state.page = PageFiles(dict(files_below(files("veriglot.studio") / "page")), settings.path)
    install_handlers(app)
    for part in _PARTS:
        app.include_router(part)
    app.openapi()["components"] = {"schemas": record_schemas()}
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = _THREADS
    yield
    app.state.figures.close()


def studio_server(studios: Studios, settings: Settings) -> uvicorn.Server:
    """A server, not yet running."""
    larger = {"/api/lead/import": (4 * MOST_IMPORTED // 3 + 1000, 600.0)}  # bytes in base64; seconds
    return server_of(Guard(_make_app(studios, settings), settings, error_response, "/api/", larger), settings)


def serve(studios: Studios, settings: Settings, announce: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; running calls are finished first.

    `announce` is called once the address is bound.

    Raises:
        VeriglotError: the server cannot listen at the address.
    """
    with closing(studios):
        run_server(settings, lambda _: studio_server(studios, settings), announce)
