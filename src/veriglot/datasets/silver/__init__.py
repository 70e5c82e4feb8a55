"""Errors put into texts by a model, and the check that every silver row has to pass, whoever made it."""

from veriglot.datasets.generation import Account, account_path, in_waves
from veriglot.datasets.silver.check import REASONS, Change, changes_of, check, check_spans, restored, spans_of
from veriglot.datasets.silver.injection import (
    Edited,
    Fault,
    Injector,
    Order,
    Task,
    differing,
    injection_types,
    injection_version,
    narrowed,
    read_reply,
    rebuilt,
    tasks,
)
from veriglot.datasets.silver.job import LanguageAccount, SilverRejection, load_account, silver
from veriglot.datasets.silver.support import DetectorSupport, ModelSupport, Support

__all__ = [
    "REASONS",
    "Account",
    "Change",
    "DetectorSupport",
    "Edited",
    "Fault",
    "Injector",
    "LanguageAccount",
    "ModelSupport",
    "Order",
    "SilverRejection",
    "Support",
    "Task",
    "account_path",
    "changes_of",
    "check",
    "check_spans",
    "differing",
    "in_waves",
    "injection_types",
    "injection_version",
    "load_account",
    "narrowed",
    "read_reply",
    "rebuilt",
    "restored",
    "silver",
    "spans_of",
    "tasks",
]
