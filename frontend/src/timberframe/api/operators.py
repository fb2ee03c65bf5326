"""Python's operators on tensors, as TensorFlow 1 has them: `==` and `!=` compare identity, all others add nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe.api.arithmetic import div, dtype_of, truediv
from timberframe.api.comparison import logical_xor
from timberframe_core.dtypes import bool_, string
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.operation import Tensor

Operator = Callable[..., Tensor]


def _node(op: str, name: str) -> Operator:
    def operator(x: Any, y: Any) -> Tensor:
        result: Tensor = apply_op(op, [x, y], name=name)
        return result

    return operator


def _add(x: Any, y: Any) -> Tensor:
    result: Tensor = apply_op("Add" if dtype_of(x, y) is string else "AddV2", [x, y], name="add")
    return result


def _logic(on_bools: Operator, op: str) -> Operator:
    """Logic on tensors of bool, bits on integers."""

    def operator(x: Any, y: Any) -> Tensor:
        if dtype_of(x, y) is bool_:
            return on_bools(x, y)
        result: Tensor = apply_op(op, [x, y])
        return result

    return operator


def _matmul(x: Any, y: Any) -> Tensor:
    """MatMul for matrices, BatchMatMulV2 where either has more dimensions or an unknown number."""
    dtype = dtype_of(x, y)
    first, second = (convert_to_tensor(v, dtype if dtype_of(v) is None else None) for v in (x, y))
    matrices = all(t.static_shape is not None and len(t.static_shape) == 2 for t in (first, second))
    result: Tensor = apply_op("MatMul" if matrices else "BatchMatMulV2", [first, second], name="matmul")
    return result


_BINARY: dict[str, Operator] = {
    "add": _add,
    "sub": _node("Sub", "sub"),
    "mul": _node("Mul", "mul"),
    "truediv": truediv,
    "div": div,
    "floordiv": _node("FloorDiv", "floordiv"),
    "mod": _node("FloorMod", "mod"),
    "pow": _node("Pow", "pow"),
    "matmul": _matmul,
    "and": _logic(_node("LogicalAnd", "and"), "BitwiseAnd"),
    "or": _logic(_node("LogicalOr", "or"), "BitwiseOr"),
    "xor": _logic(logical_xor, "BitwiseXor"),
}
_COMPARISONS = {"lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual"}


def _invert(x: Tensor) -> Tensor:
    result: Tensor = apply_op("LogicalNot" if x.dtype.base_dtype is bool_ else "Invert", [x])
    return result


def _absolute(x: Tensor) -> Tensor:
    op = "ComplexAbs" if x.dtype.is_complex else "Abs"
    attrs = {"Tout": x.dtype.real_dtype} if x.dtype.is_complex else None
    result: Tensor = apply_op(op, [x], attrs)
    return result


def _negative(x: Tensor) -> Tensor:
    result: Tensor = apply_op("Neg", [x])
    return result


def _method(function: Operator, reflected: bool = False) -> Operator:
    def method(self: Tensor, other: Any) -> Tensor:
        return function(other, self) if reflected else function(self, other)

    return method


def install() -> None:
    """Gives Tensor its operators. (Indexing is `tf.strided_slice`'s family's own.)"""
    for word, function in _BINARY.items():
        setattr(Tensor, f"__{word}__", _method(function))
        setattr(Tensor, f"__r{word}__", _method(function, reflected=True))
    for word, op in _COMPARISONS.items():
        setattr(Tensor, f"__{word}__", _method(_node(op, op)))
    for word, unary in (("invert", _invert), ("abs", _absolute), ("neg", _negative)):
        setattr(Tensor, f"__{word}__", unary)
    Tensor.__array_priority__ = 100  # NumPy then leaves `array + tensor` to us


install()
