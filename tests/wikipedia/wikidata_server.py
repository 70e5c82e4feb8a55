"""A small Wikidata on loopback: a real SPARQL engine (rdflib) over RDF of Wikidata's shape, with Blazegraph's manners.

An article is a resource of its own: `<https://de.wikipedia.org/wiki/X> schema:about wd:Q1 ; schema:isPartOf
<https://de.wikipedia.org/> ; schema:name "X"@de`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from misbehaving import Arrival, Faults, FaultyServer
from rdflib import RDF, RDFS, BNode, Graph, Literal, Namespace, URIRef
from rdflib.namespace import XSD

if TYPE_CHECKING:
    from collections.abc import Callable

WD = Namespace("http://www.wikidata.org/entity/")
WDT = Namespace("http://www.wikidata.org/prop/direct/")
WIKIBASE = Namespace("http://wikiba.se/ontology#")
SCHEMA = Namespace("http://schema.org/")


@dataclass
class Entity:
    """An item: what it is, where it has pages, what it is called.

    Attributes:
        sitelinks: edition -> title; other projects count too (`others`).
        facts: property -> values: numbers of items, dates as written, or None for "unknown value".
    """

    number: int
    sitelinks: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict)
    facts: dict[str, list[str | None]] = field(default_factory=dict)
    kind: str = "Q5"
    others: int = 0
    identifiers: dict[str, str] = field(default_factory=dict)


def graph_of(entities: list[Entity], things: dict[str, str]) -> Graph:
    """The RDF of entities, and of the things that they point to (number -> English name)."""
    graph = Graph()
    for entity in entities:
        item = WD[f"Q{entity.number}"]
        graph.add((item, WDT.P31, WD[entity.kind]))
        count = len(entity.sitelinks) + entity.others
        graph.add((item, WIKIBASE.sitelinks, Literal(count, datatype=XSD.integer)))
        for edition, title in entity.sitelinks.items():
            article = URIRef(f"https://{edition}.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}")
            graph.add((article, RDF.type, SCHEMA.Article))
            graph.add((article, SCHEMA.about, item))
            graph.add((article, SCHEMA.isPartOf, URIRef(f"https://{edition}.wikipedia.org/")))
            graph.add((article, SCHEMA.name, Literal(title, lang=edition)))
        for code, label in entity.labels.items():
            graph.add((item, RDFS.label, Literal(label, lang=code)))
        for name, text in entity.identifiers.items():
            graph.add((item, WDT[name], Literal(text)))
        for name, values in entity.facts.items():
            for value in values:
                graph.add((item, WDT[name], _value(value)))
    for number, label in things.items():
        graph.add((WD[number], RDFS.label, Literal(label, lang="en")))
    return graph


def _value(value: str | None) -> Any:
    if value is None:
        return BNode()
    return WD[value] if value.startswith("Q") else Literal(value)


class SparqlServer(FaultyServer):
    """A SPARQL endpoint at `/sparql`.

    Args:
        graph: what it holds.
        faults: see `FaultyServer`.
        too_much: query -> whether it takes longer than is allowed.
        cut_short: in the manner of too long a query: 500 with a Java exception, or (True) 200 and half an answer with
            the exception in it.
    """

    def __init__(
        self,
        graph: Graph,
        faults: Faults | None = None,
        *,
        too_much: Callable[[str], bool] = lambda query: False,
        cut_short: bool = False,
    ) -> None:
        super().__init__(faults)
        self.graph = graph
        self.too_much = too_much
        self.cut_short = cut_short
        self.refused = 0

    def handle(self, arrival: Arrival) -> tuple[int, Any]:
        if arrival.path != "/sparql" or arrival.query.get("format") != "json":
            return 404, b"<html>Not found</html>"
        query = arrival.query["query"]
        if self.too_much(query):
            self.refused += 1
            trace = (
                "java.util.concurrent.TimeoutException\n\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)"
            )
            if self.cut_short:
                return 200, ('{"head":{"vars":["item"]},"results":{"bindings":[' + trace).encode()
            return 500, f"SPARQL-QUERY: queryStr={query[:60]}\n{trace}".encode()
        data = self.graph.query(query).serialize(format="json")
        assert data is not None
        return 200, data


def sitelink_counts(query: str) -> list[int]:
    """The numbers of sitelinks that a query asks for."""
    found = re.search(r"VALUES \?sitelinks \{([^}]*)\}", query)
    return [int(number) for number in found[1].split()] if found else []
