"""What the checks of a plug-in found."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Breach", "ContractError", "Report"]

_SHOWN = 4  # breaches of one check


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
        lines = [f"{first}; the contract is broken:"]
        for check in dict.fromkeys(breach.check for breach in self.breaches):
            found = [breach for breach in self.breaches if breach.check == check]
            lines += [f"- {breach}" for breach in found[:_SHOWN]]
            if len(found) > _SHOWN:
                lines.append(f"- {check}: and {len(found) - _SHOWN} more")
        return "\n".join(lines)


class ContractError(AssertionError):
    """A plug-in does not keep to its contract; the message lists how.

    Attributes:
        report: all that was checked.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report
