"""Which guidelines somebody reads: the project's own, else the ones that Veriglot ships for its taxonomy.

Shipped ones are data files beside this one, `<taxonomy>.<language>.md`, in our own words after the papers: `fava` after
mFAVA (figure 8), `hat` after HAT (section 3.4), `support` after Kang et al. 2024 (section 5.1), `halluverse` after
HalluVerse25 (appendix B).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.annotate.guidelines.rendering import render
from veriglot.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from veriglot.annotate.project import Project

__all__ = ["Guidelines", "guidelines"]

_FALLBACK = "en"


class Guidelines(msgspec.Struct, frozen=True):
    """Guidelines to read.

    Attributes:
        language: that they are written in, as a tag.
        markdown: as their author wrote them.
        html: made of it by `render`.
    """

    language: str
    markdown: str
    html: str


def guidelines(project: Project, language: str) -> Guidelines:
    """The guidelines of a project in a language, or in the nearest that there are.

    The project's own come first: in the language, in its base language (`pt` for `pt-BR`), in English, in any. Only
    where a project has none of its own are the shipped ones taken; where its taxonomy has none, a list of its types.

    Raises:
        InputError: a file of the project cannot be read as UTF-8.
    """
    tag, markdown = _own(project, language) or _shipped(project, language) or (_FALLBACK, _listed(project))
    return Guidelines(tag, markdown, render(markdown))


def _own(project: Project, language: str) -> tuple[str, str] | None:
    own = project.entries.guidelines
    for tag in (*_tags(language), *own):
        if tag in own:
            path = project.place(own[tag])
            try:
                return tag, path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"the guidelines cannot be read: {error}", path=str(path)) from error
    return None


def _shipped(project: Project, language: str) -> tuple[str, str] | None:
    for tag in _tags(language):
        entry = files(__package__) / f"{project.form.taxonomy}.{tag}.md"
        if entry.is_file():
            return tag, entry.read_text("utf-8")
    return None


def _listed(project: Project) -> str:
    """The types or labels of a taxonomy of the project's own, with what they mean."""
    form = project.form
    choices = form.types or form.unit_labels or form.labels
    lines = [f"- **{choice.name}**: {choice.meaning}" for choice in choices]
    return "\n".join([f"# {project.name}", "", *lines, ""])


def _tags(language: str) -> Iterator[str]:
    """The tag, shorter and shorter, then English; only what can be a tag: it becomes a part of a file's name."""
    parts = [part for part in language.split("-") if part.isascii() and part.isalnum()]
    for length in range(len(parts), 0, -1):
        yield "-".join(parts[:length])
    yield _FALLBACK
