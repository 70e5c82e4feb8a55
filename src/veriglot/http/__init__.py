"""Asking a web server politely: time-outs, retries with backoff, `Retry-After`, a rate, and keys that stay secret."""

from veriglot.http.session import HttpError, Response, Session, checked_address

__all__ = ["HttpError", "Response", "Session", "checked_address"]
