"""Short programs in a Python of their own, for what hangs on which modules a process has loaded."""

from __future__ import annotations

import subprocess
import sys


def printed(code: str) -> str:
    """What a program prints; it has to end well."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
