"""Spans of OpenTelemetry: in the trace that a request names, for both protocols."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from timberframe_core.errors import UnavailableError
from timberframe_core.graphdef.tensors import encode_array
from timberframe_serving.messages import serving
from timberframe_serving.tracing import Tracing

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
PREDICT = "/v1/models/double:predict"


@pytest.fixture
def spans() -> Any:
    """The exporter of a provider, with the tracing that sends to it."""
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed (the extra otel)")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, Tracing(provider)


def facts(exporter: Any) -> list[tuple[str, str, str | None]]:
    """Returns name, trace and parent of the finished spans, in the order in which they ended."""
    return [
        (s.name, f"{s.context.trace_id:032x}", s.parent and f"{s.parent.span_id:016x}")
        for s in exporter.get_finished_spans()
    ]


def test_a_request_is_in_the_trace_that_it_names(serve: Any, helpers: Any, tmp_path: Path, spans: Any) -> None:
    exporter, tracing = spans
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"}, tracing=tracing)
    for _ in range(3):  # by the application, and on the connection itself
        exporter.clear()
        assert server.http(PREDICT, {"instances": [[1, 2]]}, {"traceparent": TRACEPARENT})[0] == 200
        inner, outer = exporter.get_finished_spans()
        assert facts(exporter) == [
            ("Predict double", TRACE, f"{outer.context.span_id:016x}"),
            ("POST", TRACE, PARENT),
        ]
        assert outer.attributes["http.response.status_code"] == 200
        assert outer.attributes["url.path"] == PREDICT
        assert inner.attributes["model_name"] == "double"
    exporter.clear()
    assert server.http(PREDICT, {"instances": [["a"]]}, {"traceparent": "damaged"})[0] == 400
    inner, outer = exporter.get_finished_spans()
    assert outer.parent is None
    assert outer.attributes["error.type"] == inner.attributes["error.type"] == "INVALID_ARGUMENT"
    assert "float32 is required" in outer.status.description


def test_a_request_that_is_begun_twice_has_one_span(
    serve: Any, helpers: Any, tmp_path: Path, spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timberframe_serving.batching.QUICK", 0.0)  # which only the model itself finds out
    exporter, tracing = spans
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"}, tracing=tracing)
    assert server.http(PREDICT, {"instances": [[1, 2]]})[0] == 200
    assert [f[0] for f in facts(exporter)] == ["Predict double", "POST"]


def test_a_call_is_in_the_trace_that_it_names(serve: Any, helpers: Any, tmp_path: Path, spans: Any) -> None:
    exporter, tracing = spans
    helpers.save(tmp_path / "double" / "1", 2.0)
    server = serve({"double": tmp_path / "double"}, tracing=tracing)
    asked = serving("PredictRequest")()
    asked.model_spec.name = "double"
    asked.inputs["x"].CopyFrom(encode_array(np.float32([[1, 2]])))
    method = "tensorflow.serving.PredictionService/Predict"
    server.rpc(f"/{method}", asked, serving("PredictResponse"), [("traceparent", TRACEPARENT)])
    assert [f[:2] for f in facts(exporter)] == [("Predict double", TRACE), (method, TRACE)]
    assert facts(exporter)[1][2] == PARENT
    exporter.clear()
    asked.model_spec.name = "other"
    with pytest.raises(grpc.RpcError):
        server.rpc(f"/{method}", asked, serving("PredictResponse"))
    assert exporter.get_finished_spans()[-1].attributes["error.type"] == "NOT_FOUND"


def test_spans_go_to_a_collector(spans: Any) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    import http.server
    import threading

    bodies: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        tracing = Tracing.to(f"http://127.0.0.1:{collector.server_port}/v1/traces")
        with tracing.request("POST", {"traceparent": TRACEPARENT}):
            pass
        tracing.close()
        collector.shutdown()
    assert any(bytes.fromhex(TRACE) in body and b"timberframe-serving" in body for body in bodies)


def test_without_opentelemetry_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry", "opentelemetry.exporter", "opentelemetry.exporter.otlp"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnavailableError, match=r"pip install 'timberframe-serving\[otel\]' is required"):
        Tracing.to("http://localhost:4318/v1/traces")
