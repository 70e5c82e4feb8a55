"""Stop words: a list for every language of the papers, in the form in which words are compared."""

from __future__ import annotations

from veriglot.records.languages import get_language, languages
from veriglot.scorers.rouge import _table, stop_words, tokens


def test_every_language_of_the_papers_has_a_list() -> None:
    papers = [tag for tag, entry in languages().items() if entry.sources]
    assert len(papers) > 35
    assert [tag for tag in papers if not stop_words(tag)] == []


def test_tags_of_the_lists_are_ours() -> None:
    for tag in sorted(_table()):
        found = get_language(tag)
        assert tag in (found.tag, found.base), tag  # else nothing would find it
    assert len(sorted(_table())) >= 70


def test_words_are_in_the_form_that_is_compared() -> None:
    """A word that is cut or written otherwise could never be met."""
    for tag in sorted(_table()):
        for word in stop_words(tag) or ():
            assert tokens(word, tag) == (word,), (tag, word)
            assert not any(char.isnumeric() for char in word), (tag, word)


def test_lists_hold_what_they_are_for() -> None:
    expected = {
        "en": "the",
        "de": "der",
        "ur": "ہے",
        "yue": "嘅",
        "sd": "جو",
        "sr-Cyrl": "је",
        "sr-Latn": "je",
        "th": "ที่",
    }
    for tag, word in expected.items():
        assert tokens(word, tag)[0] in (stop_words(tag) or ()), tag
    assert "paris" not in (stop_words("en") or ())
    assert stop_words("no such language") is None
    assert stop_words("chr") is None
    assert stop_words("zh-Hant") == stop_words("zh"), "traditional characters are compared as simplified ones"
