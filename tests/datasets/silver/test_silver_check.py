"""The check of silver rows: each fault by itself, in several scripts, and no false alarms."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriglot.datasets.silver.check import Change, Edited, changes_of, check
from veriglot.records import Span

MILL = "The mill was built in 1731 by Anna Kroll. It burnt down in 1902."
MARKED = re.compile(r"\[(\w+):([^\]]*)\]")


def marked(text: str) -> tuple[str, list[Span]]:
    """`The mill [entity:1764]` as text and spans."""
    parts: list[str] = []
    spans: list[Span] = []
    read = 0
    for found in MARKED.finditer(text):
        parts += [text[read : found.start()], found[2]]
        end = sum(map(len, parts))
        spans.append(Span(end - len(found[2]), end, found[1]))
        read = found.end()
    return "".join([*parts, text[read:]]), spans


def reasons(original: str, edited: str, tag: str = "en", **options: object) -> list[str]:
    text, spans = marked(edited)
    changes = changes_of(original, text, spans)
    if changes is None:
        return ["outside"]
    return [one.reason for one in check(Edited(original, text, tuple(changes)), language=tag, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tag", "original", "edited"),
    [
        ("en", MILL, "The mill was built in [entity:1764] by Anna Kroll. It burnt down in 1902."),
        ("en", MILL, "The mill was built in [entity:1764] by [entity:Berta Senn]. It burnt down in 1902."),
        ("en", MILL, f"{MILL} [subjective:No other mill is as lovely.]"),
        ("en", MILL, f"[invented:It won the Golden Sieve.] {MILL}"),
        ("en", MILL, "The mill was built in 1731 by Anna Kroll[invented:, the Duke of Orve]. It burnt down in 1902."),
        ("en", MILL, "The mill was built in 1731 by Anna Kroll. [contradictory:It was never harmed by fire.]"),
        ("en", MILL, "The mill was built in 1731 by Anna Kroll. [unverifiable:She hummed.] It burnt down in 1902."),
        ("en", MILL, "The mill was [relation:not] built in 1731 by Anna Kroll. It burnt down in 1902."),
        ("de", "Die Mühle brannte 1902 ab.", "Die [entity:Kirche] brannte 1902 ab."),
        ("ar", "بُنيت الطاحونة عام 1731.", "بُنيت [entity:الكنيسة] عام 1731."),
        ("zh-Hans", "他出生于北京。", "他出生于[entity:上海]。"),
        ("zh-Hans", "他出生于北京。", "他出生于北京。[subjective:那是个美丽的城市。]"),
        ("ja", "彼は東京で生まれた。", "彼は[entity:大阪]で生まれた。"),
        ("th", "เขาเกิดที่กรุงเทพ", "เขาเกิดที่[entity:เชียงใหม่]"),
        ("ko", "부산은 큰 도시이다.", "[entity:서울]은 큰 도시이다."),
        ("hi", "वह दिल्ली में पैदा हुआ।", "वह [entity:मुंबई] में पैदा हुआ।"),
        ("tr", "Ankara'da doğdu.", "[entity:Adana]'da doğdu."),
        ("fr", "Il vit à l'hôtel de Lyon.", "Il vit à l'[entity:école] de Lyon."),
    ],
)
def test_what_is_sound_passes(tag: str, original: str, edited: str) -> None:
    assert reasons(original, edited, tag) == []


@pytest.mark.parametrize(
    ("reason", "tag", "original", "edited"),
    [
        ("nothing", "en", MILL, MILL),
        ("outside", "en", MILL, "The mill was built in [entity:1764] by Anna Kroll. It burnt down in 1903."),
        ("outside", "en", MILL, "The mill was built in [entity:1764] by Anna Kroll."),
        ("outside", "en", MILL, MILL.replace("1902", "1903")),
        ("glued", "en", MILL, "The mill was built in [entity:17311764] by Anna Kroll. It burnt down in 1902."),
        ("glued", "en", MILL, "The mill was built in 1731 by [entity:Anna KrollSenn]. It burnt down in 1902."),
        ("glued", "en", MILL, "The mill was built in 1731 by [entity:Berta SennAnna] Kroll. It burnt down in 1902."),
        ("glued", "en", MILL, "The [entity:millchurch] was built in 1731 by Anna Kroll. It burnt down in 1902."),
        ("glued", "en", MILL, "The mill was built in 1731 by Anna Kroll.[subjective:How nice.] It burnt down in 1902."),
        ("glued", "en", MILL, f"{MILL}[subjective:How nice.]"),
        ("glued", "en", MILL, f"[subjective:How nice.]{MILL}"),
        ("glued", "en", MILL, "The mill[entity:house] was built in 1731 by Anna Kroll. It burnt down in 1902."),
        ("glued", "de", "Die Mühle brannte ab.", "Die [entity:MühleKirche] brannte ab."),
        ("glued", "ru", "Он родился в Риме.", "Он родился в [entity:РимеПариже]."),
        ("glued", "zh-Hans", "他出生于北京。", "他出生于[entity:北京上海]。"),
        ("glued", "ja", "彼は東京で生まれた。", "彼は[entity:大阪東京]で生まれた。"),
        ("unchanged", "en", MILL, "The mill was built in [entity:1731] by Anna Kroll. It burnt down in 1902."),
        ("unchanged", "en", MILL, "The mill was built in 1731 by [entity:ANNA KROLL]. It burnt down in 1902."),
        ("empty", "en", MILL, "The mill was built in [entity:…] by Anna Kroll. It burnt down in 1902."),
        ("markup", "en", MILL, "The mill was built in [entity:**1764**] by Anna Kroll. It burnt down in 1902."),
        ("markup", "en", MILL, "The mill was built in [entity:<mark>1764] by Anna Kroll. It burnt down in 1902."),
        ("garbled", "en", MILL, f"{MILL} [invented:{'It was a very old mill of Orve. ' * 8}]"),
        ("script", "en", MILL, "The mill was built in 1731 by [entity:Анна Кроль]. It burnt down in 1902."),
        ("script", "zh-Hans", "他出生于北京。", "他出生于[entity:Shanghai]。"),
        ("language", "en", MILL, f"{MILL} [subjective:Sie ist die schönste Mühle, die es im ganzen Land jemals gab.]"),
        ("language", "de", "Die Mühle brannte 1902 ab und wurde nie wieder aufgebaut.", "Die Mühle brannte 1902 ab und"
         " wurde nie wieder aufgebaut. [invented:It was then bought by the king, who never paid for it.]"),
    ],
)  # fmt: skip
def test_each_fault_has_its_name(reason: str, tag: str, original: str, edited: str) -> None:
    assert reason in reasons(original, edited, tag)


def test_the_evidence_says_it_word_for_word() -> None:
    edited = "The mill was built in [entity:1764] by Anna Kroll. It burnt down in 1902."
    assert reasons(MILL, edited, evidence=[MILL]) == []
    wrong_original = ["Some say this. The mill was built in 1764, by Anna Kroll; others deny it."]
    assert reasons(MILL, edited, evidence=wrong_original) == ["supported"]


def test_types_and_shares_are_held_to_what_was_asked() -> None:
    edited = "The mill was built in [entity:1764] by Anna Kroll. It burnt down in 1902."
    assert reasons(MILL, edited, types=("relation",)) == ["type"]
    assert reasons(MILL, f"[entity:{MILL.replace('mill', 'hall')}]", most_changed=0.5) == ["too_much"]


def test_changes_that_cross_or_lie_beyond_the_text_are_no_changes() -> None:
    text = MILL.replace("1731", "1764")
    for changes in (
        [Change(22, 26, 22, 26, "entity"), Change(24, 28, 24, 28, "entity")],
        [Change(22, 26, 22, 26, "entity"), Change(0, 3, 0, 3, "entity")],
        [Change(22, 26, 22, 99, "entity")],
        [Change(26, 22, 22, 26, "entity")],
    ):
        assert [one.reason for one in check(Edited(MILL, text, tuple(changes)), language="en")] == ["overlap"]
    crossing = [Span(0, 10, "entity"), Span(5, 12, "entity")]
    assert changes_of(MILL, MILL, crossing) is None


def test_something_taken_out_is_told() -> None:
    text = MILL.replace(" by Anna Kroll", "")
    change = Change(26, 26, 26, 40, "entity")
    assert Edited(MILL, text, (change,)).restored == MILL
    assert [one.reason for one in check(Edited(MILL, text, (change,)), language="en")] == ["deleted"]


def test_an_unknown_language_is_checked_for_all_but_what_hangs_on_it() -> None:
    edited = "The mill was built in [entity:17311764] by Anna Kroll. It burnt down in 1902."
    assert reasons(MILL, edited, "xx-unknown") == ["glued"]


WORDS = st.lists(
    st.sampled_from(["mill", "Anna", "1731", "a", "of", "the", "北京", "кот", "x.", "é"]), min_size=1, max_size=12
)


@given(before=WORDS, data=st.data())
def test_a_text_made_of_changes_is_known_again_and_any_other_letter_is_noticed(
    before: list[str], data: st.DataObject
) -> None:
    original = " ".join(before)
    number = data.draw(st.integers(1, 3))
    edges = sorted(data.draw(st.lists(st.integers(0, len(original)), min_size=2 * number, max_size=2 * number)))
    put = [
        (Change(0, 0, edges[2 * i], edges[2 * i + 1], "entity"), data.draw(st.sampled_from(["Q", "QQ Q", "Ω9"])))
        for i in range(number)
    ]
    edited = Edited.of(original, put)
    assert edited.restored == original
    found = changes_of(original, edited.text, edited.spans)
    assert found is not None
    again = Edited(original, edited.text, tuple(found))
    assert again.restored == original
    assert again.spans == edited.spans
    place = data.draw(st.integers(0, len(edited.text)))
    spans = edited.spans
    if not any(span.start <= place <= span.end for span in spans):
        moved = [Span(s.start + (s.start >= place), s.end + (s.start >= place), s.type) for s in spans]
        spoilt = edited.text[:place] + "§" + edited.text[place:]
        assert changes_of(original, spoilt, moved) is None
