"""The report of a study as the tests read it: written to a file, and parsed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from veriglot.report.study_page import write_study

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.study.results import StudyResults

VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}


class Page(HTMLParser):
    """The elements of a page as a tree of (tag, attributes, children)."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root: Node = Node("", {}, None)
        self._at = self.root
        self.text = text
        self.feed(text)
        self.close()
        assert self._at is self.root, f"<{self._at.tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs), self._at)
        self._at.children.append(node)
        if tag not in VOID:
            self._at = node

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._at.children.append(Node(tag, dict(attrs), self._at))

    def handle_endtag(self, tag: str) -> None:
        assert self._at.tag == tag, f"</{tag}> closes <{self._at.tag}>"
        assert self._at.parent is not None
        self._at = self._at.parent

    def handle_data(self, data: str) -> None:
        self._at.children.append(data)


class Node:
    def __init__(self, tag: str, attrs: dict[str, str | None], parent: Node | None) -> None:
        self.tag, self.attrs, self.parent = tag, attrs, parent
        self.children: list[Node | str] = []

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self) -> set[str]:
        return set((self.attrs.get("class") or "").split())

    def all(self, tag: str | None = None, class_: str | None = None) -> list[Node]:
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if (tag is None or child.tag == tag) and (class_ is None or class_ in child.classes):
                    found.append(child)
                found += child.all(tag, class_)
        return found


def page_of(results: StudyResults, folder: Path) -> Page:
    write_study(results, folder / "study.html")
    return Page((folder / "study.html").read_text("utf-8"))


def data_of(page: Page) -> dict[str, Any]:
    block = next(node for node in page.root.all("script") if node.attrs.get("id") == "data")
    return json.loads(block.text)
