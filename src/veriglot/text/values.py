"""Numbers, dates and periods of a text by value, in every script.

`number_words.json` is made by `tools/build_number_words.py` from the Unicode Common Locale Data Repository;
`value_words.json` holds what it lacks and was written for Veriglot.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from math import log10, prod
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from icu4py.messageformat import MessageFormat

from veriglot.plugins import read_package_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["LARGE", "PARTS", "likeliest_amount", "month_names", "read_values"]

Kind = Literal["number", "ordinal", "percent", "year", "month", "day", "century", "decade"]
PARTS: tuple[Kind, ...] = ("year", "month", "day")


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
        counted: up to four casefolded letters of the word after it; the first two say what it counts.
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
    references: str = ""  # words before the number of a document
    fractions: dict[str, str] = {}  # patterns, by commas; those of 1/3 may follow a number


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
    fractions: re.Pattern[str] | None  # one group for each of `shares`
    shares: tuple[float, ...]


@cache
def _entries() -> list[dict[str, _Entry]]:
    return [read_package_data(__package__, f"{name}_words.json", dict[str, _Entry]) for name in ("number", "value")]


@cache
def _references() -> re.Pattern[str]:
    listed = "|".join(_entries()[1][""].references.split())
    label = r"\d{1,2}(?![\d.,]*\d| ?[份件篇种種건개곳多余])"  # 文件12份 are 12 files
    return re.compile(rf"(?i)(?<![^\W\u3040-\ud7af])(?:{listed})\s?(?:n[ro°º]?[.°º]?\s?)?[(\[]?(?={label})")


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
    for same, symbol, unit in zip(own.calendar.split(), "JKL" if base == "vi" else "YOD", PARTS, strict=False):
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
    conjoined, ambiguous, teens = map(
        frozenset, (filter(re.compile("[وו]").match, prefixed), own.ambiguous.split(), own.teens.split())
    )
    openings = re.compile(rf"\d|{any_of({form[:3] for form in (*spelled, *signs)})}")
    parts = re.compile(atoms), compound, signs, eras
    groups = "|".join(f"({listed.replace(',', '|')})" for listed in own.fractions.values())
    listed = f"{own.centuries} {own.decades}".split()
    periods = any_of(form for form in listed if len(form) > 2 and forms[form][1] != "year")
    of_period = rf"\W+(?:\w{{1,4}}\W+){{0,3}}(?:{periods})\b"  # the last quarter of the 19th century; 25 years
    fractions = re.compile(rf"(?i)(?<!\w)(?:{groups})(?![\w\u0900-\u0dff]|{of_period})") if groups else None
    shares = tuple(round(int(share[0]) / int(share[2:]), 4) for share in own.fractions)
    return _Words(
        base,
        own.joins_ordinals,
        openings,
        splitter,
        spelled,
        forms,
        numerals,
        *parts,
        conjoined,
        ambiguous,
        teens,
        fractions,
        shares,
    )


# Numbers as they stand, before what is around them is looked at.
_MARKED = (
    re.compile(r"(?!0\D)(\d{1,3}(?P<mark>[.,٬'’ ])\d{3}(?:(?P=mark)\d{3})*)(?:(?!(?P=mark))[.,٫](?P<part>\d+))?"),
    re.compile(r"(\d+)[.,٫](?P<part>\d+)"),
    re.compile(r"(\d{1,3}(?:,\d\d)+,\d{3})(?:\.(?P<part>\d+))?"),  # 12,34,567.8 in India
)
_POINTED = re.compile("bn|cy|en|he|hi|ja|ko|mr|ne|ta|te|th|ur|yue|zh")  # where points hardly ever part thousands
LARGE = 1e15  # amounts from there on are compared as they are, and nothing is computed of them
_MOST_DIGITS = 4000  # of a number; longer ones are told by these
_SWAHILI = re.compile(r"(?i)\b(?:(?:mia|elfu|milioni)[\s-]|(?:elfu|milioni) (?:kumi|\w+ini) na )\Z")  # `mia nne`: 400
_ANDS = "and|y|e|et|og|och|und|en|i|és|și|şi|και|a|da|va|və|ve|na|и|та|і|و|lẻ|linh"
_AND = re.compile(f"(?:{_ANDS})?")
_PARTS_OF = ("分之", "分の", "분의")
_AND_A_HALF = re.compile(  # groups: a unit, what joins, an article
    rf"[ \u00a0-]?(?:(?!(?:{_ANDS}|с|з|ja|dan) )([^\W\d_]{{2,}}) )?(?:({_ANDS}|с|з|ja|dan) )?"
    r"(?:(an?|eine[nr]?|een|ett?|en|une?|una|uma?|o) )?"
)
_AFTER_HALF = re.compile(r"[ -](?:de )?([^\W\d_]+)")
_CENTURY = re.compile(" ה(?!שנ)")  # במאה השנים are a hundred years
_ARTICLES = frozenset({"en", "de", "nl", "sv", "da", "no"})  # where a half after a unit needs one: a year and a half
_HALVES_BEHIND = {(2, base) for base in ("tr", "az", "id", "ms", "vi")}  # where a half needs no `and`: üç buçuk
_ADJACENT = ("", " ", "-")
_HALF_FIRST = frozenset({"hi", "bn", "ur", "mr", "ne"})
_HALF_BEHIND = re.compile(
    r"(?:[年周日天]|[个個]月?|小[时時]|[か个ヶケ箇]月|[時週]間|分)半(?![ばあ-んァ-ン])|半(?=[年天日小])"
    r"|\s?(?:년|개월|시간|달|주|일)\s?반(?![가-힣])"
)
_LIST_MARK = re.compile(r"^[ \t]*(?:[*\-•][ \t]*)?\(?(\d{1,3})[.)](?=\s)|\[(\d{1,3})\]", re.MULTILINE)
_GOES_ON = re.compile(  # 3만 5000명, but 3만 2010년; 1억 5천만, but 1000만 5000만
    r"(?!(?<=만 )[\d,]+[백천]?[만억]|(?<=억 )[\d,]+[백천]?억|(?<=천 )[\d,]+천)"
    r"(?:\d{1,4}[백천만억]|(?:\d{4,}|\d{1,3}(?:,\d{3})+)(?![\d.,]|\s?년))"
)
_WEEKDAY = re.compile(  # the second day of the week is one by its name; `lần thứ hai` is the second time
    r"(?i)(?:יום|(?:\A|[.,;:(]\s?|\b(?:vào|hôm|sáng|trưa|chiều|tối|đêm|từ|đến|và) )thứ) \Z"
)
_COUNTERS = re.compile(
    "[年月日个個名位次座岁歲世倍种種人条條届代つ番回度本周週章部所家支艘架枚場场級级球票]"
    "|[比対](?=[〇零一二两兩三四五六七八九十])|(?<=[〇零一二两兩三四五六七八九十][比対].)"  # a score
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
    meaning: str = ""  # of a word: the unit or month; of 1.5, 2.5 its unit
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
    fractions = _fractions(text, ends, words)
    for index in (index for index in range(1, len(pieces), 2) if index in fractions or pieces[index] in likely):
        piece, start = pieces[index].casefold(), ends[index - 1]
        if index in fractions:
            numbers = fractions[index]
        elif piece[0].isdecimal():
            numbers = _digits(piece, start, index, base)
        elif (known := _spelled(base, piece)) or (piece[0] in signs and piece not in forms):
            amount, form = known or (_numeral(piece, words), "numeral")
            counted = bool(result) and (result[-1].last, result[-1].form) == (index - 2, "digits")
            symbol = forms.get(piece, "w")[0]  # `1 sept` in French, במאה ה-19 in Hebrew, where במאה מטר is 100 metres
            named = (counted and symbol == "M") or (symbol == "C" and _CENTURY.match(text, ends[index]))
            if amount is None or named or (form == "roman" and not pieces[index].isupper()):
                continue
            total = amount if amount >= 1000 else 0.0
            numbers = [_Item(start, ends[index], index, index, form, (amount,), total=total, below=total or 1e15)]
        else:
            continue
        article = len(result) > 1 and (result[-1].amounts, result[-1].last) == ((1,), index - 2)  # three and a half
        if numbers and numbers[0].amounts == (0.5,) and article and _join(result[-2], numbers[0], text, words):
            del result[-1], numbers[0]
        result += [number for number in numbers if not (result and _join(result[-1], number, text, words))]
    result = [number for number in result if not _tells_nothing(text, number, words)]
    for number in result:
        if number.amounts[0] < _FIRST_YEAR and not number.amounts[0] % 1 and _HALF_BEHIND.match(text, number.end):
            number.amounts = (number.amounts[0] + 0.5,)
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


def _fractions(text: str, ends: Sequence[int], words: _Words) -> dict[int, list[_Item]]:
    """The fractions of a text by their first pieces; other pieces of theirs have none."""
    result: dict[int, list[_Item]] = {}
    for match in words.fractions.finditer(text) if words.fractions else ():
        first, last = bisect_right(ends, match.start()), bisect_left(ends, match.end())
        if first % 2 and last % 2:
            result |= {index: [] for index in range(first, last + 1)}
            share = words.shares[(match.lastindex or 1) - 1]
            near = text[max(0, match.start() - 10) : match.end()].casefold().split()[-3:]  # rok i pół
            unit = next((words.forms[word][1] for word in near if words.forms.get(word, "w")[0] in "UJ"), "year")
            result[first] = [_Item(*match.span(), first, last, "word", (share,), meaning=unit if 1 < share < 6 else "")]
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
    single, whole = len(word) == 1 and not _COUNTERS.match(text, number.end), not number.amounts[0] % 1
    common = single or number.amounts[0] == 1 or (number.amounts[0] in (1e6, 1e9, 1e12) and word in words.spelled)
    unclear = whole and (word in words.ambiguous or (common and number.form == "word"))
    return unclear or bool(_WEEKDAY.search(text, number.start - 12, number.start))


def _join(last: _Item, number: _Item, text: str, words: _Words) -> bool:
    """Put a number word to the number before it where both make one."""
    gap, amount, word = text[last.end : number.start], number.amounts[0], text[number.start : number.end].casefold()
    first, ones = last.amounts[0], last.amounts[0] % 100
    between = gap.strip(" \u00a0-‐‑").casefold().removeprefix("de" * (first >= 20 and amount >= 1000))  # 20 de mii
    korean = words.base == "ko" and gap == " "  # 1억 2천만
    below = 10 if between else 1000 if number.form == "digits" else 100
    if (joins := _join_fraction(last, number, text, words)) is not None:
        return joins
    if (words.base, last.form) == ("sw", "word") and amount < below and _SWAHILI.search(text, last.start, number.start):
        scale = first - last.total or last.below
        last.amounts = (first + scale * (amount - (not between)),)  # mia nne: 400; elfu 12: 12,000
        last.total = last.amounts[0] if scale > 100 else last.total
    elif number.form == "digits":
        if (gap and not (korean and _GOES_ON.match(text, number.start))) or amount >= last.scale or first >= LARGE:
            return False
        last.total, last.amounts = first, (first + amount,)  # 3億2000万
    elif last.form == "digits":
        large = max(last.amounts) >= LARGE or amount < 100 + word.startswith("cent")  # 50 cents
        if number.form == "ordinal" or between not in ("", "de", ".") or large or log10(amount) % 1:
            return False
        scaled = tuple(round(last.total + (reading - last.total) * amount, 6) for reading in last.amounts)
        last.amounts = (*scaled, *last.amounts) if word == "m" else scaled  # 3.5 m: millions or metres
        last.scale *= amount
    elif korean and last.form == number.form == "numeral" and amount < 10**4 and not first % 10**4:
        last.amounts = (first + amount,)  # 삼만 육천
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


def _join_fraction(last: _Item, number: _Item, text: str, words: _Words) -> bool | None:
    """As `_join`, and whether it did, for fractions: two thirds, 三分之二, three and a half; None for other numbers."""
    first, amount, after = last.amounts[0], number.amounts[0], _AFTER_HALF.match(text, number.end)
    gap, word = text[last.end : number.start].casefold(), text[number.start : number.end].casefold()
    if gap.strip() in _PARTS_OF and last.form == number.form and amount < first <= 20:  # 百分之 is a percentage
        last.amounts = (round(amount / first, 4),)
    elif first == 0.5 and last.form == "word" and amount > 2 and words.base in _HALF_FIRST and gap == " ":
        last.amounts = (amount + 0.5,)  # साढ़े तीन
    elif number.form != "word" or not 0 < amount < 1 or first % 1 or first >= LARGE:
        return None
    elif last.form == "ordinal" and amount != 0.5:
        return gap in _ADJACENT  # the third quarter is no 3/4
    elif gap in _ADJACENT and 0 < first < (parts := round(1 / amount)) and (parts, words.base) not in _HALVES_BEHIND:
        last.amounts = (round(first / parts, 4),)
    elif amount != 0.5 or first < 1 or (unit := _halved(gap, word, words)) is None:
        return False
    else:
        if unit and after and words.spelled.get(after[1].casefold(), (0,))[0] >= 1000:
            return False  # two years and half a million
        scale = last.below if first == last.total else last.scale
        last.amounts = tuple(reading + 0.5 * scale for reading in last.amounts)
        if unit:
            return True  # two years and a half: the years belong to the number
    last.end, last.last = number.end, number.last
    return True


def _halved(gap: str, word: str, words: _Words) -> str | None:
    """The unit between a number and the half that is added to it, or an empty text; None where it is added to none."""
    match = _AND_A_HALF.fullmatch(gap)
    if match is None:
        return None
    unit, joint, article = match[1] or "", match[2] or word in words.prefixed, match[3]
    direct = not gap.strip("- ") and (2, words.base) in _HALVES_BEHIND
    if unit and not _known(words.base, unit, True, False)[1].isalpha():
        return None
    if unit and not article and (words.base in _ARTICLES or not (joint or (2, words.base) in _HALVES_BEHIND)):
        return None
    return unit if unit or joint or direct or not gap else None


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
_COUNTED = re.compile(r"[ \u00a0\u202f-]?([^\W\d_]{1,4})")
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
    Left out: marks of lists, citations such as `[1]` and `document 2`, words for one and zero that stand alone.

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
    labels = {match.end() for match in _references().finditer(text)}
    hours = _times_of_day(text, [(item.start, item.end, item.form, item.amounts[0]) for item in line if item.form])
    result: list[Value] = []
    for match in _GRAMMAR.finditer("".join(item.symbol for item in line)):
        items = line[match.start() : match.end()]
        values = _date(items) if match.lastgroup == "date" else _period(items, match.lastgroup)
        result += values or [
            value
            for index in range(*match.span())
            if line[index].form and line[index].start not in marks
            if (value := _plain(text, line, index, hours)).start not in labels or value.unit or value.scaled
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
    unit = unit or number.meaning * (number.form == "word")
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


# Times of day.
_CLOCK = re.compile(  # groups: `kl.` before it; sign of p.m.; hour; minutes
    r"(?i)(?<![\d.,:/])((?<=\bkl )|(?<=\bkl\. )|(?<=\bklo )|(?<=kello )|(?<=klockan )|(?<=klokken )|(?<=pukul )"
    r"|(?<=\bjam )|(?<=\bla ora )|(?<=\balle ore )|(?<=\bgodz\. )|(?<=godzinie ))?"
    r"((?<=[午下오][後午후])|(?<=[午下오][後午후] )|(?=[\d:.]{1,5}\s?p(?:m\b|\.\s?m\b)))?"
    r"([01\u0660\u0661\u06f0\u06f1\u0966\u0967\u09e6\u09e7]?\d"
    r"|[2\u0662\u06f2\u0968\u09e8][0-4\u0660-\u0664\u06f0-\u06f4\u0966-\u096a\u09e6-\u09ea])"
    r"(?::([0-5\u0660-\u0665\u06f0-\u06f5\u0966-\u096b\u09e6-\u09eb]\d)(?![\d:/]|[.,]\d)"
    r"|\.([0-5]\d)(?(1)(?!\d)|(?=\s?(?:u[hu]r\b|น\.|[ap](?:m\b|\.\s?m\b))))"
    r"|\s?(?:h|u[hu]r|giờ|óra|টা|बजे|بجے)\s?([0-5\u0660-\u0665\u06f0-\u06f5\u0966-\u096b\u09e6-\u09eb]\d)(?!\w)"
    r"|\s?[時时点點시]\s?(?:([0-5]?\d)\s?[分분]|([半반]))"
    r"|\s?(?:u[hu]r\b|[時时시](?![間间간]))|(?(2)\s?[点點]|(?!))|(?=\s?[ap](?:m\b|\.\s?m\b)))"
)
_HALF_PAST = re.compile(
    r"(?i)\s(?:heures? et demie?|y media|e mezz[oa]|e meia|și jumătate|και μισή|giờ rưỡi|וחצי)\b|[時时點点]半"
    r"|(?<=half past (?:one|two|six|ten))|(?<=half past (?:four|five|nine))|(?<=half past (?:three|seven|eight))"
)
_AT = re.compile(r"(?i)\b(?:las?|às|alle|ora|στις|στη|à) \Z")
_HALF_TO = re.compile(
    r"(?i)(?<=\bhal[bv]\s)|(?<=\bfél\s)|(?<=\bpuoli\s)|(?<=\bpool\s)|(?<=\bwpół do\s)|(?<=\bпів на\s)"
    r"|(?<=\bhalf\s)(?=\w+\s?uur\b)"
)
_AFTER_NOON = re.compile(
    r"(?i)[\w\s]{0,14}\s(?:de la (?:tarde|noche)|da (?:tarde|noite)|del pomeriggio|de l'après-midi|du soir|nachmittags"
    r"|abends|in the (?:afternoon|evening)|po południu|wieczorem|odpoledne|giờ (?:chiều|tối)|час\w* (?:дня|вечера))\b"
)
_EVENING = re.compile(
    r"(?i)(?:\s?(?:uhr|uur|h|horas?|heures?|ore|óra|phút|годин\w*|час\w*))?\s(?:de la (?:tarde|noche)"
    r"|da (?:tarde|noite)|d(?:el pomeriggio|i sera)|de l'après-midi|du soir|nachmittags|abends"
    r"|in the (?:afternoon|evening)|po południu|wieczorem|odpoledne|večer|seara|chiều"
    r"|tối(?! (?:đa|thiểu|ưu))|вечора|вечера|בערב|مساءً?|μ\.?\s?μ|το (?:απόγευμα|βράδυ))\b"
)
_BEFORE = re.compile(
    r"(?<=[午下오][後午후])|(?<=晚上)|(?:(?<=সন্ধ্যা )|(?<=বিকেল )|(?<=மாலை )|(?<=délután )|(?<=شام )|(?<=शाम ))"
    r"(?=\w+(?:\s?(?:बजे|بجے|টা|மணி|óra(?:kor)?\b)|-?kor\b|:))"
)
_HOUR = re.compile(r"[時时](?![間间])|[点點]")


def _times_of_day(text: str, numbers: Iterable[tuple[int, int, str, float]]) -> dict[int, float]:
    """Times of day in hours, keyed by the start offsets of their hours and minutes: 18 2/3 for 6:40 p.m.

    Args:
        text: any text.
        numbers: numbers of the text: start, end, form (`digits` or another way of writing) and amount.
    """
    result: dict[int, float] = {}
    for start, end, form, amount in numbers:
        if form == "digits" and (match := _CLOCK.match(text, start)):
            hour, last = int(match[3]), match.lastindex or 0
            minutes = 30 if last == 8 else int(match[last]) * (last > 3)
            late = match[2] is not None or _BEFORE.match(text, start) or _EVENING.match(text, match.end())
            time = (hour % 12 + 12 if late else hour) + minutes / 60
            result |= {match.start(3): time, match.start(last): time}
        elif 1 <= amount <= 24 and (not amount % 1 or (amount % 1 == 0.5 and form == "word")):
            half = bool(_HALF_PAST.match(text, end)) - bool(_HALF_TO.match(text, start))
            if amount % 1 and not half and not _AT.search(text, start - 6, start):
                continue  # six and a half
            time = int(amount) + 0.5 * (half or amount % 1 > 0)
            if time < 12 and (_BEFORE.match(text, start) or _AFTER_NOON.match(text, end)):
                result[start] = time + 12
            elif time % 1 or (form != "digits" and _HOUR.match(text, end)):
                result[start] = time
    return result
