"""Ops that only move elements, described once for all devices: which views of which tensors go where.

`PLANS[op](node)` is what the op does: stages of (source view, target view) pairs. The moves of one stage may run in any
order or together; a later stage reads or overwrites what earlier ones wrote. Ops on slices whose position is read at
each launch are in `slices`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from timberframe_core.plugin.contracts import KernelNode
from timberframe_sdk.plans.moves import blocks, joining, within
from timberframe_sdk.plans.moves.views import LITERAL as LITERAL
from timberframe_sdk.plans.moves.views import Dim as Dim
from timberframe_sdk.plans.moves.views import Stages as Stages
from timberframe_sdk.plans.moves.views import View as View
from timberframe_sdk.plans.moves.views import dense as dense
from timberframe_sdk.plans.moves.views import element as element
from timberframe_sdk.plans.moves.views import host_integers as host_integers
from timberframe_sdk.plans.moves.views import itemsize as itemsize
from timberframe_sdk.plans.moves.views import merged as merged
from timberframe_sdk.plans.moves.views import source as source
from timberframe_sdk.plans.moves.views import target as target

PLANS: dict[str, Callable[[KernelNode], Stages]] = {**within.PLANS, **blocks.PLANS, **joining.PLANS}

COPIES = ("Identity", "StopGradient", "PreventGradient", "Reshape", "ExpandDims", "Squeeze", "EnsureShape")
"""Ops whose output has the bytes of their first input, and may have its memory."""


def literal(node: KernelNode) -> bytes:
    """Returns the element that `element()` stands for in the plan of this node: one for OnesLike, else zero."""
    return np.ones((), node.outputs[0].dtype).tobytes() if node.op == "OnesLike" else bytes(16)
