"""`tf.python.client.timeline`: the trace of a run as Chrome and Perfetto read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from timberframe_core.errors import InvalidTypeError

__all__ = ["Timeline"]


class Timeline:
    """The timeline of a run. step_stats: `RunMetadata.step_stats` of a run with a trace; graph changes nothing."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        if not isinstance(step_stats, Mapping) or "traceEvents" not in step_stats:
            raise InvalidTypeError(
                f"Timeline: step_stats is {type(step_stats).__name__} without events; those of a traced run "
                "with RunOptions(trace_level=RunOptions.FULL_TRACE) are required"
            )
        self._trace = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """Returns the trace as JSON in the Trace Event format. The arguments are TensorFlow's and change nothing."""
        return json.dumps(self._trace)
