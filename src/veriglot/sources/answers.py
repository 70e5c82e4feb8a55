"""Asking a server for JSON: what was answered before comes from memory, what is refused for now is asked again."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.http import HttpError
from veriglot.provenance import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from veriglot.http import Response, Session
    from veriglot.sources.errors import SourceError
    from veriglot.sources.kept import Kept

__all__ = ["Answers"]

_LOG = logging.getLogger(__name__)


class Answers:
    """GET requests to one server, one after the other, as public services ask for.

    Args:
        session: the server; its rate, time-out and retries hold.
        kept: where answers are kept; None keeps none.
        retries: how many times a refusal that comes with status 200 (see `judge` of `get`) is asked again.
        wait: seconds to wait after such a refusal where the server names no time; doubled each time, at most 60.
    """

    def __init__(self, session: Session, kept: Kept | None = None, *, retries: int = 8, wait: float = 5.0) -> None:
        self.session = session
        self._kept = kept
        self._retries = retries
        self._wait = wait

    def get(
        self,
        path: str,
        params: Mapping[str, str],
        judge: Callable[[Response], SourceError | None] | None = None,
        *,
        label: str = "",
        none_if_missing: bool = False,
    ) -> Any:
        """The JSON of an answer.

        Args:
            path: what is put behind the session's address.
            params: the query.
            judge: looks at an answer of status 200 and says what is wrong with it; only answers with nothing wrong
                are kept.
            none_if_missing: a 404 that says so in JSON is the answer None, and kept; that of a wrong address is not.
            label: tells apart requests that look the same and are answered differently (random pages).

        Raises:
            HttpError: no usable answer after the session's attempts.
            SourceError: what `judge` said, after all attempts where it is retryable.
        """
        address = f"{self.session.base_url}/{path}"
        key = digest([address, label, *(part for pair in sorted(params.items()) for part in pair)])
        kept = self._kept.get(key) if self._kept is not None else None
        if kept is not None:
            return msgspec.json.decode(kept)
        try:
            response = self._ask(path, params, judge)
        except HttpError as error:
            if not (none_if_missing and error.status == 404 and error.body.startswith("{")):
                raise
            if self._kept is not None:
                self._kept.put(key, b"null")
            return None
        if self._kept is not None:
            self._kept.put(key, response.data)
        return response.json()

    def _ask(
        self, path: str, params: Mapping[str, str], judge: Callable[[Response], SourceError | None] | None
    ) -> Response:
        for attempt in range(self._retries + 1):
            response = self.session.get(path, params)
            trouble = judge(response) if judge is not None else None
            if trouble is None:
                return response
            if not trouble.retryable or attempt == self._retries:
                raise trouble
            wait = trouble.wait if trouble.wait is not None else min(60.0, self._wait * 2.0**attempt)
            _LOG.info("attempt %d: %s; next in %.2f s", attempt + 1, trouble.message, wait)
            time.sleep(wait)
        raise AssertionError("the loop above ends by returning or raising")
