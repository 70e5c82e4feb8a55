"""What the checks of a plug-in found."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Breach", "ContractError", "Report"]

_SHOWN = 25


@dataclass(frozen=True)
class Breach:
    """One way in which a plug-in does not do what it has to.

    Attributes:
        check: name of the check.
        what: what was seen, and what was to be seen.
    """

    check: str
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.what}"


@dataclass(frozen=True)
class Report:
    """All that was checked.

    Attributes:
        subject: name and revision of the plug-in, or what was given where it could not be made.
        checks: names of the checks that ran, in order.
        breaches: what they found.
        samples: how many ordinary samples it was given.
        scored: how many of these it scored.
    """

    subject: str
    checks: tuple[str, ...]
    breaches: tuple[Breach, ...]
    samples: int
    scored: int

    def __str__(self) -> str:
        first = f"{self.subject}: {len(self.checks)} checks, {self.scored} of {self.samples} samples scored"
        if not self.breaches:
            return f"{first}; the contract is kept."
        lines = [f"{first}; the contract is broken:", *(f"- {breach}" for breach in self.breaches[:_SHOWN])]
        if len(self.breaches) > _SHOWN:
            lines.append(f"- and {len(self.breaches) - _SHOWN} more")
        return "\n".join(lines)


class ContractError(AssertionError):
    """A plug-in does not keep to its contract; the message lists how.

    Attributes:
        report: all that was checked.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report
