"""Calls for texts: the interface's words, the guidelines, whether the server is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from veriglot import __version__
from veriglot.annotate.guidelines import guidelines
from veriglot.web.studio.sessions import Asking  # noqa: TC001  FastAPI reads it
from veriglot.web.studio.showing import direction
from veriglot.web.studio.views import GuidelinesView, Health, WordsView
from veriglot.web.studio.wire import described, reply
from veriglot.web.studio.words import interface_languages, words_of

if TYPE_CHECKING:
    from veriglot.web.studio.studios import Studios

__all__ = ["router"]

router = APIRouter()


@router.get("/api/health", **described(Health))
def health(request: Request) -> Response:
    """Whether the server answers and reaches its databases."""
    studios: Studios = request.app.state.studios
    studios.healthy()
    return reply(Health("ok", __version__))


@router.get("/api/words/{language}", **described(WordsView))
def words(request: Request, language: str) -> Response:
    """The interface's words in a language; those that it lacks are English."""
    tag, found = words_of(language)
    studios: Studios = request.app.state.studios
    offered = sorted({tag for studio in studios for tag in interface_languages(studio.project)})
    return reply(WordsView(tag, direction("", tag), offered, found))


@router.get("/api/guidelines", **described(GuidelinesView, refusals=(401, 422)))
def guideline(caller: Asking, language: Annotated[str | None, Query(max_length=64)] = None) -> Response:
    """The guidelines of the project, in the language asked for where there are such."""
    found = guidelines(caller.studio.project, language or caller.person.language or "en")
    return reply(GuidelinesView(found.language, direction(found.markdown, found.language), found.html))
