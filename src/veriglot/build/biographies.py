"""Biographies: the same people asked about in every language (kang, section 2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.build.prompts import biography_languages, biography_prompt, prompt_version
from veriglot.errors import InputError
from veriglot.records import Sample, Task
from veriglot.run import FailedRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from veriglot.build.references import Reference

__all__ = ["KANG_SAMPLES", "Named", "biographies", "named_from"]

KANG_SAMPLES = 5  # responses a prompt

_NAMES = ("names", "labels", "titles")


class Named(msgspec.Struct, frozen=True):
    """A person.

    Attributes:
        id: of the person, such as the Wikidata item `Q42`.
        names: by BCP 47 tag.
        meta: what goes on with the prompts: page views, properties ...
    """

    id: str
    names: dict[str, str]
    meta: dict[str, Any] = {}


def named_from(data: Any) -> Named:
    """A person from a decoded JSON object, such as a row of `veriglot build people`.

    Args:
        data: an object with `id` (or `item`) and `names` by language (or `labels`, or `titles`); the first of these
            that has a language gives its name.

    Raises:
        InputError: it is no object, or has no id or no name.
    """
    if not isinstance(data, dict):
        raise InputError("a person is a JSON object")
    id_ = data.get("id") or data.get("item")
    if not isinstance(id_, str):
        raise InputError("the person has no id", field="id")
    names: dict[str, str] = {}
    for key in reversed(_NAMES):
        found = data.get(key)
        if isinstance(found, dict):
            names.update({tag: name for tag, name in found.items() if isinstance(name, str) and name.strip()})
    if not names:
        raise InputError("the person has no name in any language", field="names")
    meta = {key: value for key, value in data.items() if key not in {"id", "item", *_NAMES} and value is not None}
    return Named(id_, names, meta)


def biographies(
    people: Iterable[Named | FailedRow],
    languages: Sequence[str] | None = None,
    *,
    references: Mapping[tuple[str, str], Reference] | None = None,
) -> Iterator[Sample | FailedRow]:
    """A prompt for every person in every language, as a query with an empty response.

    Ask them with the design `runs` and five seeds for kang's five samples a prompt.

    Args:
        people: rows that could not be read pass through.
        languages: BCP 47 tags; kang's 19, which have prompts of their own, where None. Others are asked in English.
        references: what a response is held against, by person and language; queries without one have no evidence, and
            detectors will say so.

    Yields:
        Queries, id `<person>-<language>`; a `FailedRow` where a person has no name in a language.
    """
    for person in people:
        if isinstance(person, FailedRow):
            yield person
            continue
        for tag in biography_languages() if languages is None else languages:
            name = _name_in(person, tag)
            if name is None:
                yield FailedRow(f"{person.id} has no name in {tag}", field="names", id=f"{person.id}-{tag}")
                continue
            reference = (references or {}).get((person.id, tag))
            yield Sample(
                id=f"{person.id}-{tag}",
                response="",
                task=Task.BIOGRAPHY,
                language=tag,
                question=biography_prompt(tag, name),
                evidence=(reference.evidence,) if reference is not None else (),
                meta={
                    "person": person.id,
                    "name": name,
                    "prompt": prompt_version("biography"),
                    **_meta_in(person, tag),
                },
            )


def _name_in(person: Named, tag: str) -> str | None:
    """The name in a language: under its tag, or under the code without the script (`zh` for `zh-Hans`)."""
    return person.names.get(tag) or person.names.get(tag.partition("-")[0])


def _meta_in(person: Named, tag: str) -> dict[str, Any]:
    """What goes on with the prompt in one language: of the page views, those of that language."""
    views = person.meta.get("views")
    if not isinstance(views, dict):
        return person.meta
    found = views.get(tag, views.get(tag.partition("-")[0]))
    return {key: value for key, value in {**person.meta, "views": found}.items() if value is not None}
