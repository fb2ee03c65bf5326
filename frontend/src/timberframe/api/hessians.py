"""`tf.hessians`: matrices of second derivatives."""

from __future__ import annotations

from typing import Any

from timberframe_core.errors import InvalidArgumentError
from timberframe_core.gradients.reverse import gradients
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """For each of `xs` the second derivatives of the sum of `ys`, of shape ``x.shape + x.shape``.

    A loop over the elements of the gradient makes them row by row. Zeros where the gradient is linear in x. The other
    arguments are those of `gradients`.
    """
    sources = list(xs) if isinstance(xs, list | tuple) else [xs]
    with get_default_graph().name_scope(name):
        how = (colocate_gradients_with_ops, gate_gradients, aggregation_method)
        firsts = gradients(ys, sources, None, "gradients", *how)
        return [_hessian(x, first, how) for x, first in zip(sources, firsts, strict=True)]


def _hessian(source: Any, first: Any, how: tuple[bool, bool, int | None]) -> Tensor:
    """Returns the derivatives of the gradient `first`, made row by row. how: further arguments of `gradients`."""
    from timberframe.api.tensor_array import TensorArray
    from timberframe.api.while_loops import while_loop

    if first is None:
        raise InvalidArgumentError(f"tf.hessians: ys do not depend on '{source.name}'; each of xs must be used by them")
    x, gradient = convert_to_tensor(source), apply_op("Reshape", [convert_to_tensor(first), [-1]])
    size = gradient.static_shape[0]
    count = apply_op("Size", [x]) if size is None else size

    def row(j: Any, rows: TensorArray) -> tuple[Any, TensorArray]:
        (found,) = gradients(apply_op("GatherV2", [gradient, j, 0]), [source], None, "gradients", *how)
        return j + 1, rows.write(j, apply_op("ZerosLike", [x]) if found is None else found)

    array = TensorArray(x.dtype, count, element_shape=x.shape)
    _, rows = while_loop(lambda j, _: apply_op("Less", [j, count]), row, (0, array))
    shape = apply_op("Shape", [x])
    made: Tensor = apply_op("Reshape", [rows.stack(), apply_op("ConcatV2", [[shape, shape], 0])])
    made.set_shape(None if x.static_shape is None else (*x.static_shape, *x.static_shape))
    return made
