"""`tf.contrib.tfprof.model_analyzer`: profiles with settings as dicts, which programs change in place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from timberframe.boundary import guard
from timberframe.profiler import GraphNodeProto, ProfileOptionBuilder, profile
from timberframe_core.graph.graph import Graph

__all__ = ["print_model_analysis"]

TRAINABLE_VARS_PARAMS_STAT_OPTIONS: dict[str, Any] = ProfileOptionBuilder.trainable_variables_parameter()
"""Settings that show the parameters of trainable variables; with `dump_to_file` they are written to that file."""

FLOAT_OPS_OPTIONS: dict[str, Any] = ProfileOptionBuilder.float_operation()
"""Settings that show floating operations."""

PRINT_ALL_TIMING_MEMORY: dict[str, Any] = ProfileOptionBuilder.time_and_memory()
"""Settings that show how long operations took."""


def print_model_analysis(
    graph: Graph,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> GraphNodeProto:
    """Shows a graph as `tf.profiler.profile` does, and returns what it shows."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


guard([sys.modules[__name__]], "tf.contrib.tfprof.model_analyzer")
