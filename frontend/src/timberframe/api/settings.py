"""Settings of sessions and runs under their public names."""

from __future__ import annotations

from typing import Any

from timberframe_core.config import RunMetadata, RunOptions, SessionConfig
from timberframe_core.logging import get_logger

__all__ = [
    "RunMetadata", "RunOptions", "SessionConfig", "control_flow_v2_enabled", "disable_control_flow_v2",
    "disable_eager_execution", "disable_resource_variables", "disable_v2_behavior", "enable_control_flow_v2",
    "enable_eager_execution", "enable_resource_variables", "get_logger", "resource_variables_enabled",
]  # fmt: skip


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Makes operations run when they are made, from now on and in all threads; to be called when the program starts.

    config: a SessionConfig or ConfigProto for devices and options. device_policy: one of the DEVICE_PLACEMENT_...
    constants of tf.contrib.eager; inputs on other devices are copied under all of them. execution_mode: tf.contrib.
    eager.SYNC or ASYNC; an operation has ended when its function returns under both.
    Raises WrongStateError (a ValueError) where the default graph has operations already, or other options are in force.
    """
    from timberframe.eager.context import enable

    enable(config, device_policy, execution_mode)


def disable_v2_behavior() -> None:
    """Does nothing: graphs and sessions are what there is."""


def disable_eager_execution() -> None:
    """Makes programs build graphs, as they do from the start; after `enable_eager_execution` in a new default graph."""
    from timberframe_core.graph.graph import Graph, get_default_graph, set_global_graph

    if get_default_graph().eager:
        set_global_graph(Graph())


def enable_resource_variables() -> None:
    """Does nothing: every variable is a resource."""


def disable_resource_variables() -> None:
    """Does nothing: every variable is a resource, whose reads are ordered as those of other variables."""


def resource_variables_enabled() -> bool:
    """True: every variable is a resource."""
    return True


def enable_control_flow_v2() -> None:
    """Does nothing: branches and loops are made of functions, `If` and `While`."""


def disable_control_flow_v2() -> None:
    """Does nothing: branches and loops are made of functions, `If` and `While`."""


def control_flow_v2_enabled() -> bool:
    """True: branches and loops are made of functions, `If` and `While`."""
    return True
