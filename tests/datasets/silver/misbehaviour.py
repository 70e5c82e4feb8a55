"""A scripted model with every kind of bad reply, one for each seed, and the expected reason."""

from __future__ import annotations

from typing import Any, NamedTuple

from veriglot.llm.scripted import Scripted
from veriglot.records import Evidence, Sample

__all__ = ["CASES", "Case", "passage", "script", "seeds"]

ARTICLE = "The mill was built in 1731 by the widow Anna Kroll. It burnt down in 1902 and was never built again."


def passage(number: int) -> str:
    return f"Mill {number:02} was built in 1731 by Anna Kroll. It burnt down in 1902."


class Case(NamedTuple):
    """The reply for passage `%` (its number), and the reason of its rejection; none if it is accepted."""

    what: str
    reply: str
    reason: str | None
    finish: str = "stop"


DONE = (
    "Mill % was built in <entity><delete>1731</delete><mark>1764</mark></entity> by Anna Kroll. It burnt down in 1902."
)
CASES = (
    Case("does as it is told", DONE, None),
    Case("writes the new text alone", DONE.replace("<delete>1731</delete><mark>1764</mark>", "1764"), None),
    Case("says what it is going to do, and fences it", f"Sure, here it is:\n\n```\n{DONE}\n```", None),
    Case("explains itself afterwards", f"{DONE}\n\nI changed the year, so that the text is wrong now.", None),
    Case("labels its answer and thinks aloud", f"<think>Which year?</think>Edited: {DONE}", None),
    Case("writes a letter outside in another case", DONE.replace("It burnt", "it burnt"), None),
    Case("misspells the tag", DONE.replace("</entity>", "</Entitiy>"), None),
    Case("says nothing", "   \n", "no_text"),
    Case("says nothing but marks", "...", "no_text"),
    Case("declines", "I'm sorry, but I can't help with spreading false information.", "refused"),
    Case("is held back", "", "held_back", "filter"),
    Case("is cut", "Mill % was built in <entity><delete>1731", "cut", "length"),
    Case("gives the passage back", "Mill % was built in 1731 by Anna Kroll. It burnt down in 1902.", "nothing"),
    Case("drops a sentence", DONE.replace(" It burnt down in 1902.", ""), "outside"),
    Case("edits elsewhere too", DONE.replace("1902", "1903"), "outside"),
    Case("adds a sentence without a tag", f"{DONE} It was never built again.", "outside"),
    Case("answers something else", "The <entity>church</entity> is lovely.", "outside"),
    Case("nests tags", DONE.replace("<mark>1764</mark>", "<mark><entity>1764</entity></mark>"), "overlap"),
    Case("never closes the tag", DONE.replace("</entity>", ""), "tags"),
    Case("closes with another tag", DONE.replace("</entity>", "</relation>"), "tags"),
    Case("forgets half of an edit", DONE.replace("</mark>", ""), "tags"),
    Case("puts in another type", DONE.replace("entity", "subjective"), "type"),
    Case("takes something out only", DONE.replace("<mark>1764</mark>", ""), "deleted"),
    Case("marks what is right", DONE.replace("1764", "1731"), "unchanged"),
    Case("glues old and new", DONE.replace("<delete>1731</delete><mark>1764</mark>", "17311764"), "glued"),
    Case("glues a word to the one beside it", DONE.replace("</entity> by", "</entity>by"), "glued"),
    Case("leaves marks in the text", DONE.replace("1764", "**1764**"), "markup"),
    Case("writes in another script", DONE.replace("1764", "семнадцатом"), "script"),
    Case("goes on in another language", DONE.replace("1764</mark>", "1764, dem Jahr, in dem der alte König im Winter"
         " auf dem Schloss gestorben ist und alle um ihn weinten,</mark>"), "language"),
    Case("goes round in circles", DONE.replace("1764", "1764 or" + " in the year 1764 or" * 12), "garbled"),
    Case("marks an empty error", DONE.replace("1764", "--"), "empty"),
    Case("says what the evidence says", "Mill % was built in 1731 by Anna Kroll. <entity><delete>It burnt down in 1902."
         "</delete><mark>It burnt down in 1902 and was never built again.</mark></entity>", "supported"),
    Case("rewrites most of it", "<entity><delete>Mill % was built in 1731 by Anna Kroll.</delete><mark>Nobody knows"
         " any more who built the church of Orve, or when.</mark></entity> It burnt down in 1902.", "too_much"),
)  # fmt: skip


def seeds() -> list[Sample]:
    """A seed for each case, with its passage."""
    return [Sample(f"case-{n:02}", passage(n), language="en", evidence=(Evidence(ARTICLE),)) for n in range(len(CASES))]


def script() -> Scripted:
    """The reply to each seed."""
    rules: list[dict[str, Any]] = [
        {"match": f"Mill {n:02} was", "reply": case.reply.replace("%", f"{n:02}"), "finish": case.finish}
        for n, case in enumerate(CASES)
    ]
    return Scripted(rules)
