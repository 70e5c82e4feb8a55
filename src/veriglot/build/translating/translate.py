"""Translate-train: annotated samples into other languages, with their spans (mfava, section 4.1, without its losses).

mFAVA translated FAVA's training set with NLLB and laid the spans onto tokens. What became of spans that did not survive
is not told there; here each has a place with a quality, or is counted as dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.queries import rejected_path
from veriglot.build.translating.account import translation_account_of, translation_account_path
from veriglot.build.translating.batches import in_batches
from veriglot.build.translating.choosing import STRATEGIES
from veriglot.build.translating.job import row_of
from veriglot.build.translating.records import Task, TranslatedRow, TranslationRejection, TranslationSettings
from veriglot.errors import UnknownNameError, UsageError
from veriglot.records import Sample, encode
from veriglot.records.languages import language
from veriglot.run import FailedRow, Stage, lost_of
from veriglot.text import identify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from veriglot.build.translating.alignment import Aligner
    from veriglot.build.translating.job import Working
    from veriglot.build.translating.translator import Translator
    from veriglot.run import Tally

__all__ = ["METHOD_VERSION", "translate", "translation_tasks"]

METHOD_VERSION = "2"  # raise it with any change of what is taken, or of where marks go
_BLOCK = 32


def translate(
    output: Path,
    samples: Iterable[Sample | FailedRow],
    targets: Sequence[str],
    translator: Translator,
    *,
    aligner: Aligner | None = None,
    settings: TranslationSettings | None = None,
    inputs: Sequence[str] = (),
    options: dict[str, str | bool | None] | None = None,
    block: int = _BLOCK,
    restart: bool = False,
    retry: bool = False,
    seen: Callable[[msgspec.Struct | FailedRow], None] | None = None,
) -> Tally:
    """Translate every sample into every target.

    Args:
        output: JSON lines of samples; their annotations are of the kind `model`, whoever marked the original. Rows that
            were set aside, and replies that were not taken, go to `rejected_path(output)`, the account to
            `translation_account_path(output)`. All are made at the end from `OUT.rows.jsonl`, where a run that stopped
            goes on.
        samples: the same ones in the same order at each call.
        targets: BCP 47 tags or names.
        translator: who translates.
        aligner: for the strategy `align`; None leaves it out.
        settings: how; the defaults where None.
        inputs, restart, retry, seen: as for `responses`.
        options: further settings that change the rows.
        block: rows that are worked on together.

    Returns:
        What became of the rows. One that was set aside is done; one whose calls gave nothing is failed.

    Raises:
        UsageError: no target or the same one twice, no strategy, a threshold outside 0 to 1, fewer than one attempt, or
            the output was begun otherwise.
        UnknownNameError: no such language or strategy.
        VeriglotError: whatever the translator raises; what is done is kept.
    """
    settings = settings or TranslationSettings()
    tags = _validated(targets, settings, aligner)
    stage: Stage[Task] = Stage(
        output,
        signature=translator.signature,
        inputs=inputs,
        options={
            "targets": ",".join(tags),
            "settings": msgspec.json.encode(settings, order="deterministic").decode(),
            "aligner": aligner.signature if aligner is not None else None,
            "method": f"translating@{METHOD_VERSION}",
            **(options or {}),
        },
        finish=_part,
        restart=restart,
        retry=retry,
        maker="translator",
    )

    def work(tasks: Iterator[Task]) -> Iterator[TranslatedRow | FailedRow]:
        return in_batches(translator, tasks, lambda task: _worked(task, settings, translator, aligner), block=block)

    return stage.run(translation_tasks(samples, tags), work, seen=seen)


def translation_tasks(samples: Iterable[Sample | FailedRow], targets: Sequence[str]) -> Iterator[Task | FailedRow]:
    """Every sample with every target. The language of one that states none is told from its response, if it can be."""
    for sample in samples:
        if isinstance(sample, FailedRow):
            yield sample
            continue
        found = None if sample.language else identify(sample.response)
        source = _known(sample.language) if sample.language else found.tag if found is not None else ""
        for target in targets:
            yield Task(f"{sample.id}/{target}", sample, source, target)


def _known(tag: str) -> str:
    try:
        return language(tag).tag
    except UnknownNameError:
        return tag


def _worked(task: Task, settings: TranslationSettings, translator: Translator, aligner: Aligner | None) -> Working:
    if not task.source:
        yield from ()
        return _aside(task, "unknown_language", "the language of the response cannot be told")
    if task.source == task.target:
        return _aside(task, "same_language", "the response is in that language already")
    if not any(map(str.isalnum, task.sample.response)):
        return _aside(task, "no_text", "the response holds no words")
    return (yield from row_of(task, settings, translator, aligner))


def _aside(task: Task, reason: str, detail: str) -> TranslatedRow:
    rejection = TranslationRejection(task.id, task.sample.id, task.target, "row", reason, detail)
    return TranslatedRow(task.id, task.target, None, (rejection,), ())


def _validated(targets: Sequence[str], settings: TranslationSettings, aligner: Aligner | None) -> tuple[str, ...]:
    tags = tuple(language(target).tag for target in targets)
    if not tags or len(set(tags)) < len(tags):
        raise UsageError("Name at least one target, each once.")
    for strategy in settings.strategies:
        if strategy not in STRATEGIES:
            raise UnknownNameError("strategy", strategy, STRATEGIES)
    if not settings.strategies or (settings.strategies == ("align",) and aligner is None):
        raise UsageError("No strategy is left that could place a span.", remedy="Name tags, spans, or an aligner.")
    if not 0.0 <= settings.threshold <= 1.0:
        raise UsageError(f"The threshold is {settings.threshold}; it lies between 0 and 1.")
    if settings.attempts < 1:
        raise UsageError("At least one attempt is needed.")
    return tags


def _part(rows: Path, target: Path) -> None:
    """Part what was made into samples, rejections and the account."""
    output = target.with_name(target.name.removesuffix(".partial"))
    rejected = rejected_path(output)
    partial = rejected.with_name(rejected.name + ".partial")
    decoder = msgspec.json.Decoder(TranslatedRow)

    def written() -> Iterator[TranslatedRow]:
        with rows.open("rb") as lines, target.open("wb") as good, partial.open("wb") as bad:
            for line in lines:
                row = decoder.decode(line)
                if row.sample is not None:
                    good.write(encode(row.sample) + b"\n")
                bad.writelines(encode(one) + b"\n" for one in row.rejections)
                yield row

    account = translation_account_of(written(), failed=lost_of(output))
    data = msgspec.json.format(msgspec.json.encode(account), indent=2)
    translation_account_path(output).write_bytes(data + b"\n")
    partial.replace(rejected)
