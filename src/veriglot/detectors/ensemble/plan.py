"""Which detectors an ensemble is made of: names joined by `+`, or a TOML file that says more of each."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from veriglot.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriglot.detectors.confidences.calibrated import Make
    from veriglot.records import Detector

__all__ = ["Member", "made", "read_members"]


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One detector of an ensemble.

    Attributes:
        detector: its name, as `load_detector` takes it, or `package.module:Class` of a class of one's own.
        calibration: a file that `veriglot evaluate --calibrate` wrote for it, or None.
        weight: of its confidences in the mean; above 0.
        options: further options of the detector.
    """

    detector: str
    calibration: str | None = None
    weight: float = 1.0
    options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not 0.0 < self.weight < float("inf"):
            raise ValueError(f"the weight of a member is above 0, but this one is {self.weight}")
        if {"threshold", "words"} & set(self.options):
            raise ValueError("threshold and words are options of the ensemble, not of a member")


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    members: tuple[Member, ...]


def read_members(given: str | Sequence[str | Member]) -> tuple[Member, ...]:
    """The members that are meant.

    Args:
        given: names joined by `+`, the path of a TOML file with a table `[[members]]` for each, or a list of names and
            members. Calibrations in a file are found from its folder.

    Raises:
        UsageError: fewer than two, or one twice.
        InputError: the file cannot be read.
    """
    if isinstance(given, str):
        found = _of_file(Path(given)) if given.endswith(".toml") else tuple(Member(n) for n in given.split("+") if n)
    else:
        found = tuple(Member(one) if isinstance(one, str) else one for one in given)
    if len(found) < 2:
        raise UsageError(
            "An ensemble has at least two detectors.", remedy="Name them as in ensemble:grounding+semantic."
        )
    repeated = [one for place, one in enumerate(found) if one in found[:place]]
    if repeated:
        raise UsageError(f"The ensemble names {repeated[0].detector!r} twice.")
    return found


def _of_file(path: Path) -> tuple[Member, ...]:
    try:
        plan = msgspec.convert(tomllib.loads(path.read_text("utf-8")), type=_Plan)
    except FileNotFoundError as error:
        raise InputError("there is no such file", path=str(path), remedy="Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"this is no plan of an ensemble: {error}", path=str(path)) from error
    return tuple(_beside(one, path.parent) for one in plan.members)


def _beside(member: Member, folder: Path) -> Member:
    if member.calibration is None:
        return member
    return msgspec.structs.replace(member, calibration=str(folder / member.calibration))


def made(member: Member, *, threshold: float | None) -> Detector:
    """The detector of a member, calibrated where it has a calibration, with the confidences of words."""
    from veriglot.detectors.confidences.calibrated import Calibrated
    from veriglot.detectors.own_class import load_named

    make: Make = partial(load_named, member.detector, **member.options)
    if member.calibration is not None:
        return Calibrated(make, calibration=member.calibration, threshold=threshold, words=True)
    return make(threshold=threshold, words=True)
