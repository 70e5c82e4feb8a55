"""Replies are read strictly: one value of the form that was asked for, and probabilities that surely belong to it."""

from __future__ import annotations

import math

import msgspec
import pytest

from veriglot.detectors.judge.answers import label_probabilities, list_probability, read_answer
from veriglot.llm.client import AnswerError, Reply, Token


class Answer(msgspec.Struct, frozen=True):
    label: bool


@pytest.mark.parametrize(
    "text",
    [
        '{"label": true}',
        'Here you are:\n```json\n{"label": true}\n```\nGlad to help!',
        '<think>Is it {"label": false}? No.</think>{"label": true}',
        'I think first {"label": fal... no.</think>\n{"label": true}',
        '{"label": true}\n\n{"label": true}',
        'The form {"label": ...} asks for a label {a}: {"label": true}',
    ],
)
def test_an_answer_is_found_among_other_words(text: str) -> None:
    assert read_answer(Reply(text), Answer) == Answer(True)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(""), "empty"),
        (Reply("<think>I wonder and wonder"), "empty"),
        (Reply("I'm sorry, but I cannot help with that."), "no JSON.*I'm sorry"),
        (Reply('{"label": tr', "length"), "cut at its length"),
        (Reply('{"label": true}', "length"), "cut at its length"),
        (Reply("", "filter"), "withheld its reply"),
        (Reply('{"label": "perhaps"}'), "not as asked"),
        (Reply('{"verdict": true}'), "not as asked"),
        (Reply('{"label": true} or rather {"label": false}'), "2 answers that differ"),
        (Reply("{'label': True}"), "no JSON"),
        (Reply("{" * 5000 + '{"a":' * 5000), "not what was asked"),
    ],
)
def test_what_would_have_to_be_guessed_is_refused(reply: Reply, said: str) -> None:
    with pytest.raises(AnswerError, match=said):
        read_answer(reply, Answer)


TYPES = ["entity", "relation", "contradictory"]


def tokens(*rows: tuple[str, float | None] | tuple[str, float | None, dict[str, float]]) -> Reply:
    made = [Token(row[0], row[1], tuple(row[2].items()) if len(row) == 3 else ()) for row in rows]
    return Reply("".join(token.text for token in made), logprobs=tuple(made))


def test_a_label_of_several_tokens_has_their_product() -> None:
    reply = tokens(('{"type": "', -0.1), ("ent", -0.2), ("ity", -0.3), ('"}', -0.4))
    assert label_probabilities(reply, "type", ["entity"], TYPES) == [{"entity": pytest.approx(math.exp(-0.5))}]


def test_a_token_that_reaches_beyond_its_label_counts_as_a_whole() -> None:
    reply = tokens(('{"label":', -1.0), (" true}", -0.25))
    assert label_probabilities(reply, "label", ["true"], ["true"]) == [{"true": pytest.approx(math.exp(-0.25))}]


def test_below_one_half_and_without_alternatives_nothing_is_known() -> None:
    assert label_probabilities(tokens(('{"type": "entity"}', -0.7)), "type", ["entity"], TYPES) is None


def test_alternatives_are_shared_out_among_the_choices_alone() -> None:
    others = {
        "ent": math.log(0.1),
        "rel": math.log(0.3),
        "re": math.log(0.1),
        "Hmm": math.log(0.45),
        "": math.log(0.01),
    }
    reply = tokens(('{"type": "', 0.0), ("ent", math.log(0.1), others), ("ity", -2.0), ('"}', 0.0))
    (found,) = label_probabilities(reply, "type", ["entity"], TYPES) or [{}]
    assert found == {"entity": pytest.approx(0.2), "relation": pytest.approx(0.8)}


def test_alternatives_within_a_token_begin_where_the_label_does() -> None:
    others = {'": "rel': math.log(0.2), ' "ent': math.log(0.1), '": ': math.log(0.2), '": "e': math.log(0.3)}
    reply = tokens(('{"type', 0.0), ('": "e', math.log(0.3), others), ('ntity"}', 0.0))
    (found,) = label_probabilities(reply, "type", ["entity"], TYPES[:2]) or [{}]
    assert found == {"entity": pytest.approx(4 / 6), "relation": pytest.approx(2 / 6)}


def test_nothing_is_known_where_a_choice_that_was_not_seen_could_be_as_likely() -> None:
    rather = {" I": math.log(0.6), " We": math.log(0.02)}
    reply = tokens(('{"type": "', 0.0), ("entity", math.log(0.01), rather), ('"}', 0.0))
    assert label_probabilities(reply, "type", ["entity"], TYPES) is None


def test_alternatives_that_begin_several_choices_are_not_counted() -> None:
    reply = tokens(
        ('{"type": "', 0.0), ("in", math.log(0.4), {"in": math.log(0.4), "re": math.log(0.5)}), ('side"}', 0.0)
    )
    assert label_probabilities(reply, "type", ["inside"], ["inside", "invented", "relation"]) is None


def test_each_label_has_its_own_and_quotes_of_the_response_have_none() -> None:
    quoting = '{"spans": [{"text": "says \\"type\\": \\"x\\"", "type": "'
    between = '"}, {"text": "b", "type": "'
    reply = tokens((quoting, -0.1), ("entity", -0.2), (between, 0.0), ("relation", -0.6), ('"}]}', 0.0))
    found = label_probabilities(reply, "type", ["entity", "relation"], TYPES)
    assert found == [{"entity": pytest.approx(math.exp(-0.2))}, {"relation": pytest.approx(math.exp(-0.6))}]


def test_thoughts_are_no_part_of_the_answer() -> None:
    reply = tokens(('<think>"type": "relation"</think>', -3.0), ('{"type": "', 0.0), ("entity", -0.2), ('"}', 0.0))
    assert label_probabilities(reply, "type", ["entity"], TYPES) == [{"entity": pytest.approx(math.exp(-0.2))}]


def test_without_tokens_or_where_they_do_not_fit_nothing_is_known() -> None:
    whole = tokens(('{"type": "entity"}', -0.1))
    assert label_probabilities(Reply('{"type": "entity"}'), "type", ["entity"], TYPES) is None
    assert label_probabilities(tokens(('{"type": "entity"}', None)), "type", ["entity"], TYPES) is None
    assert label_probabilities(whole, "type", ["relation"], TYPES) is None
    assert label_probabilities(whole, "type", ["entity", "entity"], TYPES) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (tokens(('{"spans":', -0.1), (" []", -0.5), ("}", 0.0)), 1 - math.exp(-0.5)),
        (tokens(('{"spans": [', -0.1), ('{"', -0.3), ('text": "a"}]}', 0.0)), math.exp(-0.3)),
        (tokens(('{"spans": [\n', -0.1), ("  ", -0.1), ("{", -0.3), ('"text": "a"}]}', 0.0)), math.exp(-0.3)),
        (tokens(('{"spans":', 0.0), (" [{", math.log(0.2), {" []": math.log(0.6)}), ('"a": 1}]}', 0.0)), 0.25),
        (tokens(('{"spans": [] } {"spans": [', -0.1), ("]}", -0.3)), None),
        (tokens(('{"spans": []}', None)), None),
    ],
)
def test_the_token_that_ends_a_list_or_begins_it_says_how_sure_that_was(reply: Reply, expected: float | None) -> None:
    found = list_probability(reply, "spans")
    assert found == (None if expected is None else pytest.approx(expected))
