"""Exporters of ops on each element, and of reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timberframe_core.graph.operation import Operation
from timberframe_onnx.elements import Array, element_of
from timberframe_onnx.exporting.writer import NotExportedError, Writer, exports

SAME = {
    "Abs": "Abs", "Acos": "Acos", "Acosh": "Acosh", "AddV2": "Add", "Add": "Add", "Asin": "Asin", "Asinh": "Asinh",
    "Atan": "Atan", "Atanh": "Atanh", "BatchMatMul": "MatMul", "Ceil": "Ceil", "Cos": "Cos", "Cosh": "Cosh",
    "Div": "Div", "Elu": "Elu", "Equal": "Equal", "Erf": "Erf", "Exp": "Exp", "Floor": "Floor", "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual", "Identity": "Identity", "Inv": "Reciprocal", "IsNan": "IsNaN", "IsInf": "IsInf",
    "Less": "Less", "LessEqual": "LessOrEqual", "Log": "Log", "LogicalAnd": "And", "LogicalNot": "Not",
    "LogicalOr": "Or", "Maximum": "Max", "Minimum": "Min", "Mul": "Mul", "Neg": "Neg", "Pow": "Pow",
    "RealDiv": "Div", "Reciprocal": "Reciprocal", "Relu": "Relu", "Rint": "Round", "Round": "Round", "Select": "Where",
    "SelectV2": "Where", "Selu": "Selu", "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh",
    "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "Sqrt", "Sub": "Sub", "Tan": "Tan", "Tanh": "Tanh",
    "Snapshot": "Identity", "StopGradient": "Identity", "PreventGradient": "Identity", "CheckNumerics": "Identity",
    "EnsureShape": "Identity", "AddN": "Sum", "TruncateDiv": "Div",
}  # fmt: skip
"""Ops with the same meaning, whose inputs are the same and whose attributes are none."""


@exports(*SAME)
def _same(w: Writer, op: Operation) -> None:
    w.give(op, w.add(SAME[op.type], w.inputs(op)))


@exports("IdentityN")
def _identities(w: Writer, op: Operation) -> None:
    w.give(op, *(w.add("Identity", [name]) for name in w.inputs(op)))


def _number(w: Writer, op: Operation, value: Any) -> str:
    """Returns a scalar in the dtype of the operation's first input."""
    return w.constant(value, op.inputs[0].dtype.numpy)


def _composed(kind: str, make: Callable[[Writer, Operation, list[str]], str]) -> None:
    exports(kind)(lambda w, op: w.give(op, make(w, op, w.inputs(op))))


_composed("Square", lambda w, op, x: str(w.add("Mul", [x[0], x[0]])))
_composed("Rsqrt", lambda w, op, x: str(w.add("Reciprocal", [w.add("Sqrt", x)])))
_composed("Expm1", lambda w, op, x: str(w.add("Sub", [w.add("Exp", x), _number(w, op, 1)])))
_composed("Log1p", lambda w, op, x: str(w.add("Log", [w.add("Add", [x[0], _number(w, op, 1)])])))
_composed("Erfc", lambda w, op, x: str(w.add("Sub", [_number(w, op, 1), w.add("Erf", x)])))
_composed("Relu6", lambda w, op, x: str(w.add("Clip", [x[0], _number(w, op, 0), _number(w, op, 6)])))
_composed("NotEqual", lambda w, op, x: str(w.add("Not", [w.add("Equal", x)])))
_composed("LogicalXor", lambda w, op, x: str(w.add("Xor", x)))
_composed("ClipByValue", lambda w, op, x: str(w.add("Min", [w.add("Max", x[:2]), x[2]])))
_composed("ZerosLike", lambda w, op, x: str(w.add("Mul", [x[0], _number(w, op, 0)])))
_composed("LeakyRelu", lambda w, op, x: str(w.add("LeakyRelu", x, alpha=float(op.attrs["alpha"]))))
_composed("Cast", lambda w, op, x: str(w.add("Cast", x, to=element_of(op.outputs[0].dtype))))
_composed("TruncateMod", lambda w, op, x: str(w.add("Mod", x, fmod=1)))


@exports("SquaredDifference")
def _squared_difference(w: Writer, op: Operation) -> None:
    apart = w.add("Sub", w.inputs(op))
    w.give(op, w.add("Mul", [apart, apart]))


@exports("FloorDiv")
def _floor_div(w: Writer, op: Operation) -> None:
    """Integers by way of the remainder, which has the sign of the divisor in both."""
    x, y = w.inputs(op)
    if op.inputs[0].dtype.is_integer:
        w.give(op, w.add("Div", [w.add("Sub", [x, w.add("Mod", [x, y])]), y]))
    else:
        w.give(op, w.add("Floor", [w.add("Div", [x, y])]))


@exports("FloorMod")
def _floor_mod(w: Writer, op: Operation) -> None:
    x, y = w.inputs(op)
    if op.inputs[0].dtype.is_integer:
        w.give(op, w.add("Mod", [x, y]))
    else:
        w.give(op, w.add("Sub", [x, w.add("Mul", [w.add("Floor", [w.add("Div", [x, y])]), y])]))


REDUCTIONS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd"}


@exports(*REDUCTIONS)
def _reduction(w: Writer, op: Operation) -> None:
    axes = w.as_int64(op.inputs[1])
    known = w.known(op.inputs[1])
    if known is not None and known.ndim == 0:
        axes = w.constant(known.reshape(1).astype(np.int64))
    keep = int(op.attrs["keep_dims"])
    if op.type == "Mean" and _reduces_nothing(op, known):
        raise NotExportedError("it is the mean of no elements, which ONNX leaves open")
    if known is not None and known.size == 0:
        w.give(op, w.add("Identity", [w.value(op.inputs[0])]))
    else:
        w.give(op, w.add(REDUCTIONS[op.type], [w.value(op.inputs[0]), axes], keepdims=keep))


def _reduces_nothing(op: Operation, axes: Array | None) -> bool:
    """Returns whether an axis that goes has no elements, as far as that is known."""
    sizes = op.inputs[0].shape.as_list() if op.inputs[0].shape.ndims is not None else []
    return axes is not None and bool(sizes) and any(sizes[int(a)] == 0 for a in axes.ravel())


@exports("All", "Any")
def _of_flags(w: Writer, op: Operation) -> None:
    flags = w.add("Cast", [w.value(op.inputs[0])], to=6)
    axes = w.constant(w.known_list(op.inputs[1], op, "axes"))
    kind = "ReduceMin" if op.type == "All" else "ReduceMax"
    w.give(op, w.add("Cast", [w.add(kind, [flags, axes], keepdims=int(op.attrs["keep_dims"]))], to=9))


@exports("ArgMax", "ArgMin")
def _arg(w: Writer, op: Operation) -> None:
    axis = w.known_list(op.inputs[1], op, "axis")[0]
    found = w.add(op.type, [w.value(op.inputs[0])], axis=axis, keepdims=0)
    dtype = op.outputs[0].dtype
    w.give(op, found if dtype.name == "int64" else w.cast(found, dtype))


@exports("Softmax", "LogSoftmax")
def _softmax(w: Writer, op: Operation) -> None:
    w.give(op, w.add(op.type, w.inputs(op), axis=-1))


@exports("Cumsum")
def _cumsum(w: Writer, op: Operation) -> None:
    flags = {"exclusive": int(op.attrs["exclusive"]), "reverse": int(op.attrs["reverse"])}
    w.give(op, w.add("CumSum", [w.value(op.inputs[0]), w.as_int64(op.inputs[1])], **flags))
