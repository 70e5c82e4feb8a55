"""Numbers, dates and periods of a text by value, in every script, and whether those of another text support them.

`number_words.json` is made by `tools/build_number_words.py` from the Unicode Common Locale Data Repository;
`value_words.json` holds what it lacks and was written for Veriglot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Value", "month_names", "read_values", "support"]

Kind = Literal["number", "ordinal", "percent", "year", "month", "day", "century", "decade"]
_PARTS: tuple[Kind, ...] = ("year", "month", "day")


class Value(NamedTuple):
    """One value as it stands in a text.

    Attributes:
        start: first code point.
        end: one past the last one.
        kind: what it counts. The parts of a date are values of their own, joined by `date`.
        amounts: what it may mean, likeliest first: `1.234` is 1234 or 1.234. A century by its number, a decade by
            its first year, a month from 1 to 12.
        unit: the English name of a unit of time, length or mass that follows, `age` beside a word for age, or empty.
        date: year, month and day of the date that it belongs to, each 0 where not told; None outside of dates.
        rounded: significant digits where the text says that it is rounded, by a word or a scale (`3 million`), else 0.
    """

    start: int
    end: int
    kind: Kind
    amounts: tuple[float, ...]
    unit: str = ""
    date: tuple[int, int, int] | None = None
    rounded: int = 0


# What is known of a language.


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One language in a data file: forms are parted by spaces; where the place says the value, by commas within it."""

    months: list[str] | str = ""
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
    calendar: str = ""
    digits: str = ""
    tens: str = ""
    myriads: str = ""


_HAN = _Entry(digits="〇,零 一 二,两,兩 三 四 五 六 七 八 九", tens="十 百 千", myriads="万,萬 億,亿 兆")
_WITHOUT_SPACES = frozenset({"zh", "yue", "ja", "th", "km", "lo", "my"})
_ERAS = {"พ.ศ.": -543, "พุทธศักราช": -543, "明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018}
_IN_WORD = r"[^\s\d!-/:-@\[-`{-~\u2000-\u200b\u2010-\u206f«»،؛。，、]"
_WORD = rf"[^\W\d_]{_IN_WORD}*"
_DIGITS = (
    r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?"  # 1 234 567,5
    r"|\d+(?:[.,٫٬'’．，\u00a0\u2009\u202f]\d+)*"
)
_SCALED = r"(?:\s?[百千백천万萬億亿만억兆조])*"  # 320万
_DATE = r"(?<![\d.])\d{1,4}([./-])\d{1,2}\2(?:\d{4}|\d{1,2})(?![.\-/]?\d)"
_SCALES = {"百": 100, "千": 1000, "백": 100, "천": 1000, "万": 10**4, "萬": 10**4, "만": 10**4} | {
    "億": 10**8, "亿": 10**8, "억": 10**8, "兆": 10**12, "조": 10**12,
}  # fmt: skip


@dataclass(frozen=True)
class _Words:
    """The words of one language; forms are casefolded."""

    spaced: bool
    spelled: Mapping[str, tuple[float, bool]] = field(default_factory=dict)  # amounts, and whether ordinal
    months: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    calendar: Mapping[str, Kind] = field(default_factory=dict)
    centuries: frozenset[str] = frozenset()
    dated: frozenset[str] = frozenset()  # months and centuries
    decades: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()
    of: frozenset[str] = frozenset()
    numerals: Mapping[str, int] = field(default_factory=dict)  # parts of numerals such as 三百, by value
    prefixed: frozenset[str] = frozenset()  # forms with a conjunction before them, as in Arabic
    ambiguous: frozenset[str] = frozenset()  # number words that alone are more often another word
    teens: frozenset[str] = frozenset()  # words for ten that are added to what stands before, not multiplied
    atoms: re.Pattern[str] = re.compile("")
    pattern: re.Pattern[str] = re.compile("")

    @property
    def spells_calendar(self) -> bool:
        """Whether the words for year, month and day stand before the number, as in Vietnamese."""
        return "tháng" in self.calendar


@cache
def _entries() -> tuple[dict[str, _Entry], dict[str, _Entry]]:
    made, own = (files(__package__).joinpath(name).read_bytes() for name in ("number_words.json", "value_words.json"))
    return msgspec.json.decode(made, type=dict[str, _Entry]), msgspec.json.decode(own, type=dict[str, _Entry])


def month_names(base: str) -> list[frozenset[str]]:
    """The casefolded names and abbreviations of the twelve months in a language, by its primary subtag; empty sets
    where they are not known."""
    made, own = (entries.get(base, _Entry()).months for entries in _entries())
    first = made if isinstance(made, list) and made else [""] * 12
    second = own.split(",") if isinstance(own, str) and own else [""] * 12
    return [frozenset(f"{names} {more}".split()) for names, more in zip(first, second, strict=True)]


def _by_form(*tables: Mapping[str, str]) -> dict[str, float]:
    forms: dict[str, float] = {}
    for table in tables:
        for amount, words in table.items():
            for word in words.split():
                forms.setdefault(word.casefold(), float(amount))
    return forms


def _numerals(entry: _Entry) -> dict[str, int]:
    def values(forms: str, amounts: Iterable[int]) -> dict[str, int]:
        return {form: amount for same, amount in zip(forms.split(), amounts, strict=False) for form in same.split(",")}

    myriads = [10**4, 10**5, 10**6] if "แสน" in entry.myriads else [10**4, 10**8, 10**12]
    return values(entry.digits, range(10)) | values(entry.tens, [10, 100, 1000]) | values(entry.myriads, myriads)


@cache
def _words_of(base: str) -> _Words:
    made, own = (entries.get(base, _Entry()) for entries in _entries())
    numbers = _by_form(own.numbers, made.numbers)
    ordinals = {form: n for form, n in _by_form(own.ordinals, made.ordinals).items() if form not in numbers}
    prefixed = {p + form: n for p in own.prefixes.split() for form, n in numbers.items() if len(form) > 1}
    ordinals |= {p + form: n for p in own.prefixes.split() for form, n in ordinals.items()}
    spelled = {form: (n, False) for form, n in (prefixed | numbers).items()}
    numerals = _numerals(_HAN) | _numerals(own)
    run = "|".join(sorted(numerals, key=len, reverse=True))
    run_pattern = rf"(?<![가-힣])(?:{run}){{2,}}" if base == "ko" else f"(?:{run})+"
    spaced = base not in _WITHOUT_SPACES
    word = f"|(?P<word>{_WORD})" if spaced and (numbers or ordinals) else "|(?P<word>[IVX]{2,})"
    percent = "|".join(re.escape(form) for form in own.percent.split(",") if form)
    percent = f"|(?P<percent>{percent})" if percent else ""
    units = {form.casefold(): unit for unit, forms in made.units.items() for form in forms.split()}
    calendar = {
        form: kind for same, kind in zip(own.calendar.split(), _PARTS, strict=False) for form in same.split(",")
    }
    months = {form: number for number, forms in enumerate(month_names(base), 1) for form in forms}
    return _Words(
        spaced=spaced,
        spelled=spelled | {form: (n, True) for form, n in ordinals.items()},
        months=months,
        units=units | dict.fromkeys(own.ages.split(), "age"),
        calendar=calendar,
        centuries=frozenset(own.centuries.split()),
        dated=frozenset([*months, *own.centuries.split()]),
        decades=frozenset(own.decades.split()),
        about=frozenset(own.about.split()),
        of=frozenset(own.of.split()),
        numerals=numerals,
        prefixed=frozenset(prefixed),
        ambiguous=frozenset(own.ambiguous.split()),
        teens=frozenset(own.teens.split()),
        atoms=re.compile(run),
        pattern=re.compile(rf"(?P<date>{_DATE})|(?P<digits>{_DIGITS}){_SCALED}|(?P<run>{run_pattern}){percent}{word}"),
    )


# Numbers as they stand, before what is around them is looked at.


_AND = re.compile("(?:and|y|e|et|og|och|und|en|i|és|și|şi|και|a|da|va|və|ve|na|и|та|і|و)?")
_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_ROMANS = {"X" * tens + form: 10.0 * tens + ones for tens in range(4) for ones, form in enumerate(_ONES)}
_LIST_MARK = re.compile(r"^[ \t]*(?:[*\-•][ \t]*)?\(?\d{1,3}[.)](?=\s)|\[\d{1,3}\]", re.MULTILINE)
_COUNTERS = re.compile(
    "[年月日个個名位次座岁歲世倍种種人条條届代つ番回度本周週章部所家支艘架枚場场級级分]"
    "|ปี|คน|ครั้ง|แห่ง|เดือน|วัน|ประเทศ|ส่วน|ตัว|ชั่วโมง|เท่า"
)


@dataclass(slots=True)
class _Number:
    start: int
    end: int
    amounts: tuple[float, ...]
    form: Literal["digits", "word", "ordinal", "roman", "numeral", "date"]
    below: float = 1e15  # what the next word of magnitude must be less than
    total: float = 0.0  # what stands before the last word of magnitude
    scale: float = 1.0  # of a word or sign of magnitude after digits
    digits: int = 0  # significant ones
    percent: bool = False

    @property
    def amount(self) -> float:
        return self.amounts[0]

    @property
    def plain(self) -> bool:
        """Whether it is written as a year or a day is: whole, without marks or words of magnitude."""
        return self.form != "ordinal" and self.scale == 1 and len(self.amounts) == 1 and self.amount.is_integer()


def _decimal_readings(written: str) -> tuple[float, ...]:
    """The values of digits with marks between them, likeliest first; none where they can be no number."""
    groups = re.split(r"\D", written)
    marks = [" " if char.isspace() else "," if char == "，" else char for char in written if not char.isdecimal()]
    if not marks:
        return (float(written),)
    alike = len(set(marks)) == 1
    grouped = len(groups[0]) <= 3 and groups[0] != "0" and all(len(group) == 3 for group in groups[1:])
    readings = []
    if grouped and alike and marks[0] != "٫":
        readings.append(float("".join(groups)))
    if len(marks) == 1 and marks[0] not in " '’٬":
        readings.append(float(".".join(groups)))
    elif not alike and len(set(marks[:-1])) == 1 and marks[-1] not in marks[:-1]:
        if all(len(group) in (2, 3) for group in groups[1:-1]):  # 12,34,567.8 in India
            readings.append(float("".join(groups[:-1]) + "." + groups[-1]))
    elif alike and not grouped and len(groups[-1]) == 3 and all(len(group) == 2 for group in groups[1:-1]):
        readings.append(float("".join(groups)))  # 12,34,567
    return tuple(readings)


def _numeral(atoms: Sequence[int]) -> float | None:
    """The value of a numeral by its parts: 1 100 2 10 is 120, 2 0 1 9 is 2019; None where they make none."""
    if all(atom < 10 for atom in atoms):
        return float("".join(map(str, atoms))) if len(atoms) > 2 or len(atoms) == 1 else None
    total, section, digit, last = 0, 0, -1, 10**15
    for atom in atoms:
        if atom < 10:
            if digit > 0:
                return None
            digit = atom
        elif atom < 10**4:
            section += (digit if digit > 0 else 1) * atom
            digit = -1
        else:
            if section + max(digit, 0) == 0 or atom >= last:
                return None
            total += (section + max(digit, 0)) * atom
            section, digit, last = 0, -1, atom
    return float(total + section + max(digit, 0))


def _numbers(text: str, words: _Words) -> list[_Number]:
    """The numbers of a text in order, words and signs of one number joined; marks of lists and citations left out."""
    marks = {
        position
        for match in _LIST_MARK.finditer(text)
        if not (after := _NEXT.match(text, match.end()))
        or not _listed(words.dated, after["word"].casefold(), spaced=words.spaced)
        for position in range(*match.span())
    }
    result: list[_Number] = []
    for match in words.pattern.finditer(text):
        kind = match.lastgroup
        if kind == "percent":
            if result and text[result[-1].end : match.start()].strip(" \u00a0-") == "":
                result[-1].percent = True
            continue
        if kind == "word":
            word = match.group()
            entry = words.spelled.get(word.casefold())
            number = _spelled(match, *entry) if entry is not None else None
            if number is None and word in _ROMANS and len(word) > 1:
                number = _Number(*match.span(), (_ROMANS[word],), "roman")
        elif kind == "run":
            number = _run(text, match, words, result)
        else:
            number = None
            read = _digits(text, match) if match.end() - 1 not in marks else []
            if result and read and read[0].start == result[-1].end and 1 < read[0].scale < result[-1].scale:
                result[-1].amounts = (result[-1].amount + read[0].amount,)  # 3億2000万
                result[-1].end, result[-1].digits = read[0].end, result[-1].digits + read[0].digits
            else:
                result += read
        if number is not None and not (result and _join(result[-1], number, text, words)):
            result.append(number)
    return [number for number in result if not _tells_nothing(text[number.start : number.end], number, words)]


def _tells_nothing(word: str, number: _Number, words: _Words) -> bool:
    """Whether a number word is none when it stands alone: an article, an abbreviation, `millions`."""
    if number.form == "ordinal":
        return word.casefold() in words.ambiguous
    large = number.amount in (10**6, 10**9, 10**12) and " " not in word
    common = number.amount == 1 or len(word) == 1 or word.casefold() in words.ambiguous
    return number.form == "word" and (large or common)


def _spelled(match: re.Match[str], amount: float, ordinal: bool) -> _Number:
    number = _Number(*match.span(), (amount,), "ordinal" if ordinal else "word")
    if amount >= 1000:
        number.below = number.total = amount
    return number


def _run(text: str, match: re.Match[str], words: _Words, before: Sequence[_Number]) -> _Number | None:
    atoms = [words.numerals[form] for form in words.atoms.findall(match.group())]
    last = before[-1] if before else None
    if last and last.form == "digits" and min(atoms) > 99 and not text[last.end : match.start()].strip():
        for atom in atoms:
            _scale(last, atom)
        last.end = match.end()
        return None
    if len(atoms) == 1:
        start, end = match.span()
        alone = not text[start - 1 : start].isalpha() and not text[end : end + 1].isalpha()
        if atoms[0] > 999 or not (text[start - 1 : start] == "第" or alone or _COUNTERS.match(text, end)):
            return None
    amount = _numeral(atoms)
    return None if amount is None else _Number(*match.span(), (amount,), "numeral")


def _digits(text: str, match: re.Match[str]) -> list[_Number]:
    start, end = match.span("digits") if match.lastgroup == "digits" else match.span()
    if match.lastgroup == "date" and [len(part) for part in re.split(r"\D", match.group())].count(4) == 1:
        return [_Number(start, end, (0.0,), "date")]
    readings = _decimal_readings(text[start:end])
    if not readings:
        return [
            _Number(start + part.start(), start + part.end(), (float(part.group()),), "digits")
            for part in re.finditer(r"\d+", text[start:end])
        ]
    significant = len(re.sub(r"\D", "", text[start:end]).lstrip("0").rstrip("0")) or 1
    number = _Number(start, match.end(), readings, "digits", digits=significant)
    for sign in text[end : match.end()]:
        if not sign.isspace():
            _scale(number, _SCALES[sign])
    return [number]


def _scale(number: _Number, factor: float) -> None:
    number.amounts = tuple(round(amount * factor, 6) for amount in number.amounts)
    number.scale *= factor


def _join(last: _Number, number: _Number, text: str, words: _Words) -> bool:
    """Put a number word to the number before it where both make one."""
    gap = text[last.end : number.start]
    if len(gap) > 5 or number.form not in ("word", "ordinal") or last.form not in ("word", "digits", "ordinal"):
        return False
    between, word = gap.strip(" \u00a0-‐‑").casefold(), text[number.start : number.end].casefold()
    amount = number.amount
    if last.form == "digits":
        if between not in ("", "de", ".") or amount < 100 or number.form == "ordinal":
            return False
        _scale(last, amount)
    elif (
        amount == 10
        and 0 < (ones := last.amount % 100) < 10
        and not between
        and (last.form == "word" or word in words.teens)
    ):
        last.amounts = (last.amount + (10 if word in words.teens else 9 * ones),)  # two ten: 12 or 20
    else:
        single = last.form == "ordinal" or word in words.units or not _AND.fullmatch(between)
        joined = None if single else _sum(last, amount, between, "-" in gap, word in words.prefixed)
        if joined is None:
            return False
        last.amounts, last.form = (joined,), number.form
    last.end = number.end
    return True


def _goes_on(section: float, amount: float, between: str) -> bool:
    """Whether a number below 1000 goes on after hundreds or tens: `two hundred five`, `soixante et onze`."""
    tail = section % 100
    if tail == 0:
        return amount < (100 if section else 1000)
    return (amount < 10 <= tail and tail % 10 == 0) or (amount < 20 and tail in (60, 80) and between in ("", "et"))


def _sum(last: _Number, amount: float, between: str, hyphen: bool, prefixed: bool) -> float | None:
    """What two number words make of each other: 20 and 1, 3 and 100, 19 and 84; None where they are two numbers."""
    section = last.amount - last.total
    if amount >= 1000 and amount < last.below and not between:
        last.total += (section or 1) * amount
        last.below = amount
        return last.total
    tail = section % 100
    if amount in (12, 100) and 1 <= section < 10 and not between:  # dozen
        section *= amount
    elif amount == 100 and 10 <= section < 100 and not between:
        section *= 100
    elif amount < last.below and (_goes_on(section, amount, between) or (prefixed and tail < 20 <= amount < 100)):
        section += amount
    elif hyphen and tail == 4 and amount == 20:  # quatre-vingt
        section += 76
    elif 10 < section <= 20 and 10 <= amount < 100 and not between and not last.total:
        section = 100 * section + amount
    else:
        return None
    return last.total + section


# What a number counts, by what is around it.


_NEXT = re.compile(rf"(?P<gap>[\s.\-‐‑–º°ª'’]{{0,3}})(?P<word>{_WORD})")
_BACKWARDS = re.compile(rf"(?P<gap>[\s.\-‐‑–'’(]{{0,3}})(?P<word>{_IN_WORD}+)")  # on reversed text
_ATTACHED = ("", "-", "‑", "'", "’")
_PERCENT = re.compile(r"\s?[%٪％﹪]")
_ALSO_VERBS = ("may", "march", "mar")
_LOOK_BACK = 40
_LONGEST_ENDING = 4
_FIRST_YEAR, _LAST_YEAR = 1000, 2100


def _listed(forms: Iterable[str], word: str, *, spaced: bool, last: bool = False) -> str | None:
    """The form that a word begins with, or ends with where `last`: whole words first, endings of cases after."""
    if word in forms:
        return word
    shortest = max(len(word) - _LONGEST_ENDING, 4) if spaced else 1
    sizes = range(min(len(word) - 1, 20), shortest - 1, -1) if not (spaced and last) else ()
    return next((part for size in sizes if (part := word[-size:] if last else word[:size]) in forms), None)


@dataclass(frozen=True, slots=True)
class _Around:
    """The words on both sides of a number."""

    text: str
    words: _Words
    memory: dict[int, tuple[str, int]] = field(default_factory=dict)  # words before positions

    def after(self, position: int, *tables: Iterable[str], skip: bool = True) -> tuple[str, int, int] | None:
        """The next word if one of `tables` has it, with its place; endings of ordinals and words like `of` skipped."""
        for _ in range(3 if skip else 1):
            match = _NEXT.match(self.text, position)
            if match is None:
                return None
            word = match["word"].casefold()
            for table in tables:
                form = _listed(table, word, spaced=self.words.spaced)
                if form is not None:
                    end = match.end() if self.words.spaced else match.start("word") + len(form)
                    return form, match.start("word"), end
            if word not in self.words.of and not (len(word) <= 4 and match["gap"] in ("", "-", "’", "'", ".", "º")):
                return None
            position = match.end()
        return None

    def before(self, position: int, *tables: Iterable[str]) -> tuple[str, int, int] | None:
        """The word before if one of `tables` has it, with its place; one word like `of` or `the` skipped."""
        for step in range(2):
            word, end = self._word_before(position)
            if not word:
                return None
            for table in tables:
                form = _listed(table, word, spaced=self.words.spaced, last=True)
                if form is not None:
                    return form, end - len(form), end
            if step or not (word in self.words.of or len(word) <= 3):
                return None
            position = end - len(word)
        return None

    def _word_before(self, position: int) -> tuple[str, int]:
        """The casefolded word that ends before a position, empty where there is none, and its end."""
        if position not in self.memory:
            match = _BACKWARDS.match(self.text[max(0, position - _LOOK_BACK) : position][::-1])
            word = match["word"][::-1].casefold() if match else ""
            self.memory[position] = word, position - (match.start("word") if match else 0)
        return self.memory[position]

    def calendar(self, position: int) -> tuple[Kind, int] | None:
        """The sign for year, month or day that follows a number, as in `1901年`, and where it ends."""
        position += self.text[position : position + 1] == " "
        for form, kind in self.words.calendar.items():
            if self.text.startswith(form, position) and not self.words.spells_calendar:
                return kind, position + len(form)
        return None


def read_values(text: str, language: str | None) -> list[Value]:
    """The numbers, dates and periods of a text, in order; those that are part of a date each for itself.

    Read in every language: digits of all scripts, decimal and grouping marks of every custom (where a mark may be
    either, both values), numerals of Chinese and Roman ones from II to XXXIX, dates in digits, percentages, decades
    such as `1920s`. In a language of the data also number words, names of months, units, centuries and magnitudes.
    Left out: marks of lists, citations such as `[1]`, words for one and zero that stand alone.

    Args:
        text: any text.
        language: a BCP 47 tag; None reads what needs no words.
    """
    base = (language or "").partition("-")[0].lower()
    around = _Around(text, _words_of(base))
    numbers = _numbers(text, around.words)
    result: list[Value] = []
    index = 0
    while index < len(numbers):
        values, count = (
            _date_in_digits(text, numbers[index], base)
            or _period(around, numbers, index)
            or _calendar_date(around, numbers, index)
            or _date(around, numbers, index)
            or (_plain(around, numbers[index], base), 1)
        )
        result += values
        index += count
    return sorted(result)


def _date_values(parts: Mapping[Kind, tuple[int, int, int]]) -> list[Value]:
    """The parts of one date as values: kind to amount, start and end."""
    year, month, day = (parts.get(kind, (0, 0, 0))[0] for kind in _PARTS)
    date = (year, month, day)
    return [Value(start, end, kind, (float(amount),), "", date) for kind, (amount, start, end) in parts.items()]


def _date_in_digits(text: str, number: _Number, base: str) -> tuple[list[Value], int] | None:
    """`1901-03-12`, `12.03.1901`, `3/12/1901`; day first where nothing tells but for slashes in English."""
    if number.form != "date":
        return None
    matches = re.finditer(r"\d+", text[number.start : number.end])
    parts = [(int(match.group()), number.start + match.start(), number.start + match.end()) for match in matches]
    if parts[0][2] - parts[0][1] == 4:
        year, month, day = parts
    else:
        day, month, year = parts
        if month[0] > 12 or (base == "en" and "/" in text[number.start : number.end] and day[0] <= 12):
            day, month = month, day
    if base == "th" and year[0] > 2400:
        year = (year[0] - 543, *year[1:])
    if not (1 <= month[0] <= 12 and 1 <= day[0] <= 31):
        return [Value(start, end, "number", (float(amount),)) for amount, start, end in parts], 1
    return _date_values({"year": year, "month": month, "day": day}), 1


def _calendar_date(around: _Around, numbers: Sequence[_Number], index: int) -> tuple[list[Value], int] | None:
    """`1901年3月12日`, `1901년 3월`, `ngày 12 tháng 3 năm 1901`."""
    words, text = around.words, around.text
    if not words.calendar:
        return None
    parts: dict[Kind, tuple[int, int, int]] = {}
    last = numbers[index].start
    for number in numbers[index : index + 3]:
        kind: Kind | None = None
        if words.spells_calendar:
            before = around.before(number.start, words.calendar)
            if before is not None and (not parts or before[1] - last <= 2):
                kind, end = words.calendar[before[0]], number.end
        else:
            sign = around.calendar(number.end)
            if sign is not None and (not parts or number.start - last <= 2):
                kind, end = sign
        if kind is None or kind in parts or not number.plain:
            break
        amount = _gregorian(text, number, "") if kind == "year" else number.amount
        if not 1 <= amount <= {"year": 2200, "month": 12, "day": 31}[kind]:
            break
        parts[kind] = (int(amount), number.start, number.end)
        last = end
    if len(parts) > 1 or "month" in parts or parts.get("year", (0,))[0] >= 100:
        return _date_values(parts), len(parts)
    return None


def _gregorian(text: str, number: _Number, base: str) -> float:
    """The year of a number after the name of an era (`พ.ศ. 2444`, `昭和64年`), else the number itself."""
    before = text[max(0, number.start - 12) : number.start].rstrip()
    if (era := next(filter(before.endswith, _ERAS), "")) != "":
        return number.amount + _ERAS[era]
    return number.amount - 543 if base == "th" and 2400 <= number.amount <= 2600 else number.amount


def _period(around: _Around, numbers: Sequence[_Number], index: int) -> tuple[list[Value], int] | None:
    """A century or a decade."""
    number, words, text = numbers[index], around.words, around.text
    amount = number.amount
    if number.scale != 1 or not amount.is_integer():
        return None
    if 1 <= amount <= 21 and words.centuries:
        named = around.after(number.end, words.centuries) or around.before(number.start, words.centuries)
        if named and (len(named[0]) > 1 or number.form == "roman"):  # `w` and `s` are also other words
            return [Value(number.start, number.end, "century", (amount,))], 1
    if number.form not in ("digits", "word") or amount % 10:
        return None
    match = _NEXT.match(text, number.end)
    attached = match["word"].casefold() if match and (match["gap"] in _ATTACHED or not words.spaced) else ""
    follows = attached == "s" or _listed(words.decades, attached, spaced=words.spaced) is not None
    follows = follows or (words.spaced and around.before(number.start, words.decades) is not None)
    if follows and (_FIRST_YEAR <= amount <= _LAST_YEAR or 20 <= amount <= 90):
        return [Value(number.start, number.end, "decade", (amount if amount > 90 else 1900 + amount,))], 1
    return None


def _date(around: _Around, numbers: Sequence[_Number], index: int) -> tuple[list[Value], int] | None:
    """A date whose month is a name: `12 March 1901`, `March 12, 1901`, `12 de marzo de 1901`, `March 1901`."""
    number, words = numbers[index], around.words
    if not words.months or number.form == "roman" or number.scale != 1 or not number.amount.is_integer():
        return None
    amount = int(number.amount)
    if not (1 <= amount <= 31 or 100 <= amount <= 2700):
        return None
    month = around.after(number.end, words.months)
    other = numbers[index + 1] if index + 1 < len(numbers) else None
    follows = month is not None and (amount <= 31 or (other is not None and other.start - month[2] <= 2))
    if not follows:
        month = around.before(number.start, words.months)
    if month is None or (month[0] in _ALSO_VERBS and around.text[month[1]].islower() and "de" not in words.of):
        return None
    parts: dict[Kind, tuple[int, int, int]] = {"month": (words.months[month[0]], month[1], month[2])}
    own: Kind = "day" if amount <= 31 else "year"
    year = int(_gregorian(around.text, number, "")) if own == "year" else amount
    parts[own] = (year, number.start, number.end)
    if other is not None and other.plain and other.form == "digits":
        gap = around.text[month[2] if follows else number.end : other.start].casefold()
        linked = len(gap) < 14 and all(
            part in words.of or (len(part) <= 4 and not part.isdecimal()) for part in re.findall(r"\w[^\s,.]*", gap)
        )
        if linked and "(" not in gap and ";" not in gap and not re.search(r"[–—]", gap):
            if own == "day" and 100 <= other.amount <= 2700:
                parts["year"] = (int(_gregorian(around.text, other, "")), other.start, other.end)
            elif own == "year" and follows and 1 <= other.amount <= 31:
                parts["day"] = (int(other.amount), other.start, other.end)
    return _date_values(parts), 1 + (len(parts) == 3)


def _plain(around: _Around, number: _Number, base: str) -> list[Value]:
    """One number with its kind, its unit, and whether it is said to be rounded."""
    text, words = around.text, around.words
    kind: Kind = "ordinal" if number.form in ("ordinal", "roman") else "number"
    amounts = number.amounts
    year = _gregorian(text, number, base) if number.plain else 0.0
    unit = _unit(around, number)
    if (
        unit in ("", "year")
        and _FIRST_YEAR <= year <= _LAST_YEAR
        and number.form == "digits"
        and text[number.start] != "0"
    ):
        kind, amounts = "year", (year, *amounts) if year != number.amount else amounts
    elif number.percent or _PERCENT.match(text, number.end) or text[max(0, number.start - 1)] in "%٪":
        kind = "percent"
    kind, unit = ("percent", "") if "percent" in (kind, unit) else (kind, unit)
    about = number.scale > 1 or bool(around.before(number.start, words.about))
    date = (int(year), 0, 0) if kind == "year" and not unit else None
    return [Value(number.start, number.end, kind, amounts, unit, date, (number.digits or 1) if about else 0)]


def _unit(around: _Around, number: _Number) -> str:
    words = around.words
    sign = around.calendar(number.end) if words.calendar else None
    unit = around.after(number.end, words.units, skip=False)
    if unit is not None:
        return words.units[unit[0]]
    if sign is not None:
        return sign[0]
    before = around.before(number.start, words.units)
    return words.units[before[0]] if before is not None and words.units[before[0]] in ("age", "percent") else ""


# Whether the values of one text support those of another.


_FACTORS = {
    "second": ("time", 1), "minute": ("time", 60), "hour": ("time", 3600), "day": ("time", 86400),
    "week": ("time", 604800), "month": ("time", 2629746), "year": ("time", 31556952), "age": ("time", 31556952),
    "centimeter": ("length", 0.01), "meter": ("length", 1), "kilometer": ("length", 1000), "mile": ("length", 1609.344),
    "foot": ("length", 0.3048), "kilogram": ("mass", 1), "pound": ("mass", 0.45359237),
}  # fmt: skip
_EXACT = ("year", "month", "day", "ordinal", "century", "decade")  # never rounded
_NEAR = 0.02  # of a converted value
_COMMON = 2  # numbers up to here are too common to tell
_FEW = 12  # numbers of the evidence that are added and subtracted


def support(response_values: Sequence[Value], evidence_values: Sequence[Value]) -> list[int]:
    """For each value of a response, whether the values of its evidence support it.

    Returns:
        One of these for each: 1 where the same value stands in the evidence in some form (also a year within a date,
        or a rounded number); 0 where it can be computed from it (a difference or sum, another unit, the rest of a
        percentage) or is too small to tell; -1 where it is absent. A part of a date that contradicts the date of the
        evidence that shares most with it is absent, even if it stands elsewhere.
    """
    evidence = _Evidence.of(evidence_values)
    return [evidence.support(value) for value in response_values]


@dataclass(frozen=True)
class _Evidence:
    values: Sequence[Value]
    amounts: frozenset[float]
    dates: Sequence[tuple[int, int, int]]
    years: Sequence[int]

    @classmethod
    def of(cls, values: Sequence[Value]) -> _Evidence:
        dates = sorted({value.date for value in values if value.date is not None})
        amounts = frozenset(amount for value in values if value.kind != "month" for amount in value.amounts)
        return cls(values, amounts, dates, sorted({date[0] for date in dates if date[0]}))

    def support(self, value: Value) -> int:
        """1, 0 or -1 as in `support`."""
        if value.date is not None and (value.kind == "month" or sum(map(bool, value.date)) > 1):
            return self._date_part(value, value.date)
        if value.kind in ("century", "decade"):
            return 1 if self._period(value) else -1
        if any(amount in self.amounts for amount in value.amounts) or self._rounds(value):
            return 1
        return 0 if value.amounts[0] <= _COMMON or self._computes(value) else -1

    def _date_part(self, value: Value, date: tuple[int, int, int]) -> int:
        part = _PARTS.index(value.kind)
        shared = [sum(a == b for a, b in zip(date, other, strict=True) if b) for other in self.dates]
        most = max(shared, default=0)
        best = [other for other, count in zip(self.dates, shared, strict=True) if count == most] if most else []
        if any(other[part] == date[part] for other in best):
            return 1
        untold = value.kind != "month" and not any(other[part] for other in best)
        in_another = untold or (value.kind == "year" and most < 2)
        return 1 if in_another and value.amounts[0] in self.amounts else -1

    def _period(self, value: Value) -> bool:
        first, last = _years_of(value)
        periods = [_years_of(other) for other in self.values if other.kind in ("century", "decade")]
        within = any(first - 1 <= start and end <= last + 1 for start, end in periods)
        return within or any(first <= year <= last for year in self.years)

    def _rounds(self, value: Value) -> bool:
        """Whether the value is a number of the evidence with fewer digits."""
        return value.kind not in _EXACT and any(
            _is_rounded(exact, amount, value.rounded)
            for other in self.values
            if other.kind not in _EXACT
            for exact in other.amounts
            for amount in value.amounts
        )

    def _computes(self, value: Value) -> bool:
        amount = value.amounts[0]
        if value.kind == "percent":
            return any(other.kind == "percent" and round(100 - other.amounts[0], 6) == amount for other in self.values)
        if value.unit in _FACTORS and self._converts(amount, value.unit):
            return True
        if value.unit in ("year", "age") and amount < 200:
            spans = (amount, amount + 1) if value.unit == "age" else (amount,)  # the birthday is still to come
            return any(later - earlier in spans for earlier in self.years for later in self.years)
        if value.kind == "year":
            lasted = {v.amounts[0] for v in self.values if v.unit in ("year", "age") and v.amounts[0] < 200}
            return any(year + sign * span == amount for year in self.years for span in lasted for sign in (1, -1))
        counts = sorted({v.amounts[0] for v in self.values if v.kind == "number" and v.unit == value.unit})
        if amount < 10 or len(counts) > _FEW:
            return False
        large = {count for count in counts if 0.1 * amount <= count <= 10 * amount}
        return any(amount - count in large or amount + count in large for count in large)

    def _converts(self, amount: float, unit: str) -> bool:
        dimension, factor = _FACTORS[unit]
        return any(
            abs(other.amounts[0] * _FACTORS[other.unit][1] / factor - amount) <= _NEAR * amount
            for other in self.values
            if other.unit in _FACTORS and other.unit != unit and _FACTORS[other.unit][0] == dimension
        )


def _years_of(value: Value) -> tuple[int, int]:
    first = int(value.amounts[0])
    if value.kind == "century":
        return 100 * first - 99, 100 * first
    return first, first + (99 if first % 100 == 0 else 9)


def _is_rounded(exact: float, amount: float, digits: int) -> bool:
    """Whether `amount` is `exact` rounded or cut to fewer digits: to those that it is said to have, or at least two."""
    if amount < 3 or exact < 3 or not 0.5 < amount / exact < 2:
        return False
    shown = len(f"{amount:.12g}".split("e")[0].replace(".", "").strip("0"))
    given = min(digits, shown) if digits else shown
    if given >= len(f"{exact:.12g}".split("e")[0].replace(".", "").strip("0")) or (not digits and shown < 2):
        return False
    step = 10.0 ** (len(str(int(amount))) - max(given, 1))
    return amount in (round(round(exact / step) * step, 6), round(exact // step * step, 6))
