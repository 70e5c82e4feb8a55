"""`python -m veriglot` is the command `veriglot`."""

import sys

from veriglot.cli import main

sys.exit(main())
