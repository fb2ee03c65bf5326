"""Ops that look at a variable as a whole: whether it has a value, of which shape, and dropping it."""

from __future__ import annotations

import numpy as np

from timberframe_core.compiler.plan import Located
from timberframe_core.errors import FailedPreconditionError
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.runtime.host_ops.variants import list_variable


@host_op("VarIsInitializedOp")
def _is_initialized(call: HostCall) -> list[Located]:
    return [(np.array(call.resources.variables.shape(call.handle()) is not None), None)]


@host_op("VariableShape")
def _shape(call: HostCall) -> list[Located]:
    shape = call.resources.variables.shape(call.handle())
    if shape is None:
        raise call.uninitialized()
    return [(np.array(shape, call.dtypes[0].numpy), None)]


@host_op("DestroyResourceOp")
def _destroy(call: HostCall) -> list[Located]:
    key, resources = call.handle(), call.resources
    found = resources.variables.destroy(key) or resources.destroy(list_variable(key)) or resources.destroy(key)
    if not found and not call.attrs.get("ignore_lookup_error", True):
        raise call.error(f"resource '{key}' does not exist; it must have been made", FailedPreconditionError)
    return []
