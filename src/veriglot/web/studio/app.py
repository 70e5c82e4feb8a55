"""The studio's app: everything put together."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request, Response

from veriglot import __version__
from veriglot.web.studio import api_export, api_items, api_joining, api_lead, api_texts, api_work, failures, page_files
from veriglot.web.studio.guard import Guard
from veriglot.web.studio.rates import Rates
from veriglot.web.studio.sessions import leading
from veriglot.web.studio.showing import Kept, Shown
from veriglot.web.studio.wire import components, reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp

    from veriglot.web.studio.settings import Settings
    from veriglot.web.studio.studios import Studios

__all__ = ["make_app", "make_guarded"]

_THREADS = 16  # calls in work at once: each holds the database or the interpreter, so more would only wait


def make_app(studios: Studios, settings: Settings) -> FastAPI:
    """The app without its guard: for its OpenAPI. Serve `make_guarded`."""
    app = FastAPI(
        title="Veriglot Studio",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.studios = studios
    app.state.rates = Rates(settings.rates)
    app.state.shown = Shown()
    app.state.given = Kept(100_000)
    app.state.page = page_files.PageFiles(settings)
    failures.install(app)
    for part in (api_joining, api_texts, api_work, api_lead, api_items, api_export):
        app.include_router(part.router)
    app.add_api_route("/api/openapi.json", _open_api, methods=["GET"], include_in_schema=False)
    app.include_router(page_files.router)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = _THREADS
    yield


def make_guarded(studios: Studios, settings: Settings) -> ASGIApp:
    """What is served."""
    return Guard(make_app(studios, settings), settings)


def _open_api(request: Request) -> Response:
    """The API described: for leads, and for all where the operator allows it."""
    if not request.app.state.settings.open_api:
        leading(request)
    return reply(request.app.openapi())


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        said = FastAPI.openapi(app)
        said.setdefault("components", {}).setdefault("schemas", {}).update(components())
        app.openapi_schema = said
    return app.openapi_schema
