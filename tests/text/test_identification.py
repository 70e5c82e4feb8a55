from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from tricky_texts import TEXTS

from programs import printed
from veriglot.records.languages import languages
from veriglot.text.identification import _knowledge, identify

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("The bridge was opened to traffic in the spring of that year.", "en"),
        ("Die Brücke wurde im Frühjahr jenes Jahres für den Verkehr geöffnet.", "de"),
        ("Le pont a été ouvert à la circulation au printemps de cette année-là.", "fr"),
        ("El puente se abrió al tráfico en la primavera de aquel año.", "es"),
        ("A ponte foi aberta ao tráfego na primavera daquele ano e não fechou mais.", "pt"),
        ("Il ponte fu aperto al traffico nella primavera di quell'anno.", "it"),
        ("Most został otwarty dla ruchu wiosną tamtego roku.", "pl"),
        ("Köprü o yılın ilkbaharında trafiğe açıldı.", "tr"),
        ("Cây cầu được mở cho xe cộ qua lại vào mùa xuân năm đó.", "vi"),
        ("Zubia urte hartako udaberrian ireki zuten zirkulaziorako.", "eu"),
        ("Jembatan itu dibuka karena pemerintah kota bisa membiayainya, yaitu pada bulan Agustus.", "id"),
        ("Jambatan itu dibuka kerana kerajaan boleh membiayainya, iaitu pada bulan Ogos.", "ms"),
        ("Jembatan itu dibuka pada tahun 1897.", "id"),
        ("Jambatan itu dibuka pada tahun 1897.", "ms"),
        ("Most je otvoren za saobraćaj u proleće te godine, posle dugog čekanja, a uvek je pun sveta.", "sr-Latn"),
        ("Most je otvoren za promet u proljeće te godine, nakon stoljeća čekanja, u lipnju.", "hr"),
        ("Мост је отворен за саобраћај у пролеће те године.", "sr-Cyrl"),
        ("Мост открыли для движения весной того года.", "ru"),
        ("Міст відкрили для руху навесні того року.", "uk"),
        ("Мостът беше открит за движение през пролетта на тази година.", "bg"),
        ("Η γέφυρα δόθηκε στην κυκλοφορία την άνοιξη εκείνου του έτους.", "el"),
        ("הגשר נפתח לתנועה באביב של אותה שנה.", "he"),
        ("די בריק איז געעפֿנט געוואָרן אין פֿרילינג און איז נאָך דאָ.", "yi"),
        ("فُتح الجسر أمام حركة المرور في ربيع ذلك العام.", "ar"),
        ("این پل در بهار همان سال به روی ترافیک باز شد.", "fa"),
        ("یہ پل اسی سال بہار میں ٹریفک کے لیے کھولا گیا۔", "ur"),
        ("هي پل ان سال جي بهار ۾ ٽريفڪ لاءِ کوليو ويو.", "sd"),
        ("उस वर्ष वसंत में पुल को यातायात के लिए खोल दिया गया था।", "hi"),
        ("त्या वर्षी वसंत ऋतूत पूल वाहतुकीसाठी खुला करण्यात आला होता आणि तो मोठा आहे.", "mr"),
        ("সেই বছরের বসন্তে সেতুটি যান চলাচলের জন্য খুলে দেওয়া হয়।", "bn"),
        ("সেই বছৰৰ বসন্তত দলংখন মুকলি কৰা হৈছিল।", "as"),
        ("สะพานเปิดให้สัญจรในฤดูใบไม้ผลิของปีนั้น", "th"),
        ("그 다리는 그해 봄에 개통되었다.", "ko"),
        ("橋はその年の春に開通した。", "ja"),
        ("这座桥在那年春天开放通车。", "zh-Hans"),
        ("這座橋在那年春天開放通車。", "zh-Hant"),
        ("呢條橋喺嗰年春天開咗，而家仲有好多人用佢。", "yue"),
        ("ድልድዩ በዚያ ዓመት ጸደይ ለትራፊክ ክፍት ሆነ ነው።", "am"),
        ("კიდი იმ წლის გაზაფხულზე გაიხსნა.", "ka"),
    ],
)  # fmt: skip
def test_languages(text: str, tag: str) -> None:
    found = identify(text)
    assert found is not None
    assert found.tag == tag
    assert 0.3 <= found.confidence <= 1


@pytest.mark.parametrize("text", ["", " \n", "12 345,6", "?!", "ok", "x", "😀😀", "asdf qwer zxcv", "\ud800", "ЖЖ"])
def test_refused(text: str) -> None:
    assert identify(text) is None


def test_a_second_script_lowers_the_confidence() -> None:
    alone = identify("这座桥在那年春天开放通车。")
    mixed = identify("这座桥在那年春天开放通车。 Opened in spring.")
    assert alone is not None
    assert mixed is not None
    assert mixed.tag == alone.tag == "zh-Hans"
    assert mixed.confidence < alone.confidence


def test_every_answer_is_in_the_table() -> None:
    known = _knowledge()
    labels = {label for listed in known.model_labels.values() for label in listed.split()} - {"sr"}
    tags = {known.tags.get(label, label) for label in labels} | set(known.one_language.values())
    tags |= {tag for group in (*known.letters.values(), *known.own_words.values()) for tag in group}
    assert tags <= set(languages())
    assert len(tags) > 140


def test_model_knows_its_labels() -> None:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    labels = set(LanguageIdentifier.from_model_file(MODEL_FILE).labels)
    assert {label for listed in _knowledge().model_labels.values() for label in listed.split()} <= labels


def test_the_model_is_loaded_only_when_asked() -> None:
    code = (
        "import sys; from veriglot.text.identification import identify; "
        "identify('그 다리는 그해 봄에 개통되었다.'); print('py3langid' in sys.modules); "
        "identify('The bridge was opened.'); print('py3langid' in sys.modules)"
    )
    assert printed(code).split() == ["False", "True"]


@pytest.mark.fuzz
@given(TEXTS)
def test_any_text_gets_an_answer_or_none(text: str) -> None:
    found = identify(text)
    if found is not None:
        assert found.tag in languages()
        assert 0.3 <= found.confidence <= 1


def test_accuracy_on_xquad(shared_data: Path) -> None:
    right = total = 0
    for path in sorted((shared_data / "xquad").glob("*.json")):
        tag = path.name.split(".")[1]
        for article in json.loads(path.read_text("utf-8"))["data"][:8]:
            found = identify(article["paragraphs"][0]["context"])
            right += found is not None and found.tag.split("-")[0] == tag
            total += 1
    assert right / total >= 0.97
