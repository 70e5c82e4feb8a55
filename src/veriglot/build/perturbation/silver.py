"""Silver data by rule: the whole set as one output that goes on where it stopped."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.injection.silver import CHECK_VERSION, part_rows
from veriglot.build.perturbation.making import RULES_VERSION, make_row
from veriglot.build.perturbation.material import Material
from veriglot.build.perturbation.phrases import phrases_version
from veriglot.build.perturbation.planning import RULE_TAXONOMIES, planned_rows
from veriglot.errors import InputError
from veriglot.run import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.injection.made import Made
    from veriglot.build.perturbation.articles import Articles
    from veriglot.build.perturbation.planning import Planned, RuleSettings
    from veriglot.run import FailedRow, Tally

__all__ = ["quotable_languages", "rule_silver"]

_FEWEST_ARTICLES = 2  # what stands in one is put into another


def quotable_languages(articles: Articles) -> list[str]:
    """The languages with articles enough to make rows of."""
    return [tag for tag in articles.languages() if len(articles.of(tag)) >= _FEWEST_ARTICLES]


def rule_silver(
    output: Path,
    articles: Articles,
    settings: RuleSettings,
    *,
    inputs: Sequence[str] = (),
    options: dict[str, str | bool | None] | None = None,
    restart: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Make silver data by rule.

    Args:
        output: JSON lines of samples, annotated by `rules`. What was not taken goes to `rejected_path(output)`, the
            account to `account_path(output)`; both in the form of data that models make.
        articles: what is quoted; languages with a single article are left out.
        settings: what is made.
        inputs: paths of the files that the articles come from; other content refuses to continue.
        options: further settings that change the articles.
        restart: make the output anew.
        seen: called for every row that this call added.

    Returns:
        What became of all planned rows. One that 100 attempts did not make counts as done; the account tells.

    Raises:
        InputError: no language has two articles.
        UsageError: the output was begun otherwise.
    """
    languages = quotable_languages(articles)
    if not languages:
        raise InputError(
            "No language has two articles whose passages can be quoted.",
            remedy="Name files with evidence, and say their language with --language where they do not.",
        )
    stage: Stage[Planned] = Stage(
        output,
        signature=f"rules@{RULES_VERSION},{phrases_version()}",
        inputs=inputs,
        options={
            "settings": msgspec.json.encode(settings, order="deterministic").decode(),
            "check": f"check@{CHECK_VERSION}",
            **(options or {}),
        },
        finish=lambda rows, target: part_rows(rows, target, RULE_TAXONOMIES[settings.taxonomy]),
        restart=restart,
        maker="rules",
    )

    def work(rows: Iterator[Planned]) -> Iterator[Made]:
        for tag, planned in groupby(rows, key=attrgetter("language")):
            material = Material(tag, articles.of(tag))
            for one in planned:
                yield make_row(one, material, settings)

    return stage.run(planned_rows(languages, settings), work, seen=seen)
