"""Asking a web server politely: time-outs, retries with backoff, `Retry-After`, a rate, and keys that stay secret."""

from veriglot.http.address import checked_address
from veriglot.http.errors import HttpError
from veriglot.http.response import Response
from veriglot.http.session import Session

__all__ = ["HttpError", "Response", "Session", "checked_address"]
