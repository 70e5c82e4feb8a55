"""What the tests of training share. This file also puts its folder on the path, for the modules beside it."""

from __future__ import annotations
