"""Spans of OpenTelemetry, where a server is told where to send them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from timberframe_core.errors import OpError, UnavailableError
from timberframe_serving import __version__
from timberframe_serving.batching import WouldWaitError
from timberframe_serving.codes import code_name, shown


class Tracing:
    """Makes a span for each request, within the trace that its `traceparent` names, and one for what a model does."""

    def __init__(self, provider: Any) -> None:
        """provider: a TracerProvider of OpenTelemetry. Raises UnavailableError without its packages."""
        try:
            from opentelemetry import trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise _missing(error) from error
        self._provider, self._trace = provider, trace
        self._tracer = provider.get_tracer("timberframe_serving", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to(cls, endpoint: str) -> Tracing:
        """Returns what sends spans to a collector, such as http://localhost:4318/v1/traces.

        OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and the like are heeded as OpenTelemetry has them. Raises
        UnavailableError without its packages.
        """
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise _missing(error) from error
        named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "timberframe-serving"}
        resource = Resource.create(named)
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        return cls(provider)

    @contextmanager
    def request(self, name: str, headers: Mapping[str, str], **facts: object) -> Iterator[Any]:
        """Opens a span for a request around the block; yields it. headers: its `traceparent` and `tracestate`."""
        parent = self._propagator.extract(headers)
        kind = self._trace.SpanKind.SERVER
        with self._span(self._tracer.start_span(name, context=parent, kind=kind, attributes=facts)) as span:
            yield span

    @contextmanager
    def part(self, name: str, **facts: object) -> Iterator[None]:
        """Opens a span within that of the request around the block; an error in the block is in it."""
        with self._span(self._tracer.start_span(name, attributes=facts), record_exception=False) as span:
            try:
                yield
            except OpError as error:
                span.set_attribute("error.type", code_name(error.error_code))
                raise

    @contextmanager
    def _span(self, span: Any, **named: bool) -> Iterator[Any]:
        """Makes a span the current one and ends it, unless its request is to come again: then it is not sent."""
        comes_again = False
        try:
            with self._trace.use_span(span, **named):
                yield span
        except WouldWaitError:
            comes_again = True
            raise
        finally:
            if not comes_again:
                span.end()

    def failed(self, span: Any, error: OpError) -> None:
        """Notes an error of a request in its span."""
        span.set_attribute("error.type", code_name(error.error_code))
        span.set_status(self._trace.StatusCode.ERROR, shown(str(error)))

    def close(self) -> None:
        """Sends what has not been sent."""
        self._provider.shutdown()


def _missing(error: ImportError) -> UnavailableError:
    return UnavailableError(
        f"tracing: OpenTelemetry is not installed ({error}); pip install 'timberframe-serving[otel]' is required for it"
    )
