"""Words that claim nothing are known in many languages, and facts are never taken for them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from veriglot.judging.phrases import harmless_words, patterns_of, refusal_length
from veriglot.text.segmentation import word_bounds

PAIRS = sorted((Path(__file__).resolve().parents[2] / "benchmarks" / "minimal_pairs").glob("*.toml"))


def is_refusal(sentence: str, language: str) -> bool:
    return bool(sentence) and refusal_length(sentence, language) == len(sentence)


def left(text: str, language: str | None, question: str | None = None) -> str:
    """The words that are not harmless."""
    bounds = word_bounds(text, language)
    harmless = harmless_words(text, bounds, language, question)
    assert harmless.shape == (len(bounds),)
    return " ".join(text[start:end] for (start, end), free in zip(bounds.tolist(), harmless, strict=True) if not free)


OPENINGS = [
    ("en", "Based solely on the provided passages, ", "the mill burned in 1874."),
    ("en", "Certainly! In summary, as described in the source: ", "the mill burned in 1874."),
    ("de", "Den vorliegenden Dokumenten zufolge ", "brannte die Mühle 1874."),
    ("fr", "Conformément au contexte fourni, ", "le moulin a brûlé en 1874."),
    ("es", "Con base en la información del artículo, ", "el molino ardió en 1874."),
    ("it", "Stando al documento fornito, ", "il mulino bruciò nel 1874."),
    ("pt-BR", "De acordo com o artigo, ", "o moinho ardeu em 1874."),
    ("nl", "Volgens het aangeleverde document ", "brandde de molen in 1874 af."),
    ("pl", "Zgodnie z podanym kontekstem ", "młyn spłonął w 1874 roku."),
    ("ru", "Исходя из предоставленной информации, ", "мельница сгорела в 1874 году."),
    ("tr", "Sağlanan belgeye göre ", "değirmen 1874'te yandı."),
    ("ar", "بناءً على السياق المقدم، ", "احترقت الطاحونة عام 1874."),
    ("hi", "प्रदान किए गए संदर्भ के आधार पर, ", "चक्की 1874 में जल गई।"),
    ("id", "Berdasarkan dokumen yang tersedia, ", "kilang itu terbakar pada tahun 1874."),
    ("ko", "제공된 문맥에 의하면, ", "방앗간은 1874년에 불탔습니다."),
    ("ja", "ご提示の資料によれば、", "水車小屋は1874年に焼けました。"),
    ("zh-Hant", "依據提供的文章，", "磨坊於1874年燒毀。"),
    ("th", "ตามเอกสารที่ให้มา ", "โรงสีไฟไหม้ในปี 1874"),
]


@pytest.mark.parametrize(("language", "opening", "claim"), OPENINGS)
def test_an_opening_is_harmless_and_what_follows_is_not(language: str, opening: str, claim: str) -> None:
    assert left(opening + claim, language) == left(claim, language)
    assert "1874" in left(claim, language)


@pytest.mark.parametrize(
    ("language", "claim", "closing"),
    [
        ("en", "It burned.", "Please let me know if you would like more details!"),
        ("de", "Sie brannte.", "Falls Sie weitere Fragen haben, helfe ich gerne weiter."),
        ("es", "Ardió.", "Si necesitas más información, no dudes en preguntar."),
        ("ja", "焼けました。", "ほかにご質問があればお知らせください。"),
        ("th", "โรงสีไฟไหม้", " หากมีข้อสงสัยเพิ่มเติม สามารถสอบถามได้"),
    ],
)
def test_a_closing_is_harmless_at_the_end_only(language: str, claim: str, closing: str) -> None:
    assert left(f"{claim} {closing}", language) == left(claim, language)
    assert left(f"{closing} {claim}", language) == left(f"{closing} {claim}", None)


def test_a_condition_that_offers_nothing_is_a_claim() -> None:
    text = "Parking is free. If you need a permit, apply at the town hall."
    assert left(text, "en") == left(text, None)


def test_marks_of_lists_and_citations() -> None:
    text = (
        "Here are the key points:\n1. **Mill**: built [1, 3]\n2) it burned (Document 2)\na) twice [Source 4].\n```text"
    )
    assert left(text, "en") == "Mill built it burned twice"
    assert left("3. Mai 1874 brannte sie.", "de") == "3 Mai 1874 brannte sie", "a date is no list"
    assert left("Anna (7) and 3 others [see the text].", "en") == "Anna 7 and 3 others"
    assert left("Built in 1874 (Dokument 1).", "de") == "Built in 1874"
    assert left("He gave $1. Then 2) more.", "en") == "He gave 1 Then 2 more"


@pytest.mark.parametrize(
    ("language", "cited", "claim"),
    [
        ("en", "According to Document 2, ", "12 men died (Passage 1)."),
        ("ja", "文書2によると、", "12人が死亡した（パッセージ4）。"),
        ("zh", "根据文档2，", "共有12人死亡（段落1）。"),
        ("ko", "문서 2에 따르면 ", "12명이 죽었다 [지문 1]."),
        ("ar", "وفقًا للمستند 2، ", "مات 12 رجلا (المصدر 1)."),
        ("hi", "दस्तावेज़ 2 के अनुसार ", "12 लोग मरे (अनुच्छेद 1)।"),
        ("tr", "Belge 2'ye göre ", "12 kişi öldü (Paragraf 1)."),
        ("fi", "Asiakirjan 2 mukaan ", "12 kuoli (kappale 1)."),
        ("pl", "Według dokumentu 2, ", "zginęło 12 osób (akapit 1)."),
        ("vi", "Theo tài liệu 2, ", "12 người chết (Tài liệu 1)."),
        ("fr", "Selon le document 2, ", "12 hommes sont morts (passage 1)."),
        ("tr", "Kaynak 3’e göre ", "12 kişi öldü."),
        ("ja", "文書2によれば、", "12人が死亡した(3番目の段落)。"),
        ("ja", "文書2によれば、", "12人が死亡した(3ページ)。"),
    ],
)
def test_the_number_of_a_source_is_no_claim(language: str, cited: str, claim: str) -> None:
    rest = left(cited + claim, language)
    assert rest == left(claim, language)
    assert re.findall(r"\d+", rest) == ["12"]


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [
        ("de", "Laut Bericht 300 Menschen starben.", "300"),
        ("de", "Laut Bericht 2,5 Millionen starben.", "2,5"),
        ("en", "It was long (Report 5 million).", "5"),
        ("en", "The report (300 pages) is long.", "300"),
        ("en", "It has table 3 teams.", "3"),
        ("en", "According to the text 12 men died.", "12"),
        ("en", "In Document 2 men died.", "2"),
        ("en", "According to Article 12, they pay.", "12"),
        ("ru", "Согласно статье 12, они платят.", "12"),
        ("fr", "Le rapport (300 pages) est long.", "300"),
        ("ja", "報告書は長い(300ページ)。", "300"),
        ("hi", "अनुच्छेद 21 के अनुसार, जीवन का अधिकार है।", "21"),
        ("bn", "অনুচ্ছেদ ২১ অনুযায়ী, জীবনের অধিকার আছে।", "২১"),
        ("el", "Σύμφωνα με το άρθρο 21, υπάρχει δικαίωμα.", "21"),
        ("ar", "وفقا للمادة 21، الحق مكفول.", "21"),
        ("hu", "Cikk 21 szerint jog van.", "21"),
        ("ka", "სტატია 21-ის მიხედვით, უფლება არსებობს.", "21"),
        ("bg", "Според параграф 21, правото съществува.", "21"),
        ("vi", "Đoạn 12 km theo kế hoạch đã xong.", "12"),
        ("en", "Reports 12 dead according to police.", "12"),
        ("fi", "Raportti 12 maan mukaan.", "12"),
        ("es", "Se publicó (45 artículos).", "45"),
        ("tr", "Rapora göre 300 kişi öldü.", "300"),
        ("ko", "문서 300건이 있다.", "300"),
        ("zh", "文档300份。", "300"),
        ("ja", "文書12件がある。", "12"),
        ("th", "ตามข้อความ 12 คนเสียชีวิต", "12"),
    ],
)
def test_a_number_beside_the_name_of_a_source_may_be_a_claim(language: str, text: str, number: str) -> None:
    assert number in left(text, language)


def test_an_announcement_may_take_up_the_question() -> None:
    text = "The main reasons for the fire are:\n- heat\n- wind"
    assert left(text, "en", "What were the reasons for the fire?") == "heat wind"
    assert "fire" in left(text, "en")


@pytest.mark.parametrize(
    ("language", "frame", "claim"),
    [
        ("en", "**Document 2** explains that ", "12 men died."),
        ("en", "The second document states: ", "12 men died."),
        ("en", "However, it does state that ", "12 men died."),
        ("de", "Dokument 2 besagt, dass ", "12 Männer starben."),
        ("fr", "Le **document 2** indique que ", "12 hommes sont morts."),
        ("es", "El texto señala que ", "12 hombres murieron."),
        ("ru", "**Документ 2** сообщает, что ", "12 человек погибли."),
        ("pl", "Dokument 2 podaje, że ", "12 osób zginęło."),
        ("fi", "Asiakirja 2 kertoo, että ", "12 ihmistä kuoli."),
        ("ar", "يذكر المستند 2 أن ", "12 رجلا ماتوا."),
        ("hi", "दस्तावेज़ 2 में ", "12 लोग मरे।"),
        ("sw", "Hati ya 2 inasema kwamba ", "watu 12 walikufa."),
        ("ko", "**문서 2**는 ", "12명이 죽었다."),
        ("ja", "**文書2**は", "12人が死亡した。"),
        ("zh", "**文档2**指出，", "共有12人死亡。"),
        ("zh", "不过，文中提到，", "共有12人死亡。"),
    ],
)
def test_that_a_source_says_something_is_no_claim(language: str, frame: str, claim: str) -> None:
    assert left(frame + claim, language) == left(claim, language)
    assert "12" in left(claim, language)


@pytest.mark.parametrize(
    ("language", "line", "announced"),
    [
        ("en", "There seems to be a misunderstanding in your question.", ""),
        ("de", "Um diese Frage zu beantworten, gehen wir die Dokumente Schritt für Schritt durch:", ""),
        ("fr", "Voici un aperçu des principaux événements :", ""),
        ("nl", "Uw vraag bevat een fout.", ""),
        ("it", "Sembra esserci un equivoco nella domanda.", ""),
        ("uk", "Ось основні причини:", ""),
        ("tr", "Sorunuzda bir yanlış anlama var gibi görünüyor.", ""),
        ("ar", "يبدو أن هناك خطأ في سؤالك.", ""),
        ("hi", "यहाँ मुख्य कारण दिए गए हैं:", ""),
        ("ko", "질문에 오해가 있는 것 같습니다.", ""),
        ("ja", "主な出来事の概要は以下の通りです。", ""),
        ("zh", "您的问题中似乎有误解。", ""),
        ("en", "The error was a wrong valve.", "The error was a wrong valve"),
        ("en", "It was a mistake.", "It was a mistake"),
        ("de", "Das war ein Irrtum.", "Das war ein Irrtum"),
        ("fi", "Se oli virhe.", "Se oli virhe"),
        ("tr", "Bu bir yanlış anlama.", "Bu bir yanlış anlama"),
        ("ar", "كان ذلك خطأ.", "كان ذلك خطأ"),
        ("zh", "这是一个错误。", "这 是 一个 错误"),
    ],
)
def test_what_answers_say_of_a_question_and_of_lists(language: str, line: str, announced: str) -> None:
    assert left(line, language) == announced


@pytest.mark.parametrize(
    ("language", "headers", "label", "value"),
    [
        ("en", "Feature | Details", "Current use", "Museum"),
        ("de", "Merkmal | Angabe", "Nutzung", "Museum"),
        ("pt", "Característica | Detalhes", "Uso atual", "Museu"),
        ("ru", "Характеристика | Описание", "Использование", "Музей"),
        ("th", "หัวข้อ | รายละเอียด", "การใช้งาน", "พิพิธภัณฑ์"),
        ("ar", "الخاصية | التفاصيل", "الاستخدام", "متحف"),
        ("zh", "项目 | 内容", "用途", "博物馆"),
    ],
)
def test_names_of_properties_in_a_table_claim_nothing(language: str, headers: str, label: str, value: str) -> None:
    row = f"\n|---|---|\n| {label} | {value} |"
    assert left(f"| {headers} |{row}", language) == left(value, language)
    assert left(f"| {value} | {headers} |{row}", language).startswith(left(value, language)), "a header that is a name"
    for text in (f"| {headers} |\n| {label} | {value} |", f"| {headers.split('|')[1]} |{row}"):
        assert left(label, language) in left(text, language), "rows of no table, or of one that lists other things"


def test_names_of_items_in_a_table_are_claims() -> None:
    assert "Olga" in left("| Item | Details |\n|---|---|\n| Ship Olga | sunk |", "en")


def test_yes_and_no_and_facts_are_judged() -> None:
    for text in ("Yes.", "No, that is what the text says.", "The document was signed in the town of Norva."):
        assert left(text, "en").split() == [text[s:e] for s, e in word_bounds(text, "en").tolist()]
    assert left("Yes, according to the text, it burned.", "en") == "Yes it burned"
    assert left("The mill, according to the article, burned.", "en") == "The mill burned"


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "The provided context does not include any details on when the mill burned in 1874."),
        ("en", "I'm sorry, but the documents do not specify this."),
        ("en", "The text does not mention his age, or his wife."),
        ("en", "Based on the provided context, the year is not specified."),
        ("de", "Der Text erwähnt leider nicht, wann die alte Mühle in Norva im Jahr 1874 abgebrannt ist."),
        ("cs", "Kontext bohužel neuvádí, kdy starý mlýn v Norvě vyhořel."),
        ("de", "Wann die Mühle brannte, geht aus dem Kontext leider nicht hervor."),
        ("fr", "Le document ne contient aucune information sur le moulin."),
        ("es", "El contexto proporcionado no especifica cuándo ardió el molino."),
        ("it", "Il contesto non specifica quando bruciò il mulino."),
        ("nl", "De passage vermeldt niet wanneer de molen afbrandde."),
        ("cs", "Kontext bohužel neuvádí, kdy mlýn vyhořel."),
        ("ru", "В документе нет сведений о том, когда сгорела мельница."),
        ("tr", "Bağlamda değirmenin ne zaman yandığı belirtilmiyor."),
        ("fa", "در سند اشاره‌ای به زمان آتش‌سوزی نشده است."),
        ("he", "ההקשר אינו מציין מתי נשרפה הטחנה."),
        ("hi", "दस्तावेज़ में चक्की के बारे में कोई जानकारी नहीं है।"),
        ("vi", "Ngữ cảnh không cung cấp thông tin về cối xay."),
        ("ko", "문서에는 방앗간에 대한 언급이 없습니다."),
        ("ja", "資料には水車小屋についての情報が含まれていません。"),
        ("zh-Hans", "上下文没有提到磨坊是什么时候烧毁的。"),
        ("th", "เอกสารไม่ได้กล่าวถึงโรงสี"),
    ],
)
def test_refusals(language: str, sentence: str) -> None:
    assert is_refusal(sentence, language)


@pytest.mark.parametrize(
    ("language", "refusal", "claim"),
    [
        ("en", "The context does not mention the price for adults", ", but children enter free of charge."),
        ("en", "The text does not give a year", ", but the mill burned in 1874."),
        ("de", "Der Text erwähnt den Preis nicht", ", aber der Eintritt für Kinder ist frei."),
        ("fr", "Le contexte ne mentionne pas le prix", ", mais l'entrée est gratuite pour les enfants."),
        ("ru", "В тексте не упоминается цена", ", но для детей вход в музей бесплатный."),
        ("ar", "لا يذكر السياق سعر الدخول", "، لكن الدخول مجاني للأطفال في كل يوم."),
        ("ja", "文脈には料金についての記載がありませんが", "、子どもの入場は無料であり予約も要りません。"),
        ("zh", "上下文没有提到成人的票价", "，但儿童每天都可以免费进入博物馆。"),
        ("en", "", "The mill in Norva burned down, but the text does not say why."),
    ],
)
def test_a_refusal_may_be_the_first_part_of_a_sentence(language: str, refusal: str, claim: str) -> None:
    assert refusal_length(refusal + claim, language) == len(refusal)


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "The mill was not mentioned by Smith in 1902."),
        ("en", "The text says that the mill was not mentioned in the will."),
        ("en", "The text does not give a year, but the mill burned in 1874."),
        ("en", "No, the text does not say so."),
        ("en", "According to the text, the company did not disclose its losses of 5 million."),
        ("en", "The text does not mention Berlin, Paris is the capital of Spain."),
        ("en", "The document does not say this because Napoleon died in 1950."),
        ("en", "The report does not state that the bank lost 5 million; it won 10 million."),
        ("de", "Laut Bericht hat die Firma ihre Verluste nicht genannt."),
        ("de", "Der Text nennt das nicht, denn Napoleon starb 1950 in Wien."),
        ("zh-Hans", "文本没有提到柏林，巴黎是西班牙的首都。"),
        ("en", "The mill does not contain any stones."),
        ("de", "Der Text sagt, dass die Mühle nicht erwähnt wurde."),
        ("tr", "Değirmen metinde belirtilmektedir."),
        ("ru", "Мельница не упоминается Смитом."),
        ("ja", "水車小屋は一般に公開されていません。"),
        ("zh-Hans", "磨坊没有烧毁。"),
    ],
)
def test_denied_facts_are_no_refusals(language: str, sentence: str) -> None:
    assert not is_refusal(sentence, language)


def test_odd_input() -> None:
    for text in ("", " \n", "[]", "1.", "\ud800 [1]", "((((", "A" * 5000, "a, " * 2000):
        for language in ("en", "th", "xx", None):
            left(text, language, text)
            is_refusal(text, language)


@pytest.mark.parametrize("run", ["-" * 300, "'" * 300, "a-" * 300, "a'" * 300, " " * 300, "' - " * 100])
def test_long_runs_of_signs_after_a_negation_end(run: str) -> None:
    """What parts words is in no word: with two ways to match it, each of these took hours."""
    for language, begin in (
        ("en", "The text does not "),
        ("de", "Der Text sagt nicht "),
        ("fr", "Le texte ne dit pas "),
        ("ru", "Текст не "),
        ("sv", "Texten säger"),
    ):
        is_refusal(begin + run, language)
        is_refusal(begin + run + "z", language)


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_the_frames_of_minimal_pairs(path: Path) -> None:
    """Every language that rows are written in has a table, which covers their frames and leaves their `yes` alone."""
    data, language = tomllib.loads(path.read_text("utf-8")), path.stem
    assert patterns_of(language) is not None
    assert all(not is_refusal(text, language) for text in (*data["plain_yes"], *data["plain_no"]))
    assert all(not left(text, language) for text in data["list_intros"])
    for text in data["closings"]:
        assert not left(text, language) or is_refusal(text, language)
