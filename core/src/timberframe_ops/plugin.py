"""The module that the entry point of these ops names: it has the passes that serve them, and imports their host ops."""

from __future__ import annotations

from timberframe_core.plugin.hooks import hookimpl
from timberframe_core.plugin.passes import Pass
from timberframe_ops import host_ops as _host_ops  # noqa: F401  # registers them
from timberframe_ops.passes.dense_lists import DENSE_LISTS
from timberframe_ops.passes.functionalize import FUNCTIONALIZE
from timberframe_ops.passes.hoist import HOIST
from timberframe_ops.passes.narrow import NARROW
from timberframe_ops.passes.norms import NORMS
from timberframe_ops.passes.pads import PADS
from timberframe_ops.passes.powers import POWERS
from timberframe_ops.passes.sink import SINK


@hookimpl
def timberframe_passes() -> list[Pass]:
    """Returns the passes."""
    return [FUNCTIONALIZE, DENSE_LISTS, POWERS, PADS, NORMS, HOIST, SINK, NARROW]
