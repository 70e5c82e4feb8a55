"""Errors put into texts by a model, and the check that every silver row has to pass, whoever made it."""

from veriglot.build.injection.changes import Change, changes_of, restored, spans_of
from veriglot.build.injection.check import REASONS, Reason, Violation, check, check_spans

__all__ = ["REASONS", "Change", "Reason", "Violation", "changes_of", "check", "check_spans", "restored", "spans_of"]
