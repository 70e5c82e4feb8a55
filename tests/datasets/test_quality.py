"""Measures of quality: kang's Table 1, refusals, repetition, truncation; no row is removed."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from veriglot.datasets.quality import QualityTally, is_repetitive, quality, refuses, repeated_share
from veriglot.formats.reader import read
from veriglot.records import Generator, Sample
from veriglot.records.languages import same_language

PHRASES: dict[str, list[str]] = tomllib.loads(files("veriglot.datasets").joinpath("refusals.toml").read_text("utf-8"))[
    "phrases"
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "samples.jsonl"

GERMAN = "Die Mühle von Oberfeld wurde im Jahr 1731 gebaut. Sie brannte 1902 ab und wurde nicht wieder errichtet."
ENGLISH = "The mill of Upper Field was built in 1731. It burnt down in 1902 and nobody has built it up again."


def answers(*texts: str, finish: str | None = "stop", language: str | None = "de") -> list[Sample]:
    meta = {} if finish is None else {"finish": finish}
    return [
        Sample(str(number), text, language=language, generator=Generator("m"), meta=meta)
        for number, text in enumerate(texts)
    ]


def test_means_and_shares_are_over_all_responses() -> None:
    rows = [*answers(GERMAN, ENGLISH, "", "1731!"), *answers(GERMAN[:60], finish="length")]
    found = quality(rows)["m", "de"]
    assert found.responses == 5
    assert found.words == (18 + 21 + 0 + 1 + 11) / 5
    assert found.sentences == (2 + 2 + 0 + 1 + 2) / 5
    assert found.detectable == 3 / 5
    assert found.right_language == 2 / 3
    assert found.most_frequent_language == "de"
    assert (found.empty, found.truncated, found.ended) == (1 / 5, 1 / 5, 5)
    assert (found.refused, found.repetitive) == (0, 0)


def test_an_end_that_is_not_known_is_not_called_whole() -> None:
    found = quality(answers(GERMAN, finish=None))["m", "de"]
    assert (found.truncated, found.ended) == (None, 0)
    found = quality([*answers(GERMAN, finish="unknown"), *answers(GERMAN, finish="length")])["m", "de"]
    assert (found.truncated, found.ended) == (1.0, 1)


def test_where_no_language_can_be_told_none_is_named() -> None:
    found = quality(answers("1731", "...", "42"))["m", "de"]
    assert (found.detectable, found.most_frequent_language, found.right_language) == (0, None, None)


def test_only_responses_of_a_stated_language_can_be_in_another() -> None:
    tally = QualityTally()
    for row in answers(GERMAN, ENGLISH, language=None):
        tally.add(row)
    unstated = tally.quality()
    assert unstated is not None
    assert (unstated.detectable, unstated.right_language) == (1, None)
    for row in answers(GERMAN, ENGLISH, GERMAN, GERMAN):
        tally.add(row)
    mixed = tally.quality()
    assert mixed is not None
    assert mixed.right_language == 3 / 4


def test_models_and_languages_stand_apart() -> None:
    rows = [*answers(GERMAN), *answers(ENGLISH, language="en"), *answers(GERMAN, language=None)]
    rows.append(msgspec.structs.replace(rows[0], generator=None))
    assert list(quality(rows)) == [("m", "de"), ("m", "en"), ("m", "und"), ("", "de")]
    assert QualityTally().quality() is None


def test_what_the_provider_held_back_is_refused() -> None:
    assert quality(answers("", finish="filter"))["m", "de"].refused == 1


def test_scripts_of_one_language_are_one_language() -> None:
    assert same_language("zh-Hans", "zh-Hant")
    assert same_language("sr-Latn", "sr-Cyrl")
    assert same_language("zh", "zh-Hans")
    assert not same_language("yue", "zh-Hant")
    assert not same_language("id", "ms")


@pytest.mark.slow
@pytest.mark.parametrize("tag", sorted(PHRASES))
def test_every_phrase_is_found_in_its_language_and_nowhere_far_into_a_response(tag: str) -> None:
    for phrase in PHRASES[tag]:
        text = phrase.removesuffix("*").removeprefix("^")
        assert refuses(f"{text.capitalize()} ...", tag), phrase
        assert refuses(f"„{text}“", tag), phrase
        assert not refuses("1234567890 " * 30 + text, tag), phrase


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("en", "Sorry. As an AI, I have no opinion."), ("de", "Als KI kann ich das nicht sagen."),
        ("es", "Lo siento: como IA, no puedo."), ("fr", "« En tant qu'IA, je n'ai pas d'avis. »"),
        ("ru", "К сожалению, как ИИ, я этого не делаю."), ("vi", "Là một AI, tôi không có ý kiến."),
        ("zh-Hans", "作为人工智能，我没有意见。"), ("yue", "作為AI，我冇意見。"), ("sv", "Som AI kan jag inte det."),
    ],
)  # fmt: skip
def test_who_speaks_as_a_machine_declines(tag: str, text: str) -> None:
    assert refuses(text, tag)


def test_english_refusals_are_found_in_every_language() -> None:
    assert refuses("I’m sorry, but I can’t answer that.", "ja")
    assert refuses("As an AI language model, ...", "sw")
    assert refuses("I don't know", None)


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("de", "Als Kind lebte er in Ulm."),  # begins like "als KI"
        ("de", "Das Lied „Nescio“ wurde 1731 geschrieben."),
        ("es", "Como Iago sabía, el molino fue construido en 1731."),
        ("it", "Come Iago sapeva, il mulino fu costruito nel 1731."),
        ("fr", "Le molin de Jenesais fut construit en 1731."),
        ("en", "As an airport, it opened in 1931."),
        ("pl", "Jako aiol znany jest sos czosnkowy."),
        ("tr", "Değirmen 1731 yılında yapılmıştır."),
        ("zh-Hans", "磨坊建于1731年。"),
        ("en", "Ada Kroll is best known as an AI researcher and as an AI, well, sceptic."),
        ("en", "As an AI pioneer, she built the mill."),
        ("de", "Als KI-Forscherin baute Ada Kroll die Mühle."),
        ("de", "Als KI bezeichnet man die Fähigkeit von Maschinen, zu denken."),
        ("fr", "Elle travaillait en tant que modèle à Paris."),
        ("fr", "Il fut engagé en tant qu'assistant du meunier."),
        ("fa", "او به عنوان یک مدل در پاریس کار می‌کرد."),
        ("eu", "Adimen artifizialaren aitzindaria da."),
        ("vi", "Tháp 3 là một mô hình ngôn ngữ lớn."),
        ("pt", "O moleiro, como ia todos os dias à vila, morreu."),
        ("ru", "Она известна как ИИ-исследователь."),
        ("zh-Hans", "作为人工智能领域的先驱，她建了磨坊。"),
        ("zh-Hans", "考古学家没有找到磨坊。"),
    ],
)
def test_answers_are_no_refusals(tag: str, text: str) -> None:
    assert not refuses(text, tag)


def test_the_bundled_answers_are_neither_refusals_nor_repetitive() -> None:
    rows = list(read(EXAMPLES))
    found = quality(rows)
    total = sum(one.responses for one in found.values())
    assert total == len(rows) > 50
    assert sum(one.refused * one.responses for one in found.values()) <= total / 50
    assert sum(one.repetitive * one.responses for one in found.values()) <= total / 50
    assert sum((one.right_language or 0) * one.detectable * one.responses for one in found.values()) > 0.9 * total


def test_repeated_share_is_that_of_repeated_four_grams() -> None:
    assert repeated_share(["a", "b", "c", "d"]) == 0
    assert repeated_share(["a", "b", "c"]) == 0
    assert repeated_share(["a", "b", "c", "d", "a", "b", "c", "d"]) == pytest.approx(1 / 5)
    assert repeated_share(["a"] * 10) == pytest.approx(6 / 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GERMAN, False),
        (" ".join([GERMAN] * 2), True),
        ("nein nein nein nein", False),
        ("nein nein nein nein nein", True),
        ("the mill the mill the mill the mill the mill", True),
        ("to be or not to be, that is the question", False),
        ("haaaaaaaaaaaaaaaaaaaaaaaaaaah", True),
        ("1731 1732 1733 1734 1735 1736 1737 1738 1739 1740 1741 1742", False),
        ("", False),
    ],
)
def test_what_goes_round_in_circles(text: str, expected: bool) -> None:
    words = [word.strip(".,") for word in text.lower().split()]
    assert is_repetitive(words, text) is expected


def test_loops_are_found_where_no_spaces_part_words() -> None:
    rows = answers("磨坊建于1731年。" * 12, language="zh-Hans") + answers("ไม่มีโรงสี" * 20, language="th")
    assert [one.repetitive for one in quality(rows).values()] == [1, 1]


@pytest.mark.slow
def test_real_answers_are_mostly_in_their_language_and_rarely_refuse(shared_data: Path) -> None:
    """Mu-SHROOM: real answers of models; its German file has two English ones."""
    for tag in ("de", "fi", "fr", "hi", "it", "sv"):
        rows = list(read(shared_data / "mu_shroom_val" / f"mushroom.{tag}-val.v2.extra.jsonl"))
        tally = QualityTally()
        for row in rows:
            tally.add(row)
        found = tally.quality()
        assert found is not None
        assert found.most_frequent_language == tag
        assert (found.right_language or 0) >= 0.95
        assert found.refused <= 0.1
