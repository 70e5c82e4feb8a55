"""How a study was made, what it takes for granted and what its reader must know, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veriglot.records import Estimator, Kind, Reliability
from veriglot.records.languages import languages as known_languages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from veriglot.study.config import Config
    from veriglot.study.estimating import Estimated
    from veriglot.study.results import Cell, Quality
    from veriglot.study.status import Plan

__all__ = ["assumptions_in_words", "methods_in_words", "warnings_in_words"]

_MADE = {
    Estimator.RAW: "`raw` is the share of units that the detector marked, uncorrected.",
    Estimator.PAPER: "`paper` is the marked share times precision over recall (mfava, equation 1). It holds only where"
    " unsupported units are as frequent as in the data of the profile.",
    Estimator.LABEL_SHIFT: "`label-shift` is (marked share - FPR) / (TPR - FPR), with the detector's true and false"
    " positive rates of the language. These stay when unsupported units become rarer or more frequent.",
    Estimator.EM: "`em` is the mixture of the confidences of supported and unsupported units in the profile that"
    " explains the confidences of the study best.",
    Estimator.PPI: "`ppi` is the marked share of all responses, put right by what people marked in some of them"
    " (prediction-powered inference).",
}
_CORRECTED = (Estimator.PAPER, Estimator.LABEL_SHIFT, Estimator.EM)
_ODDITIES: tuple[tuple[float, Callable[[Quality], float | None], str], ...] = (
    (0.1, lambda quality: quality.refused, "decline to answer"),
    (0.1, lambda quality: None if quality.right_language is None else 1 - quality.right_language,
     "are in another language than the one that was asked for"),
    (0.1, lambda quality: quality.repetitive, "repeat themselves"),
    (0.1, lambda quality: quality.truncated, "were cut at the token limit"),
)  # fmt: skip


def methods_in_words(config: Config, plan: Plan, found: Estimated) -> tuple[str, ...]:
    """One paragraph for each step."""
    study = config.study
    return (
        _responses(config, plan),
        *(_detector(judging.description.name, judging.description.threshold, judging.profile) for judging in
          found.judgings),
        *(_MADE[estimator] for estimator in config.estimators),
        f"Rates are shares of units ({study.unit}). Intervals are at the level {study.confidence:g} and carry the"
        " uncertainty of the study's responses and of the detector's error profile, both by cluster: responses to one"
        f" query count as one. They come from {study.draws:,} draws with the seed {study.seed}.",
        "Means of models and languages are unweighted means of their reliable cells, of the estimates before these are"
        " cut to shares from 0 to 1, since the mean of cut ones would be too high near 0; ± is the sample standard"
        " deviation of the cells, not an error. Models are ranked and compared over the languages in which their"
        " rates are reliable."
        " A rank's interval holds the ranks that simultaneous intervals of all differences do not exclude.",
        *_replicates(config, found),
    )  # fmt: skip


def _responses(config: Config, plan: Plan) -> str:
    if not plan.asked:
        return f"The responses of {_count(len(plan.models), 'model')} were given, not made by this run."
    entry = config.entries.queries
    assert entry is not None
    seeds = ", ".join(map(str, entry.seeds))
    how = (
        "each language's queries were parted into disjoint subsets, one for each seed, and every query was asked once"
        if entry.design == "subsets"
        else "every query was asked with every seed"
    )
    return f"{_count(len(plan.models), 'model').capitalize()} answered the queries: {how} (seeds {seeds})."


def _detector(name: str, threshold: float, profile: object) -> str:
    from veriglot.records import ErrorProfile

    text = f"The detector {name} marked every unit that it took for unsupported, from a confidence of {threshold:g}."
    if not isinstance(profile, ErrorProfile):
        return f"{text} It has no error profile here."
    count = sum(len(language.responses) for language in profile.languages.values())
    return (
        f"{text} Its errors were measured on {count:,} responses in {_count(len(profile.languages), 'language')} with"
        f" {profile.data.kind} labels (data {profile.data.sha256[:12]})."
    )


def _replicates(config: Config, found: Estimated) -> Iterator[str]:
    most = max((len(rated.replicates) for rated in found.cells.values()), default=0)
    if most > 1:
        yield (
            f"Up to {most} replicates of a cell (detectors x seeds) give its mean and standard deviation, as in mfava's"
            " Figure 4; these show how much the choice of seed and detector moves the rate."
        )
        if config.study.estimator is Estimator.PPI:
            yield "Labels are too few to part by seed: the replicates are raw shares, and not to be held against `ppi`."


def assumptions_in_words(config: Config, found: Estimated, languages: Sequence[str]) -> tuple[str, ...]:
    """What the rates take for granted."""
    lines = ["A unit that the evidence does not support counts as hallucinated, even where it is true."]
    if any(estimator in _CORRECTED for estimator in config.estimators):
        lines.append(
            "The detector errs on these responses as often as on the labelled data of its profile: it finds the same"
            " share of the unsupported units and marks the same share of the supported ones."
        )
    for judging in found.judgings:
        pooled = [tag for tag in languages if judging.of(tag)[1] == "pooled"]
        if pooled:
            lines.append(
                f"{judging.description.name} was measured on too little or nothing in {_named(pooled)}: there its error"
                " rates over all languages are used, as the study file asks, as if it erred there as in these together."
            )
        if judging.profile is not None and judging.profile.data.kind != "gold":
            lines.append(
                f"The profile of {judging.description.name} rests on {judging.profile.data.kind} labels, which are"
                " taken for right."
            )
    if Estimator.PPI in config.estimators:
        lines.append("The labelled responses were drawn from the study's responses at random.")
        if Kind.MODEL in found.labelled_by:
            lines.append("Labels of the study's responses were made by a model (silver), and are taken for right.")
    return tuple(lines)


def warnings_in_words(config: Config, cells: Sequence[Cell], found: Estimated, lost: int) -> tuple[str, ...]:
    """What a reader must know before quoting a number.

    Args:
        config: the study.
        cells: its cells.
        found: its rates.
        lost: rows that came to nothing, failed calls among them.
    """
    parts = (_unreliable(cells), _uncovered(cells), _nowhere(cells, found, lost), _odd_answers(cells))
    return tuple(line for part in parts for line in part) + tuple(_not_comparable(config))


def _unreliable(cells: Sequence[Cell]) -> Iterator[str]:
    bad = [cell for cell in cells if cell.rates[0].status is not Reliability.OK]
    if bad:
        yield (
            f"{len(bad)} of {len(cells)} rates are unreliable, and stand in no mean, rank or comparison; each says why."
        )


def _uncovered(cells: Sequence[Cell]) -> Iterator[str]:
    planned, answered = (sum(getattr(cell.coverage, name) for cell in cells) for name in ("planned", "answered"))
    if answered < planned:
        yield f"{planned - answered:,} of {planned:,} planned responses do not exist: the calls failed."
    scored = sum(cell.coverage.statuses.get("scored", 0) for cell in cells)
    if scored < answered:
        yield f"{answered - scored:,} of {answered:,} responses were not judged and are in no rate."


def _nowhere(cells: Sequence[Cell], found: Estimated, lost: int) -> Iterator[str]:
    """What no cell counts."""
    unread = lost - sum(cell.coverage.failed for cell in cells)
    if unread > 0:
        yield f"{_count(unread, 'row')} of the input could not be read or asked, and no coverage counts them."
    if found.unused_labels:
        yield (
            f"{_count(found.unused_labels, 'labelled response')} are none of those that were judged, and no rate uses"
            " them."
        )
    if found.outside:
        yield (
            f"{_count(found.outside, 'response')} that state no language were found to be in one that the study does"
            " not ask for, and no coverage counts them."
        )


def _odd_answers(cells: Sequence[Cell]) -> Iterator[str]:
    """What many answers of a model are like, where that bears on its rates: one line for each model and oddity."""
    for model in dict.fromkeys(cell.model for cell in cells):
        own = [cell for cell in cells if cell.model == model and cell.coverage.answered]
        for bound, share, what in _ODDITIES:
            found = [(value, cell.language) for cell in own if (value := share(cell.quality)) is not None]
            found = [(value, tag) for value, tag in found if value > bound]
            if found:
                most, tag = max(found, key=lambda pair: (pair[0], pair[1]))
                where = _named([tag]) if len(found) == 1 else f"{len(found)} languages, most in {_named([tag])}"
                yield f"{model}: many responses {what} ({where}: {most:.0%})."


def _not_comparable(config: Config) -> Iterator[str]:
    if config.study.estimator is Estimator.RAW:
        yield "The rates are raw: they hold the detector's false alarms and miss what it misses."


def _named(tags: Sequence[str]) -> str:
    known = known_languages()
    return ", ".join(known[tag].name if tag in known else tag for tag in tags)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
