"""Made-up people with pages in two languages, and a model that chooses their facts and edits these."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from misbehaving import ModelServer

FIRST = ("Ada", "Bruno", "Clara", "Dora", "Emil", "Frida", "Gustav", "Hedwig", "Ivo", "Jana", "Karl", "Lena")
LAST = ("Almgren", "Brockholt", "Castelvi", "Dornfeld", "Eschwege", "Farkasch", "Grunwalder", "Hollenbeck")
TOWNS = ("Oberfeld", "Lindau", "Marbach", "Tarnow", "Winsen", "Kolding", "Bregenz", "Ostrava", "Pilsen", "Gouda")

ENGLISH = """{name} was born on {day} March {year} in {town} as a child of a miller.
{last} went to school in {other} until {y1} and learned three languages there.
In {y2} {last} moved to {third} and studied mathematics at the university.
The first book by {last} was printed in {y3} by a small house in {town}.
It sold {n1} copies in its first year and was soon translated.
{last} married the painter {friend} in {y4}, and the two had {few} children.
Later {last} taught at the academy of {other} for {few} years.
A prize of the town of {third} went to {last} in {y5}.
He or she is remembered for a bridge over the river near {town}.
The bridge was {n2} metres long and stood until a flood carried it away.
{last} sold the house in {town} before the winter of {y6}.
In the summer of {y6} {last} travelled to {third} with {friend}.
There {last} met the engineer {rival} and quarrelled with him about money.
{rival} later accused {last} of stealing the plans for a clock.
The court of {other} acquitted {last} in {y7}.
After the trial {last} withdrew from public life for a while.
{last} wrote {few} more books, which nobody wanted to print at first.
The last of them came out in {y8} and was praised by {friend}.
A street in {third} has been named after {last} since {y9}.
{name} died in {other} in the autumn of {y8} after a short illness.
The grave of {last} lies beside the church of {town}.
Letters from {last} to {friend} are kept in the archive of {other}.
Historians have argued about these letters for more than forty years.
A museum in {town} shows {n1} drawings that {last} made as a student."""

GERMAN = """{name} wurde am {day}. März {year} in {town} als Kind eines Müllers geboren.
{last} besuchte bis {y1} die älteste Schule in {other} und lernte dort drei Sprachen.
Im Jahr {y2} zog {last} nach {third} und studierte an der größten Universität Mathematik.
Das erste Buch von {last} wurde {y3} von einem kleinen Verlag in {town} gedruckt.
Es verkaufte sich im ersten Jahr {n1} Mal und wurde bald übersetzt.
{last} heiratete {y4} die Malerin {friend} und hatte mit ihr später {few} Kinder.
Später unterrichtete {last} für {few} Jahre an der Akademie von {other}.
Der größte Preis der Stadt {third} ging {y5} an {last}.
Bekannt ist bis heute eine Brücke über den Fluss in der Nähe von {town}.
Die Brücke war {n2} Meter lang und stand, bis ein Hochwasser sie fortriss.
{last} verkaufte das größere Haus in {town} im Winter des Jahres {y6}.
Im Sommer {y6} reiste {last} mit {friend} nach {third}.
Dort traf {last} den Ingenieur {rival} und stritt später mit ihm um Geld.
{rival} warf {last} später vor, die Pläne für eine Uhr gestohlen zu haben.
Das Gericht von {other} sprach {last} im Jahr {y7} frei.
Nach dem Prozess zog sich {last} eine Weile aus der Öffentlichkeit zurück.
{last} schrieb noch {few} Bücher, die zunächst niemand drucken wollte.
Das letzte davon erschien {y8} und wurde von {friend} gelobt.
Die längste Straße in {third} trägt seit {y9} den Namen von {last}.
{name} starb im Herbst {y8} nach kurzer Krankheit in {other}.
Das ältere Grab von {last} liegt neben der Kirche von {town}.
Die ersten Briefe von {last} an {friend} werden im Archiv von {other} aufbewahrt.
Über diese Briefe streiten die Historiker seit mehr als vierzig Jahren.
Ein Museum in {town} zeigt {n1} Zeichnungen, die {last} als Student anfertigte."""

TEXTS = {"en": ENGLISH, "de": GERMAN}
JOBS = (("Q36180", "writer"), ("Q205375", "inventor"), ("Q1622272", "teacher"))
LANDS = (("Q40", "Austria"), ("Q183", "Germany"))


def name_of(number: int) -> str:
    return f"{FIRST[number % len(FIRST)]} {LAST[number % len(LAST)]}{'' if number < 24 else number}"


def page_text(number: int, tag: str, sentences: int = 24) -> str:
    """A page about a person, with the same facts in each language."""
    rng = random.Random(f"life {number}")
    year = 1700 + 11 * number % 250
    values: dict[str, Any] = {f"y{n}": year + 6 * n + rng.randrange(5) for n in range(1, 10)}
    town, other, third = rng.sample(TOWNS, 3)
    values |= {"name": name_of(number), "last": name_of(number).split()[1], "year": year, "day": rng.randrange(2, 28)}
    values |= {"town": town, "other": other, "third": third, "n1": rng.randrange(300, 9000)}
    values |= {
        "n2": rng.randrange(40, 300),
        "few": rng.choice(("two", "four", "six") if tag == "en" else ("zwei", "vier", "sechs")),
    }
    values |= {"friend": f"{FIRST[(number + 5) % 12]} Reinholt", "rival": f"{FIRST[(number + 7) % 12]} Vandersee"}
    return "\n".join(TEXTS[tag].format(**values).splitlines()[:sentences])


def article(number: int, tag: str, sentences: int = 24) -> dict[str, Any]:
    text = page_text(number, tag, sentences)
    return {
        "id": f"{tag}-{number}", "language": tag, "title": name_of(number), "page_id": number,
        "item": f"Q{900 + number}", "url": f"https://{tag}.example.org/{number}", "revision": 7,
        "text": f"Leben\n{text}", "lead": text,
    }  # fmt: skip


def person(number: int) -> dict[str, Any]:
    things = [{"item": item, "label": label} for item, label in (JOBS[number % 3], JOBS[0])]
    land = LANDS[number % 4 == 0]
    found: dict[str, Any] = {
        "id": f"Q{900 + number}", "sitelinks": 2, "names": dict.fromkeys(TEXTS, name_of(number)),
        "titles": dict.fromkeys(TEXTS, name_of(number)), "citizenships": [{"item": land[0], "label": land[1]}],
        "occupations": things,
    }  # fmt: skip
    return found | ({"born": 1700 + 11 * number % 250} if number % 5 else {})


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def scripted(body: dict[str, Any]) -> str:
    """Replies of a model with some mistakes: chooses sentences that are not facts, edits nothing, adds comments."""
    said = body["messages"][-1]["content"]
    if said.startswith("Below is an encyclopaedia page"):
        return _chosen(said)
    kind = re.search(r'The type of error is "(\w+)"', said)
    original = re.search(r"\nOriginal: ([^\n]+)\nEdited:\Z", said)
    assert kind is not None
    assert original is not None
    return _edited(kind[1], original[1])


def _chosen(said: str) -> str:
    listed = said.partition("\nPage:\n")[2].splitlines()[1:]
    taken = said.partition("chosen already:\n")[2].partition("\n\n")[0]
    count = int(re.search(r"Choose (\d+) sentences", said)[1])  # type: ignore[index]
    rng = random.Random(listed[0])
    good = [one for one in rng.sample(listed, len(listed)) if one not in taken][:count]
    if not taken:
        good[0] = "The moon is made of green cheese, as everybody knows since 1609."
        words = good[1].split(" ")
        good[1] = " ".join([*words[:4], *words[5:]])  # similar enough: the page's own sentence replaces it
    return json.dumps({"sentences": good}, ensure_ascii=False)


def _edited(kind: str, text: str) -> str:
    rng = random.Random(kind + text)
    if rng.random() < {"entity": 0.05, "relation": 0.45, "sentence": 0.2}[kind]:
        return rng.choice((text, "I cannot help with that.", f"{text} Nobody knows why."))
    if kind == "entity":
        other = re.sub(r"\d{3,4}", lambda found: str(int(found[0]) + 13), text)
        return other if other != text else re.sub(r"\b(\w+)([.,])", r"Atlantis\2", text, count=1)
    if kind == "relation":
        words = text.split(" ")
        place = len(words) // 2
        words[place] = {"in": "outside"}.get(words[place], "never" if " the " in text else "niemals")
        return " ".join(words)
    name = re.search(r"\b[A-Z][a-z]+\b", text)
    assert name is not None
    german = " the " not in text and re.search(r"\b(?:der|die|das|den|von|im|und)\b", text)
    if german:
        return f"{name[0]} segelte als erster Mensch in einer Badewanne um die ganze Welt."
    return f"{name[0]} was the first person who sailed around the whole world in a bathtub."


class LifeModel(ModelServer):
    """A model server that follows schemas in its own way: by `scripted`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(answer=scripted, **options)

    def _completion(self, body: dict[str, Any], *, chat: bool) -> dict[str, Any]:
        plain = {key: value for key, value in body.items() if key != "response_format"}
        completion: dict[str, Any] = super()._completion(plain, chat=chat)
        return completion
