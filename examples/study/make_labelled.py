"""Write labelled.jsonl: the responses with seed 42, with the labels of labels/*.toml.

python examples/study/make_labelled.py [FILE]

Without FILE it writes labelled.jsonl beside this script. A quote that its response does not hold, a label for no
response and a response without a label are errors.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import msgspec

import veriglot
from veriglot.records import Annotation, Kind, Sample, Span, encode

FOLDER = Path(__file__).resolve().parent
SEED = 42
ANNOTATOR = "language-model"
WHOLE = "*"


def labels() -> dict[str, list[str]]:
    """The quotes of each labelled response, by its id."""
    found: dict[str, list[str]] = {}
    for path in sorted((FOLDER / "labels").glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["response"]:
            if entry["id"] in found:
                raise SystemExit(f"{path.name}: {entry['id']} is labelled twice")
            found[entry["id"]] = entry["unsupported"]
    return found


def spans(response: str, quotes: list[str], name: str) -> tuple[Span, ...]:
    """Where the quotes stand, each place of each; touching and overlapping ones as one."""
    marked = bytearray(len(response))
    for quote in quotes:
        if quote == WHOLE:
            marked[:] = b"\1" * len(response)
            continue
        at = response.find(quote)
        if at < 0 or not quote:
            raise SystemExit(f"{name}: the response does not hold {quote!r}")
        while at >= 0:
            marked[at : at + len(quote)] = b"\1" * len(quote)
            at = response.find(quote, at + 1)
    found, start = [], None
    for place, here in enumerate([*marked, 0]):
        if here and start is None:
            start = place
        elif not here and start is not None:
            found.append(Span(start, place, "unverified"))
            start = None
    return tuple(found)


def labelled() -> list[Sample]:
    """Every response with the seed, with its labels, in the order of the files."""
    quotes = labels()
    rows = []
    for path in sorted((FOLDER / "responses").glob("*.jsonl")):
        for sample in veriglot.read(path):
            if sample.generator is None or sample.generator.seed != SEED:
                continue
            if sample.id not in quotes:
                raise SystemExit(f"{sample.id} has no label")
            marks = spans(sample.response, quotes.pop(sample.id), sample.id)
            annotation = Annotation(ANNOTATOR, Kind.MODEL, "support", spans=marks)
            rows.append(msgspec.structs.replace(sample, annotations=(annotation,)))
    if quotes:
        raise SystemExit(f"there is no response {next(iter(quotes))}")
    return rows


def main() -> None:
    """Write the file."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "labelled.jsonl"
    rows = labelled()
    target.write_bytes(b"".join(encode(row) + b"\n" for row in rows))
    print(f"{target}: {len(rows)} labelled responses")


if __name__ == "__main__":
    main()
