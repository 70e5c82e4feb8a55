"""A language model as translator, by any client of `llm`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from veriglot.build.injection.reading import bare
from veriglot.build.prompts import known_language
from veriglot.build.refusals import refusals_version, refuses
from veriglot.build.translating.translator import Translated, Wanted
from veriglot.llm import Message, Request, Settings, Spent, ask_all
from veriglot.llm.records import canonical
from veriglot.llm.thoughts import after_thoughts
from veriglot.provenance import digest, signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.llm import Answer, Client

__all__ = ["ModelTranslator", "translation_version"]

_TAG = re.compile(r"</?\d{1,3}>")
_HEADED = re.compile(
    r"\A\s*\**[^\n:：]{0,60}(?:translat|traduc|übersetz|перевод|翻译|翻譯|ترجمة)[^\n:：]{0,60}\**[:：]\**\s*\n",
    re.IGNORECASE,
)


class _Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    plain: str
    marked: str


@cache
def _prompts() -> _Prompts:
    text = files("veriglot.build").joinpath("prompts", "translation.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Prompts)


def translation_version() -> str:
    """Name and version of the prompts, such as `translation@1`."""
    return f"translation@{_prompts().version}"


class ModelTranslator:
    """Asks a model for translations of whole texts.

    Args:
        client: whom to ask.
        model: as its server names it.
        settings: how it generates; greedy where nothing is said.
        seed: of the calls; another attempt has the next one.
        jobs: calls at the same time.
        by_sentence: ask sentence by sentence; safer with small models, without the context.
    """

    varies = True

    def __init__(
        self,
        client: Client,
        model: str,
        *,
        settings: Settings | None = None,
        seed: int | None = 1,
        jobs: int = 8,
        by_sentence: bool = False,
    ) -> None:
        self._client = client
        self._model = model
        self._settings = settings or Settings(temperature=0.0)
        self._seed = seed
        self._jobs = jobs
        self.by_sentence = by_sentence
        self.signature = signature(
            translator="llm",
            model=model,
            prompt=translation_version(),
            refusals=refusals_version(),
            settings=digest([canonical(self._settings)])[:16],
            seed=seed,
            client=client.signature,
        )

    def translate(self, wanted: Sequence[Wanted]) -> list[Translated]:
        """As `Translator`; many at a time.

        Raises:
            ModelError: what every further call would meet too.
        """
        answers = ask_all(self._client, (self.request(one) for one in wanted), jobs=self._jobs)
        return [_read(one, answer) for one, answer in zip(wanted, answers, strict=True)]

    def request(self, wanted: Wanted) -> Request:
        """What is asked for a text."""
        template = _prompts().marked if wanted.marked else _prompts().plain
        prompt = template.format(
            source=_named(wanted.source),
            target=_named(wanted.target),
            text=wanted.text,
            count=len(_TAG.findall(wanted.text)) // 2,
        )
        seed = None if self._seed is None and wanted.attempt == 1 else (self._seed or 0) + wanted.attempt - 1
        return Request(self._model, (Message("user", prompt.strip()),), seed=seed, settings=self._settings)


def _read(wanted: Wanted, answer: Answer) -> Translated:
    if answer.reply is None:
        assert answer.error is not None
        return Translated("", "no_reply", answer.error.message)
    reply = answer.reply
    spent = Spent().plus(answer.request, reply)
    cost = (spent.calls, spent.tokens_in, spent.tokens_out)
    if reply.finish == "filter":
        return Translated(reply.text, "held_back", "the provider held the reply back", *cost)
    said = after_thoughts(reply.text).strip()
    if reply.finish == "length":
        return Translated(said, "cut", "the reply was cut at its length; raise max_tokens", *cost)
    text = said if wanted.text[:1] in "\"“„«「'" else bare(_HEADED.sub("", said, count=1))
    if not any(map(str.isalnum, text)):
        return Translated(said, "no_text", "the reply holds no words", *cost)
    declines = any(refuses(_TAG.sub("", text), tag) for tag in (wanted.target, wanted.source))
    if declines and not any(refuses(_TAG.sub("", wanted.text), tag) for tag in (wanted.source, "en")):
        return Translated(said, "refused", f"the model declines: {said[:120]!r}", *cost)
    return Translated(text, None, "", *cost)


def _named(tag: str) -> str:
    entry = known_language(tag)
    return f"{entry.name} ({entry.tag})" if entry else tag
