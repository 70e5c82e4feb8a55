"""ROUGE in 19 languages: as the common implementations count it, and over our own words.

Every text of Wikipedia is cut into two halves between sentences, and the first is held against the second: two texts
about one thing, which share some of its words. As a control, it is held against the second half of the next text. The
area under the ROC curve says how well a score tells the one from the other; a score that is always zero has 0.5.

The texts are the paragraphs of XQuAD, mFAVA's references, and the pages beside Mu-SHROOM, in the languages of kang that
these have (all but Bulgarian, Japanese and Ukrainian), and in Arabic, Greek and Hindi. `--data` names the folder that
holds `xquad`, `mfava/queries` and `mu_shroom_val`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that starts threads

import numpy as np

import figures
import veriglot
from ranking import auc, draws_of
from veriglot.records import Evidence, Sample
from veriglot.scorers.registry import load_scorer
from veriglot.scorers.rouge import ascii_tokens, tokens
from veriglot.text.segmentation import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCES = {
    **dict.fromkeys(("en", "zh", "es", "vi", "de", "ro", "th", "ru", "ar", "el", "hi"), "xquad/xquad.{}.json"),
    **dict.fromkeys(("id", "fa", "fi", "ko", "hu"), "mfava/queries/wiki_references_and_queries_{}.csv"),
    **dict.fromkeys(("fr", "it", "sv"), "mu_shroom_val/{}-val.refs.jsonl"),
}
LONGEST = 3000  # characters of a text that are looked at
FEWEST = 4  # sentences of a text
RESAMPLES = 1000
NAMES = ("rouge-1", "rouge-2", "rouge-l")


def texts_of(path: Path) -> Iterator[str]:
    """The texts of one file, each once."""
    if path.name.endswith(".refs.jsonl"):
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line)["reference"] for line in lines)
        return
    seen = set()
    for sample in veriglot.read(path):
        text = " ".join(passage.text for passage in sample.evidence)
        if text not in seen:
            seen.add(text)
            yield text


def halves(texts: Iterable[str], language: str, count: int) -> list[tuple[str, str]]:
    """The first `count` texts that have enough sentences, cut in the middle of these."""
    found: list[tuple[str, str]] = []
    for text in texts:
        beginning = text[:LONGEST]
        bounds = sentences(beginning, language)
        if len(bounds) >= FEWEST:
            middle = bounds[len(bounds) // 2][0]
            found.append((beginning[:middle], beginning[middle:]))
        if len(found) == count:
            break
    return found


def samples(pairs: list[tuple[str, str]], language: str, shift: int) -> list[Sample]:
    """The first half of each text with the second half of the text `shift` places on."""
    seconds = [second for _, second in pairs]
    moved = seconds[shift:] + seconds[:shift]
    return [
        Sample(id=str(i), response=first, language=language, evidence=(Evidence(second, language=language),))
        for i, ((first, _), second) in enumerate(zip(pairs, moved, strict=True))
    ]


def row(language: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Mean F1 in per cent by mode and variant, and the area for ROUGE-1."""
    words = [word for pair in pairs for text in pair for word in tokens(text, language)]
    found: dict[str, Any] = {
        "language": language,
        "texts": len(pairs),
        "ASCII words %": 100 * sum(ascii_tokens(word) == (word,) for word in words) / len(words),
    }
    areas = {}
    for mode in ("paper", "unicode"):
        for name in NAMES:
            scorer = load_scorer(name, mode=mode, value="f1")
            same = [score.value or 0.0 for score in scorer.score(samples(pairs, language, 0))]
            found[f"{mode} {name[6:].upper()}"] = 100 * sum(same) / len(same)
            if name == "rouge-1":
                found[f"{mode} zeros %"] = 100 * same.count(0.0) / len(same)
                other = [score.value or 0.0 for score in scorer.score(samples(pairs, language, 1))]
                areas[f"{mode} area"] = area(same, other)
    return found | areas


def area(same: list[float], other: list[float]) -> str:
    """The area with its 95% interval, from drawing texts again."""
    draws = draws_of([str(i) for i in range(len(same))], RESAMPLES, 0)
    weight = np.stack([draws[str(i)] for i in range(len(same))] * 2, axis=1)
    found = auc(np.array([*same, *other]), np.repeat([True, False], len(same)), weight)
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return f"{found[0]:.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    """Print the table."""
    parser = figures.command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--texts", type=int, default=100, help="texts of a language at the most; default 100")
    parser.add_argument(
        "--languages", nargs="+", choices=sorted(SOURCES), default=list(SOURCES), help="default: all 19"
    )
    given = parser.parse_args()
    rows = []
    for language in given.languages:
        path = given.data / SOURCES[language].format(language)
        rows.append(row(language, halves(texts_of(path), language, given.texts)))
    notes = [
        "mean F1 in per cent of the first half of a text against its second; ROUGE-1 without stop words",
        "ASCII words: the share of words that the common implementations keep whole",
        "zeros: the share of texts whose ROUGE-1 is 0",
        "area: ROUGE-1 of two halves of one text against that of halves of two texts",
    ]
    figures.show("ROUGE by language", rows, as_json=given.json, notes=notes)


if __name__ == "__main__":
    main()
