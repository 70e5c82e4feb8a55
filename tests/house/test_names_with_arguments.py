"""Names that take an argument after a colon, and options given on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from veriglot.cli.detectors import detector_recipe
from veriglot.errors import UnknownNameError, UsageError
from veriglot.plugins import Entry, Registry, read_settings


class Kept:
    """Keeps what it was made with."""

    def __init__(self, model: str, *, batch: int = 1, whole: bool = True) -> None:
        self.model, self.batch, self.whole = model, batch, whole


class Plain:
    """Takes nothing."""


TABLE = Registry(
    "thing",
    "no.such.group",
    {"kept": Entry(f"{__name__}:Kept", argument="model"), "plain": Entry(f"{__name__}:Plain")},
)


def test_what_stands_after_the_colon_is_the_argument() -> None:
    assert TABLE.make("kept:C:/models/a", batch=2).model == "C:/models/a"
    assert TABLE.make("kept", model="b").model == "b"
    assert "kept:b" in TABLE
    assert "plain:b" not in TABLE
    assert "other" not in TABLE
    assert TABLE.names() == ["kept", "plain"]


@pytest.mark.parametrize("name", ["kept", "kept:"])
def test_an_argument_that_is_missing(name: str) -> None:
    with pytest.raises(UsageError, match="needs its model") as raised:
        TABLE.make(name)
    assert raised.value.remedy == "Name it after a colon: kept:NAME."


@pytest.mark.parametrize("given", ["no", "", 0, None])
def test_what_is_true_or_false_takes_nothing_else(given: object) -> None:
    with pytest.raises(UsageError, match="'whole' of the thing 'kept:a' is true or false"):
        TABLE.make("kept:a", whole=given)
    assert TABLE.make("kept:a", whole=False).whole is False


def test_an_argument_given_twice_or_to_one_that_takes_none() -> None:
    with pytest.raises(UsageError, match="and so does the option 'model'"):
        TABLE.make("kept:a", model="b")
    with pytest.raises(UnknownNameError, match="no thing named 'plain:a'"):
        TABLE.make("plain:a")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("3", 3), ("0.5", 0.5), ("-1", -1), ("[1, 2]", [1, 2]), ("models/a", "models/a"), ("", ""),
        ("a=b", "a=b"), ('"3"', "3"), ("http://127.0.0.1:80/v1", "http://127.0.0.1:80/v1"), ("1\nb = 2", "1\nb = 2"),
        ("https://x/#y", "https://x/#y"), ("mean # of all", "mean # of all"), ("3 # of all", "3 # of all"),
        ("2026-01-02", "2026-01-02"),
    ],
)  # fmt: skip
def test_settings_are_typed_as_in_toml(text: str, value: Any) -> None:
    found = read_settings([f"some-name={text}"])
    assert found == {"some_name": value}
    assert type(found["some_name"]) is type(value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["model"], "--set takes NAME=VALUE"),
        (["=x"], "--set takes NAME=VALUE"),
        (["a=1", "a=2"], "--set gives 'a' twice"),
        (["threshold=1"], "--set cannot give 'threshold'"),
    ],
)
def test_settings_that_are_none(settings: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        detector_recipe("grounding", threshold=None, words=False, settings=settings)


def test_settings_are_named_by_the_option_that_gave_them() -> None:
    with pytest.raises(UsageError, match=r"^--translator-option takes NAME=VALUE"):
        read_settings(["beams"], option="--translator-option")
    assert read_settings(["threshold=1"], option="--scorer") == {"threshold": 1}  # a detector's own, not a scorer's


def test_settings_reach_the_detector() -> None:
    with pytest.raises(UnknownNameError, match="no option of the detector 'grounding' named 'weigths'"):
        detector_recipe("grounding", threshold=None, words=False, settings=["weigths=x"])()
