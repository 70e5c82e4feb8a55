"""Self-consistency: a response compared with its model's other responses as evidence (Kang et al., section 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from veriglot.errors import UsageError
from veriglot.records import Direction, Evidence, Sample, Score, Scorer, Status
from veriglot.scorers.registry import load_scorer
from veriglot.signatures import signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


__all__ = ["with_other_responses"]


META_KEY = "samples"  # the key of `meta`


def other_responses_of(sample: Sample) -> tuple[str, ...]:
    """The texts of the other responses to the sample's query, from `meta["samples"]`; empty if there are none.

    Entries that are not text are left out.
    """
    given = sample.meta.get(META_KEY)
    return tuple(text for text in given if isinstance(text, str)) if isinstance(given, (list, tuple)) else ()


def with_other_responses(samples: Iterable[Sample]) -> list[Sample]:
    """The samples in order, each with the texts of the other responses to its query in `meta["samples"]`.

    Responses to one query share question, language, task, and the generator's name and revision, and differ in text or
    seed. So the same answer with two seeds counts as another response, while the same row twice in a file (for example
    with other annotators) does not. Samples without a question, without other responses, or with a list already stay
    unchanged.

    Args:
        samples: all of a file, since other responses may be anywhere in it.
    """
    every = list(samples)
    groups: dict[tuple[object, ...], dict[tuple[str, int | None], None]] = {}
    for sample in every:
        if sample.question is not None:
            groups.setdefault(_query(sample), {})[_own(sample)] = None
    return [_filled(sample, groups.get(_query(sample), {})) for sample in every]


def _query(sample: Sample) -> tuple[object, ...]:
    generator = sample.generator
    who = (generator.name, generator.revision) if generator else None
    return sample.question, sample.language, sample.task, who


def _own(sample: Sample) -> tuple[str, int | None]:
    return sample.response, sample.generator.seed if sample.generator else None


def _filled(sample: Sample, group: Iterable[tuple[str, int | None]]) -> Sample:
    if sample.question is None or META_KEY in sample.meta:
        return sample
    own = _own(sample)
    other_responses = [response for response, seed in group if (response, seed) != own]
    return replace(sample, meta={**sample.meta, META_KEY: other_responses}) if other_responses else sample


class Pairwise:
    """Any scorer without evidence: the mean of its scores of a response against each other response to the query.

    Each of the k responses to one query is compared with the k - 1 others, one at a time, and the scores are averaged
    (Kang et al., section 2.2, "pairwise"). A sample has the others in `meta["samples"]`, from `with_other_responses`,
    so its score does not depend on the rest of the batch. Its own evidence is ignored.

    Args:
        scorer: a name of `SCORERS` (`rouge-l`, `nli:FOLDER`), or a scorer.
        options: of the scorer, if it is given by name.

    Raises:
        UnknownNameError: no such scorer, or no such option.
        UsageError: options with a loaded scorer, or `pairwise` of `pairwise`.
    """

    def __init__(self, scorer: str | Scorer, **options: Any) -> None:
        if not isinstance(scorer, str) and options:
            raise UsageError(f"The scorer {scorer.name!r} exists already and takes no options ({', '.join(options)}).")
        self.scorer: Scorer = load_scorer(scorer, **options) if isinstance(scorer, str) else scorer
        if isinstance(self.scorer, Pairwise):
            raise UsageError("pairwise takes a scorer that is not pairwise itself.")

    @property
    def one_process(self) -> bool:
        """Whether the scorer must be loaded only once."""
        return bool(getattr(self.scorer, "one_process", False))

    @property
    def name(self) -> str:
        """`pairwise:` and the name of the scorer."""
        return f"pairwise:{self.scorer.name}"

    @property
    def direction(self) -> Direction:
        """The direction of the scorer."""
        return self.scorer.direction

    @property
    def signature(self) -> str:
        """Its name, and the signature of the scorer."""
        return f"{signature(scorer=self.name, mean='arithmetic')}|{self.scorer.signature.replace('scorer:', 'of:', 1)}"

    def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score per sample, in order.

        The value is the mean over the other responses with a score; `parts` has the mean of each part that all these
        scores have, `samples` (number of other responses) and `compared` (number of scored ones). Without other
        responses the status is `no_evidence`; if none could be scored, it is that of the first.
        """
        pairs = [
            _against(sample, number, text)
            for sample in samples
            for number, text in enumerate(other_responses_of(sample))
        ]
        scores = iter(self.scorer.score(pairs)) if pairs else iter(())
        return [self._mean(sample, [next(scores) for _ in other_responses_of(sample)]) for sample in samples]

    def _mean(self, sample: Sample, scores: list[Score]) -> Score:
        scored = [score for score in scores if score.value is not None]
        if not scored:
            status, reason = Status.NO_EVIDENCE, f"there are no other responses to the same query in meta.{META_KEY}"
            if scores:
                status, reason = scores[0].status, f"against other responses to the query: {scores[0].reason}"
            return Score(sample.id, status, self.name, reason=reason, signature=self.signature)
        shared = [part for part in scored[0].parts if all(part in score.parts for score in scored)]
        parts = {part: sum(score.parts[part] for score in scored) / len(scored) for part in shared}
        return Score(
            sample.id,
            Status.SCORED,
            self.name,
            value=sum(score.value or 0.0 for score in scored) / len(scored),
            parts=parts | {"samples": float(len(scores)), "compared": float(len(scored))},
            language=scored[0].language,
            signature=self.signature,
        )


def _against(sample: Sample, number: int, text: str) -> Sample:
    """The sample with one other response as evidence, and without fields that scorers do not use."""
    return replace(
        sample,
        id=f"{sample.id}/{number}",
        evidence=(Evidence(text, id=f"s{number}", language=sample.language),),
        annotations=(),
        meta={},
    )
