"""ParseExampleV2: the features of Example messages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
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
    found = labelled_messages(call, messages.Example, serialized, names)
    examples = [(label, message.features.feature) for label, message in found]
    return parsed(
        call, examples, serialized.ndim == 0, zip(sparse_keys, attrs["sparse_types"], strict=True),
        zip(dense_keys, attrs["Tdense"], attrs["dense_shapes"], defaults, strict=True),
    )  # fmt: skip


def parsed(
    call: HostCall,
    examples: list[tuple[str, Any]],
    single: bool,
    sparse: Iterable[tuple[bytes, DType]],
    dense: Iterable[tuple[bytes, DType, Shape, np.ndarray]],
) -> list[np.ndarray]:
    """Returns the indices, values and shapes of the features in `sparse`, then the values of those in `dense`.

    sparse: keys and dtypes. dense: keys, dtypes, shapes and defaults. single: whether there is no axis of a batch.
    """
    found = [_sparse(call, examples, key.decode(), dtype, single) for key, dtype in sparse]
    rest = [_dense(call, examples, key.decode(), dtype, shape, default, single) for key, dtype, shape, default in dense]
    return [*(part for parts in zip(*found, strict=True) for part in parts), *rest]


def _together(
    call: HostCall, texts: list[bytes], keys: list[bytes], defaults: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Returns the features of Examples of few layouts."""
    attrs = call.attrs
    shapes = [[d for d in shape or () if d is not None] for shape in attrs["dense_shapes"]]
    counts = [int(np.prod(sizes, dtype=np.int64)) for sizes in shapes]
    made = read(texts, keys, attrs["Tdense"], counts, defaults)
    return [column.reshape(len(texts), *sizes) for column, sizes in zip(made, shapes, strict=True)]


def labelled_messages(call: HostCall, kind: type, serialized: np.ndarray, names: np.ndarray) -> list[tuple[str, Any]]:
    """Returns what each message is called in errors, by its name if there are names, and the message."""
    known = [name.decode() for name in names.reshape(-1).tolist()]
    labels = [f"example '{known[i]}'" if i < len(known) else f"example {i}" for i in range(serialized.size)]
    try:
        texts = serialized.reshape(-1).tolist()
        return [(label, messages.as_message(x, kind, label)) for label, x in zip(labels, texts, strict=True)]
    except InvalidArgumentError as e:
        raise call.error(str(e)) from None


def _values(call: HostCall, example: tuple[str, Any], key: str, dtype: DType) -> list[Any] | None:
    """Returns the values of a feature; None where the Example has none."""
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


def _sparse(
    call: HostCall, examples: list[tuple[str, Any]], key: str, dtype: DType, single: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and shape of a feature with any number of values, without the axis of a batch if single."""
    rows = [_values(call, example, key, dtype) or [] for example in examples]
    lengths = [len(row) for row in rows]
    columns = np.array([j for n in lengths for j in range(n)], np.int64)
    values = np.array([x for row in rows for x in row], dtype.numpy)
    longest = max(lengths, default=0)
    if single:
        return columns[:, None], values, np.array([longest], np.int64)
    indices = np.stack([np.repeat(np.arange(len(rows)), lengths), columns], 1).astype(np.int64)
    return indices, values, np.array([len(rows), longest], np.int64)


def _dense(
    call: HostCall, examples: list[tuple[str, Any]], key: str, dtype: DType, shape: Shape, default: np.ndarray,
    single: bool,
) -> np.ndarray:  # fmt: skip
    """Returns a feature of this shape, with its default where an Example has none."""
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
        rows.append(np.array(values, dtype.numpy))
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
        rows.append(np.array(values, dtype.numpy).reshape([-1, *element]))
    longest = max((len(row) for row in rows), default=0)
    made: np.ndarray = np.empty([len(rows), longest, *element], dtype.numpy)
    made[...] = default.reshape(-1)[0] if default.size else b"" if dtype.name == "string" else 0
    for i, row in enumerate(rows):
        made[i, : len(row)] = row
    return made[0] if single else made
