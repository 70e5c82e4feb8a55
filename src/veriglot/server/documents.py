"""What the server says of itself: its calls as OpenAPI, figures for Prometheus, the files of its page."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from markupsafe import Markup

from veriglot.http.server import ErrorAnswer, PageFiles, files_below
from veriglot.records import Prediction, from_mapping, sample_from
from veriglot.records.languages import languages
from veriglot.report.pages import sample_blocks, sample_page
from veriglot.server.batches import Offer
from veriglot.signatures import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from veriglot.server.batches import Batcher

__all__ = ["LettuceRequest", "Tally", "Viewed", "metrics_text", "open_api", "page_files", "view_of"]


# Figures.


class Tally:
    """Counts of calls, by path and status, and of rows, by status and verdict, and how long calls took."""

    BOUNDS: ClassVar = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        self.rows: Counter[tuple[str, str]] = Counter()
        self.buckets: Counter[float] = Counter()
        self.seconds = 0.0

    def count_call(self, path: str, status: int, seconds: float) -> None:
        """Count a call by its path and the status of its answer; those with rows by their time too."""
        self.calls[path, status] += 1
        if status == 200 and path.startswith(("/v1/detect", "/v1/lettucedetect")):
            self.buckets[next(bound for bound in self.BOUNDS if seconds <= bound)] += 1
            self.seconds += seconds


def metrics_text(batcher: Batcher, tally: Tally) -> str:
    """The figures, in the text format of Prometheus; there is no text of users in them."""
    lines = [*_tallied(tally)]
    for name, kind, meaning, value in (
        ("batches_total", "counter", "Batches judged.", batcher.batches),
        ("batch_rows_total", "counter", "Rows of these batches.", batcher.rows),
        ("worker_deaths_total", "counter", "Processes that died and were replaced.", batcher.service.deaths),
        ("workers", "gauge", "Processes that are to judge.", batcher.service.jobs),
        ("workers_ready", "gauge", "Processes that have loaded the detector.", batcher.service.ready),
        ("rows_waiting", "gauge", "Rows that wait for a process.", batcher.waiting),
        ("rows_working", "gauge", "Rows that are being judged.", len(batcher.working)),
        ("calls_queue", "gauge", "Calls of one row that are being answered.", batcher.accepted["queue"]),
        ("calls_streams", "gauge", "Calls of many rows that are being answered.", batcher.accepted["streams"]),
        ("request_bytes", "gauge", "Bytes of requests that are not answered yet.", batcher.bytes),
        ("resident_memory_bytes", "gauge", "Memory of the serving process, without its workers.", _resident()),
    ):
        lines += _family(name, kind, meaning, [("", value)])
    return "\n".join([*lines, ""])


def _tallied(tally: Tally) -> Iterator[str]:
    calls = [(f'{{path="{path}",status="{status}"}}', count) for (path, status), count in sorted(tally.calls.items())]
    yield from _family("calls_total", "counter", "Calls, by path and status of the answer.", calls)
    rows = [(f'{{status="{status}",verdict="{verdict}"}}', n) for (status, verdict), n in sorted(tally.rows.items())]
    yield from _family("rows_total", "counter", "Rows answered, by status and verdict.", rows)
    total, buckets = 0, []
    for bound in tally.BOUNDS:
        total += tally.buckets[bound]
        buckets.append((f'_bucket{{le="{"+Inf" if bound == float("inf") else bound}"}}', total))
    figures = [*buckets, ("_sum", round(tally.seconds, 6)), ("_count", total)]
    yield from _family("call_seconds", "histogram", "Seconds that answered calls with rows took.", figures)


def _family(name: str, kind: str, meaning: str, figures: Sequence[tuple[str, float]]) -> list[str]:
    name = f"veriglot_{name}"
    head = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    return head + [f"{name}{suffix} {value}" for suffix, value in figures]


def _resident() -> int:
    """Bytes of memory in use; 0 where the system does not say it in this way."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096
    return 0


# OpenAPI: the table beside this file, and the records that it leads to.


class LettuceRequest(msgspec.Struct, frozen=True):
    """What LettuceDetect's clients send."""

    contexts: list[str]
    answer: str
    question: str | None = None


def open_api(offers: Sequence[Offer]) -> dict[str, Any]:
    """The calls described, for the detectors that can be asked for."""
    document: dict[str, Any] = msgspec.json.decode(files("veriglot.server").joinpath("openapi.json").read_bytes())
    kinds = (Prediction, ErrorAnswer, Offer)
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    answer = {**schemas.pop("Prediction"), "title": "Answer"}
    answer["required"] = ["id", "status", "verdict"]  # what was not checked has a reason, and no spans
    schemas |= {"Answer": answer, "Detector": {"enum": [offer.name for offer in offers]}}
    document["components"]["schemas"] |= schemas
    document["info"]["version"] = __version__
    return document


# The page: that of judged samples, as reports have it, with a form above; there is one sample, drawn anew each time.


def page_files(path: str, offers: Sequence[Offer]) -> PageFiles:
    """The files of the page; see `PageFiles`.

    Args:
        path: what stands before every path.
        offers: the detectors that can be asked for.
    """
    own = dict(files_below(files("veriglot.server") / "page"))
    listed = [[language.tag, language.name] for language in languages().values()]
    served = {"path": path, "offers": offers, "languages": listed}
    page = sample_page("Veriglot", Markup(own["form.html"].decode()), {"served": served})  # noqa: S704
    script = f"{page.script}\n{own['playground.js'].decode()}"
    contents = {
        "index.html": page.html.encode(),
        "page.js": f'(function () {{\n"use strict";\n{script}\n}})();'.encode(),
        "page.css": (page.style + own["playground.css"].decode()).encode(),
    }
    return PageFiles(contents, path)


class Viewed(msgspec.Struct, frozen=True):
    """What the page asks to be shown."""

    sample: Any
    prediction: Any


def view_of(viewed: Viewed) -> dict[str, Any]:
    """What the page shows of a sample and its prediction.

    Raises:
        InputError: they are none.
    """
    listed, shown = sample_blocks(sample_from(viewed.sample), from_mapping(viewed.prediction, Prediction))
    return {"listed": msgspec.Raw(listed.encode()), "shown": msgspec.Raw(shown.encode())}
