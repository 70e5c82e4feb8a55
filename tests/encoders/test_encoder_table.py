"""Names, languages, and what an import costs."""

from __future__ import annotations

import pytest

from programs import printed
from veriglot.encoders.base import ENCODERS, load_encoder, measured_in, strength_among
from veriglot.errors import UnknownNameError, UsageError
from veriglot.plugins import Entry, Registry
from veriglot.records.languages import get_language


def test_the_names() -> None:
    assert ENCODERS.names() == ["e5-multilingual", "sentence-transformers", "use-multilingual"]
    with pytest.raises(UnknownNameError, match="Did you mean use-multilingual"):
        load_encoder("use-multilingal")


def test_the_import_is_light() -> None:
    heavy = ("onnxruntime", "onnx", "sentencepiece", "torch", "transformers", "sentence_transformers")
    code = f"import sys, veriglot.encoders; print([name for name in {heavy!r} if name in sys.modules])"
    assert printed(code) == "[]\n"


@pytest.mark.parametrize(
    ("tag", "strength"),
    [
        ("de", "measured"), ("de-AT", "measured"), ("zh", "measured"), ("zh-TW", "measured"), ("yue", "measured"),
        ("sr", "weak"), ("sr-Latn", "weak"), ("hi", "weak"), ("ary", "weak"), ("ru-Latn", "weak"), ("tlh", "weak"),
        ("gl", "measured"), ("bg", "weak"), ("", "weak"), (None, "weak"),
    ],
)  # fmt: skip
def test_strength_is_that_of_the_language_as_it_is_written(tag: str | None, strength: str) -> None:
    assert strength_among(measured_in("use-multilingual"), tag) == strength


def test_languages_are_base_tags() -> None:
    known = {get_language(tag).base for tag in measured_in("use-multilingual")}
    assert {"ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"} <= known
    assert not {"hi", "he", "sr", "zh-Hans"} & known
    assert measured_in("another") == ()
    assert strength_among(measured_in("another"), "de") == "weak"
    assert strength_among({"de"}, "de-CH") == "measured"


class Loose:
    """An encoder of somebody else's, that takes whatever it is given."""

    def __init__(self, path: str, **more: object) -> None:
        self.given = {"path": path, **more}


def test_an_encoder_may_take_any_option() -> None:
    table = Registry("encoder", "no.such.group", {"loose": Entry(f"{__name__}:Loose", summary="")})
    assert table.make("loose", path="a", b=1).given == {"path": "a", "b": 1}
    with pytest.raises(UsageError, match="needs the option 'path'"):
        table.make("loose", b=1)
