"""Predictions as spans of OpenTelemetry: the verdict and counts, and the text only if asked for."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import veriglot
from veriglot.integrations import otel_attributes, traced_detect

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

evidence = "The bridge was opened in 1879."
with trace.get_tracer("app").start_as_current_span("answer"):
    assert (
        traced_detect(evidence=evidence, response="The bridge was opened in 1907.").verdict
        is veriglot.Verdict.UNSUPPORTED
    )
traced_detect(evidence="", response="The bridge was opened in 1907.")
traced_detect(evidence=evidence, response="The bridge was opened in 1907.", text=True)
try:
    traced_detect(evidence=evidence, response="The bridge was opened in 1907.", detector="no-such")
except veriglot.VeriglotError as error:
    print(error)

first, parent, unchecked, with_text, failed = exporter.get_finished_spans()
for span in (first, unchecked, with_text):
    print(span.name, dict(span.attributes))
assert first.name == "veriglot.detect"
assert first.parent.span_id == parent.context.span_id
assert first.attributes["veriglot.verdict"] == "unsupported"
assert first.attributes["veriglot.spans"] == 1
assert not any("bridge" in str(value) or "1907" in str(value) for value in first.attributes.values())
assert unchecked.attributes["veriglot.verdict"] == "not_checked"
assert "veriglot.spans" not in unchecked.attributes
assert with_text.attributes["veriglot.unsupported"] == ("1907",)
assert not failed.status.is_ok

with trace.get_tracer("app").start_as_current_span("own") as own:
    own.set_attributes(otel_attributes(veriglot.detect(evidence=evidence, response=evidence)))
assert exporter.get_finished_spans()[-1].attributes["veriglot.verdict"] == "supported"
