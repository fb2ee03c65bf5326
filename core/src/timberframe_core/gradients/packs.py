"""Small values that branches within branches keep, several as one: each level of nesting passes them all on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.growth import inserting_before, keep_operations
from timberframe_core.graph.operation import Tensor
from timberframe_core.shapes import is_static

_TOGETHER = 4  # packs become elements of packs, so that n levels pass on some 4 * log(n) values in place of n
_MOST_ELEMENTS = 64  # of a value that is copied into a pack
_NOT_PACKED = ("resource", "variant", "string")


def packed(body: FuncGraph, forward: FuncGraph, kept: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
    """Returns inputs of the body of a gradient and the tensors of the forward function that they stand for, with packs
    in place of small tensors that an operation within has kept.

    kept: such inputs and tensors. The forward function packs the tensors, and the body unpacks them.
    """
    found, taken_out = dict(kept), dict[Tensor, Tensor]()
    for inputs in _groups(kept):
        pack = _pack(forward, [found.pop(x) for x in inputs])
        with inserting_before(body.get_operations()[0]), body.device(pack.op.device or None):
            given = body.add_input(pack.dtype, pack.static_shape, "kept_pack")
            attrs = {"num": len(inputs), "T": pack.dtype}
            elements = body.apply("Unpack", (given,), attrs, "kept").outputs
        found[given] = pack
        taken_out.update(zip(inputs, elements, strict=True))
    if taken_out:
        _replace(body, taken_out)
    return found


def _groups(kept: Mapping[Tensor, Tensor]) -> Iterator[Sequence[Tensor]]:
    """Yields the inputs that are put together, of equal dtypes and shapes."""
    alike: dict[object, list[Tensor]] = {}
    for x, tensor in kept.items():
        shape = tensor.static_shape
        passed_on = bool(tensor.op.op_def.function_attrs) and tensor.dtype.name not in _NOT_PACKED
        if passed_on and is_static(shape) and math.prod(d or 0 for d in shape or ()) <= _MOST_ELEMENTS:
            alike.setdefault((tensor.dtype, shape), []).append(x)
    for inputs in alike.values():
        for i in range(0, len(inputs) - _TOGETHER + 1, _TOGETHER):
            yield inputs[i : i + _TOGETHER]


def _pack(forward: FuncGraph, tensors: Sequence[Tensor]) -> Tensor:
    with forward.device(tensors[0].op.device or None):
        attrs = {"N": len(tensors), "T": tensors[0].dtype, "axis": 0}
        return forward.apply("Pack", tensors, attrs, "kept_pack").outputs[0]


def _replace(body: FuncGraph, by: Mapping[Tensor, Tensor]) -> None:
    """Puts other tensors in the place of inputs of a body, which are then no longer there."""
    for op in body.get_operations():
        op.inputs = tuple(by.get(t, t) for t in op.inputs)
    body.outputs = [by.get(t, t) for t in body.outputs]
    gone = {x.op for x in by}
    keep_operations(body, {op for op in body.get_operations() if op not in gone})
