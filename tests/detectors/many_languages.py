"""One short invented text in many languages and scripts: a bridge, its builder, its year, its length."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """A text, a sentence of it that holds a year, and another year to put there."""

    evidence: str
    sentence: str
    year: str
    other: str

    @property
    def changed(self) -> str:
        return self.sentence.replace(self.year, self.other)


TEXTS = {
    "en": Told(
        "The stone bridge over the Lenna has nine arches. It was opened in 1862 by Mayor Anders Holm. On market days"
        " the bridge is closed to cars.",
        "It was opened in 1862 by Mayor Anders Holm.", "1862", "1907",
    ),
    "de": Told(
        "Die steinerne Brücke über die Lenna hat neun Bögen. Sie wurde 1862 von Bürgermeister Anders Holm eröffnet. An"
        " Markttagen ist die Brücke für Autos gesperrt.",
        "Sie wurde 1862 von Bürgermeister Anders Holm eröffnet.", "1862", "1907",
    ),
    "es": Told(
        "El puente de piedra sobre el Lenna tiene nueve arcos. Fue inaugurado en 1862 por el alcalde Anders Holm. Los"
        " días de mercado el puente se cierra a los coches.",
        "Fue inaugurado en 1862 por el alcalde Anders Holm.", "1862", "1907",
    ),
    "fr": Told(
        "Le pont de pierre sur la Lenna compte neuf arches. Il fut inauguré en 1862 par le maire Anders Holm. Les jours"
        " de marché, le pont est fermé aux voitures.",
        "Il fut inauguré en 1862 par le maire Anders Holm.", "1862", "1907",
    ),
    "fi": Told(
        "Lennan ylittävässä kivisillassa on yhdeksän kaarta. Sillan avasi vuonna 1862 pormestari Anders Holm."
        " Toripäivinä silta on suljettu autoilta.",
        "Sillan avasi vuonna 1862 pormestari Anders Holm.", "1862", "1907",
    ),
    "tr": Told(
        "Lenna üzerindeki taş köprünün dokuz kemeri vardır. Köprüyü 1862 yılında belediye başkanı Anders Holm açtı."
        " Pazar günleri köprü arabalara kapalıdır.",
        "Köprüyü 1862 yılında belediye başkanı Anders Holm açtı.", "1862", "1907",
    ),
    "ru": Told(
        "Каменный мост через Ленну имеет девять арок. Его открыл в 1862 году мэр Андерс Хольм. В базарные дни мост"
        " закрыт для машин.",
        "Его открыл в 1862 году мэр Андерс Хольм.", "1862", "1907",
    ),
    "el": Told(
        "Η πέτρινη γέφυρα πάνω από τη Λένα έχει εννέα τόξα. Εγκαινιάστηκε το 1862 από τον δήμαρχο Άντερς Χολμ. Τις"
        " ημέρες της αγοράς η γέφυρα κλείνει για τα αυτοκίνητα.",
        "Εγκαινιάστηκε το 1862 από τον δήμαρχο Άντερς Χολμ.", "1862", "1907",
    ),
    "ar": Told(
        "للجسر الحجري فوق نهر لينا تسعة أقواس. افتتحه العمدة أندرس هولم عام 1862 بحضور الأهالي."
        " وفي أيام السوق يغلق الجسر أمام السيارات.",
        "افتتحه العمدة أندرس هولم عام 1862 بحضور الأهالي.", "1862", "1907",
    ),
    "he": Told(
        "לגשר האבן מעל הלנה יש תשע קשתות. הוא נפתח בשנת 1862 בידי ראש העיר אנדרס הולם. בימי השוק הגשר סגור למכוניות.",
        "הוא נפתח בשנת 1862 בידי ראש העיר אנדרס הולם.", "1862", "1907",
    ),
    "hi": Told(
        "लेना नदी पर बने पत्थर के पुल में नौ मेहराब हैं। इसे 1862 में महापौर एंडर्स होल्म ने खोला था। बाज़ार के दिन पुल गाड़ियों के लिए"
        " बंद रहता है।",
        "इसे 1862 में महापौर एंडर्स होल्म ने खोला था।", "1862", "1907",
    ),
    "zh": Told(
        "莲河上的石桥有九个拱。石桥由市长安德斯于1862年宣布开通。每逢赶集的日子，桥上禁止汽车通行。",
        "石桥由市长安德斯于1862年宣布开通。", "1862", "1907",
    ),
    "ja": Told(
        "レナ川にかかる石橋には九つのアーチがある。橋は1862年に市長のアンデルスによって開通した。市の立つ日には車は通れない。",
        "橋は1862年に市長のアンデルスによって開通した。", "1862", "1907",
    ),
    "ko": Told(
        "레나강의 돌다리에는 아홉 개의 아치가 있다. 다리는 1862년에 시장 안데르스 홀름이 개통하였다."
        " 장날에는 자동차가 다닐 수 없다.",
        "다리는 1862년에 시장 안데르스 홀름이 개통하였다.", "1862", "1907",
    ),
    "th": Told(
        "สะพานหินข้ามแม่น้ำเลนนามีเก้าโค้ง สะพานเปิดใช้ในปี 1862 โดยนายกเทศมนตรีอันเดอร์ส ในวันตลาดนัดสะพานปิดไม่ให้รถผ่าน",
        "สะพานเปิดใช้ในปี 1862 โดยนายกเทศมนตรีอันเดอร์ส", "1862", "1907",
    ),
    "ka": Told(
        "ლენაზე გადებულ ქვის ხიდს ცხრა თაღი აქვს. ხიდი 1862 წელს მერმა ანდერს ჰოლმმა გახსნა. ბაზრობის დღეებში ხიდი"
        " მანქანებისთვის დაკეტილია.",
        "ხიდი 1862 წელს მერმა ანდერს ჰოლმმა გახსნა.", "1862", "1907",
    ),
}  # fmt: skip
