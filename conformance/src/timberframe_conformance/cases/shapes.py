"""Shapes for elementwise ops, and how to recognise such ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timberframe_core.errors import OpError
from timberframe_core.ops.definition.opdef import InferenceContext, OpDef
from timberframe_core.shapes import Shape

Shapes = tuple[tuple[int, ...], ...]

# 0-d, empty, one, primes around vector widths, several dimensions, one above 65,535, and large in two dimensions; last,
# one less than whole vectors.
UNARY: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (7,), (17,), (3, 5), (2, 3, 1, 5), (1031,), (70001,), (257, 300), (127,),
)  # fmt: skip

BINARY: tuple[Shapes, ...] = (
    ((), ()), ((0,), (0,)), ((0, 3), (1, 3)), ((1,), (1,)), ((17,), (17,)), ((7,), ()), ((), (13,)), ((3, 5), (5,)),
    ((3, 1), (1, 5)), ((2, 3, 4), (3, 1)), ((2, 1, 3, 1), (1, 5, 1, 7)), ((1031,), (1,)), ((1031,), (1031,)),
    ((70001,), (70001,)), ((70001, 1), (1, 2)), ((131, 67), (131, 1)), ((127,), (127,)),
)  # fmt: skip

TERNARY: tuple[Shapes, ...] = (
    ((), (), ()), ((0,), (0,), (0,)), ((17,), (17,), (17,)), ((3, 5), (3, 5), (3, 5)), ((1031,), (1031,), (1031,)),
    ((70001,), (70001,), (70001,)), ((127,), (127,), (127,)),
)  # fmt: skip


def broadcast_together(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Returns whether two shapes are broadcast, by NumPy's rules."""
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


def _infer(op: OpDef, attrs: Mapping[str, Any], shapes: Shapes) -> list[Shape] | None:
    context = InferenceContext(op, "probe", attrs, shapes, [None] * len(shapes), [a.dtype for a in op.inputs])  # type: ignore[misc]  # dtypes do not matter here
    try:
        return list(op.shape(context))
    except (OpError, TypeError, AttributeError, KeyError, IndexError, ValueError):
        return None


def elementwise_shapes(op: OpDef, attrs: Mapping[str, Any]) -> list[Shapes]:
    """Returns shapes to try, if the shape function says that the op works element by element; else none."""
    if op.stateful or op.shape_inputs or op.launch_inputs or any(a.is_list for a in (*op.inputs, *op.outputs)):
        return []
    count = len(op.inputs)
    probes: list[tuple[int, ...]] = [(), (3, 5), (0, 3)]
    if not 1 <= count <= 3 or len(op.outputs) != 1:
        return []
    if any(_infer(op, attrs, (s,) * count) != [s] for s in probes):
        return []
    if count == 1:
        return [(s,) for s in UNARY]
    if count == 3:
        return list(TERNARY)
    broadcasts = _infer(op, attrs, ((3, 1), (1, 5))) == [(3, 5)]
    return [s for s in BINARY if broadcasts or s[0] == s[1]]
