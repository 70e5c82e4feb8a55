"""The action API of a MediaWiki server: queries with continuation, `maxlag`, and errors that come with status 200.

https://www.mediawiki.org/wiki/API:Query, API:Continue, Manual:Maxlag parameter, API:Etiquette.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

from veriglot.http.waiting import retry_after
from veriglot.sources.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from veriglot.http import Response
    from veriglot.sources.answers import Answers

__all__ = ["MediaWiki"]

_LOG = logging.getLogger(__name__)
_FOR_NOW = {"maxlag", "ratelimited", "readonly", "timeouterror", "internal_api_error_DBQueryTimeoutError"}


class MediaWiki:
    """One wiki's action API.

    Args:
        answers: the server.
        path: where the API is behind the server's address.
        maxlag: seconds; the server refuses while its copies lag further behind than this, so that no reader of theirs
            waits for us, and we ask again later. The servers' operators ask for 5. None leaves it out.

    Attributes:
        warnings: what the server warned of -> how often.
    """

    def __init__(self, answers: Answers, path: str = "w/api.php", *, maxlag: int | None = 5) -> None:
        self._answers = answers
        self._path = path
        self._fixed = {"action": "query", "format": "json", "formatversion": "2"}
        if maxlag is not None:
            self._fixed["maxlag"] = str(maxlag)
        self.warnings: Counter[str] = Counter()

    def query(self, params: Mapping[str, str], *, label: str = "") -> Iterator[dict[str, Any]]:
        """The parts of the answer to `action=query`, each complete, over as many requests as it takes.

        Where several requests are needed for the properties of one batch of pages, what they say of a page is put
        together before the batch is given out.

        Args:
            params: parameters of the query; those that every query needs are added.
            label: see `Answers.get`.

        Yields:
            `query` of a whole batch: `pages` in the order in which the server first named them, lists joined.

        Raises:
            SourceError: the server refuses.
            HttpError: no usable answer.
        """
        batch: dict[str, Any] = {}
        onward: dict[str, str] = {}
        been: set[tuple[tuple[str, str], ...]] = set()
        while True:
            answer = self._ask({**self._fixed, **params, **onward}, label)
            _join(batch, answer.get("query", {}))
            following = {name: str(value) for name, value in answer.get("continue", {}).items()}
            if answer.get("batchcomplete") or not following:
                yield batch
                batch = {}
            if not following:
                return
            place = tuple(sorted(following.items()))
            if place in been:
                raise SourceError(
                    f"{self._answers.session.base_url} leads in a circle: it goes on at {following} again",
                    remedy="Check that the address is that of a MediaWiki server.",
                )
            been.add(place)
            onward = following

    def _ask(self, params: Mapping[str, str], label: str) -> dict[str, Any]:
        answer = self._answers.get(self._path, params, self._judge, label=label)
        for module, warning in answer.get("warnings", {}).items():
            text = f"{module}: {warning.get('warnings') or warning}"
            if not self.warnings[text]:
                _LOG.warning("%s warns of %s", self._answers.session.base_url, text)
            self.warnings[text] += 1
        return answer  # type: ignore[no-any-return]

    def _judge(self, response: Response) -> SourceError | None:
        answer = response.json()
        if not isinstance(answer, dict):
            return SourceError(
                f"{self._answers.session.base_url}/{self._path} does not answer as MediaWiki does",
                remedy="Check the address.",
            )
        error = answer.get("error")
        if error is None:
            return None
        code, info = str(error.get("code", "")), str(error.get("info", ""))
        retryable = code in _FOR_NOW or code.startswith("internal_api_error")
        return SourceError(
            f"{self._answers.session.base_url} refuses: {info or code} ({code})",
            remedy="Try again later; what is fetched is kept." if retryable else "",
            code=code,
            retryable=retryable,
            wait=retry_after(response.headers) if retryable else None,
        )


def _join(batch: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of an answer to what is there of the batch."""
    for name, value in part.items():
        if name == "pages":
            pages = batch.setdefault("pages", {})
            for page in value:
                _add(pages.setdefault(page.get("pageid") or page.get("title"), {}), page)
        elif isinstance(value, list):
            batch.setdefault(name, []).extend(value)
        elif isinstance(value, dict):
            batch.setdefault(name, {}).update(value)
        else:
            batch[name] = value


def _add(known: dict[str, Any], page: Mapping[str, Any]) -> None:
    """Add what an answer says of a page; lists are joined, without repetition."""
    for name, value in page.items():
        if isinstance(value, list):
            there = known.setdefault(name, [])
            there += [one for one in value if one not in there]
        else:
            known[name] = value
