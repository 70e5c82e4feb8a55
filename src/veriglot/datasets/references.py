"""Reference texts: what queries are written on and responses are held against."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from veriglot.errors import InputError
from veriglot.records import Evidence

__all__ = ["Part", "Reference", "reference_from"]

Part = Literal["lead", "text"]

_ID_KEYS = ("id", "page_id", "pageid")
_KEPT = ("page_id", "revision", "item", "categories", "unchecked")  # what of an article goes on with its queries


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text in one language that questions can be asked about.

    Attributes:
        id: unique among the references of a run.
        language: BCP 47 tag.
        text: what a question has to be answered from.
        title: its heading.
        url: where it stands.
        meta: what goes on with its queries: revision, categories, which part of the article it is ...
    """

    id: str
    language: str
    text: str
    title: str = ""
    url: str | None = None
    meta: dict[str, Any] = {}

    @property
    def evidence(self) -> Evidence:
        """The text as evidence of a sample."""
        return Evidence(self.text, title=self.title or None, language=self.language, url=self.url)


def reference_from(data: Any, *, part: Part = "lead") -> Reference:
    """A reference from a decoded JSON object, such as an article of `veriglot dataset articles`.

    Args:
        data: an object with `language`, `text` or `lead`, one of `id` (or `page_id`), `title` and `item`, and perhaps
            `url`.
        part: `lead` takes the section before the first heading, as the paper does (mFAVA, A.5), and the whole text
            where there is none; `text` takes all of it.

    Raises:
        InputError: it is no object, or has no text, no language or nothing that names it; `field` names what is
            missing.
    """
    if not isinstance(data, dict):
        raise InputError("a reference is a JSON object")
    language, title = data.get("language"), data.get("title")
    if part == "lead" and not str(data.get("lead") or "").strip():
        part = "text"
    text = data.get(part)
    if not isinstance(language, str) or not language:
        raise InputError("the reference states no language", field="language", remedy="Write its BCP 47 tag.")
    if not isinstance(text, str) or not text.strip():
        raise InputError("the reference has no text", field=part)
    number = next((data[key] for key in _ID_KEYS if data.get(key) not in (None, "")), None)
    if number is None and not title:
        number = data.get("item") or None  # whom it is about names it as well
    if number is None and not title:
        raise InputError("the reference has neither id nor title", field="id")
    named = f"{language}-{title if number is None else number}"
    return Reference(
        id=number if isinstance(number, str) and data.get("id") else named,
        language=language,
        text=text.strip(),
        title=title if isinstance(title, str) else "",
        url=data.get("url") if isinstance(data.get("url"), str) else None,
        meta={**{key: data[key] for key in _KEPT if data.get(key) not in (None, "", [])}, "part": part},
    )
