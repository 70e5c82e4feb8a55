"""How often articles are read: the page views that Wikimedia publishes.

https://doc.wikimedia.org/generated-data-platform/aqs/analytics-api/reference/page-views.html
"""

from __future__ import annotations

import calendar
from typing import TYPE_CHECKING
from urllib.parse import quote

from veriglot.errors import UsageError
from veriglot.sources.answers import Answers
from veriglot.sources.editions import edition_of

if TYPE_CHECKING:
    from datetime import date

    from veriglot.http import Session
    from veriglot.sources.kept import Kept

__all__ = ["PageViews"]

_FIRST = 2015_07  # months before have no counts of this kind


class PageViews:
    """The views of articles by people, bots and crawlers left out, month by month.

    Args:
        session: the server, such as `Session("https://wikimedia.org/api/rest_v1", user_agent=...)`.
        kept: where answers are kept.
    """

    def __init__(self, session: Session, *, kept: Kept | None = None) -> None:
        self._answers = Answers(session, kept)

    def of(self, language: str, title: str, start: date, end: date) -> int | None:
        """The views of an article in a period.

        Args:
            language: which Wikipedia.
            title: the article's.
            start: first day; has to be the first of a month.
            end: the day after the last; the first of a month (kang: 2022-01-01 to 2023-01-01 is the year 2022).

        Returns:
            The number of views; None where the server has no count, which means few views as well as a wrong title.

        Raises:
            UsageError: a period that is not of whole months, is empty, or begins before July 2015.
            HttpError: no usable answer.
        """
        _check(start, end)
        last = end.replace(year=end.year - (end.month == 1), month=(end.month - 2) % 12 + 1)
        days = calendar.monthrange(last.year, last.month)[1]
        project = f"{edition_of(language)}.wikipedia"
        article = quote(title.replace(" ", "_"), safe="")
        path = f"metrics/pageviews/per-article/{project}/all-access/user/{article}/monthly"
        address = f"{path}/{start:%Y%m%d}00/{last:%Y%m}{days:02}00"
        answer = self._answers.get(address, {}, none_if_missing=True)
        return sum(int(month["views"]) for month in answer["items"]) if answer is not None else None


def _check(start: date, end: date) -> None:
    if start.day != 1 or end.day != 1 or start >= end:
        raise UsageError(
            f"Page views from {start} to {end} cannot be had: they are counted by month.",
            remedy="Give the first of two months, the later one excluded, such as 2022-01-01 and 2023-01-01.",
        )
    if start.year * 100 + start.month < _FIRST:
        raise UsageError("There are no counts of page views before July 2015.")
