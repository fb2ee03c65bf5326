"""Traces as pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

from timberframe_core.config import RunMetadata

TRACE = {
    "traceEvents": [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 3, "args": {"name": "a </script> track"}},
        {"name": "y", "cat": "Tanh", "ph": "X", "ts": 1.5, "dur": 2.0, "pid": 1, "tid": 3, "args": {"bytes": 8}},
    ]
}


def test_a_trace_is_saved_as_a_page_where_the_name_says_so(tmp_path: Path) -> None:
    metadata = RunMetadata()
    metadata.trace = TRACE
    metadata.save_trace(tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text)
    assert found
    (event,) = json.loads(found[1])
    assert (event["name"], event["track"], event["start"], event["length"]) == ("y", "a </script> track", 1.5, 2.0)
    assert event["details"] == {"bytes": "8"}
