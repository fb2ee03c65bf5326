"""TensorFlow 1's control flow: nodes that pass values to one branch of a condition, or round a loop.

No device runs them. The compiler turns the While and If that they stand for into these ops; see
`timberframe_ops.passes.raising`.
"""

from __future__ import annotations

from typing import Any

from timberframe_core.errors import UnimplementedError
from timberframe_core.ops.definition.gradients import apply_op, supplied
from timberframe_core.ops.definition.opdef import InferenceContext, MissingGradient, NotDifferentiable, define_op
from timberframe_core.shapes import Shape, format_shape

_NUMBER = NotDifferentiable("it routes truth values, or references by number")


def _switch_gradient(op: Any, grad_false: Any, grad_true: Any) -> list[Any]:
    sides = []
    for i, grad in enumerate((grad_false, grad_true)):
        known = supplied.zeros_like(op.outputs[i]) if grad is None else grad
        sides.append(apply_op("Switch", [known, op.inputs[1]])[i])
    return [apply_op("Merge", [sides])[0], None]


# Predicates of this form are known to raising: they mean that the branch ran which made input i.
def _merge_gradient(op: Any, grad: Any, _: Any) -> list[Any]:
    index = op.outputs[1]
    return [apply_op("Switch", [grad, apply_op("Equal", [index, i])])[1] for i in range(len(op.inputs))]


def _loop_gradient(op: Any, grad: Any) -> list[Any]:
    raise UnimplementedError(
        f"{op.type} '{op.name}': is part of a loop of TensorFlow 1, which has no gradient once it is imported; "
        "the loop must be built with tf.while_loop, or the gradients before the graph is exported",
        op.name,
    )


def _carry(c: InferenceContext, outputs: int) -> None:
    handle = c.handles[0] if c.handles else None
    if handle is not None:
        c.output_handles.update(dict.fromkeys(range(outputs), handle))


def _passes(c: InferenceContext) -> list[Shape]:
    _carry(c, 1)
    return [c.shapes[0]]


def _switch_shape(c: InferenceContext) -> list[Shape]:
    pred = c.shapes[1]
    if pred is not None and pred != ():
        raise c.error(f"pred has shape {format_shape(pred)}; it must be a scalar")
    _carry(c, 2)
    return [c.shapes[0], c.shapes[0]]


def _merge_shape(c: InferenceContext) -> list[Shape]:
    """Returns what all inputs have in common.

    The input that closes a loop is not known yet; the importer sees to that.
    """
    _carry(c, 1)
    merged = c.shapes[0]
    for shape in c.shapes[1:]:
        if merged is None or shape is None or len(merged) != len(shape):
            merged = None
        else:
            merged = tuple(a if a == b else None for a, b in zip(merged, shape, strict=True))
    return [merged, ()]


def _loop_cond_shape(c: InferenceContext) -> list[Shape]:
    return [c.shapes[0]]


def _define(prefix: str) -> None:
    """Defines the ops that route values, or with the prefix Ref references to variables."""

    def of(kind: str) -> str:
        return f"Ref({kind})" if prefix else kind

    what = "reference" if prefix else "value"
    define_op(
        f"{prefix}Switch",
        inputs=[f"data: {of('T')}", "pred: bool"],
        outputs=[f"output_false: {of('T')}", f"output_true: {of('T')}"],
        attrs=["T: type"],
        doc=f"Passes the {what} to output_true where `pred` holds, else to output_false; the other one is dead.",
        shape=_switch_shape,
        role="switch",
        gradient=_switch_gradient,
    )
    define_op(
        f"{prefix}Merge",
        inputs=[f"inputs: {of('N * T')}"],
        outputs=[f"output: {of('T')}", "value_index: int32"],
        attrs=["T: type", "N: int >= 1"],
        doc=f"The {what} of the input that is not dead, and its number.",
        shape=_merge_shape,
        role="merge",
        gradient=_merge_gradient,
    )
    define_op(
        f"{prefix}Enter",
        inputs=[f"data: {of('T')}"],
        outputs=[f"output: {of('T')}"],
        attrs=["T: type", "frame_name: string", "is_constant: bool = false", "parallel_iterations: int = 10"],
        doc=f"Passes the {what} into the loop `frame_name`: into its first iteration, or with is_constant into each.",
        shape=_passes,
        role="enter",
        gradient=_loop_gradient,
    )
    for name, role, doc in (
        ("Exit", "exit", "out of a loop"),
        ("NextIteration", "next_iteration", "into the next iteration of a loop"),
    ):
        define_op(
            f"{prefix}{name}",
            inputs=[f"data: {of('T')}"],
            outputs=[f"output: {of('T')}"],
            attrs=["T: type"],
            doc=f"Passes the {what} {doc}.",
            shape=_passes,
            role=role,
            gradient=_loop_gradient,
        )


_define("")
_define("Ref")

define_op(
    "LoopCond",
    inputs=["input: bool"],
    outputs=["output: bool"],
    doc="The condition of a loop: whether there is another iteration.",
    shape=_loop_cond_shape,
    role="loop_condition",
    gradient=_NUMBER,
)

define_op(
    "ControlTrigger",
    doc="Does nothing; what waits for it waits for its control inputs, be they dead or not.",
    shape=lambda c: [],
    role="control_trigger",
    gradient=NotDifferentiable("it has no output"),
)

define_op(
    "RefSelect",
    inputs=["index: int32", "inputs: Ref(N * T)"],
    outputs=["output: Ref(T)"],
    attrs=["T: type", "N: int >= 1"],
    doc="The reference `inputs[index]`.",
    shape=lambda c: [None],
    role="reference",
    gradient=MissingGradient("it routes references by number"),
)
