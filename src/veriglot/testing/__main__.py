"""`python -m veriglot.testing NAME`: check an installed detector or scorer against its contract."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veriglot.detectors.registry import DETECTORS
from veriglot.errors import VeriglotError
from veriglot.scorers.registry import SCORERS
from veriglot.testing import ContractError, check_detector, check_scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the results; 1 if the contract is violated, 2 if there is no such name."""
    parser = argparse.ArgumentParser(prog="python -m veriglot.testing", description=__doc__)
    parser.add_argument("name", help="a name of a detector, or package.module:Class")
    parser.add_argument("--scorer", action="store_true", help="it is a scorer")
    parser.add_argument("--tolerance", type=float, default=0.0, help="by how much numbers may differ between batches")
    parser.add_argument("--processes", action="store_true", help="try new processes too")
    given = parser.parse_args(arguments)
    check: Callable[..., Any] = check_scorer if given.scorer else check_detector
    table = SCORERS if given.scorer else DETECTORS
    try:
        if given.name in table or ":" not in given.name:
            table.entry(given.name)
            load = partial(table.make, given.name)
        else:
            module, _, attribute = given.name.partition(":")
            load = getattr(import_module(module), attribute)
        print(check(load, tolerance=given.tolerance, processes=given.processes))
    except ContractError as error:
        print(error, file=sys.stderr)
        return 1
    except (VeriglotError, ImportError, AttributeError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
