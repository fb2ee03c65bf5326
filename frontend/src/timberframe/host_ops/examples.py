"""ParseExampleV2: the features of Example messages."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from timberframe.host_ops.example_layouts import IrregularError, read
from timberframe_core.dtypes import DType
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import Shape, format_shape, is_static

VALUE_KINDS = {"float32": "float_list", "int64": "int64_list", "string": "bytes_list"}


@host_op("ParseExampleV2")
def _parse(call: HostCall) -> list[np.ndarray]:
    serialized, names, sparse_keys, dense_keys, ragged_keys, *defaults = call.inputs
    attrs = call.attrs
    if ragged_keys.size:
        raise call.error(f"ragged_keys has {ragged_keys.size} keys; ragged tensors are not here, it must be empty")
    if len(sparse_keys) != attrs["num_sparse"] or len(dense_keys) != len(attrs["Tdense"]):
        raise call.error("the numbers of keys are others than those of the types; each key needs one")
    if serialized.ndim == 1 and serialized.size and not len(sparse_keys) and all(map(is_static, attrs["dense_shapes"])):
        with contextlib.suppress(IrregularError):
            return _together(call, serialized.tolist(), dense_keys.tolist(), defaults)
    examples = [_features(call, x, i, names) for i, x in enumerate(serialized.reshape(-1).tolist())]
    single = serialized.ndim == 0
    sparse_parts = [
        sparse(call, examples, key.decode(), dtype, single)
        for key, dtype in zip(sparse_keys, attrs["sparse_types"], strict=True)
    ]
    dense_parts = [
        dense(call, examples, key.decode(), dtype, shape, default, single)
        for key, dtype, shape, default in zip(dense_keys, attrs["Tdense"], attrs["dense_shapes"], defaults, strict=True)
    ]
    return [*(part for i in range(3) for part in (s[i] for s in sparse_parts)), *dense_parts]


def _together(
    call: HostCall, texts: list[bytes], keys: list[bytes], defaults: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The features of Examples of few layouts."""
    attrs = call.attrs
    shapes = [[d for d in shape or () if d is not None] for shape in attrs["dense_shapes"]]
    counts = [int(np.prod(sizes, dtype=np.int64)) for sizes in shapes]
    made = read(texts, keys, attrs["Tdense"], counts, defaults)
    return [column.reshape(len(texts), *sizes) for column, sizes in zip(made, shapes, strict=True)]


def _features(call: HostCall, text: bytes, index: int, names: np.ndarray) -> tuple[str, Any]:
    """What an Example is called in errors, and its features."""
    label = f"example '{names[index].decode()}'" if names.size else f"example {index}"
    try:
        return label, messages.as_message(text, messages.Example, label).features.feature
    except InvalidArgumentError as e:
        raise call.error(str(e)) from None


def _values(call: HostCall, example: tuple[str, Any], key: str, dtype: DType) -> list[Any] | None:
    """The values of a feature; None where the Example has none."""
    label, features = example
    if key not in features:
        return None
    feature, wanted = features[key], VALUE_KINDS[dtype.name]
    held = feature.WhichOneof("kind")
    if held is None:
        return None
    if held != wanted:
        raise call.error(f"{label}: feature '{key}' has a {held}; a {wanted}, of {dtype.name}, is required")
    return list(getattr(feature, wanted).value)


def _array(values: list[Any], dtype: DType) -> np.ndarray:
    made: np.ndarray = np.empty(len(values), dtype.numpy)
    made[:] = values
    return made


def sparse(
    call: HostCall, examples: list[tuple[str, Any]], key: str, dtype: DType, single: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and shape of a feature with any number of values, without the axis of a batch if single."""
    rows = [_values(call, example, key, dtype) or [] for example in examples]
    lengths = [len(row) for row in rows]
    columns = np.array([j for n in lengths for j in range(n)], np.int64)
    values = _array([x for row in rows for x in row], dtype)
    longest = max(lengths, default=0)
    if single:
        return columns[:, None], values, np.array([longest], np.int64)
    indices = np.stack([np.repeat(np.arange(len(rows)), lengths), columns], 1).astype(np.int64)
    return indices, values, np.array([len(rows), longest], np.int64)


def dense(
    call: HostCall, examples: list[tuple[str, Any]], key: str, dtype: DType, shape: Shape, default: np.ndarray,
    single: bool,
) -> np.ndarray:  # fmt: skip
    """A feature of this shape, with its default where an Example has none."""
    sizes = shape or ()
    if sizes and sizes[0] is None:
        return _sequences(call, examples, key, dtype, sizes[1:], default, single)
    count = int(np.prod([d for d in sizes if d is not None], dtype=np.int64))
    rows = []
    for example in examples:
        values = _values(call, example, key, dtype)
        if values is None:
            if not default.size and count:
                raise call.error(f"{example[0]}: feature '{key}' is missing and has no default; one is required")
            rows.append(np.broadcast_to(default.reshape(-1) if default.size == 1 else default.reshape(count), count))
            continue
        if len(values) != count:
            raise call.error(
                f"{example[0]}: feature '{key}' has {len(values)} values; shape {format_shape(shape)} needs {count}"
            )
        rows.append(_array(values, dtype))
    made = np.concatenate(rows) if rows else np.empty(0, dtype.numpy)
    known = [d for d in sizes if d is not None]
    return made.reshape(known if single else [len(rows), *known])


def _sequences(
    call: HostCall, examples: list[tuple[str, Any]], key: str, dtype: DType, sizes: Shape, default: np.ndarray,
    single: bool,
) -> np.ndarray:  # fmt: skip
    """Sequences of elements of these sizes, filled with the default up to the longest."""
    element = [d for d in sizes or () if d is not None]
    stride = int(np.prod(element, dtype=np.int64))
    rows = []
    for example in examples:
        values = _values(call, example, key, dtype) or []
        if stride and len(values) % stride:
            raise call.error(
                f"{example[0]}: feature '{key}' has {len(values)} values; a multiple of {stride} is required"
            )
        rows.append(_array(values, dtype).reshape([-1, *element]))
    longest = max((len(row) for row in rows), default=0)
    made: np.ndarray = np.empty([len(rows), longest, *element], dtype.numpy)
    made[...] = default.reshape(-1)[0] if default.size else b"" if dtype.name == "string" else 0
    for i, row in enumerate(rows):
        made[i, : len(row)] = row
    return made[0] if single else made
