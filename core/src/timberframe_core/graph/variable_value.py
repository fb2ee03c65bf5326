"""Values of variables under the names of their handles.

TensorFlow 1's variables are references: the tensor ``w:0`` is the value. Of a resource variable it is the handle, which
nobody can fetch or feed, and the value is the read that is made with the variable, ``w/Read/ReadVariableOp:0``. Where
a program names, fetches or feeds ``w:0`` it means that read; nodes and exports keep the handle under its name, so that
checkpoints and TensorFlow find the variable.
"""

from __future__ import annotations

from collections.abc import Mapping

from timberframe_core.graph.operation import Operation, Tensor

READ = "Read/ReadVariableOp"
"""The read that is made with a variable, after the variable's name."""


def value_of(tensor: Tensor, operations: Mapping[str, Operation]) -> Tensor:
    """Returns the read that is the value of a variable's handle; any other tensor itself.

    operations: its graph's, by name.
    """
    op = tensor.op
    if op.op_def.role != "variable":
        return tensor
    read = operations.get(f"{op.name}/{READ}")
    return tensor if read is None or tensor not in read.inputs else read.outputs[0]


def handle_of(tensor: Tensor) -> Tensor | None:
    """Returns the handle of the variable whose value this tensor is, None for any other tensor."""
    op = tensor.op
    if op.op_def.role != "read_variable" or not op.name.endswith(f"/{READ}"):
        return None
    (handle,) = op.inputs
    return handle if handle.op.op_def.role == "variable" and op.name == f"{handle.op.name}/{READ}" else None


def changed_variable(tensor: Tensor) -> Tensor | None:
    """Returns the handle, or reference, of the variable whose value a tensor is after an update
    of it; None for all others.
    """
    op = tensor.op
    if len(op.inputs) != 1:
        return None
    (source,) = op.inputs
    return source if any(update.inputs and update.inputs[0] is source for update in op.control_inputs) else None
