"""Where findings are counted: by check, file and kind, with a few examples of different files."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from veriglot.build.checking.findings import Example, Finding, checks

if TYPE_CHECKING:
    from veriglot.build.checking.findings import Level

__all__ = ["EXAMPLES", "GLUED_SET", "Tally", "shortened"]

GLUED_SET = 0.1
"""Share of glued spans from which a file's seams are taken for glue; below it they may be the estimate's own errors."""

EXAMPLES = 8  # kept of each check
_A_FILE = 2  # of these from one file, while other files have some
_SHOWN = 160


def shortened(text: str) -> str:
    """A text cut to 160 code points, on one line."""
    plain = " ".join(text[: 4 * _SHOWN].split())
    return plain if len(plain) <= _SHOWN else f"{plain[: _SHOWN - 1]}…"


class Tally:
    """Counts of what was looked at and of what was found; memory grows with checks and files, not with rows."""

    def __init__(self) -> None:
        self._found: dict[str, Counter[str]] = defaultdict(Counter)
        self._of: dict[str, Counter[str]] = defaultdict(Counter)
        self._layers: dict[str, Counter[str]] = defaultdict(Counter)
        self._of_layers: dict[str, Counter[str]] = defaultdict(Counter)
        self._kinds: dict[str, Counter[str]] = defaultdict(Counter)
        self._examples: dict[str, dict[str, list[Example]]] = defaultdict(lambda: defaultdict(list))

    def looked(self, check: str, file: str, count: int = 1, *, layer: str | None = None) -> None:
        """So many more could have what the check looks for."""
        self._of[check][file] += count
        if layer is not None:
            self._of_layers[check][layer] += count

    def found(
        self, check: str, file: str, count: int = 1, *, kind: str | None = None, layer: str | None = None
    ) -> None:
        """So many more have it."""
        self._found[check][file] += count
        if layer is not None:
            self._layers[check][layer] += count
        if kind is not None:
            self._kinds[check][kind] += count

    def kind(self, check: str, kind: str, count: int = 1) -> None:
        """Count a kind without counting a place again."""
        self._kinds[check][kind] += count

    def example(self, check: str, example: Example) -> None:
        """Offer an example; the first few of each file are kept."""
        kept = self._examples[check][example.file]
        if len(kept) < EXAMPLES:
            kept.append(example)

    def looked_at(self, check: str) -> int:
        """How many could have it."""
        return self._of[check].total()

    def share(self, check: str, file: str) -> float:
        """Share of one file that has it, 0 to 1."""
        return self._found[check][file] / max(1, self._of[check][file])

    def findings(self) -> tuple[Finding, ...]:
        """What was found, in the order of the catalogue."""
        return tuple(self._finding(name) for name in checks() if self._found[name].total())

    def _finding(self, name: str) -> Finding:
        check = checks()[name]
        by_file = {file: count for file, count in self._found[name].most_common() if count}
        return Finding(
            check=name,
            level=self._level(name),
            unit=check.unit,
            how=check.how,
            count=self._found[name].total(),
            of=max(self._of[name].total(), self._found[name].total()),
            files=by_file,
            of_files={file: max(self._of[name][file], count) for file, count in by_file.items()},
            layers={layer: (self._layers[name][layer], of) for layer, of in self._of_layers[name].items()},
            kinds={kind: count for kind, count in self._kinds[name].most_common() if count},
            examples=self._chosen(name, by_file),
            cleaning=check.cleaning,
        )

    def _level(self, name: str) -> Level:
        """As the catalogue says, but few glued spans in every file are as many as sound data seem to have."""
        if name == "glued_span" and all(self.share(name, file) < GLUED_SET for file in self._found[name]):
            return "note"
        return checks()[name].level

    def _chosen(self, name: str, by_file: dict[str, int]) -> tuple[Example, ...]:
        """Examples of the files with most of it, two a file, then further ones."""
        kept = self._examples[name]
        first = [example for file in by_file for example in kept.get(file, ())[:_A_FILE]]
        further = [example for file in by_file for example in kept.get(file, ())[_A_FILE:]]
        return tuple((first + further)[:EXAMPLES])
