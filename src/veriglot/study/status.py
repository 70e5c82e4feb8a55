"""How far a study is, from the files of its folder alone; another process may be writing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.errors import InputError
from veriglot.storage.checkpoint import Progress
from veriglot.storage.files import is_locked, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from veriglot.study.config import Folder

__all__ = ["Plan", "Status", "status", "write_plan"]


class Plan(msgspec.Struct, frozen=True):
    """What a run sets out to do.

    Attributes:
        title: of the study.
        detectors: labels.
        models: model -> language -> seed (`-` for none or unknown) -> planned responses.
        asked: whether models are asked; False for given responses.
    """

    title: str
    detectors: tuple[str, ...]
    models: dict[str, dict[str, dict[str, int]]]
    asked: bool

    def responses(self, model: str) -> int:
        """Planned responses of a model."""
        return sum(sum(seeds.values()) for seeds in self.models[model].values())


class Step(msgspec.Struct, frozen=True):
    """One output of a run.

    Attributes:
        what: `responses` or `predictions`.
        model: whose.
        detector: whose predictions; None for responses.
        planned: rows that it is to have; None where that is not known yet.
        done: rows that it has.
        failed: rows that came to nothing; they are tried again by the next run.
        finished: whether nothing is left to do but what failed.
    """

    what: str
    model: str
    detector: str | None
    planned: int | None
    done: int
    failed: int
    finished: bool


class Status(msgspec.Struct, frozen=True):
    """How far a run is.

    Attributes:
        title: of the study.
        running: whether a process is at work in the folder now.
        steps: responses by model, then predictions by detector and model.
        rates, results, report: whether these files are there and newer than what they are made from.
    """

    title: str
    running: bool
    steps: tuple[Step, ...]
    rates: bool
    results: bool
    report: bool

    @property
    def finished(self) -> bool:
        """Whether everything is there."""
        return all(step.finished for step in self.steps) and self.rates and self.results and self.report


def write_plan(folder: Folder, plan: Plan) -> None:
    """Keep the plan of a run in its folder."""
    write_json(folder.plan, plan)


def read_plan(folder: Folder) -> Plan:
    """The plan of a run.

    Raises:
        InputError: the folder is not that of a run, or its plan is damaged.
    """
    try:
        return msgspec.json.decode(folder.plan.read_bytes(), type=Plan)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            "this is not the folder of a study's run",
            path=str(folder.path),
            remedy="Name what -o named; without -o, `veriglot study run FILE.toml` makes the folder FILE beside it.",
        ) from None
    except msgspec.DecodeError as error:
        raise InputError(f"it is damaged: {error}", path=str(folder.plan)) from error


def status(folder: Folder) -> Status:
    """Look at the folder of a run; nothing is changed in it.

    Raises:
        InputError: as `read_plan`.
    """
    plan = read_plan(folder)
    steps = [_responses(folder, plan, model) for model in plan.models]
    answered = {step.model: step.done if step.finished else None for step in steps}
    for detector in plan.detectors:
        for model in plan.models:
            progress = Progress.of(folder.predictions(detector, model))
            steps.append(
                Step("predictions", model, detector, answered[model], progress.done, progress.failed, progress.finished)
            )
    sources = (folder.study, folder.given, *folder.path.glob("predictions/*/*.jsonl"))  # a run writes its study first
    made = [path for path in sources if path.exists()]
    latest = max((path.stat().st_mtime_ns for path in made), default=0)
    return Status(
        title=plan.title,
        running=is_locked(folder.path / "run"),
        steps=tuple(steps),
        rates=_newer(folder.rates, latest),
        results=_newer(folder.results, latest),
        report=_newer(folder.report, latest),
    )


def _responses(folder: Folder, plan: Plan, model: str) -> Step:
    planned = plan.responses(model)
    if not plan.asked:
        there = folder.responses(model).exists()
        return Step("responses", model, None, planned, planned if there else 0, 0, there)
    progress = Progress.of(folder.responses(model))
    return Step("responses", model, None, planned, progress.done, progress.failed, progress.finished)


def _newer(path: Path, moment: int) -> bool:
    return path.exists() and path.stat().st_mtime_ns >= moment
