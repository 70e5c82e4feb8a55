"""Training the reader: from parallel articles to its weights, beside those of the semantic detector, seeded.

Each pass draws its own responses and the languages that they are held against, and its own questions about words left
out of the articles' sentences, which are asked across languages alone. The articles that `splitting` holds out
say how head and reader are put together, and calibrate the sum.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import torch

from veriglot import weights as models
from veriglot.build.translating.vectors import VectorAligner
from veriglot.detectors.semantic.folder import READS_WITH, check_encoder, check_weights, packaged_folder
from veriglot.encoders import load_encoder
from veriglot.encoders.e5 import E5
from veriglot.encoders.e5_file import E5File
from veriglot.encoders.e5_reader import Tokeniser
from veriglot.errors import InputError
from veriglot.train.grounding.making import count_words
from veriglot.train.grounding.reading import read_labelled
from veriglot.train.reader.clozes import clozes, gaps
from veriglot.train.reader.fitting import fit
from veriglot.train.reader.network import ReaderNetwork
from veriglot.train.reader.rows import Rows, drawn
from veriglot.train.reader.shipping import card_of, ship
from veriglot.train.semantic.crossing import answers_across
from veriglot.train.semantic.making import without_tests
from veriglot.train.semantic.parallel import paragraphs
from veriglot.train.semantic.splitting import is_held_out_group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from veriglot.encoders import Encoder
    from veriglot.train.reader.rows import Row

__all__ = ["run"]


def run(
    paths: Sequence[Path],
    out: Path,
    *,
    weights: Path | None,
    seed: int,
    encoder: Encoder | None,
    reads_with: Path | None,
    passes: int,
    tests: bool,
    threads: int,
    say: Callable[[str], None],
) -> None:
    """Train and write a folder of weights; see `veriglot.train.reader.train`."""
    torch.set_num_threads(threads)
    base = packaged_folder() if weights is None else weights
    manifest = check_weights(base)
    encoder = load_encoder(manifest.encoder) if encoder is None else encoder
    check_encoder(base, manifest, encoder)
    card_of(base)  # the last thing that is needed: better missed now than after the fit
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    place = models.find(READS_WITH) if reads_with is None else reads_with
    labelled = read_labelled(str(path) for path in paths)
    if not tests:
        without_tests(labelled)
    found = paragraphs(labelled.answers)
    learned_from = [paragraph for paragraph in found if not is_held_out_group(paragraph.group)]
    commonness = count_words(labelled)
    rng = Random(f"reader {seed} held out")  # noqa: S311
    held_out = [
        example
        for example in drawn(found, commonness, rng)
        if is_held_out_group(example.group) and example.evidence_language is not None and example.response
    ]
    if not learned_from or not held_out:
        raise InputError(
            "The data holds too few parallel articles with questions to train a reader and to calibrate it.",
            remedy="Give questions whose ids stand in several languages, with their articles' titles, such as XQuAD's.",
        )
    say(f"read {len(learned_from)} paragraphs to learn from, {len(found) - len(learned_from)} to calibrate on")
    rows = Rows(encoder, Tokeniser(place))
    rows.knows(found)
    left_out = list(gaps(learned_from, VectorAligner(E5(place)), commonness, Random(f"reader {seed} gaps")))  # noqa: S311
    say(f"found {sum(len(one) for gap in left_out for one in gap.places.values())} gaps to ask for")

    def of_pass(nth: int) -> list[Row]:
        rng = Random(f"reader {seed} {nth}")  # noqa: S311  a seeded draw, not a secret
        made = rows.of(one for one in drawn(found, commonness, rng) if not is_held_out_group(one.group))
        asked = clozes(left_out, rng)
        rows.knows(asked)
        made += rows.of(one for one in answers_across(asked, rng) if one.evidence_language is not None)
        say(f"pass {nth + 1}: {len(made)} sequences, {sum(row.answer is not None for row in made)} with their answers")
        return made

    torch.manual_seed(seed)  # the additions to start from are drawn here, before `fit` seeds itself
    network = ReaderNetwork(E5File(place))
    fit(network, of_pass, passes=passes, seed=seed, say=say)
    ship(
        network.learned(), held_out, base, out,
        encoder=encoder, reads_with=place, seed=seed, paragraphs=learned_from, tests=tests, say=say,
    )  # fmt: skip
    say(f"wrote {out}")
