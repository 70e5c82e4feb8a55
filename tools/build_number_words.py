"""Write the words of numbers, months and units of `veriglot.text`: `python tools/build_number_words.py`.

They come from the Unicode Common Locale Data Repository (CLDR) that ICU carries. Run it when `icu4py` moves or when a
language is added to the language table. What CLDR lacks stands in `value_words.json`, which people write.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icu4py.messageformat import MessageFormat

if TYPE_CHECKING:
    from collections.abc import Iterable

_DATA = Path(__file__).parents[1] / "src" / "veriglot"
_SPELLED = [*range(101), *range(200, 1000, 100), *range(1000, 10001, 1000)]
_SCALES = (100, 1000, 10**5, 10**6, 10**7, 10**9, 10**12)
_GENDERS = ("", "-masculine", "-feminine", "-neuter", "-common", "-masculine-personal", "-reale", "-plural")
_CASES = ("", "-genitive", "-dative", "-accusative", "-instrumental", "-locative", "-prepositional", "-plural")
_ENDINGS = ("-n", "-r", "-s", "-m", "-adjective")
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second", "kilometer", "meter", "centimeter", "millimeter",
          "mile", "foot", "kilogram", "gram", "tonne", "pound", "liter", "milliliter", "percent")  # fmt: skip
_WITHOUT_SPACES = {"zh", "yue", "ja", "th", "ko", "km", "lo", "my", "bo", "dz"}  # read character by character
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200e\u200f"))


_message_format = cache(MessageFormat)


def _formatted(pattern: str, tag: str, value: float | dt.datetime) -> str:
    return _message_format(f"{{v,{pattern}}}", tag).format({"v": value}).translate(_INVISIBLE).casefold()


def _endings(tag: str, kind: str, endings: Iterable[str]) -> tuple[str, ...]:
    """The endings of rule sets that a language has: ICU takes its default for those that it lacks."""
    distinct = {tuple(_formatted(f"spellout,%spellout-{kind}{end}", tag, n) for n in (1, 2, 5)): end for end in endings}
    return tuple(distinct.values())


def _spelled(tag: str, kind: str, number: int, endings: tuple[str, ...]) -> set[str]:
    return {_formatted(f"spellout,%spellout-{kind}{ending}", tag, number) for ending in endings}


def _is_word(form: str) -> bool:
    return len(form) > 1 and not re.search(r"[\s\d\-‑−,]", form)


def _numbers(tag: str) -> tuple[dict[int, set[str]], dict[int, set[str]]]:
    """Cardinals up to 100 and hundreds, scales, and ordinals up to 31, as far as they are single words."""
    every = [*map("".join, itertools.product(_GENDERS, _CASES)), *_ENDINGS]
    endings = _endings(tag, "cardinal", every)
    cardinals = {n: _spelled(tag, "cardinal", n, endings) for n in _SPELLED}
    cardinals[100] |= {form.split()[0] for form in _spelled(tag, "cardinal", 101, endings) if " " in form}
    known = {word for n, forms in cardinals.items() if n < 100 for form in forms for word in re.split(r"[\s\-]+", form)}
    for scale in _SCALES:
        forms = {form for n in (1, 2, 3, 5) for form in _spelled(tag, "cardinal", n * scale, endings)}
        cardinals.setdefault(scale, set())
        for form in forms:
            before, _, word = form.rpartition(" ")
            if before and set(before.split()) <= known and word not in known:
                cardinals[scale].add(word)
        known |= cardinals[scale]
    for number in (n * scale for scale in _SCALES for n in (1, 2, 3.2, 5)):
        shown = re.fullmatch(
            r"\D*?([\d.,]+)\s*(\D+)", _formatted("number,::compact-long numbering-system/latn", tag, number)
        )
        if shown and shown[1].count(",") + shown[1].count(".") < 2:
            scale = round(number / float(shown[1].replace(",", ".")))
            if scale >= 1000:
                cardinals.setdefault(scale, set()).add(shown[2].rstrip("."))
    lower: set[str] = set()
    for number in sorted(cardinals):
        cardinals[number] -= lower
        lower |= cardinals[number]
    endings = _endings(tag, "ordinal", every)
    ordinals = {n: _spelled(tag, "ordinal", n, endings) - lower for n in range(1, 32)}
    return cardinals, ordinals


def _months(tag: str) -> list[set[str]]:
    months, tag = [], f"{tag}@calendar=gregorian"
    for number in range(1, 13):
        day = dt.datetime(2001, number, 15, 12, tzinfo=dt.UTC)
        forms = {_formatted(f"date,{pattern}", tag, day) for pattern in ("LLLL", "LLL", "MMM", "::MMMM")}
        forms |= {_formatted(f"date,15 {pattern}", tag, day).removeprefix("15 ") for pattern in ("MMMM", "MMM")}
        months.append({form.rstrip(".") for form in forms if form.rstrip(".").strip() and _is_word(form.rstrip("."))})
    return months


def _units(tag: str) -> dict[str, set[str]]:
    units = {}
    for unit in _UNITS:
        shown = {
            _formatted(f"number,::unit/{unit} unit-width-full-name numbering-system/latn", tag, n)
            for n in (1, 1.5, 2, 3, 5, 11, 21)
        }
        words = {re.sub(r"[\d.,]+", "", form).strip() for form in shown}
        units[unit] = {word for word in words if re.fullmatch(r"[^\s()/%٪]+", word)}
    return units


def _row(tag: str) -> dict[str, Any]:
    scripts = {"sr": ("sr", "sr_Latn"), "zh": ("zh", "zh_Hant"), "pt": ("pt", "pt_PT")}.get(tag, (tag,))
    cardinals: dict[int, set[str]] = {}
    ordinals: dict[int, set[str]] = {}
    units: dict[str, set[str]] = {}
    months: list[set[str]] = [set() for _ in range(12)]
    for locale in scripts:
        if tag not in _WITHOUT_SPACES:
            for table, new in zip((cardinals, ordinals), _numbers(locale), strict=True):
                for number, forms in new.items():
                    table.setdefault(number, set()).update(filter(_is_word, forms))
        for unit, forms in _units(locale).items():
            units.setdefault(unit, set()).update(forms)
        months = [forms | more for forms, more in zip(months, _months(locale), strict=True)]
    return {
        "months": [" ".join(sorted(forms)) for forms in months],
        "units": {unit: " ".join(sorted(forms)) for unit, forms in units.items() if forms},
        "numbers": {str(n): " ".join(sorted(forms)) for n, forms in sorted(cardinals.items()) if forms},
        "ordinals": {str(n): " ".join(sorted(forms)) for n, forms in sorted(ordinals.items()) if forms},
    }


def main() -> None:
    """Write `number_words.json`; what a language has only because ICU falls back to English is left out."""
    tags = {entry["tag"].partition("-")[0] for entry in json.loads((_DATA / "records" / "languages.json").read_bytes())}
    english, nothing = _row("en"), _row("root")
    english_words = set(" ".join(english["numbers"].values()).split())
    rows = []
    for tag in sorted(tags):
        row = _row(tag)
        if tag != "en" and row["numbers"].get("14") == "fourteen":  # ICU fell back to English
            row["ordinals"] = {}
            row["numbers"] = {n: words for n, words in row["numbers"].items() if not set(words.split()) & english_words}
        kept = {k: v for k, v in row.items() if v and (tag == "en" or v not in (english[k], nothing[k])) and any(v)}
        if kept and (tag == "en" or row["months"] != english["months"]):
            rows.append(f"{json.dumps(tag)}: {json.dumps(kept, ensure_ascii=False)}")
    (_DATA / "text" / "number_words.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
