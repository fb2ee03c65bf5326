"""Changes to operations that exist: operations put before them, and more inputs and outputs.

Gradients of loops and branches need them: the forward operation gets further results, which the backward pass reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.attributes import complete_attrs
from timberframe_core.graph.inference import check_inputs, output_dtypes
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.shapes import Shape


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
