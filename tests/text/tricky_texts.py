"""Tricky texts of our own, and the text strategy that the property tests of this folder share."""

from __future__ import annotations

from hypothesis import strategies as st

TRICKY = (
    "",
    " ",
    "\r\n\r\n",
    "Der Fluss ist 1.234,5 km lang; er entspringt 2014.",
    "e\u0301te\u0301 and q\u0307\u0323",
    "A family \U0001f468\u200d\U0001f469\u200d\U0001f467 and a flag \U0001f1e9\U0001f1ea.",
    "\U00020000\U00020001\u662f\u6f22\u5b57\u3002\U0001d400\U0001d401 x",
    "\u202bשלום\u202c (hello) \u200fעולם\u200f!",
    "می‌خواهم بروم. مُحَمَّدٌ ـــ أحمد",
    "line one\r\nline two\n\rline three\u2028line four\x85five",
    "東京は大きい都市です。「はい」と言った。",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ และไม่มีเครื่องหมายจบประโยค",
    "हिन्दी में वाक्य। दूसरा वाक्य है॥",
    "대한민국의 수도는 서울이다. 인구는 많다.",
    "lone \ud800 surrogate \udfff here",
    "\ufeffbyte order mark",
    "a\u00adb soft\u00adhyphen zero\u200bwidth",
    "\ufb01ne \uff21\uff22\uff11 \u3131\u314f \uff76\uff9e \ufdfa",
    "\u0000\u0001 control",
    "l'homme d’Italie, can't, end.Next example.com _x_ foo_bar",
)

_ALPHABET = st.one_of(
    st.characters(),
    st.characters(categories=["Cs"]),
    st.sampled_from(
        list(
            " .,;:!?'\"’-_\n\r\t\u2028aAzZßİıéеЁあア漢汉한ไทยदि।אָـُأ٣\u0301\u200d\u200c\u200f\u202e\u00ad\ufeff"
            "\u1161\u11a8\uff9e\U0001f468\U0001f1e9\U00020000\U0001d400\u3002\u06d4"
        )
    ),
)
TEXTS = st.one_of(st.text(_ALPHABET, max_size=60), st.lists(st.sampled_from(TRICKY), max_size=3).map("".join))
