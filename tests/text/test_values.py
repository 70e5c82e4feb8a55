"""Numbers, dates and periods by value, in many languages, and what supports what."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icu4py.messageformat import MessageFormat

from veriglot.text.support import COMPUTED, support
from veriglot.text.values import month_names, read_values

# Every value of a text: what stands there, its kind and what it means.
TEXTS: list[tuple[str | None, str, list[tuple[str, str, float]]]] = [
    ("en", "1,234.5 or 3.2 million, twenty-one, two hundred and five thousand", [
        ("1,234.5", "number", 1234.5), ("3.2 million", "number", 3.2e6), ("twenty-one", "number", 21),
        ("two hundred and five thousand", "number", 205_000),
    ]),
    ("en", "On March 12, 1901, aged 76, in the 19th century; the 1920s.", [
        ("March", "month", 3), ("12", "day", 12), ("1901", "year", 1901), ("76", "number", 76),
        ("19", "century", 19), ("1920", "decade", 1920),
    ]),
    ("en", "Half of them in nineteen eighty-four, two dozen, twice, a million", [
        ("Half", "number", 0.5), ("nineteen eighty-four", "number", 1984), ("two dozen", "number", 24),
        ("twice", "number", 2), ("a million", "number", 1e6),
    ]),
    ("en", "the twentieth first-class century, the second third party", [
        ("twentieth", "ordinal", 20), ("first", "ordinal", 1), ("second", "ordinal", 2), ("third", "ordinal", 3),
    ]),
    ("ru", "двадцатый первый класс", [("двадцатый", "ordinal", 20), ("первый", "ordinal", 1)]),
    ("es", "el siglo vigésimo primero", [("vigésimo primero", "century", 21)]),
    ("pl", "dwudziestego pierwszego maja", [("dwudziestego pierwszego", "day", 21), ("maja", "month", 5)]),
    ("el", "ο εικοστός πρώτος αιώνας", [("εικοστός πρώτος", "century", 21)]),
    ("it", "il ventesimo primo", [("ventesimo primo", "ordinal", 21)]),
    ("cs", "dvacátého prvního května", [("dvacátého prvního", "day", 21), ("května", "month", 5)]),
    ("en", "In 2010 may 12 people march", [("2010", "year", 2010), ("12", "number", 12)]),
    ("de", "Am 12. März 1901, im 19. Jahrhundert, die 1920er, 2 Mio., einundzwanzig", [
        ("12", "day", 12), ("März", "month", 3), ("1901", "year", 1901), ("19", "century", 19),
        ("1920", "decade", 1920), ("2 Mio", "number", 2e6), ("einundzwanzig", "number", 21),
    ]),
    ("es", "el 12 de marzo de 1901, el siglo XIX, mil doscientos, 45 por ciento", [
        ("12", "day", 12), ("marzo", "month", 3), ("1901", "year", 1901), ("XIX", "century", 19),
        ("mil doscientos", "number", 1200), ("45", "percent", 45),
    ]),
    ("fr", "le 1er mars 1901, quatre-vingt-dix-sept, soixante-douze", [
        ("1", "day", 1), ("mars", "month", 3), ("1901", "year", 1901), ("quatre-vingt-dix-sept", "number", 97),
        ("soixante-douze", "number", 72),
    ]),
    ("ru", "12 марта 1901 года, XIX век, 3,2 млн, двадцать пять, в 1920-х", [
        ("12", "day", 12), ("марта", "month", 3), ("1901", "year", 1901), ("XIX", "century", 19),
        ("3,2 млн", "number", 3.2e6), ("двадцать пять", "number", 25), ("1920", "decade", 1920),
    ]),
    ("zh-Hans", "1901年3月12日，19世纪，二千零二十人，3亿2000万，二〇一九年", [
        ("1901", "year", 1901), ("3", "month", 3), ("12", "day", 12), ("19", "century", 19),
        ("二千零二十", "number", 2020), ("3亿2000万", "number", 3.2e8), ("二〇一九", "year", 2019),
    ]),
    ("ja", "昭和64年1月7日、1920年代、320万人", [
        ("64", "year", 1989), ("1", "month", 1), ("7", "day", 7), ("1920", "decade", 1920), ("320万", "number", 3.2e6),
    ]),
    ("ko", "1901년 3월 12일, 19세기, 320만 명", [
        ("1901", "year", 1901), ("3", "month", 3), ("12", "day", 12), ("19", "century", 19), ("320만", "number", 3.2e6),
    ]),
    ("th", "12 มีนาคม พ.ศ. 2444 สามร้อย 3.2 ล้าน ๑๒๓ สามารถ", [
        ("12", "day", 12), ("มีนาคม", "month", 3), ("2444", "year", 1901), ("สามร้อย", "number", 300),
        ("3.2 ล้าน", "number", 3.2e6), ("๑๒๓", "number", 123),
    ]),
    ("ar", "في 12 مارس 1901، القرن التاسع عشر، ١٬٢٣٤٫٥ واحد وعشرون، 10 في المئة", [
        ("12", "day", 12), ("مارس", "month", 3), ("1901", "year", 1901), ("التاسع عشر", "century", 19),
        ("١٬٢٣٤٫٥", "number", 1234.5), ("واحد وعشرون", "number", 21), ("10", "percent", 10),
    ]),
    ("hi", "12 मार्च 1901, 12,34,567 और 32 लाख, ४५%", [
        ("12", "day", 12), ("मार्च", "month", 3), ("1901", "year", 1901), ("12,34,567", "number", 1_234_567),
        ("32 लाख", "number", 3.2e6), ("४५", "percent", 45),
    ]),
    ("vi", "ngày 12 tháng 3 năm 1901, thế kỷ 19, 3,2 triệu", [
        ("12", "day", 12), ("3", "month", 3), ("1901", "year", 1901), ("19", "century", 19),
        ("3,2 triệu", "number", 3.2e6),
    ]),
    ("fi", "12. maaliskuuta 1901, 1800-luvulla, kaksikymmentäyksi", [
        ("12", "day", 12), ("maaliskuuta", "month", 3), ("1901", "year", 1901), ("1800", "decade", 1800),
        ("kaksikymmentäyksi", "number", 21),
    ]),
    ("hu", "1901. március 12-én, a 19. században", [
        ("1901", "year", 1901), ("március", "month", 3), ("12", "day", 12), ("19", "century", 19),
    ]),
    ("tr", "12 Mart 1901'de, 1920'lerde, %45, yirmi bir", [
        ("12", "day", 12), ("Mart", "month", 3), ("1901", "year", 1901), ("1920", "decade", 1920),
        ("45", "percent", 45), ("yirmi bir", "number", 21),
    ]),
    (None, "1. first [1]\n2) 1901-03-12, 12.03.1901", [
        ("1901", "year", 1901), ("03", "month", 3), ("12", "day", 12),
        ("12", "day", 12), ("03", "month", 3), ("1901", "year", 1901),
    ]),
    (None, "1,2,3 0,125 12,34,567.8 3천만 5億 二〇一九 ½", [
        ("1", "number", 1), ("2", "number", 2), ("3", "number", 3), ("0,125", "number", 0.125),
        ("12,34,567.8", "number", 1_234_567.8), ("3천만", "number", 3e7), ("5億", "number", 5e8),
        ("二〇一九", "number", 2019),
    ]),
    ("en", "192.168.1.1 and one of the millions", [("192", "number", 192), ("168", "number", 168),
                                                   ("1", "number", 1), ("1", "number", 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "expected"), TEXTS)
def test_values_are_read_with_their_place_kind_and_amount(
    language: str | None, text: str, expected: list[tuple[str, str, float]]
) -> None:
    values = read_values(text, language)
    assert [(text[v.start : v.end], v.kind, v.amounts[0]) for v in values] == expected


@pytest.mark.parametrize(
    ("response", "evidence", "expected"),
    [
        (("en", "in 1901"), ("de", "am 12. März 1901"), [1]),
        (("en", "12 March 1901"), ("ja", "1901年3月12日"), [1, 1, 1]),
        (("en", "12 March 1901"), ("ru", "12 марта 1902 года, в 1901"), [1, 1, -1]),
        (("en", "13 March 1901"), ("fr", "12 mars 1901"), [-1, 1, 1]),
        (("en", "1,200"), ("en", "twelve hundred"), [1]),
        (("de", "um halb sieben"), ("zh", "六点半起床"), [0, COMPUTED]),  # the half by itself tells nothing
        (("fr", "à six heures et demie"), ("de", "um halb sieben"), [COMPUTED]),
        (("sv", "halv åtta"), ("en", "at 7:30"), [0, COMPUTED]),
        (("nl", "om half zeven uur"), ("en", "at 6:30"), [0, COMPUTED]),
        (("en", "at 16:00"), ("en", "at 4 pm"), [COMPUTED, COMPUTED]),
        (("pl", "o 4 po południu"), ("en", "at 16:00"), [COMPUTED]),
        (("vi", "lúc 4 giờ chiều"), ("pt", "às 16h00"), [COMPUTED]),
        (("ru", "в 3 часа дня"), ("en", "at 15:00"), [COMPUTED]),
        (("ru", "3 дня"), ("en", "15 days"), [-1]),
        (("it", "alle quindici"), ("zh", "下午三点"), [1]),
        (("zh", "以三比一获胜"), ("zh", "以2比0获胜"), [-1, 0]),  # a score in numerals
        (("zh", "以两比零获胜"), ("zh", "以2比0获胜"), [1, 1]),
        (("ja", "三対一で勝った"), ("ja", "2対0で勝った"), [-1, 0]),
        (("ja", "二対零で勝った"), ("ja", "2対0で勝った"), [1, 1]),
        (("en", "1.2 thousand"), ("de", "1.200"), [1]),
        (("en", "about 3 million"), ("hi", "29,57,301"), [1]),
        (("en", "2,957,401"), ("en", "2,957,301"), [-1]),
        (("en", "3.5 m"), ("en", "3.5 metres high"), [1]),  # millions or metres
        (("en", "3.5 metres"), ("en", "it is 3.5 m high"), [1]),
        (("en", "$3.5m"), ("en", "3.5 million dollars"), [1]),
        (("en", "4 m"), ("en", "3.5 metres"), [-1]),
        (("zh", "四分卫获三分之一，共九分"), ("zh", "三分之一，九分"), [1, 1]),  # a quarterback is no number
        (("en", "24 months"), ("de", "zwei Jahre"), [COMPUTED]),
        (("en", "4,200 centimetres"), ("en", "42 metres high"), [COMPUTED]),
        (("zh", "32平方公里"), ("zh", "面积3200公顷"), [COMPUTED]),  # units that no list has, but two of them
        (("en", "420 people"), ("en", "42 people"), [-1]),
        (("en", "the other 400 tons"), ("en", "4 boats"), [-1]),  # a single digit tells too little
        (("ko", "535명"), ("ko", "1910년 620명에서 1935년 85명으로"), [COMPUTED]),
        (("ko", "6대"), ("ko", "5대에서 11대로"), [COMPUTED]),
        (("de", "5 Millimeter länger"), ("de", "19 Millimeter und 14 Millimeter"), [COMPUTED]),
        (("de", "5 Jungen"), ("de", "19 Mädchen und 14 Mädchen"), [-1]),
        (("ja", "15倍"), ("ja", "3400冊から51000冊"), [COMPUTED]),
        (("ja", "14倍"), ("ja", "3400冊から51000冊"), [-1]),
        (("en", "535 guests"), ("en", "620 guests, 31 cooks, 85 waiters"), [0]),
        (("tr", "36 yıl"), ("tr", "1902'de ve 1938'de"), [COMPUTED]),
        (("fr", "1 300 véhicules"), ("fr", "de 5 200 à 3 900 véhicules"), [COMPUTED]),
        (("en", "aged 76"), ("es", "1901-1977"), [COMPUTED]),
        (("en", "aged 66"), ("es", "1901-1977"), [-1]),
        (("de", "im Alter von 68 Jahren"), ("en", "1902–1971"), [COMPUTED]),
        (("es", "a los 68 años de edad"), ("en", "1902–1971"), [COMPUTED]),
        (("ru", "в возрасте 68 лет"), ("en", "1902–1971"), [COMPUTED]),
        (("pl", "w wieku 68 lat"), ("en", "1902–1971"), [COMPUTED]),
        (("hi", "68 वर्ष की आयु में"), ("en", "1902–1971"), [COMPUTED]),
        (("bn", "৬৮ বছর বয়সে"), ("en", "1902–1971"), [COMPUTED]),
        (("ur", "68 سال کی عمر میں"), ("en", "1902–1971"), [COMPUTED]),
        (("uk", "у віці 68 років"), ("en", "1902–1971"), [COMPUTED]),
        (("ko", "예순여덟 살에"), ("en", "1902–1970, 12"), [COMPUTED]),
        (("ro", "la vârsta de 68 de ani"), ("en", "1902–1971"), [COMPUTED]),
        (("en", "aged 67 years"), ("en", "1902–1971"), [-1]),
        (("de", "im Alter von 67 Jahren"), ("en", "1902–1971"), [-1]),
        (("uk", "у двадцять сім років"), ("uk", "народилася 1902 року, вийшла заміж 1929 року"), [COMPUTED]),
        (("uk", "у двадцять п'ять років"), ("uk", "народилася 1902 року, вийшла заміж 1929 року"), [-1]),
        (("en", "75 years"), ("es", "1901-1977"), [-1]),
        (("de", "der 29-jährige Krieg"), ("en", "1618–1648"), [-1]),
        (("sv", "det 29-åriga kriget"), ("en", "1618–1648"), [-1]),
        (("ru", "29-летняя война"), ("en", "1618–1648"), [-1]),
        (("pl", "w XVII wieku 29 lat trwała wojna"), ("pl", "od 1618 do 1648"), [1, -1]),
        (("ko", "루이 13세는"), ("ko", "루이 14세는 1643년에, 1656년에"), [-1]),
        (("ko", "살인 5건"), ("ko", "1990년 1996년 살인 3건"), [-1]),
        (("sw", "ilidumu miaka 19"), ("sw", "1990 na 2010"), [-1]),
        (("en", "68 years, aged well"), ("en", "1930–1999"), [-1]),
        (("en", "the 12th century"), ("en", "The oak is 1150 years old."), [-1]),
        (("uk", "у XII столітті"), ("uk", "Дубу 1150 років."), [-1]),
        (("en", "100 years"), ("en", "1150 years old, built in 1250"), [-1]),
        (("en", "16 years"), ("en", "12 years and 5 years"), [-1]),
        (("en", "250 ships"), ("en", "in 1500 and 1750"), [-1]),
        (("hr", "10 godina"), ("hr", "osnovana je 1995. g., a zatvorena 2005. g."), [COMPUTED]),
        (("hr", "1990. g. u Zagrebu"), ("hr", "1993. g. u Zagrebu"), [-1]),
        (("is", "30 g"), ("is", "3 dag"), [-1]),
        (("de", "10 Stunden"), ("de", "von 8 Uhr bis 18 Uhr"), [COMPUTED]),
        (("ja", "10時間"), ("ja", "8時から18時まで"), [COMPUTED]),
        (("de", "18 Gäste mehr"), ("de", "12 Säle. Öffnung um 9 Uhr. Es kamen 30 Gäste."), [0]),
        (("en", "at 21:00"), ("en", "from 9:00 to 5 in the afternoon"), [-1, 1]),
        (("de", "um 21:00"), ("de", "von 9:00 bis 6 abends"), [-1, 1]),
        (("ru", "в 19:00"), ("ru", "с 7:00 до вечера"), [-1, 1]),
        (("vi", "lúc 19:00"), ("vi", "lúc 7:00 tối thiểu"), [-1, 1]),
        (("hi", "15 लोग"), ("hi", "शाम 3 लोग मारे गए"), [-1]),
        (("hi", "17 बजे"), ("hi", "शाम 5 बजे"), [1]),
        (("it", "alle 12:50"), ("it", "costa ora 12.50 euro"), [1, -1]),
        (("it", "alle 20:30"), ("it", "alle ore 8.30 di sera"), [COMPUTED, COMPUTED]),
        (("he", "רצה במאה מטר"), ("he", "200 מטר"), [-1]),
        (("en", f"0.{'0' * 311}25 kg"), ("en", "250000000000000 people"), [COMPUTED]),
        (("en", "in 1977"), ("en", "1901, 76 years later"), [0]),
        (("en", "55%"), ("ar", "٤٥٪"), [0]),
        (("en", "the 19th century"), ("it", "nel 1850"), [1]),
        (("en", "the 19th century"), ("sv", "på 1800-talet"), [1]),
        (("en", "the 1920s"), ("de", "1931"), [-1]),
        (("en", "two of the first three"), ("en", "none"), [0, 0, -1]),
        (("th", "พ.ศ. 2444"), ("en", "1901"), [1]),
        (("es", "el medio ambiente"), ("en", "25% of it"), [0]),  # a half is too common a word to tell
        (("en", "It ended two zero."), ("en", "It ended two zero."), [1, 1]),
        (("de", "fast ein Drittel"), ("en", "31%"), [COMPUTED]),
        (("en", "31%"), ("de", "ein Drittel"), [-1]),
        (("en", "0.8 percent"), ("en", "0.83 percent"), [1]),
    ],
)
def test_values_of_a_response_are_supported_contradicted_or_unknown(
    response: tuple[str, str], evidence: tuple[str, str], expected: list[int]
) -> None:
    assert support(read_values(response[1], response[0]), read_values(evidence[1], evidence[0])) == expected


SAME = [line.split("\t") for line in Path(__file__).with_name("same_values.tsv").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("language", "text", "sign", "other_language", "other"), [row for row in SAME if len(row) > 1])
def test_equal_values_in_other_words_support_each_other(
    language: str, text: str, sign: str, other_language: str, other: str
) -> None:
    first, second = read_values(text, language), read_values(other, other_language)
    assert first
    assert second
    assert (min(support(first, second) + support(second, first)) > 0) == (sign == "=")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("he", "לפני שנים רבות"),
        ("he", "אלפים השתתפו"),
        ("az", "Mini futbol klubu"),
        ("ar", "سيارة ألفا روميو"),
        ("hu", "Ezrek tüntettek."),
        ("lv", "Desmitiem cilvēku"),
        ("vi", "Vào thứ ba"),
        ("uk", "у двадцятих роках"),
        ("ur", "ان کی نواسی چھٹی پر تھی"),
        ("ur", "یہ دوا پرانی دوا سے بہتر ہے۔"),
        ("ur", "صدر چون"),
        ("ko", "네 대답은 옳다. 네 개인정보를 지켜라."),
        ("zh", "他有一点困难，百分之三点五。"),
        ("ja", "一時的に"),
        ("zh", "他比一般人高，没有比一更小的。"),
        ("ja", "一対の壺と三対の翼"),
    ],
)
def test_words_that_are_also_numbers_are_none(language: str, text: str) -> None:
    assert read_values(text, language) == ()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Document 2 says so."),
        ("zh", "根据文件2，"),
        ("fr", "le document n° 3"),
        ("ru", "документ 5"),
        ("ko", "문서 2는"),
    ],
)
def test_numbers_of_documents_are_none(language: str, text: str) -> None:
    assert read_values(text, language) == ()


@pytest.mark.parametrize(
    ("language", "text", "amount"),
    [
        ("en", "See page 45.", 45),
        ("en", "a source 12 miles away", 12),
        ("en", "a source 3.5 km away", 3.5),
        ("de", "Absatz 5 des Gesetzes", 5),
        ("it", "a ogni passo 12 soldati", 12),
        ("pl", "po stronie 12 osób", 12),
        ("sv", "på ena sidan 3 hus", 3),
        ("zh", "文件12份", 12),
        ("ko", "문서 12건", 12),
        ("vi", "tài liệu 12 triệu đồng", 12e6),
    ],
)
def test_numbers_beside_words_for_documents_and_pages_that_count_something_are_read(
    language: str, text: str, amount: float
) -> None:
    assert [value.amounts[0] for value in read_values(text, language)] == [amount]


def test_hours_that_something_takes_are_no_time_of_day() -> None:
    assert [value.hour for value in read_values("四時間、四時", "ja")] == [None, 4]


@given(st.integers(0, 10**9), st.sampled_from([",", ".", "'", " ", "\u00a0", "\u202f", ""]), st.sampled_from("0٠०๐০０"))
def test_grouping_and_digits_of_every_script(number: int, mark: str, zero: str) -> None:
    grouped = f"{number:,}".replace(",", mark)
    written = "".join(chr(ord(zero) + int(char)) if char.isdecimal() else char for char in grouped)
    (value,) = read_values(written, None)
    assert number in value.amounts


@given(
    st.dates(), st.sampled_from(["en", "de", "es", "fr", "it", "nl", "ru", "pl", "cs", "el", "tr", "hi", "ar", "sv"])
)
def test_dates_with_names_of_months(date: object, language: str) -> None:
    day, month, year = date.day, date.month, date.year % 1000 + 1000  # type: ignore[attr-defined]
    for name in month_names(language)[month - 1]:
        dates = {value.date for value in read_values(f"{day} {name.title()} {year}", language)}
        assert dates == {(year, month, day)}, name


@given(st.integers(13, 999_999), st.sampled_from(["en", "es", "ru", "tr", "el", "pl", "cs", "pt", "uk", "bg"]))
def test_spelled_out_numbers_are_read_in_ten_languages(number: int, language: str) -> None:
    words = MessageFormat("{n,spellout}", language).format({"n": number}).replace("\u00ad", "")
    amounts = [value.amounts[0] for value in read_values(words, language)]
    assert amounts == [number], words


@given(
    st.text(alphabet="0123456789.,-/' \u00a0%一二十百万月万年IVXsth marzo٣\n", max_size=60),
    st.sampled_from([None, "en", "zh", "ko", "es"]),
)
def test_any_text_can_be_read(text: str, language: str | None) -> None:
    values = read_values(text, language)
    assert all(0 <= v.start < v.end <= len(text) and v.amounts for v in values)
    assert all(a.end <= b.start for a, b in pairwise(values))
    assert set(support(values, values)) <= {0, 1}


def test_a_month_alone_is_compared_with_months() -> None:
    evidence = read_values("2001年3月に3人が来た。", "ja")
    assert support(read_values("3月", "ja"), evidence) == [1]
    assert support(read_values("4月", "ja"), evidence) == [-1]


@pytest.mark.parametrize(
    ("response", "evidence", "verdicts"),
    [
        ("05/06/2020", "5 June 2020", [1, 1, 1]),
        ("05/06/2020", "May 6, 2020", [1, 1, 1]),
        ("6 May 2020", "05/06/2020", [1, 1, 1]),
        ("05/06/2020", "5 May 2020", [1, -1, 1]),
        ("25/06/2020", "6 May 2020", [-1, -1, 1]),
    ],
)
def test_an_english_date_in_slashes_may_begin_with_day_or_month(
    response: str, evidence: str, verdicts: list[int]
) -> None:
    assert support(read_values(response, "en"), read_values(evidence, "en")) == verdicts


def test_a_percentage_ends_before_the_next_number() -> None:
    values = read_values("It rose by 5 percent to 1.234 million in 1990, about 7000.", "en")
    assert [(value.kind, value.rounded) for value in values] == [
        ("percent", False),
        ("number", True),
        ("year", False),
        ("number", True),
    ]
    assert [value.kind for value in read_values("yüzde 5", "tr")] == ["percent"]


@pytest.mark.parametrize("digits", ["1234567890123456789%d", "9" * 400 + "%d", "1" * 400 + "%d.5"])
def test_whole_numbers_of_any_length_are_exact(digits: str) -> None:
    first, second = read_values(digits % 0, "en"), read_values(digits % 1, "en")
    assert (support(first, first), support(first, second)) == ([1], [-1])
    for odd in ("9" * 9000, "9" * 400 + " million", "9" * 400 + " km", "1." + "0" * 9000, "%" + "9" * 400):
        support(read_values(odd, "en"), [*read_values("5 miles, 7 and 1990", "en"), *first])
        support(read_values("5 miles, 7, 30% and 1990", "en"), [*read_values(odd, "en"), *first])
