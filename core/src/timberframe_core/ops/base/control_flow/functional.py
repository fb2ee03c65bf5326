"""Ops that run functions of the graph: loops, branches and calls.

Function attrs hold the function's name. What a body computes only the graph knows, so shapes come from `output_shapes`
where it is given; building functions (`tf.while_loop`, `tf.cond`) fill it in from the bodies.
"""

from __future__ import annotations

from typing import Any

from timberframe_core import dtypes
from timberframe_core.ops.definition.gradients import supplied
from timberframe_core.ops.definition.opdef import InferenceContext, define_op
from timberframe_core.shapes import Shape, compatible, format_shape


def _loop_gradient(op: Any, *grads: Any) -> list[Any]:
    return supplied.loop_gradient(op, *grads)


def _branch_gradient(op: Any, *grads: Any) -> list[Any]:
    return supplied.branch_gradient(op, *grads)


def _call_gradient(op: Any, *grads: Any) -> list[Any]:
    return supplied.call_gradient(op, *grads)


def _declared(c: InferenceContext, count: int) -> list[Shape]:
    """`output_shapes`, one for each of `count` outputs; unknown where the attr is empty or not there."""
    shapes = c.attrs.get("output_shapes") or (None,) * count
    if len(shapes) != count:
        raise c.error(f"output_shapes has {len(shapes)} shapes; it must have one for each of the {count} outputs")
    return list(shapes)


def _carry_handles(c: InferenceContext, count: int) -> None:
    for i in range(count):
        handle = c.handles[i] if i < len(c.handles) else None
        if handle is not None:
            c.output_handles[i] = handle


def _while_shape(c: InferenceContext) -> list[Shape]:
    """Loop variables keep what output_shapes says; a handle is the same one in every iteration."""
    count = len(c.shapes)
    shapes = _declared(c, count)
    for i, (first, shape) in enumerate(zip(c.shapes, shapes, strict=True)):
        if not compatible(first, shape):
            raise c.error(
                f"loop variable {i} starts with shape {format_shape(first)}; output_shapes says {format_shape(shape)}, "
                "which it must suit"
            )
        if c.dtypes[i] is dtypes.resource:
            shapes[i] = ()
    _carry_handles(c, count)
    return shapes


def _if_shape(c: InferenceContext) -> list[Shape]:
    return _declared(c, len(c.attrs["Tout"]))


def _case_shape(c: InferenceContext) -> list[Shape]:
    if c.shapes[0] not in (None, ()):
        raise c.late_error(f"branch_index has shape {format_shape(c.shapes[0])}; it must be a scalar")
    return _if_shape(c)


def branch_number(index: int, count: int) -> int:
    """Returns which of so many branches a Case of this index runs: the last one where no branch has the number."""
    return index if 0 <= index < count else count - 1


def _define_while(name: str, stateful: bool) -> None:
    define_op(
        name,
        inputs=["input: T"],
        outputs=["output: T"],
        attrs=[
            "T: list(type) >= 0",
            "cond: func",
            "body: func",
            "output_shapes: list(shape) = []",
            "parallel_iterations: int = 10",
        ],
        doc="Applies `body` to the loop variables for as long as `cond` of them is true.",
        shape=_while_shape,
        role="loop",
        gradient=_loop_gradient,
        stateful=stateful,
    )


def _define_if(name: str, stateful: bool) -> None:
    define_op(
        name,
        inputs=["cond: Tcond", "input: Tin"],
        outputs=["output: Tout"],
        attrs=[
            "Tcond: type",
            "Tin: list(type) >= 0",
            "Tout: list(type) >= 0",
            "then_branch: func",
            "else_branch: func",
            "output_shapes: list(shape) = []",
        ],
        doc="Applies `then_branch` or `else_branch` to the inputs. A 0-d `cond` is true unless it is zero or an empty "
        "string, any other unless it has no elements.",
        shape=_if_shape,
        role="branch",
        gradient=_branch_gradient,
        stateful=stateful,
    )


def _define_case(name: str, stateful: bool) -> None:
    define_op(
        name,
        inputs=["branch_index: int32", "input: Tin"],
        outputs=["output: Tout"],
        attrs=[
            "Tin: list(type) >= 0",
            "Tout: list(type) >= 0",
            "branches: list(func) >= 1",
            "output_shapes: list(shape) = []",
        ],
        doc="Applies the branch with the number `branch_index` to the inputs, the last one where no branch has it.",
        shape=_case_shape,
        role="case",
        gradient=_branch_gradient,
        stateful=stateful,
    )


def _define_call(name: str, stateful: bool) -> None:
    define_op(
        name,
        inputs=["args: Tin"],
        outputs=["output: Tout"],
        attrs=[
            "Tin: list(type) >= 0",
            "Tout: list(type) >= 0",
            "f: func",
            "config: string = ''",
            "config_proto: string = ''",
            "executor_type: string = ''",
        ],
        doc="Calls the function `f`.",
        shape=_if_shape,
        role="call",
        gradient=_call_gradient,
        stateful=stateful,
    )


_define_while("While", True)
_define_while("StatelessWhile", False)
_define_if("If", True)
_define_if("StatelessIf", False)
_define_case("Case", True)
_define_case("StatelessCase", False)
_define_call("PartitionedCall", False)
_define_call("StatefulPartitionedCall", True)
