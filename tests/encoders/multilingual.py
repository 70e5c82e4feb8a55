"""Sentences in many scripts, and texts that trip tokenizers."""

from __future__ import annotations

SENTENCES = {
    "en": "The lighthouse of Norva was built in 1871, and its keeper passed away in 1955.",
    "de": "Der Leuchtturm von Norva wurde 1871 gebaut; sein Wärter starb im Jahr 1955.",
    "fr": "Le phare de Norva a été construit en 1871 et son gardien est mort en 1955.",
    "ru": "Маяк в Норве построили в 1871 году, а его смотритель умер в 1955 году.",
    "ar": "بُنيت منارة نورفا عام 1871، وتوفي حارسها عام 1955.",
    "zh": "诺尔瓦灯塔建于1871年，守塔人于1955年去世。",
    "ja": "ノルヴァの灯台は1871年に建てられ、灯台守は1955年に亡くなった。",
    "th": "ประภาคารนอร์วาสร้างขึ้นในปี 1871 และผู้ดูแลเสียชีวิตในปี 1955",
    "tr": "Norva deniz feneri 1871'de inşa edildi, bekçisi 1955'te öldü.",
    "ko": "노르바 등대는 1871년에 세워졌고 등대지기는 1955년에 세상을 떠났다.",
}
UNRELATED = "Bananas are picked green and ripen in the warehouse."
ODD = (
    "e\u0301 ﬁn 𝔸 👍🏽 x\r\ny  z\u200b ½ ™",
    "ＡＢＣ　全角",
    "a\x00b\ufeffc",
    "\ud800 half a pair",
    "  two spaces  before and after  ",
    "ΑΒΓ ﷺ ㍿ ①",
    "",
    "   ",
    "\u200b",
    "\n",
)
