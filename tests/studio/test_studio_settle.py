"""Rules settle what they can decide, say what they did, and leave ties and what a lead settled to leads."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rule_rows import RULES, spans, team

from json_lines import read_lines
from veriglot.records import Pointer, Sample
from veriglot.studio.adjudication import (
    adjudicate,
    adjudicate_next,
    disagreements,
    settle,
    submissions_of,
    unanimous_layer,
    votes_on,
)
from veriglot.studio.comparison import Comparison, gold_origins
from veriglot.studio.dashboard import overview
from veriglot.studio.export import export
from veriglot.studio.layers import Layer, LayerSpan, LayerUnit
from veriglot.studio.project import Entries, ProjectEntry, TaskKind, form_of
from veriglot.studio.tables import Refused, Role, State

FORM = form_of(Entries(ProjectEntry("Rules", "rules", TaskKind.SPANS)))
SHARED = RULES.replace("overlap = 0", "overlap = 2")
RATED = SHARED + ('[[ratings]]\nname = "severity"\nof = "span"\n\n[[ratings]]\nname = "fluency"\nof = "item"\n')
FLAG = 'flags = ["incomprehensible"]\n\n[work]'
MINE, THEIRS, APART = spans((0, 3)), spans((0, 12)), spans((0, 3), (4, 12))
TWICE, NESTED = spans((0, 3), (0, 3, "invented")), spans((0, 12), (0, 3))


def _handed_in(store, make_project, layers, rules=SHARED, count=1, **more):
    work = team(store, make_project(rules))
    ids = work.items(count, **more)
    for person, layer in [(work.person(), layer) for layer in layers]:
        work.do(person, layer)
    return work, ids


def _gold(store, id_):
    with store.reading() as tx:
        gold = tx.gold(id_)
    return None if gold is None else [(span.start, span.end, span.type) for span in gold.spans]


@pytest.mark.parametrize(
    "layers",
    [
        [spans((0, 12, "invented")), APART],  # one to one on the type
        [MINE, Layer()],  # one to one on whether anything is wrong
        [MINE, THEIRS],
        [THEIRS, spans((0, 12, "relation")), Layer()],  # more than half mark it, and differ on the type
        [MINE, Layer(), Layer(skip="not_sure")],
        [MINE, MINE, Layer(), Layer(skip="not_sure")],  # two of four are not more than half
    ],
)
def test_a_tie_is_left_to_a_lead(store, make_project, layers):
    work, (id_,) = _handed_in(store, make_project, layers)
    done = settle(store, work.project, "majority")
    assert (done.settled, done.left) == (0, 1)
    assert _gold(store, id_) is None


@pytest.mark.parametrize(
    ("layers", "gold"),
    [
        ([THEIRS, THEIRS], [(0, 12, "entity")]),
        ([THEIRS, APART], [(0, 3, "entity"), (4, 12, "entity")]),  # white space decides nothing
        ([THEIRS, spans((0, 12, "relation")), THEIRS], [(0, 12, "entity")]),
        ([THEIRS, MINE, Layer()], [(0, 3, "entity")]),
        ([MINE, Layer(), Layer()], []),
        ([MINE, MINE, Layer(skip="not_sure")], [(0, 3, "entity")]),
        ([spans((0, 12), (0, 3, "invented"))] * 2, [(0, 3, "invented"), (0, 12, "entity")]),  # one in another
        ([TWICE, TWICE, Layer()], [(0, 3, "entity"), (0, 3, "invented")]),  # two types of one place
        ([NESTED, NESTED, Layer()], [(0, 3, "entity"), (0, 12, "entity")]),
    ],
)
def test_what_more_than_half_say_is_gold(store, make_project, layers, gold):
    work, (id_,) = _handed_in(store, make_project, layers)
    done = settle(store, work.project, "majority")
    assert (done.settled, done.left) == (1, 0)
    assert _gold(store, id_) == gold


def test_two_who_label_a_unit_differently_leave_it_to_a_lead(store, make_project):
    rules = SHARED.replace('task = "spans"', 'task = "facts"\nunits = "sentence"')
    text = "Ada was born in Rome."
    labelled = [Layer(units=(LayerUnit(0, 21, label),)) for label in ("supported", "contradicted", "supported")]
    work, (id_,) = _handed_in(store, make_project, labelled[:2], rules, text=text)
    assert settle(store, work.project, "majority").left == 1
    work.do(work.person(), labelled[2])
    assert settle(store, work.project, "majority").settled == 1
    with store.reading() as tx:
        assert [unit.label for unit in tx.gold(id_).units] == ["supported"]


@pytest.mark.parametrize(
    ("layers", "gold"),
    [
        ([THEIRS, APART], None),  # the same words, and another cut
        ([spans((4, 12)), spans((3, 13))], [(4, 12, "entity")]),  # white space at the edges says nothing
        ([TWICE, MINE], None),  # a second type on the same place
        ([NESTED, THEIRS], None),
        ([spans((0, 3), (3, 12)), THEIRS], None),
        ([spans((3, 4)), Layer()], []),
        ([NESTED, spans((0, 3), (0, 12))], [(0, 3, "entity"), (0, 12, "entity")]),  # in whatever order
        ([Layer(skip="not_sure"), Layer(skip="not_sure")], None),
        ([Layer(skip="not_sure"), Layer()], None),
    ],
)
def test_what_differs_is_a_disagreement_and_no_gold(store, make_project, layers, gold):
    work, (id_,) = _handed_in(store, make_project, layers)
    with store.reading() as tx:
        open_ = [one.item.id for one in disagreements(tx, work.project, work.id)]
    skipped = all(layer.skip for layer in layers)
    assert open_ == ([id_] if gold is None and not skipped else [])
    assert settle(store, work.project, "agreed").settled == (gold is not None)
    assert _gold(store, id_) == gold


SPACED = " Ada\u00a0war  in\r\nRom,  \u0301ja. "  # one space bears an accent, and one line ends with two code points
_RANGES = st.tuples(st.integers(0, len(SPACED) - 1), st.integers(1, 8), st.sampled_from(["entity", "invented"]))
_WHOLE = {*range(len(SPACED) + 1)} - {SPACED.index("\n"), SPACED.index("\u0301")}  # no mark cuts a character


def _marks(rows):
    marks = {(start, min(start + length, len(SPACED)), type_) for start, length, type_ in rows}
    return [mark for mark in marks if {mark[0], mark[1]} <= _WHOLE]


def _loosened(mark, out):
    """A mark with up to so much of the white space around it."""
    start, end, type_ = mark
    for _ in range(out):
        if start - 1 in _WHOLE and SPACED[start - 1].isspace() and start:
            start -= 1
        if end + 1 in _WHOLE and end < len(SPACED) and SPACED[end].isspace():
            end += 1
    return start, end, type_


def _same_by_hand(first, second):
    """Whether every span of each has its equal in the other, held against each other character by character."""

    def solid(start, end):
        at = [i for i in range(start, end) if not SPACED[i].isspace() or SPACED[i + 1 : i + 2] == "\u0301"]
        return (at[0], at[-1]) if at else None

    def covers(ours, others):
        return all(
            any(solid(*mark[:2]) == solid(*other[:2]) and mark[2] == other[2] for other in others)
            for mark in ours
            if solid(*mark[:2]) is not None
        )

    return covers(first, second) and covers(second, first)


@settings(max_examples=300)
@given(st.lists(_RANGES, max_size=4), st.data())
def test_layers_are_equal_where_each_span_has_its_equal(rows, data):
    first = _marks(rows)
    second = [_loosened(mark, data.draw(st.integers(0, 2))) for mark in data.draw(st.permutations(first))]
    second += _marks(data.draw(st.lists(_RANGES, max_size=1)))
    second = second[data.draw(st.integers(0, 1)) :]
    sample = Sample(id="x", response=SPACED, language="de")
    layers = [spans(*dict.fromkeys(marks)) for marks in (first, second)]
    compared = Comparison(FORM, sample)
    same = _same_by_hand(first, second)
    event(f"same: {same}")
    assert compared.differ(layers) != same
    assert not compared.differ([layers[0], layers[0]])
    if same:  # all that they mark is what both mark, and nothing of it is lost
        gold = unanimous_layer(layers, FORM, sample)
        assert _same_by_hand([(span.start, span.end, span.type) for span in gold.spans], first)
        assert compared.similarity(*layers) == 1.0


def test_what_a_lead_settled_by_hand_no_rule_changes(store, make_project):
    work, ids = _handed_in(store, make_project, [MINE, MINE], SHARED.replace("overlap = 2", "overlap = 3"), count=3)
    lead = work.person(Role.LEAD)
    assert settle(store, work.project, "agreed").settled == 3
    work.act(adjudicate(store, work.project, lead.id, ids[0]), "submit", THEIRS)
    done = settle(store, work.project, "majority")
    assert (done.settled, done.left, done.unchanged, done.replaced, done.by_hand) == (0, 0, 3, 0, 1)
    done = settle(store, work.project, "majority", overwrite=True)
    assert (done.settled, done.left, done.unchanged, done.replaced, done.by_hand) == (2, 0, 1, 2, 1)
    assert [_gold(store, id_) for id_ in ids] == [[(0, 12, "entity")], [(0, 3, "entity")], [(0, 3, "entity")]]


def _rated(span, item, note=""):
    ratings = {} if item is None else {"fluency": item}
    return Layer(spans=(LayerSpan("s1", 0, 3, "entity", span, note),), ratings=ratings, comment=note)


@pytest.mark.parametrize(
    ("rule", "ratings", "gold"),
    [
        ("agreed", [(2, 3), (2, 3)], (2, {"fluency": 3})),
        ("agreed", [(2, 3), (1, None)], (None, {"fluency": 3})),
        ("agreed", [(2, 3), (2, 4)], (2, {})),
        ("majority", [(2, 3), (2, 3), (2, 4)], (2, {})),
        ("best_with_silver", [(2, 3), (1, 4)], (2, {"fluency": 3})),
    ],
)
def test_ratings_are_kept_where_all_who_rate_agree(store, make_project, rule, ratings, gold):
    layers = [_rated(*one, note="mine") for one in ratings]
    if rule == "best_with_silver":
        layers[1] = msgspec.structs.replace(layers[1], spans=(LayerSpan("s1", 4, 12, "entity", 1),))
    work, ids = _handed_in(store, make_project, layers, RATED.replace("overlap = 2", "overlap = 5"), 5, silver=MINE)
    assert settle(store, work.project, rule).settled == 5
    with store.reading() as tx:
        found = tx.gold(ids[0])
    assert (found.spans[0].rating, found.ratings) == gold
    assert (found.spans[0].note, found.comment) == ("", "")


def test_a_flag_is_gold_where_all_raise_it_who_agree(store, make_project):
    raised = msgspec.structs.replace(MINE, flags=("incomprehensible",))
    work, (id_,) = _handed_in(store, make_project, [raised, MINE], SHARED.replace("[work]", FLAG))
    assert settle(store, work.project, "agreed").settled == 1
    with store.reading() as tx:
        assert tx.gold(id_).flags == ()


THREE = [spans((0, 12), (24, 28, "relation")), spans((0, 12)), spans((0, 13), (24, 28, "invented"))]


def test_a_lead_begins_with_what_all_say_and_gold_keeps_who_why_and_whence(store, make_project, tmp_path):
    work, (id_, other) = _handed_in(store, make_project, THREE, count=2)
    lead = work.person(Role.LEAD)
    with store.reading() as tx:
        submissions = submissions_of(tx, tx.item(id_))
        votes = votes_on(submissions, work.project.form, tx.sample(id_))
    first, second, third = (submission.assignment for submission in submissions)
    assert [(vote.id, vote.assignments) for vote in votes] == [
        ("0-12-entity", [first, second, third]),
        ("24-28-invented", [third]),
        ("24-28-relation", [first]),
    ]
    given_ = adjudicate(store, work.project, lead.id, id_)
    assert [(span.start, span.end, span.type) for span in given_.layer.spans] == [(0, 12, "entity")]
    own = (
        LayerSpan("s1", 0, 12, "entity"),
        LayerSpan("suggested-24-28-relation", 19, 28, "relation"),  # taken, and then widened
        LayerSpan("new", 50, 54, "invented"),
    )
    work.act(given_, "submit", Layer(spans=own, comment=" The source says 1815. "))
    with store.reading() as tx:
        origin = gold_origins(tx, work.id)[id_]
    assert (origin.kind, origin.by, origin.why) == ("adjudicated", lead.public_id, "The source says 1815.")
    assert [(row.start, row.end, row.type, row.assignments, row.changed) for row in origin.sources] == [
        (0, 12, "entity", [first, second, third], False),
        (19, 28, "relation", [first], True),
        (50, 54, "invented", [], False),
    ]
    settle(store, work.project, "majority")  # two of three mark the second place, and differ on its type
    export(store, work.project, tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "data.jsonl")
    settled = rows[0]["meta"]["studio"]["settled"]
    assert (settled["by"], settled["why"]) == (lead.public_id, "The source says 1815.")
    assert settled["spans"][1] == {
        "start": 19, "end": 28, "type": "relation", "assignments": [first], "changed": True,
    }  # fmt: skip
    assert first in [layer["assignment"] for layer in rows[0]["meta"]["studio"]["layers"]]
    assert "settled" not in rows[1]["meta"]["studio"]
    assert _gold(store, other) is None


def test_a_rule_says_too_whose_spans_are_gold(store, make_project):
    work, (id_,) = _handed_in(store, make_project, [NESTED, THEIRS, MINE])
    assert settle(store, work.project, "majority").settled == 1
    with store.reading() as tx:
        first, second, third = (submission.assignment for submission in submissions_of(tx, tx.item(id_)))
        origin = gold_origins(tx, work.id)[id_]
    assert (origin.kind, origin.by, origin.why) == ("settled_majority", None, None)
    assert [(row.start, row.end, row.assignments) for row in origin.sources] == [
        (0, 3, [first, third]),
        (0, 12, [first, second]),
    ]


def _sentences(store, make_project):
    rules = SHARED.replace('task = "spans"', 'task = "facts"\nunits = "sentence"')
    labels = [("supported", "contradicted"), ("supported", "unverified"), ("supported", "contradicted")]
    layers = [Layer(units=(LayerUnit(0, 21, one), LayerUnit(22, 30, two))) for one, two in labels]
    return _handed_in(store, make_project, layers, rules, text="Ada was born in Rome. She ran.")


def test_labels_are_voted_on_as_spans_are(store, make_project):
    work, (id_,) = _sentences(store, make_project)
    with store.reading() as tx:
        votes = votes_on(submissions_of(tx, tx.item(id_)), work.project.form, tx.sample(id_))
    assert {(vote.start, vote.type): len(vote.assignments) for vote in votes} == {
        (0, "supported"): 3, (22, "contradicted"): 2, (22, "unverified"): 1,
    }  # fmt: skip
    begun = adjudicate(store, work.project, work.person(Role.LEAD).id, id_)
    assert [(unit.start, unit.label) for unit in begun.layer.units] == [(0, "supported")]


def test_a_lead_goes_from_disagreement_to_disagreement(store, make_project):
    work = team(store, make_project(SHARED.replace("overlap = 2", "overlap = 5")))
    ids = work.items(5)
    people = [work.person(), work.person()]
    theirs = [spans((0, 11)), spans((0, 3)), Layer(), spans((0, 12)), spans((0, 10))]
    for number in range(5):  # the fourth item is agreed on
        for person, layer in zip(people, (THEIRS, theirs[number]), strict=True):
            work.act(work.next(person), "submit", layer)
    with store.reading() as tx:
        order = [one.item.id for one in disagreements(tx, work.project, work.id)]
    assert order == [ids[2], ids[1], ids[4], ids[0]]  # nothing alike first
    lead, other = work.person(Role.LEAD), work.person(Role.LEAD)

    def following(person, after, **more):
        row = adjudicate_next(store, work.project, person.id, after, **more)
        return None if row is None else row.item_id

    first = adjudicate(store, work.project, lead.id, order[0])
    assert following(other, order[3]) == order[1]  # the list begins anew, without what the first lead has
    assert following(lead, order[0]) == order[2]
    assert work.state(first) is State.OPEN
    assert following(lead, order[0], release=True) == order[2]
    assert work.state(first) is State.WITHDRAWN  # they had changed nothing, so others can have it
    work.act(adjudicate(store, work.project, lead.id, order[0]), "submit", THEIRS)
    assert following(lead, order[0]) == order[2]  # after what is settled by now as well
    again = adjudicate(store, work.project, lead.id, order[2])
    work.act(again, "save", THEIRS)
    assert following(lead, order[2], release=True) == order[3]
    assert work.state(again) is State.OPEN  # begun work is kept
    for id_ in order[2:]:
        work.act(adjudicate(store, work.project, lead.id, id_), "submit", THEIRS)
    assert following(lead, order[3]) is None  # the last is the other lead's
    with pytest.raises(Refused, match="lead"):
        following(people[0], order[3])


def test_a_lead_stays_in_a_language_while_it_has_disagreements(store, make_project):
    work = team(store, make_project(SHARED))
    german, chinese = work.items(2), work.items(2, "zh")
    for layers in ([MINE] * 4, [THEIRS, Layer(), THEIRS, Layer()]):
        person = work.person()
        for _ in layers:
            given = work.next(person)
            work.act(given, "submit", layers[[*german, *chinese].index(given.item_id)])
    with store.reading() as tx:
        order = [one.item.id for one in disagreements(tx, work.project, work.id)]
    assert order == [german[1], chinese[1], chinese[0], german[0]]  # the least alike first
    lead, last = work.person(Role.LEAD), order[0]
    for wanted in (german[0], chinese[1], chinese[0]):
        work.act(adjudicate(store, work.project, lead.id, last), "submit", THEIRS)
        following = adjudicate_next(store, work.project, lead.id, last)
        assert following
        assert following.item_id == wanted
        last = wanted


def _exported(store, work, out):
    """Key of an item to where its gold is from, in a native export; None where it has none."""
    export(store, work.project, out)
    rows = read_lines(out / "data.jsonl")
    for row in rows:
        has_gold = any(one["annotator"] == "gold" for one in row.get("annotations", []))
        assert has_gold == (row["meta"]["studio"]["gold"] is not None)
    return {row["id"]: row["meta"]["studio"]["gold"] for row in rows}


def test_an_export_says_by_which_rule_gold_was_settled(store, make_project, tmp_path):
    five = SHARED.replace("overlap = 2", "overlap = 5")
    work, ids = _handed_in(store, make_project, [MINE, MINE], five, 5, silver=MINE)
    for number, rule in enumerate(("agreed", "majority", "best_with_silver")):
        assert settle(store, work.project, rule, overwrite=True).settled == 5
        assert list(_exported(store, work, tmp_path / str(number)).values()) == [f"settled_{rule}"] * 5
    work.act(adjudicate(store, work.project, work.person(Role.LEAD).id, ids[0]), "submit", THEIRS)
    assert next(iter(_exported(store, work, tmp_path / "by_hand").values())) == "adjudicated"


@pytest.mark.parametrize(("reviews", "source"), [(0, "single"), (1, "reviewed")])
def test_progress_and_export_count_the_same_gold(store, make_project, tmp_path, reviews, source):
    rules = RULES.replace("overlap = 0", "overlap = 2").replace("reviews = 0", f"reviews = {reviews}")
    work = team(store, make_project(rules))
    work.items(6)
    first, second = work.person(), work.person()
    work.do(first, MINE, most=4)
    work.do(second, MINE, most=3)
    work.act(work.next(second), "skip", Layer(skip="not_sure"))
    if reviews:
        reviewer = work.person(Role.REVIEWER)
        work.act(work.next(reviewer), "return", None, comment="Look again.")
        while (row := work.next(reviewer)) is not None:
            work.act(row, "confirm", None)
    assert settle(store, work.project, "agreed").settled >= 1
    found = list(_exported(store, work, tmp_path / "out").values())
    with store.reading() as tx:
        (line,) = overview(tx, work.project).languages
    assert (line.gold, line.single) == (found.count("settled_agreed"), found.count(source))
    assert line.gold > 0 < line.single
    assert line.gold + line.single < line.items


def test_units_that_all_label_alike_keep_what_all_say_of_them(store, make_project):
    form = make_project(RULES.replace("spans", "facts")).form
    sample = Sample("x", "Ada war hier. Bo auch.", language="de")
    (start, end), other = form.units_of(sample)[0], form.unit_labels[1].name
    label, flags = form.unit_labels[0].name, ("a", "b")
    pointers = [Pointer("p", 0, 3), Pointer("p", 4, 7)]
    first = LayerUnit(start, end, label, (pointers[0],), flags, {label: 2})
    second = LayerUnit(start, end, label, (pointers[1],), flags[1:], {label: 2})
    (unit,) = unanimous_layer([Layer(units=(first,)), Layer(units=(second,))], form, sample).units
    assert unit == LayerUnit(start, end, label, tuple(pointers), ("b",), {label: 2})
    third = replace(second, counts={label: 3})
    (unit,) = unanimous_layer([Layer(units=(first,)), Layer(units=(third,))], form, sample).units
    assert unit == LayerUnit(start, end, label, tuple(pointers), ("b",))
    assert (
        unanimous_layer([Layer(units=(first,)), Layer(units=(replace(second, label=other),))], form, sample) == Layer()
    )
