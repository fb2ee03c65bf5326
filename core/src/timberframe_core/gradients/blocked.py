"""Why no gradient arrives: the operations between results and sources that let none through."""

from __future__ import annotations

from collections.abc import Sequence

from timberframe_core.gradients.reverse import is_differentiable
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition.opdef import NotDifferentiable


def blocking_operations(y: Tensor, xs: Sequence[Tensor]) -> list[str]:
    """Returns the operations that stop the gradient of y on its way to xs, each with its name and the reason.

    xs: tensors, of variables their handles. Bodies of loops and branches are not looked into.
    """
    dependent = _dependent(y, set(xs))
    stopped: dict[Operation, str] = {}
    seen: set[Operation] = set()
    stack = [y.op] if y.op in dependent else []
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        reason = _reason(op, xs, dependent)
        if reason:
            stopped[op] = reason
        # Integers that a stop takes come from another stop, which is reported, too.
        stack.extend(t.op for t in op.inputs if t.op in dependent and not (reason and is_differentiable(t)))
    return [f"{op.type} '{op.name}': {reason}" for op, reason in stopped.items()]


def _dependent(y: Tensor, xs: set[Tensor]) -> set[Operation]:
    """Returns the operations that y depends on whose results depend on one of xs in any way."""
    dependent: set[Operation] = set()
    seen: set[Operation] = set()
    stack = [(y.op, False)]
    while stack:
        op, done = stack.pop()
        if done:
            if any(t in xs or t.op in dependent for t in op.inputs):
                dependent.add(op)
        elif op not in seen:
            seen.add(op)
            stack.append((op, True))
            stack.extend((t.op, False) for t in op.inputs)
    return dependent


def _reason(op: Operation, xs: Sequence[Tensor], dependent: set[Operation]) -> str:
    """Returns why the operation lets no gradient through; nothing where it may let one through."""
    if isinstance(op.gradient, NotDifferentiable):
        return op.gradient.reason
    takes = any(is_differentiable(t) for t in op.inputs if t in xs or t.op in dependent)
    if takes and not any(is_differentiable(t) for t in op.outputs):
        return f"its result is {op.outputs[0].dtype.name}" if op.outputs else "it has no result"
    return ""
