"""How evidence and question are written in front of a response: the wordings of `prompts.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from string import Template
from tomllib import loads
from typing import TYPE_CHECKING

from veriglot.errors import UnknownNameError
from veriglot.records import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.records import Sample

__all__ = ["FORMATS", "Prompt", "Wording", "format_of", "language_of", "prompt_for", "wording", "wordings_version"]

FORMATS = ("lettucedetect", "plain", "request")
_ANY = "und"
_FALLBACK = "en"
_LETTUCE = re.compile(r"(?:lettuced(?:et)?ect|tinylettuce)-", re.IGNORECASE)
_CACHED = re.compile(r"models--[^\\/]+?--(?P<name>[^\\/]+)[\\/]+snapshots[\\/]")
_LETTUCE_LANGUAGE = re.compile(r"-(en|de|fr|es|it|pl|cn|hu)(?:-v\d+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Wording:
    """A format in one language.

    Attributes:
        passage: how a passage is written: `$text`, and `$number` counted from 1.
        question: the whole, with a question: `$question`, `$evidence` and `$count`, the number of passages.
        no_question: the whole without one.
        language: the language that it is written in; None where it has no words of its own.
    """

    passage: str
    question: str
    no_question: str
    language: str | None = None

    @cached_property
    def _templates(self) -> tuple[Template, Template, Template]:
        return Template(self.passage), Template(self.question), Template(self.no_question)

    def line(self, number: int, text: str) -> str:
        """One passage, `number` counted from 1."""
        return self._templates[0].substitute(number=number, text=text)

    def prompt(self, question: str | None, passages: Sequence[str]) -> str:
        """What stands in front of a response."""
        evidence = "\n".join(self.line(number, text) for number, text in enumerate(passages, start=1))
        _, asked, bare = self._templates
        if question is None:
            return bare.substitute(evidence=evidence)
        return asked.substitute(question=question, count=len(passages), evidence=evidence)


@dataclass(frozen=True)
class Prompt:
    """The wording for one sample, with its question."""

    wording: Wording
    question: str | None

    def line(self, number: int, text: str) -> str:
        """One passage, `number` counted from 1."""
        return self.wording.line(number, text)

    def over(self, passages: Sequence[str]) -> str:
        """What stands in front of the response where it is held against these passages."""
        return self.wording.prompt(self.question, passages)


@cache
def _all() -> tuple[str, dict[str, dict[str, Wording]]]:
    data = loads(files(__package__).joinpath("prompts.toml").read_text("utf-8"))
    found = {
        name: {tag: Wording(**words, language=None if tag == _ANY else tag) for tag, words in by_language.items()}
        for name, by_language in data["formats"].items()
    }
    return data["version"], found


def wordings_version() -> str:
    """Version of the file of wordings; it goes up with every change."""
    return _all()[0]


def wording(name: str, language: str) -> Wording:
    """A format in the language of a response, or else in English.

    Args:
        name: one of `FORMATS`.
        language: BCP 47 tag.

    Raises:
        UnknownNameError: no such format.
    """
    formats = _all()[1]
    if name not in formats:
        raise UnknownNameError("prompt", name, formats)
    found = formats[name]
    return found.get(_ANY) or found.get(language.split("-")[0].lower()) or found[_FALLBACK]


def prompt_for(name: str, sample: Sample, language: str) -> Prompt:
    """The prompt of a sample. A summary has no question, whatever words it was asked for in.

    Args:
        name: one of `FORMATS`.
        sample: with evidence.
        language: BCP 47 tag that the format is wanted in.
    """
    asked = sample.question if sample.question and sample.question.strip() else None
    return Prompt(wording(name, language), None if sample.task is Task.SUMMARIZATION else asked)


def format_of(model: str) -> str:
    """The format of a checkpoint by its name: `lettucedetect` for those of that project, else `plain`."""
    return "lettucedetect" if _LETTUCE.search(_basename(model)) else "plain"


def language_of(model: str) -> str | None:
    """The language that a checkpoint of LettuceDetect was trained for, where its name says one; else None."""
    name = _basename(model)
    found = _LETTUCE_LANGUAGE.search(name) if _LETTUCE.search(name) else None
    if found is None:
        return None
    tag = found[1].lower()
    return "zh" if tag == "cn" else tag


def _basename(model: str) -> str:
    """The last part of a model's name; of a folder in the hub's cache, that of the model."""
    cached = _CACHED.search(model)
    return cached["name"] if cached else re.split(r"[\\/]", model.rstrip("\\/"))[-1]
