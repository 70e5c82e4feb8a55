"""Tokenizers of translation models: some are told the languages, each in codes of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import Status
from veriglot.records.languages import language
from veriglot.records.translation_codes import code_of
from veriglot.scorers.against_evidence import Unmeasured
from veriglot.scorers.neural.pairs import spoken

if TYPE_CHECKING:
    from veriglot.scorers.neural.pairs import Pair

__all__ = ["Codes", "codes_of", "flores_codes"]


class Codes:
    """Source and target of a pair as token ids, with the languages where the tokenizer wants them.

    Args:
        tokenizer: of transformers.
        codes: `TAG=CODE` parted by commas.

    Raises:
        UsageError: they are not, or a tag is none.
    """

    def __init__(self, tokenizer: Any, codes: str = "") -> None:
        self._tokenizer = tokenizer
        self._told = codes_of(codes)
        self._wanted = hasattr(tokenizer, "src_lang") and hasattr(tokenizer, "tgt_lang")
        self._known = _own_codes(tokenizer) if self._wanted else {}

    def ids(self, pair: Pair) -> tuple[list[int], list[int]] | Unmeasured:
        """Token ids of the source and of the target; or why there are none: a language that the model does not have."""
        tokenizer = self._tokenizer
        if self._wanted:
            tags = spoken(pair)
            ends = [self._code(tag) for tag in tags]
            if None in ends:
                missing = tags[ends.index(None)]
                side = "source" if ends[0] is None else "response"
                reason = f"the model has no code for the language of the {side} ({missing or 'unknown'})"
                return Unmeasured(Status.UNSUPPORTED_LANGUAGE, reason)
            tokenizer.src_lang, tokenizer.tgt_lang = ends
        source = tokenizer(pair.source, truncation=False, verbose=False)["input_ids"]
        target = tokenizer(text_target=pair.response, truncation=False, verbose=False)["input_ids"]
        return list(source), list(target)

    def _code(self, tag: str | None) -> str | None:
        if tag is None:
            return None
        try:
            found = language(tag)
        except UnknownNameError:
            return None
        for key in (tag, found.tag, found.base):
            if key in self._told:
                return self._told[key]
        candidates = (flores_codes(tag) or found.tag, found.tag, found.base, *found.aliases)
        for name in candidates:
            if name.casefold() in self._known:
                return self._known[name.casefold()]
        started = [code for key, code in self._known.items() if key.partition("_")[0] == found.base]
        return started[0] if len(started) == 1 else None  # mBART's `de_DE`


def codes_of(text: str) -> dict[str, str]:
    """`TAG=CODE` parted by commas, as a table.

    Raises:
        UsageError: a part without `=`, or a tag that is none.
    """
    table = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        tag, sign, code = part.partition("=")
        if not sign or not code.strip():
            raise UsageError(f"{part!r} is no TAG=CODE.", remedy="Give codes such as de=deu_Latn,en=eng_Latn.")
        table[language(tag.strip()).tag] = code.strip()
    return table


def flores_codes(tag: str | None) -> str | None:
    """The FLORES-200 code of a language, such as `deu_Latn`; None where FLORES-200 does not have it."""
    return code_of(tag, "nllb") if tag is not None else None


def _own_codes(tokenizer: Any) -> dict[str, str]:
    """The codes that a tokenizer knows: those that are tokens of its own."""
    table = getattr(tokenizer, "lang_code_to_id", None) or getattr(tokenizer, "lang_code_to_token", None)
    names = list(table) if table else list(getattr(tokenizer, "additional_special_tokens", ()) or ())
    if not names:
        names = [str(token) for token in tokenizer.added_tokens_decoder.values()]
    return {name.strip("_<>").casefold(): name for name in names}
