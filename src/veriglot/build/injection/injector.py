"""The model that puts errors into passages: which errors, and how it is asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from veriglot.build.injection.seeds import passage_messages
from veriglot.build.injection.wording import Form, injection_types, insert_prompt
from veriglot.llm import Message, Request, Settings

if TYPE_CHECKING:
    from veriglot.build.injection.edited import Edited
    from veriglot.build.injection.seeds import Task
    from veriglot.records import Sample

__all__ = ["Injector"]


class Injector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model that puts errors into passages, and how.

    Attributes:
        model: as its server names it.
        taxonomy: `fava` or `halluverse`.
        types: of the errors; empty for all of the taxonomy.
        form: how the model says what it changed: with `tags`, or by writing the edited text alone (`plain`), in which
            case the spans are where it differs. Halluverse's way is `plain`.
        settings: how it generates.
        seed: of the calls; each further attempt takes the next number.
        attempts: how often an error of one type is asked for, until one passes; at least 1.
    """

    model: str
    taxonomy: str = "fava"
    types: tuple[str, ...] = ()
    form: Form = "tags"
    settings: Settings = Settings()
    seed: int | None = None
    attempts: int = 2

    @property
    def per_sentence(self) -> bool:
        """Whether each sentence is a row of its own with one error (halluverse), instead of each passage with many."""
        return self.taxonomy == "halluverse"

    @property
    def all_types(self) -> tuple[str, ...]:
        """The types that are put in, in the order of the rounds."""
        return self.types or injection_types(self.taxonomy)

    def request(self, task: Task, edited: Edited, type_: str, attempt: int) -> Request:
        """Asks for errors of one type in a passage."""
        reference = "\n\n".join(passage.text for passage in task.seed.evidence)
        kept = tuple(dict.fromkeys(span.text or "" for span in edited.spans))
        prompt = insert_prompt(
            self.taxonomy,
            type_,
            self.form,
            task.seed.language or "",
            edited.text,
            reference=reference,
            kept=kept,
        )
        return Request(self.model, (Message("user", prompt),), seed=self._seed(attempt), settings=self.settings)

    def passage_request(self, seed: Sample, attempt: int) -> Request:
        """Asks for a seed passage."""
        return Request(self.model, passage_messages(seed), seed=self._seed(attempt), settings=self.settings)

    def _seed(self, attempt: int) -> int | None:
        if self.seed is None and attempt == 1:
            return None
        return (self.seed or 0) + attempt - 1
