"""Times of day in a text, in hours: 18.5 for `halb sieben abends`, 15 for `下午三点`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["times_of_day"]

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


def times_of_day(text: str, numbers: Iterable[tuple[int, int, str, float]]) -> dict[int, float]:
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
        elif 1 <= amount <= 24 and not amount % 1:
            time = amount + 0.5 * (bool(_HALF_PAST.match(text, end)) - bool(_HALF_TO.match(text, start)))
            if time < 12 and (_BEFORE.match(text, start) or _AFTER_NOON.match(text, end)):
                result[start] = time + 12
            elif time % 1 or (form != "digits" and _HOUR.match(text, end)):
                result[start] = time
    return result
