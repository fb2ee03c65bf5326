"""Changes to operations that exist: operations before them, more inputs and outputs, removal, other inputs and shapes.

Gradients of loops and branches need the first three: the forward operation gets further results, which the backward
pass reads. Programs edit graphs by other inputs, and change the shapes of variables by other shapes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.attributes import complete_attrs
from timberframe_core.graph.graph import Graph
from timberframe_core.graph.inference import check_inputs, infer_outputs, output_dtypes
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import Shape, is_static

INITIAL_SHAPE = "_initial_shape"
"""The attr of a VarHandleOp that stands for a reference variable which may change its shape or begins with no elements:
the sizes of its first values.
"""


@contextmanager
def inserting_before(op: Operation) -> Iterator[None]:
    """Puts the operations made inside into the graph of `op` right before it, as if they had been made then.

    Scopes around do not hold inside, but for the control inputs and the device of `op`.
    """
    graph = op.graph
    with graph._lock, graph.name_scope(None), graph.control_dependencies(None), graph.device(None):
        made, first = len(graph._operations), op.id
        with graph.control_dependencies(op.control_inputs), graph.device(op.device or None):
            yield
        added = graph._operations[made:]
        del graph._operations[made:]
        graph._operations[first:first] = added
        for i, later in enumerate(graph._operations[first:], first):
            later.id = i


def keep_operations(graph: Graph, needed: Container[Operation]) -> None:
    """Removes all other operations from a function that nothing runs yet; their names stay taken."""
    for op in graph._operations:
        if op not in needed:
            del graph._by_name[op.name]
    graph._operations[:] = [op for op in graph._operations if op in needed]
    for i, op in enumerate(graph._operations):
        op.id = i


def extend_operation(
    op: Operation,
    attrs: Mapping[str, Any],
    inputs: Sequence[Tensor] = (),
    outputs: Sequence[tuple[DType, Shape]] = (),
) -> list[Tensor]:
    """Gives an existing operation other attrs and, after those it has, more inputs and outputs.

    Its name and the outputs that it had stay valid; earlier plans are made again. The inputs must be made before the
    operation (see `inserting_before`). Returns the new outputs.
    """
    with op.graph._lock:
        first = len(op.outputs)
        op.attrs = complete_attrs(op.op_def, op.name, {**op.attrs, **attrs})
        op.inputs = (*op.inputs, *inputs)
        made = [Tensor(op, first + i, dtype, shape) for i, (dtype, shape) in enumerate(outputs)]
        op.outputs = (*op.outputs, *made)
        check_inputs(op)
        if [t.dtype for t in op.outputs] != output_dtypes(op.op_def, op.name, op.attrs):
            raise InvalidArgumentError(
                f"{op.type} '{op.name}': its outputs are not those that its attrs give; both must agree",
                op.name,
            )
        op.graph.version += 1
        return made


def change_inputs(op: Operation, inputs: Sequence[Tensor], control_inputs: Sequence[Operation]) -> None:
    """Gives an existing operation other inputs and control inputs; earlier plans are made again.

    Raises InvalidArgumentError, and leaves it as it was, for inputs of other dtypes or another number, of another
    graph, or that depend on the operation.
    """
    graph = op.graph
    before = [t.dtype.base_dtype for t in op.inputs]
    given = [t.dtype.base_dtype for t in inputs]
    sources = [*(t.op for t in inputs), *control_inputs]
    if given != before or any(source.graph is not graph for source in sources):
        raise InvalidArgumentError(
            f"{op.type} '{op.name}': inputs {[t.name for t in inputs]} are given; tensors of its graph and of dtypes "
            f"{[d.name for d in before]} are required",
            op.name,
        )
    with graph._lock:
        kept = op.inputs, op.control_inputs
        op.inputs, op.control_inputs = tuple(inputs), tuple(dict.fromkeys(control_inputs))
        if any(source.id >= op.id for source in sources):
            order = _in_order(graph._operations)
            if order is None:
                op.inputs, op.control_inputs = kept
                raise InvalidArgumentError(
                    f"{op.type} '{op.name}': inputs {[t.name for t in inputs]} or control inputs "
                    f"{[c.name for c in control_inputs]} depend on it; a graph must have no cycle",
                    op.name,
                )
            graph._operations[:] = order
            for i, each in enumerate(order):
                each.id = i
        graph.version += 1


def allow_any_shape(handle: Tensor) -> None:
    """Lets a variable whose handle declares a shape have values of any shape; what followed is inferred again."""
    op = handle.op
    declared = op.attrs["shape"]
    if declared is None:
        return
    with op.graph._lock:
        extend_operation(op, {"shape": None, **initial_shape(declared)})
        infer_outputs(op)
        changed = {handle}
        for later in op.graph._operations[op.id + 1 :]:
            if not changed.isdisjoint(later.inputs):
                for tensor in later.outputs:
                    tensor.forget()
                infer_outputs(later, defer_errors=True)
                changed.update(later.outputs)


def initial_shape(shape: Shape) -> dict[str, list[int]]:
    """Returns the attr that keeps the shape of a variable's first values, nothing where it is not known."""
    return {INITIAL_SHAPE: [d or 0 for d in shape or ()]} if is_static(shape) else {}


def _in_order(operations: Sequence[Operation]) -> list[Operation] | None:
    """Returns the operations with inputs before those that use them, else as they were; None where they are a cycle."""
    order: list[Operation] = []
    state: dict[Operation, bool] = {}  # whether it has its place
    for first in operations:
        stack = [(first, False)]
        while stack:
            op, visited = stack.pop()
            if visited:
                state[op] = True
                order.append(op)
            elif op not in state:
                state[op] = False
                stack.append((op, True))
                for source in (*(t.op for t in reversed(op.inputs)), *op.control_inputs):
                    if state.get(source) is False:
                        return None
                    stack.append((source, False))
    return order
