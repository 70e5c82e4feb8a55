"""The codes of translation models: one table, which translators and scorers read."""

from __future__ import annotations

import pytest

from veriglot.records.languages import get_language, tag_of, translation_codes


@pytest.mark.parametrize(
    ("tag", "nllb", "m2m100", "mbart50"),
    [
        ("en", "eng_Latn", "en", "en_XX"),
        ("zh-Hant", "zho_Hant", None, None),
        ("zh", "zho_Hans", "zh", "zh_CN"),
        ("sr-Latn", None, None, None),
        ("ko", "kor_Hang", "ko", "ko_KR"),
        ("yue", "yue_Hant", None, None),
        ("la", None, None, None),
        ("no-such-language", None, None, None),
    ],
)
def test_each_family_has_codes_of_its_own(tag: str, nllb: str, m2m100: str, mbart50: str) -> None:
    codes = {family: by_tag.get(tag_of(tag) or "") for family, by_tag in translation_codes().items()}
    assert codes == {"nllb": nllb, "m2m100": m2m100, "mbart50": mbart50}


def test_every_tag_is_one_of_the_language_table_and_no_code_stands_for_two() -> None:
    for codes in translation_codes().values():
        assert all(get_language(tag).tag == tag for tag in codes)
        assert len(set(codes.values())) == len(codes)
