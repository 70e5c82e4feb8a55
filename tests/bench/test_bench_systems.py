"""Which systems of a bench may be made again in other processes."""

from __future__ import annotations

import pickle

from veriglot.bench.config import SystemEntry
from veriglot.bench.run import load_system
from veriglot.scorers.neural import MetricX
from veriglot.scorers.nli import NLI
from veriglot.scorers.pairwise import Pairwise
from veriglot.scorers.registry import load_scorer
from veriglot.scorers.rouge import RougeL


class Whole(RougeL):
    """A scorer that is to be loaded once."""

    one_process = True


def test_scorers_travel_as_their_name_and_options() -> None:
    recipe = load_system(SystemEntry(scorer="pairwise:rouge-l", options={"value": "f1"})).recipe
    assert recipe is not None
    again = pickle.loads(pickle.dumps(recipe))()
    assert again.signature == load_scorer("pairwise:rouge-l", value="f1").signature


def test_scorers_with_a_network_are_loaded_once() -> None:
    assert Pairwise(Whole()).one_process
    assert not Pairwise(RougeL()).one_process
    assert NLI.one_process
    assert MetricX.one_process
