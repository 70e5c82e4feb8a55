"""Asking a SPARQL server: queries in, rows out; queries that take it too long are told apart from other trouble.

The answers are of the W3C's "SPARQL 1.1 Query Results JSON Format".
"""

from __future__ import annotations

import logging
import time
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from veriglot.http import HttpError
from veriglot.sources.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from veriglot.http import Response
    from veriglot.sources.answers import Answers

__all__ = ["Sparql", "TooMuchError"]

_LOG = logging.getLogger(__name__)
_SIGNS_OF_TIMEOUT = ("TimeoutException", "Query deadline is expired", "QueryTimeoutException", "timed out")


class TooMuchError(SourceError):
    """The query takes the server longer than it allows: ask for less at a time."""


class Sparql:
    """A SPARQL server.

    Args:
        answers: the server; its session should make no retries of its own, as it cannot tell a query that takes too
            long, and is not faster later, from other trouble.
        path: of the endpoint.
        retries: how many times a query is sent again after trouble that passes.
        wait: seconds before the first time; doubled each time, at most 60. What the server asks for is waited besides.
    """

    def __init__(self, answers: Answers, path: str = "sparql", *, retries: int = 6, wait: float = 1.0) -> None:
        self._answers = answers
        self._path = path
        self._retries = retries
        self._wait = wait

    def ask(self, name: str, **values: str) -> list[dict[str, str]]:
        """The rows of a query.

        Args:
            name: of a file in `queries/`.
            values: what stands there for `$name`.

        Returns:
            One dict a row, variable -> value, without those that are unbound or blank nodes ("unknown value").

        Raises:
            TooMuchError: the server ran out of the time that it allows.
            SourceError: the answer has not the form of results.
            HttpError: no usable answer.
        """
        text = files(__package__).joinpath("queries", f"{name}.rq").read_text("utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        query = Template("\n".join(lines)).substitute(values)
        answer = self._answer(name, query)
        return [_row(binding) for binding in answer["results"]["bindings"]]

    def _answer(self, name: str, query: str) -> Any:
        for attempt in range(self._retries + 1):
            try:
                return self._answers.get(self._path, {"query": query, "format": "json"}, self._judge)
            except HttpError as error:
                if _took_too_long(error):
                    raise TooMuchError(f"The query {name} takes the server too long.", code="timeout") from error
                told_to_wait = error.retry_after or 0.0
                if told_to_wait > self._answers.session.longest_wait:
                    raise  # who asks again before shuts out all who come from here
                if not error.retryable or error.trouble == "closed" or attempt == self._retries:
                    raise
                _LOG.info("attempt %d: %s", attempt + 1, error.message)
                time.sleep(min(60.0, self._wait * 2.0**attempt))
        raise AssertionError("the loop above ends by returning or raising")

    def _judge(self, response: Response) -> SourceError | None:
        answer = response.json()
        if isinstance(answer, dict) and isinstance(answer.get("results", {}), dict):
            bindings = answer.get("results", {}).get("bindings")
            if isinstance(bindings, list):
                return None
        return SourceError(
            f"{self._answers.session.base_url}/{self._path} does not answer with SPARQL results",
            remedy="Check the address.",
        )


def _took_too_long(error: HttpError) -> bool:
    if error.status == 504 or (error.status is None and error.trouble == "timeout"):
        return True
    # Blazegraph sends 200 first and its exception later, in the middle of what should be JSON.
    said = f"{error.body} {error.message}"
    return (error.trouble == "json" or error.status == 500) and any(sign in said for sign in _SIGNS_OF_TIMEOUT)


def _row(binding: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    row = {}
    for name, value in binding.items():
        if value.get("type") == "bnode" or "/.well-known/genid/" in value.get("value", ""):
            continue
        row[name] = value["value"]
        if "xml:lang" in value:
            row[f"{name}@"] = value["xml:lang"]
    return row
