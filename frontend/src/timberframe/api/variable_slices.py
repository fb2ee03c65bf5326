"""Slices of variables, which can be assigned."""

from __future__ import annotations

from typing import Any

from timberframe.api.framework import control_dependencies
from timberframe_core.dtypes import resource
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class VariableSlice(Tensor):
    """A slice of a variable, as `variable[1:3]` gives it: a tensor that can be assigned."""

    __slots__ = ()

    def assign(self, value: Any, name: str | None = None) -> Tensor:
        """Makes `value` the value of this slice of the variable; returns the whole value as read thereafter.

        value: of the slice's shape.
        """
        op = self.op
        handle = op.inputs[0].op.inputs[0]
        reference = handle.dtype is not resource
        update = "StridedSliceAssign" if reference else "ResourceStridedSliceAssign"
        given = [handle, *op.inputs[1:], convert_to_tensor(value, self.dtype)]
        attrs = {mask: op.attrs[mask] for mask in _MASKS}
        graph = get_default_graph()
        with graph.device(None), graph.device(handle.device):
            made = apply_op(update, given, attrs, name or f"{op.name}_assign")
            with control_dependencies([made.op if reference else made]):
                read, read_attrs = ("Identity", None) if reference else ("ReadVariableOp", {"dtype": self.dtype})
                whole: Tensor = apply_op(read, [handle], read_attrs)
        return whole


def assignable(sliced: Any) -> Any:
    """Returns a slice of what was read of a variable, as one that can be assigned; anything else as it is."""
    if type(sliced) is Tensor and sliced.op.type == "StridedSlice":
        read = sliced.op.inputs[0].op
        of_reference = read.type == "Identity" and read.inputs[0].op.op_def.role == "reference"
        if read.type == "ReadVariableOp" or of_reference:
            sliced.__class__ = VariableSlice
    return sliced
