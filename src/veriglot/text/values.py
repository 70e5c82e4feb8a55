"""Numbers, dates and periods of a text by value, in every script, and whether those of another text support them.

`number_words.json` is made by `tools/build_number_words.py` from the Unicode Common Locale Data Repository;
`value_words.json` holds what it lacks and was written for Veriglot.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate, combinations, pairwise
from math import floor, log10, prod
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from icu4py.messageformat import MessageFormat

from veriglot.plugins import read_package_data
from veriglot.text.clock import times_of_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["COMPUTED", "likeliest_amount", "month_names", "read_values", "support"]

Kind = Literal["number", "ordinal", "percent", "year", "month", "day", "century", "decade"]
_Date = tuple[int, int, int]
_PARTS: tuple[Kind, ...] = ("year", "month", "day")


class Value(NamedTuple):
    """One value as it stands in a text.

    Attributes:
        start: first code point.
        end: one past the last one.
        kind: what it counts. The parts of a date are values of their own, joined by `date`.
        amounts: what it may mean, likeliest first: `1.234` in German is 1234 or 1.234. A century by its number, a
            decade by its first year, a month from 1 to 12. Whole numbers that no float holds are ints.
        unit: the English name of a unit of time, length or mass that follows, `age` beside a word for age, or empty.
        date: year, month and day of the date that it belongs to, each 0 where not told; None outside of dates.
        rounded: whether the text says that it is rounded, by a word or a scale (`3 million`).
        swapped: the date with day and month exchanged where it may mean either: `05/06/2020` in English.
        counted: two casefolded letters of the word after it; one that begins with others counts another thing or unit.
        hour: the time of day that it belongs to, in hours: 18 2/3 for 6:40 p.m.; None where no sign tells one.
        scaled: whether a word or sign of magnitude is part of it: `12万`, `twelve thousand`.
    """

    start: int
    end: int
    kind: Kind
    amounts: tuple[float, ...]
    unit: str = ""
    date: tuple[int, int, int] | None = None
    rounded: bool = False
    swapped: tuple[int, int, int] | None = None
    counted: str = ""
    hour: float | None = None
    scaled: bool = False


# What is known of a language.
class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One language in a data file: forms are parted by spaces; where the place says the value, by commas within it."""

    months: list[str] = []
    units: dict[str, str] = {}
    numbers: dict[str, str] = {}
    ordinals: dict[str, str] = {}
    centuries: str = ""
    decades: str = ""
    about: str = ""
    of: str = ""
    ages: str = ""
    percent: str = ""
    prefixes: str = ""
    ambiguous: str = ""
    teens: str = ""
    parted: str = ""
    joins_ordinals: bool = False
    calendar: str = ""
    numerals: dict[str, str] = {}
    eras: dict[str, str] = {}


_ALIKE = str.maketrans("ёЁ", "еЕ")  # most Russian texts have no ё
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")  # within a word in Ukrainian and Belarusian: п'ять
_WITHOUT_SPACES = frozenset({"zh", "yue", "ja", "th", "km", "lo", "my"})
_WORD = r"[^\W\d_][^\s\d!-/:-@\[-`{-~\u2000-\u200b\u2010-\u206f«»،؛。，、]*"
_DATES = "|".join(rf"\d{{4}}{mark}\d\d?{mark}\d\d?|\d\d?{mark}\d\d?{mark}\d{{4}}" for mark in (r"\.", "/", "-"))
_DATE = rf"(?<![\d.])(?:{_DATES})(?![.\-/]?\d)"
_DIGITS = (
    r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?"  # 1 234 567,5
    r"|\d+(?:[.,٫٬'’．，\u00a0\u2009\u202f]\d+)*"
)
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMANS = {"x" * tens + form: 10.0 * tens + ones for tens in range(4) for ones, form in enumerate(_ONES)}

_Form = Literal["", "digits", "word", "ordinal", "roman", "numeral"]


class _Words(NamedTuple):
    """The words of one language; forms are casefolded."""

    base: str
    joins_ordinals: bool  # whether both words of 21st are ordinals: vigésimo primero
    begins: re.Pattern[str]  # how numbers do
    pieces: re.Pattern[str]  # parts a text into numbers and words
    spelled: Mapping[str, tuple[float, _Form]]
    forms: Mapping[str, tuple[str, str]]  # of words around numbers: a symbol of `_GRAMMAR`, the unit or month
    numerals: Mapping[str, float]  # parts of numerals such as 三百
    atoms: re.Pattern[str]
    compound: re.Pattern[str]  # parts a word into the number words that it is made of
    signs: frozenset[str]  # that numerals begin with
    eras: Mapping[str, float]  # what is added to years after the name of an era
    prefixed: frozenset[str]  # forms with `and` before them, in Arabic and Hebrew
    ambiguous: frozenset[str]  # number words that alone are more often another word
    teens: frozenset[str]  # words for ten that are added to what stands before, not multiplied


@cache
def _entries() -> list[dict[str, _Entry]]:
    return [read_package_data(__package__, f"{name}_words.json", dict[str, _Entry]) for name in ("number", "value")]


def month_names(base: str) -> list[frozenset[str]]:
    """The casefolded names and abbreviations of the twelve months in a language, by its primary subtag; empty sets
    where they are not known."""
    listed = (entries.get(base, _Entry()).months or [""] * 12 for entries in _entries())
    return [frozenset(" ".join(forms).split()) for forms in zip(*listed, strict=True)]


def _by_form(own: Mapping[str, str], made: Mapping[str, str]) -> dict[str, float]:
    tables = [(n, forms.casefold().translate(_ALIKE)) for table in (made, own) for n, forms in table.items()]
    return {form: float(n) for n, forms in tables for form in forms.split()}


def _forms(base: str, made: _Entry, own: _Entry, eras: Iterable[str]) -> dict[str, tuple[str, str]]:
    tables = (_entries()[1][""].units, made.units, own.units)
    units = {form.casefold(): unit for table in tables for unit, forms in table.items() for form in forms.split()}
    units |= dict.fromkeys(own.ages.split(), "age")
    known = {form: ("a" if unit in ("age", "percent") else "U", unit) for form, unit in units.items()}
    known |= dict.fromkeys([*own.of.split(), *eras], ("f", ""))
    for symbol, forms in (("A", own.about), ("E", f"s {own.decades}"), ("C", own.centuries)):
        known |= {
            form: ("c" if symbol == "C" and len(form) == 1 else symbol, units.get(form, "")) for form in forms.split()
        }
    known |= {form: ("M", str(month)) for month, forms in enumerate(month_names(base), 1) for form in forms}
    for same, symbol, unit in zip(own.calendar.split(), "JKL" if base == "vi" else "YOD", _PARTS, strict=False):
        known |= dict.fromkeys(same.split(","), (symbol, unit))
    return known | dict.fromkeys([*"%٪％﹪", *filter(None, own.percent.split(","))], ("%", "percent"))


@cache
def _words_of(base: str) -> _Words:
    made, own = (entries.get(base, _Entry()) for entries in _entries())
    numbers, ordinals = _by_form(own.numbers, made.numbers), _by_form(own.ordinals, made.ordinals)
    prefixes = own.prefixes.split()
    prefixed = {prefix + form: n for prefix in prefixes for form, n in numbers.items() if len(form) > 1}
    ordinals |= {prefix + form: n for prefix in prefixes for form, n in ordinals.items()}
    spelled: dict[str, tuple[float, _Form]] = {form: (n, "roman") for form, n in _ROMANS.items() if len(form) > 1}
    spelled |= {form: (n, "ordinal") for form, n in ordinals.items()}
    spelled |= {form: (n, "word") for form, n in (prefixed | numbers).items()}
    shared = _entries()[1][""]
    numerals, eras = _by_form(own.numerals, shared.numerals), _by_form({}, shared.eras)
    forms = _forms(base, made, own, eras)

    def any_of(listed: Iterable[str]) -> str:
        return "|".join(map(re.escape, sorted(listed, key=len, reverse=True)))

    def telling(symbols: str) -> str:
        return any_of(form for form, (symbol, _) in forms.items() if symbol in symbols and not form.isascii())

    atoms, scales = any_of(numerals), any_of(form for form, n in numerals.items() if n >= 100)
    percent = any_of(form for form, (symbol, _) in forms.items() if symbol == "%")
    begins = {form[0] for form in (*numerals, *percent.replace("\\", "").split("|"))}
    pieces = "|".join([  # a glance at one character saves trying every form at every place
        rf"(?=\d)(?:{_DATE}|{_DIGITS})|(?<=\d)(?:(?:{scales})+|{telling('YODCE') or '(?!)'})",
        rf"(?=[{''.join(begins)}])(?:(?<![가-힣])(?:{atoms}){{{1 + (base == 'ko')},}}|{percent})",
        f"[IVX]{{2,}}|{telling('AaCcDEfMOUY')}" if base in _WITHOUT_SPACES else _WORD,
    ])  # fmt: skip
    compound = re.compile(f"({any_of(form for form in spelled if len(form) > 2)})")
    splitter, signs = re.compile(f"({pieces})"), frozenset(form[0] for form in numerals)
    sets = map(frozenset, (filter(re.compile("[وו]").match, prefixed), own.ambiguous.split(), own.teens.split()))
    openings = re.compile(rf"\d|{any_of({form[:3] for form in (*spelled, *signs)})}")
    parts = re.compile(atoms), compound, signs, eras
    return _Words(base, own.joins_ordinals, openings, splitter, spelled, forms, numerals, *parts, *sets)


# Numbers as they stand, before what is around them is looked at.
_MARKED = (
    re.compile(r"(?!0\D)(\d{1,3}(?P<mark>[.,٬'’ ])\d{3}(?:(?P=mark)\d{3})*)(?:(?!(?P=mark))[.,٫](?P<part>\d+))?"),
    re.compile(r"(\d+)[.,٫](?P<part>\d+)"),
    re.compile(r"(\d{1,3}(?:,\d\d)+,\d{3})(?:\.(?P<part>\d+))?"),  # 12,34,567.8 in India
)
_POINTED = re.compile("bn|cy|en|he|hi|ja|ko|mr|ne|ta|te|th|ur|yue|zh")  # where points hardly ever part thousands
_LARGE = 1e15  # amounts from there on are compared as they are, and nothing is computed of them
_MOST_DIGITS = 4000  # of a number; longer ones are told by these
_SWAHILI = re.compile(r"(?i)\b(?:(?:mia|elfu|milioni)[\s-]|(?:elfu|milioni) (?:kumi|\w+ini) na )\Z")  # `mia nne`: 400
_AND = re.compile("(?:and|y|e|et|og|och|und|en|i|és|și|şi|και|a|da|va|və|ve|na|и|та|і|و|lẻ|linh)?")
_LIST_MARK = re.compile(r"^[ \t]*(?:[*\-•][ \t]*)?\(?(\d{1,3})[.)](?=\s)|\[(\d{1,3})\]", re.MULTILINE)
_GOES_ON = re.compile(  # 3만 5000명, but 3만 2010년; 1억 5천만, but 1000만 5000만
    r"(?!(?<=만 )[\d,]+[백천]?[만억]|(?<=억 )[\d,]+[백천]?억|(?<=천 )[\d,]+천)"
    r"(?:\d{1,4}[백천만억]|(?:\d{4,}|\d{1,3}(?:,\d{3})+)(?![\d.,]|\s?년))"
)
_WEEKDAY = re.compile(  # the second day of the week is one by its name; `lần thứ hai` is the second time
    r"(?i)(?:יום|(?:\A|[.,;:(]\s?|\b(?:vào|hôm|sáng|trưa|chiều|tối|đêm|từ|đến|và) )thứ) \Z"
)
_COUNTERS = re.compile(
    "[年月日个個名位次座岁歲世倍种種人条條届代つ番回度本周週章部所家支艘架枚場场級级]"
    "|(?:(?<=[午後后上晨]一)|(?<!一))(?:[時时]|[点點](?![〇零一二三四五六七八九](?![十刻])))|分(?![之衛卫音子])"
    "| ?(?:명|개|살|시간|번|마리|대|권|곳|가지|달)(?=(?:[의이은는을를에도]|에게|으로|월|째)?(?![가-힣]))"
    "|ปี|คน|ครั้ง|แห่ง|เดือน|วัน|ประเทศ|ส่วน|ตัว|ชั่วโมง|เท่า"
)


@dataclass(slots=True)
class _Item:
    """A number, a word beside one, or what parts them, with its symbol of `_GRAMMAR`."""

    start: int
    end: int
    first: int  # piece of the text
    last: int
    form: _Form = ""  # of a number
    amounts: tuple[float, ...] = ()
    symbol: str = ""
    meaning: str = ""  # of a word: the unit or month
    total: float = 0.0  # what stands before the last word of magnitude
    below: float = 1e15  # what the next word of magnitude must be less than
    scale: float = 1.0  # of words or signs of magnitude after digits


def _whole(digits: str) -> float:
    """The value of digits: a float, or an int where that would be another number."""
    value = int(digits[:_MOST_DIGITS])
    return float(value) if value <= 2**53 else value


def _readings(written: str, base: str) -> tuple[float, ...]:
    """The values of digits with marks between them, likeliest first; none where they can be no number."""
    if written.isdecimal():
        return (_whole(written),)
    plain = re.sub(r"\s", " ", written).translate({ord("，"): ",", ord("．"): "."})
    matches = [match for pattern in _MARKED if (match := pattern.fullmatch(plain))]
    wholes = [(re.sub(r"\D", "", match[1]), match["part"]) for match in matches]
    if len(wholes) == 2 and _POINTED.fullmatch(base):
        del wholes["," in plain]
    return tuple(
        float(f"{whole}.{part}") if float(part or 0) and len(whole) <= 16 else _whole(whole) for whole, part in wholes
    )


@cache
def _decimal_mark(language: str) -> str:
    """What parts the whole from its tenths in a language, by the Unicode Common Locale Data Repository."""
    return MessageFormat("{n, number}", language).format({"n": 0.5})[1:-1]


def likeliest_amount(value: Value, text: str, language: str) -> float:
    """What a value of a text means by the custom of its language: `2,345` is 2345 in English and 2.345 in French.

    Args:
        value: it.
        text: where it stands.
        language: BCP 47 tag of the text.
    """
    decimal = len(value.amounts) == 2 and not value.rounded and _decimal_mark(language) in text[value.start : value.end]
    return value.amounts[decimal]


def _numeral(piece: str, words: _Words) -> float | None:
    """The value of a numeral by its parts: 1 100 2 10 is 120, 2 0 1 9 is 2019; None where they make none."""
    forms = words.atoms.findall(piece)
    atoms = [words.numerals[form] for form in forms]
    if "".join(forms) != piece or min(atoms) >= 100:
        return prod(atoms) if "".join(forms) == piece else None
    if max(atoms) < 10:
        return _whole("".join(f"{atom:g}" for atom in atoms)) if len(atoms) != 2 else None
    total, section, digit, last = 0.0, 0.0, 0.0, 1e15
    for atom in atoms:
        if atom < 10:
            if digit:
                return None
            digit = atom
        elif atom < 10**4:
            section, digit = section + (digit or 1) * atom, 0
        else:
            if section + digit == 0 or atom >= last:
                return None
            total, section, digit, last = total + (section + digit) * atom, 0, 0, atom
    return total + section + digit


@lru_cache(1 << 14)
def _spelled(base: str, word: str) -> tuple[float, _Form] | None:
    """The value and the form of a number word, also of one that others make together: `duecentocinquanta`."""
    words = _words_of(base)
    if word in words.spelled or not words.compound.match(word):
        return words.spelled.get(word)
    made = _numbers(word, parts := words.compound.split(word), list(accumulate(map(len, parts))), words)
    return next(((item.amounts[0], item.form) for item in made if item.end - item.start == len(word)), None)


def _numbers(text: str, pieces: Sequence[str], ends: Sequence[int], words: _Words) -> list[_Item]:
    """The numbers of a text in order, words and signs of one number joined."""
    result: list[_Item] = []
    base, forms, signs = words.base, words.forms, words.signs
    likely = {piece for piece in {*pieces[1::2]} if words.begins.match(piece.casefold())}
    for index in (index for index in range(1, len(pieces), 2) if pieces[index] in likely):
        piece, start = pieces[index].casefold(), ends[index - 1]
        if piece[0].isdecimal():
            numbers = _digits(piece, start, index, base)
        elif (known := _spelled(base, piece)) or (piece[0] in signs and piece not in forms):
            amount, form = known or (_numeral(piece, words), "numeral")
            counted = bool(result) and (result[-1].last, result[-1].form) == (index - 2, "digits")
            symbol = forms.get(piece, "w")[0]  # `1 sept` in French, במאה ה-19 in Hebrew, where במאה מטר is 100 metres
            named = (counted and symbol == "M") or (symbol == "C" and text.startswith(" ה", ends[index]))
            if amount is None or named or (form == "roman" and not pieces[index].isupper()):
                continue
            total = amount if amount >= 1000 else 0.0
            numbers = [_Item(start, ends[index], index, index, form, (amount,), total=total, below=total or 1e15)]
        else:
            continue
        result += [number for number in numbers if not (result and _join(result[-1], number, text, words))]
    result = [number for number in result if not _tells_nothing(text, number, words)]
    for number in result:
        amount = number.amounts[0]
        plain = number.scale == 1 and len(number.amounts) == 1 and amount % 1 == 0
        if number.symbol in ("", "y") and number.form == "digits" and plain:
            era = words.eras.get(pieces[number.first - 2]) if not pieces[number.first - 1].strip() else None
            thai = words.base == "th" and era is None and 2400 <= amount <= 2600
            number.amounts = (amount - 543, amount) if thai else (amount + (era or 0),)
        amount = number.amounts[0]
        calendar = "d" if 1 <= amount <= 31 else "y" if 100 <= amount <= 2700 else "n"
        number.symbol = number.symbol or ("R" if number.form == "roman" else calendar if plain else "n")
    return result


def _digits(piece: str, start: int, index: int, base: str) -> list[_Item]:
    """A number, or several where the piece can be none; the parts of a date tell what they are."""
    parts, symbols, meaning = list(re.finditer(r"\d+", piece)), "", ""
    american = base == "en" and "/" in piece
    if re.fullmatch(_DATE, piece):
        orders = ["ymd"] if piece[:4].isdecimal() else ["mdy", "dmy"] if american else ["dmy", "mdy"]
        figures = [dict(zip(order, (int(part.group()) for part in parts), strict=True)) for order in orders]
        if orders[0] == "mdy" and figures[0]["m"] <= 12 and figures[0]["d"] <= 12:
            meaning = "either"
        symbols = next(("".join(date) for date in figures if 1 <= date["m"] <= 12 and 1 <= date["d"] <= 31), "nnn")
    elif readings := _readings(piece, base):
        return [_Item(start, start + len(piece), index, index, "digits", readings)]
    return [
        _Item(start + run.start(), start + run.end(), index, index, "digits", (_whole(run.group()),), symbol, meaning)
        for run, symbol in zip(parts, symbols or [""] * len(parts), strict=True)
    ]


def _tells_nothing(text: str, number: _Item, words: _Words) -> bool:
    """Whether a number word or sign is none when it stands alone: an article, an abbreviation, `millions`."""
    word = text[number.start : number.end].casefold()
    if number.form == "numeral" and word in words.numerals:
        around = text[number.start - 1 : number.start], text[number.end : number.end + 1]
        counts = around[0] == "第" or _COUNTERS.match(text, number.end) or not any(map(str.isalpha, around))
        return number.amounts[0] > 999 or not counts
    single = len(word) == 1 and not _COUNTERS.match(text, number.end)
    common = single or number.amounts[0] == 1 or (number.amounts[0] in (1e6, 1e9, 1e12) and word in words.spelled)
    unclear = word in words.ambiguous or (common and number.form == "word")
    return unclear or bool(_WEEKDAY.search(text, number.start - 12, number.start))


def _join(last: _Item, number: _Item, text: str, words: _Words) -> bool:
    """Put a number word to the number before it where both make one."""
    gap, amount, word = text[last.end : number.start], number.amounts[0], text[number.start : number.end].casefold()
    first, ones = last.amounts[0], last.amounts[0] % 100
    between = gap.strip(" \u00a0-‐‑").casefold().removeprefix("de" * (first >= 20 and amount >= 1000))  # 20 de mii
    korean = words.base == "ko" and gap == " "  # 1억 2천만
    below = 10 if between else 1000 if number.form == "digits" else 100
    if (words.base, last.form) == ("sw", "word") and amount < below and _SWAHILI.search(text, last.start, number.start):
        scale = first - last.total or last.below
        last.amounts = (first + scale * (amount - (not between)),)  # mia nne: 400; elfu 12: 12,000
        last.total = last.amounts[0] if scale > 100 else last.total
    elif number.form == "digits":
        if (gap and not (korean and _GOES_ON.match(text, number.start))) or amount >= last.scale or first >= _LARGE:
            return False
        last.total, last.amounts = first, (first + amount,)  # 3億2000万
    elif last.form == "digits":
        large = max(last.amounts) >= _LARGE or amount < 100 + word.startswith("cent")  # 50 cents
        if number.form == "ordinal" or between not in ("", "de", ".") or large or log10(amount) % 1:
            return False
        scaled = tuple(round(last.total + (reading - last.total) * amount, 6) for reading in last.amounts)
        last.amounts = (*scaled, *last.amounts) if word == "m" else scaled  # 3.5 m: millions or metres
        last.scale *= amount
    elif korean and last.form == number.form == "numeral" and amount < 10**4 and not first % 10**4:
        last.amounts = (first + amount,)  # 삼만 육천
    elif between == "分之" and last.form == number.form == "numeral" and amount < first <= 20:  # 百分之 is a percentage
        last.amounts = (round(amount / first, 4),)
    elif len(gap) > 6 or not {last.form, number.form} <= {"word", "ordinal"}:
        return False
    elif amount == 10 and 0 < ones < 10 and not between and (last.form == "word" or word in words.teens):
        last.amounts = (first + (10 if word in words.teens else 9 * ones),)  # two ten: 12 or 20
    else:
        ordinal = last.form == "ordinal" and word not in words.prefixed
        apart = ordinal and bool(first % 10 or between or number.form == "word" or (gap and not words.joins_ordinals))
        apart |= words.base == "ur" and number.form == "ordinal"  # بیس دوسرے are twenty others
        apart |= amount < 1 or word == "a" or words.forms.get(word, "w")[0] in "UJ" or not _AND.fullmatch(between)
        section = None if apart else _section(last, amount, between, "-" in gap, word in words.prefixed)
        if section is None:
            return False
        if amount >= 1000:
            last.total, last.below, section = last.total + section, amount, 0
        last.amounts, last.form = (last.total + section,), number.form
    last.end, last.last = number.end, number.last
    return True


def _section(last: _Item, amount: float, between: str, hyphen: bool, prefixed: bool) -> float | None:
    """What two number words make of each other, but for earlier thousands: 20 and 1, 3 and 100, 19 and 84; None where
    they are two numbers."""
    tail = (section := last.amounts[0] - last.total) % 100
    if amount in (12, 100) and 1 <= section < (10 if amount == 12 else 100) and not between:  # dozen
        return section * amount
    if amount >= 1000:
        scale = 1000 if amount < 1e5 else amount  # einhundertviertausend: 100 and 4000
        valid = amount < last.below and not between
        return section * scale + amount * (amount > scale or not section) if valid else None
    goes_on = amount < (10 if tail else 100 if section else 1000) and tail % 10 == 0  # two hundred five
    goes_on |= amount < 20 and tail in (60, 80) and between in ("", "et")  # soixante et onze
    if amount < last.below and (goes_on or (prefixed and tail < 20 <= amount < 100)):
        return section + amount
    if hyphen and tail == 4 and amount == 20:  # quatre-vingt
        return section + 76
    if 10 < section <= 20 and 10 <= amount < 100 and not between and not last.total:
        return 100 * section + amount
    return None


# What a number counts, by what is around it: the numbers and the words beside them as a line of symbols.
_GRAMMAR = re.compile(
    r"(?P<date>y\|m\|d|d\|m\|y|m\|d\|y"  # 1901-03-12
    "|yY(?:dO(?:dD)?)?|dO(?:dD)?"  # 1901年3月12日
    "|(?:Ld)?Kd(?:,?Jy)?|Jy"  # ngày 12 tháng 3 năm 1901
    "|d[ef]{0,2}M(?:[,efsU]{0,3}y)?|M[efs]?d(?:[,efsU]{0,3}y)?"  # 12 March 1901, March 12, 1901
    "|y[ef]{0,2}M[,efs]{0,3}d|M[,efsU]{0,2}y)"  # 1901. március 12., March 1901
    "|(?P<century>[dR][ef]{0,2}C|C[efs]?[dR]|Re?c|cR)"
    "|(?P<decade>[dny]Z|E[efs]?[dny])"
    "|(?P<plain>[dnRy])"
)
_GAP = re.compile(r"[\s.º°ª'’\-‐‑]{0,3}|[–(]")
_COMMA = re.compile(r"\s*[,،，、]\s*")
_ATTACHED = ("", "-", "‑", "'", "’", ".", "º")
_ALSO_VERBS = ("may", "march", "mar")
_BESIDE = 3  # words on each side of a number that may belong to it
_LONGEST_ENDING = 4
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_COUNTED = re.compile(r"[ \u00a0\u202f-]?([^\W\d_]{1,2})")
_PARTED = {symbol: _Item(0, 0, 0, -1, symbol=symbol) for symbol in ",|"}


def _line(text: str, words: _Words) -> list[_Item]:
    """The numbers of a text and the words beside them, for each of which `_GRAMMAR` has a symbol.

    Numbers are `d`, `m`, `n`, `y` and `R`; words `e` (an ending after a number), `f` (such as `of`), `s` (short),
    `w` (any other), or as `_forms` tells them; gaps `,` and `|`, and nothing where they only part words.
    """
    pieces = words.pieces.split(text)
    ends = list(accumulate(map(len, pieces)))
    line, last = [_PARTED["|"]] * 2, -1
    for number in (*_numbers(text, pieces, ends, words), _Item(0, 0, len(pieces), -1, symbol="|")):
        between = range(last + 2, number.first, 2)
        beside = between if len(between) <= 2 * _BESIDE else (*between[:_BESIDE], *between[-_BESIDE:])
        for index in (*beside, number.first):
            gap, follows = pieces[index - 1], index - line[-1].last == 2
            if not (follows and _GAP.fullmatch(gap)):
                line.append(_PARTED["," if follows and _COMMA.fullmatch(gap) else "|"])
            if index < number.first:
                symbol, meaning = _symbol(pieces[index], words, index - last if last > 0 else 9, gap)
                line.append(_Item(ends[index - 1], ends[index], index, index, symbol=symbol, meaning=meaning))
        line.append(number)
        last = number.last
    return line


@lru_cache(1 << 14)
def _known(base: str, word: str, stems: bool, glued: bool) -> tuple[str, str]:
    forms = _words_of(base).forms
    shortest = max(len(word) - _LONGEST_ENDING, 2 - glued if base == "ko" else 4) if stems else len(word)
    parts = (word[:size] for size in range(len(word) - 1, shortest - 1, -1))  # without the endings of cases
    return forms.get(word) or next((forms[part] for part in parts if part in forms), ("w", ""))


def _symbol(piece: str, words: _Words, distance: int, gap: str) -> tuple[str, str]:
    """The symbol of a word and its meaning, for its distance from the number before it and the gap before the word."""
    word, glued = piece.casefold(), distance == 2 and gap in _ATTACHED
    symbol, meaning = _known(words.base, word, distance <= 2 * _BESIDE, glued)
    if symbol == "E":
        symbol = "Z" if glued or (distance == 2 and words.base in _WITHOUT_SPACES) else "E" if len(word) > 2 else "s"
    elif symbol == "M" and word in _ALSO_VERBS and piece.islower() and "of" in words.forms:
        symbol = "w"
    if symbol == "w" and len(word) <= 4:
        symbol = "e" if glued else "s" if len(word) <= 3 else "w"
    return symbol, meaning


@lru_cache(maxsize=16)  # one sample asks several times of the same texts
def read_values(text: str, language: str | None) -> tuple[Value, ...]:
    """The numbers, dates and periods of a text, in order; those that are part of a date each for itself.

    Read in every language: digits of all scripts, decimal and grouping marks of every custom (where a mark may be
    either, both values), numerals of Chinese and Roman ones from II to XXXIX, dates in digits, percentages, decades
    such as `1920s`. In a language of the data also number words, names of months, units, centuries and magnitudes.
    Left out: marks of lists, citations such as `[1]`, words for one and zero that stand alone.

    Args:
        text: any text.
        language: a BCP 47 tag; None reads what needs no words.
    """
    words = _words_of((language or "").partition("-")[0].lower())
    text = text.translate(_ALIKE)
    for phrase in _entries()[1].get(words.base, _Entry()).parted.split(","):  # tỷ lệ is a ratio, tỷ alone a billion
        text = text.replace(phrase, phrase.replace(" ", "־"))
    if words.base in ("uk", "be"):
        text = _APOSTROPHE.sub("ʼ", text)
    line = _line(text, words)
    marks = {match.start(match.lastindex or 0) for match in _LIST_MARK.finditer(text)}
    hours = times_of_day(text, [(item.start, item.end, item.form, item.amounts[0]) for item in line if item.form])
    result: list[Value] = []
    for match in _GRAMMAR.finditer("".join(item.symbol for item in line)):
        items = line[match.start() : match.end()]
        values = _date(items) if match.lastgroup == "date" else _period(items, match.lastgroup)
        result += values or [
            _plain(text, line, index, hours)
            for index in range(*match.span())
            if line[index].form and line[index].start not in marks
        ]
    return tuple(result)


def _date(items: Sequence[_Item]) -> list[Value]:
    """The parts of a date; none where its month is none."""
    kinds: dict[Kind, _Item] = {}
    for before, item, after in zip([_PARTED["|"], *items], items, [*items[1:], _PARTED["|"]], strict=False):
        if item.form or item.symbol == "M":
            in_month = item.symbol in "mM" or after.symbol == "O" or before.symbol == "K"
            kinds["year" if item.symbol == "y" else "month" if in_month else "day"] = item
    amounts = {kind: int(item.amounts[0] if item.form else item.meaning) for kind, item in kinds.items()}
    date = (amounts.get("year", 0), amounts.get("month", 0), amounts.get("day", 0))
    swapped = (date[0], date[2], date[1]) if "either" in [item.meaning for item in kinds.values()] else None
    parts = [(item.start, item.end, kind, (float(amounts[kind]),)) for kind, item in kinds.items()]
    return [Value(*part, "", date, False, swapped) for part in parts] if date[1] <= 12 else []


def _period(items: Sequence[_Item], kind: str | None) -> list[Value]:
    """A century or a decade; none where the number is of neither."""
    number = next(item for item in items if item.form)
    amount = number.amounts[0]
    if kind == "century" and amount <= 21:
        return [Value(number.start, number.end, "century", (amount,))]
    if kind == "decade" and not amount % 10 and (20 <= amount <= 90 or _FIRST_YEAR <= amount <= _LAST_YEAR):
        return [Value(number.start, number.end, "decade", (amount if amount > 90 else 1900 + amount,))]
    return []


def _plain(text: str, line: Sequence[_Item], index: int, hours: Mapping[int, float]) -> Value:
    """One number with its kind, its unit, and whether it is said to be rounded."""
    number, after = line[index], line[index + 1 + (line[index + 1].symbol == "f")]  # 68 de ani
    before = line[earlier := index - 1 - (line[index - 1].symbol in "efs")]
    own = before.symbol == "a" and not line[earlier - 1].form  # "5 percent to 7": it belongs to the 5
    unit = after.meaning if after.symbol in "UEYODJKL%a" else before.meaning if own else ""
    aged = before.meaning == "age" and not line[earlier - 1].form  # im Alter von 68 Jahren
    if unit == "year" and (aged or line[index + 2 + (line[index + 2].symbol == "f")].meaning == "age"):
        unit = "age"  # 68 años de edad
    rounded, date = number.scale > 1 or before.symbol == "A", None
    kind: Kind = "ordinal" if number.form in ("ordinal", "roman") else "number"
    written = text[number.start : number.end]
    year = written.isdigit() and _FIRST_YEAR <= number.amounts[0] <= _LAST_YEAR and written[0] != "0"
    unit *= unit != "gram" or not year or text[after.end : after.end + 1] != "."  # 1995. g.
    if unit == "percent" or text[max(0, number.start - 1)] in "%٪":
        kind, unit = "percent", ""
    elif year and number.symbol == "y" and unit in ("", "year", "age"):
        lasts = unit and text[after.end - 2 : after.end] not in "ку ду ku"  # 1150 років, but 1929 року
        kind, date = "year", None if lasts else (int(number.amounts[0]), 0, 0)
    counted = _COUNTED.match(text, number.end)
    word, hour = counted[1].casefold() if counted else "", hours.get(number.start)
    scaled = number.scale > 1 or (number.form != "digits" and number.amounts[0] >= 1000)
    return Value(number.start, number.end, kind, number.amounts, unit, date, rounded, None, word, hour, scaled)


# Whether the values of one text support those of another.
COMPUTED = 2  # verdict on a value that can be computed from others
_FACTORS = read_package_data(__package__, "units.toml", dict[str, tuple[str, int | float]])
_EXACT = ("year", "month", "day", "ordinal", "century", "decade")  # never rounded
_NEAR = 0.02  # of a converted value
_COMMON = 2  # numbers up to here are too common to tell
_LONG = 200  # years that nothing lasts
_LASTING = {"year": (0,), "age": (0, 1)}  # units of time, and what may be added: the birthday is still to come
_TIMES = ("倍", "배")  # what says that a number is a ratio
_TELLING = 2  # digits that a number with its decimal point moved must have to be known again
_FEW = 12  # numbers of the evidence that are added and subtracted


def support(response_values: Sequence[Value], evidence_values: Sequence[Value]) -> list[int]:
    """For each value of a response, whether the values of its evidence support it.

    Returns:
        One of these for each: 1 where the same value stands in the evidence in some form (also a year within a date, or
        a rounded number); `COMPUTED` where it is a value of the evidence in another unit, the same time of day, the
        years between two of its years, the difference of two numbers that follow each other, or a ratio ("4倍"); 0
        where it may be computed in other ways (a sum, the rest of a percentage) or is too small to tell; -1 where it is
        absent, as is a part of a date that contradicts the date of the evidence that shares most with it.
    """
    evidence = _Evidence(evidence_values)
    verdicts = {key: evidence.support(value) for key, value in {value[2:]: value for value in response_values}.items()}
    return [verdicts[value[2:]] for value in response_values]


def _masked(date: _Date, count: int) -> Iterator[_Date]:
    """The date with all but `count` of the parts that it tells set to 0, for each choice of them."""
    for parts in combinations([part for part in range(3) if date[part]], count):
        yield tuple(amount * (part in parts) for part, amount in enumerate(date))  # type: ignore[misc]


class _Evidence:
    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.amounts = {amount for value in values if value.kind != "month" for amount in value.amounts}
        self._likeliest = {value.amounts[0] for value in values if value.kind != "month"}
        self.dates = {date for value in values for date in (value.date, value.swapped) if date}
        self._hours = {value.hour for value in values} - {None}
        self.years = {year for year, _, _ in self.dates if year}
        self.lasting = {value.amounts[0] for value in values if value.unit in _LASTING and value.amounts[0] < _LONG}
        self._rounded_to = cache(self._at_places)

    def support(self, value: Value) -> int:
        """1, 0 or -1 as in `support`."""
        amount = value.amounts[0]
        if value.date is not None and (value.kind == "month" or sum(map(bool, value.date)) > 1):
            part = _PARTS.index(value.kind)
            other = part and 3 - part  # what is the month in one order is the day in the other
            swapped = value.swapped is not None and self._has_part(value.swapped, other)
            return 1 if swapped or self._has_part(value.date, part) else -1
        if value.kind in ("century", "decade"):
            return 1 if self._has_period(*_years_of(value)) else -1
        of_day = value.hour in self._hours and amount not in self._likeliest
        if of_day or (value.unit in _LASTING and self._differs(value)):
            return COMPUTED
        if amount in self._likeliest or (amount > 12 and amount in self._hours):
            return 1
        if amount < _LARGE and (self._converts(value) or self._shifts(value) or self._differs(value)):
            return COMPUTED
        if not self.amounts.isdisjoint(value.amounts) or (value.kind not in _EXACT and self._rounds(value)):
            return 1
        return 0 if amount <= _COMMON or (amount < _LARGE and self._computes(value)) else -1

    @cached_property
    def _sharing(self) -> dict[_Date, tuple[set[int], ...]]:
        """Years, months and days of the dates that share the parts of a date that are not 0."""
        sharing: dict[_Date, tuple[set[int], ...]] = defaultdict(lambda: (set(), set(), set()))
        for date in self.dates:
            for masked in (masked for count in (1, 2, 3) for masked in _masked(date, count)):
                for amounts, amount in zip(sharing[masked], date, strict=True):
                    amounts.add(amount)
        return sharing

    def _has_part(self, date: _Date, part: int) -> bool:
        """Whether the dates that share most with a date have one of its parts, or else the evidence."""
        best, most = set[int](), 4
        while most and not best:
            most -= 1
            shared = [masked for masked in _masked(date, most) if masked in self._sharing]
            best = {amount for masked in shared for amount in self._sharing[masked][part]}
        by_itself = (part != 1 and not any(best)) or (part == 0 and most < 2)
        return date[part] in best or (by_itself and date[part] in self.amounts)

    def _has_period(self, first: int, last: int) -> bool:
        periods = (_years_of(other) for other in self.values if other.kind in ("century", "decade"))
        within = any(first - 1 <= start and end <= last + 1 for start, end in periods)
        return within or any(first <= year <= last for year in self.years)

    @cached_property
    def _to_round(self) -> set[float]:
        others = {amount for other in self.values if other.kind not in _EXACT for amount in other.amounts}
        return {amount for amount in others if 3 <= amount < _LARGE}

    def _rounds(self, value: Value) -> bool:
        """Whether it is a number of the evidence rounded or cut to fewer digits, at least two unless it says so."""
        for amount in value.amounts:
            if 3 <= amount < _LARGE:
                shown = len(_digits_of(amount))
                tells = value.rounded and amount == value.amounts[0]
                if shown + tells >= 2 and amount in self._rounded_to(len(str(int(amount))) - shown):
                    return True
        return False

    def _at_places(self, places: int) -> set[float]:
        step, ways = 10.0**places, (round, floor)
        return {round(way(exact / step) * step, 6) for exact in self._to_round for way in ways}

    @cached_property
    def _alike(self) -> Mapping[object, set[float]]:
        alike = defaultdict[object, set[float]](set)  # by kind and unit, or the time of day, which is added to nothing
        for value in self.values:
            alike[value.kind, value.unit or value.hour].add(value.amounts[0])
        return alike

    def _computes(self, value: Value) -> bool:
        """Whether the value is the sum or difference of two others that it can be computed from."""
        amount = value.amounts[0]
        alike = self._alike.get((value.kind, value.unit or value.hour), set())
        if value.kind == "percent":
            alike = {100.0 - amount} & alike | {100.0}
        elif value.kind == "year" or (value.unit in _LASTING and amount < _LONG):
            alike = self.lasting | self.years
        elif amount < 10 or len(alike) > _FEW or value.kind != "number":
            return {amount - 0.5, 0.5} <= self.amounts  # four and a half
        else:
            alike = {other for other in alike if 0.1 * amount <= other <= 10 * amount}
        sums = [amount + later for later in _LASTING.get(value.unit, (0,))]
        return any(other + total in alike or total - other in alike for other in alike for total in sums)

    def _differs(self, value: Value) -> bool:
        """Whether the value is the time between two years, the difference of neighbours, or a ratio."""
        amount = value.amounts[0]
        if value.unit in _LASTING and amount < _LONG:
            return any(year + amount + later in self.years for year in self.years for later in _LASTING[value.unit])
        if value.kind != "number":
            return False
        if value.counted[:1] in _TIMES:
            return any(other * amount in self.amounts for other in self.amounts if other)
        thing = None if amount >= 10 else _thing(value)  # small ones must be of the same
        return not self._differences.get(thing, set()).isdisjoint(value.amounts)

    @cached_property
    def _differences(self) -> dict[str | None, set[float]]:
        """Of neighbours in one unit, by what the first is a number of; under None all."""
        plain = [value for value in self.values if value.kind == "number" and value.amounts[0] < _LARGE]
        differences = defaultdict[str | None, set[float]](set)
        for first, second in pairwise(plain):
            if first.unit == second.unit:
                for key in {None, _thing(first) if _thing(first) == _thing(second) else None}:
                    differences[key].add(abs(first.amounts[0] - second.amounts[0]))
        return differences

    def _shifts(self, value: Value) -> bool:
        """Whether it is a value of the evidence in another unit: its decimal point moved."""
        amount, digits = value.amounts[0], _digits_of(value.amounts[0])
        counts = value.kind == "number" and value.counted and len(digits) >= _TELLING
        for other in self._by_digits[digits] if counts else ():
            near = 0.05 < amount / other.amounts[0] < 20 and other.unit == value.unit  # 12万 are not 12,000 people
            if other.counted != value.counted and not (near and (other.scaled or value.scaled)):
                return True
        return False

    @cached_property
    def _by_digits(self) -> Mapping[str, list[Value]]:
        result = defaultdict[str, list[Value]](list)  # numbers with these digits
        for value in self.values:
            if value.kind == "number" and value.counted and value.amounts[0] < _LARGE:
                result[_digits_of(value.amounts[0])].append(value)
        return result

    @cached_property
    def _measures(self) -> dict[str, list[float]]:
        """Amounts by unit, in order."""
        measures: dict[str, set[float]] = defaultdict(set)
        for value in self.values:
            if value.unit in _FACTORS and value.amounts[0] < _LARGE:
                measures[value.unit].add(value.amounts[0])
        return {unit: sorted(amounts) for unit, amounts in measures.items()}

    def _converts(self, value: Value) -> bool:
        dimension, factor = _FACTORS.get(value.unit, ("", 1))
        size = value.amounts[0] * factor
        for unit, amounts in self._measures.items():
            other, scale = _FACTORS[unit]
            if unit != value.unit and other == dimension:
                at = bisect_left(amounts, size / scale)  # the nearest below and above
                if any(abs(amount * scale - size) <= _NEAR * size for amount in amounts[max(0, at - 1) : at + 1]):
                    return True
        return False


def _thing(value: Value) -> str | None:
    """What a value is a number of, as far as it tells; particles follow counters of one character."""
    return value.unit or (value.counted[:1] if value.counted > "\u3000" else value.counted) or None


def _digits_of(amount: float) -> str:
    """The digits of a number without the zeros around them."""
    return f"{amount:.11e}".split("e")[0].replace(".", "").rstrip("0")


def _years_of(value: Value) -> tuple[int, int]:
    first = int(value.amounts[0])
    if value.kind == "century":
        return 100 * first - 99, 100 * first
    return first, first + (99 if first % 100 == 0 else 9)
