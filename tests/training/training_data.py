"""Training data of our own: articles to quote, answered questions, and a count of their words."""

from __future__ import annotations

from veriglot.records import Annotation, Evidence, Kind, Sample, Span, Task
from veriglot.training.grounding.examples import Answer, Article
from veriglot.training.grounding.synthetic_data import WordFrequencies

TOWNS = ("Lennby", "Ostrava", "Karvik", "Monteluna", "Bergau", "Santeiro", "Halvik", "Dorrenheim", "Velika", "Aspen")
MAYORS = ("Holm", "Becker", "Novak", "Ricci", "Lindqvist", "Duarte", "Kovacs", "Moreau", "Petrov", "Jansen")


def english(n: int) -> str:
    town, mayor, other = TOWNS[n % 10], MAYORS[(3 * n + 1) % 10], TOWNS[(n + 3) % 10]
    return (
        f"The town of {town} lies on the river, {20 + n} kilometres (by road) from {other}."
        f" It was founded in {1200 + 7 * n} by settlers from {other}."
        f" In {1800 + n} Mayor {mayor} opened the first school, a mill, and a library."
        f" The population, which had grown slowly, reached {1000 + 13 * n} people that year."
        f" Today the market of {town} sells cheese, wool and honey."
        f" Every summer the family {mayor} organises a race from {town} to {other}."
    )


def german(n: int) -> str:
    town, mayor, other = TOWNS[(n + 5) % 10], MAYORS[(7 * n + 2) % 10], TOWNS[(n + 1) % 10]
    return (
        f"Die Stadt {town} liegt am Fluss, {15 + n} Kilometer (auf der Straße) von {other} entfernt."
        f" Gegründet wurde sie {1100 + 9 * n} von Siedlern aus {other}."
        f" Im Jahr {1790 + n} eröffnete Bürgermeister {mayor} die erste Schule und eine Mühle."
        f" Die Bevölkerung, die langsam gewachsen war, erreichte {900 + 17 * n} Einwohner."
        f" Heute verkauft der Markt von {town} Käse, Wolle und Honig."
        f" Jeden Sommer veranstaltet die Familie {mayor} ein Rennen."
    )


def chinese(n: int) -> str:
    return (
        f"石桥镇位于莲河北岸，距离省城约{30 + n}公里，交通十分便利。"
        f"该镇建于{1300 + 11 * n}年，最初是一个渔村和码头。"
        f"{1850 + n}年，镇长在河边开办了第一所学校和图书馆。"
        f"镇上的人口增长缓慢，当年达到{2000 + 19 * n}人左右。"
        "如今镇上的集市出售奶酪、羊毛和蜂蜜等农产品。"
        "每年夏天镇上都会举行从码头到石桥的赛跑。"
    )


WRITERS = {"en": english, "de": german, "zh": chinese}


def articles(language: str, count: int) -> list[Article]:
    return [
        Article(f"{language}{n}", language, (WRITERS[language](n),), ("When was the town founded?",))
        for n in range(count)
    ]


def answers(count: int) -> list[Answer]:
    found = []
    for n in range(count):
        passage = english(n)
        for question, text in (
            ("In which year was the town founded by settlers?", str(1200 + 7 * n)),
            ("Which mayor opened the first school?", f"Mayor {MAYORS[(3 * n + 1) % 10]}"),
        ):
            found.append(Answer("en", passage, question, text))
    return found


def counted(*languages: str, count: int = 40) -> WordFrequencies:
    frequencies = WordFrequencies()
    for language in languages:
        frequencies.count([WRITERS[language](n) for n in range(count)], language)
    return frequencies


def article_samples(language: str, count: int) -> list[Sample]:
    return [
        Sample(f"{language}-{n}", "", Task.OPEN, language, "When?", (Evidence(WRITERS[language](n)),))
        for n in range(count)
    ]


def silver(id_: str, language: str, reference: str, response: str, *marks: tuple[str, str], **meta: object) -> Sample:
    """A sample that a model labelled; each mark is a text of the response and its type."""
    spans = tuple(
        Span(response.index(text), response.index(text) + len(text), type_, text=text) for text, type_ in marks
    )
    layer = Annotation("gpt", Kind.MODEL, "fava", spans)
    return Sample(
        id_, response, Task.OPEN, language, None, (Evidence(reference),), annotations=(layer,), meta=dict(meta)
    )
