"""apply_op: the one seam through which every tf.* function adds a node to the current graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from timberframe_core.arguments import shown
from timberframe_core.casts import cast_exactly
from timberframe_core.dtypes import DType, as_dtype, bool_, float32, int32, string, uint64
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, OpError
from timberframe_core.graph import conversions
from timberframe_core.graph.function import FuncGraph
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graph.operation import Operation, Tensor
from timberframe_core.ops.definition import registry
from timberframe_core.ops.definition.opdef import OpDef
from timberframe_core.ops.definition.signature import ArgDef
from timberframe_core.shapes import MAX_ARRAY_RANK, format_shape

Result = Any  # Tensor, list of Tensors, or Operation: what the op's outputs call for


def apply_op(
    op: str, inputs: Sequence[Any] = (), attrs: Mapping[str, Any] | None = None, name: str | None = None
) -> Result:
    """Adds a node to the current graph and returns what it makes.

    inputs: one entry for each declared input; a list input takes a Python list. Anything that is not a Tensor becomes a
    Const whose dtype the other inputs of the same type attr decide. attrs: type and number attrs that the inputs
    determine may be left out, as may attrs with a default; None counts as left out.

    Returns the Tensor of a single output, a list of Tensors for a list or several outputs, the Operation for none.
    In eager execution the operation runs at once; then it returns None where there is no output.
    """
    graph: Any = get_default_graph()
    if graph.eager:
        return graph.execute(op, inputs, attrs, name)
    op_def = registry.get(op)
    given = {k: v for k, v in (attrs or {}).items() if v is not None}
    flat = flat_inputs(op_def, name or op, inputs, given)
    for key in op_def.function_attrs:
        if key in given:
            given[key] = _add_functions(graph, given[key])
    return unpack_outputs(graph.create_op(op_def, flat, given, name))


def _add_functions(graph: Graph, value: Any) -> Any:
    """Returns the names of functions given as graphs, which the graph gets."""
    if isinstance(value, FuncGraph):
        return graph.add_function(value)
    return [_add_functions(graph, f) for f in value] if isinstance(value, list | tuple) else value


def unpack_outputs(node: Operation) -> Result:
    """Returns what `apply_op` returns for a node."""
    if not node.op_def.outputs:
        return node
    if len(node.op_def.outputs) == 1 and not node.op_def.outputs[0].is_list:
        return node.outputs[0]
    return list(node.outputs)


def flat_inputs(op_def: OpDef, label: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[Tensor]:
    """Returns the flat input tensors; fills in the type and number attrs that they determine."""
    if len(inputs) != len(op_def.inputs):
        wanted = ", ".join(a.name for a in op_def.inputs) or "none"
        raise InvalidArgumentError(f"{op_def.name} '{label}': called with {len(inputs)} inputs; it has {wanted}")
    for arg, value in zip(op_def.inputs, inputs, strict=True):
        if arg.is_list and not isinstance(value, list | tuple):
            raise InvalidTypeError(
                f"{op_def.name} '{label}': {arg.name} is {type(value).__name__}; a list of tensors is required"
            )
        if arg.type_attr is not None and arg.type_attr not in attrs:
            known = _known_dtype(value, arg)
            if known is not None:
                attrs[arg.type_attr] = known
    flat: list[Tensor] = []
    for arg, value in zip(op_def.inputs, inputs, strict=True):
        made = _convert_arg(op_def, label, arg, value, attrs)
        flat.extend(made)
        if arg.number_attr is not None:
            attrs.setdefault(arg.number_attr, len(made))
        if arg.type_list_attr is not None:
            attrs.setdefault(arg.type_list_attr, tuple(t.dtype.base_dtype for t in made))
        elif arg.type_attr is not None and made:
            attrs.setdefault(arg.type_attr, made[0].dtype.base_dtype)
    return flat


def _known_dtype(value: Any, arg: ArgDef) -> DType | None:
    """Returns the dtype that a Tensor (or an object that stands for one) among the values fixes."""
    for item in value if arg.is_list else (value,):
        dtype = getattr(item, "dtype", None)
        if isinstance(dtype, DType):
            return dtype.base_dtype
    return None


def _convert_arg(op_def: OpDef, label: str, arg: ArgDef, value: Any, attrs: Mapping[str, Any]) -> list[Tensor]:
    items = list(value) if arg.is_list else [value]
    wanted: list[DType | None] = [None] * len(items)
    if arg.type_list_attr is not None:
        listed = attrs.get(arg.type_list_attr) or ()
        if len(listed) == len(items):
            wanted = [as_dtype(d) for d in listed]
    else:
        fixed = arg.dtype or attrs.get(arg.type_attr or "")
        if fixed is not None:
            wanted = [as_dtype(fixed)] * len(items)
    preferred = _preferred_dtype(op_def, arg)
    made: list[Tensor] = []
    for i, (item, dtype) in enumerate(zip(items, wanted, strict=True)):
        where = f"{arg.name}[{i}]" if arg.is_list else arg.name
        try:
            tensor = convert_to_tensor(item, dtype, f"{label}/{arg.name}", preferred_dtype=preferred)
        except InvalidArgumentError as e:
            raise type(e)(f"{op_def.name} '{label}': {where}: {e}") from None
        if dtype is None and arg.type_attr is not None:
            wanted[i + 1 :] = [tensor.dtype.base_dtype] * (len(items) - i - 1)
        made.append(tensor)
    return made


def _preferred_dtype(op_def: OpDef, arg: ArgDef) -> DType | None:
    """Returns the type attr's default, which decides for values that would suit several dtypes."""
    attr = op_def.attrs.get(arg.type_attr or "")
    return None if attr is None or attr.required else attr.default


def convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None, dtype_hint: Any = None
) -> Tensor:
    """Returns the tensor that `value` means: itself, what an object stands for, or a new Const.

    dtype: what it must be; preferred_dtype (or dtype_hint): what it should be where its values allow that. A list with
    tensors in it is packed. Raises InvalidArgumentError where the value does not convert without loss of kind.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if hasattr(value, "__tf_tensor__"):
        value = value.__tf_tensor__(dtype=wanted, name=name)
    if isinstance(value, Operation):
        raise InvalidTypeError(f"{value!r} is an operation; a tensor is required")
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype.base_dtype is not wanted.base_dtype:
            raise InvalidTypeError(f"tensor '{value.name}' has dtype {value.dtype.name}; it must be {wanted.name}")
        return value
    if isinstance(value, list | tuple) and _holds_tensor(value):
        known = wanted or _first_dtype(value)
        return _pack(value, known, name)
    converted = conversions.tensor_of(value, wanted, name)
    if converted is not None:
        return converted
    array, kind = to_array(value, wanted, None if wanted else preferred_dtype or dtype_hint)
    return constant_op(array, kind, name)


def is_tensor(x: Any) -> bool:
    """Returns whether `x` is a tensor or something that the library uses as one, such as a variable."""
    return isinstance(x, Tensor) or hasattr(x, "__tf_tensor__")


def constant_op(array: np.ndarray, dtype: DType, name: str | None = None) -> Tensor:
    """Returns a Const node that holds a copy of the array, which its owner may go on to change."""
    graph: Any = get_default_graph()
    made: Tensor
    if graph.eager:
        made = graph.constant(array.copy(), dtype)
    else:
        made = graph.apply("Const", (), {"value": array.copy(), "dtype": dtype}, name or "Const").outputs[0]
    return made


def _holds_tensor(value: Sequence[Any], depth: int = 1) -> bool:
    if depth > MAX_ARRAY_RANK:
        raise InvalidArgumentError(
            f"value {_brief(value)} is nested over {MAX_ARRAY_RANK} deep; a tensor has at most so many dimensions"
        )
    return any(
        is_tensor(v) or conversions.converts(v) or (isinstance(v, list | tuple) and _holds_tensor(v, depth + 1))
        for v in value
    )


def _first_dtype(value: Sequence[Any]) -> DType | None:
    for v in value:
        if isinstance(v, list | tuple):
            found = _first_dtype(v)
        else:
            found = getattr(v, "dtype", None)
        if isinstance(found, DType):
            return found.base_dtype
    return None


def _pack(value: Sequence[Any], dtype: DType | None, name: str | None) -> Tensor:
    items = [
        _pack(v, dtype, None) if isinstance(v, list | tuple) and _holds_tensor(v) else convert_to_tensor(v, dtype)
        for v in value
    ]
    packed: Tensor = apply_op("Pack", [items], {"axis": 0}, name)
    return packed


def to_array(value: Any, dtype: DType | None = None, preferred: Any = None) -> tuple[np.ndarray, DType]:
    """Returns a host array of the value and its dtype; Python floats become float32, Python
    integers int32 where they fit.

    Raises InvalidArgumentError for ragged lists, and for values that `dtype` cannot hold without a change of kind.
    """
    shape = getattr(value, "as_list", None)
    if shape is not None:  # a TensorShape
        value = shape()
    if dtype is string:
        return _string_array(value), string
    try:
        array = np.asarray(value)
    except OpError:  # of an unknown Dimension in it
        raise
    except ValueError as e:
        raise InvalidArgumentError(
            f"value {_brief(value)} is not rectangular ({e}); rows must have equal lengths"
        ) from None
    if array.dtype.kind in "USO" and dtype is None:
        _check_kinds(value)
        return _string_array(value), string
    if dtype is None:
        dtype = _default_dtype(value, array, None if preferred is None else as_dtype(preferred))
    if dtype.base_dtype is uint64 and array.dtype.kind == "f":
        array = _whole_numbers(value, array)
    return _cast_array(value, array, dtype), dtype


def _whole_numbers(value: Any, array: np.ndarray) -> np.ndarray:
    """Python integers as uint64, which NumPy takes for floating numbers where some are above the limit of int64."""
    items = np.asarray(value, dtype=object)
    fits = all(isinstance(x, int) and 0 <= x < 2**64 for x in items.flat)
    return items.astype(np.uint64) if fits else array


def _check_kinds(value: Any) -> None:
    """Raises InvalidTypeError for a list of text and numbers, or of integers that no dtype holds."""
    items = np.asarray(value, dtype=object).reshape(-1)
    numbers = [x for x in items if isinstance(x, int | float | complex | np.number)]
    if any(x is None for x in items):
        _bytes(None)  # which says what that means
    if not numbers:
        return
    if len(numbers) == len(items):
        raise InvalidTypeError(f"value {_brief(value)} given; no dtype holds all its numbers")
    other = next(x for x in items if not isinstance(x, int | float | complex | np.number))
    raise InvalidTypeError(
        f"value {_brief(value)} holds {type(numbers[0]).__name__} and {type(other).__name__}; "
        "all elements must be of one kind"
    )


def _default_dtype(value: Any, array: np.ndarray, preferred: DType | None) -> DType:
    if isinstance(value, np.ndarray | np.generic):
        return as_dtype(array.dtype)
    if preferred is not None and not array.size:
        return preferred
    if preferred is not None and array.dtype.kind in _ACCEPTED.get(_kind(preferred), "") and _fits(array, preferred):
        return preferred
    if array.dtype.kind == "f":
        return float32
    if array.dtype.kind == "i" and (array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)):
        return int32
    return bool_ if array.dtype.kind == "b" else as_dtype(array.dtype)


def _fits(array: np.ndarray, dtype: DType) -> bool:
    """Returns whether an integer dtype holds all the integers."""
    if not array.size or array.dtype.kind not in "iu" or dtype.numpy.kind not in "iu":
        return True
    limits = np.iinfo(dtype.numpy)
    return bool(limits.min <= array.min() and array.max() <= limits.max)


_ACCEPTED = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "c": "iufc"}


def _kind(dtype: DType) -> str:
    if dtype.is_complex:
        return "c"
    if dtype.is_floating:
        return "f"
    return dtype.numpy.kind


def _cast_array(value: Any, array: np.ndarray, dtype: DType) -> np.ndarray:
    if array.dtype == dtype.numpy:
        return array
    source = "f" if array.dtype.kind == "V" else array.dtype.kind  # ml_dtypes report kind V
    if isinstance(value, np.ndarray | np.generic) and source not in "SUOc":
        return cast_exactly(array, dtype)
    if array.size and source not in _ACCEPTED.get(_kind(dtype), ""):
        raise InvalidTypeError(f"value {_brief(value)} of kind {array.dtype} given; it must be {dtype.name}")
    if source in "iu" and dtype.numpy.kind in "iu" and array.size:
        limits = np.iinfo(dtype.numpy)
        low, high = int(array.min()), int(array.max())
        if low < limits.min or high > limits.max:
            raise InvalidArgumentError(
                f"value {low if low < limits.min else high} given; {dtype.name} holds {limits.min} to {limits.max}"
            )
    return array.astype(dtype.numpy)


def _string_array(value: Any) -> np.ndarray:
    array = np.asarray(value, dtype=object)
    flat = [_bytes(x) for x in array.flat]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(array.shape)


def _bytes(x: Any) -> bytes:
    if isinstance(x, str):
        try:
            return x.encode()
        except UnicodeEncodeError as e:
            raise InvalidArgumentError(
                f"value {_brief(x)} given; text that UTF-8 can encode is required ({e})"
            ) from None
    if x is None:
        raise InvalidTypeError(
            "value None given; a value is required (a size that is unknown while the graph is built has none: take it "
            "with tf.shape(x)[i] in place of x.shape[i])"
        )
    if not isinstance(x, bytes):
        raise InvalidTypeError(
            f"value {_brief(x)} of type {type(x).__name__} given; a number, bool, str or bytes is required"
        )
    return bytes(x)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"of shape {format_shape(value.shape)}"
    return shown(value)
