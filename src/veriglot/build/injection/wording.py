"""The prompts of injection: what stands in `prompts/injection.toml`, filled in."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from veriglot.build.prompts import known_language
from veriglot.formats.tags import parse_tags

__all__ = [
    "FORMS",
    "TAXONOMIES",
    "Form",
    "injection_types",
    "injection_version",
    "insert_prompt",
    "passage_prompt",
    "support_prompt",
]

Form = Literal["tags", "plain"]
FORMS: tuple[Form, ...] = ("tags", "plain")
TAXONOMIES = ("fava", "halluverse")


class _Type(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One type of error.

    Attributes:
        what: what it is.
        how: whether text is exchanged (`replace`), put in (`insert`), or the one or the other (`either`).
        examples: texts before and after.
        reference: whether the model has to see the reference for it.
    """

    what: str
    how: Literal["replace", "insert", "either"]
    examples: tuple[tuple[str, str], ...]
    reference: bool = False


class _Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    answer: str
    retell: str
    support: str
    reference: str
    kept: str
    tags: str
    plain: str
    replace: str
    insert: str
    fava: dict[str, _Type]
    halluverse: dict[str, _Type]

    def types(self, taxonomy: str) -> dict[str, _Type]:
        """The types of a taxonomy, in its order."""
        return self.fava if taxonomy == "fava" else self.halluverse


@cache
def _prompts() -> _Prompts:
    text = files("veriglot.build").joinpath("prompts", "injection.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Prompts)


def injection_version() -> str:
    """Name and version of the prompts, such as `injection@1`."""
    return f"injection@{_prompts().version}"


def injection_types(taxonomy: str) -> tuple[str, ...]:
    """The types of `fava` or `halluverse`, in the order of their taxonomy."""
    return tuple(_prompts().types(taxonomy))


def passage_prompt(tag: str, question: str, reference: str) -> str:
    """Asks for a passage that says what the reference says: the answer to a question, or a retelling without one."""
    prompts = _prompts()
    if question.strip():
        return prompts.answer.format(language=_named(tag), question=question, reference=reference).strip()
    return prompts.retell.format(language=_named(tag), reference=reference).strip()


def insert_prompt(
    taxonomy: str, type_: str, form: Form, tag: str, passage: str, *, reference: str = "", kept: tuple[str, ...] = ()
) -> str:
    """Asks for errors of one type.

    Args:
        taxonomy: `fava` or `halluverse`.
        type_: one of its types.
        form: how the reply says what was changed: by `tags`, or not at all (`plain`).
        tag: BCP 47 tag of the passage.
        passage: the text to put them into.
        reference: what the passage rests on; given to the model for the types that need it.
        kept: parts of the passage that are errors already.
    """
    prompts = _prompts()
    one = prompts.types(taxonomy)[type_]
    hows = {"replace": [prompts.replace], "insert": [prompts.insert], "either": [prompts.replace, prompts.insert]}
    shown = reference.strip() if one.reference or one.how == "insert" else ""
    values = {
        "name": type_,
        "what": one.what,
        "examples": _examples(one, form),
        "how": "\n".join(hows[one.how]),
        "language": _named(tag),
        "reference": _below(prompts.reference.format(reference=shown)) if shown else "",
        "kept": _below(prompts.kept.format(parts=", ".join(f'"{part}"' for part in kept))) if kept else "",
        "passage": passage,
    }
    template = prompts.tags if form == "tags" else prompts.plain
    return template.format(**values).strip()


def support_prompt(tag: str, statement: str, passage: str, reference: str) -> str:
    """Asks whether a reference supports a statement of a passage."""
    template = _prompts().support
    return template.format(language=_named(tag), statement=statement, passage=passage, reference=reference).strip()


def _below(text: str) -> str:
    return f"\n\n{text.strip()}"


def _examples(one: _Type, form: Form) -> str:
    if form == "tags":
        return "\n".join(f"- {before}\n  {after}" for before, after in one.examples)
    types = tuple(_prompts().fava)
    return "\n".join(
        f"Original: {before}\nEdited: {parse_tags(after, types, edits='mark').text}\n" for before, after in one.examples
    ).strip()


def _named(tag: str) -> str:
    entry = known_language(tag)
    return entry.name if entry else tag
