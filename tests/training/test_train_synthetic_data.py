"""Synthetic examples: unmarked text is in the evidence, and marked text was inserted."""

from __future__ import annotations

import hashlib
from random import Random

import numpy as np
import pytest
from training_data import WRITERS, answers, articles, counted

from veriglot.datasets.rules.material import quotable
from veriglot.text.normalization import fold
from veriglot.text.segmentation import words
from veriglot.training.grounding.examples import Example, Labelled, share_of
from veriglot.training.grounding.synthetic_data import (
    Pool,
    answer_example,
    article_example,
    changed,
    clean_texts,
    count_words,
    reworded,
    synthetic_examples,
)

LANGUAGES = list(WRITERS)


def pool_of(language: str) -> Pool:
    pool, frequencies = Pool(), counted(language)
    for n in range(20, 30):
        for sentence in quotable(WRITERS[language](n), language):
            pool.add(sentence, language, frequencies)
    return pool


def made(language: str, count: int = 120, seed: str = "a") -> list[Example]:
    pool, frequencies, rng = pool_of(language), counted(language), Random(seed)
    drawn = (article_example(article, pool, frequencies, rng) for article in articles(language, count))
    return [example for example in drawn if example is not None]


def check_marks(example: Example) -> None:
    last = 0
    for mark in example.marks:
        assert last <= mark.start < mark.end <= len(example.response)
        last = mark.end


@pytest.mark.parametrize("language", LANGUAGES)
def test_articles_give_all_kinds_with_marks_in_range(language: str) -> None:
    examples = made(language)
    assert {example.kind for example in examples} == {"clean", "removed", "changed"}
    for example in examples:
        check_marks(example)
        assert example.response.strip()
        assert (example.marks == ()) == (example.kind == "clean") or example.kind == "changed"
    marked = [bool(example.marks) for example in examples if example.kind == "changed"]
    assert np.mean(marked) > 0.9


@pytest.mark.parametrize("language", LANGUAGES)
def test_unmarked_words_stand_in_the_article(language: str) -> None:
    """Except the endings that rewording changes, which are one in twenty at most."""
    for kind in ("clean", "changed", "removed"):
        strange = total = 0
        for example in made(language):
            if example.kind != kind:
                continue
            known = fold("\n".join(example.passages))
            for start, end in words(example.response, language):
                if not any(m.start < end and start < m.end for m in example.marks):
                    total += 1
                    strange += fold(example.response[start:end]) not in known
        assert total > 100
        assert strange / total < 0.05


@pytest.mark.parametrize("language", LANGUAGES)
def test_removed_sentences_are_gone_from_the_evidence(language: str) -> None:
    removed = [example for example in made(language) if example.kind == "removed"]
    for example in removed:
        for mark in example.marks:
            assert example.response[mark.start : mark.end] not in "\n".join(example.passages)


@pytest.mark.parametrize("language", LANGUAGES)
def test_changed_sentences_differ_at_their_marks_and_nowhere_else(language: str) -> None:
    pool, frequencies, rng = pool_of(language), counted(language), Random("changed")
    types = set()
    count = 0
    for n in range(40):
        for sentence in quotable(WRITERS[language](n), language):
            result = changed(sentence, language, pool, frequencies, rng)
            if result is None:
                continue
            text, marks = result
            count += 1
            assert marks
            kept, read = [], 0
            for mark in marks:
                assert read <= mark.start < mark.end <= len(text)
                kept.append(text[read : mark.start])
                read = mark.end
                types.add(mark.type)
            kept.append(text[read:])
            assert sentence.startswith(kept[0])
            assert sentence.endswith(kept[-1])
            place = 0
            for part in kept:
                place = sentence.index(part, place) + len(part)
            assert fold(text) != fold(sentence)
    assert count > 100
    assert "entity" in types
    assert types <= {"entity", "relation"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_rewording_keeps_almost_all_words(language: str) -> None:
    frequencies, rng = counted(language), Random("reworded")
    same = other = nothing = 0
    for n in range(40):
        for sentence in quotable(WRITERS[language](n), language):
            text = reworded(sentence, language, frequencies, rng)
            assert len(text) <= len(sentence) + 4
            nothing += not text
            known = {sentence[s:e] for s, e in words(sentence, language)}
            strange = [text[s:e] for s, e in words(text, language) if text[s:e] not in known]
            assert len(strange) <= 4
            same += text == sentence
            other += text != sentence
    assert nothing == 0
    assert same > 20
    assert other > 20


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    assert made("en") == made("en")
    assert made("en", seed="b") != made("en")
    labelled = Labelled(articles=[a for lang in LANGUAGES for a in articles(lang, 30)], answers=answers(30))
    frequencies = count_words(labelled)
    assert synthetic_examples(labelled, frequencies, 1) == synthetic_examples(labelled, frequencies, 1)
    assert synthetic_examples(labelled, frequencies, 1) != synthetic_examples(labelled, frequencies, 2)


def test_every_article_and_answer_keeps_its_group() -> None:
    labelled = Labelled(articles=articles("en", 30), answers=answers(30))
    examples = synthetic_examples(labelled, count_words(labelled), 1)
    assert {e.source for e in examples} == {"articles", "answers"}
    by_passage: dict[str, set[str]] = {}
    for example in examples:
        if example.source == "answers":
            by_passage.setdefault(example.passages[0], set()).add(example.group)
    assert all(len(groups) == 1 for groups in by_passage.values())
    assert len({group for groups in by_passage.values() for group in groups}) == len(by_passage) > 10


def test_answers_are_right_where_unmarked_and_wrong_where_marked() -> None:
    given, rng = answers(60), Random("answers")
    right = wrong = 0
    for answer in given * 3:
        example = answer_example(answer, given, rng)
        if example is None:
            continue
        check_marks(example)
        assert example.passages == (answer.passage,)
        if example.kind == "clean":
            right += 1
            assert example.marks == ()
            assert answer.text in example.response
        else:
            wrong += 1
            (mark,) = example.marks
            put = example.response[mark.start : mark.end]
            assert fold(put) not in fold(answer.text)
            assert any(put == other.text for other in given)
            assert any(c.isdigit() for c in put) == any(c.isdigit() for c in answer.text)
    assert right > 50
    assert wrong > 50


def test_no_wrong_answer_is_at_hand() -> None:
    (only, *_), rng = answers(1), Random(0)
    drawn = [answer_example(only, [only], rng) for _ in range(40)]
    assert None in drawn
    assert all(example.kind == "clean" for example in drawn if example is not None)


def test_short_articles_are_passed_over() -> None:
    short = articles("en", 1)[0]
    short = type(short)("x", "en", ("One sentence that is long enough to quote.",), ())
    assert article_example(short, pool_of("en"), counted("en"), Random(1)) is None
    assert quotable("Too short. " + "x" * 500 + ". This one is of a good length.", "en") == [
        "This one is of a good length."
    ]


def test_clean_texts_are_given_once() -> None:
    twice = Labelled(articles=articles("en", 2) * 2, answers=answers(2))
    assert sorted(text for _, text in clean_texts(twice)) == sorted({WRITERS["en"](0), WRITERS["en"](1)})


def test_common_words_are_common() -> None:
    frequencies = counted("en", "de")
    text = "The town und Xylophon"
    the, town, und, rare = frequencies.of(text, words(text, "en")).tolist()
    assert the > town > rare == 0
    assert und > 6
    assert frequencies.table().shape == (2, 1 << 17)
    before = frequencies.table()
    frequencies.count(["Xylophon spielt Xylophon"], "nl")
    assert not np.array_equal(frequencies.table(), before)


def test_a_share_depends_on_the_text_alone_and_is_even() -> None:
    shares = np.array([share_of(str(n)) for n in range(2000)])
    assert share_of("group") == share_of("group") == pytest.approx(0.0768, abs=1)
    assert ((shares >= 0) & (shares < 1)).all()
    assert np.histogram(shares, 10, (0, 1))[0].min() > 150


def test_equal_seeds_make_what_they_always_made() -> None:
    """The training data of the installed weights can be made again: other examples need other weights."""
    labelled = Labelled(articles=[one for tag in LANGUAGES for one in articles(tag, 40)], answers=answers(40))
    examples = synthetic_examples(labelled, count_words(labelled), 7)
    assert len(examples) == 174
    digest = hashlib.sha256("\n".join(map(repr, examples)).encode()).hexdigest()
    assert digest == "4301a2ffa7fca71faa350037f43733d517c89d6ecc1a6de13515e1310bbb5e8c"
