"""Made-up articles in many languages, filled from `articles.toml`, as seeds."""

from __future__ import annotations

import tomllib
from pathlib import Path

from veriglot.datasets.rules.material import Articles
from veriglot.records import Evidence, Sample

TEXTS = tomllib.loads(Path(__file__).with_name("articles.toml").read_text("utf-8"))
LANGUAGES = tuple(TEXTS)
WITH_PHRASES = tuple(tag for tag in LANGUAGES if tag != "sw")
UNSPACED = ("zh-Hans", "ja")


def seeds(*languages: str, number: int = 6) -> list[Sample]:
    """Two samples for each of some articles: two questions on one passage."""
    found = []
    for tag in languages or LANGUAGES:
        names, places = TEXTS[tag]["names"], TEXTS[tag]["places"]
        for n in range(number):
            name, place, other = names[n % 6], places[n % 6], places[(n + 2) % 6]
            values = {"name": name, "place": place, "other": other}
            values |= {"year": str(1731 + 17 * n), "later": str(1888 + 13 * n), "number": str(12 + 7 * n)}
            said = [line.format(**values) for line in TEXTS[tag]["sentences"]]
            passage = Evidence(("" if tag in UNSPACED else " ").join(said), title=place, language=tag)
            found += [
                Sample(f"{tag}-{n}-{k}", "", language=tag, question=f"{place} {name} {k}?", evidence=(passage,))
                for k in range(2)
            ]
    return found


def articles(*languages: str, number: int = 6, most: int = 100, seed: int = 1) -> Articles:
    """The same, collected."""
    found = Articles(most, seed)
    for sample in seeds(*languages, number=number):
        found.add(sample)
    return found
