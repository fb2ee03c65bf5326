"""Python's operators on tensors, as TensorFlow 1 has them: `==` and `!=` compare identity, all others add nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timberframe_core.dtypes import DType, bool_, float32, float64, string
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Tensor
from timberframe_core.graph.scopes import name_scope

Operator = Callable[..., Tensor]


def dtype_of(*values: Any) -> DType | None:
    """Returns the dtype of the first value that has one of its own."""
    for value in values:
        dtype = getattr(value, "dtype", None)
        if isinstance(dtype, DType):
            return dtype.base_dtype
    return None


def _quotient_dtype(dtype: DType) -> DType | None:
    """Returns what truediv converts a dtype to before it divides: float32 holds 16 bits,
    wider integers need float64.
    """
    if not dtype.is_integer:
        return None
    return float32 if dtype.size <= 2 else float64


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y by element; integers of up to 16 bits are divided as float32, wider ones as float64."""
    if get_default_graph().eager:
        return _quotient(x, y, name or "truediv")
    with name_scope(name, "truediv", [v for v in (x, y) if isinstance(v, Tensor)]) as scope:
        return _quotient(x, y, scope)


def _quotient(x: Any, y: Any, name: str) -> Tensor:
    first, second = convert_pair(x, y)
    if first.dtype.base_dtype is not second.dtype.base_dtype:
        raise InvalidArgumentError(
            f"truediv: operands have dtypes {first.dtype.name} and {second.dtype.name}; they must be equal"
        )
    wider = _quotient_dtype(first.dtype.base_dtype)
    if wider is not None:
        first, second = (apply_op("Cast", [t], {"DstT": wider}) for t in (first, second))
    result: Tensor = apply_op("RealDiv", [first, second], name=name)
    return result


def convert_pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Returns both operands as tensors; one without a dtype of its own takes the other's."""
    dtype = dtype_of(x, y)
    first = convert_to_tensor(x, dtype if dtype_of(x) is None else None, name="x")
    second = convert_to_tensor(y, first.dtype.base_dtype if dtype_of(y) is None else None, name="y")
    return first, second


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y by element, as Python 2 divides: integers round down."""
    with name_scope(name, "div", [v for v in (x, y) if isinstance(v, Tensor)]) as scope:
        first, second = convert_pair(x, y)
        real = first.dtype.is_floating or first.dtype.is_complex
        result: Tensor = apply_op("RealDiv" if real else "FloorDiv", [first, second], name=scope)
        return result


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Returns whether exactly one of x and y holds, by element."""
    x, y = convert_to_tensor(x, "bool"), convert_to_tensor(y, "bool")
    either = apply_op("LogicalOr", [x, y])
    both = apply_op("LogicalAnd", [x, y])
    result: Tensor = apply_op("LogicalAnd", [either, apply_op("LogicalNot", [both])], name=name)
    return result


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


_UNARY = {"invert": _invert, "abs": _absolute, "neg": _negative}

METHODS = (
    *(f"__{prefix}{word}__" for word in _BINARY for prefix in ("", "r")),
    *(f"__{word}__" for word in (*_COMPARISONS, *_UNARY)),
)
"""The names of the operators of tensors but indexing: what represents a tensor, such as a variable, has them, too."""


def install() -> None:
    """Gives Tensor its operators. (Indexing is `tf.strided_slice`'s family's own.)"""
    for word, function in _BINARY.items():
        setattr(Tensor, f"__{word}__", _method(function))
        setattr(Tensor, f"__r{word}__", _method(function, reflected=True))
    for word, op in _COMPARISONS.items():
        setattr(Tensor, f"__{word}__", _method(_node(op, op)))
    for word, unary in _UNARY.items():
        setattr(Tensor, f"__{word}__", unary)
    Tensor.__array_priority__ = 100  # so that `array + tensor` calls Tensor.__radd__


install()
