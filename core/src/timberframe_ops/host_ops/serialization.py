"""Tensors as the bytes of TensorProtos, and sparse tensors as three such strings."""

from __future__ import annotations

import numpy as np

from timberframe_core.dtypes import DType, as_dtype, int64
from timberframe_core.graphdef import messages
from timberframe_core.graphdef.tensors import encode_array, make_ndarray
from timberframe_core.plugin.host_ops import HostCall, host_op
from timberframe_core.shapes import format_shape
from timberframe_ops.sparse.shapes import Parts, rows_of, stacked, unflat


def _bytes_of(array: np.ndarray) -> bytes:
    return bytes(encode_array(array, compact=False).SerializeToString())


def _parsed(call: HostCall, text: bytes, dtype: DType, what: str) -> np.ndarray:
    """Returns the array of a TensorProto; raises where it is damaged or of another dtype."""
    label = f"{call.op} '{call.name}': {what}"
    proto = messages.as_message(text, messages.TensorProto, label)
    found = make_ndarray(proto, label)
    if proto.dtype != dtype.number:
        raise call.error(f"{what} is a tensor of dtype {as_dtype(proto.dtype)}; it must be {dtype}")
    return found


@host_op("SerializeTensor")
def _serialize(call: HostCall) -> list[np.ndarray]:
    return [np.array(_bytes_of(call.inputs[0]), object)]


@host_op("ParseTensor")
def _parse(call: HostCall) -> list[np.ndarray]:
    serialized = call.inputs[0]
    if serialized.ndim:
        raise call.error(f"serialized has shape {format_shape(serialized.shape)}; it must be a scalar")
    return [_parsed(call, serialized.item(), call.attrs["out_type"], "serialized")]


@host_op("SerializeSparse")
def _serialize_sparse(call: HostCall) -> list[np.ndarray]:
    return [np.array([_bytes_of(part) for part in call.inputs], object)]


@host_op("SerializeManySparse")
def _serialize_rows(call: HostCall) -> list[np.ndarray]:
    indices, values, shape = call.inputs
    rows = rows_of(indices, values, shape)
    return [np.array([[_bytes_of(part) for part in row] for row in rows], object).reshape(len(rows), 3)]


@host_op("DeserializeManySparse", "DeserializeSparse")
def _deserialize(call: HostCall) -> list[np.ndarray]:
    serialized = call.inputs[0]
    leading = serialized.shape[:-1]
    tensors = [_sparse(call, row, i) for i, row in enumerate(serialized.reshape(-1, 3).tolist())]
    if not tensors:
        raise call.error(f"serialized_sparse has shape {format_shape(serialized.shape)}; it must hold a sparse tensor")
    ranks = sorted({shape.size for _, _, shape in tensors})
    if len(ranks) > 1:
        raise call.error(f"the sparse tensors have ranks {ranks}; all must have one rank")
    if not leading:
        return list(tensors[0])
    indices, values, shape = stacked(tensors)
    numbered = np.concatenate([unflat(indices[:, 0], leading), indices[:, 1:]], axis=1)
    return [numbered, values, np.concatenate([np.array(leading, np.int64), shape[1:]])]


def _sparse(call: HostCall, texts: list[bytes], number: int) -> Parts:
    """Returns the sparse tensor of three strings."""
    what = f"sparse tensor {number}"
    indices = _parsed(call, texts[0], int64, f"indices of {what}")
    values = _parsed(call, texts[1], call.attrs["dtype"], f"values of {what}")
    shape = _parsed(call, texts[2], int64, f"shape of {what}")
    if values.ndim != 1 or shape.ndim != 1 or indices.shape != (values.size, shape.size):
        shapes = ", ".join(format_shape(x.shape) for x in (indices, values, shape))
        raise call.error(
            f"indices, values and shape of {what} have shapes {shapes}; (N, R), (N,) and (R,) are required"
        )
    return indices, values, shape
