"""Branches: units that run under a predicate, as an If."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from timberframe_core.errors import UnimplementedError
from timberframe_core.graph.function import FuncGraph, share_captures, stateful_variant
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry
from timberframe_core.shapes import Shape, is_static
from timberframe_ops.passes.raising.references import Reference
from timberframe_ops.passes.raising.regions import Literal, Unit
from timberframe_ops.passes.raising.scope import Found, Scope

if TYPE_CHECKING:
    from timberframe_ops.passes.raising.schedule import Schedule

_LARGEST_CONSTANT = 1024  # elements; a larger stand-in is filled when the branch runs


def emit_branches(schedule: Schedule, pred: Tensor, group: Sequence[Unit]) -> None:
    """Adds an If that runs the units of `group`, which all depend on `pred`, each in its branch."""
    scope = schedule.scope
    results = [t for unit in group for t in unit.outputs() if _leaves(schedule, t, group)]
    merged = {t for unit in group if unit.merges for t in unit.outputs()}
    name = scope.free_name(next((u.operation.name for u in group if u.merges and u.operation), f"{pred.op.name}/_if"))
    bodies: list[Scope] = []
    for value, label in ((True, "true"), (False, "false")):
        body = scope.inner(f"{name}_{label}")
        holds = schedule.holds | {(pred, value)}
        inside = [u for u in group if _may_run(schedule, u, pred, value)]
        schedule.nested(body, inside, holds).run()
        bodies.append(body)
    values: list[tuple[Tensor, list[Tensor | None]]] = []
    for tensor in results:
        found = [body.local(tensor) for body in bodies]
        passed = _passed_through(scope, tensor, found, tensor in merged)
        if passed is not None:
            scope.set(tensor, passed)
        elif any(f is not None for f in found):
            values.append((tensor, [f if isinstance(f, Tensor) else None for f in found]))
    operations = [op for unit in group for op in unit.operations()]
    waits = scope.waits_of((c for u in group for c in u.controls), (t for u in group for t in u.inputs))
    made = add_if(scope, name, scope.value_of(pred, operations[0]), bodies, values, waits)
    for op in operations:
        scope.ran[op] = (made,)


def _leaves(schedule: Schedule, tensor: Tensor, group: Sequence[Unit]) -> bool:
    """Returns whether anybody outside of the group needs the tensor."""
    inside = set(group)
    consumers = schedule.region.consumers.get(tensor, ())
    return tensor in schedule.region.wanted or any(unit not in inside for unit in consumers)


def _may_run(schedule: Schedule, unit: Unit, pred: Tensor, value: bool) -> bool:
    """Returns whether the unit has a place in this branch."""
    condition = unit.condition
    if condition is None or (pred, not value) in condition:
        return False
    if (pred, value) in condition or not unit.merges:
        return True
    return any(c is not None and (pred, not value) not in c for c in map(schedule.region.condition, unit.inputs))


def _passed_through(scope: Scope, tensor: Tensor, found: Sequence[Found | None], merged: bool) -> Found | None:
    """Returns what stands for a result outside of the If without being handed out: a variable,
    or a value from around it.
    """
    present = [f for f in found if f is not None]
    handles = [f for f in present if isinstance(f, Reference) or f.dtype.name == "resource"]
    if handles:
        first = handles[0]
        handle = first.handle if isinstance(first, Reference) else first
        if any(f != first for f in present) or _inside(scope, handle):
            raise UnimplementedError(
                f"{tensor.op.type} '{tensor.op.name}': which variable or resource '{tensor.name}' is depends on the "
                "branch that runs; it must be the same in both",
                tensor.op.name,
            )
        return first
    if not present or (merged and len(present) < len(found)):
        return None
    first = present[0]
    same = all(f is first for f in present)
    return first if same and isinstance(first, Tensor) and not _inside(scope, first) else None


def _inside(scope: Scope, tensor: Tensor) -> bool:
    """Returns whether a tensor belongs to a body inside of the scope, not to the scope or to what lies around it."""
    around: Scope | None = scope
    while around is not None:
        if around.is_here(tensor):
            return False
        around = around.parent
    return True


def add_if(
    scope: Scope,
    name: str,
    pred: Tensor,
    bodies: Sequence[Scope],
    values: Sequence[tuple[Tensor, Sequence[Tensor | None]]],
    waits: Sequence[Operation],
) -> Operation:
    """Returns the If node with these results, a stand-in being made where a branch does not compute one."""
    functions = []
    for i, body in enumerate(bodies):
        function = body.graph
        assert isinstance(function, FuncGraph)
        outputs = [f[i] if f[i] is not None else _stand_in(body, t, f[1 - i]) for t, f in values]
        function.finish([t for t in outputs if t is not None])
        functions.append(function)
    captured = share_captures(functions)
    pairs = list(zip(functions[0].outputs, functions[1].outputs, strict=True))
    made = scope.graph.create_op(
        registry.get(stateful_variant("If", functions)),
        [pred, *captured],
        {
            "Tcond": pred.dtype,
            "Tin": [t.dtype for t in captured],
            "Tout": [a.dtype for a, _ in pairs],
            "then_branch": functions[0].name,
            "else_branch": functions[1].name,
            "output_shapes": [widest(a.static_shape, b.static_shape) for a, b in pairs],
        },
        scope.free_name(name),
        control_inputs=waits,
        device="",
        exact_name=True,
    )
    for (tensor, _), result in zip(values, made.outputs, strict=True):
        scope.set(tensor, result)
    return made


def widest(a: Shape, b: Shape) -> Shape:
    """Returns what both shapes have in common."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def _stand_in(body: Scope, tensor: Tensor, other: Tensor | None) -> Tensor:
    """Returns a value for a result that this branch does not compute, and that nobody looks at when it has run."""
    assert other is not None
    if other.dtype.name == "variant":
        raise UnimplementedError(
            f"{tensor.op.type} '{tensor.op.name}': hands a variant out of one branch only; that must not be",
            tensor.op.name,
        )
    shape: Any = other.static_shape if is_static(other.static_shape) else ()
    value: Any = b"" if other.dtype.name == "string" else np.zeros((), other.dtype.numpy)
    name = f"{tensor.op.name}/_none"
    if math.prod(shape) <= _LARGEST_CONSTANT:
        return body.constant(np.full(shape, value, other.dtype.numpy), name, other.dtype)
    dims = body.constant(np.array(shape, np.int64), f"{name}/dims")
    fill = body.graph.create_op(
        registry.get("Fill"),
        [dims, body.constant(value, f"{name}/value", other.dtype)],
        {"T": other.dtype, "index_type": dims.dtype},
        body.free_name(name),
        device="",
        exact_name=True,
    )
    return fill.outputs[0]


def guarded(scope: Scope, tensor: Tensor, literals: Sequence[Literal]) -> Tensor:
    """Returns the tensor's value for the caller, who gets an error where the branch that computes it did not run."""
    if not literals:
        return scope.value_of(tensor, tensor.op)
    (pred, value), *further = literals
    name = scope.free_name(f"{tensor.op.name}/_fetch")
    bodies = [scope.inner(f"{name}_{label}") for label in ("true", "false")]
    alive, dead = (bodies[0], bodies[1]) if value else (bodies[1], bodies[0])
    found = guarded(alive, tensor, further)
    message = (
        f"Retval: {tensor.op.type} '{tensor.op.name}': output {tensor.value_index} is on a branch that was not taken; "
        "what is fetched must be computed"
    )
    text = dead.constant(message, "_message")
    dead.graph.create_op(
        registry.get("Assert"),
        [dead.constant(np.bool_(False), "_never"), text],
        {"T": [text.dtype]},
        dead.free_name(tensor.op.name),
        device="",
        exact_name=True,
    )
    order = [found, None] if value else [None, found]
    waits = scope.waits_of((), [tensor])
    made = add_if(scope, name, scope.value_of(pred, tensor.op), bodies, [(tensor, order)], waits)
    return made.outputs[0]
