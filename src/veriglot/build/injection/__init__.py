"""Errors put into texts by a model, and the check that every silver row has to pass, whoever made it."""

from veriglot.build.injection.account import (
    Account,
    LanguageAccount,
    TypeAccount,
    account_of,
    account_path,
    load_account,
)
from veriglot.build.injection.changes import Change, changes_of, restored, spans_of
from veriglot.build.injection.check import REASONS, Reason, Violation, check, check_spans
from veriglot.build.injection.difference import differing
from veriglot.build.injection.edited import Edited, narrowed, rebuilt
from veriglot.build.injection.injector import Injector
from veriglot.build.injection.job import silver_rows
from veriglot.build.injection.made import Made, SilverRejection
from veriglot.build.injection.reading import Fault, FaultReason, read_reply
from veriglot.build.injection.seeds import Order, SeedReason, Task, seed_fault, tasks
from veriglot.build.injection.silver import CHECK_VERSION, silver
from veriglot.build.injection.support import DetectorSupport, ModelSupport, Support, SupportReason, Verdict
from veriglot.build.injection.waves import in_waves
from veriglot.build.injection.wording import FORMS, TAXONOMIES, Form, injection_types, injection_version

__all__ = [
    "CHECK_VERSION",
    "FORMS",
    "REASONS",
    "TAXONOMIES",
    "Account",
    "Change",
    "DetectorSupport",
    "Edited",
    "Fault",
    "FaultReason",
    "Form",
    "Injector",
    "LanguageAccount",
    "Made",
    "ModelSupport",
    "Order",
    "Reason",
    "SeedReason",
    "SilverRejection",
    "Support",
    "SupportReason",
    "Task",
    "TypeAccount",
    "Verdict",
    "Violation",
    "account_of",
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
    "seed_fault",
    "silver",
    "silver_rows",
    "spans_of",
    "tasks",
]
