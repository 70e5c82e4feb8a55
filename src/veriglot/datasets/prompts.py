"""The prompts as data: how a question is put in each language, and with what version the signature names it."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar

import msgspec

from veriglot.llm.client import Message
from veriglot.records.languages import find_language

__all__ = [
    "Style",
    "answer_messages",
    "answer_prompt",
    "answer_stop",
    "biography_languages",
    "biography_prompt",
    "check_prompt",
    "language_name",
    "load_prompts",
    "prompt_version",
    "write_prompt",
]


Style = Literal["closed", "instructed", "open"]
STYLES: tuple[Style, ...] = ("closed", "instructed", "open")

T = TypeVar("T")


class _Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said around a question in one language."""

    instructed: str
    open: str
    text: str
    question: str
    answer: str


class _Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    fallback: _Wording
    languages: dict[str, _Wording]


class _Biographies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    fallback: str
    languages: dict[str, str]


class _Queries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    write: str
    check: str


def load_prompts(name: str, type_: type[T]) -> T:
    """A table of prompts, read from `prompts/NAME.toml`."""
    text = files(__package__).joinpath("prompts", f"{name}.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), type_)


@cache
def _answers() -> _Answers:
    return load_prompts("answer", _Answers)


@cache
def _biographies() -> _Biographies:
    return load_prompts("biography", _Biographies)


@cache
def _queries() -> _Queries:
    return load_prompts("queries", _Queries)


def prompt_version(kind: Literal["answer", "biography", "queries"]) -> str:
    """Name and version of a table of prompts, such as `answer@1`."""
    table: Any = {"answer": _answers, "biography": _biographies, "queries": _queries}[kind]()
    return f"{kind}@{table.version}"


def _wording(tag: str) -> _Wording:
    """How a question is put in the language of a BCP 47 tag; in English, naming it, where the table lacks it."""
    entry = find_language(tag)
    own = _answers().languages.get(entry.tag if entry else tag)
    if own is not None:
        return own
    fallback = _answers().fallback
    name = language_name(tag)
    return msgspec.structs.replace(
        fallback, instructed=fallback.instructed.format(language=name), open=fallback.open.format(language=name)
    )


def answer_messages(style: Style, tag: str, question: str, evidence: str) -> tuple[Message, ...]:
    """The conversation that asks a question: one message of the user.

    Args:
        style: `closed` is the question alone (mFAVA, section 4); `instructed` says before it what language to answer
            in; `open` gives the evidence and asks to use nothing else.
        tag: BCP 47 tag of the language to answer in.
        question: as it stands in the query.
        evidence: the passages as one text; only `open` uses it.
    """
    return (Message("user", _asked(style, tag, question, evidence)),)


def answer_prompt(style: Style, tag: str, question: str, evidence: str) -> str:
    """The same as a text for a completion model to go on from; it ends with the heading of the answer."""
    words = _wording(tag)
    asked = question if style == "open" else f"{words.question}\n{question}"
    head = "" if style == "closed" else _asked(style, tag, "", evidence).strip() + "\n\n"
    if style == "open":
        return f"{_asked(style, tag, asked, evidence)}\n\n{words.answer}\n"
    return f"{head}{asked}\n\n{words.answer}\n"


def answer_stop(tag: str) -> tuple[str, ...]:
    """Where a completion model has begun to write the next question by itself."""
    return (f"\n{_wording(tag).question}",)


def _asked(style: Style, tag: str, question: str, evidence: str) -> str:
    words = _wording(tag)
    if style == "closed":
        return question
    if style == "instructed":
        return f"{words.instructed}\n\n{question}"
    return f"{words.open}\n\n{words.text}\n{evidence}\n\n{words.question}\n{question}"


def biography_languages() -> tuple[str, ...]:
    """The tags that have a prompt for biographies of their own: Kang et al.'s 19, sorted."""
    return tuple(sorted(_biographies().languages))


def biography_prompt(tag: str, name: str) -> str:
    """The question for a biography in a language; in English, naming the language, beyond the 19 of Kang et al."""
    entry = find_language(tag)
    table = _biographies()
    template = table.languages.get(entry.tag if entry else tag)
    if template is None:
        return table.fallback.format(language=language_name(tag), name=name)
    return template.format(name=name)


def write_prompt(tag: str, title: str, text: str, count: int) -> str:
    """Asks for `count` queries on an article, in its language."""
    return _queries().write.format(language=language_name(tag), title=title, text=text, count=count).strip()


def check_prompt(tag: str, question: str, text: str) -> str:
    """Asks whether a text answers a question."""
    return _queries().check.format(language=language_name(tag), question=question, text=text).strip()


def language_name(tag: str) -> str:
    """The English name of a language; the tag where it is not known."""
    entry = find_language(tag)
    return entry.name if entry else tag
